"""The reduced problem as a convex program in CVXPY: an independent check of the Newton solver."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from trimbench.conformant.newton import Solution
from trimbench.conformant.reduced_problem import ReducedProblem

# Tolerances, and how much of the way to the boundary of the cones a step may take, until one pair is accurate enough.
# Longer steps, such as Clarabel's default of 0.99, are faster and cost accuracy on some machines.
_ATTEMPTS = ((1e-12, 0.7), (1e-12, 0.5), (1e-9, 0.7), (1e-7, 0.7))
_ENOUGH = 1e-8


def solve_cvxpy(problem: ReducedProblem) -> Solution:
    """Maximise the concave objective as an exponential-cone program.

    Raises RuntimeError if CVXPY finds no solution: its interior-point method loses accuracy where there are hundreds
    of features and rare values.
    """
    import cvxpy as cp

    parameters = cp.Variable(len(problem.linear))
    scores: list[Any] = list(problem.biases)
    smoothed: Any = 0.0
    for k in range(problem.n_classes):
        normalisers = _normalisers(problem, parameters, k)
        if normalisers is not None:
            scores[k] = problem.biases[k] + cp.sum(normalisers)
            smoothed = smoothed + problem.pseudo * (problem.multiplicities @ normalisers)
    total = cp.log_sum_exp(cp.hstack(scores))
    objective = problem.linear @ parameters - (1 + problem.pseudo * problem.n_classes) * total - smoothed
    program = cp.Problem(cp.Maximize(objective))
    found: list[Solution] = []
    reason = ""
    # An interior-point method cannot always reach the highest accuracy; it may then return less than it could.
    for tolerance, step in _ATTEMPTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about accuracy, which the residual measures
            try:
                program.solve(
                    solver=cp.CLARABEL,
                    tol_gap_abs=tolerance,
                    tol_gap_rel=tolerance,
                    tol_feas=tolerance,
                    max_step_fraction=step,
                    max_iter=500,
                    verbose=False,
                )
            except cp.error.SolverError as error:
                reason = str(error).split(". ")[0]
            else:
                reason = f"status {program.status}"
        if parameters.value is not None:
            point = np.asarray(parameters.value, dtype=np.float64)
            at = problem.evaluate(point)
            iterations = program.solver_stats.num_iters if program.solver_stats else None
            found.append(Solution(point, at.residual, at.value, int(iterations or 0)))
            if at.residual < _ENOUGH:
                break
    if not found:
        raise RuntimeError(
            f"CVXPY found no solution for {problem.n_free} values of discrete features, {len(problem.real_weights)} "
            f"real-valued features and {problem.n_classes} classes ({reason}); use solver='newton'"
        )
    return min(found, key=lambda solution: solution.residual)


def _normalisers(problem: ReducedProblem, parameters: Any, k: int) -> Any:
    """Return the log-normaliser of each feature in class k as one expression."""
    import cvxpy as cp

    parts = []
    if problem.n_free:  # not every version of CVXPY has expressions of size 0
        exponents = parameters[: problem.n_free] + problem.weights[:, k]
        if (problem.sizes == 1).all():
            parts.append(cp.logistic(exponents))
        else:
            for start, size in zip(problem.starts, problem.sizes, strict=True):
                value = cp.log_sum_exp(cp.hstack([0, exponents[start : start + size]]))
                parts.append(cp.reshape(value, (1,), order="C"))
    for i in range(len(problem.real_weights)):
        at = problem.n_free + 2 * i
        slope, curvature = parameters[at] + problem.real_weights[i, k], -parameters[at + 1]
        value = 0.25 * cp.quad_over_lin(slope, curvature) + 0.5 * (np.log(np.pi) - cp.log(curvature))
        parts.append(cp.reshape(value, (1,), order="C"))
    return cp.hstack(parts) if parts else None
