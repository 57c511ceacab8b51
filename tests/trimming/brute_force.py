"""The definitions of the paper, instance by instance: slow, obvious twins of the engines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import trimbench as tb

TOLERANCE = 1e-12


def instances(classifier: tb.BayesianClassifier, features: Sequence[int]) -> dict[tuple[int, ...], tuple[float, float]]:
    """Return Pr(c, f'), Pr(not c, f') for every instance of the features at the given positions."""
    if not classifier.is_naive_bayes:
        return network_instances(classifier, features)
    table = {}
    for values in itertools.product(*(range(classifier.cardinalities[i]) for i in features)):
        joint = [float(p) for p in classifier.prior]
        for i, value in zip(features, values, strict=True):
            joint = [joint[side] * float(classifier.tables[i][side, value]) for side in (0, 1)]
        table[values] = (joint[0], joint[1])
    return table


def network_instances(
    classifier: tb.BayesianClassifier, features: Sequence[int]
) -> dict[tuple[int, ...], tuple[float, float]]:
    """Sum the product of all conditional tables over every joint state of the network."""
    network = classifier.model
    states = [range(network.cardinality(node)) for node in network.nodes]
    place = {node: i for i, node in enumerate(network.nodes)}
    names = [classifier.features[i] for i in features]
    table = {
        values: [0.0, 0.0] for values in itertools.product(*(range(classifier.cardinalities[i]) for i in features))
    }
    for state in itertools.product(*states):
        probability = 1.0
        for node in network.nodes:
            parents = tuple(state[place[parent]] for parent in network.parents(node))
            probability *= float(network.table(node)[(*parents, state[place[node]])])
        is_positive = network.states(classifier.target)[state[place[classifier.target]]] == classifier.positive
        table[tuple(state[place[name]] for name in names)][0 if is_positive else 1] += probability
    return {values: (joint[0], joint[1]) for values, joint in table.items()}


def positive(joint: tuple[float, float], threshold: float) -> bool:
    """Return Pr(c | f) >= T, with odds equal up to rounding counted as equal."""
    return joint[0] * (1 - threshold) >= joint[1] * threshold * (1 - TOLERANCE)


def same_decision_probabilities(
    classifier: tb.BayesianClassifier, features: Sequence[int], threshold: float
) -> list[tuple[float, float]]:
    """Return Pr(f') and SDP_{C,T,T'}(F minus F' | f') (Definition 5) of every instance f' that is possible."""
    full = instances(classifier, range(classifier.n_features))
    found = []
    for seen, joint in instances(classifier, features).items():
        mass = sum(joint)
        if mass == 0:
            continue
        rest = [(values, other) for values, other in full.items() if tuple(values[i] for i in features) == seen]
        same = [
            sum(other) / mass
            for _, other in rest
            if positive(other, classifier.threshold) == positive(joint, threshold)
        ]
        found.append((mass, sum(same)))
    return found


def expected_agreement(classifier: tb.BayesianClassifier, features: Sequence[int], threshold: float) -> float:
    """Definition 2."""
    part = instances(classifier, features)
    total = 0.0
    for values, joint in instances(classifier, range(classifier.n_features)).items():
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
    for values, joint in instances(classifier, range(classifier.n_features)).items():
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

    def rows(cardinality: int) -> np.ndarray:
        if not coarse:
            return rng.dirichlet(np.ones(cardinality), size=2)
        weights = rng.integers(0, 4, size=(2, cardinality)).astype(float)
        weights[:, 0] += weights.sum(axis=1) == 0
        return weights / weights.sum(axis=1, keepdims=True)

    prior = np.array([0.5, 0.5]) if coarse else rng.dirichlet([2.0, 2.0])
    model = tb.NaiveBayes(prior, [rows(cardinality) for cardinality in cardinalities])
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
    tables = {}
    for name in names:
        shape = tuple(cardinality[parent] for parent in parents[name])
        if coarse:
            weights = rng.integers(0, 3, size=(*shape, cardinality[name])).astype(float)
            weights[..., 0] += weights.sum(axis=-1) == 0
            tables[name] = weights / weights.sum(axis=-1, keepdims=True)
        else:
            tables[name] = rng.dirichlet(np.ones(cardinality[name]), size=shape)
    states = {name: [str(value) for value in range(cardinality[name])] for name in names}
    network = tb.BayesianNetwork(states, parents, tables)
    features = [f"f{i}" for i in range(n_features)]
    return tb.BayesianClassifier(network, "c", positive="1", features=features, threshold=threshold)
