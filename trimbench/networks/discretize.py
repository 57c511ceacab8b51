"""Raw columns as categories: numbers are cut, categories kept, and missing is a value of its own."""

from __future__ import annotations

import itertools
import numbers
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.networks.entropy_cuts import between, entropy_cuts
from trimbench.networks.value_codes import listed

if TYPE_CHECKING:
    import pandas as pd

CutRule = Literal["mdl", "mean", "median"]
# More values than this, and more than this share of the rows, are no categories.
_FEW_VALUES, _LARGEST_SHARE = 10, 0.5


class IdentifierColumnWarning(UserWarning):
    """A column of text has about as many values as rows, and says nothing about new rows: it is left out."""


@dataclass(frozen=True)
class ColumnRule:
    """How one column becomes a category.

    Attributes
    ----------
    name : str
    categories : tuple of str
        Their names; one for each interval of a number, from the lowest.
    cuts : tuple of float, optional
        Of a number: the i-th category holds what is above i of them. None for a column of categories.
    missing : str, optional
        The category of missing cells, one of `categories`; None where training rows had none.
    fallback : str, optional
        The category of cells that no other rule covers: of a value that training rows did not have, and of a missing
        cell if `missing` is None. None makes them an error.
    """

    name: str
    categories: tuple[str, ...]
    cuts: tuple[float, ...] | None = None
    missing: str | None = None
    fallback: str | None = None

    def codes(self, column: pd.Series[Any]) -> NDArray[np.int64]:
        """Return the position of each cell's category in `categories`.

        Raises ValueError if a cell has no category, is infinite or should be a number and is not.
        """
        index = {value: code for code, value in enumerate(self.categories)}
        usual = -1 if self.fallback is None else index[self.fallback]
        absent = column.isna().to_numpy(dtype=bool)
        if self.cuts is None:
            texts = cell_texts(column[~absent].tolist())
            found = np.array([index.get(text, usual) for text in texts], dtype=np.int64)
            strange = texts[int(np.argmax(found < 0))] if (found < 0).any() else None
            if strange is not None:
                raise ValueError(
                    f"column {self.name!r} must hold values among {listed(self.categories)}, got {strange[:80]!r}"
                )
        else:
            found = np.searchsorted(np.array(self.cuts), _numbers(column[~absent], self.name), side="left")
        codes = np.full(len(column), usual if self.missing is None else index[self.missing], dtype=np.int64)
        codes[~absent] = found
        if (codes < 0).any():
            raise ValueError(
                f"column {self.name!r} must have no missing values, got {int(absent.sum())} of {len(column)} rows; the "
                "model has no value for them"
            )
        return codes


@dataclass(frozen=True)
class Discretizer:
    """How the columns of a table become categories, learned from training rows.

    Attributes
    ----------
    rules : tuple of ColumnRule
        One for each column.
    """

    rules: tuple[ColumnRule, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame, classes: ArrayLike, cut: CutRule = "mdl") -> Discretizer:
        """Learn how to cut and which categories there are.

        A column of numbers is cut; one of two numbers is cut between them. Text, truth values and pandas' categories
        are kept as they are. Missing cells (NaN, None, NA) become a category of their own. A value that the training
        rows do not have counts as missing where they have missing cells, and otherwise as their most frequent category;
        so does a missing cell where they have none.

        Parameters
        ----------
        frame : DataFrame of shape (n_rows, n_columns)
        classes : array of int, shape (n_rows,)
            Class of each row, 0 or more; only the rule ``"mdl"`` uses it.
        cut : {"mdl", "mean", "median"}
            Cuts that separate the classes, as many as pay for their description (see `entropy_cuts`), or one cut at the
            mean or the median.

        Raises
        ------
        ValueError
            When `cut` is unknown, or a column has infinite numbers or values that are neither numbers nor categories.

        Warns
        -----
        IdentifierColumnWarning
            When a column of text or categories has as many values as rows, or more than 10 and more than half as many:
            it becomes a single category.
        """
        if cut not in get_args(CutRule):
            raise ValueError(f"cut must be one of {', '.join(get_args(CutRule))}, got {cut!r}")
        labels = np.asarray(classes, dtype=np.int64)
        places = range(frame.shape[1])
        return cls(tuple(_learned(frame.iloc[:, i], str(frame.columns[i]), labels, cut) for i in places))

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table as categorical columns, by position, with the names and categories of the rules."""
        import pandas as pd

        return pd.DataFrame(
            {
                rule.name: pd.Categorical.from_codes(
                    rule.codes(frame.iloc[:, place]), categories=pd.Index(rule.categories, dtype=str)
                )
                for place, rule in enumerate(self.rules)
            },
            index=frame.index,
        )


def _learned(column: pd.Series[Any], name: str, classes: NDArray[np.int64], cut: CutRule) -> ColumnRule:
    absent = column.isna().to_numpy(dtype=bool)
    seen = column[~absent]
    if _is_numeric(column, seen):
        cuts: tuple[float, ...] | None = _cuts(_numbers(seen, name), classes[~absent], cut)
        values = interval_names(cuts or ())
    else:
        cuts = None
        texts = cell_texts(seen.tolist())
        values = tuple(sorted(set(texts)))
        n_values, n_rows = len(values), len(seen)
        if n_values > 2 and (n_values == n_rows or _are_names_of_rows(n_values, n_rows)):
            warnings.warn(
                f"column {name!r} is left out: its {n_values} different values in {n_rows} rows are names of rows, not "
                "categories; drop it, or merge its values into fewer categories",
                IdentifierColumnWarning,
                stacklevel=5,
            )
            return ColumnRule(name, ("any",), missing="any", fallback="any")
    missing = None
    if absent.any():
        missing = "missing"
        while missing in values:
            missing += "_"
        values = (*values, missing)
    rule = ColumnRule(name, values, cuts, missing, missing or values[0])
    # Without missing cells, the most frequent category stands for what is new.
    usual = values[int(np.bincount(rule.codes(column), minlength=len(values)).argmax())]
    return ColumnRule(name, values, cuts, missing, missing or usual)


def _cuts(values: NDArray[np.float64], classes: NDArray[np.int64], rule: CutRule) -> tuple[float, ...]:
    levels = np.unique(values)
    if levels.size < 2:
        return ()
    if levels.size == 2:
        return (between(float(levels[0]), float(levels[1])),)
    if rule == "mdl":
        return entropy_cuts(values, classes)
    level = float(np.mean(values) if rule == "mean" else np.median(values))
    # Where more than half of the rows have the largest value, no row is above the median.
    return (level if level < levels[-1] else between(float(levels[-2]), float(levels[-1])),)


def interval_names(cuts: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the intervals between cuts, the upper end of each included."""
    if not cuts:
        return ("any",)
    middle = [f"({low!r}, {high!r}]" for low, high in itertools.pairwise(cuts)]
    return (f"<= {cuts[0]!r}", *middle, f"> {cuts[-1]!r}")


def _is_numeric(column: pd.Series[Any], seen: pd.Series[Any]) -> bool:
    import pandas as pd

    if pd.api.types.is_bool_dtype(column.dtype):
        return False
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    return column.dtype == object and all(_is_number(value) for value in seen.tolist())


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _numbers(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    if column.dtype.kind in "cmM":
        raise ValueError(f"column {name!r} must hold real numbers, got {column.dtype}; make it numbers first")
    try:
        values = column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        strange = next((value for value in column.tolist() if not _is_number(value)), None)
        raise ValueError(f"column {name!r} must hold numbers, as in training, got {str(strange)[:80]!r}") from error
    if np.isinf(values).any():
        raise ValueError(f"column {name!r} must be finite, got infinity in {int(np.isinf(values).sum())} rows")
    return values


def cell_texts(cells: Iterable[Any]) -> list[str]:
    """Return cells as strings; whole numbers are written without a decimal point, whatever their type."""
    return [
        str(int(value)) if isinstance(value, float | np.floating) and float(value).is_integer() else str(value)
        for value in cells
    ]


def _are_names_of_rows(n_values: int, n_rows: int) -> bool:
    """Return whether a column has so many different values that they are measurements or names, not categories."""
    return n_values > max(_FEW_VALUES, _LARGEST_SHARE * n_rows)
