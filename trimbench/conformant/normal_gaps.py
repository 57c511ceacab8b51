"""What rows with gaps hide under a conformant model with a covariance: whether a class stays, and draws of the values.

The score of a class is linear in the features. Given the observed features, a component and a class, which together are
called a *state*, the missing features that are jointly normal have a normal distribution, and so have the *margins*, by
which the score of the predicted class exceeds those of its rivals. With one rival the probability of a margin above 0
is a value of the normal distribution function; with several it is an integral over a cone (Genz, 1992). Binary features
that take part in the covariance are numbers here, as they are in predictions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.covariance import Conditionals
from trimbench.conformant.decision_problem import HiddenFeature, hidden_features
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.evidence import ObservedRows, logsumexp
from trimbench.conformant.explanations import FoundSets

# Scores this close, relative to the size of their terms, are equal up to rounding.
_ROUNDING = 1e-12
# Completions times states of categorical features up to which all are added up; more of them are drawn.
_MOST_COMPLETIONS, _DRAWN = 2**12, 512
# Points of an integral, how often it is computed with other points, and the 99.95 % quantile of Student's t
# distribution with one degree of freedom less.
_POINTS, _REPEATS, _QUANTILE = 1024, 8, 5.4079


def state_posteriors(model: ConformantDistribution, observed: ObservedRows) -> Matrix:
    """Return P(component, class | observed features) of the rows of a block, shape (n_rows, n_states)."""
    scores = model.scores_of(observed)
    logs = observed.whole[:, None, :] + scores.levels[:, :, None]
    logs[observed.gaps] += scores.of_absent
    flat = logs.reshape(len(logs), -1)
    return np.asarray(np.exp(flat - logsumexp(flat)[:, None]))


@dataclass(frozen=True, eq=False)
class HiddenNormals:
    """The jointly normal features of some rows, given what is observed.

    Attributes
    ----------
    model : ConformantDistribution
        With a covariance.
    observed : ObservedRows
    """

    model: ConformantDistribution
    observed: ObservedRows

    @classmethod
    def blocks(cls, model: ConformantDistribution, table: NDArray[np.float64]) -> Iterator[HiddenNormals]:
        """Yield the blocks of a table."""
        for block in model.evidence.blocks(table, len(model.classes) * model.n_components):
            yield cls(model, ObservedRows.of(model.evidence, block, model.weights, model.biases))

    @property
    def rows(self) -> slice:
        """Which rows of the table these are."""
        return self.observed.block.rows

    @cached_property
    def posteriors(self) -> Matrix:
        """P(state | observed features), shape (n_rows, n_states)."""
        return state_posteriors(self.model, self.observed)

    @cached_property
    def given(self) -> Conditionals:
        """What is known of the missing ones, standardised."""
        coding = self.model.evidence.coding
        absent = self.observed.block.absent[:, list(coding.joint)]
        assert self.model.normals is not None
        return self.model.normals.given(self.observed.values, absent)

    def margins(self, row: int, winner: int, rivals: Sequence[int]) -> tuple[Matrix, NDArray[np.float64]]:
        """Return what the missing values of a row add to margins: means and covariances in each state.

        Parameters
        ----------
        winner, rivals : int
            Positions of classes.

        Returns
        -------
        means : ndarray of shape (n_states, n_rivals)
        covariances : ndarray of shape (n_states, n_rivals, n_rivals)
        """
        coding, patterns = self.model.evidence.coding, self.given.patterns
        pattern = patterns.of_rows[row]
        own = patterns.places[pattern][patterns.real[pattern]]
        assert coding.joint_weights is not None
        scaled = coding.joint_weights[own][:, [winner]] - coding.joint_weights[own][:, rivals]
        offsets = coding.offsets[np.unique(np.array(coding.joint)[own])]
        fixed = (offsets[:, [winner]] - offsets[:, rivals]).sum(axis=0)
        means, covariances = [], []
        for part in self.given.parts:
            inside = patterns.real[pattern]
            moved = part.filled[row, own][:, None] + part.slopes[pattern][inside]
            means.append(moved.T @ scaled + fixed)
            spread = scaled.T @ part.variances[pattern][np.ix_(inside, inside)] @ scaled
            covariances.append(np.repeat(spread[None], len(self.model.classes), axis=0))
        return np.concatenate(means), np.concatenate(covariances)

    def draws(self, states: NDArray[np.intp], normals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values of the features, those that are missing drawn, of shape (n_rows, n_draws, n_joint).

        Parameters
        ----------
        states : ndarray of int, shape (n_rows, n_draws)
        normals : ndarray of shape (n_draws, n_joint)
            Standard normal numbers.
        """
        coding, patterns = self.model.evidence.coding, self.given.patterns
        n_classes = len(self.model.classes)
        result = np.empty((*states.shape, len(coding.joint)))
        for row, of_draws in enumerate(states):
            pattern = patterns.of_rows[row]
            inside = patterns.real[pattern]
            own = patterns.places[pattern][inside]
            for z, part in enumerate(self.given.parts):
                here = np.flatnonzero(of_draws // n_classes == z)
                values = np.tile(part.filled[row], (len(here), 1))
                if len(own) and len(here):
                    factor = np.linalg.cholesky(part.variances[pattern][np.ix_(inside, inside)])
                    moved = part.slopes[pattern][inside][:, of_draws[here] % n_classes].T
                    values[:, own] += moved + normals[here][:, own] @ factor.T
                result[row, here] = values
        return np.asarray(coding.means + coding.scales * result)


def same_decision_of_normals(
    model: ConformantDistribution, table: Matrix, winners: NDArray[np.intp], rivals: Sequence[int] | None = None
) -> Matrix:
    """Return bounds on P(the completed row has its class | observed features), shape (n_rows, 2).

    They are equal for one rival, up to 4,096 completions of the categorical features in all states together. Otherwise
    they are an interval that misses the probability once in a thousand times.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
    winners : ndarray of int, shape (n_rows,)
        The position of the class of each row.
    rivals : sequence of int, optional
        Classes that may not have a higher score; by default all others.
    """
    bounds = np.ones((len(table), 2))
    incomplete = np.flatnonzero(np.isnan(table).any(axis=1))
    kept: dict[int, tuple[list[int], Matrix, dict[int, HiddenFeature]]] = {}
    for hidden in HiddenNormals.blocks(model, table[incomplete]):
        for row, place in enumerate(incomplete[hidden.rows].tolist()):
            winner = int(winners[place])
            if winner not in kept:
                kept[winner] = _against(model, winner, rivals)
            bounds[place] = _bounds(hidden, row, winner, *kept[winner])
    return bounds


def _against(
    model: ConformantDistribution, winner: int, rivals: Sequence[int] | None
) -> tuple[list[int], Matrix, dict[int, HiddenFeature]]:
    """Return the rivals of a class, differences of weights, and what features add that are not jointly normal."""
    others = [k for k in range(len(model.classes)) if k != winner] if rivals is None else list(rivals)
    difference = model.weights[:, [winner]] - model.weights[:, others]
    rest = sorted(set(range(model.layout.n_features)) - set(model.evidence.coding.joint))
    return others, difference, dict(zip(rest, hidden_features(model, difference, rest), strict=True))


def _bounds(
    hidden: HiddenNormals,
    row: int,
    winner: int,
    rivals: list[int],
    difference: Matrix,
    others: dict[int, HiddenFeature],
) -> tuple[float, float]:
    observed = hidden.observed
    base = observed.whole[row, winner] - observed.whole[row, rivals]
    means, covariances = hidden.margins(row, winner, rivals)
    tolerance = _ROUNDING * (np.abs(base) + np.abs(observed.block.values[row]) @ np.abs(difference))
    means = means + base + np.where(winner < np.array(rivals), tolerance, -tolerance)
    missing = np.flatnonzero(observed.block.absent[row]).tolist()
    terms = _Terms([others[place] for place in missing if place in others], hidden.posteriors[row], len(rivals))
    factors = _factors(covariances)
    found = np.array([terms.total(means, factors, turn) for turn in range(terms.n_turns)])
    middle = float(found.mean())
    half = _QUANTILE * float(found.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else 0.0
    return max(middle - half, 0.0), min(middle + half, 1.0)


@dataclass(frozen=True, eq=False)
class _Terms:
    """What the categorical features that are missing add to the margins: all possible sums, or draws of them."""

    features: list[HiddenFeature]
    posterior: Vector
    n_rivals: int

    @cached_property
    def are_few(self) -> bool:
        n_completions = math.prod(len(feature.values) for feature in self.features)
        return n_completions * len(self.posterior) <= _MOST_COMPLETIONS

    @property
    def n_turns(self) -> int:
        """How often the total is to be computed, each time with other points: once if it is exact."""
        return 1 if self.are_few and self.n_rivals == 1 else _REPEATS

    @cached_property
    def _all(self) -> tuple[NDArray[np.float64], Matrix]:
        sums, chances = np.zeros((1, self.n_rivals)), self.posterior[None]
        for feature in self.features:
            sums = (sums[:, None] + feature.values).reshape(-1, self.n_rivals)
            chances = (chances[:, None] * feature.chances).reshape(-1, len(self.posterior))
        return np.broadcast_to(sums[:, None], (*chances.shape, self.n_rivals)), chances

    def _drawn(self, turn: int) -> tuple[NDArray[np.float64], Matrix]:
        numbers = _points(_DRAWN, len(self.features), turn)
        sums = np.zeros((_DRAWN, len(self.posterior), self.n_rivals))
        for feature, of_draws in zip(self.features, numbers.T, strict=True):
            ends = np.cumsum(feature.chances, axis=0)
            for state, upper in enumerate((ends / ends[-1]).T):
                places = np.searchsorted(upper, of_draws, side="right")
                sums[:, state] += feature.values[np.minimum(places, len(upper) - 1)]
        return sums, np.broadcast_to(self.posterior / _DRAWN, sums.shape[:2])

    def total(self, means: Matrix, factors: NDArray[np.float64], turn: int) -> float:
        """Return P(all margins are above 0), by the points of one turn."""
        sums, chances = self._all if self.are_few else self._drawn(turn)
        counts = chances > 0
        margins = (sums + means)[counts]
        own = np.broadcast_to(factors, (len(sums), *factors.shape))[counts]
        return min(float(chances[counts] @ _above(margins, own, turn)), 1.0)


def _factors(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Cholesky factors of covariances that may be singular: a column is 0 where nothing is left."""
    factors = np.zeros_like(covariances)
    for i in range(covariances.shape[1]):
        left = covariances[:, :, i] - np.einsum("nij,nj->ni", factors, factors[:, i])
        own = np.where(left[:, i] > _ROUNDING * covariances[:, i, i], np.sqrt(np.maximum(left[:, i], 0.0)), 0.0)
        column = np.where(own[:, None] > 0, left / np.where(own > 0, own, 1.0)[:, None], 0.0)
        column[:, :i] = 0.0
        factors[:, :, i] = column
    return factors


def _above(means: Matrix, factors: NDArray[np.float64], turn: int) -> Vector:
    """Return P(mean + factor @ normal numbers is at least 0 in each coordinate), shape (n_means,)."""
    from scipy.special import ndtri

    n, n_rivals = means.shape
    chance, chosen = np.ones((n, 1)), np.zeros((n, 1, 0))
    numbers = _points(_POINTS, n_rivals - 1, turn) if n_rivals > 1 else np.empty((1, 0))
    for i in range(n_rivals):
        margin = means[:, i, None] + np.einsum("npj,nj->np", chosen, factors[:, i, :i])
        own = factors[:, i, i, None]
        above = _tail(margin, own)
        chance = chance * above
        if i < n_rivals - 1:
            drawn = -ndtri(np.clip(above * numbers[:, i], 1e-300, 1 - 1e-16))
            chosen = np.concatenate([np.broadcast_to(chosen, (n, len(numbers), i)), drawn[:, :, None]], axis=2)
    return np.asarray(chance.mean(axis=1))


def _tail(margin: Matrix, deviation: Matrix) -> Matrix:
    from scipy.special import ndtr

    some = ndtr(margin / np.where(deviation > 0, deviation, 1.0))
    return np.asarray(np.where(deviation > 0, some, margin >= 0))


def _points(n_points: int, n_columns: int, turn: int) -> Matrix:
    from scipy.stats.qmc import Sobol

    if n_columns == 0:
        return np.empty((n_points, 0))
    points: Matrix = Sobol(n_columns, scramble=True, rng=np.random.default_rng(turn)).random(n_points)
    return points


# The fewest features that keep a class with a given probability.


def smallest_sets_of_normals(
    model: ConformantDistribution,
    row: Vector,
    winner: int,
    rivals: tuple[int, ...],
    delta: float,
    *,
    max_sets: int,
    max_evaluations: int,
) -> tuple[FoundSets, tuple[int, ...], tuple[float, float]]:
    """Return the smallest sets that keep a class, the features to report, and bounds on their probability.

    All sets are tried, size by size, as long as they are few. After that, features are added one by one, always the one
    that raises the probability most, and those that are not needed are taken away.

    Parameters
    ----------
    row : ndarray of shape (n_columns,)
    winner, rivals : int
        Positions of classes.
    delta : float
        Above 0 and below 1.
    """
    observed = np.flatnonzero(~np.isnan(row[model.layout.first_columns]))

    def bounds_of(sets: Sequence[tuple[int, ...]]) -> Matrix:
        shown = np.zeros((len(sets), model.layout.n_features), dtype=bool)
        for own, chosen in zip(shown, sets, strict=True):
            own[list(chosen)] = True
        rows = np.where(shown[:, model.layout.feature_of_column], row, np.nan)
        bounds = same_decision_of_normals(model, rows, np.full(len(rows), winner), rivals)
        if len(observed) == model.layout.n_features:
            bounds[shown.all(axis=1)] = 1.0
        return bounds

    left, proven = max_evaluations, 0
    for size in range(len(observed) + 1):
        n_sets = math.comb(len(observed), size)
        if n_sets > left:
            break
        left -= n_sets
        sets = list(itertools.combinations(observed.tolist(), size))
        bounds = bounds_of(sets)
        order = np.argsort(-bounds[:, 0], kind="stable")
        reaching = [sets[place] for place in order if bounds[place, 0] >= delta]
        doubtful = int((bounds[:, 1] >= delta).sum()) - len(reaching)
        if proven == size and not (reaching or doubtful):
            proven = size + 1
        if reaching:
            complete = proven == size and not doubtful and len(reaching) <= max_sets
            low, high = bounds[order[0]].tolist()
            return FoundSets(tuple(reaching[:max_sets]), proven, complete), reaching[0], (low, high)
    return _greedy(bounds_of, tuple(observed.tolist()), delta, proven)


def _greedy(
    bounds_of: Callable[[Sequence[tuple[int, ...]]], Matrix], observed: tuple[int, ...], delta: float, proven: int
) -> tuple[FoundSets, tuple[int, ...], tuple[float, float]]:
    """Return one set that reaches delta, or the most probable one on the way if none does."""
    chosen: tuple[int, ...] = ()
    bounds = bounds_of([chosen])[0]
    best = bounds[0], chosen
    while bounds[0] < delta and len(chosen) < len(observed):
        more = [(*chosen, feature) for feature in observed if feature not in chosen]
        found = bounds_of(more)
        place = int(found.mean(axis=1).argmax())
        chosen, bounds = more[place], found[place]
        best = max(best, (bounds[0], chosen))
    if bounds[0] < delta:
        low, high = bounds_of([best[1]])[0].tolist()
        return FoundSets((), proven, proven > len(observed)), best[1], (low, high)
    for feature in chosen:
        fewer = tuple(other for other in chosen if other != feature)
        without = bounds_of([fewer])[0]
        if without[0] >= delta:
            chosen, bounds = fewer, without
    return FoundSets((chosen,), proven, False), chosen, (float(bounds[0]), float(bounds[1]))
