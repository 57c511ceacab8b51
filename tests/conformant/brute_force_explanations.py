"""Explanations by definition: every set of features, every completion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import trimbench as tb
from tests.conformant.brute_force import fake_classifier, instances, joint
from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.probabilistic import SetSearch

Array = NDArray[np.float64]
DELTAS = (0.6, 0.8, 0.9, 0.99, 1.0)
# Nearer than this to delta, rounding decides.
CLOSE = 1e-9


Model = tb.ConformantModel


def random_case(seed: int, most: int = 14) -> tuple[tb.ConformantModel, Array]:
    """Return a model of up to `most` features, some categorical, and a row of which some features may be missing."""
    return random_mixture(seed, most, 1)


def random_mixture(seed: int, most: int, n_components: int) -> tuple[Model, Array]:
    """As `random_case`, with a number of components."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, most + 1))
    n_categorical = int(rng.integers(0, min(3, n_features + 1))) if seed % 2 else 0
    n_classes = 2 if seed % 3 else 3
    n_rows = 40
    categorical = [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(n_categorical)]
    columns = [np.eye(3)[rng.permutation(np.arange(n_rows) % 3)] for _ in categorical]
    binary = rng.random((n_rows, n_features - n_categorical)) < rng.uniform(0.05, 0.95, n_features - n_categorical)
    X = np.hstack([*columns, binary.astype(float)])
    scale = rng.choice([0.3, 1.0, 3.0])
    weights, biases = rng.normal(0, scale, (X.shape[1], n_classes)), rng.normal(0, scale, n_classes)
    classifier = fake_classifier(weights, biases)
    model = tb.conform(classifier, X, categorical=categorical, n_components=n_components)
    row = X[0].copy()
    if seed % 5 == 0:
        for place in np.flatnonzero(rng.random(n_features) < 0.2):
            row[list(model.layout.features[place])] = np.nan
    return model, row


def agreeing(model: Model, rows: Array, row: Array) -> NDArray[np.int64]:
    """Return, bit by bit, in which features each row has the observed value."""
    mask = np.zeros(len(rows), dtype=np.int64)
    for place, columns in enumerate(model.layout.features):
        mask |= (rows[:, list(columns)] == row[list(columns)]).all(axis=1).astype(np.int64) << place
    return mask


def sums_over_supersets(amounts: Array, mask: NDArray[np.int64], n_features: int) -> Array:
    """Return, for each set of features, the sum of the amounts of all rows that agree in these features at least."""
    sums = np.bincount(mask, weights=amounts, minlength=2**n_features)
    for place in range(n_features):
        halves = sums.reshape(-1, 2, 2**place)
        halves[:, 0] += halves[:, 1]
    return np.asarray(sums)


def changed_probabilities(model: Model, row: Array, against: int | None = None) -> Array:
    """P(another class | the features of the set) for each set, by its bits; NaN for sets with a missing feature."""
    rows = instances(model)
    chances, scores = joint(model, rows).sum(axis=1), model.decision_scores(rows)
    winner = int(model.decision_scores(row[None])[0].argmax())
    if against is None:
        changed = scores.argmax(axis=1) != winner
    else:
        other = scores[:, against]
        changed = other > scores[:, winner] if winner < against else other >= scores[:, winner]
    n_features, mask = model.layout.n_features, agreeing(model, rows, row)
    total = sums_over_supersets(chances, mask, n_features)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums_over_supersets(chances * changed, mask, n_features) / total


def smallest_sets(changed: Array, delta: float, n_features: int) -> set[frozenset[int]] | None:
    """Return all smallest sets that reach delta; None if rounding decides which do."""
    known = ~np.isnan(changed)
    if delta < 1 and (np.abs(changed[known] - (1 - delta)) < CLOSE).any():
        return None
    reaching = np.flatnonzero(known & (changed <= 1 - delta))
    sets = [frozenset(i for i in range(n_features) if bits >> i & 1) for bits in reaching.tolist()]
    smallest = min(map(len, sets), default=0)
    return {one for one in sets if len(one) == smallest}


def compare(seed: int, most: int = 14, n_components: int = 1) -> int:
    """Compare `explain` with all sets, for each delta; return how many comparisons rounding has not spoiled."""
    model, row = random_mixture(seed, most, n_components)
    n_features, compared = model.layout.n_features, 0
    winner = int(model.decision_scores(row[None])[0].argmax())
    rival = (winner + 1) % len(model.classes)
    for against in {None, rival}:
        changed = changed_probabilities(model, row, against)
        for delta in DELTAS:
            expected = smallest_sets(changed, delta, n_features)
            if expected is None:
                continue
            compared += 1
            label = None if against is None else model.classes[against]
            found = model.explain(row, label, delta=delta, max_sets=10_000)
            assert found.complete, (seed, delta)
            assert {frozenset(one) for one in found.sets} == expected, (seed, delta, against)
            assert len(found.sets) == len(expected), (seed, delta)
            if expected:
                assert found.optimal, (seed, delta)
                kept = 1 - changed[sum(1 << i for i in found.features)]
                assert 0.0 <= found.probability[0] <= found.probability[1] <= 1.0, (seed, delta)
                assert found.probability[0] - CLOSE <= kept <= found.probability[1] + CLOSE, (seed, delta)
    return compared


def compare_search(seed: int, most: int = 14, n_components: int = 1) -> int:
    """Compare the search for many features with all sets; return how many searches proved their set smallest."""
    model, row = random_mixture(seed, most, n_components)
    n_features, proven = model.layout.n_features, 0
    winner = int(model.decision_scores(row[None])[0].argmax())
    rivals = tuple(k for k in range(len(model.classes)) if k != winner)[: 1 + seed % 2]
    changed = changed_probabilities(model, row, rivals[0] if len(rivals) < len(model.classes) - 1 else None)
    problem = DecisionProblem.of(model, row, winner, rivals)
    for delta in DELTAS[:-1]:
        expected = smallest_sets(changed, delta, n_features)
        if expected is None:
            continue
        found, _ = SetSearch(problem, delta, 300).run(1000)
        smallest = len(next(iter(expected))) if expected else n_features + 1
        assert found.size_lower_bound <= smallest, (seed, delta)
        for one in found.sets:
            assert changed[sum(1 << i for i in one)] <= 1 - delta, (seed, delta)
        is_optimal = bool(found.sets) and len(found.sets[0]) <= found.size_lower_bound
        if is_optimal:
            assert len(found.sets[0]) == smallest, (seed, delta)
        if found.complete:
            assert {frozenset(one) for one in found.sets} == expected, (seed, delta)
        proven += is_optimal or found.complete
    return proven
