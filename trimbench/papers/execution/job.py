"""A job: one call of one function, named by everything that decides its result."""

import functools
import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trimbench.papers.execution.canonical import Json, canonical_json, canonical_text, to_plain
from trimbench.papers.execution.functions import JobFunction, check_function_name, code_version, name_of, resolve
from trimbench.papers.execution.limits import RESULT_BYTES, in_megabytes
from trimbench.papers.execution.results import check_result

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
        not decide the result: the paths are neither in the key nor in a record, and no part of comparisons.
    """

    function: str
    parameters_json: str
    data: tuple[tuple[str, str], ...]
    code: str
    places: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        check_function_name(self.function)
        if not _is_canonical_object(self.parameters_json):
            raise ValueError(
                f"parameters_json must be a JSON object in canonical form, got {self.parameters_json!r}; "
                "use Job.create, which writes it"
            )
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
    ) -> "Job":
        """Make a job, with the present code version, of a job function (or its name) and keyword arguments.

        `data` has the SHA-256 of every data set that the function reads, by name. It enters the key only; the function
        finds the data itself. `places` has the path of each file that a text in the parameters stands for. Raises
        TypeError or ValueError if the function is not a marked top-level function, a parameter is unknown to it,
        missing or has no JSON form, or a hash is malformed.
        """
        name = function if isinstance(function, str) else name_of(function)
        parameters_json = canonical_json(parameters, "parameters")
        _check_signature(name, parameters)
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
    def from_dict(cls, fields: Mapping[str, Any]) -> "Job":
        """Rebuild a job from `to_dict`, whatever the code is now."""
        parameters_json = canonical_json(fields["parameters"], "parameters")
        return cls(fields["function"], parameters_json, tuple(sorted(fields["data"].items())), fields["code"])


def run_job_function(job: Job) -> dict[str, Json]:
    """Call the function of a job, and return its result exactly as it will be read back from the store.

    Raises RuntimeError if the source has changed since the job was made (the result would be stored under the wrong
    key), and TypeError or ValueError if the result is not a mapping that JSON can hold, is too long, or not
    what the function declares.
    """
    function = resolve(job.function)
    if code_version(job.function) != job.code:
        raise RuntimeError(
            f"the source of {job.function!r} is not the one that the job was made with: code must be "
            f"{job.code!r}, got {code_version(job.function)!r}; "
            "start the program again so that jobs and workers agree"
        )
    result = function(**located(job.parameters, dict(job.places)))
    if not isinstance(result, Mapping):
        raise TypeError(f"the result of {job.function!r} must be a mapping, got {result!r}; return a dict")
    plain: dict[str, Json] = to_plain(result, "result")
    check_result(job.function, plain)
    size = len(canonical_text(plain))
    if size > RESULT_BYTES:
        raise ValueError(
            f"the result of {job.function!r} must have at most {in_megabytes(RESULT_BYTES)} as JSON, got "
            f"{in_megabytes(size)}; return less, for example a summary"
        )
    return plain


def located(value: Any, places: Mapping[str, str]) -> Any:
    """Return a copy of a value of JSON with paths for the texts that stand for them."""
    if not places:
        return value
    if isinstance(value, dict):
        return {key: located(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [located(item, places) for item in value]
    return places.get(value, value) if isinstance(value, str) else value


def _is_canonical_object(text: str) -> bool:
    try:
        value = json.loads(text)
        return isinstance(value, dict) and canonical_text(value) == text
    except ValueError:
        return False


def _check_signature(function: str, parameters: Mapping[str, object]) -> None:
    signature = _signature(resolve(function))
    try:
        signature.bind(**parameters)
    except TypeError as error:
        raise TypeError(
            f"parameters must fit {function}{signature}, got {sorted(parameters)!r}: {error}; correct the names"
        ) from error


@functools.cache
def _signature(function: JobFunction) -> inspect.Signature:
    return inspect.signature(function)
