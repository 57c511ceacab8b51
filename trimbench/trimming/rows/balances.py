"""The best cut of every subset that has one feature more, for naive Bayes.

Rows with the same values of the kept features form a cell. One more feature splits each cell by its value v, and moves
the log-odds of the part by the weight of v. So the cells are sorted once, and the parts of one value stay sorted: their
lists are merged, and the balance (signed mass above the cut minus that below) is tracked on the way.

The compiled kernels read binary features packed, eight to a byte. `highest_balances` is their twin in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled
from trimbench.trimming.rows.scores import HIGHEST, FloatArray, capped, summed
from trimbench.trimming.rows.weighted_rows import Codes, masses

# Log-odds closer than this are tied: no threshold separates them.
TIE = 1e-11
# Smaller masses are what rounding leaves of parts without rows.
_NO_MASS = 1e-14
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
    present = np.abs(mass) > _NO_MASS
    values = capped(log_odds[present])
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(mass[present][order])
    if not values.size:
        return 0.0
    with np.errstate(invalid="ignore"):  # inf - inf is no distance, and not above any number
        ends = np.diff(values) > TIE
    total = float(below[-1])
    # Below the cut: nothing, or everything up to the end of a group of ties. No threshold is above a posterior of 1.
    highest = max(total, -total) if values[-1] < math.inf else total
    return max(highest, float((total - 2.0 * below[:-1][ends]).max(initial=-math.inf)))


def compiled_balances(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, by compiled kernels."""
    binary_kernel, general_kernel = _kernels()
    totals = masses(cells.places, columns.signed, len(cells.log_odds))
    wanted = np.zeros(len(columns.cardinalities), dtype=np.bool_)
    wanted[list(candidates)] = True
    found = np.empty(len(columns.cardinalities))
    if wanted[columns.binary].any():
        found[columns.binary] = binary_kernel(
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
            found[feature] = general_kernel(codes, cells.places, columns.signed, cells.log_odds, weights)
    return found[list(candidates)]


@cache
def _kernels() -> tuple[Callable[..., FloatArray], Callable[..., float]]:
    """Compile the kernels, once in a process."""

    @compiled
    def merged(log_odds: FloatArray, weights: FloatArray, mass: FloatArray, heads: NDArray[np.int64]) -> float:
        """Merge the sorted lists of the values; mass has shape (n_cells, n_values)."""
        n_cells, n_values = mass.shape
        total = 0.0
        for cell in range(n_cells):
            for value in range(n_values):
                total += mass[cell, value]
        heads[:] = 0
        best, below, last, started = total, 0.0, 0.0, False
        while True:
            lowest, chosen = 0.0, -1
            for value in range(n_values):
                while heads[value] < n_cells and abs(mass[heads[value], value]) <= _NO_MASS:
                    heads[value] += 1
                if heads[value] == n_cells:
                    continue
                odds, weight = log_odds[heads[value]], weights[value]
                moved = np.inf if np.inf in (odds, weight) else odds + weight
                if HIGHEST < moved < np.inf:
                    moved = HIGHEST
                if chosen < 0 or moved < lowest:
                    lowest, chosen = moved, value
            if chosen < 0:
                break
            if started and lowest - last > TIE:
                best = max(best, total - 2.0 * below)
            below += mass[heads[chosen], chosen]
            heads[chosen] += 1
            last, started = lowest, True
        if last < np.inf:
            best = max(best, -total)
        return best

    @compiled
    def binary(
        packed: NDArray[np.uint8],
        places: NDArray[np.int64],
        signed: FloatArray,
        log_odds: FloatArray,
        totals: FloatArray,
        weights: FloatArray,
        wanted: NDArray[np.bool_],
    ) -> FloatArray:
        n_bytes, n_rows = packed.shape
        n_cells = log_odds.size
        bits = np.zeros((256, 8))
        for byte in range(256):
            for lane in range(8):
                bits[byte, lane] = (byte >> (7 - lane)) & 1
        ones = np.empty((n_cells, 8))
        mass = np.empty((n_cells, 2))
        heads = np.zeros(2, dtype=np.int64)
        found = np.zeros(wanted.size)
        for b in range(n_bytes):
            end = min(8, wanted.size - 8 * b)
            if not wanted[8 * b : 8 * b + end].any():
                continue
            ones[:] = 0.0
            for row in range(n_rows):
                sign, cell, byte = signed[row], places[row], packed[b, row]
                for lane in range(8):
                    ones[cell, lane] += sign * bits[byte, lane]
            for lane in range(end):
                if wanted[8 * b + lane]:
                    for cell in range(n_cells):
                        mass[cell, 1] = ones[cell, lane]
                        mass[cell, 0] = totals[cell] - ones[cell, lane]
                    found[8 * b + lane] = merged(log_odds, weights[8 * b + lane], mass, heads)
        return found

    @compiled
    def general(
        codes: NDArray[np.int64],
        places: NDArray[np.int64],
        signed: FloatArray,
        log_odds: FloatArray,
        weights: FloatArray,
    ) -> float:
        mass = np.zeros((log_odds.size, weights.size))
        for row in range(codes.size):
            mass[places[row], codes[row]] += signed[row]
        return float(merged(log_odds, weights, mass, np.zeros(weights.size, dtype=np.int64)))

    return binary, general
