"""Bounds on agreements of naive Bayes trimmings that take a fraction of the time of the agreements themselves.

Weights are rounded to whole numbers of steps, which moves each sum by `spread` at most. Probabilities stay what they
are, so this changes two things only:

- The decision of the original, for instances within `spread` of the threshold. Potential agreements are half of an L1
  norm, so that none of them changes by more than the probability of these instances.
- What a trimming can tell apart: it treats the kept instances of a cell, of equal sums of steps, alike. If it need not,
  it agrees more often, but only where what speaks for positive, X, and for negative, Y, is almost the same. Given both,
  and that their ratio differs by a factor of ``exp(2 * spread)`` at most within the cell, the gain is highest where all
  instances are at either end, as it is convex in the ratio: ``tanh(spread / 2) * min(X, Y)``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.weight_sums import FloatArray
from trimbench.trimming.kernels.grid_losses import cells_of, grid_losses
from trimbench.trimming.thresholds import TIE_TOLERANCE

# Cells for each feature: where those of a coarse grid leave it open whether a value is high enough, finer ones decide.
_CELLS = (25, 100, 400)
# Exact values of subsets of fewer instances than this are as cheap.
_MANY_INSTANCES = 2**23
# Rounding of sums of probabilities, and of sums of weights beyond the tolerance for ties.
_ROUNDING, _SUM_ROUNDING = 1e-10, 1e-9
# Beyond, everything is doubtful, and `exp` still finite.
_MOST_LOG_RATIO = 700.0
# Steps that are tried.
_STEPS = np.geomspace(0.8, 1.25, 25)


class GridBounds:
    """Bounds on the maximum potential agreements of feature subsets of a naive Bayes classifier.

    Parameters
    ----------
    classifier : BayesianClassifier
        Without zeros, and with a threshold strictly between 0 and 1.
    n_cells : int
        About the size of the grid: more cells, narrower bounds.
    """

    def __init__(self, classifier: BayesianClassifier, n_cells: int) -> None:
        weights = [np.log(table[0]) - np.log(table[1]) for table in classifier.tables]
        n_features, n_values = len(weights), max(weight.size for weight in weights)
        # Rows that are too short are filled up with their first entry.
        padded = np.repeat([weight[:1] for weight in weights], n_values, axis=1)
        chances = np.zeros((n_features, 2, n_values))
        for i, weight in enumerate(weights):
            padded[i, : weight.size] = weight
            chances[i, :, : weight.size] = classifier.tables[i]
        above = padded - padded.min(axis=1, keepdims=True)
        # With some steps, weights are rounded by less than with others.
        steps = (float(above.max(axis=1).sum()) / n_cells or 1.0) * _STEPS
        left = above - np.rint(above / steps[:, None, None]) * steps[:, None, None]
        spreads = 0.5 * np.ptp(left, axis=2).sum(axis=1)
        best = int(np.argmin(spreads / np.sqrt(steps)))
        step, self._spread = float(steps[best]), float(spreads[best])
        shifts = np.rint(above / step).astype(np.int64)
        cardinalities = np.array([weight.size for weight in weights], dtype=np.int64)
        self._steps = (shifts, chances, cardinalities, shifts.max(axis=1))
        self._prior = prior = classifier.prior
        start = float((padded - shifts * step).max(axis=1).sum()) - self._spread
        threshold = classifier.threshold
        needed = math.log(threshold) - math.log1p(-threshold) - (math.log(prior[0]) - math.log(prior[1]))
        self._place_threshold((needed - start) / step, (self._spread + TIE_TOLERANCE + _SUM_ROUNDING) / step)

    def _place_threshold(self, place: float, reach: float) -> None:
        """Find from how many steps on instances are positive, and how likely those are for which that may be wrong."""
        n_cells = int(self._steps[3].sum()) + 1
        # An original that is always, or never, positive is not far from one that hardly ever differs.
        self._needed = min(max(1, math.ceil(place)), n_cells)
        everything = np.arange(len(self._steps[2]))
        probabilities = self._prior @ cells_of(self._steps, everything, n_cells)
        cells = np.arange(n_cells)
        first, last = min(place - reach, self._needed), max(place + reach, self._needed - 1)
        self._moved = float(probabilities[(cells >= first) & (cells <= last)].sum())

    def bounds(
        self, kept: Collection[int], removed: Collection[int], candidates: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds on the values of a subset after removing each candidate.

        Parameters
        ----------
        kept, removed : collections of int
            Together all features.
        candidates : sequence of int
            Among the kept features.
        """
        out = np.empty((2, len(candidates)))
        fixed = sorted(set(kept).difference(candidates))
        staying, gone, tried = (np.array(group, dtype=np.int64) for group in (fixed, sorted(removed), candidates))
        ratio = math.exp(min(2.0 * self._spread, _MOST_LOG_RATIO))
        grid_losses(self._steps, staying, gone, tried, self._needed, self._prior, ratio, out)
        margin = self._moved + _ROUNDING
        gained = math.tanh(0.5 * self._spread) * out[1]
        return 1.0 - out[0] - margin, np.minimum(1.0, 1.0 - out[0] + gained + margin)


def grids_of(classifier: BayesianClassifier) -> list[GridBounds]:
    """Return grids for a classifier, the coarsest first; none of a small one, and where a value rules out a class."""
    is_small = math.prod(classifier.cardinalities) < _MANY_INSTANCES
    if is_small or any((table == 0).any() for table in classifier.tables):
        return []
    return [GridBounds(classifier, n_cells * classifier.n_features) for n_cells in _CELLS]
