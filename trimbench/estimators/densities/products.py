"""Mixtures of products: features that are independent given a hidden component."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.evidence import logsumexp
from trimbench.estimators.densities.density import responsibilities
from trimbench.estimators.densities.draws import RandomNumbers, log_shares
from trimbench.estimators.densities.margins import Margins

# Pseudo-rows that each component has of the normal law with its own moments, and of the law of all rows.
_NORMAL_ROWS, _ALL_ROWS = 5.0, 1.0
_LEAST_VARIANCE = 1e-3
# Expectation-maximisation stops once a step gains less than this share of the log-likelihood.
_MAX_STEPS, _TOLERANCE = 60, 1e-5
_CLUSTERING_STEPS = 15


class ProductMixture:
    """A mixture of components in which all features are independent, each with a law over its bins.

    Inside a bin, a number has the law of the training values in it. The law of a component over the bins of a number is
    smoothed by a normal law of the normal scores, so that few rows are enough.

    Parameters
    ----------
    n_components : int

    Attributes
    ----------
    margins : Margins
    log_weights : ndarray of shape (n_components,)
    tables : ndarray of shape (n_all_bins, n_components)
        P(bin | component); the bins of each feature are those between two ``margins.offsets``.
    """

    margins: Margins
    log_weights: Vector
    tables: Matrix

    def __init__(self, n_components: int) -> None:
        self.n_components = n_components

    @classmethod
    def of(cls, margins: Margins, log_weights: Vector, tables: Matrix) -> Self:
        """Return the mixture with these parameters."""
        found = cls(len(log_weights))
        found.margins, found.log_weights, found.tables = margins, log_weights, tables
        found._log_tables, found._drawn = np.log(tables), None
        return found

    def fit(self, rows: Matrix, margins: Margins, random_state: int) -> Self:
        """Fit the mixture to coded rows, which may have gaps, by expectation-maximisation."""
        self.margins = margins
        self._drawn: tuple[int, NDArray[np.float64]] | None = None
        seen = indicators(margins, rows)
        responsibilities = clustered(margins, rows, self.n_components, random_state)
        before = -np.inf
        for _ in range(_MAX_STEPS):
            self.log_weights = log_shares(responsibilities)
            self.tables = self._maximised(seen.T @ responsibilities)
            self._log_tables = np.log(self.tables)
            joint = seen @ self._log_tables + self.log_weights
            totals = logsumexp(joint)
            reached = float(totals.mean())
            if reached - before < _TOLERANCE * abs(reached):
                break
            responsibilities, before = np.exp(joint - totals[:, None]), reached
        return self

    def _maximised(self, counts: Matrix) -> Matrix:
        """Return the tables for expected numbers of rows in each bin of each component."""
        from scipy.special import ndtr

        margins = self.margins
        starts, shares = margins.offsets[:-1], margins.shares[:, None]
        of_bins = np.repeat(np.arange(margins.n_features), margins.n_bins)

        def per_feature(values: Matrix) -> Matrix:
            return np.asarray(np.add.reduceat(values, starts, axis=0)[of_bins])

        smooth = counts + _ALL_ROWS * shares
        law = smooth / per_feature(smooth)
        middles = margins.middle_scores[:, None]
        means = per_feature(law * middles)
        deviations = np.sqrt(np.maximum(per_feature(law * (middles - means) ** 2), _LEAST_VARIANCE))
        low, high = margins.score_ranges
        normal = ndtr((high[:, None] - means) / deviations) - ndtr((low[:, None] - means) / deviations)
        normal = normal / per_feature(normal)
        numeric = ~margins.categorical[of_bins] & (margins.n_bins[of_bins] > 2)
        smooth[numeric] += _NORMAL_ROWS * normal[numeric]
        return np.asarray(smooth / per_feature(smooth))

    def log_joint(self, rows: Matrix) -> Matrix:
        """Return log P(component, known features) of each row, shape (n_rows, n_components)."""
        return np.asarray(indicators(self.margins, rows) @ self._log_tables + self.log_weights)

    def marginal(self, rows: Matrix, feature: int) -> Matrix:
        """Return P(bin | known features) of a feature that all rows hide, shape (n_rows, n_bins)."""
        own = slice(*self.margins.offsets[feature : feature + 2])
        return responsibilities(self, rows) @ self.tables[own].T

    def below(self, feature: int, thresholds: Vector) -> Matrix:
        """Return P(feature <= threshold | component), shape (n_thresholds, n_components)."""
        own = slice(*self.margins.offsets[feature : feature + 2])
        return self.margins.below(feature, thresholds) @ self.tables[own]

    def draw(self, rows: Matrix, numbers: RandomNumbers) -> NDArray[np.float64]:
        """Complete each row, shape (n_rows, n_draws, n_features)."""
        chosen = numbers.components(responsibilities(self, rows))
        if numbers.n_sets > 1:
            features = range(self.margins.n_features)
            drawn = values_of_components(self.margins, self.tables, numbers, features)
            completed = drawn[numbers.sets(len(rows))[:, None], np.arange(numbers.n_draws), chosen]
        else:
            completed = self._sequence(numbers)[np.arange(numbers.n_draws), chosen]
        return np.where(np.isnan(rows)[:, None, :], completed, rows[:, None, :])

    def _sequence(self, numbers: RandomNumbers) -> NDArray[np.float64]:
        """Return the values that common random numbers have in each component, kept for the next rows."""
        last = numbers.first + numbers.n_draws
        if self._drawn is None or self._drawn[0] != numbers.random_state or len(self._drawn[1]) < last:
            whole = RandomNumbers(last, numbers.n_features, numbers.random_state)
            features = range(self.margins.n_features)
            values = values_of_components(self.margins, self.tables, whole, features)[0]
            self._drawn = numbers.random_state, values
        return self._drawn[1][numbers.first : last]


def values_of_components(
    margins: Margins, tables: Matrix, numbers: RandomNumbers, features: Iterable[int]
) -> NDArray[np.float64]:
    """Return the value that each draw has in each component, shape (n_sets, n_draws, n_components, n_features).

    Features that are not among those asked for stay 0.
    """
    last = margins.quantiles.shape[1] - 1
    drawn = np.zeros((numbers.n_sets, numbers.n_draws, tables.shape[1], margins.n_features))
    for feature in features:
        own = slice(*margins.offsets[feature : feature + 2])
        ends = np.cumsum(tables[own], axis=0)
        for component, ends_of in enumerate((ends / ends[-1]).T):
            heights = np.append(0.0, ends_of)
            places = np.interp(numbers.features[..., feature], heights, margins.starts[feature]).astype(np.intp)
            drawn[:, :, component, feature] = margins.quantiles[feature, np.minimum(places, last)]
    return drawn


def indicators(margins: Margins, rows: Matrix) -> Any:
    """Return a sparse matrix with a 1 for the bin of each known value, shape (n_rows, n_all_bins)."""
    from scipy.sparse import csr_array

    bins = margins.bins(rows)
    known = bins >= 0
    ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    columns = (bins + margins.offsets[:-1])[known]
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), int(margins.offsets[-1])))


def embedded(margins: Margins, rows: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return rows as points, with 0 in the gaps, and which coordinates are known.

    Numbers have their normal scores, which have mean 0 and variance 1, categories indicators.
    """
    numeric = ~margins.categorical
    scores = margins.scores(rows)[:, numeric]
    points, known = [np.nan_to_num(scores)], [~np.isnan(scores)]
    bins = margins.bins(rows) if not numeric.all() else np.empty((0, 0))
    for feature in np.flatnonzero(margins.categorical).tolist():
        of_rows = bins[:, [feature]]
        points.append((of_rows == np.arange(margins.n_bins[feature])).astype(np.float64))
        known.append(np.broadcast_to(of_rows >= 0, points[-1].shape))
    return np.hstack(points), np.hstack(known)


def clustered(margins: Margins, rows: Matrix, n_components: int, random_state: int) -> Matrix:
    """Return responsibilities to start from: mostly of the nearest of the means of clusters."""
    if n_components == 1:
        return np.ones((len(rows), 1))
    import warnings

    from sklearn.cluster import KMeans

    points, known = embedded(margins, rows)
    means_of_known = points.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    points = np.where(known, points, means_of_known).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters
        means = KMeans(n_components, n_init=1, max_iter=_CLUSTERING_STEPS, random_state=random_state % 2**32)
        labels = means.fit_predict(points)
    return np.asarray(0.9 * np.eye(n_components)[labels] + 0.1 / n_components)
