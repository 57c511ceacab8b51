"""Naive conformant learning: the naive Bayes model that conforms with a classifier and fits its features best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._extras import check_installed
from trimbench.conformant.feature_statistics import FeatureStatistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.newton import Solution, solve_newton
from trimbench.conformant.numeric_input import as_numbers, as_table
from trimbench.conformant.reduced_problem import Matrix, ReducedProblem, Vector, reduce_problem

SolverName = Literal["newton", "gpkit", "cvxpy"]
SOLVERS: tuple[SolverName, ...] = get_args(SolverName)
_PACKAGES = {"newton": (), "gpkit": ("gpkit", "cvxopt"), "cvxpy": ("cvxpy",)}
_INSTEAD = "fit LogisticRegression to the same data, with its default (multinomial) handling of several classes"
# A solver that leaves a larger residual has not solved the problem.
_ACCEPTABLE_RESIDUAL = 1e-5
_SAME_PROBABILITY = 1e-6
_COMPARED_ROWS = 100


def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
) -> ConformantModel:
    """Learn the naive Bayes model that conforms with a logistic regression and fits the features best.

    Parameters
    ----------
    logistic_regression : fitted sklearn.linear_model.LogisticRegression
        Binary or multinomial, regularised or not. Any other classifier with ``coef_``, ``intercept_`` and ``classes_``
        is accepted if its ``predict_proba`` is the softmax (for two classes the sigmoid) of its linear scores, as with
        ``SGDClassifier(loss="log_loss")`` for two classes; this is checked on some rows of X. An object with these
        three attributes and no ``predict`` holds weights of your own, which are not checked.
    X : array of shape (n_rows, n_columns)
        Complete training rows; labels are not needed. Columns are 0 or 1 unless they are named in `real`.
    solver : {"newton", "gpkit", "cvxpy"}
        ``"newton"`` for the reduced form (the default), ``"gpkit"`` for the paper's geometric program, ``"cvxpy"``
        for the reduced form as a cone program. All find the same optimum.
    smoothing : float
        Pseudo-count of each value of each feature (and of each class) in each class, 0 or more. A real-valued feature
        gets two pseudo-observations, one standard deviation below and above its mean.
    categorical : sequence of sequences of int, optional
        Columns of each one-hot encoded feature. Such a feature is one variable with as many values as columns; without
        this its columns are independent binary features, as in the paper.
    real : sequence of int, optional
        Columns with real values: Gaussian in each class with a common variance. An extension of the paper.

    Returns
    -------
    ConformantModel

    Raises
    ------
    ValueError
        When the classifier is not fitted, its probabilities are not the softmax of its linear scores, or an argument or
        a value of X is not allowed.
    MissingExtraError
        When the packages of the solver are not installed.
    RuntimeError
        When the solver fails.

    Notes
    -----
    Without smoothing, a value that no training row has gets probability 0 in every class: a feature with a single value
    is assumed to have it wherever it is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    >>> classifier = LogisticRegression().fit(X, [0, 0, 0, 1, 1])
    >>> model = conform(classifier, X)
    >>> bool(np.allclose(model.predict_proba(X), classifier.predict_proba(X)))
    True
    >>> model.predict_proba([[1, np.nan]]).round(3).tolist()
    [[0.551, 0.449]]

    References
    ----------
    Khosravi, Liang, Choi and Van den Broeck (2019), section 4.
    """
    check_solver(solver)
    weights, biases, classes = linear_scores(logistic_regression)
    layout = FeatureLayout.of(len(weights), categorical, real)
    table = as_table(X, layout.n_columns)
    statistics = FeatureStatistics.of(table, layout)
    _check_probabilities(logistic_regression, table, weights, biases)
    return conform_to_statistics(weights, biases, classes, layout, statistics, solver, smoothing)


def conform_to_statistics(
    weights: Matrix,
    biases: Vector,
    classes: NDArray[Any],
    layout: FeatureLayout,
    statistics: FeatureStatistics,
    solver: SolverName = "newton",
    smoothing: float = 1.0,
) -> ConformantModel:
    """Learn the conformant model from the means of the features, which is all it needs from the data.

    Parameters
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    classes : ndarray of shape (n_classes,)
    layout : FeatureLayout
    statistics : FeatureStatistics
    solver : {"newton", "gpkit", "cvxpy"}
    smoothing : float

    Raises
    ------
    ValueError, RuntimeError
        As `conform`.
    """
    check_solver(solver)
    if (
        isinstance(smoothing, bool)
        or not isinstance(smoothing, int | float | np.number)
        or not 0 <= smoothing < math.inf
    ):
        raise ValueError(f"smoothing must be a number >= 0, got {smoothing!r}")
    weights, biases = np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64)
    classes = np.asarray(classes)
    _check_weights(weights, biases, classes, layout, statistics)
    coding = reduce_problem(weights, biases, layout, statistics, float(smoothing))
    # If every feature is constant there is nothing to solve, and the other solvers reject an empty problem.
    solution = (_solver(solver) if len(coding.problem.linear) else solve_newton)(coding.problem)
    if not solution.residual <= _ACCEPTABLE_RESIDUAL:
        stronger = "more smoothing, or stronger regularisation of the classifier"
        advice = stronger if solver == "newton" else "solver='newton'"
        raise RuntimeError(
            f"solver {solver!r} left a moment residual of {solution.residual:.2g}, more than {_ACCEPTABLE_RESIDUAL:g}; "
            f"use {advice}"
        )
    return ConformantModel(classes, weights, biases, layout, solution, coding)


def linear_scores(logistic_regression: Any) -> tuple[Matrix, Vector, NDArray[Any]]:
    """Return weights (n_columns, n_classes), biases and classes of a fitted logistic regression.

    Raises ValueError if it is not a fitted classifier, has infinite weights, or its weights, intercepts and classes do
    not match.
    """
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(logistic_regression, name)]
    if missing:
        raise ValueError(
            f"logistic_regression must be a fitted LogisticRegression, got {type(logistic_regression).__name__} "
            f"without {', '.join(missing)}; call its fit first, or {_INSTEAD}"
        )
    classes = np.asarray(logistic_regression.classes_)
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"classes_ must be a list of at least two classes, got {logistic_regression.classes_!r}")
    sparse_or_not = logistic_regression.coef_
    dense = sparse_or_not.toarray() if hasattr(sparse_or_not, "toarray") else sparse_or_not  # after sparsify()
    coefficients = np.atleast_2d(as_numbers(dense, "coef_")).astype(np.float64)
    intercepts = as_numbers(logistic_regression.intercept_, "intercept_").astype(np.float64)
    if coefficients.ndim != 2 or not (len(coefficients) == len(classes) or (len(classes), len(coefficients)) == (2, 1)):
        raise ValueError(
            "coef_ must have one row of weights for each class, or one row for the second of two classes, got shape "
            f"{coefficients.shape} for {len(classes)} classes"
        )
    if intercepts.shape not in ((), (len(coefficients),)):
        raise ValueError(
            f"intercept_ must be one number, or one for each row of coef_, which has {len(coefficients)}, got shape "
            f"{intercepts.shape}"
        )
    biases = np.broadcast_to(intercepts, len(coefficients))
    if len(coefficients) < len(classes):  # scikit-learn stores only the second class
        coefficients = np.vstack([np.zeros_like(coefficients), coefficients])
        biases = np.concatenate([[0.0], biases])
    _check_finite(coefficients, biases)
    return coefficients.T.copy(), biases.copy(), classes


def _check_finite(weights: Matrix, biases: Vector) -> None:
    if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
        raise ValueError("weights and biases must be finite; fit the logistic regression with regularisation")


def _check_weights(
    weights: Matrix, biases: Vector, classes: NDArray[Any], layout: FeatureLayout, statistics: FeatureStatistics
) -> None:
    if weights.ndim != 2 or weights.shape != (layout.n_columns, len(classes)) or biases.shape != (len(classes),):
        raise ValueError(
            f"weights must have shape (n_columns, n_classes) = ({layout.n_columns}, {len(classes)}) and biases one "
            f"number for each class, got shapes {weights.shape} and {biases.shape}"
        )
    if len(statistics.means) != layout.n_columns:
        raise ValueError(
            f"weights and means must have the same length, got {layout.n_columns} weights for each class and "
            f"{len(statistics.means)} means"
        )
    _check_finite(weights, biases)


def _check_probabilities(logistic_regression: Any, X: NDArray[Any], weights: Matrix, biases: Vector) -> None:
    """Raise an error unless the classifier's probabilities are a softmax of its linear scores (one-vs-rest are not)."""
    name = type(logistic_regression).__name__
    if not hasattr(logistic_regression, "predict_proba"):
        if not hasattr(logistic_regression, "predict"):
            return
        raise ValueError(
            f"logistic_regression must give probabilities that are the softmax of its linear scores, got {name} "
            f"without predict_proba; {_INSTEAD}"
        )
    # Rows from across the table: if it is sorted by class, the first ones may be too certain to reveal a difference.
    few = X[np.linspace(0, len(X) - 1, min(len(X), _COMPARED_ROWS)).astype(np.intp)].astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a table without column names
        theirs = np.asarray(logistic_regression.predict_proba(few))
    scores = few @ weights + biases
    ours = np.exp(scores - scores.max(axis=1, keepdims=True))
    ours /= ours.sum(axis=1, keepdims=True)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0, atol=_SAME_PROBABILITY):
        raise ValueError(
            f"logistic_regression must give probabilities that are the softmax of its linear scores, got {name} with "
            f"other probabilities (one-versus-rest, calibrated or clipped, say); {_INSTEAD}"
        )


def check_solver(name: str) -> None:
    """Raise an error unless `name` is a solver whose packages are installed.

    Raises
    ------
    ValueError
        When there is no such solver.
    MissingExtraError
        When its packages are not installed.
    """
    if name not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {name!r}")
    check_installed(*_PACKAGES[name], extra="solvers", what=f"solver={name!r}")


def _solver(name: SolverName) -> Callable[[ReducedProblem], Solution]:
    if name == "gpkit":
        from trimbench.conformant.geometric_program import solve_gpkit

        return solve_gpkit
    if name == "cvxpy":
        from trimbench.conformant.cone_program import solve_cvxpy

        return solve_cvxpy
    return solve_newton
