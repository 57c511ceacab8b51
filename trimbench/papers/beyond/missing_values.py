"""NaCL and its mixture against methods that learn from data how to predict where features are missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
from pydantic import NonNegativeFloat, PositiveInt

from trimbench.papers import vocabulary as vocab
from trimbench.papers.beyond.incomplete_methods import METHODS, OK, Rows, Shape, compare_with_gaps
from trimbench.papers.conformant.mask_sweep import check_missing
from trimbench.papers.conformant.tasks import Task, make_task
from trimbench.papers.data.masks import Mechanism, Missingness
from trimbench.papers.execution.job import seed_for

# Every split is a random one, also where a protocol has a split of its own.
_ANY_SPLIT = {"test_rows": [], "test_rows_file": ""}


@vocab.settings
class MissingValues:
    """Methods on rows of which a share of the features is missing, by one mechanism or another.

    The shares `missing` are those of every mechanism, and `missing_at_random` further ones of ``mcar``. Data sets in
    `numbers` keep their numbers, the others become zeros and ones by their protocol; images in `shrink` have squares of
    so many pixels a side as one pixel. Rows beyond `train_rows` and `test_rows` are left out at random. For the
    mechanisms in `incomplete`, all shares in `missing` are also run with training rows that miss features as the test
    rows do.
    """

    datasets: list[str]
    mechanism: list[Mechanism]
    missing: list[float]
    missing_at_random: list[float] = field(default_factory=list)
    incomplete: list[Mechanism] = field(default_factory=list)
    methods: list[str] = field(default_factory=lambda: list(METHODS))
    splits: PositiveInt = 5
    train_rows: PositiveInt = 1000
    test_rows: PositiveInt = 500
    numbers: list[str] = field(default_factory=list)
    shrink: dict[str, PositiveInt] = field(default_factory=dict)
    smoothing: NonNegativeFloat = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("datasets", "mechanism", "missing", "methods"):
            vocab.check_axis(name, getattr(self, name))
        check_missing(self._shares("mcar"), Missingness())
        for method in self.methods:
            if method not in METHODS:
                raise vocab.unknown("methods", list(METHODS), method)
        if "mixture" not in self.methods:
            raise ValueError(f"methods must have mixture, with which the others are compared, got {self.methods}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, split, mechanism and share."""
        cells = []
        for name in self.datasets:
            for split in range(self.splits):
                seed = seed_for(purpose="split with gaps", split=split, seed=self.seed)
                task = make_task(inputs, name, "paper", seed, **_ANY_SPLIT)
                cells += [
                    self._cell(task, split, mechanism, share)
                    for mechanism in self.mechanism
                    for share in self._shares(mechanism)
                ]
        return cells

    def _shares(self, mechanism: Mechanism) -> list[float]:
        further = self.missing_at_random if mechanism == "mcar" else []
        return sorted({*self.missing, *further})

    def _cell(self, task: Task, split: int, mechanism: Mechanism, share: float) -> vocab.Cell:
        shrink = self.shrink.get(task.name, 1)
        training: list[Rows] = ["complete"]
        if mechanism in self.incomplete and share in self.missing:
            training.append("incomplete")
        labels: dict[str, vocab.Label] = {
            "dataset": task.name,
            "title": task.title,
            "mechanism": mechanism,
            "missing": share,
            "split": split,
        }
        image = [side // shrink for side in task.protocol.image] if mechanism == "block" else []
        return vocab.Cell.of(
            labels,
            compare_with_gaps,
            task=task,
            shape=Shape(
                numbers=task.name in self.numbers,
                shrink=shrink,
                train_rows=self.train_rows,
                test_rows=self.test_rows,
            ),
            missingness=Missingness(mechanism, image=image or None),
            missing=share,
            mask_seed=seed_for(
                purpose="gaps", dataset=task.name, mechanism=mechanism, missing=share, split=split, seed=self.seed
            ),
            methods=self.methods,
            training=training,
            smoothing=self.smoothing,
        )

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return what the mixture wins and loses, all means, what was claimed, and the curves over the share."""
        groups = groups_of(rows)
        return vocab.Outcome(tables_of(groups), figures_of(groups))


# Tables and figures of the comparison on rows with missing features.

_BASE = "mixture"
_OTHERS = [name for name in METHODS if name != _BASE]
# As many as there are colours.
_DRAWN = ("mixture", "nacl", "mean", "knn", "iterative", "naive_bayes", "masked_trees", "masked_regression")
_PLACE = {"data": "", "training rows": "", "missing": "", "share": ".1f"}
_SUMMARY_FORMATS = dict.fromkeys(
    ("training rows", "measure", "against", "cells", "wins", "draws", "losses", "better", "worse"), ""
)
_COST_FORMATS = {
    **dict.fromkeys(("data", "training rows", "method"), ""),
    "fit (s)": ".3f",
    "microseconds a row": ".1f",
}
_STATUS_FORMATS = dict.fromkeys(("method", "training rows", "status", "reason", "times", "data"), "")
_EACH_FORMATS = {
    **_PLACE,
    **dict.fromkeys(("method", "measure", "splits"), ""),
    **dict.fromkeys(("mean", "low", "high", "lead of mixture", "lead low", "lead high"), ".4f"),
}


def tables_of(groups: Sequence[Group]) -> list[vocab.Table]:
    """Return all tables; the main one counts what the mixture wins and loses."""
    titles = [METHODS[name].title for name in METHODS]
    losses = "Log loss where features are missing (means over splits)"
    return [
        vocab.Table.of("Wins, draws and losses of the mixture of NaCL", _summary(groups), _SUMMARY_FORMATS),
        vocab.Table.of("What is claimed of the mixture", claim_lines(groups), FORMATS, name="claims"),
        vocab.Table.of(losses, map(_means, groups), {**_PLACE, **dict.fromkeys(titles, ".3f")}, name="log_loss"),
        vocab.Table.of("Cost, the logistic regression included", _costs(groups), _COST_FORMATS, name="cost"),
        vocab.Table.of("Methods without predictions", _statuses(groups), _STATUS_FORMATS, name="status"),
        vocab.Table.of("Every measure", _each(groups), _EACH_FORMATS, name="measures", listed=False),
    ]


def figures_of(groups: Sequence[Group]) -> list[vocab.LineFigure]:
    """Return the log loss against the share missing at random, one figure for each data set."""
    own = [group for group in groups if group.mechanism == "mcar" and group.training == "complete"]
    return [
        _figure([group for group in own if group.dataset == name]) for name in dict.fromkeys(g.dataset for g in own)
    ]


def _summary(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for training in dict.fromkeys(group.training for group in groups):
        for measure, (title, _) in MEASURES.items():
            for other in _OTHERS:
                leads = [group.lead(_BASE, other, measure) for group in groups if group.training == training]
                leads = [lead for lead in leads if lead.n]
                if leads:
                    counts = _counts(leads)
                    place = {"training rows": training, "measure": title, "against": METHODS[other].title}
                    yield {**place, "cells": len(leads), **counts}


def _counts(leads: Sequence[Estimate]) -> dict[str, int]:
    wins, losses = sum(lead.low > 0 for lead in leads), sum(lead.high < 0 for lead in leads)
    return {
        "wins": wins,
        "draws": len(leads) - wins - losses,
        "losses": losses,
        "better": sum(lead.mean > 0 for lead in leads),
        "worse": sum(lead.mean < 0 for lead in leads),
    }


def _means(group: Group) -> dict[str, object]:
    found = {METHODS[name].title: group.estimate(name, "log_loss") for name in METHODS}
    return {**group.labels, **{title: estimate.mean for title, estimate in found.items() if estimate.n}}


def _costs(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for title, training in dict.fromkeys((group.title, group.training) for group in groups):
        own = [group for group in groups if (group.title, group.training) == (title, training)]
        for name, method in METHODS.items():
            seconds, each = (_all_values(own, name, measure) for measure in ("fit_seconds", "us_per_row"))
            if seconds:
                place = {"data": title, "training rows": training, "method": method.title}
                yield {
                    **place,
                    "fit (s)": sum(seconds) / len(seconds),
                    "microseconds a row": sum(each) / len(each),
                }


def _all_values(groups: Sequence[Group], method: str, measure: str) -> list[float]:
    return [value for group in groups for value in group.values(method, measure).values()]


def _statuses(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for name, method in METHODS.items():
        found: dict[tuple[str, str, str], list[str]] = {}
        for group in groups:
            for (status, reason), times in group.reasons(name).items():
                found.setdefault((group.training, status, reason), []).extend([group.title] * times)
        for (training, status, reason), titles in found.items():
            line = {"method": method.title, "training rows": training, "status": status, "reason": reason}
            yield {**line, "times": len(titles), "data": ", ".join(dict.fromkeys(titles))}


def _each(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for group in groups:
        for name, method in METHODS.items():
            for measure, (title, _) in MEASURES.items():
                mean, low, high, splits = group.estimate(name, measure)
                if not splits:
                    continue
                line = {**group.labels, "method": method.title, "measure": title, "splits": splits}
                line |= {"mean": mean, "low": low, "high": high}
                if name != _BASE:
                    lead = group.lead(_BASE, name, measure)
                    line |= {"lead of mixture": lead.mean, "lead low": lead.low, "lead high": lead.high}
                yield line


def _figure(groups: Sequence[Group]) -> vocab.LineFigure:
    points = [_point(group, name) for name in _DRAWN for group in groups if group.values(name, "log_loss")]
    first = groups[0]
    return vocab.LineFigure(
        f"{first.title}: log loss",
        "missing features (%)",
        "log loss (nats)",
        pd.DataFrame(points, columns=["series", "x", "y"]),
        name=first.dataset,
        methods={METHODS[name].title: METHODS[name].title for name in _DRAWN},
    )


def _point(group: Group, name: str) -> Mapping[str, object]:
    # Intervals of eight lines would hide them; those of the differences are in the tables.
    return {"series": METHODS[name].title, "x": 100 * group.missing, "y": group.estimate(name, "log_loss").mean}


# What is claimed of the mixture where features are missing, and whether the run bears it out.

_DATASETS = ("adult", "covtype", "fashion", "mnist", "mnist_5v3", "splice")
_HALF = [("mcar", 0.5)]
_PATTERNS = [*(("mcar", share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)), ("block", 0.5), ("depends_on_value", 0.5)]
# The method that the mixture is compared with, the patterns of missing features, and in how many cells it must win.
_CLAIMS = (
    ("Half missing at random: log loss below that of NaCL on all six sets", "nacl", _HALF, 6),
    ("Half missing at random: log loss below that of mean imputation on all six sets", "mean", _HALF, 6),
    (
        "Six sets, at random 10 30 50 70 90 %, in blocks 50 %, depending on the value 50 %: log loss below that of "
        "NaCL in at least 40 of 42 cells",
        "nacl",
        _PATTERNS,
        40,
    ),
)
FORMATS = ("claim", "needed", "cells", "below", "certainly below", "certainly above", "verdict")


def claim_lines(groups: Sequence[Group]) -> list[dict[str, object]]:
    """Return a line for each claim. It is open while cells are missing that could decide it."""
    return [_line(groups, *claim) for claim in _CLAIMS]


def _line(
    groups: Sequence[Group], claim: str, other: str, patterns: Sequence[tuple[str, float]], needed: int
) -> dict[str, object]:
    total = len(_DATASETS) * len(patterns)
    cells = [
        group.lead("mixture", other, "log_loss")
        for group in groups
        if group.dataset in _DATASETS and any(group.is_one(*pattern) for pattern in patterns)
    ]
    cells = [cell for cell in cells if cell.n]
    below = sum(cell.mean > 0 for cell in cells)
    return {
        "claim": claim,
        "needed": needed,
        "cells": f"{len(cells)} of {total}",
        "below": below,
        "certainly below": sum(cell.low > 0 for cell in cells),
        "certainly above": sum(cell.high < 0 for cell in cells),
        "verdict": _verdict(below, needed, total - len(cells)),
    }


def _verdict(below: int, needed: int, to_come: int) -> str:
    if below >= needed:
        return "holds"
    return "open" if below + to_come >= needed else "does not hold"


# What methods reached, grouped by the conditions under which they are compared.

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

    def ranked(self, methods: Sequence[str], measure: str) -> list[str]:
        """Return the methods that gave predictions, the best first."""
        means = {name: self.estimate(name, measure).mean for name in methods if self.values(name, measure)}
        return sorted(means, key=means.__getitem__, reverse=MEASURES[measure][1])

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
        return Estimate(*vocab.mean_of(values, test_per_train=self.test_per_train).with_ends, len(values))


def groups_of(rows: pd.DataFrame) -> list[Group]:
    """Return the groups of the successful jobs, in the order of the jobs."""
    found: dict[tuple[str, str, str, float, str], dict[str, dict[int, Mapping[str, Any]]]] = {}
    ratios: dict[tuple[str, str, str, float, str], float] = {}
    for row in vocab.successes(rows).to_dict("records"):
        title = vocab.shown_name(row["dataset"], row["title"])
        for one in row["methods"]:
            key = (row["dataset"], title, row["mechanism"], row["missing"], one["training"])
            found.setdefault(key, {}).setdefault(one["method"], {})[row["split"]] = one
            ratios[key] = row["n_test"] / row["n_train"]
    return [Group(*key, test_per_train=ratios[key], by_method=by_method) for key, by_method in found.items()]
