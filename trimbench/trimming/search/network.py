"""Trimming of general Bayesian network classifiers: Algorithm 1 of the paper.

A depth-first search over features that are included or excluded. The maximum achievable agreement of the included
ones is a candidate at every node, because it may fall when a feature is added; the maximum potential agreement of what
is not excluded bounds everything below a node (Corollary 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trimbench.trimming.costs import is_affordable
from trimbench.trimming.engines.measure import SignedMeasure
from trimbench.trimming.search.naive_bayes import AGREEMENT_TOLERANCE, within_limits
from trimbench.trimming.thresholds import Cut, Instances, best_cut


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


@dataclass
class _State:
    instances: Callable[[Sequence[int]], Instances]
    costs: Sequence[float]
    budget: float
    threshold: float
    may_go_on: Callable[[int], bool]
    best: tuple[int, ...] = ()
    cut: Cut = field(default=Cut(-math.inf, 0.0, 0.0))
    bound: float = -math.inf
    n_evaluations: int = 0

    def affordable(self, features: Sequence[int]) -> bool:
        return is_affordable((self.costs[i] for i in features), self.budget)

    def improves(self, bound: float) -> bool:
        return bound > self.cut.agreement + AGREEMENT_TOLERANCE

    def evaluate(self, included: tuple[int, ...]) -> None:
        """Compute the maximum achievable agreement of a subset and keep it if it is the best."""
        self.n_evaluations += 1
        cut = best_cut(self.instances(included), self.threshold)
        if self.improves(cut.agreement):
            self.best, self.cut = included, cut


def search_included(
    root: SignedMeasure,
    instances: Callable[[Sequence[int]], Instances],
    costs: Sequence[float],
    budget: float,
    threshold: float,
    *,
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> GeneralResult:
    """Find the feature subset within the budget that has the highest maximum achievable agreement.

    Parameters
    ----------
    instances : callable
        Gives the instances of a feature subset.
    costs : sequence of float
        Cost of each feature, 0 or more.
    threshold : float
        Of the original classifier; preferred among equally good ones.
    time_limit, evaluation_limit
        As in `trim`.
    """
    state = _State(instances, costs, budget, threshold, within_limits(time_limit, evaluation_limit))
    state.evaluate(())
    # The features that are missed most come first: including them soon gives a good subset, and excluding them a low
    # bound.
    missed = []
    for feature in root.features:
        state.n_evaluations += 1
        missed.append((root.potential_agreement_without(feature), feature))
    _descend(state, root, (), [feature for _, feature in sorted(missed)], 1.0)
    return GeneralResult(
        tuple(sorted(state.best)), state.cut, max(state.bound, state.cut.agreement), state.n_evaluations
    )


def _descend(
    state: _State, node: SignedMeasure, included: tuple[int, ...], undecided: Sequence[int], bound: float
) -> None:
    """Search the subsets that hold `included` and some of `undecided`; `node` is the measure over both."""
    undecided, excluded = _split(state, included, undecided)
    if excluded:
        for feature in excluded:
            node = node.without(feature)
        if undecided:
            state.n_evaluations += 1
            bound = node.potential_agreement()
    if not undecided:
        return
    if not state.improves(bound) or not state.may_go_on(state.n_evaluations):
        state.bound = max(state.bound, bound)
        return
    first, *others = undecided
    state.evaluate((*included, first))
    _descend(state, node, (*included, first), others, bound)
    # Without the first: a new, lower bound.
    if not others:
        return
    state.n_evaluations += 1
    below = node.without(first)
    _descend(state, below, included, others, below.potential_agreement())


def _split(state: _State, included: tuple[int, ...], undecided: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return which undecided features can still be afforded, and which cannot."""
    fits = [feature for feature in undecided if state.affordable((*included, feature))]
    return fits, [feature for feature in undecided if feature not in set(fits)]
