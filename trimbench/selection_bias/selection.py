"""Selection of features by absolute correlation with the response, compared exactly in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

# Below this product of class sizes every number that is compared is exact in double precision and in 64 bits.
_EXACT_PRODUCT = 2**26


@dataclass(frozen=True, eq=False)
class Selection:
    """The k features of largest absolute correlation with the response.

    Attributes
    ----------
    features : ndarray of shape (k,)
        Their numbers, from the largest correlation to the smallest; the lower number first where they are equal.
    n_features : int
        p, the number of features to choose from.
    n0, n1 : int
        Number of cases in each class.
    cut_ones : tuple of int
        (I_0, I_1) of the last selected feature, whose absolute correlation is gamma.
    gamma : float
        Smallest absolute correlation of a selected feature.
    n_tied : int
        Number of discarded features whose absolute correlation is exactly gamma.
    """

    features: NDArray[np.int64]
    n_features: int
    n0: int
    n1: int
    cut_ones: tuple[int, int]
    gamma: float
    n_tied: int

    @property
    def n_discarded(self) -> int:
        """Number of features that were not selected, p - k."""
        return self.n_features - len(self.features)


def class_counts(X: NDArray[np.uint8], y: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return I_0 and I_1, the number of ones of each feature in each class, of shape (n_features,).

    Parameters
    ----------
    X : ndarray of shape (n_cases, n_features)
        Zeros and ones.
    y : ndarray of shape (n_cases,)
        Zeros and ones.
    """
    total = X.sum(axis=0, dtype=np.int64)
    ones1 = X[y == 1].sum(axis=0, dtype=np.int64)
    return total - ones1, ones1


def correlation(ones0: NDArray[np.int64], ones1: NDArray[np.int64], n0: int, n1: int) -> NDArray[np.float64]:
    """Return the sample correlation of binary features with the response.

    Parameters
    ----------
    ones0, ones1 : ndarray of int
        Ones of the features among the cases with y = 0 and with y = 1.
    n0, n1 : int
        Number of cases of each class.

    Returns
    -------
    ndarray of float
        (n0 I1 - n1 I0) / sqrt(n0 n1 s (n - s)) with s = I0 + I1; 0 for a constant feature.

    References
    ----------
    Li, Zhang and Neal (2008), "Computation of the adjustment factor (I)".
    """
    ones0, ones1 = np.asarray(ones0, dtype=np.int64), np.asarray(ones1, dtype=np.int64)
    difference = n0 * ones1 - n1 * ones0
    total = ones0 + ones1
    spread = np.sqrt(float(n0) * float(n1) * (total * (n0 + n1 - total)).astype(float))
    found: NDArray[np.float64] = np.divide(difference, spread, out=np.zeros(np.shape(spread)), where=spread > 0)
    return found


def strength_ranks(ones0: NDArray[np.int64], ones1: NDArray[np.int64], n0: int, n1: int) -> NDArray[np.int64]:
    """Rank features by absolute correlation without rounding, 0 for the weakest; equal ranks mean equal ones.

    The square of the correlation is d^2 / (n0 n1 v), d = n0 I1 - n1 I0, v = s (n - s), s = I0 + I1.
    """
    base = max(n0, n1) + 1
    codes, places = np.unique(ones0 * base + ones1, return_inverse=True)
    first, second = codes // base, codes % base
    if n0 * n1 < _EXACT_PRODUCT:
        ranks = _ranks_in_machine_numbers(first, second, n0, n1)
    else:
        ranks = _ranks_of_fractions([_strength(int(a), int(b), n0, n1) for a, b in zip(first, second, strict=True)])
    found: NDArray[np.int64] = ranks[places]
    return found


def select_features(ones0: NDArray[np.int64], ones1: NDArray[np.int64], n0: int, n1: int, k: int) -> Selection:
    """Select the k features of largest absolute correlation; ties go to the lower number.

    Raises ValueError if a selected feature has no correlation at all although others are discarded.

    Parameters
    ----------
    ones0, ones1 : ndarray of shape (n_features,)
    k : int
        From 1 to n_features.
    """
    ranks = strength_ranks(ones0, ones1, n0, n1)
    order = np.argsort(-ranks, kind="stable")
    features = order[:k]
    last = int(features[-1])
    cut_ones = (int(ones0[last]), int(ones1[last]))
    n_tied = int((ranks[order[k:]] == ranks[last]).sum())
    gamma = abs(float(correlation(ones0[last], ones1[last], n0, n1)))
    if gamma == 0.0 and k < len(ranks):
        useful = int((correlation(ones0, ones1, n0, n1) != 0).sum())
        raise too_many_selected(k, useful, len(ranks))
    return Selection(features, len(ranks), n0, n1, cut_ones, gamma, n_tied)


def region_bounds(cut_ones: tuple[int, int], n0: int, n1: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells (I_0, I_1) whose correlation is at least gamma, and those where it is larger.

    Parameters
    ----------
    cut_ones : tuple of int
        (I_0, I_1) of the feature at the cut-off gamma, with a correlation that is not 0.

    Returns
    -------
    at_least, above : ndarray of shape (n1 + 1,)
        For each I_1 the largest I_0 with correlation >= gamma, and > gamma; -1 where there is none. The correlation
        falls in I_0 and rises in I_1, so that both are nondecreasing. Decided in integers: d^2 v_k >= d_k^2 v.
    """
    n = n0 + n1
    cut_d = n0 * cut_ones[1] - n1 * cut_ones[0]
    cut_s = sum(cut_ones)
    cut_d2, cut_v = cut_d * cut_d, cut_s * (n - cut_s)
    bounds = np.full((2, n1 + 1), -1, dtype=np.int64)
    for row, slack in enumerate((0, 1)):
        best = -1
        for i1 in range(n1 + 1):
            while best < n0:
                i0 = best + 1
                d, s = n0 * i1 - n1 * i0, i0 + i1
                if d <= 0 or d * d * cut_v - cut_d2 * s * (n - s) < slack:
                    break
                best = i0
            bounds[row, i1] = best
    return bounds[0], bounds[1]


def _strength(ones0: int, ones1: int, n0: int, n1: int) -> Fraction:
    total = ones0 + ones1
    spread = total * (n0 + n1 - total)
    return Fraction((n0 * ones1 - n1 * ones0) ** 2, spread) if spread else Fraction(0)


def _ranks_of_fractions(values: list[Fraction]) -> NDArray[np.int64]:
    rank_of = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return np.array([rank_of[value] for value in values], dtype=np.int64)


def _ranks_in_machine_numbers(
    ones0: NDArray[np.int64], ones1: NDArray[np.int64], n0: int, n1: int
) -> NDArray[np.int64]:
    """Rank by the quotient d^2 / v, correctly rounded and so monotone; only equal quotients need a closer look."""
    d2 = (n0 * ones1 - n1 * ones0) ** 2
    total = ones0 + ones1
    v = np.maximum(total * (n0 + n1 - total), 1)  # a constant feature has d = 0
    quotient = d2 / v
    order = np.argsort(quotient, kind="stable")
    d2, v, quotient = d2[order], v[order], quotient[order]
    same_quotient = quotient[1:] == quotient[:-1]
    divisor = np.gcd(d2, v)
    numerator, denominator = d2 // divisor, v // divisor
    same_fraction = (numerator[1:] == numerator[:-1]) & (denominator[1:] == denominator[:-1])
    if (same_quotient & ~same_fraction).any():
        values = [Fraction(int(a), int(b)) for a, b in zip(numerator, denominator, strict=True)]
        sorted_ranks = _ranks_of_fractions(values)
    else:
        sorted_ranks = np.concatenate([[0], np.cumsum(~same_fraction)])
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = sorted_ranks
    return ranks


def checked_k(k: object, n_features: int) -> int:
    """Return the number of features to select; raise ValueError unless it is from 1 to `n_features`."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n_features:
        raise ValueError(
            f"k must be a whole number from 1 to {n_features}, the number of features of X, got {k!r}; "
            f"k={n_features} uses all of them, without selection"
        )
    return int(k)


def too_many_selected(k: int, n_useful: int, n_features: int) -> ValueError:
    """Return the error for a k above the number of features that depend on the response at all."""
    if n_useful:
        allowed = f"at most {n_useful}, the number of features that depend on y at all, or all {n_features} features"
    else:
        allowed = f"{n_features}, which keeps all features, as none depends on y at all"
    return ValueError(f"k must be {allowed}, got {k}; the last selected feature is constant or balanced")


# Dependence of a binary feature on a response of several classes, and the counts for which it is weak.

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
