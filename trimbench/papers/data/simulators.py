"""Tables drawn from models with known parameters."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """Binary rows and the model that they were drawn from.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Zeros and ones.
    classes : ndarray of shape (n_rows,)
        Zeros and ones.
    likelihoods : ndarray of shape (n_features, 2)
        P(x_i = 1 | c).
    """

    features: NDArray[np.int8]
    classes: NDArray[np.int8]
    likelihoods: NDArray[np.float64]


def simulate_naive_bayes(rows: int, features: int, seed: int, prior: float) -> SimulatedTable:
    """Draw rows from a random naive Bayes model over binary features.

    Parameters
    ----------
    rows, features : int
        At least 1.
    seed : int
        Determines the model and the rows.
    prior : float
        P(class = 1), between 0 and 1.

    Returns
    -------
    SimulatedTable
        Each P(x_i = 1 | c) is uniform on [0.1, 0.9).

    Raises
    ------
    ValueError
        An argument is out of range.
    """
    for name, value in (("rows", rows), ("features", features)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value!r}")
    if not 0 < prior < 1:
        raise ValueError(f"`prior` must be between 0 and 1 (both excluded), got {prior!r}")
    # Only uniform doubles are drawn: of all streams of a Generator this is the one least likely to change.
    rng = np.random.default_rng(seed)
    likelihoods = 0.1 + 0.8 * rng.random((features, 2))
    classes = (rng.random(rows) < prior).astype(np.int8)
    drawn = rng.random((rows, features)) < likelihoods[:, classes].T
    return SimulatedTable(drawn.astype(np.int8), classes, likelihoods)
