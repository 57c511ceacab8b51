"""What an experiment is: settings that become cells, and rows that become an outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trimbench.papers.execution.code_hash import JobFunction
from trimbench.papers.execution.job import Job
from trimbench.papers.vocabulary.figures import Figure
from trimbench.papers.vocabulary.inputs import Input, Inputs
from trimbench.papers.vocabulary.numbers import Number
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    It has exactly one number for each reported number of the experiment. The notes say what a reader needs to know to
    understand the tables.
    """

    tables: Sequence[Table]
    figures: Sequence[Figure] = ()
    numbers: Sequence[Number] = ()
    notes: Sequence[str] = ()


class Experiment(Protocol):
    """One table or figure: a dataclass whose fields are the keys of its configuration."""

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the jobs of the experiment."""

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables, figures and numbers.

        `rows` has one row for each cell: its labels, ``status``, ``job`` (the key) and the entries of its result (NaN
        where it failed).
        """


def successes(rows: pd.DataFrame, **labels: Label) -> pd.DataFrame:
    """Return the rows of successful jobs with these labels; what is whole in all of them has an integer type."""
    chosen = rows["status"] == "ok"
    for name, value in labels.items():
        chosen &= rows[name] == value
    return rows[chosen].infer_objects()


# One job of an experiment, its place among the others, and the data that it reads.

Label = str | int | float | bool | None
_SCALARS = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True)
class Cell:
    """One job of an experiment, the data that it reads, and its place in the table.

    `labels` distinguish the cell from the others, for example network, threshold and method.
    """

    labels: Mapping[str, Label]
    job: Job
    inputs: tuple[Input, ...] = ()

    @classmethod
    def of(cls, labels: Mapping[str, Label], function: JobFunction, **parameters: object) -> Cell:
        """Return the cell whose job calls a job function with these parameters.

        Inputs, and dataclasses that contain inputs, become plain mappings for the job; the hash of each input enters
        the job's key. The folder of a user's own file does not: the same data elsewhere makes the same job.
        """
        inputs: dict[str, Input] = {}
        plain = {name: _plain(value, inputs) for name, value in parameters.items()}
        hashes = {name: found.sha256 for name, found in inputs.items()}
        places = {_stand_in(found): str(found.declared["path"]) for found in inputs.values() if _is_own_file(found)}
        return cls(labels, Job.create(function, plain, hashes, places), tuple(inputs.values()))


def _is_own_file(found: Input) -> bool:
    path = found.declared.get("path")
    return isinstance(path, str) and Path(path).is_absolute()


def _stand_in(found: Input) -> str:
    """Return what stands for the path of a user's own file in the parameters of a job."""
    return f"<{found.group} {found.name}>/{Path(str(found.declared['path'])).name}"


def _plain(value: object, inputs: dict[str, Input]) -> Any:
    """Return a value without dataclasses, and collect the inputs in it by group and name."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Input):
        inputs[value.place] = value
        if _is_own_file(value):
            value = dataclasses.replace(value, declared={**value.declared, "path": _stand_in(value)})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), inputs) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item, inputs) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        if _SCALARS.issuperset(map(type, value)):  # in one step: a split may name thousands of rows
            return list(value)
        return [_plain(item, inputs) for item in value]
    return value


def check_axis(name: str, values: Sequence[object]) -> None:
    """Raise a ValueError unless a list can be an axis of the grid: it has a value, and none twice."""
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{name} must be a list of at least one value, each once, got {list(values)}")
