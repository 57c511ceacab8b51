"""A naive Bayes model that agrees with a logistic regression, and predicts where features are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.conformity import conformity_error
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.explanations import Explanation, explain
from trimbench.conformant.reduced_problem import Matrix
from trimbench.conformant.sampling import draw_rows
from trimbench.networks.naive_bayes import NaiveBayes


class ConformantModel(ConformantDistribution):
    """A distribution over classes and features whose classifications are those of a logistic regression.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    layout : FeatureLayout
    solution : Solution
        Parameters with their certificate: ``solution.residual`` is the largest violation of the moment equations.
    coding : Coding
        The reduced problem that was solved.
    missing_scores : ndarray of shape (n_features, n_classes)
        What each feature adds to the score of each class while it is missing.
    log_prior : ndarray of shape (n_classes,)
        Logarithm of the class distribution: what is predicted when everything is missing.
    log_normaliser : float
        A: what makes the scores of the classes and the statistics of a row a probability.
    """

    def conformity_error(self, X: ArrayLike) -> float:
        """Return the largest difference between the model's own conditional probabilities and the classifier's.

        The model's are computed from the class distribution and the probabilities of all features by Bayes' rule, the
        classifier's from its weights.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Complete rows.

        Raises
        ------
        ValueError
            When a feature is real-valued, a value is missing or not allowed.
        """
        return conformity_error(self, X)

    def explain(self, x: ArrayLike, against: Any = None) -> Explanation:
        """Return the sufficient explanation of the classification of one row.

        Parameters
        ----------
        x : array of shape (n_columns,)
            Values of one row; a missing feature (NaN) is part of no explanation.
        against : label, optional
            The class to compare the predicted one with; required if there are more than two.

        Raises
        ------
        ValueError
            When `x` is not a row of the model, or `against` is not another class.
        """
        return explain(self, x, against)

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[Matrix, NDArray[Any]]:
        """Draw complete rows and their classes.

        Parameters
        ----------
        n_rows : int
        rng : numpy.random.Generator

        Returns
        -------
        rows : ndarray of shape (n_rows, n_columns)
        labels : ndarray of shape (n_rows,)
        """
        return draw_rows([self], np.ones(1), n_rows, rng)

    def to_naive_bayes(self) -> NaiveBayes:
        """Return the model as a `NaiveBayes` with binary features, for example to trim it.

        Raises
        ------
        ValueError
            When a feature is categorical or real-valued.
        """
        if self.layout.categorical or self.layout.real:
            raise ValueError("to_naive_bayes takes binary features only; conform without categorical and real")
        ones, zeros = np.exp(self.log_probabilities), np.exp(self.log_complements)
        names = [str(label) for label in self.classes.tolist()]
        likelihoods = [np.stack([zeros[i], ones[i]], axis=1) for i in range(self.layout.n_columns)]
        return NaiveBayes(np.exp(self.log_prior), likelihoods, class_names=names)
