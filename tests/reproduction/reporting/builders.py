"""Findings as an experiment would give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.reporting.verdicts import Judgement, compare
from trimbench.reproduction.vocabulary.figures import Figure, LineFigure
from trimbench.reproduction.vocabulary.numbers import Number, Outcome
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.reported import Reported, Rule
from trimbench.reproduction.vocabulary.tables import Table

from ..execution import sample_jobs

POINTS = pd.DataFrame({"series": ["s", "s"], "x": [1, 2], "y": [0.1 + 0.2, 1 / 3]})
MAIN = Table.of("Main table", [{"row": "a", "value": 0.1 + 0.2}, {"row": "b"}], {"row": "", "value": ".3f"})


def record(number: int, status: str = "ok", error: str | None = None) -> Record:
    job = Job.create(sample_jobs.square, {"x": number / 100}, {f"dataset/{number}": "0" * 64})
    return Record(job, status, {"value": number} if status == "ok" else None, error, 0.5, {"python": "3"})


def reported(row: str, printed: str, kind: Any = "exact", **rule: Any) -> Reported:
    return Reported("A paper", row, "value", printed, Rule(kind=kind, **rule))


def judged(numbers: Sequence[Reported], values: dict[str, float | None]) -> list[Judgement]:
    return compare(numbers, [Number(row, "value", value) for row, value in values.items()])


def line_figure(points: pd.DataFrame = POINTS, title: str = "A title", **settings: Any) -> LineFigure:
    return LineFigure(**{"title": title, "x_label": "x", "y_label": "y", "points": points} | settings)


def findings(
    name: str = "family/one",
    *,
    records: Sequence[Record] | None = None,
    figures: tuple[Figure, ...] = (line_figure(),),
    tables: tuple[Table, ...] = (MAIN,),
    missing: dict[str, str] | None = None,
    values: dict[str, float | None] | None = None,
) -> Findings:
    records = [record(1), record(2)] if records is None else records
    rows: list[dict[str, object]] = [
        {"cell": place, "status": one.status, "error": one.error, "features": ["a", "é|"], "job": one.job.key}
        for place, one in enumerate(records)
    ]
    rows += [
        {"cell": len(rows), "status": "data not available", "error": why, "job": "f" * 64}
        for why in (missing or {}).values()
    ]
    numbers = [Number(row, "value", value) for row, value in (values or {}).items()]
    outcome = Outcome(tables, figures, numbers, ("A note.",))
    settings = {"seed": 1, "runner": "m:C"}
    return Findings(name, settings, pd.DataFrame(rows), outcome, records, missing or {}, labels=("cell",))
