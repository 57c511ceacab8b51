"""What the settings of the selection-bias experiments have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator

from trimbench.papers.execution.functions import JobFunction
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.cells import Cell, Label, check_axis
from trimbench.papers.validation import settings
from trimbench.selection_bias.adjustment import Ties
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.simulation import ModelSettings

CORRECTIONS = ("corrected", "uncorrected")
# Training cases of each class, as the slides state and as their numbers tell.
STATED_SIZES, INFERRED_SIZES = (50, 50), (100, 100)


@settings
class PriorSettings(Prior):
    """Prior and grids of the naive Bayes model, as a configuration states them."""


def _as_pairs(value: object) -> object:
    """Read one pair of class sizes, [100, 100], as a list of one pair."""
    is_one_pair = isinstance(value, list) and not any(isinstance(size, list) for size in value)
    return [value] if value and is_one_pair else value


@settings
class SimulatedCases:
    """Cases drawn from the naive Bayes model with `alpha` and the prior's theta0, and the prior to analyse them with.

    `class_sizes` are pairs of training cases with y = 0 and with y = 1; a single pair may be given without the outer
    list. `test_sizes` is such a pair of test cases.
    """

    class_sizes: Annotated[list[list[int]], BeforeValidator(_as_pairs)]
    test_sizes: list[int]
    n_features: int = 10_000
    alpha: float = 300.0
    prior: PriorSettings = PriorSettings()
    ties: Ties = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("class_sizes", [tuple(sizes) for sizes in self.class_sizes])
        for sizes in self.class_sizes:
            self._model(sizes)
        if sum(self.test_sizes) < 1:
            raise ValueError(f"test_sizes must be two whole numbers, not both 0, got {self.test_sizes}")

    @property
    def sizes(self) -> list[int]:
        """The class sizes of an experiment that has one pair of them; several are a ValueError."""
        if len(self.class_sizes) > 1:
            raise ValueError(f"class_sizes must be one pair of whole numbers, got {self.class_sizes}; choose one")
        return self.class_sizes[0]

    def _model(self, sizes: Sequence[int]) -> ModelSettings:
        # It refuses anything but pairs.
        return ModelSettings(self.n_features, self.alpha, self.prior.theta0, sizes, self.test_sizes)  # type: ignore[arg-type]

    def cell(
        self, function: JobFunction, sizes: Sequence[int], labels: Mapping[str, Label], **parameters: object
    ) -> Cell:
        """Return a job that draws one data set; all jobs on the same replicate draw the same one.

        The first parameters of the function are ``data``, ``data_seed``, ``prior`` and ``ties``. The sizes join the
        labels, of which ``replicate`` numbers the data set.
        """
        n0, n1 = sizes
        axes = {"n": n0 + n1} if n0 == n1 else size_labels(sizes)
        seed = seed_for(purpose="simulated cases", **axes, replicate=labels.get("replicate", 0), seed=self.seed)
        drawn = {"data": self._model(sizes), "data_seed": seed, "prior": self.prior, "ties": self.ties}
        return Cell.of({**size_labels(sizes), **labels}, function, **drawn, **parameters)

    def notes(self) -> list[str]:
        """Return what a reader must know of these sizes."""
        notes = []
        if all(list(sizes) in self.class_sizes for sizes in (STATED_SIZES, INFERRED_SIZES)):
            notes.append(
                "The slides say 100 training cases, but their cut-offs and calibration fit 200 (100 of each class); "
                "both are run."
            )
        for sizes in self.class_sizes:
            train, test = (pair[1] / sum(pair) for pair in (sizes, self.test_sizes))
            if train != test:
                notes.append(
                    f"With {show_sizes(sizes)}, the share of y = 1 is {train:.3g} among training cases, from which "
                    f"the classifier learns it, and {test:.3g} among test cases: expected and actual errors can "
                    "differ for that reason, too."
                )
        return notes


@settings
class Replicated(SimulatedCases):
    """Numbers of features to select, `ks`, on several data sets for each pair of class sizes."""

    ks: list[int]
    replicates: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ks(self.ks, self.n_features)
        check_at_least(1, replicates=self.replicates)


def show_sizes(sizes: Sequence[int]) -> str:
    """Return two class sizes for tables and titles: their sum where they are equal."""
    n0, n1 = sizes
    return f"n = {n0 + n1}" if n0 == n1 else f"n = {n0} + {n1}"


def file_stem(shown: str) -> str:
    """Return the sizes that `show_sizes` shows in the form for file names."""
    return shown.replace(" = ", "").replace(" + ", "_")


def size_labels(sizes: Sequence[int]) -> dict[str, int]:
    """Return the labels by which rows and tables tell class sizes apart."""
    return {"n0": sizes[0], "n1": sizes[1]}


def check_ks(ks: Sequence[int], n_features: int) -> None:
    """Raise a ValueError unless each number of features can be selected."""
    check_axis("ks", ks)
    if wrong := [k for k in ks if not 1 <= k <= n_features]:
        raise ValueError(f"ks must be numbers from 1 to n_features={n_features}, got {wrong[0]}")


def check_at_least(least: int, **values: int) -> None:
    """Raise a ValueError unless values, named as in the settings, are large enough."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}")
