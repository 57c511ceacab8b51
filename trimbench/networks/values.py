"""Values of variables: their names, tables of them as indices, and distributions over them."""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd


_log = logging.getLogger(__name__)
_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate, which is no character
# A list of names is cut in messages, which stay short whatever the input.
_MOST_NAMES = 8
# Whole numbers in a range of this length are looked up in a table, which is faster than hashing them.
_SHORT_RANGE = 256
_AS_TEXT = "read the file of rows with dtype=str and keep_default_na=False"
_CUT_FIRST = (
    "; cut a column of numbers first, where the columns for learning were cut (pd.cut with their bins and labels), or "
    "use trimbench.estimators.TrimmedClassifier, which cuts by itself"
)


def encode_compactly(frame: Any, values: Mapping[str, Sequence[str]]) -> NDArray[Any]:
    """Translate a table of value names into value indices, in the smallest integers that hold them, column by column.

    Raises ValueError if a column is absent or occurs twice, or holds NaN or an unknown value.

    Parameters
    ----------
    frame : DataFrame with (at least) one column for each variable
        Names of columns and values are compared as strings (``str``), numbers and truth values by their value (see
        `state_name`).
    values : mapping from variable to the names of its values

    Returns
    -------
    ndarray of uint8, uint16 or int64, shape (n_rows, n_variables), in Fortran order
    """
    frame = plain_table(frame)
    if not hasattr(frame, "columns"):
        first = ", ".join(repr(name) for name in list(values)[:3])
        raise ValueError(
            f"the table must be a DataFrame with a column for each feature, got {type(frame).__name__}; "
            f"make it one with pd.DataFrame(array, columns=[{first}, ...])"
        )
    labels = [str(label) for label in frame.columns]
    place = {label: i for i, label in enumerate(labels)}
    most = max((len(known) for known in values.values()), default=1)
    codes = np.empty((len(frame), len(values)), dtype=code_type(most), order="F")
    for i, (name, known) in enumerate(values.items()):
        if name not in place or (len(place) < len(labels) and labels.count(name) != 1):
            advice = "drop all but one" if name in place else "add it, or use a model that does without it"
            raise ValueError(f"the table must have exactly one column {name!r}, got {names_text(labels)}; {advice}")
        codes[:, i] = _column_codes(frame.iloc[:, place[name]], name, known)
    return codes


def code_type(n_values: int) -> type[np.integer[Any]]:
    """Return the smallest integer type that holds the codes of `n_values` values."""
    return np.uint8 if n_values <= 2**8 else np.uint16 if n_values <= 2**16 else np.int64


def state_name(value: object, known: Collection[str]) -> str:
    """Return which of the known names a value has: its text, or that of the same number or truth value.

    So 1, 1.0, True and their texts all have the name ``"1"``, or ``"1.0"``, or ``"True"``. Returns the text where none
    is known.
    """
    text = str(value)
    if text in known:
        return text
    return next((other for other in _same_values(value) if other in known), text)


def _same_values(value: object) -> list[str]:
    """Return the texts of a number or truth value in all types; none for a text that only looks like one."""
    if isinstance(value, str) and value in ("True", "False"):
        number = float(value == "True")
    else:
        try:
            number = float(value) if isinstance(value, str | Real | Decimal | np.bool_) else np.nan
        except (OverflowError, ValueError):
            return []
    texts = [str(int(number))] if number.is_integer() else []
    truth = str(bool(number))
    # pandas reads true and TRUE in a file of rows as bool.
    texts += [str(number), *((truth, truth.lower(), truth.upper()) if number in (0.0, 1.0) else ())]
    # "01" and "1e0" are texts of their own.
    return texts if not isinstance(value, str) or value in texts else []


def names_text(names: Sequence[object]) -> str:
    """Return a list of names as text, cut where it is long."""
    shown = [str(name) if len(str(name)) <= 30 else f"{str(name)[:27]}..." for name in names[:_MOST_NAMES]]
    return f"{shown}" if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _column_codes(column: pd.Series[Any], name: str, known: Sequence[str]) -> NDArray[Any]:
    column = plain_column(column)
    if isinstance(getattr(column, "dtype", None), _categorical_type()):
        places = column.cat.codes.to_numpy()
        distinct = column.cat.categories.tolist()
    elif (small := _small_numbers(column)) is not None:
        places, distinct = small
    else:
        try:
            places, found = column.factorize()
        except TypeError as error:
            raise ValueError(f"column {name!r} must hold single values, got cells that are not: {error}") from error
        distinct = found.tolist()
    missing = int((places < 0).sum())
    if missing:
        raise ValueError(
            f"column {name!r} must have no missing values, got NaN in {missing} rows; "
            "drop those rows or make 'missing' a value of its own"
            + ("" if (lost := _lost_by_readers(known)) is None else f"; {lost!r} is a value: {_AS_TEXT}")
        )
    index = {value: code for code, value in enumerate(known)}
    texts = [state_name(value, index) for value in distinct]
    if texts == list(known):
        return places
    translated = np.array([index.get(text, -1) for text in texts], dtype=np.int64)
    if (translated < 0).any():
        # Categories that no row has may be unknown.
        present = np.bincount(places, minlength=len(texts)) > 0
        triples = zip(texts, translated, present, strict=True)
        unknown = sorted(text for text, code, is_there in triples if code < 0 and is_there)
        if unknown:
            raise ValueError(
                f"column {name!r} must hold values among {names_text(known)}, got {unknown[0][:40]!r}"
                + (_CUT_FIRST if _are_measured(column, len(unknown)) else "")
                + (
                    f"; {_AS_TEXT}"
                    if any(text.lower() in map(str.lower, known) or _is_padded(text, known) for text in unknown)
                    else ""
                )
            )
    return translated[places]


def _lost_by_readers(known: Sequence[str]) -> str | None:
    """Return a value that programs read as missing, if there is one."""
    return next((name for name in known if name.lower() in ("na", "n/a", "nan", "none", "null", "")), None)


def _is_padded(text: str, known: Sequence[str]) -> bool:
    """Tell whether one of the known names is the same number in other digits, as 007 is for 7."""
    with contextlib.suppress(ValueError):
        return any(float(text) == float(name) for name in known)
    return False


def _are_measured(column: pd.Series[Any], n_unknown: int) -> bool:
    """Return whether a column with unknown values looks like measurements."""
    return column.dtype.kind in "fiu" and (n_unknown > _MOST_NAMES or bool((column % 1 != 0).any()))


def _small_numbers(column: pd.Series[Any]) -> tuple[NDArray[Any], list[int]] | None:
    """Return the place of each value in a range of whole numbers, and the range; None if there is no short range."""
    values = column.to_numpy()
    if values.dtype.kind not in "iu" or values.size == 0:
        return None
    low, high = int(values.min()), int(values.max())
    return (values - low, list(range(low, high + 1))) if high - low < _SHORT_RANGE else None


def _categorical_type() -> type:
    import pandas as pd

    return pd.CategoricalDtype


# Tables, columns and cells in NumPy's types, whatever library or type they come in.


def plain_table(X: Any) -> Any:
    """Return a sparse matrix as an array, and a data frame of another library (polars, pyarrow) as one of pandas.

    Missing values become NaN or None. Anything else is returned as it is. ValueError for a lazy frame.
    """
    import pandas as pd

    if hasattr(X, "toarray"):
        return X.toarray()
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "get_column") and hasattr(X, "columns"):  # polars
        return pd.DataFrame({str(name): X.get_column(name).to_numpy() for name in X.columns})
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError(f"X must be a data frame with rows, got a {type(X).__name__}; use X.collect()")
    return X.to_pandas() if hasattr(X, "to_pandas") else X


def names_of(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame; None for anything else, or if they are 0, 1, 2, ...."""
    labels = tuple(getattr(plain_table(X), "columns", ()))
    return tuple(map(str, labels)) if labels and labels != tuple(range(len(labels))) else None


def in_order(X: Any, names: Sequence[str] | None) -> Any:
    """Return a table with columns in the order of the names, if it has names; scikit-learn's error for other names."""
    own = names_of(X)
    if names is None or own is None or own == tuple(names):
        return X
    frame = plain_table(X).set_axis(own, axis=1)
    if sorted(own) != sorted(names):
        from sklearn.base import BaseEstimator
        from sklearn.utils.validation import validate_data

        fitted = BaseEstimator()
        fitted.feature_names_in_ = np.array(names, dtype=object)
        validate_data(fitted, frame, reset=False, skip_check_array=True)
    return frame[list(names)]


def is_plain(kind: object) -> bool:
    """Return whether columns of a type are what `plain_column` would make of them."""
    import pandas as pd

    is_text = isinstance(kind, pd.StringDtype) and kind.na_value is not pd.NA  # whose missing cells are NaN
    is_numpy = isinstance(kind, np.dtype) and kind.kind != "O" and not is_narrow(kind)
    return is_text or isinstance(kind, pd.CategoricalDtype) or is_numpy


def is_narrow(kind: Any) -> bool:
    """Return whether a type, of NumPy or of columns, is one of floats of fewer than 64 bits."""
    return getattr(kind, "numpy_dtype", kind) in (np.dtype(np.float16), np.dtype(np.float32))


def widened(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Return narrow floats as the short decimals that they stand for, if there is one: 0.3, not 0.300000012."""
    wide = numbers.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = 10.0 ** np.clip(np.finfo(numbers.dtype).precision - 1 - np.floor(np.log10(np.abs(wide))), 0, 22)
        short = np.round(wide * scale) / scale
        return np.where(short.astype(numbers.dtype) == numbers, short, wide)


def plain_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of nullable or Arrow's types, or of objects, as numbers, truth values or objects of NumPy.

    Whatever a library calls missing becomes NaN; the column then holds floats or objects. Categories stay as they are.
    """
    import pandas as pd

    if is_plain(column.dtype):
        return column
    if is_narrow(column.dtype):
        kind: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
        numbers = widened(column.to_numpy(dtype=kind, na_value=np.nan))
        return pd.Series(numbers, index=column.index, name=column.name)
    cells = np.asarray(column, dtype=object)
    absent = is_missing(cells)
    known = cells[~absent]
    kinds = {type(cell) for cell in known.tolist()}
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        cells = known.astype(bool) if len(known) == len(cells) else np.where(absent, np.nan, cells)
    elif kinds and all(issubclass(kind, _NUMBERS) and not issubclass(kind, np.timedelta64) for kind in kinds):
        whole = len(known) == len(cells) and all(issubclass(kind, int | np.integer) for kind in kinds)
        with contextlib.suppress(OverflowError):  # numbers that no type of NumPy holds stay objects
            cells = cells.astype(np.int64) if whole else np.where(absent, np.nan, cells).astype(np.float64)
    else:
        cells = np.where(absent, np.nan, cells)
    return pd.Series(cells, index=column.index, name=column.name, dtype=cells.dtype)


_NUMBERS = (Real, Decimal, np.bool_)


def plain_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of plain columns: itself, if it has no others."""
    import pandas as pd

    if all(map(is_plain, frame.dtypes)):
        return frame
    columns = {place: plain_column(frame.iloc[:, place]) for place in range(frame.shape[1])}
    return pd.DataFrame(columns, index=frame.index).set_axis(frame.columns, axis=1)


def is_missing(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells are missing in any library: None, NaN (Decimal's, too), NaT, NA and what NumPy masks."""
    import pandas as pd

    absent: NDArray[np.bool_] = np.asarray(pd.isna(cells), dtype=bool)
    if cells.dtype == object and type(np.ma.masked) in set(map(type, cells.flat)):
        absent |= np.frompyfunc(lambda cell: cell is np.ma.masked, 1, 1)(cells).astype(bool)
    return absent


def unmasked(X: Any) -> Any:
    """Return a masked array with NaN in place of masked numbers, None in place of others; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    of_numbers = X.dtype.kind in "biuf"
    values = np.array(X.data, dtype=np.float64 if of_numbers else object)
    values[np.ma.getmaskarray(X)] = np.nan if of_numbers else None
    return values


def check_no_missing_label(y: Any) -> None:
    """Raise a ValueError if a label is missing; numbers that are not masked are left to scikit-learn's own check."""
    hidden = np.ma.is_masked(y)
    labels = np.asarray(unmasked(y) if hidden else y)
    is_checked = labels.ndim == 1 and (hidden or labels.dtype.kind in "OTmM")
    if is_checked and (n_missing := int(np.sum(is_missing(labels)))):
        raise ValueError(
            f"y must have a label for every row, got none (NaN, None or NA) in {n_missing} of {len(labels)} rows; drop "
            "those rows, or give them a label of their own"
        )


def column_numbers(column: pd.Series[Any], name: str, *, finite: bool = True) -> NDArray[np.float64]:
    """Return a column as an array of numbers, NaN where a value is missing.

    Raises ValueError, with the name of the column and the value, if one is not a number, or infinite and `finite`.
    """
    plain = plain_column(column)
    if isinstance(plain.dtype, np.dtype) and plain.dtype.kind in "biuf":
        numbers = plain.to_numpy(dtype=np.float64)
    else:
        cells = np.asarray(plain, dtype=object)
        numbers = np.full(len(cells), np.nan)
        for place in np.flatnonzero(~is_missing(cells)).tolist():
            cell = cells[place]
            try:
                if not isinstance(cell, str | Real | Decimal) or isinstance(cell, np.timedelta64):
                    raise TypeError
                numbers[place] = float({"True": 1.0, "False": 0.0}.get(str(cell), cell))
            except (TypeError, ValueError, OverflowError) as error:
                raise ValueError(
                    f"column {name[:80]!r} must hold numbers, and NaN where one is missing, got {str(cell)[:80]!r} "
                    f"({type(cell).__name__}); leave it out, or make numbers of it"
                ) from error
    if finite:
        check_finite(numbers, name)
    return numbers


def check_finite(numbers: NDArray[Any], name: str) -> None:
    """Raise a ValueError with the name of the column if a number is infinite."""
    if np.isinf(numbers).any():
        raise ValueError(f"column {name[:80]!r} must be finite, got infinity; mark a missing value with NaN")


def as_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return values as an array of numbers, without copying an array; whatever a library calls missing becomes NaN.

    Raises ValueError if the values are sparse, ragged, or not numbers; the message calls them `name`.
    """
    import pandas as pd

    if hasattr(values, "toarray"):
        raise ValueError(f"{name} must be dense, got a sparse {type(values).__name__}; use {name}.toarray()")
    values = plain_table(unmasked(values))
    if isinstance(values, pd.DataFrame):
        if any(not is_plain(kind) or kind.kind not in "biuf" for kind in values.dtypes):
            columns = [values.iloc[:, place] for place in range(values.shape[1])]
            return np.column_stack([column_numbers(column, str(column.name), finite=False) for column in columns])
    elif isinstance(values, pd.Series):
        values = plain_column(values)
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = np.where(is_missing(array), np.nan, array).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, and NaN where a value is missing, got {error}") from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must hold real numbers, got values of type {array.dtype}; encode them first")
    return array


def is_constant(low: Any, high: Any) -> Any:
    """Return whether values from `low` to `high` differ by no more than rounding."""
    return 0.5 * high - 0.5 * low <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))


_ROUNDING = 2 * float(np.finfo(np.float64).eps)


def value_names(column: pd.Series[Any]) -> tuple[str, ...]:
    """Return the names of the values of a column without missing cells; equal values of different types share a name.

    Numbers come first, in order, then texts in theirs. Whole numbers have no decimal point.
    """
    distinct = np.asarray(column, dtype=object)
    texts, others = (
        [cell for cell in dict.fromkeys(distinct.tolist()) if isinstance(cell, str) == is_text]
        for is_text in (True, False)
    )
    try:
        others.sort()
    except TypeError:  # of several kinds
        others.sort(key=lambda value: (type(value).__name__, str(value)))
    names = dict.fromkeys(cell_text(value) for value in others)
    for text in sorted(texts):
        names.setdefault(state_name(text, names) if others else text)
    return tuple(names)


def cell_text(value: Any) -> str:
    """Return a cell as text; whole numbers of any type are written without a decimal point."""
    is_float = isinstance(value, float | np.floating | Decimal)
    return str(int(value)) if is_float and float(value).is_integer() else str(value)


def places_among(column: pd.Series[Any], names: Sequence[str]) -> NDArray[np.int64]:
    """Return the place of each cell's value among the names (see `state_name`), -1 where it is missing or unknown."""
    import pandas as pd

    cells = np.asarray(plain_column(column), dtype=object)
    places, distinct = pd.factorize(cells)
    index = {name: place for place, name in enumerate(names)}
    of_distinct = np.array([index.get(state_name(value, index), -1) for value in distinct] + [-1], dtype=np.int64)
    return of_distinct[places]


# Checks on probability tables, shared by everything that holds one.

# How far the sum of a row may be from one before it is rejected. Wide enough for parameters that were printed with
# seven digits, far too narrow for a table whose axes were mixed up.
SUM_TOLERANCE = 1e-6


def checked_distribution(
    values: ArrayLike, name: str, *, ndim: int, tolerance: float = SUM_TOLERANCE
) -> NDArray[np.float64]:
    """Return `values` as a read-only table of distributions along the last axis, each normalised.

    A distribution whose sum is 1 up to floating-point rounding is kept bit for bit, so that checking a table twice
    changes nothing.

    Raises ValueError if an entry is not a probability or a distribution does not sum to one.

    Parameters
    ----------
    values : array_like with `ndim` axes
        Probabilities; every slice along the last axis is one distribution.
    name : str
        The name of the table in error messages.
    tolerance : float
        Largest allowed ``|sum - 1|`` of a distribution before normalisation.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} must have no masked entries, got {int(np.ma.getmaskarray(values).sum())}; fill them in first"
        )
    try:
        table = np.array(values, dtype=np.float64)
        may_have_truth = isinstance(values, list) and bool(((table == 0) | (table == 1)).any())
        if may_have_truth and bool in map(type, np.array(values, dtype=object).flat):
            raise TypeError("true and false are no numbers")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of numbers with rows of equal length: {error}") from error
    if table.ndim != ndim or table.size == 0:
        raise ValueError(
            f"{name} must be a non-empty array with {ndim} axes, got shape {table.shape}; "
            "the last axis runs over the values of the variable"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        sums = table.sum(axis=-1, keepdims=True)
        off = np.abs(sums - 1.0)
    worst = off.max()
    if not (worst <= tolerance and table.min() >= 0):
        raise ValueError(f"{name} {_fault(table, sums, tolerance)}")
    # Dividing by a sum can leave a sum that is off by less than one unit of rounding for each term.
    rounding = table.shape[-1] * np.finfo(np.float64).eps
    if worst > rounding:
        table /= np.where(off <= rounding, 1.0, sums)
    table.flags.writeable = False
    return table


def checked_distributions(tables: Sequence[ArrayLike], names: Sequence[str], *, ndim: int) -> list[NDArray[np.float64]]:
    """Return what `checked_distribution` does for each of several tables; arrays of one shape are checked at once."""
    found: dict[int, NDArray[np.float64]] = {}
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, table in enumerate(tables):
        if type(table) is np.ndarray and table.dtype == np.float64 and table.ndim == ndim:
            alike.setdefault(table.shape, []).append(place)
    for places in alike.values():
        with contextlib.suppress(ValueError):  # one by one, the message names the table
            both = checked_distribution(np.stack([tables[place] for place in places]), "", ndim=ndim + 1)
            found.update(zip(places, both, strict=True))
    return [
        found[place] if place in found else checked_distribution(table, name, ndim=ndim)
        for place, (table, name) in enumerate(zip(tables, names, strict=True))
    ]


def _fault(table: NDArray[np.float64], sums: NDArray[np.float64], tolerance: float) -> str:
    """Say why the rows of a table are not distributions."""
    bad = table[~(np.isfinite(table) & (table >= 0))]
    if bad.size:
        return (
            f"must hold probabilities (finite, not negative), got {float(bad[0])!r}; "
            "check the table for missing entries or log-probabilities"
        )
    worst = float(sums.ravel()[np.argmax(np.abs(sums - 1.0))])
    return (
        f"must sum to 1 along the last axis (within {tolerance:g}), got a sum of {worst!r}; "
        "normalise it, or swap its axes if they are (values, classes)"
    )


# Published networks have parameters of few digits: their columns are off by up to 0.01.
_ROUNDING_TOLERANCE = 0.02


def normalised(
    source: str,
    target: str,
    prior: NDArray[np.float64],
    tables: Mapping[str, NDArray[np.float64]],
    names: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `NaiveBayes` for rounded figures; ValueError if they are off by more than rounding.

    `tables` has P(x_i = value | c) of each feature, of shape (n_classes, n_values), `names` the names of the states,
    and `source` says in messages where the figures come from.
    """
    deviations = {name: float(np.abs(one.sum(axis=-1) - 1.0).max()) for name, one in {target: prior, **tables}.items()}
    worst = max(deviations, key=lambda name: deviations[name])
    if not deviations[worst] <= _ROUNDING_TOLERANCE:
        raise ValueError(
            f"{source}: the distributions of {worst!r} must sum to 1 within {_ROUNDING_TOLERANCE}, got a deviation "
            f"of {deviations[worst]:.4g}; are all figures of the same network?"
        )
    _log.info("%s: normalised; distributions were off by up to %.2g", source, deviations[worst])
    return {
        "prior": prior / prior.sum(),
        "likelihoods": [table / table.sum(axis=1, keepdims=True) for table in tables.values()],
        "feature_names": list(tables),
        "class_names": names[target] if names else None,
        "value_names": [names[name] for name in tables] if names else None,
        "class_variable": target,
    }


def checked_names(names: Sequence[str], what: str, *, of_values: bool = False) -> tuple[str, ...]:
    """Return `names` as a tuple of distinct strings; only a value may be called "".

    Raises ValueError if a name is empty, is not a string, has a lone surrogate, which UTF-8 cannot encode, or occurs
    twice, or `names` is one string instead of several.
    """
    if isinstance(names, str):
        raise ValueError(f"{what} must be a sequence of strings, got the string {names!r}; put it in a list")
    result = tuple(names)
    for name in result:
        if not isinstance(name, str) or not (name or of_values):
            raise ValueError(f"{what} must be non-empty strings, got {name!r}; convert them with str()")
        if _HALF.search(name):
            raise ValueError(f"{what} must be text that UTF-8 can encode, got {name[:80]!r}; rename it")
    if len(set(result)) != len(result):
        twice = next(name for name, count in Counter(result).items() if count > 1)
        raise ValueError(f"{what} must be distinct, got {twice[:80]!r} more than once; rename one of them")
    return result
