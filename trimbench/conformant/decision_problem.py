"""Whether a completed row is classified as before, as sums over independent features.

Given the class, the features of a conformant model are independent. The completed row keeps its class against a rival
if a sum over all features, the *margin*, is at least 0: each shown feature adds what its value is worth, each hidden
one a random amount. With P(class | shown features), this is all that the probability of the same decision needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.reduced_problem import Matrix, Vector

# Scores this close, relative to the size of their terms, are equal up to rounding.
_ROUNDING = 1e-12
# A real-valued feature is cut into this many cells of equal width, up to so many deviations from its means.
_CELLS, _REACH = 4000, 8.5


@dataclass(frozen=True, eq=False)
class HiddenFeature:
    """What a feature adds to the margins while its value is unknown.

    Attributes
    ----------
    values : ndarray of shape (n_values, n_rivals)
    chances : ndarray of shape (n_values, n_classes)
        P(value | class).
    width : ndarray of shape (n_rivals,)
        Width of the cells that a real-valued feature is cut into, whose middles the values are; 0 for a discrete one.
    means : ndarray of shape (n_classes, n_rivals)
        Expectation of what it adds.
    variances : ndarray of shape (n_rivals,)
        Of what a real-valued feature adds, in every class; 0 for a discrete one.
    outside : float
        Upper bound on the probability, in each class, of a value in none of the cells.
    """

    values: Matrix
    chances: Matrix
    width: Vector
    means: Matrix
    variances: Vector
    outside: float = 0.0

    @classmethod
    def discrete(cls, values: Matrix, chances: Matrix) -> HiddenFeature:
        """Return a feature with the values that are given."""
        nothing = np.zeros(values.shape[1])
        return cls(values, chances, nothing, chances.T @ values, nothing)

    @property
    def is_real(self) -> bool:
        """Whether it has infinitely many values."""
        return bool((self.width > 0).any())

    @cached_property
    def lowest(self) -> Vector:
        """The least that it can add to each margin, shape (n_rivals,)."""
        least: Vector = np.where(self.width > 0, -np.inf, self._possible.min(axis=0))
        return least

    @cached_property
    def highest(self) -> Vector:
        """The most that it can add to each margin, shape (n_rivals,)."""
        most: Vector = np.where(self.width > 0, np.inf, self._possible.max(axis=0))
        return most

    @property
    def _possible(self) -> Matrix:
        return self.values[(self.chances > 0).any(axis=1)]


@dataclass(frozen=True, eq=False)
class DecisionProblem:
    """The margins of one row against each rival of its class, and what its features say about the class.

    Attributes
    ----------
    winner : int
        Position of the class that is to be kept.
    rivals : tuple of int
        Classes that it must not lose against.
    base : ndarray of shape (n_rivals,)
        Difference of the biases, moved by what counts as a tie: the class is kept where the margin is 0 or more.
    shown : ndarray of shape (n_features, n_rivals)
        What the observed value of each feature adds to the margin; 0 where it is missing.
    hidden : tuple of HiddenFeature
    observed : ndarray of bool, shape (n_features,)
    log_prior : ndarray of shape (n_classes,)
    evidence : ndarray of shape (n_features, n_classes)
        What observing each feature adds to log P(class | shown features), up to a constant of the feature.
    """

    winner: int
    rivals: tuple[int, ...]
    base: Vector
    shown: Matrix
    hidden: tuple[HiddenFeature, ...]
    observed: NDArray[np.bool_]
    log_prior: Vector
    evidence: Matrix

    @classmethod
    def of(cls, model: ConformantDistribution, row: Vector, winner: int, rivals: tuple[int, ...]) -> DecisionProblem:
        """Return the problem of keeping the class `winner` of a row of shape (n_columns,) against its rivals."""
        layout, others = model.layout, list(rivals)
        difference = model.weights[:, [winner]] - model.weights[:, others]
        known = np.where(np.isnan(row), 0.0, row)
        shown = np.zeros((layout.n_features, len(others)))
        np.add.at(shown, layout.feature_of_column, known[:, None] * difference)
        value_scores = np.zeros((layout.n_features, len(model.classes)))
        np.add.at(value_scores, layout.feature_of_column, known[:, None] * model.weights)
        observed = ~np.isnan(row[[columns[0] for columns in layout.features]])
        evidence = np.where(observed[:, None], value_scores - model.missing_scores, 0.0)
        hidden = _hidden_features(model, difference)
        base = model.biases[winner] - model.biases[others]
        return cls(
            winner,
            rivals,
            base + _tie(base, shown, hidden, observed, winner, rivals),
            shown,
            hidden,
            observed,
            model.log_prior,
            evidence,
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.log_prior)

    @cached_property
    def candidates(self) -> NDArray[np.intp]:
        """Observed features that a smallest set may need.

        With two classes the margin is the log-odds of the class. A feature with the value that is worst for the class
        then lowers P(class | shown features) as well as the margin in both classes, so that no smallest set has it.
        """
        useful = self.observed.copy()
        if self.n_classes == 2:
            lowest = np.stack([feature.lowest for feature in self.hidden])
            useful &= (self.shown > lowest).any(axis=1)
        return np.flatnonzero(useful)


def _tie(
    base: Vector,
    shown: Matrix,
    hidden: tuple[HiddenFeature, ...],
    observed: NDArray[np.bool_],
    winner: int,
    rivals: tuple[int, ...],
) -> Vector:
    """Return what moves a margin so that ties, which the first class wins, are on its side of 0."""
    size = np.abs(base) + np.abs(shown).sum(axis=0)
    for feature in hidden:
        size = size + np.abs(feature.values).max(axis=0)
    tolerance = _ROUNDING * size
    wins_ties = winner < np.array(rivals)
    if observed.all():  # a row that is even up to rounding keeps its own class
        wins_ties |= base + shown.sum(axis=0) <= tolerance
    moved: Vector = np.where(wins_ties, tolerance, -tolerance)
    return moved


def _hidden_features(model: ConformantDistribution, difference: Matrix) -> tuple[HiddenFeature, ...]:
    layout = model.layout
    ones, zeros = np.exp(model.log_probabilities), np.exp(model.log_complements)
    groups, real = set(layout.categorical), list(layout.real)
    # The moments are in the order of the layout.
    real_places = [columns[0] for columns in layout.features if columns[0] in set(real)]
    means, variances = model.real_moments if real else (np.empty((0, 0)), np.empty(0))
    nothing = np.zeros(difference.shape[1])
    features = []
    for place, columns in enumerate(layout.features):
        column, wide = columns[0], list(columns)
        if columns in groups:
            features.append(HiddenFeature.discrete(difference[wide], ones[wide]))
        elif column not in real_places:
            values = np.stack([nothing, difference[column]])
            features.append(HiddenFeature.discrete(values, np.stack([zeros[column], ones[column]])))
        else:
            at = real_places.index(column)
            if variances[at] > 0:
                features.append(_cells(means[at], float(np.sqrt(variances[at])), difference[column]))
            else:
                features.append(_constant(model, place, difference[column]))
    return tuple(features)


def _constant(model: ConformantDistribution, place: int, slopes: Vector) -> HiddenFeature:
    """Return a real-valued feature that had one value in training, which its score divided by its weight gives."""
    weights = model.weights[model.layout.features[place][0]]
    largest = int(np.argmax(np.abs(weights)))
    value = model.missing_scores[place, largest] / weights[largest] if weights[largest] else 0.0
    return HiddenFeature.discrete(value * slopes[None], np.ones((1, len(weights))))


def _cells(means: Vector, deviation: float, slopes: Vector) -> HiddenFeature:
    from scipy.special import ndtr

    low, high = means.min() - _REACH * deviation, means.max() + _REACH * deviation
    edges = np.linspace(low, high, _CELLS + 1)
    below = ndtr((edges[:, None] - means) / deviation)
    above = ndtr((means - edges[:, None]) / deviation)
    # The difference of the smaller tails does not cancel.
    chances = np.where(below[1:] < 0.5, np.diff(below, axis=0), -np.diff(above, axis=0))
    middles = (edges[1:] + edges[:-1]) / 2
    width = np.abs(slopes) * (edges[1] - edges[0])
    outside = float(2 * ndtr(-_REACH))
    variances = (deviation * slopes) ** 2
    return HiddenFeature(middles[:, None] * slopes, chances, width, means[:, None] * slopes, variances, outside)
