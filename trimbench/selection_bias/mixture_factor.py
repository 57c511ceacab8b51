"""Adjustment factor of the binary mixture model, given the latent labels.

Given theta, the numbers of ones s_1 and s_2 in the two latent groups are independent and beta-binomial, as the counts
of two classes are in the naive Bayes model; given s_g, how they fall on the cases with y = 0 and y = 1 is
hypergeometric and does not depend on alpha and theta. So the probability of a strong correlation is a sum over (s_1,
s_2) of a part with alpha, which depends on the sizes of the groups, and a part with gamma, which depends on how the
groups cross the classes. The first is kept for each size, and their sum for each crossing, for all chains together.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from trimbench.selection_bias.adjustment import Ties, WeaknessProbabilities
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import Selection, region_bounds

# Bytes of the tables that are kept, one for each size of the smaller group that the chains visit.
_KEPT = 256 * 2**20


class _Memo:
    """Arrays by key. Threads that ask for the same one wait for the first of them to compute it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrays: OrderedDict[Hashable, Future[NDArray[np.float64]]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, compute: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return an array, computed if it is not kept; those not used for longest go when all are too large."""
        with self._lock:
            is_new = key not in self._arrays
            found = self._arrays.setdefault(key, Future())
            self._arrays.move_to_end(key)
        if is_new:
            try:
                found.set_result(compute())
            except BaseException as error:
                found.set_exception(error)
                raise
            self._forget(found.result().nbytes)
        return found.result()

    def _forget(self, added: int) -> None:
        with self._lock:
            self._size += added
            while self._size > _KEPT and next(iter(self._arrays.values())).done():
                self._size -= self._arrays.popitem(last=False)[1].result().nbytes


@dataclass(frozen=True, eq=False)
class MixtureFactor:
    """Adjustment factors for all labellings; computed when first needed, and kept. Threads can share it."""

    prior: Prior
    selection: Selection
    ties: Ties
    _joint: _Memo = field(default_factory=_Memo, repr=False)
    _factors: _Memo = field(default_factory=_Memo, repr=False)

    def log_factor(self, first0: int, first1: int) -> NDArray[np.float64]:
        """Return log A for each alpha, of shape (n_alpha,).

        Parameters
        ----------
        first0, first1 : int
            Cases of the first latent group with y = 0 and with y = 1.
        """
        key = self._smaller(first0, first1)
        return self._factors.get(key, lambda: self._compute(*key))

    def weakness(self, first0: int, first1: int) -> WeaknessProbabilities:
        """Return the probabilities that a feature is weaker than the cut-off, and that it equals it."""
        from trimbench.selection_bias import mixture_factor_kernels as kernels

        first0, first1 = self._smaller(first0, first1)
        n0, n1 = self.selection.n0, self.selection.n1
        size = first0 + first1
        joint = self._joint.get(size, lambda: self._joint_of_sums(size))
        upper, upper_equal = _upper_bounds(self.selection.cut_ones, n0, n1)
        shares = kernels.strong_and_equal(first0, first1, n0, n1, upper, upper_equal, _log_factorials(n0 + n1))
        strong, equal = kernels.totals(joint, shares)
        with np.errstate(divide="ignore"):
            return WeaknessProbabilities(
                np.log1p(-np.minimum(strong + equal, 1.0)), np.log(equal), np.log1p(-np.minimum(strong, 1.0))
            )

    def _smaller(self, first0: int, first1: int) -> tuple[int, int]:
        """Return the counts of the smaller group: which of them is called the first does not matter."""
        second0, second1 = self.selection.n0 - first0, self.selection.n1 - first1
        return min((first0 + first1, first0, first1), (second0 + second1, second0, second1))[1:]

    def _compute(self, first0: int, first1: int) -> NDArray[np.float64]:
        n_discarded = self.selection.n_discarded
        if n_discarded == 0:
            return np.zeros(self.prior.n_alpha)
        return self.weakness(first0, first1).log_factor(n_discarded, self.selection.n_tied, self.ties)

    def _joint_of_sums(self, size: int) -> NDArray[np.float64]:
        """Return what `joint_of_sums` writes, for each alpha, of shape (n_alpha, size // 2 + 1, n - size + 1)."""
        from trimbench.selection_bias import mixture_factor_kernels as kernels

        n = self.selection.n0 + self.selection.n1
        table = np.empty((self.prior.n_alpha, size // 2 + 1, n - size + 1))
        for alpha, part in zip(self.prior.alphas(), table, strict=True):
            theta, weights = self.prior.theta_nodes(n, alpha)
            kernels.joint_of_sums(alpha, theta, weights, size, n - size, part)
        return table


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


@functools.lru_cache(maxsize=4)
def _log_factorials(n: int) -> NDArray[np.float64]:
    return np.asarray(gammaln(np.arange(n + 1) + 1.0), dtype=np.float64)
