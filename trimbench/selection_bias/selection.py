"""Selection of features by absolute correlation with the response, compared exactly in integers."""

from __future__ import annotations

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
