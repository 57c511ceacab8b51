"""Naive conformant learning: the naive Bayes model that conforms with a classifier and fits its features best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_one_of, is_number, is_whole
from trimbench._extras import check_installed
from trimbench._typing import Matrix, Vector
from trimbench.conformant.distribution import Component, ComponentScores, logsumexp
from trimbench.conformant.layout import FeatureLayout, FeatureStatistics, as_table, blocks, has_gaps, row_weights
from trimbench.conformant.mixture import learn_mixture
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import ReducedProblem, Solution, reduce_problem, solve_newton
from trimbench.networks.values import as_numbers, names_of

SolverName = Literal["newton", "gpkit", "cvxpy"]
SOLVERS: tuple[SolverName, ...] = get_args(SolverName)
_PACKAGES = {"newton": (), "gpkit": ("gpkit", "cvxopt"), "cvxpy": ("cvxpy",)}
# A solver that leaves a larger residual has not solved the problem.
_ACCEPTABLE_RESIDUAL = 1e-5


def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: int | Literal["auto"] = 1,
    sample_weight: ArrayLike | None = None,
    random_state: int = 0,
) -> ConformantModel:
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
        Training rows; labels are not needed. The columns of a data frame are matched by name, here and in predictions.
        Columns are 0 or 1 unless they are named in `real`. NaN marks a missing
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
    sample_weight : array of shape (n_rows,), optional
        How often each row counts; for complete rows and one component.
    random_state : int
        Of the clusters with which the search for several components begins, and of the rows held out.

    Returns
    -------
    ConformantModel
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
    names = getattr(logistic_regression, "feature_names_in_", names_of(X))
    table = as_table(X, layout.n_columns, columns=names)
    complete = not has_gaps(table)
    if sample_weight is None:
        statistics = FeatureStatistics.of(table, layout, missing=True)
    else:
        statistics = FeatureStatistics.weighted(table, layout, row_weights(sample_weight, len(table)))
        if n_components != 1 or not complete:
            raise ValueError(
                "sample_weight must be left out for incomplete rows and several components; repeat the rows instead"
            )
    check_probabilities(logistic_regression, table, weights, biases)
    model = conform_to_statistics(weights, biases, classes, layout, statistics, solver, smoothing)
    if n_components == 1 and complete:
        return model.with_column_names(names)
    if solver != "newton":
        raise ValueError(f"solver must be 'newton' for incomplete rows and several components, got {solver!r}")
    found = learn_mixture(model.components[0], table, n_components, smoothing, random_state)
    _check_residual(found.residual, solver)
    return (model if complete and found.n_components == 1 else found).with_column_names(names)


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
    if not is_number(smoothing) or not 0 <= smoothing < math.inf:
        raise ValueError(f"smoothing must be a number >= 0, got {smoothing!r}")
    weights, biases = np.asarray(weights, dtype=np.float64), np.asarray(biases, dtype=np.float64)
    classes = np.asarray(classes)
    _check_weights(weights, biases, classes, layout, statistics)
    coding = reduce_problem(weights, biases, layout, statistics, float(smoothing))
    # If every feature is constant there is nothing to solve, and the other solvers reject an empty problem.
    solution = (_solver(solver) if len(coding.problem.linear) else solve_newton)(coding.problem)
    _check_residual(solution.residual, solver)
    return ConformantModel.of(Component(classes, weights, biases, layout, solution, coding))


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
    if not is_whole(n_components, 1) and not (isinstance(n_components, str) and n_components == "auto"):
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
    check_one_of("solver", name, SOLVERS)
    check_installed(*_PACKAGES[name], extra="solvers", what=f"solver={name!r}")


def _solver(name: SolverName) -> Callable[[ReducedProblem], Solution]:
    if name == "gpkit":
        from trimbench.conformant.other_solvers import solve_gpkit

        return solve_gpkit
    if name == "cvxpy":
        from trimbench.conformant.other_solvers import solve_cvxpy

        return solve_cvxpy
    return solve_newton


# The weights of a fitted logistic regression, and whether it is one.

_INSTEAD = "fit LogisticRegression to the same data, with its default (multinomial) handling of several classes"
_SAME_PROBABILITY = 1e-6
_COMPARED_ROWS = 100


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
    check_finite(coefficients, biases)
    return coefficients.T.copy(), biases.copy(), classes


def set_linear_scores(logistic_regression: Any, weights: Matrix, biases: Vector) -> None:
    """Give a fitted logistic regression other weights (n_columns, n_classes) and biases."""
    if len(biases) == 2:
        weights, biases = weights[:, 1:] - weights[:, :1], biases[1:] - biases[:1]
    logistic_regression.coef_, logistic_regression.intercept_ = weights.T.copy(), biases.copy()


def check_probabilities(logistic_regression: Any, X: NDArray[Any], weights: Matrix, biases: Vector) -> None:
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
    few = np.nan_to_num(few)  # any rows will do
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


def check_finite(weights: Matrix, biases: Vector) -> None:
    """Raise ValueError unless all weights and biases are finite."""
    if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
        raise ValueError("weights and biases must be finite; fit the logistic regression with regularisation")


# A logistic regression from incomplete rows: the likelihood of the classes given what is observed, in closed form.

_TURNS = 2
_MAX_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class IncompleteRows:
    """Rows with classes, and how a classifier of them is judged.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_columns)
        NaN marks a missing feature.
    labels : ndarray of int, shape (n_rows,)
        Positions of classes.
    C : float
        As of scikit-learn's `LogisticRegression`.
    smoothing : float
    weights : ndarray of shape (n_rows,), optional
        Of the rows in the likelihood of the classes; the density of the features does not depend on them.
    """

    table: NDArray[np.float64]
    labels: NDArray[np.intp]
    layout: FeatureLayout
    C: float
    smoothing: float
    weights: Vector | None = None
    statistics: FeatureStatistics = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistics", FeatureStatistics.of(self.table, self.layout, missing=True))

    def objective(self, mixture: ConformantModel) -> tuple[float, Matrix, Vector]:
        """Return the log-likelihood of the classes minus the penalty, and its derivatives by weights and biases.

        The tilts of the components stay as they are. The penalty is that of scikit-learn: half the squares of the
        weights, divided by C; of two classes the first has no weights.
        """
        n_components, n_classes = mixture.n_components, len(mixture.biases)
        total, of_components = 0.0, np.zeros(n_components)
        weights, biases = np.zeros_like(mixture.weights), np.zeros(n_classes)
        hidden = np.zeros((self.layout.n_features, n_components * n_classes))
        for block in blocks(self.table, self.layout, n_components * n_classes):
            scores = mixture.scores_of(block)
            likely, shares = _errors(scores, self.labels[block.rows])
            if self.weights is not None:
                of_rows = self.weights[block.rows]
                likely, shares = likely * of_rows, shares * of_rows[:, None, None]
            total += float(likely.sum())
            by_class = shares.sum(axis=1)
            weights += block.values.T @ by_class
            biases += by_class.sum(axis=0)
            of_components += shares.sum(axis=(0, 2))
            hidden += scores.absent.T @ shares[scores.gaps].reshape(len(scores.gaps), n_components * n_classes)
        missing = hidden.reshape(-1, n_components, n_classes)[self.layout.feature_of_column]
        for z, part in enumerate(mixture.components):
            prior = of_components[z] * np.exp(part.log_prior)
            weights += (missing[:, z] - prior) * _expectations(part)
            biases -= prior
        penalised = mixture.weights / self.C
        return total - 0.5 * float((mixture.weights * penalised).sum()), weights - penalised, biases

    def with_classifier(self, mixture: ConformantModel, weights: Matrix, biases: Vector) -> ConformantModel:
        """Return the mixture with the same tilts for another classifier."""
        coding = reduce_problem(weights, biases, self.layout, self.statistics, self.smoothing)
        parts = [replace(part, weights=weights, biases=biases, coding=coding) for part in mixture.components]
        return replace(mixture, components=tuple(parts))

    def conformant(
        self,
        weights: Matrix,
        biases: Vector,
        classes: NDArray[Any],
        n_components: int | Literal["auto"],
        random_state: int,
    ) -> ConformantModel:
        """Return the mixture that conforms with a classifier and fits the rows best."""
        classifier = SimpleNamespace(classes_=classes)
        set_linear_scores(classifier, weights, biases)
        categorical, real = self.layout.categorical, self.layout.real
        return conform(
            classifier,
            self.table,
            smoothing=self.smoothing,
            categorical=categorical,
            real=real,
            n_components=n_components,
            random_state=random_state,
        )

    def improve(self, mixture: ConformantModel) -> tuple[Matrix, Vector]:
        """Return the weights and biases that maximise the objective while the tilts stay as they are."""
        from scipy import optimize

        n_columns, n_classes = mixture.weights.shape
        free = slice(1, None) if n_classes == 2 else slice(None)  # of two classes the first has no weights

        def unpacked(point: Vector) -> tuple[Matrix, Vector]:
            table = np.zeros((n_columns + 1, n_classes))
            table[:, free] = point.reshape(n_columns + 1, -1)
            return table[:-1], table[-1]

        def negative(point: Vector) -> tuple[float, Vector]:
            value, weights, biases = self.objective(self.with_classifier(mixture, *unpacked(point)))
            return -value, -np.vstack([weights, biases])[:, free].ravel()

        start = np.vstack([mixture.weights, mixture.biases])[:, free].ravel()
        found = optimize.minimize(
            negative, start, jac=True, method="L-BFGS-B", options={"maxiter": _MAX_ITERATIONS, "gtol": 1e-5}
        )
        return unpacked(found.x)


def fit_incomplete(
    start: Any, rows: IncompleteRows, n_components: int | Literal["auto"], random_state: int = 0
) -> ConformantModel:
    """Learn a classifier and the density of the features from incomplete rows, in turns.

    A turn learns the density that conforms with the classifier, then the classifier that makes the classes most likely,
    given the observed features and this density; turns end when the classes become no more likely.

    Parameters
    ----------
    start : fitted LogisticRegression
        Where to begin, for example the regression of the rows with means in place of missing values.
    rows : IncompleteRows
    n_components : int or "auto"
    random_state : int
    """
    weights, biases, classes = linear_scores(start)
    best = rows.conformant(weights, biases, classes, n_components, random_state)
    reached = rows.objective(best)[0]
    for _ in range(_TURNS):
        mixture = rows.conformant(*rows.improve(best), classes, best.n_components, random_state)
        value = rows.objective(mixture)[0]
        if not value > reached:
            break
        best, reached = mixture, value
    return best


def _errors(scores: ComponentScores, labels: NDArray[np.intp]) -> tuple[Vector, NDArray[np.float64]]:
    """Return the log-likelihood of the class of each row, and its derivatives by the scores of all components."""
    joint = scores.levels[:, :, None] + scores.whole[:, None, :]
    joint[scores.gaps] = scores.levels[scores.gaps][:, :, None] + scores.of_gaps
    right = joint[np.arange(len(labels)), :, labels]
    flat = joint.reshape(len(joint), -1)
    of_label, of_all = logsumexp(right), logsumexp(flat)
    derivatives = -np.exp(joint - of_all[:, None, None])
    derivatives[np.arange(len(labels)), :, labels] += np.exp(right - of_label[:, None])
    return of_label - of_all, derivatives


def _expectations(model: Component) -> Matrix:
    """Return the expectation of each column in each class, shape (n_columns, n_classes)."""
    expected = np.exp(model.log_probabilities)
    real = [columns[0] for columns in model.layout.features if columns[0] in set(model.layout.real)]
    expected[real] = model.real_moments[0]
    return expected
