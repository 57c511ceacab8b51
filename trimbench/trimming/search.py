"""Search for the feature subset with the highest agreement within a budget.

For a naive Bayes classifier the maximum achievable agreement equals the maximum potential agreement (Proposition 3),
which only falls when a feature is removed (Proposition 2). So only subsets that exhaust the budget matter, and the
value of a subset bounds that of all its subsets. The search starts from all features and removes them one by one, in
the order of Narendra and Fukunaga (1977): at each node the candidates are sorted by the bound that is left after
removing them, and a later branch may remove only what comes after its own candidate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from trimbench.trimming.budget import is_affordable

# Agreements closer than this count as equal: they are sums of probabilities with errors of about 1e-14.
AGREEMENT_TOLERANCE = 1e-12


class SignedMeasure(Protocol):
    """What the search needs to know of a feature subset."""

    @property
    def features(self) -> tuple[int, ...]:
        """Which features are left."""

    def without(self, feature: int) -> Self:
        """Return the measure with one feature removed."""

    def potential_agreement(self) -> float:
        """Return the maximum potential agreement."""

    def potential_agreement_without(self, feature: int) -> float:
        """Return the maximum potential agreement after removing one feature."""


@dataclass(frozen=True)
class SearchResult:
    """The best subset found and what is proven about it.

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


@dataclass
class _Search:
    costs: Sequence[float]
    budget: float
    may_go_on: Callable[[int], bool]
    best: frozenset[int] = frozenset()
    agreement: float = -math.inf
    bound: float = -math.inf
    n_evaluations: int = 0
    stopped: bool = field(default=False)

    def affordable(self, features: Sequence[int], removed: Sequence[int] = ()) -> bool:
        gone = set(removed)
        return is_affordable((self.costs[i] for i in features if i not in gone), self.budget)

    def may_evaluate(self) -> bool:
        """Count one evaluation, unless the search has to stop."""
        self.stopped = self.stopped or not self.may_go_on(self.n_evaluations)
        self.n_evaluations += not self.stopped
        return not self.stopped

    def offer(self, features: Sequence[int], agreement: float) -> None:
        if agreement > self.agreement + AGREEMENT_TOLERANCE:
            self.best, self.agreement = frozenset(features), agreement
        else:
            self.leave(agreement)

    def leave(self, bound: float) -> None:
        """Note that subsets up to `bound` are not looked at."""
        self.bound = max(self.bound, bound)

    def improves(self, bound: float) -> bool:
        return bound > self.agreement + AGREEMENT_TOLERANCE

    def descend(self, node: SignedMeasure, free: Sequence[int], bound: float) -> None:
        """Search the affordable subsets that remove some of `free` from `node`, which is not affordable itself."""
        cheapest = min(free, key=lambda i: self.costs[i])
        if not self.affordable(node.features, [i for i in free if i != cheapest]):
            self._remove_all(node, free, bound)
            return
        branches: list[tuple[float, int]] = []
        for feature in free:
            if not self.may_evaluate():
                self.leave(bound)
                return
            value = node.potential_agreement_without(feature)
            if self.affordable(node.features, [feature]):
                # Removing more after this would only lower the agreement: the feature stays in all other branches.
                self.offer([i for i in node.features if i != feature], value)
            else:
                branches.append((value, feature))
        for value, _ in branches:
            if not self.improves(value):
                self.leave(value)
        self._branch(node, sorted(branch for branch in branches if self.improves(branch[0])))

    def _branch(self, node: SignedMeasure, live: Sequence[tuple[float, int]]) -> None:
        # From the last branch that can still get within the budget by removing what comes after it, to ever earlier
        # ones, which have lower bounds and more below them.
        for place in range(len(live) - 1, -1, -1):
            value, feature = live[place]
            later = [i for _, i in live[place + 1 :]]
            if not self.affordable(node.features, [feature, *later]):
                continue
            if self.stopped or not self.improves(value):
                self.leave(value)  # and with it the earlier ones, whose bounds are no higher
                return
            self.descend(node.without(feature), later, value)

    def _remove_all(self, node: SignedMeasure, free: Sequence[int], bound: float) -> None:
        if not self.may_evaluate():
            self.leave(bound)
            return
        rest = node
        for feature in free:
            rest = rest.without(feature)
        self.offer(rest.features, rest.potential_agreement())


def search(
    root: SignedMeasure,
    costs: Sequence[float],
    budget: float,
    *,
    first_guess: Sequence[int],
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> SearchResult:
    """Find the feature subset within the budget that has the highest potential agreement.

    Parameters
    ----------
    root : SignedMeasure
        Over all features.
    costs : sequence of float
        Cost of each feature, 0 or more.
    budget : float
        0 or more.
    first_guess : sequence of int
        An order of all features, best first: the affordable ones among them, taken in turn, are the answer if the
        search is stopped before it finds another.
    time_limit : float, optional
        Seconds.
    evaluation_limit : int, optional
        Number of evaluations. Unlike a time limit it gives the same answer on every machine.

    Returns
    -------
    SearchResult
        Optimal iff its upper bound equals its agreement up to `AGREEMENT_TOLERANCE`.
    """
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    most = math.inf if evaluation_limit is None else evaluation_limit

    def may_go_on(n_evaluations: int) -> bool:
        return n_evaluations < most and (deadline == math.inf or time.perf_counter() < deadline)

    state = _Search(costs, budget, may_go_on)
    if state.affordable(root.features):
        return SearchResult(frozenset(root.features), 1.0, 1.0, 0)
    # Removing a feature that is free of charge never helps.
    state.descend(root, [i for i in root.features if costs[i] > 0], 1.0)
    if math.isinf(state.agreement):
        guess: list[int] = []
        for feature in first_guess:
            if state.affordable([*guess, feature]):
                guess.append(feature)
        state.n_evaluations += 1
        rest = root
        for feature in set(root.features) - set(guess):
            rest = rest.without(feature)
        state.offer(guess, rest.potential_agreement())
    return SearchResult(state.best, state.agreement, max(state.agreement, state.bound), state.n_evaluations)
