"""Conformant learning: solvers against each other, and changes that must not change a prediction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import trimbench as tb
from tests.conformant import brute_force
from tests.conformant.problems import hide
from tests.nightly.cases import Case, comparison
from trimbench._extras import is_installed
from trimbench.conformant.conform import Solver
from trimbench.papers.conformant.solvers import SOLVERS

Array = NDArray[np.float64]

# Newton stops at a residual of 1e-10; problems that differ by rounding have solutions that differ by more than that.
_SOLVED = 1e-7
# Interior-point methods lose digits where probabilities are nearly 0 or 1.
_INTERIOR = 1e-6


class _Problem:
    """A random logistic regression of binary and categorical features, and training rows."""

    def __init__(self, case: Case, *, categorical: bool = True, scale: float | None = None, smooth: bool = False):
        rng = case.rng
        sizes = rng.integers(2, 4, size=rng.integers(0, 3)).tolist() if categorical else []
        n_binary, n_rows = int(rng.integers(0 if sizes else 1, 5)), int(rng.integers(4, 30))
        self.categorical: list[list[int]] = []
        parts, start = [], 0
        for size in sizes:
            values = np.concatenate([np.arange(size), rng.integers(0, size, n_rows)])[:n_rows]
            parts.append(np.eye(size)[rng.permutation(values)])
            self.categorical.append(list(range(start, start + size)))
            start += size
        binary = rng.random((n_rows, n_binary)) < rng.uniform(0.05, 0.95, n_binary)
        binary[0], binary[1] = False, True
        self.X: Array = np.hstack([*parts, binary.astype(float)])
        scale = case.any_of([0.1, 1.0, 4.0]) if scale is None else scale
        n_classes = int(rng.integers(2, 5))
        self.weights: Array = rng.normal(0, scale, (self.X.shape[1], n_classes))
        self.biases: Array = rng.normal(0, scale, n_classes)
        self.smoothing = case.any_of([0.5, 1.0] if smooth else [0.0, 1e-10, 0.5, 1.0])
        self.hidden = np.vstack([hide(self.X, self.categorical, rng), np.full((1, self.X.shape[1]), np.nan)])

    def model(self, solver: Solver = "newton") -> tb.ConformantModel:
        classifier = brute_force.fake_classifier(self.weights, self.biases)
        return tb.conform(classifier, self.X, solver, self.smoothing, categorical=self.categorical)


def _likelihoods(model: tb.ConformantModel, rows: Array) -> Array:
    return np.asarray(model.log_likelihood(rows))


@comparison("conformant")
def solvers(case: Case) -> None:
    """Newton's method against the solvers of the extra."""
    problem = _Problem(case, scale=case.any_of([0.1, 1.0]), smooth=True)
    newton = problem.model()
    for solver in ("cvxpy", "gpkit"):
        if not is_installed(solver):
            continue
        model = problem.model(SOLVERS[solver])
        expected, found = (float(_likelihoods(one, problem.X).mean()) for one in (newton, model))
        case.equal(f"likelihood of {solver}", found, expected, _INTERIOR)
        predictions = model.predict_proba(problem.hidden), newton.predict_proba(problem.hidden)
        case.equal(f"predictions of {solver}", *predictions, _INTERIOR)


def _same_predictions(case: Case, what: str, one: _Problem, other: _Problem, rows: Array) -> None:
    """Compare the models of two problems, the second on `rows` where the first has its own."""
    first, second = one.model(), other.model()
    case.equal(f"{what}: predictions", second.predict_proba(rows), first.predict_proba(one.hidden), _SOLVED)
    case.equal(f"{what}: likelihoods", _likelihoods(second, rows), _likelihoods(first, one.hidden), _SOLVED)


def _copy(problem: _Problem) -> _Problem:
    other = object.__new__(_Problem)
    vars(other).update(vars(problem))
    return other


@comparison("conformant")
def orders(case: Case) -> None:
    """Neither the order of the rows, nor that of the columns, nor that of the classes matters."""
    problem = _Problem(case)
    other = _copy(problem)
    n_columns, n_classes = problem.weights.shape
    columns, classes = case.rng.permutation(n_columns), case.rng.permutation(n_classes)
    place = np.argsort(columns)
    other.X = case.rng.permutation(problem.X)[:, columns]
    other.categorical = [[int(place[column]) for column in own] for own in problem.categorical]
    other.weights, other.biases = problem.weights[np.ix_(columns, classes)], problem.biases[classes]
    first, second = problem.model(), other.model()
    rows = problem.hidden[:, columns]
    case.equal("predictions", second.predict_proba(rows), first.predict_proba(problem.hidden)[:, classes], _SOLVED)
    case.equal("likelihoods", _likelihoods(second, rows), _likelihoods(first, problem.hidden), _SOLVED)


@comparison("conformant")
def repeated_rows(case: Case) -> None:
    """Every row three times, with three times the pseudo-counts, is the same problem."""
    problem = _Problem(case)
    other = _copy(problem)
    other.X, other.smoothing = np.repeat(problem.X, 3, axis=0), 3 * problem.smoothing
    _same_predictions(case, "repeated rows", problem, other, problem.hidden)


@comparison("conformant")
def shifted_scores(case: Case) -> None:
    """The softmax does not see what is added to the scores of all classes."""
    problem = _Problem(case)
    other = _copy(problem)
    other.weights = problem.weights + case.rng.normal(size=(len(problem.weights), 1))
    other.biases = problem.biases + case.rng.normal()
    _same_predictions(case, "shifted scores", problem, other, problem.hidden)


@comparison("conformant")
def exchanged_values(case: Case) -> None:
    """A binary feature may be coded by its opposite."""
    problem = _Problem(case, categorical=False)
    other = _copy(problem)
    flipped = case.rng.random(len(problem.weights)) < 0.5
    sign = np.where(flipped, -1.0, 1.0)
    other.X = np.where(flipped, 1 - problem.X, problem.X)
    other.weights = problem.weights * sign[:, None]
    other.biases = problem.biases + problem.weights[flipped].sum(axis=0)
    _same_predictions(case, "exchanged values", problem, other, np.where(flipped, 1 - problem.hidden, problem.hidden))
