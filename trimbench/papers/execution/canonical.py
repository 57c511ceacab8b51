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

# What JSON says as it is. Most values are of these types, and a job may have thousands of them: they get no name that
# only an error would show.
_AS_IS = frozenset({bool, int, str, type(None)})
_ALLOWED = (
    "allowed are None, bool, int, finite float, str, and lists or str-keyed mappings of these; "
    "pass a name, a hash or a list of numbers instead"
)


def to_plain(value: object, name: str) -> Any:
    """Copy a value as JSON reads it back: tuples become lists and NumPy scalars become Python numbers.

    Raises TypeError if JSON has no such type (a data frame, a path, a set), and ValueError if a number is NaN or
    infinite. Errors call the value `name`, for example ``"parameters['threshold']"``.
    """
    if type(value) in _AS_IS:
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return to_plain(value.item(), name)  # a NumPy scalar, recognised without importing NumPy
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
        return {
            _plain_key(key, name): item if type(item) in _AS_IS else to_plain(item, f"{name}[{key!r}]")
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if _AS_IS.issuperset(map(type, value)):
            return list(value)
        return [to_plain(item, f"{name}[{position}]") for position, item in enumerate(value)]
    raise TypeError(f"{name} cannot be written as JSON: {_ALLOWED}, got {_shorten(value)}")


def canonical_json(value: object, name: str) -> str:
    """Write a value in its one canonical form, or raise as `to_plain`; ``1``, ``1.0`` and ``True`` are three values."""
    return canonical_text(to_plain(value, name))


def canonical_text(plain: object) -> str:
    """Write a value of which `to_plain` is a copy, such as one that JSON was read from, in its canonical form."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain_key(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys of {name} must be str, got {key!r}; write it as text")
    return str.__str__(key)


def _shorten(value: object) -> str:
    text = " ".join(repr(value).split())
    shortened = text if len(text) <= 80 else f"{text[:77]}..."
    return f"{shortened} ({type(value).__module__}.{type(value).__qualname__})"
