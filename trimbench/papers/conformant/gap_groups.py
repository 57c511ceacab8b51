"""What methods reached, grouped by the conditions under which they are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trimbench.papers.conformant.gap_comparison import OK
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.numbers import mean_interval
from trimbench.papers.study.outcome import successes

if TYPE_CHECKING:
    import pandas as pd

# Title, and whether high values are good.
MEASURES = {
    "log_loss": ("log loss", False),
    "brier": ("Brier score", False),
    "accuracy": ("accuracy", True),
    "calibration": ("calibration error", False),
}
MECHANISMS = {
    "mcar": "at random",
    "rates": "at rates",
    "block": "blocks",
    "depends_on_features": "depends on features",
    "depends_on_value": "depends on value",
}


class Estimate(NamedTuple):
    """A mean over splits, a 95 % confidence interval around it (NaN for one split), and how many splits there are."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class Group:
    """One data set, mechanism and share, with one kind of training rows.

    Attributes
    ----------
    by_method : mapping from method to mapping from split to result
    test_per_train : float
        Test rows for each training row.
    """

    dataset: str
    title: str
    mechanism: str
    missing: float
    training: str
    test_per_train: float
    by_method: Mapping[str, Mapping[int, Mapping[str, Any]]]

    @property
    def labels(self) -> dict[str, object]:
        """Its place in tables."""
        return {
            "data": self.title,
            "training rows": self.training,
            "missing": MECHANISMS[self.mechanism],
            "share": self.missing,
        }

    def is_one(self, mechanism: str, missing: float, training: str = "complete") -> bool:
        """Tell whether it has this mechanism, this share and these training rows."""
        return (self.mechanism, self.missing, self.training) == (mechanism, missing, training)

    def values(self, method: str, measure: str) -> dict[int, float]:
        """Return what a method reached on the splits where it gave predictions."""
        results = self.by_method.get(method, {})
        return {split: float(one[measure]) for split, one in results.items() if one["status"] == OK}

    def estimate(self, method: str, measure: str) -> Estimate:
        """Return the mean of a method over the splits."""
        return self._estimate(list(self.values(method, measure).values()))

    def lead(self, of: str, over: str, measure: str) -> Estimate:
        """Return by how much a method is better than another on the same splits: positive if it is."""
        ours, theirs = self.values(of, measure), self.values(over, measure)
        sign = 1.0 if MEASURES[measure][1] else -1.0
        return self._estimate([sign * (ours[split] - theirs[split]) for split in ours if split in theirs])

    def reasons(self, method: str) -> dict[tuple[str, str], int]:
        """Return why a method gave no predictions, status and reason, and on how many splits."""
        found: dict[tuple[str, str], int] = {}
        for one in self.by_method.get(method, {}).values():
            if one["status"] != OK:
                key = (str(one["status"]), str(one["reason"]))
                found[key] = found.get(key, 0) + 1
        return found

    def _estimate(self, values: Sequence[float]) -> Estimate:
        if not values:
            return Estimate(math.nan, math.nan, math.nan, 0)
        return Estimate(*mean_interval(values, self.test_per_train), len(values))


def groups_of(rows: pd.DataFrame) -> list[Group]:
    """Return the groups of the successful jobs, in the order of the jobs."""
    found: dict[tuple[str, str, str, float, str], dict[str, dict[int, Mapping[str, Any]]]] = {}
    ratios: dict[tuple[str, str, str, float, str], float] = {}
    for row in successes(rows).to_dict("records"):
        title = shown_name(row["dataset"], row["title"])
        for one in row["methods"]:
            key = (row["dataset"], title, row["mechanism"], row["missing"], one["training"])
            found.setdefault(key, {}).setdefault(one["method"], {})[row["split"]] = one
            ratios[key] = row["n_test"] / row["n_train"]
    return [Group(*key, test_per_train=ratios[key], by_method=by_method) for key, by_method in found.items()]
