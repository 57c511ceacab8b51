"""Printed numbers that are one draw: how probable they are under replications, alone and together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.reproduction.vocabulary.numbers import Probability

# Printed numbers that are one draw: how probable they are under replications, alone and together.

_OUTSIDE = 0.05
# Distances that differ by less are those of equal numbers, up to rounding.
_EQUAL = 1 - 1e-9


@dataclass(frozen=True)
class Outside:
    """How many numbers of a table lie in their outer 5 %, and how often one draw of the table has as many.

    There are `count` of `of` numbers; `usual` is the mean count over the replications, and `most` the largest.
    """

    count: int
    of: int
    usual: float
    most: int
    probability: Probability

    @property
    def columns(self) -> dict[str, object]:
        """Columns of a table: `of` as numbers, and the rest if there are enough replications for any to be outside."""
        found: dict[str, object] = {"numbers": self.of}
        if self.probability.least < 1:
            found |= {"outside": self.count, "usual": self.usual, "most": self.most}
            found |= {"probability": self.probability.value}
        return found


class Draws:
    """Numbers that one run of the paper's size yields together: as printed, and in our replications.

    Parameters
    ----------
    printed : array_like of shape (n_numbers,)
        NaN where nothing is printed, which does not count as far out.
    replications : array_like of shape (n_replications, n_numbers)
        NaN where a replication has no value, which does not count as far out either.
    decimals : array_like of int of shape (n_numbers,), optional
        The decimals to which the numbers are printed. The replications are rounded in the same way: otherwise a printed
        0.004 would be far out among values from 0.0041 to 0.0044.

    Raises
    ------
    ValueError
        If the shapes do not match, if there is no number or no replication, or if a number is infinite.
    """

    def __init__(self, printed: ArrayLike, replications: ArrayLike, decimals: ArrayLike | None = None) -> None:
        first, others = np.asarray(printed, dtype=float), np.asarray(replications, dtype=float)
        if first.ndim != 1 or others.ndim != 2 or others.shape[1] != len(first) or others.size == 0:
            raise ValueError(
                "printed must have shape (n_numbers,) and replications (n_replications, n_numbers), none of them 0, "
                f"got {first.shape} and {others.shape}"
            )
        # The first row is the printed one.
        values = np.vstack([first, others])
        if np.isinf(values).any():
            raise ValueError("printed and replications must be finite, or NaN for no value, got an infinite number")
        if decimals is not None:
            values = _rounded(values, np.asarray(decimals))
        self._places = _places_from_the_ends(values)
        self._known = (~np.isnan(values)).sum(axis=0)
        self._tails = np.minimum(1.0, 2 * self._places / np.maximum(1, self._known))
        self._distances = _distances(values)

    def alone(self) -> list[Probability]:
        """Return for each number the probability of one at least as far out, on either side.

        It is twice the share of the values, the printed one included, that are at least as far out on its side: at
        least 2 / (1 + n_replications). It holds for one number that was chosen before looking at the table.
        """
        return [
            Probability(float(tail), min(1.0, 2 / max(1, int(known))))
            for tail, known in zip(self._tails[0], self._known, strict=True)
        ]

    def together(self) -> list[Probability]:
        """Return for each number the probability that any number of the table is at least as far out.

        The probability that the smallest of the table is a or less is at most a, so that any number of the table may be
        picked. The dependence between the numbers is that of the replications, as in the single-step min-P
        probabilities of Westfall and Young (1993): a number's place from the end of its column says how far out it is.
        Among 200 replications, though, almost every second one has the largest or smallest value of one of 60 numbers.
        Among equal places, therefore, the number further from the median of its column counts as further out, in
        units of the mean distance. These probabilities are never larger than those of min-P where every number is
        known, and can be as small as 1 / (1 + n_replications).
        """
        # A distance is largest, as many units as there are values, where one value alone differs from the others.
        lone = (self._places[1:] == 1) & (self._distances[1:] >= self._known * _EQUAL)
        least = (1 + int(lone.any(axis=1).sum())) / len(self._places)
        overall = self.outside().probability.value
        found = []
        for place, distance in zip(self._places[0], self._distances[0], strict=True):
            # The share of rows, the printed one included, with any number at least as far out.
            as_far_out = (self._places < place) | ((self._places == place) & (self._distances >= distance * _EQUAL))
            found.append(Probability(float(as_far_out.any(axis=1).mean()), least, overall))
        return found

    def outside(self) -> Outside:
        """Return how many of the printed numbers are in their outer 5 %, beside the replications.

        A number is outside if its probability `alone` is 0.05 or less, which needs 39 replications. With fewer, no
        number is outside, the probability is 1, and so is the least that can be shown.
        """
        counts = (self._tails <= _OUTSIDE).sum(axis=1)
        of = self._tails.shape[1]
        # If all of the printed numbers were outside, only those with as many would be as far out.
        can_be_outside = 2 / len(counts) <= _OUTSIDE
        least = (1 + int((counts[1:] == of).sum())) / len(counts) if can_be_outside else 1.0
        probability = Probability(float((counts >= counts[0]).mean()), least)
        return Outside(int(counts[0]), of, float(counts[1:].mean()), int(counts[1:].max()), probability)


def _rounded(values: NDArray[np.float64], decimals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return values rounded column by column."""
    if decimals.shape != values.shape[1:] or decimals.dtype.kind not in "iu":
        raise ValueError(
            f"decimals must be whole numbers, one for each of {values.shape[1]} numbers, got {decimals.tolist()}"
        )
    # Each becomes the float that is nearest to its decimal form, as a printed number is.
    return np.column_stack([np.round(column, int(n)) for column, n in zip(values.T, decimals, strict=True)])


def _places_from_the_ends(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many values of the column are at least as far out on the nearer side; for NaN the number of rows."""
    from scipy.stats import rankdata

    lowest, highest = (rankdata(values, how, axis=0, nan_policy="omit") for how in ("min", "max"))
    from_above = (~np.isnan(values)).sum(axis=0) + 1 - lowest
    return np.asarray(np.nan_to_num(np.minimum(highest, from_above), nan=len(values)), dtype=np.int64)


def _distances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distances from the column's median, in units of their mean; 0 for NaN."""
    distances = np.zeros_like(values)
    for place, column in enumerate(values.T):
        known = ~np.isnan(column)
        if known.any():
            found = np.abs(column[known] - np.median(column[known]))
            # Where the mean is 0, so are all.
            distances[known, place] = found / (found.mean() or 1.0)
    return distances
