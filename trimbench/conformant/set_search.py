"""The smallest set of shown features that keeps a class with a given probability, for many features.

A greedy path and exchanges find a set; branch and bound proves that no smaller one does, or finds one. With r features
left to choose, P(kept | state) is at most what it is if every undecided feature is, hidden or shown, whichever is
better. With these bounds F_k, a set S reaches delta only if

    sum over states of P(k | x_S) (F_k - delta) >= 0,

so that, for each class b with F_b < delta, the odds of the classes with F_k >= delta against b must be large enough.
The log-odds are sums over S: the largest r of what is left bound them, and a feature without which, or with which,
they cannot be reached is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.needed_odds import decided_by_odds
from trimbench.conformant.reduced_problem import Vector
from trimbench.conformant.same_decision import SameDecision
from trimbench.conformant.smallest_covers import FoundSets

Places = NDArray[np.intp]
_EXCHANGES = 30


@dataclass(frozen=True, eq=False)
class _Node:
    shown: Places
    undecided: Places


class SetSearch:
    """The search for one row.

    Parameters
    ----------
    problem : DecisionProblem
    delta : float
        Above 0 and below 1.
    max_evaluations : int
        How many probabilities to bound at most.
    """

    def __init__(self, problem: DecisionProblem, delta: float, max_evaluations: int) -> None:
        self.problem, self.delta, self.max_evaluations = problem, delta, max_evaluations
        self._worth = problem.worth
        is_candidate = np.zeros(len(problem.hidden), dtype=bool)
        is_candidate[problem.candidates] = True
        # What is hidden in every set comes first, then the features from the weakest to the strongest.
        order = np.lexsort((self._worth, is_candidate))
        self.decision = SameDecision(problem, order)

    def run(self, max_sets: int) -> tuple[FoundSets, tuple[int, ...]]:
        """Return the smallest sets that were found, and the set of largest probability if there is none."""
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
        """Return sets of at most so many features that reach delta, and whether these are all.

        If `ordered`, a feature is only taken with all that are better in every respect, which loses not all of them.
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
        """Whether showing another candidate never lowers the probability: two states, and values best for one."""
        problem = self.problem
        if problem.n_states > 2:
            return False
        return all(problem.shown[i, 0] >= problem.hidden[i].highest[0] for i in problem.candidates)

    def _dominance(self) -> NDArray[np.bool_] | None:
        """Return which feature is better than which other in every respect, shape (n_features, n_features).

        For two classes and features of two values: a feature whose loss of its value costs more, and is likelier in
        both classes, and that speaks more for the class. Any set may exchange the worse one for the better.
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
        """Return the node with features decided that must be, or None if no set of it can reach delta."""
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
        """Return the node with features decided by the odds that they need, or None if no choice has them."""
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
