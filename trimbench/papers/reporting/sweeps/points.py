"""The points of a sweep, and the tables of all points as one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import Json
from trimbench.papers.study.findings import Findings

if TYPE_CHECKING:
    import pandas as pd

EXPERIMENT, ERROR = "experiment", "error"


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """What was found at one point of a sweep.

    Attributes
    ----------
    swept : mapping from the swept keys to their values at this point, in the order of the command line
    folder : str
        The folder of the point, relative to that of the sweep.
    findings : sequence of Findings
        Of each experiment; usually there is one.
    failures : mapping from the names of experiments that could not run to the reason
    """

    swept: Mapping[str, Json]
    folder: str
    findings: Sequence[Findings]
    failures: Mapping[str, str]


def experiments_of(points: Sequence[SweepPoint]) -> list[str]:
    """Return the names of the experiments of a sweep, in order."""
    names = (name for point in points for name in (*(found.name for found in point.findings), *point.failures))
    return list(dict.fromkeys(names))


def swept_keys(points: Sequence[SweepPoint]) -> list[str]:
    """Return the swept keys, in order."""
    return list(dict.fromkeys(key for point in points for key in point.swept))


def joint_table(
    points: Sequence[SweepPoint], frame_of: Callable[[Findings], pd.DataFrame | None], *, failures: bool = False
) -> pd.DataFrame:
    """Return the frames of all points below one another, each row with the swept values of its point before it.

    Where a frame has a column of a swept key's name, the swept one is called ``swept <key>``. A sweep over several
    experiments has a column for them. With `failures`, an experiment that could not run is a row, and its reason is in
    the column ``error``. The cells keep their values; a column that a frame lacks is empty there.
    """
    import pandas as pd

    entries = list(_entries(points, frame_of, failures))
    columns = list(dict.fromkeys(column for _, _, rows, _ in entries for column in rows))
    keys = swept_keys(points)
    names = {key: _free(key, columns) for key in keys}
    experiment = _free(EXPERIMENT, columns) if len(experiments_of(points)) > 1 and EXPERIMENT not in keys else ""
    error = _free(ERROR, [*columns, *names.values()]) if any(reason for *_, reason in entries) else ""
    head = [*names.values(), *filter(None, [experiment])]
    content: dict[str, list[object]] = {column: [] for column in [*head, *columns, *filter(None, [error])]}
    for point, name, rows, reason in entries:
        n_rows = 1 if reason else len(next(iter(rows.values()), ()))
        before = {names[key]: in_words(point.swept[key]) for key in point.swept}
        before |= {experiment: name, error: reason}
        for column, cells in content.items():
            cells += rows.get(column, [before.get(column)] * n_rows)
    return pd.DataFrame(content, dtype=object)


def _entries(
    points: Sequence[SweepPoint], frame_of: Callable[[Findings], pd.DataFrame | None], failures: bool
) -> Iterator[tuple[SweepPoint, str, dict[str, list[object]], str]]:
    """Yield point, experiment, cells by column, and the reason if it could not run."""
    for point in points:
        for found in point.findings:
            frame = frame_of(found)
            if frame is not None:
                # As lists, whole numbers stay whole beside points that lack them.
                yield point, found.name, {str(column): frame[column].tolist() for column in frame.columns}, ""
        for name, reason in point.failures.items() if failures else ():
            yield point, name, {}, reason or "could not run"


def in_words(value: Json) -> object:
    """Return the value of a setting as a cell: numbers and words as they are, everything else as the YAML has it."""
    if isinstance(value, bool | list | dict) or value is None:
        return json.dumps(value, ensure_ascii=False)
    return value


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"swept {name}"
    return name
