"""Checks on probability tables, shared by everything that holds one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# How far the sum of a row may be from one before it is rejected. Wide enough for parameters that were printed with
# seven digits, far too narrow for a table whose axes were mixed up.
SUM_TOLERANCE = 1e-6


def checked_distribution(
    values: ArrayLike, name: str, *, ndim: int, tolerance: float = SUM_TOLERANCE
) -> NDArray[np.float64]:
    """Return `values` as a read-only table of distributions along the last axis, each normalised.

    A distribution whose sum is 1 up to floating-point rounding is kept bit for bit, so that checking a table twice
    changes nothing.

    Raises ValueError if an entry is not a probability or a distribution does not sum to one.

    Parameters
    ----------
    values : array_like with `ndim` axes
        Probabilities; every slice along the last axis is one distribution.
    name : str
        The name of the table in error messages.
    tolerance : float
        Largest allowed ``|sum - 1|`` of a distribution before normalisation.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} must have no masked entries, got {int(np.ma.getmaskarray(values).sum())}; fill them in first"
        )
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of numbers with rows of equal length: {error}") from error
    if table.ndim != ndim or table.size == 0:
        raise ValueError(
            f"{name} must be a non-empty array with {ndim} axes, got shape {table.shape}; "
            "the last axis runs over the values of the variable"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        sums = table.sum(axis=-1, keepdims=True)
        off = np.abs(sums - 1.0)
    worst = off.max()
    if not (worst <= tolerance and table.min() >= 0):
        raise ValueError(f"{name} {_fault(table, sums, tolerance)}")
    # Dividing by a sum can leave a sum that is off by less than one unit of rounding for each term.
    rounding = table.shape[-1] * np.finfo(np.float64).eps
    if worst > rounding:
        table /= np.where(off <= rounding, 1.0, sums)
    table.flags.writeable = False
    return table


def _fault(table: NDArray[np.float64], sums: NDArray[np.float64], tolerance: float) -> str:
    """Say why a table holds no distributions."""
    bad = table[~(np.isfinite(table) & (table >= 0))]
    if bad.size:
        return (
            f"must hold probabilities (finite, not negative), got {float(bad[0])!r}; "
            "check the table for missing entries or log-probabilities"
        )
    worst = float(sums.ravel()[np.argmax(np.abs(sums - 1.0))])
    return (
        f"must sum to 1 along the last axis (within {tolerance:g}), got a sum of {worst!r}; "
        "normalise it, or swap its axes if they are (values, classes)"
    )


def checked_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return `names` as a tuple of distinct, non-empty strings.

    Raises ValueError if a name is empty, is not a string or occurs twice, or `names` is one string instead of
    several.
    """
    if isinstance(names, str):
        raise ValueError(f"{what} must be a sequence of strings, got the string {names!r}; put it in a list")
    result = tuple(names)
    for name in result:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{what} must be non-empty strings, got {name!r}; convert them with str()")
    if len(set(result)) != len(result):
        twice = next(name for name, count in Counter(result).items() if count > 1)
        raise ValueError(f"{what} must be distinct, got {twice!r} more than once; rename one of them")
    return result
