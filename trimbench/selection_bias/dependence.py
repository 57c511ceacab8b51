"""Dependence of a binary feature on a response of several classes, and the counts for which it is weak.

The measure is the squared correlation ratio eta^2 = (n sum_y I_y^2 / n_y - s^2) / (s (n - s)), s = sum_y I_y, and 0
for a constant feature. For zeros and ones it is the square of Cramer's V of their table with the classes, and rises
with the F statistic of the class means, F = (n - C) eta^2 / ((C - 1) (1 - eta^2)). With two classes it is the squared
correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from trimbench.selection_bias.selection import too_many_selected

# Relative differences below this are decided in fractions.
_CLOSE = 1e-9


def squared_ratio(ones: Sequence[int], sizes: Sequence[int]) -> Fraction:
    """Return eta^2 of counts I_y and n_y exactly, over the classes that have cases."""
    n, total = sum(sizes), sum(ones)
    if total in (0, n):
        return Fraction(0)
    # All over one denominator: fractions are slow.
    scale = math.prod(n_y for n_y in sizes if n_y)
    squares = sum(i * i * (scale // n_y) for i, n_y in zip(ones, sizes, strict=True) if n_y)
    return Fraction(n * squares - total * total * scale, total * (n - total) * scale)


def squared_ratios(ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return eta^2 of features in floating point, for counts of shape (n_classes, n_features)."""
    n, total = sizes.sum(axis=0), ones.sum(axis=0)
    mean = total / np.maximum(n, 1)
    between = (sizes * (ones / np.maximum(sizes, 1) - mean) ** 2).sum(axis=0)
    within = mean * (n - total)
    found: NDArray[np.float64] = np.divide(between, within, out=np.zeros(len(total)), where=(total > 0) & (total < n))
    return found


def ranks(ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank features by eta^2 without rounding, 0 for the weakest; equal ranks mean equal ones.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
    """
    distinct, places = np.unique(np.concatenate([ones, sizes]), axis=1, return_inverse=True)
    counts, numbers = np.split(distinct, 2)
    values = squared_ratios(counts, numbers)
    order = np.argsort(values, kind="stable")
    steps = np.diff(values[order]) > _CLOSE * values[order[1:]]
    group = np.concatenate([[0], np.cumsum(steps)])
    n_ranks, within = np.ones(group[-1] + 1, dtype=np.int64), np.zeros(len(order), dtype=np.int64)
    # Values that are too close to be told apart by their floating-point numbers.
    for close in np.flatnonzero(np.bincount(group) > 1):
        members = slice(*np.searchsorted(group, [close, close + 1]))
        exact = [squared_ratio(counts[:, j].tolist(), numbers[:, j].tolist()) for j in order[members]]
        rank_of = {value: rank for rank, value in enumerate(sorted(set(exact)))}
        within[members] = [rank_of[value] for value in exact]
        n_ranks[close] = len(rank_of)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = (np.cumsum(n_ranks) - n_ranks)[group] + within
    result: NDArray[np.int64] = found[places.ravel()]
    return result


@dataclass(frozen=True, eq=False)
class WeakCounts:
    """All counts (I_0, ..., I_C-1) with eta^2 below a cut-off.

    Attributes
    ----------
    low, high : ndarray of shape (n_1 + 1, ..., n_C-1 + 1)
        For each (I_1, ..., I_C-1) the smallest and the largest I_0; low > high where there is none. They are all
        between, as n sum I_y^2 / n_y - s^2 - cut s (n - s) is a convex function of I_0.
    equal : ndarray of shape (C, n_equal)
        The counts with eta^2 equal to the cut-off.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    equal: NDArray[np.int64]


def weak_counts(sizes: tuple[int, ...], cut: Fraction) -> WeakCounts:
    """Find the counts that are weaker than a cut-off, or equal to it, without rounding.

    Parameters
    ----------
    sizes : tuple of int
        n_y, each at least 1, of two classes or more.
    cut : Fraction
        In (0, 1].
    """
    n, inner = sum(sizes), sizes[0]
    grids = np.ogrid[tuple(slice(0, n_y + 1) for n_y in sizes[1:])]
    shape = tuple(n_y + 1 for n_y in sizes[1:])
    outer = np.zeros(shape) + sum(grids)
    squares = np.zeros(shape) + sum(i * i / n_y for i, n_y in zip(grids, sizes[1:], strict=True))
    c = float(cut)
    # square I^2 + 2 half I + constant < 0; divided by the scale of its terms.
    square = n / inner - 1.0 + c
    half = -outer - 0.5 * c * (n - 2.0 * outer)
    constant = n * squares - outer * (outer + c * (n - outer))
    discriminant = half * half - square * constant
    doubtful = np.abs(discriminant) <= _CLOSE * (half * half + np.abs(square * constant))
    with np.errstate(invalid="ignore"):
        spread = np.sqrt(np.maximum(discriminant, 0.0))
    roots = np.stack([(-half - spread) / square, (-half + spread) / square])
    none = discriminant < 0.0
    low = np.where(none, 1, np.floor(roots[0]) + 1).astype(np.int64)
    high = np.where(none, 0, np.ceil(roots[1]) - 1).astype(np.int64)
    near = np.abs(roots - np.round(roots)) <= 1e-7 * n
    doubtful |= (near & ~none).any(axis=0)
    equal = _decide(sizes, cut, np.argwhere(doubtful), roots, low, high)
    low[(0,) * low.ndim] = 0  # constant features are weak
    high[(-1,) * high.ndim] = inner
    return WeakCounts(np.maximum(low, 0), np.minimum(high, inner), equal)


def _decide(
    sizes: tuple[int, ...],
    cut: Fraction,
    places: NDArray[np.int64],
    roots: NDArray[np.float64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Set the bounds at some places by comparing fractions, and return the counts there that equal the cut-off."""
    equal = []
    for place in map(tuple, places.tolist()):
        signs = {}
        for root in roots[(slice(None), *place)]:
            for i in range(int(np.floor(root)) - 1, int(np.ceil(root)) + 2):
                i0 = min(max(i, 0), sizes[0])
                value = squared_ratio((i0, *place), sizes)
                signs[i0] = (value > cut) - (value < cut)
        # The weak counts are those between the roots: if none near the roots is weak, there is none.
        weak = [i for i, sign in signs.items() if sign < 0]
        low[place], high[place] = (min(weak), max(weak)) if weak else (1, 0)
        equal += [[i, *place] for i, sign in signs.items() if sign == 0]
    return np.array(equal, dtype=np.int64).reshape(-1, len(sizes)).T


@dataclass(frozen=True)
class SizeGroup:
    """Discarded features that were observed in the same numbers of cases of each class.

    Attributes
    ----------
    sizes : tuple of int
        n_y of the classes in which they were observed at all.
    n_discarded, n_tied : int
        How many there are, and how many of them are exactly as strong as the cut-off.
    """

    sizes: tuple[int, ...]
    n_discarded: int
    n_tied: int


@dataclass(frozen=True, eq=False)
class DependenceSelection:
    """The k features with the largest eta.

    Attributes
    ----------
    features : ndarray of shape (k,)
        Their numbers, from the strongest to the weakest; the lower number first where they are equal.
    n_features : int
        p, the number of features to choose from.
    cut : Fraction
        Smallest eta^2 of a selected feature.
    groups : tuple of SizeGroup
        The discarded features. Those observed in one class only are weak whatever alpha is, and left out.
    """

    features: NDArray[np.int64]
    n_features: int
    cut: Fraction
    groups: tuple[SizeGroup, ...]

    @property
    def gamma(self) -> float:
        """Smallest eta of a selected feature."""
        return math.sqrt(self.cut)

    @property
    def n_discarded(self) -> int:
        """Number of features that were not selected, p - k."""
        return self.n_features - len(self.features)

    @property
    def n_tied(self) -> int:
        """Number of discarded features whose eta equals that of the last selected one."""
        return sum(group.n_tied for group in self.groups)


def select_dependent(ones: NDArray[np.int64], sizes: NDArray[np.int64], k: int) -> DependenceSelection:
    """Select the k features of largest eta; ties go to the lower number.

    Raises ValueError if a selected feature does not depend on the response at all although others are discarded.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
        I_y and n_y of each feature.
    k : int
        From 1 to n_features.
    """
    found = ranks(ones, sizes)
    order = np.argsort(-found, kind="stable")
    last, discarded = order[k - 1], order[k:]
    cut = squared_ratio(ones[:, last].tolist(), sizes[:, last].tolist())
    if cut == 0 and len(discarded):
        raise too_many_selected(k, int((squared_ratios(ones, sizes) > 1e-12).sum()), len(order))
    patterns, places = np.unique(sizes[:, discarded], axis=1, return_inverse=True)
    n_discarded = np.bincount(places.ravel(), minlength=patterns.shape[1])
    n_tied = np.bincount(places.ravel()[found[discarded] == found[last]], minlength=patterns.shape[1])
    groups = [
        SizeGroup(tuple(n_y for n_y in pattern if n_y), int(count), int(tied))
        for pattern, count, tied in zip(patterns.T.tolist(), n_discarded, n_tied, strict=True)
    ]
    return DependenceSelection(order[:k], len(order), cut, tuple(g for g in groups if len(g.sizes) > 1))
