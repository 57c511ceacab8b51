"""NaCL and its mixture against methods that learn from data how to predict where features are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd

from trimbench.papers.conformant.mask_sweep import check_missing
from trimbench.papers.conformant.protocols import Task, make_task
from trimbench.papers.methods.missing_features import METHODS, OK, Shape, compare_with_gaps
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Mechanism, Missingness
from trimbench.reproduction.execution.job import seed_for

# Every split is a random one, also where a protocol has a split of its own.
_ANY_SPLIT = {"test_rows": [], "test_rows_file": ""}


@vocab.settings
class MissingValues:
    """Methods compared on rows with a share of the features missing, under several mechanisms.

    The shares `missing` hold for every mechanism; `missing_at_random` has further ones for ``mcar``. Data sets in
    `numbers` keep their numbers, the others become zeros and ones by their protocol; in images in `shrink`, squares of
    that many pixels a side become one pixel. Rows beyond `train_rows` and `test_rows` are left out at random. For the
    mechanisms in `incomplete`, all shares in `missing` are also run with training rows that miss features as the test
    rows do.
    """

    datasets: vocab.Axis[str]
    mechanism: vocab.Axis[Mechanism]
    missing: vocab.Axis[float]
    missing_at_random: list[float] = field(default_factory=list)
    incomplete: list[Mechanism] = field(default_factory=list)
    methods: vocab.Axis[Annotated[str, vocab.one_of(METHODS)]] = field(default_factory=lambda: list(METHODS))
    splits: vocab.Count = 5
    train_rows: vocab.Count = 1000
    test_rows: vocab.Count = 500
    numbers: list[str] = field(default_factory=list)
    shrink: dict[str, vocab.Count] = field(default_factory=dict)
    smoothing: vocab.NotNegative = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_missing(self._shares("mcar"), Missingness())
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
        both = mechanism in self.incomplete and share in self.missing
        image = [side // shrink for side in task.protocol.image] if mechanism == "block" else []
        place: dict[str, Any] = {"mechanism": mechanism, "missing": share, "split": split}
        return vocab.Cell.of(
            {"dataset": task.name, "title": task.title, **place},
            compare_with_gaps,
            self,
            task=task,
            shape=Shape(
                numbers=task.name in self.numbers, shrink=shrink, train_rows=self.train_rows, test_rows=self.test_rows
            ),
            missingness=Missingness(mechanism, image=image or None),
            mask_seed=seed_for(purpose="gaps", dataset=task.name, **place, seed=self.seed),
            training=["complete", "incomplete"] if both else ["complete"],
        )

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return where the mixture wins, which methods are close to the best, claims, all means, and the curves."""
        groups = groups_of(rows)
        losses = "Log loss where features are missing (means over splits)"
        means = [{**group.labels, **group.means("log_loss")} for group in groups]
        loss_formats = {**_PLACE, **dict.fromkeys((method.title for method in METHODS.values()), ".3f")}
        tables = [
            vocab.Table.of("Wins, draws and losses of the mixture of NaCL", _summary(groups), _SUMMARY),
            vocab.Table.of("How often each method is close to the best", _near(groups), _NEAR, name="near"),
            vocab.Table.of(losses, means, loss_formats, name="log_loss"),
            vocab.Table.of("Cost, the logistic regression included", _costs(groups), _COSTS, name="cost"),
            vocab.Table.of("Methods without predictions", _statuses(groups), _STATUSES, name="status"),
            vocab.Table.of("Every measure", _each(groups), _EACH, name="measures", listed=False),
        ]
        if any(group.dataset in _DATASETS for group in groups):
            claims = vocab.Table.of("What is claimed of the mixture", claim_lines(groups), _CLAIMED, name="claims")
            tables.insert(2, claims)
        own = [group for group in groups if group.mechanism == "mcar" and group.training == "complete"]
        names = dict.fromkeys(group.dataset for group in own)
        figures = [_figure([group for group in own if group.dataset == name]) for name in names]
        return vocab.Outcome(tables, figures)


# Tables and figures of the comparison on rows with missing features.

_BASE = "mixture"
# In this order, as many as there are colours.
_DRAWN = ("mixture", "covariance", "nacl", "mean", "knn", "iterative", "naive_bayes", "masked_trees", "normal")
_MOST_DRAWN = 8
_PLACE = {"data": "", "training rows": "", "missing": "", "share": ".1f"}
_NEAR = ("training rows", "method", "cells", "lowest", "within a standard error", "worse than the mean")
_SUMMARY = ("training rows", "measure", "against", "cells", "wins", "draws", "losses", "better", "worse")
_COSTS = {"data": "", "training rows": "", "method": "", "fit (s)": ".3f", "microseconds a row": ".1f"}
_STATUSES = ("method", "training rows", "status", "reason", "times", "data")
_EACH = {
    **_PLACE,
    **dict.fromkeys(("method", "measure", "splits"), ""),
    **dict.fromkeys(("mean", "low", "high", "lead of mixture", "lead low", "lead high"), ".4f"),
}


def _near(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Yield in how many cells each method has the lowest mean, or is above it by at most a standard error.

    The last number counts the cells in which it is above mean imputation by more than a standard error. Standard errors
    are those of differences on the same splits.
    """
    for training in dict.fromkeys(group.training for group in groups):
        ranked = [(group, group.ranked(list(METHODS), "log_loss")) for group in groups if group.training == training]
        own = [(group, names[0]) for group, names in ranked if names]
        for name, method in METHODS.items():
            cells = [(group, best) for group, best in own if group.values(name, "log_loss")]
            if cells:
                lowest = sum(best == name for _, best in cells)
                near = sum(not group.is_worse(name, best) for group, best in cells)
                worse = sum(group.is_worse(name, "mean") for group, _ in cells)
                yield training, method.title, len(cells), lowest, near, worse


def _summary(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    for training in dict.fromkeys(group.training for group in groups):
        own = [group for group in groups if group.training == training]
        for measure, (title, _) in MEASURES.items():
            for other in METHODS:
                if other != _BASE and (leads := _leads(own, other, measure)):
                    wins, losses = _certain(leads)
                    draws, signs = len(leads) - wins - losses, [np.sign(lead.value) for lead in leads]
                    counts = (len(leads), wins, draws, losses, signs.count(1), signs.count(-1))
                    yield training, title, METHODS[other].title, *counts


def _certain(leads: Sequence[vocab.Mean]) -> tuple[int, int]:
    """Return the numbers of leads that are certainly positive and certainly negative."""
    return sum(lead.ends[0] > 0 for lead in leads), sum(lead.ends[1] < 0 for lead in leads)


def _leads(groups: Sequence[Group], over: str, measure: str) -> list[vocab.Mean]:
    """Return the mean leads of the mixture over another method, in the groups where both gave predictions."""
    return [lead for group in groups if (lead := group.lead(_BASE, over, measure)).n]


def _costs(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    for title, training in dict.fromkeys((group.title, group.training) for group in groups):
        own = [group for group in groups if (group.title, group.training) == (title, training)]
        for name, method in METHODS.items():
            seconds, each = (
                vocab.mean_of(value for group in own for value in group.values(name, measure).values())
                for measure in ("fit_seconds", "us_per_row")
            )
            if seconds.n:
                yield title, training, method.title, seconds.value, each.value


def _statuses(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    for name, method in METHODS.items():
        found: dict[tuple[str, str, str], list[str]] = {}
        for group in groups:
            for (status, reason), times in group.reasons(name).items():
                found.setdefault((group.training, status, reason), []).extend([group.title] * times)
        for why, titles in found.items():
            yield method.title, *why, len(titles), ", ".join(dict.fromkeys(titles))


def _each(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for group in groups:
        for name, method in METHODS.items():
            for measure, (title, _) in MEASURES.items():
                found = group.estimate(name, measure)
                if not found.n:
                    continue
                line = {**group.labels, "method": method.title, "measure": title, "splits": found.n}
                line |= zip(("mean", "low", "high"), found.with_ends, strict=True)
                if name != _BASE:
                    lead = group.lead(_BASE, name, measure)
                    line |= zip(("lead of mixture", "lead low", "lead high"), lead.with_ends, strict=True)
                yield line


def _figure(groups: Sequence[Group]) -> vocab.LineFigure:
    n_splits = max(group.estimate(_BASE, "log_loss").n for group in groups)
    drawn = [name for name in _DRAWN if any(group.values(name, "log_loss") for group in groups)][:_MOST_DRAWN]
    return vocab.LineFigure.of(
        f"{groups[0].title}: log loss, mean over {n_splits} splits (intervals of the differences: see the tables)",
        ("missing features (%)", "log loss (nats)"),
        (
            (METHODS[name].title, 100 * group.missing, *found.with_ends)
            for name in drawn
            for group in groups
            if (found := group.estimate(name, "log_loss")).n
        ),
        name=groups[0].dataset,
        interval="95 % confidence interval of the mean over splits",
        methods={METHODS[name].title: METHODS[name].title for name in drawn},
    )


# What is claimed about the mixture where features are missing, and whether the run bears it out.

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
_CLAIMED = ("claim", "needed", "cells", "below", "certainly below", "certainly above", "verdict")


def claim_lines(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    """Yield a line for each claim, which is open while missing cells could still decide it."""
    for claim, other, patterns, needed in _CLAIMS:
        total = len(_DATASETS) * len(patterns)
        own = [
            group
            for group in groups
            if group.dataset in _DATASETS
            and group.training == "complete"
            and (group.mechanism, group.missing) in patterns
        ]
        cells = _leads(own, other, "log_loss")
        below, to_come = sum(cell.value > 0 for cell in cells), total - len(cells)
        undecided = "open" if below + to_come >= needed else "does not hold"
        verdict = "holds" if below >= needed else undecided
        line = (claim, needed, f"{len(cells)} of {total}", below, *_certain(cells), verdict)
        yield dict(zip(_CLAIMED, line, strict=True))


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
    by_method: dict[str, dict[int, Mapping[str, Any]]]

    @property
    def labels(self) -> dict[str, object]:
        """Its place in tables."""
        place = (self.title, self.training, MECHANISMS[self.mechanism], self.missing)
        return dict(zip(("data", "training rows", "missing", "share"), place, strict=True))

    def values(self, method: str, measure: str) -> dict[int, float]:
        """Return what a method reached on the splits where it gave predictions."""
        results = self.by_method.get(method, {})
        return {split: float(one[measure]) for split, one in results.items() if one["status"] == OK}

    def estimate(self, method: str, measure: str) -> vocab.Mean:
        """Return the mean of a method over the splits; its interval is cut off at the limits of the measure."""
        found = vocab.mean_of(self.values(method, measure).values(), test_per_train=self.test_per_train)
        if found.interval is None:
            return found
        high = min(found.interval.high, 1.0) if measure == "accuracy" else found.interval.high
        return replace(found, interval=replace(found.interval, low=max(found.interval.low, 0.0), high=high))

    def means(self, measure: str) -> dict[str, float]:
        """Return the means of all methods that gave predictions, by title."""
        found = {method.title: self.estimate(name, measure) for name, method in METHODS.items()}
        return {title: one.value for title, one in found.items() if one.n}

    def lead(self, of: str, over: str, measure: str) -> vocab.Mean:
        """Return by how much a method is better than another on the same splits; negative if it is worse."""
        ours, theirs = self.values(of, measure), self.values(over, measure)
        sign = 1.0 if MEASURES[measure][1] else -1.0
        leads = [sign * (ours[split] - theirs[split]) for split in ours if split in theirs]
        return vocab.mean_of(leads, test_per_train=self.test_per_train)

    def is_worse(self, method: str, than: str) -> bool:
        """Tell whether the log loss of a method is above another's, on the same splits, by over a standard error."""
        ours, theirs = self.values(method, "log_loss"), self.values(than, "log_loss")
        more = [ours[split] - theirs[split] for split in ours if split in theirs]
        return bool(more) and float(np.mean(more)) > np.nan_to_num(vocab.standard_error(more))

    def ranked(self, methods: Sequence[str], measure: str) -> list[str]:
        """Return those of the methods that gave predictions, the best first."""
        means = {name: self.estimate(name, measure).value for name in methods if self.values(name, measure)}
        return sorted(means, key=means.__getitem__, reverse=MEASURES[measure][1])

    def reasons(self, method: str) -> dict[tuple[str, str], int]:
        """Return why a method gave no predictions (status and reason), and on how many splits."""
        found: dict[tuple[str, str], int] = {}
        for one in self.by_method.get(method, {}).values():
            if one["status"] != OK:
                key = (str(one["status"]), str(one["reason"]))
                found[key] = found.get(key, 0) + 1
        return found


def groups_of(rows: pd.DataFrame) -> list[Group]:
    """Return the groups of the successful jobs, in the order of the jobs."""
    found: dict[tuple[str, str, str, float, str], Group] = {}
    for row in vocab.successes(rows).to_dict("records"):
        title = vocab.shown_name(row["dataset"], row["title"])
        for one in row["methods"]:
            key = (row["dataset"], title, row["mechanism"], row["missing"], one["training"])
            group = found.setdefault(key, Group(*key, row["n_test"] / row["n_train"], {}))
            group.by_method.setdefault(one["method"], {})[row["split"]] = one
    return list(found.values())
