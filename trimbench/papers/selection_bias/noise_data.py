"""Data on which a selection of features may find nothing: without signal or with little, or real with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from trimbench.papers.study.inputs import dataset_of
from trimbench.selection_bias.features import Binariser


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test cases with binary features."""

    X: NDArray[np.uint8]
    y: NDArray[np.int64]
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]


def simulated_split(
    alpha: float | None,
    correlation: float,
    n_train: int,
    n_test: int,
    n_features: int,
    block: int,
    rng: np.random.Generator,
) -> Split:
    """Draw cases, as many of each class, whose features come in blocks that are correlated within the classes.

    Parameters
    ----------
    alpha : float, optional
        Of the naive Bayes model that gives P(x_j = 1 | y); None for features that have nothing to do with the classes.
    correlation : float
        Between the normal variables behind the binary features of one block.
    """
    theta = np.clip(rng.random(n_features), 1e-12, 1.0 - 1e-12)
    phi = np.stack([theta, theta]) if alpha is None else rng.beta(alpha * theta, alpha * (1.0 - theta), (2, n_features))
    y, y_test = np.arange(n_train) % 2, np.arange(n_test) % 2
    both = np.concatenate([y, y_test])
    common = rng.standard_normal((len(both), -(-n_features // block)), dtype=np.float32)
    own = rng.standard_normal((len(both), n_features), dtype=np.float32)
    latent = np.sqrt(correlation) * common.repeat(block, axis=1)[:, :n_features] + np.sqrt(1.0 - correlation) * own
    X = (latent < ndtri(phi)[both]).astype(np.uint8)
    return Split(X[:n_train], y, X[n_train:], y_test)


def real_split(
    dataset: Mapping[str, Any],
    positive: Sequence[str],
    negative: Sequence[str],
    n_train: int,
    n_test: int,
    n_noise: int,
    permuted: bool,
    rng: np.random.Generator,
) -> Split:
    """Draw rows of a data set, whose features are cut at the medians of the training rows.

    Parameters
    ----------
    positive, negative : sequence of str
        Classes that are called 1 and 0; other rows are left out.
    n_noise : int
        Features to add: copies of the features with their rows in random order.
    permuted : bool
        Whether labels, too, are put in random order, so that nothing depends on them.
    """
    import pandas as pd

    loaded = dataset_of(dataset)
    target = loaded.target.astype(str).to_numpy()
    rows = rng.permutation(np.flatnonzero(np.isin(target, [*positive, *negative])))
    y = np.isin(target[rows], list(positive)).astype(np.int64)
    table = pd.get_dummies(loaded.features.iloc[rows]).to_numpy(dtype=float)
    if permuted:
        y = rng.permutation(y)
    noise = rng.permuted(table[:, rng.integers(table.shape[1], size=n_noise)], axis=0)
    table = np.hstack([table, noise])
    # Both parts have the classes in the shares of the data set.
    order = np.concatenate([np.flatnonzero(y == c) for c in (0, 1)])
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in np.bincount(y, minlength=2)])
    order = order[np.argsort(place, kind="stable")]
    train, test = order[:n_train], order[n_train : n_train + n_test]
    binariser = Binariser.fit(table[train])
    return Split(binariser.transform(table[train]), y[train], binariser.transform(table[test]), y[test])
