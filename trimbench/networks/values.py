"""Values of variables: their names, tables of them as indices, and distributions over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd


# A list of names is cut in messages, which stay short whatever the input.
_MOST_NAMES = 8
# Whole numbers in a range of this length are looked up in a table, which is faster than hashing them.
_SHORT_RANGE = 256
_CUT_FIRST = (
    "; cut a column of numbers first, where the columns for learning were cut (pd.cut with their bins and labels), or "
    "use trimbench.estimators.TrimmedClassifier, which cuts by itself"
)


def encode_columns(frame: pd.DataFrame, values: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    """Translate a table of value names into value indices, of shape (n_rows, n_variables).

    Raises ValueError if a column is absent or occurs twice, or holds NaN or an unknown value.

    Parameters
    ----------
    frame : DataFrame with (at least) one column for each variable
        Names of columns and values are compared as strings (``str``), numbers and truth values by their value (see
        `state_name`).
    values : mapping from variable to the names of its values
    """
    return encode_compactly(frame, values).astype(np.int64)


def encode_compactly(frame: pd.DataFrame, values: Mapping[str, Sequence[str]]) -> NDArray[Any]:
    """Translate as `encode_columns` does, into the smallest integers that hold the indices, column by column.

    Returns
    -------
    ndarray of uint8, uint16 or int64, shape (n_rows, n_variables), in Fortran order
    """
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
            raise ValueError(f"the table must have exactly one column {name!r}, got {listed(labels)}; {advice}")
        codes[:, i] = _column_codes(frame.iloc[:, place[name]], name, known)
    return codes


def code_type(n_values: int) -> type[np.integer[Any]]:
    """Return the smallest integer type that holds the codes of so many values."""
    return np.uint8 if n_values <= 2**8 else np.uint16 if n_values <= 2**16 else np.int64


def state_name(value: object, known: Collection[str]) -> str:
    """Return which of the known names a value has: its text, or that of the same number or truth value.

    So 1, 1.0 and True all have the name ``"1"``, or ``"1.0"``, or ``"True"``. Returns the text where none is known.
    """
    text = str(value)
    if text in known or not isinstance(value, Real | np.bool_):
        return text
    try:
        number = float(value)
    except OverflowError:
        return text
    others = [str(int(number)), str(number)] if number.is_integer() else [str(number)]
    if number in (0.0, 1.0):
        others.append(str(bool(number)))
    return next((other for other in others if other in known), text)


def listed(names: Sequence[object]) -> str:
    """Return a list of names as text, cut where it is long."""
    shown = [str(name) if len(str(name)) <= 30 else f"{str(name)[:27]}..." for name in names[:_MOST_NAMES]]
    return f"{shown}" if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _column_codes(column: pd.Series[Any], name: str, known: Sequence[str]) -> NDArray[Any]:
    if isinstance(getattr(column, "dtype", None), _categorical_type()):
        places = column.cat.codes.to_numpy()
        distinct = column.cat.categories.tolist()
    elif (small := _small_numbers(column)) is not None:
        places, distinct = small
    else:
        try:
            places, found = column.factorize()
        except TypeError as error:
            raise ValueError(f"column {name!r} must hold single values, got cells that are none: {error}") from error
        distinct = found.tolist()
    missing = int((places < 0).sum())
    if missing:
        raise ValueError(
            f"column {name!r} must have no missing values, got NaN in {missing} rows; "
            "drop those rows or make 'missing' a value of its own"
        )
    index = {value: code for code, value in enumerate(known)}
    texts = [state_name(value, index) for value in distinct]
    if texts == list(known):
        return places
    translated = np.array([index.get(text, -1) for text in texts], dtype=np.int64)
    if (translated < 0).any():
        # Categories that no row has may be unknown.
        present = np.bincount(places, minlength=len(texts)) > 0
        unknown = sorted(
            text for text, code, is_there in zip(texts, translated, present, strict=True) if code < 0 and is_there
        )
        if unknown:
            raise ValueError(
                f"column {name!r} must hold values among {listed(known)}, got {unknown[0][:40]!r}"
                + (_CUT_FIRST if _are_measured(column, len(unknown)) else "")
            )
    return translated[places]


def _are_measured(column: pd.Series[Any], n_unknown: int) -> bool:
    """Return whether a column with unknown values looks like one of measurements."""
    kind = column.dtype.kind
    return kind in "fiu" and (n_unknown > _MOST_NAMES or bool((column % 1 != 0).any()))


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


def _fault(table: NDArray[np.float64], sums: NDArray[np.float64], tolerance: float) -> str:
    """Say why a table holds no distributions."""
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


def checked_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return `names` as a tuple of distinct, non-empty strings.

    Raises ValueError if a name is empty, is not a string or occurs twice, or `names` is one string instead of
    several.
    """
    if isinstance(names, str):
        raise ValueError(f"{what} must be a sequence of strings, got the string {names!r}; put it in a list")
    result = tuple(names)
    for name in result:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{what} must be non-empty strings, got {name!r}; convert them with str()")
    if len(set(result)) != len(result):
        twice = next(name for name, count in Counter(result).items() if count > 1)
        raise ValueError(f"{what} must be distinct, got {twice!r} more than once; rename one of them")
    return result
