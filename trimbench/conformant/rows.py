"""Rows of numbers, from a table or in batches that need not fit into memory: their statistics, and a sample of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.layout import CHUNK_ROWS, FeatureLayout, as_table, check_values, row_weights
from trimbench.networks.batches import Batches, in_batches
from trimbench.networks.sums import ColumnSums

# Rows that the search for several components, or a covariance, looks at.
MOST_SAMPLED = 12_500
_SAMPLED_AT_ONCE = 2**16
# Rows of the first batch that are kept for checks of the classifier.
_KEPT = 100
# Of a hash, those that tell rows apart which differ by rounding.
_LAST_BITS = np.uint64(2**24 - 1)
# Rows that are summed at a time: fifty columns of them stay in the processor's cache.
_SUMMED_AT_ONCE = 2**13


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of numbers, which are passed over in parts.

    Attributes
    ----------
    source : ndarray of shape (n_rows, n_columns), or Batches
    n_columns : int
    weights : ndarray of shape (n_rows,), or str, optional
        Weights of the rows; of batches, the last column, which is not one of `n_columns`.
    """

    source: NDArray[Any] | Batches
    n_columns: int
    weights: Vector | str | None = None
    _samples: dict[int, RowSample] = field(default_factory=dict)
    _first: list[Matrix] = field(default_factory=list)

    @classmethod
    def of(cls, X: Any, n_columns: int, names: Sequence[str] | None = None, weights: Any = None) -> Rows:
        """Return rows that are given as a table or in batches, with their columns in the order of the names.

        Raises ValueError if it is no table of numbers with so many columns, or weights are not allowed.
        """
        if isinstance(X, Rows):
            return X
        if not in_batches(X):
            table = as_table(X, n_columns, columns=names)
            return cls(table, n_columns, None if weights is None else row_weights(weights, len(table)))
        if weights is None:
            return cls(Batches.of(X, names), n_columns)
        if not isinstance(weights, str):
            raise ValueError(
                f"sample_weight must be the name of a column where rows come in batches, got {type(weights).__name__}"
            )
        if names is None:
            raise ValueError(
                f"sample_weight must be left out, got {weights!r}, unless the classifier knows the names of its "
                "columns; fit it to a data frame"
            )
        return cls(Batches.of(X, [*names, weights]), n_columns, weights)

    def parts(self, size: int = CHUNK_ROWS) -> Iterator[tuple[NDArray[Any], Vector | None]]:
        """Yield some rows, of shape (n, n_columns), and their weights."""
        if isinstance(self.source, Batches):
            for numbers in self.source.numbers(size):
                if numbers.shape[1] != self.n_columns + (self.weights is not None):
                    raise ValueError(
                        f"X must have {self.n_columns} columns, like the rows of the fit, got {numbers.shape[1]}; "
                        "trimbench.networks.batches.Batches selects columns"
                    )
                if not self._first:
                    self._first.append(numbers[spread_places(len(numbers), _KEPT), : self.n_columns])
                if self.weights is None:
                    yield numbers, None
                else:
                    weights = np.ascontiguousarray(numbers[:, -1])
                    yield numbers[:, :-1], row_weights(weights, len(weights)) if weights.any() else weights
            return
        for start in range(0, len(self.source), size):
            part = slice(start, start + size)
            yield self.source[part], None if self.weights is None else self.weights[part]  # type: ignore[misc]

    @property
    def first(self) -> NDArray[Any]:
        """Some rows: all of a table, and after a pass over batches some of the first."""
        return self.source if isinstance(self.source, np.ndarray) else self._first[0]

    def sample(self, random_state: int) -> RowSample:
        """Return a sample of the rows, which is found once for each seed."""
        if random_state not in self._samples:
            parts = (RowSample.of(part, random_state) for part, _ in self.parts(_SAMPLED_AT_ONCE))
            self._samples[random_state] = functools.reduce(operator.add, parts)
        return self._samples[random_state]

    @property
    def in_memory(self) -> int | None:
        """How many numbers a table has; None for batches."""
        return self.source.size if isinstance(self.source, np.ndarray) else None


def spread_places(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return places of at most so many rows, from the first to the last."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some rows, which do not depend on the order of all: ``a + b`` is the sample of the rows of both.

    Of each row, a hash of its values decides whether it is kept, and all its copies with it, so that the sample of few
    distinct rows is all of them, with the number of their copies.

    Attributes
    ----------
    n_rows : int
        How many rows the sample stands for.
    has_gaps : bool
        Whether any of them has a missing value.
    hashes : ndarray of uint64, shape (n_distinct,)
        In ascending order.
    distinct : ndarray of shape (n_distinct, n_columns)
    copies : ndarray of int, shape (n_distinct,)
    seed : int
    """

    n_rows: int
    has_gaps: bool
    hashes: NDArray[np.uint64]
    distinct: Matrix
    copies: NDArray[np.int64]
    seed: int

    @classmethod
    def of(cls, rows: NDArray[Any], seed: int) -> RowSample:
        """Return the sample of some rows."""
        numbers = np.asarray(rows, dtype=np.float64) + 0.0  # no zero is negative
        gaps = np.isnan(numbers)
        numbers[gaps] = np.nan  # which has many forms
        shape = (numbers.shape[1],)
        keys = np.random.default_rng([seed, 0]).integers(0, 2**64, shape, dtype=np.uint64) | np.uint64(1)
        exact, near = np.zeros((2, len(numbers)), dtype=np.uint64)
        for column, key in zip(numbers.T, keys, strict=True):
            bits = np.ascontiguousarray(column).view(np.uint64)
            with np.errstate(over="ignore"):
                short = column.astype(np.float32).view(np.uint32)
            exact += (bits ^ (bits >> np.uint64(32))) * key
            near += short * key
        # What rounding has changed keeps its place in the order.
        hashes = (_mixed(near) & ~_LAST_BITS) | (_mixed(exact) & _LAST_BITS)
        hashes, first, copies = np.unique(hashes, return_index=True, return_counts=True)
        kept = slice(0, MOST_SAMPLED)
        found = numbers[first[kept]]
        return cls(len(numbers), bool(gaps.any()), hashes[kept], found, copies[kept].astype(np.int64), seed)

    def __add__(self, other: RowSample) -> RowSample:
        has_gaps = self.has_gaps or other.has_gaps
        if len(self.hashes) == MOST_SAMPLED and not (other.hashes <= self.hashes[-1]).any():
            return replace(self, n_rows=self.n_rows + other.n_rows, has_gaps=has_gaps)
        hashes = np.concatenate([self.hashes, other.hashes])
        hashes, first, places = np.unique(hashes, return_index=True, return_inverse=True)
        copies = np.zeros(len(hashes), dtype=np.int64)
        np.add.at(copies, places, np.concatenate([self.copies, other.copies]))
        kept = slice(0, MOST_SAMPLED)
        rows = np.concatenate([self.distinct, other.distinct])[first[kept]]
        return RowSample(self.n_rows + other.n_rows, has_gaps, hashes[kept], rows, copies[kept], self.seed)

    @cached_property
    def rows(self) -> Matrix:
        """At most 12,500 rows in random order, each as often as its copies have been drawn."""
        rng, copies = np.random.default_rng([self.seed, 1]), self.copies
        if copies.sum() > MOST_SAMPLED:
            copies = rng.multivariate_hypergeometric(copies, MOST_SAMPLED, method="marginals")
        order = np.repeat(np.arange(len(copies)), copies)
        rows: Matrix = self.distinct[rng.permutation(order)]
        return rows


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose bits all depend on those of the given ones (the finaliser of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


# Statistics of the training data that naive conformant learning needs: the means of the columns.


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Means and variances of the columns of a training table.

    Attributes
    ----------
    n_rows : float
        The number of rows, or the sum of their weights.
    means : ndarray of shape (n_columns,)
    variances : ndarray of shape (n_columns,)
        Around the mean, divided by the number (or total weight) of the observed values.
    complete : bool
        Whether no value is missing.
    """

    n_rows: float
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    complete: bool = True

    @classmethod
    def of(
        cls, X: Any, layout: FeatureLayout, weights: NDArray[np.float64] | None = None, *, missing: bool = False
    ) -> FeatureStatistics:
        """Return the statistics of rows, in one pass.

        Raises ValueError for no rows, or a value that is infinite, not allowed for its feature, or NaN (see `missing`).

        Parameters
        ----------
        X : Rows, or array of shape (n_rows, n_columns)
        weights : ndarray of shape (n_rows,), optional
            How often each row counts, if none has a missing value.
        missing : bool
            Whether values may be NaN. The statistics are then those of the observed values, at least one per column.
        """
        return FeatureSums.of(Rows.of(X, layout.n_columns, weights=weights), layout, missing=missing).statistics


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """Sums over rows from which their statistics follow: ``a + b`` are those of the rows of both.

    Attributes
    ----------
    layout : FeatureLayout
    n_rows : int
    sums : ColumnSums
    """

    layout: FeatureLayout
    n_rows: int
    sums: ColumnSums
    is_weighted: bool = False

    @classmethod
    def of(cls, rows: Rows, layout: FeatureLayout, *, missing: bool = False) -> FeatureSums:
        """Return the sums of some rows, after the checks of `FeatureStatistics.of`."""
        found = None
        for part, weights in rows.parts(_SUMMED_AT_ONCE):
            n_before = 0 if found is None else found.n_rows
            sums = _checked_sums(part, weights, layout, n_before, missing)
            one = cls(layout, len(part), sums, weights is not None)
            found = one if found is None else found + one
        if found is None:
            raise ValueError("X must have at least one row, got 0")
        return found

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return replace(self, n_rows=self.n_rows + other.n_rows, sums=self.sums + other.sums)

    @property
    def statistics(self) -> FeatureStatistics:
        """Means and variances; ValueError for a column without values, or with squares that no float can hold."""
        sums, real = self.sums, list(self.layout.real)
        if not (counts := sums.counts).all():
            raise ValueError(
                f"X must have an observed value in each column, got none in column {int(np.argmin(counts))}; leave it "
                "out, of the logistic regression as well"
            )
        means, spread = sums.means, sums.variances
        is_lost = ~np.isfinite(spread) | ((spread == 0) & (sums.low < sums.high))
        if lost := [column for column in real if is_lost[column]]:
            raise ValueError(
                f"X must have real columns whose squares a float can hold, got column {lost[0]} with a mean of "
                f"{float(means[lost[0]])!r}; give it another unit, and fit the classifier to that"
            )
        discrete = np.ones(len(means), dtype=bool)
        discrete[real] = False
        spread[discrete] = means[discrete] * (1 - means[discrete])
        if self.is_weighted:  # of complete rows
            return FeatureStatistics(float(counts[0]), means, sums.variances)
        return FeatureStatistics(self.n_rows, means, spread, bool((counts == self.n_rows).all()))


def _checked_sums(
    part: NDArray[Any], weights: Vector | None, layout: FeatureLayout, start: int, missing: bool
) -> ColumnSums:
    """Return the sums of a part of the rows, the first of which has the number `start`, after checks of its values."""
    columns = np.ascontiguousarray(part.T)
    real, (n_columns, n) = set(layout.real), columns.shape
    # What has few values is counted, which is quicker; its unit is that of the number 1.
    counted = [place for place in range(n_columns) if weights is None and place not in real]
    n_ones = np.array([np.count_nonzero(columns[place] == 1) for place in counted], dtype=np.float64)
    n_zeros = np.array([np.count_nonzero(columns[place] == 0) for place in counted], dtype=np.float64)
    summed = [place for place in range(n_columns) if weights is not None or place in real]
    sums = ColumnSums.of([columns[place] for place in summed], weights)
    n_seen = np.empty(n_columns)
    n_seen[counted], n_seen[summed] = n_ones + n_zeros, sums.weight[0]
    is_odd = not np.isfinite(sums.low[n_seen[summed] > 0]).all() or not np.isfinite(sums.high[n_seen[summed] > 0]).all()
    if is_odd or weights is not None or layout.categorical or (n_seen != n).any():
        numbers = np.asarray(part, dtype=np.float64)
        check_values(numbers, np.isnan(numbers), numbers == 1, layout, start, missing)
    return sums.beside(summed, ColumnSums.of_zeros_and_ones(n_zeros, n_ones), counted)
