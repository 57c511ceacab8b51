"""What naive conformant learning needs from the training data: the means of its columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.layout import FeatureLayout, chunks
from trimbench.conformant.numeric_input import as_table


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Means of the columns of a training table, and variances of those that are real-valued.

    Attributes
    ----------
    n_rows : float
        The number of rows, or the sum of their weights.
    means : ndarray of shape (n_columns,)
    variances : ndarray of shape (n_columns,)
        Around the mean, divided by n_rows.
    """

    n_rows: float
    means: NDArray[np.float64]
    variances: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not self.n_rows > 0:
            raise ValueError(f"X must have at least one row, got {self.n_rows}")
        if self.means.shape != self.variances.shape or self.means.ndim != 1:
            raise ValueError(
                f"means and variances must be vectors of the same length, got shapes {self.means.shape} and "
                f"{self.variances.shape}"
            )

    @classmethod
    def of(cls, X: ArrayLike, layout: FeatureLayout, *, missing: bool = False) -> FeatureStatistics:
        """Return the statistics of a table.

        Raises ValueError if there is no row, or a value is missing, infinite, or not allowed for its feature.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        missing : bool
            Whether values may be missing (NaN). The statistics are then those of the observed values of each column,
            of which there must be one.
        """
        table = as_table(X, layout.n_columns)
        if len(table) == 0:
            raise ValueError("X must have at least one row, got 0")
        real = list(layout.real)
        total, counts = np.zeros(layout.n_columns), np.zeros(layout.n_columns)
        for part in chunks(table, layout, missing=missing):
            absent = np.isnan(part)
            total += np.where(absent, 0.0, part).sum(axis=0)
            counts += len(part) - absent.sum(axis=0)
        if not counts.all():
            raise ValueError(
                f"X must have an observed value in each column, got none in column {int(np.argmin(counts))}; leave it "
                "out, of the logistic regression as well"
            )
        means = total / counts
        spread = np.zeros(layout.n_columns)
        if real:  # two passes: the difference of two large sums would lose the variance
            squares = sum(
                np.nan_to_num((part[:, real] - means[real]) ** 2).sum(axis=0)
                for part in chunks(table, layout, missing=missing)
            )
            spread[real] = squares / counts[real]
        discrete = np.ones(layout.n_columns, dtype=bool)
        discrete[real] = False
        spread[discrete] = means[discrete] * (1 - means[discrete])
        return cls(len(table), means, spread)
