"""Imputers, which fill missing columns in from the observed ones: the baselines of the experiments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.layout import CHUNK_ROWS

ImputerName = Literal["min", "max", "mean", "median", "em", "normal_draw", "mice", "mice_drawn", "knn"]
IMPUTERS: tuple[ImputerName, ...] = get_args(ImputerName)
Fill = Literal["min", "max", "mean", "median"]
FILLS: tuple[Fill, ...] = get_args(Fill)
Imputer = Callable[[ArrayLike], Matrix]
_Fill = Callable[[Matrix], Matrix]


def fit_imputer(
    name: ImputerName,
    rows: NDArray[Any],
    *,
    seed: int = 0,
    n_components: int = 20,
    n_neighbours: int = 10,
    n_nearest_features: int | None = None,
    max_iterations: int = 10,
) -> Imputer:
    """Fit an imputer to rows, and return a function that fills the gaps of others.

    Parameters
    ----------
    name : str
        ``"min"``, ``"max"``, ``"mean"``, ``"median"``: a constant for each column. ``"em"``: expectations of a mixture
        of independent binary columns, learned by expectation-maximisation. ``"normal_draw"``: a draw from a normal
        distribution with the mean and deviation of the observed values of the column, which is what the published
        experiments ran under the name EM. ``"mice"``: chained equations (scikit-learn's IterativeImputer).
        ``"mice_drawn"``: the same with draws from the posterior in place of its mean, rounded in columns of zeros and
        ones. ``"knn"``: the mean of the nearest rows (scikit-learn's KNNImputer).
    rows : array of shape (n_rows, n_columns)
        Training rows, or the rows to fill themselves; NaN where missing. Any finite numbers; for ``"em"`` zeros and
        ones.
    seed : int
    n_components : int
        Of ``"em"``.
    n_neighbours : int
        Of ``"knn"``.
    n_nearest_features : int, optional
        Of ``"mice"``: how many other columns predict each one; default: all.
    max_iterations : int
        Of ``"em"`` (times 10) and ``"mice"``.

    Returns
    -------
    callable
        Takes rows with NaN and returns complete rows. Columns that are missing in every training row are filled with 0;
        in columns of zeros and ones ``"mice"`` fills in values between 0 and 1.
    """
    table = np.asarray(rows)
    if name in FILLS:
        impute = _constant(table, name)
    elif name == "normal_draw":
        impute = _normal_draw(table.astype(np.float64), seed)
    elif name == "em":
        impute = fit_mixture(table, n_components, seed=seed, max_iterations=10 * max_iterations).fill
    else:
        impute = _from_scikit_learn(
            name, table.astype(np.float64), seed, n_neighbours, n_nearest_features, max_iterations
        )
    return lambda gaps: impute(np.asarray(gaps, dtype=np.float64))


def _constant(rows: NDArray[Any], name: Any) -> _Fill:
    if np.isnan(rows).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
            values = np.nan_to_num(np.asarray(getattr(np, f"nan{name}")(rows, axis=0)))
    else:
        values = fill_values(rows, name)
    return lambda gaps: np.where(np.isnan(gaps), values, gaps)


def _normal_draw(table: Matrix, seed: int) -> _Fill:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, deviation = np.nan_to_num(np.nanmean(table, axis=0)), np.nan_to_num(np.nanstd(table, axis=0))

    def fill(gaps: Matrix) -> Matrix:
        drawn = np.random.default_rng(seed).normal(mean, deviation, gaps.shape)
        return np.where(np.isnan(gaps), drawn, gaps)

    return fill


def _from_scikit_learn(
    name: str, table: Matrix, seed: int, n_neighbours: int, n_nearest_features: int | None, max_iterations: int
) -> _Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    binary = (np.isnan(table) | (table == 0) | (table == 1)).all(axis=0)  # also a column without any value
    if name == "knn":
        imputer = KNNImputer(n_neighbors=min(n_neighbours, len(table)), keep_empty_features=True)
    else:
        imputer = IterativeImputer(
            max_iter=max_iterations,
            n_nearest_features=n_nearest_features,
            min_value=np.where(binary, 0.0, -np.inf),
            max_value=np.where(binary, 1.0, np.inf),
            random_state=seed % 2**32,
            sample_posterior=name == "mice_drawn",
            keep_empty_features=True,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the chained equations have not converged is part of the comparison
        imputer.fit(table)

    def fill(gaps: Matrix) -> Matrix:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = imputer.transform(gaps)
        if name == "mice_drawn":
            filled = np.where(binary, filled.round(), filled)
        # KNNImputer sets a column without training values to 0 even where it is observed.
        return np.where(np.isnan(gaps), filled, gaps)

    return fill


# Predictors whose scores add up over the features: a weight where observed, a constant where missing.


@dataclass(frozen=True, eq=False)
class AdditivePredictor:
    """Linear scores of binary columns, with a score for each missing feature.

    The weights have the shape (n_columns, n_classes). `missing`, of shape (n_features, n_classes), is what a feature
    adds to each score while it is missing.
    """

    weights: Matrix
    biases: Vector
    missing: Matrix


def filling_predictor(
    weights: Matrix, biases: Vector, columns: tuple[tuple[int, ...], ...], fill: Vector
) -> AdditivePredictor:
    """Return a logistic regression that fills each missing column with a constant, as `fill_values` gives it.

    Its weights are of shape (n_columns, n_classes), and `columns` are those of each feature.
    """
    return AdditivePredictor(weights, biases, sums_by_feature(fill[:, None] * weights, columns))


def fill_values(rows: NDArray[Any], fill: Fill) -> Vector:
    """Return the minimum, maximum, mean or median of each column of complete rows of numbers."""
    if fill == "median" and rows.dtype.kind in "bu" and rows.max(initial=0) <= 1:
        # The median of zeros and ones, without sorting: 1/2 if both are equally frequent.
        return np.asarray(0.5 + 0.5 * np.sign(rows.mean(axis=0) - 0.5))
    return np.asarray(getattr(np, fill)(rows, axis=0), dtype=np.float64)


def naive_bayes_predictor(
    rows: NDArray[np.uint8],
    labels: NDArray[np.int64],
    n_classes: int,
    columns: tuple[tuple[int, ...], ...],
    smoothing: float = 1.0,
) -> AdditivePredictor:
    """Learn a naive Bayes classifier by maximum likelihood, with every column of zeros and ones a binary feature.

    `columns` are those of each feature, which are missing together; `smoothing` is the pseudo-count of each value in
    each class, and of each class.
    """
    counts = np.bincount(labels, minlength=n_classes).astype(np.float64)
    ones = np.stack([rows[labels == k].sum(axis=0, dtype=np.float64) for k in range(n_classes)], axis=1)
    # Without smoothing, a tiny count keeps the logarithms finite for values that a class never has.
    pseudo = smoothing or 1e-10
    log_one = np.log(ones + pseudo) - np.log(counts + 2 * pseudo)
    log_zero = np.log(counts - ones + pseudo) - np.log(counts + 2 * pseudo)
    prior = np.log(counts + pseudo) - np.log(len(rows) + n_classes * pseudo)
    return AdditivePredictor(log_one - log_zero, prior + log_zero.sum(axis=0), -sums_by_feature(log_zero, columns))


def predict_all(
    predictors: list[AdditivePredictor], rows: NDArray[np.uint8], missing: NDArray[np.bool_], spread: NDArray[np.intp]
) -> list[Matrix]:
    """Return the log-probabilities of several predictors for the same rows, with one matrix product.

    The predictors have the same columns and features. The rows are complete, `missing` tells which features they miss,
    shape (n_rows, n_features), and `spread` is the feature of each column. Each result has shape (n_rows, n_classes).
    """
    own = {id(predictor.weights): predictor.weights for predictor in predictors}
    distinct, places = list(own.values()), list(own)
    n_classes = predictors[0].weights.shape[1]
    weights, gone = np.hstack(distinct), np.hstack([predictor.missing for predictor in predictors])
    results = [np.empty((len(rows), n_classes)) for _ in predictors]
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        absent = missing[part]
        observed = np.where(absent[:, spread], 0.0, rows[part]) @ weights
        expected = absent.astype(np.float64) @ gone
        for i, predictor in enumerate(predictors):
            place = places.index(id(predictor.weights))
            scores = observed[:, place * n_classes : (place + 1) * n_classes] + predictor.biases
            scores = scores + expected[:, i * n_classes : (i + 1) * n_classes]
            scores -= scores.max(axis=1, keepdims=True)
            results[i][part] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return results


def sums_by_feature(by_column: Matrix, columns: tuple[tuple[int, ...], ...]) -> Matrix:
    """Return the sums over the columns of each feature, shape (n_features, n_classes)."""
    return np.stack([by_column[list(places)].sum(axis=0) for places in columns])


# A mixture of independent binary columns, learned by expectation-maximisation from rows with missing values.

_PSEUDO_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class BernoulliMixture:
    """Mixture weights and the probability of 1 of each column in each component.

    Attributes
    ----------
    log_weights : ndarray of shape (n_components,)
    theta : ndarray of shape (n_columns, n_components)
    log_likelihoods : tuple of float
        Mean log-likelihood of the observed values before each step: it never falls (up to the pseudo-counts).
    """

    log_weights: Vector
    theta: Matrix
    log_likelihoods: tuple[float, ...]

    def responsibilities(self, gaps: Matrix) -> tuple[Matrix, Vector]:
        """Return P(component | observed values) of each row, and log P(observed values)."""
        known = ~np.isnan(gaps)
        ones = np.where(known, gaps, 0.0)
        log_odds, log_zero = np.log(self.theta) - np.log1p(-self.theta), np.log1p(-self.theta)
        joint = self.log_weights + ones @ log_odds + known.astype(np.float64) @ log_zero
        top = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - top)
        total = shares.sum(axis=1, keepdims=True)
        return shares / total, (top + np.log(total))[:, 0]

    def fill(self, gaps: Matrix) -> Matrix:
        """Return the rows with missing values replaced by their expectations."""
        shares, _ = self.responsibilities(gaps)
        return np.where(np.isnan(gaps), shares @ self.theta.T, gaps)


def fit_mixture(
    rows: NDArray[Any], n_components: int, *, seed: int = 0, max_iterations: int = 100, tolerance: float = 1e-6
) -> BernoulliMixture:
    """Learn a mixture by expectation-maximisation, until the mean log-likelihood gains less than `tolerance`.

    The rows are zeros and ones, NaN where missing. At most one component for each row is used.
    """
    table = np.asarray(rows, dtype=np.float64)
    rng = np.random.default_rng(seed)
    known = (~np.isnan(table)).astype(np.float64)
    ones = np.where(known > 0, table, 0.0)
    n_components = min(n_components, len(table))
    shares = rng.dirichlet(np.full(n_components, 0.2), size=len(table))
    history: list[float] = []
    while True:
        weights = (shares.sum(axis=0) + _PSEUDO_COUNT) / (len(table) + _PSEUDO_COUNT * n_components)
        theta = (ones.T @ shares + _PSEUDO_COUNT) / (known.T @ shares + 2 * _PSEUDO_COUNT)
        mixture = BernoulliMixture(np.log(weights), theta, tuple(history))
        shares, likelihoods = mixture.responsibilities(table)
        history.append(float(likelihoods.mean()))
        if len(history) > max_iterations or (len(history) > 1 and history[-1] - history[-2] < tolerance):
            return mixture
