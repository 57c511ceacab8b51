"""The solvers that Newton's method is checked against: the paper's geometric program in GPkit, a cone program in CVXPY.

Both are functions that `trimbench.conform` takes as its `solver`. They need ``trimbench[solvers]``, nothing else.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from trimbench._extras import check_installed
from trimbench.conformant.problem import ReducedProblem, Solution

# An expression over all features is nested once for each feature.
_RECURSION_LIMIT = 100_000
_ACCURACY = {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11, "maxiters": 300}


@dataclass(frozen=True, eq=False)
class ProgramSolution(Solution):
    """The solution that GPkit found.

    Attributes
    ----------
    conformity_error : float
        Largest difference between the log-odds of GPkit's own probabilities and the weights that these must equal;
        always 0 on the reduced form.
    """

    conformity_error: float = 0.0


def solve_gpkit(problem: ReducedProblem) -> ProgramSolution:
    """Minimise the inverse likelihood as a geometric program in the probabilities themselves.

    The auxiliary weights of the paper are 1/K; they do not change the optimum.

    Parameters
    ----------
    problem : ReducedProblem
        With discrete features only.

    Raises
    ------
    ValueError
        When a feature is real-valued: its likelihood is not a posynomial.
    MissingExtraError
        Without GPkit and CVXOPT.
    RuntimeError
        When GPkit finds no solution.

    References
    ----------
    Khosravi et al. (2019), Equations 4 to 7 and Appendix B.
    """
    check_installed("gpkit", "cvxopt", extra="gpkit", what="solve_gpkit")
    if len(problem.real_weights):
        raise ValueError("solve_gpkit takes discrete features only; use solver='newton' or solve_cvxpy")
    with _quiet() as gpkit:
        prior = gpkit.VectorVariable(problem.n_classes, "p")
        value = gpkit.VectorVariable((max(problem.n_free, 1), problem.n_classes), "theta")
        reference = gpkit.VectorVariable((max(len(problem.starts), 1), problem.n_classes), "rest")
        model = gpkit.Model(
            _inverse_likelihood(problem, prior, value, reference), _constraints(problem, prior, value, reference)
        )
        try:
            found = model.solve("cvxopt", verbosity=0, **_ACCURACY)["variables"]
        except Exception as error:  # GPkit's own errors and those of CVXOPT have no common base
            raise RuntimeError(
                f"GPkit found no solution ({type(error).__name__}: {error}); use solver='newton'"
            ) from error
        thetas = np.array([[found[value[j, k]] for k in range(problem.n_classes)] for j in range(problem.n_free)])
        rests = np.array(
            [[found[reference[g, k]] for k in range(problem.n_classes)] for g in range(len(problem.starts))]
        )
    odds = np.log(thetas.reshape(problem.n_free, -1)) - np.repeat(
        np.log(rests.reshape(len(problem.starts), -1)), problem.sizes, axis=0
    )
    tilts = odds - problem.weights
    parameters = tilts.mean(axis=1) if problem.n_free else np.empty(0)
    at = problem.evaluate(parameters)
    spread = float(np.abs(tilts - parameters[:, None]).max(initial=0.0))
    return ProgramSolution(parameters, at.residual, at.value, 0, spread)


def _inverse_likelihood(problem: ReducedProblem, prior: Any, value: Any, reference: Any) -> Any:
    """Equation 4 with pseudo-counts, for a data set of total weight 1."""
    n_classes, pseudo = problem.n_classes, problem.pseudo
    objective = 1.0
    for k in range(n_classes):
        objective = objective * prior[k] ** -(1 / n_classes + pseudo)
        for g, (start, size) in enumerate(zip(problem.starts, problem.sizes, strict=True)):
            rows = range(start, start + size)
            left = 1.0 - float(problem.means[start : start + size].sum())
            objective = objective * reference[g, k] ** -(max(left, 0.0) / n_classes + pseudo)
            for j in rows:
                objective = objective * value[j, k] ** -(float(problem.means[j]) / n_classes + pseudo)
    return objective


def _constraints(problem: ReducedProblem, prior: Any, value: Any, reference: Any) -> list[Any]:
    """Equations 5 to 7 and Appendix B: ratios to class 0, and sums of at most 1."""
    constraints = [sum(prior[k] for k in range(problem.n_classes)) <= 1]
    for k in range(problem.n_classes):
        ratio = prior[k] / prior[0] * np.exp(problem.biases[0] - problem.biases[k])
        for g, (start, size) in enumerate(zip(problem.starts, problem.sizes, strict=True)):
            rows = range(start, start + size)
            constraints.append(reference[g, k] + sum(value[j, k] for j in rows) <= 1)
            if k == 0:
                continue
            ratio = ratio * reference[g, k] / reference[g, 0]
            for j in rows:
                odds = value[j, k] * reference[g, 0] / (reference[g, k] * value[j, 0])
                constraints.append(odds == float(np.exp(problem.weights[j, k] - problem.weights[j, 0])))
        if k > 0:
            constraints.append(ratio == 1)
    return constraints


@contextlib.contextmanager
def silent_descriptors() -> Iterator[None]:
    """Discard what this process, its libraries and its children write to standard output and error."""
    saved = {}
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # closed, as in a daemon: nothing can be written
            saved[descriptor] = os.dup(descriptor)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in saved:
            os.dup2(nowhere, descriptor)
        yield
    finally:
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        for descriptor, original in saved.items():
            os.dup2(original, descriptor)
            os.close(original)
        os.close(nowhere)


@contextlib.contextmanager
def _quiet() -> Iterator[ModuleType]:
    """Yield GPkit with its output silenced: its first import looks for solvers and runs its tests.

    Raises RuntimeError if it cannot be imported.
    """
    before = sys.getrecursionlimit()
    silence = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with silent_descriptors() if "gpkit" not in sys.modules else contextlib.nullcontext():
                import gpkit
        except (ImportError, OSError) as error:
            raise RuntimeError(f"solve_gpkit needs GPkit and CVXOPT, which cannot be imported: {error}") from error
        sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
        try:
            yield gpkit
        finally:
            sys.setrecursionlimit(before)


# The reduced problem as a convex program in CVXPY: an independent check of the Newton solver.

# Tolerance and longest step, as a share of the way to the boundary of the cones: tried until one is accurate enough.
# Longer steps, such as Clarabel's default of 0.99, are faster and cost accuracy on some machines.
_ATTEMPTS = ((1e-12, 0.7), (1e-12, 0.5), (1e-9, 0.7), (1e-7, 0.7))
_ENOUGH = 1e-8


def solve_cvxpy(problem: ReducedProblem) -> Solution:
    """Maximise the concave objective as an exponential-cone program.

    Raises MissingExtraError without CVXPY, and RuntimeError if it finds no solution: its interior-point method loses
    accuracy where there are hundreds of features and rare values.
    """
    check_installed("cvxpy", extra="solvers", what="solve_cvxpy")
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
