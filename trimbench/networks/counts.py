"""How often classes and values occur together in batches of rows: sums, from which models are learned."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.values import plain_column

if TYPE_CHECKING:
    import pandas as pd

# Whole numbers in a range of this length are counted without looking for the distinct ones first.
_SHORT_RANGE = 1024
# More distinct values in a column are no categories, and would not stay within memory.
_MOST_VALUES = 2**16


class Values(NamedTuple):
    """The distinct values of a column in order, and whether they are categories, numbers or others."""

    cells: NDArray[Any]
    kind: str

    def among(self, union: Values) -> NDArray[np.intp]:
        """Return the place of each value in a union that has it."""
        if union.cells.dtype != object:
            return np.searchsorted(union.cells, self.cells)
        places = {cell: place for place, cell in enumerate(union.cells.tolist())}
        return np.array([places[cell] for cell in self.cells.tolist()], dtype=np.intp)

    def __or__(self, other: Values) -> Values:
        if np.array_equal(self.cells, other.cells):
            return self if self.cells.dtype == np.result_type(self.cells, other.cells) else other
        kind = self.kind if self.kind == other.kind else "other"
        if object not in (self.cells.dtype, other.cells.dtype):
            return Values(np.union1d(self.cells, other.cells), kind)
        distinct = list(dict.fromkeys([*self.cells.tolist(), *other.cells.tolist()]))
        try:
            distinct.sort()
        except TypeError:  # of several kinds
            distinct.sort(key=lambda value: (type(value).__name__, str(value)))
        return Values(_objects(distinct), kind)


@dataclass(frozen=True, eq=False)
class CategoryCounts:
    """How often combinations of values occur in some rows: ``a + b`` are the counts of the rows of both.

    All counts are whole numbers, so that a sum is the same in any order and partition of the rows.

    Attributes
    ----------
    columns : list of str
        Names of the class and the features.
    found : list of Values
        The values of each column; some of a feature may have no row.
    tables : dict from tuple of int to ndarray of int
        For the places of some columns, how often each combination of their values occurs where none is missing.
    missing : ndarray of int, shape (n_columns,)
        How many cells of each column are missing.
    n_rows : int
    """

    columns: list[str]
    found: list[Values]
    tables: dict[tuple[int, ...], NDArray[np.int64]]
    missing: NDArray[np.int64]
    n_rows: int

    @classmethod
    def of(cls, features: pd.DataFrame, target: pd.Series[Any], *, pairs: bool = False) -> CategoryCounts:
        """Count the class with each feature, and with each pair of features if `pairs`.

        Raises ValueError where cells cannot be categories.
        """
        names = [str(label) for label in features.columns.tolist()]
        variable = str(target.name)
        series = (column for _, column in features.items())
        of_features = (coded_column(one, f"feature {name!r}") for one, name in zip(series, names, strict=True))
        columns = [coded_column(target, "target"), *of_features]
        codes, found = [one for one, _ in columns], [one for _, one in columns]
        single = range(1, len(columns))
        keys = [(0,), *((0, i) for i in single)]
        if pairs:
            keys += [(0, i, j) for i, j in itertools.combinations(single, 2)]
        tables = {key: _table([codes[i] for i in key], [len(found[i].cells) for i in key]) for key in keys}
        # Of rows with a class: where there are others, that is an error.
        seen = np.array([tables[keys[i]].sum() for i in range(len(columns))])
        return cls([variable, *names], found, tables, len(features) - seen, len(features))

    def __add__(self, other: CategoryCounts) -> CategoryCounts:
        if self.columns != other.columns:
            raise ValueError(f"counts must be of the same columns to be added, got {self.columns} and {other.columns}")
        both = [one | another for one, another in zip(self.found, other.found, strict=True)]
        if (most := max(len(one.cells) for one in both)) > _MOST_VALUES:
            name = self.columns[max(range(len(both)), key=lambda place: len(both[place].cells))]
            raise ValueError(
                f"column {name!r} must hold categories, got {most} different values or more; if these are numbers, cut "
                "them into intervals first (pd.cut), and leave out a column that only numbers the rows"
            )
        tables = {key: self._spread(key, both) + other._spread(key, both) for key in self.tables}
        return CategoryCounts(self.columns, both, tables, self.missing + other.missing, self.n_rows + other.n_rows)

    def _spread(self, key: tuple[int, ...], union: Sequence[Values]) -> NDArray[np.int64]:
        """Return a table with room for the values of a union."""
        if all(union[i] is self.found[i] for i in key):
            return self.tables[key]
        wide = np.zeros([len(union[i].cells) for i in key], dtype=np.int64)
        wide[np.ix_(*(self.found[i].among(union[i]) for i in key))] = self.tables[key]
        return wide

    # What models are learned from: the values that occur, and all categories.

    @cached_property
    def _kept(self) -> list[NDArray[np.intp]]:
        """The places of the values that are categories or that some row has."""
        kept = []
        for place, values in enumerate(self.found):
            counts = self.tables[(0,)] if place == 0 else self.tables[(0, place)].sum(axis=0)
            kept.append(np.flatnonzero((counts > 0) | (values.kind == "category")))
        return kept

    @property
    def class_variable(self) -> str:
        """Name of the class."""
        return self.columns[0]

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.columns[1:]

    def state_names(self, place: int) -> list[str]:
        """Return the names of the values of a column that occur, and of all its categories."""
        return [str(value) for value in self.found[place].cells[self._kept[place]].tolist()]

    @property
    def class_names(self) -> list[str]:
        """Names of the values of the class."""
        return self.state_names(0)

    @cached_property
    def values(self) -> list[list[str]]:
        """Names of the values of each feature."""
        return [self.state_names(place) for place in range(1, len(self.columns))]

    def codes(self, column: pd.Series[Any], place: int) -> NDArray[np.intp]:
        """Return the place of each cell of counted rows in `state_names`, -1 where it is missing."""
        own, values = coded_column(column, f"column {self.columns[place]!r}")
        places = np.full(len(self.found[place].cells), -1)
        places[self._kept[place]] = np.arange(len(self._kept[place]))
        return np.append(places[values.among(self.found[place])], -1)[own.astype(np.intp)]

    def prior(self, smoothing: float) -> NDArray[np.float64]:
        """Return the shares of the classes."""
        counts = self.counts([]) + smoothing
        return np.asarray(counts / counts.sum())

    def counts(self, features: Sequence[int]) -> NDArray[np.float64]:
        """Count the combinations of the class and the values of some features in rows where none is missing."""
        places = [0, *(feature + 1 for feature in features)]
        key = tuple(sorted(places))
        table = self.tables[key][np.ix_(*(self._kept[place] for place in key))]
        return np.transpose(table, [key.index(place) for place in places]).astype(np.float64)

    def counts_by_size(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Yield one feature at a time, and how often a class has a value, of shape (1, n_classes, n_values)."""
        for place in range(len(self.names)):
            yield np.array([place]), self.counts([place])[None]


def _table(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Count combinations of codes, -1 where a value is missing."""
    from trimbench.networks.kernels import count_pairs

    if len(codes) == 2:
        table = np.zeros(sizes, dtype=np.int64)
        count_pairs(codes[0].astype(np.int64), _signed(codes[1]), table)
        return table
    seen = functools.reduce(np.logical_and, [one >= 0 for one in codes])
    places = np.ravel_multi_index([one[seen] for one in codes], sizes)
    return np.bincount(places, minlength=math.prod(sizes)).reshape(sizes)


def coded_column(column: pd.Series[Any], what: str) -> tuple[NDArray[Any], Values]:
    """Return the place of each cell among the values of a column, -1 where it is missing, and these values.

    The values of short ranges of whole numbers are all of the range. Raises ValueError, with the column named as
    `what`, where cells cannot be categories.
    """
    import pandas as pd

    column = plain_column(column)
    kind = getattr(column.dtype, "kind", "O")
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), Values(_objects(column.cat.categories.tolist()), "category")
    if kind in "biuf":
        return _coded_numbers(column.to_numpy(), what)
    try:
        categorical = column.astype("category")
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"{what} must hold categories, got cells that cannot be one: {error}") from error
    return categorical.cat.codes.to_numpy(), Values(_objects(categorical.cat.categories.tolist()), "other")


def _coded_numbers(numbers: NDArray[Any], what: str) -> tuple[NDArray[Any], Values]:
    import pandas as pd

    kind = "other" if numbers.dtype.kind == "b" else "number"
    if numbers.dtype.kind == "f":
        if np.isinf(numbers).any():
            raise ValueError(f"{what} must hold finite numbers, got infinity; mark a missing value with NaN")
        absent = np.isnan(numbers)
        if absent.all():
            return np.full(len(numbers), -1), Values(np.empty(0), kind)
        low, high = float(np.fmin.reduce(numbers)) + 0.0, float(np.fmax.reduce(numbers))
        if high - low < _SHORT_RANGE and low.is_integer() and abs(low) < 2**52:
            places = np.where(absent, -1.0, numbers - low).astype(np.int16)
            if (absent | (places + low == numbers)).all():
                return places, Values(np.arange(low, high + 1), kind)
    else:
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < _SHORT_RANGE and high < 2**63:
            cells = np.arange(low, high + 1).astype(bool if kind == "other" else np.int64)
            return (numbers.astype(np.int64) - low if low else numbers), Values(cells, kind)
    found, distinct = pd.factorize(numbers, sort=True)
    return found, Values(np.asarray(distinct), kind)


def _signed(codes: NDArray[Any]) -> NDArray[Any]:
    """Return codes in one of the few types that loops are compiled for."""
    if codes.dtype == bool:
        return codes.view(np.int8)
    return codes if codes.dtype in (np.int8, np.int16) else codes.astype(np.int64, copy=False)


def _objects(cells: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
