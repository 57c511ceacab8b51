"""Search for the feature subset of a naive Bayes classifier with the highest agreement within a budget.

For a naive Bayes classifier the maximum achievable agreement equals the maximum potential agreement (Proposition 3),
which only falls when a feature is removed (Proposition 2). So only subsets that exhaust the budget matter, and the
value of a subset bounds that of all its subsets. The search starts from all units (features, or groups of them that are
bought together) and removes them one by one, in the order of Narendra and Fukunaga (1977): at each node the candidates
are sorted by the bound that is left after removing them, and a later branch may remove only what comes after its own
candidate.

Depth first, such a search soon has a good subset and needs no memory. Best bound first, after a local search for the
first subset, it proves more in the same time: at any moment no subset is better than the highest open bound.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from trimbench.trimming.costs import Choice, highest_cost
from trimbench.trimming.engines.measure import SignedMeasure
from trimbench.trimming.limits import Limits
from trimbench.trimming.search.loss_bound import loss_bound
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE, SearchResult


class _Branch(NamedTuple):
    """A node of the search tree: `unit` is removed from `parent`, and some of the units `free` have to follow.

    `known` is what is left after removing the first of these, from an expansion that was stopped.
    """

    parent: SignedMeasure
    unit: int | None
    kept: frozenset[int]
    free: tuple[int, ...]
    bound: float
    known: tuple[tuple[float, int], ...] = ()


class RemovalSearch:
    """A search that can be stopped and continued.

    Parameters
    ----------
    root : SignedMeasure
        Over all features that are not forbidden.
    choice : Choice
        Which subsets are allowed.
    first_guess : sequence of int
        An order of all units, best first: the affordable ones among them, taken in turn, are the answer if the search
        is stopped before it finds another.
    best_first : bool
        Local search, then best bound first; else depth first. Best bound first keeps many measures in memory.
    few_subsets : int
        If no more subsets than this exhaust the budget, they are enumerated; default: the number of pairs of units.
    """

    def __init__(
        self,
        root: SignedMeasure,
        choice: Choice,
        *,
        first_guess: Sequence[int],
        best_first: bool = False,
        few_subsets: int | None = None,
    ) -> None:
        self._choice = choice
        self._root = root
        self._best_first = best_first
        self._first_guess = first_guess
        self._required = choice.required_units
        units = frozenset(range(len(choice.units)))
        # Removing what is free of charge never helps.
        free = tuple(unit for unit in first_guess if unit not in self._required and choice.costs[unit] > 0)
        self._limit = highest_cost(choice.budget)
        self._one_cost = choice.costs[0] if len(set(choice.costs)) == 1 else None
        self._start = _Branch(root, None, units, free, 1.0)
        self._few_subsets = math.comb(len(free), 2) if few_subsets is None else few_subsets
        self._order = itertools.count()
        self._frontier: list[tuple[float, int, _Branch]] = []
        self._begun = self._climbed = self._interrupted = False
        self._root_values: list[tuple[float, int]] = []
        self._limits = Limits()
        self._best: frozenset[int] | None = None
        self._agreement = -math.inf
        self._left = -math.inf
        self._n_evaluations = 0

    def run(self, limits: Limits) -> SearchResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached."""
        self._limits, self._interrupted = limits, False
        if not self._begun:
            self._begun = True
            if self._affordable(self._start.kept):
                value = self._root.potential_agreement()
                self._offer(self._start.kept, value)
                return SearchResult(frozenset(self._root.features), value, value, 0)
            self._push(self._start)
            if not self._best_first:
                self._enumerate_few(self._few_subsets)
        if self._best_first and not self._climbed:
            # The bound of the root first: whatever happens then, something is known.
            self._expand_next()
            self._climbed = not self._frontier or self._frontier[0][2].unit is not None
            if self._climbed and not self._enumerate_few(self._few_subsets):
                self._climb()
        while self._frontier:
            bound = self._frontier[0 if self._best_first else -1][2].bound
            if not self._improves(bound):
                if self._best_first:  # no open branch has a higher bound
                    break
                self._frontier.pop()
                self._left = max(self._left, bound)
                continue
            if not self._may_go_on():
                break
            limits.report(self._agreement, self._bound, self._n_evaluations)
            self._expand_next()
        return self._result()

    def _result(self) -> SearchResult:
        if self._best is None:
            self._take_guess()
        features = frozenset(self._choice.features(self._best or frozenset()))
        self._limits.report(self._agreement, self._bound, self._n_evaluations, last=True)
        return SearchResult(features, self._agreement, self._bound(), self._n_evaluations)

    def _bound(self) -> float:
        """Return the highest bound of what is open."""
        if self._best_first and self._frontier:
            highest = self._frontier[0][2].bound
        else:
            highest = max((branch.bound for _, _, branch in self._frontier), default=-math.inf)
        return max(self._agreement, self._left, highest)

    def _affordable(self, units: Collection[int]) -> bool:
        if self._one_cost is not None:
            return len(units) * self._one_cost <= self._limit
        return math.fsum(self._choice.costs[unit] for unit in units) <= self._limit

    def _affordable_without(self, kept: frozenset[int], removed: Sequence[int]) -> bool:
        """Return whether a set is affordable without some of its units."""
        if self._one_cost is not None:
            return (len(kept) - len(removed)) * self._one_cost <= self._limit
        return self._affordable(kept.difference(removed))

    def _enough_alone(self, kept: frozenset[int], units: Sequence[int]) -> frozenset[int]:
        """Return the units each of which is enough to remove from a set to make it affordable."""
        if self._one_cost is not None:
            return frozenset(units) if self._affordable_without(kept, units[:1]) else frozenset()
        return frozenset(unit for unit in units if self._affordable_without(kept, (unit,)))

    def _improves(self, bound: float) -> bool:
        return bound > self._agreement + AGREEMENT_TOLERANCE

    def _offer(self, units: frozenset[int], agreement: float) -> None:
        if self._improves(agreement):
            self._best, self._agreement = units, agreement
        else:
            self._left = max(self._left, agreement)

    def _push(self, branch: _Branch) -> None:
        entry = (-branch.bound, next(self._order), branch)
        if self._best_first:
            heapq.heappush(self._frontier, entry)
        else:
            self._frontier.append(entry)

    def _expand_next(self) -> None:
        """Take the next open branch and put those below it in its place."""
        _, _, branch = heapq.heappop(self._frontier) if self._best_first else self._frontier.pop()
        for below in self._expand(branch):
            self._push(below)

    def _values(self, node: SignedMeasure, units: Sequence[int], level: float | None = None) -> list[tuple[float, int]]:
        """Return what is left after removing each unit; fewer values where a limit is reached.

        With a level, values may be upper bounds on the same side of it.
        """
        found: list[tuple[float, int]] = []
        while len(found) < len(units) and self._may_go_on():
            open_ = self._within_count(units[len(found) :])
            values = node.potential_agreements_without(
                [self._choice.units[unit] for unit in open_], self._limits, level
            )
            found += zip(values, open_, strict=False)
            self._n_evaluations += len(values)
            self._interrupted = len(values) < len(open_)
        return found

    def _may_go_on(self) -> bool:
        # An engine that stops early has seen that the next evaluation would take longer than is left.
        return not self._interrupted and self._limits.may_go_on(self._n_evaluations)

    def _within_count(self, units: Sequence[int]) -> Sequence[int]:
        """Return as many of the units as the evaluation limit allows."""
        most = len(units)
        while most > 1 and not self._limits.allows(self._n_evaluations + most):
            most -= 1
        return units[:most]

    def _expand(self, branch: _Branch) -> list[_Branch]:
        """Evaluate a node, which is not affordable, without each free unit; return its branches by increasing bound.

        Where a limit is reached, the branch itself stays open.
        """
        unit = branch.unit
        kept = branch.kept if unit is None else branch.kept - {unit}
        free, costs = branch.free, self._choice.costs
        node = branch.parent if unit is None else branch.parent.without(*self._choice.units[unit])
        cheapest = free[0] if self._one_cost is not None else min(free, key=lambda i: costs[i])
        if not self._affordable_without(kept, [i for i in free if i != cheapest]):
            if not self._may_go_on():
                return [branch]
            self._n_evaluations += 1
            node = node.without(*self._choice.features(free))
            self._offer(kept - set(free), node.potential_agreement())
            return []
        enough = self._enough_alone(kept, free)
        # Of what remains open it matters only whether it is better than the best subset, if there is one.
        level = None if enough or unit is None or self._best is None else self._agreement + AGREEMENT_TOLERANCE
        values = [*branch.known, *self._values(node, free[len(branch.known) :], level)]
        live = []
        for value, candidate in values:
            if candidate in enough:
                # Removing more after this would only lower the agreement: it stays in all other branches.
                self._offer(kept - {candidate}, value)
            else:
                live.append((value, candidate))
        if unit is None:
            self._root_values = values
        if len(values) < len(free):
            bound = (
                min(branch.bound, loss_bound(self._by_features(values), self._choice)) if unit is None else branch.bound
            )
            return [branch._replace(bound=bound, known=tuple(values))]
        for value, _ in live:
            if not self._improves(value):
                self._left = max(self._left, value)
        live = sorted(entry for entry in live if self._improves(entry[0]))
        branches = []
        for place, (value, candidate) in enumerate(live):
            later = tuple([i for _, i in live[place + 1 :]])
            # A branch that cannot get within the budget any more holds no subset, nor do those after it.
            if not self._affordable_without(kept, (candidate, *later)):
                break
            branches.append(_Branch(node, candidate, kept, later, min(value, branch.bound)))
        return branches

    def _by_features(self, values: Iterable[tuple[float, int]]) -> list[tuple[float, tuple[int, ...]]]:
        return [(value, self._choice.units[unit]) for value, unit in values]

    def _enumerate_few(self, most: int) -> bool:
        """Evaluate all subsets of the one size that matters, if they are at most so many and all units cost the same.

        Returns whether that was all there is to search.
        """
        free = self._start.free
        if len({self._choice.costs[unit] for unit in free}) > 1:
            return False
        always = self._start.kept - set(free)
        size = next(n for n in range(len(free), -1, -1) if self._affordable(always | set(free[:n])))
        n_subsets = math.comb(len(free), size)
        if n_subsets > most or not self._limits.allows(self._n_evaluations + n_subsets):
            return False
        for chosen in itertools.combinations(free, size):
            if not self._may_go_on():
                return False
            self._evaluate(always | frozenset(chosen))
        self._frontier.clear()
        return True

    def _evaluate(self, units: frozenset[int]) -> float:
        self._n_evaluations += 1
        gone = self._choice.features(self._start.kept - units)
        value = self._root.without(*gone).potential_agreement()
        self._offer(units, value)
        return value

    def _climb(self) -> None:
        """Remove the least missed unit until the rest is affordable, then exchange units while that helps."""
        node, kept, free = self._root, self._start.kept, set(self._start.free)
        agreement = 1.0
        while not self._affordable(kept):
            candidates = sorted(kept & free)
            at_root = node is self._root and len(self._root_values) == len(candidates)
            values = self._root_values if at_root else self._values(node, candidates)
            if len(values) < len(candidates):
                return
            agreement, unit = max(values)
            kept, node = kept - {unit}, node.without(*self._choice.units[unit])
        self._offer(kept, agreement)
        while self._best is not None and self._exchange(self._best, free):
            pass

    def _exchange(self, best: frozenset[int], free: set[int]) -> bool:
        """Look for a better set than the best one with one unit exchanged, and return whether there is one."""
        before = self._agreement
        for into in sorted(free - best):
            more = best | {into}
            candidates = [out for out in sorted(free & best) if self._affordable_without(more, (out,))]
            node = self._root.without(*self._choice.features(self._start.kept - more))
            values = self._values(node, candidates)
            for value, out in values:
                self._offer(more - {out}, value)
            if self._agreement > before or len(values) < len(candidates):
                break
        return self._agreement > before

    def _take_guess(self) -> None:
        guess = set(self._required)
        for unit in self._first_guess:
            if self._affordable(guess | {unit}):
                guess.add(unit)
        self._evaluate(frozenset(guess))
