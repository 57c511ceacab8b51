"""The compiler of loops, and whether it is worth waiting for.

Importing numba takes half a second, so a module of compiled loops is imported where it is used.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., object])

# Loading compiled kernels takes about a second of processor time, and compiling them for the first time ten.
_LOADING_SECONDS = 15.0


def compiled(function: _F) -> _F:
    """Compile a function when it is first called, and keep the machine code for the next process.

    The code releases Python's lock, so that threads run at the same time. Floating point errors give inf and NaN, as in
    NumPy.
    """
    return _compiled(function, fastmath=False)


def compiled_sums(function: _F) -> _F:
    """Compile a function whose sums of finite numbers may be added up in any order, several at a time."""
    return _compiled(function, fastmath={"reassoc", "nsz"})


def _compiled(function: _F, *, fastmath: bool | set[str]) -> _F:
    import numba

    compiler = functools.partial(numba.njit, nogil=True, error_model="numpy", fastmath=fastmath)
    try:
        return cast(_F, compiler(cache=True)(function))
    except RuntimeError:  # no folder in which the machine code can be kept
        return cast(_F, compiler()(function))


def is_worth_loading(seconds: float | None, kernel: str) -> bool:
    """Return whether a search of so many seconds (None: no limit) should wait until a kernel is loaded.

    Parameters
    ----------
    kernel : str
        Its name in `trimbench.trimming.kernels`.
    """
    if seconds is None or seconds >= _LOADING_SECONDS:
        return True
    # A kernel is loaded when it is first called, not when it is imported.
    function = getattr(sys.modules.get("trimbench.trimming.kernels"), kernel, None)
    return bool(getattr(function, "signatures", ()))
