"""Draw rows from conformant models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.reduced_problem import Matrix, Vector


def draw_rows(
    components: Sequence[ConformantDistribution], weights: Vector, n_rows: int, rng: np.random.Generator
) -> tuple[Matrix, NDArray[Any]]:
    """Draw complete rows and their classes from a mixture of models over the same columns.

    Raises ValueError if `n_rows` is negative.

    Parameters
    ----------
    weights : ndarray of shape (n_components,)
        Shares of the components, which add up to 1.
    """
    if n_rows < 0:
        raise ValueError(f"n_rows must be 0 or more, got {n_rows!r}")
    rows = np.empty((n_rows, components[0].layout.n_columns))
    labels = np.empty(n_rows, dtype=np.intp)
    component = rng.choice(len(components), size=n_rows, p=weights)
    for place, model in enumerate(components):
        here = np.flatnonzero(component == place)
        labels[here] = rng.choice(len(model.classes), size=len(here), p=np.exp(model.log_prior))
        rows[here] = _draw_features(model, labels[here], rng)
    return rows, components[0].classes[labels]


def _draw_features(model: ConformantDistribution, labels: NDArray[np.intp], rng: np.random.Generator) -> Matrix:
    rows = np.zeros((len(labels), model.layout.n_columns))
    theta, binary = np.exp(model.log_probabilities), model.layout.binary
    rows[:, binary] = rng.random((len(labels), len(binary))) < theta[binary].T[labels]
    for columns in map(list, model.layout.categorical):
        cumulative = np.cumsum(theta[columns], axis=0).T[labels]
        chosen = (rng.random((len(labels), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
        rows[np.arange(len(labels)), np.array(columns)[chosen]] = 1.0
    means, variances = model.real_moments
    # In the order of the layout, as `real_moments`.
    real = [columns[0] for columns in model.layout.features if columns[0] in set(model.layout.real)]
    rows[:, real] = rng.normal(means.T[labels], np.sqrt(variances))
    return rows
