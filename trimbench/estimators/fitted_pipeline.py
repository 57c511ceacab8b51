"""Fitted classifiers, or pipelines that end in one, taken apart: their steps, columns and final model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.layout import FeatureLayout
from trimbench.networks.values import column_numbers

if TYPE_CHECKING:
    import pandas as pd


_PROBED_ROWS = 200
_KINDS = "a fitted LogisticRegression, BernoulliNB or CategoricalNB, or a fitted pipeline that ends in one"


# Parameters without a meaning if the estimator has columns of its own, and the values that they may have then.
_LEFT_OUT = {"categorical_features": (None, "from_dtype"), "numeric": ("gaussian",), "class_weight": (None,)}


def check_left_out(owner: Any) -> None:
    """Raise ValueError if parameters are given that a fitted estimator rules out."""
    for name, allowed in _LEFT_OUT.items():
        value = getattr(owner, name)
        if not (value is None or isinstance(value, str)) or value not in allowed:
            raise ValueError(
                f"{name} must be left out with estimator, which is fitted and has columns of its own, got "
                f"{str(value)[:80]}"
            )


class EncodedWeights:
    """A fitted classifier in terms of encoded columns: those in another order, some of them shifted and scaled."""

    def __init__(
        self, classifier: Any, order: NDArray[np.intp], shift: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> None:
        weights = classifier.coef_.toarray() if hasattr(classifier.coef_, "toarray") else classifier.coef_
        self.coef_ = weights[..., order] * scale
        self.intercept_ = classifier.intercept_ + weights[..., order] @ shift
        self.classes_ = classifier.classes_
        self.predict_proba = lambda rows: classifier.predict_proba((rows * scale + shift)[:, np.argsort(order)])


@dataclass(frozen=True, eq=False)
class FittedPipeline:
    """A fitted classifier, and how raw columns become its columns.

    Attributes
    ----------
    classifier : object
        The last step.
    steps : object or None
        The fitted steps before it.
    takes_frames : bool
        Whether they were fitted on a data frame.
    known : dict from name to value
        A value of each raw column, which the steps get in place of a missing one.
    order : ndarray of int, shape (n_encoded,)
        The classifier's column for each encoded one; encoded columns are in the order of the raw ones.
    sources : ndarray of int, shape (n_encoded,)
        The raw column that each encoded one depends on; -1 if it is constant.
    shift, scale : ndarray of shape (n_encoded,)
        Encoded columns are those of the classifier minus `shift`, divided by `scale`: zeros and ones that a step has
        scaled are zeros and ones again.
    layout : FeatureLayout
        Of the encoded columns.
    """

    classifier: Any
    steps: Any
    takes_frames: bool
    known: dict[str, Any]
    order: NDArray[np.intp]
    sources: NDArray[np.intp]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    layout: FeatureLayout

    @classmethod
    def of(cls, estimator: Any, frame: pd.DataFrame) -> FittedPipeline:
        """Find out how the steps make their columns, by changing one raw column after another.

        Raises ValueError if the estimator is not fitted to columns like these, or a step makes columns of a kind that
        a conformant model cannot have.
        """
        steps, classifier = split_pipeline(estimator)
        first = classifier if steps is None else steps
        takes_frames = hasattr(first, "feature_names_in_")
        known = {name: frame[name].dropna().iloc[0] for name in frame.columns}
        n_expected = classifier.coef_.shape[-1]
        every = np.arange(n_expected)
        shift, scale = np.zeros(n_expected), np.ones(n_expected)
        raw = cls(classifier, steps, takes_frames, known, every, every, shift, scale, FeatureLayout(n_expected))
        n_found = raw.transformed(frame.iloc[:1]).shape[1]
        if n_found != n_expected:
            raise ValueError(f"X must have the columns that estimator was fitted to, {n_expected}, got {n_found}")
        sources = every if steps is None else _sources(raw, frame)
        order = np.argsort(np.where(sources < 0, frame.shape[1], sources), kind="stable")
        raw = replace(raw, order=order, sources=sources[order])
        shift, scale = _zeros_and_ones(raw, frame)
        raw = replace(raw, shift=shift, scale=scale)
        return replace(raw, layout=_layout(raw.encode(frame), raw.sources, [str(name) for name in frame.columns]))

    @property
    def weights(self) -> EncodedWeights:
        """The classifier with its columns in the order of the encoded ones."""
        return EncodedWeights(self.classifier, self.order, self.shift, self.scale)

    @property
    def zeros_and_ones(self) -> NDArray[np.intp]:
        """The encoded columns of zeros and ones that are features of their own."""
        return self.layout.binary

    def classes_with(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the classes of the classifier; ValueError if there are others among the labels."""
        classes = np.asarray(self.classifier.classes_)
        unknown = [label for label in labels.tolist() if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"y must have the classes of estimator, {classes.tolist()}, got {unknown[0]!r}")
        return classes

    def output_names(self, names: list[str]) -> NDArray[Any]:
        """Return the names of the encoded columns, for raw columns of these names."""
        if self.steps is None:
            return np.array(names, dtype=object)
        try:
            found = self.steps.get_feature_names_out(names)
        except AttributeError:  # a step does not know them
            found = [names[source] if source >= 0 else "constant" for source in self.sources]
            return np.array([f"{name}_{place}" for place, name in enumerate(found)], dtype=object)
        return np.asarray(found, dtype=object)[self.order]

    def encode(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the columns of the classifier, NaN where the raw column is missing.

        An encoder that ignores an unknown category gives zeros, which count as missing.
        """
        missing = frame.isna().to_numpy()
        encoded = (self.transformed(frame)[:, self.order] - self.shift) / self.scale
        has_source = self.sources >= 0
        encoded[:, has_source] = np.where(missing[:, self.sources[has_source]], np.nan, encoded[:, has_source])
        for columns in self.layout.categorical:
            group = encoded[:, columns]
            group[(group == 0).all(axis=1)] = np.nan
            encoded[:, columns] = group
        return encoded

    def transformed(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return what the steps make of the rows, with a known value in place of each missing one."""
        full = frame.copy()
        for name in frame.columns[frame.isna().any(axis=0)]:
            kept = full[name].astype(object)
            full[name] = kept.where(kept.notna(), self.known[name]).infer_objects()
        return transformed_by(self.steps, full, self.takes_frames)


def transformed_by(steps: Any, frame: pd.DataFrame, takes_frames: bool) -> NDArray[np.float64]:
    """Return what fitted steps, or None, make of rows; ValueError if the result is not numeric."""
    if steps is None:
        return np.column_stack([column_numbers(frame[name], str(name)) for name in frame.columns])
    result = steps.transform(frame if takes_frames else frame.to_numpy())
    if hasattr(result, "toarray"):
        result = result.toarray()
    try:
        return np.array(result, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"estimator must make numbers of the columns, got {error}") from error


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """Return the steps before the classifier, or None, and the classifier.

    For a naive Bayes estimator, the classifier has linear scores of zeros and ones, which the steps make.
    """
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    estimator = unwrapped(estimator)
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError) as error:
        raise ValueError(
            f"estimator must be {_KINDS}, got {type(estimator).__name__} that is not; call its fit first, and wrap it "
            "in sklearn.frozen.FrozenEstimator where it is cloned, as in cross-validation"
        ) from error
    classifier, steps = estimator, None
    if isinstance(estimator, Pipeline):
        classifier, steps = unwrapped(estimator.steps[-1][1]), estimator[:-1] if len(estimator.steps) > 1 else None
    if is_naive_bayes(classifier):
        return NaiveBayesIndicators(steps, classifier), NaiveBayesScores.of(classifier)
    if not (hasattr(classifier, "coef_") and hasattr(classifier, "predict_proba")):
        raise ValueError(f"estimator must be {_KINDS}, got {type(classifier).__name__}")
    return steps, classifier


def unwrapped(estimator: Any) -> Any:
    """Return the fitted estimator inside a FrozenEstimator or a search; a pipeline without steps that do nothing."""
    from sklearn.pipeline import Pipeline

    if type(estimator).__name__ == "FrozenEstimator":
        estimator = estimator.estimator
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(estimator, Pipeline):
        return estimator
    steps = [(name, inner) for name, step in estimator.steps if (inner := unwrapped(step)) not in (None, "passthrough")]
    return Pipeline(steps) if len(steps) > 1 else steps[0][1] if steps else "passthrough"


def _sources(given: FittedPipeline, frame: pd.DataFrame) -> NDArray[np.intp]:
    """Return the raw column that each encoded one depends on, -1 for none.

    Raises ValueError if one depends on several.
    """
    rows = frame.iloc[_rows_with_every_value(frame)]
    before = given.transformed(rows)
    sources = np.full(before.shape[1], -1)
    for place, name in enumerate(frame.columns):
        changed = rows.copy()
        changed[name] = np.roll(rows[name].to_numpy(dtype=object), 1)
        changed[name] = changed[name].astype(rows[name].dtype)
        depends = (given.transformed(changed) != before).any(axis=0)
        several = depends & (sources >= 0)
        if several.any():
            other = frame.columns[sources[several][0]]
            raise ValueError(
                f"estimator must make each column of its logistic regression from one column of X, got one that "
                f"depends on {str(other)[:60]!r} and {str(name)[:60]!r}; leave such a step out (PCA, or products of "
                "columns), or fit NaiveConformantClassifier to what it gives"
            )
        sources[depends] = place
    return sources


def _zeros_and_ones(given: FittedPipeline, frame: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shift and scale of encoded columns that make zeros and ones of raw zeros and ones."""
    encoded, shift, scale = given.encode(frame), given.shift.copy(), given.scale.copy()
    for source in np.unique(given.sources[given.sources >= 0]):
        (columns,) = np.nonzero(given.sources == source)
        cells = frame.iloc[:, source]
        if len(columns) != 1 or not cells.dropna().isin([0, 1]).all():
            continue
        zero, one = (np.unique(encoded[(cells == value).to_numpy(dtype=bool), columns[0]]) for value in (0, 1))
        if len(zero) == len(one) == 1 and zero[0] != one[0]:
            shift[columns], scale[columns] = zero[0], one[0] - zero[0]
    return shift, scale


def _rows_with_every_value(frame: pd.DataFrame) -> NDArray[np.intp]:
    """Return evenly spaced rows, and the first row with each value of each column that does not hold floats."""
    chosen = set(np.linspace(0, len(frame) - 1, min(len(frame), _PROBED_ROWS)).astype(int).tolist())
    for name in frame.columns:
        if frame[name].dtype.kind != "f":
            chosen |= set(np.flatnonzero(~frame[name].duplicated().to_numpy())[: 5 * _PROBED_ROWS].tolist())
    return np.array(sorted(chosen), dtype=np.intp)


def _layout(encoded: NDArray[np.float64], sources: NDArray[np.intp], names: list[str]) -> FeatureLayout:
    """Return the layout of encoded columns: one-hot where a raw column makes several."""
    is_binary = ((encoded == 0) | (encoded == 1) | np.isnan(encoded)).all(axis=0)
    categorical: list[tuple[int, ...]] = []
    real: list[int] = []
    for source in range(len(names)):
        columns = np.flatnonzero(sources == source)
        if len(columns) == 1 and not is_binary[columns[0]]:
            real.append(int(columns[0]))
        if len(columns) < 2:
            continue
        sums = encoded[:, columns].sum(axis=1)
        if not is_binary[columns].all() or not ((sums == 1) | np.isnan(sums)).all():
            raise ValueError(
                f"estimator makes {len(columns)} columns of column {names[source][:60]!r} that are not one-hot, with "
                "exactly one 1 in each row; use OneHotEncoder(drop=None) or 'if_binary', or one column"
            )
        categorical.append(tuple(columns.tolist()))
    real += [int(column) for column in np.flatnonzero((sources < 0) & ~is_binary)]
    return FeatureLayout(encoded.shape[1], tuple(categorical), tuple(real))


# Fitted naive Bayes estimators of scikit-learn as classifiers with linear scores of zeros and ones.

Matrix = NDArray[np.float64]


def is_naive_bayes(estimator: Any) -> bool:
    """Return whether an estimator is one that this module turns into linear scores."""
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB

    return isinstance(estimator, BernoulliNB | CategoricalNB)


@dataclass(frozen=True, eq=False)
class NaiveBayesScores:
    """A fitted BernoulliNB or CategoricalNB as a classifier of the zeros and ones of `NaiveBayesIndicators`.

    Attributes
    ----------
    log_ones, log_zeros : ndarray of shape (n_columns, n_classes)
        What a 1 or a 0 adds to the logarithm of the joint probability.
    log_prior : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    """

    log_ones: Matrix
    log_zeros: Matrix
    log_prior: NDArray[np.float64]
    classes_: NDArray[Any]

    @classmethod
    def of(cls, estimator: Any) -> NaiveBayesScores:
        """Return the scores of an estimator; ValueError if a probability is 0, whose logarithm is no weight."""
        from sklearn.naive_bayes import BernoulliNB

        if isinstance(estimator, BernoulliNB):
            ones = estimator.feature_log_prob_.T
            with np.errstate(divide="ignore"):
                zeros = np.log1p(-np.exp(ones))
        else:
            ones = np.concatenate([table.T for table in estimator.feature_log_prob_])
            zeros = np.zeros_like(ones)
        if not all(np.isfinite(part).all() for part in (ones, zeros, estimator.class_log_prior_)):
            raise ValueError(
                f"estimator must have probabilities above 0 and below 1, got {type(estimator).__name__} with one that "
                "is not; fit it with alpha > 0, and class_prior without zeros"
            )
        return cls(ones, zeros, estimator.class_log_prior_, estimator.classes_)

    @property
    def coef_(self) -> Matrix:
        """Weights, shape (n_classes, n_columns)."""
        return (self.log_ones - self.log_zeros).T

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Scores of the classes for a row of zeros."""
        return np.asarray(self.log_prior + self.log_zeros.sum(axis=0))

    def predict_proba(self, rows: Matrix) -> Matrix:
        """Return the probability of each class, shape (n_rows, n_classes)."""
        from scipy.special import softmax

        return np.asarray(softmax(rows @ self.coef_.T + self.intercept_, axis=1))


class NaiveBayesIndicators:
    """The steps of a pipeline, then how its BernoulliNB or CategoricalNB makes zeros and ones of their result.

    Attributes
    ----------
    steps : object or None
        Fitted transformers.
    estimator : BernoulliNB or CategoricalNB
    """

    def __init__(self, steps: Any, estimator: Any) -> None:
        self.steps = steps
        self.estimator = estimator
        names = getattr(estimator if steps is None else steps, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def transform(self, rows: Any) -> Matrix:
        """Return one column for each feature of a BernoulliNB, or for each category of a CategoricalNB."""
        table = rows if self.steps is None else self.steps.transform(rows)
        values = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)
        if not hasattr(self.estimator, "n_categories_"):
            cut = self.estimator.binarize
            return np.asarray(values > cut, dtype=np.float64) if cut is not None else values
        counts = self.estimator.n_categories_.tolist()
        parts = [values[:, [place]] == np.arange(count) for place, count in enumerate(counts)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def get_feature_names_out(self, names: Any = None) -> NDArray[Any]:
        """Return the names of the columns; a category is its number after the name."""
        before = names if self.steps is None else self.steps.get_feature_names_out(names)
        if not hasattr(self.estimator, "n_categories_"):
            return np.asarray(before, dtype=object)
        counts = self.estimator.n_categories_.tolist()
        pairs = zip(before, counts, strict=True)
        return np.array([f"{name}_{code}" for name, count in pairs for code in range(count)], dtype=object)
