"""What the settings of the selection-bias experiments have in common."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import check_axis
from trimbench.papers.validation import unknown
from trimbench.selection_bias.adjustment import check_ties
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.simulation import ModelSettings

if TYPE_CHECKING:
    import pandas as pd

CORRECTIONS = ("corrected", "uncorrected")


def make_prior(prior: Mapping[str, Any]) -> Prior:
    """Return the prior that a mapping describes.

    Raises
    ------
    ValueError
        When a key does not exist or a value is out of range.
    """
    known = [field.name for field in dataclasses.fields(Prior)]
    for key in prior:
        if key not in known:
            raise unknown("prior: a key", known, str(key))
    try:
        return Prior(**prior)
    except ValueError as error:
        raise ValueError(f"prior.{error}") from error


@dataclasses.dataclass(frozen=True)
class SimulationPlan:
    """Which data sets are drawn from the model, and with which prior they are analysed.

    Attributes
    ----------
    n_features : int
    alpha : float
        With which the data is drawn.
    test_sizes : tuple of int
        Test cases of both classes.
    prior : dict
        Keys of `trimbench.selection_bias.prior.Prior`; its theta0 is that of the data, too.
    ties : str
    seed : int
    """

    n_features: int
    alpha: float
    test_sizes: Sequence[int]
    prior: Mapping[str, Any]
    ties: str
    seed: int

    def check(self, class_sizes: Sequence[Sequence[int]]) -> None:
        """Raise a ValueError unless data can be drawn."""
        check_ties(self.ties)
        theta0 = make_prior(self.prior).theta0
        pairs = [_pair("class_sizes", sizes) for sizes in class_sizes]
        check_axis("class_sizes", pairs)
        for pair in pairs:
            settings = ModelSettings(self.n_features, self.alpha, theta0, pair, _pair("test_sizes", self.test_sizes))
            if sum(settings.test_sizes) < 1:
                raise ValueError(f"test_sizes must be two whole numbers, not both 0, got {list(self.test_sizes)}")

    def check_ks(self, ks: Sequence[int]) -> None:
        """Raise a ValueError unless each number of features can be selected."""
        check_axis("ks", list(ks))
        for k in ks:
            if not 1 <= k <= self.n_features:
                raise ValueError(f"ks must be numbers from 1 to n_features={self.n_features}, got {k}")

    def parameters(self, sizes: Sequence[int], replicate: int) -> dict[str, Any]:
        """Return the parameters of a job that draws one data set; all that select from it share its seed."""
        return {
            "n_features": self.n_features,
            "alpha": self.alpha,
            "class_sizes": list(sizes),
            "test_sizes": list(self.test_sizes),
            "prior": dict(self.prior),
            "ties": self.ties,
            "seed": seed_for(purpose="simulated cases", **_axes(sizes), replicate=replicate, seed=self.seed),
        }

    def notes(self, class_sizes: Sequence[Sequence[int]]) -> list[str]:
        """Return what a reader must know of these sizes."""
        notes = []
        if {(100, 100), (50, 50)} <= {tuple(sizes) for sizes in class_sizes}:
            notes.append(
                "The slides say 100 training cases, but their cut-offs and calibration fit 200 (100 of each class); "
                "both are run."
            )
        for sizes in class_sizes:
            shares = [pair[1] / sum(pair) for pair in (sizes, self.test_sizes)]
            if shares[0] != shares[1]:
                notes.append(
                    f"With {show_sizes(sizes)}, the share of y = 1 is {shares[0]:.3g} among training cases, from which "
                    f"the classifier learns it, and {shares[1]:.3g} among test cases: expected and actual errors can "
                    "differ for that reason, too."
                )
        return notes


def show_sizes(sizes: Sequence[int]) -> str:
    """Return how tables and titles call two class sizes: by their sum where they are equal."""
    n0, n1 = sizes
    return f"n = {n0 + n1}" if n0 == n1 else f"n = {n0} + {n1}"


def stem_of_sizes(sizes: Sequence[int]) -> str:
    """Return how files call two class sizes."""
    n0, n1 = sizes
    return f"n{n0 + n1}" if n0 == n1 else f"n{n0}_{n1}"


def labels_of_sizes(sizes: Sequence[int]) -> dict[str, int]:
    """Return the labels by which rows and tables tell class sizes apart."""
    return {"n0": sizes[0], "n1": sizes[1]}


def with_sizes(rows: pd.DataFrame, sizes: Sequence[int]) -> pd.DataFrame:
    """Return the rows with these labels."""
    return rows[(rows["n0"] == sizes[0]) & (rows["n1"] == sizes[1])]


def check_at_least(least: int, **values: int) -> None:
    """Raise a ValueError unless values, called by the names of their settings, are large enough."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}")


def _axes(sizes: Sequence[int]) -> dict[str, int]:
    n0, n1 = sizes
    return {"n": n0 + n1} if n0 == n1 else {"n0": n0, "n1": n1}


def _pair(name: str, sizes: object) -> tuple[int, int]:
    if (
        not isinstance(sizes, Sequence)
        or len(sizes) != 2
        or any(isinstance(size, bool) or not isinstance(size, int) for size in sizes)
    ):
        raise ValueError(
            f"{name} must be pairs of whole numbers, cases with y = 0 and with y = 1, got {sizes!r}; a pair is written "
            "[100,100], a list of pairs, where several can be given, [[100,100]]"
        )
    return (sizes[0], sizes[1])


def mean_and_interval(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Return the mean, and Student's 95 % prediction interval for one more data set; None for a single replicate."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, None
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / n)
    return mean, (mean - half, mean + half)
