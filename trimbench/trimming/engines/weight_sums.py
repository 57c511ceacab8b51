"""Distributions of sums of independent weights, exact, by meeting in the middle.

In a naive Bayes model a feature value v weighs ``log P(v | c) - log P(v | not c)``; the log-odds of an instance are the
prior log-odds plus the sum of its weights.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Tables of sums are kept for the next subset, which usually differs in one feature.
_CACHE_BYTES = 2**28


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of all instances of a group of features, in increasing order.

    Instances that are impossible under both classes are left out.

    Attributes
    ----------
    weight, positive, negative : ndarrays of shape (n_instances,)
        The sum, and the probability of the instance under each class.
    """

    weight: FloatArray
    positive: FloatArray
    negative: FloatArray

    @cached_property
    def tails(self) -> tuple[FloatArray, FloatArray]:
        """Probability of this and all higher sums under each class, shape (n_instances + 1,)."""
        both = (np.concatenate([np.cumsum(side[::-1])[::-1], [0.0]]) for side in (self.positive, self.negative))
        positive, negative = both
        return positive, negative

    @property
    def nbytes(self) -> int:
        """Memory, with that of the tails."""
        return 5 * self.weight.nbytes

    def plus(self, other: Sums) -> Sums:
        """Return the sums of the two groups together."""
        with np.errstate(invalid="ignore"):
            added = np.add.outer(other.weight, self.weight).reshape(-1)
        positive = np.multiply.outer(other.positive, self.positive).reshape(-1)
        negative = np.multiply.outer(other.negative, self.negative).reshape(-1)
        # One sorted run for each instance of the other group: a stable sort merges them in linear time.
        order = np.argsort(added, kind="stable")
        order = order[((positive > 0) | (negative > 0))[order]]
        return Sums(added[order], positive[order], negative[order])


class WeightSums:
    """The weights of a model's features, and the distribution of their sums over any group of features.

    Parameters
    ----------
    tables : sequence of ndarrays of shape (2, cardinality)
        P(value | c) and P(value | not c) of each feature.
    """

    def __init__(self, tables: Sequence[FloatArray]) -> None:
        self.cardinalities = [table.shape[1] for table in tables]
        nothing = Sums(np.zeros(1), np.ones(1), np.ones(1))
        self._single = []
        for positive, negative in tables:
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = np.log(positive) - np.log(negative)
            order = np.argsort(weight, kind="stable")
            order = order[((positive > 0) | (negative > 0))[order]]
            self._single.append(Sums(weight[order], positive[order], negative[order]))
        self._nothing = nothing
        self._kept: OrderedDict[tuple[int, ...], Sums] = OrderedDict()
        self._bytes = 0

    def sums(self, group: tuple[int, ...]) -> Sums:
        """Return the sums over a group. Groups that begin alike share work."""
        if not group:
            return self._nothing
        found = self._kept.pop(group, None)
        if found is None:
            found = self.sums(group[:-1]).plus(self._single[group[-1]])
            self._bytes += found.nbytes
        # The most recently used stay, this one in any case.
        self._kept[group] = found
        while self._bytes > _CACHE_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.nbytes
        return found

    def tails(self, group: tuple[int, ...], queries: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P(sum over the group >= query) under each class.

        Parameters
        ----------
        group : tuple of int
            The first of them make a sorted table, which is kept; the others are written out.
        queries : ndarray of shape (n_queries,)
            In decreasing or increasing order, which makes the look-ups local.

        Returns
        -------
        positive, negative : ndarrays of shape (n_queries,)
        """
        tabulated, written = self._split(group, queries.size)
        table, other = self.sums(tabulated), self.sums(written)
        with np.errstate(invalid="ignore"):
            remaining = np.subtract.outer(-other.weight, -queries)
        places = np.searchsorted(table.weight, reached(remaining).reshape(-1)).reshape(remaining.shape)
        positive, negative = table.tails
        return other.positive @ positive[places], other.negative @ negative[places]

    def _split(self, group: tuple[int, ...], n_queries: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Enumerate as many features as possible while queries x combinations stays below the rest of the table."""
        size, entries, place = n_queries, math.prod(self.cardinalities[i] for i in group), len(group)
        while place and size * self.cardinalities[group[place - 1]] ** 2 <= entries:
            place -= 1
            size *= self.cardinalities[group[place]]
            entries //= self.cardinalities[group[place]]
        return group[:place], group[place:]


def reached(distance: FloatArray) -> FloatArray:
    """Return the distance to a threshold (changed in place), with inf - inf read as reached.

    It arises from a threshold of 1 against a value that makes the class certain, or a threshold of 0 against one that
    rules it out: both are classified as positive. (Against finite thresholds it belongs to instances of probability
    zero.)
    """
    distance[np.isnan(distance)] = -np.inf
    return distance
