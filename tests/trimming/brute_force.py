"""The definitions of the paper, instance by instance: slow, obvious twins of the engines."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

import trimbench as tb
from tests.networks.random_models import distributions

TOLERANCE = 1e-12
Joint = dict[tuple[int, ...], tuple[float, float]]


def network_of(classifier: tb.BayesianClassifier) -> tb.BayesianNetwork:
    model = classifier.model
    return model if isinstance(model, tb.BayesianNetwork) else model.to_network()


@functools.lru_cache(maxsize=4)
def whole(classifier: tb.BayesianClassifier) -> Joint:
    """Sum the product of all tables over every state of the network: Pr(c, f | e), Pr(not c, f | e) of all features."""
    network = network_of(classifier)
    table: dict[tuple[int, ...], list[float]] = {}
    for values in itertools.product(*(range(network.cardinality(node)) for node in network.nodes)):
        at = dict(zip(network.nodes, values, strict=True))
        if any(network.states(node)[at[node]] != state for node, state in classifier.evidence.items()):
            continue
        mass = math.prod(
            float(network.table(node)[(*(at[parent] for parent in network.parents(node)), at[node])])
            for node in network.nodes
        )
        side = 0 if network.states(classifier.target)[at[classifier.target]] in classifier.positive_states else 1
        table.setdefault(tuple(at[name] for name in classifier.features), [0.0, 0.0])[side] += mass
    total = sum(map(sum, table.values())) if classifier.evidence else 1.0
    return {values: (pair[0] / total, pair[1] / total) for values, pair in table.items()}


def instances(classifier: tb.BayesianClassifier, features: Sequence[int]) -> Joint:
    """Return Pr(c, f'), Pr(not c, f') for every instance of the features at the given positions."""
    table: Joint = {}
    for values, pair in whole(classifier).items():
        kept = tuple(values[i] for i in features)
        seen = table.get(kept, (0.0, 0.0))
        table[kept] = (seen[0] + pair[0], seen[1] + pair[1])
    return table


def positive(joint: tuple[float, float], threshold: float) -> bool:
    """Return Pr(c | f) >= T, with odds equal up to rounding counted as equal."""
    return joint[0] * (1 - threshold) >= joint[1] * threshold * (1 - TOLERANCE)


def same_decision_probabilities(
    classifier: tb.BayesianClassifier, features: Sequence[int], threshold: float
) -> list[tuple[float, float]]:
    """Return Pr(f') and SDP_{C,T,T'}(F minus F' | f') (Definition 5) of every instance f' that is possible."""
    found = []
    for seen, joint in instances(classifier, features).items():
        mass = sum(joint)
        if mass == 0:
            continue
        rest = [pair for values, pair in whole(classifier).items() if tuple(values[i] for i in features) == seen]
        decision = positive(joint, threshold)
        same = [sum(pair) / mass for pair in rest if positive(pair, classifier.threshold) == decision]
        found.append((mass, sum(same)))
    return found


def expected_agreement(classifier: tb.BayesianClassifier, features: Sequence[int], threshold: float) -> float:
    """Definition 2."""
    part = instances(classifier, features)
    total = 0.0
    for values, joint in whole(classifier).items():
        seen = part[tuple(values[i] for i in features)]
        if positive(joint, classifier.threshold) == positive(seen, threshold):
            total += sum(joint)
    return total


def candidate_thresholds(classifier: tb.BayesianClassifier, features: Sequence[int]) -> list[float]:
    """Return one threshold for each way to cut the posteriors of the instances of a subset."""
    posteriors = sorted({j[0] / sum(j) for j in instances(classifier, features).values() if sum(j) > 0})
    return [0.0, *posteriors, 1.0]


def achievable_agreement(classifier: tb.BayesianClassifier, features: Sequence[int]) -> float:
    """Definition 3: every threshold that can make a difference."""
    return max(expected_agreement(classifier, features, t) for t in candidate_thresholds(classifier, features))


def potential_agreement(classifier: tb.BayesianClassifier, features: Sequence[int]) -> float:
    """Definition 4."""
    masses = {values: [0.0, 0.0] for values in instances(classifier, features)}
    for values, joint in whole(classifier).items():
        side = 0 if positive(joint, classifier.threshold) else 1
        masses[tuple(values[i] for i in features)][side] += sum(joint)
    return sum(max(pair) for pair in masses.values())


def affordable_subsets(costs: Sequence[float], budget: float) -> list[tuple[int, ...]]:
    """Return all subsets whose costs add up to at most the budget."""
    return [
        subset
        for size in range(len(costs) + 1)
        for subset in itertools.combinations(range(len(costs)), size)
        if sum(costs[i] for i in subset) <= budget + 1e-9
    ]


def random_classifier(
    rng: np.random.Generator, cardinalities: Sequence[int], threshold: float, *, coarse: bool = False
) -> tb.BayesianClassifier:
    """Return a random naive Bayes classifier; `coarse` makes ties and zero probabilities common."""
    prior = np.array([0.5, 0.5]) if coarse else rng.dirichlet([2.0, 2.0])
    tables = [distributions(rng, (2, cardinality), coarse=coarse) for cardinality in cardinalities]
    model = tb.NaiveBayes(prior, tables)
    return tb.BayesianClassifier(model, positive="0", threshold=threshold)


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
    tables = {
        name: distributions(rng, tuple(cardinality[v] for v in (*parents[name], name)), coarse=coarse) for name in names
    }
    states = {name: [str(value) for value in range(cardinality[name])] for name in names}
    network = tb.BayesianNetwork(states, parents, tables)
    features = [f"f{i}" for i in range(n_features)]
    return tb.BayesianClassifier(network, "c", positive="1", features=features, threshold=threshold)
