"""Raw tables as coded rows, and coded rows as tables that a classifier takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix
from trimbench.estimators.columns import check_no_dates
from trimbench.networks.values import column_numbers, plain_column

if TYPE_CHECKING:
    import pandas as pd

# The code of a category that no training row has: it is known to the classifier, but says nothing to a density.
UNKNOWN = -1.0


@dataclass(frozen=True, eq=False)
class TableCoding:
    """How a raw table becomes coded rows: a number for each cell, NaN where one is missing.

    Attributes
    ----------
    names : tuple of str
    categories : tuple of ndarray or None
        The values of each column of text or categories; None for numbers.
    template : DataFrame or None
        The training rows' columns without rows, with their labels and types; None if the rows were an array.
    """

    names: tuple[str, ...]
    categories: tuple[NDArray[Any] | None, ...]
    template: pd.DataFrame | None

    @classmethod
    def of(cls, table: Any, names: list[str]) -> TableCoding:
        """Learn the coding of a data frame or an array.

        Raises ValueError if a column mixes text and numbers, or holds dates.
        """
        if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
            return cls(tuple(names), (None,) * len(names), None)
        frame = _frame(table)
        categories = [_categories(frame.iloc[:, place], name) for place, name in enumerate(names)]
        return cls(tuple(names), tuple(categories), None if isinstance(table, np.ndarray) else table.iloc[:0])

    @property
    def n_categories(self) -> list[int]:
        """Number of categories of each column, 0 for numbers."""
        return [0 if values is None else max(len(values), 1) for values in self.categories]

    def encode(self, table: Any) -> Matrix:
        """Return coded rows, shape (n_rows, n_features).

        Raises ValueError if a number is infinite, or a value is none in a column of numbers.
        """
        if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
            numbers: Matrix = table.astype(np.float64)
            if np.isinf(numbers).any():
                place = int(np.isinf(numbers).any(axis=0).argmax())
                raise ValueError(
                    f"X must be finite, got infinity in column {self.names[place]!r}; mark a missing value with NaN"
                )
            if all(values is None for values in self.categories):
                return numbers
        frame = _frame(table)
        columns = [
            column_numbers(frame.iloc[:, place], name) if values is None else _codes(frame.iloc[:, place], values)
            for place, (name, values) in enumerate(zip(self.names, self.categories, strict=True))
        ]
        return np.column_stack(columns)

    def decode(self, coded: Matrix, table: Any, rows: NDArray[np.intp]) -> Any:
        """Return complete coded rows as a table like that of the fit.

        Parameters
        ----------
        coded : ndarray of shape (n_completions, n_features)
        table : DataFrame or array
            The raw rows that were completed; a category that no training row has is taken from it.
        rows : ndarray of int, shape (n_completions,)
            The raw row of each completion.
        """
        if self.template is None and all(values is None for values in self.categories):
            return coded
        import pandas as pd

        frame = _frame(table)
        columns = {
            place: coded[:, place] if values is None else _values(coded[:, place], values, frame.iloc[:, place], rows)
            for place, values in enumerate(self.categories)
        }
        if self.template is None:
            return np.column_stack([np.asarray(column, dtype=object) for column in columns.values()])
        kinds = self.template.dtypes
        typed = {place: _typed(column, kinds.iloc[place], frame.iloc[:, place]) for place, column in columns.items()}
        return pd.DataFrame(typed).set_axis(self.template.columns, axis=1)


def _frame(table: Any) -> pd.DataFrame:
    import pandas as pd

    return table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)


def _categories(column: pd.Series[Any], name: str) -> NDArray[Any] | None:
    """Return the distinct values of a column of text or categories, None for a column of numbers."""
    import pandas as pd

    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    known = plain_column(column).dropna()
    if not is_category and known.dtype != object and not pd.api.types.is_string_dtype(known.dtype):
        check_no_dates(known, name)
        return None
    values = np.asarray(pd.unique(np.asarray(known, dtype=object)), dtype=object)
    are_text = {isinstance(value, str) for value in values.tolist()}
    if not is_category and len(are_text) == 2:
        other = next(value for value in values.tolist() if not isinstance(value, str))
        raise ValueError(
            f"column {name!r} must hold either text or numbers, got both, such as {str(other)[:40]!r}; convert one"
        )
    if not is_category and are_text == {False}:
        check_no_dates(known, name)
        column_numbers(column, name)
        return None
    return values


def _codes(column: pd.Series[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the place of each cell among the values, `UNKNOWN` for others, NaN where it is missing."""
    import pandas as pd

    plain = plain_column(column)
    cells = np.asarray(plain, dtype=object)
    places = pd.Index(values, dtype=object).get_indexer(pd.Index(cells, dtype=object)).astype(np.float64)
    return np.where(plain.isna().to_numpy(dtype=bool), np.nan, np.where(places < 0, UNKNOWN, places))


def _values(
    codes: NDArray[np.float64], values: NDArray[Any], column: pd.Series[Any], rows: NDArray[np.intp]
) -> NDArray[Any]:
    """Return the values of codes, with those of the raw column where the code is `UNKNOWN`."""
    found = values[np.maximum(codes, 0).astype(np.intp)] if len(values) else np.full(len(codes), None, dtype=object)
    unknown = np.flatnonzero(codes == UNKNOWN)
    if len(unknown):
        found[unknown] = np.asarray(column, dtype=object)[rows[unknown]]
    return found


def _typed(column: NDArray[Any], kind: Any, given: pd.Series[Any]) -> Any:
    """Return a column in the type of the training rows, as far as its values allow."""
    import pandas as pd

    if isinstance(kind, pd.CategoricalDtype):
        if isinstance(given.dtype, pd.CategoricalDtype) and not set(given.cat.categories) <= set(kind.categories):
            kind = pd.CategoricalDtype(kind.categories.append(given.cat.categories.difference(kind.categories)))
        return pd.Categorical(column, dtype=kind)
    if column.dtype == object:
        return pd.Series(column, dtype=kind)
    is_whole = isinstance(kind, np.dtype) and kind.kind in "biu" and bool((column == np.floor(column)).all())
    return column.astype(kind) if is_whole else column
