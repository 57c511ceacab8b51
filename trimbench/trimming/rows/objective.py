"""Agreement of trimmed classifiers with the original on weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.rows.balances import Cells, Columns, balances_with_each, highest_balance
from trimbench.trimming.rows.cells import cells_of
from trimbench.trimming.rows.scores import AdditiveScores, FloatArray, Scores, capped
from trimbench.trimming.rows.weighted_rows import WeightedRows, masses
from trimbench.trimming.thresholds import Cut, Instances, agreement_of, best_cut


class Objective(Protocol):
    """What a search on rows needs; features are given by their position."""

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""

    def value(self, kept: Sequence[int]) -> float:
        """Return the highest agreement of a feature subset, over all thresholds if there is one."""

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the highest agreement of the subset with each addition (of one feature or several)."""

    def cut(self, kept: Sequence[int]) -> Cut | None:
        """Return the threshold interval with the highest agreement; None for classifiers without threshold."""


class ThresholdObjective:
    """Agreement of a classifier with a threshold.

    Parameters
    ----------
    rows : WeightedRows
        With decisions 0 and 1.
    scores : Scores
        Log-odds of the trimmed classifiers.
    threshold : float
        That of the original, which is kept where it is among the best.
    """

    def __init__(self, rows: WeightedRows, scores: Scores, threshold: float) -> None:
        distinct = rows.merged()
        self._codes = distinct.codes
        self._signed = np.where(distinct.decisions == 1, distinct.weights, -distinct.weights)
        self._scores = scores
        self._threshold = threshold

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(self._codes)

    @cached_property
    def _columns(self) -> Columns | None:
        if not isinstance(self._scores, AdditiveScores):
            return None
        return Columns(self._codes, self._scores.cardinalities, self._scores.weights, self._signed)

    def value(self, kept: Sequence[int]) -> float:
        """Return the highest agreement of a feature subset over all thresholds."""
        log_odds, mass = self._parts(kept)
        return agreement_of(highest_balance(log_odds, mass))

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the highest agreement of the subset with each addition."""
        found = np.empty(len(additions))
        single = [i for i, unit in enumerate(additions) if len(unit) == 1 and self._columns is not None]
        if single and self._columns is not None:
            places, codes = cells_of(self._codes, kept, self._scores.cardinalities)
            cells = Cells.sorted(places, self._scores.log_odds(kept, codes))
            balances = balances_with_each(self._columns, cells, [additions[i][0] for i in single])
            found[single] = np.clip(0.5 * (1.0 + balances), 0.0, 1.0)
        for i in sorted(set(range(len(additions))) - set(single)):
            found[i] = self.value(sorted([*kept, *additions[i]]))
        return found

    def cut(self, kept: Sequence[int]) -> Cut:
        """Return the threshold interval with the highest agreement."""
        log_odds, mass = self._parts(kept)
        positive, negative = odds_as_joint(capped(log_odds))
        return best_cut(Instances(positive, negative, mass), self._threshold)

    def _parts(self, kept: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the log-odds of each cell and its signed mass."""
        places, codes = cells_of(self._codes, kept, self._scores.cardinalities)
        mass = masses(places, self._signed, len(codes))
        return self._scores.log_odds(kept, codes), mass


def odds_as_joint(log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Pr(c | f) and Pr(not c | f) of log-odds."""
    from scipy.special import expit

    positive: NDArray[np.float64] = expit(log_odds)
    negative: NDArray[np.float64] = expit(-log_odds)
    return positive, negative
