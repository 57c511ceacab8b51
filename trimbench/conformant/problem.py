"""The concave problem of naive conformant learning in its reduced form, Newton's method, and the residual.

With weights ``w_k``, biases ``b_k`` and one parameter ``t_i`` for each binary feature, ``P(x_i = 1 | k)`` is
``sigmoid(t_i + w_ki)`` in every naive Bayes model that conforms with the logistic regression (Lemma 2), and

    log P(x) = logsumexp_k(b_k + w_k . x) + t . x - A(t),
    A(t)     = logsumexp_k(b_k + sum_i log(1 + exp(t_i + w_ki))).

The likelihood depends on the data only through the means of the features, and its gradient is the difference between
these means and the model's. A categorical feature has one parameter for each value but one, and the log-sum-exp of its
values in place of the softplus; a real-valued feature has a Gaussian base with two parameters, ``exp((t_i + w_ki) x +
l_i x^2)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.layout import FeatureLayout, FeatureStatistics


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one point, and the parts of its derivatives.

    Attributes
    ----------
    gradient : ndarray of shape (n_parameters,)
    prior : ndarray of shape (n_classes,)
        p_k of the naive Bayes model.
    log_normaliser : float
        A of the whole distribution.
    normalisers : ndarray of shape (n_discrete + n_real, n_classes)
        Log-normaliser of each feature in each class.
    moments : ndarray of shape (n_parameters, n_classes)
        Expectation of each statistic in each class.
    """

    value: float
    gradient: Vector
    prior: Vector
    log_normaliser: float
    normalisers: Matrix
    moments: Matrix

    @property
    def residual(self) -> float:
        """Largest violation of the moment equations."""
        return float(np.abs(self.gradient).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """The concave objective, as a function of the free parameters.

    Discrete features are coded against a reference value, whose weights have moved into the biases. Parameters are
    ordered: those of the discrete features, then a pair for each real-valued one (standardised).

    Attributes
    ----------
    biases : ndarray of shape (n_classes,)
    weights : ndarray of shape (n_free, n_classes)
        Weights of the values of discrete features, except the reference values.
    starts : ndarray of shape (n_discrete,)
        First row in `weights` of each discrete feature with at least two values.
    means : ndarray of shape (n_free,)
    real_weights : ndarray of shape (n_real, n_classes)
    pseudo : float
        Pseudo-count of each value of each feature in each class, divided by the number of rows.
    real_moments : ndarray of shape (2 * n_real,), optional
        Mean and mean square of each real-valued feature; 0 and 1 unless the rows are weighted.
    """

    biases: Vector
    weights: Matrix
    starts: NDArray[np.intp]
    means: Vector
    real_weights: Matrix
    pseudo: float
    real_moments: Vector | None = None
    sizes: NDArray[np.intp] = field(init=False)
    linear: Vector = field(init=False)

    def __post_init__(self) -> None:
        sizes = np.diff(np.append(self.starts, len(self.weights)))
        object.__setattr__(self, "sizes", sizes.astype(np.intp))
        n_real, n_classes = self.real_weights.shape
        if self.real_moments is None:
            object.__setattr__(self, "real_moments", np.tile([0.0, 1.0], n_real))
        object.__setattr__(self, "linear", self.moments + self.pseudo * n_classes * self.pseudo_observations)

    @property
    def moments(self) -> Vector:
        """Mean of each statistic in the training rows, shape (n_parameters,)."""
        return np.concatenate([self.means, np.asarray(self.real_moments)])

    @property
    def pseudo_observations(self) -> Vector:
        """Sum of each statistic over the pseudo-observations: those of a real-valued feature are at -1 and 1."""
        return np.concatenate([np.ones(len(self.means)), np.tile([0.0, 2.0], len(self.real_weights))])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.biases)

    @property
    def n_free(self) -> int:
        """Number of parameters of discrete features."""
        return len(self.weights)

    @property
    def multiplicities(self) -> Vector:
        """How often smoothing counts the log-normaliser of each feature: its number of values minus 1; 1 if real."""
        return np.concatenate([self.sizes.astype(np.float64), np.ones(len(self.real_weights))])

    @property
    def owner(self) -> NDArray[np.intp]:
        """Feature of each parameter."""
        n_real = len(self.real_weights)
        discrete = np.repeat(np.arange(len(self.starts)), self.sizes)
        return np.concatenate([discrete, len(self.starts) + np.repeat(np.arange(n_real), 2)]).astype(np.intp)

    def start(self) -> Vector:
        """Return a starting point: each feature fitted alone, with its weights averaged over the classes."""
        weights = self.weights.mean(axis=1)
        means = (self.means + self.pseudo) / (1 + self.pseudo * (np.repeat(self.sizes, self.sizes) + 1))
        reference = 1 - np.add.reduceat(means, self.starts) if len(self.starts) else np.empty(0)
        tilts = np.log(means) - np.log(np.repeat(reference, self.sizes)) - weights
        centres, squares = np.asarray(self.real_moments).reshape(-1, 2).T
        precisions = 1 / (squares - centres**2)
        pairs = np.stack([centres * precisions - self.real_weights.mean(axis=1), -0.5 * precisions], axis=1)
        return np.concatenate([tilts, pairs.ravel()])

    def is_allowed(self, parameters: Vector) -> bool:
        """Tell whether every density exists."""
        return bool((parameters[self.n_free + 1 :: 2] < 0).all()) and bool(np.isfinite(parameters).all())

    def evaluate(self, parameters: Vector) -> Evaluation:
        """Return the objective, its gradient, and the moments in each class."""
        discrete, probabilities = _discrete(parameters[: self.n_free, None] + self.weights, self.starts, self.sizes)
        real, moments = _gaussian(parameters[self.n_free :].reshape(-1, 2), self.real_weights)
        normalisers = np.concatenate([discrete, real])
        scores = self.biases + normalisers.sum(axis=0)
        top = scores.max()
        exponentials = np.exp(scores - top)
        total = float(top + np.log(exponentials.sum()))
        prior = exponentials / exponentials.sum()
        share = 1 + self.pseudo * self.n_classes
        value = float(self.linear @ parameters) - share * total
        moments = np.concatenate([probabilities, moments])
        gradient = self.linear - share * (moments @ prior)
        if self.pseudo:
            times = self.multiplicities
            value -= self.pseudo * float(times @ normalisers.sum(axis=1))
            gradient -= self.pseudo * times[self.owner] * moments.sum(axis=1)
        return Evaluation(value, gradient, prior, total, normalisers, moments)


def _discrete(exponents: Matrix, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> tuple[Matrix, Matrix]:
    """Return log(1 + sum of exponentials) for each feature and class, and the probability of each value."""
    from scipy.special import expit

    if len(starts) == len(exponents):
        return np.logaddexp(0.0, exponents), np.asarray(expit(exponents))
    top = np.maximum(np.maximum.reduceat(exponents, starts, axis=0), 0.0)
    shifted = np.exp(exponents - np.repeat(top, sizes, axis=0))
    normalisers = top + np.log(np.exp(-top) + np.add.reduceat(shifted, starts, axis=0))
    return normalisers, np.exp(exponents - np.repeat(normalisers, sizes, axis=0))


def _gaussian(pairs: Matrix, weights: Matrix) -> tuple[Matrix, Matrix]:
    """Return log of the integral of exp((t + w) x + l x^2), and the expectations of x and x^2, interleaved."""
    slope = pairs[:, :1] + weights
    curvature = pairs[:, 1:]
    mean = -slope / (2 * curvature)
    normalisers = 0.5 * slope * mean + 0.5 * np.log(np.pi / -curvature)
    moments = np.stack([mean, mean**2 - 1 / (2 * curvature)], axis=1)
    return normalisers, moments.reshape(-1, weights.shape[1])


@dataclass(frozen=True, eq=False)
class Coding:
    """How the columns of the logistic regression appear in the reduced problem.

    Attributes
    ----------
    free : ndarray of int
        Column of each row of the problem's weights.
    discrete : tuple of int
        Position, in the layout, of each discrete feature of the problem.
    real : tuple of int
        Position of each real-valued feature of the problem.
    offsets : ndarray of shape (n_features, n_classes)
        What the reference value (or the mean) of each feature adds to the score of each class.
    means, scales : ndarray of shape (n_real,)
        Means and standard deviations of the real-valued features of the problem.
    unseen : ndarray of int
        Columns that are never 1 in the training rows and are not smoothed.
    constants : dict of int to float
        Value of each real-valued column without variance in the training rows.
    """

    problem: ReducedProblem
    free: NDArray[np.intp]
    discrete: tuple[int, ...]
    real: tuple[int, ...]
    offsets: Matrix
    means: Vector
    scales: Vector
    unseen: NDArray[np.intp]
    constants: dict[int, float]


def reduce_problem(
    weights: Matrix, biases: Vector, layout: FeatureLayout, statistics: FeatureStatistics, smoothing: float
) -> Coding:
    """Return the reduced problem of a logistic regression and the means of the features.

    Without smoothing, a value that no training row has gets probability 0 in every class, because the likelihood grows
    without bound in that direction; a feature with one value, or without variance, then has no parameter.

    Parameters
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    smoothing : float
        Pseudo-count c, 0 or more.
    """
    offsets = np.zeros((layout.n_features, weights.shape[1]))
    free: list[int] = []
    starts: list[int] = []
    discrete: list[int] = []
    real: list[int] = []
    unseen: list[int] = []
    references: list[int] = []
    constants: dict[int, float] = {}
    means, is_binary, is_real = statistics.means, set(layout.binary.tolist()), set(layout.real)
    for place, columns in enumerate(layout.features):
        if columns[0] in is_real:
            offsets[place] = means[columns[0]] * weights[columns[0]]
            if statistics.variances[columns[0]] > 0:
                real.append(place)
            else:
                constants[columns[0]] = float(means[columns[0]])
            continue
        seen = [column for column in columns if smoothing > 0 or means[column] > 0]
        unseen += sorted(set(columns) - set(seen))
        if columns[0] in is_binary and (smoothing > 0 or means[columns[0]] < 1):
            reference = -1  # the value 0, of weight 0
        else:
            reference = max(seen, key=lambda column: means[column])
            seen.remove(reference)
            offsets[place] = weights[reference]
        if seen:
            starts.append(len(free))
            discrete.append(place)
            free += seen
            references += [reference] * len(seen)
    coded = weights[free] - np.where(np.array(references)[:, None] < 0, 0.0, weights[references])
    columns_of_real = [layout.features[place][0] for place in real]
    scales = np.sqrt(statistics.variances[columns_of_real])
    problem = ReducedProblem(
        biases + offsets.sum(axis=0),
        coded.reshape(len(free), weights.shape[1]),
        np.array(starts, dtype=np.intp),
        means[free],
        weights[columns_of_real] * scales[:, None],
        smoothing / statistics.n_rows,
    )
    return Coding(
        problem,
        np.array(free, dtype=np.intp),
        tuple(discrete),
        tuple(real),
        offsets,
        means[columns_of_real],
        scales,
        np.array(unseen, dtype=np.intp),
        constants,
    )


# Trust-region (Levenberg) Newton for the reduced problem.

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
    """

    parameters: Vector
    residual: float
    value: float
    iterations: int


def solve_newton(problem: ReducedProblem, start: Vector | None = None) -> Solution:
    """Maximise the concave objective by Newton's method with adaptive damping.

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
        try:
            trial = point + (step := _step(problem, at, max(damping * at.residual, _SMALLEST_DAMPING)))
        except np.linalg.LinAlgError:  # saturated: beside the rest, the damping was lost to rounding
            trial = np.full_like(point, np.nan)
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
