"""Expected probabilities of trees and forests under a mixture of products, in one pass down each tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.estimators.densities.density import responsibilities
from trimbench.estimators.densities.products import ProductMixture

# Shares that are kept at once, and rows times nodes from which on compiled loops pay off, which take a second to load.
_SHARES = 2**23
_MANY = 2**14
# Rows whose way is counted, and nodes that a row is swept through in the time in which it walks to one.
_SAMPLE, _SWEPT_IN_A_WALK = 64, 50
# Components with a smaller share of a row do not count.
_LEAST_SHARE = 1e-14


@dataclass(frozen=True, eq=False)
class Forest:
    """The mean of trees.

    Attributes
    ----------
    roots : ndarray of int, shape (n_trees + 1,)
        The first node of each tree, and the number of all nodes. They are in preorder: after each node come those to
        its left, then those to its right.
    features : ndarray of int, shape (n_nodes,)
        The feature that is compared; -1 in a leaf.
    thresholds : ndarray of shape (n_nodes,)
        Rows with at most this value go to the left.
    left, right : ndarray of int, shape (n_nodes,)
    values : ndarray of shape (n_nodes, n_classes)
        Probabilities of the classes.
    """

    roots: NDArray[np.int64]
    features: NDArray[np.int64]
    thresholds: Vector
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    values: Matrix

    @classmethod
    def of(cls, classifier: Any) -> Forest | None:
        """Return the forest of a fitted tree, forest or bagging of trees of scikit-learn; None for anything else."""
        trees = _trees(classifier)
        if trees is None:
            return None
        n_classes = len(classifier.classes_)
        roots = np.cumsum([0, *(tree.tree_.node_count for tree, _ in trees)])
        parts = [_nodes(tree, chosen, n_classes, root) for (tree, chosen), root in zip(trees, roots, strict=False)]
        return cls(roots, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots) - 1

    def expected(self, density: ProductMixture, rows: Matrix) -> Matrix:
        """Return the expectation of the probabilities given what is known of each row, shape (n_rows, n_classes)."""
        weights = responsibilities(density, rows)
        # The trees of scikit-learn compare numbers of 32 bits.
        with np.errstate(over="ignore"):
            narrow = rows.astype(np.float32)
        total = np.zeros((len(rows), self.values.shape[1]))
        for part, shares in self._parts(density):
            if len(rows) * len(part.features) >= _MANY:
                from trimbench.estimators import tree_kernels

                arrays = (part.roots, part.features, part.thresholds, part.left, part.right, part.values)
                add = tree_kernels.add_swept if part._sweeping_pays(narrow, weights) else tree_kernels.add_walked
                add(*arrays, shares, narrow, weights, _LEAST_SHARE, total)
            else:
                for root in part.roots[:-1].tolist():
                    _add_expected(part, shares, root, narrow, np.arange(len(rows)), weights, total)
        total /= self.n_trees
        return total

    def _sweeping_pays(self, rows: NDArray[np.float32], weights: Matrix) -> bool:
        """Return whether rows through all nodes, side by side, take less time than each to those that it gets to."""
        from trimbench.estimators import tree_kernels

        some = rows[:: -(-len(rows) // _SAMPLE)]
        arrays = (self.roots, self.features, self.thresholds, self.left, self.right)
        walked = tree_kernels.n_visits(*arrays, some) / len(some)
        swept = np.count_nonzero(self.features >= 0) * np.count_nonzero(weights > _LEAST_SHARE) / len(rows)
        return bool(swept < _SWEPT_IN_A_WALK * walked)

    def _parts(self, density: ProductMixture) -> Iterator[tuple[Forest, Matrix]]:
        """Yield parts of the forest with the shares of their nodes, which are kept if there is only one."""
        kept = vars(self).get("_kept")
        if kept is not None and kept[0] is density:
            yield self, kept[1]
            return
        n_nodes = np.diff(self.roots)
        groups = np.cumsum(n_nodes) * density.n_components // _SHARES
        for group in np.unique(groups):
            trees = np.flatnonzero(groups == group)
            part = self if len(trees) == self.n_trees else self._part(int(trees[0]), int(trees[-1]) + 1)
            shares = _left_shares(part, density)
            if part is self:
                vars(self)["_kept"] = density, shares  # frozen
            yield part, shares

    def _part(self, first: int, last: int) -> Forest:
        start, stop = self.roots[first], self.roots[last]
        own = slice(start, stop)
        inner = self.features[own] >= 0
        left, right = (np.where(inner, child[own] - start, -1) for child in (self.left, self.right))
        return Forest(
            self.roots[first : last + 1] - start,
            self.features[own],
            self.thresholds[own],
            left,
            right,
            self.values[own],
        )


def _trees(classifier: Any) -> list[tuple[Any, NDArray[np.intp] | None]] | None:
    """Return trees with the features that each has, None for all; None if these are not all trees of one output."""
    from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

    kinds = (DecisionTreeClassifier, ExtraTreeClassifier)
    if type(classifier) in kinds:
        trees: list[tuple[Any, NDArray[np.intp] | None]] = [(classifier, None)]
    elif type(classifier) in (RandomForestClassifier, ExtraTreesClassifier):
        trees = [(tree, None) for tree in classifier.estimators_]
    elif type(classifier) is BaggingClassifier and all(type(tree) in kinds for tree in classifier.estimators_):
        trees = list(zip(classifier.estimators_, classifier.estimators_features_, strict=True))
    else:
        return None
    return trees if all(tree.n_outputs_ == 1 for tree, _ in trees) else None


def _nodes(tree: Any, chosen: NDArray[np.intp] | None, n_classes: int, root: int) -> tuple[NDArray[Any], ...]:
    """Return features, thresholds, children and values of the nodes of a tree, in preorder."""
    inner = tree.tree_
    order = _preorder(inner.children_left, inner.children_right)
    place = np.empty_like(order)
    place[order] = np.arange(root, root + len(order))
    is_leaf = inner.children_left[order] < 0
    compared = inner.feature[order]
    features = (compared if chosen is None else np.asarray(chosen)[compared]).astype(np.int64)
    values = np.zeros((inner.node_count, n_classes))
    own = np.arange(n_classes) if inner.value.shape[2] == n_classes else tree.classes_.astype(np.intp)
    values[:, own] = inner.value[order, 0, :]
    left, right = (np.where(is_leaf, -1, place[child[order]]) for child in (inner.children_left, inner.children_right))
    return np.where(is_leaf, -1, features), inner.threshold[order].astype(np.float64), left, right, values


def _preorder(left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the nodes of a tree in the order of a walk to the left first; a tree grown best first has another."""
    inner = np.flatnonzero(left >= 0)
    if (left[inner] == inner + 1).all():
        return np.arange(len(left))
    waiting, order = [0], []
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += [int(right[node]), int(left[node])]
    return np.array(order)


def _left_shares(forest: Forest, density: ProductMixture) -> Matrix:
    """Return P(left | component, the way to the node, the feature is missing), shape (n_nodes, n_components)."""
    low, high, own, below = _bounds(forest, density)
    reach = below[high] - below[low]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = (below[own] - below[low]) / reach
    # Where a component never gets, its share does not matter.
    return np.where(reach > 0, np.clip(shares, 0.0, 1.0), 0.0)


def _bounds(forest: Forest, density: ProductMixture) -> tuple[NDArray[np.int64], ...]:
    """Return for each node the thresholds that bound its feature on the way to it, as rows of P(at most threshold).

    Returns
    -------
    low, high, own : ndarray of int, shape (n_nodes,)
        Rows of `below`.
    below : ndarray of shape (n_distinct_thresholds + 2, n_components)
        The first row is 0, for no lower bound, the second 1, for no upper one.
    """
    n_components = density.n_components
    rows = [np.zeros((1, n_components)), np.ones((1, n_components))]
    own = np.zeros(len(forest.features), dtype=np.int64)
    first = 2
    for feature in np.unique(forest.features[forest.features >= 0]).tolist():
        nodes = np.flatnonzero(forest.features == feature)
        distinct, places = np.unique(forest.thresholds[nodes], return_inverse=True)
        rows.append(density.below(feature, distinct))
        own[nodes] = first + places
        first += len(distinct)
    n_features = density.margins.n_features
    arrays = (forest.roots, forest.features, forest.left, forest.right, own, n_features)
    if len(forest.features) >= _MANY:
        from trimbench.estimators import tree_kernels

        low, high = tree_kernels.path_bounds(*arrays)
    else:
        low, high = path_bounds(*arrays)
    return low, high, own, np.concatenate(rows)


def path_bounds(
    roots: NDArray[np.int64],
    features: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    own: NDArray[np.int64],
    n_features: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each node the places of the thresholds that bound its feature from below and from above."""
    low, high = np.zeros_like(own), np.ones_like(own)
    for root in roots[:-1].tolist():
        waiting: list[tuple[int, dict[int, tuple[int, int]]]] = [(root, {})]
        while waiting:
            node, bounds = waiting.pop()
            feature = int(features[node])
            if feature >= 0:
                low[node], high[node] = bounds.get(feature, (0, 1))
                waiting.append((int(left[node]), bounds | {feature: (int(low[node]), int(own[node]))}))
                waiting.append((int(right[node]), bounds | {feature: (int(own[node]), int(high[node]))}))
    return low, high


def _add_expected(
    forest: Forest,
    shares: Matrix,
    node: int,
    rows: NDArray[np.float32],
    places: NDArray[np.intp],
    weights: Matrix,
    total: Matrix,
) -> None:
    """Add the expectation below a node for the rows that get there with weights of shape (n_places, n_components)."""
    waiting = [(node, places, weights)]
    while waiting:
        node, places, weights = waiting.pop()
        feature = int(forest.features[node])
        if feature < 0:
            total[places] += weights.sum(axis=1)[:, None] * forest.values[node]
            continue
        values = rows[places, feature]
        to_left = np.where(np.isnan(values)[:, None], shares[node], (values <= forest.thresholds[node])[:, None])
        for child, part in ((forest.left[node], to_left), (forest.right[node], 1.0 - to_left)):
            reached = weights * part
            there = np.flatnonzero(reached.any(axis=1))
            if len(there):
                waiting.append((int(child), places[there], reached[there]))
