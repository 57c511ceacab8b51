"""How the columns of a logistic regression make up features: binary, categorical (one-hot) or real-valued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.networks.values import as_numbers, in_order

# Rows that are processed at a time, which bounds the memory for checks and products.
CHUNK_ROWS = 8192
# Numbers of a block that stays in the processor's cache from its check to the products.
_BLOCK_SIZE = 2**18


@dataclass(frozen=True)
class FeatureLayout:
    """Which columns belong to which feature.

    Raises ValueError when a column is out of range or belongs to two features, or a categorical feature has no column.

    Attributes
    ----------
    n_columns : int
        Columns of the logistic regression.
    categorical : tuple of tuple of int
        Columns of each one-hot encoded feature: exactly one of them is 1.
    real : tuple of int
        Columns of real-valued features. All other columns are binary features with values 0 and 1.
    """

    n_columns: int
    categorical: tuple[tuple[int, ...], ...] = ()
    real: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        named = [*(column for group in self.categorical for column in group), *self.real]
        for column in named:
            if not 0 <= column < self.n_columns:
                raise ValueError(
                    f"categorical and real must name columns from 0 to {self.n_columns - 1}, got {column}; count the "
                    "columns of the logistic regression from 0"
                )
        if len(set(named)) < len(named):
            twice = sorted({column for column in named if named.count(column) > 1})
            raise ValueError(f"categorical and real must name each column at most once, got {twice} twice")
        if not all(self.categorical):
            raise ValueError("each feature of categorical must have at least one column, got an empty one")

    @classmethod
    def of(
        cls, n_columns: int, categorical: Sequence[Sequence[int]] | None = None, real: Sequence[int] | None = None
    ) -> FeatureLayout:
        """Return the layout for lists of columns.

        Raises ValueError if they are not lists of positions, or not allowed in a layout.
        """
        groups = () if categorical is None else categorical
        if isinstance(groups, str) or not isinstance(groups, Iterable):
            raise ValueError(f"categorical must be a list of lists of columns, got {groups!r}; write [[0, 1]], say")
        return cls(
            n_columns,
            tuple(as_positions(group, "each feature of categorical") for group in groups),
            () if real is None else as_positions(real, "real"),
        )

    @cached_property
    def features(self) -> tuple[tuple[int, ...], ...]:
        """Columns of each feature, in the order of the first one."""
        return tuple(sorted([*self.categorical, *((column,) for column in (*self.real, *self.binary.tolist()))]))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.features)

    @cached_property
    def first_columns(self) -> NDArray[np.intp]:
        """The first column of each feature; a feature is missing where its first column is."""
        return np.array([columns[0] for columns in self.features], dtype=np.intp)

    @cached_property
    def real_columns(self) -> list[int]:
        """The columns of real-valued features, in the order of the layout."""
        return [columns[0] for columns in self.features if columns[0] in set(self.real)]

    @cached_property
    def feature_of_column(self) -> NDArray[np.intp]:
        """Position in `features` of the feature that each column belongs to."""
        owner = np.empty(self.n_columns, dtype=np.intp)
        for place, columns in enumerate(self.features):
            owner[list(columns)] = place
        return owner

    @cached_property
    def binary(self) -> NDArray[np.intp]:
        """Columns that are features with values 0 and 1."""
        named = {column for group in self.categorical for column in group} | set(self.real)
        return np.array([column for column in range(self.n_columns) if column not in named], dtype=np.intp)


def chunks(rows: NDArray[Any], layout: FeatureLayout, *, missing: bool) -> Iterator[NDArray[np.float64]]:
    """Yield the rows, of shape (n_rows, n_columns), as float64 in parts, each checked against the layout.

    Raises ValueError if a value is not allowed for its feature; NaN is allowed if `missing`.
    """
    for start in range(0, len(rows), CHUNK_ROWS):
        part = np.asarray(rows[start : start + CHUNK_ROWS], dtype=np.float64)
        check_values(part, np.isnan(part), part == 1, layout, start, missing)
        yield part


@dataclass(frozen=True, eq=False)
class Block:
    """A part of the rows, with zeros for what is missing.

    Attributes
    ----------
    rows : slice
    ones : ndarray of bool, shape (n_rows, n_columns)
        Which values are 1.
    absent : ndarray of bool, shape (n_rows, n_features)
        Which features are missing.
    real, numbers : list of int, ndarray of shape (n_rows, n_real)
        The columns that are real-valued, and their values.
    """

    rows: slice
    ones: NDArray[np.bool_]
    absent: NDArray[np.bool_]
    real: list[int]
    numbers: NDArray[np.float64]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The rows as float64, shape (n_rows, n_columns)."""
        values = self.ones.astype(np.float64)  # ten times faster than a choice between each value and zero
        values[:, self.real] = self.numbers
        return values


def blocks(
    rows: NDArray[Any], layout: FeatureLayout, width: int = 1, *, checked: bool = False, least: int = 128
) -> Iterator[Block]:
    """Yield the rows, of shape (n_rows, n_columns), in small parts, checked against the layout unless `checked` before.

    Raises ValueError if a value is not allowed for its feature; NaN is allowed.

    Parameters
    ----------
    width : int
        How many numbers will be computed for each row.
    least : int
        How many rows a block has at least, however wide.
    """
    real = list(layout.real)
    size = min(max(_BLOCK_SIZE // max(layout.n_columns, width), least), CHUNK_ROWS)
    for start in range(0, len(rows), size):
        part = np.asarray(rows[start : start + size], dtype=np.float64)
        absent, is_one = np.isnan(part), part == 1
        if not checked:
            check_values(part, absent, is_one, layout, start, missing=True)
        numbers = np.where(absent[:, real], 0.0, part[:, real])
        by_feature = absent if layout.n_features == layout.n_columns else absent[:, layout.first_columns]
        yield Block(slice(start, start + len(part)), is_one, by_feature, real, numbers)


def has_gaps(rows: NDArray[Any]) -> bool:
    """Tell whether any value is missing (NaN)."""
    return rows.dtype.kind == "f" and any(
        np.isnan(rows[start : start + CHUNK_ROWS]).any() for start in range(0, len(rows), CHUNK_ROWS)
    )


def as_positions(columns: Any, name: str) -> tuple[int, ...]:
    """Return columns as whole numbers; raise ValueError for anything but a list of positions, such as a mask."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ValueError(f"{name} must be a list of columns, got {columns!r}; write [{columns!r}] for one column")
    listed = list(columns)
    for column in listed:
        if isinstance(column, bool | np.bool_) or not isinstance(column, int | np.integer):
            raise ValueError(
                f"{name} must name columns by their position, a whole number, got {column!r}; np.flatnonzero gives the "
                "positions of a mask"
            )
    return tuple(int(column) for column in listed)


def check_values(
    part: NDArray[np.float64],
    absent: NDArray[np.bool_],
    is_one: NDArray[np.bool_],
    layout: FeatureLayout,
    start: int,
    missing: bool,
) -> None:
    """Raise ValueError, with row and column, for a value that is not allowed; `start` is the first row's number."""
    if not missing:
        _refuse(absent, part, start, "must not be missing here; leave rows with missing values out, or impute them")
    right = (part == 0) | is_one | absent
    if layout.real:
        real = list(layout.real)
        right[:, real] = ~np.isinf(part[:, real])
    if not right.all():
        _refuse(np.isinf(part), part, start, "must be finite; mark a missing value with NaN")
        _refuse(~right, part, start, "must be 0, 1 or NaN; binarise the column, or name it in real")
    if layout.categorical:
        columns = [column for group in layout.categorical for column in group]
        starts = np.cumsum([0, *map(len, layout.categorical[:-1])])
        sizes = np.array([len(group) for group in layout.categorical])
        n_ones, n_absent = (np.add.reduceat(one[:, columns], starts, axis=1, dtype=np.intp) for one in (is_one, absent))
        wrong = (n_absent != sizes) & ((n_absent > 0) | (n_ones != 1))
        if wrong.any():
            row, place = np.argwhere(wrong)[0]
            group = list(layout.categorical[place])
            raise ValueError(
                f"X must have exactly one 1 among the columns {group} of a categorical feature, or NaN in all of them, "
                f"got {part[row, group].tolist()} in row {start + row}"
            )


def _refuse(wrong: NDArray[np.bool_], part: NDArray[np.float64], start: int, rule: str) -> None:
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(f"X[{start + row}, {column}] {rule}; got {float(part[row, column])!r}")


# Tables and rows of numbers from lists, arrays and data frames; missing values become NaN.


def as_table(
    rows: ArrayLike, n_columns: int | None = None, name: str = "X", columns: Sequence[str] | None = None
) -> NDArray[Any]:
    """Return rows as a table of numbers, not copied if they are one; a data frame with its columns as in `columns`.

    Raises ValueError if they are not a table of numbers with `n_columns` columns; the message calls them `name`.
    """
    table = as_numbers(in_order(rows, columns), name)
    if table.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (rows and columns), got {table.ndim}; use {name}.reshape(1, -1)"
        )
    if n_columns is not None and table.shape[1] != n_columns:
        raise ValueError(f"{name} must have {n_columns} columns, like the rows of the fit, got {table.shape[1]}")
    return table


def as_row(x: Any, n_columns: int, columns: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Return one row as a table of float64; raise ValueError for other than `n_columns` numbers, or other names."""
    if hasattr(x, "to_frame"):  # a Series, by name
        x = in_order(x.to_frame().T, columns).iloc[0]
    values = as_numbers(x, "x")
    if values.shape != (n_columns,):
        raise ValueError(f"x must be one row of {n_columns} values, got shape {values.shape}")
    return np.asarray(values[None], dtype=np.float64)


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return weights of rows as float64, ones for None; raise ValueError if they are not allowed."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights: NDArray[np.float64] = as_numbers(sample_weight, "sample_weight").astype(np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one number for each of the {n_rows} rows, got shape {weights.shape}")
    if not ((weights >= 0).all() and (weights <= np.finfo(np.float64).max / n_rows).all() and weights.any()):
        raise ValueError("sample_weight must have finite numbers, 0 or more, with a finite sum, and not all be zero")
    return weights
