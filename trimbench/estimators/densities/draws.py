"""Random numbers that rows have in common, and the components that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector


@dataclass(frozen=True)
class RandomNumbers:
    """Numbers between 0 and 1 for draws, the same whenever they are asked for.

    Each of `n_draws` parts of equal length between 0 and 1 has one number of each column (a Latin hypercube).

    Attributes
    ----------
    n_draws : int
        Draws of each row.
    n_features : int
    random_state : int
    n_sets : int
        Row i has set i modulo this: with one set, all rows have the same numbers, so that their predictions do not
        depend on one another.
    """

    n_draws: int
    n_features: int
    random_state: int
    n_sets: int = 1

    @cached_property
    def _numbers(self) -> NDArray[np.float64]:
        rng = np.random.default_rng(self.random_state)
        shape = (self.n_sets, self.n_features + 1, self.n_draws)
        strata = rng.permuted(np.broadcast_to(np.arange(self.n_draws), shape), axis=2)
        numbers: NDArray[np.float64] = (strata + rng.random(shape)) / self.n_draws
        return np.ascontiguousarray(numbers.swapaxes(1, 2))

    @property
    def features(self) -> NDArray[np.float64]:
        """One number for each feature of each draw, shape (n_sets, n_draws, n_features)."""
        return self._numbers[:, :, 1:]

    def components(self, shares: Matrix) -> NDArray[np.intp]:
        """Return the component of each draw for shares of shape (n_rows, n_components), shape (n_rows, n_draws)."""
        n_rows, n_components = shares.shape
        cumulative = np.cumsum(shares, axis=1)
        # One search in all rows at once: the ends of row i lie between i and i + 1.
        rows = np.arange(n_rows)[:, None]
        ends = cumulative / cumulative[:, -1:] + rows
        wanted = self._numbers[self.sets(n_rows), :, 0] + rows
        places = np.searchsorted(ends.ravel(), wanted.ravel(), side="right").reshape(n_rows, -1)
        chosen: NDArray[np.intp] = places - rows * n_components
        return np.clip(chosen, 0, n_components - 1)

    def sets(self, n_rows: int) -> NDArray[np.intp]:
        """Return the set of each row."""
        return np.arange(n_rows) % self.n_sets


def log_shares(weights: Matrix) -> Vector:
    """Return the logarithms of the shares of components, with one row added to each."""
    counts = weights.sum(axis=0) + 1.0
    return np.asarray(np.log(counts / counts.sum()))
