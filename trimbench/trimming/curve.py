"""The best trimmings for all budgets at once."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import numpy as np

from trimbench.trimming.budget import checked_budget, checked_costs, highest_cost
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.dense import DenseEngine
from trimbench.trimming.lattice import subset_batches
from trimbench.trimming.search import AGREEMENT_TOLERANCE
from trimbench.trimming.thresholds import Cut, Instances, best_cut
from trimbench.trimming.trim import Trimming, exact_trimming


def trimming_curve(
    classifier: BayesianClassifier,
    budgets: Sequence[float],
    costs: Mapping[str, float] | Sequence[float] | None = None,
) -> list[Trimming]:
    """Return the optimal trimming for each of several budgets.

    All subsets within the largest budget are bounded by their maximum potential agreement, in one sweep over the
    lattice; thresholds are then searched for the few that may be best.

    Parameters
    ----------
    classifier : BayesianClassifier
        Small enough for the dense engine.
    budgets : sequence of float
        0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.

    Returns
    -------
    list of Trimming
        One for each budget, in their order. `n_evaluations` is the number of subsets within that budget.

    Raises
    ------
    ValueError
        When an argument is out of range or there are too many features for the dense engine.
    """
    price = np.array(checked_costs(classifier, costs))
    limits = [highest_cost(checked_budget(budget)) for budget in budgets]
    if not limits:
        raise ValueError("budgets must be a sequence of at least one number, got none")
    engine = DenseEngine.build(classifier)
    candidates: list[tuple[float, float, tuple[int, ...]]] = []
    for batch in subset_batches(engine.root, price.tolist(), max(budgets)):
        _, _, signed = batch.instances(classifier)
        potential = 0.5 * (1.0 + np.abs(signed).sum(axis=1))
        rows = zip(potential.tolist(), batch.costs.tolist(), batch.kept.tolist(), strict=True)
        candidates += [(-value, cost, tuple(sorted(kept))) for value, cost, kept in rows]
    heapq.heapify(candidates)
    return _best_of_each(classifier, engine, candidates, limits)


def _best_of_each(
    classifier: BayesianClassifier,
    engine: DenseEngine,
    candidates: list[tuple[float, float, tuple[int, ...]]],
    limits: Sequence[float],
) -> list[Trimming]:
    """Take candidates by falling bound until no budget can gain from the next."""
    n_within = [sum(cost <= limit for _, cost, _ in candidates) for limit in limits]
    best: list[tuple[Cut, tuple[int, ...]] | None] = [None] * len(limits)
    while candidates:
        bound, cost, kept = heapq.heappop(candidates)
        gaining = [
            place
            for place, (limit, found) in enumerate(zip(limits, best, strict=True))
            if cost <= limit and (found is None or -bound > found[0].agreement + AGREEMENT_TOLERANCE)
        ]
        if not gaining:
            if all(found is not None and -bound <= found[0].agreement + AGREEMENT_TOLERANCE for found in best):
                break
            continue
        instances: Instances = engine.instances(kept)
        cut = best_cut(instances, classifier.threshold)
        for place in gaining:
            found = best[place]
            if found is None or cut.agreement > found[0].agreement + AGREEMENT_TOLERANCE:
                best[place] = (cut, kept)
    trimmings = []
    for found, n_subsets in zip(best, n_within, strict=True):
        if found is None:
            raise RuntimeError("the empty subset is within every budget")
        cut, kept = found
        trimmings.append(exact_trimming(classifier, kept, cut, cut.agreement, n_subsets))
    return trimmings
