"""What the methods need of a density of rows."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix
from trimbench.conformant.evidence import logsumexp
from trimbench.estimators.densities.draws import RandomNumbers
from trimbench.estimators.densities.margins import Margins


class Density(Protocol):
    """A mixture over coded rows (see `Margins`); `ProductMixture`, `GaussianMixture` and `Neighbours` are densities."""

    @property
    def margins(self) -> Margins:
        """The values of each feature alone."""

    @property
    def n_components(self) -> int:
        """Number of components."""

    def fit(self, rows: Matrix, margins: Margins, random_state: int) -> Self:
        """Fit the density to coded rows, which may have gaps, and return it."""

    def log_joint(self, rows: Matrix) -> Matrix:
        """Return log P(component, known features) of each row, shape (n_rows, n_components).

        Up to a constant of each row; `responsibilities` normalises it.
        """

    def marginal(self, rows: Matrix, feature: int) -> Matrix:
        """Return P(bin | known features) of a feature that all rows hide, shape (n_rows, n_bins)."""

    def draw(self, rows: Matrix, numbers: RandomNumbers) -> NDArray[np.float64]:
        """Complete each row, shape (n_rows, n_draws, n_features); known values stay as they are."""


def responsibilities(density: Density, rows: Matrix) -> Matrix:
    """Return P(component | known features) of each row, shape (n_rows, n_components)."""
    return normalised(density.log_joint(rows))


def normalised(joint: Matrix) -> Matrix:
    """Return P(component | known features) from log P(component, known features) up to a constant of each row."""
    shares: Matrix = np.exp(joint - logsumexp(joint)[:, None])
    return shares
