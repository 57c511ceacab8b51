"""Naive conformant learning: the naive Bayes model that conforms with a classifier and fits its features best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.newton import Solution, solve_newton
from trimbench.conformant.problem import Matrix, ReducedProblem, Vector, reduce_problem
from trimbench.conformant.statistics import FeatureStatistics

SolverName = Literal["newton", "gpkit", "cvxpy"]
SOLVERS: tuple[SolverName, ...] = get_args(SolverName)
# A solver that leaves a larger residual has not solved the problem.
_ACCEPTABLE_RESIDUAL = 1e-5
_SAME_PROBABILITY = 1e-6


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
        Binary or multinomial, regularised or not.
    X : array of shape (n_rows, n_columns)
        Complete training rows, labels are not needed. Columns are 0 or 1 unless they are named in `real`.
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
        When the classifier is not fitted, its probabilities are no softmax of linear scores, or an argument or a value
        of X is not allowed.
    RuntimeError
        When the solver fails.

    Notes
    -----
    Without smoothing, a value that no training row has gets probability 0 in every class: a feature with one value
    only is taken to have it wherever it is missing.

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
    weights, biases, classes = linear_scores(logistic_regression)
    layout = FeatureLayout.of(len(weights), categorical, real)
    statistics = FeatureStatistics.of(X, layout)
    _check_probabilities(logistic_regression, X, weights, biases)
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
    """Learn the conformant model from what it needs to know of the data: the means of the features.

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
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    if (
        isinstance(smoothing, bool)
        or not isinstance(smoothing, int | float | np.number)
        or not 0 <= smoothing < math.inf
    ):
        raise ValueError(f"smoothing must be a number >= 0, got {smoothing!r}")
    weights, biases = np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64)
    _check_weights(weights, biases, classes, layout, statistics)
    coding = reduce_problem(weights, biases, layout, statistics, float(smoothing))
    solution = _solver(solver)(coding.problem)
    if not solution.residual <= _ACCEPTABLE_RESIDUAL:
        raise RuntimeError(
            f"solver {solver!r} left a moment residual of {solution.residual:.2g}, more than {_ACCEPTABLE_RESIDUAL:g}; "
            "use smoothing > 0, stronger regularisation of the classifier, or another solver"
        )
    return ConformantModel(classes, weights, biases, layout, solution, coding)


def linear_scores(logistic_regression: Any) -> tuple[Matrix, Vector, NDArray[Any]]:
    """Return weights (n_columns, n_classes), biases and classes of a fitted logistic regression.

    Raises
    ------
    ValueError
        When it is not fitted, is none, or has infinite weights.
    """
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(logistic_regression, name)]
    if missing:
        raise ValueError(
            f"logistic_regression must be a fitted LogisticRegression, got {type(logistic_regression).__name__} "
            f"without {', '.join(missing)}; call its fit first"
        )
    coefficients = np.atleast_2d(np.asarray(logistic_regression.coef_, dtype=np.float64))
    classes = np.asarray(logistic_regression.classes_)
    biases = np.broadcast_to(np.asarray(logistic_regression.intercept_, dtype=np.float64), len(coefficients))
    if len(classes) == 2 and len(coefficients) == 1:  # scikit-learn keeps the second class only
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
            f"weights and means must be of one length, got {layout.n_columns} weights for each class and "
            f"{len(statistics.means)} means"
        )
    _check_finite(weights, biases)


def _check_probabilities(logistic_regression: Any, X: ArrayLike, weights: Matrix, biases: Vector) -> None:
    """Raise an error unless the classifier's probabilities are a softmax of its linear scores (one-vs-rest are not)."""
    if not hasattr(logistic_regression, "predict_proba"):
        return
    few = np.asarray(X[:5] if isinstance(X, np.ndarray) else np.asarray(X)[:5], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a table without column names is predicted
        theirs = np.asarray(logistic_regression.predict_proba(few))
    scores = few @ weights + biases
    ours = np.exp(scores - scores.max(axis=1, keepdims=True))
    ours /= ours.sum(axis=1, keepdims=True)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0, atol=_SAME_PROBABILITY):
        raise ValueError(
            "logistic_regression must give the softmax of linear scores, and its probabilities are something else; "
            "use LogisticRegression with the default (multinomial) handling of several classes"
        )


def _solver(name: SolverName) -> Callable[[ReducedProblem], Solution]:
    if name == "gpkit":
        from trimbench.conformant.geometric import solve_gpkit

        return solve_gpkit
    if name == "cvxpy":
        from trimbench.conformant.convex import solve_cvxpy

        return solve_cvxpy
    return solve_newton
