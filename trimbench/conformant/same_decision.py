"""Whether a completed row is classified as before: certified tails of sums over independent features.

Given the class, the features of a conformant model are independent; in a mixture they are given the class and the
component, which together are called a *state* here. The completed row keeps its class against a rival if a sum over all
features, the *margin*, is at least 0: each shown feature adds what its value is worth, each hidden one a random amount.
With P(state | shown features), this is all that the probability of the same decision needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.evidence import Evidence, ObservedRows
from trimbench.conformant.layout import blocks

# Scores this close, relative to the size of their terms, are equal up to rounding.
_ROUNDING = 1e-12
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
    tolerance = _ROUNDING * size
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

# Points of the two grids: the fine one is used where the bounds of the coarse one do not settle a question.
_POINTS = (2**13, 2**16)
# Exponents of the bounds by exponential moments.
_SLOPES = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5])


class SameDecision:
    """Certified bounds on P(same decision | shown features), and a quick approximation.

    Parameters
    ----------
    problem : DecisionProblem
    order : ndarray of int, shape (n_features,)
        See `MarginTails`.
    """

    def __init__(self, problem: DecisionProblem, order: NDArray[np.intp]) -> None:
        self.problem = problem
        self.evaluations = 0
        self._order = order
        self._grids: dict[int, list[MarginTails]] = {}
        self._hidden_means = np.stack([feature.means for feature in problem.hidden])
        squares = [
            np.stack([feature.chances[:, k] @ feature.values**2 for k in range(problem.n_states)])
            for feature in problem.hidden
        ]
        self._hidden_variances = np.maximum(np.stack(squares) - self._hidden_means**2, 0.0)

    def posterior(self, shown: NDArray[np.intp] | list[int]) -> Vector:
        """Return P(state | shown features)."""
        logs = self.problem.log_prior + self.problem.evidence[shown].sum(axis=0)
        chances = np.exp(logs - logs.max())
        result: Vector = chances / chances.sum()
        return result

    def bounds(self, shown: Iterable[int], delta: float, *, precise: bool = False) -> tuple[float, float]:
        """Return lower and upper bounds on the probability, on the coarse grid if it settles whether delta is reached.

        If `precise`, always on the fine grid as well.

        Against several rivals the lower bound adds up the probabilities of losing against each of them, and the upper
        one takes the largest.
        """
        chosen = list(shown)
        modes = np.full(len(self.problem.hidden), HIDDEN)
        modes[chosen] = SHOWN
        weights = self.posterior(chosen)
        lower, upper = 0.0, 1.0
        for fine in (0, 1):
            self.evaluations += 1
            pairs = [tails.bounds(modes) for tails in self._grid(fine)]
            lower = max(lower, 1 - sum(float(weights @ (1 - low)) for low, _ in pairs))
            upper = min(upper, *(float(weights @ high) for _, high in pairs))
            if not precise and (lower >= delta or upper < delta):
                break
        return lower, upper

    def relaxed(self, shown: NDArray[np.intp], undecided: NDArray[np.intp], fine: int = 0) -> list[Vector]:
        """Return upper bounds on P(kept | state) against each rival, whichever undecided features are shown too."""
        self.evaluations += 1
        modes = np.full(len(self.problem.hidden), HIDDEN)
        modes[shown], modes[undecided] = SHOWN, UNDECIDED
        return [tails.bounds(modes)[1] for tails in self._grid(fine)]

    def exponential_bounds(self, shown: NDArray[np.intp], undecided: NDArray[np.intp], left: int) -> list[Vector]:
        """Return upper bounds on P(kept | state) against each rival if at most `left` more features are shown.

        P(margin >= 0) is at most the expectation of exp(s margin) for any s > 0, a product over the features, for which
        the best undecided features are those that raise it most.
        """
        hidden, raised = self._exponents
        chosen = self.problem.base[:, None] * _SLOPES + np.zeros((self.problem.n_states, 1, 1))
        total = chosen + hidden.sum(axis=0) + raised[shown].sum(axis=0)
        if left and undecided.size:
            gains = np.maximum(raised[undecided], 0.0)
            kept = min(left, len(gains))
            total = total + np.partition(gains, len(gains) - kept, axis=0)[len(gains) - kept :].sum(axis=0)
        best = np.exp(np.minimum(total.min(axis=2), 0.0)) * (1 + 1e-9)
        return list(np.minimum(best, 1.0).T)

    @cached_property
    def _exponents(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The log-expectation of exp(s x) while hidden, and what showing adds, (n_features, n_states, n_rivals, n)."""
        problem = self.problem
        hidden = np.empty((len(problem.hidden), problem.n_states, len(problem.rivals), len(_SLOPES)))
        for place, feature in enumerate(problem.hidden):
            if feature.is_real:
                hidden[place] = feature.means[:, :, None] * _SLOPES + feature.variances[:, :, None] * _SLOPES**2 / 2
                continue
            scaled = feature.values[:, :, None] * _SLOPES
            top = scaled.max(axis=0)
            hidden[place] = np.log(np.einsum("vk,vjs->kjs", feature.chances, np.exp(scaled - top))) + top
        return hidden, problem.shown[:, None, :, None] * _SLOPES - hidden

    def approximate(self, base: Iterable[int], removed: NDArray[np.intp], added: NDArray[np.intp]) -> Matrix:
        """Approximate the probability of a set with one feature exchanged, shape (n_removed, n_added).

        Margins are taken to be normally distributed in each state. A feature of -1 stands for none.
        """
        from scipy.special import ndtr

        problem, chosen = self.problem, list(base)
        hidden = np.ones(len(problem.hidden), dtype=bool)
        hidden[chosen] = False
        mean = problem.base + problem.shown[chosen].sum(axis=0) + self._hidden_means[hidden].sum(axis=0)
        variance = self._hidden_variances[hidden].sum(axis=0)
        logs = problem.log_prior + problem.evidence[chosen].sum(axis=0)

        def moved(features: NDArray[np.intp]) -> tuple[Matrix, Matrix, Matrix]:
            some = (features >= 0)[:, None]
            means = np.where(some[..., None], problem.shown[features][:, None] - self._hidden_means[features], 0.0)
            variances = np.where(some[..., None], self._hidden_variances[features], 0.0)
            return means, variances, np.where(some, problem.evidence[features], 0.0)

        (m0, v0, e0), (m1, v1, e1) = moved(removed), moved(added)
        result = np.empty((len(removed), len(added)))
        for r in range(len(removed)):
            means = mean + m1 - m0[r]
            variances = np.maximum(variance - v1 + v0[r], 1e-12)
            posterior = logs + e1 - e0[r]
            posterior = np.exp(posterior - posterior.max(axis=-1, keepdims=True))
            posterior /= posterior.sum(axis=-1, keepdims=True)
            result[r] = 1 - np.einsum("akj,ak->a", ndtr(-means / np.sqrt(variances)), posterior)
        return result

    def _grid(self, fine: int) -> list[MarginTails]:
        if fine not in self._grids:
            n_points = _POINTS[fine]
            rivals = range(len(self.problem.rivals))
            self._grids[fine] = [MarginTails(self.problem, j, n_points, self._order) for j in rivals]
        return self._grids[fine]


# The probability of the same decision of whole tables of rows.

# Completions times states up to which all are added up, and how far apart bounds of the coarse grid may be.
_MOST_COMPLETIONS, _CLOSE = 2**20, 1e-3
# How far a probability may be off where a normal number follows sums on a grid, which has at most so many points.
_OFF, _MOST_POINTS = 1e-5, 2**15
# The largest second derivative of the normal distribution function, at -1.
_CURVATURE = math.exp(-0.5) / math.sqrt(2 * math.pi)


def same_decision_bounds(model: ConformantDistribution, table: Matrix) -> Matrix:
    """Return bounds on P(the class stays | observed features) of each row, shape (n_rows, 2).

    They are equal up to rounding where all completions can be added up, and certified otherwise. Against one rival,
    the completions of either half of the discrete features are enough, and all hidden real-valued ones together add a
    normal number to the margin.
    """
    bounds = np.ones((len(table), 2))
    incomplete = np.flatnonzero(np.isnan(table).any(axis=1))
    winners = model.decision_scores(table).argmax(axis=1)
    kept: dict[int, tuple[list[int], Matrix, tuple[HiddenFeature, ...], Matrix]] = {}
    n_states = model.n_components * len(model.classes)
    for block in model.evidence.blocks(table[incomplete], n_states):
        observed = ObservedRows.of(model.evidence, block, model.weights, model.biases)
        posteriors = model.scores_of(observed, only_gaps=True).posterior.of_classes.reshape(-1, n_states)
        for row, place in enumerate(incomplete[block.rows].tolist()):
            winner = int(winners[place])
            if winner not in kept:
                kept[winner] = _against(model, winner)
            rivals, difference, features, largest = kept[winner]
            absent = block.absent[row]
            size = np.abs(block.values[row]) @ np.abs(difference) + largest[absent].sum(axis=0)
            size += np.abs(model.biases[winner] - model.biases[rivals])
            margins = observed.whole[row, winner] - observed.whole[row, rivals]
            margins += _ROUNDING * np.where(winner < np.array(rivals), size, -size)  # the first class wins ties
            found = _stays(margins, posteriors[row], [features[place] for place in np.flatnonzero(absent).tolist()])
            bounds[place] = found or _stays_on_grid(DecisionProblem.of(model, table[place], winner, tuple(rivals)))
    return bounds


def _against(model: ConformantDistribution, winner: int) -> tuple[list[int], Matrix, tuple[HiddenFeature, ...], Matrix]:
    """Return the rivals of a class, differences of weights, what each feature adds while hidden, and at most."""
    rivals = [k for k in range(len(model.classes)) if k != winner]
    difference = model.weights[:, [winner]] - model.weights[:, rivals]
    features = hidden_features(model, difference, range(model.layout.n_features))
    return rivals, difference, features, np.stack([np.abs(feature.values).max(axis=0) for feature in features])


def _stays(margins: Vector, posterior: Vector, hidden: Sequence[HiddenFeature]) -> tuple[float, float] | None:
    """Return bounds on the probability that all margins stay at least 0; None if they take too many sums.

    Parameters
    ----------
    margins : ndarray of shape (n_rivals,)
        What biases and observed features add up to.
    posterior : ndarray of shape (n_states,)
        P(state | observed features).
    hidden : sequence of HiddenFeature
    """
    means, variances = np.tile(margins, (len(posterior), 1)), np.zeros((len(posterior), len(margins)))
    discrete = []
    for feature in hidden:
        if feature.is_real or not np.ptp(feature.values, axis=0).any():  # what is certain has no variance
            means, variances = means + feature.means, variances + feature.variances
        else:
            discrete.append((feature.values, feature.chances))
    if len(margins) > 1 and not variances.any() and _n_sums(discrete) * len(posterior) <= _MOST_COMPLETIONS:
        sums, chances = _sums(discrete, posterior)
        exact = min(float(chances[(means[0] + sums >= 0).all(axis=1)].sum()), 1.0)
        return exact, exact
    low, high = 1.0, 1.0
    for rival in range(len(margins)):
        own = [(values[:, [rival]], chances) for values, chances in discrete]
        found = _tail(own, means[:, rival], np.sqrt(variances[:, rival]), posterior)
        if found is None:
            return None
        low, high = max(low - (1 - found[0]), 0.0), min(high, found[1])
    return low, high


# The values that a discrete feature may add to some margins, (n_values, n_margins), and their chances in each state.
_Term = tuple[Matrix, Matrix]


def _tail(terms: Sequence[_Term], means: Vector, deviations: Vector, posterior: Vector) -> tuple[float, float] | None:
    """Return bounds on P(normal number + terms >= 0), of one margin; None if that takes too many sums.

    Without a normal number, all sums of either half of the terms are added up, and those of one half are looked up
    among those of the other. With one, the probability is a smooth function f of the sum. On a grid, each value is
    shared by its two neighbours such that its mean stays, which changes the expectation of f by at most step^2 / 8 of
    the largest ``|f''|``, for each term.
    """
    from scipy.special import ndtr

    n_completions, n_states = _n_sums(terms), len(posterior)
    if not deviations.any():
        ordered = sorted(terms, key=lambda term: len(term[0]))
        halves = ordered[::2], ordered[1::2]
        if max(map(_n_sums, halves)) * n_states > _MOST_COMPLETIONS:
            return None
        (sums, chances), (others, tails) = _sums(halves[0], posterior), _sums(halves[1], np.ones(n_states))
        order = np.argsort(others[:, 0])
        above = np.vstack([np.cumsum(tails[order[::-1]], axis=0)[::-1], np.zeros(n_states)])
        places = np.searchsorted(others[order, 0], -means[0] - sums[:, 0])
        exact = min(float((chances * above[places]).sum()), 1.0)
        return exact, exact
    if not deviations.all():
        return None
    span = sum(float(np.ptp(values)) for values, _ in terms)
    step, off = float(deviations.min()) * math.sqrt(8 * _OFF / (_CURVATURE * max(len(terms), 1))), _OFF
    if n_completions * n_states <= _MOST_COMPLETIONS and (n_completions - 1) * step <= span:
        (sums, chances), off = _sums(terms, posterior), 0.0
    elif span <= _MOST_POINTS * step:
        sums, chances = _sums_on_grid(terms, posterior, step)
    else:
        return None
    found = float((chances * ndtr((means + sums) / deviations)).sum())
    return max(found - off, 0.0), min(found + off, 1.0)


def _n_sums(terms: Sequence[_Term]) -> int:
    return math.prod(len(values) for values, _ in terms)


def _sums(terms: Sequence[_Term], posterior: Vector) -> tuple[Matrix, Matrix]:
    """Return all that terms may add up to, (n_sums, n_margins), and their chances, (n_sums, n_states)."""
    sums, chances = np.zeros((1, 1)), posterior[None]
    for values, of_values in terms:
        sums = (sums[:, None] + values).reshape(-1, values.shape[1])
        chances = (chances[:, None] * of_values).reshape(-1, len(posterior))
    return sums, chances


def _sums_on_grid(terms: Sequence[_Term], posterior: Vector, step: float) -> tuple[Matrix, Matrix]:
    """Return sums as `_sums` does, of one margin, each value shared by its two neighbours so that its mean stays."""
    low, chances = 0.0, posterior[None]
    for values, of_values in terms:
        low += float(values.min())
        shares, places = np.modf((values[:, 0] - values.min()) / step)
        before, chances = chances, np.zeros((len(chances) + int(places.max()) + 1, len(posterior)))
        for place, share, chance in zip(places.astype(int).tolist(), shares.tolist(), of_values, strict=True):
            moved = before * chance
            chances[place : place + len(before)] += (1 - share) * moved
            chances[place + 1 : place + 1 + len(before)] += share * moved
    return low + step * np.arange(len(chances), dtype=np.float64)[:, None], chances


def _stays_on_grid(problem: DecisionProblem) -> tuple[float, float]:
    """Return bounds as `_stays` does, from tables of what every feature adds."""
    observed = np.flatnonzero(problem.observed)
    decision = SameDecision(problem, np.arange(len(problem.hidden)))
    coarse = decision.bounds(observed, 0.0)
    return coarse if coarse[1] - coarse[0] <= _CLOSE else decision.bounds(observed, 0.0, precise=True)


# Probabilities that a margin is at least 0, on a grid, with certified bounds on the effect of rounding.

# Probabilities of larger rounding errors to choose from, and what floating point adds to a probability at most.
_FAILURES = np.array([1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4])
_FLOATING = 1e-12
# Number of features between two stored copies of the table, and between those of a large one.
_CHECKPOINT_EVERY, _RARELY, _LARGE = 8, 64, 2**20

SHOWN, HIDDEN, UNDECIDED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Rounded:
    """One random term on the grid: ``low + step * shift + error``."""

    low: float
    shifts: NDArray[np.int64]
    chances: Matrix
    errors: Matrix  # mean, variance proxy and largest distance from the mean, in each state
    outside: float


@dataclass(frozen=True, eq=False)
class _State:
    """The sum of some terms: P(shift = s | state), of shape (n_states, n_points), of which `reached` are used."""

    at: int
    low: float
    table: Matrix
    reached: int
    errors: Matrix
    outside: float


class MarginTails:
    """Bounds on P(margin >= 0 | state) against one rival, for any division into shown and hidden features.

    Parameters
    ----------
    problem : DecisionProblem
    rival : int
        Position among the rivals of the problem.
    n_points : int
        About how many points the grid has.
    order : ndarray of int, shape (n_features,)
        Order in which features are added. Divisions that begin alike share work, so features that are hidden in all
        of them, or shown in all, should come first.
    """

    def __init__(self, problem: DecisionProblem, rival: int, n_points: int, order: NDArray[np.intp]) -> None:
        self._base, self._order = float(problem.base[rival]), order.tolist()
        self._shown = problem.shown[:, rival].tolist()
        spans = [_span(feature, rival) for feature in problem.hidden]
        self._step = sum(high - low for low, high in spans) / n_points or 1.0
        step = self._step
        self._hidden = [_rounded(feature, rival, step, None) for feature in problem.hidden]
        self._undecided: dict[int, _Rounded] = {}
        self._problem, self._rival = problem, rival
        width = sum(int(term.shifts.max()) for term in self._hidden)
        width += len(self._hidden) + 1
        start = np.zeros((problem.n_states, width))
        start[:, 0] = 1.0
        self._states = [_State(0, self._base, start, 1, np.zeros((3, problem.n_states)), 0.0)]
        self._modes = np.full(len(self._order), -1)

    def bounds(self, modes: NDArray[np.int64]) -> tuple[Vector, Vector]:
        """Return lower and upper bounds on P(margin >= 0 | state), of shape (n_states,).

        Parameters
        ----------
        modes : ndarray of shape (n_features,)
            `SHOWN`, `HIDDEN`, or `UNDECIDED` for whichever of the two is better for the class: an upper bound only.
        """
        wanted = modes[self._order]
        differs = np.flatnonzero(wanted != self._modes)
        first = int(differs[0]) if differs.size else len(wanted)
        while self._states[-1].at > first:
            self._states.pop()
        self._modes = wanted
        return self._tails(self._advance(wanted.tolist()))

    def _advance(self, wanted: Sequence[int]) -> _State:
        state = self._states[-1]
        low, reached, outside = state.low, state.reached, state.outside
        table, errors = state.table.copy(), state.errors.copy()
        since, every = 0, _CHECKPOINT_EVERY if table.size < _LARGE else _RARELY
        for place in range(state.at, len(wanted)):
            feature = self._order[place]
            if wanted[place] == SHOWN:
                low += self._shown[feature]
            else:
                term = self._hidden[feature] if wanted[place] == HIDDEN else self._better(feature)
                reached = _convolve(table, reached, term)
                low += term.low
                errors += term.errors
                outside += term.outside
                since += 1
            if since == every:
                since = 0
                self._states.append(_State(place + 1, low, table.copy(), reached, errors.copy(), outside))
        return _State(len(wanted), low, table, reached, errors, outside)

    def _better(self, feature: int) -> _Rounded:
        if feature not in self._undecided:
            hidden, shown = self._problem.hidden[feature], self._shown[feature]
            self._undecided[feature] = _rounded(hidden, self._rival, self._step, shown)
        return self._undecided[feature]

    def _tails(self, state: _State) -> tuple[Vector, Vector]:
        n_states = len(state.table)
        above = np.cumsum(state.table[:, : state.reached][:, ::-1], axis=1)[:, ::-1]
        above = np.concatenate([above, np.zeros((n_states, 1))], axis=1)
        mean, proxies, absolute = state.errors
        slack = np.minimum(np.sqrt(2 * proxies * -np.log(_FAILURES[:, None])), absolute)
        failure = np.where(slack < absolute, _FAILURES[:, None], 0.0) + state.outside + _FLOATING
        needed = -state.low - mean
        states = np.arange(n_states)

        def tail(queries: Matrix) -> Matrix:
            places = np.ceil(queries / self._step - 1e-9)
            return above[states, np.clip(places, 0, state.reached).astype(np.int64)]

        lower, upper = tail(needed + slack) - failure, tail(needed - slack) + failure
        return np.clip(lower.max(axis=0), 0, 1), np.clip(upper.min(axis=0), 0, 1)


def _span(feature: HiddenFeature, rival: int) -> tuple[float, float]:
    possible = feature.values[(feature.chances > 0).any(axis=1), rival]
    return float(possible.min()), float(possible.max())


def _rounded(feature: HiddenFeature, rival: int, step: float, shown: float | None) -> _Rounded:
    """Return a feature on the grid; with `shown`, the larger of the amounts that it adds hidden and shown."""
    possible = (feature.chances > 0).any(axis=1)
    values, chances = feature.values[possible, rival], feature.chances[possible]
    width = float(feature.width[rival])
    if shown is not None:
        # The true value may be half a cell above the middle.
        values, width = np.maximum(values + width / 2, shown), 0.0
    low = float(values.min())
    shifts = np.rint((values - low) / step).astype(np.int64)
    errors = values - low - shifts * step
    expected = feature.means[:, rival] if shown is None else chances.T @ values
    mean = expected - chances.T @ (values - errors)
    least, most = float(errors.min()) - width / 2, float(errors.max()) + width / 2
    spread = most - least
    absolute = np.maximum(most - mean, mean - least)
    two = len(errors) == 2 and not width
    proxies = spread**2 * (np.array([_two_point_proxy(p) for p in chances[0].tolist()]) if two else 0.25)
    rounding = np.stack([mean, np.broadcast_to(proxies, mean.shape), absolute])
    if two and shifts[0] != shifts[1]:
        places = np.argsort(shifts)
        return _Rounded(low, shifts[places], chances[places], rounding, feature.outside)
    # Values that fall on one point of the grid are added together.
    distinct, places = np.unique(shifts, return_inverse=True)
    merged = np.zeros((len(distinct), chances.shape[1]))
    np.add.at(merged, places, chances)
    return _Rounded(low, distinct, merged, rounding, feature.outside)


def _two_point_proxy(chance: float) -> float:
    """Return the smallest variance proxy of a variable with two values at distance 1 (Kearns and Saul, 1998)."""
    p = max(min(chance, 1 - chance), 1e-300)
    return 0.25 if p > 0.499 else (1 - 2 * p) / (2 * math.log((1 - p) / p))


def _convolve(table: Matrix, reached: int, term: _Rounded) -> int:
    """Convolve the first `reached` probabilities of each state with one term, in place; return their new number."""
    shifts: list[int] = term.shifts.tolist()
    chances = term.chances
    if len(shifts) == 1:
        if (chances[0] == 1).all():
            return reached
        table[:, :reached] *= chances[0][:, None]
        return reached
    if len(shifts) > 40:
        from scipy.signal import fftconvolve

        dense = np.zeros((len(table), shifts[-1] + 1))
        dense[:, term.shifts] = chances.T
        grown = reached + shifts[-1]
        table[:, :grown] = np.maximum(fftconvolve(table[:, :reached], dense, axes=1), 0.0)
        return grown
    before = table[:, :reached].copy()
    table[:, :reached] *= chances[0][:, None]
    for shift, chance in zip(shifts[1:], chances[1:], strict=True):
        table[:, shift : shift + reached] += chance[:, None] * before
    return reached + shifts[-1]
