"""Adjustment factor of the binary mixture model, given the latent labels.

Given theta, the numbers of ones s_1 and s_2 in the two latent groups are independent and beta-binomial, as the counts
of two classes are in the naive Bayes model; given s_g, how they fall on the cases with y = 0 and y = 1 is
hypergeometric and does not depend on alpha and theta. So the probability of a strong correlation is a sum over (s_1,
s_2) of a part with alpha, which depends on the sizes of the groups, and a part with gamma, which depends on how the
groups cross the classes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from trimbench.selection_bias.adjustment import Ties, WeaknessProbabilities
from trimbench.selection_bias.count_tables import count_tables
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import Selection, region_bounds

# Bytes of tables that are kept: one for each size of the smaller group that the chains visit.
_KEPT = 128 * 2**20


@dataclass(frozen=True, eq=False)
class MixtureFactor:
    """Adjustment factors for all labellings; computed when first needed, and kept."""

    prior: Prior
    selection: Selection
    ties: Ties
    _joint: dict[int, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    _factors: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def log_factor(self, first0: int, first1: int) -> NDArray[np.float64]:
        """Return log A for each alpha, of shape (n_alpha,).

        Parameters
        ----------
        first0, first1 : int
            Cases of the first latent group with y = 0 and with y = 1.
        """
        # The order of the groups does not matter: the smaller one comes first.
        second0, second1 = self.selection.n0 - first0, self.selection.n1 - first1
        key = min((first0 + first1, first0, first1), (second0 + second1, second0, second1))[1:]
        if key not in self._factors:
            self._factors[key] = self._compute(*key)
        return self._factors[key]

    def weakness(self, first0: int, first1: int) -> WeaknessProbabilities:
        """Return the probabilities that a feature is weaker than the cut-off, and that it equals it."""
        sizes = (first0 + first1, self.selection.n0 + self.selection.n1 - first0 - first1)
        strong, equal = _shares(self.selection, first0, first1)
        joint = self._joint_of_sums(*sizes)
        probability_strong = np.einsum("aij,ij->a", joint, strong)
        probability_equal = np.einsum("aij,ij->a", joint, equal)
        with np.errstate(divide="ignore"):
            return WeaknessProbabilities(
                np.log1p(-np.minimum(probability_strong + probability_equal, 1.0)),
                np.log(probability_equal),
                np.log1p(-np.minimum(probability_strong, 1.0)),
            )

    def _compute(self, first0: int, first1: int) -> NDArray[np.float64]:
        n_discarded = self.selection.n_discarded
        if n_discarded == 0:
            return np.zeros(self.prior.n_alpha)
        return self.weakness(first0, first1).log_factor(n_discarded, self.selection.n_tied, self.ties)

    def _joint_of_sums(self, size1: int, size2: int) -> NDArray[np.float64]:
        """Return P(s_1, s_2 | alpha), theta integrated out, of shape (n_alpha, size1 + 1, size2 + 1)."""
        if size1 not in self._joint:
            table = np.empty((self.prior.n_alpha, size1 + 1, size2 + 1))
            while self._joint and sum(kept.nbytes for kept in self._joint.values()) + table.nbytes > _KEPT:
                self._joint.pop(next(iter(self._joint)))
            for part in count_tables(self.prior, size1, size2, size1 + size2):
                weighted = part.class0 * part.weights[:, None]
                table[part.alphas] = weighted.transpose(0, 2, 1) @ part.class1
            self._joint[size1] = table
        return self._joint[size1]


def _shares(selection: Selection, first0: int, first1: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for each (s_1, s_2), the probability that a feature is stronger than the cut-off, and that it equals it.

    I_1 = H_1 + H_2 with H_g hypergeometric; for a given s_1 + s_2 the strong values of I_1 are those at both ends.
    """
    n0, n1 = selection.n0, selection.n1
    ones1 = [_hypergeometric(first0, first1), _hypergeometric(n0 - first0, n1 - first1)]
    upper, upper_equal = _upper_bounds(selection.cut_ones, n0, n1)
    size1, size2 = first0 + first1, n0 + n1 - first0 - first1
    total = np.arange(size1 + 1)[:, None] + np.arange(size2 + 1)
    # P(H_2 >= t | s_2) and P(H_2 <= t | s_2), with a zero for impossible values.
    at_least = np.cumsum(ones1[1][:, ::-1], axis=1)[:, ::-1]
    at_least = np.concatenate([at_least, np.zeros((size2 + 1, 1))], axis=1)
    at_most = np.concatenate([np.zeros((size2 + 1, 1)), np.cumsum(ones1[1], axis=1)], axis=1)
    exactly = np.concatenate([ones1[1], np.zeros((size2 + 1, 1))], axis=1)
    most = n1 - first1
    column = np.arange(size2 + 1)
    # The lower end mirrors the upper one under x -> 1 - x.
    lower, lower_equal = n1 - upper[::-1], n1 - upper_equal[::-1]
    strong, equal = np.zeros(total.shape), np.zeros(total.shape)
    for h1 in range(first1 + 1):
        chance = ones1[0][:, h1, None]
        strong += chance * at_least[column, np.clip(upper[total] - h1, 0, most + 1)]
        strong += chance * at_most[column, np.clip(lower[total] - h1 + 1, 0, most + 1)]
        for bound, is_one in ((upper_equal, upper_equal < upper), (lower_equal, lower_equal > lower)):
            place = bound[total] - h1
            inside = is_one[total] & (place >= 0) & (place <= most)
            equal += chance * np.where(inside, exactly[column, np.clip(place, 0, most + 1)], 0.0)
    return strong, equal


@functools.lru_cache(maxsize=4)
def _upper_bounds(cut_ones: tuple[int, int], n0: int, n1: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each I_0 + I_1 = s, the smallest I_1 with correlation > gamma, and with correlation >= gamma.

    n0 + n1 + 2 where there is none. At fixed s the correlation rises in I_1, so that one value at most equals gamma.
    """
    at_least, above = region_bounds(cut_ones, n0, n1)
    bounds = []
    for limit in (above, at_least):
        smallest = np.full(n0 + n1 + 1, n0 + n1 + 2, dtype=np.int64)
        for i1 in range(n1, -1, -1):
            smallest[i1 : i1 + limit[i1] + 1] = i1
        bounds.append(smallest)
    return bounds[0], bounds[1]


def _hypergeometric(size0: int, size1: int) -> NDArray[np.float64]:
    """Return P(H = h | s): of s ones among size0 + size1 cases, h fall on the size1; shape (s, h)."""
    total = size0 + size1
    s, h = np.arange(total + 1)[:, None], np.arange(size1 + 1)[None, :]
    possible = (s - h >= 0) & (s - h <= size0)
    rest = np.where(possible, s - h, 0)
    log_ways = _log_choose(size1, h) + _log_choose(size0, rest) - _log_choose(total, s)
    return np.where(possible, np.exp(log_ways), 0.0)


def _log_choose(n: int, r: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1), dtype=np.float64)
