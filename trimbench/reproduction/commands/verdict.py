"""The task ``verdict``: numbers that were computed elsewhere, judged and shown like those of an experiment."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.files import is_accepted, read_bytes
from trimbench.reproduction.messages import some
from trimbench.reproduction.reporting.overview import Overview
from trimbench.reproduction.reporting.runs import check_name, check_run, say
from trimbench.reproduction.reporting.verdicts import ELSEWHERE, are_reproduced, digits_beside
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.numbers import Number, Outcome
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.reported import Literature, Reported
from trimbench.reproduction.vocabulary.tables import Table
from trimbench.reproduction.vocabulary.values import Value, numbers_in, read_values

if TYPE_CHECKING:
    import pandas as pd


def verdict(invocation: Invocation) -> int:
    """Judge the numbers of a file, and write what a run writes; return 0 if all that were attempted are reproduced.

    A difference that is accounted for counts as reproduced; without any number that was attempted, 1 is returned.
    """
    if invocation.chosen:
        raise ConfigurationError("experiment must be left out with task=verdict, which judges all tables of its files")
    settings = invocation.settings
    file, path = Path(str(settings.reported)).expanduser(), Path(str(settings.values)).expanduser()
    literature = Literature.of_file(file)
    for name in literature.experiments:
        if name.count("/") != 1 or not all(map(is_accepted, name.split("/"))):
            raise ConfigurationError(
                f"{file}: each table must have a key of two names of ASCII letters, digits and _ . -, such as "
                f"fisher/table2, got {name!r}; what the paper calls it is its entry table"
            )
        check_name(name)
    values = read_values(path, literature)
    given = {name: [one for one in values if one.table == name] for name in literature.experiments}
    # All numbers are made before the first file is written.
    numbers = {name: numbers_in(ours, literature.reported(name), str(file)) for name, ours in given.items()}
    folder = invocation.root / (settings.run or ELSEWHERE)
    check_run(folder, ELSEWHERE)
    about = {"reported": _described(file), "values": _described(path)}
    overview = Overview(folder, invocation.catalogue, literature, invocation.figure, profile=ELSEWHERE)
    for name, of_table in numbers.items():
        rows = _rows(given[name])
        labels = tuple(str(column) for column in rows if column not in ("status", "job"))
        outcome = _outcome(of_table, path.name, literature.reported(name))
        overview.note(Findings(name, about, rows, outcome, records=(), missing={}, labels=labels))
    overview.close(summary=True)
    judgements = overview.judgements
    if are_reproduced(judgements):
        say("\nEvery number that was attempted is reproduced, or its difference accounted for.")
        return 0
    differing = [one.reported.label for one in judgements if one.cause == "unexplained"]
    say(f"\nNot accounted for: {some(differing, 5) or 'no number was attempted'}.")
    return 1


def _described(path: Path) -> dict[str, Json]:
    return {"file": path.name, "sha256": hashlib.sha256(read_bytes(path.resolve())).hexdigest()}


def _rows(values: Sequence[Value]) -> pd.DataFrame:
    """Return the values as rows of jobs, without columns that say nothing."""
    import pandas as pd

    rows = pd.DataFrame([dataclasses.asdict(one) for one in values], columns=[*Value.__annotations__])
    silent = [name for name in ("replication", "low", "high") if rows[name].isin(["", math.nan]).all()]
    return rows.drop(columns=["table", *silent]).assign(status="ok")


def _outcome(numbers: list[Number], file: str, reported: Sequence[Reported]) -> Outcome:
    printed = {(one.row, one.quantity): one for one in reported}
    values = [(printed[one.row, one.quantity], one.value) for one in numbers if one.value is not None]
    digits = f".{max([6, *(digits_beside(*one) for one in values)])}g"
    lines = [
        {
            "row": one.row,
            "quantity": one.quantity,
            "value": one.value,
            "replications": len(one.jobs),
            "low": one.interval.low if one.interval else None,
            "high": one.interval.high if one.interval else None,
        }
        for one in numbers
    ]
    columns = {"row": "", "quantity": "", "value": digits, "replications": "", "low": digits, "high": digits}
    table = Table.of("Values, with the prediction intervals of their replications", lines, columns)
    notes = [f"The values are those of {file}; they were computed elsewhere."]
    if single := [f"{one.row}/{one.quantity}" for one in numbers if one.interval is None]:
        notes.append(f"Nothing is known of the noise of a number with one value: {some(single, 5)}.")
    return Outcome((table,), numbers=numbers, notes=notes)
