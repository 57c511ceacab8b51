"""Functions that jobs may call: their mark, their name, and the version of their source."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from trimbench.papers.validation import Json

JobFunction = Callable[..., Mapping[str, Json]]
_F = TypeVar("_F", bound=JobFunction)

_CODE_ATTRIBUTE = "__job_code__"
_FUNCTION_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def job_function(code: Iterable[str]) -> Callable[[_F], _F]:
    """Mark a top-level function as one that jobs can call.

    `code` names the modules and packages whose source decides the result, besides the text of the function itself.
    Helpers in the function's own module count only if that module is named, too.

    >>> @job_function(code=("trimbench.papers.execution",))
    ... def double(x: float) -> dict[str, float]:
    ...     return {"twice": 2 * x}
    """
    if isinstance(code, str):
        raise TypeError(f"code must be a tuple of module names, got {code!r}; write code=({code!r},)")
    modules = tuple(code)
    for module in modules:
        if not isinstance(module, str):
            raise TypeError(f"code must hold names of modules as str, got {module!r}; write its dotted name")

    def mark(function: _F) -> _F:
        setattr(function, _CODE_ATTRIBUTE, modules)
        return function

    return mark


@functools.cache
def code_version(function: str) -> str:
    """Return the version of the source that decides what a job function, ``"package.module:name"``, returns.

    It is the SHA-256 of the text of the function and of every ``.py`` file of the packages that its `job_function` mark
    names, computed once per process: the source on disk may change later, but the imported code does not. Raises as
    `resolve`, and ValueError if a named package has no source.
    """
    target = resolve(function)
    digest = hashlib.sha256()
    _feed(digest, function, inspect.getsource(target).encode())
    for module in sorted(set(getattr(target, _CODE_ATTRIBUTE))):
        for relative_name, path in _source_files(module, function):
            _feed(digest, f"{module}/{relative_name}", path.read_bytes())
    return digest.hexdigest()


def resolve(function: str) -> JobFunction:
    """Find a job function by its name, ``"package.module:name"``.

    Raises TypeError if it is not marked with `job_function`, and ValueError if the name is malformed, or the module or
    the function does not exist.
    """
    check_function_name(function)
    module_name, _, name = function.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"function {function!r} cannot be imported: {error}; check the module's name") from error
    target = getattr(module, name, None)
    if target is None:
        raise ValueError(f"function {function!r} does not exist: module {module_name!r} has no {name!r}")
    if not callable(target) or not hasattr(target, _CODE_ATTRIBUTE):
        raise TypeError(
            f"function {function!r} must be marked as a job function, got {target!r}; "
            "decorate it with @job_function(code=(...)) and name the packages that decide its result"
        )
    found: JobFunction = target
    return found


def name_of(function: JobFunction) -> str:
    """Return the name of a marked top-level function, from which `resolve` finds it."""
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(function))}"
    check_function_name(name)
    if resolve(name) is not function:
        raise ValueError(f"function must be what its name says, but {name!r} is another object; pass the name")
    return name


def check_function_name(function: str) -> None:
    """Raise ValueError unless a name has the form ``"package.module:name"`` and a worker can import it."""
    if not isinstance(function, str) or not _FUNCTION_NAME.fullmatch(function):
        raise ValueError(f"function must be 'package.module:name' of a top-level function, got {function!r}")
    if function.startswith("__main__:"):
        raise ValueError(
            f"function must live in a module that workers can import, got {function!r}; move it out of the script"
        )


def _source_files(module: str, function: str) -> list[tuple[str, Path]]:
    """Return the source files of a module or package: name relative to the package, and path, sorted by name."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    files: list[tuple[str, Path]] = []
    if spec is not None and spec.submodule_search_locations is not None:
        for folder in map(Path, spec.submodule_search_locations):
            files += [(path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py")]
    elif spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        files = [(Path(spec.origin).name, Path(spec.origin))]
    if not files:
        raise ValueError(
            f"code of {function!r} must name modules or packages with Python source, got {module!r}; "
            "correct the name in its @job_function(code=(...))"
        )
    return sorted(files)


def _feed(digest: "hashlib._Hash", name: str, content: bytes) -> None:
    # The lengths keep apart what a plain concatenation would confuse: ("a", "bc") and ("ab", "c").
    digest.update(f"{len(name.encode())} {len(content)} {name} ".encode())
    digest.update(content)
