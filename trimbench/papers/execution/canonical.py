"""Plain values and their one canonical text.

Keys of jobs, seeds and stored results all rest on the same rule: a value is reduced to what JSON can say, and
is written in one way only (sorted keys, no spaces, ASCII, finite numbers).
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

# What JSON can say.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_ALLOWED = (
    "allowed are None, bool, int, finite float, str, and lists or str-keyed mappings of these; "
    "pass a name, a hash or a list of numbers instead"
)


def to_plain(value: Any, name: str) -> Any:
    """Reduce a value to JSON's types.

    Tuples become lists and NumPy scalars become Python numbers, so that a value reads back from a file
    exactly as it was before it was written.

    Parameters
    ----------
    value : object
        What to reduce.
    name : str
        How an error calls the value, for example ``"parameters['threshold']"``.

    Returns
    -------
    None, bool, int, float, str, list or dict
        A copy that shares nothing mutable with `value`.

    Raises
    ------
    TypeError
        If JSON has no such type (a data frame, a path, a set).
    ValueError
        If a number is NaN or infinite.
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar, recognised without importing NumPy
    if value is None or isinstance(value, bool):
        return value
    # int(), float() and str() strip subclasses (enum members, numpy.float64), whose own text may differ.
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}; use None for an undefined one")
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {_plain_key(key, name): to_plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, f"{name}[{position}]") for position, item in enumerate(value)]
    raise TypeError(f"{name} cannot be written as JSON: {_ALLOWED}, got {_shorten(value)}")


def canonical_json(value: Any, name: str) -> str:
    """Write a value in its one canonical form.

    Parameters
    ----------
    value : object
        Anything that `to_plain` accepts.
    name : str
        How an error calls the value.

    Returns
    -------
    str
        JSON with sorted keys and no spaces, in ASCII. The same value always gives the same text; ``1``,
        ``1.0`` and ``True`` are three values.

    Raises
    ------
    TypeError, ValueError
        As `to_plain`.
    """
    return json.dumps(to_plain(value, name), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain_key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys of {name} must be str, got {key!r}; write it as text")
    return str.__str__(key)


def _shorten(value: Any) -> str:
    text = " ".join(repr(value).split())
    shortened = text if len(text) <= 80 else f"{text[:77]}..."
    return f"{shortened} ({type(value).__module__}.{type(value).__qualname__})"
