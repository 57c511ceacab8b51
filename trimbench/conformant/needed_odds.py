"""Which features a set must, and may, show for the odds of the class that a probability needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.reduced_problem import Matrix, Vector

Decided = tuple[NDArray[np.bool_], NDArray[np.bool_]]
# More than the rounding of a log-odds.
_ROUNDING = 1e-9


def decided_by_odds(
    problem: DecisionProblem, gain: Vector, shown: NDArray[np.intp], undecided: NDArray[np.intp], left: int
) -> Decided | None:
    """Return which undecided features must, and which may, be shown; None if no choice has the odds.

    Parameters
    ----------
    problem : DecisionProblem
    gain : ndarray of shape (n_states,)
        Upper bound on P(kept | state), minus delta: its mean over P(state | shown features) must not be negative.
    shown, undecided : ndarray of int
    left : int
        How many of the undecided features may be shown.
    """
    good, bad = np.flatnonzero(gain >= 0), np.flatnonzero(gain < 0)
    if not good.size:
        return None
    must, may = np.zeros(len(undecided), dtype=bool), np.ones(len(undecided), dtype=bool)
    logs = problem.log_prior + problem.evidence[shown].sum(axis=0)
    for b in bad:
        base = logs[good] - logs[b]
        steps = problem.evidence[np.ix_(undecided, good)] - problem.evidence[undecided, b][:, None]
        best, forced_in, forced_out = _largest_sums(steps, left)
        needed = np.log(-gain[b]) - _ROUNDING
        with np.errstate(divide="ignore"):
            weight = np.log(gain[good])

        def reach(sums: Matrix, base: Vector = base, weight: Vector = weight) -> Vector:
            return np.asarray(np.logaddexp.reduce(base + sums + weight, axis=-1))

        if reach(best[None])[0] < needed:
            return None
        must |= reach(forced_out) < needed
        may &= reach(forced_in) >= needed
    return must, may


def _largest_sums(steps: Matrix, left: int) -> tuple[Vector, Matrix, Matrix]:
    """Return the largest sums of at most `left` rows, column by column; also with each row forced in, and out."""
    useful = np.maximum(steps, 0.0)
    ranked = np.concatenate([-np.sort(-useful, axis=0), np.zeros((left + 1, steps.shape[1]))])
    best = ranked[:left].sum(axis=0)
    last, following = ranked[max(left - 1, 0)], ranked[left]
    taken = useful >= last
    forced_out = np.where(taken, best - useful + following, best)
    forced_in = np.where(taken, best + np.minimum(steps, 0.0), best - last + steps)
    return best, forced_in, forced_out
