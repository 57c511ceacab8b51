"""Where numbers make a pipeline jump from one value to the next, to the last digit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# Numbers beyond are no data, and steps that scale them would overflow.
_LARGEST = 1e100
# Steps take long for one row and hardly longer for hundreds.
_MOST_ROWS, _MOST_PARTS = 20_000, 256


def jumps(values_at: Callable[[NDArray[np.intp], Vector], NDArray[np.float64]], n_columns: int) -> list[list[float]]:
    """Return the cuts of each of some columns: the largest number before each jump.

    Parameters
    ----------
    values_at : callable
        Takes places of columns and a number for each, both of shape (n_rows,), and returns what the steps make of the
        columns, shape (n_rows, n_values): few different rows, which follow each other as the number grows.
    n_columns : int

    Returns
    -------
    list of n_columns lists of float, ascending
    """
    column = np.arange(n_columns)
    low, high = (np.full(n_columns, rank) for rank in _ranks(np.array([-_LARGEST, _LARGEST])))
    while len(column) and (high - low).max() > 1:
        parts = int(np.clip(_MOST_ROWS // len(column), 2, _MOST_PARTS))
        share, rest = np.divmod((high - low)[:, None], np.uint64(parts))
        steps = np.arange(parts + 1, dtype=np.uint64)
        points = low[:, None] + share * steps + rest * steps // np.uint64(parts)
        made = values_at(np.repeat(column, parts + 1), _numbers(points.ravel())).reshape(*points.shape, -1)
        at, place = np.nonzero((made[:, 1:] != made[:, :-1]).any(axis=2))
        column, low, high = column[at], points[at, place], points[at, place + 1]
    return [_numbers(np.sort(low[column == place])).tolist() for place in range(n_columns)]


_MIDDLE = np.uint64(2**63)


def _ranks(numbers: Vector) -> NDArray[np.uint64]:
    """Return whole numbers in the order of floating-point numbers, neighbours for neighbours."""
    bits = np.abs(numbers).view(np.uint64)
    return np.where(np.signbit(numbers), _MIDDLE - bits, _MIDDLE + bits)


def _numbers(ranks: NDArray[np.uint64]) -> Vector:
    """Return the floating-point numbers of these ranks."""
    bits = np.where(ranks < _MIDDLE, _MIDDLE - ranks, ranks - _MIDDLE)
    return np.where(ranks < _MIDDLE, -bits.view(np.float64), bits.view(np.float64))
