"""What the jobs of each step of a study found: shares and differences with their intervals, and the model to keep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from trimbench.papers.beyond.missing_values import Group, groups_of
from trimbench.papers.methods.missing_features import OK
from trimbench.papers.own_table.confidence import CALIBRATED, PLATT, SELECTING
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.steps import OUTER, TRIMMING
from trimbench.papers.own_table.table_reading import ReadTable
from trimbench.reproduction.vocabulary.numbers import mean_of
from trimbench.trimming.result import wilson_interval

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Studied:
    """A table to study, the cost of each of its features, and what to try."""

    table: ReadTable
    costs: Mapping[str, float]
    settings: StudySettings

    @property
    def positive(self) -> str | None:
        """The class that trimming sets against the rest; None where it takes all classes as they are."""
        named = self.settings.positive is not None and len(self.table.classes) > 2
        return self.table.positive if named else None

    @property
    def selecting(self) -> list[str]:
        """The methods that judge the confidence after a selection in seconds, with the rows of the rarest class."""
        classes = np.bincount(self.table.labels, minlength=len(self.table.classes))
        left_out = set()
        if len(classes) > 2 and self.table.features.isna().to_numpy().any():
            left_out.add(CALIBRATED)
        if classes.min() * (1 - self.settings.test_share) < _FEWEST:
            left_out.add(PLATT)
        return [method for method in SELECTING if method not in left_out]


# Training rows of a class, so that the others have it, too, where a fold is held out.
_FEWEST = 3


@dataclass(frozen=True, eq=False)
class Steps(Studied):
    """What the jobs of each step found, and why some have failed."""

    frontier: list[Row]
    choices: list[Row]
    baseline: list[Row]
    gaps: list[Group]
    confidence: list[Row]
    explanations: list[Row]
    failures: list[Row]
    used: Mapping[tuple[str, int, int], int]  # of a step, rows to learn from, and rows to test on: how many jobs

    @classmethod
    def of(cls, rows: pd.DataFrame, studied: Studied) -> Steps:
        """Sort the rows of the jobs into steps."""
        name, done = studied.table.name, rows[rows["status"] == "ok"]

        def step(one: str) -> list[Row]:
            return [_plain(row) for row in done[done["step"] == one].to_dict("records")]

        gaps = done[done["step"] == "gaps"].dropna(axis=1, how="all").assign(dataset=name, title=name)
        return cls(
            studied.table,
            studied.costs,
            studied.settings,
            step("frontier"),
            step("choice"),
            step("baseline"),
            groups_of(gaps) if len(gaps) else [],
            # A table may have fewer columns than were asked for.
            list({(len(row["selected"]), row["method"]): row for row in step("confidence")}.values()),
            [one for row in step("explanations") for one in row["explained"]],
            [_plain(row) for row in rows[rows["status"] != "ok"].to_dict("records")],
            Counter(
                (row["step"], int(row["n_train"]), int(row["n_test"]))
                for row in (done[["step", "n_train", "n_test"]].to_dict("records") if len(done) else ())
            ),
        )

    @cached_property
    def trimmings(self) -> list[Row]:
        """The trimming of each budget, with the budget."""
        every = [(row["budget"], one) for row in self.frontier for one in row["methods"]]
        return [{**one, "budget": budget} for budget, one in every if one["method"] == TRIMMING]

    @cached_property
    def chosen(self) -> Row | None:
        """The trimming of the budget that was chosen on the training rows."""
        budgets = [row["budget"] for row in self.choices if row.get("fold") is None]
        return next((one for one in self.trimmings if one["budget"] in budgets), None)

    @property
    def is_nested(self) -> bool:
        """Whether what was chosen was tested by nested cross-validation, because rows are few."""
        return len(self.choices) == OUTER + 1

    @cached_property
    def judged(self) -> Judged | None:
        """How the chosen trimming, and what people use, decide rows that no choice has seen."""
        tested = [row for row in self.choices if (row.get("fold") is not None) == self.is_nested]
        return Judged.of(tested, self.is_nested) if tested else None

    @property
    def accuracy(self) -> Share | None:
        """The share of rows, unseen by any choice, that the trimming decides correctly."""
        return None if self.judged is None else self.judged.share(TRIMMING)


@dataclass(frozen=True, eq=False)
class Judged:
    """What several methods decided on the same rows, which neither they nor the choice of a budget have seen.

    Attributes
    ----------
    n_rows : int
    n_right : mapping from method to number of rows
    only : mapping from pairs of methods to number of rows
        Those that the first decides rightly and the second does not.
    are_folds : bool
        Whether the rows are those of cross-validation.
    failures : mapping from method to reason
    """

    n_rows: int
    n_right: Mapping[str, int]
    only: Mapping[tuple[str, str], int]
    are_folds: bool
    failures: Mapping[str, str]

    @classmethod
    def of(cls, choices: Sequence[Row], are_folds: bool) -> Judged:
        """Add up folds; a method that failed in one has no result."""
        every = [one for row in choices for one in row["methods"]]
        failures = {one["method"]: one["failure"] for one in every if "failure" in one}
        found = [one for one in every if one["method"] not in failures]
        n_right, only = Counter[str](), Counter[tuple[str, str]]()
        for one in found:
            n_right[one["method"]] += one["n_right"]
            only.update({(one["method"], other): n for other, n in one["only"].items() if other not in failures})
        return cls(sum(row["n_test"] for row in choices), n_right, only, are_folds, failures)

    def share(self, method: str) -> Share:
        """Return the share of rows that a method decides rightly."""
        return Share.of(self.n_right[method], self.n_rows, self.are_folds)

    def difference(self, first: str, second: str) -> tuple[float, float, float]:
        """Return how much more accurate the first is than the second on the same rows, with a 95 % interval."""
        return paired_difference(self.only[first, second], self.only[second, first], self.n_rows, self.are_folds)

    @property
    def ranked(self) -> list[str]:
        """The methods, the most accurate first."""
        return sorted(self.n_right, key=lambda name: -self.n_right[name])


def paired_difference(gained: int, lost: int, n: int, are_folds: bool = False) -> tuple[float, float, float]:
    """Return the difference of two accuracies on the same rows, with a 95 % interval.

    `gained` and `lost` are the numbers of rows on which only the first, or only the second, is right.
    """
    # As if one more row had been gained and one lost, so that there is an interval even if no row was.
    variance = (gained + lost + 2 - (gained - lost) ** 2 / n) / n**2 * (_SHARED if are_folds else 1)
    mean, half = (gained - lost) / n, 1.96 * math.sqrt(variance)
    return mean, max(mean - half, -1.0), min(mean + half, 1.0)


# Folds learn from shared rows: their mean varies as if there were fewer rows (Nadeau and Bengio, 2003).
_SHARED = 1 + OUTER / (OUTER - 1)


@dataclass(frozen=True)
class Share:
    """A share of rows with Wilson's 95 % interval, wider for rows of cross-validation."""

    value: float
    low: float
    high: float
    n_rows: int

    @classmethod
    def of(cls, n_right: float, n_rows: float, are_folds: bool = False) -> Share:
        """Return the share that `n_right` is of `n_rows`."""
        shared = _SHARED if are_folds else 1
        return cls(n_right / n_rows, *wilson_interval(n_right / shared, n_rows / shared), int(n_rows))

    def __str__(self) -> str:
        """Return it in percent, with its interval."""
        return f"{percent(self.value, self.low, self.high)} of {self.n_rows:,} rows"


def _plain(row: Mapping[Any, Any]) -> Row:
    """Return a row without the columns of other steps, which are NaN in it."""
    return {str(key): value for key, value in row.items() if isinstance(value, list) or value == value}


def estimate_of(group: Group, method: str, measure: str) -> tuple[float, float, float]:
    """Return a mean with its interval over the splits; for equal accuracies, with the interval over rows of one."""
    is_share = measure == "accuracy"
    mean, low, high = group.estimate(method, measure).with_ends
    if is_share and not high - low > 1e-9:  # also of a single split
        one, *_ = (one for one in group.by_method[method].values() if one["status"] == OK)
        low, high = one["accuracy_low"], one["accuracy_high"]
    return mean, low, high


def stability_of(group: Group, method: str) -> tuple[float, float, float, float] | None:
    """Return the share of decisions that a method says will stay once all is known, and the true one with its interval.

    None for methods that say nothing of it.
    """
    found = [one for one in group.by_method.get(method, {}).values() if "stability" in one]
    if not found:
        return None
    true = mean_of((one["stability"] for one in found), test_per_train=group.test_per_train)
    mean, low, high = true.with_ends
    if not high - low > 1e-9:  # also of a single split
        _, low, high = ends_of(found[0], "stability")
    stated = sum(one["stated_stability"] for one in found) / len(found)
    return stated, mean, max(low, 0.0), min(high, 1.0)


def ends_of(row: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """Return a share of a row, and the ends of its interval."""
    return row[name], row[f"{name}_low"], row[f"{name}_high"]


def error_of(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the actual error of a row of the step on confidence, and the ends of its interval."""
    return row["actual_error"], 1 - row["accuracy_high"], 1 - row["accuracy_low"]


def joined(names: Iterable[str]) -> str:
    """Return names in a row, in quotes where they have a comma."""
    return ", ".join(repr(name) if "," in name else name for name in names)


def percent(mean: float, low: float, high: float) -> str:
    """Return a share in percent, with its interval."""
    return f"{100 * mean:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def cross_fitted_loss(group: Group, methods: Sequence[str]) -> float | None:
    """Return the log loss, on the other half of the test rows, of the method that one half of them chooses.

    The lowest of several measured losses is too low, because it was chosen for being so; this one is not. It is the
    mean over both halves and all splits on which each method gave predictions.
    """
    splits = group.values(methods[0], "log_loss") if methods else {}
    found = []
    for split in splits:
        halves = [group.by_method[name].get(split, {}).get("halves", []) for name in methods]
        if all(len(one) == 2 for one in halves):
            found += [min(halves, key=lambda one: float(one[half]))[1 - half] for half in (0, 1)]
    return sum(found) / len(found) if found else None
