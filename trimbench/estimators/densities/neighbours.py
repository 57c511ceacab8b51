"""Conditional draws from neighbours: a density with a kernel around each training row."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix
from trimbench.estimators.densities.density import responsibilities
from trimbench.estimators.densities.draws import RandomNumbers
from trimbench.estimators.densities.gaussians import MOST_NUMBERS, GaussianMixture
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.products import ProductMixture, embedded

# Of more training rows, this many are drawn.
_MOST_DONORS = 4000


class Neighbours:
    """What is hidden of a row is that of a training row, drawn by a kernel of the distance on what is known.

    Distances are those of normal scores; a different category counts as a distance of the square root of 2. Each
    training row is a component of its own.

    Parameters
    ----------
    bandwidth : float
        Standard deviation of the kernel for a single known feature, in units of normal scores. It grows with the cube
        root of the number of known features, as distances do.

    Attributes
    ----------
    margins : Margins
    donors : ndarray of shape (n_components, n_features)
        The coded training rows; their own gaps are filled by draws.
    """

    margins: Margins
    donors: Matrix

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth

    @classmethod
    def of(cls, margins: Margins, donors: Matrix, bandwidth: float) -> Self:
        """Return the density with these donors, which have no gaps."""
        found = cls(bandwidth)
        found.margins, found.donors = margins, donors
        found._places = embedded(margins, donors)[0]
        return found

    @property
    def n_components(self) -> int:
        """Number of donors."""
        return len(self.donors)

    def fit(self, rows: Matrix, margins: Margins, random_state: int) -> Self:
        """Keep coded rows, without gaps, as donors."""
        self.margins = margins
        if len(rows) > _MOST_DONORS:
            rows = rows[np.sort(np.random.default_rng(random_state).choice(len(rows), _MOST_DONORS, replace=False))]
        gaps = np.isnan(rows).any(axis=1)
        if gaps.any():
            few = 0 < (~margins.categorical).sum() <= MOST_NUMBERS
            filler = (GaussianMixture if few else ProductMixture)(1 if few else 8).fit(rows, margins, random_state)
            numbers = RandomNumbers(1, margins.n_features, random_state, len(rows))
            rows = rows.copy()
            rows[gaps] = filler.draw(rows[gaps], numbers)[:, 0]
        self.donors = rows
        self._places = embedded(margins, rows)[0]
        return self

    def log_joint(self, rows: Matrix) -> Matrix:
        """Return log P(donor, known features) of each row, shape (n_rows, n_components), up to constants of a row."""
        points, known = embedded(self.margins, rows)
        weights = known.astype(np.float64)
        squares = (points**2).sum(axis=1)[:, None] + weights @ (self._places**2).T
        squares -= 2 * points @ self._places.T
        n_known = np.maximum((~np.isnan(rows)).sum(axis=1), 1)[:, None]
        scaled: Matrix = squares / (-2 * self.bandwidth**2 * n_known ** (2 / 3))
        return scaled

    def marginal(self, rows: Matrix, feature: int) -> Matrix:
        """Return P(bin | known features) of a feature that all rows hide, shape (n_rows, n_bins)."""
        bins = self.margins.bins(self.donors)[:, feature]
        of_donors = bins[:, None] == np.arange(self.margins.n_bins[feature])
        return np.asarray(responsibilities(self, rows) @ of_donors)

    def draw(self, rows: Matrix, numbers: RandomNumbers) -> NDArray[np.float64]:
        """Complete each row, shape (n_rows, n_draws, n_features)."""
        chosen = numbers.components(responsibilities(self, rows))
        return np.where(np.isnan(rows)[:, None, :], self.donors[chosen], rows[:, None, :])
