"""Means and variances of real features in each class, in units in which nothing overflows or cancels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Values of a block of rows, which stays in the cache of the processor.
_BLOCK_ENTRIES = 2**17
# eta^2 of a feature without dependence is rounding error.
_NOTHING = 1e-12
# Further out all classes are equally unlikely, to all digits.
_FARTHEST = 1e100


@dataclass(frozen=True, eq=False)
class GaussianMoments:
    """What the model needs of some features: moments of z = (x - centre) / scale, which is from -1 to 1.

    Attributes
    ----------
    sizes : ndarray of shape (n_classes, n_features)
        n_cj, the cases of each class in which each feature was observed.
    means : ndarray of shape (n_classes, n_features)
        Mean of z in each class; 0 where the class has no observed case.
    within, between : ndarray of shape (n_features,)
        Sums of squares of z about the means of the classes, and of those about the mean of all.
    centres, scales : ndarray of shape (n_features,)
        Middle and half of the range of x; a scale of 0 means that the feature is constant.
    """

    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    within: NDArray[np.float64]
    between: NDArray[np.float64]
    centres: NDArray[np.float64]
    scales: NDArray[np.float64]

    @classmethod
    def of(
        cls, X: NDArray[Any], response: NDArray[np.int64], n_classes: int, rows: NDArray[np.int64]
    ) -> GaussianMoments:
        """Take the moments of some rows of a checked table, in three passes over blocks of them.

        Parameters
        ----------
        X : ndarray of shape (n_cases, n_features)
            NaN where a value is missing.
        response : ndarray of shape (n_cases,)
            0, ..., n_classes - 1.
        rows : ndarray of int
        """
        low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
        for block, _ in _blocks(X, rows):
            low, high = np.fmin(low, np.fmin.reduce(block, axis=0)), np.fmax(high, np.fmax.reduce(block, axis=0))
        unseen = low > high
        low[unseen] = high[unseen] = 0.0
        centres, scales = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        sizes, sums = np.zeros((n_classes, X.shape[1]), dtype=np.int64), np.zeros((n_classes, X.shape[1]))
        for block, members in _blocks(X, rows):
            z = standardised(block, centres, scales)
            missing, classes = np.isnan(z), np.eye(n_classes)[response[members]].T
            sums += classes @ _filled(z, missing)
            sizes += (classes @ ~missing).astype(np.int64)
        means = sums / np.maximum(sizes, 1)
        within = np.zeros(X.shape[1])
        for block, members in _blocks(X, rows):
            z = standardised(block, centres, scales) - means[response[members]]
            z = _filled(z, np.isnan(z))
            within += np.einsum("ij,ij->j", z, z)
        overall = (sizes * means).sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)
        between = (sizes * (means - overall) ** 2).sum(axis=0)
        return cls(sizes, means, within, between, centres, scales)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Whether each feature can depend on the class: it varies, in two classes or more, with cases to spare."""
        n_seen = (self.sizes > 0).sum(axis=0)
        found: NDArray[np.bool_] = (self.scales > 0.0) & (n_seen > 1) & (self.sizes.sum(axis=0) > n_seen)
        return found

    @property
    def squared_ratios(self) -> NDArray[np.float64]:
        """eta^2 of each feature, the share of its variance that lies between the classes; 0 if not informative."""
        total = self.within + self.between
        found = np.divide(self.between, total, out=np.zeros_like(total), where=self.informative & (total > 0.0))
        found[found <= _NOTHING] = 0.0
        return found

    def of_features(self, features: NDArray[np.int64]) -> GaussianMoments:
        """Return the moments of some features."""
        per_class = (self.sizes[:, features], self.means[:, features])
        rest = (values[features] for values in (self.within, self.between, self.centres, self.scales))
        return GaussianMoments(*per_class, *rest)


def standardised(X: NDArray[Any], centres: NDArray[np.float64], scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return z = (x - centre) / scale, and 0 for constant features; NaN stays."""
    with np.errstate(over="ignore"):
        z = (X.astype(np.float64, copy=False) - centres) / np.where(scales > 0.0, scales, np.inf)
    found: NDArray[np.float64] = np.clip(z, -_FARTHEST, _FARTHEST, out=z)
    return found


def _blocks(X: NDArray[Any], rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Yield some rows at a time, in floating point, with their numbers."""
    step = max(1, _BLOCK_ENTRIES // X.shape[1])
    for start in range(0, len(rows), step):
        members = rows[start : start + step]
        yield X[members].astype(np.float64, copy=False), members


def _filled(z: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the values with 0 in place of what is missing."""
    return np.where(missing, 0.0, z) if missing.any() else z
