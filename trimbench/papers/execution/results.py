"""What the results of job functions must look like: names, types and ranges."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trimbench.papers.execution.functions import JobFunction, name_of, resolve

# What a row of a table says of its job; no result may say it instead.
ROW_COLUMNS = frozenset({"status", "error", "seconds", "job"})
_DECLARED = "__job_result__"


@dataclass(frozen=True)
class Kind:
    """What a value of a result must be, in words and as a test."""

    words: str
    holds: Callable[[object], bool]

    def __or__(self, other: "Kind") -> "Kind":
        return Kind(f"{self.words} or {other.words}", lambda value: self.holds(value) or other.holds(value))


def number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """Return the kind of a number in a range."""
    inside = "" if math.isinf(low) and math.isinf(high) else f" in {low:g}..{high:g}"
    return Kind(f"a number{inside}", lambda value: type(value) in (int, float) and low <= value <= high)  # type: ignore[operator]


def listed(kind: Kind) -> Kind:
    """Return the kind of a list with values of one kind."""
    return Kind(f"a list, each {kind.words}", lambda value: isinstance(value, list) and all(map(kind.holds, value)))


def fields(**kinds: Kind) -> Kind:
    """Return the kind of a mapping with exactly these names, each with a value of its kind."""
    words = ", ".join(f"{name}: {kind.words}" for name, kind in kinds.items())
    return Kind(f"a mapping of {words}", lambda value: isinstance(value, Mapping) and not _faults(value, kinds))


NUMBER = number()
# Sums of probabilities exceed one by rounding.
SHARE = number(0, 1 + 1e-9)
POSITIVE = number(0)
COUNT = Kind("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)
TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NOTHING = Kind("null", lambda value: value is None)


def declare_result(function: JobFunction, *alternatives: Mapping[str, Kind], **kinds: Kind) -> None:
    """Declare the names and kinds of the values that a job function returns, below its definition.

    What a result looks like does not decide it: the declaration is no part of the code version. A function that returns
    one of several mappings declares each.
    """
    for one in (*alternatives, *((kinds,) if kinds else ())):
        if taken := ROW_COLUMNS & one.keys():
            raise ValueError(f"a result must not be called {sorted(taken)}, which every row has; rename it")
    setattr(resolve(name_of(function)), _DECLARED, (*alternatives, *((kinds,) if kinds else ())))


def check_result(function: str, result: Mapping[str, object]) -> None:
    """Raise ValueError unless a result is what its function, ``"package.module:name"``, declares."""
    if taken := ROW_COLUMNS & result.keys():
        raise ValueError(f"the result of {function!r} must not set {sorted(taken)}, which every row has; rename it")
    declared = getattr(resolve(function), _DECLARED, ())
    faults = [_faults(result, kinds) for kinds in declared]
    if faults and all(faults):
        raise ValueError(f"the result of {function!r} is not what it declares: {min(faults, key=len)[:300]}")


def _faults(result: Mapping[str, object], kinds: Mapping[str, Kind]) -> str:
    """Say what differs from a declaration; empty if nothing does."""
    if result.keys() != kinds.keys():
        return f"missing are {sorted(kinds.keys() - result.keys())}, unknown {sorted(result.keys() - kinds.keys())}"
    wrong = [name for name, kind in kinds.items() if not kind.holds(result[name])]
    return "; ".join(f"{name} must be {kinds[name].words}, got {result[name]!r:.60}" for name in wrong)
