"""A job, one call of a function, named by everything that decides its result; seeds, declared results, limits."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import math
import re
import time
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from trimbench.reproduction.execution.code_hash import (
    JobFunction,
    check_function_name,
    code_version,
    job_function,
    name_of,
    resolve,
)
from trimbench.reproduction.messages import reason
from trimbench.reproduction.project import is_trusted
from trimbench.reproduction.settings import Json

if TYPE_CHECKING:
    import numpy as np


_F = TypeVar("_F", bound=JobFunction)
_T = TypeVar("_T")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Job:
    """One call of a job function. Equal jobs have equal results.

    Use `Job.create`, which writes the parameters in canonical form and works out the code version.

    Attributes
    ----------
    function : str
        ``"package.module:name"`` of a function marked with `job_function`.
    parameters_json : str
        Its keyword arguments as canonical JSON.
    data : tuple of (str, str)
        Name and SHA-256 of every data set that the function reads, sorted by name.
    code : str
        Version of the source that decides the result, from `code_version`.
    places : tuple of (str, str)
        Texts in the parameters that stand for files, and the paths of these files on this machine. Where a file is does
        not affect the result, so the paths are neither in the key nor in a record, and are not compared.
    """

    function: str
    parameters_json: str
    data: tuple[tuple[str, str], ...]
    code: str
    places: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        check_function_name(self.function)
        names = [name for name, _ in self.data]
        if names != sorted(set(names)):
            raise ValueError(f"data must be sorted by name without repetition, got {names!r}; use Job.create")
        for name, sha256 in self.data:
            if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
                raise ValueError(
                    f"data[{name!r}] must be a SHA-256 in 64 lower-case hexadecimal digits, got {sha256!r}; "
                    "pass hashlib.sha256(...).hexdigest() of the data"
                )

    @classmethod
    def create(
        cls,
        function: str | JobFunction,
        parameters: Mapping[str, object],
        data: Mapping[str, str] | None = None,
        places: Mapping[str, str] | None = None,
    ) -> Job:
        """Make a job from a job function (or its name) and keyword arguments, with the present version of the code.

        `data` has the SHA-256 of every data set that the function reads, by name. It enters the key only; the function
        finds the data itself. `places` has the path of each file that a text in the parameters stands for. Raises
        TypeError or ValueError if the function is not a marked top-level function, a parameter is unknown to it,
        missing or has no JSON form, or a hash is malformed.
        """
        name = function if isinstance(function, str) else name_of(function)
        parameters_json = canonical_json(parameters, "parameters")
        signature = _signature(resolve(name))
        try:
            signature.bind(**parameters)
        except TypeError as error:
            raise TypeError(
                f"parameters must fit {name}{signature}, got {sorted(parameters)!r}: {error}; correct the names"
            ) from error
        hashes, paths = (tuple(sorted((pairs or {}).items())) for pairs in (data, places))
        return cls(name, parameters_json, hashes, code_version(name), paths)

    @property
    def parameters(self) -> dict[str, Json]:
        """Keyword arguments of the call, decoded anew at every access."""
        decoded: dict[str, Json] = json.loads(self.parameters_json)
        return decoded

    @functools.cached_property
    def key(self) -> str:
        """SHA-256 (64 hexadecimal digits) of the canonical JSON of all fields but `places`."""
        head = canonical_json({"code": self.code, "data": dict(self.data), "function": self.function}, "job")
        # The parameters, last in the order of the alphabet, are canonical already.
        return hashlib.sha256(f'{head[:-1]},"parameters":{self.parameters_json}}}'.encode()).hexdigest()

    def to_dict(self) -> dict[str, Json]:
        """Return the fields as JSON values, with the parameters decoded and without `places`."""
        return {"function": self.function, "parameters": self.parameters, "data": dict(self.data), "code": self.code}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Job:
        """Rebuild a job from `to_dict`, whatever the code is now."""
        parameters_json = canonical_json(fields["parameters"], "parameters")
        return cls(fields["function"], parameters_json, tuple(sorted(fields["data"].items())), fields["code"])


def run_job_function(job: Job) -> dict[str, Json]:
    """Call the function of a job, and return its result exactly as it will be read back from the store.

    Raises ImportError if the source has changed since the job was made (the result would be stored under the wrong
    key), and TypeError or ValueError if the result is not a mapping that JSON can hold, is too long, or is not what the
    function declares.
    """
    function = resolve(job.function)
    if code_version(job.function) != job.code:
        raise ImportError(
            f"the source of {job.function!r} is not the one that the job was made with: code must be "
            f"{job.code!r}, got {code_version(job.function)!r}; "
            "start the program again so that jobs and workers agree"
        )
    result = function(**arguments_of(job))
    if not isinstance(result, Mapping):
        raise TypeError(f"the result of {job.function!r} must be a mapping, got {result!r}; return a dict")
    plain: dict[str, Json] = to_plain(result, "result")
    check_result(job.function, plain)
    check_size(job.function, plain)
    return plain


def arguments_of(job: Job) -> dict[str, Any]:
    """Return the arguments for the function of a job: its parameters, as dataclasses where it annotates them so."""
    kinds = _annotations(resolve(job.function))
    given = located(job.parameters, dict(job.places))
    return {name: _built(kinds.get(name), value) for name, value in given.items()}


@functools.cache
def _annotations(kind: Any) -> dict[str, Any]:
    owners = reversed(kind.__mro__) if isinstance(kind, type) else (kind,)
    return {name: found for one in owners for name, found in inspect.get_annotations(one, eval_str=True).items()}


def _built(kind: Any, value: Any) -> Any:
    """Return an object of a dataclass, or of the one in a union that has these fields; any other value as it is."""
    if isinstance(value, Mapping):
        for one in (kind, *typing.get_args(kind)):
            if (
                dataclasses.is_dataclass(one)
                and isinstance(one, type)
                and value.keys() <= (kinds := _annotations(one)).keys()
            ):
                return one(**{name: _built(kinds[name], item) for name, item in value.items()})
    return value


def check_size(function: str, plain: Mapping[str, Json]) -> None:
    """Raise ValueError if a result, as `to_plain` copied it, is too long, or has values that no table can hold."""
    try:
        text = json.dumps(plain, ensure_ascii=False)
        size = len(text.encode())
        json.loads(text, parse_int=_checked_int)
    except ValueError as error:
        raise ValueError(
            f"the result of {function!r} must have whole numbers of at most 64 bits, and text without lone "
            f"surrogates: {reason(error)}; return a float, or a text"
        ) from error
    if size > RESULT_BYTES:
        raise ValueError(
            f"the result of {function!r} must have at most {in_megabytes(RESULT_BYTES)} as JSON, got "
            f"{in_megabytes(size)}; return less, for example a summary"
        )


def _checked_int(text: str) -> int:
    if not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"got {text[:40]}")
    return 0


def located(value: Any, places: Mapping[str, str]) -> Any:
    """Return a copy of a JSON value in which texts that stand for files are replaced by the paths of these."""
    if not places:
        return value
    if isinstance(value, dict):
        return {key: located(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [located(item, places) for item in value]
    return places.get(value, value) if isinstance(value, str) else value


_signature = functools.cache(inspect.signature)


# Seeds from named axes, so that what must share randomness shares it and the rest differs.

Axis = str | int | float | bool | None


def seed_for(**axes: Axis) -> int:
    """Return a seed that depends on the named axes and on nothing else, on every machine.

    Parameters
    ----------
    **axes : str, int, float, bool or None
        What is drawn, by name. The order does not matter; the types do: ``1``, ``1.0`` and ``True`` are three values.

    Returns
    -------
    int
        In [0, 2**63).

    Raises
    ------
    TypeError
        If there is no axis, or one has another type.
    ValueError
        If an axis is NaN or infinite.

    Examples
    --------
    >>> seed_for(dataset="vote", repetition=3) == seed_for(repetition=3, dataset="vote")
    True
    """
    if not axes:
        raise TypeError("seed_for needs at least one named axis, got none; name what the randomness is for")
    for name, value in axes.items():
        if isinstance(value, list | tuple | dict):
            raise TypeError(
                f"axis {name!r} must be str, int, float, bool or None, got {value!r}; use one axis per value"
            )
    digest = hashlib.sha256(canonical_json(axes, "axes").encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator_for(**axes: Axis) -> np.random.Generator:
    """Return a new random generator for the named axes, at the start of its stream."""
    import numpy as np

    # PCG64 is named here because NumPy may change what ``default_rng`` means.
    return np.random.Generator(np.random.PCG64(seed_for(**axes)))


def timed(call: Callable[[], _T], clock: Callable[[], float] = time.perf_counter) -> tuple[_T, float]:
    """Return the result of a call, and the seconds that it took."""
    start = clock()
    found = call()
    return found, clock() - start


def timed_warm(call: Callable[[], _T]) -> tuple[_T, float]:
    """Return the result of a call, and the seconds of its second run: the first may load or compile kernels."""
    call()
    return timed(call)


# What the results of job functions must look like: names, types and ranges.

# Columns in which a table has something about each job; no result may use these names.
ROW_COLUMNS = frozenset({"status", "error", "seconds", "job"})
_declared: dict[str, tuple[Mapping[str, Kind], ...]] = {}


@dataclass(frozen=True)
class Kind:
    """What a value of a result must be, in words and as a test."""

    words: str
    holds: Callable[[object], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(f"{self.words} or {other.words}", lambda value: self.holds(value) or other.holds(value))

    def when(self, words: str, condition: Callable[[Any], bool]) -> Kind:
        """Return the kind of those values that also meet a condition."""
        return Kind(words, lambda value: self.holds(value) and condition(value))


def number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """Return the kind of a number in a range."""
    inside = "" if math.isinf(low) and math.isinf(high) else f" in {low:g}..{high:g}"
    return Kind(f"a number{inside}", lambda value: type(value) in (int, float) and low <= value <= high)  # type: ignore[operator]


def list_of(kind: Kind) -> Kind:
    """Return the kind of a list with values of one kind."""
    return Kind(f"a list, each {kind.words}", lambda value: isinstance(value, list) and all(map(kind.holds, value)))


def fields(**kinds: Kind) -> Kind:
    """Return the kind of a mapping with exactly these names, each with a value of its kind.

    A name with ``*`` stands for all names of that pattern that are not declared themselves.
    """
    words = ", ".join(f"{name}: {kind.words}" for name, kind in kinds.items())
    return Kind(f"a mapping of {words}", lambda value: isinstance(value, Mapping) and not faults(value, kinds))


NUMBER = number()
# Sums of probabilities exceed one by rounding.
SHARE = number(0, 1 + 1e-9)
PERCENT = number(0, 100 + 1e-9)
POSITIVE = number(0)
COUNT = Kind("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)
TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NOTHING = Kind("null", lambda value: value is None)


def job(*alternatives: Mapping[str, Kind], **kinds: Kind) -> Callable[[_F], _F]:
    """Mark a top-level function as one that jobs can call, and declare what it returns.

    A declaration does not affect the result, so code versions leave it out. For a parameter that is annotated as a
    dataclass, the function gets an object of it, built from the job's values.

    Parameters
    ----------
    *alternatives : mapping from name to kind
        For a function that returns one of several mappings: the names and kinds of each.
    **kinds : kind
        What the entries of the returned mapping are: ``NUMBER``, ``SHARE``, ``COUNT`` or ``TEXT``. A name with ``*``
        stands for all names of that pattern that are not declared themselves.

    Returns
    -------
    callable
        The decorator, which returns the function itself. The function is pure: its result depends on its arguments
        alone. A result of another kind fails its job.

    Raises
    ------
    ValueError
        If an entry has the name of a column that every row has, such as ``status``.

    Examples
    --------
    >>> @job(twice=NUMBER)
    ... def double(x: float) -> dict[str, float]:
    ...     return {"twice": 2 * x}
    """

    def mark(function: _F) -> _F:
        declare_result(function, *alternatives, **kinds)
        return job_function(function)

    return mark


def declare_result(function: JobFunction | str, *alternatives: Mapping[str, Kind], **kinds: Kind) -> None:
    """Declare what a job function (or the one of this name) returns, as `job` does."""
    every = (*alternatives, *((kinds,) if kinds else ()))
    for one in every:
        if taken := ROW_COLUMNS & one.keys():
            raise ValueError(f"a result must not be called {sorted(taken)}, which every row has; rename it")
    _declared[function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"] = every


def declared_results(function: str) -> tuple[Mapping[str, Kind], ...]:
    """Return what a job function, ``"package.module:name"``, declares; empty if it declares nothing."""
    module = function.partition(":")[0]
    if function not in _declared and is_trusted(module):  # a name in a record must not run code of others
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    return _declared.get(function, ())


def check_result(function: str, result: Mapping[str, object]) -> None:
    """Raise ValueError unless a result is what its function, ``"package.module:name"``, declares."""
    if taken := ROW_COLUMNS & result.keys():
        raise ValueError(f"the result of {function!r} must not set {sorted(taken)}, which every row has; rename it")
    wrong = [faults(result, kinds) for kinds in declared_results(function)]
    if wrong and all(wrong):
        raise ValueError(f"the result of {function!r} is not what it declares: {min(wrong, key=len)[:300]}")


def faults(result: Mapping[str, object], kinds: Mapping[str, Kind]) -> str:
    """Say what differs from a declaration; empty if nothing does."""
    patterns = [(key, kind) for key, kind in kinds.items() if "*" in key]
    found = {
        name: kinds.get(name) or next((kind for key, kind in patterns if fnmatchcase(name, key)), None)
        for name in result
    }
    missing = sorted(name for name in kinds.keys() - result.keys() if "*" not in name)
    unknown = sorted(name for name, kind in found.items() if kind is None)
    if missing or unknown:
        return f"missing are {missing}, unknown {unknown}"
    wrong = {name: kind.words for name, kind in found.items() if kind is not None and not kind.holds(result[name])}
    return "; ".join(f"{name} must be {words}, got {result[name]!r:.60}" for name, words in wrong.items())


# Plain values and their one canonical text.

# Types that JSON holds as they are. Most values are of these, and a job may have thousands of them, so no name is made
# for them that only an error would show.
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
    return json.dumps(to_plain(value, name), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain_key(key: object, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys of {name} must be str, got {key!r}; write it as text")
    return str.__str__(key)


def _shorten(value: object) -> str:
    text = " ".join(repr(value).split())
    shortened = text if len(text) <= 80 else f"{text[:77]}..."
    return f"{shortened} ({type(value).__module__}.{type(value).__qualname__})"


# What a job may use: seconds, memory, and room for what it writes and returns.

# The first and last half of a longer log are kept; a longer result is an error.
LOG_BYTES, RESULT_BYTES = 10_000_000, 64_000_000
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_SIZE = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})", re.ASCII)


class JobLimits(NamedTuple):
    """The seconds and the bytes of memory that one job may take; None sets no limit."""

    seconds: float | None = None
    memory: int | None = None


def size_in_bytes(text: str) -> int:
    """Return the bytes of a size such as ``"4GB"`` (a power of ten) or ``"4GiB"`` (of two); ValueError for another."""
    found = _SIZE.fullmatch(text)
    size = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if size < 1:
        raise ValueError(f"memory must be a size such as 4GB, 500MB or 2GiB, or null, got {text!r}; null sets no limit")
    return size


def in_megabytes(size: float) -> str:
    """Return a number of bytes as text, in MB."""
    return f"{size / 1e6:,.0f} MB"
