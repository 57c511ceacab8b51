"""Learning tree-augmented naive Bayes models: each feature may depend on one other besides the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.learning import MissingValues, category_codes, check_rows, check_smoothing
from trimbench.networks.probability_tables import checked_names

if TYPE_CHECKING:
    import pandas as pd


def learn_tree_augmented(
    features: pd.DataFrame,
    target: pd.Series,
    *,
    smoothing: float = 1.0,
    missing: MissingValues = "error",
) -> BayesianNetwork:
    """Learn a tree-augmented naive Bayes model: the class and a tree over the features.

    The tree spans the features with the largest sum of conditional mutual information ``I(x_i; x_j | c)`` (Chow and
    Liu); the first feature is its root. Probabilities are counted with Laplace smoothing.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Categories; values as in `learn_naive_bayes`. At least one column, with names that differ from each other and
        from that of `target`.
    target : Series of length n_rows
        The class of each row.
    smoothing : float
        Pseudo-count of every value, above 0, because some combinations of values are rarely observed.
    missing : {"error", "ignore"}
        What NaN in a feature means: an error, or a cell that is left out of the counts that need it.

    Returns
    -------
    BayesianNetwork
        The class node has the name of `target`, or "class" if it has none.

    Raises
    ------
    ValueError
        When the tables do not match, hold NaN (see `missing`), or the smoothing is not positive.

    References
    ----------
    Friedman, Geiger and Goldszmidt (1997), Bayesian network classifiers, Machine Learning 29, section 4.
    """
    check_smoothing(smoothing)
    if smoothing == 0:
        raise ValueError("smoothing must be positive for a tree-augmented model, got 0; 1 is Laplace's rule")
    check_rows(features, target)
    if features.shape[1] == 0:
        raise ValueError("features must have at least one column, got none")
    names = [str(label) for label in features.columns]
    class_codes, class_names = category_codes(target, "target", missing="error")
    class_name = str(target.name) if target.name is not None else "class"
    checked_names([class_name, *names], "target and features")
    coded = [
        category_codes(features.iloc[:, place], f"feature {name!r}", missing=missing)
        for place, name in enumerate(names)
    ]
    codes = np.column_stack([column for column, _ in coded])
    sizes = [len(values) for _, values in coded]
    tree = _parents(_conditional_information(codes, class_codes, sizes, len(class_names)))
    prior = np.bincount(class_codes, minlength=len(class_names)) + smoothing
    tables: dict[str, NDArray[np.float64]] = {class_name: prior / prior.sum()}
    parents: dict[str, list[str]] = {class_name: []}
    for place, name in enumerate(names):
        parent = tree[place]
        above = [] if parent is None else [parent]
        axes = [class_codes, *(codes[:, i] for i in above), codes[:, place]]
        shape = [len(class_names), *(sizes[i] for i in above), sizes[place]]
        counts = _counts(axes, shape) + smoothing
        tables[name] = counts / counts.sum(axis=-1, keepdims=True)
        parents[name] = [class_name, *(names[i] for i in above)]
    states = {class_name: class_names} | {name: values for name, (_, values) in zip(names, coded, strict=True)}
    return BayesianNetwork(states, parents, tables)


def _counts(codes: Sequence[NDArray[np.int64]], shape: Sequence[int]) -> NDArray[np.float64]:
    """Count the combinations of codes in rows where none is missing."""
    seen = np.all([column >= 0 for column in codes], axis=0)
    places = np.ravel_multi_index([column[seen] for column in codes], tuple(shape))
    return np.bincount(places, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _conditional_information(
    codes: NDArray[np.int64], class_codes: NDArray[np.int64], sizes: Sequence[int], n_classes: int
) -> NDArray[np.float64]:
    """Return I(x_i; x_j | c) in nats from the observed frequencies, shape (n_features, n_features)."""
    n_features = codes.shape[1]
    information = np.zeros((n_features, n_features))
    for i in range(n_features):
        for j in range(i):
            counts = _counts([class_codes, codes[:, i], codes[:, j]], [n_classes, sizes[i], sizes[j]])
            chances = counts / max(counts.sum(), 1.0)
            independent = chances.sum(axis=2, keepdims=True) * chances.sum(axis=1, keepdims=True)
            of_class = np.broadcast_to(chances.sum(axis=(1, 2), keepdims=True), chances.shape)
            seen = chances > 0
            ratios = chances[seen] * of_class[seen] / independent[seen]
            information[i, j] = information[j, i] = float((chances[seen] * np.log(ratios)).sum())
    return information


def _parents(information: NDArray[np.float64]) -> list[int | None]:
    """Return the parent of each node in the tree of largest total information; the first node has none."""
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    # Edges of weight 0 would not count as edges, so all weights are made positive.
    tree = minimum_spanning_tree(1.0 + information.max() - information)
    _, above = breadth_first_order(tree, 0, directed=False)
    return [None if parent < 0 else int(parent) for parent in above]
