"""Tables drawn from models with known parameters."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import Natural, Positive, Probability
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.source import Source
from trimbench.papers.validation import settings


@settings
class SimulatedSource(Source):
    """Binary features drawn from a random naive Bayes model; `prior` is P(class = "1")."""

    kind: Literal["simulated"] = "simulated"
    model: Literal["naive_bayes"]
    rows: Positive
    features: Positive
    seed: Natural
    prior: Probability

    def load(self, name: str, cache: Cache) -> Dataset:
        """Draw the rows."""
        import pandas as pd

        features, classes, _ = simulate_naive_bayes(self.rows, self.features, self.seed, self.prior)
        table = pd.DataFrame(features, columns=[f"x{number}" for number in range(1, self.features + 1)])
        return build_dataset(name, self.facts, table.assign(**{"class": classes}), "class")


def simulate_naive_bayes(
    rows: int, features: int, seed: int, prior: float
) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.float64]]:
    """Draw rows from a random naive Bayes model over binary features; the seed determines the model and the rows.

    Returns features (n_rows, n_features), classes (n_rows,) and P(x_i = 1 | c) (n_features, 2), each uniform on
    [0.1, 0.9).
    """
    # Only uniform doubles are drawn: of all streams of a Generator this is the one least likely to change.
    rng = np.random.default_rng(seed)
    likelihoods = 0.1 + 0.8 * rng.random((features, 2))
    classes = (rng.random(rows) < prior).astype(np.int8)
    drawn = rng.random((rows, features)) < likelihoods[:, classes].T
    return drawn.astype(np.int8), classes, likelihoods
