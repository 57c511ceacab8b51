"""Methods that learn from and predict for tables with gaps, and their comparison on one data set."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.choice import Components, Covariance
from trimbench.conformant.conform import IncompleteRows, conform, fit_incomplete, linear_scores
from trimbench.conformant.evidence import logsumexp
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.papers.conformant.imputers import Imputer, ImputerName, fit_imputer
from trimbench.papers.conformant.protocols import EncodedRows, Task, encoded_rows, feature_codes
from trimbench.papers.measures import accuracy, brier_score, calibration_error, log_loss
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.data.masks import Missingness, split_rows
from trimbench.reproduction.execution.job import COUNT, PERCENT, POSITIVE, SHARE, TEXT, fields, job, list_of, timed

_LEAST_VARIANCE = 1e-3  # of that of the whole column


def fit_naive_bayes(
    rows: Matrix,
    labels: NDArray[np.int64],
    n_classes: int,
    columns: Sequence[Sequence[int]],
    numbers: bool,
    smoothing: float,
) -> Callable[[Matrix], Matrix]:
    """Learn naive Bayes and return its class probabilities as a function of rows; NaN marks what is missing.

    Columns of zeros and ones are binary features, or categories where a feature has several; `numbers` are Gaussian
    with a mean and variance in each class. `smoothing` is the pseudo-count of each value and class.
    """
    scores = _gaussian(rows, labels, n_classes) if numbers else _discrete(rows, labels, n_classes, columns, smoothing)
    counts = np.bincount(labels, minlength=n_classes) + smoothing
    prior = np.log(counts / counts.sum())

    def predict(gaps: Matrix) -> Matrix:
        found = scores(gaps) + prior
        return np.asarray(np.exp(found - logsumexp(found)[:, None]))

    return predict


def _discrete(
    rows: Matrix, labels: NDArray[np.int64], n_classes: int, columns: Sequence[Sequence[int]], smoothing: float
) -> Callable[[Matrix], Matrix]:
    pseudo = max(smoothing, 1e-10)
    of_class = np.eye(n_classes)[labels]
    observed = (~np.isnan(rows)).T.astype(np.float64) @ of_class
    ones = np.nan_to_num(rows).T @ of_class
    n_values = np.concatenate([np.full(len(own), max(len(own), 2)) for own in columns])[:, None]
    is_binary = np.concatenate([np.full(len(own), len(own) == 1) for own in columns])[:, None]
    log_one = np.log((ones + pseudo) / (observed + n_values * pseudo))
    # Only the 1 of a category counts, not the zeros beside it.
    log_zero = np.where(is_binary, np.log((observed - ones + pseudo) / (observed + n_values * pseudo)), 0.0)
    return lambda gaps: np.nan_to_num(gaps) @ (log_one - log_zero) + (~np.isnan(gaps)).astype(np.float64) @ log_zero


def _gaussian(rows: Matrix, labels: NDArray[np.int64], n_classes: int) -> Callable[[Matrix], Matrix]:
    seen = ~np.isnan(rows)
    of_class = np.eye(n_classes)[labels]
    counts = np.maximum(seen.T.astype(np.float64) @ of_class, 1.0)
    means = np.nan_to_num(rows).T @ of_class / counts
    squares = np.nan_to_num(rows**2).T @ of_class / counts
    variances = np.maximum(squares - means**2, 0.0) + _LEAST_VARIANCE * np.nanvar(rows, axis=0)[:, None]

    def scores(gaps: Matrix) -> Matrix:
        known, values = (~np.isnan(gaps)).astype(np.float64), np.nan_to_num(gaps)
        quadratic = values**2 @ (1 / variances) - 2 * values @ (means / variances)
        return np.asarray(-0.5 * (quadratic + known @ (means**2 / variances + np.log(variances))))

    return scores


# The expected prediction of a logistic regression if the features were jointly normal.

_SHRINKAGE = 0.02  # of the covariances towards 0, which also keeps the matrix positive definite
_N_DRAWS = 64
_SEED = 0


@dataclass(frozen=True, eq=False)
class JointNormal:
    """A multivariate normal distribution of the columns."""

    means: Vector
    covariance: Matrix

    @classmethod
    def of(cls, rows: Matrix) -> JointNormal:
        """Return the moments of rows; where values are missing, those of the observed pairs."""
        seen = (~np.isnan(rows)).astype(np.float64)
        counts = np.maximum(seen.sum(axis=0), 1.0)
        means = np.nan_to_num(rows).sum(axis=0) / counts
        centred = np.nan_to_num(rows - means)
        covariance = centred.T @ centred / np.maximum(seen.T @ seen, 1.0)
        # Covariances of different pairs of rows need not be those of any distribution.
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        diagonal = np.diag(np.diag(covariance) + 1e-9)
        return cls(means, (1 - _SHRINKAGE) * covariance + _SHRINKAGE * diagonal)

    def fill(self, gaps: ArrayLike) -> Matrix:
        """Return rows with the conditional expectations of missing values."""
        table = np.asarray(gaps, dtype=np.float64)
        filled = table.copy()
        for rows, missing, gain, _ in self._patterns(table):
            filled[np.ix_(rows, missing)] = self.means[missing] + (table[rows] - self.means)[:, ~missing] @ gain
        return filled

    def expected_probabilities(self, classifier: Any, gaps: Matrix) -> Matrix:
        """Return the mean of the classifier's probabilities over the conditional distribution of missing values.

        The scores of the classes are jointly normal given what is observed; the mean is over a fixed set of antithetic
        draws.
        """
        weights, biases, _ = linear_scores(classifier)
        drawn = np.random.default_rng(_SEED).standard_normal((_N_DRAWS, len(biases)))
        drawn = np.concatenate([drawn, -drawn])
        scores = self.fill(gaps) @ weights + biases
        found = np.exp(scores - logsumexp(scores)[:, None])
        for rows, missing, _, conditional in self._patterns(gaps):
            values, vectors = np.linalg.eigh(weights[missing].T @ conditional @ weights[missing])
            noise = drawn @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
            drawn_scores = scores[rows][:, None] + noise
            drawn_scores -= drawn_scores.max(axis=2, keepdims=True)
            shares = np.exp(drawn_scores)
            found[rows] = (shares / shares.sum(axis=2, keepdims=True)).mean(axis=1)
        return found

    def _patterns(self, gaps: Matrix) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_], Matrix, Matrix]]:
        """Yield rows, their missing columns, the regression of these on the others, and the residual covariance."""
        patterns, of_row = np.unique(np.isnan(gaps), axis=0, return_inverse=True)
        for place, missing in enumerate(patterns):
            if not missing.any():
                continue
            cross = self.covariance[np.ix_(~missing, missing)]
            gain = np.linalg.solve(self.covariance[np.ix_(~missing, ~missing)], cross)
            left = self.covariance[np.ix_(missing, missing)] - cross.T @ gain
            yield np.flatnonzero(of_row.ravel() == place), missing, np.asarray(gain), np.asarray(left)


# Methods that predict the class of rows with missing features; all learn from training rows alone.

Predict = Callable[[Matrix], Matrix]
_NEIGHBOURS = 10
_NEAREST_FEATURES = 20  # that predict each column in turn
_TURNS = 5
_MOST_PATTERNS = 40
_TREES = 50  # for each class
_LEAF_ROWS = 20  # of each leaf at least: scikit-learn's default


class NotApplicableError(Exception):
    """A method does not apply to such rows; the text says why."""


@dataclass(frozen=True, eq=False)
class Training:
    """What methods learn from: rows, complete, or with NaN where a feature is missing, and their labels.

    The `masked` rows are for models that are trained with masks: copies of complete rows, with NaN where the mechanism
    that hides features of the test rows hides theirs; or the incomplete rows themselves. `columns` are those of each
    feature, `numbers` tells whether they are real numbers, not zeros and ones, and the `layout` is what conformant
    models see. With more than `most_columns` columns, chained equations and boosted trees take only those that weigh
    most for the class.
    """

    rows: Matrix
    labels: NDArray[np.int64]
    masked: Matrix
    n_classes: int
    columns: Sequence[Sequence[int]]
    numbers: bool
    inverse_penalty: float
    smoothing: float
    seed: int
    layout: FeatureLayout
    most_columns: int | None = None

    @functools.cached_property
    def is_complete(self) -> bool:
        """Whether no training row misses a feature."""
        return not np.isnan(self.rows).any()

    @functools.cached_property
    def classifier(self) -> Any:
        """The logistic regression of the complete rows, the same for all methods that take one."""
        return self.regression(self.rows, self.labels)

    def with_gaps(self, masked: bool) -> tuple[Matrix, NDArray[np.int64]]:
        """Return the `masked` rows, or the training rows, and their labels."""
        copies = np.tile(self.labels, len(self.masked) // len(self.rows))
        return (self.masked, copies) if masked else (self.rows, self.labels)

    def regression(self, table: Matrix, labels: NDArray[np.int64]) -> Any:
        """Return a logistic regression with the penalty that all methods share."""
        return fit_logistic_regression(table, labels, self.inverse_penalty)


def _by_conforming(training: Training, n_components: Components, covariance: Covariance = "diagonal") -> Predict:
    layout = training.layout
    if training.is_complete:
        found: Any = conform(
            training.classifier,
            training.rows,
            smoothing=training.smoothing,
            categorical=layout.categorical,
            real=layout.real,
            n_components=n_components,
            covariance=covariance,
            random_state=training.seed,
        )
    else:
        start = training.regression(fit_imputer("mean", training.rows)(training.rows), training.labels)
        places = np.searchsorted(start.classes_, training.labels)  # among the classes that training rows have
        rows = IncompleteRows(training.rows, places, layout, training.inverse_penalty, training.smoothing)
        found = fit_incomplete(start, rows, n_components, training.seed, covariance)
    return Conforming(found, training.n_classes)


@dataclass(frozen=True, eq=False)
class Conforming:
    """The predictions of a conformant model, and how likely its decisions are to stay."""

    model: Any
    n_classes: int

    def __call__(self, gaps: Matrix) -> Matrix:
        """Return the probabilities of the classes."""
        return _of_all_classes(self.model.predict_proba(gaps), self.model.classes, self.n_classes)

    @property
    def states_stability(self) -> bool:
        """Whether `stability` has an answer: not for a model with a covariance."""
        return bool(self.model.normals is None)

    def stability(self, gaps: Matrix) -> Vector:
        """Return the probability that each row keeps its class once all of its features are known."""
        return np.asarray(self.model.same_decision_probability(gaps))


def _by_imputing(training: Training, name: ImputerName) -> Predict:
    n_columns, most = training.rows.shape[1], training.most_columns
    if name == "mice" and most is not None and n_columns > most:
        fill = _chained_in_part(training, most)
    else:
        fill = _imputer(training, training.rows, name)
    classifier = _classifier(training, fill)
    return lambda gaps: _probabilities(classifier, fill(gaps), training.n_classes)


def _imputer(training: Training, rows: Matrix, name: ImputerName) -> Imputer:
    return fit_imputer(
        name,
        rows,
        seed=training.seed,
        n_neighbours=_NEIGHBOURS,
        n_nearest_features=min(_NEAREST_FEATURES, rows.shape[1] - 1),
        max_iterations=_TURNS,
    )


def _chained_in_part(training: Training, most: int) -> Imputer:
    """Return an imputer of chained equations among the columns that weigh most for the class, and means elsewhere.

    The equations take time and memory with the square of the number of columns, as each chooses its nearest ones among
    all others.
    """
    means, chained = fit_imputer("mean", training.rows), _heaviest(training, most)
    by_equations = _imputer(training, training.rows[:, chained], "mice")

    def fill(gaps: ArrayLike) -> Matrix:
        filled = means(gaps)
        filled[:, chained] = by_equations(np.asarray(gaps)[:, chained])
        return filled

    return fill


def _heaviest(training: Training, most: int) -> NDArray[np.intp]:
    """Return the columns that weigh most for the class: by the spread of their terms in a regression's scores."""
    means = fit_imputer("mean", training.rows)
    weights, _, _ = linear_scores(_classifier(training, means))
    spread = np.ptp(weights, axis=1) * means(training.rows).std(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:most])


def _classifier(training: Training, fill: Imputer) -> Any:
    """Return the classifier of complete rows, or that of the rows that an imputer has completed."""
    return training.classifier if training.is_complete else training.regression(fill(training.rows), training.labels)


def _by_normal_expectation(training: Training) -> Predict:
    normal = JointNormal.of(training.rows)
    classifier = _classifier(training, normal.fill)
    return lambda gaps: _of_all_classes(
        normal.expected_probabilities(classifier, gaps), classifier.classes_, training.n_classes
    )


def _with_indicators(training: Training, *, masked: bool = False) -> Predict:
    """Learn from rows with gaps: means in place of missing values, and for each feature whether it is missing."""
    if training.is_complete and not masked:
        raise NotApplicableError("complete training rows have no use for indicators")
    if masked and not training.is_complete:
        raise NotApplicableError("with incomplete training rows it is mean imputation with indicators")
    table, labels = training.with_gaps(masked)
    first = [own[0] for own in training.columns]
    fill = fit_imputer("mean", table)

    def extended(gaps: Matrix) -> Matrix:
        return np.hstack([fill(gaps), np.isnan(gaps[:, first])])

    classifier = training.regression(extended(table), labels)
    return lambda gaps: _probabilities(classifier, extended(gaps), training.n_classes)


def _by_patterns(training: Training) -> Predict:
    """Learn a logistic regression on the observed columns for each pattern of missing features in training rows."""
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


def _by_boosting(training: Training, *, masked: bool = False) -> Predict:
    from sklearn.ensemble import HistGradientBoostingClassifier

    if not masked and not training.is_complete:
        raise NotApplicableError("it needs complete training rows")
    table, labels = training.with_gaps(masked)
    trees = HistGradientBoostingClassifier(
        max_iter=_TREES,
        early_stopping=False,
        random_state=training.seed,
        max_bins=enough_bins(len(training.rows)),
    )
    trees_see = columns_for_trees(table)
    if training.most_columns and len(trees_see) > training.most_columns:
        trees_see = np.intersect1d(trees_see, _heaviest(training, training.most_columns))
    trees.fit(table[:, trees_see], labels)
    return lambda gaps: _probabilities(trees, gaps[:, trees_see], training.n_classes)


def columns_for_trees(rows: Matrix) -> NDArray[np.intp]:
    """Return the columns that boosted trees need: those with values, which are all that scikit-learn can bin.

    With fewer rows than two leaves must have, no tree splits, and one column serves as well as thousands.
    """
    known = np.flatnonzero(~np.isnan(rows).all(axis=0))
    return known if len(rows) >= 2 * _LEAF_ROWS else known[:1]


def enough_bins(n_rows: int) -> int:
    """Return how many bins boosted trees need at most: a column has no more values than rows.

    With scikit-learn's 255, the trees of few rows are the same, and take several times as long to learn.
    """
    return min(max(n_rows, 2), 255)


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
    "mixture": Method("mixture of NaCL", partial(_by_conforming, n_components="auto")),
    "covariance": Method("NaCL as it comes", partial(_by_conforming, n_components="auto", covariance="auto")),
    "nacl": Method("NaCL", partial(_by_conforming, n_components=1)),
    "mean": Method("mean", partial(_by_imputing, name="mean")),
    "mean_indicators": Method("mean with indicators", _with_indicators),
    "knn": Method("nearest neighbours", partial(_by_imputing, name="knn")),
    "iterative": Method("iterative imputation", partial(_by_imputing, name="mice")),
    "patterns": Method("pattern by pattern", _by_patterns, uses_masks=True),
    "normal": Method("normal expectation", _by_normal_expectation),
    "naive_bayes": Method("naive Bayes", _by_naive_bayes),
    "trees": Method("boosted trees", _by_boosting),
    "masked_trees": Method("boosted trees with masks", partial(_by_boosting, masked=True), uses_masks=True),
    "masked_regression": Method("regression with masks", partial(_with_indicators, masked=True), uses_masks=True),
}


# Training and test rows of one random split, few enough for slow methods.


@vocab.settings
class Shape:
    """How a data set is prepared, with at most `train_rows` and `test_rows`.

    Its columns stay `numbers`, standardised by the training rows, or the protocol makes them zeros and ones. Squares of
    `shrink` pixels a side become one pixel, by majority (a tie is 1); 1 leaves an image as it is.
    """

    numbers: bool
    shrink: int
    train_rows: int
    test_rows: int


def hidden_copies(
    rows: Matrix,
    n_train: int,
    n_copies: int,
    features: Mapping[str, Sequence[int]],
    values: NDArray[Any],
    how: Missingness,
    fraction: float,
    rng: np.random.Generator,
) -> tuple[Matrix, Matrix]:
    """Return `n_copies` of the first `n_train` rows, one after the other, and the other rows; NaN where hidden.

    One mechanism, which looks at the `values`, hides features of all; each copy of a row has a mask of its own.
    `features` has the columns of each.
    """
    n_rows = len(rows)
    order = [*np.tile(np.arange(n_train), n_copies), *range(n_train, n_rows)]
    copies = rows[order]
    mask = how.draw(len(copies), list(features), fraction, rng, values[order])
    owners = np.repeat(np.arange(len(features)), [len(own) for own in features.values()])
    copies[mask[:, owners]] = np.nan
    return copies[: n_train - n_rows], copies[n_train - n_rows :]


@lru_cache(maxsize=1)
def split_tables(task: Task, shape: Shape) -> EncodedRows:
    """Return the rows of a task; those beyond the limits are left out at random."""
    found = _numbers(task) if shape.numbers else _binary(task, shape.shrink)
    rng = np.random.default_rng(task.split_seed)
    train = np.sort(rng.permutation(len(found.train))[: shape.train_rows])
    test = np.sort(rng.permutation(len(found.test))[: shape.test_rows])
    return dataclasses.replace(
        found,
        train=found.train[train].astype(np.float64),
        test=found.test[test].astype(np.float64),
        train_labels=found.train_labels[train],
        test_labels=found.test_labels[test],
    )


def _numbers(task: Task) -> EncodedRows:
    loaded = vocab.dataset_of(task.data)
    table = loaded.features.to_numpy(dtype=np.float64)
    if np.isnan(table).any():
        raise ValueError(f"numbers must be data sets without missing values, got {task.name!r}")
    codes = loaded.target.cat.codes.to_numpy(dtype=np.int64)
    train, test = split_rows(len(table), task.protocol.test_fraction, task.split_seed)
    spread = table[train].std(axis=0)
    table = (table - table[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    classes = tuple(map(str, loaded.target.cat.categories))
    return EncodedRows(table[train], table[test], codes[train], codes[test], classes, (), (), {}).by_column


def _binary(task: Task, shrink: int) -> EncodedRows:
    rows, image = encoded_rows(task), task.protocol.image or None
    if shrink == 1:
        return rows
    if image is None or any(side % shrink for side in image):
        raise ValueError(f"shrink must divide the sides of an image, got {shrink} for {task.name!r} ({image})")
    height, width = (side // shrink for side in image)
    squares = (part.reshape(len(part), height, shrink, width, shrink) for part in (rows.train, rows.test))
    train, test = ((one.mean(axis=(2, 4)) >= 0.5).reshape(len(one), -1) for one in squares)
    return dataclasses.replace(rows, train=train, test=test).by_column


# The job of the comparison on rows with missing features: every method on one split with one set of masks.

# The training rows of the methods: complete ones, or ones that miss features like the test rows.
Rows = Literal["complete", "incomplete"]
_COPIES = 4  # of each complete training row, with a mask of its own, for models that are trained with masks
_FAILURES = (ValueError, ArithmeticError, RuntimeError)
OK, NOT_APPLICABLE, FAILED = "ok", "not applicable", "failed"


_METHOD = {"training": TEXT, "method": TEXT, "status": TEXT}
_MEASURED = {
    **{"log_loss": POSITIVE, "brier": POSITIVE, "accuracy": SHARE, "calibration": SHARE},
    **{"us_per_row": POSITIVE, "fit_seconds": POSITIVE},
}


@job(
    n_train=COUNT,
    n_test=COUNT,
    n_features=COUNT,
    missing_percent=PERCENT,
    methods=list_of(fields(**_METHOD, reason=TEXT) | fields(**_METHOD, **_MEASURED)),
)
def compare_with_gaps(
    task: Task,
    shape: Shape,
    missingness: Missingness,
    missing: float,
    mask_seed: int,
    methods: Sequence[str],
    training: Sequence[Rows],
    smoothing: float,
) -> dict[str, vocab.Json]:
    """Hide features of a split's rows, and measure the predictions that methods make for the test rows."""
    tables = split_tables(task, shape)
    complete = np.vstack([tables.train, tables.test])
    values = complete if shape.numbers else feature_codes(complete, tables.columns)
    columns = {str(place): own for place, own in enumerate(tables.columns)}
    rng, n_train = np.random.default_rng(mask_seed), len(tables.train)
    masked, gaps = hidden_copies(complete, n_train, _COPIES, columns, values, missingness, missing, rng)
    incomplete = masked[: len(tables.train)]
    found: list[vocab.Json] = []
    for rows in training:
        is_complete = rows == "complete"
        own, with_masks = (tables.train, masked) if is_complete else (incomplete, incomplete)
        given = _training(task, shape, own, with_masks, smoothing)
        for name in methods:
            is_shared = is_complete and not METHODS[name].uses_masks
            learned = _learned_once(task, shape, name, smoothing) if is_shared else learn_by(name, given)
            tested = learned.tested(gaps, tables.test_labels, _measured)
            found.append({"training": rows, "method": name, **tested})
    return {
        "n_train": len(tables.train),
        "n_test": len(gaps),
        "n_features": len(tables.columns),
        "missing_percent": 100.0 * float(np.isnan(gaps[:, [own[0] for own in tables.columns]]).mean()),
        "methods": found,
    }


@lru_cache(maxsize=len(METHODS))
def _learned_once(task: Task, shape: Shape, name: str, smoothing: float) -> Learned:
    """Learn from complete rows, which all mechanisms and shares have in common."""
    rows = split_tables(task, shape).train
    return learn_by(name, _training(task, shape, rows, rows, smoothing))


def _training(task: Task, shape: Shape, rows: Matrix, masked: Matrix, smoothing: float) -> Training:
    tables, n_columns = split_tables(task, shape), rows.shape[1]
    categorical = [own for own in tables.columns if len(own) > 1]
    return Training(
        rows,
        tables.train_labels,
        masked,
        len(tables.classes),
        tables.columns,
        shape.numbers,
        task.protocol.inverse_penalty,
        smoothing,
        task.split_seed % 2**32,  # as scikit-learn takes it
        FeatureLayout.of(n_columns, categorical, range(n_columns) if shape.numbers else None),
    )


def _measured(truth: NDArray[np.int64], probabilities: Matrix) -> dict[str, vocab.Json]:
    return {
        "log_loss": log_loss(truth, probabilities),
        "brier": brier_score(truth, probabilities),
        "accuracy": accuracy(truth, probabilities.argmax(axis=1)),
        "calibration": calibration_error(truth, probabilities),
    }


class Learned(NamedTuple):
    """The outcome of learning: predictions for rows with gaps, or why there are none, and the seconds it took."""

    predict: Predict | None
    status: str
    reason: str
    seconds: float

    def tested(
        self,
        gaps: Matrix,
        truth: NDArray[np.int64],
        measure: Callable[[NDArray[np.int64], Matrix], Mapping[str, vocab.Json]],
    ) -> dict[str, vocab.Json]:
        """Return the measures of the predictions for some rows, or why there are none."""
        if self.predict is None:
            return {"status": self.status, "reason": self.reason}
        try:
            probabilities, seconds = timed(partial(self.predict, gaps))
        except _FAILURES as error:
            return {"status": FAILED, "reason": first_line(error)}
        costs = {"us_per_row": 1e6 * seconds / len(gaps), "fit_seconds": self.seconds}
        return {"status": OK, **measure(truth, probabilities), **costs}


def learn_by(name: str, training: Training) -> Learned:
    """Learn by a method; a failure is noted, so that the other methods still run."""
    start = time.perf_counter()
    try:
        predict, status, reason = METHODS[name].fit(training), OK, ""
    except NotApplicableError as why:
        predict, status, reason = None, NOT_APPLICABLE, str(why)
    except _FAILURES as error:
        predict, status, reason = None, FAILED, first_line(error)
    return Learned(predict, status, reason, time.perf_counter() - start)


def first_line(error: Exception) -> str:
    """Return the type and the first line of an error, at most 200 characters."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
