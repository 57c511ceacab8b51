"""Exact expectations of trees against sums over all completions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from trimbench.estimators import tree_kernels, trees
from trimbench.estimators.densities.density import responsibilities
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.products import ProductMixture
from trimbench.estimators.trees import Forest


def enumerated(classifier: Any, density: ProductMixture, row: Any) -> Any:
    """Return the expectation by a sum over all values of what is hidden, one component after another."""
    margins = density.margins
    hidden = np.flatnonzero(np.isnan(row))
    shares = responsibilities(density, row[None])[0]
    values, chances = [], []
    for feature in hidden:
        distinct, counts = np.unique(margins.quantiles[feature], return_counts=True)
        bins = margins.bins(np.where(np.arange(len(row)) == feature, distinct[:, None], np.nan))[:, feature]
        within = counts / np.diff(margins.starts[feature])[bins]
        values.append(distinct)
        chances.append(within[:, None] * density.tables[margins.offsets[feature] + bins])
    completions = np.tile(row, (int(np.prod([len(one) for one in values])), 1))
    completions[:, hidden] = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(len(completions), -1)
    weights = np.ones((1, density.n_components))
    for of_feature in chances:
        weights = (weights[:, None, :] * of_feature[None]).reshape(-1, density.n_components)
    return (weights @ shares) @ classifier.predict_proba(completions)


def drawn(rng: np.random.Generator, n_rows: int) -> tuple[Any, Any]:
    """Draw rows of numbers with many values, few values and many zeros, and classes."""
    X = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, 5))
    X[:, 1] = np.round(2 * X[:, 1])
    X[:, 3] = np.maximum(X[:, 3], 0.0)
    return X, rng.integers(0, 3, n_rows)


def classifiers(seed: int) -> Any:
    """Return one of the kinds of classifiers that are trees."""
    tree = DecisionTreeClassifier(max_depth=4, random_state=seed)
    return [
        tree,
        ExtraTreeClassifier(random_state=seed),
        RandomForestClassifier(5, random_state=seed),
        ExtraTreesClassifier(5, random_state=seed),
        BaggingClassifier(tree, 4, max_features=0.6, bootstrap_features=True, max_samples=8, random_state=seed),
        RandomForestClassifier(3, max_leaf_nodes=6, class_weight="balanced", random_state=seed),
    ][seed % 6]


@pytest.mark.parametrize("seed", range(200))
def test_the_expectation_of_trees_is_the_sum_over_all_completions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    # There are as many completions of three hidden numbers as the cube of the rows.
    X, y = drawn(rng, int(rng.integers(20, 40)))
    classifier = classifiers(seed).fit(X, y)
    density = ProductMixture(int(rng.integers(1, 4))).fit(X, Margins.of(X, [0] * 5), seed)
    rows = drawn(rng, 4)[0]
    for row, hidden in zip(rows, rng.integers(1, 4, len(rows)), strict=True):
        row[rng.choice(5, hidden, replace=False)] = np.nan
    forest = Forest.of(classifier)
    assert forest is not None
    expected = np.array([enumerated(classifier, density, row) for row in rows])
    if seed % 3:
        monkeypatch.setattr(trees, "_MANY", 0)  # compiled: rows walk, or are swept
        monkeypatch.setattr(trees, "_SWEPT_IN_A_WALK", [0, np.inf][seed % 3 - 1])
    found = forest.expected(density, rows)
    assert np.abs(found - expected).max() < 1e-12
    monkeypatch.setattr(trees, "_SHARES", 50)  # in parts
    assert np.abs(Forest.of(classifier).expected(density, rows) - expected).max() < 1e-12


def test_bounds_of_compiled_and_plain_paths_are_the_same() -> None:
    rng = np.random.default_rng(0)
    X, y = drawn(rng, 500)
    forest = Forest.of(RandomForestClassifier(10, random_state=0).fit(X, y))
    own = np.arange(2, len(forest.features) + 2)
    arrays = (forest.roots, forest.features, forest.left, forest.right, own, 5)
    for one, other in zip(trees.path_bounds(*arrays), tree_kernels.path_bounds(*arrays), strict=True):
        inner = forest.features >= 0
        assert (one[inner] == other[inner]).all()


@pytest.mark.parametrize("in_a_walk", [0, np.inf])
def test_deep_trees_have_room(in_a_walk: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # One threshold after another, with everything missing: as many waiting nodes as the tree is deep.
    X = np.arange(300.0)[:, None]
    classifier = ExtraTreeClassifier(random_state=0, max_features=1).fit(X, np.arange(300) % 2)
    density = ProductMixture(1).fit(X, Margins.of(X, [0]), 0)
    row = np.array([np.nan])
    monkeypatch.setattr(trees, "_MANY", 0)
    monkeypatch.setattr(trees, "_SWEPT_IN_A_WALK", in_a_walk)
    found = Forest.of(classifier).expected(density, np.stack([row, row]))
    assert found == pytest.approx(np.stack([enumerated(classifier, density, row)] * 2), abs=1e-12)


@pytest.mark.parametrize("name", ["add_walked", "add_swept"])
def test_compiled_passes_of_many_rows_are_the_plain_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # More rows than are walked or swept at once, pure and mixed leaves, and components that count in few rows.
    rng = np.random.default_rng(1)
    X, y = drawn(rng, 300)
    for classifier in (RandomForestClassifier(4, random_state=0), RandomForestClassifier(4, max_leaf_nodes=9)):
        forest = Forest.of(classifier.fit(X, y))
        density = ProductMixture(6).fit(X, Margins.of(X, [0] * 5), 0)
        rows = drawn(rng, 700)[0]
        rows[rng.random(rows.shape) < 0.5] = np.nan
        monkeypatch.setattr(trees, "_MANY", 10**9)
        plain = forest.expected(density, rows)
        monkeypatch.setattr(trees, "_MANY", 0)
        monkeypatch.setattr(trees, "_SWEPT_IN_A_WALK", 0 if name == "add_walked" else np.inf)
        assert np.abs(forest.expected(density, rows) - plain).max() < 1e-12


def test_as_many_nodes_are_visited_as_rows_can_get_to() -> None:
    X = np.array([[0.0], [1.0], [2.0]])
    forest = Forest.of(DecisionTreeClassifier().fit(X, [0, 1, 2]))  # one split after the other
    arrays = (forest.roots, forest.features, forest.thresholds, forest.left, forest.right)
    of_first = tree_kernels.n_visits(*arrays, np.array([[0.0]], dtype=np.float32))
    of_second = tree_kernels.n_visits(*arrays, np.array([[2.0]], dtype=np.float32))
    assert of_first + of_second == 3
    assert tree_kernels.n_visits(*arrays, np.array([[np.nan]], dtype=np.float32)) == 2


def test_other_classifiers_are_no_forests() -> None:
    X, y = drawn(np.random.default_rng(0), 50)
    several = np.column_stack([y, y])
    assert Forest.of(LogisticRegression().fit(X, y)) is None
    assert Forest.of(BaggingClassifier(LogisticRegression(), 2).fit(X, y)) is None
    assert Forest.of(DecisionTreeClassifier().fit(X, several)) is None
