"""The reduced form of naive conformant learning: one free parameter for each feature, a concave objective.

With weights ``w_k``, biases ``b_k`` and one parameter ``t_i`` for each binary feature, ``P(x_i = 1 | k)`` is
``sigmoid(t_i + w_ki)`` in every naive Bayes model that conforms with the logistic regression (Lemma 2), and

    log P(x) = logsumexp_k(b_k + w_k . x) + t . x - A(t),
    A(t)     = logsumexp_k(b_k + sum_i log(1 + exp(t_i + w_ki))).

The likelihood depends on the data through the means of the features only, and its gradient is the distance of these
means from the model's. A categorical feature has one parameter for each value except one, and the log-sum-exp of its
values in place of the softplus; a real-valued feature has a Gaussian base with two parameters, ``exp((t_i + w_ki) x +
l_i x^2)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.feature_statistics import FeatureStatistics
from trimbench.conformant.layout import FeatureLayout

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one point, and what its derivatives are made of.

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
    """Maximise a concave function of the free parameters.

    Discrete features are coded against a reference value of weight 0 that takes its share of the bias. Parameters are
    ordered: those of the discrete features, then a pair for each real-valued one (standardised).

    Attributes
    ----------
    biases : ndarray of shape (n_classes,)
    weights : ndarray of shape (n_free, n_classes)
        Of the values of discrete features, except the reference values.
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

    def with_moments(self, moments: Vector, pseudo: float) -> ReducedProblem:
        """Return the same problem for other training rows, such as rows with weights.

        Parameters
        ----------
        moments : ndarray of shape (n_parameters,)
        pseudo : float
        """
        return replace(self, means=moments[: self.n_free], real_moments=moments[self.n_free :], pseudo=pseudo)

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
        """Number of values minus one of each feature: how often smoothing counts its log-normaliser."""
        return np.concatenate([self.sizes.astype(np.float64), np.ones(len(self.real_weights))])

    @property
    def owner(self) -> NDArray[np.intp]:
        """Feature of each parameter."""
        n_real = len(self.real_weights)
        discrete = np.repeat(np.arange(len(self.starts)), self.sizes)
        return np.concatenate([discrete, len(self.starts) + np.repeat(np.arange(n_real), 2)]).astype(np.intp)

    def start(self) -> Vector:
        """Return a starting point: each feature as it would be without classes."""
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
        Of the real-valued features of the problem.
    unseen : ndarray of int
        Columns that are never 1 in the training rows and not smoothed.
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
