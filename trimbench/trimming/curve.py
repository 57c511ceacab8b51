"""The best trimmings for several budgets, or several thresholds, at once."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.costs import checked_budget, checked_costs, highest_cost
from trimbench.trimming.engines.choice import Engine, EngineName, make_engine
from trimbench.trimming.engines.table import MAX_ENTRIES, DenseEngine, subset_batches
from trimbench.trimming.model import check_possible, checked_threshold, short
from trimbench.trimming.result import AGREEMENT_TOLERANCE, Trimming, exact_trimming
from trimbench.trimming.thresholds import Cut, Instances, best_cut
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd


def trimming_curve(
    classifier: BayesianClassifier,
    budgets: Sequence[float],
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    thresholds: Sequence[float] | None = None,
    engine: EngineName | Engine = "auto",
    time_limit: float | None = None,
    evaluation_limit: int | None = None,
) -> list[Trimming]:
    """Return the best trimming for each of several budgets, and each of several original thresholds.

    For one threshold and a classifier with a table, all subsets within the largest budget are bounded by their maximum
    potential agreement, in one sweep over the lattice, and thresholds are searched for the few that may be best. Else
    each budget and threshold has a search of its own, for which a network is contracted or compiled once.

    Parameters
    ----------
    classifier : BayesianClassifier
    budgets : sequence of float
        0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.
    thresholds : sequence of float in [0, 1], optional
        Default: that of the classifier, which does not matter otherwise.
    engine, evaluation_limit
        As in `trim`.
    time_limit : float, optional
        Seconds for each of the searches.

    Returns
    -------
    list of Trimming
        One for each budget, in their order; with several thresholds, those of the first come first. `n_evaluations` of
        a sweep is the number of subsets within that budget.

    Raises
    ------
    ValueError
        When an argument is out of range or there are too many features for the engine.

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> [(trimming.features, trimming.agreement) for trimming in tb.trimming_curve(classifier, [0, 1])]
    [((), 0.52), (('x0',), 1.0)]
    """
    price = checked_costs(checked_classifier(classifier).features, costs)
    check_possible(classifier.model, classifier.target, classifier.evidence)
    within = [checked_budget(budget) for budget in _numbers(budgets, "budgets")]
    levels = [classifier.threshold]
    if thresholds is not None:
        levels = [checked_threshold(threshold) for threshold in _numbers(thresholds, "thresholds")]
    has_table = math.prod(classifier.cardinalities) <= MAX_ENTRIES
    if thresholds is None and engine == "auto" and has_table and time_limit is None and evaluation_limit is None:
        dense = DenseEngine.build(classifier)
        candidates = [(-value, cost, kept) for kept, cost, value in _sweep(classifier, dense, price, max(within))]
        heapq.heapify(candidates)
        return _best_of_each(classifier, dense, candidates, [highest_cost(budget) for budget in within])
    # The engine of a naive Bayes classifier depends on the threshold, and is quick to build.
    if isinstance(engine, str) and not classifier.is_naive_bayes:
        engine = make_engine(classifier, engine)
    return [
        trim(
            classifier.with_threshold(level),
            budget,
            price,
            engine=engine if isinstance(engine, str) else engine.with_threshold(level),
            time_limit=time_limit,
            evaluation_limit=evaluation_limit,
        )
        for level in levels
        for budget in within
    ]


def _numbers(values: Sequence[float], what: str) -> list[float]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        advice = "" if values is None else f"; write [{values}] for one alone"
        raise ValueError(f"{what} must be a sequence of numbers, got {short(values)}{advice}")
    found = list(values)
    if not found:
        raise ValueError(f"{what} must be a sequence of at least one number, got none")
    return found


def potential_agreements(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
) -> tuple[list[tuple[int, ...]], NDArray[np.float64]]:
    """Return all feature subsets within a budget and the maximum potential agreement of each.

    Parameters
    ----------
    classifier : BayesianClassifier
        Small enough for the dense engine.
    budget : float
        Largest sum of costs, 0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature.

    Returns
    -------
    subsets : list of tuples of int
        Positions of the features, the empty subset among them.
    agreements : ndarray of shape (n_subsets,)
        For naive Bayes the maximum achievable agreement, too (Proposition 3).
    """
    price = checked_costs(checked_classifier(classifier).features, costs)
    found = list(_sweep(classifier, DenseEngine.build(classifier), price, checked_budget(budget)))
    return [kept for kept, _, _ in found], np.array([value for _, _, value in found])


def _sweep(
    classifier: BayesianClassifier, engine: DenseEngine, costs: Sequence[float], budget: float
) -> Iterator[tuple[tuple[int, ...], float, float]]:
    """Yield each subset within the budget with its cost and its maximum potential agreement."""
    for batch in subset_batches(engine.root, costs, budget):
        _, _, signed = batch.instances(classifier)
        potential = 0.5 * (1.0 + np.abs(signed).sum(axis=1))
        for kept, cost, value in zip(batch.kept.tolist(), batch.costs.tolist(), potential.tolist(), strict=True):
            yield tuple(sorted(kept)), cost, value


def _best_of_each(
    classifier: BayesianClassifier,
    engine: DenseEngine,
    candidates: list[tuple[float, float, tuple[int, ...]]],
    limits: Sequence[float],
) -> list[Trimming]:
    """Take candidates by decreasing bound until no budget can gain from the next."""
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
