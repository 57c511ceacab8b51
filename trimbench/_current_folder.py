"""What the current folder must not decide: which code a child process runs, and how numba is set up.

Somebody may work in a folder that came from somebody else. Python puts the current folder first on the path of ``-c``
and ``-m``, and takes an empty entry of a search path for it; numba reads settings there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_lock = threading.RLock()


def run_python(words: Sequence[str], variables: Mapping[str, str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run this interpreter as `subprocess.run` does, without the current folder on its path.

    It finds every package where this process does, and has more environment variables.
    """
    import subprocess

    path = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(_safe_path())}
    return subprocess.run([sys.executable, "-P", *words], env={**os.environ, **path, **variables}, **options)


def _safe_path() -> list[str]:
    """Return the import path of this process without the current folder.

    It stays where somebody named it, in PYTHONPATH or a ``.pth`` file, and where this package itself is in it.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = [os.path.normpath(os.path.join(here, entry)) for entry in given if entry]
    end = sys.path.index(_STANDARD_LIBRARY) if _STANDARD_LIBRARY in sys.path else len(sys.path)
    if here in (*named, _ROOT):
        end = 0
    absolute = [os.path.join(here, entry) if entry else here for entry in sys.path]
    kept = [entry for place, entry in enumerate(absolute) if place >= end or os.path.normpath(entry) != here]
    return list(filter(None, kept))


def imported(module: str, *, ignoring: str) -> ModuleType:
    """Import a module as if the current folder had no file with this name.

    numba looks there for its settings whenever it is imported, and nothing switches that off.
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
