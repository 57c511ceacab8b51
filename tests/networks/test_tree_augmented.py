"""Tree-augmented naive Bayes: the best tree by enumeration, probabilities by counting."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.trimming import brute_force


def sample(seed: int, n_features: int = 4, n_rows: int = 120) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    target = pd.Series(rng.choice(["no", "yes"], size=n_rows), name="ill")
    columns: dict[str, np.ndarray] = {}
    for i in range(n_features):
        base = columns[f"x{rng.integers(i)}"] if i else rng.integers(0, 3, size=n_rows).astype(str)
        noise = rng.random(n_rows) < 0.4
        columns[f"x{i}"] = np.where(noise, rng.integers(0, 2 + i % 2, size=n_rows).astype(str), base)
    return pd.DataFrame(columns).astype("category"), target


def information(features: pd.DataFrame, target: pd.Series, one: str, other: str) -> float:
    """Return I(one; other | class) by the definition."""
    total = 0.0
    values = pd.concat([target, features[[one, other]]], axis=1).astype(str)
    for (c, a, b), count in Counter(values.itertuples(index=False, name=None)).items():
        rows = target == c
        both, of_class = count / len(target), rows.sum() / len(target)
        first = (rows & (features[one].astype(str) == a)).sum() / len(target)
        second = (rows & (features[other].astype(str) == b)).sum() / len(target)
        total += both * np.log(both * of_class / (first * second))
    return total


def trees(names: list[str]) -> Iterator[list[tuple[str, str]]]:
    for edges in itertools.combinations(itertools.combinations(names, 2), len(names) - 1):
        joined = {name: {name} for name in names}
        for one, other in edges:
            union = joined[one] | joined[other]
            joined |= dict.fromkeys(union, union)
        if len(joined[names[0]]) == len(names):
            yield list(edges)


@pytest.mark.parametrize("seed", range(8))
def test_no_tree_has_more_information(seed: int) -> None:
    features, target = sample(seed)
    network = tb.learn(features, target, structure="tree")
    names = list(features.columns)
    assert network.parents("ill") == ()
    found = [(node, parent) for node in names for parent in network.parents(node) if parent != "ill"]
    assert all("ill" in network.parents(node) for node in names)
    assert [node for node in names if len(network.parents(node)) == 1] == ["x0"]
    weights = {pair: information(features, target, *pair) for pair in itertools.permutations(names, 2)}
    best = max(sum(weights[edge] for edge in tree) for tree in trees(names))
    assert sum(weights[edge] for edge in found) == pytest.approx(best)


def test_probabilities_are_smoothed_frequencies() -> None:
    features, target = sample(3)
    network = tb.learn(features, target, smoothing=0.5, structure="tree")
    for node in features.columns:
        above = [parent for parent in network.parents(node) if parent != "ill"]
        for states in itertools.product(*(network.states(parent) for parent in network.parents(node))):
            rows = target == states[0]
            for parent, state in zip(above, states[1:], strict=True):
                rows &= features[parent] == state
            counts = np.array([(rows & (features[node] == value)).sum() for value in network.states(node)]) + 0.5
            index = tuple(network.states(p).index(s) for p, s in zip(network.parents(node), states, strict=True))
            np.testing.assert_allclose(network.table(node)[index], counts / counts.sum())


def test_a_sample_of_a_tree_is_learned_back() -> None:
    true = tb.learn(*sample(5), structure="tree")
    rows = true.sample(40_000, np.random.default_rng(0))
    learned = tb.learn(rows.drop(columns="ill"), rows["ill"], structure="tree")
    for node in true.nodes:
        assert set(learned.parents(node)) == set(true.parents(node))
        if learned.parents(node) == true.parents(node):
            np.testing.assert_allclose(learned.table(node), true.table(node), atol=0.06)


def test_missing_cells_are_left_out_of_the_counts_that_need_them() -> None:
    features, target = sample(1)
    holes = features.astype(object).mask(np.random.default_rng(0).random(features.shape) < 0.1)
    with pytest.raises(ValueError, match="must have no missing values"):
        tb.learn(holes, target, structure="tree")
    network = tb.learn(holes, target, missing="ignore", structure="tree")
    root_rows = holes["x0"].notna() & (target == "no")
    share = ((holes["x0"] == "0") & root_rows).sum() + 1.0
    n_values = network.cardinality("x0")
    assert network.table("x0")[0, 0] == pytest.approx(share / (root_rows.sum() + n_values))


def test_one_feature_and_equal_columns() -> None:
    features, target = sample(2)
    assert tb.learn(features[["x0"]], target, structure="tree").parents("x0") == ("ill",)
    constant = pd.DataFrame({"a": ["v"] * len(target), "b": ["w"] * len(target)})
    assert tb.learn(constant, target, structure="tree").parents("b") == ("ill", "a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smoothing": 0}, "smoothing must be positive for a tree-augmented model, got 0"),
        ({"smoothing": -1}, "smoothing must be a finite number >= 0, got -1"),
        ({"missing": "drop"}, "missing must be 'error' or 'ignore', got 'drop'"),
        ({"features": pd.DataFrame(index=range(120))}, "features must have at least one column, got none"),
        ({"features": pd.DataFrame(np.zeros((120, 2)), columns=["a", "a"])}, "target and features must be distinct"),
        ({"target": pd.Series(["a"])}, "features and target must have the same number of rows"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], message: str) -> None:
    features, target = sample(0)
    arguments = {"features": features, "target": target} | change
    with pytest.raises(ValueError, match=message):
        tb.learn(**arguments, structure="tree")  # type: ignore[call-overload]


def test_the_classifier_predicts_as_its_table_says() -> None:
    features, target = sample(4)
    network = tb.learn(features, target, structure="tree")
    classifier = tb.BayesianClassifier(network, "ill", positive="yes", features=list(features.columns))
    row = features.iloc[0]
    codes = tuple(network.states(name).index(str(row[name])) for name in features.columns)
    positive, negative = brute_force.whole(classifier)[codes]
    assert classifier.posterior(features.iloc[:1])[0] == pytest.approx(positive / (positive + negative))
