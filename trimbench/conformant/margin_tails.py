"""Probabilities that a margin is at least 0, on a grid, with certified bounds on the effect of rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.decision_problem import DecisionProblem, HiddenFeature

# Probabilities of larger rounding errors to choose from, and what floating point adds to a probability at most.
_FAILURES = np.array([1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4])
_FLOATING = 1e-12
# Number of features between two stored copies of the table, and between those of a large one.
_CHECKPOINT_EVERY, _RARELY, _LARGE = 8, 64, 2**20

SHOWN, HIDDEN, UNDECIDED = 0, 1, 2


@dataclass(frozen=True, eq=False)
class _Rounded:
    """One random term on the grid: ``low + step * shift + error``."""

    low: float
    shifts: NDArray[np.int64]
    chances: Matrix
    errors: Matrix  # mean, variance proxy and largest distance from the mean, in each state
    outside: float


@dataclass(frozen=True, eq=False)
class _State:
    """The sum of some terms: P(shift = s | state), of shape (n_states, n_points), of which `reached` are used."""

    at: int
    low: float
    table: Matrix
    reached: int
    errors: Matrix
    outside: float


class MarginTails:
    """Bounds on P(margin >= 0 | state) against one rival, for any division into shown and hidden features.

    Parameters
    ----------
    problem : DecisionProblem
    rival : int
        Position among the rivals of the problem.
    n_points : int
        About how many points the grid has.
    order : ndarray of int, shape (n_features,)
        Order in which features are added. Divisions that begin alike share work, so features that are hidden in all
        of them, or shown in all, should come first.
    """

    def __init__(self, problem: DecisionProblem, rival: int, n_points: int, order: NDArray[np.intp]) -> None:
        self._base, self._order = float(problem.base[rival]), order.tolist()
        self._shown = problem.shown[:, rival].tolist()
        spans = [_span(feature, rival) for feature in problem.hidden]
        self._step = sum(high - low for low, high in spans) / n_points or 1.0
        step = self._step
        self._hidden = [_rounded(feature, rival, step, None) for feature in problem.hidden]
        self._undecided: dict[int, _Rounded] = {}
        self._problem, self._rival = problem, rival
        width = sum(int(term.shifts.max()) for term in self._hidden)
        width += len(self._hidden) + 1
        start = np.zeros((problem.n_states, width))
        start[:, 0] = 1.0
        self._states = [_State(0, self._base, start, 1, np.zeros((3, problem.n_states)), 0.0)]
        self._modes = np.full(len(self._order), -1)

    def bounds(self, modes: NDArray[np.int64]) -> tuple[Vector, Vector]:
        """Return lower and upper bounds on P(margin >= 0 | state), of shape (n_states,).

        Parameters
        ----------
        modes : ndarray of shape (n_features,)
            `SHOWN`, `HIDDEN`, or `UNDECIDED` for whichever of the two is better for the class: an upper bound only.
        """
        wanted = modes[self._order]
        differs = np.flatnonzero(wanted != self._modes)
        first = int(differs[0]) if differs.size else len(wanted)
        while self._states[-1].at > first:
            self._states.pop()
        self._modes = wanted
        return self._tails(self._advance(wanted.tolist()))

    def _advance(self, wanted: Sequence[int]) -> _State:
        state = self._states[-1]
        low, reached, outside = state.low, state.reached, state.outside
        table, errors = state.table.copy(), state.errors.copy()
        since, every = 0, _CHECKPOINT_EVERY if table.size < _LARGE else _RARELY
        for place in range(state.at, len(wanted)):
            feature = self._order[place]
            if wanted[place] == SHOWN:
                low += self._shown[feature]
            else:
                term = self._hidden[feature] if wanted[place] == HIDDEN else self._better(feature)
                reached = _convolve(table, reached, term)
                low += term.low
                errors += term.errors
                outside += term.outside
                since += 1
            if since == every:
                since = 0
                self._states.append(_State(place + 1, low, table.copy(), reached, errors.copy(), outside))
        return _State(len(wanted), low, table, reached, errors, outside)

    def _better(self, feature: int) -> _Rounded:
        if feature not in self._undecided:
            hidden, shown = self._problem.hidden[feature], self._shown[feature]
            self._undecided[feature] = _rounded(hidden, self._rival, self._step, shown)
        return self._undecided[feature]

    def _tails(self, state: _State) -> tuple[Vector, Vector]:
        n_states = len(state.table)
        above = np.cumsum(state.table[:, : state.reached][:, ::-1], axis=1)[:, ::-1]
        above = np.concatenate([above, np.zeros((n_states, 1))], axis=1)
        mean, proxies, absolute = state.errors
        slack = np.minimum(np.sqrt(2 * proxies * -np.log(_FAILURES[:, None])), absolute)
        failure = np.where(slack < absolute, _FAILURES[:, None], 0.0) + state.outside + _FLOATING
        needed = -state.low - mean
        states = np.arange(n_states)

        def tail(queries: Matrix) -> Matrix:
            places = np.ceil(queries / self._step - 1e-9)
            return above[states, np.clip(places, 0, state.reached).astype(np.int64)]

        lower, upper = tail(needed + slack) - failure, tail(needed - slack) + failure
        return np.clip(lower.max(axis=0), 0, 1), np.clip(upper.min(axis=0), 0, 1)


def _span(feature: HiddenFeature, rival: int) -> tuple[float, float]:
    possible = feature.values[(feature.chances > 0).any(axis=1), rival]
    return float(possible.min()), float(possible.max())


def _rounded(feature: HiddenFeature, rival: int, step: float, shown: float | None) -> _Rounded:
    """Return a feature on the grid; with `shown`, the larger of the amounts that it adds hidden and shown."""
    possible = (feature.chances > 0).any(axis=1)
    values, chances = feature.values[possible, rival], feature.chances[possible]
    width = float(feature.width[rival])
    if shown is not None:
        # The true value may be half a cell above the middle.
        values, width = np.maximum(values + width / 2, shown), 0.0
    low = float(values.min())
    shifts = np.rint((values - low) / step).astype(np.int64)
    errors = values - low - shifts * step
    expected = feature.means[:, rival] if shown is None else chances.T @ values
    mean = expected - chances.T @ (values - errors)
    least, most = float(errors.min()) - width / 2, float(errors.max()) + width / 2
    spread = most - least
    absolute = np.maximum(most - mean, mean - least)
    two = len(errors) == 2 and not width
    proxies = spread**2 * (np.array([_two_point_proxy(p) for p in chances[0].tolist()]) if two else 0.25)
    rounding = np.stack([mean, np.broadcast_to(proxies, mean.shape), absolute])
    if two and shifts[0] != shifts[1]:
        places = np.argsort(shifts)
        return _Rounded(low, shifts[places], chances[places], rounding, feature.outside)
    # Values that fall on one point of the grid are added together.
    distinct, places = np.unique(shifts, return_inverse=True)
    merged = np.zeros((len(distinct), chances.shape[1]))
    np.add.at(merged, places, chances)
    return _Rounded(low, distinct, merged, rounding, feature.outside)


def _two_point_proxy(chance: float) -> float:
    """Return the smallest variance proxy of a variable with two values at distance 1 (Kearns and Saul, 1998)."""
    p = max(min(chance, 1 - chance), 1e-300)
    return 0.25 if p > 0.499 else (1 - 2 * p) / (2 * math.log((1 - p) / p))


def _convolve(table: Matrix, reached: int, term: _Rounded) -> int:
    """Convolve the first `reached` probabilities of each state with one term, in place; return their new number."""
    shifts: list[int] = term.shifts.tolist()
    chances = term.chances
    if len(shifts) == 1:
        if (chances[0] == 1).all():
            return reached
        table[:, :reached] *= chances[0][:, None]
        return reached
    if len(shifts) > 40:
        from scipy.signal import fftconvolve

        dense = np.zeros((len(table), shifts[-1] + 1))
        dense[:, term.shifts] = chances.T
        grown = reached + shifts[-1]
        table[:, :grown] = np.maximum(fftconvolve(table[:, :reached], dense, axes=1), 0.0)
        return grown
    before = table[:, :reached].copy()
    table[:, :reached] *= chances[0][:, None]
    for shift, chance in zip(shifts[1:], chances[1:], strict=True):
        table[:, shift : shift + reached] += chance[:, None] * before
    return reached + shifts[-1]
