"""Trust-region (Levenberg) Newton for the reduced problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.reduced_problem import Evaluation, Matrix, ReducedProblem, Vector

# Below this the moment equations hold to rounding, unless there are thousands of features; then the search ends when
# a step no longer helps.
_TOLERANCE = 1e-13
_NEARLY = 1e-9
_MAX_ITERATIONS = 500
_SMALLEST_DAMPING = 1e-14


@dataclass(frozen=True, eq=False)
class Solution:
    """The parameters that a solver found, with its certificate.

    Attributes
    ----------
    parameters : ndarray of shape (n_parameters,)
    residual : float
        Largest violation of the moment equations; 0 at the optimum.
    value : float
        Objective: mean log-likelihood up to a constant.
    iterations : int
        0 if the solver does not report it.
    conformity_error : float
        Largest difference between the log-odds of the solver's own probabilities and the weights that they must
        have; 0 for a solver on the reduced form, where it cannot arise.
    """

    parameters: Vector
    residual: float
    value: float
    iterations: int
    conformity_error: float = 0.0


def solve_newton(problem: ReducedProblem, start: Vector | None = None) -> Solution:
    """Maximise the concave objective.

    Parameters
    ----------
    problem : ReducedProblem
    start : ndarray of shape (n_parameters,), optional
        Where to begin, for example at the solution of a similar problem.

    Notes
    -----
    The Hessian is block-diagonal (a number for each binary feature) plus a matrix of rank K, so that a step costs
    O(nK^2) by Woodbury's identity. Its damping adapts to how well the quadratic model has predicted: the plain Newton
    step from a saturated start goes far beyond the region where the model holds.
    """
    point = problem.start() if start is None else start
    at = problem.evaluate(point)
    damping, growth = 1.0, 2.0
    iterations = 0
    while at.residual > _TOLERANCE and iterations < _MAX_ITERATIONS:
        iterations += 1
        # Damping in proportion to the gradient vanishes at the optimum: the last steps are plain Newton steps.
        step = _step(problem, at, max(damping * at.residual, _SMALLEST_DAMPING))
        trial = point + step
        if not problem.is_allowed(trial):
            damping, growth = damping * growth, growth * 2
            continue
        there = problem.evaluate(trial)
        # The mean of both slopes is free of the cancellation that a difference of two values has near the optimum.
        predicted = 0.5 * float(step @ at.gradient)
        gained = 0.5 * float(step @ (at.gradient + there.gradient))
        if abs(there.value - at.value) > 1e-9 * (1 + abs(at.value)):
            gained = there.value - at.value
        ratio = gained / predicted if predicted > 0 else 0.0
        if at.residual < _NEARLY and there.residual > 0.5 * at.residual:
            break
        if ratio > 1e-4:
            point, at = trial, there
            damping *= max(0.1, 1 - (2 * min(ratio, 1.0) - 1) ** 3)
            growth = 2.0
        elif predicted <= 1e-18:
            break
        else:
            damping, growth = damping * growth, growth * 2
    return Solution(point, at.residual, at.value, iterations)


def _step(problem: ReducedProblem, at: Evaluation, damping: float) -> Vector:
    """Return (H + damping)^-1 gradient, where -H is the Hessian of the objective."""
    share = 1 + problem.pseudo * problem.n_classes
    centred = at.moments - (at.moments @ at.prior)[:, None]
    low_rank = centred * np.sqrt(share * at.prior)
    right = np.column_stack([low_rank, at.gradient])
    solved = np.empty_like(right)
    for rows, blocks in _blocks(problem, at):
        if rows.shape[1] == 1:
            solved[rows[:, 0]] = right[rows[:, 0]] / (blocks + damping)
        else:
            blocks = blocks + damping * np.eye(blocks.shape[1])
            solved[rows] = np.linalg.solve(blocks, right[rows])
    inner = np.eye(problem.n_classes) + low_rank.T @ solved[:, :-1]
    step: Vector = solved[:, -1] - solved[:, :-1] @ np.linalg.solve(inner, low_rank.T @ solved[:, -1])
    return step


def _blocks(problem: ReducedProblem, at: Evaluation) -> list[tuple[NDArray[np.intp], Matrix]]:
    """Return the diagonal blocks by size: parameters (n_blocks, size), and matrices (numbers where the size is 1)."""
    share = 1 + problem.pseudo * problem.n_classes
    result = []
    for size in np.unique(problem.sizes):
        rows = problem.starts[problem.sizes == size][:, None] + np.arange(size)
        factor = share * at.prior + problem.pseudo * size  # of each class
        moments = at.moments[rows]  # (n_blocks, size, n_classes)
        if size == 1:
            result.append((rows, (moments[:, 0] * (1 - moments[:, 0])) @ factor[:, None]))
            continue
        blocks = -(moments * factor) @ moments.transpose(0, 2, 1)
        blocks[:, np.arange(size), np.arange(size)] += moments @ factor
        result.append((rows, blocks))
    if len(problem.real_weights):
        rows = problem.n_free + np.arange(2 * len(problem.real_weights)).reshape(-1, 2)
        factor = share * at.prior + problem.pseudo
        mean, square = at.moments[rows[:, 0]], at.moments[rows[:, 1]]
        variance = square - mean**2
        blocks = np.empty((len(rows), 2, 2))
        blocks[:, 0, 0] = variance @ factor
        blocks[:, 0, 1] = blocks[:, 1, 0] = (2 * mean * variance) @ factor
        blocks[:, 1, 1] = (2 * variance**2 + 4 * mean**2 * variance) @ factor
        result.append((rows, blocks))
    return result
