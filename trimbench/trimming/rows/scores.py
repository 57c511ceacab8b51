"""Log-odds of the positive class given the kept features of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.rows.weighted_rows import Codes

if TYPE_CHECKING:
    from trimbench.trimming.classifier import BayesianClassifier

FloatArray = NDArray[np.float64]

# Posteriors of larger log-odds are 1 in floating point: no threshold separates them.
HIGHEST = 36.0
# Up to this many instances the joint of a network is read from one table.
_MAX_TABLE = 2**22


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
    """Return log-odds with finite ones at most `HIGHEST`."""
    return np.where(np.isinf(log_odds), log_odds, np.minimum(log_odds, HIGHEST))


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


@dataclass(frozen=True, eq=False)
class NetworkScores:
    """Log-odds of a general network, for each set of kept features anew."""

    classifier: BayesianClassifier
    values: tuple[tuple[str, ...], ...]

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(values) for values in self.values)

    def log_odds(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the log-odds of rows, shape (n_rows,)."""
        if math.prod(self.cardinalities) <= _MAX_TABLE:
            positive, negative = self.classifier.joint(kept)
            shape = [self.cardinalities[feature] for feature in kept]
            places = np.ravel_multi_index(tuple(codes.T), shape) if shape else np.zeros(len(codes), dtype=np.int64)
            positive, negative = positive[places], negative[places]
        else:
            positive = self._posterior(kept, codes)
            negative = 1.0 - positive
        with np.errstate(divide="ignore"):
            return summed(np.log(positive), -np.log(negative))

    def _posterior(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        import pandas as pd

        names = [self.classifier.features[feature] for feature in kept]
        columns = {
            name: np.array(self.values[feature])[column]
            for name, feature, column in zip(names, kept, codes.T, strict=True)
        }
        frame = pd.DataFrame(columns, index=range(len(codes)))
        trimmed = self.classifier.with_features(names, self.classifier.threshold)
        return np.nan_to_num(trimmed.posterior(frame), nan=1.0)


def scores_of(classifier: BayesianClassifier) -> Scores:
    """Return the log-odds of a classifier: sums for naive Bayes, else from the network."""
    if classifier.is_naive_bayes:
        return AdditiveScores.of(classifier)
    return NetworkScores(classifier, tuple(values_of(classifier).values()))


def values_of(classifier: BayesianClassifier) -> dict[str, tuple[str, ...]]:
    """Return the names of the values of each feature."""
    from trimbench.networks.naive_bayes import NaiveBayes

    model = classifier.model
    if isinstance(model, NaiveBayes):
        known = dict(zip(model.feature_names, model.value_names, strict=True))
        return {name: known[name] for name in classifier.features}
    return {name: model.states(name) for name in classifier.features}
