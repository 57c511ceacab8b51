"""Set-ups that are not in the paper, but were inferred from the numbers that it prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trimbench.papers.conformant.evaluation import evaluation_cells
from trimbench.papers.conformant.mask_means import summarise
from trimbench.papers.conformant.printed_tables import FILLS, METHODS, printed, row_of
from trimbench.papers.conformant.protocol import Encoding, make_task
from trimbench.papers.data.missingness import Missingness, Rounding, Unit
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import successes
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

# How the authors count: in steps of a fifth of the features, rounded down.
AS_RUN_ROUNDING: Rounding = "fifths"
_CLOSE_PERCENT = 2.0
FIT_COLUMNS = {
    **dict.fromkeys(["data", "set-up", "inferred", "masks"], ""),
    "mean error": ".2f",
    "mean error (%)": ".2f",
    "within 2 %": "",
    "largest error (%)": ".1f",
}


@settings
class Setup:
    """A set-up that may explain the printed numbers of a data set.

    Attributes
    ----------
    title : str
        A short phrase, shown beside the numbers that the set-up explains.
    encoding : {"authors", "paper"}
    unit : {"feature", "column"}
        What goes missing: features with all their columns, or single columns.
    displaced : dict from feature to column
        The first of the columns that go missing in place of the feature's own.
    median_of : {"test", "train"}
        The rows whose median is imputed; all other constants are those of the complete test rows.
    changes : dict
        Entries that take the place of the protocol's, such as ``inverse_penalty``.
    """

    title: str
    encoding: Encoding = "authors"
    unit: Unit = "feature"
    displaced: dict[str, int] = field(default_factory=dict)
    median_of: Literal["test", "train"] = "test"
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> dict[str, str]:
        """Titles of the printed methods by their keys in the results."""
        keys = {f"{fill}@test": title for fill, title in FILLS.items()} | {"nacl": "NaCL"}
        if self.median_of == "train":
            del keys["median@test"]
            keys["median"] = "Median"
        return keys

    def cells(self, inputs: Inputs, name: str, missing: Sequence[float], repetitions: int, seed: int) -> list[Cell]:
        """Return the jobs of a data set under this set-up."""
        task = make_task(inputs, name, self.encoding, seed, **self.changes)
        labels = {"encoding": self.encoding, "rounding": AS_RUN_ROUNDING, "as_run": False, "setup": self.title}
        missingness = Missingness(rounding=AS_RUN_ROUNDING, unit=self.unit, displaced=self.displaced)
        return evaluation_cells(task, missing, repetitions, missingness, seed, labels)

    def means(self, rows: pd.DataFrame, name: str, measure: str) -> dict[float, dict[str, float]]:
        """Return 100 times the means over masks, by share and method."""
        return dict(means_of(successes(rows, dataset=name, setup=self.title), measure, self.methods))


def means_of(done: pd.DataFrame, measure: str, methods: Mapping[str, str]) -> Iterator[tuple[float, dict[str, float]]]:
    """Give 100 times the means of the methods at each share at which a feature is missing."""
    for fraction, group in summarise(done, measure, methods).groupby("missing"):
        if float(str(fraction)) > 0:
            titles = group["method"].map(methods)
            yield float(str(fraction)), dict(zip(titles, 100 * group["mean"], strict=True))


def how_well(experiment: str, name: str, means: Mapping[float, Mapping[str, float]]) -> dict[str, object]:
    """Return how far means are from the printed numbers of a data set; empty where none is printed."""
    pairs = [
        (values[method], row[method])
        for share, values in means.items()
        if (row := printed(experiment).get(row_of(name, share)))
        for method in METHODS.values()
        if method in values
    ]
    if not pairs:
        return {}
    ours, theirs = np.array(pairs).T
    errors = abs(ours - theirs)
    percent = 100 * errors / theirs
    return {
        "mean error": float(errors.mean()),
        "mean error (%)": float(percent.mean()),
        "within 2 %": f"{int((percent <= _CLOSE_PERCENT).sum())} of {len(pairs)}",
        "largest error (%)": float(percent.max()),
    }
