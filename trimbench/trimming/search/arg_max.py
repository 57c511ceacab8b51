"""Search for the feature subset of a classifier of several classes that agrees with it most often.

The agreement of a subset may fall when a feature is added, but its potential agreement may not, and bounds the
agreement of all smaller subsets. So the search starts from all features and removes unit after unit: every affordable
subset that it meets is a candidate, and it goes no further below a subset whose potential agreement is no improvement.
Children are sorted by their bound, and a child may remove only what comes after it (Narendra and Fukunaga, 1977), so
that no subset is met twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.arg_max import ClassMeasures
from trimbench.trimming.search.naive_bayes import AGREEMENT_TOLERANCE


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


@dataclass
class _State:
    choice: Choice
    may_go_on: Callable[[int], bool]
    best: tuple[int, ...] = ()
    agreement: float = -math.inf
    bound: float = -math.inf
    n_evaluations: int = 0
    # Potential agreements that the first guess has already computed, by the units that are left.
    known: dict[frozenset[int], float] = field(default_factory=dict)

    def affordable(self, units: Iterable[int]) -> bool:
        return self.choice.is_affordable(self.choice.features(units))

    def improves(self, bound: float) -> bool:
        return bound > self.agreement + AGREEMENT_TOLERANCE

    def consider(self, node: ClassMeasures) -> None:
        """Compute the agreement of an affordable subset and keep it if it is the best."""
        self.n_evaluations += 1
        agreement = node.agreement()
        if self.improves(agreement):
            self.best, self.agreement = tuple(sorted(node.features)), agreement

    def potential_without(self, node: ClassMeasures, kept: frozenset[int], unit: int) -> float:
        left = kept - {unit}
        if left not in self.known:
            self.n_evaluations += 1
            return node.potential_agreement_without(self.choice.units[unit])
        return self.known[left]


def search_arg_max(root: ClassMeasures, choice: Choice, may_go_on: Callable[[int], bool]) -> ArgMaxResult:
    """Find the allowed feature subset with the highest agreement.

    Parameters
    ----------
    root : ClassMeasures
        Over all features that are not forbidden.
    choice : Choice
        Some subset is affordable: that of its required features.
    may_go_on : callable
        Whether the search may go on, given the number of evaluations so far.
    """
    state = _State(choice, may_go_on)
    units = frozenset(range(len(choice.units)))
    free = tuple(sorted(units - choice.required_units))
    _eliminate(state, root, units, free)
    bound = min(root.potential_agreement(), _first_bound(state, units, free))
    _descend(state, root, units - set(free), free, bound)
    return ArgMaxResult(state.best, state.agreement, max(state.bound, state.agreement), state.n_evaluations)


def _first_bound(state: _State, units: frozenset[int], free: Sequence[int]) -> float:
    """Return a bound from what is known of removing single units: each allowed subset has to do without several."""
    known = sorted((state.known.get(units - {unit}, 1.0) for unit in free), reverse=True)
    dearest = sorted(free, key=lambda unit: -state.choice.costs[unit])
    for n_removed in range(len(free) + 1):
        if state.affordable(units - set(dearest[:n_removed])):
            # The bound of one of the removed units is no higher than the n-th highest of all.
            return known[n_removed - 1] if n_removed else 1.0
    return 1.0


def _eliminate(state: _State, node: ClassMeasures, kept: frozenset[int], free: Sequence[int]) -> None:
    """Make a first guess: remove the unit with the smallest loss for its cost until the rest is affordable."""
    bound = node.potential_agreement()
    while not state.affordable(kept):
        costly = [unit for unit in free if unit in kept and state.choice.costs[unit] > 0]
        for unit in costly:
            if state.may_go_on(state.n_evaluations):
                state.known[kept - {unit}] = state.potential_without(node, kept, unit)
        if any(kept - {unit} not in state.known for unit in costly):
            # Out of time: what is required is affordable.
            kept = kept - set(free)
            node = node.without([place for place in node.features if state.choice.unit_of[place] not in kept])
            break
        loss = {unit: (bound - state.known[kept - {unit}]) / state.choice.costs[unit] for unit in costly}
        unit = min(costly, key=lambda unit: loss[unit])
        kept = kept - {unit}
        node, bound = node.without(state.choice.units[unit]), state.known[kept]
    state.consider(node)


def _descend(state: _State, node: ClassMeasures, fixed: frozenset[int], free: Sequence[int], bound: float) -> None:
    """Search the subsets that hold the units `fixed` and some of `free`; `node` is the measure over both."""
    if not state.improves(bound):
        return
    if not state.may_go_on(state.n_evaluations):
        state.bound = max(state.bound, bound)
        return
    kept = fixed | set(free)
    if state.affordable(kept):
        state.consider(node)
    if not free or not state.improves(bound):
        return
    children = []
    for unit in free:
        # Out of time in the middle of a large table, the bound of the parent stands for that of the child.
        known = state.may_go_on(state.n_evaluations)
        children.append((state.potential_without(node, kept, unit) if known else bound, unit))
    children.sort()
    ordered = [unit for _, unit in children]
    for place in reversed(range(len(ordered))):
        below, unit = children[place]
        stays = fixed | set(ordered[:place])
        if state.improves(below) and state.affordable(stays):
            if not state.may_go_on(state.n_evaluations):
                state.bound = max(state.bound, below)
            else:
                _descend(state, node.without(state.choice.units[unit]), stays, ordered[place + 1 :], below)
