"""Naive conformant classifiers of raw tables as a scikit-learn classifier, and explanations of their rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from trimbench._checks import check_one_of, check_positive
from trimbench.acquisition.policy import Asking
from trimbench.conformant.choice import Components, Covariance, check_form
from trimbench.conformant.conform import (
    IncompleteRows,
    Solver,
    check_newton,
    check_solver,
    conform,
    fit_incomplete,
    set_linear_scores,
)
from trimbench.conformant.explanations import By, ContrastiveExplanation, Explanation, SufficientExplanation
from trimbench.conformant.layout import row_weights
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.probabilistic import ProbabilisticExplanation
from trimbench.estimators.acquisition import ConformantColumns
from trimbench.estimators.columns import (
    ColumnEncoder,
    Numeric,
    categorical_names,
    checked_cells,
    checked_rows,
    checked_training_rows,
    one_hot_groups,
    warn_of_zeros,
)
from trimbench.estimators.documented import Documented
from trimbench.estimators.fitted_pipeline import FittedPipeline, check_left_out
from trimbench.estimators.partial import ConformantInParts
from trimbench.networks.values import unmasked

if TYPE_CHECKING:
    import pandas as pd

_NUMERIC = ("gaussian", "cut")
# So small that weights of rows give the same digits as repeated rows.
_GRADIENT_TOLERANCE = 1e-9
# Of the regression with means in the gaps, from which the fit to incomplete rows starts.
_TOLERANCE_OF_START = 1e-4
# "auto" chooses among models of single rows: up to this many times as many, if weights say so.
_MOST_REPEATED = 10


class NaiveConformantClassifier(ConformantInParts, Asking, Documented, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with expected predictions for rows with missing features.

    A row without missing features is classified by the logistic regression itself; a missing value (NaN) is averaged
    out under the distribution of the features that conforms with it and fits them best: a mixture of naive Bayes models
    whose numeric features may have a covariance, as large as held-out rows ask for.
    If training rows have missing values, the regression makes the classes most likely given the observed values.

    Parameters
    ----------
    C : float
        Inverse of the strength of the penalty of the logistic regression, as in scikit-learn.
    smoothing : float
        Pseudo-count of the naive Bayes model.
    solver : "newton" or callable
        As in `trimbench.conform`; rows with missing values need ``"newton"``.
    categorical_features : "from_dtype", mask, or sequence of names or positions
        Columns whose numbers are codes of categories; columns of text or of pandas' categories are always categorical.
        Each is one variable. Other columns are binary if the training rows have only zeros and ones (or truth values)
        there, and numeric otherwise. The default, ``"from_dtype"``, names no further columns.
    numeric : {"gaussian", "cut"}
        How numeric columns are modelled: Gaussian in each class, or 1 above the mean plus 0.05 standard deviations and
        0 below, as in the paper.
    max_iter : int
        Maximum number of Newton steps for the logistic regression.
    n_components : int or "auto"
        Number of components of the model, see `trimbench.conform`. ``1`` with ``covariance="diagonal"`` is the naive
        Bayes model of the paper, the only one whose evidence for a class adds up over the features (see `explain`).
    class_weight : dict, "balanced" or None
        Weights of the classes in the logistic regression, as in scikit-learn. The model of the features does not depend
        on them, but rows of a class with the weight 0 are left out: its probability is 0.
    estimator : fitted classifier, optional
        A fitted `LogisticRegression`, `BernoulliNB` or `CategoricalNB`, or a fitted pipeline that ends in one, to agree
        with; `fit` then learns only the model of the features. Each step before the last must make one column, or
        several that are one-hot, from a single column of the rows, as scalers, encoders, imputers and a
        `ColumnTransformer` of them do. A column of zeros and ones stays binary if it is scaled.
        Wrap it in `sklearn.frozen.FrozenEstimator` where it is cloned, as in cross-validation.
    covariance : {"auto", "full", "diagonal"}
        Whether the features have a covariance, see `trimbench.conform`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If fitted on a data frame.
    logistic_regression_ : LogisticRegression
        On the encoded columns; with `estimator` its last step (for naive Bayes linear scores), on that step's columns.
    model_ : ConformantModel
        Its conformant model; ``model_.residual`` is the certificate of the optimum.
    n_components_ : int
        The number of components that was given or chosen.
    covariance_ : {"full", "diagonal"}
        Whether the features have a covariance, as given or chosen.

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
        C: float = 1.0,
        smoothing: float = 1.0,
        solver: Solver = "newton",
        categorical_features: Any = "from_dtype",
        numeric: Numeric = "gaussian",
        max_iter: int = 1000,
        n_components: Components = "auto",
        class_weight: Any = None,
        estimator: Any = None,
        covariance: Covariance = "auto",
    ) -> None:
        self.C = C
        self.smoothing = smoothing
        self.solver = solver
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.max_iter = max_iter
        self.n_components = n_components
        self.class_weight = class_weight
        self.estimator = estimator
        self.covariance = covariance

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NaiveConformantClassifier:
        """Fit the logistic regression and its conformant model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Numbers, truth values, text or categories, in a data frame of pandas or polars or an array of objects; NaN,
            None or NA where a value is missing. A sparse matrix becomes dense.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            How often each row counts. With missing values, several components or ``covariance="full"`` they must be
            whole numbers. ``"auto"`` means one component without covariance if they are not, or more than ten times as
            large as the number of rows in sum.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When a value is infinite, no column has a value (with `estimator`, when any has none), there is only one
            class, or a parameter is not allowed.

        Warns
        -----
        MissingAsZerosWarning
            When some rows have no 1 in columns that look one-hot.
        IdentifierColumnWarning
            When a column of text or categories has over 10 values and over half as many as rows with a value, or (as
            a UserWarning) a column has no value at all; it is left out.
        """
        self._check_parameters()
        frame, labels = checked_training_rows(self, X, y)
        weights = row_weights(sample_weight, len(frame))
        if not weights.all():
            frame, labels, weights = frame[weights > 0], labels[weights > 0], weights[weights > 0]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_.tolist()}")
        of_classes = class_weights(self.class_weight, self.classes_, codes, weights)
        if not (counts := of_classes > 0).all():
            if counts.sum() < 2:
                raise ValueError(
                    f"class_weight must be above 0 for two classes or more, got {str(self.class_weight)[:80]}"
                )
            never = self.classes_[~counts].tolist()
            warnings.warn(
                f"class_weight is 0 for {never}: their rows are left out, their probability is 0", stacklevel=2
            )
            kept = counts[codes]
            frame, weights, of_classes = frame[kept], weights[kept], of_classes[counts]
            codes = (np.cumsum(counts) - 1)[codes[kept]]
        self._possible = self.classes_[counts]
        return self._fit_model(frame, codes, weights, of_classes)

    @classmethod
    def from_fitted(cls, estimator: Any, X: Any, **settings: Any) -> NaiveConformantClassifier:
        """Return the conformant classifier of a fitted estimator, with a model of the features learned from some rows.

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
            As in `fit`.
        """
        classifier = cls(estimator=estimator, **settings)
        classifier._check_parameters()
        frame = checked_rows(classifier, X, reset=True)
        classifier.classes_ = np.array([])
        return classifier._fit_model(frame, np.zeros(len(frame), dtype=np.intp), np.ones(len(frame)), np.ones(1))

    def _fit_model(
        self,
        frame: pd.DataFrame,
        codes: NDArray[np.intp],
        weights: NDArray[np.float64],
        of_classes: NDArray[np.float64],
    ) -> NaiveConformantClassifier:
        self._learn_columns(frame, weights)
        encoded = self._encoding.encode(frame)
        groups = one_hot_groups(encoded, self._encoding.zeros_and_ones, weights)
        warn_of_zeros(encoded, groups, self.get_feature_names_out().tolist(), stacklevel=3)
        self._one_hot_groups = [group for group in groups if not (encoded[:, group] == 0).all(axis=1).any()]
        has_gaps = bool(np.isnan(encoded).any())
        n_components, covariance = self.n_components, self.covariance
        if (weights != 1).any():
            whole = (weights == np.floor(weights)).all() and weights.sum() <= _MOST_REPEATED * len(weights)
            if has_gaps or whole or n_components not in (1, "auto") or covariance == "full":
                encoded, codes, weights = repeated(encoded, codes, weights)
            else:
                n_components, covariance = 1, "diagonal"
        if self.estimator is None:
            self._fit_regression(encoded, codes, weights, of_classes[codes], has_gaps)
        if self.estimator is not None or not has_gaps:
            given = self._encoding.weights if isinstance(self._encoding, FittedPipeline) else self.logistic_regression_
            layout = self._encoding.layout
            self.model_ = conform(
                given,
                encoded,
                self.solver,
                self.smoothing,
                categorical=layout.categorical,
                real=layout.real,
                n_components=n_components,
                covariance=covariance,
                sample_weight=weights if (weights != 1).any() else None,
            )
        return self

    @property
    def n_components_(self) -> int:
        """The number of components that was given or chosen."""
        return self._fitted_model().n_components

    @property
    def covariance_(self) -> str:
        """Whether features have a covariance ("full"), or are independent in each class ("diagonal")."""
        return self._fitted_model().covariance

    def _check_parameters(self) -> None:
        check_one_of("numeric", self.numeric, _NUMERIC)
        check_positive("C", self.C)
        check_solver(self.solver)
        check_form(self.n_components, self.covariance)
        if self.estimator is not None:
            check_left_out(self)

    def _learn_columns(self, frame: pd.DataFrame, weights: NDArray[np.float64]) -> None:
        """Learn the kind of each column, or what the given estimator makes of it."""
        names = [str(name) for name in frame.columns]
        self._names = names
        empty = [name for name in names if frame[name].isna().all()]
        if empty and (self.estimator is not None or len(empty) == len(names)):
            raise ValueError(f"X must have a value in each column, got none in column {empty[0]!r}; leave it out")
        self._encoding: ColumnEncoder | FittedPipeline
        if self.estimator is None:
            named = categorical_names(self.categorical_features, self._column_labels)
            self._encoding = ColumnEncoder.fit(frame, named, self.numeric, weights)
            return
        self._encoding = FittedPipeline.of(self.estimator, frame)
        self.logistic_regression_ = self._encoding.classifier
        self.classes_ = self._encoding.classes_with(self.classes_)
        self.n_iter_ = getattr(self.logistic_regression_, "n_iter_", np.array([1]))

    def _fit_regression(
        self,
        encoded: NDArray[np.float64],
        codes: NDArray[np.intp],
        weights: NDArray[np.float64],
        of_classes: NDArray[np.float64],
        has_gaps: bool,
    ) -> None:
        start = np.where(np.isnan(encoded), np.nanmean(encoded, axis=0), encoded) if has_gaps else encoded
        self.logistic_regression_ = fit_logistic_regression(
            start,
            self._possible[codes],
            self.C,
            sample_weight=weights * of_classes,
            tol=_TOLERANCE_OF_START if has_gaps else _GRADIENT_TOLERANCE,
            max_iter=self.max_iter,
        )
        self.n_iter_ = self.logistic_regression_.n_iter_
        if not has_gaps:
            return
        check_newton(self.solver, "rows with missing values")
        rows = IncompleteRows(encoded, codes, self._encoding.layout, self.C, self.smoothing, of_classes)
        self.model_ = fit_incomplete(self.logistic_regression_, rows, self.n_components, covariance=self.covariance)
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
        UnknownValuesWarning
            When a column of several rows has no known category, or numbers other than the 0 and 1 of the training rows.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`, accurate for tiny probabilities."""
        logarithms: NDArray[np.float64] = self._fitted_model().predict_log_proba(self._encoded(X))
        if logarithms.shape[1] == len(self.classes_):
            return logarithms
        padded = np.full((len(logarithms), len(self.classes_)), -np.inf)  # classes of weight 0
        padded[:, np.isin(self.classes_, self.model_.classes)] = logarithms
        return padded

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return log-odds of the second of two classes, shape (n_rows,), else the logarithm of `predict_proba`."""
        logarithms = self.predict_log_proba(X)
        return logarithms[:, 1] - logarithms[:, 0] if len(self.classes_) == 2 else logarithms

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; the first of equally probable ones."""
        return self._fitted_model().predict(self._encoded(X))

    @overload
    def same_decision_probability(self, X: Any, interval: Literal[False] = False) -> NDArray[np.float64]: ...

    @overload
    def same_decision_probability(
        self, X: Any, interval: Literal[True]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def same_decision_probability(self, X: Any, interval: bool = False) -> Any:
        """Return the probability that each row keeps its class once all of its features are known.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            As in `predict_proba`.
        interval : bool
            Whether to return lower and upper bounds instead.

        Returns
        -------
        ndarray of shape (n_rows,), or two of them
            See `trimbench.ConformantModel.same_decision_probability`.

        Raises
        ------
        ValueError
            As in `predict_proba`.
        """
        model, rows = self._fitted_model(), self._encoded(X)
        if interval:
            return model.same_decision_probability(rows, interval=True)
        return model.same_decision_probability(rows)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the encoded columns, the columns of `model_`; `input_features` is ignored."""
        check_is_fitted(self, "_encoding")
        encoding = self._encoding
        if isinstance(encoding, ColumnEncoder):
            return np.array(encoding.outputs, dtype=object)
        return encoding.output_names(self._names)

    def _fitted_model(self) -> ConformantModel:
        check_is_fitted(self, "model_")
        return self.model_

    def _encoded(self, X: Any) -> NDArray[np.float64]:
        encoding = self._encoding
        if isinstance(encoding, ColumnEncoder):
            encoded = encoding.encode(checked_cells(self, X))
        else:
            encoded = encoding.encode(checked_rows(self, X))
        if self._one_hot_groups:
            warn_of_zeros(encoded, self._one_hot_groups, self.get_feature_names_out().tolist(), stacklevel=3)
        return encoded

    @overload
    def explain(self, x: ArrayLike, against: Any = None, delta: None = None) -> SufficientExplanation: ...

    @overload
    def explain(
        self, x: ArrayLike, against: Any = None, *, delta: float, max_sets: int = 1
    ) -> ProbabilisticExplanation: ...

    def explain(self, x: ArrayLike, against: Any = None, delta: float | None = None, max_sets: int = 1) -> Explanation:
        """Return the smallest set of features that explains the classification of one row.

        Features are columns of `X`; of a given `estimator`, the columns that it uses. `ConformantModel.explain` says
        what is kept without and with `delta`.

        Parameters
        ----------
        x : array of shape (n_columns,), or Series or dict with the names of the columns
        against : label, optional
            The class, one of `classes_`, to compare the prediction with. Required without `delta` if there are more
            than two.
        delta : float, optional
            Probability with which the class must be kept, above 0 and up to 1, below 1 with a covariance. Required with
            several components or a covariance.
        max_sets : int
            With `delta`: how many smallest sets to list.

        Returns
        -------
        Explanation
            Its classes are labels of `classes_`.

        Raises
        ------
        ValueError
            When `x` is not a row of possible values, `against` is not another class, or a parameter is bad or missing.
        """
        row = self._encoded_row(x)
        if delta is None:
            return self.model_.explain(row, against).named(self._feature_names())
        return self.model_.explain(row, against, delta=delta, max_sets=max_sets).named(self._feature_names())

    def contrast(
        self, x: ArrayLike, against: Any = None, *, by: By = "change", max_sets: int = 1
    ) -> ContrastiveExplanation:
        """Return the fewest features whose change, or whose loss, would give one row another class.

        Features are columns of `X`; of a given `estimator`, the columns that it uses.

        Parameters
        ----------
        x : array of shape (n_columns,), or Series or dict with the names of the columns
        against : label, optional
            The class, one of `classes_`, that should get the higher score; by default any other.
        by : {"change", "loss"}
            As in `ConformantModel.contrast`.
        max_sets : int
            How many smallest sets to list.

        Returns
        -------
        ContrastiveExplanation
            Its classes are labels of `classes_`; its `row` has the columns of `get_feature_names_out`.

        Raises
        ------
        ValueError
            When `x` is not a row of possible values, `against` is not another class, or a parameter is not allowed.
        """
        row = self._encoded_row(x)
        return self.model_.contrast(row, against, by=by, max_sets=max_sets).named(self._feature_names())

    def _asker(self) -> ConformantColumns:
        model = self._fitted_model()
        positions = list(range(len(self._names)))
        if isinstance(self._encoding, FittedPipeline):
            positions = [int(self._encoding.sources[columns[0]]) for columns in model.layout.features]
        if len(set(positions)) < len(positions) or min(positions) < 0:
            raise ValueError(
                "estimator must make one feature of each column that it uses, for questions about columns; ask "
                "`model_`, of the columns of `get_feature_names_out`"
            )
        return ConformantColumns(self, tuple(positions), model._asker(), self._encoded)

    def _feature_names(self) -> list[str]:
        """Return the raw column of each feature of the model."""
        if not isinstance(self._encoding, FittedPipeline):
            return self._names
        sources = [int(self._encoding.sources[columns[0]]) for columns in self.model_.layout.features]
        return [self._names[source] for source in sources]

    def _encoded_row(self, x: Any) -> Any:
        import pandas as pd

        check_is_fitted(self)
        if isinstance(x, Mapping):
            x = _in_order(pd.Series(dict(x), dtype=object), self._names)
        elif isinstance(x, pd.Series) and hasattr(self, "feature_names_in_"):
            x = _in_order(x, self._names)
        values = np.asarray(unmasked(x), dtype=object)
        if values.shape != (self.n_features_in_,):
            advice = "; use x.iloc[0] of a data frame, x[0] of an array" if values.ndim == 2 else ""
            raise ValueError(f"x must be one row of {self.n_features_in_} values, got shape {values.shape}{advice}")
        row: pd.DataFrame = pd.DataFrame([list(values)], columns=self._names)
        return self._encoding.encode(row)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags


def _in_order(row: pd.Series[Any], names: list[str]) -> pd.Series[Any]:
    """Return a row with its values in the order of the columns, if it has names; ValueError if they are other names."""
    import pandas as pd

    if isinstance(row.index, pd.RangeIndex):
        return row
    labels = [str(label) for label in row.index]
    if sorted(labels) != sorted(names):
        unknown = sorted(set(names) ^ set(labels)) or labels
        raise ValueError(f"x must have the columns of the fit, got other ones, or not all: {unknown[:8]}")
    return row.set_axis(labels).reindex(names)


# Rows and classes that count more or less often.


def class_weights(
    given: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of each class: 1 for None, inversely proportional to its weighted rows for "balanced".

    Raises ValueError if `given` is neither of these nor a dictionary of finite numbers, 0 or more.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return np.asarray(weights.sum() / (len(classes) * np.bincount(codes, weights)))
    found: NDArray[np.float64] = compute_class_weight(given, classes=classes, y=classes[codes])
    if not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError(f"class_weight must have finite weights, 0 or more, got {str(given)[:80]}")
    return found


def repeated(
    encoded: NDArray[np.float64], codes: NDArray[np.intp], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return each row as often as its weight says, with weights of 1."""
    times = weights.astype(np.intp)
    if (times != weights).any():
        raise ValueError(
            "sample_weight must be whole numbers for rows with missing values, several components or a covariance, got "
            f"{float(weights[times != weights][0])!r}; multiply and round them, or leave incomplete rows out"
        )
    places = np.repeat(np.arange(len(codes)), times)
    return encoded[places], codes[places], np.ones(len(places))
