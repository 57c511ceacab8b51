"""Columns of raw tables: checked, named and encoded; the names or positions that users give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from trimbench.conformant.layout import FeatureLayout
from trimbench.networks.discretize import (
    CELLS_AT_ONCE,
    IdentifierColumnWarning,
    UnknownValuesWarning,
    are_numbers,
    numbers_of,
    warn_of_unknown,
)
from trimbench.networks.values import (
    check_no_missing_label,
    checked_names,
    column_numbers,
    is_constant,
    places_among,
    plain_columns,
    plain_table,
    unmasked,
    value_names,
)

if TYPE_CHECKING:
    import pandas as pd


def checked_rows(estimator: Any, X: Any, *, reset: bool = False, y: Any = "no_validation") -> pd.DataFrame:
    """Return the table as a data frame of plain columns with the names of the fit, checked as scikit-learn does.

    The columns of an array are called ``x0, x1, ...`` in the fit.
    """
    return _named(*checked_table(estimator, X, reset=reset, y=y))


def checked_cells(estimator: Any, X: Any) -> pd.DataFrame | NDArray[Any]:
    """Return rows to predict, checked as scikit-learn does: numbers of one type as an array, else `checked_rows`."""
    cells, labels = checked_table(estimator, X)
    numbers = as_one_array(cells)
    return _named(cells, labels) if numbers is None else numbers


def selectable(estimator: Any, X: Any) -> Any:
    """Return a table from which a selector takes columns: of pandas with its types, if `set_output` keeps frames.

    In an array, whatever a library calls missing is NaN or None, and narrow floats are the decimals they stand for.
    """
    import pandas as pd

    X = plain_table(X)
    if not isinstance(X, pd.DataFrame):
        return unmasked(X)
    labels = [str(label) for label in X.columns]
    if _are_integers(X.columns) and labels != [str(place) for place in range(len(labels))]:
        X = X.set_axis(labels, axis=1)  # as in `_checked`
    keeps_frames = _get_output_config("transform", estimator)["dense"] != "default"
    return X if keeps_frames else plain_columns(X)


def _named(cells: Any, labels: Sequence[Any]) -> pd.DataFrame:
    import pandas as pd

    return plain_columns(pd.DataFrame(cells).set_axis([str(label) for label in labels], axis=1))


# Beyond it, different whole numbers may be the same floating-point number.
_LAST_WHOLE = 2.0**53


def as_one_array(cells: pd.DataFrame | NDArray[Any]) -> NDArray[Any] | None:
    """Return a table of numbers (not bools) as one array that tells all of them apart; None for any other table."""
    kinds = {cells.dtype} if isinstance(cells, np.ndarray) else set(cells.dtypes)
    if not all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
        return None
    if len(kinds) == 1:
        return np.asarray(cells)
    numbers = np.asarray(cells, dtype=np.float64)
    is_exact = all(kind.kind != "f" or kind == np.float64 for kind in kinds)
    return numbers if is_exact and not (np.abs(numbers) >= _LAST_WHOLE).any() else None


def checked_table(
    estimator: Any, X: Any, *, reset: bool = False, y: Any = "no_validation"
) -> tuple[Any, Sequence[Any]]:
    """Return the table as an array or a frame of pandas, and the labels of its columns in the fit."""
    import pandas as pd

    X = plain_table(X)
    if isinstance(X, pd.DataFrame):
        labels = [*checked_names(list(map(str, X.columns)), "names of the columns of X", of_values=True)]
        fitted = None if reset else getattr(estimator, "feature_names_in_", None)
        # scikit-learn does not take integers as names; here they are names, except 0, 1, 2, ... in this order.
        given = X.columns.tolist()
        if _are_integers(given) and (labels != [str(i) for i in range(len(labels))] or fitted is not None):
            X = X.set_axis(labels, axis=1)
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)
        if X.shape[1] == 0 or len(X) == 0:
            raise ValueError(
                f"X must have at least one row and one column: found {len(X)} sample(s) and {X.shape[1]} feature(s)"
            )
        cells = X
    else:
        checked = validate_data(estimator, unmasked(X), y, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        cells = checked if isinstance(y, str) and y == "no_validation" else checked[0]
        given = labels = [f"x{place}" for place in range(cells.shape[1])]
    if reset:
        estimator._column_labels = given
        return cells, labels
    return cells, getattr(estimator, "_column_labels", getattr(estimator, "feature_names_in_", labels))


def _are_integers(labels: Iterable[Any]) -> bool:
    return all(isinstance(label, int | np.integer) and not isinstance(label, bool) for label in labels)


def checked_training_rows(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return the table and the labels of training rows; unless `reset`, of further ones."""
    check_no_missing_label(y)
    if reset:
        vars(estimator).pop("_sums", None)  # of earlier rows
    frame = checked_rows(estimator, X, reset=True, y=y) if reset else checked_rows(estimator, X)
    labels = column_or_1d(y, warn=True)
    check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    of_kind = {isinstance(label, str): label for label in labels.tolist()}
    if len(of_kind) > 1:
        raise ValueError(
            f"y must have labels of one kind, got {of_kind[False]!r} and the text {of_kind[True]!r}; write all as text "
            "or none"
        )
    for name in (name for name, kind in frame.dtypes.items() if kind.kind == "O"):
        if all(issubclass(kind, Hashable) for kind in set(map(type, frame[name]))):
            continue
        cell = next(cell for cell in frame[name] if not isinstance(cell, Hashable))
        raise ValueError(
            f"column {name!r} must have numbers, text or truth values, got a {type(cell).__name__} "
            f"{str(cell)[:80]!r}; make columns of what is in it, or drop it"
        )
    check_consistent_length(frame, labels)
    check_classification_targets(labels)
    return frame, labels


# As pandas infers them.
_DATES = ("date", "datetime", "datetime64", "period", "time", "timedelta", "timedelta64")


def check_no_dates(cells: pd.Series[Any], name: str) -> None:
    """Raise a ValueError if a column holds dates, times or durations: each would be a category of its own."""
    import pandas as pd

    if (kind := pd.api.types.infer_dtype(cells)) in _DATES:
        raise ValueError(f"column {name!r} must hold numbers, text or categories, got {kind}; make a number of it")


def column_names(given: Any, names: Sequence[Any], what: str) -> list[str]:
    """Return columns that are given by name or position as names.

    Raises ValueError, with the argument named as `what`, if there is no such column.
    """
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ValueError(f"{what} must be a sequence of names or positions of columns, got {str(given)[:80]!r}")
    find = _finder(names, what)
    return [find(label) for label in given]


def _finder(labels: Sequence[Any], what: str) -> Callable[[Any], str]:
    """Return what finds the name of a column by its name or position; an integer is a name where names are integers.

    It raises ValueError if there is no such column, or the text of a number is the name of another. The names are
    listed once, not for each of thousands of columns.
    """
    names = [str(name) for name in labels]
    known, by_integers = frozenset(names), _are_integers(labels)

    def find(label: Any) -> str:
        text = str(label)
        if _are_integers([label]) and not by_integers:
            if not 0 <= label < len(names):
                raise ValueError(f"{what} must have positions from 0 to {len(names) - 1}, got {int(label)}")
            if text in known and names[label] != text:
                raise ValueError(
                    f"{what} must say which column it means, got {int(label)}: the name of a column is {text!r}, and "
                    f"that at this position is {names[label]!r}; write either name as text"
                )
            return names[int(label)]
        if text not in known:
            shown = names[:8]
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            raise ValueError(f"{what} must name columns among {shown}{more}, got {text[:80]!r}")
        return text

    return find


def cost_by_name(costs: Any, names: Sequence[Any], groups: Mapping[str, Any] | None) -> Any:
    """Return costs with the names of columns, or of groups, as keys; a sequence is left as it is."""
    if hasattr(costs, "to_dict") and costs.ndim == 1:  # a Series, by name
        costs = costs.to_dict()
    if not isinstance(costs, Mapping):
        return costs
    find = _finder(names, "costs")
    return {label if groups and label in groups else find(label): cost for label, cost in costs.items()}


def groups_by_name(groups: Any, names: Sequence[Any]) -> dict[str, list[str]] | None:
    """Return groups with their columns by name."""
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        raise ValueError(
            f"groups must be a mapping from the name of a group to its columns, got {type(groups).__name__}; for "
            "example groups={'blood': ['urea', 'iron']}"
        )
    return {str(name): column_names(members, names, f"groups[{name!r}]") for name, members in groups.items()}


# Columns of raw tables as features of a conformant model: binary, one-hot or real.

Numeric = Literal["gaussian", "cut"]
_MARGIN = 0.05
# Further out, squares would overflow.
_FARTHEST = 1e100
# Text with more values than these holds identifiers, not categories.
_FEW_VALUES, _LARGEST_SHARE = 10, 0.5


Kind = Literal["binary", "scaled", "cut", "categorical", "identifier"]


@dataclass(frozen=True, eq=False)
class Column:
    """How a raw column becomes columns of a logistic regression.

    Attributes
    ----------
    name : str
    kind : {"binary", "scaled", "cut", "categorical", "identifier"}
        Zeros and ones; numbers in units of their deviation, so that the penalty does not depend on their scale; numbers
        that are 1 above a limit; categories (text, codes or anything else that can be compared); text that names rows,
        or no value at all: the column is always 0, as if it were left out.
    categories : tuple of str
        One column for each; a category that no training row has counts as missing.
    mean, scale : float
        Of the numbers; 0 and 1 unless they are scaled.
    limit : float
        A binary or cut column is 1 above it; so are counts above 1, which the training rows did not have.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0
    limit: float = 0.5

    def values_of(self, cells: pd.Series[Any]) -> NDArray[np.float64]:
        """Return raw cells as numbers, places of categories (-1 for none), or zeros for an identifier."""
        if self.kind == "identifier":
            return np.zeros(len(cells))
        if self.kind != "categorical":
            return column_numbers(cells, self.name)
        places = places_among(cells, self.categories)
        if (places < 0).all() and len(known := cells[cells.notna()]) > 1:
            warn_of_unknown(self.name, str(known.iloc[0]), self.categories)
        return places.astype(np.float64)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        if self.kind == "categorical":
            return tuple(f"{self.name}_{category}" for category in self.categories)
        return (f"{self.name} > {self.limit:.6g}" if self.kind == "cut" else self.name,)


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """How the columns of a table become columns of a logistic regression."""

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame, named: set[str], numeric: Numeric, weights: NDArray[np.float64]) -> ColumnEncoder:
        """Learn the kind of each column; those of `named` hold categories, as those of text do.

        Warns of columns without values. Raises ValueError if one mixes text and numbers, or has values of another kind.
        """
        known = _learned_at_once(frame, named, numeric, weights)
        return cls(
            tuple(
                known[name] if name in known else _learned(frame[name], name in named, numeric, weights)
                for name in frame.columns
            )
        )

    def encode(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.float64]:
        """Return the encoded columns, shape (n_rows, n_encoded); NaN where a value is missing.

        Raises ValueError if a column of numbers has another value, or an infinite one.
        """
        kinds, (means, scales, limits) = self._numbers
        values = self._values(rows, kinds["identifier"])
        with np.errstate(over="ignore", invalid="ignore"):
            encoded: NDArray[np.float64] = np.clip((values - means) / scales, -_FARTHEST, _FARTHEST)
        stepped = kinds["binary"] | kinds["cut"]
        if stepped.any():
            known = values[:, stepped]
            encoded[:, stepped] = np.where(np.isnan(known), np.nan, known > limits[stepped])
            if len(other_numbers(values[:, kinds["binary"]])):
                for place in np.flatnonzero(kinds["binary"]).tolist():
                    warn_of_counts(self.columns[place].name, values[:, place])
        encoded[:, kinds["identifier"]] = 0.0
        if not kinds["categorical"].any():
            return encoded
        parts = [
            one_hot(values[:, place], len(column.categories)) if column.kind == "categorical" else encoded[:, [place]]
            for place, column in enumerate(self.columns)
        ]
        return np.hstack(parts)

    @cached_property
    def _numbers(self) -> tuple[dict[str, NDArray[np.bool_]], NDArray[np.float64]]:
        """Which columns are of each kind, and their means, scales and limits, shape (3, n_columns)."""
        kinds = {kind: np.array([column.kind == kind for column in self.columns]) for kind in get_args(Kind)}
        return kinds, np.array([(column.mean, column.scale, column.limit) for column in self.columns]).T

    def _values(self, rows: pd.DataFrame | NDArray[Any], identifiers: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the numbers of a table of numbers at once, those of other tables column by column."""
        if not self._numbers[0]["categorical"].any() and (numbers := as_one_array(rows)) is not None:
            values: NDArray[np.float64] = np.asarray(numbers, dtype=np.float64)
            if not np.isinf(values[:, ~identifiers]).any():
                return values
        import pandas as pd

        frame = pd.DataFrame(rows)
        return np.column_stack([column.values_of(frame.iloc[:, place]) for place, column in enumerate(self.columns)])

    @property
    def layout(self) -> FeatureLayout:
        """The encoded columns of each feature."""
        ends = np.cumsum([len(column.outputs) for column in self.columns]).tolist()
        places = {kind: [i for i, column in enumerate(self.columns) if column.kind == kind] for kind in get_args(Kind)}
        groups = [tuple(range(ends[i] - len(self.columns[i].categories), ends[i])) for i in places["categorical"]]
        return FeatureLayout(ends[-1], tuple(groups), tuple(ends[i] - 1 for i in places["scaled"]))

    @property
    def zeros_and_ones(self) -> NDArray[np.intp]:
        """The encoded columns that held zeros and ones from the start."""
        return np.flatnonzero([column.kind == "binary" for column in self.columns for _ in column.outputs])

    @property
    def outputs(self) -> list[str]:
        """Names of the encoded columns."""
        return [name for column in self.columns for name in column.outputs]


def one_hot(places: NDArray[Any], n_categories: int) -> NDArray[np.float64]:
    """Return a column for each category, shape (n_rows, n_categories); NaN in all of them for the place -1."""
    return np.where(places[:, None] < 0, np.nan, places[:, None] == np.arange(n_categories))


def other_numbers(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers that are neither 0 nor 1 nor missing."""
    others: NDArray[Any] = numbers[(numbers != 0) & (numbers != 1) & ~np.isnan(numbers)]
    return others


def warn_of_counts(name: str, numbers: NDArray[Any]) -> None:
    """Warn if a column of zeros and ones has other numbers."""
    others = other_numbers(numbers)
    if len(others):
        warnings.warn(
            f"column {name!r} has other numbers than the 0 and 1 of the training rows, such as {float(others[0])!r}: "
            "those above 1/2 count as 1, the others as 0",
            UnknownValuesWarning,
            stacklevel=5,
        )


def categorical_names(given: Any, names: Sequence[Any]) -> set[str]:
    """Return the columns that `categorical_features` names by name, position or mask; none for "from_dtype"."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return set()
    try:
        is_flat = not isinstance(given, str) and np.ndim(given) == 1
    except ValueError:  # a ragged list
        is_flat = False
    if not is_flat:
        one_hot = "for columns that are one-hot, give the one before the encoding, or use trimbench.conform"
        raise ValueError(
            "categorical_features must be 'from_dtype', a mask, or a list of names or positions of columns, got "
            f"{repr(given)[:80]}; {f'write [{given!r}] for one column' if np.isscalar(given) else one_hot}"
        )
    listed = list(given)
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features must have one truth value for each of the {len(names)} columns, if it is a "
                f"mask, got {len(listed)}"
            )
        return {str(name) for name, chosen in zip(names, listed, strict=True) if chosen}
    return set(column_names(listed, names, "categorical_features"))


def _learned_at_once(
    frame: pd.DataFrame, named: set[str], numeric: Numeric, weights: NDArray[np.float64]
) -> dict[str, Column]:
    """Return what `_learned` does for columns of complete, finite numbers, in one pass: there may be thousands."""
    found = dict[str, Column]()
    places = np.flatnonzero(are_numbers(frame) & [name not in named for name in frame.columns])
    at_once = max(1, CELLS_AT_ONCE // max(1, len(frame)))
    for start in range(0, len(places), at_once):
        part = places[start : start + at_once]
        numbers = numbers_of(frame, part)
        is_usual = np.isfinite(numbers).all(axis=1)
        numbers, names = numbers[is_usual], [str(frame.columns[place]) for place in part[is_usual]]
        binary = ((numbers == 0.0) | (numbers == 1.0)).all(axis=1)
        means, deviations = _moments(numbers, weights)
        for name, is_binary, *moments in zip(names, binary.tolist(), means.tolist(), deviations.tolist(), strict=True):
            found[name] = _column_of_numbers(name, is_binary, moments[0], moments[1], numeric)
    return found


def _learned(values: pd.Series[Any], is_named: bool, numeric: Numeric, weights: NDArray[np.float64]) -> Column:
    import pandas as pd

    name = str(values.name)
    seen = values.notna().to_numpy()
    known = values[seen]
    if not len(known):
        warnings.warn(f"column {name!r} is left out: it has no value in the training rows", stacklevel=7)
        return Column(name, "identifier")
    if is_named:
        return Column(name, "categorical", value_names(known))
    if isinstance(values.dtype, pd.CategoricalDtype) or _is_text(known, name):
        categories = value_names(known)
        if len(categories) > max(_FEW_VALUES, _LARGEST_SHARE * weights[seen].sum()):
            warnings.warn(
                f"column {name!r} is left out: its {len(categories)} different values in {len(known)} rows are names "
                "of rows, not categories; drop it, or name it in categorical_features",
                IdentifierColumnWarning,
                stacklevel=7,
            )
            return Column(name, "identifier")
        return Column(name, "categorical", categories)
    check_no_dates(known, name)
    numbers = column_numbers(values, name)
    binary = bool(np.isin(numbers[seen], (0.0, 1.0)).all())
    means, deviations = _moments(numbers[None, seen], weights[seen])
    return _column_of_numbers(name, binary, float(means[0]), float(deviations[0]), numeric)


def _column_of_numbers(name: str, binary: bool, mean: float, deviation: float, numeric: Numeric) -> Column:
    if binary:
        return Column(name, "binary")
    if numeric == "cut":
        return Column(name, "cut", limit=mean + _MARGIN * deviation)
    # An infinite scale makes a constant column 0.
    return Column(name, "scaled", mean=mean, scale=deviation if deviation > 0 else np.inf)


def _moments(
    numbers: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of each row, without overflow or underflow of squares.

    The deviation is 0 where numbers are constant up to rounding.
    """
    low, high = numbers.min(axis=1), numbers.max(axis=1)
    exponents = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    units = np.ldexp(numbers, -exponents[:, None])  # without rounding
    total = weights.sum()
    means = (units * weights).sum(axis=1) / total
    deviations = np.sqrt(((units - means[:, None]) ** 2 * weights).sum(axis=1) / total)
    constant = is_constant(low, high)
    return (
        np.where(constant, high, np.ldexp(means, exponents)),
        np.where(constant, 0.0, np.ldexp(deviations, exponents)),
    )


def _is_text(known: pd.Series[Any], name: str) -> bool:
    """Return whether a column without missing values holds text; ValueError if only some of it is."""
    import pandas as pd

    if not (known.dtype == object or pd.api.types.is_string_dtype(known.dtype)):
        return False
    are_text = [issubclass(kind, str) for kind in set(map(type, known))]
    if any(are_text) and not all(are_text):
        other = next(value for value in known if not isinstance(value, str))
        raise ValueError(
            f"column {name!r} must hold either text or numbers, got both, such as {str(other)[:40]!r}; convert one, or "
            "name the column in categorical_features"
        )
    return all(are_text)


# One-hot columns in which an encoder before the estimator turned missing values into zeros.

# A larger share of rows of zeros is rather the first category, which encoders may leave out (drop="first").
_MOST_ZEROS = 0.2
_FEWEST_ROWS = 20
_ADVICE = (
    "if an encoder made zeros of missing values, as pandas.get_dummies does, give the raw column to this classifier, "
    "which takes text and categories, or put NaN into all columns of the group"
)


class MissingAsZerosWarning(UserWarning):
    """Rows have no 1 in columns that look one-hot: missing values may have become zeros."""


def one_hot_groups(
    rows: NDArray[np.float64], binary: NDArray[np.intp], weights: NDArray[np.float64]
) -> list[NDArray[np.intp]]:
    """Return the groups of adjacent binary columns that have one 1 in at least 80 % of the rows, and never two.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        NaN where a value is missing.
    binary : ndarray of int
        Columns of zeros and ones, in order.
    weights : ndarray of shape (n_rows,)
        How often each row counts.
    """
    groups: list[NDArray[np.intp]] = []
    if weights.sum() < _FEWEST_ROWS:
        return groups
    run: list[int] = []
    taken = np.zeros(len(rows), dtype=bool)

    def close() -> None:
        if len(run) > 1 and np.average(taken, weights=weights) >= 1 - _MOST_ZEROS:
            groups.append(np.array(run, dtype=np.intp))

    for column in binary.tolist():
        ones = rows[:, column] == 1
        if run and (column != run[-1] + 1 or (taken & ones).any()):
            close()
            run, taken = [], np.zeros(len(rows), dtype=bool)
        run.append(column)
        taken = taken | ones
    close()
    return groups


def warn_of_zeros(
    rows: NDArray[np.float64], groups: Sequence[NDArray[np.intp]], names: Sequence[str], stacklevel: int
) -> None:
    """Issue a MissingAsZerosWarning for the first group in which some rows have only zeros."""
    for columns in groups:
        n_zero = int((rows[:, columns] == 0).all(axis=1).sum())
        if n_zero:
            shown = [names[column] for column in columns[:4]] + ["..."] * (len(columns) > 4)
            warnings.warn(
                f"{n_zero} of {len(rows)} rows have 0 in all of the columns {', '.join(shown)}, of which the others "
                f"have exactly one 1; {_ADVICE}",
                MissingAsZerosWarning,
                stacklevel=stacklevel + 1,
            )
            return
