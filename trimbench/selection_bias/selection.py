"""Selection of features by their dependence on the response, compared exactly in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import is_whole

# Below this, the numbers that are compared are exact in 64 bits.
_EXACT = 2.0**62
# Relative differences below this are decided in fractions.
_CLOSE = 1e-9


@dataclass(frozen=True)
class DiscardedGroup:
    """Discarded features that were observed in the same numbers of cases of each class.

    Attributes
    ----------
    sizes : tuple of int
        n_y of the classes in which they were observed at all.
    n_discarded, n_tied : int
        How many there are, and how many of them are exactly as strong as the cut-off.
    n_categories : int
        Number of categories of each of them; 2 where this does not matter.
    """

    sizes: tuple[int, ...]
    n_discarded: int
    n_tied: int
    n_categories: int = 2


@dataclass(frozen=True, eq=False)
class Selection:
    """The k features that depend most on the response.

    The measure is eta, the correlation ratio: with two classes the absolute correlation, for categories Cramer's V.

    Attributes
    ----------
    features : ndarray of shape (k,)
        Their numbers, from the strongest to the weakest; the lower number first where they are equal.
    strengths : ndarray of shape (n_features,)
        eta of all p features.
    cut : Fraction or float
        Smallest eta^2 of a selected feature.
    groups : tuple of DiscardedGroup
        The discarded features. Those that are weak whatever alpha is, as they were observed in one class only, are left
        out.
    """

    features: NDArray[np.int64]
    strengths: NDArray[np.float64]
    cut: Fraction | float
    groups: tuple[DiscardedGroup, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_words}, gamma {self.gamma:.3g})"

    @property
    def in_words(self) -> str:
        """How many of how many features are selected."""
        return f"{len(self.features):,} of {len(self.strengths):,} features"

    @property
    def gamma(self) -> float:
        """Smallest eta of a selected feature."""
        return math.sqrt(self.cut)

    @property
    def n_discarded(self) -> int:
        """Number of features that were not selected, p - k."""
        return len(self.strengths) - len(self.features)

    @property
    def n_tied(self) -> int:
        """Number of discarded features whose eta equals that of the last selected one."""
        return sum(group.n_tied for group in self.groups)


def select(
    ones: NDArray[np.int64],
    sizes: NDArray[np.int64],
    k: int,
    patterns: NDArray[np.int64] | None = None,
    *,
    allow_fewer: bool = False,
) -> Selection:
    """Select the k discrete features of largest eta, compared without rounding; ties go to the lower number.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
        I_y and n_y of binary features. For two classes and several categories eta is symmetric: pass the cases of class
        1, and those of both classes, in each category, of shape (n_categories, n_features).
    k, patterns, allow_fewer
        As for `select_by_rank`; by default the features are binary.
    """
    ranks, ratios = ranked(ones, sizes)
    if patterns is None:
        patterns = np.vstack([sizes, np.full(len(ranks), 2)])
    found = select_by_rank(ranks, ratios, patterns, k, allow_fewer=allow_fewer)
    last = found.features[-1]
    return replace(found, cut=squared_ratio(ones[:, last].tolist(), sizes[:, last].tolist()))


def select_by_rank(
    ranks: NDArray[np.int64] | NDArray[np.float64],
    ratios: NDArray[np.float64],
    patterns: NDArray[np.int64],
    k: int,
    counted: NDArray[np.bool_] | None = None,
    *,
    allow_fewer: bool = False,
) -> Selection:
    """Select the k features of highest rank.

    Raises ValueError if a selected feature does not depend on the response at all although others are discarded.

    Parameters
    ----------
    ranks, ratios : ndarray of shape (n_features,)
        The numbers that order the features, and eta^2, 0 where a feature does not depend on the response.
    patterns : ndarray of shape (n_classes + 1, n_features)
        Cases of each class in which a feature was observed, and its number of categories.
    k : int
    counted : ndarray of bool, shape (n_features,), optional
        Features that say something about alpha when they are discarded.
    allow_fewer : bool
        Whether to select fewer than `k` features if fewer depend on the response, and all if none does.
    """
    n_useful, n_features = int((ratios > 0.0).sum()), len(ranks)
    if allow_fewer and k < n_features:
        k = min(k, n_useful) or n_features
    order = np.argsort(-ranks, kind="stable")
    last, discarded = order[k - 1], order[k:]
    if ratios[last] == 0.0 and len(discarded):
        raise k_too_large(k, n_useful, n_features)
    tied = ranks[discarded] == ranks[last]
    if counted is not None:
        tied, discarded = tied[counted[discarded]], discarded[counted[discarded]]
    first, places = distinct_columns(patterns[:, discarded])
    n_discarded = np.bincount(places, minlength=len(first))
    n_tied = np.bincount(places[tied], minlength=len(first))
    groups = [
        DiscardedGroup(tuple(n_y for n_y in sizes if n_y), int(count), int(equal), n_categories)
        for (*sizes, n_categories), count, equal in zip(
            patterns[:, discarded[first]].T.tolist(), n_discarded, n_tied, strict=True
        )
    ]
    groups = [group for group in groups if len(group.sizes) > 1]
    return Selection(order[:k], np.sqrt(ratios), float(ratios[last]), tuple(groups))


def checked_k(k: Any, n_features: int) -> int:
    """Return the number of features to select; raise ValueError unless it is from 1 to `n_features`."""
    if not is_whole(k, 1) or k > n_features:
        raise ValueError(
            f"k must be a whole number from 1 to {n_features}, the number of features of X, got {k!r}; "
            f"k={n_features} uses all of them, without selection"
        )
    return int(k)


def k_too_large(k: int, n_useful: int, n_features: int) -> ValueError:
    """Return the error for a k above the number of features that depend on the response at all."""
    if not n_useful:
        return ValueError(
            f"X must have a feature that depends on y, got {n_features} that are constant or have the same values in "
            f"every class, of which k={k} cannot be selected; check X and y, or keep all features by k={n_features}"
        )
    return ValueError(
        f"k must be at most {n_useful}, the number of features that depend on y at all, or all {n_features} features, "
        f"got {k}; the last selected feature is constant or has the same values in every class"
    )


# Ranks of discrete features, and the counts for which a binary feature is weak.


def ranked(ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rank features by eta^2 without rounding, 0 for the weakest; equal ranks mean equal ones. Also return eta^2.

    Parameters
    ----------
    ones, sizes : ndarray of shape (n_classes, n_features)
    """
    columns, places = distinct_columns(np.concatenate([ones, sizes]))
    numerator, denominator = _ratio_parts(ones[:, columns], sizes[:, columns])
    values = (numerator / denominator).astype(np.float64)
    order = np.argsort(values, kind="stable")
    numerator, denominator, in_order = numerator[order], denominator[order], values[order]
    same = np.asarray((numerator[1:] == numerator[:-1]) & (denominator[1:] == denominator[:-1]), dtype=bool)
    if ((in_order[1:] - in_order[:-1] <= _CLOSE * in_order[1:]) & ~same).any():
        fractions = [Fraction(int(a), int(b)) for a, b in zip(numerator, denominator, strict=True)]
        rank_of = {value: rank for rank, value in enumerate(sorted(set(fractions)))}
        ranks = np.array([rank_of[value] for value in fractions])
    else:
        ranks = np.concatenate([[0], np.cumsum(~same)])
    found = np.empty(len(order), dtype=np.int64)
    found[order] = ranks
    return found[places], values[places]


def distinct_columns(table: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first of each set of equal columns, and the place of each column among them."""
    codes, n_codes = np.zeros(table.shape[1], dtype=np.int64), 1.0
    for row in table:
        base = int(row.max(initial=0)) + 1
        if n_codes * base >= _EXACT:
            _, codes = np.unique(codes, return_inverse=True)
            n_codes = float(codes.max(initial=0)) + 1.0
        codes, n_codes = codes * base + row, n_codes * base
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    return first, places


def _ratio_parts(ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numerator and denominator of eta^2 of each feature, in lowest terms.

    They are Python integers where 64 bits might not hold them.
    """
    n, seen = sizes.sum(axis=0), np.maximum(sizes, 1)
    if (n.astype(np.float64) ** 2 * seen.astype(np.float64).prod(axis=0)).max() >= _EXACT:
        ones, sizes, n, seen = (values.astype(object) for values in (ones, sizes, n, seen))
    total, scale = ones.sum(axis=0), seen.prod(axis=0)
    numerator = n * (ones * ones * (scale // seen)).sum(axis=0) - total * total * scale
    denominator = total * (n - total) * scale
    denominator = np.where(denominator == 0, 1, denominator)  # a constant feature has the numerator 0
    divisor = np.gcd(numerator, denominator)
    return numerator // divisor, denominator // divisor


def squared_ratio(ones: Sequence[int], sizes: Sequence[int]) -> Fraction:
    """Return eta^2 of counts I_y and n_y exactly, over the classes that have cases."""
    n, total = sum(sizes), sum(ones)
    if total in (0, n):
        return Fraction(0)
    # All over one denominator: fractions are slow.
    scale = math.prod(n_y for n_y in sizes if n_y)
    squares = sum(i * i * (scale // n_y) for i, n_y in zip(ones, sizes, strict=True) if n_y)
    return Fraction(n * squares - total * total * scale, total * (n - total) * scale)


def weak_squares(sizes: tuple[int, ...], cut: Fraction) -> tuple[int, NDArray[Any], NDArray[Any]]:
    """Return L, and for each s the least Q of counts that are not weak and the Q that equals the cut-off, -1 for none.

    With L the least common multiple of the n_y and Q = L sum I_y^2 / n_y, counts with s = sum I_y ones are weak if
    Q < R(s) = L (s^2 + cut s (n - s)) / n, and equal the cut-off if Q = R(s). Constant features are weak.
    """
    n, scale = sum(sizes), math.lcm(*sizes)
    parts = n * cut.denominator
    found = [divmod(scale * s * (s * cut.denominator + cut.numerator * (n - s)), parts) for s in range(n + 1)]
    least, equal = [whole + (rest > 0) for whole, rest in found], [-1 if rest else whole for whole, rest in found]
    for s in (0, n):
        least[s], equal[s] = least[s] + 1, -1
    kind = np.int64 if (scale + 1) * (n + 1) < _EXACT else object
    return scale, np.array(least, dtype=kind), np.array(equal, dtype=kind)


@dataclass(frozen=True, eq=False)
class WeakCounts:
    """All counts (I_0, ..., I_C-1) with eta^2 below a cut-off.

    Attributes
    ----------
    low, high : ndarray of shape (n_1 + 1, ..., n_C-1 + 1)
        For each (I_1, ..., I_C-1) the smallest and the largest I_0; low > high where there is none. All between them
        are weak, too, as n sum I_y^2 / n_y - s^2 - cut s (n - s) is a convex function of I_0.
    equal : ndarray of shape (C, n_equal)
        The counts with eta^2 equal to the cut-off.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    equal: NDArray[np.int64]


def weak_counts(sizes: tuple[int, ...], cut: Fraction) -> WeakCounts:
    """Find the counts whose eta^2 is below a cut-off, or equal to it, without rounding.

    Parameters
    ----------
    sizes : tuple of int
        n_y, each at least 1, of two classes or more.
    cut : Fraction
        In (0, 1].
    """
    (n, inner), (scale, least, equal) = (sum(sizes), sizes[0]), weak_squares(sizes, cut)
    grids = np.ogrid[tuple(slice(0, n_y + 1) for n_y in sizes[1:])]
    outer = sum(grids, np.zeros((1,) * len(grids), dtype=np.int64))
    squares: NDArray[Any] = np.zeros((), dtype=least.dtype)
    for i, n_y in zip(grids, sizes[1:], strict=True):
        squares = squares + scale // n_y * i.astype(least.dtype) ** 2

    def is_at(first: NDArray[np.int64], limits: NDArray[Any], compare: np.ufunc) -> NDArray[np.bool_]:
        inside = np.clip(first, 0, inner)
        found = compare(squares + scale // inner * inside.astype(least.dtype) ** 2, limits[outer + inside])
        result: NDArray[np.bool_] = np.asarray(found, dtype=bool) & (inside == first)
        return result

    # square I^2 + 2 half I + constant < 0, about; comparisons of integers move what rounding misplaced.
    c = float(cut)
    square, half = n / inner - 1.0 + c, -outer - 0.5 * c * (n - 2.0 * outer)
    constant = n * (squares / scale).astype(np.float64) - outer * (outer + c * (n - outer))
    spread = np.sqrt(np.maximum(half * half - square * constant, 0.0)) / square
    middle = np.clip(np.floor(-half / square), 0, inner).astype(np.int64)
    centre = middle + ~is_at(middle, least, np.less)
    exists = is_at(centre, least, np.less)
    bounds = []
    for sign in (-1, 1):
        bound = np.clip(np.rint(-half / square + sign * spread), 0, inner).astype(np.int64)
        bound = np.where(sign * (bound - centre) > 0, bound, centre)
        while True:
            outwards, inwards = is_at(bound + sign, least, np.less), ~is_at(bound, least, np.less)
            steps = exists * (outwards.astype(np.int64) - inwards)
            if not steps.any():
                break
            bound = bound + sign * steps
        bounds.append(np.where(exists, bound, middle + (sign < 0)))
    low, high = bounds
    beside = [(first, np.nonzero(is_at(first, equal, np.equal))) for first in (low - 1, high + 1)]
    cells = [np.stack([first[places], *places]) for first, places in beside]
    return WeakCounts(low, high, np.concatenate(cells, axis=1))


def strong_bounds(weak: WeakCounts, n0: int, n1: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of two classes with a positive correlation that is at least gamma, and those above it.

    Returns
    -------
    at_least, above : ndarray of shape (n1 + 1,)
        For each I_1 the largest such I_0; -1 where there is none. The correlation falls in I_0 and rises in I_1, so
        that both are nondecreasing.
    """
    positive = -(-n0 * np.arange(n1 + 1) // n1)
    at_least = np.where(weak.low > weak.high, positive, weak.low) - 1
    above = at_least.copy()
    for i0, i1 in weak.equal.T:
        above[i1] -= i0 == at_least[i1]
    return at_least, above
