"""Trimming: engines against each other and enumeration, and changes of a problem that must not change its answer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import trimbench as tb
from tests.networks.random_models import distributions
from tests.nightly.cases import Case, comparison
from tests.trimming import brute_force
from trimbench._extras import is_installed

_EXACT = 1e-10
_THRESHOLDS = (0.0, 0.05, 0.3, 0.5, 0.5, 0.8, 1.0)
_COSTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.5)
_BUDGETS = (0.0, 0.05, 0.3, 1.0, 1.7, 3.0, 100.0)


def _naive_bayes(case: Case, most: int, *, coarse: bool) -> tb.BayesianClassifier:
    n = int(case.rng.integers(1, most + 1))
    # Zeros and ones as thresholds make all instances ties of a kind: they have few decisions to compare.
    threshold = case.any_of(_THRESHOLDS) if coarse else case.rng.uniform(0.05, 0.95)
    cardinalities = case.rng.integers(2, 4, size=n).tolist()
    return brute_force.random_classifier(case.rng, cardinalities, threshold, coarse=coarse)


def _network(case: Case, most: int, *, coarse: bool) -> tb.BayesianClassifier:
    n = int(case.rng.integers(1, most + 1))
    threshold = case.any_of(_THRESHOLDS) if coarse else case.rng.uniform(0.05, 0.95)
    return brute_force.random_network_classifier(case.rng, n, threshold, coarse=coarse)


def _prices(case: Case, n: int) -> tuple[list[float], float]:
    return [case.any_of(_COSTS) for _ in range(n)], case.any_of(_BUDGETS)


def _check(case: Case, what: str, found: tb.Trimming, best: float) -> None:
    case.holds(f"{what} is optimal", found.optimal)
    case.equal(f"agreement of {what}", found.agreement, best, _EXACT)
    reached = tb.expected_agreement(found.original, found.features, found.threshold)
    case.equal(f"agreement that {what} reaches", reached, best, _EXACT)


@comparison("trimming")
def circuits(case: Case) -> None:
    """The engine of circuits against tables."""
    if not is_installed("pysdd"):
        return
    make = _network if case.chance() else _naive_bayes
    classifier = make(case, 6, coarse=case.chance())
    costs, budget = _prices(case, len(classifier.features))
    best = tb.trim(classifier, budget, costs, engine="dense").agreement
    _check(case, "sdd", tb.trim(classifier, budget, costs, engine="sdd"), best)


@comparison("trimming")
def larger_naive_bayes(case: Case) -> None:
    """Both engines and the curve of all budgets, where enumeration is too slow."""
    classifier = _naive_bayes(case, 11, coarse=case.chance(0.3))
    costs, _ = _prices(case, len(classifier.features))
    budgets = [0.3, 1.0, 3.0]
    for budget, best in zip(budgets, tb.trimming_curve(classifier, budgets, costs), strict=True):
        for engine in ("dense", "log_odds"):
            _check(case, engine, tb.trim(classifier, budget, costs, engine=engine), best.agreement)  # type: ignore[arg-type]


def _changed(case: Case, classifier: tb.BayesianClassifier) -> tuple[tb.BayesianClassifier, list[int]]:
    """Return a naive Bayes classifier with its features and their values in another order, and the new order."""
    model: Any = classifier.model
    order = case.rng.permutation(len(model.likelihoods)).tolist()
    tables = [case.rng.permutation(model.likelihoods[i], axis=1) for i in order]
    return tb.BayesianClassifier(
        tb.NaiveBayes(model.prior, tables), positive=classifier.positive, threshold=classifier.threshold
    ), order


@comparison("trimming")
def orders_and_names(case: Case) -> None:
    """Neither the order of the features nor that of their values matters, nor the unit of the costs."""
    classifier = _naive_bayes(case, 8, coarse=case.chance())
    costs, budget = _prices(case, len(classifier.features))
    best = tb.trim(classifier, budget, costs)
    changed, order = _changed(case, classifier)
    _check(case, "permuted", tb.trim(changed, budget, [costs[i] for i in order]), best.agreement)
    scaled = tb.trim(classifier, 4 * budget, [4 * cost for cost in costs])
    _check(case, "in another unit", scaled, best.agreement)


@comparison("trimming")
def classes_exchanged(case: Case) -> None:
    """P(c | f) >= T is P(not c | f) <= 1 - T: without ties, the agreement is the same."""
    make = _network if case.chance() else _naive_bayes
    classifier = make(case, 6, coarse=False)
    exchanged = tb.BayesianClassifier(
        classifier.model,
        classifier.target,
        positive=classifier.negative,
        features=classifier.features,
        threshold=1 - classifier.threshold,
    )
    costs, budget = _prices(case, len(classifier.features))
    best = tb.trim(classifier, budget, costs)
    found = tb.trim(exchanged, budget, costs)
    _check(case, "exchanged", found, best.agreement)


@comparison("trimming")
def groups(case: Case) -> None:
    """A feature costs what a group of it and a constant costs; groups of features are those that enumeration has."""
    classifier = _naive_bayes(case, 5, coarse=case.chance())
    model: Any = classifier.model
    n = len(model.likelihoods)
    costs, budget = _prices(case, n)
    best = tb.trim(classifier, budget, costs)
    tables = [*model.likelihoods, np.ones((2, 1))]
    wider = tb.BayesianClassifier(
        tb.NaiveBayes(model.prior, tables), positive=classifier.positive, threshold=classifier.threshold
    )
    price = {f"x{i}": cost for i, cost in enumerate(costs)}
    bought = {"test": costs[0], **{name: cost for name, cost in price.items() if name != "x0"}}
    found = tb.trim(wider, budget, bought, groups={"test": ["x0", f"x{n}"]})
    _check(case, "group with a constant", found, best.agreement)
    if n > 1:
        together = {"both": costs[0], **{f"x{i}": costs[i] for i in range(2, n)}}
        found = tb.trim(classifier, budget, together, groups={"both": ["x0", "x1"]})
        parts = [(0, 1), *((i,) for i in range(2, n))]
        chosen = brute_force.affordable_subsets(list(together.values()), budget)
        subsets = [tuple(itertools.chain.from_iterable(parts[i] for i in one)) for one in chosen]
        _check(case, "pair", found, max(brute_force.achievable_agreement(classifier, one) for one in subsets))


@comparison("trimming")
def required_and_forbidden(case: Case) -> None:
    """What must and what must not be kept against enumeration."""
    classifier = _naive_bayes(case, 5, coarse=case.chance())
    n = len(classifier.features)
    costs, budget = _prices(case, n)
    must, must_not = {int(case.rng.integers(n))}, {int(case.rng.integers(n))}
    must_not -= must
    if sum(costs[i] for i in must) > budget:
        return
    subsets = brute_force.affordable_subsets(costs, budget)
    allowed = [one for one in subsets if must <= set(one) and not must_not & set(one)]
    found = tb.trim(
        classifier,
        budget,
        costs,
        required=[classifier.features[i] for i in must],
        forbidden=[classifier.features[i] for i in must_not],
    )
    best = max(brute_force.achievable_agreement(classifier, one) for one in allowed)
    _check(case, "trim with constraints", found, best)


@comparison("trimming")
def stopped_and_resumed(case: Case) -> None:
    """A search that was stopped has a true bound, and goes on to the optimum."""
    make = _network if case.chance(0.3) else _naive_bayes
    classifier = make(case, 6, coarse=case.chance())
    costs, budget = _prices(case, len(classifier.features))
    best = tb.trim(classifier, budget, costs)
    stopped = tb.trim(classifier, budget, costs, evaluation_limit=int(case.rng.integers(1, 12)))
    case.holds("the bound of a stopped search", stopped.upper_bound >= best.agreement - _EXACT)
    case.holds("the agreement of a stopped search", stopped.agreement <= best.agreement + _EXACT)
    _check(case, "resumed", stopped.resume(), best.agreement)


@comparison("trimming")
def several_thresholds(case: Case) -> None:
    """Thresholds together and one by one."""
    make = _network if case.chance() else _naive_bayes
    classifier = make(case, 5, coarse=case.chance())
    costs, budget = _prices(case, len(classifier.features))
    levels = sorted(case.rng.uniform(0.02, 0.98, size=3).tolist())
    for level, found in zip(levels, tb.trimming_curve(classifier, [budget], costs, thresholds=levels), strict=True):
        _check(case, "one of several", found, tb.trim(classifier.with_threshold(level), budget, costs).agreement)


@comparison("trimming")
def naive_bayes_as_a_network(case: Case) -> None:
    """A leaf below a feature, which nobody observes, makes naive Bayes a network and changes nothing."""
    classifier = _naive_bayes(case, 6, coarse=case.chance())
    network = brute_force.network_of(classifier)
    leaf, above = "leaf", classifier.features[0]
    states = {node: network.states(node) for node in network.nodes} | {leaf: ("0", "1")}
    parents = {node: network.parents(node) for node in network.nodes} | {leaf: (above,)}
    tables = {node: network.table(node) for node in network.nodes}
    tables[leaf] = distributions(case.rng, (network.cardinality(above), 2), coarse=case.chance())
    wider = tb.BayesianClassifier(
        tb.BayesianNetwork(states, parents, tables),
        classifier.target,
        positive=classifier.positive,
        features=classifier.features,
        threshold=classifier.threshold,
    )
    costs, budget = _prices(case, len(classifier.features))
    _check(case, "network", tb.trim(wider, budget, costs), tb.trim(classifier, budget, costs).agreement)
