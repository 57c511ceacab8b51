"""The compiler of kernels, and whether it is worth waiting for."""

from __future__ import annotations

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
    import numba

    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(_F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder in which the machine code can be kept
        return cast(_F, numba.njit(**options)(function))


def is_worth_loading(seconds: float | None) -> bool:
    """Return whether a search of so many seconds (None: no limit) should wait until kernels are loaded."""
    return seconds is None or seconds >= _LOADING_SECONDS or "trimbench.trimming.kernels.split_sums" in sys.modules
