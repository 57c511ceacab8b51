"""The definitions of the paper, instance by instance: slow, obvious twins of the engines, also with fractions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import trimbench as tb
from tests.networks.random_models import distributions, random_network
from trimbench.trimming.problem import Choice, checked_choice

# Odds closer than this are equal.
TIE, EXACT_TIE = 1e-12, Fraction(1, 10**12)
# Pr(class, instance) of each class, all of one type of number.
Joint = dict[tuple[int, ...], tuple[Any, ...]]
# Pr(instance, decision) of each decision of the original that occurs.
Decided = dict[tuple[int, ...], dict[int, Any]]


def network_of(classifier: tb.BayesianClassifier) -> tb.BayesianNetwork:
    model = classifier.model
    return model if isinstance(model, tb.BayesianNetwork) else model.to_network()


@functools.lru_cache(maxsize=4)
def whole(classifier: tb.BayesianClassifier) -> Joint:
    """Sum the product of all tables over every state of the network: Pr(class, f | e) of all features."""
    network = network_of(classifier)
    states = [classifier.positive_states, classifier.negative_states]
    if classifier.threshold is None:
        states = [(name,) for name in classifier.class_names]
    class_of = {state: place for place, names in enumerate(states) for state in names}
    table: dict[tuple[int, ...], list[float]] = {}
    for values in itertools.product(*(range(network.cardinality(node)) for node in network.nodes)):
        at = dict(zip(network.nodes, values, strict=True))
        if any(network.states(node)[at[node]] != state for node, state in classifier.evidence.items()):
            continue
        mass = math.prod(
            float(network.table(node)[(*(at[parent] for parent in network.parents(node)), at[node])])
            for node in network.nodes
        )
        masses = table.setdefault(tuple(at[name] for name in classifier.features), [0.0] * len(states))
        masses[class_of[network.states(classifier.target)[at[classifier.target]]]] += mass
    total = sum(map(sum, table.values())) if classifier.evidence else 1.0
    return {values: tuple(mass / total for mass in masses) for values, masses in table.items()}


def part(joint: Joint, features: Sequence[int]) -> Joint:
    """Return Pr(class, f') for every instance of the features at the given positions."""
    table: Joint = {}
    for values, masses in joint.items():
        kept = tuple(values[i] for i in features)
        table[kept] = tuple(map(sum, zip(table[kept], masses, strict=True))) if kept in table else masses
    return table


def instances(classifier: tb.BayesianClassifier, features: Sequence[int]) -> Joint:
    return _decided_parts(classifier, tuple(features))[0]


def positive(joint: Sequence[Any], threshold: Any) -> bool:
    """Return Pr(c | f) >= T, with odds equal up to rounding counted as equal."""
    tie = EXACT_TIE if isinstance(threshold, Fraction) else TIE
    return bool(joint[0] * (1 - threshold) >= joint[1] * threshold * (1 - tie))


def decision(masses: Sequence[Any], threshold: Any) -> int:
    """Return the position of the class that is given: the first of the most probable ones without a threshold."""
    if threshold is None:
        return next(k for k, mass in enumerate(masses) if mass >= max(masses) * (1 - TIE))
    return 0 if positive(masses, threshold) else 1


def same_decision_probabilities(
    classifier: tb.BayesianClassifier, features: Sequence[int], threshold: float
) -> list[tuple[float, float]]:
    """Return Pr(f') and SDP_{C,T,T'}(F minus F' | f') (Definition 5) of every instance f' that is possible."""
    found: list[tuple[float, float]] = []
    for seen, joint in instances(classifier, features).items():
        mass = sum(joint)
        if mass == 0:
            continue
        rest = [pair for values, pair in whole(classifier).items() if tuple(values[i] for i in features) == seen]
        decision = positive(joint, threshold)
        same = [sum(pair) / mass for pair in rest if positive(pair, classifier.threshold) == decision]
        found.append((mass, sum(same)))
    return found


def decisions(joint: Joint, threshold: Any) -> dict[tuple[int, ...], int]:
    return {values: decision(masses, threshold) for values, masses in joint.items()}


@functools.lru_cache(maxsize=4)
def original(classifier: tb.BayesianClassifier) -> dict[tuple[int, ...], int]:
    return decisions(whole(classifier), classifier.threshold)


def by_decision(joint: Joint, features: Sequence[int], decided: dict[tuple[int, ...], int]) -> Decided:
    """Return Pr(f', d(f)) for every instance of some features and each decision d(f) of the original."""
    sums: Decided = {}
    for values, masses in joint.items():
        of_class = sums.setdefault(tuple(values[i] for i in features), {})
        of_class[decided[values]] = of_class.get(decided[values], 0) + sum(masses)
    return sums


def agreement(seen: Joint, decided: Decided, threshold: Any) -> Any:
    """Definition 2, for the instances of the features that are kept."""
    return sum(decided[values].get(k, 0) for values, k in decisions(seen, threshold).items())


def potential(decided: Decided) -> Any:
    """Definition 4, for the instances of the features that are kept."""
    return sum(max(of_class.values()) for of_class in decided.values())


@functools.lru_cache(maxsize=1024)
def _decided_parts(classifier: tb.BayesianClassifier, features: tuple[int, ...]) -> tuple[Joint, Decided]:
    joint = whole(classifier)
    return part(joint, features), by_decision(joint, features, original(classifier))


def expected_agreement(
    classifier: tb.BayesianClassifier, features: Sequence[int], threshold: float | None = None
) -> float:
    return float(agreement(*_decided_parts(classifier, tuple(features)), threshold))


def candidate_thresholds(classifier: tb.BayesianClassifier, features: Sequence[int]) -> list[float]:
    """Return one threshold for each way to cut the posteriors of the instances of a subset."""
    posteriors = sorted({j[0] / sum(j) for j in instances(classifier, features).values() if sum(j) > 0})
    return [0.0, *posteriors, 1.0]


def achievable_agreement(classifier: tb.BayesianClassifier, features: Sequence[int]) -> float:
    """Definition 3: every threshold that can make a difference."""
    return max(expected_agreement(classifier, features, t) for t in candidate_thresholds(classifier, features))


def potential_agreement(classifier: tb.BayesianClassifier, features: Sequence[int]) -> float:
    return float(potential(_decided_parts(classifier, tuple(features))[1]))


def all_subsets(n: int, most: int | None = None) -> list[tuple[int, ...]]:
    """Return all subsets of n things, or those of at most so many."""
    sizes = range((n if most is None else min(n, most)) + 1)
    return [kept for size in sizes for kept in itertools.combinations(range(n), size)]


def affordable_subsets(costs: Sequence[float], budget: float) -> list[tuple[int, ...]]:
    """Return all subsets whose costs add up to at most the budget."""
    return [subset for subset in all_subsets(len(costs)) if sum(costs[i] for i in subset) <= budget + 1e-9]


def allowed_subsets(choice: Choice) -> list[tuple[int, ...]]:
    """Return the features of all sets of units that a choice allows."""
    found = [choice.features(units) for units in affordable_subsets(choice.costs, choice.budget)]
    return [kept for kept in found if choice.required <= set(kept)]


def random_options(rng: np.random.Generator, names: Sequence[str]) -> dict[str, Any]:
    """Return a budget, costs, a group, required and forbidden features, as `trim` takes them; some are left out."""
    order = [str(name) for name in rng.permutation(names)]
    groups = {"g": order[: int(rng.integers(1, len(order) + 1))]} if rng.random() < 0.4 else {}
    units = [*groups, *(name for name in names if name not in groups.get("g", ()))]
    costs = [1.0] * len(units) if rng.random() < 0.5 else rng.choice([0.0, 0.5, 1.0, 2.0], len(units)).tolist()
    options: dict[str, Any] = {
        "budget": 0.5 * int(rng.integers(0, int(2 * sum(costs)) + 1)),
        "costs": dict(zip(units, costs, strict=True)),
        "groups": groups,
        "required": order[-1:] if rng.random() < 0.3 else [],
        "forbidden": order[:1] if len(order) > 1 and rng.random() < 0.3 else [],
    }
    try:
        checked_choice(names, **options)
    except ValueError:  # what is required costs more than the budget
        return random_options(rng, names)
    return options


def frame_of(classifier: tb.BayesianClassifier, codes: Any) -> pd.DataFrame:
    """Return rows of value indices as a table of the names of the values."""
    named = [[names[code] for names, code in zip(classifier.value_names, row, strict=True)] for row in codes]
    return pd.DataFrame(named, columns=list(classifier.features), index=range(len(named)))


def random_classifier(
    rng: np.random.Generator, cardinalities: Sequence[int], threshold: float, *, coarse: bool = False
) -> tb.BayesianClassifier:
    """Return a random naive Bayes classifier; `coarse` makes ties and zero probabilities common."""
    prior = np.array([0.5, 0.5]) if coarse else rng.dirichlet([2.0, 2.0])
    tables = [distributions(rng, (2, cardinality), coarse=coarse) for cardinality in cardinalities]
    model = tb.NaiveBayes(prior, tables)
    return tb.BayesianClassifier(model, positive="0", threshold=threshold)


def beta_classifier(n_features: int, concentration: float) -> tb.BayesianClassifier:
    """Return naive Bayes with probabilities from Beta(concentration, concentration)."""
    chances = np.random.default_rng(0).beta(concentration, concentration, size=(n_features, 2))
    model = tb.NaiveBayes([0.4, 0.6], [np.stack([both, 1 - both], axis=1) for both in chances])
    return tb.BayesianClassifier(model, positive="0")


def random_network_classifier(
    rng: np.random.Generator, n_features: int, threshold: float, *, coarse: bool = False
) -> tb.BayesianClassifier:
    """Return a classifier on a random network with a hidden node, dependent features and up to 3 values each."""
    names = ["c", "h", *(f"f{i}" for i in range(n_features))]
    cardinality = {name: 2 if name == "c" else int(rng.integers(2, 4)) for name in names}
    parents = {
        name: [str(parent) for parent in rng.choice(names[:i], size=rng.integers(0, min(i, 3) + 1), replace=False)]
        for i, name in enumerate(names)
    }
    network = random_network(rng, parents, cardinality, coarse=coarse)
    return tb.BayesianClassifier(network, "c", positive="1", features=names[2:], threshold=threshold)


def tree_augmented(n_features: int, seed: int, *, coarse: bool = False) -> tb.BayesianClassifier:
    """Return a class with a random tree over the features."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(n_features)]
    parents = {"x0": ["c"]} | {
        name: ["c", names[int(rng.integers(max(0, i - 5), i))]] for i, name in enumerate(names) if i
    }
    tables = {"c": np.array([0.4, 0.6])} | {
        name: 0.2 + 0.6 * distributions(rng, (2,) * (len(parents[name]) + 1), coarse=coarse) for name in names
    }
    network = tb.BayesianNetwork(
        {name: ["0", "1"] for name in ("c", *names)},
        parents,
        {name: table / table.sum(axis=-1, keepdims=True) for name, table in tables.items()},
    )
    return tb.BayesianClassifier(network, "c", positive="1")
