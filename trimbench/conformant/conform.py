"""Naive conformant learning: the naive Bayes model that conforms with a classifier and fits its features best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._extras import check_installed
from trimbench.conformant.classifier_weights import check_finite, check_probabilities, linear_scores
from trimbench.conformant.component_choice import learn_mixture
from trimbench.conformant.feature_statistics import FeatureStatistics
from trimbench.conformant.layout import FeatureLayout, has_gaps
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.newton import Solution, solve_newton
from trimbench.conformant.numeric_input import as_table
from trimbench.conformant.reduced_problem import Matrix, ReducedProblem, Vector, reduce_problem

SolverName = Literal["newton", "gpkit", "cvxpy"]
SOLVERS: tuple[SolverName, ...] = get_args(SolverName)
_PACKAGES = {"newton": (), "gpkit": ("gpkit", "cvxopt"), "cvxpy": ("cvxpy",)}
# A solver that leaves a larger residual has not solved the problem.
_ACCEPTABLE_RESIDUAL = 1e-5


@overload
def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: Literal[1] = 1,
    seed: int = 0,
) -> ConformantModel: ...


@overload
def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: int | Literal["auto"],
    seed: int = 0,
) -> ConformantModel | ConformantMixture: ...


def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: int | Literal["auto"] = 1,
    seed: int = 0,
) -> ConformantModel | ConformantMixture:
    """Learn the naive Bayes model that conforms with a logistic regression and fits the features best.

    With several components it is a mixture of such models: the same classifier on complete rows, and a density of the
    features that follows their dependencies, which predicts better where much is missing.

    Parameters
    ----------
    logistic_regression : fitted sklearn.linear_model.LogisticRegression
        Binary or multinomial, regularised or not. Any other classifier with ``coef_``, ``intercept_`` and ``classes_``
        is accepted if its ``predict_proba`` is the softmax (for two classes the sigmoid) of its linear scores, as with
        ``SGDClassifier(loss="log_loss")`` for two classes; this is checked on some rows of X. An object with these
        three attributes and no ``predict`` holds weights of your own, which are not checked. `trimbench.conform` also
        takes a fitted `BernoulliNB`, `CategoricalNB`, or a fitted pipeline that ends in one of the three, and then
        returns a `NaiveConformantClassifier` of the raw columns.
    X : array of shape (n_rows, n_columns)
        Training rows; labels are not needed. Columns are 0 or 1 unless they are named in `real`. NaN marks a missing
        feature: the model then fits what is observed best.
    solver : {"newton", "gpkit", "cvxpy"}
        ``"newton"`` for the reduced form (the default), ``"gpkit"`` for the paper's geometric program, ``"cvxpy"``
        for the reduced form as a cone program. All find the same optimum. Incomplete rows and several components
        need ``"newton"``.
    smoothing : float
        Pseudo-count of each value of each feature (and of each class) in each class, 0 or more. A real-valued feature
        gets two pseudo-observations, one standard deviation below and above its mean. Components share the counts.
    categorical : sequence of sequences of int, optional
        Columns of each one-hot encoded feature. Such a feature is one variable with as many values as columns; without
        this its columns are independent binary features, as in the paper.
    real : sequence of int, optional
        Columns with real values: Gaussian in each class with a common variance. An extension of the paper.
    n_components : int or "auto"
        Number of components; ``"auto"`` takes the number, up to 150, beyond which rows held out do not become more
        likely. An extension of the paper.
    seed : int
        Of the clusters with which the search for several components begins, and of the rows held out.

    Returns
    -------
    ConformantModel or ConformantMixture
        A mixture if there are several components.

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

    Several components, and incomplete rows, are learned by expectation-maximisation, each step of which solves the
    problem of one model for weighted rows. Each of several components gets five rows with the means of all rows.

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
    _check_n_components(n_components)
    weights, biases, classes = linear_scores(logistic_regression)
    layout = FeatureLayout.of(len(weights), categorical, real)
    names = getattr(logistic_regression, "feature_names_in_", getattr(X, "columns", None))
    table = as_table(X, layout.n_columns)
    statistics = FeatureStatistics.of(table, layout, missing=True)
    check_probabilities(logistic_regression, table, weights, biases)
    model = conform_to_statistics(weights, biases, classes, layout, statistics, solver, smoothing)
    complete = not has_gaps(table)
    if n_components == 1 and complete:
        return model.with_column_names(names)
    if solver != "newton":
        raise ValueError(f"solver must be 'newton' for incomplete rows and several components, got {solver!r}")
    mixture = learn_mixture(model, table, n_components, smoothing, seed)
    _check_residual(mixture.residual, solver)
    if mixture.n_components > 1:
        return mixture.with_column_names(names)
    return (model if complete else mixture.components[0]).with_column_names(names)


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
    _check_residual(solution.residual, solver)
    return ConformantModel(classes, weights, biases, layout, solution, coding)


def _check_residual(residual: float, solver: SolverName) -> None:
    if not residual <= _ACCEPTABLE_RESIDUAL:
        stronger = "more smoothing, or stronger regularisation of the classifier"
        advice = stronger if solver == "newton" else "solver='newton'"
        raise RuntimeError(
            f"solver {solver!r} left a moment residual of {residual:.2g}, more than {_ACCEPTABLE_RESIDUAL:g}; "
            f"use {advice}"
        )


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
    check_finite(weights, biases)


def _check_n_components(n_components: Any) -> None:
    whole = isinstance(n_components, int | np.integer) and not isinstance(n_components, bool)
    if not (n_components >= 1 if whole else isinstance(n_components, str) and n_components == "auto"):
        raise ValueError(f"n_components must be 1 or more, or 'auto', got {n_components!r}")


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
