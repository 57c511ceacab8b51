"""The naive Bayes classifier with correction for feature selection, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from trimbench.selection_bias.features import Binariser, checked_cuts
from trimbench.selection_bias.model import fit_selection_corrected
from trimbench.selection_bias.prior import Rule
from trimbench.selection_bias.selection import class_counts, correlation


class SelectionCorrectedNB(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Bayesian naive Bayes on the k features that correlate most with the class, corrected for their selection.

    Parameters
    ----------
    k : int, default=10
        Largest number of features to select; all are used if there are no more. Features without any correlation with
        the class are not selected, with a warning if fewer than k are left, unless no feature has any.
    correct : bool, default=True
        Whether predictions condition on the weak correlations of the discarded features.
    ties : {"exact", "less", "less_equal"}, default="exact"
    n_alpha, n_theta, n_theta_adjust : int
    shape, rate, theta0, f0, f1 : float
    rule : {"gauss", "simpson"}
    cuts : array of shape (n_features,), optional
        As for `trimbench.fit_selection_corrected`. In cross-validation of features that are not all binary, give
        `trimbench.selection_bias.features.known_cuts(X)` of all cases: a fold does not see the others.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second is y = 1 of the model.
    model_ : SelectionCorrectedModel
        With the posterior of alpha, the adjustment factor and the stored medians.
    selected_ : ndarray
        Numbers of the selected features, from the largest absolute correlation to the smallest.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from trimbench.estimators import SelectionCorrectedNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> SelectionCorrectedNB(k=5).fit(X, y).score(X, y) > 0.85
    True

    References
    ----------
    Li, Zhang and Neal (2008).
    """

    def __init__(
        self,
        k: int = 10,
        *,
        correct: bool = True,
        ties: str = "exact",
        n_alpha: int = 100,
        n_theta: int = 20,
        n_theta_adjust: int = 100,
        shape: float = 0.5,
        rate: float = 5.0,
        theta0: float = 0.0,
        f0: float = 1.0,
        f1: float = 1.0,
        rule: Rule = "gauss",
        cuts: ArrayLike | None = None,
    ) -> None:
        self.k = k
        self.correct = correct
        self.ties = ties
        self.n_alpha = n_alpha
        self.n_theta = n_theta
        self.n_theta_adjust = n_theta_adjust
        self.shape = shape
        self.rate = rate
        self.theta0 = theta0
        self.f0 = f0
        self.f1 = f1
        self.rule = rule
        self.cuts = cuts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> SelectionCorrectedNB:
        """Select features and fit the classifier.

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
            Zeros and ones, or real values, which are cut at their medians.
        y : array of shape (n_cases,)
            Two classes.

        Returns
        -------
        SelectionCorrectedNB
            Itself.
        """
        table, labels = validate_data(self, X, y, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_, response = np.unique(labels, return_inverse=True)
        if len(self.classes_) != 2:
            n_classes = len(self.classes_)
            hint = "add cases of another class" if n_classes < 2 else "pick two, or use one-versus-rest"
            raise ValueError(
                "Only binary classification is supported. y must have two classes, "
                f"got {n_classes} class{'es' if n_classes > 1 else ''}; {hint}"
            )
        settings = self.get_params(deep=False) | {"k": self._number_to_select(table, response)}
        self.model_ = fit_selection_corrected(table, response, **settings)
        self.selected_ = self.model_.selected
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predictive probability of each class, of shape (n_cases, 2)."""
        table = self._checked(X)
        return self.model_.predict_proba(table)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more probable class of each case."""
        table = self._checked(X)
        found: NDArray[Any] = self.classes_[self.model_.predict(table)]
        return found

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log odds of the second class, of shape (n_cases,)."""
        table = self._checked(X)
        return self.model_.log_odds(table)

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate at threshold 1/2 that the predictions expect: the mean of min(p, 1 - p)."""
        table = self._checked(X)
        return self.model_.expected_error(table)

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, reset=False)
        return table

    def _number_to_select(self, table: NDArray[Any], response: NDArray[np.int64]) -> int:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise ValueError(f"k must be a whole number, 1 or more, got {self.k!r}")
        cuts = checked_cuts(self.cuts, table.shape[1])
        ones0, ones1 = class_counts(Binariser.fit(table, cuts=cuts).transform(table), response)
        n1 = int(response.sum())
        n_useful = int((correlation(ones0, ones1, len(response) - n1, n1) != 0).sum())
        n_features = table.shape[1]
        # Without any correlation there is no basis for a selection.
        if self.k >= n_features or not n_useful:
            return int(n_features)
        if n_useful < self.k:
            warnings.warn(
                f"k={self.k} is reduced to {n_useful}: no other feature is correlated with the class", stacklevel=3
            )
        return min(int(self.k), n_useful)
