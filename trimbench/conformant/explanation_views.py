"""Explanations as tables and images, ready to be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.numeric_input import as_row
from trimbench.conformant.reduced_problem import Matrix, Vector

if TYPE_CHECKING:
    import pandas as pd


class ExplanationViews:
    """What all explanations can be turned into.

    Attributes
    ----------
    features : tuple of int
    evidence : ndarray of shape (n_features,)
    feature_names : tuple of str, optional
        The names of all features; None where the model was learned from an array.
    """

    features: tuple[int, ...]
    evidence: Vector
    feature_names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `features`; their positions as text where the model has no names."""
        return tuple(str(i) if self.feature_names is None else self.feature_names[i] for i in self.features)

    def named(self, feature_names: Sequence[str] | None) -> Self:
        """Give the explanation names, one for each feature of the layout or None, and return it."""
        vars(self)["feature_names"] = None if feature_names is None else tuple(feature_names)
        return self

    def table(self, feature_names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the evidence of each feature, largest first; ``.plot.barh(x="feature", y="evidence")`` draws it.

        Parameters
        ----------
        feature_names : sequence of str, optional
            One for each feature of the layout. Default: those of the model, or positions.

        Returns
        -------
        pandas.DataFrame
            With the columns `feature`, `evidence` (what it adds to the log-odds of the class, in nats) and `chosen`.

        Raises
        ------
        ValueError
            When there is not one name for each feature.
        """
        import pandas as pd

        n_features = len(self.evidence)
        known = self.feature_names if feature_names is None else feature_names
        names = list(range(n_features)) if known is None else list(known)
        if len(names) != n_features:
            raise ValueError(f"feature_names must have one name for each of {n_features} features, got {len(names)}")
        order = np.argsort(-np.abs(self.evidence), kind="stable")
        chosen = np.isin(order, self.features)
        columns = {"feature": [names[i] for i in order], "evidence": self.evidence[order], "chosen": chosen}
        return pd.DataFrame(columns)

    def image(self, x: ArrayLike, shape: tuple[int, int]) -> Matrix:
        """Return the values of the chosen pixels, and NaN elsewhere, as an image that ``plt.imshow`` draws.

        Parameters
        ----------
        x : array of shape (n_features,)
            The row that was explained, whose features are pixels, row by row.
        shape : tuple of int
            Height and width, as of the result.

        Raises
        ------
        ValueError
            When the shape does not have as many pixels as there are features.
        """
        n_features = len(self.evidence)
        row = as_row(x, n_features)[0]
        if len(shape) != 2 or math.prod(shape) != n_features:
            raise ValueError(f"shape must be (height, width) with {n_features} pixels in all, got {shape!r}")
        kept: NDArray[np.float64] = np.full(n_features, np.nan)
        kept[list(self.features)] = row[list(self.features)]
        return kept.reshape(shape)
