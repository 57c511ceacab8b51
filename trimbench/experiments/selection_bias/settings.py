"""What the settings of the selection-bias experiments have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trimbench.configuration import unknown
from trimbench.execution.seeds import seed_for
from trimbench.experiments.plan import check_axis
from trimbench.selection_bias.adjustment import check_ties
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.simulation import ModelSettings

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
    return Prior(**prior)


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

    def check(self, class_sizes: Sequence[Sequence[int]], ks: Sequence[int], replicates: int) -> None:
        """Raise a ValueError unless data can be drawn and k features selected from it."""
        check_ties(self.ties)
        theta0 = make_prior(self.prior).theta0
        pairs = [_pair("class_sizes", sizes) for sizes in class_sizes]
        check_axis("class_sizes", pairs)
        if len({sum(pair) for pair in pairs}) < len(pairs):
            raise ValueError(
                f"class_sizes must have different totals, by which the tables tell them apart, got {pairs}; run one "
                "after the other"
            )
        for pair in pairs:
            settings = ModelSettings(self.n_features, self.alpha, theta0, pair, _pair("test_sizes", self.test_sizes))
            if sum(settings.test_sizes) < 1:
                raise ValueError(f"test_sizes must be two whole numbers, not both 0, got {list(self.test_sizes)}")
        check_axis("ks", list(ks))
        for k in ks:
            if not 1 <= k <= self.n_features:
                raise ValueError(f"ks must be numbers from 1 to n_features={self.n_features}, got {k}")
        if replicates < 1:
            raise ValueError(f"replicates must be 1 or more, got {replicates}")

    def parameters(self, sizes: Sequence[int], replicate: int) -> dict[str, Any]:
        """Return the parameters of a job that draws one data set; all that select from it share its seed."""
        return {
            "n_features": self.n_features,
            "alpha": self.alpha,
            "class_sizes": list(sizes),
            "test_sizes": list(self.test_sizes),
            "prior": dict(self.prior),
            "ties": self.ties,
            "seed": seed_for(purpose="simulated cases", n=sum(sizes), replicate=replicate, seed=self.seed),
        }


def _pair(name: str, sizes: Sequence[int]) -> tuple[int, int]:
    if not isinstance(sizes, Sequence) or len(sizes) != 2 or not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"{name} must be pairs of whole numbers, cases with y = 0 and with y = 1, got {sizes!r}")
    return (sizes[0], sizes[1])


def mean_and_range(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Return the mean, and the range that holds 95 % of the replicates."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(np.mean(values)), (float(low), float(high))
