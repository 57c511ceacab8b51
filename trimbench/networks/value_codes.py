"""Translation of tables of value names into value indices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

IntegerArray = NDArray[np.integer[Any]]
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
