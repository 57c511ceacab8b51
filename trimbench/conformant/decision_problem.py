"""Whether a completed row is classified as before, as a problem: sums over independent hidden features.

Given the class, the features of a conformant model are independent; in a mixture they are given the class and the
component, which together are called a *state* here. The completed row keeps its class against a rival if a sum over all
features, the *margin*, is at least 0: each shown feature adds what its value is worth, each hidden one a random amount.
With P(state | shown features), this is all that the probability of the same decision needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.evidence import Evidence
from trimbench.conformant.layout import blocks

# Scores this close, relative to the size of their terms, are equal up to rounding.
ROUNDING = 1e-12
# A real-valued feature is cut into this many cells of equal width, up to this many standard deviations from its means.
_CELLS, _REACH = 4000, 8.5


@dataclass(frozen=True, eq=False)
class HiddenFeature:
    """What a feature adds to the margins while its value is unknown.

    Attributes
    ----------
    values : ndarray of shape (n_values, n_rivals)
    chances : ndarray of shape (n_values, n_states)
        P(value | state).
    width : ndarray of shape (n_rivals,)
        Width of the cells that a real-valued feature is cut into, with `values` at their middles; 0 if discrete.
    means : ndarray of shape (n_states, n_rivals)
        Expectation of what it adds.
    variances : ndarray of shape (n_states, n_rivals)
        Variance of what a real-valued feature adds; 0 for a discrete one.
    outside : float
        Upper bound on the probability, in each state, of a value in none of the cells.
    """

    values: Matrix
    chances: Matrix
    width: Vector
    means: Matrix
    variances: Matrix
    outside: float = 0.0

    @classmethod
    def discrete(cls, values: Matrix, chances: Matrix) -> HiddenFeature:
        """Return a discrete feature with the given values and chances."""
        means = chances.T @ values
        return cls(values, chances, np.zeros(values.shape[1]), means, np.zeros_like(means))

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
        Positions of the classes that it must not lose against.
    base : ndarray of shape (n_rivals,)
        Difference of the biases, shifted to settle ties: the class is kept where the margin is 0 or more.
    shown : ndarray of shape (n_features, n_rivals)
        What the observed value of each feature adds to the margin; 0 where it is missing.
    hidden : tuple of HiddenFeature
    observed : ndarray of bool, shape (n_features,)
    log_prior : ndarray of shape (n_states,)
        The classes of the first component, then those of the next.
    evidence : ndarray of shape (n_features, n_states)
        What observing each feature adds to log P(state | shown features), up to a constant of the feature.
    n_classes : int
    """

    winner: int
    rivals: tuple[int, ...]
    base: Vector
    shown: Matrix
    hidden: tuple[HiddenFeature, ...]
    observed: NDArray[np.bool_]
    log_prior: Vector
    evidence: Matrix
    n_classes: int

    @classmethod
    def of(cls, model: ConformantDistribution, row: Vector, winner: int, rivals: tuple[int, ...]) -> DecisionProblem:
        """Return the problem of keeping the class `winner` of a row of shape (n_columns,) against its rivals."""
        layout, others = model.layout, list(rivals)
        difference = model.weights[:, [winner]] - model.weights[:, others]
        known = np.where(np.isnan(row), 0.0, row)
        shown = np.zeros((layout.n_features, len(others)))
        np.add.at(shown, layout.feature_of_column, known[:, None] * difference)
        observed = ~np.isnan(row[layout.first_columns])
        hidden = hidden_features(model, difference, range(layout.n_features))
        base = model.biases[winner] - model.biases[others]
        weighted = zip(model.log_weights, model.components, strict=True)
        return cls(
            winner,
            rivals,
            base + _tie(base, shown, hidden, observed, winner, rivals),
            shown,
            hidden,
            observed,
            np.concatenate([log + part.log_prior for log, part in weighted]),
            np.where(observed[:, None], _evidence(model, row), 0.0),
            len(model.classes),
        )

    @property
    def n_states(self) -> int:
        """Number of pairs of a component and a class."""
        return len(self.log_prior)

    @cached_property
    def worth(self) -> Vector:
        """What observing each feature adds to the log-odds of the class against the others, shape (n_features,).

        The mean over the other classes, and over the components by their probability given all that is observed.
        """
        joint = (self.log_prior + self.evidence.sum(axis=0)).reshape(-1, self.n_classes)
        shares = np.exp(joint - joint.max()).sum(axis=1)
        of_classes = (shares / shares.sum()) @ self.evidence.reshape(len(self.evidence), -1, self.n_classes)
        result: Vector = of_classes[:, self.winner] - np.delete(of_classes, self.winner, axis=1).mean(axis=1)
        return result

    @cached_property
    def candidates(self) -> NDArray[np.intp]:
        """Observed features that a smallest set may need.

        With two classes and one component, the margin is the log-odds of the class. A feature with the value that is
        worst for the class then lowers P(class | shown features) as well as the margin in both classes, so that no
        smallest set has it.
        """
        useful = self.observed.copy()
        if self.n_states == 2:
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
    """Return the shift that puts a tied margin on the side of 0 of the class that wins ties, the first."""
    size = np.abs(base) + np.abs(shown).sum(axis=0)
    for feature in hidden:
        size = size + np.abs(feature.values).max(axis=0)
    tolerance = ROUNDING * size
    wins_ties = winner < np.array(rivals)
    if observed.all():  # a row that is even up to rounding keeps its own class
        wins_ties |= base + shown.sum(axis=0) <= tolerance
    moved: Vector = np.where(wins_ties, tolerance, -tolerance)
    return moved


def _evidence(model: ConformantDistribution, row: Vector) -> Matrix:
    """Return the log-probability of each observed value in each state, up to a constant, shape (n_features, n_states).

    What a component adds to the scores of all classes is left out if it is the only one.
    """
    layout, parts = model.layout, model.components
    owner = layout.feature_of_column
    value_scores = np.zeros((layout.n_features, len(model.classes)))
    np.add.at(value_scores, owner, np.where(np.isnan(row), 0.0, row)[:, None] * model.weights)
    if len(parts) == 1:
        return value_scores - parts[0].missing_scores
    statistics = Evidence(layout, parts[0].coding)
    (block,) = blocks(row[None], layout)
    of_parameters = statistics.statistics(block)[0]
    levels = np.zeros((layout.n_features, len(parts)))
    parameters = np.stack([part.solution.parameters for part in parts], axis=1)
    np.add.at(levels, statistics.features[parts[0].coding.problem.owner], of_parameters[:, None] * parameters)
    missing = np.stack([part.missing_scores for part in parts], axis=1)
    whole: Matrix = value_scores[:, None] + levels[:, :, None] - missing
    return whole.reshape(layout.n_features, -1)


def hidden_features(
    model: ConformantDistribution, difference: Matrix, features: Iterable[int]
) -> tuple[HiddenFeature, ...]:
    """Return what features add to margins while their values are unknown.

    Parameters
    ----------
    difference : ndarray of shape (n_columns, n_rivals)
        Differences of weights.
    features : iterable of int
        Positions in the layout; none of them may take part in a covariance.
    """
    layout, parts = model.layout, model.components
    ones = np.exp(np.hstack([part.log_probabilities for part in parts]))
    zeros = np.exp(np.hstack([part.log_complements for part in parts]))
    groups = set(layout.categorical)
    moments = [part.real_moments for part in parts] if layout.real else []
    nothing = np.zeros(difference.shape[1])
    found = []
    for place in features:
        columns = layout.features[place]
        column, wide = columns[0], list(columns)
        if columns in groups:
            found.append(HiddenFeature.discrete(difference[wide], ones[wide]))
        elif column not in layout.real:
            values = np.stack([nothing, difference[column]])
            found.append(HiddenFeature.discrete(values, np.stack([zeros[column], ones[column]])))
        else:
            at = layout.real_columns.index(column)
            means = np.concatenate([of_part[at] for of_part, _ in moments])
            variances = np.repeat([of_part[at] for _, of_part in moments], len(model.classes))
            if variances[0] > 0:
                found.append(_cells(means, np.sqrt(variances), difference[column]))
            else:
                found.append(_constant(model, place, difference[column]))
    return tuple(found)


def _constant(model: ConformantDistribution, place: int, slopes: Vector) -> HiddenFeature:
    """Return a real-valued feature that had one value in training: its score divided by its weight."""
    weights = model.weights[model.layout.features[place][0]]
    largest = int(np.argmax(np.abs(weights)))
    value = model.components[0].missing_scores[place, largest] / weights[largest] if weights[largest] else 0.0
    return HiddenFeature.discrete(value * slopes[None], np.ones((1, len(weights) * len(model.components))))


def _cells(means: Vector, deviations: Vector, slopes: Vector) -> HiddenFeature:
    from scipy.special import ndtr

    low, high = (means - _REACH * deviations).min(), (means + _REACH * deviations).max()
    edges = np.linspace(low, high, _CELLS + 1)
    below = ndtr((edges[:, None] - means) / deviations)
    above = ndtr((means - edges[:, None]) / deviations)
    # The difference of the smaller tails does not cancel.
    chances = np.where(below[1:] < 0.5, np.diff(below, axis=0), -np.diff(above, axis=0))
    middles = (edges[1:] + edges[:-1]) / 2
    width = np.abs(slopes) * (edges[1] - edges[0])
    outside = float(2 * ndtr(-_REACH))
    variances = (deviations[:, None] * slopes) ** 2
    return HiddenFeature(middles[:, None] * slopes, chances, width, means[:, None] * slopes, variances, outside)


# The probability that a completed row is classified as before, for one set of shown features after the other.
