"""The paper's geometric program, solved by GPkit and CVXOPT."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from trimbench.conformant.newton import Solution
from trimbench.conformant.reduced_problem import ReducedProblem

# An expression over all features is nested once for each feature.
_RECURSION_LIMIT = 100_000
_ACCURACY = {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11, "maxiters": 300}


def solve_gpkit(problem: ReducedProblem) -> Solution:
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
    RuntimeError
        When GPkit finds no solution.

    References
    ----------
    Khosravi et al. (2019), Equations 4 to 7 and Appendix B.
    """
    if len(problem.real_weights):
        raise ValueError("solver='gpkit' takes discrete features only; use solver='newton' or solver='cvxpy'")
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
    return Solution(parameters, at.residual, at.value, 0, spread)


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
            raise RuntimeError(f"solver='gpkit' needs GPkit and CVXOPT, which cannot be imported: {error}") from error
        sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
        try:
            yield gpkit
        finally:
            sys.setrecursionlimit(before)
