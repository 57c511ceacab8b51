"""Compilation of loops, and a clock that stands still meanwhile.

Importing numba takes half a second, so a module of compiled loops is imported where it is used.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from trimbench._current_folder import imported

_F = TypeVar("_F", bound=Callable[..., object])


class _Loading:
    """The seconds spent importing, compiling and loading kernels; seconds that overlap in threads count once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._began, self._seconds = 0, 0.0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += time.perf_counter() - self._began

    def clock(self) -> float:
        """Return the seconds of a clock that stands still meanwhile; time limits are measured by it."""
        with self._lock:
            return (self._began if self._depth else time.perf_counter()) - self._seconds


_SETTINGS = ".numba_config.yaml"
_loading = _Loading()
clock = _loading.clock


def compiled(function: _F) -> _F:
    """Compile a function when it is first called, and keep the machine code for the next process.

    The code releases the GIL, so that threads run in parallel. Floating-point errors give inf and NaN, as in NumPy.
    """
    return _compiled(function, fastmath=False)


def compiled_sums(function: _F) -> _F:
    """Compile a function whose sums of finite numbers may be added up in any order, several at a time."""
    return _compiled(function, fastmath={"reassoc", "nsz"})


def _compiled(function: _F, *, fastmath: bool | set[str]) -> _F:
    with _loading:
        numba = _numba()
        _stop_clock_while_compiling()
        function.__qualname__ += _constants(function)
        compiler = functools.partial(numba.njit, nogil=True, error_model="numpy", fastmath=fastmath)
        try:
            with _machine_code_elsewhere(numba.core.config):
                return cast(_F, compiler(cache=True)(function))
        except RuntimeError:  # no folder in which the machine code can be kept
            return cast(_F, compiler()(function))


def _numba() -> Any:
    """Import numba, and let it read no settings in the current folder, neither now nor when it compiles.

    They could name a folder of machine code, which is kept in pickles. If numba was imported before, the settings that
    it read there are dropped.
    """
    numba = imported("numba", ignoring=_SETTINGS)
    config = numba.core.config
    if config._config_fname == _SETTINGS:
        config._config_fname = ""
        config.reload_config()
    return numba


@contextlib.contextmanager
def _machine_code_elsewhere(config: Any) -> Iterator[None]:
    """Keep machine code where numba keeps it by default if NUMBA_CACHE_DIR is relative to the current folder."""
    given = config.CACHE_DIR
    config.CACHE_DIR = given if Path(given).is_absolute() else ""
    try:
        yield
    finally:
        config.CACHE_DIR = given


def _constants(function: Callable[..., object]) -> str:
    """Return a suffix that differs if a constant of the function's module differs.

    Machine code holds constants, and is kept under the name of its function until its own file changes; they may be
    imported from another file.
    """
    known = [item for item in function.__globals__.items() if isinstance(item[1], int | float | tuple)]
    return f"_{zlib.crc32(repr(sorted(known)).encode()):08x}"


@functools.cache
def _stop_clock_while_compiling() -> None:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: object) -> None:
            _loading.__enter__()

        def on_end(self, event: object) -> None:
            _loading.__exit__()

    # numba holds this lock while it compiles a kernel, or loads one that was compiled before.
    event.register("numba:compiler_lock", Listener())  # type: ignore[no-untyped-call]
