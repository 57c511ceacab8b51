"""Logistic regression that predicts where features are missing, as a scikit-learn classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from trimbench.conformant.classifier_weights import set_linear_scores
from trimbench.conformant.conform import SolverName, check_solver
from trimbench.conformant.incomplete_classifier import IncompleteRows, fit_incomplete
from trimbench.conformant.logistic_regression import fit_logistic_regression, row_weights
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.estimators.column_encoding import ColumnEncoder, Numeric, categorical_names
from trimbench.estimators.given_classifier import GivenClassifier, check_left_out
from trimbench.estimators.one_hot_zeros import one_hot_groups, warn_of_zeros
from trimbench.estimators.raw_columns import checked_rows, checked_training_rows, plain_table
from trimbench.estimators.row_explanations import RowExplanations
from trimbench.estimators.weighted_rows import class_weights, conformant_model, repeated

if TYPE_CHECKING:
    import pandas as pd

_NUMERIC = ("gaussian", "cut")
# So small that weights of rows give the same digits as repeated rows.
_GRADIENT_TOLERANCE = 1e-9


class NaiveConformantClassifier(RowExplanations, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with expected predictions for rows with missing features.

    A row without missing features is classified by the logistic regression itself; a missing value (NaN) is averaged
    out under the naive Bayes model, or the mixture of such models, that conforms with it and fits the features best.
    Training rows may have missing values, too: the regression then makes the classes most likely given what is
    observed.

    Parameters
    ----------
    inverse_penalty : float
        C of the logistic regression.
    smoothing : float
        Pseudo-count of the naive Bayes model.
    solver : {"newton", "gpkit", "cvxpy"}
    categorical_features : "from_dtype", mask, or sequence of names or positions
        Columns whose numbers are codes of categories, besides those of text and of categories, which always are: one
        variable each. Other columns are binary where the training rows have zeros and ones (or truth values) only, and
        numeric otherwise. The default, ``"from_dtype"``, names no other columns.
    numeric : {"gaussian", "cut"}
        How numeric columns are modelled: Gaussian in each class, or 1 above the mean plus 0.05 standard deviations and
        0 below, as in the paper.
    max_iter : int
        Most steps of Newton's method for the logistic regression.
    n_components : int or "auto"
        Number of components of the model, see `trimbench.conform`.
    class_weight : dict, "balanced" or None
        Weights of the classes in the logistic regression, as in scikit-learn. The model of the features does not depend
        on them.
    estimator : fitted classifier, optional
        A fitted `LogisticRegression`, `BernoulliNB` or `CategoricalNB`, or a fitted pipeline that ends in one, to agree
        with; `fit` then learns the model of the features alone. Each step before the last must make each of its columns
        from a single column of the rows, or several that are one-hot, as scalers, encoders, imputers and a
        `ColumnTransformer` of them do. A column of zeros and ones stays binary if it is scaled.
        Wrap it in `sklearn.frozen.FrozenEstimator` where it is cloned, as in cross-validation.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If fitted on a data frame.
    logistic_regression_ : LogisticRegression
        On the encoded columns, see `get_feature_names_out`; the last step of `estimator` if it is given.
    model_ : ConformantModel or ConformantMixture
        Its conformant naive Bayes model; ``model_.residual`` is the certificate of the optimum.

    References
    ----------
    Khosravi, Liang, Choi and Van den Broeck (2019).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.integers(20, 80, 200), "smoker": rng.choice(["no", "yes"], 200)})
    >>> y = X["age"] + 20 * (X["smoker"] == "yes") > 60
    >>> classifier = NaiveConformantClassifier().fit(X, y)
    >>> classifier.predict(pd.DataFrame({"age": [30, np.nan], "smoker": [None, "yes"]})).tolist()
    [False, True]
    """

    def __init__(
        self,
        inverse_penalty: float = 1.0,
        smoothing: float = 1.0,
        solver: SolverName = "newton",
        categorical_features: Any = "from_dtype",
        numeric: Numeric = "gaussian",
        max_iter: int = 1000,
        n_components: int | Literal["auto"] = 1,
        class_weight: Any = None,
        estimator: Any = None,
    ) -> None:
        self.inverse_penalty = inverse_penalty
        self.smoothing = smoothing
        self.solver = solver
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.max_iter = max_iter
        self.n_components = n_components
        self.class_weight = class_weight
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NaiveConformantClassifier:
        """Fit the logistic regression and its conformant model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Numbers, truth values, text or categories, in a data frame of pandas or polars or an array of objects; NaN,
            None or NA where a value is missing. A sparse matrix becomes dense.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            How often each row counts. With missing values or several components they must be whole numbers.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a value is infinite, a column has none, there is only one class, or a parameter is not allowed.

        Warns
        -----
        MissingAsZerosWarning
            When some rows have no 1 in columns that look one-hot.
        IdentifierColumnWarning
            When a column of text has more values than half of the rows; it is left out.
        """
        self._check_parameters()
        frame, labels = checked_training_rows(self, plain_table(X), y)
        check_classification_targets(labels)
        weights = row_weights(sample_weight, len(frame))
        if not weights.all():
            frame, labels, weights = frame[weights > 0], labels[weights > 0], weights[weights > 0]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_.tolist()}")
        return self._fit_model(frame, codes, weights)

    @classmethod
    def from_fitted(cls, estimator: Any, X: Any, **settings: Any) -> NaiveConformantClassifier:
        """Return the conformant classifier of a fitted estimator, with a model of the features of some rows.

        Parameters
        ----------
        estimator : fitted classifier
            As the parameter `estimator`.
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows as the estimator takes them, which may have missing values. Labels are not needed.
        **settings
            Other parameters of this class.

        Raises
        ------
        ValueError
            As `fit`.
        """
        classifier = cls(estimator=estimator, **settings)
        classifier._check_parameters()
        frame = checked_rows(classifier, plain_table(X), reset=True)
        classifier.classes_ = np.array([])
        return classifier._fit_model(frame, np.zeros(len(frame), dtype=np.intp), np.ones(len(frame)))

    def _fit_model(
        self, frame: pd.DataFrame, codes: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NaiveConformantClassifier:
        self._learn_columns(frame, weights)
        encoded = self._encoding.encode(frame)
        groups = one_hot_groups(encoded, self._encoding.zeros_and_ones)
        warn_of_zeros(encoded, groups, self.get_feature_names_out().tolist(), stacklevel=3)
        self._one_hot_groups = [group for group in groups if not (encoded[:, group] == 0).all(axis=1).any()]
        has_gaps = bool(np.isnan(encoded).any())
        if (has_gaps or self.n_components != 1) and (weights != 1).any():
            encoded, codes, weights = repeated(encoded, codes, weights)
        if self.estimator is None:
            self._fit_regression(encoded, codes, weights, has_gaps)
        if self.estimator is not None or not has_gaps:
            given = self._encoding.weights if isinstance(self._encoding, GivenClassifier) else self.logistic_regression_
            layout, options = self._encoding.layout, (self.solver, self.smoothing, self.n_components)
            self.model_ = conformant_model(given, encoded, layout, weights, *options)
        return self

    def _check_parameters(self) -> None:
        if self.numeric not in _NUMERIC:
            raise ValueError(f"numeric must be one of {', '.join(_NUMERIC)}, got {self.numeric!r}")
        if not isinstance(self.inverse_penalty, int | float | np.number) or not self.inverse_penalty > 0:
            raise ValueError(f"inverse_penalty must be a positive number, got {self.inverse_penalty!r}")
        check_solver(self.solver)
        if self.estimator is not None:
            check_left_out(self)

    def _learn_columns(self, frame: pd.DataFrame, weights: NDArray[np.float64]) -> None:
        """Determine the kind of each column, or what the given estimator makes of it."""
        names = [str(name) for name in frame.columns]
        self._names = names
        empty = [name for name in names if frame[name].isna().all()]
        if empty:
            raise ValueError(f"X must have a value in each column, got none in column {empty[0]!r}; leave it out")
        self._encoding: ColumnEncoder | GivenClassifier
        if self.estimator is None:
            named = categorical_names(self.categorical_features, names)
            self._encoding = ColumnEncoder.fit(frame, named, self.numeric, weights)
            return
        self._encoding = GivenClassifier.of(self.estimator, frame)
        self.logistic_regression_ = self._encoding.classifier
        self.classes_ = self._encoding.classes_with(self.classes_)
        self.n_iter_ = getattr(self.logistic_regression_, "n_iter_", np.array([1]))

    def _fit_regression(
        self, encoded: NDArray[np.float64], codes: NDArray[np.intp], weights: NDArray[np.float64], has_gaps: bool
    ) -> None:
        of_classes = class_weights(self.class_weight, self.classes_, codes, weights)[codes]
        start = np.where(np.isnan(encoded), np.nanmean(encoded, axis=0), encoded) if has_gaps else encoded
        self.logistic_regression_ = fit_logistic_regression(
            start,
            self.classes_[codes],
            self.inverse_penalty,
            sample_weight=weights * of_classes,
            tolerance=_GRADIENT_TOLERANCE,
            max_iterations=self.max_iter,
        )
        self.n_iter_ = self.logistic_regression_.n_iter_
        if not has_gaps:
            return
        if self.solver != "newton":
            raise ValueError(f"solver must be 'newton' for rows with missing values, got {self.solver!r}")
        rows = IncompleteRows(encoded, codes, self._encoding.layout, self.inverse_penalty, self.smoothing, of_classes)
        self.model_ = fit_incomplete(self.logistic_regression_, rows, self.n_components)
        set_linear_scores(self.logistic_regression_, self.model_.weights, self.model_.biases)
        del self.logistic_regression_.gradient_norm_  # which was of the rows with means in the gaps

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the expected probability of each class; NaN marks a missing feature.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            As the training rows; a category that they do not have counts as missing.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        Raises
        ------
        ValueError
            When a value is infinite, or one that its column cannot have.

        Warns
        -----
        MissingAsZerosWarning
            When a row has no 1 in columns of which every training row has one.
        """
        probabilities: NDArray[np.float64] = self._fitted_model().predict_proba(self._encoded(X))
        return probabilities

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`, accurate for tiny probabilities."""
        logarithms: NDArray[np.float64] = self._fitted_model().predict_log_proba(self._encoded(X))
        return logarithms

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return log-odds of the second of two classes, shape (n_rows,), else the logarithm of `predict_proba`."""
        logarithms = self.predict_log_proba(X)
        return logarithms[:, 1] - logarithms[:, 0] if len(self.classes_) == 2 else logarithms

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; the first of equally probable ones."""
        return self._fitted_model().predict(self._encoded(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the encoded columns, the columns of `model_`; `input_features` is ignored."""
        check_is_fitted(self, "_encoding")
        encoding = self._encoding
        if isinstance(encoding, ColumnEncoder):
            return np.array(encoding.outputs, dtype=object)
        return encoding.output_names(self._names)

    def _fitted_model(self) -> ConformantModel | ConformantMixture:
        check_is_fitted(self, "model_")
        return self.model_

    def _encoded(self, X: Any) -> NDArray[np.float64]:
        encoded = self._encoding.encode(checked_rows(self, plain_table(X)))
        warn_of_zeros(encoded, self._one_hot_groups, self.get_feature_names_out().tolist(), stacklevel=3)
        return encoded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
