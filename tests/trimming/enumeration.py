"""The definitions of the paper for any Bayesian network, by going through all instances of all its nodes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import trimbench as tb

from ..networks.random_models import distributions
from .brute_force import positive

Joint = dict[tuple[int, ...], tuple[float, float]]


def joint(network: tb.BayesianNetwork, target: str, state: str, features: Sequence[str]) -> Joint:
    """Return Pr(c, f), Pr(not c, f) for every instance of the features."""
    table: dict[tuple[int, ...], list[float]] = {}
    for values in itertools.product(*(range(network.cardinality(node)) for node in network.nodes)):
        at = dict(zip(network.nodes, values, strict=True))
        mass = 1.0
        for node in network.nodes:
            mass *= float(network.table(node)[(*(at[parent] for parent in network.parents(node)), at[node])])
        side = 0 if network.states(target)[at[target]] == state else 1
        table.setdefault(tuple(at[node] for node in features), [0.0, 0.0])[side] += mass
    return {values: (pair[0], pair[1]) for values, pair in table.items()}


def part(whole: Joint, features: Sequence[int]) -> Joint:
    """Return the joint probabilities of a subset of the features, given by position."""
    table: dict[tuple[int, ...], tuple[float, float]] = {}
    for values, pair in whole.items():
        kept = tuple(values[i] for i in features)
        seen = table.get(kept, (0.0, 0.0))
        table[kept] = (seen[0] + pair[0], seen[1] + pair[1])
    return table


def expected_agreement(whole: Joint, threshold: float, features: Sequence[int], other: float) -> float:
    """Definition 2."""
    seen = part(whole, features)
    return sum(
        sum(pair)
        for values, pair in whole.items()
        if positive(pair, threshold) == positive(seen[tuple(values[i] for i in features)], other)
    )


def achievable_agreement(whole: Joint, threshold: float, features: Sequence[int]) -> float:
    """Definition 3."""
    posteriors = {pair[0] / sum(pair) for pair in part(whole, features).values() if sum(pair) > 0}
    return max(expected_agreement(whole, threshold, features, other) for other in (0.0, *posteriors, 1.0))


def potential_agreement(whole: Joint, threshold: float, features: Sequence[int]) -> float:
    """Definition 4."""
    masses: dict[tuple[int, ...], list[float]] = {}
    for values, pair in whole.items():
        side = 0 if positive(pair, threshold) else 1
        masses.setdefault(tuple(values[i] for i in features), [0.0, 0.0])[side] += sum(pair)
    return sum(max(pair) for pair in masses.values())


def random_network(rng: np.random.Generator) -> tuple[tb.BayesianNetwork, str, tuple[str, ...]]:
    """Return a network with zeros and determinism, a binary node, and some of the others as features."""
    order = [f"v{i}" for i in range(int(rng.integers(3, 7)))]
    sizes = {node: int(rng.choice([1, 2, 2, 2, 3, 4])) for node in order}
    target = str(rng.choice(order))
    sizes[target] = 2
    parents = {node: [other for other in order[:i] if rng.random() < 0.5][:3] for i, node in enumerate(order)}
    tables = {}
    for node in order:
        shape = tuple(sizes[other] for other in (*parents[node], node))
        table = distributions(rng, shape, coarse=bool(rng.random() < 0.6))
        certain = np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
        tables[node] = np.where(rng.random((*shape[:-1], 1)) < rng.choice([0.0, 0.3, 1.0]), certain, table)
    nodes = [str(node) for node in rng.permutation(order)]
    network = tb.BayesianNetwork({node: [f"s{i}" for i in range(sizes[node])] for node in nodes}, parents, tables)
    others = [node for node in nodes if node != target]
    return network, target, tuple(others[: int(rng.integers(0, len(others) + 1))])
