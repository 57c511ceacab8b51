"""What all naive Bayes classifiers share whose predictions are averaged over the posterior of alpha."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from trimbench.selection_bias.prior import Prior


@dataclass(frozen=True, eq=False)
class AveragedClassifier(ABC):
    """Posterior of alpha, and the predictions that follow from the scores of the classes.

    Attributes
    ----------
    prior : Prior
    class_sizes : ndarray of shape (n_classes,)
        Training cases in each class.
    alpha_grid : ndarray of shape (n_alpha,)
        Values of alpha, increasing; equally probable a priori.
    log_adjustment : ndarray of shape (n_alpha,)
        log A_alpha; zeros without correction or without selection.
    log_adjustment_error : ndarray of shape (n_alpha,)
        Its error.
    log_likelihood : ndarray of shape (n_alpha,)
        Of the selected features.
    """

    prior: Prior
    class_sizes: NDArray[np.int64]
    alpha_grid: NDArray[np.float64]
    log_adjustment: NDArray[np.float64]
    log_adjustment_error: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]

    @abstractmethod
    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y | x), of shape (n_cases, n_classes), up to a number for each case."""

    @property
    def alpha_posterior(self) -> NDArray[np.float64]:
        """Posterior probability of each value of `alpha_grid`, of shape (n_alpha,)."""
        log_posterior = self.log_adjustment + self.log_likelihood
        posterior: NDArray[np.float64] = np.exp(log_posterior - logsumexp(log_posterior))
        return posterior

    @property
    def log_alpha_density(self) -> NDArray[np.float64]:
        """Log of the posterior density of log(alpha) at `alpha_grid`, up to a constant, of shape (n_alpha,)."""
        density = self.prior.log_density_of_log_alpha(self.alpha_grid)
        result: NDArray[np.float64] = self.log_adjustment + self.log_likelihood + density
        return result

    def uncorrected(self) -> Self:
        """Return the same classifier, on the same features, without correction."""
        none = np.zeros_like(self.log_adjustment)
        return dataclasses.replace(self, log_adjustment=none, log_adjustment_error=none)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predictive probabilities of the classes.

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
            All features of the training cases; only the selected ones are used. A missing value (NaN, masked, None or
            the missing value of pandas) drops out of the product over the features.

        Returns
        -------
        ndarray of shape (n_cases, n_classes)
            P(y | x).

        References
        ----------
        Li, Zhang and Neal (2008), "Predictions for test cases (I)" and "(II)".
        """
        if len(self.class_sizes) == 2:
            log_odds = self.log_odds(X)
            return np.stack([expit(-log_odds), expit(log_odds)], axis=1)
        found: NDArray[np.float64] = np.exp(self.log_probabilities(X))
        return found

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the most probable class of each case; class 1 where two are equally probable, the first of several."""
        if len(self.class_sizes) == 2:
            return (self.log_odds(X) >= 0).astype(np.int64)
        found: NDArray[np.int64] = self._scores(X).argmax(axis=1)
        return found

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate that the predictions expect: the mean of 1 - max P(y | x)."""
        ordered = np.sort(self.predict_proba(X), axis=1)
        return float(ordered[:, :-1].sum(axis=1).mean())

    def log_odds(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y = 1 | x) - log P(y = 0 | x) of two classes, of shape (n_cases,)."""
        if len(self.class_sizes) != 2:
            raise ValueError(f"log_odds needs two classes, got {len(self.class_sizes)}; use log_probabilities")
        scores = self._scores(X)
        found: NDArray[np.float64] = scores[:, 1] - scores[:, 0]
        return found

    def log_probabilities(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return log P(y | x), of shape (n_cases, n_classes)."""
        scores = self._scores(X)
        result: NDArray[np.float64] = scores - logsumexp(scores, axis=1, keepdims=True)
        return result
