"""Search for the feature subset of a classifier of several classes that agrees with it most often.

The agreement of a subset may fall when a feature is added, but its potential agreement may not, and bounds the
agreement of all smaller subsets. So the search starts from all features and removes unit after unit: every affordable
subset that it meets is a candidate, and it goes no further below a subset whose potential agreement is no improvement.
Children are sorted by their bound, and a child may remove only what comes after it (Narendra and Fukunaga, 1977), so
that no subset is met twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.arg_max import ClassMeasures
from trimbench.trimming.limits import Limits
from trimbench.trimming.search.loss_bound import loss_bound
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE


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
class _Branch:
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
        self._open: list[_Branch] | None = None

    def run(self, limits: Limits) -> ArgMaxResult:
        """Search, or go on searching, until the optimum is proven or a limit is reached.

        Whatever the limits, there is a subset afterwards, and a bound below 1 if removing one unit gives one.
        """
        if self._best is None:
            self._consider_units(self._first)
            if limits.may_go_on(self._n_evaluations) and self._choice.required_units != self._first:
                self._consider_units(self._choice.required_units)
        if self._open is None and self._has_guessed(limits):
            self._open = [_Branch(self._root, (), self._units - set(self._free), self._free, self._root_bound)]
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

    def _below(self, branch: _Branch, limits: Limits) -> list[_Branch]:
        """Return the branches below one, that to be searched first last; the branch itself if a limit is reached."""
        node, kept = branch.node.without(branch.removed), branch.kept
        if not branch.met and self._affordable(kept):
            self._consider(node)
        if not branch.free or not self._improves(branch.bound):
            return []
        children = []
        for unit in branch.free:
            if kept - {unit} not in self._known and not limits.may_go_on(self._n_evaluations):
                return [_Branch(node, (), branch.fixed, branch.free, branch.bound, met=True)]
            children.append((self._learn(node, kept, unit), unit))
        for _, unit in children:
            # No other branch asks for these.
            del self._known[kept - {unit}]
        children.sort()
        ordered = [unit for _, unit in children]
        return [
            _Branch(node, self._choice.units[unit], stays, tuple(ordered[place + 1 :]), min(bound, branch.bound))
            for place, (bound, unit) in enumerate(children)
            if self._improves(bound) and self._affordable(stays := branch.fixed | set(ordered[:place]))
        ]
