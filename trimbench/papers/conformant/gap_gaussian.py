"""The expected prediction of a logistic regression if the features were jointly normal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.classifier_weights import linear_scores
from trimbench.conformant.expected_predictions import logsumexp
from trimbench.conformant.reduced_problem import Matrix, Vector

_SHRINKAGE = 0.02  # of the covariances towards none, which also keeps them positive definite
_N_DRAWS = 64
_SEED = 0


@dataclass(frozen=True, eq=False)
class JointNormal:
    """A multivariate normal distribution of the columns.

    Attributes
    ----------
    means : ndarray of shape (n_columns,)
    covariance : ndarray of shape (n_columns, n_columns)
    """

    means: Vector
    covariance: Matrix

    @classmethod
    def of(cls, rows: Matrix) -> JointNormal:
        """Return the moments of rows; where values are missing, of the pairs that are observed."""
        seen = (~np.isnan(rows)).astype(np.float64)
        counts = np.maximum(seen.sum(axis=0), 1.0)
        means = np.nan_to_num(rows).sum(axis=0) / counts
        centred = np.nan_to_num(rows - means)
        covariance = centred.T @ centred / np.maximum(seen.T @ seen, 1.0)
        # Covariances of different pairs of rows need not be those of any distribution.
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        diagonal = np.diag(np.diag(covariance) + 1e-9)
        return cls(means, (1 - _SHRINKAGE) * covariance + _SHRINKAGE * diagonal)

    def fill(self, gaps: ArrayLike) -> Matrix:
        """Return rows with the conditional expectations of missing values."""
        table = np.asarray(gaps, dtype=np.float64)
        filled = table.copy()
        for rows, missing, gain, _ in self._patterns(table):
            filled[np.ix_(rows, missing)] = self.means[missing] + (table[rows] - self.means)[:, ~missing] @ gain
        return filled

    def expected_probabilities(self, classifier: Any, gaps: Matrix) -> Matrix:
        """Return the mean of the classifier's probabilities over the conditional distribution of missing values.

        The scores of the classes are jointly normal given what is observed; the mean is over a fixed set of draws and
        their opposites.
        """
        weights, biases, _ = linear_scores(classifier)
        drawn = np.random.default_rng(_SEED).standard_normal((_N_DRAWS, len(biases)))
        drawn = np.concatenate([drawn, -drawn])
        scores = self.fill(gaps) @ weights + biases
        found = np.exp(scores - logsumexp(scores)[:, None])
        for rows, missing, _, conditional in self._patterns(gaps):
            values, vectors = np.linalg.eigh(weights[missing].T @ conditional @ weights[missing])
            noise = drawn @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
            drawn_scores = scores[rows][:, None] + noise
            drawn_scores -= drawn_scores.max(axis=2, keepdims=True)
            shares = np.exp(drawn_scores)
            found[rows] = (shares / shares.sum(axis=2, keepdims=True)).mean(axis=1)
        return found

    def _patterns(self, gaps: Matrix) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_], Matrix, Matrix]]:
        """Yield rows, their missing columns, the regression of these on the others, and what covariance is left."""
        patterns, of_row = np.unique(np.isnan(gaps), axis=0, return_inverse=True)
        for place, missing in enumerate(patterns):
            if not missing.any():
                continue
            cross = self.covariance[np.ix_(~missing, missing)]
            gain = np.linalg.solve(self.covariance[np.ix_(~missing, ~missing)], cross)
            left = self.covariance[np.ix_(missing, missing)] - cross.T @ gain
            yield np.flatnonzero(of_row.ravel() == place), missing, np.asarray(gain), np.asarray(left)
