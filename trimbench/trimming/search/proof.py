"""Searches that prove their optimum: for naive Bayes; and for networks and for the most probable class.

For a naive Bayes classifier the maximum achievable agreement equals the maximum potential agreement (Proposition 3),
which only falls when a feature is removed (Proposition 2). So only subsets that exhaust the budget matter, and the
value of a subset bounds that of all its subsets. The search starts from all units (features, or groups of them that are
bought together) and removes them one by one, in the order of Narendra and Fukunaga (1977): at each node the candidates
are sorted by the bound that is left after removing them, and a later branch may remove only what comes after its own
candidate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from trimbench.trimming.decisions import Cut
from trimbench.trimming.engines.bounds import loss_bound
from trimbench.trimming.engines.choice import SignedMeasure
from trimbench.trimming.problem import Choice, Limits, highest_cost
from trimbench.trimming.result import AGREEMENT_TOLERANCE, SearchResult

Measure = TypeVar("Measure", bound=SignedMeasure)


class _Branch(NamedTuple):
    """A node of the search tree: `unit` is removed from `parent`, and some of the units `free` have to follow.

    `known` holds the agreements after removing the first of these, from an expansion that was stopped.
    """

    parent: SignedMeasure
    unit: int | None
    kept: frozenset[int]
    free: tuple[int, ...]
    bound: float
    known: tuple[tuple[float, int], ...] = ()


class RemovalSearch:
    """A search for naive Bayes, which removes units until the rest is affordable; it can be stopped and continued.

    Parameters
    ----------
    root : SignedMeasure
        Over all features that are not forbidden.
    choice : Choice
        Which subsets are allowed.
    first_guess : sequence of int
        An order of all units, best first: if the search is stopped before it finds a subset, they are bought in turn
        while they are affordable.
    """

    def __init__(self, root: SignedMeasure, choice: Choice, *, first_guess: Sequence[int]) -> None:
        self._choice = choice
        self._root = root
        self._first_guess = first_guess
        self._required = choice.required_units
        units = frozenset(range(len(choice.units)))
        # Removing a unit that costs nothing never helps.
        free = tuple(unit for unit in first_guess if unit not in self._required and choice.costs[unit] > 0)
        self._limit = highest_cost(choice.budget)
        self._one_cost = choice.costs[0] if len(set(choice.costs)) == 1 else None
        self._start = _Branch(root, None, units, free, 1.0)
        self._frontier: list[_Branch] = []
        self._begun = False
        self._limits = Limits()
        self._best: frozenset[int] | None = None
        self._agreement = -math.inf
        self._left = -math.inf
        self._n_evaluations = 0

    def run(self, limits: Limits) -> SearchResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached."""
        self._limits = limits
        if not self._begun:
            self._begun = True
            if self._affordable(self._start.kept):
                value = self._root.potential_agreement()
                self._offer(self._start.kept, value)
                return SearchResult(self._choice.features(self._start.kept), value, value, 0, proven=True)
            self._frontier.append(self._start)
            self._enumerate_few(math.comb(len(self._start.free), 2))
        while self._frontier:
            bound = self._frontier[-1].bound
            if not self._improves(bound):
                self._frontier.pop()
                self._left = max(self._left, bound)
                continue
            if not self._may_go_on():
                break
            limits.report(self._agreement, self._bound, self._n_evaluations)
            self._frontier += self._expand(self._frontier.pop())
        return self._result()

    def _result(self) -> SearchResult:
        if self._best is None or self._improves(self._bound()):
            # Stopped: units that still fit are bought, the most promising first.
            filled = frozenset(self._choice.filled(self._best or self._required, self._first_guess))
            if filled != self._best:
                self._evaluate(filled)
        features = self._choice.features(self._best or frozenset())
        self._limits.report(self._agreement, self._bound, self._n_evaluations, last=True)
        proven = not self._frontier
        return SearchResult(features, self._agreement, self._bound(), self._n_evaluations, proven=proven)

    def _bound(self) -> float:
        """Return the highest agreement that any subset may still have."""
        highest = max((branch.bound for branch in self._frontier), default=-math.inf)
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
        """Return the units whose removal alone makes a set affordable."""
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

    def _values(self, node: SignedMeasure, units: Sequence[int]) -> list[tuple[float, int]]:
        """Return the potential agreement after removing each unit; fewer values if a limit is reached."""
        found: list[tuple[float, int]] = []
        for unit in units:
            if not self._may_go_on():
                break
            found.append((node.potential_agreement_without(self._choice.units[unit]), unit))
            self._n_evaluations += 1
        return found

    def _may_go_on(self) -> bool:
        return self._limits.may_go_on(self._n_evaluations)

    def _expand(self, branch: _Branch) -> list[_Branch]:
        """Evaluate a node, which is not affordable, without each free unit; return its branches by increasing bound.

        If a limit is reached, the branch itself stays open.
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
        values = [*branch.known, *self._values(node, free[len(branch.known) :])]
        live = []
        for value, candidate in values:
            if candidate in enough:
                # Removing more after it would only lower the agreement: the other branches keep it.
                self._offer(kept - {candidate}, value)
            else:
                live.append((value, candidate))
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
            # A branch that can no longer get within the budget holds no allowed subset, nor do those after it.
            if not self._affordable_without(kept, (candidate, *later)):
                break
            branches.append(_Branch(node, candidate, kept, later, min(value, branch.bound)))
        return branches

    def _by_features(self, values: Iterable[tuple[float, int]]) -> list[tuple[float, tuple[int, ...]]]:
        return [(value, self._choice.units[unit]) for value, unit in values]

    def _enumerate_few(self, most: int) -> None:
        """Evaluate all subsets of the one size that matters, if there are few enough and all units cost the same."""
        free = self._start.free
        if len({self._choice.costs[unit] for unit in free}) > 1:
            return
        always = self._start.kept - set(free)
        size = next(n for n in range(len(free), -1, -1) if self._affordable(always | set(free[:n])))
        n_subsets = math.comb(len(free), size)
        if n_subsets > most or not self._limits.allows(self._n_evaluations + n_subsets):
            return
        for chosen in itertools.combinations(free, size):
            if not self._may_go_on():
                return
            self._evaluate(always | frozenset(chosen))
        self._frontier.clear()

    def _evaluate(self, units: frozenset[int]) -> None:
        self._n_evaluations += 1
        gone = self._choice.features(self._start.kept - units)
        self._offer(units, self._root.without(*gone).potential_agreement())


# Trimming where agreement is not monotone: of general networks (Algorithm 1 of the paper), and for the most probable
# class.


@dataclass(frozen=True)
class _Inclusion(Generic[Measure]):
    """The subsets of units that hold `included` and some of `undecided`; `node` is over both and `excluded`."""

    node: Measure
    excluded: int | None
    included: tuple[int, ...]
    undecided: tuple[int, ...]
    bound: float


class InclusionSearch(Generic[Measure]):
    """A search that includes or excludes one unit at a time; it can be stopped and continued.

    Parameters
    ----------
    root : SignedMeasure
        Over all features that are not forbidden; its potential agreement bounds the agreement of every smaller subset.
    achieved : callable
        Gives the agreement of the features at some positions, with its threshold interval if it has one. Its first
        argument is a measure below `root` that has these features.
    choice : Choice
        Which subsets are allowed.
    first : collection of int, optional
        Affordable units, required ones included: the answer of a search without time. Default: the required ones.
    """

    def __init__(
        self,
        root: Measure,
        achieved: Callable[[Measure, Sequence[int]], tuple[float, Cut | None]],
        choice: Choice,
        first: Collection[int] = (),
    ) -> None:
        self._root = root
        self._achieved = achieved
        self._choice = choice
        self._first = first
        self._open: list[_Inclusion[Measure]] | None = None
        self._first_guess: tuple[int, ...] = ()
        self._best: tuple[int, ...] = ()
        self._agreement = -math.inf
        self._cut: Cut | None = None
        self._n_evaluations = 0

    def run(self, limits: Limits) -> SearchResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached."""
        if self._open is None:
            self._open = self._whole(limits)
        while self._open:
            branch = self._open[-1]
            if not self._improves(branch.bound):
                # Everything below it is no better than what is found: `bound` needs no record of it.
                self._open.pop()
                continue
            if not limits.may_go_on(self._n_evaluations):
                break
            limits.report(self._agreement, self._bound, self._n_evaluations)
            self._open.pop()
            self._open += self._below(branch)
        # The most missed units fill the budget: all at once if that helps, where the search was stopped; else one by
        # one, unless that lowers the agreement.
        for units in [self._first_guess] if self._open else [(unit,) for unit in self._first_guess]:
            filled = self._choice.filled(self._best, units)
            if filled != self._best:
                self._evaluate(self._root, filled, as_good=not self._open)
        limits.report(self._agreement, self._bound, self._n_evaluations, last=True)
        features = self._choice.features(self._best)
        return SearchResult(features, self._agreement, self._bound(), self._n_evaluations, self._cut)

    def _bound(self) -> float:
        return max([self._agreement, *(branch.bound for branch in self._open or ())])

    def _improves(self, bound: float) -> bool:
        return bound > self._agreement + AGREEMENT_TOLERANCE

    def _evaluate(self, node: Measure, included: tuple[int, ...], *, as_good: bool = False) -> None:
        """Compute the agreement of some units, whose features a measure has; keep the units if they are the best.

        With `as_good`, they need only be as good as the best.
        """
        self._n_evaluations += 1
        agreement, cut = self._achieved(node, self._choice.features(included))
        if self._improves(agreement + 2.0 * AGREEMENT_TOLERANCE * as_good):
            self._best, self._agreement, self._cut = included, agreement, cut

    def _whole(self, limits: Limits) -> list[_Inclusion[Measure]]:
        """Return the branch of all subsets, its units in the order of how much each is missed.

        Including the most missed ones soon gives a good subset, and excluding them a low bound.
        """
        units = self._choice.units
        required = tuple(sorted(self._choice.required_units))
        first = tuple(sorted(self._first)) or required
        self._evaluate(self._root, first)
        undecided = [unit for unit in range(len(units)) if unit not in required]
        missed: list[tuple[float, tuple[int, ...]]] = []
        bound = self._root.potential_agreement() if self._choice.forbidden else 1.0
        # Whatever the limits, at least as many units as it takes to have a bound.
        while len(missed) < len(undecided) and (
            bound > 1.0 - AGREEMENT_TOLERANCE or limits.may_go_on(self._n_evaluations)
        ):
            group = units[undecided[len(missed)]]
            missed.append((self._root.potential_agreement_without(group), group))
            self._n_evaluations += 1
            bound = min(bound, loss_bound(missed, self._choice))
        known = {unit: value for unit, (value, _) in zip(undecided, missed, strict=False)}
        self._first_guess = tuple(sorted(undecided, key=lambda unit: (known.get(unit, math.inf), unit)))
        whole = _Inclusion(self._root, None, required, self._first_guess, bound)
        # No branch below evaluates the required units alone.
        return [whole] if first == required else [whole, _Inclusion(self._root, None, required, (), bound)]

    def _below(self, branch: _Inclusion[Measure]) -> list[_Inclusion[Measure]]:
        """Return the branches with and without the first undecided unit; the one to be searched first is last."""
        node, bound = branch.node, branch.bound
        if not branch.undecided:
            if branch.included != self._best:
                self._evaluate(node, branch.included)
            return []
        features = self._choice.features
        fits = tuple(i for i in branch.undecided if self._choice.is_affordable(features((*branch.included, i))))
        gone = [i for i in branch.undecided if i not in set(fits)]
        if branch.excluded is not None:
            gone.append(branch.excluded)
        if gone:
            node = node.without(*features(gone))
            if fits:
                self._n_evaluations += 1
                bound = min(bound, node.potential_agreement())
        if not fits or not self._improves(bound):
            return []
        first, *others = fits
        included = (*branch.included, first)
        self._evaluate(node, included)
        with_first = _Inclusion(node, None, included, tuple(others), bound)
        if not others:
            return []
        return [_Inclusion(node, first, branch.included, tuple(others), bound), with_first]
