"""What to ask next under a budget: policies of asking beside trimming, trees, and questions that all rows are asked.

Hard and soft budgets are those of AFABench (see `trimbench.papers.methods.asking`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

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
        done = found[found["status"] == OK] if len(found) else found
        if len(done):
            base = done.loc[done["method"] == "greedy", ["data", "split", "budget", "accuracy"]]
            done = done.merge(base, on=["data", "split", "budget"], how="left", suffixes=("", _OF_GREEDY))
        hard, soft = (done[done["stop_at"].isna() == is_hard] if len(done) else done for is_hard in (True, False))
        missing = found[found["status"] != OK] if len(found) else found
        tables = [
            vocab.Table.of_groups("Accuracy within a hard budget", _groups(hard, "budget"), _HARD),
            vocab.Table.of_groups(
                "Asked until the decision is stable", _groups(soft, "stop_at"), _MEASURED, name="soft"
            ),
            vocab.Table.of_groups("Greedy asking against each other method", _by_method(hard), _SUMMARY, name="leads"),
            vocab.Table.of("Methods without a result", _reasons(missing), _REASONS, name="status"),
        ]
        return vocab.Outcome(tables, [*_figures(hard)])


_OF_GREEDY = " of greedy"


def _lead(ours: pd.DataFrame) -> pd.Series[float]:
    """Return by how much greedy asking is more accurate on the same split."""
    return ours[f"accuracy{_OF_GREEDY}"] - ours["accuracy"]


_MEASURED = [
    vocab.Column("splits", "", len),
    *vocab.means({"cost": "cost"}, ".2f"),
    *vocab.means({"accuracy": "accuracy"}, ".3f"),
    vocab.Column("standard error", ".3f", lambda ours: vocab.standard_error(ours["accuracy"])),
]
_HARD = [
    *_MEASURED,
    vocab.Column(
        ("lead of greedy", "its standard error"),
        "+.3f",
        lambda ours: (
            (None,) * 2
            if (ours["method"] == "greedy").all()
            else (_lead(ours).mean(), vocab.standard_error(_lead(ours)))
        ),
    ),
    *vocab.means({"seconds": "seconds"}, ".2f"),
]
_REASONS = ("method", "reason", "data")


def _groups(found: pd.DataFrame, limit: str) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    for (data, at, method), ours in _split_by(found, "data", limit, "method"):
        yield {"data": vocab.shown_name(data), limit.replace("_", " "): at, "method": METHODS[method].title}, ours


def _split_by(found: pd.DataFrame, *labels: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    for values, ours in found.groupby(list(labels), sort=False) if len(found) else ():
        yield tuple(values), ours


_SUMMARY = [
    vocab.Column("cells", "", len),
    vocab.Column(
        ("ahead", "even", "behind"),
        "",
        lambda ours: tuple(int((ours["verdict"] == verdict).sum()) for verdict in ("ahead", "even", "behind")),
    ),
    *vocab.means({"mean lead of greedy": "lead"}, "+.3f"),
]


def _by_method(hard: pd.DataFrame) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Yield for each other method the leads of greedy asking: ahead or behind by more than a standard error."""
    lines = []
    for (_, _, method), ours in _split_by(hard, "data", "budget", "method"):
        lead, error = _lead(ours).mean(), vocab.standard_error(_lead(ours))
        even = not abs(lead) > (error if error == error else 0.0)
        lines.append({"method": method, "lead": lead, "verdict": "even" if even else "ahead" if lead > 0 else "behind"})
    for (method,), ours in _split_by(pd.DataFrame(lines), "method"):
        if method != "greedy":
            yield {"against": METHODS[method].title}, ours


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
