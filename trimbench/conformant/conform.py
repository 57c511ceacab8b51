"""Naive conformant learning: the naive Bayes model that conforms with a classifier and fits its features best."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import is_number
from trimbench._typing import Matrix, Vector
from trimbench.conformant.choice import Components, Covariance, check_form, learn_mixture
from trimbench.conformant.coding import reduce_problem
from trimbench.conformant.distribution import Component
from trimbench.conformant.evidence import Evidence, logsumexp
from trimbench.conformant.layout import FeatureLayout, blocks
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import ReducedProblem, Solution, solve_newton
from trimbench.conformant.rows import FeatureStatistics, FeatureSums, Rows, spread_places
from trimbench.networks.batches import in_batches
from trimbench.networks.values import as_numbers, names_of

Solver = Literal["newton"] | Callable[[ReducedProblem], Solution]
# A solver that leaves a larger residual has not solved the problem.
_ACCEPTABLE_RESIDUAL = 1e-5


def conform(
    logistic_regression: Any,
    X: Any,
    solver: Solver = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: Components = "auto",
    covariance: Covariance = "auto",
    sample_weight: ArrayLike | None = None,
    random_state: int = 0,
) -> ConformantModel:
    """Learn the distribution that conforms with a logistic regression and fits the features best.

    With one component and without covariance it is the naive Bayes model of the paper. Several components, or a
    covariance of the real-valued features, are the same classifier on complete rows with a density that captures the
    dependencies between the features, which predicts better where values are missing. By default, held-out rows tell
    what is needed.

    Parameters
    ----------
    logistic_regression : fitted sklearn.linear_model.LogisticRegression
        Binary or multinomial, regularised or not. Any other classifier with ``coef_``, ``intercept_`` and ``classes_``
        is accepted if its ``predict_proba`` is the softmax (for two classes the sigmoid) of its linear scores, as with
        ``SGDClassifier(loss="log_loss")`` for two classes; this is checked on some rows of X. An object with these
        three attributes and no ``predict`` holds weights of your own, which are not checked. `trimbench.conform` also
        takes a fitted `BernoulliNB`, `CategoricalNB`, or a fitted pipeline that ends in one of the three, and then
        returns a `NaiveConformantClassifier` of the raw columns.
    X : array of shape (n_rows, n_columns), or rows in batches
        Training rows; labels are not needed. The columns of a data frame are matched by name, here and in predictions.
        Columns are 0 or 1 unless they are named in `real`. NaN marks a missing feature: the model is then the one that
        fits the observed values best. Rows that do not fit into memory come in batches, see `trimbench.learn`; all but
        one component of complete rows without covariance takes several passes over them.
    solver : "newton" or callable
        The solver of the concave problem: Newton's method (the default), or for comparison a function from a
        `trimbench.conformant.problem.ReducedProblem` to its `Solution`. `trimbench.papers.conformant.programs` has
        the paper's geometric program (`solve_gpkit`) and a cone program (`solve_cvxpy`). Incomplete rows, several
        components and a covariance need ``"newton"``; with another solver, ``"auto"`` means none of them.
    smoothing : float
        Pseudo-count of each class, and of each value of each feature in each class; 0 or more. A real-valued feature
        gets two pseudo-observations in each class, one standard deviation below and above its mean. Components share
        the counts.
    categorical : sequence of sequences of int, optional
        Columns of each one-hot encoded feature. Such a feature is one variable with as many values as columns; if it is
        not named here, its columns are independent binary features, as in the paper.
    real : sequence of int, optional
        Columns with real values: Gaussian in each class with a common variance. An extension of the paper.
    n_components : int or "auto"
        Number of components. ``"auto"`` (the default) splits them, up to 128, until held-out rows become no more
        likely. With a covariance it takes 1, 4, 16 or 64, or fewer where there are many features, whichever predicts
        the classifier's probabilities best for held-out rows with hidden values. `ConformantModel.n_components` has the
        number. An extension of the paper.
    covariance : {"auto", "full", "diagonal"}
        Whether the real-valued features of a component are independent in each class (``"diagonal"``), or have one
        covariance in all classes (``"full"``), shrunk as held-out rows ask for. Binary features beside them take part
        as numbers, and so do the values of categorical features, and binary features alone, as long as there are at
        most 200 numbers in all, or 40 where training rows have gaps.
        ``"auto"`` (the default) takes what predicts the classifier's probabilities better for held-out rows with
        hidden values, and ``"diagonal"`` for more than 200 numbers. With a single number it is always ``"diagonal"``.
        `ConformantModel.covariance` has what was taken. An extension of the paper.
    sample_weight : array of shape (n_rows,), or str, optional
        How often each row counts; for complete rows, and one component without covariance, which ``"auto"`` then
        means. The name of a column where rows come in batches.
    random_state : int
        Seed of the clustering that starts the search for several components, and of the choice of the rows that it
        looks at: 12,500 at most, whatever the order of all.

    Returns
    -------
    ConformantModel
        A mixture if there are several components.

    Raises
    ------
    ValueError
        When the classifier is not fitted, its probabilities are not the softmax of its linear scores, or an argument or
        a value of X is not allowed.
    RuntimeError
        When the solver fails.

    Notes
    -----
    Without smoothing, a value that no training row has gets probability 0 in every class: a feature with a single value
    is assumed to have it wherever it is missing.

    Several components, and incomplete rows, are learned by expectation-maximisation, each step of which solves the
    problem of one model for weighted rows. Each of several components gets one more row, with the means of all rows,
    and where there is a covariance, half a pseudo-observation for each feature, around the mean of a cluster of rows
    and with the covariance within all clusters.

    ``n_components=1, covariance="diagonal"`` is the only model whose evidence for a class adds up over the features,
    which `ConformantModel.explain` needs without `delta`, and the only one that other solvers can learn.

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
    check_form(n_components, covariance)
    weights, biases, classes = linear_scores(logistic_regression)
    layout = FeatureLayout.of(len(weights), categorical, real)
    names = getattr(logistic_regression, "feature_names_in_", None if in_batches(X) else names_of(X))
    rows = Rows.of(X, layout.n_columns, names, sample_weight)
    is_weighted = rows.weights is not None
    statistics = FeatureSums.of(rows, layout, missing=not is_weighted).statistics
    check_probabilities(logistic_regression, rows.first, weights, biases)
    complete = statistics.complete
    if is_weighted or (callable(solver) and complete):
        n_components = 1 if n_components == "auto" else n_components
        covariance = "diagonal" if covariance == "auto" else covariance
    if is_weighted and (n_components != 1 or covariance != "diagonal"):
        raise ValueError(
            "sample_weight must be left out for incomplete rows, several components and covariance='full'; repeat the "
            "rows instead"
        )
    model = conform_to_statistics(weights, biases, classes, layout, statistics, solver, smoothing)
    if n_components == 1 and complete and covariance == "diagonal":
        return model.with_column_names(names)
    check_newton(solver, "incomplete rows, several components and a covariance")
    try:
        found = learn_mixture(model.components[0], rows, n_components, smoothing, random_state, covariance)
    except np.linalg.LinAlgError as error:
        raise RuntimeError(
            "covariance='full' is lost to rounding, as the weights of the classifier are too large; use "
            "covariance='diagonal', or stronger regularisation of the classifier"
        ) from error
    _check_residual(found.residual)
    return (model if complete and found.n_components == 1 and found.normals is None else found).with_column_names(names)


def conform_to_statistics(
    weights: Matrix,
    biases: Vector,
    classes: NDArray[Any],
    layout: FeatureLayout,
    statistics: FeatureStatistics,
    solver: Solver = "newton",
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
    solver : "newton" or callable
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
    check_finite_weights(weights, biases)
    coding = reduce_problem(weights, biases, layout, statistics, float(smoothing))
    # If every feature is constant there is nothing to solve, and other solvers reject an empty problem.
    solve = solve_newton if isinstance(solver, str) or not len(coding.problem.linear) else solver
    solution = solve(coding.problem)
    _check_residual(solution.residual, solver)
    return ConformantModel.of(Component(np.asarray(classes), weights, biases, layout, solution, coding))


def _check_residual(residual: float, solver: Solver = "newton") -> None:
    if not residual <= _ACCEPTABLE_RESIDUAL:
        stronger = "more smoothing, or stronger regularisation of the classifier"
        raise RuntimeError(
            f"solver {_solver_name(solver)} left a moment residual of {residual:.2g}, more than "
            f"{_ACCEPTABLE_RESIDUAL:g}; use " + ("solver='newton'" if callable(solver) else stronger)
        )


def _solver_name(solver: Any) -> str:
    return getattr(solver, "__name__", repr(solver)[:80])


def check_solver(solver: Any) -> None:
    """Raise ValueError unless this is a solver."""
    if not callable(solver) and not (isinstance(solver, str) and solver == "newton"):
        raise ValueError(
            f"solver must be 'newton' or a function of a ReducedProblem, got {_solver_name(solver)}; "
            "trimbench.papers.conformant.programs has solve_gpkit and solve_cvxpy"
        )


def check_newton(solver: Any, what: str) -> None:
    """Raise ValueError if the solver is a function, which cannot be used for `what`."""
    if callable(solver):
        raise ValueError(f"solver must be 'newton' for {what}, got {_solver_name(solver)}")


# The weights of a fitted logistic regression, and whether it is one.

_INSTEAD = "fit LogisticRegression to the same data, with its default (multinomial) handling of several classes"
_SAME_PROBABILITY = 1e-6
# Rows from across the table: if it is sorted by class, the first ones may be too certain to reveal a difference.
_COMPARED_ROWS = 100


def linear_scores(logistic_regression: Any) -> tuple[Matrix, Vector, NDArray[Any]]:
    """Return weights (n_columns, n_classes), biases and classes of a fitted logistic regression.

    Raises ValueError if it is not a fitted classifier, has infinite weights, or its weights, intercepts and classes do
    not match.
    """
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(logistic_regression, name)]
    if missing:
        kind, lacks = type(logistic_regression).__name__, f"without {', '.join(missing)}"
        if hasattr(logistic_regression, "classes_") and hasattr(logistic_regression, "predict_proba"):
            raise ValueError(
                f"logistic_regression must have a weight for each feature, got {kind} {lacks}; complete a classifier "
                f"of any kind with trimbench.expect(classifier, rows), or {_INSTEAD}"
            )
        raise ValueError(
            f"logistic_regression must be a fitted LogisticRegression, got {kind} {lacks}; call its fit first, or "
            f"{_INSTEAD}"
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
    check_finite_weights(coefficients, biases)
    return coefficients.T.copy(), biases.copy(), classes


def set_linear_scores(logistic_regression: Any, weights: Matrix, biases: Vector) -> None:
    """Give a fitted logistic regression other weights (n_columns, n_classes) and biases."""
    if len(biases) == 2:
        weights, biases = weights[:, 1:] - weights[:, :1], biases[1:] - biases[:1]
    logistic_regression.coef_, logistic_regression.intercept_ = weights.T.copy(), biases.copy()


def check_probabilities(logistic_regression: Any, X: NDArray[Any], weights: Matrix, biases: Vector) -> None:
    """Raise an error unless the classifier's probabilities are a softmax of its linear scores (one-vs-rest are not)."""
    from scipy.special import softmax

    name = type(logistic_regression).__name__
    if not hasattr(logistic_regression, "predict_proba"):
        if not hasattr(logistic_regression, "predict"):
            return
        raise ValueError(
            f"logistic_regression must give probabilities that are the softmax of its linear scores, got {name} "
            f"without predict_proba; {_INSTEAD}"
        )
    few = X[spread_places(len(X), _COMPARED_ROWS)].astype(np.float64)
    few = np.nan_to_num(few)  # any rows will do
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a table without column names
        theirs = np.asarray(logistic_regression.predict_proba(few))
    ours = softmax(few @ weights + biases, axis=1)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0, atol=_SAME_PROBABILITY):
        raise ValueError(
            f"logistic_regression must give probabilities that are the softmax of its linear scores, got {name} with "
            f"other probabilities (one-versus-rest, calibrated or clipped, say); {_INSTEAD}"
        )


def check_finite_weights(weights: Matrix, biases: Vector) -> None:
    """Raise ValueError unless all weights and biases are finite."""
    if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
        raise ValueError("weights and biases must be finite; fit the logistic regression with regularisation")


# Logistic regression from incomplete rows: the likelihood of the classes given the observed values, in closed form.

_TURNS = 2
_MAX_ITERATIONS = 200
# Share of non-zero values below which sparse products are faster.
_SPARSE = 0.25
_FEWEST_CURVED = 2000
# Added to the curvature of the bias for each row: rows that the classifier is certain of have none.
_LEAST_CURVATURE = 1e-6


@dataclass(frozen=True, eq=False)
class IncompleteRows:
    """Labelled rows with missing values, and the objective that a classifier of them maximises.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_columns)
        NaN marks a missing feature.
    labels : ndarray of int, shape (n_rows,)
        Positions of classes.
    C : float
        As in scikit-learn's `LogisticRegression`.
    smoothing : float
    weights : ndarray of shape (n_rows,), optional
        Weights of the rows in the likelihood of the classes; the density of the features does not depend on them.
    """

    table: NDArray[np.float64]
    labels: NDArray[np.intp]
    layout: FeatureLayout
    C: float
    smoothing: float
    weights: Vector | None = None

    @cached_property
    def statistics(self) -> FeatureStatistics:
        """Means and variances of the observed values of each column."""
        return FeatureStatistics.of(self.table, self.layout, missing=True)

    @cached_property
    def _designs(self) -> tuple[tuple[slice, Any, Any], ...]:
        """Parts of the rows: their slice, their design (values, gaps, statistics of real features), and its transpose.

        All scores are linear in the design, which is sparse where most of it is 0, as with one-hot columns.
        """
        from scipy import sparse

        nothing = np.zeros((self.layout.n_columns, 1))
        coding = reduce_problem(nothing, nothing[0], self.layout, self.statistics, self.smoothing)
        evidence, found = Evidence(self.layout, coding), []
        for block in blocks(self.table, self.layout, checked=True):
            of_real = evidence.statistics(block)[:, len(coding.free) :]
            part = np.hstack([block.values, block.absent, of_real])
            design = sparse.csr_array(part) if np.count_nonzero(part) < _SPARSE * part.size else part
            found.append((block.rows, design, design.T))
        return tuple(found)

    def _scores(self, mixture: ConformantModel) -> NDArray[np.float64]:
        """Return the weight of each column of a design in the scores, shape (n_design, n_components, n_classes)."""
        n_columns, n_features = self.layout.n_columns, self.layout.n_features
        of_real = 2 * len(mixture.components[0].coding.real)
        scores = np.zeros((n_columns + n_features + of_real, mixture.n_components, len(mixture.biases)))
        scores[:n_columns] = mixture.weights[:, None, :]
        for z, part in enumerate(mixture.components):
            scores[n_columns : n_columns + n_features, z] = part.missing_scores
            if mixture.n_components > 1:  # a single level is the same for all classes
                parameters, free = part.solution.parameters[:, None], part.coding.free
                scores[free, z] += parameters[: len(free)]
                scores[n_columns + n_features :, z] = parameters[len(free) :]
        return scores

    def objective(self, mixture: ConformantModel) -> tuple[float, Matrix, Vector]:
        """Return the penalised log-likelihood of the classes, and its gradients with respect to weights and biases.

        The tilts of the components stay as they are. The penalty is that of scikit-learn: half the sum of the squared
        weights, divided by C; with two classes, the first has no weights.
        """
        n_columns, n_components, n_classes = self.layout.n_columns, mixture.n_components, len(mixture.biases)
        scores = self._scores(mixture).reshape(-1, n_components * n_classes)
        levels = mixture.log_weights - np.array([part.log_normaliser for part in mixture.components])
        constants = levels[:, None] + mixture.biases
        total, slopes, of_constants = 0.0, np.zeros(scores.shape), np.zeros(constants.shape)
        for rows, design, transposed in self._designs:
            joint = np.ascontiguousarray((design @ scores).T).reshape(n_components, n_classes, -1)
            likely, shares = _errors(joint + constants[:, :, None], self.labels[rows])
            if self.weights is not None:
                likely, shares = likely * self.weights[rows], shares * self.weights[rows]
            total += float(likely.sum())
            slopes += transposed @ shares.reshape(len(scores.T), -1).T
            of_constants += shares.sum(axis=2)
        by_column = slopes.reshape(-1, n_components, n_classes)
        weights, biases = by_column[:n_columns].sum(axis=1), of_constants.sum(axis=0)
        missing = by_column[n_columns : n_columns + self.layout.n_features][self.layout.feature_of_column]
        for z, part in enumerate(mixture.components):
            prior = of_constants[z].sum() * np.exp(part.log_prior)
            expected = np.exp(part.log_probabilities)
            expected[self.layout.real_columns] = part.real_moments[0]
            weights += (missing[:, z] - prior) * expected
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
        n_components: Components,
        random_state: int,
        covariance: Covariance = "diagonal",
    ) -> ConformantModel:
        """Return the mixture that conforms with a classifier and fits the rows best."""
        model = conform_to_statistics(weights, biases, classes, self.layout, self.statistics, smoothing=self.smoothing)
        found = learn_mixture(model.components[0], self.table, n_components, self.smoothing, random_state, covariance)
        _check_residual(found.residual)
        return found

    def improve(self, mixture: ConformantModel) -> tuple[Matrix, Vector]:
        """Return the weights and biases that maximise the objective while the tilts stay as they are.

        The search variables are scaled so that the curvature, with means in the gaps, is about 1 in all directions.
        """
        from scipy import linalg, optimize

        n_classes = len(mixture.biases)
        free = slice(1, None) if n_classes == 2 else slice(None)  # with two classes, the first has no weights
        start = np.vstack([mixture.weights, mixture.biases])
        roots = self._curvature_roots(mixture)[free]

        def unpacked(point: Vector) -> tuple[Matrix, Vector]:
            table, moves = start.copy(), point.reshape(len(roots), -1)
            steps = [linalg.solve_triangular(root, move) for root, move in zip(roots, moves, strict=True)]
            table[:, free] += np.stack(steps, axis=1)
            return table[:-1], table[-1]

        def negative(point: Vector) -> tuple[float, Vector]:
            value, weights, biases = self.objective(self.with_classifier(mixture, *unpacked(point)))
            slopes = np.vstack([weights, biases])[:, free].T
            steps = [linalg.solve_triangular(root, one, trans=1) for root, one in zip(roots, slopes, strict=True)]
            return -value, -np.concatenate(steps)

        found = optimize.minimize(
            negative,
            np.zeros(start[:, free].size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MAX_ITERATIONS, "gtol": 1e-5, "ftol": 1e-11},
        )
        return unpacked(found.x)

    def _curvature_roots(self, mixture: ConformantModel) -> list[Matrix]:
        """Return upper Cholesky factors of the curvature in the weights and bias of each class, from some rows."""
        n_rows, n_columns = len(self.table), self.layout.n_columns
        few = np.linspace(0, n_rows - 1, min(n_rows, max(_FEWEST_CURVED, 4 * n_columns))).astype(np.intp)
        rows = np.where(np.isnan(self.table[few]), self.statistics.means, self.table[few])
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        scores = rows @ np.vstack([mixture.weights, mixture.biases])
        shares = np.exp(scores - logsumexp(scores)[:, None])
        of_rows = (
            np.full(len(few), n_rows / len(few)) if self.weights is None else self.weights[few] * n_rows / len(few)
        )
        penalty = np.full(n_columns + 1, 1.0 / self.C)
        penalty[-1] = _LEAST_CURVATURE * n_rows
        return [
            np.linalg.cholesky((rows.T * (of_rows * share * (1.0 - share))) @ rows + np.diag(penalty)).T
            for share in shares.T
        ]


def fit_incomplete(
    start: Any,
    rows: IncompleteRows,
    n_components: Components,
    random_state: int = 0,
    covariance: Covariance = "diagonal",
) -> ConformantModel:
    """Learn a classifier and the density of the features from incomplete rows, in turns.

    A turn learns the classifier that makes the classes most likely, given the observed features and the density, then
    the density that conforms with it. Turns end when the classes become no more likely, after two at most. They have
    one component without covariance where these are to be chosen, or have a covariance: the density that is wanted is
    then learned once, for the classifier that the turns have found.

    Parameters
    ----------
    start : fitted LogisticRegression
        Where to begin, for example the regression of the rows with means in place of missing values.
    rows : IncompleteRows
    n_components : int or "auto"
    random_state : int
    covariance : {"auto", "full", "diagonal"}
    """
    weights, biases, classes = linear_scores(start)
    once = n_components == "auto" or covariance != "diagonal"
    in_turns: Components = 1 if once else n_components
    best = rows.conformant(weights, biases, classes, in_turns, random_state)
    reached = rows.objective(best)[0]
    for _ in range(_TURNS):
        mixture = rows.conformant(*rows.improve(best), classes, in_turns, random_state)
        value = rows.objective(mixture)[0]
        if not value > reached:
            break
        best, reached = mixture, value
    if not once:
        return best
    return rows.conformant(best.weights, best.biases, classes, n_components, random_state, covariance)


def _errors(joint: NDArray[np.float64], labels: NDArray[np.intp]) -> tuple[Vector, NDArray[np.float64]]:
    """Return the log-likelihood of the class of each row, and its gradient in the scores of all components.

    Parameters
    ----------
    joint : ndarray of shape (n_components, n_classes, n_rows)
    labels : ndarray of int, shape (n_rows,)
    """
    rows = np.arange(len(labels))
    right = joint[:, labels, rows]
    of_label, of_all = logsumexp(right, axis=0), logsumexp(joint.reshape(-1, len(rows)), axis=0)
    derivatives = -np.exp(joint - of_all)
    derivatives[:, labels, rows] += np.exp(right - of_label)
    return of_label - of_all, derivatives
