"""Sums over rows that are the same, to the last digits, in whatever order and parts the rows are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector

# Sums that run side by side, so that none waits for the one before it.
_LANES = 16
# The largest power of two that is a float, and the inverse of one.
_LARGEST_POWER = 1022


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the sum of two numbers or arrays, and its rounding error, which is a number too (Knuth)."""
    total = a + b
    there = total - a
    return total, (a - (total - there)) + (b - there)


class ExactSums:
    """Sums of arrays of floats whose rounding errors are added apart: as good as twice as many digits."""

    def __init__(self) -> None:
        self._sums: list[Any] = []
        self._errors: list[Any] = []

    def add(self, *arrays: Any) -> None:
        """Add an array to each of the sums."""
        if not self._sums:
            self._sums, self._errors = list(arrays), [0.0 * one for one in arrays]
            return
        for place, one in enumerate(arrays):
            self._sums[place], error = two_sum(self._sums[place], one)
            self._errors[place] = self._errors[place] + error

    @property
    def totals(self) -> list[Any]:
        """The sums."""
        return [total + error for total, error in zip(self._sums, self._errors, strict=True)]


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """How many values columns have, their sums and those of their squares: ``a + b`` are those of the rows of both.

    Each sum is a pair of floats, the second the rounding error of the first, so that means and variances have all
    their digits though they come from one pass, and do not depend on the order of the rows. Values are summed in a
    unit, a power of two, in which no square overflows.

    Attributes
    ----------
    weight, first, second : ndarray of shape (2, n_columns)
        Sums of the weights of observed values, of these values, and of their squares.
    exponents : ndarray of int, shape (n_columns,)
        The unit of each column is two to this power.
    low, high : ndarray of shape (n_columns,)
        Range of the observed values; infinite where there is none.
    """

    weight: Matrix
    first: Matrix
    second: Matrix
    exponents: NDArray[np.int64]
    low: Vector
    high: Vector

    @classmethod
    def of(cls, columns: Sequence[NDArray[Any]], weights: Vector | None = None) -> ColumnSums:
        """Return the sums of some columns of the same length, NaN where a value is missing, and of none infinite."""
        from trimbench.networks.kernels import sums_of_pairs

        low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
        exponents, pairs = np.zeros(len(columns), dtype=np.int64), np.zeros((3, 2, len(columns)))
        of_rows = _in_lanes(np.ones(len(columns[0])) if weights is None else weights) if columns else np.empty((0, 1))
        for place, column in enumerate(columns):
            numbers = np.ascontiguousarray(column, dtype=np.float64)
            ends = [float(one.reduce(numbers)) for one in (np.fmin, np.fmax)] if len(numbers) else [np.nan]
            if np.isnan(ends[0]):
                continue
            low[place], high[place] = ends
            exponents[place] = min(max(np.frexp(max(-ends[0], ends[1]))[1], -_LARGEST_POWER), _LARGEST_POWER)
            unit = float(np.ldexp(1.0, -exponents[place]))
            pairs[:, :, place] = sums_of_pairs(_in_lanes(numbers), of_rows, unit)
        return cls(pairs[0], pairs[1], pairs[2], exponents, low, high)

    @classmethod
    def of_zeros_and_ones(cls, n_zeros: Vector, n_ones: Vector) -> ColumnSums:
        """Return the sums of columns of so many zeros and ones each."""
        sums = np.zeros((3, 2, len(n_ones)))
        sums[:, 0] = n_zeros + n_ones, n_ones / 2, n_ones / 4  # in the unit of the number 1, which is 2
        low = np.where(n_zeros > 0, 0.0, np.where(n_ones > 0, 1.0, np.inf))
        high = np.where(n_ones > 0, 1.0, np.where(n_zeros > 0, 0.0, -np.inf))
        return cls(sums[0], sums[1], sums[2], np.ones(len(n_ones), dtype=np.int64), low, high)

    def beside(self, places: Sequence[int], other: ColumnSums, others: Sequence[int]) -> ColumnSums:
        """Return the sums of these columns and others of the same rows, at these places."""
        order = np.argsort([*places, *others])
        pairs: Any = ([getattr(one, name.name) for one in (self, other)] for name in fields(self))
        return ColumnSums(*(np.concatenate(pair, axis=-1)[..., order] for pair in pairs))

    def __add__(self, other: ColumnSums) -> ColumnSums:
        exponents = np.where(self.weight[0] > 0, self.exponents, other.exponents)
        exponents = np.where(other.weight[0] > 0, np.maximum(exponents, other.exponents), exponents)
        mine, its = self._in_units(exponents), other._in_units(exponents)
        weight, first, second = (_added(one, another) for one, another in zip(mine, its, strict=True))
        return ColumnSums(
            weight, first, second, exponents, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )

    def _in_units(self, exponents: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
        moved = self.exponents - exponents
        return self.weight, np.ldexp(self.first, moved), np.ldexp(self.second, 2 * moved)

    @property
    def counts(self) -> Vector:
        """Number (or total weight) of the observed values of each column."""
        return np.asarray(self.weight.sum(axis=0))

    @property
    def means(self) -> Vector:
        """Mean of each column; NaN without values."""
        return self.means_from(np.zeros(len(self.low)))

    def means_from(self, origins: Vector) -> Vector:
        """Return the distance of each mean from an origin, with all digits though the two are close."""
        with np.errstate(invalid="ignore"):
            mean, rest = np.ldexp(_divided(self.first, self.weight), self.exponents)
        return np.asarray((mean - origins) + rest)

    @property
    def squares(self) -> Vector:
        """Sum of the squared distances from the mean of each column, in its unit; 0 for one value."""
        with np.errstate(invalid="ignore"):
            mean = _divided(self.first, self.weight)
        spread = _added(self.second, -_product(mean, self.first))[0]
        return np.where(self.low < self.high, np.maximum(spread, 0.0), 0.0)

    @property
    def variances(self) -> Vector:
        """Variance of each column, divided by the weight of its values; infinite if no float can hold it."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ldexp(self.squares / self.counts, 2 * self.exponents)


# Arithmetic of pairs of floats, of shape (2, n): a number and its rounding error (Dekker; Knuth).


def _in_lanes(numbers: Vector) -> Matrix:
    """Return numbers as rows of as many as there are lanes, filled up with NaN."""
    whole = len(numbers) % _LANES == 0
    filled = numbers if whole else np.append(numbers, np.full(-len(numbers) % _LANES, np.nan))
    return filled.reshape(-1, _LANES)


def _added(a: Matrix, b: Matrix) -> Matrix:
    total, error = two_sum(a[0], b[0])
    return np.stack(_quick(total, error + (a[1] + b[1])))


def _quick(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    return total, b - (total - a)


def _exact_product(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Vector) -> tuple[Vector, Vector]:
    scaled = 134217729.0 * a  # 2^27 + 1
    upper = scaled - (scaled - a)
    return upper, a - upper


def _product(a: Matrix, b: Matrix) -> Matrix:
    product, error = _exact_product(a[0], b[0])
    return np.stack(_quick(product, error + (a[0] * b[1] + a[1] * b[0])))


def _divided(a: Matrix, b: Matrix) -> Matrix:
    first = a[0] / b[0]
    product, error = _exact_product(first, b[0])
    rest = (a[0] - product) - error + a[1] - first * b[1]
    return np.stack(_quick(first, rest / b[0]))
