"""The compiler of loops. Importing numba takes half a second: import a module of compiled loops where it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., object])


def compiled_loop(function: _F) -> _F:
    """Compile a function when it is first called, and keep the machine code for the next process.

    Threads run it at the same time.
    """
    import numba

    try:
        return cast(_F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder in which the machine code can be kept
        return cast(_F, numba.njit(nogil=True)(function))
