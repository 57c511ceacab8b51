"""Probabilistic explanations: the fewest features that keep a class with a given probability, and their search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_whole, is_number
from trimbench._typing import Matrix, Vector
from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.distribution import ConformantDistribution, checked_row, compared_classes, lost_log_odds
from trimbench.conformant.explanations import Explanation, FoundSets, smallest_covers, strongest_first
from trimbench.conformant.normal_gaps import smallest_sets_of_normals
from trimbench.conformant.same_decision import SameDecision

# Maximum number of entries of the table of all sets.
_TABLE_ENTRIES = 2**17
# Probabilities this close are equal up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ProbabilisticExplanation(Explanation):
    """The fewest features that keep the class of a row with probability at least `delta`.

    Attributes
    ----------
    predicted : label
        The class that is explained.
    against : label or None
        The class that it must not lose against; None for all of several others.
    delta : float
    features : tuple of int
        The explanation, by decreasing evidence: positions in the layout, which are the columns where all features are
        binary. If no set was found that reaches `delta`, one that comes near.
    probability : tuple of float
        Certified lower and upper bounds on P(the completed row is classified as `predicted` | `features`). With a
        covariance and several classes: an interval that misses it once in a thousand times, which what is called
        proven here then rests on.
    size_lower_bound : int
        Proven: no set of fewer features reaches `delta`.
    sets : tuple of tuple of int
        Smallest sets that were found, `features` first; empty if none was found.
    complete : bool
        Whether `sets` are proven to be all smallest sets; if empty, whether it is proven that no set reaches `delta`.
    evidence : ndarray of shape (n_features,)
        What observing each feature adds to the log-odds of `predicted` over `against`, or over the class that comes
        second; 0 where it is missing. For a mixture or a covariance, where this depends on the others: when all others
        are observed.
    """

    predicted: Any
    against: Any
    delta: float
    features: tuple[int, ...]
    probability: tuple[float, float]
    size_lower_bound: int
    sets: tuple[tuple[int, ...], ...]
    complete: bool
    evidence: Vector

    @property
    def sufficient(self) -> bool:
        """Whether `features` reach `delta`; only for a row with missing features may there be no such set."""
        return bool(self.sets)

    @property
    def optimal(self) -> bool:
        """Whether it is proven that no smaller set reaches `delta`."""
        return self.sufficient and len(self.features) <= self.size_lower_bound


def explain_with_probability(
    model: ConformantDistribution,
    x: ArrayLike,
    delta: float,
    against: Any,
    *,
    max_sets: int,
    max_evaluations: int | None,
) -> ProbabilisticExplanation:
    """Return the smallest set of features that keeps the class, see `ConformantModel.explain`.

    For delta = 1 this is a covering problem, where the worst values of the hidden features count. With few features
    the probabilities of all sets are computed (`changed_probabilities`); with more, a set is found by a greedy search
    and exchanges, and branch and bound on certified bounds proves that it is smallest, or how much smaller it might be
    (`SetSearch`). With a covariance, all sets are tried as long as they are few (`smallest_sets_of_normals`).

    References
    ----------
    Wang, Khosravi and Van den Broeck (2021), *Probabilistic Sufficient Explanations*; Izza, Huang, Ignatiev,
    Narodytska, Cooper and Marques-Silva (2023), *On Computing Probabilistic Abductive Explanations*; Choi, Xue and
    Darwiche (2012), *Same-Decision Probability*.
    """
    _check(delta, max_sets, max_evaluations)
    row = checked_row(model, x)
    winner, rivals = compared_classes(model, row, against)
    budget = max(25, 20_000 // model.layout.n_features) if max_evaluations is None else max_evaluations
    scores = model.decision_scores(row[None])[0]
    compared = max(rivals, key=lambda k: float(scores[k]))
    if model.normals is None:
        problem = DecisionProblem.of(model, row, winner, rivals)
        found, features, probability = _found(problem, float(delta), max_sets, budget)
    elif delta == 1:
        raise ValueError(
            "delta must be below 1 for a model with a covariance, whose numbers may take any value, got 1; try "
            "delta=0.99, or use the model of the same classifier with covariance='diagonal'"
        )
    else:
        found, features, probability = smallest_sets_of_normals(
            model, row, winner, rivals, float(delta), max_sets=max_sets, max_evaluations=budget
        )
    if model.is_naive:
        evidence: Vector = problem.evidence[:, winner] - problem.evidence[:, compared]
    else:
        evidence = lost_log_odds(model, row, winner, compared)
    return ProbabilisticExplanation(
        predicted=model.classes[winner],
        against=model.classes[rivals[0]] if len(rivals) == 1 else None,
        delta=float(delta),
        features=strongest_first([features], evidence)[0],
        probability=probability,
        size_lower_bound=found.size_lower_bound,
        sets=strongest_first(found.sets, evidence),
        complete=found.complete,
        evidence=evidence,
    )


def _check(delta: float, max_sets: int, max_evaluations: int | None) -> None:
    if not is_number(delta) or not 0 < delta <= 1:
        raise ValueError(
            f"delta must be a probability above 0 and up to 1, got {delta!r}; leave it out for the smallest set that "
            "keeps the class against all that opposes it"
        )
    check_whole("max_sets", max_sets, 1)
    if max_evaluations is not None:
        check_whole("max_evaluations", max_evaluations, 1)


def _found(
    problem: DecisionProblem, delta: float, max_sets: int, budget: int
) -> tuple[FoundSets, tuple[int, ...], tuple[float, float]]:
    """Return the sets that were found, the features to report, and bounds on their probability."""
    if delta == 1:
        found = _certain(problem, max_sets)
        if found.sets:
            return found, found.sets[0], (1.0, 1.0)
        features = tuple(np.flatnonzero(problem.observed).tolist())
        return found, features, _probability(problem, features, delta)
    if table_size(problem) <= _TABLE_ENTRIES:
        return _tabulated(problem, delta, max_sets)
    search = SetSearch(problem, delta, budget)
    found, features = search.run(max_sets)
    return found, features, search.decision.bounds(features, delta, precise=True)


def _certain(problem: DecisionProblem, max_sets: int) -> FoundSets:
    """Return the smallest sets that keep the class whatever the values of the other features are."""
    lowest = np.stack([feature.lowest for feature in problem.hidden])
    observed = np.flatnonzero(problem.observed)
    gains = np.where(problem.observed[:, None], problem.shown - lowest, 0.0)[observed]
    if np.isneginf(lowest[~problem.observed]).any():
        return FoundSets((), len(observed) + 1, True)
    # A feature that may cost any amount must be shown: it alone meets its own requirement.
    unlimited = np.isposinf(gains).any(axis=1)
    limited = np.where(np.isneginf(lowest), 0.0, lowest).sum(axis=0) + problem.base
    limited += problem.shown[observed[unlimited]].sum(axis=0) - np.where(
        np.isneginf(lowest[observed[unlimited]]), 0.0, lowest[observed[unlimited]]
    ).sum(axis=0)
    left = observed[~unlimited]
    found = smallest_covers(gains[~unlimited], -limited, max_sets)
    forced = tuple(observed[unlimited].tolist())
    sets = tuple((*forced, *left[list(chosen)].tolist()) for chosen in found.sets)
    return FoundSets(sets, found.size_lower_bound + len(forced), found.complete)


def _tabulated(
    problem: DecisionProblem, delta: float, max_sets: int
) -> tuple[FoundSets, tuple[int, ...], tuple[float, float]]:
    changed = changed_probabilities(problem)
    observed = np.flatnonzero(problem.observed)
    bits = np.arange(len(observed))[::-1]
    shown = ((np.arange(changed.size)[:, None] >> bits) & 1).astype(bool)
    changed, sizes = changed.reshape(-1), shown.sum(axis=1)
    reaches = changed <= 1 - delta + _ROUNDING
    if not reaches.any():
        best = int(np.argmin(changed))
        features = tuple(observed[shown[best]].tolist())
        return FoundSets((), len(observed) + 1, True), features, _around(1 - float(changed[best]))
    size = int(sizes[reaches].min())
    places = np.flatnonzero(reaches & (sizes == size))
    ranked = places[np.argsort(changed[places], kind="stable")]
    sets = tuple(tuple(observed[shown[place]].tolist()) for place in ranked[:max_sets])
    return FoundSets(sets, size, len(places) <= max_sets), sets[0], _around(1 - float(changed[ranked[0]]))


def _probability(problem: DecisionProblem, features: tuple[int, ...], delta: float) -> tuple[float, float]:
    if table_size(problem) <= _TABLE_ENTRIES:
        shown = np.isin(np.flatnonzero(problem.observed), features).astype(int)
        return _around(1 - float(changed_probabilities(problem)[tuple(shown)]))
    return SameDecision(problem, np.arange(len(problem.hidden))).bounds(features, delta, precise=True)


def _around(probability: float) -> tuple[float, float]:
    """Return bounds on a probability that is known up to rounding."""
    return max(probability - _ROUNDING, 0.0), min(probability + _ROUNDING, 1.0)


# The smallest set of shown features that keeps a class with a given probability, for many features.

Places = NDArray[np.intp]
_EXCHANGES = 30


@dataclass(frozen=True, eq=False)
class _Node:
    shown: Places
    undecided: Places


class SetSearch:
    """Search for the smallest sets of one row: greedily, by exchanges, and by branch and bound.

    Parameters
    ----------
    problem : DecisionProblem
    delta : float
        Above 0 and below 1.
    max_evaluations : int
        Maximum number of probabilities to bound.
    """

    def __init__(self, problem: DecisionProblem, delta: float, max_evaluations: int) -> None:
        self.problem, self.delta, self.max_evaluations = problem, delta, max_evaluations
        self._worth = problem.worth
        is_candidate = np.zeros(len(problem.hidden), dtype=bool)
        is_candidate[problem.candidates] = True
        # Features that every set hides come first, then the others from the weakest to the strongest.
        order = np.lexsort((self._worth, is_candidate))
        self.decision = SameDecision(problem, order)

    def run(self, max_sets: int) -> tuple[FoundSets, tuple[int, ...]]:
        """Return the smallest sets that were found, and the first of them, or the most probable set if none was."""
        found = self._greedy()
        while found is not None:
            smaller = self._exchanged(found) if found else None
            if smaller is None:
                break
            found = smaller
        most = len(self.problem.candidates) if found is None else len(found) - 1
        lower, undecided = self._proven(most), False
        while most >= lower and self.decision.evaluations < self.max_evaluations:
            sets, finished = self._branch(most, 1, ordered=True)
            if sets:
                found = sets[0]
                most = len(found) - 1
            else:
                undecided = not finished
                lower = most + 1 if finished else lower
                break
        if found is None:
            return FoundSets((), lower, most < lower), self._best()
        proven = lower > most and not undecided
        if max_sets == 1 or not proven:
            return FoundSets((found,), lower, False), found
        sets, finished = self._branch(len(found), max_sets + 1, ordered=False)
        everything = list(dict.fromkeys(self._by_worth(chosen) for chosen in (found, *sets)))
        return FoundSets(tuple(everything[:max_sets]), lower, finished and len(everything) <= max_sets), found

    def _by_worth(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(chosen, key=lambda feature: (-self._worth[feature], feature)))

    def _reaches(self, chosen: list[int]) -> bool:
        return self.decision.bounds(chosen, self.delta)[0] >= self.delta

    def _path(self) -> tuple[list[int], list[float]]:
        """Return the features in the order in which the greedy search takes them, and the probability after each."""
        path: list[int] = []
        none, values = np.array([-1]), []
        left = self.problem.candidates
        while True:
            values.append(float(self.decision.approximate(path, none, none)[0, 0]))
            if not left.size or (values[-1] > (1 + self.delta) / 2 and len(path) > 4):
                return path, values
            best = int(np.argmax(self.decision.approximate(path, none, left)[0]))
            path.append(int(left[best]))
            left = np.delete(left, best)

    def _greedy(self) -> tuple[int, ...] | None:
        path, values = self._path()
        likely = np.flatnonzero(np.array(values) >= self.delta)
        size = int(likely[0]) if likely.size else len(path)
        while size <= len(path) and not self._reaches(path[:size]):
            size += 1
        if size > len(path):
            full = self.problem.candidates.tolist()
            return tuple(full) if self._reaches(full) else None
        while size and self._reaches(path[: size - 1]):
            size -= 1
        return tuple(path[:size])

    def _exchanged(self, start: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return a set that is smaller by one and reaches delta, found by the best exchanges of single features."""
        chosen, none = list(start), np.array([-1])
        chosen.pop(int(np.argmax(self.decision.approximate(chosen, np.array(chosen), none)[:, 0])))
        value = float(self.decision.approximate(chosen, none, none)[0, 0])
        for _ in range(_EXCHANGES):
            others = np.setdiff1d(self.problem.candidates, chosen)
            if not chosen or not others.size:
                break
            values = self.decision.approximate(chosen, np.array(chosen), others)
            out, into = np.unravel_index(int(np.argmax(values)), values.shape)
            if values[out, into] <= value + 1e-9:
                break
            value = float(values[out, into])
            chosen[int(out)] = int(others[into])
        return tuple(chosen) if self._reaches(chosen) else None

    def _best(self) -> tuple[int, ...]:
        path, values = self._path()
        return tuple(path[: int(np.argmax(values))])

    def _proven(self, most: int) -> int:
        """Return a lower bound on the size of a set, without branching: no set of fewer features reaches delta."""
        low, high = 0, most + 1
        nothing = np.zeros(0, dtype=np.intp)
        while low < high:
            middle = (low + high) // 2
            if self._reduced(_Node(nothing, self.problem.candidates), middle, quick=True) is None:
                low = middle + 1
            else:
                high = middle
        while (
            low <= most
            and self.decision.evaluations < self.max_evaluations
            and self._reduced(_Node(nothing, self.problem.candidates), low) is None
        ):
            low += 1
        return low

    def _branch(self, size: int, limit: int, *, ordered: bool) -> tuple[list[tuple[int, ...]], bool]:
        """Return sets of at most `size` features that reach delta, and whether these are all.

        If `ordered`, a feature is only taken together with all that are better in every respect; if any set reaches
        delta, such a set does.
        """
        stack = [_Node(np.zeros(0, dtype=np.intp), self.problem.candidates)]
        better = self._dominance() if ordered else None
        found: list[tuple[int, ...]] = []
        complete = True
        while stack:
            if len(found) >= limit or self.decision.evaluations >= self.max_evaluations:
                return found, False
            node = self._reduced(stack.pop(), size)
            if node is None:
                continue
            left = size - len(node.shown)
            is_leaf = (
                not node.undecided.size or not left or (self._monotone and ordered and len(node.undecided) <= left)
            )
            if ordered or is_leaf:
                chosen = self._strongest(node, left)
                lower, upper = self.decision.bounds(chosen, self.delta)
                if lower >= self.delta:
                    found.append(tuple(chosen))
                    if ordered:
                        return found, True
                if is_leaf:
                    complete &= lower >= self.delta or upper < self.delta
                    continue
            stack += self._children(node, better)
        return found, complete

    def _strongest(self, node: _Node, left: int) -> list[int]:
        ranked = node.undecided[np.argsort(-self._worth[node.undecided], kind="stable")]
        if self.problem.n_states > 2 or not self._monotone:
            ranked = ranked[self._worth[ranked] > 0]
        return [*node.shown.tolist(), *ranked[:left].tolist()]

    def _children(self, node: _Node, better: NDArray[np.bool_] | None) -> list[_Node]:
        ranked = node.undecided[np.argsort(-self._worth[node.undecided], kind="stable")]
        feature = int(ranked[0])
        rest = ranked[1:]
        with_it, without = _Node(np.append(node.shown, feature), rest), _Node(node.shown, rest)
        if better is not None:
            without = _Node(node.shown, rest[~better[feature, rest]])
        return [without, with_it]

    @cached_property
    def _monotone(self) -> bool:
        """Whether showing another candidate never lowers the probability: two states, all values best for the class."""
        problem = self.problem
        if problem.n_states > 2:
            return False
        return all(problem.shown[i, 0] >= problem.hidden[i].highest[0] for i in problem.candidates)

    def _dominance(self) -> NDArray[np.bool_] | None:
        """Return which feature is better than which other in every respect, shape (n_features, n_features).

        For two classes and features of two values: a feature is better if losing its value costs more and is likelier
        in both classes, and if it speaks more for the class. Any set may exchange the worse one for the better.
        """
        problem = self.problem
        if not self._monotone or any(len(problem.hidden[i].values) != 2 for i in problem.candidates):
            return None
        n = len(problem.hidden)
        traits = np.zeros((n, 4))
        for i in problem.candidates:
            feature = problem.hidden[i]
            lost = int(np.argmin(feature.values[:, 0]))
            traits[i] = [float(np.ptp(feature.values)), *feature.chances[lost], self._worth[i]]
        as_good = (traits[:, None] >= traits[None]).all(axis=2)
        same = as_good & as_good.T
        first = np.arange(n)[:, None] < np.arange(n)
        result: NDArray[np.bool_] = as_good & (~same | first)
        return result

    def _reduced(self, node: _Node, size: int, *, quick: bool = False) -> _Node | None:
        """Return the node with all forced features decided, or None if none of its sets can reach delta."""
        shown, undecided = node.shown, node.undecided
        tails: list[Vector] | None = None
        while True:
            left = size - len(shown)
            if left < 0:
                return None
            if not left:
                undecided = undecided[:0]
            bounds = self.decision.exponential_bounds(shown, undecided, left)
            if tails is not None:
                bounds = [np.minimum(one, other) for one, other in zip(bounds, tails, strict=True)]
            decided = self._decided(bounds, shown, undecided, left)
            if decided is None:
                return None
            if len(decided.undecided) == len(undecided):
                if tails is not None or quick:
                    return decided
                tails = self.decision.relaxed(shown, undecided)
                continue
            if len(decided.undecided) < len(undecided) and tails is not None:
                # The tails of the smaller node are lower.
                tails = self.decision.relaxed(decided.shown, decided.undecided)
            shown, undecided = decided.shown, decided.undecided

    def _decided(self, bounds: list[Vector], shown: Places, undecided: Places, left: int) -> _Node | None:
        """Return the node with the features that the needed odds decide, or None if no choice has these odds."""
        must, may = np.zeros(len(undecided), dtype=bool), np.ones(len(undecided), dtype=bool)
        for chances in bounds:
            odds = decided_by_odds(self.problem, chances - self.delta, shown, undecided, left)
            if odds is None:
                return None
            must |= odds[0]
            may &= odds[1]
        if (must & ~may).any() or must.sum() > left:
            return None
        return _Node(np.append(shown, undecided[must]), undecided[may & ~must])


# Which features a set must, and may, show for the odds of the class that a probability needs.

Decided = tuple[NDArray[np.bool_], NDArray[np.bool_]]
# More than the rounding of a log-odds.
_ROUNDING_NEEDED_ODDS = 1e-9


def decided_by_odds(
    problem: DecisionProblem, gain: Vector, shown: NDArray[np.intp], undecided: NDArray[np.intp], left: int
) -> Decided | None:
    """Return which undecided features must, and which may, be shown; None if no choice has the odds.

    Parameters
    ----------
    problem : DecisionProblem
    gain : ndarray of shape (n_states,)
        Upper bound on P(kept | state), minus delta: its mean over P(state | shown features) must not be negative.
    shown, undecided : ndarray of int
    left : int
        How many of the undecided features may be shown.
    """
    good, bad = np.flatnonzero(gain >= 0), np.flatnonzero(gain < 0)
    if not good.size:
        return None
    must, may = np.zeros(len(undecided), dtype=bool), np.ones(len(undecided), dtype=bool)
    logs = problem.log_prior + problem.evidence[shown].sum(axis=0)
    for b in bad:
        base = logs[good] - logs[b]
        steps = problem.evidence[np.ix_(undecided, good)] - problem.evidence[undecided, b][:, None]
        best, forced_in, forced_out = _largest_sums(steps, left)
        needed = np.log(-gain[b]) - _ROUNDING_NEEDED_ODDS
        with np.errstate(divide="ignore"):
            weight = np.log(gain[good])

        def reach(sums: Matrix, base: Vector = base, weight: Vector = weight) -> Vector:
            return np.asarray(np.logaddexp.reduce(base + sums + weight, axis=-1))

        if reach(best[None])[0] < needed:
            return None
        must |= reach(forced_out) < needed
        may &= reach(forced_in) >= needed
    return must, may


def _largest_sums(steps: Matrix, left: int) -> tuple[Vector, Matrix, Matrix]:
    """Return the largest sums of at most `left` rows, column by column; also with each row forced in, and out."""
    useful = np.maximum(steps, 0.0)
    ranked = np.concatenate([-np.sort(-useful, axis=0), np.zeros((left + 1, steps.shape[1]))])
    best = ranked[:left].sum(axis=0)
    last, following = ranked[max(left - 1, 0)], ranked[left]
    taken = useful >= last
    forced_out = np.where(taken, best - useful + following, best)
    forced_in = np.where(taken, best + np.minimum(steps, 0.0), best - last + steps)
    return best, forced_in, forced_out


# The probability of the same decision for every set of shown features at once, exact.


def table_size(problem: DecisionProblem) -> float:
    """Return how many entries the largest table has; infinity if a real-valued feature needs infinitely many."""
    if any(feature.is_real for feature in problem.hidden):
        return math.inf
    size = 1
    for feature, observed in zip(problem.hidden, problem.observed, strict=True):
        size *= max(len(feature.values), 2) if observed else len(feature.values)
    return size


def changed_probabilities(problem: DecisionProblem) -> Vector:
    """Return P(another decision | shown features) for every set of observed features.

    Every completed row gets a 1 where its class differs. Then each feature in turn replaces its axis of values by an
    axis of two: hidden (the average over the values in a state) and shown (the entry of its value). All sets together
    take as many steps as there are rows, times the features.

    Returns
    -------
    ndarray of shape (2, ..., 2)
        One axis for each observed feature; 0 for hidden, 1 for shown.
    """
    changed = _changed_rows(problem)
    observed = np.flatnonzero(problem.observed)
    logs = _log_posteriors(problem, observed)
    result = np.zeros(logs.shape[1:])
    for k in range(problem.n_states):
        result += np.exp(logs[k]) * _averaged(problem, changed, k)
    return result


def _changed_rows(problem: DecisionProblem) -> Vector:
    margins = problem.base[:, None]
    for feature in problem.hidden:
        margins = (margins[:, :, None] + feature.values.T[:, None, :]).reshape(len(problem.base), -1)
    return np.asarray((margins < 0).any(axis=0), dtype=np.float64)


def _averaged(problem: DecisionProblem, changed: Vector, k: int) -> Matrix:
    """Return P(another decision | shown features, state) for every set."""
    table, done = changed, 1
    for place, feature in enumerate(problem.hidden):
        table = table.reshape(done, len(feature.values), -1)
        hidden = np.einsum("avb,v->ab", table, feature.chances[:, k])
        if problem.observed[place]:
            shown = table[:, _value_at(problem, place)]
            table = np.stack([hidden, shown], axis=1)
            done *= 2
        else:
            table = hidden
    return table.reshape((2,) * int(problem.observed.sum()))


def _value_at(problem: DecisionProblem, place: int) -> int:
    """Return which value of a feature is the observed one, or adds the same to every margin."""
    return int(np.abs(problem.hidden[place].values - problem.shown[place]).sum(axis=1).argmin())


def _log_posteriors(problem: DecisionProblem, observed: NDArray[np.intp]) -> Matrix:
    """Return log P(state | shown features) for every set, with the states along the first axis."""
    logs = problem.log_prior.copy()
    for place in observed:
        logs = np.stack([logs, logs + problem.evidence[place].reshape(-1, *[1] * (logs.ndim - 1))], axis=-1)
    logs -= logs.max(axis=0)
    normalised: Matrix = logs - np.log(np.exp(logs).sum(axis=0))
    return normalised
