"""The naive Bayes classifier with correction for feature selection, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, check_X_y, validate_data

from trimbench._checks import check_one_of, is_whole
from trimbench.estimators.columns import checked_rows, other_numbers, selectable, warn_of_counts
from trimbench.estimators.documented import Documented
from trimbench.estimators.partial import SelectionCorrectedInParts
from trimbench.networks.values import as_numbers, check_no_missing_label
from trimbench.selection_bias.factors import Factor, Simulation, Ties
from trimbench.selection_bias.features import checked_cuts, known_cuts, without_masks
from trimbench.selection_bias.fit import Calibrate, fitted, fitted_to_sums
from trimbench.selection_bias.learning import How
from trimbench.selection_bias.model import SelectionCorrectedModel
from trimbench.selection_bias.prior import Prior, Rule

_KINDS = ("binary", "gaussian")
# Number of features that are selected if k is not given.
_USUAL_K = 10
# Most copies of cases that are made.
_MOST_COPIES = 10**8


class SelectionCorrectedNB(SelectionCorrectedInParts, Documented, ClassifierMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Bayesian naive Bayes on the k features most correlated with the class, corrected for their selection.

    Parameters
    ----------
    k : int or "auto", default="auto"
        Number of features to select, at most all; "auto" takes 10, or all if there are fewer. If k is less than all,
        features without any correlation with the class are not selected, with a warning if fewer than k are; if no
        feature has any, all are.
    correct : bool, default=True
        Whether predictions condition on the weak correlations of the discarded features.
    features : {"binary", "gaussian"}, default="binary"
        How features are modelled: cut into zeros and ones, or Gaussian in each class. Gaussian features take no `ties`,
        `theta0`, `n_theta`, `n_theta_adjust`, `rule`, `cuts`, `factor` or `n_simulations`.
    ties : {"exact", "less", "less_equal"}, default="exact"
    shape, rate, theta0, f0, f1 : float
    n_alpha, n_theta, n_theta_adjust : int
    rule : {"gauss", "simpson"}
    cuts : array of shape (n_features,), optional
    factor : {"auto", "enumerate", "simulate"}
    n_simulations, random_state : int
        As `trimbench.selection_bias.prior.Prior`, `trimbench.selection_bias.factors.Simulation` and
        `trimbench.fit_selection_corrected` have them. In cross-validation of features that are not all binary, give
        `trimbench.selection_bias.features.known_cuts(X)` of all cases: a fold does not see the others.
    calibrate : bool or "auto", default="auto"
        As for `trimbench.fit_selection_corrected`: whether cross-validation of the training cases corrects
        probabilities that do not hold, as of features that depend on each other. It takes about ten times as long.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        `model_` numbers them in this order.
    model_ : SelectionCorrectedModel
        With the posterior of alpha, the adjustment factor and the stored medians.
    selected_ : ndarray of shape (n_selected,)
        Positions of the selected features, from the largest absolute correlation to the smallest.
    feature_importances_ : ndarray of shape (n_features,)
        The absolute correlation with the class (with more classes eta, see `trimbench.fit_selection_corrected`) of the
        selected features, cut or as they are, and 0 for all others: `SelectFromModel` with ``threshold=1e-12`` keeps
        the selected ones.
    n_features_in_ : int

    Notes
    -----
    Missing values are allowed in `fit` and in predictions. It is a selector, too: `transform` keeps the columns of the
    selected features, in their order in X. Weights of cases are refused unless they are whole numbers, which count
    copies: the model counts cases.

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
        k: int | Literal["auto"] = "auto",
        *,
        features: Literal["binary", "gaussian"] = "binary",
        correct: bool = True,
        ties: Ties = "exact",
        shape: float = 0.5,
        rate: float = 5.0,
        theta0: float = 0.0,
        f0: float = 1.0,
        f1: float = 1.0,
        n_alpha: int = 100,
        n_theta: int = 20,
        n_theta_adjust: int = 100,
        rule: Rule = "gauss",
        cuts: ArrayLike | None = None,
        factor: Factor = "auto",
        n_simulations: int = 100_000,
        random_state: int = 0,
        calibrate: Calibrate = "auto",
    ) -> None:
        self.k = k
        self.features = features
        self.correct = correct
        self.ties = ties
        self.shape = shape
        self.rate = rate
        self.theta0 = theta0
        self.f0 = f0
        self.f1 = f1
        self.n_alpha = n_alpha
        self.n_theta = n_theta
        self.n_theta_adjust = n_theta_adjust
        self.rule = rule
        self.cuts = cuts
        self.factor = factor
        self.n_simulations = n_simulations
        self.random_state = random_state
        self.calibrate = calibrate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # One cut of each of two features does not tell three classes apart, as one of scikit-learn's checks expects.
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SelectionCorrectedNB:
        """Select features and fit the classifier.

        Parameters
        ----------
        X : array of shape (n_cases, n_features)
            Zeros and ones, or real values, which are cut at their medians unless `features` is "gaussian". Values may
            be missing.
        y : array of shape (n_cases,)
            Two classes or more.
        sample_weight : array of shape (n_cases,), optional
            How many copies of each case there are, 0 or more.

        Returns
        -------
        SelectionCorrectedNB
            Itself.
        """
        check_no_missing_label(y)
        self.__dict__.pop("_sums", None)  # of earlier cases
        table, labels = self._table(X, y)
        check_classification_targets(labels)
        if sample_weight is not None:
            copies = _copies(sample_weight, table)
            table, labels = np.repeat(table, copies, axis=0), np.repeat(labels, copies)
        self.classes_, response = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have two classes or more, got {len(self.classes_)} class; add cases of another class"
            )
        self._keep(self._fitted(table, response))
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predictive probability of each class, of shape (n_cases, n_classes)."""
        table = self._checked(X)
        return self.model_.predict_proba(table)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each case."""
        table = self._checked(X)
        found: NDArray[Any] = self.classes_[self.model_.predict(table)]
        return found

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log odds of the second of two classes, of shape (n_cases,), or the log probability of each."""
        table = self._checked(X)
        return self.model_.log_odds(table) if len(self.classes_) == 2 else self.model_.log_probabilities(table)

    def transform(self, X: ArrayLike) -> Any:
        """Return the columns of the selected features, in their order in X; masked values become NaN.

        An array, or what `set_output` says: a data frame keeps the types of its columns.
        """
        check_is_fitted(self)
        return super().transform(selectable(self, X) if _is_frame(X) else without_masks(X))

    def expected_error(self, X: ArrayLike) -> float:
        """Return the error rate that the predictions expect: the mean of 1 - max P(y | x)."""
        table = self._checked(X)
        return self.model_.expected_error(table)

    def _checked(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        table: NDArray[Any] = self._table(X)
        if len(self._binary) and len(other_numbers(table[:, self._binary])):
            names = getattr(self, "feature_names_in_", range(table.shape[1]))
            for feature in self._binary:
                warn_of_counts(str(names[feature]), table[:, feature])
        return table

    def _table(self, X: Any, y: Any = "no_validation") -> Any:
        """Return the cases as an array of numbers, with the labels of training cases if there are any."""
        is_training = not isinstance(y, str)
        allowed = {"ensure_all_finite": "allow-nan", "ensure_min_samples": 1 + is_training}
        if not _is_frame(X):
            return validate_data(self, without_masks(X), y, reset=is_training, **allowed)
        numbers = as_numbers(checked_rows(self, X, reset=is_training, y=y), "X")
        return check_X_y(numbers, y, **allowed) if is_training else check_array(numbers, **allowed)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selected_")
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask

    def _keep(self, model: SelectionCorrectedModel) -> None:
        self.model_ = model
        self.selected_ = model.selected
        self.feature_importances_ = np.where(self._get_support_mask(), model.selection.strengths, 0.0)

    def _cuts(self, table: NDArray[Any]) -> Any:
        """Return where features are cut, as known from some cases, and remember which of these are binary."""
        self._binary: NDArray[np.intp] = np.array([], dtype=np.intp)
        if self.features != "binary" or self.cuts is not None:
            return checked_cuts(self.cuts, table.shape[1])
        known = known_cuts(table)  # other cases may have larger counts
        cuts = np.full(table.shape[1], 0.5) if known is None else known
        self._binary = np.flatnonzero((cuts == 0.5) & (np.nan_to_num(table) <= 1).all(axis=0))
        return cuts

    def _how(self, n_features: int, cuts: Any) -> tuple[int, How]:
        """Return how many features to select, and how to fit."""
        check_one_of("features", self.features, _KINDS)
        k = min(_USUAL_K, n_features) if isinstance(self.k, str) and self.k == "auto" else self.k
        if not is_whole(k, 1) or k > n_features:
            raise ValueError(
                f"k must be 'auto' or a whole number from 1 to {n_features}, the number of features, got {self.k!r}"
            )
        prior = Prior(**{field.name: getattr(self, field.name) for field in fields(Prior)})
        seed = self.random_state if self.features in ("binary", "categorical") else Simulation().random_state
        simulation = Simulation(self.factor, self.n_simulations, seed)  # elsewhere nothing is drawn, so no seed matters
        return k, How(self.correct, self.ties, self.features, prior, cuts=cuts, simulation=simulation)

    def _fitted(self, table: NDArray[Any], response: NDArray[np.int64]) -> SelectionCorrectedModel:
        k, how = self._how(table.shape[1], self.cuts)
        how = replace(how, cuts=self._cuts(table))
        model: SelectionCorrectedModel = fitted(table, response, k, how, self.calibrate, allow_fewer=True)
        return self._warned(model, k)

    def _fitted_to(self, sums: Any, class_sizes: NDArray[np.int64], n_features: int) -> SelectionCorrectedModel:
        k, how = self._how(n_features, self.cuts)
        return self._warned(fitted_to_sums(sums, class_sizes, n_features, k, how, allow_fewer=True), k)

    def _warned(self, model: SelectionCorrectedModel, k: int) -> SelectionCorrectedModel:
        if len(model.selected) < k:
            warnings.warn(
                f"k={k} is reduced to {len(model.selected)}: no other feature is correlated with the class",
                stacklevel=4,
            )
        return model


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") or hasattr(X, "collect_schema")


def _copies(sample_weight: ArrayLike, table: NDArray[Any]) -> NDArray[np.int64]:
    """Return whole weights; raise ValueError for others."""
    weights = _check_sample_weight(without_masks(sample_weight), table)
    wrong = weights[(weights < 0) | (weights != np.floor(weights))]
    if len(wrong):
        raise ValueError(
            "sample_weight must hold whole numbers, 0 or more: copies of each case, as the model counts cases; "
            f"got {wrong[0]}; round or leave out the weights"
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total > _MOST_COPIES:
        raise ValueError(
            f"sample_weight must add up to {_MOST_COPIES} at most, as each weight counts copies of a case, "
            f"got {total:.4g}; divide the weights"
        )
    copies: NDArray[np.int64] = weights.astype(np.int64)
    return copies
