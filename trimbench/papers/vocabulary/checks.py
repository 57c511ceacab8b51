"""Types of settings: what a value must be, said once for all experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator

from trimbench.papers.validation import brief, unknown

T = TypeVar("T")


def must(words: str, holds: Callable[[Any], object]) -> AfterValidator:
    """Return a constraint for an annotated type; the message for another value says what it must be, in `words`."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(f"must be {words}, got {brief(value)}")
        return value

    return AfterValidator(check)


def at_least(least: int) -> AfterValidator:
    """Return the constraint of a number that is not below another."""
    return must(f"{least} or more", lambda value: value >= least)


def one_of(names: Mapping[str, object]) -> AfterValidator:
    """Return the constraint of a name that a table of methods must have."""

    def check(value: str) -> str:
        if value not in names:
            text = str(unknown("it", list(names), value))
            raise ValueError(text.removeprefix("it "))
        return value

    return AfterValidator(check)


def _is_axis(values: Sequence[object]) -> bool:
    return bool(values) and all(value not in values[:place] for place, value in enumerate(values))


Axis = Annotated[list[T], must("a list of at least one value, each once", _is_axis)]
Count = Annotated[int, at_least(1)]
Natural = Annotated[int, at_least(0)]
Share = Annotated[float, must("strictly between 0 and 1", lambda value: 0 < value < 1)]
Threshold = Annotated[float, must("a probability in [0, 1]", lambda value: 0 <= value <= 1)]
Positive = Annotated[float, must("a positive number", lambda value: 0 < value < math.inf)]
NotNegative = Annotated[float, must("a number >= 0", lambda value: 0 <= value < math.inf)]


def check_axis(name: str, values: Sequence[object]) -> None:
    """Raise a ValueError unless a list can be an axis of the grid: it has a value, and none twice."""
    if not _is_axis(values):
        raise ValueError(f"{name} must be a list of at least one value, each once, got {list(values)}")


def check_names(key: str, names: Sequence[str], known: Mapping[str, object], group: str, entries: str) -> None:
    """Raise ValueError if a name in the setting `key` is not in the `group` of settings, with these entries each."""
    for name in names:
        if name not in known:
            raise ValueError(
                f"{key} must be among the names in {group}, {list(known)}, got {name!r}; define it with "
                f"+{group}.{name}={{{entries}}}"
            )
