"""Searches that prove their optimum: for naive Bayes, for networks, and for the most probable class.

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
from typing import NamedTuple

from trimbench.trimming.costs import Choice, highest_cost
from trimbench.trimming.engines.bounds import loss_bound
from trimbench.trimming.engines.choice import SignedMeasure
from trimbench.trimming.engines.table import ClassMeasures
from trimbench.trimming.limits import Limits
from trimbench.trimming.result import AGREEMENT_TOLERANCE, SearchResult
from trimbench.trimming.thresholds import Cut, Instances, best_cut


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
    """

    def __init__(self, root: SignedMeasure, choice: Choice, *, first_guess: Sequence[int]) -> None:
        self._choice = choice
        self._root = root
        self._first_guess = first_guess
        self._required = choice.required_units
        units = frozenset(range(len(choice.units)))
        # Removing what is free of charge never helps.
        free = tuple(unit for unit in first_guess if unit not in self._required and choice.costs[unit] > 0)
        self._limit = highest_cost(choice.budget)
        self._one_cost = choice.costs[0] if len(set(choice.costs)) == 1 else None
        self._start = _Branch(root, None, units, free, 1.0)
        self._frontier: list[_Branch] = []
        self._begun = self._interrupted = False
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
            # Stopped: what still fits is bought, those that seem best first.
            filled = frozenset(self._choice.filled(self._best or self._required, self._first_guess))
            if filled != self._best:
                self._evaluate(filled)
        features = frozenset(self._choice.features(self._best or frozenset()))
        self._limits.report(self._agreement, self._bound, self._n_evaluations, last=True)
        return SearchResult(features, self._agreement, self._bound(), self._n_evaluations)

    def _bound(self) -> float:
        """Return the highest bound of what is open."""
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

    def _values(self, node: SignedMeasure, units: Sequence[int]) -> list[tuple[float, int]]:
        """Return what is left after removing each unit; fewer values where a limit is reached."""
        found: list[tuple[float, int]] = []
        while len(found) < len(units) and self._may_go_on():
            open_ = self._within_count(units[len(found) :])
            values = node.potential_agreements_without([self._choice.units[unit] for unit in open_], self._limits)
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
        values = [*branch.known, *self._values(node, free[len(branch.known) :])]
        live = []
        for value, candidate in values:
            if candidate in enough:
                # Removing more after this would only lower the agreement: it stays in all other branches.
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


# Trimming of general Bayesian network classifiers: Algorithm 1 of the paper.


@dataclass(frozen=True)
class GeneralResult:
    """The best trimming found and what is proven about it.

    Attributes
    ----------
    cut : Cut
        Its agreement and threshold interval.
    upper_bound : float
        No trimming within the budget has a higher agreement.
    n_evaluations : int
        Number of evaluations of either criterion.
    """

    features: tuple[int, ...]
    cut: Cut
    upper_bound: float
    n_evaluations: int


@dataclass(frozen=True)
class _NetworkBranch:
    """The subsets of units that hold `included` and some of `undecided`; `node` is over both and `excluded`."""

    node: SignedMeasure
    excluded: int | None
    included: tuple[int, ...]
    undecided: tuple[int, ...]
    bound: float


class InclusionSearch:
    """A search that can be stopped and continued.

    Parameters
    ----------
    root : SignedMeasure
        Over all features that are not forbidden.
    instances : callable
        Gives the instances of a feature subset.
    choice : Choice
        Which subsets are allowed.
    threshold : float
        Of the original classifier; preferred among equally good ones.
    """

    def __init__(
        self,
        root: SignedMeasure,
        instances: Callable[[Sequence[int]], Instances],
        choice: Choice,
        threshold: float,
    ) -> None:
        self._root = root
        self._instances = instances
        self._choice = choice
        self._threshold = threshold
        self._open: list[_NetworkBranch] | None = None
        self._first_guess: tuple[int, ...] = ()
        self._best: tuple[int, ...] = ()
        self._cut = Cut(-math.inf, 0.0, 0.0)
        self._n_evaluations = 0

    def run(self, limits: Limits) -> GeneralResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached."""
        if self._open is None:
            self._open = [self._first(limits)]
        while self._open:
            branch = self._open[-1]
            if not self._improves(branch.bound):
                # Everything below it is no better than what is found: `bound` needs no record of it.
                self._open.pop()
                continue
            if not limits.may_go_on(self._n_evaluations):
                break
            limits.report(self._cut.agreement, self._bound, self._n_evaluations)
            self._open.pop()
            self._open += self._below(branch)
        best, cut = self._best, self._cut
        filled = self._choice.filled(best, self._first_guess if self._open else ())
        if filled != best:
            # Stopped: what is missed most fills the budget, if that helps. The search goes on from what it knows.
            self._n_evaluations += 1
            more = best_cut(self._instances(self._choice.features(filled)), self._threshold)
            best, cut = (filled, more) if self._improves(more.agreement) else (best, cut)
        upper_bound = max(cut.agreement, self._bound())
        limits.report(cut.agreement, lambda: upper_bound, self._n_evaluations, last=True)
        return GeneralResult(self._choice.features(best), cut, upper_bound, self._n_evaluations)

    def _bound(self) -> float:
        return max([self._cut.agreement, *(branch.bound for branch in self._open or ())])

    def _improves(self, bound: float) -> bool:
        return bound > self._cut.agreement + AGREEMENT_TOLERANCE

    def _evaluate(self, included: tuple[int, ...]) -> None:
        """Compute the maximum achievable agreement of some units and keep them if they are the best."""
        self._n_evaluations += 1
        cut = best_cut(self._instances(self._choice.features(included)), self._threshold)
        if self._improves(cut.agreement):
            self._best, self._cut = included, cut

    def _first(self, limits: Limits) -> _NetworkBranch:
        """Return the branch of all subsets, its units in the order of how much each is missed.

        Including those that are missed most soon gives a good subset, and excluding them a low bound.
        """
        units = self._choice.units
        required = tuple(sorted(self._choice.required_units))
        self._evaluate(required)
        undecided = [unit for unit in range(len(units)) if unit not in required]
        missed: list[tuple[float, tuple[int, ...]]] = []
        bound = 1.0
        # Whatever the limits, as many as it takes to have a bound.
        while len(missed) < len(undecided) and (bound == 1.0 or limits.may_go_on(self._n_evaluations)):
            groups = [units[unit] for unit in undecided[len(missed) :]]
            values = self._root.potential_agreements_without(groups, limits)
            self._n_evaluations += len(values)
            missed += zip(values, groups, strict=False)
            bound = loss_bound(missed, self._choice)
        known = {unit: value for unit, (value, _) in zip(undecided, missed, strict=False)}
        self._first_guess = tuple(sorted(undecided, key=lambda unit: (known.get(unit, math.inf), unit)))
        return _NetworkBranch(self._root, None, required, self._first_guess, bound)

    def _below(self, branch: _NetworkBranch) -> list[_NetworkBranch]:
        """Return the branches with and without the first undecided unit; the one to be searched first is last."""
        node, bound = branch.node, branch.bound
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
        self._evaluate(included)
        with_first = _NetworkBranch(node, None, included, tuple(others), bound)
        if not others:
            return []
        return [_NetworkBranch(node, first, branch.included, tuple(others), bound), with_first]


# Search for the feature subset of a classifier of several classes that agrees with it most often.


@dataclass(frozen=True)
class ArgMaxResult:
    """The best subset found and what is proven about it.

    Attributes
    ----------
    features : tuple of int
        In the order of the classifier.
    agreement : float
    upper_bound : float
        No allowed subset has a higher agreement.
    n_evaluations : int
        Number of evaluations of either criterion.
    """

    features: tuple[int, ...]
    agreement: float
    upper_bound: float
    n_evaluations: int


@dataclass(frozen=True)
class _ArgMaxBranch:
    """The subsets that hold the units `fixed` and some of `free`; `node` is the measure over both and `removed`.

    `met` says whether the largest of them has been considered.
    """

    node: ClassMeasures
    removed: tuple[int, ...]
    fixed: frozenset[int]
    free: tuple[int, ...]
    bound: float
    met: bool = False

    @property
    def kept(self) -> frozenset[int]:
        return self.fixed | set(self.free)


class ArgMaxSearch:
    """A search that can be stopped and continued.

    Parameters
    ----------
    root : ClassMeasures
        Over all features that are not forbidden.
    choice : Choice
        Some subset is affordable: that of its required features.
    first : frozenset of int, optional
        Affordable units, the required among them, that a search without time gives. Default: those that are required.
    """

    def __init__(self, root: ClassMeasures, choice: Choice, first: frozenset[int] | None = None) -> None:
        self._root = root
        self._choice = choice
        self._first = choice.required_units if first is None else first
        self._units = frozenset(range(len(choice.units)))
        self._free = tuple(sorted(self._units - choice.required_units))
        self._best: tuple[int, ...] | None = None
        self._agreement = -math.inf
        self._n_evaluations = 0
        # Potential agreements that are computed already, by the units that are left.
        self._known: dict[frozenset[int], float] = {}
        # What the first guess has left so far.
        self._guess = (root, self._units)
        self._root_bound = root.potential_agreement()
        self._open: list[_ArgMaxBranch] | None = None

    def run(self, limits: Limits) -> ArgMaxResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached.

        Whatever the limits, there is a subset afterwards, and a bound below 1 if removing one unit gives one.
        """
        if self._best is None:
            self._consider_units(self._first)
            if limits.may_go_on(self._n_evaluations) and self._choice.required_units != self._first:
                self._consider_units(self._choice.required_units)
        if self._open is None and self._has_guessed(limits):
            self._open = [_ArgMaxBranch(self._root, (), self._units - set(self._free), self._free, self._root_bound)]
        while self._open:
            branch = self._open.pop()
            if not self._improves(branch.bound):
                continue
            below = self._below(branch, limits) if limits.may_go_on(self._n_evaluations) else [branch]
            self._open += below
            if below and not limits.may_go_on(self._n_evaluations):
                break
            limits.report(self._agreement, self._bound, self._n_evaluations)
        limits.report(self._agreement, self._bound, self._n_evaluations, last=True)
        return ArgMaxResult(self._best or (), self._agreement, self._bound(), self._n_evaluations)

    def _bound(self) -> float:
        if self._open is None:
            return max(self._agreement, self._root_bound)
        return max([self._agreement, *(branch.bound for branch in self._open)])

    def _improves(self, bound: float) -> bool:
        return bound > self._agreement + AGREEMENT_TOLERANCE

    def _affordable(self, units: Iterable[int]) -> bool:
        return self._choice.is_affordable(self._choice.features(units))

    def _consider_units(self, units: frozenset[int]) -> None:
        self._consider(self._root.without(self._choice.features(self._units - units)))

    def _consider(self, node: ClassMeasures) -> None:
        """Compute the agreement of an affordable subset and keep it if it is the best."""
        self._n_evaluations += 1
        agreement = node.agreement()
        if self._improves(agreement):
            self._best, self._agreement = tuple(sorted(node.features)), agreement

    def _learn(self, node: ClassMeasures, kept: frozenset[int], unit: int) -> float:
        """Return the potential agreement without a unit."""
        left = kept - {unit}
        if left not in self._known:
            self._n_evaluations += 1
            self._known[left] = node.potential_agreement_without(self._choice.units[unit])
        return self._known[left]

    def _has_guessed(self, limits: Limits) -> bool:
        """Make a first guess: remove the unit with the smallest loss for its cost until the rest is affordable.

        Returns whether there was time for it.
        """
        node, kept = self._guess
        while not self._affordable(kept) and self._improves(self._root_bound):
            bound = self._known.get(kept, self._root_bound)
            costly = [unit for unit in self._free if unit in kept and self._choice.costs[unit] > 0]
            for unit in costly:
                limits.report(self._agreement, self._bound, self._n_evaluations)
                needs_bound = kept == self._units and self._root_bound > 1.0 - AGREEMENT_TOLERANCE
                if not needs_bound and not limits.may_go_on(self._n_evaluations):
                    return False
                self._learn(node, kept, unit)
                if kept == self._units:
                    self._bound_by_losses(costly)
            unit = min(costly, key=lambda unit: (bound - self._known[kept - {unit}]) / self._choice.costs[unit])
            node, kept = node.without(self._choice.units[unit]), kept - {unit}
            self._guess = node, kept
        if self._affordable(kept):
            self._consider(node)
        return True

    def _bound_by_losses(self, units: Iterable[int]) -> None:
        """Lower the bound of all subsets to what is known of removing single units."""
        removals = ((self._units - {unit}, self._choice.units[unit]) for unit in units)
        known = [(self._known[left], features) for left, features in removals if left in self._known]
        self._root_bound = min(self._root_bound, loss_bound(known, self._choice))

    def _below(self, branch: _ArgMaxBranch, limits: Limits) -> list[_ArgMaxBranch]:
        """Return the branches below one, that to be searched first last; the branch itself if a limit is reached."""
        node, kept = branch.node.without(branch.removed), branch.kept
        if not branch.met and self._affordable(kept):
            self._consider(node)
        if not branch.free or not self._improves(branch.bound):
            return []
        children = []
        for unit in branch.free:
            if kept - {unit} not in self._known and not limits.may_go_on(self._n_evaluations):
                return [_ArgMaxBranch(node, (), branch.fixed, branch.free, branch.bound, met=True)]
            children.append((self._learn(node, kept, unit), unit))
        for _, unit in children:
            # No other branch asks for these.
            del self._known[kept - {unit}]
        children.sort()
        ordered = [unit for _, unit in children]
        return [
            _ArgMaxBranch(node, self._choice.units[unit], stays, tuple(ordered[place + 1 :]), min(bound, branch.bound))
            for place, (bound, unit) in enumerate(children)
            if self._improves(bound) and self._affordable(stays := branch.fixed | set(ordered[:place]))
        ]
