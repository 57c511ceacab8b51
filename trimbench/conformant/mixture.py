"""Learning mixtures of conformant models, from complete or incomplete rows, and how many components they need."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.distribution import Component, Evidence, logsumexp
from trimbench.conformant.layout import Block, blocks
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import ReducedProblem, solve_newton

# Expectation-maximisation for mixtures of conformant models, from complete or incomplete rows.

# How many rows with the means of all training rows are added to each component, and to the count of each component.
_MEAN_ROWS = 1.0
_PSEUDO_COUNT = 1.0
_CLUSTERED_ROWS = 10_000
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
    """

    counts: Vector
    statistics: Matrix
    log_likelihood: float


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
    """

    model: Component
    mean_rows: float
    smoothing: float

    @classmethod
    def of(cls, model: Component, n_components: int, smoothing: float, *, of_all_rows: bool = True) -> MixturePrior:
        """Return the prior of a number of components: a single one `of_all_rows` needs no rows added."""
        return cls(model, 0.0 if of_all_rows and n_components == 1 else _MEAN_ROWS, smoothing / n_components)

    def log_density(self, mixture: ConformantModel) -> float:
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

    def maximise(self, expected: Expectation, previous: ConformantModel | None = None) -> ConformantModel:
        """Return the mixture that maximises the expected log-likelihood and the prior."""
        problem = self.model.coding.problem
        before = previous.components if previous else (self.model,) * len(expected.counts)
        parts = []
        for z in range(len(expected.counts)):
            count = float(expected.counts[z]) + self.mean_rows
            moments = (expected.statistics[z] + self.mean_rows * problem.moments) / count
            means, real = np.split(moments, [problem.n_free])
            of_rows = replace(problem, means=means, real_moments=real, pseudo=self.smoothing / count)
            parts.append(_solved(of_rows, before[z]))
        counts = expected.counts + _PSEUDO_COUNT
        return ConformantModel(np.log(counts / counts.sum()), tuple(parts))


def _solved(problem: ReducedProblem, before: Component) -> Component:
    """Solve a problem, starting near the solution of a similar one.

    The start adds to the previous solution how far the discrete features, taken without classes, have moved: after a
    step of expectation-maximisation rare values may be a hundred times rarer, which takes Newton's method many steps.
    """
    start, n_free = before.solution.parameters.copy(), problem.n_free
    start[:n_free] += (problem.start() - before.coding.problem.start())[:n_free]
    coding = replace(before.coding, problem=problem)
    return replace(before, solution=solve_newton(problem, start), coding=coding)


def prepared(mixture: ConformantModel, rows: NDArray[Any]) -> Iterator[tuple[Block, Matrix]]:
    """Yield blocks of already checked rows with their statistics, which are the same at each step of a search."""
    for block in blocks(rows, mixture.layout, mixture.n_components * len(mixture.classes), checked=True):
        yield block, mixture.evidence.statistics(block)


def expect(mixture: ConformantModel, parts: Iterable[tuple[Block, Matrix]]) -> Expectation:
    """Return the expected statistics of `prepared` rows under a mixture."""
    n_components, n_classes = mixture.n_components, len(mixture.classes)
    problem = mixture.components[0].coding.problem
    counts = np.zeros(n_components)
    statistics = np.zeros((n_components, len(problem.linear)))
    hidden = np.zeros((mixture.layout.n_features, n_components * n_classes))
    log_likelihood = 0.0
    for block, of_block in parts:
        scores = mixture.scores_of(block, of_block)
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
    prior: MixturePrior, rows: NDArray[Any], first: Expectation, max_iterations: int = _MAX_ITERATIONS
) -> ConformantModel:
    """Learn a mixture by expectation-maximisation.

    Stops when a step gains less than 1e-3 (for a single component 1e-8) of the objective.

    Parameters
    ----------
    rows : array of shape (n_rows, n_columns)
        NaN marks a missing feature.
    first : Expectation
        Where to start.
    """
    tolerance = _TOLERANCE if len(first.counts) > 1 else _TOLERANCE_OF_ONE
    mixture = prior.maximise(first)
    kept = tuple(prepared(mixture, rows)) if rows.size <= _MOST_KEPT else None
    objectives: list[float] = []
    while True:
        expected = expect(mixture, kept or prepared(mixture, rows))
        objectives.append((expected.log_likelihood + prior.log_density(mixture)) / len(rows))
        enough = tolerance * abs(objectives[-1])
        if len(objectives) > max_iterations or (len(objectives) > 1 and objectives[-1] - objectives[-2] < enough):
            return replace(mixture, objectives=tuple(objectives))
        mixture = prior.maximise(expected, mixture)


def clusters(model: Component, rows: NDArray[Any], n_components: int, random_state: int) -> Expectation:
    """Return the statistics of clusters of some of the rows, with means in place of what is missing."""
    rng = np.random.default_rng(random_state)
    few = rows if len(rows) <= _CLUSTERED_ROWS else rows[np.sort(rng.choice(len(rows), _CLUSTERED_ROWS, replace=False))]
    evidence, problem = Evidence(model.layout, model.coding), model.coding.problem
    means = problem.moments
    owners = evidence.features[problem.owner]
    parts = blocks(few, model.layout, checked=True)
    filled = np.vstack([np.where(part.absent[:, owners], means, evidence.statistics(part)) for part in parts])
    places = np.ones(len(means), dtype=bool)
    places[problem.n_free + 1 :: 2] = False  # squares
    if n_components == 1:
        return Expectation(np.array([len(filled)], dtype=np.float64), filled.sum(axis=0, keepdims=True), -np.inf)
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters: those without rows get the means
        found = KMeans(n_components, n_init=1, max_iter=_CLUSTERING_STEPS, random_state=random_state % 2**32)
        labels = found.fit_predict(filled[:, places].astype(np.float32))
    members = np.eye(n_components)[labels]
    return Expectation(members.sum(axis=0), members.T @ filled, -np.inf)


# How many components a mixture of conformant models needs, by the likelihood of rows held out.

_CANDIDATES = (1, 2, 5, 10, 20, 50, 100, 150)
_HELD_OUT = 0.2
_MOST_HELD_OUT = 2500
_MOST_ROWS = 10_000
_FEWEST_ROWS = 10


def learn_mixture(
    model: Component, rows: NDArray[Any], n_components: int | Literal["auto"], smoothing: float, random_state: int
) -> ConformantModel:
    """Learn a mixture of conformant models.

    Raises ValueError if there are fewer rows than components.

    Parameters
    ----------
    model : Component
        The model that was fitted to the means of all rows.
    rows : ndarray of shape (n_rows, n_columns)
        The rows that the statistics of the model were computed from; NaN marks a missing feature.
    n_components : int or "auto"
    smoothing : float
        Pseudo-count of each value of each feature in each class, shared by the components.
    random_state : int
        Seed of the clustering that starts the search, and of the choice of held-out rows.
    """
    chosen = _chosen(model, rows, smoothing, random_state) if n_components == "auto" else n_components
    if chosen > len(rows):
        raise ValueError(f"n_components must be at most the number of rows, {len(rows)}, got {chosen}")
    first = clusters(model, rows, chosen, random_state)
    return learn_components(MixturePrior.of(model, chosen, smoothing), rows, first)


def _chosen(model: Component, rows: NDArray[Any], smoothing: float, random_state: int) -> int:
    """Return the number beyond which held-out rows do not become more likely by more than one standard error."""
    order = np.random.default_rng(random_state).permutation(len(rows))
    n_held_out = min(int(_HELD_OUT * len(rows)), _MOST_HELD_OUT)
    if n_held_out < _FEWEST_ROWS:
        return 1
    held_out, others = rows[order[:n_held_out]], rows[order[n_held_out : n_held_out + _MOST_ROWS]]

    def score(n_components: int) -> Vector:
        # The others may lack a value that occurs among all rows: even a single component needs the means of all rows.
        prior = MixturePrior.of(model, n_components, smoothing, of_all_rows=False)
        first = clusters(model, others, n_components, random_state)
        return learn_components(prior, others, first).log_likelihood(held_out)

    possible = [n for n in _CANDIDATES if n * _FEWEST_ROWS <= len(others)]
    best = score(possible[0])
    for fewer, more in itertools.pairwise(possible):
        scores = score(more)
        gain = scores - best
        if not gain.mean() > gain.std() / np.sqrt(len(gain)):
            return fewer
        best = scores
    return possible[-1]
