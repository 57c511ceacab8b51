"""Expectation-maximisation for mixtures of conformant models, from complete or incomplete rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.evidence import Evidence
from trimbench.conformant.expected_predictions import logsumexp
from trimbench.conformant.layout import blocks
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.newton import solve_newton
from trimbench.conformant.reduced_problem import Matrix, ReducedProblem, Vector

# Rows with the means of all training rows that are added to each component, and to the count of each component.
_MEAN_ROWS = 1.0
_PSEUDO_COUNT = 1.0
_CLUSTERED_ROWS = 10_000
_CLUSTERING_STEPS = 10
_MAX_ITERATIONS = 100
# Components hardly predict better after the first steps; a single one of incomplete rows has an optimum to reach.
_TOLERANCE, _TOLERANCE_OF_ONE = 1e-3, 1e-8


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the maximisation needs to know of the rows.

    Attributes
    ----------
    counts : ndarray of shape (n_components,)
        Expected number of rows of each component.
    statistics : ndarray of shape (n_components, n_parameters)
        Sums of the statistics of these rows; a missing one counts with its expectation.
    log_likelihood : float
        Of all rows, up to a constant that no parameter changes.
    """

    counts: Vector
    statistics: Matrix
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """What is added to the rows of each component, which keeps all its parameters finite.

    Attributes
    ----------
    model : ConformantModel
        Of one component; its problem has the means of all training rows.
    mean_rows : float
        Number of rows with these means.
    smoothing : float
        Pseudo-count of each value of each feature in each class.
    """

    model: ConformantModel
    mean_rows: float
    smoothing: float

    @classmethod
    def of(
        cls, model: ConformantModel, n_components: int, smoothing: float, *, of_all_rows: bool = True
    ) -> MixturePrior:
        """Return the prior of a number of components: a single one `of_all_rows` needs no further ones."""
        return cls(model, 0.0 if of_all_rows and n_components == 1 else _MEAN_ROWS, smoothing / n_components)

    def log_density(self, mixture: ConformantMixture) -> float:
        """Return the logarithm of the prior density of all parameters, up to a constant."""
        problem = self.model.coding.problem
        total = 0.0
        for part in mixture.components:
            parameters = part.solution.parameters
            at = problem.evaluate(parameters)
            total += self.mean_rows * (float(problem.moments @ parameters) - at.log_normaliser)
            tilted = problem.n_classes * (float(problem.pseudo_observations @ parameters) - at.log_normaliser)
            total += self.smoothing * (tilted - float(problem.multiplicities @ at.normalisers.sum(axis=1)))
        return total + _PSEUDO_COUNT * float(mixture.log_weights.sum())

    def maximise(self, expected: Expectation, previous: ConformantMixture | None = None) -> ConformantMixture:
        """Return the mixture that maximises the expected log-likelihood and the prior."""
        coding = self.model.coding
        before = previous.components if previous else (self.model,) * len(expected.counts)
        parts = []
        for z in range(len(expected.counts)):
            count = float(expected.counts[z]) + self.mean_rows
            moments = (expected.statistics[z] + self.mean_rows * coding.problem.moments) / count
            parts.append(_solved(coding.problem.with_moments(moments, self.smoothing / count), before[z]))
        counts = expected.counts + _PSEUDO_COUNT
        return ConformantMixture(np.log(counts / counts.sum()), tuple(parts))


def _solved(problem: ReducedProblem, before: ConformantModel) -> ConformantModel:
    """Return the model of a problem, found from that of a similar one.

    The search starts where discrete features, without classes, have moved from the solution before: after a step of
    expectation-maximisation rare values may be a hundred times rarer, which takes a Newton search many steps.
    """
    start, n_free = before.solution.parameters.copy(), problem.n_free
    start[:n_free] += (problem.start() - before.coding.problem.start())[:n_free]
    coding = replace(before.coding, problem=problem)
    return replace(before, solution=solve_newton(problem, start), coding=coding)


def expect(mixture: ConformantMixture, rows: NDArray[Any]) -> Expectation:
    """Return the expected statistics of rows, of shape (n_rows, n_columns), under a mixture."""
    n_components, n_classes = mixture.n_components, len(mixture.classes)
    problem = mixture.components[0].coding.problem
    counts = np.zeros(n_components)
    statistics = np.zeros((n_components, len(problem.linear)))
    hidden = np.zeros((mixture.layout.n_features, n_components * n_classes))
    log_likelihood = 0.0
    for block in blocks(rows, mixture.layout, n_components * n_classes):
        scores = mixture.scores_of(block)
        logs = scores.joint
        of_rows = logsumexp(logs)
        log_likelihood += float((of_rows + mixture.evidence.base(block)).sum())
        shares = np.exp(logs - of_rows[:, None])
        counts += shares.sum(axis=0)
        statistics += shares.T @ scores.statistics
        of_classes = np.exp(scores.of_gaps - scores.evidence_of_gaps[:, :, None]) * shares[scores.gaps][:, :, None]
        hidden += scores.absent.T @ of_classes.reshape(len(scores.gaps), n_components * n_classes)
    if hidden.any():
        expected_rows = hidden.reshape(-1, n_components, n_classes)[mixture.evidence.features[problem.owner]]
        for z, part in enumerate(mixture.components):
            statistics[z] += (problem.evaluate(part.solution.parameters).moments * expected_rows[:, z]).sum(axis=1)
    return Expectation(counts, statistics, log_likelihood)


def learn_components(
    prior: MixturePrior,
    rows: NDArray[Any],
    first: Expectation,
    max_iterations: int = _MAX_ITERATIONS,
) -> ConformantMixture:
    """Learn a mixture by expectation-maximisation.

    It ends when a step gains less than a thousandth of the objective.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
        NaN marks a missing feature.
    first : Expectation
        Where to start.
    """
    tolerance = _TOLERANCE if len(first.counts) > 1 else _TOLERANCE_OF_ONE
    mixture = prior.maximise(first)
    objectives: list[float] = []
    while True:
        expected = expect(mixture, rows)
        objectives.append((expected.log_likelihood + prior.log_density(mixture)) / len(rows))
        enough = tolerance * abs(objectives[-1])
        if len(objectives) > max_iterations or (len(objectives) > 1 and objectives[-1] - objectives[-2] < enough):
            return replace(mixture, objectives=tuple(objectives))
        mixture = prior.maximise(expected, mixture)


def clusters(model: ConformantModel, rows: NDArray[Any], n_components: int, seed: int) -> Expectation:
    """Return the statistics of clusters of some of the rows, with means in place of what is missing."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(seed)
    few = rows if len(rows) <= _CLUSTERED_ROWS else rows[np.sort(rng.choice(len(rows), _CLUSTERED_ROWS, replace=False))]
    evidence, problem = Evidence(model.layout, model.coding), model.coding.problem
    means = problem.moments
    owners = evidence.features[problem.owner]
    filled = np.vstack(
        [np.where(block.absent[:, owners], means, evidence.statistics(block)) for block in blocks(few, model.layout)]
    )
    places = np.ones(len(means), dtype=bool)
    places[problem.n_free + 1 :: 2] = False  # squares
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters: those without rows get the means
        found = KMeans(n_components, n_init=1, max_iter=_CLUSTERING_STEPS, random_state=seed % 2**32)
        labels = found.fit_predict(filled[:, places].astype(np.float32))
    members = np.eye(n_components)[labels]
    return Expectation(members.sum(axis=0), members.T @ filled, -np.inf)
