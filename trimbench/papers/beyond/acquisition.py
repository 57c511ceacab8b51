"""What to ask next under a budget: policies of asking beside trimming, trees, and questions that all rows are asked.

Hard and soft budgets are those of AFABench (see `trimbench.papers.methods.asking`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pandas as pd

from trimbench.papers.methods.asking import METHODS, OK, AskedData, compare_policies
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import seed_for


@vocab.settings
class Acquisition:
    """Policies of asking and fixed selections, by hard budgets and by the stability that is enough (soft budgets).

    `data` are names in `problems`. The model is a mixture whose number of components, among `components`, is that of
    the lowest log loss on validation rows of which half is hidden. A refitted regression chooses among the `candidates`
    that tell most; policies are tried on `test_rows` at most.
    """

    data: vocab.Axis[str]
    problems: dict[str, AskedData]
    methods: vocab.Axis[Annotated[str, vocab.one_of(METHODS)]]
    stop_at: vocab.Axis[vocab.Share]
    components: vocab.Axis[vocab.Count]
    splits: vocab.Count = 5
    candidates: vocab.Count = 20
    test_rows: vocab.Count = 500
    seed: int = 0

    def __post_init__(self) -> None:
        vocab.check_names("data", self.data, self.problems, "problems", "dataset: ..., budgets: [...]")
        for name in self.data:
            if bool(self.problems[name].dataset) == bool(self.problems[name].recipe):
                raise ValueError(f"problems.{name} must have either a dataset or a recipe")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each problem and split."""
        cells = []
        for place in vocab.grid(data=self.data, split=range(self.splits)):
            problem = self.problems[place["data"]]
            found = inputs.dataset(problem.dataset) if problem.dataset else None
            seed = seed_for(purpose="acquisition", **place, seed=self.seed)
            parameters = {"problem": problem, "dataset": found, "seed": seed}
            cells.append(vocab.Cell.of(place, compare_policies, self, **parameters))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the accuracy of each method within each budget, leads of asking, soft budgets, and figures."""
        found = vocab.unpacked(rows, "results")
        hard = soft = missing = found
        if len(found):
            done, missing = found[found["status"] == OK], found[found["status"] != OK]
            is_hard = done["stop_at"].isna() if "stop_at" in done else np.ones(len(done), dtype=bool)
            hard, soft = done[is_hard], done[~is_hard]
            base = hard.loc[hard["method"] == "greedy", ["data", "split", "budget", "accuracy"]]
            hard = hard.merge(base, on=["data", "split", "budget"], how="left", suffixes=("", _OF_GREEDY))
        tables = [
            vocab.Table.of("Accuracy within a hard budget", _lines(hard, "budget"), _HARD),
            vocab.Table.of("Asked until the decision is stable", _lines(soft, "stop_at"), _SOFT, name="soft"),
            vocab.Table.of("Greedy asking against each other method", _leads(hard), _SUMMARY, name="leads"),
            vocab.Table.of("Methods without a result", _reasons(missing), _REASONS, name="status"),
        ]
        return vocab.Outcome(tables, [*_figures(hard)])


_OF_GREEDY = " of greedy"


_ACCURACY = {"splits": "", "cost": ".2f", "accuracy": ".3f", "standard error": ".3f"}
_HARD = {
    **dict.fromkeys(("data", "budget", "method"), ""),
    **_ACCURACY,
    **{"lead of greedy": "+.3f", "its standard error": ".3f", "seconds": ".2f"},
}
_SOFT = {**dict.fromkeys(("data", "stable enough", "method"), ""), **_ACCURACY}
_REASONS = ("method", "reason", "data")


def _lead(ours: pd.DataFrame) -> tuple[float, float]:
    """Return by how much greedy asking is more accurate on the same splits, and the standard error."""
    leads = ours[f"accuracy{_OF_GREEDY}"] - ours["accuracy"]
    return float(leads.mean()), vocab.standard_error(leads)


def _lines(found: pd.DataFrame, limit: str) -> Iterator[list[object]]:
    for (data, at, method), ours in _split_by(found, "data", limit, "method"):
        error = vocab.standard_error(ours["accuracy"])
        line = [
            vocab.shown_name(data),
            int(at) if limit == "budget" else at,
            METHODS[method].title,
            len(ours),
            ours["cost"].mean(),
        ]
        line += [ours["accuracy"].mean(), error]
        if limit == "budget":
            line += [*((None, None) if method == "greedy" else _lead(ours)), ours["seconds"].mean()]
        yield line


def _split_by(found: pd.DataFrame, *labels: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    for values, ours in found.groupby(list(labels), sort=False) if len(found) else ():
        yield tuple(values), ours


_SUMMARY = {**dict.fromkeys(("against", "cells", "ahead", "even", "behind"), ""), "mean lead of greedy": "+.3f"}


def _leads(hard: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Yield for each other method in how many cells greedy asking is ahead or behind by more than a standard error."""
    for (method,), ours in _split_by(hard, "method"):
        if method != "greedy":
            leads = np.array([_lead(one) for _, one in _split_by(ours, "data", "budget")])
            far = np.abs(leads[:, 0]) > np.nan_to_num(leads[:, 1])
            ahead, behind = int((far & (leads[:, 0] > 0)).sum()), int((far & (leads[:, 0] < 0)).sum())
            counts = (len(leads), ahead, len(leads) - ahead - behind, behind)
            yield METHODS[method].title, *counts, float(leads[:, 0].mean())


def _reasons(missing: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    for (method, reason), ours in _split_by(missing, "method", "reason"):
        yield METHODS[method].title, reason, ", ".join(map(vocab.shown_name, dict.fromkeys(ours["data"])))


def _figures(hard: pd.DataFrame) -> Iterator[vocab.LineFigure]:
    """Yield for each problem the accuracy against the budget."""
    for (data,), ours in _split_by(hard, "data"):
        points: list[tuple[Any, ...]] = []
        for (method, budget), one in _split_by(ours, "method", "budget"):
            mean, error = one["accuracy"].mean(), vocab.standard_error(one["accuracy"])
            points.append((METHODS[method].title, budget, mean, mean - error, mean + error))
        yield vocab.LineFigure.of(
            f"{vocab.shown_name(data)}: accuracy within a budget",
            ("questions to each row, at most", "accuracy on test rows"),
            points,
            name=data,
            interval="a standard error to either side",
        )
