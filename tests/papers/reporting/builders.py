"""Findings as an experiment would give them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import Record
from trimbench.papers.study.plan import LineFigure, Outcome, Table
from trimbench.papers.study.running import Findings
from trimbench.papers.trimming import jobs

POINTS = pd.DataFrame({"series": ["s", "s"], "x": [1, 2], "y": [0.1 + 0.2, 1 / 3]})


def record(number: int, status: str = "ok", error: str | None = None) -> Record:
    parameters = {"instances": [[0.5, 0.1, number / 100]], "threshold": 0.5}
    job = Job.create(jobs.achievable_agreement_of_table, parameters, {f"dataset/{number}": "0" * 64})
    return Record(job, status, {"value": number} if status == "ok" else None, error, 0.5, {"python": "3"})


def findings(
    name: str = "family/one",
    *,
    records: list[Record] | None = None,
    figures: tuple[LineFigure, ...] = (LineFigure("", "A title", "x", "y", POINTS),),
    tables: tuple[Table, ...] | None = None,
    missing: dict[str, str] | None = None,
    reproduced: dict[str, float | None] | None = None,
    rows: pd.DataFrame | None = None,
    jobs: dict[str, list[str]] | None = None,
) -> Findings:
    records = [record(1), record(2)] if records is None else records
    if rows is None:
        found: list[dict[str, Any]] = [
            {
                "cell": place,
                "status": one.status,
                "error": one.error,
                "features": ["a", "é|"],
                "job": one.job.key,
            }
            for place, one in enumerate(records)
        ]
        found += [
            {"cell": len(found), "status": "data not available", "error": why, "job": "f" * 64}
            for why in (missing or {}).values()
        ]
        rows = pd.DataFrame(found)
    if tables is None:
        tables = (
            Table("", "Main table", pd.DataFrame({"row": ["a", "b"], "value": [0.1 + 0.2, None]}), {"value": ".3f"}),
        )
    outcome = Outcome(tables, figures, reproduced or {}, ("A note.",), jobs=jobs or {})
    return Findings(name, {"seed": 1, "runner": "m:C"}, rows, outcome, records, missing or {}, labels=("cell",))
