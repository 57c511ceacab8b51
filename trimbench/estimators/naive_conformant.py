"""Logistic regression that predicts where features are missing, as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from trimbench.conformant.conform import SolverName, check_solver, conform
from trimbench.conformant.explanations import Explanation
from trimbench.conformant.layout import as_positions
from trimbench.conformant.numeric_input import as_row
from trimbench.conformant.probabilistic_explanations import ProbabilisticExplanation

_NUMERIC = ("gaussian", "cut")
_MARGIN = 0.05


class IncompleteRowsWarning(UserWarning):
    """Training rows with missing values were left out."""


class NaiveConformantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with expected predictions for rows with missing features.

    It is fitted to the complete training rows; the others are left out, with an `IncompleteRowsWarning` that says how
    many. A row without missing features is classified by the logistic regression itself; a missing value (NaN) is
    averaged out under the naive Bayes model that conforms with it and fits the features best.

    Parameters
    ----------
    inverse_penalty : float
        C of the logistic regression.
    smoothing : float
        Pseudo-count of the naive Bayes model.
    solver : {"newton", "gpkit", "cvxpy"}
    categorical_features : sequence of int, optional
        Positions of columns whose numbers are codes of categories: one variable each. Other columns are binary where
        the training rows have zeros and ones only, and numeric otherwise.
    numeric : {"gaussian", "cut"}
        How numeric columns are modelled: Gaussian in each class, or 1 above the mean plus 0.05 standard deviations and
        0 below, as in the paper.
    max_iter : int
        Most iterations of the logistic regression.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    logistic_regression_ : LogisticRegression
        On the encoded columns.
    model_ : ConformantModel
        Its conformant naive Bayes model; ``model_.residual`` is the certificate of the optimum.

    References
    ----------
    Khosravi, Liang, Choi and Van den Broeck (2019).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> classifier = NaiveConformantClassifier().fit(X, y)
    >>> classifier.predict([[2.0, np.nan, 0.0], [-2.0, np.nan, np.nan]]).tolist()
    [True, False]
    """

    def __init__(
        self,
        inverse_penalty: float = 1.0,
        smoothing: float = 1.0,
        solver: SolverName = "newton",
        categorical_features: Sequence[int] | None = None,
        numeric: str = "gaussian",
        max_iter: int = 1000,
    ) -> None:
        self.inverse_penalty = inverse_penalty
        self.smoothing = smoothing
        self.solver = solver
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike) -> NaiveConformantClassifier:
        """Fit the logistic regression and its conformant model.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Numbers. Rows with a missing value (NaN, or NA of pandas) are left out.
        y : array of shape (n_rows,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a value is infinite, no row is complete, there is only one class, or a parameter is not allowed.

        Warns
        -----
        IncompleteRowsWarning
            When rows are left out.
        """
        if self.numeric not in _NUMERIC:
            raise ValueError(f"numeric must be one of {', '.join(_NUMERIC)}, got {self.numeric!r}")
        if not isinstance(self.inverse_penalty, int | float | np.number) or not self.inverse_penalty > 0:
            raise ValueError(f"inverse_penalty must be a positive number, got {self.inverse_penalty!r}")
        check_solver(self.solver)
        table, labels = validate_data(self, _without_na(X), y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(labels)
        complete = ~np.isnan(table).any(axis=1)
        if not complete.any():
            raise ValueError("X must have a row without missing values to learn from, got none; impute some")
        if not complete.all():
            warnings.warn(
                f"{int((~complete).sum())} of {len(table)} training rows have missing values and were left out; impute "
                "them first if they should count",
                IncompleteRowsWarning,
                stacklevel=2,
            )
        self.classes_ = np.unique(labels[complete])
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have at least two classes among the complete rows, got one class: {self.classes_.tolist()}"
            )
        self._learn_columns(table[complete])
        encoded, categorical, real = self._encode(table[complete])
        self.logistic_regression_ = LogisticRegression(C=self.inverse_penalty, max_iter=self.max_iter)
        self.logistic_regression_.fit(encoded, labels[complete])
        self.n_iter_ = self.logistic_regression_.n_iter_
        self.model_ = conform(
            self.logistic_regression_, encoded, self.solver, self.smoothing, categorical=categorical, real=real
        )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the expected probability of each class; NaN marks a missing feature.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        Raises
        ------
        ValueError
            When a value is infinite, or one that its column cannot have.
        """
        check_is_fitted(self)
        probabilities: NDArray[np.float64] = self.model_.predict_proba(self._encoded(X))
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row; the first of equally probable ones."""
        check_is_fitted(self)
        return self.model_.predict(self._encoded(X))

    @overload
    def explain(self, x: ArrayLike, against: Any = None, delta: None = None) -> Explanation: ...

    @overload
    def explain(
        self, x: ArrayLike, against: Any = None, *, delta: float, max_sets: int = 1
    ) -> ProbabilisticExplanation: ...

    def explain(
        self, x: ArrayLike, against: Any = None, delta: float | None = None, max_sets: int = 1
    ) -> Explanation | ProbabilisticExplanation:
        """Return the smallest set of features that explains the classification of one row.

        Features are columns of `X`. `ConformantModel.explain` says what is kept without and with `delta`.

        Parameters
        ----------
        x : array of shape (n_columns,)
        against : label, optional
            The one of `classes_` to compare the prediction with. If there are more than two, it is required without
            `delta`.
        delta : float, optional
            Probability with which the class is kept, above 0 and up to 1.
        max_sets : int
            With `delta`: how many smallest sets to list.

        Returns
        -------
        Explanation or ProbabilisticExplanation
            Its classes are labels of `classes_`.

        Raises
        ------
        ValueError
            When `x` is not a row, has a value that its column cannot have, `against` is not another class, or a
            parameter is not allowed.
        """
        check_is_fitted(self)
        row = as_row(x, self.n_features_in_)
        if np.isinf(row).any():
            raise ValueError(f"x must be finite; mark a missing value with NaN; got {row[0].tolist()}")
        encoded = self._encode(row)[0][0]
        if delta is None:
            return self.model_.explain(encoded, against)
        return self.model_.explain(encoded, against, delta=delta, max_sets=max_sets)

    def _encoded(self, X: ArrayLike) -> NDArray[np.float64]:
        table = validate_data(self, _without_na(X), dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        return self._encode(table)[0]

    def _learn_columns(self, X: NDArray[np.float64]) -> None:
        """Determine the kind of each column."""
        given = self.categorical_features
        named = set() if given is None else set(as_positions(given, "categorical_features"))
        for column in named:
            if not 0 <= column < X.shape[1]:
                raise ValueError(f"categorical_features must be from 0 to {X.shape[1] - 1}, got {column!r}")
        self.categories_ = {column: np.unique(X[:, column]) for column in sorted(named)}
        is_binary = ((X == 0) | (X == 1)).all(axis=0)
        self.numeric_ = [c for c in range(X.shape[1]) if c not in named and not is_binary[c]]
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        if self.numeric == "cut":
            self.cuts_ = mean + _MARGIN * deviation
        # Numeric columns in units of their deviation, so that the penalty does not depend on their scale.
        self.mean_, self.scale_ = mean, np.where(deviation > 0, deviation, 1.0)

    def _encode(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[list[int]], list[int]]:
        """Return the columns of the logistic regression, and which are categorical and real-valued."""
        parts: list[NDArray[np.float64]] = []
        categorical: list[list[int]] = []
        real: list[int] = []
        numeric = set(self.numeric_)
        width = 0
        for column in range(X.shape[1]):
            values = X[:, column]
            if column in self.categories_:
                part = self._one_hot(values, column)
                categorical.append(list(range(width, width + part.shape[1])))
            elif column in numeric and self.numeric == "cut":
                part = np.where(np.isnan(values), np.nan, values > self.cuts_[column])[:, None]
            elif column in numeric:
                part = ((values - self.mean_[column]) / self.scale_[column])[:, None]
                real.append(width)
            else:
                part = values[:, None]
            parts.append(part)
            width += part.shape[1]
        return np.hstack(parts), categorical, real

    def _one_hot(self, values: NDArray[np.float64], column: int) -> NDArray[np.float64]:
        known = self.categories_[column]
        strange = ~np.isnan(values) & ~np.isin(values, known)
        if strange.any():
            raise ValueError(
                f"column {column} must have one of the categories {known.tolist()}, or NaN, got "
                f"{values[strange][0]!r}; mark an unknown category with NaN"
            )
        return np.where(np.isnan(values)[:, None], np.nan, values[:, None] == known)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _without_na(X: Any) -> Any:
    """Return a data frame of objects with NaN in place of pandas' NA, which scikit-learn does not accept."""
    if not hasattr(X, "isna") or not hasattr(X, "columns") or np.dtype(object) not in set(X.dtypes):
        return X
    return type(X)(np.where(X.isna(), np.nan, X.to_numpy(dtype=object)), index=X.index, columns=X.columns)
