"""The best cut of every subset that has one feature more, for naive Bayes.

Rows with the same values of the kept features form a cell. One more feature splits each cell by its value v, and moves
the log-odds of the part by the weight of v. So the cells are sorted once, and the parts of one value stay sorted: their
lists are merged, and the balance (signed mass above the cut minus that below) is tracked on the way.

The compiled kernels read binary features packed, eight to a byte. `highest_balances` is their twin in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.rows.scores import FloatArray, capped, summed
from trimbench.trimming.rows.weighted_rows import Codes, masses
from trimbench.trimming.thresholds import NO_MASS, TIED_LOG_ODDS

# A search on a table with fewer cells ends sooner in NumPy than numba starts.
_SMALL = 1_500


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of value indices, laid out for the kernels.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
    cardinalities : tuple of int
    weights : tuple of ndarrays, the i-th of shape (cardinality_i,)
        What each value adds to the log-odds.
    signed : ndarray of shape (n_rows,)
        Weight of each row, negative where the original decides against the positive class.
    """

    codes: Codes
    cardinalities: tuple[int, ...]
    weights: tuple[FloatArray, ...]
    signed: FloatArray

    @cached_property
    def binary(self) -> NDArray[np.int64]:
        """Positions of the binary features."""
        return np.flatnonzero(np.array(self.cardinalities) == 2)

    @cached_property
    def packed(self) -> NDArray[np.uint8]:
        """The binary features, shape (n_bytes, n_rows): bit 7 - j of byte b is feature 8 b + j of `binary`."""
        return np.ascontiguousarray(np.packbits(self.codes[:, self.binary].astype(np.bool_), axis=1).T)

    @cached_property
    def binary_weights(self) -> FloatArray:
        """Weights of the binary features, shape (n_binary, 2)."""
        return np.array([self.weights[feature] for feature in self.binary]).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of the kept features by increasing log-odds.

    Attributes
    ----------
    places : ndarray of int64, shape (n_rows,)
        The cell of each row.
    log_odds : ndarray of shape (n_cells,)
    """

    places: NDArray[np.int64]
    log_odds: FloatArray

    @classmethod
    def sorted(cls, places: NDArray[np.int64], log_odds: FloatArray) -> Cells:
        """Return the cells in the order of their log-odds."""
        order = np.argsort(log_odds, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return cls(rank[places], log_odds[order])


def balances_with_each(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, shape (n_candidates,)."""
    if columns.codes.size < _SMALL:
        return highest_balances(columns, cells, candidates)
    return compiled_balances(columns, cells, candidates)


def highest_balances(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, by NumPy."""
    n_cells = len(cells.log_odds)
    best = np.empty(len(candidates))
    for i, feature in enumerate(candidates):
        n_values = columns.cardinalities[feature]
        parts = cells.places * n_values + columns.codes[:, feature]
        mass = masses(parts, columns.signed, n_cells * n_values)
        log_odds = summed(cells.log_odds[:, None], columns.weights[feature][None, :]).reshape(-1)
        best[i] = highest_balance(log_odds, mass)
    return best


def highest_balance(log_odds: FloatArray, mass: FloatArray) -> float:
    """Return the highest balance over all thresholds of parts with these log-odds and signed masses."""
    present = np.abs(mass) > NO_MASS
    values = capped(log_odds[present])
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(mass[present][order])
    if not values.size:
        return 0.0
    with np.errstate(invalid="ignore"):  # inf - inf is no distance, and not above any number
        ends = np.diff(values) > TIED_LOG_ODDS
    total = float(below[-1])
    # Below the cut: nothing, or everything up to the end of a group of ties. No threshold is above a posterior of 1.
    highest = max(total, -total) if values[-1] < math.inf else total
    return max(highest, float((total - 2.0 * below[:-1][ends]).max(initial=-math.inf)))


def compiled_balances(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, by compiled kernels."""
    from trimbench.trimming.kernels import balances as kernels

    totals = masses(cells.places, columns.signed, len(cells.log_odds))
    wanted = np.zeros(len(columns.cardinalities), dtype=np.bool_)
    wanted[list(candidates)] = True
    found = np.empty(len(columns.cardinalities))
    if wanted[columns.binary].any():
        found[columns.binary] = kernels.binary_balances(
            columns.packed,
            cells.places,
            columns.signed,
            cells.log_odds,
            totals,
            columns.binary_weights,
            wanted[columns.binary],
        )
    for feature in candidates:
        if columns.cardinalities[feature] != 2:
            codes = np.ascontiguousarray(columns.codes[:, feature], dtype=np.int64)
            weights = columns.weights[feature]
            found[feature] = kernels.balance(codes, cells.places, columns.signed, cells.log_odds, weights)
    return found[list(candidates)]
