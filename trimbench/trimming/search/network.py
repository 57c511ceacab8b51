"""Trimming of general Bayesian network classifiers: Algorithm 1 of the paper.

A depth-first search over features that are included or excluded. The maximum achievable agreement of the included
ones is a candidate at every node, because it may fall when a feature is added; the maximum potential agreement of what
is not excluded bounds everything below a node (Corollary 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.measure import SignedMeasure
from trimbench.trimming.limits import Limits
from trimbench.trimming.search.loss_bound import loss_bound
from trimbench.trimming.search.result import AGREEMENT_TOLERANCE
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


@dataclass(frozen=True)
class _Branch:
    """The subsets that hold `included` and some of `undecided`; `node` is the measure over both and `excluded`."""

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
        self._open: list[_Branch] | None = None
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
        limits.report(self._cut.agreement, self._bound, self._n_evaluations, last=True)
        return GeneralResult(tuple(sorted(self._best)), self._cut, self._bound(), self._n_evaluations)

    def _bound(self) -> float:
        return max([self._cut.agreement, *(branch.bound for branch in self._open or ())])

    def _improves(self, bound: float) -> bool:
        return bound > self._cut.agreement + AGREEMENT_TOLERANCE

    def _evaluate(self, included: tuple[int, ...]) -> None:
        """Compute the maximum achievable agreement of a subset and keep it if it is the best."""
        self._n_evaluations += 1
        cut = best_cut(self._instances(included), self._threshold)
        if self._improves(cut.agreement):
            self._best, self._cut = included, cut

    def _first(self, limits: Limits) -> _Branch:
        """Return the branch of all subsets, its features in the order of how much each is missed.

        Including those that are missed most soon gives a good subset, and excluding them a low bound.
        """
        required = tuple(sorted(self._choice.required))
        self._evaluate(required)
        undecided = [feature for feature in self._root.features if feature not in self._choice.required]
        missed: list[tuple[float, tuple[int, ...]]] = []
        bound = 1.0
        # Whatever the limits, as many as it takes to have a bound.
        while len(missed) < len(undecided) and (bound == 1.0 or limits.may_go_on(self._n_evaluations)):
            groups = [(feature,) for feature in undecided[len(missed) :]]
            values = self._root.potential_agreements_without(groups, limits)
            self._n_evaluations += len(values)
            missed += zip(values, groups, strict=False)
            bound = loss_bound(missed, self._choice)
        known = {feature: value for value, (feature,) in missed}
        order = sorted(undecided, key=lambda feature: (known.get(feature, math.inf), feature))
        return _Branch(self._root, None, required, tuple(order), bound)

    def _below(self, branch: _Branch) -> list[_Branch]:
        """Return the branches with and without the first undecided feature; the one to be searched first is last."""
        node, bound = branch.node, branch.bound
        fits = tuple(i for i in branch.undecided if self._choice.is_affordable((*branch.included, i)))
        gone = [i for i in branch.undecided if i not in set(fits)]
        if branch.excluded is not None:
            gone.append(branch.excluded)
        if gone:
            node = node.without(*gone)
            if fits:
                self._n_evaluations += 1
                bound = min(bound, node.potential_agreement())
        if not fits or not self._improves(bound):
            return []
        first, *others = fits
        included = (*branch.included, first)
        self._evaluate(included)
        with_first = _Branch(node, None, included, tuple(others), bound)
        if not others:
            return []
        return [_Branch(node, first, branch.included, tuple(others), bound), with_first]
