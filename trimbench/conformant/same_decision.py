"""Certified bounds on the probability that a completed row keeps its class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.decision_problem import ROUNDING, DecisionProblem, HiddenFeature, hidden_features
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.evidence import ObservedRows
from trimbench.conformant.margin_tails import HIDDEN, SHOWN, UNDECIDED, MarginTails

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
            margins += ROUNDING * np.where(winner < np.array(rivals), size, -size)  # the first class wins ties
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
