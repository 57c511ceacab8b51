"""Ones of each feature in each class, counted in blocks of cases: tables may be almost as large as the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.selection_bias.features import Binariser, has_missing

# Sums of so many zeros and ones fit into a byte.
_ROWS = 255


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of all features.

    Attributes
    ----------
    ones : ndarray of shape (n_classes, n_features)
        I_yj.
    sizes : ndarray of shape (n_classes, n_features)
        n_yj, the cases of each class in which each feature was observed.
    complete : bool
        Whether no value is missing.
    """

    ones: NDArray[np.int64]
    sizes: NDArray[np.int64]
    complete: bool

    @classmethod
    def of(
        cls, X: NDArray[Any], response: NDArray[np.int64], n_classes: int, binariser: Binariser, rows: NDArray[np.int64]
    ) -> ClassCounts:
        """Count some rows of a checked table.

        Parameters
        ----------
        X : ndarray of shape (n_cases, n_features)
            NaN where a value is missing.
        response : ndarray of shape (n_cases,)
            0, ..., n_classes - 1.
        rows : ndarray of int
        """
        complete = not has_missing(X)
        ones, missing = np.zeros((2, n_classes, X.shape[1]), dtype=np.int64)
        for y in range(n_classes):
            members = rows[response[rows] == y]
            for start in range(0, len(members), _ROWS):
                block = X[members[start : start + _ROWS]]
                ones[y] += binariser.cut(block).sum(axis=0, dtype=np.uint8)
                if not complete:
                    missing[y] += np.isnan(block).sum(axis=0, dtype=np.uint8)
        numbers = np.bincount(response[rows], minlength=n_classes)
        return cls(ones, numbers[:, None] - missing, complete)

    def of_features(self, features: NDArray[np.int64]) -> ClassCounts:
        """Return the counts of some features."""
        return ClassCounts(self.ones[:, features], self.sizes[:, features], self.complete)
