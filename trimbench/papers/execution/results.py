"""What the results of job functions must look like: names, types and ranges."""

import functools
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trimbench.papers.execution.functions import JobFunction, check_function_name, name_of

# What a row of a table says of its job; no result may say it instead.
ROW_COLUMNS = frozenset({"status", "error", "seconds", "job"})
# The module of a package that declares what the jobs of its other modules return.
_MODULE = "results"
_declared: dict[str, tuple[Mapping[str, "Kind"], ...]] = {}


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
    """Return the kind of a mapping with exactly these names, each with a value of its kind.

    A name with ``*`` stands for all names of that pattern that are not declared themselves.
    """
    words = ", ".join(f"{name}: {kind.words}" for name, kind in kinds.items())
    return Kind(f"a mapping of {words}", lambda value: isinstance(value, Mapping) and not _faults(value, kinds))


NUMBER = number()
# Sums of probabilities exceed one by rounding.
SHARE = number(0, 1 + 1e-9)
PERCENT = number(0, 100 + 1e-9)
POSITIVE = number(0)
COUNT = Kind("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)
TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NOTHING = Kind("null", lambda value: value is None)


def declare_result(function: JobFunction | str, *alternatives: Mapping[str, Kind], **kinds: Kind) -> None:
    """Declare the names and kinds of the values that a job function (or one of this name) returns.

    This stands below the function's definition, or in the module ``results`` of its package, which no code version
    covers: what a result looks like does not decide it. A function that returns one of several mappings declares each.
    A name with ``*`` stands for all names of that pattern that are not declared themselves.
    """
    every = (*alternatives, *((kinds,) if kinds else ()))
    for one in every:
        if taken := ROW_COLUMNS & one.keys():
            raise ValueError(f"a result must not be called {sorted(taken)}, which every row has; rename it")
    name = function if isinstance(function, str) else name_of(function)
    check_function_name(name)
    _declared[name] = every


def declared_results(function: str) -> tuple[Mapping[str, Kind], ...]:
    """Return what a job function, ``"package.module:name"``, declares; nothing if it does not."""
    if function not in _declared:
        _load_declarations(function.partition(":")[0].rpartition(".")[0])
    return _declared.get(function, ())


@functools.cache
def _load_declarations(package: str) -> None:
    if package and importlib.util.find_spec(f"{package}.{_MODULE}"):
        importlib.import_module(f"{package}.{_MODULE}")


def check_result(function: str, result: Mapping[str, object]) -> None:
    """Raise ValueError unless a result is what its function, ``"package.module:name"``, declares."""
    if taken := ROW_COLUMNS & result.keys():
        raise ValueError(f"the result of {function!r} must not set {sorted(taken)}, which every row has; rename it")
    faults = [_faults(result, kinds) for kinds in declared_results(function)]
    if faults and all(faults):
        raise ValueError(f"the result of {function!r} is not what it declares: {min(faults, key=len)[:300]}")


def _faults(result: Mapping[str, object], kinds: Mapping[str, Kind]) -> str:
    """Say what differs from a declaration; empty if nothing does."""
    found = {name: _kind(name, kinds) for name in result}
    missing = sorted(name for name in kinds.keys() - result.keys() if "*" not in name)
    unknown = sorted(name for name, kind in found.items() if kind is None)
    if missing or unknown:
        return f"missing are {missing}, unknown {unknown}"
    wrong = {name: kind.words for name, kind in found.items() if kind is not None and not kind.holds(result[name])}
    return "; ".join(f"{name} must be {words}, got {result[name]!r:.60}" for name, words in wrong.items())


def _kind(name: str, kinds: Mapping[str, Kind]) -> Kind | None:
    """Return the kind of the value of this name, if it is declared."""
    return kinds.get(name) or next((kind for key, kind in kinds.items() if "*" in key and fnmatchcase(name, key)), None)
