"""Methods that predict the class of rows with missing features; all learn from training rows alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.conform import conform
from trimbench.conformant.imputers import Imputer, ImputerName, fit_imputer
from trimbench.conformant.incomplete_classifier import IncompleteRows, fit_incomplete
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.conformant.reduced_problem import Matrix
from trimbench.papers.conformant.gap_gaussian import JointNormal
from trimbench.papers.conformant.gap_naive_bayes import fit_naive_bayes

CODE = (
    "trimbench.conformant",
    "trimbench.papers.conformant.gap_gaussian",
    "trimbench.papers.conformant.gap_naive_bayes",
    __name__,
)
Predict = Callable[[Matrix], Matrix]
_NEIGHBOURS = 10
_NEAREST_FEATURES = 20  # that predict each column in turn
_TURNS = 5
_MOST_PATTERNS = 40
_TREES = 50  # for each class


class NotApplicableError(Exception):
    """A method has no answer for such rows; the text says why."""


@dataclass(frozen=True, eq=False)
class Training:
    """What methods learn from.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        The training rows, complete, or with NaN where a feature is missing.
    labels : ndarray of int, shape (n_rows,)
    masked : ndarray of shape (n_masked, n_columns)
        Rows for models that are trained with masks: copies of complete rows, with NaN where the mechanism that hides
        features of the test rows hides theirs; or the incomplete rows themselves.
    masked_labels : ndarray of int, shape (n_masked,)
    columns : sequence of sequence of int
        Columns of each feature.
    numbers : bool
        Whether columns are real numbers, not zeros and ones.
    """

    rows: Matrix
    labels: NDArray[np.int64]
    masked: Matrix
    masked_labels: NDArray[np.int64]
    n_classes: int
    columns: Sequence[Sequence[int]]
    numbers: bool
    inverse_penalty: float
    smoothing: float
    seed: int

    @functools.cached_property
    def is_complete(self) -> bool:
        """Whether no training row misses a feature."""
        return not np.isnan(self.rows).any()

    @functools.cached_property
    def layout(self) -> FeatureLayout:
        """The features as conformant models see them."""
        categorical = [own for own in self.columns if len(own) > 1]
        n_columns = self.rows.shape[1]
        return FeatureLayout.of(n_columns, categorical, range(n_columns) if self.numbers else None)

    @functools.cached_property
    def classifier(self) -> Any:
        """The logistic regression of the complete rows, the same for all methods that take one."""
        return self.regression(self.rows, self.labels)

    def regression(self, table: Matrix, labels: NDArray[np.int64]) -> Any:
        """Return a logistic regression with the penalty that all have."""
        return fit_logistic_regression(table, labels, self.inverse_penalty)


def _by_conforming(training: Training, n_components: int | Literal["auto"]) -> Predict:
    layout = training.layout
    if training.is_complete:
        found: Any = conform(
            training.classifier,
            training.rows,
            smoothing=training.smoothing,
            categorical=layout.categorical,
            real=layout.real,
            n_components=n_components,
            seed=training.seed,
        )
    else:
        start = training.regression(fit_imputer("mean", training.rows)(training.rows), training.labels)
        places = np.searchsorted(start.classes_, training.labels)  # among the classes that training rows have
        rows = IncompleteRows(training.rows, places, layout, training.inverse_penalty, training.smoothing)
        found = fit_incomplete(start, rows, n_components, training.seed)
    return lambda gaps: _of_all_classes(found.predict_proba(gaps), found.classes, training.n_classes)


def _by_imputing(training: Training, name: ImputerName) -> Predict:
    fill = fit_imputer(
        name,
        training.rows,
        seed=training.seed,
        n_neighbours=_NEIGHBOURS,
        n_nearest_features=min(_NEAREST_FEATURES, training.rows.shape[1] - 1),
        max_iterations=_TURNS,
    )
    return _after_filling(training, fill)


def _after_filling(training: Training, fill: Imputer) -> Predict:
    classifier = _classifier(training, fill)
    return lambda gaps: _probabilities(classifier, fill(gaps), training.n_classes)


def _classifier(training: Training, fill: Imputer) -> Any:
    """Return the classifier of complete rows, or that of the rows that an imputer has completed."""
    return training.classifier if training.is_complete else training.regression(fill(training.rows), training.labels)


def _by_normal_expectation(training: Training) -> Predict:
    normal = JointNormal.of(training.rows)
    classifier = _classifier(training, normal.fill)
    return lambda gaps: _of_all_classes(
        normal.expected_probabilities(classifier, gaps), classifier.classes_, training.n_classes
    )


def _with_indicators(training: Training, table: Matrix, labels: NDArray[np.int64]) -> Predict:
    """Learn from rows with gaps: means in place of missing values, and for each feature whether it is missing."""
    first = [own[0] for own in training.columns]
    fill = fit_imputer("mean", table)

    def extended(gaps: Matrix) -> Matrix:
        return np.hstack([fill(gaps), np.isnan(gaps[:, first])])

    classifier = training.regression(extended(table), labels)
    return lambda gaps: _probabilities(classifier, extended(gaps), training.n_classes)


def _by_mean_with_indicators(training: Training) -> Predict:
    if training.is_complete:
        raise NotApplicableError("complete training rows have no use for indicators")
    return _with_indicators(training, training.rows, training.labels)


def _by_regression_with_masks(training: Training) -> Predict:
    if not training.is_complete:
        raise NotApplicableError("with incomplete training rows it is mean imputation with indicators")
    return _with_indicators(training, training.masked, training.masked_labels)


def _by_patterns(training: Training) -> Predict:
    """Learn a logistic regression of the observed columns for each set of them that training rows show."""
    patterns = np.unique(np.isnan(training.masked), axis=0)
    if len(patterns) > _MOST_PATTERNS:
        raise NotApplicableError(f"more than {_MOST_PATTERNS} patterns of missing features")
    models = {pattern.tobytes(): _of_pattern(training, ~pattern) for pattern in patterns}
    shares = np.bincount(training.labels, minlength=training.n_classes) / len(training.labels)

    def predict(gaps: Matrix) -> Matrix:
        found = np.tile(shares, (len(gaps), 1))
        missing = np.isnan(gaps)
        for pattern in np.unique(missing, axis=0):
            of_rows = (missing == pattern).all(axis=1)
            if model := models.get(pattern.tobytes()):
                found[of_rows] = model(gaps[of_rows][:, ~pattern])
        return found

    return predict


def _of_pattern(training: Training, observed: NDArray[np.bool_]) -> Predict | None:
    table = training.rows[:, observed]
    usable = ~np.isnan(table).any(axis=1)
    n_usable, n_classes = int(usable.sum()), training.n_classes
    if not observed.any() or len(np.unique(training.labels[usable])) < 2:
        return None
    classifier = training.regression(table[usable], training.labels[usable])
    # A class that no usable row has must not be impossible.
    kept = n_usable / (n_usable + 1)
    return lambda gaps: kept * _probabilities(classifier, gaps, n_classes) + (1 - kept) / n_classes


def _by_boosting(training: Training, table: Matrix, labels: NDArray[np.int64]) -> Predict:
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(max_iter=_TREES, early_stopping=False, random_state=training.seed)
    known = ~np.isnan(table).all(axis=0)  # it cannot bin a column without any value
    trees.fit(table[:, known], labels)
    return lambda gaps: _probabilities(trees, gaps[:, known], training.n_classes)


def _by_complete_boosting(training: Training) -> Predict:
    if not training.is_complete:
        raise NotApplicableError("it needs complete training rows")
    return _by_boosting(training, training.rows, training.labels)


def _by_masked_boosting(training: Training) -> Predict:
    return _by_boosting(training, training.masked, training.masked_labels)


def _by_naive_bayes(training: Training) -> Predict:
    return fit_naive_bayes(
        training.rows, training.labels, training.n_classes, training.columns, training.numbers, training.smoothing
    )


def _probabilities(classifier: Any, table: Matrix, n_classes: int) -> Matrix:
    return _of_all_classes(classifier.predict_proba(table), classifier.classes_, n_classes)


def _of_all_classes(probabilities: Matrix, classes: NDArray[Any], n_classes: int) -> Matrix:
    """Return probabilities with zeros for classes that no training row has."""
    found = np.zeros((len(probabilities), n_classes))
    found[:, classes] = probabilities
    return found


class Method(NamedTuple):
    """A method to compare.

    `title` is its name in tables; `fit` learns from training rows. One that `uses_masks` learns anew for every
    mechanism and share, even where training rows are complete.
    """

    title: str
    fit: Callable[[Training], Predict]
    uses_masks: bool = False


METHODS: Mapping[str, Method] = {
    "mixture": Method("mixture of NaCL", lambda training: _by_conforming(training, "auto")),
    "nacl": Method("NaCL", lambda training: _by_conforming(training, 1)),
    "mean": Method("mean", lambda training: _by_imputing(training, "mean")),
    "mean_indicators": Method("mean with indicators", _by_mean_with_indicators),
    "knn": Method("nearest neighbours", lambda training: _by_imputing(training, "knn")),
    "iterative": Method("iterative imputation", lambda training: _by_imputing(training, "mice")),
    "patterns": Method("pattern by pattern", _by_patterns, uses_masks=True),
    "normal": Method("normal expectation", _by_normal_expectation),
    "naive_bayes": Method("naive Bayes", _by_naive_bayes),
    "trees": Method("boosted trees", _by_complete_boosting),
    "masked_trees": Method("boosted trees with masks", _by_masked_boosting, uses_masks=True),
    "masked_regression": Method("regression with masks", _by_regression_with_masks, uses_masks=True),
}
