"""Learning mixtures of conformant models by expectation-maximisation, from complete or incomplete rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.covariance import NormalMoments, Normals, fit_normals
from trimbench.conformant.distribution import Component
from trimbench.conformant.evidence import ComponentScores, Evidence, ObservedRows, component_scores, logsumexp
from trimbench.conformant.layout import blocks
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import Evaluation, ReducedProblem, Solution, solve_all
from trimbench.conformant.rows import Rows
from trimbench.networks.sums import ExactSums

# How many rows with the means of all training rows are added to each component, and to the count of each component.
_MEAN_ROWS = 1.0
_PSEUDO_COUNT = 1.0
# How many rows are clustered.
CLUSTERED_ROWS = 10_000
_CLUSTERING_STEPS = 10
_MAX_ITERATIONS = 100
# Tables with at most this many numbers are kept as blocks, which are checked only once.
_MOST_KEPT = 2**24
# Components hardly predict better after the first steps; a single one of incomplete rows has an optimum to reach.
_TOLERANCE, _TOLERANCE_OF_ONE = 1e-3, 1e-8


@dataclass(frozen=True, eq=False)
class Expectation:
    """The expected statistics of the rows, which are all that the maximisation needs.

    Attributes
    ----------
    counts : ndarray of shape (n_components,)
        Expected number of rows of each component.
    statistics : ndarray of shape (n_components, n_parameters)
        Sums of the statistics of these rows; a missing one counts with its expectation.
    log_likelihood : float
        Of all rows, up to a constant that no parameter changes.
    first : ndarray of shape (n_components, n_joint)
        Sums of the features that are jointly normal, standardised.
    second : ndarray of shape (n_components, n_joint, n_joint)
        Sums of their products.
    n_rows : int
        How many rows there are.
    """

    counts: Vector
    statistics: Matrix
    log_likelihood: float
    first: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    second: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0, 0)))
    n_rows: int = 0

    def __add__(self, other: Expectation) -> Expectation:
        """Return those of the rows of both, under the same mixture."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return Expectation(*(one + another for one, another in pairs))

    def of(self, places: NDArray[np.intp]) -> Expectation:
        """Return those of some components, each as often as it is named."""
        kept = (self.counts[places], self.statistics[places], self.log_likelihood)
        return Expectation(*kept, self.first[places], self.second[places], self.n_rows)


@dataclass(frozen=True, eq=False)
class NormalPrior:
    """What is known beforehand of features that are jointly normal: pseudo-observations.

    Attributes
    ----------
    rows : float, or ndarray of shape (n_components,)
        How many there are, with these moments and classes:
    covariance : ndarray of shape (n_joint, n_joint)
    classes : ndarray of shape (n_classes,) or (n_components, n_classes)
        Shares of the classes.
    centres : ndarray of shape (n_components, n_joint), or 0
        Their means; 0 stands for those of all rows.
    """

    rows: float | Vector
    covariance: Matrix
    classes: Vector | Matrix
    centres: Matrix | float = 0.0

    @classmethod
    def of_clusters(cls, rows: float, first: Expectation, classes: Matrix, shrinkage: float) -> NormalPrior:
        """Return pseudo-observations around the centre of each cluster, with the covariance within all of them.

        Parameters
        ----------
        rows : float
            How many for each cluster.
        first : Expectation
            Sums of the clusters.
        classes : ndarray of shape (n_classes,) or (n_components, n_classes)
            Shares of the classes.
        shrinkage : float
            Share of the pseudo-observations without correlation that are added to the rows of the clusters.
        """
        counts = np.maximum(first.counts, 1.0)
        centres = first.first / counts[:, None]
        spread = first.second - counts[:, None, None] * centres[:, :, None] * centres[:, None, :]
        within = spread.sum(axis=0) / counts.sum()
        return cls(rows, (within + shrinkage * np.eye(len(within))) / (1 + shrinkage), classes, centres)

    def moments(self, n_components: int) -> tuple[Vector, Matrix, NDArray[np.float64]]:
        """Return the number of pseudo-observations of each component, their sums, and sums of products."""
        rows = self.rows * np.ones(n_components)
        centres = self.centres * np.ones((n_components, len(self.covariance)))
        products = self.covariance + centres[:, :, None] * centres[:, None, :]
        return rows, rows[:, None] * centres, rows[:, None, None] * products


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """What is added to the rows of each component, which keeps all its parameters finite.

    Attributes
    ----------
    model : Component
        Its problem has the means of all training rows.
    mean_rows : float
        Number of rows with these means.
    smoothing : float
        Pseudo-count of each value of each feature in each class.
    normal : NormalPrior, optional
        Of the features that are jointly normal.
    """

    model: Component
    mean_rows: float
    smoothing: float
    normal: NormalPrior | None = None

    @classmethod
    def of(
        cls,
        model: Component,
        n_components: int,
        smoothing: float,
        *,
        of_all_rows: bool = True,
        normal: NormalPrior | None = None,
    ) -> MixturePrior:
        """Return the prior of a number of components: a single one `of_all_rows` needs no rows added."""
        rows = 0.0 if of_all_rows and n_components == 1 else _MEAN_ROWS
        return cls(model, rows, smoothing / n_components, normal)

    def log_density(self, mixture: Tilts) -> float:
        """Return the logarithm of the prior density of all parameters, up to a constant."""
        problem, at = self.model.coding.problem, mixture.at
        of_rows = mixture.parameters @ problem.moments - mixture.log_normalisers
        of_values = problem.n_classes * (mixture.parameters @ problem.pseudo_observations - mixture.log_normalisers)
        of_values = of_values - at.normalisers.sum(axis=2) @ problem.multiplicities
        total = float((self.mean_rows * of_rows + self.smoothing * of_values).sum())
        total += _PSEUDO_COUNT * float(mixture.log_weights.sum())
        return total + (self._of_normals(mixture.normals) if mixture.normals is not None else 0.0)

    def _of_normals(self, normals: Normals) -> float:
        """Return the part of the log-density of jointly normal features."""
        assert self.normal is not None
        n_components, n_real = normals.means.shape
        n_classes, ones = normals.weights.shape[1], np.ones(n_components)
        rows, first, second = self.normal.moments(n_components)
        second = second + self.mean_rows * self.normal.covariance
        total = normals.log_likelihood(rows + self.mean_rows, first, second)
        total -= float((rows * (normals.normalisers * self.normal.classes).sum(axis=1)).sum())
        nothing = np.zeros(normals.means.shape)
        pairs = normals.log_likelihood(2 * ones, nothing, 2 * np.eye(n_real) * ones[:, None, None])
        return float(total + self.smoothing * (n_classes * pairs - float(normals.normalisers.sum())))

    def maximise(
        self, expected: Expectation, previous: Tilts | None = None, tolerance: float = 0.0, sweeps: int = 100
    ) -> Tilts:
        """Return the mixture that maximises the expected log-likelihood and the prior.

        Where jointly normal features stand beside others, both are fitted in turns, given the other. Fewer `sweeps`, or
        a larger `tolerance` of the moment equations, raise the objective without maximising it.
        """
        base = self.model.coding.problem
        counts = expected.counts + self.mean_rows
        moments = (expected.statistics + self.mean_rows * base.moments) / counts[:, None]
        means, real = np.split(moments, [base.n_free], axis=1)
        problem = replace(base, means=means, real_moments=real, pseudo=self.smoothing / counts)
        # Rare values may be a hundred times rarer after a step, and variances smaller, which takes Newton's method many
        # steps: the start moves as far as the features, taken without classes, have moved.
        before, parameters = base, self.model.solution.parameters
        if previous is not None:
            before, parameters = previous.problem, previous.parameters
        start = problem.moved(np.broadcast_to(parameters, (len(counts), parameters.shape[-1])), before)
        weights = expected.counts + _PSEUDO_COUNT
        log_weights = np.log(weights / weights.sum())
        if self.normal is None:
            parameters, at, _ = solve_all(problem, start, max(tolerance, _EXACT))
            return Tilts(self.model, log_weights, parameters, problem, at, at.residual)
        return self._in_turns(expected, log_weights, problem, start, previous, max(tolerance, _EXACT), sweeps)

    def _in_turns(
        self,
        expected: Expectation,
        log_weights: Vector,
        problem: ReducedProblem,
        start: Matrix,
        previous: Tilts | None,
        tolerance: float,
        sweeps: int,
    ) -> Tilts:
        """Maximise over jointly normal features and the others in turns."""
        weights = self.model.coding.joint_weights
        assert weights is not None
        moments = self._normal_moments(expected)
        alone = problem.biases
        at, parameters, shares = problem.evaluate(start), start, None if previous is None else previous.at.prior
        while True:
            biases = alone + at.normalisers.sum(axis=1)
            normals, shares = fit_normals(moments, weights, biases, shares, tolerance)
            problem = replace(problem, biases=alone + normals.normalisers)
            if not parameters.shape[1]:
                at = problem.evaluate(parameters)
                residual = np.abs(at.prior - shares).max(axis=1)
                return Tilts(self.model, log_weights, parameters, problem, at, residual, normals)
            parameters, at, _ = solve_all(problem, parameters, tolerance)
            residual = np.maximum(at.residual, np.abs(at.prior - shares).max(axis=1))
            sweeps -= 1
            if not sweeps or residual.max() <= max(tolerance, _EXACT_IN_TURNS):
                return Tilts(self.model, log_weights, parameters, problem, at, residual, normals)

    def _normal_moments(self, expected: Expectation) -> NormalMoments:
        """Return what the jointly normal features of each component are fitted to, for each row."""
        prior, n_classes = self.normal, len(self.model.biases)
        assert prior is not None
        counts = (expected.counts + self.mean_rows)[:, None]
        rows, first, second = prior.moments(len(counts))
        second = (expected.second + second + self.mean_rows * prior.covariance) / counts[:, :, None]
        pseudo = self.smoothing / counts
        second = second + 2 * n_classes * pseudo[:, :, None] * np.eye(len(prior.covariance))
        share = 1 + n_classes * pseudo[:, 0]
        constant = pseudo + rows[:, None] / counts * prior.classes
        return NormalMoments((expected.first + first) / counts, second, share, constant)


# Newton's method stops where it can do no better; turns stop where the shares of the classes hardly move.
_EXACT, _EXACT_IN_TURNS = 1e-13, 1e-11


@dataclass(frozen=True, eq=False)
class Tilts:
    """The parameters of a mixture, those of all components together, while it is learned.

    Attributes
    ----------
    component : Component
        What the components have in common.
    log_weights : ndarray of shape (n_components,)
    parameters : ndarray of shape (n_components, n_parameters)
    problem : ReducedProblem
        Of the components, with the moments that they were fitted to.
    at : Evaluation
        Of this problem at the parameters.
    residuals : ndarray of shape (n_components,)
        Largest violation of the moment equations.
    normals : Normals, optional
    """

    component: Component
    log_weights: Vector
    parameters: Matrix
    problem: ReducedProblem
    at: Evaluation
    residuals: Vector
    normals: Normals | None = None
    missing: Matrix = field(init=False)
    log_normalisers: Vector = field(init=False)

    def __post_init__(self) -> None:
        coding, n_components = self.component.coding, len(self.log_weights)
        expected = np.tile(coding.offsets, (n_components, 1, 1))
        expected[:, [*coding.discrete, *coding.real]] += self.at.normalisers
        # Sums of thousands of log-normalisers round; those of their differences between classes hardly do.
        scores = self.component.biases + _feature_sums(expected - expected[:, :, :1])
        if self.normals is not None:
            scores = scores + self.normals.normalisers
        normalisers = logsumexp(scores) + _feature_sums(expected[:, :, :1])[:, 0]
        missing = np.swapaxes(expected, 0, 1).reshape(expected.shape[1], -1)
        object.__setattr__(self, "missing", np.ascontiguousarray(missing))
        object.__setattr__(self, "log_normalisers", normalisers)

    @classmethod
    def of(cls, mixture: ConformantModel) -> Tilts:
        """Return the parameters of a learned mixture."""
        parts = mixture.components
        problems = [part.coding.problem for part in parts]
        biases = parts[0].coding.problem.biases
        if mixture.normals is not None:
            biases = parts[0].biases + parts[0].coding.offsets.sum(axis=0) + mixture.normals.normalisers
        problem = replace(
            problems[0],
            means=np.stack([one.means for one in problems]),
            real_moments=np.stack([np.asarray(one.real_moments) for one in problems]),
            pseudo=np.array([one.pseudo for one in problems]),
            biases=biases,
        )
        parameters = np.stack([part.solution.parameters for part in parts])
        residuals = np.array([part.residual for part in parts])
        at = problem.evaluate(parameters)
        return cls(parts[0], mixture.log_weights, parameters, problem, at, residuals, mixture.normals)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.log_weights)

    def model(self, objectives: tuple[float, ...] = ()) -> ConformantModel:
        """Return the mixture."""
        parts = []
        for z in range(self.n_components):
            at, problem = self.at.at(z), self.problem.of(z)
            solution = Solution(self.parameters[z], float(self.residuals[z]), float(at.value), 0)
            normal = None if self.normals is None else self.normals.of(z)
            problem = replace(problem, biases=self.component.coding.problem.biases)
            coding = replace(self.component.coding, problem=problem)
            parts.append(replace(self.component, solution=solution, coding=coding, normal=normal))
        return ConformantModel(self.log_weights, tuple(parts), objectives)

    def scores(self, observed: ObservedRows) -> ComponentScores:
        """Return the scores of some rows under each component."""
        levels = self.log_weights - self.log_normalisers
        return component_scores(observed, self.parameters.T, levels, self.missing, self.normals)


def _feature_sums(table: NDArray[np.float64]) -> Matrix:
    """Return sums over the second axis, added pairwise, which rounds less than one by one."""
    sums: Matrix = np.ascontiguousarray(np.swapaxes(table, 1, 2)).sum(axis=2)
    return sums


class PreparedRows:
    """Parts of already checked rows with what they say, which is the same at each step of a search.

    They are kept if the rows are few enough, and found anew each time otherwise.
    """

    def __init__(self, component: Component, rows: NDArray[Any] | Rows, n_components: int) -> None:
        self._component = component
        self._rows = Rows.of(rows, component.layout.n_columns)
        self._width = n_components * len(component.classes)
        in_memory = self._rows.in_memory
        self._kept = tuple(self._parts()) if in_memory is not None and in_memory <= _MOST_KEPT else None

    def __iter__(self) -> Iterator[ObservedRows]:
        return self._parts() if self._kept is None else iter(self._kept)

    def _parts(self) -> Iterator[ObservedRows]:
        component = self._component
        evidence = Evidence(component.layout, component.coding)
        for part, _ in self._rows.parts():
            for block in evidence.blocks(part, self._width, checked=True):
                yield ObservedRows.of(evidence, block, component.weights, component.biases)


def expect(mixture: Tilts, parts: Iterable[ObservedRows]) -> Expectation:
    """Return the expected statistics of rows under a mixture."""
    component, n_components = mixture.component, mixture.n_components
    evidence, n_classes = Evidence(component.layout, component.coding), len(component.classes)
    sums = ExactSums()
    for observed in parts:
        scores = mixture.scores(observed)
        of_rows, shares, of_classes = scores.posterior
        log_likelihood = (of_rows + evidence.base(observed.block)).sum()
        hidden = observed.absent.T @ of_classes.reshape(len(observed.gaps), n_components * n_classes)
        found = [float(len(of_rows)), log_likelihood, shares.sum(axis=0), shares.T @ observed.statistics, hidden]
        if mixture.normals is not None:
            found += _of_normals(mixture.normals, observed, scores, shares, of_classes)
        sums.add(*found)
    n_rows, log_likelihood, counts, statistics, hidden, *joint = sums.totals
    if hidden.any():
        owners = evidence.features[mixture.problem.owner]
        expected_rows = hidden.reshape(-1, n_components, n_classes)[owners].transpose(1, 0, 2)
        statistics += (mixture.at.moments * expected_rows).sum(axis=2)
    first, second = joint or _no_normals(n_components)
    return Expectation(counts, statistics, float(log_likelihood), first, second, int(n_rows))


def _no_normals(n_components: int) -> tuple[Matrix, NDArray[np.float64]]:
    return np.zeros((n_components, 0)), np.zeros((n_components, 0, 0))


def _of_normals(
    normals: Normals,
    observed: ObservedRows,
    scores: ComponentScores,
    shares: Matrix,
    of_classes: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Return the expected sums of the jointly normal features of some rows, and of their products."""
    values, of_complete = observed.values[observed.complete], shares[observed.complete]
    first = of_complete.T @ values
    second = np.stack([(values * one[:, None]).T @ values for one in of_complete.T])
    if scores.conditionals is not None:
        more = scores.conditionals.expected(normals, of_classes)
        first, second = first + more[0], second + more[1]
    return [first, second]


def learn_components(
    prior: MixturePrior, rows: NDArray[Any] | Rows, first: Expectation, max_iterations: int = _MAX_ITERATIONS
) -> ConformantModel:
    """Learn a mixture by expectation-maximisation.

    Stops when a step gains less than 1e-3 (for a single component 1e-8) of the objective.

    Parameters
    ----------
    prior : MixturePrior
    rows : array of shape (n_rows, n_columns)
        NaN marks a missing feature.
    first : Expectation
        Where to start.
    max_iterations : int
    """
    n_components = len(first.counts)
    parts = PreparedRows(prior.model, rows, n_components)
    tolerance = _TOLERANCE if n_components > 1 else _TOLERANCE_OF_ONE
    # In turns, the exact maximum of each step is not worth its time.
    sweeps = 1 if prior.normal is not None and prior.model.coding.free.size else 100
    mixture = prior.maximise(first, sweeps=sweeps)
    objectives: list[float] = []
    while True:
        expected = expect(mixture, parts)
        objectives.append((expected.log_likelihood + prior.log_density(mixture)) / expected.n_rows)
        if len(objectives) > max_iterations or has_converged(objectives, tolerance):
            break
        mixture = prior.maximise(expected, mixture, sweeps=sweeps)
    if sweeps == 1:
        mixture = prior.maximise(expected, mixture)
        last = expect(mixture, parts)
        objectives.append((last.log_likelihood + prior.log_density(mixture)) / last.n_rows)
    return mixture.model(tuple(objectives))


def has_converged(objectives: Sequence[float], tolerance: float) -> bool:
    """Tell whether the last step gained less than this share of the objective."""
    return len(objectives) > 1 and objectives[-1] - objectives[-2] < tolerance * abs(objectives[-1])


def clusters(model: Component, few: NDArray[Any], n_components: int, random_state: int) -> Expectation:
    """Return the statistics of clusters of some rows, with means in place of what is missing."""
    filled = FilledRows.of(model, few[:CLUSTERED_ROWS])
    return filled.sums(filled.clustered(n_components, random_state))


def totals(model: Component, rows: Rows) -> Expectation:
    """Return the statistics of all rows together, with means in place of what is missing."""
    sums = ExactSums()
    for part, _ in rows.parts():
        one = FilledRows.of(model, part).sums(np.ones((len(part), 1)))
        sums.add(one.counts, one.statistics, one.first, one.second)
    counts, statistics, first, second = sums.totals
    return Expectation(counts, statistics, -np.inf, first, second, int(counts[0]))


@dataclass(frozen=True, eq=False)
class FilledRows:
    """The statistics of rows, with their means in place of what is missing.

    Attributes
    ----------
    statistics : ndarray of shape (n_rows, n_parameters)
    values : ndarray of shape (n_rows, n_joint)
    absent : ndarray of bool, shape (n_rows, n_joint)
        Which of the values are missing.
    places : ndarray of shape (n_rows, n_places)
        Statistics (without squares) and values side by side: points to be clustered.
    """

    statistics: Matrix
    values: Matrix
    absent: NDArray[np.bool_]
    places: Matrix

    @classmethod
    def of(cls, model: Component, rows: NDArray[Any]) -> FilledRows:
        """Return the statistics of already checked rows."""
        evidence, problem = Evidence(model.layout, model.coding), model.coding.problem
        means, owners, joint = problem.moments, evidence.features[problem.owner], list(model.coding.joint)
        filled, values, absent = [], [], []
        for part in blocks(rows, model.layout, checked=True):
            filled.append(np.where(part.absent[:, owners], means, evidence.statistics(part)))
            values.append(evidence.joint_values(part))
            absent.append(part.absent[:, joint])
        places = np.ones(len(means), dtype=bool)
        places[problem.n_free + 1 :: 2] = False
        statistics, of_joint = np.vstack(filled), np.vstack(values)
        return cls(statistics, of_joint, np.vstack(absent), np.hstack([statistics[:, places], of_joint]))

    def clustered(self, n_clusters: int, random_state: int) -> Matrix:
        """Return the members of clusters, shape (n_rows, n_clusters): 1 where a row belongs to one."""
        if n_clusters == 1:
            return np.ones((len(self.places), 1))
        from sklearn.cluster import KMeans

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct rows than clusters: those without rows get the means
            found = KMeans(n_clusters, n_init=1, max_iter=_CLUSTERING_STEPS, random_state=random_state % 2**32)
            labels = found.fit_predict(self.places.astype(np.float32))
        return np.asarray(np.eye(n_clusters)[labels])

    def sums(self, members: Matrix) -> Expectation:
        """Return the sums over the members of clusters, shape (n_rows, n_clusters)."""
        n_clusters, n_joint = members.shape[1], self.values.shape[1]
        second = np.zeros((n_clusters, n_joint, n_joint))
        for z in range(n_clusters):
            second[z] = (self.values * members[:, z : z + 1]).T @ self.values
        # The variance of what is missing; standardised, it is 1.
        second[:, np.arange(n_joint), np.arange(n_joint)] += members.T @ self.absent
        first = members.T @ self.values
        return Expectation(members.sum(axis=0), members.T @ self.statistics, -np.inf, first, second)
