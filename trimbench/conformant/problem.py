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

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one point, or one for each component of a mixture, and the parts of its derivatives.

    Of several components, all shapes begin with their number.

    Attributes
    ----------
    value : float
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

    value: Any
    gradient: NDArray[np.float64]
    prior: NDArray[np.float64]
    log_normaliser: Any
    normalisers: NDArray[np.float64]
    moments: NDArray[np.float64]

    @cached_property
    def residual(self) -> Any:
        """Largest violation of the moment equations."""
        return np.abs(self.gradient).max(axis=-1, initial=0.0)

    def at(self, places: Any) -> Evaluation:
        """Return the evaluation of some components, or of one."""
        return Evaluation(*(getattr(self, of.name)[places] for of in fields(self)))

    def updated(self, there: Evaluation, places: NDArray[np.intp], of_there: NDArray[np.bool_]) -> None:
        """Take over, for the components at `places`, what holds at another point, where `of_there` says so."""
        vars(self).pop("residual", None)
        for of in fields(self):
            getattr(self, of.name)[places[of_there]] = getattr(there, of.name)[of_there]


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """The concave objective, as a function of the free parameters; or those of the components of a mixture.

    Components share the weights: their `means`, `real_moments`, `pseudo` and `biases` then begin with their number.

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
        Pseudo-count of each value of each feature in each class, divided by the number of rows; an array for
        components.
    real_moments : ndarray of shape (2 * n_real,), optional
        Mean and mean square of each real-valued feature; 0 and 1 unless the rows are weighted.
    """

    biases: NDArray[np.float64]
    weights: Matrix
    starts: NDArray[np.intp]
    means: NDArray[np.float64]
    real_weights: Matrix
    pseudo: Any
    real_moments: NDArray[np.float64] | None = None
    sizes: NDArray[np.intp] = field(init=False)
    linear: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        sizes = np.diff(np.append(self.starts, len(self.weights)))
        object.__setattr__(self, "sizes", sizes.astype(np.intp))
        n_real, n_classes = self.real_weights.shape
        if self.real_moments is None:
            object.__setattr__(self, "real_moments", np.tile([0.0, 1.0], n_real))
        pseudo = np.asarray(self.pseudo)[..., None] * n_classes
        object.__setattr__(self, "linear", self.moments + pseudo * self.pseudo_observations)

    @property
    def moments(self) -> NDArray[np.float64]:
        """Mean of each statistic in the training rows, shape (n_parameters,)."""
        return np.concatenate([self.means, np.asarray(self.real_moments)], axis=-1)

    @property
    def pseudo_observations(self) -> Vector:
        """Sum of each statistic over the pseudo-observations: those of a real-valued feature are at -1 and 1."""
        return np.concatenate([np.ones(self.n_free), np.tile([0.0, 2.0], len(self.real_weights))])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.weights.shape[-1])

    @property
    def n_free(self) -> int:
        """Number of parameters of discrete features."""
        return len(self.weights)

    @cached_property
    def multiplicities(self) -> Vector:
        """How often smoothing counts the log-normaliser of each feature: its number of values minus 1; 1 if real."""
        return np.concatenate([self.sizes.astype(np.float64), np.ones(len(self.real_weights))])

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """Feature of each parameter."""
        n_real = len(self.real_weights)
        discrete = np.repeat(np.arange(len(self.starts)), self.sizes)
        return np.concatenate([discrete, len(self.starts) + np.repeat(np.arange(n_real), 2)]).astype(np.intp)

    def start(self) -> NDArray[np.float64]:
        """Return a starting point: each feature fitted alone, with its weights averaged over the classes."""
        weights = self.weights.mean(axis=1)
        pseudo = np.asarray(self.pseudo)[..., None] * self.n_classes
        means = (self.means + pseudo) / (1 + pseudo * (np.repeat(self.sizes, self.sizes) + 1))
        reference = 1 - np.add.reduceat(means, self.starts, axis=-1) if len(self.starts) else np.empty(means.shape)
        tilts = np.log(means) - np.log(np.repeat(reference, self.sizes, axis=-1)) - weights
        pairs = self.linear[..., self.n_free :] / (1 + 2 * pseudo)
        centres, squares = pairs[..., ::2], pairs[..., 1::2]
        precisions = 1 / (squares - centres**2)
        pairs = np.stack([centres * precisions - self.real_weights.mean(axis=1), -0.5 * precisions], axis=-1)
        return np.concatenate([tilts, pairs.reshape(*tilts.shape[:-1], -1)], axis=-1)

    def moved(self, parameters: Matrix, before: ReducedProblem) -> Matrix:
        """Return parameters of an earlier problem, moved as far as each feature alone has moved since."""
        now, then = self.start(), before.start()
        found = parameters + now - then
        # Of numbers, variances are multiplied and means added, so that every density still exists.
        slopes, curvatures = slice(self.n_free, None, 2), slice(self.n_free + 1, None, 2)
        weights = self.real_weights.mean(axis=1)
        means = [-0.5 * (one[..., slopes] + weights) / one[..., curvatures] for one in (parameters, now, then)]
        found[..., curvatures] = parameters[..., curvatures] * now[..., curvatures] / then[..., curvatures]
        found[..., slopes] = -2 * found[..., curvatures] * (means[0] + means[1] - means[2]) - weights
        return found

    def of(self, places: Any) -> ReducedProblem:
        """Return the problem of some components, or of one."""
        means, moments, pseudo = self.means[places], np.asarray(self.real_moments)[places], self.pseudo[places]
        biases = self.biases[places] if self.biases.ndim > 1 else self.biases
        return replace(self, means=means, real_moments=moments, pseudo=pseudo, biases=biases)

    def is_allowed(self, parameters: NDArray[np.float64]) -> Any:
        """Tell whether every density exists, for each component."""
        return (parameters[..., self.n_free + 1 :: 2] < 0).all(axis=-1) & np.isfinite(parameters).all(axis=-1)

    def evaluate(self, parameters: NDArray[np.float64]) -> Evaluation:
        """Return the objective, its gradient, and the moments in each class."""
        exponents = parameters[..., : self.n_free, None] + self.weights
        discrete, probabilities = _discrete(exponents, self.starts, self.sizes)
        if len(self.real_weights):
            real, moments = _gaussian(parameters[..., self.n_free :], self.real_weights)
            normalisers = np.concatenate([discrete, real], axis=-2)
            moments = np.concatenate([probabilities, moments], axis=-2)
        else:
            normalisers, moments = discrete, probabilities
        scores = self.biases + normalisers.sum(axis=-2)
        top = scores.max(axis=-1)
        exponentials = np.exp(scores - top[..., None])
        total = exponentials.sum(axis=-1)
        prior, total = exponentials / total[..., None], top + np.log(total)
        share = 1 + self.pseudo * self.n_classes
        value = (self.linear * parameters).sum(axis=-1) - share * total
        gradient = self.linear - _along(share, 1) * (moments @ prior[..., None])[..., 0]
        if np.any(self.pseudo):
            times = self.multiplicities
            value = value - self.pseudo * (normalisers.sum(axis=-1) @ times)
            gradient = gradient - _along(self.pseudo, 1) * times[self.owner] * moments.sum(axis=-1)
        return Evaluation(value, gradient, prior, total, normalisers, moments)


def _along(numbers: Any, n_more: int) -> Any:
    """Return numbers, one for each component or a single one, with further axes of length 1."""
    return np.asarray(numbers)[(..., *[None] * n_more)]


def _discrete(
    exponents: NDArray[np.float64], starts: NDArray[np.intp], sizes: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log(1 + sum of exponentials) for each feature and class, and the probability of each value."""
    from scipy.special import expit

    if len(starts) == exponents.shape[-2]:
        return np.logaddexp(0.0, exponents), np.asarray(expit(exponents))
    top = np.maximum(np.maximum.reduceat(exponents, starts, axis=-2), 0.0)
    shifted = np.exp(exponents - np.repeat(top, sizes, axis=-2))
    normalisers = top + np.log(np.exp(-top) + np.add.reduceat(shifted, starts, axis=-2))
    return normalisers, np.exp(exponents - np.repeat(normalisers, sizes, axis=-2))


def _gaussian(parameters: NDArray[np.float64], weights: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log of the integral of exp((t + w) x + l x^2), and the expectations of x and x^2, interleaved."""
    slope = parameters[..., ::2, None] + weights
    curvature = parameters[..., 1::2, None]
    mean = -slope / (2 * curvature)
    normalisers = 0.5 * slope * mean + 0.5 * np.log(np.pi / -curvature)
    moments = np.stack([mean, mean**2 - 1 / (2 * curvature)], axis=-2)
    return normalisers, moments.reshape(*parameters.shape, weights.shape[1])


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
    O(nK^2) by Woodbury's identity, which serves once more for the block of a feature with more than K values. The
    damping adapts to how well the quadratic model has predicted: the plain Newton step from a saturated start goes far
    beyond the region where the model holds.
    """
    alone = replace(
        problem,
        means=problem.means[None],
        real_moments=np.asarray(problem.real_moments)[None],
        pseudo=np.array([problem.pseudo]),
    )
    point, at, iterations = solve_all(alone, (problem.start() if start is None else start)[None])
    return Solution(point[0], float(at.residual[0]), float(at.value[0]), iterations)


def solve_all(problem: ReducedProblem, start: Matrix, tolerance: float = _TOLERANCE) -> tuple[Matrix, Evaluation, int]:
    """Maximise the objectives of several components as `solve_newton` does, all in the same steps.

    Parameters
    ----------
    problem : ReducedProblem
        Of the components.
    start : ndarray of shape (n_components, n_parameters)
    tolerance : float
        Largest violation of a moment equation.

    Returns
    -------
    parameters : ndarray of shape (n_components, n_parameters)
    at : Evaluation
        At these parameters.
    iterations : int
    """
    point = start.copy()
    at = problem.evaluate(point)
    damping, growth = np.ones(len(point)), np.full(len(point), 2.0)
    live = np.flatnonzero(at.residual > tolerance)
    iterations = 0
    while live.size and iterations < _MAX_ITERATIONS:
        iterations += 1
        everything = len(live) == len(point)
        some, here = (problem, at) if everything else (problem.of(live), at.at(live))
        # Damping in proportion to the gradient vanishes at the optimum: the last steps are plain Newton steps.
        step = _step(some, here, np.maximum(damping[live] * here.residual, _SMALLEST_DAMPING))
        before = point if everything else point[live]
        trial = before + step
        allowed = some.is_allowed(trial)
        if not allowed.all():
            step = np.where(allowed[:, None], step, 0.0)
            trial = before + step
        there = some.evaluate(trial)
        # The mean of both slopes is free of the cancellation that a difference of two values has near the optimum.
        predicted = 0.5 * (step * here.gradient).sum(axis=1)
        gained = 0.5 * (step * (here.gradient + there.gradient)).sum(axis=1)
        difference = there.value - here.value
        gained = np.where(np.abs(difference) > 1e-9 * (1 + np.abs(here.value)), difference, gained)
        ratio = np.where(predicted > 0, gained / np.where(predicted > 0, predicted, 1.0), 0.0)
        done = allowed & (here.residual < _NEARLY) & (there.residual > 0.5 * here.residual)
        accepted = allowed & ~done & (ratio > 1e-4)
        done |= allowed & ~accepted & (predicted <= 1e-18)
        lower = damping[live] * np.maximum(0.1, 1 - (2 * np.minimum(ratio, 1.0) - 1) ** 3)
        damping[live] = np.where(accepted, lower, damping[live] * growth[live])
        growth[live] = np.where(accepted, 2.0, growth[live] * 2)
        if everything and accepted.all():
            point, at = trial, there
        elif accepted.any():
            point[live[accepted]] = trial[accepted]
            at.updated(there, live, accepted)
        live = live[~done & (at.residual[live] > tolerance)]
    return point, at, iterations


def _step(problem: ReducedProblem, at: Evaluation, damping: Vector) -> Matrix:
    """Return (H + damping)^-1 gradient for each component, where -H is the Hessian of its objective.

    It is NaN for a component that is saturated, so that its damping was lost to rounding beside the rest.
    """
    share = 1 + problem.pseudo * problem.n_classes
    centred = at.moments - at.moments @ at.prior[:, :, None]
    low_rank = centred * np.sqrt(share[:, None] * at.prior)[:, None, :]
    right = np.concatenate([low_rank, at.gradient[:, :, None]], axis=2)
    solved = np.empty_like(right)
    for rows, blocks in _blocks(problem, at):
        if rows.shape[1] == 1:
            solved[:, rows[:, 0]] = right[:, rows[:, 0]] / (blocks + damping[:, None])[:, :, None]
        else:
            blocks = blocks + damping[:, None, None, None] * np.eye(blocks.shape[-1])
            solved[:, rows] = _solved(blocks, right[:, rows])
    if (of_many := _has_many_values(problem)).any():
        rows = np.flatnonzero(np.repeat(of_many, problem.sizes))
        solved[:, rows] = _solved_in_low_rank(problem, at.moments[:, rows], at.prior, damping, right[:, rows])
    transposed = np.swapaxes(low_rank, 1, 2)
    inner = np.eye(problem.n_classes) + transposed @ solved[:, :, :-1]
    middle = _solved(inner, transposed @ solved[:, :, -1:])
    return np.asarray(solved[:, :, -1] - (solved[:, :, :-1] @ middle)[:, :, 0])


def _has_many_values(problem: ReducedProblem) -> NDArray[np.bool_]:
    """Tell of each discrete feature whether its block has more rows than there are classes, and more than one."""
    return np.asarray(problem.sizes > max(problem.n_classes, 1))


def _solved_in_low_rank(
    problem: ReducedProblem,
    moments: NDArray[np.float64],
    prior: Matrix,
    damping: Vector,
    right: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the solutions for the blocks of features with many values, given their part of moments and right sides.

    The block of a feature that has the probabilities m_c in class c is ``diag(sum_c f_c m_c) - sum_c f_c m_c m_c'``: by
    Woodbury's identity, a system of n_classes unknowns is left of it.
    """
    sizes = problem.sizes[_has_many_values(problem)]
    starts = np.append(0, np.cumsum(sizes)[:-1])
    factors = np.repeat(_factors(problem, prior, sizes), sizes, axis=1)
    diagonal = (moments * factors).sum(axis=2) + damping[:, None]
    low_rank = moments * np.sqrt(factors)
    scaled = low_rank / diagonal[:, :, None]
    sides = np.concatenate([low_rank, right], axis=2)
    sums = np.add.reduceat(scaled[:, :, :, None] * sides[:, :, None, :], starts, axis=1)
    inner = np.eye(problem.n_classes) - sums[..., : problem.n_classes]
    middle = np.repeat(_solved(inner, sums[..., problem.n_classes :]), sizes, axis=1)
    return np.asarray(right / diagonal[:, :, None] + (scaled[:, :, :, None] * middle).sum(axis=2))


def _factors(problem: ReducedProblem, prior: Matrix, sizes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how often the classes count in the blocks of features, shape (n_components, n_features, n_classes)."""
    share = (1 + problem.pseudo * problem.n_classes)[:, None] * prior
    return np.asarray(share[:, None, :] + problem.pseudo[:, None, None] * sizes[:, None])


def _solved(systems: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the solutions of linear systems, NaN for each component that has a singular one."""
    try:
        return np.asarray(np.linalg.solve(systems, right))
    except np.linalg.LinAlgError:
        if len(systems) == 1:
            return np.full(right.shape, np.nan)
        return np.concatenate([_solved(systems[z : z + 1], right[z : z + 1]) for z in range(len(systems))])


def _blocks(problem: ReducedProblem, at: Evaluation) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Return the diagonal blocks by size, without those of features with many values.

    For each size the parameters, shape (n_blocks, size), and the matrices, shape (n_components, n_blocks, size, size),
    or numbers, shape (n_components, n_blocks), where the size is 1.
    """
    share = (1 + problem.pseudo * problem.n_classes)[:, None] * at.prior
    result = []
    for size in np.unique(problem.sizes[~_has_many_values(problem)]):
        rows = problem.starts[problem.sizes == size][:, None] + np.arange(size)
        factor = share + problem.pseudo[:, None] * size  # of each class
        if size == 1:
            moments = at.moments[:, rows[:, 0]]
            result.append((rows, ((moments * (1 - moments)) @ factor[:, :, None])[:, :, 0]))
            continue
        moments = at.moments[:, rows]  # (n_components, n_blocks, size, n_classes)
        blocks = -(moments * factor[:, None, None, :]) @ np.swapaxes(moments, 2, 3)
        blocks[..., np.arange(size), np.arange(size)] += (moments @ factor[:, None, :, None])[..., 0]
        result.append((rows, blocks))
    if len(problem.real_weights):
        rows = problem.n_free + np.arange(2 * len(problem.real_weights)).reshape(-1, 2)
        factor = (share + problem.pseudo[:, None])[:, :, None]
        mean, square = at.moments[:, rows[:, 0]], at.moments[:, rows[:, 1]]
        variance = square - mean**2
        blocks = np.empty((len(mean), len(rows), 2, 2))
        blocks[..., 0, 0] = (variance @ factor)[..., 0]
        blocks[..., 0, 1] = blocks[..., 1, 0] = ((2 * mean * variance) @ factor)[..., 0]
        blocks[..., 1, 1] = ((2 * variance**2 + 4 * mean**2 * variance) @ factor)[..., 0]
        result.append((rows, blocks))
    return result
