"""The values of each feature by itself: their quantiles, bins and normal scores, which all densities share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector

# Quantiles that are kept of each feature, bins of a number, and cells that are compared at once.
_QUANTILES = 1024
_BINS = 32
_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Margins:
    """What the training rows say of each feature alone.

    Rows are *coded*: one floating-point number for each feature, a category by its place among the categories, NaN
    where the value is missing.

    Attributes
    ----------
    quantiles : ndarray of shape (n_features, n_quantiles)
        Ascending values of the training rows, each as likely as the others.
    starts : tuple of ndarray of int
        For each feature the place among its quantiles at which each bin starts, and at the end n_quantiles.
    categorical : ndarray of bool, shape (n_features,)
        Features whose numbers have no order.
    """

    quantiles: Matrix
    starts: tuple[NDArray[np.intp], ...]
    categorical: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Matrix, n_categories: Sequence[int]) -> Margins:
        """Learn the margins of coded rows; `n_categories` has 0 for a number. A feature without values counts as 0."""
        n_quantiles = max(min(len(rows), _QUANTILES), 1)
        quantiles = np.zeros((rows.shape[1], n_quantiles))
        starts = []
        for feature, n_values in enumerate(n_categories):
            known = np.sort(rows[~np.isnan(rows[:, feature]), feature])
            if len(known):
                places = (np.arange(n_quantiles) + 0.5) * len(known) / n_quantiles
                quantiles[feature] = known[places.astype(np.intp)]
            starts.append(_categories(quantiles[feature]) if n_values else _bins(quantiles[feature]))
        return cls(quantiles, tuple(starts), np.array([n > 0 for n in n_categories], dtype=bool))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.quantiles)

    @cached_property
    def n_bins(self) -> NDArray[np.intp]:
        """Number of bins of each feature, shape (n_features,)."""
        return np.array([len(start) - 1 for start in self.starts])

    @cached_property
    def offsets(self) -> NDArray[np.intp]:
        """Where the bins of each feature start in a row of all bins, and at the end their number."""
        return np.concatenate([[0], np.cumsum(self.n_bins)])

    @cached_property
    def shares(self) -> Vector:
        """The share of training rows in each bin, shape (n_all_bins,)."""
        return np.asarray(np.concatenate([np.diff(start) for start in self.starts]) / self.quantiles.shape[1])

    @cached_property
    def middles(self) -> Vector:
        """The value in the middle of each bin, shape (n_all_bins,)."""
        places = [(start[1:] + start[:-1] - 1) // 2 for start in self.starts]
        return np.concatenate([values[place] for values, place in zip(self.quantiles, places, strict=True)])

    @cached_property
    def _cuts(self) -> tuple[Matrix, NDArray[np.bool_]]:
        """Upper ends of all bins but the last, and whether a category has such a bin; padded with infinity."""
        cuts = np.full((self.n_features, int(self.n_bins.max(initial=1))), np.inf)
        for feature, start in enumerate(self.starts):
            cuts[feature, : len(start) - 1] = self.quantiles[feature, start[1:] - 1]
        return cuts, self.categorical

    def bins(self, rows: Matrix) -> NDArray[np.int64]:
        """Return the bin of each value, -1 where it is missing or a category that no training row has."""
        cuts, categorical = self._cuts
        result = np.empty(rows.shape, dtype=np.int64)
        last = self.n_bins - 1
        step = max(_CELLS // max(cuts.size, 1), 1)
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            places = np.minimum((part[:, :, None] > cuts).sum(axis=2), last)
            places[np.isnan(part)] = -1
            if categorical.any():
                exact = cuts[np.arange(len(cuts)), places] == part
                places[categorical & ~exact] = -1
            result[begin : begin + step] = places
        return result

    @cached_property
    def _scores(self) -> list[tuple[Vector, Vector]]:
        """Distinct values of each feature and their normal scores: those of their mean ranks."""
        from scipy.special import ndtri

        pairs = []
        for values in self.quantiles:
            distinct, first = np.unique(values, return_index=True)
            ends = np.append(first[1:], len(values))
            pairs.append((distinct, ndtri((first + ends) / (2 * len(values)))))
        return pairs

    def scores(self, rows: Matrix) -> Matrix:
        """Return the normal scores of numbers, NaN where one is missing; the ranks of numbers are interpolated.

        Categories have no scores; what is returned for them means nothing.
        """
        columns = [np.interp(rows[:, j], *pair) for j, pair in enumerate(self._scores)]
        return np.where(np.isnan(rows), np.nan, np.stack(columns, axis=1) if columns else rows)

    @cached_property
    def middle_scores(self) -> Vector:
        """The normal score in the middle of each bin, shape (n_all_bins,)."""
        from scipy.special import ndtri

        middles = np.concatenate([(start[1:] + start[:-1]) / 2 for start in self.starts])
        return np.asarray(ndtri(middles / self.quantiles.shape[1]))

    @cached_property
    def score_ranges(self) -> tuple[Vector, Vector]:
        """The normal scores at which each bin begins and ends, each of shape (n_all_bins,)."""
        from scipy.special import ndtri

        low, high = (np.concatenate([start[part] for start in self.starts]) for part in (slice(-1), slice(1, None)))
        return np.asarray(ndtri(low / self.quantiles.shape[1])), np.asarray(ndtri(high / self.quantiles.shape[1]))

    def below(self, feature: int, thresholds: Vector) -> Matrix:
        """Return the share of each bin's values that is at most each threshold, shape (n_thresholds, n_bins).

        Values count as numbers of 32 bits, as in the trees of scikit-learn.
        """
        start = self.starts[feature]
        values = self.quantiles[feature].astype(np.float32).astype(np.float64)
        places = np.searchsorted(values, thresholds, side="right")
        inside = np.clip(places[:, None] - start[:-1], 0, np.diff(start))
        shares: Matrix = inside / np.diff(start)
        return shares


def _categories(values: Vector) -> NDArray[np.intp]:
    """Return where each category starts among the sorted values."""
    _, first = np.unique(values, return_index=True)
    return np.append(first, len(values)).astype(np.intp)


def _bins(values: Vector) -> NDArray[np.intp]:
    """Return where bins of about equally many values start; a value that fills a bin has one of its own."""
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    if len(distinct) <= _BINS:
        return np.append(first, len(values)).astype(np.intp)
    wanted = np.arange(1, _BINS) * len(values) // _BINS
    of_value = np.searchsorted(first, wanted, side="right") - 1
    often = np.flatnonzero(counts >= len(values) / _BINS)
    starts = np.unique(np.concatenate([[0], first[of_value], first[often], (first + counts)[often], [len(values)]]))
    return starts.astype(np.intp)
