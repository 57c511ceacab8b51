"""What the current folder must not decide: which code runs, here and in child processes, and how packages are set up.

Somebody may work in a folder that came from somebody else. Python puts the current folder first on the path of ``-c``,
``-m`` and spawned workers, and takes an empty entry of a search path for it; some packages read settings there. Every
child is started by `run` or `run_python`, or by another package within `starting`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
# Folders with code, settings or a list of fonts, which programs look for in the current folder if the variable has no
# absolute path.
_FOLDERS = ("MPLCONFIGDIR", "NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
_kept_folders = set[str]()
_lock = threading.RLock()


def safe_path() -> list[str]:
    """Return the import path of this process without the current folder.

    It stays where somebody named it, in PYTHONPATH or a ``.pth`` file, and where this package itself is in it.
    """
    here = _here()
    end = sys.path.index(_STANDARD_LIBRARY) if _STANDARD_LIBRARY in sys.path else len(sys.path)
    if here in (*_named(), _ROOT):
        end = 0
    absolute = [os.path.join(here, entry) if entry else here for entry in sys.path]
    kept = [entry for place, entry in enumerate(absolute) if place >= end or os.path.normpath(entry) != here]
    return list(filter(None, kept))


def safe_environment() -> dict[str, str]:
    """Return the environment of this process, changed so that no program takes code from the current folder.

    Python gets a safe path, which it hands on to its own children; PATH and PYTHONPATH lose empty entries, PATH also
    relative ones. A relative entry of PYTHONPATH is somebody's choice, and becomes absolute; so does a folder of
    `keep_folder`.
    """
    environment = os.environ | {"PYTHONSAFEPATH": "1"}
    for name in _kept_folders & environment.keys():
        if environment[name] and not environment[name].startswith("~"):
            environment[name] = os.path.join(_here(), environment[name])
    paths = {
        "PATH": filter(os.path.isabs, environment.get("PATH", "").split(os.pathsep)),
        # A source tree that is not installed is found only because it is the current folder.
        "PYTHONPATH": dict.fromkeys([*([_ROOT] if _here() == _ROOT else []), *_named()]),
    }
    for name, entries in paths.items():
        environment[name] = os.pathsep.join(entries)
    relative = [name for name in _FOLDERS if not os.path.isabs(environment.get(name, ""))]
    empty = [name for name in paths if not environment[name]]
    return {name: value for name, value in environment.items() if name not in (*relative, *empty)}


def keep_folder(variable: str) -> None:
    """Let children find the folder that a variable names, also those of a cluster, which start in another folder."""
    _kept_folders.add(variable)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _named() -> list[str]:
    """Return the folders that PYTHONPATH names."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [os.path.normpath(os.path.join(_here(), entry)) for entry in given if entry]


def _changes() -> dict[str, str | None]:
    """Return the variables that differ in the safe environment, with None for those that it lacks."""
    safe = safe_environment()
    names = safe.keys() | os.environ.keys()
    return {name: safe.get(name) for name in names if safe.get(name) != os.environ.get(name)}


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def leave() -> None:
    """Hold this process to `safe_path` and `safe_environment`, and with it whatever it starts."""
    sys.path[:] = safe_path()
    _set(_changes())


def python(*words: str) -> list[str]:
    """Return a command that runs this interpreter without the current folder on its path."""
    return [sys.executable, "-P", *words]


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a program as `subprocess.run` does, by default in the `safe_environment`."""
    import subprocess

    return subprocess.run(command, **{"env": safe_environment(), **options})


def run_python(words: Sequence[str], variables: Mapping[str, str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run this interpreter with more environment variables; it finds every package where this process does."""
    environment = safe_environment() | {"PYTHONPATH": os.pathsep.join(safe_path()), **variables}
    return run(python(*words), env=environment, **options)


@contextmanager
def starting() -> Iterator[None]:
    """Let other packages start children in a ``with`` block; these inherit the `safe_environment`.

    Meanwhile it is the environment of this whole process, so the block must be short. After `leave`, nothing changes.
    """
    with _lock:
        changes = _changes()
        before = {name: os.environ.get(name) for name in changes}
        _set(changes)
        try:
            yield
        finally:
            _set(before)


def imported(module: str, *, ignoring: str) -> ModuleType:
    """Import a module as if the current folder had no file with this name.

    numba and matplotlib look there for their settings whenever they are imported, and nothing switches that off.
    """
    if module.partition(".")[0] in sys.modules:
        return import_module(module)
    with _lock:
        exists = os.path.exists
        os.path.exists = lambda path: path != ignoring and exists(path)
        try:
            return import_module(module)
        finally:
            os.path.exists = exists
