"""Printed numbers that are one draw: how probable they are under replications, alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.papers.study.numbers import Probability

_OUTSIDE = 0.05


@dataclass(frozen=True)
class Outside:
    """How many numbers of a table lie in their outer 5 %, and how often one draw of the table has as many.

    `usual` is the mean number of them over the replications, and `most` its maximum.
    """

    count: int
    of: int
    usual: float
    most: int
    probability: Probability


class Draws:
    """Numbers that one run of the paper's size yields together: as printed, and in replications of ours.

    If our set-up is that of the paper, the printed numbers and the replications are exchangeable, so the rank of the
    printed ones among all has a known distribution, whatever that of the numbers is.

    Parameters
    ----------
    printed : array_like of shape (n_numbers,)
    replications : array_like of shape (n_replications, n_numbers)
        NaN where a replication has no value, which then counts for nothing.

    Raises
    ------
    ValueError
        If the shapes do not fit, or there is no number or no replication.
    """

    def __init__(self, printed: ArrayLike, replications: ArrayLike) -> None:
        first, others = np.asarray(printed, dtype=float), np.asarray(replications, dtype=float)
        if first.ndim != 1 or others.ndim != 2 or others.shape[1] != len(first) or others.size == 0:
            raise ValueError(
                "printed must have shape (n_numbers,) and replications (n_replications, n_numbers), none of them 0, "
                f"got {first.shape} and {others.shape}"
            )
        # The first row is the printed one.
        self._tails = _two_sided_tails(np.vstack([first, others]))

    def alone(self) -> list[Probability]:
        """Return for each number the probability of one at least as far out, on either side."""
        return [Probability(float(tail), 2 / len(self._tails)) for tail in self._tails[0]]

    def together(self) -> list[Probability]:
        """Return for each number the probability that any number of the table is at least as far out.

        These are the single-step min-P adjusted probabilities of Westfall and Young (1993): the dependence between the
        numbers is that of the replications.
        """
        outermost = self._tails.min(axis=1)
        return [
            Probability(float((outermost <= tail * (1 + 1e-12)).mean()), 1 / len(self._tails))
            for tail in self._tails[0]
        ]

    def outside(self) -> Outside:
        """Return how many of the printed numbers are in their outer 5 %, beside the replications."""
        counts = (self._tails <= _OUTSIDE).sum(axis=1)
        probability = Probability(float((counts >= counts[0]).mean()), 1 / len(counts))
        return Outside(
            int(counts[0]), self._tails.shape[1], float(counts[1:].mean()), int(counts[1:].max()), probability
        )


def tail_probability(printed: float, replications: Sequence[float]) -> Probability:
    """Return the probability of a number at least as far out as a printed one, on either side."""
    return Draws([printed], np.array(replications, dtype=float)[:, None]).alone()[0]


def _two_sided_tails(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return twice the share of rows that are at least as far out in a column, at most 1; 1 for NaN."""
    tails = np.ones_like(values)
    for place, column in enumerate(values.T):
        known = ~np.isnan(column)
        ordered = np.sort(column[known])
        below = np.searchsorted(ordered, column[known], side="right")
        above = len(ordered) - np.searchsorted(ordered, column[known], side="left")
        tails[known, place] = np.minimum(1.0, 2 * np.minimum(below, above) / max(1, len(ordered)))
    return tails
