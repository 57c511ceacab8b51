"""Random numbers that rows have in common, and the components that they choose."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector

# The most draws of a sequence that is made at once.
_SEQUENCE = 512
# Away from 0 and 1, where normal numbers are infinite.
_LEAST = 2.0**-33


@dataclass(frozen=True)
class RandomNumbers:
    """Numbers between 0 and 1 for draws, the same whenever they are asked for.

    With one set, they are part of a scrambled Sobol sequence, which spreads the values of each feature evenly, however
    many draws there are.

    Attributes
    ----------
    n_draws : int
        Draws of each row.
    n_features : int
    random_state : int
    n_sets : int
        Row i has set i modulo this: with one set, all rows have the same numbers, so that their predictions do not
        depend on one another.
    first : int
        The place in the sequence of the first draw.
    """

    n_draws: int
    n_features: int
    random_state: int
    n_sets: int = 1
    first: int = 0

    @property
    def _numbers(self) -> NDArray[np.float64]:
        if self.n_sets > 1:
            rng = np.random.default_rng(self.random_state)
            return np.asarray(rng.random((self.n_sets, self.n_draws, self.n_features + 1)))
        return _sequence(self._length, self.n_features + 1, self.random_state)[None, self.first : self._last]

    @property
    def _last(self) -> int:
        return self.first + self.n_draws

    @property
    def _length(self) -> int:
        return max(_SEQUENCE, 1 << (self._last - 1).bit_length())

    @property
    def features(self) -> NDArray[np.float64]:
        """One number for each feature of each draw, shape (n_sets, n_draws, n_features)."""
        return self._numbers[:, :, 1:]

    @property
    def normals(self) -> NDArray[np.float64]:
        """One standard normal number for each feature of each draw, shape (n_sets, n_draws, n_features)."""
        if self.n_sets > 1:
            from scipy.special import ndtri

            return np.asarray(ndtri(self.features))
        return _normal_sequence(self._length, self.n_features + 1, self.random_state)[None, self.first : self._last]

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


@functools.lru_cache(maxsize=4)
def _sequence(n_draws: int, n_columns: int, random_state: int) -> NDArray[np.float64]:
    """Return the numbers of a scrambled Sobol sequence, shape (n_draws, n_columns)."""
    from scipy.stats.qmc import Sobol

    numbers = Sobol(n_columns, scramble=True, rng=np.random.default_rng(random_state)).random(n_draws)
    kept: NDArray[np.float64] = np.clip(numbers, _LEAST, 1 - _LEAST)
    kept.flags.writeable = False
    return kept


@functools.lru_cache(maxsize=4)
def _normal_sequence(n_draws: int, n_columns: int, random_state: int) -> NDArray[np.float64]:
    """Return the normal numbers of a sequence without its first column, which chooses components."""
    from scipy.special import ndtri

    kept: NDArray[np.float64] = ndtri(_sequence(n_draws, n_columns, random_state)[:, 1:])
    kept.flags.writeable = False
    return kept


def log_shares(weights: Matrix) -> Vector:
    """Return the logarithms of the shares of components, with one row added to each."""
    counts = weights.sum(axis=0) + 1.0
    return np.asarray(np.log(counts / counts.sum()))
