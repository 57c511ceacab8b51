"""Search for the feature subset of a naive Bayes classifier with the highest agreement within a budget.

For a naive Bayes classifier the maximum achievable agreement equals the maximum potential agreement (Proposition 3),
which only falls when a feature is removed (Proposition 2). So only subsets that exhaust the budget matter, and the
value of a subset bounds that of all its subsets. The search starts from all features and removes them one by one, in
the order of Narendra and Fukunaga (1977): at each node the candidates are sorted by the bound that is left after
removing them, and a later branch may remove only what comes after its own candidate.

Depth first, such a search soon has a good subset and needs no memory. Best bound first, after a local search for the
first subset, it proves more in the same time: at any moment no subset is better than the highest open bound.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trimbench.trimming.costs import is_affordable
from trimbench.trimming.engines.measure import SignedMeasure

# Agreements closer than this count as equal: they are sums of probabilities with errors of about 1e-14.
AGREEMENT_TOLERANCE = 1e-12
# Up to this many subsets are enumerated where bounds are expensive: a search would hardly prove more in that time.
_FEW_SUBSETS = 5000


@dataclass(frozen=True)
class SearchResult:
    """The best subset found, and what is proven about it.

    Attributes
    ----------
    features : frozenset of int
    agreement : float
        Maximum potential agreement of the subset.
    upper_bound : float
        No subset within the budget has a higher one.
    n_evaluations : int
        Number of evaluations of the criterion.
    """

    features: frozenset[int]
    agreement: float
    upper_bound: float
    n_evaluations: int


@dataclass(frozen=True)
class _Branch:
    """A node of the search tree: `feature` is removed from `parent`, and some of `free` have to follow."""

    parent: SignedMeasure
    feature: int
    free: tuple[int, ...]
    bound: float

    def node(self) -> SignedMeasure:
        return self.parent.without(self.feature)


@dataclass
class _State:
    """The best subset so far, and the highest bound of what was skipped."""

    costs: Sequence[float]
    budget: float
    may_go_on: Callable[[int], bool]
    best: frozenset[int] = frozenset()
    agreement: float = -math.inf
    bound: float = -math.inf
    n_evaluations: int = 0
    stopped: bool = False

    def affordable(self, features: Sequence[int], removed: Sequence[int] = ()) -> bool:
        gone = set(removed)
        return is_affordable((self.costs[i] for i in features if i not in gone), self.budget)

    def may_evaluate(self) -> bool:
        """Count one evaluation, unless the search has to stop."""
        self.stopped = self.stopped or not self.may_go_on(self.n_evaluations)
        self.n_evaluations += not self.stopped
        return not self.stopped

    def offer(self, features: Sequence[int], agreement: float) -> None:
        if self.improves(agreement):
            self.best, self.agreement = frozenset(features), agreement
        else:
            self.leave(agreement)

    def leave(self, bound: float) -> None:
        """Record that subsets up to `bound` are skipped."""
        self.bound = max(self.bound, bound)

    def improves(self, bound: float) -> bool:
        return bound > self.agreement + AGREEMENT_TOLERANCE


def search(
    root: SignedMeasure,
    costs: Sequence[float],
    budget: float,
    *,
    first_guess: Sequence[int],
    best_first: bool = False,
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> SearchResult:
    """Find the feature subset within the budget that has the highest potential agreement.

    Parameters
    ----------
    costs : sequence of float
        Cost of each feature, 0 or more.
    first_guess : sequence of int
        An order of all features, best first: the affordable ones among them, taken in turn, are the answer if the
        search is stopped before it finds another.
    best_first : bool
        Local search, then best bound first; else depth first. Best bound first keeps many measures in memory.
    time_limit, evaluation_limit
        As in `trim`. The result is optimal iff its upper bound equals its agreement up to `AGREEMENT_TOLERANCE`.
    """
    state = _State(costs, budget, within_limits(time_limit, evaluation_limit))
    if state.affordable(root.features):
        return SearchResult(frozenset(root.features), 1.0, 1.0, 0)
    # Removing a feature that is free of charge never helps.
    free = tuple(i for i in root.features if costs[i] > 0)
    n_kept = _equal_size(state, free)
    n_subsets = math.comb(len(free), n_kept) if n_kept is not None else math.inf
    if n_subsets <= _fewest_evaluations(len(free), best_first) and n_subsets <= (evaluation_limit or math.inf):
        _enumerate(state, root, free, n_kept or 0)
    elif best_first:
        _climb(state, root, free)
        _search_best_first(state, root, free)
    else:
        _search_depth_first(state, root, free, 1.0)
    if math.isinf(state.agreement):
        _take_guess(state, root, first_guess)
    return SearchResult(state.best, state.agreement, max(state.agreement, state.bound), state.n_evaluations)


def _fewest_evaluations(n_features: int, best_first: bool) -> int:
    """Return roughly how many evaluations any search needs; with no more subsets than that, enumeration is cheaper."""
    return _FEW_SUBSETS if best_first else math.comb(n_features, 2)


def _equal_size(state: _State, free: Sequence[int]) -> int | None:
    """Return how many features each subset that exhausts the budget has; None where costs differ."""
    costs = [state.costs[i] for i in free]
    if len(set(costs)) > 1:
        return None
    return next(size for size in range(len(free), -1, -1) if is_affordable(costs[:size], state.budget))


def _enumerate(state: _State, root: SignedMeasure, free: Sequence[int], size: int) -> None:
    """Evaluate all subsets of one size; features that cost nothing are in each of them."""
    always = frozenset(root.features) - frozenset(free)
    for chosen in itertools.combinations(free, size):
        if not state.may_evaluate():
            state.leave(1.0)
            return
        kept = always | frozenset(chosen)
        state.offer(sorted(kept), _restricted(root, kept).potential_agreement())


def within_limits(time_limit: float | None, evaluation_limit: int | None) -> Callable[[int], bool]:
    """Return a predicate that says, given its number of evaluations, whether a search starting now may continue."""
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    most = math.inf if evaluation_limit is None else evaluation_limit
    return lambda n_evaluations: n_evaluations < most and (math.isinf(deadline) or time.perf_counter() < deadline)


def _search_depth_first(state: _State, node: SignedMeasure, free: Sequence[int], bound: float) -> None:
    # The last branches have the highest bounds and the least below them.
    for branch in reversed(_expand(state, node, free, bound)):
        if state.stopped or not state.improves(branch.bound):
            state.leave(branch.bound)  # and with it the earlier ones, whose bounds are no higher
            return
        _search_depth_first(state, branch.node(), branch.free, branch.bound)


def _search_best_first(state: _State, root: SignedMeasure, free: Sequence[int]) -> None:
    order = itertools.count()
    open_branches = [(-b.bound, next(order), b) for b in _expand(state, root, free, 1.0)]
    heapq.heapify(open_branches)
    while open_branches:
        _, _, branch = heapq.heappop(open_branches)
        if state.stopped or not state.improves(branch.bound):
            state.leave(branch.bound)  # no open branch has a higher one
            return
        for below in _expand(state, branch.node(), branch.free, branch.bound):
            heapq.heappush(open_branches, (-below.bound, next(order), below))


def _expand(state: _State, node: SignedMeasure, free: Sequence[int], bound: float) -> list[_Branch]:
    """Evaluate a node, which is not affordable, without each free feature; return its branches by increasing bound."""
    cheapest = min(free, key=lambda i: state.costs[i])
    if not state.affordable(node.features, [i for i in free if i != cheapest]):
        _remove_all(state, node, free, bound)
        return []
    live: list[tuple[float, int]] = []
    for feature in free:
        if not state.may_evaluate():
            state.leave(bound)
            return []
        value = node.potential_agreement_without(feature)
        if state.affordable(node.features, [feature]):
            # Removing more after this would only lower the agreement: the feature stays in all other branches.
            state.offer([i for i in node.features if i != feature], value)
        else:
            live.append((value, feature))
    for value, _ in live:
        if not state.improves(value):
            state.leave(value)
    live = sorted(branch for branch in live if state.improves(branch[0]))
    branches = []
    for place, (value, feature) in enumerate(live):
        later = tuple(i for _, i in live[place + 1 :])
        # A branch that cannot get within the budget any more holds no subset.
        if state.affordable(node.features, [feature, *later]):
            branches.append(_Branch(node, feature, later, value))
    return branches


def _remove_all(state: _State, node: SignedMeasure, free: Sequence[int], bound: float) -> None:
    if not state.may_evaluate():
        state.leave(bound)
        return
    for feature in free:
        node = node.without(feature)
    state.offer(node.features, node.potential_agreement())


def _climb(state: _State, root: SignedMeasure, free: Sequence[int]) -> None:
    """Remove the least missed feature until the rest is affordable, then exchange features while that helps."""
    node = root
    while not state.affordable(node.features):
        values = []
        for feature in (i for i in node.features if i in free):
            if not state.may_evaluate():
                return
            values.append((node.potential_agreement_without(feature), feature))
        agreement, feature = max(values)
        node = node.without(feature)
    state.offer(node.features, agreement)
    improved = True
    while improved:
        improved = False
        for out, into in itertools.product(sorted(set(free) & state.best), sorted(set(free) - state.best)):
            kept = (state.best - {out}) | {into}
            if not state.affordable(sorted(kept)):
                continue
            if not state.may_evaluate():
                return
            agreement = _restricted(root, kept).potential_agreement()
            if state.improves(agreement):
                state.offer(sorted(kept), agreement)
                improved = True
                break


def _take_guess(state: _State, root: SignedMeasure, order: Sequence[int]) -> None:
    guess: list[int] = []
    for feature in order:
        if state.affordable([*guess, feature]):
            guess.append(feature)
    state.n_evaluations += 1
    state.offer(guess, _restricted(root, frozenset(guess)).potential_agreement())


def _restricted(root: SignedMeasure, kept: frozenset[int]) -> SignedMeasure:
    for feature in root.features:
        if feature not in kept:
            root = root.without(feature)
    return root
