"""Log-odds of the positive class given the kept features of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.contraction import ContractionTooLarge
from trimbench.trimming.rows.weighted_rows import Codes
from trimbench.trimming.thresholds import HIGHEST_LOG_ODDS

if TYPE_CHECKING:
    from trimbench.trimming.classifier import BayesianClassifier

FloatArray = NDArray[np.float64]

# With at most so many instances of all features, the joint probabilities of any of them come from one table.
_MAX_TABLE, _MAX_OPERATIONS = 2**16, 2**28


class Scores(Protocol):
    """Log-odds that a classifier trimmed to some features gives to rows."""

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""

    def log_odds(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the log-odds of rows of value indices, shape (n_rows,).

        Parameters
        ----------
        kept : sequence of int
            Positions of the kept features.
        codes : ndarray of int, shape (n_rows, len(kept))
        """


def summed(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the sum of log-odds; inf where one of them is inf.

    Evidence that is impossible under both classes counts as positive, as in `BayesianClassifier.predict`.
    """
    with np.errstate(invalid="ignore"):
        total = left + right
    return np.where(np.isnan(total), math.inf, total)


def capped(log_odds: FloatArray) -> FloatArray:
    """Return log-odds with finite ones at most `HIGHEST_LOG_ODDS`."""
    return np.where(np.isinf(log_odds), log_odds, np.minimum(log_odds, HIGHEST_LOG_ODDS))


@dataclass(frozen=True, eq=False)
class AdditiveScores:
    """Log-odds of naive Bayes: the prior's and a weight for each kept value.

    Attributes
    ----------
    prior : float
    weights : tuple of ndarrays, the i-th of shape (cardinality_i,)
        Log-likelihood ratios; infinite where a value is impossible under a class.
    """

    prior: float
    weights: tuple[FloatArray, ...]

    @classmethod
    def of(cls, classifier: BayesianClassifier) -> AdditiveScores:
        """Return the scores of a naive Bayes classifier."""
        tables = [classifier.prior[:, None], *classifier.tables]
        with np.errstate(divide="ignore"):
            logs = [np.log(table) for table in tables]
        ratios = [summed(table[0], -table[1]) for table in logs]
        return cls(float(ratios[0][0]), tuple(ratios[1:]))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(weights) for weights in self.weights)

    def log_odds(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the log-odds of rows, shape (n_rows,)."""
        total = np.full(len(codes), self.prior)
        for feature, column in zip(kept, codes.T, strict=True):
            total = summed(total, self.weights[feature][column])
        return total


class GeneralScores:
    """Log-odds of any other model, for each set of kept features anew."""

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._classifier = classifier
        self._has_table = math.prod(classifier.cardinalities) <= _MAX_TABLE
        try:
            if self._has_table:
                classifier.prepare_table(max_operations=_MAX_OPERATIONS)
        except ContractionTooLarge:
            self._has_table = False

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return self._classifier.cardinalities

    def log_odds(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the log-odds of rows, shape (n_rows,)."""
        positive, negative = self._weights(kept, codes)
        with np.errstate(divide="ignore"):
            return summed(np.log(positive), -np.log(negative))

    def _weights(self, kept: Sequence[int], codes: Codes) -> tuple[FloatArray, FloatArray]:
        classifier = self._classifier
        if self._has_table:
            positive, negative = classifier.joint(kept)
            shape = [classifier.cardinalities[feature] for feature in kept]
            places = np.ravel_multi_index(tuple(codes.T), shape) if shape else np.zeros(len(codes), dtype=np.int64)
            return positive[places], negative[places]
        # What is not kept is summed out for these rows alone.
        return classifier.with_features([classifier.features[i] for i in kept], classifier.threshold).weights(codes)


def scores_of(classifier: BayesianClassifier) -> Scores:
    """Return the log-odds of a classifier: sums for naive Bayes, else from the model."""
    return AdditiveScores.of(classifier) if classifier.is_naive_bayes else GeneralScores(classifier)
