"""What an experiment is: settings that become cells, and rows that become an outcome."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.declarations import (
    Declaration,
    declare,
    declare_dataset,
    load_dataset,
)
from trimbench.reproduction.data.errors import DataUnavailable, FactsMismatch
from trimbench.reproduction.execution.code_hash import JobFunction
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import note_road
from trimbench.reproduction.messages import brief
from trimbench.reproduction.settings import Json, unknown
from trimbench.reproduction.vocabulary.numbers import Outcome

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.reproduction.data.dataset import Dataset


T = TypeVar("T")


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
    """Return the rows of successful jobs with these labels; columns of whole numbers get an integer type.

    Parameters
    ----------
    rows : DataFrame
        What `outcome` gets, one row for each cell.
    **labels : str, int, float, bool or None
        Values of columns.

    Returns
    -------
    DataFrame
        Of the same columns.
    """
    chosen = rows["status"] == "ok"
    for name, value in labels.items():
        chosen &= rows[name] == value
    return rows[chosen].infer_objects()


def groups(rows: pd.DataFrame, /, *labels: str, **titles: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield each combination of labels with the rows of its successful jobs, in the order of the cells.

    Parameters
    ----------
    rows : DataFrame
        What `outcome` gets, one row for each cell.
    *labels : str
        Columns whose values are told apart.
    **titles : str
        Columns that have another name in tables: ``T="threshold"``.

    Yields
    ------
    labels : dict
        The values by label or title.
    rows : DataFrame
        The successful jobs that have them; never empty.
    """
    columns = dict(zip(labels, labels, strict=True)) | titles
    done = successes(rows) if "status" in rows else rows
    for values, ours in done.groupby(list(columns.values()), sort=False, dropna=False) if len(done) else ():
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        yield dict(zip(columns, plain, strict=True)), ours.infer_objects()


def stacked(rows: pd.DataFrame, label: str, titles: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each successful job and method, whose title is under `label`.

    What the job calls ``corrected_error`` is the ``error`` of the method ``corrected``.
    """
    import pandas as pd

    done = successes(rows)
    own = {key: [str(column) for column in done if str(column).startswith(f"{key}_")] for key in titles}
    shared = done.drop(columns=[column for columns in own.values() for column in columns])
    parts = [
        shared.assign(**{label: title}, **{column.removeprefix(f"{key}_"): done[column] for column in own[key]})
        for key, title in titles.items()
    ]
    return pd.concat(parts or [shared]).sort_index(kind="stable").reset_index(drop=True)


def unlisted(rows: pd.DataFrame, label: str, values: Sequence[object], columns: Sequence[str]) -> pd.DataFrame:
    """Return a row for each successful job and value, put under `label`; lists in `columns` have one entry for each."""
    import pandas as pd

    done = successes(rows)
    if done.empty:
        return done
    done = done.copy()
    done[label] = pd.Series([list(values)] * len(done), index=done.index)
    return done.explode([label, *columns], ignore_index=True).infer_objects()


def unpacked(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a row for each entry of the lists of mappings that successful jobs have in a column."""
    import pandas as pd

    done = successes(rows)
    shared = done.drop(columns=column, errors="ignore").to_dict("records")
    return pd.DataFrame(
        [{**row, **entry} for row, entries in zip(shared, done.get(column, ()), strict=False) for entry in entries]
    )


class Method(NamedTuple):
    """One of the methods that an experiment compares: its title in tables and figures, and its function."""

    title: str
    run: Callable[..., Any]


# One job of an experiment, its place among the others, and the data that it reads.

Label = str | int | float | bool | None


def grid(**axes: Iterable[Label]) -> list[dict[str, Any]]:
    """Return the labels of every place of a grid; the last axis changes fastest."""
    return [dict(zip(axes, place, strict=True)) for place in itertools.product(*axes.values())]


_SCALARS = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True)
class Cell:
    """One job of an experiment, the data that it reads, and its place in the table.

    Make one with `Cell.of`.

    Attributes
    ----------
    labels : mapping from str to str, int, float, bool or None
        What distinguishes the cell from the others, for example data set and replication.
    job : Job
        The function and its parameters.
    inputs : tuple of Input
        The data that the job reads.
    """

    labels: Mapping[str, Label]
    job: Job
    inputs: tuple[Input, ...] = ()

    @classmethod
    def of(cls, labels: Mapping[str, Label], function: JobFunction, given: object = None, **parameters: object) -> Cell:
        """Return the cell whose job calls a job function with these parameters.

        Inputs, and dataclasses that contain inputs, become plain mappings for the job; the hash of each input enters
        the job's key. The folder of a user's own file does not: the same data elsewhere makes the same job.

        Parameters
        ----------
        labels : mapping from str to str, int, float, bool or None
            What distinguishes the cell from the others.
        function : callable
            One that `job` has marked.
        given : object, optional
            Settings, usually the experiment itself: parameters that are left out come from the labels and from its
            attributes with the same names.
        **parameters : object
            Arguments of the function: plain values, lists and mappings of them, inputs.

        Returns
        -------
        Cell
        """
        if given is not None:
            names = inspect.signature(function).parameters
            known = {name: getattr(given, name) for name in names if hasattr(given, name)} | dict(labels)
            parameters = {name: value for name, value in known.items() if name in names} | parameters
        inputs: dict[str, Input] = {}
        plain = {name: _plain(value, inputs) for name, value in parameters.items()}
        hashes = {name: found.sha256 for name, found in inputs.items()}
        places = {_stand_in(found): str(found.declared["path"]) for found in inputs.values() if _is_own_file(found)}
        return cls(labels, Job.create(function, plain, hashes, places), tuple(inputs.values()))


def _is_own_file(found: Input) -> bool:
    path = found.declared.get("path")
    return isinstance(path, str) and Path(path).is_absolute()


def _stand_in(found: Input) -> str:
    """Return the placeholder for the path of a user's own file in the parameters of a job."""
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


# Types of settings: what a value must be, said once for all experiments.


def must(words: str, holds: Callable[[Any], object]) -> AfterValidator:
    """Return a constraint for an annotated type; the error message says what a value must be, in `words`."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(f"must be {words}, got {brief(value)}")
        return value

    return AfterValidator(check)


def at_least(least: int) -> AfterValidator:
    """Return the constraint that a number is not below another."""
    return must(f"{least} or more", lambda value: value >= least)


def one_of(names: Mapping[str, object]) -> AfterValidator:
    """Return the constraint that a name is a key of `names`."""

    def check(value: str) -> str:
        if value not in names:
            text = str(unknown("it", list(names), value))
            raise ValueError(text.removeprefix("it "))
        return value

    return AfterValidator(check)


def _is_axis(values: Sequence[object]) -> bool:
    return bool(values) and all(value not in values[:place] for place, value in enumerate(values))


Axis = Annotated[list[T], must("a list of at least one value, each once", _is_axis)]
Count = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
Share = Annotated[float, must("strictly between 0 and 1", lambda value: 0 < value < 1)]
Threshold = Annotated[float, must("a probability in [0, 1]", lambda value: 0 <= value <= 1)]
Positive = Annotated[float, must("a positive number", lambda value: 0 < value < math.inf)]
NotNegative = Annotated[float, must("a number >= 0", lambda value: 0 <= value < math.inf)]


def check_axis(name: str, values: Sequence[object]) -> None:
    """Raise a ValueError unless a list can be an axis of the grid: it has a value, and none twice."""
    if not _is_axis(values):
        raise ValueError(f"{name} must be a list of at least one value, each once, got {list(values)}")


def check_names(key: str, names: Sequence[str], known: Mapping[str, object], group: str, entries: str) -> None:
    """Raise ValueError if a name in the setting `key` is not in the `group` of settings, with these entries each."""
    for name in names:
        if name not in known:
            raise ValueError(
                f"{key} must be among the names in {group}, {list(known)}, got {name!r}; define it with "
                f"+{group}.{name}={{{entries}}}"
            )


# The data that jobs read. One value serves the job, its key and the download.


@dataclass(frozen=True)
class Input:
    """A data set, or data of a kind that the project has, as declared, with the hash of its values or files.

    Attributes
    ----------
    group : str
        ``"dataset"``, or another folder of the configuration that declares data.
    name : str
        Of the file in it.
    declared : mapping
        What the file says.
    sha256 : str
        The hash, which is in the keys of the jobs that read the data.
    """

    group: str
    name: str
    declared: Mapping[str, Json]
    sha256: str

    @property
    def place(self) -> str:
        """Where it is declared, for example ``dataset/heart``: data of several kinds may share a name."""
        return f"{self.group}/{self.name}"

    @functools.cached_property
    def declaration(self) -> Declaration:
        """The declaration, checked."""
        return declare(self.group, self.name, self.declared)

    def files(self, cache: Cache) -> dict[str, Path]:
        """Return the files of the cache that a job reads for it, by their names in a folder of the cache."""
        found = (next(filter(os.path.isfile, copies), None) for copies in self.declaration.copies(cache))
        places = [(path, place) for path in found if path for place in cache.places if path.is_relative_to(place)]
        return {path.relative_to(place).as_posix(): path for path, place in places}


class Inputs:
    """All declared data, as inputs of jobs: what `cells` gets.

    A data set without a declared hash, such as one of the user's own, is read from the cache to compute it.

    Parameters
    ----------
    catalogue : Catalogue
        The folders of declarations.
    cache : Cache
        Where files are kept.
    """

    def __init__(self, catalogue: Catalogue, cache: Cache) -> None:
        self.catalogue = catalogue
        self.cache = cache
        self._loaded: dict[str, Dataset] = {}

    def dataset(self, name: str) -> Input:
        """Return a data set as an input.

        Parameters
        ----------
        name : str
            Of the file in the folder ``dataset``.

        Returns
        -------
        Input

        Raises
        ------
        ConfigurationError
            If it is not declared, or the declaration has a mistake.
        DataUnavailable
            If its hash is not declared and it cannot be read.
        """
        declared = self.declared("dataset", name)
        try:
            sha256 = declare_dataset(name, declared).facts.sha256 or self.loaded(name).sha256
        except DataUnavailable as error:
            if "path" in declared:
                raise
            why = f"data set {name!r} is declared without facts.sha256, so that it must be here to plan a run"
            raise DataUnavailable(f"{why}: {error}", whole=True) from error
        return Input("dataset", name, declared, sha256)

    def declared(self, group: str, name: str) -> Mapping[str, Json]:
        """Return the declaration of data of a kind, as it is written."""
        return self.catalogue.declared(group, name)

    def loaded(self, name: str) -> Dataset:
        """Return the values of a data set, reading it only once."""
        if name not in self._loaded:
            self._loaded[name] = load_dataset(declare_dataset(name, self.declared("dataset", name)), self.cache)
        return self._loaded[name]


def dataset_of(found: Input) -> Dataset:
    """Return the values of an input that a job received as a parameter.

    Nothing is downloaded here: what a job reads is fetched before it starts.

    Parameters
    ----------
    found : Input
        Of the group ``dataset``.

    Returns
    -------
    Dataset
        With `features`, a DataFrame of shape (n_rows, n_features) with float64 for numbers and categories of text for
        everything else, and NaN where a value is missing; and `target`, a Series of shape (n_rows,) of categories. Its
        rows are in the same order on every machine.

    Raises
    ------
    FactsMismatch
        If the values are not those whose hash is in the key of the job.
    """
    loaded = load_dataset(declare_dataset(found.name, found.declared), Cache.from_environment(offline=True))
    check_unchanged(found, loaded.sha256)
    note_road(found.sha256, loaded.road)
    return loaded


def check_unchanged(found: Input, sha256: str) -> None:
    """Raise FactsMismatch unless an input still has the hash that is in the keys of its jobs."""
    if sha256 != found.sha256:
        raise FactsMismatch(
            f"{found.group} {found.name!r} has changed since the run began (SHA-256: it was {found.sha256[:12]}, now "
            f"it is {sha256[:12]}); start the run again"
        )
