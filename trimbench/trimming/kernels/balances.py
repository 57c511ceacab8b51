"""Balances of the cuts of every subset that has one feature more, which `rows.balances` explains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled
from trimbench.trimming.thresholds import HIGHEST_LOG_ODDS, NO_MASS, TIED_LOG_ODDS

Floats = NDArray[np.float64]


@compiled
def highest_balance(log_odds: Floats, weights: Floats, mass: Floats, heads: NDArray[np.int64]) -> float:
    """Return the highest balance of the parts of all cells, by merging the sorted lists of the values.

    Parameters
    ----------
    log_odds : ndarray of shape (n_cells,)
        In ascending order.
    weights : ndarray of shape (n_values,)
        What each value adds to them.
    mass : ndarray of shape (n_cells, n_values)
        Signed mass of each part.
    heads : ndarray of int64, shape (n_values,)
        Is written: the next cell in the list of each value.
    """
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
            while heads[value] < n_cells and abs(mass[heads[value], value]) <= NO_MASS:
                heads[value] += 1
            if heads[value] == n_cells:
                continue
            odds, weight = log_odds[heads[value]], weights[value]
            moved = np.inf if np.inf in (odds, weight) else odds + weight
            if HIGHEST_LOG_ODDS < moved < np.inf:
                moved = HIGHEST_LOG_ODDS
            if chosen < 0 or moved < lowest:
                lowest, chosen = moved, value
        if chosen < 0:
            break
        if started and lowest - last > TIED_LOG_ODDS:
            best = max(best, total - 2.0 * below)
        below += mass[heads[chosen], chosen]
        heads[chosen] += 1
        last, started = lowest, True
    if last < np.inf:
        best = max(best, -total)
    return best


@compiled
def binary_balances(
    packed: NDArray[np.uint8],
    places: NDArray[np.int64],
    signed: Floats,
    log_odds: Floats,
    totals: Floats,
    weights: Floats,
    wanted: NDArray[np.bool_],
) -> Floats:
    """Return the highest balance with each wanted binary feature added, shape (n_binary,); 0 for the others.

    Parameters
    ----------
    packed : ndarray of uint8, shape (n_bytes, n_rows)
        Bit 7 - j of byte b is feature 8 b + j.
    places : ndarray of int64, shape (n_rows,)
        The cell of each row.
    signed : ndarray of shape (n_rows,)
        Weight of each row, negative where the original decides against the positive class.
    log_odds, totals : ndarrays of shape (n_cells,)
        Log-odds, ascending, and signed mass of the cells.
    weights : ndarray of shape (n_binary, 2)
    wanted : ndarray of bool, shape (n_binary,)
    """
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
                found[8 * b + lane] = highest_balance(log_odds, weights[8 * b + lane], mass, heads)
    return found


@compiled
def balance(
    codes: NDArray[np.int64],
    places: NDArray[np.int64],
    signed: Floats,
    log_odds: Floats,
    weights: Floats,
) -> float:
    """Return the highest balance with one feature added; `codes` has its value in each row, shape (n_rows,)."""
    mass = np.zeros((log_odds.size, weights.size))
    for row in range(codes.size):
        mass[places[row], codes[row]] += signed[row]
    return float(highest_balance(log_odds, weights, mass, np.zeros(weights.size, dtype=np.int64)))
