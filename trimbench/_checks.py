"""Checks of arguments that the packages of the library share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeGuard

import numpy as np


def check_positive(name: str, value: object, hint: str = "") -> None:
    """Raise a ValueError unless a value is a positive number."""
    if not is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}{hint}")


def check_whole(name: str, value: object, least: int, hint: str = "") -> None:
    """Raise a ValueError unless a value is a whole number that is large enough."""
    if not is_whole(value, least):
        raise ValueError(f"{name} must be a whole number, {least} or more, got {value!r}{hint}")


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Tell whether a value is a whole number that is large enough (not a bool)."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a number (not a bool)."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_one_of(name: str, value: object, allowed: Sequence[str], hint: str = "") -> None:
    """Raise a ValueError unless a value is one of the words that are allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {str(value)[:80]!r}{hint}")
