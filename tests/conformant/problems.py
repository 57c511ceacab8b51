"""Random logistic regressions and training rows for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force import fake_classifier

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    classifier: LogisticRegression
    X: Array
    weights: Array
    biases: Array
    categorical: list[list[int]]
    smoothing: float


@st.composite
def cases(
    draw: st.DrawFn, max_binary: int = 5, groups: bool = True, max_classes: int = 4, max_scale: float = 4.0
) -> Case:
    """Up to `max_binary` binary features, up to two categorical ones, all values seen when nothing is smoothed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(2, 3), max_size=2)) if groups else []
    n_binary = draw(st.integers(0 if sizes else 1, max_binary))
    n_classes = draw(st.integers(2, max_classes))
    smoothing = draw(st.sampled_from([0.0, 1e-10, 0.5, 1.0]))
    n_rows = draw(st.integers(4, 30))
    categorical, parts, start = [], [], 0
    for size in sizes:
        values = np.concatenate([np.arange(size), rng.integers(0, size, n_rows)])[:n_rows]
        parts.append(np.eye(size)[rng.permutation(values)])
        categorical.append(list(range(start, start + size)))
        start += size
    binary = rng.random((n_rows, n_binary)) < rng.uniform(0.05, 0.95, n_binary)
    binary[0], binary[1] = False, True
    X = np.hstack([*parts, binary.astype(float)])
    scale = draw(st.sampled_from([scale for scale in (0.1, 1.0, 4.0) if scale <= max_scale]))
    weights, biases = rng.normal(0, scale, (X.shape[1], n_classes)), rng.normal(0, scale, n_classes)
    return Case(fake_classifier(weights, biases), X, weights, biases, categorical, smoothing)


def learned(case: Case, solver: Any = "newton") -> tb.ConformantModel:
    """Return the conformant model of a case."""
    how: Any = {"categorical": case.categorical, "n_components": 1, "covariance": "diagonal"}
    return tb.conform(case.classifier, case.X, solver, case.smoothing, **how)


def hide(X: Array, categorical: list[list[int]], rng: np.random.Generator) -> Array:
    """Return a copy with about half of the features missing, the columns of a categorical feature together."""
    hidden = X.copy()
    gone = rng.random(X.shape) < 0.5
    for columns in categorical:
        gone[:, columns] = gone[:, columns[:1]]
    hidden[gone] = np.nan
    return hidden
