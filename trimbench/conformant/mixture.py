"""Mixtures of conformant models: a richer density of the features, and the same classifier on complete rows."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.distribution import Evidence, ExpectedPredictions, logsumexp
from trimbench.conformant.explanations import By, ContrastiveExplanation, contrast
from trimbench.conformant.layout import CHUNK_ROWS, Block, FeatureLayout, as_table, blocks
from trimbench.conformant.model import ConformantModel, draw_rows
from trimbench.conformant.probabilistic import ProbabilisticExplanation, explain_with_probability
from trimbench.conformant.problem import ReducedProblem, solve_newton

# Multiplications from which compiled sums pay, which take a second to load.
_MANY = 2**28


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """What the components of a mixture say about some rows.

    Attributes
    ----------
    statistics : ndarray of shape (n_rows, n_parameters)
    whole : ndarray of shape (n_rows, n_classes)
        Scores of the classifier, with zeros for what is missing.
    levels : ndarray of shape (n_rows, n_components)
        What a component adds to the score of each class.
    gaps : ndarray of int
        Rows with missing features.
    absent : ndarray of shape (n_gaps, n_features)
        1 where a feature of these rows is missing.
    of_absent : ndarray of shape (n_gaps, n_components, n_classes)
        What the missing features of these rows add to the score of each class in each component.
    """

    statistics: Matrix
    whole: Matrix
    levels: Matrix
    gaps: NDArray[np.intp]
    absent: Matrix
    of_absent: NDArray[np.float64]

    @cached_property
    def of_gaps(self) -> NDArray[np.float64]:
        """Scores of the classes of rows with gaps, without the level, shape (n_gaps, n_components, n_classes)."""
        scores: NDArray[np.float64] = self.of_absent + self.whole[self.gaps][:, None]
        return scores

    @cached_property
    def evidence_of_gaps(self) -> Matrix:
        """Log-sum-exp of the scores of the classes of rows with missing features, shape (n_gaps, n_components)."""
        return logsumexp(self.of_gaps, axis=2)

    @property
    def joint(self) -> Matrix:
        """Log P(component, observed features), shape (n_rows, n_components), up to `Evidence.base`."""
        joint = self.levels + logsumexp(self.whole)[:, None]
        joint[self.gaps] = self.levels[self.gaps] + self.evidence_of_gaps
        return joint


@dataclass(frozen=True, eq=False, repr=False)
class ConformantMixture(ExpectedPredictions):
    """A mixture of naive Bayes models, each of which conforms with the same logistic regression.

    In every component the class of a complete row has the probabilities of the classifier, hence in the mixture, too,
    whatever the weights. Only the density of the features differs between components.

    Attributes
    ----------
    log_weights : ndarray of shape (n_components,)
        Logarithms of the shares of the components.
    components : tuple of ConformantModel
    objectives : tuple of float
        What each step of expectation-maximisation began with: the mean log-likelihood of the training rows (of what is
        observed in them) and the logarithm of the prior, divided by the number of rows. It never falls.
    """

    log_weights: Vector
    components: tuple[ConformantModel, ...]
    objectives: tuple[float, ...] = ()
    evidence: Evidence = field(init=False)
    _missing: Matrix = field(init=False)
    _parameters: Matrix = field(init=False)
    _levels: Vector = field(init=False)

    def __post_init__(self) -> None:
        parts = self.components
        object.__setattr__(self, "evidence", Evidence(self.layout, parts[0].coding))
        object.__setattr__(self, "_missing", np.hstack([part.missing_scores for part in parts]))
        object.__setattr__(self, "_parameters", np.stack([part.solution.parameters for part in parts], axis=1))
        object.__setattr__(self, "_levels", self.log_weights - np.array([part.log_normaliser for part in parts]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_components={self.n_components}, classes={self.classes.tolist()})"

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.components)

    @property
    def classes(self) -> NDArray[Any]:  # type: ignore[override]
        """Labels of the classes, shape (n_classes,)."""
        return self.components[0].classes

    @property
    def weights(self) -> Matrix:
        """Weights of the classifier, shape (n_columns, n_classes)."""
        return self.components[0].weights

    @property
    def biases(self) -> Vector:
        """Biases of the classifier, shape (n_classes,)."""
        return self.components[0].biases

    @property
    def layout(self) -> FeatureLayout:  # type: ignore[override]
        """Which columns make up which feature."""
        return self.components[0].layout

    @property
    def residual(self) -> float:
        """Largest violation of the moment equations over the components: the certificate of the last step."""
        return max(part.residual for part in self.components)

    @cached_property
    def log_prior(self) -> Vector:
        """Logarithm of the class distribution, shape (n_classes,): the prediction when everything is missing."""
        priors = np.stack([part.log_prior for part in self.components], axis=1)
        return logsumexp(priors + self.log_weights)

    def conformity_error(self, X: ArrayLike) -> float:
        """Return the largest difference between a component's conditional probabilities and the classifier's.

        That of the mixture is no larger, as its conditional probabilities are averages of those of the components.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Complete rows.

        Raises
        ------
        ValueError
            When a feature is real-valued, a value is missing or not allowed.
        """
        return max(part.conformity_error(X) for part in self.components)

    def decision_scores(self, X: ArrayLike) -> Matrix:
        """Return log P(class, observed features) up to a constant of each row, shape (n_rows, n_classes).

        Exactly the scores of the logistic regression for a row without missing features.

        Raises
        ------
        ValueError
            When X has the wrong number of columns, an infinite value, or a value that its feature cannot have.
        """
        table = as_table(X, self.layout.n_columns, columns=self.column_names)
        if table.size * self._missing.shape[1] >= _MANY and not self.layout.real:
            return self._scores_of_many(table)
        scores = np.empty((len(table), len(self.classes)))
        for block in blocks(table, self.layout, self._missing.shape[1]):
            here = self.scores_of(block)
            scores[block.rows] = here.whole
            expected = here.of_absent
            expected += here.levels[here.gaps][:, :, None]
            scores[block.rows.start + here.gaps] += logsumexp(expected, axis=1)
        return scores

    def log_likelihood(self, X: ArrayLike) -> Vector:
        """Return log P(observed features) of each row, in nats; a density where features are real-valued."""
        table = as_table(X, self.layout.n_columns, columns=self.column_names)
        total = np.empty(len(table))
        for block in blocks(table, self.layout, self._missing.shape[1]):
            total[block.rows] = logsumexp(self.scores_of(block).joint) + self.evidence.base(block)
        return total

    def explain(
        self,
        x: ArrayLike,
        against: Any = None,
        delta: float | None = None,
        max_sets: int = 1,
        max_evaluations: int | None = None,
    ) -> ProbabilisticExplanation:
        """Return the smallest set of features that keeps the class of one row with at least the probability `delta`.

        As `ConformantModel.explain` with `delta`: what is not shown is drawn from the mixture given what is, that is
        from each component by its probability given what is shown. With ``delta=1`` every possible completion has the
        class; these sets are the same for any number of components.

        Parameters
        ----------
        x : array of shape (n_columns,)
            Values of one row; a missing feature (NaN) is part of no explanation.
        against : label, optional
            The class that the predicted one must not lose against; all others by default.
        delta : float
            Above 0 and up to 1. Required: the sufficient explanation that `ConformantModel.explain` gives without it
            needs log-odds that add up over the features, which those of a mixture do not.
        max_sets, max_evaluations : int
            As in `ConformantModel.explain`.

        Raises
        ------
        ValueError
            When `x` is not a row of the model, `against` is not another class, or a parameter is not allowed.
        """
        if delta is None:
            raise ValueError(
                f"delta must be given to explain a model of {self.n_components} components, whose evidence does not "
                "add up, got None; try delta=0.95, or delta=1 to keep the class in every case"
            )
        found = explain_with_probability(self, x, delta, against, max_sets=max_sets, max_evaluations=max_evaluations)
        return found.named(self.feature_names)

    def contrast(
        self, x: ArrayLike, against: Any = None, *, by: By = "change", max_sets: int = 1
    ) -> ContrastiveExplanation:
        """Return the fewest features whose change, or whose loss, would give one row another class.

        As `ConformantModel.contrast`. What changes do to a complete row only the classifier says. What the loss of
        features costs does not add up: all sets of one size after the other are tried as long as they are few, and of
        many a small set is found, see `ContrastiveExplanation.size_lower_bound`.

        Raises
        ------
        ValueError
            When `x` is not a row of the model, or has a missing value with ``by="change"``, `against` is not another
            class, or a parameter is not allowed.
        """
        return contrast(self, x, against, by=by, max_sets=max_sets).named(self.feature_names)

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[Matrix, NDArray[Any]]:
        """Draw complete rows and their classes.

        Parameters
        ----------
        n_rows : int
        rng : numpy.random.Generator

        Returns
        -------
        rows : ndarray of shape (n_rows, n_columns)
        labels : ndarray of shape (n_rows,)
        """
        return draw_rows(self.components, np.exp(self.log_weights), n_rows, rng)

    def scores_of(self, block: Block) -> ComponentScores:
        """Return what the components say about the rows of a block."""
        whole = block.values @ self.weights + self.biases
        statistics = self.evidence.statistics(block)
        levels = statistics @ self._parameters + self._levels
        gaps = np.flatnonzero(block.absent.any(axis=1))
        absent = block.absent[gaps].astype(np.float64)
        of_absent = (absent @ self._missing).reshape(len(gaps), self.n_components, len(self.biases))
        return ComponentScores(statistics, whole, levels, gaps, absent, of_absent)

    def _scores_of_many(self, table: NDArray[Any]) -> Matrix:
        """Return `decision_scores` of many rows without real-valued features, from looked-up sums."""
        from trimbench.conformant.kernels import mixed_scores, packed_masks, selected_sums

        n_classes, n_components = len(self.biases), self.n_components
        of_columns = np.zeros((self.layout.n_columns, n_classes + n_components))
        of_columns[:, :n_classes] = self.weights
        of_columns[self.components[0].coding.free, n_classes:] = self._parameters
        packed = [(packed_masks(block.ones), packed_masks(block.absent)) for block in blocks(table, self.layout)]
        ones, absent = (np.vstack(masks) for masks in zip(*packed, strict=True))
        scores = np.empty((len(table), n_classes))
        for start in range(0, len(table), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            known = np.hstack(list(selected_sums(ones[rows], of_columns)))
            scores[rows] = known[:, :n_classes] + self.biases
            gaps = np.flatnonzero(absent[rows].any(axis=1))
            levels = known[gaps, n_classes : n_classes + n_components] + self._levels
            scores[start + gaps] += mixed_scores(selected_sums(absent[start + gaps], self._missing), levels, n_classes)
        return scores


# Expectation-maximisation for mixtures of conformant models, from complete or incomplete rows.

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


# How many components a mixture of conformant models needs, by the likelihood of rows held out.

_CANDIDATES = (1, 2, 5, 10, 20, 50, 100, 150)
_HELD_OUT = 0.2
_MOST_HELD_OUT = 2500
_MOST_ROWS = 10_000
_FEWEST_ROWS = 10


def learn_mixture(
    model: ConformantModel, rows: NDArray[Any], n_components: int | Literal["auto"], smoothing: float, seed: int
) -> ConformantMixture:
    """Learn a mixture of conformant models.

    Raises ValueError if there are fewer rows than components.

    Parameters
    ----------
    model : ConformantModel
        Of one component, with the means of all rows.
    rows : ndarray of shape (n_rows, n_columns)
        NaN marks a missing feature.
    n_components : int or "auto"
    smoothing : float
        Pseudo-count of each value of each feature in each class, shared by the components.
    seed : int
        Of the clustering with which the search begins, and of the choice of rows held out.
    """
    chosen = _chosen(model, rows, smoothing, seed) if n_components == "auto" else n_components
    if chosen > len(rows):
        raise ValueError(f"n_components must be at most the number of rows, {len(rows)}, got {chosen}")
    return learn_components(MixturePrior.of(model, chosen, smoothing), rows, clusters(model, rows, chosen, seed))


def _chosen(model: ConformantModel, rows: NDArray[Any], smoothing: float, seed: int) -> int:
    """Return the number beyond which held-out rows do not become more likely by more than one standard error."""
    order = np.random.default_rng(seed).permutation(len(rows))
    n_held_out = min(int(_HELD_OUT * len(rows)), _MOST_HELD_OUT)
    if n_held_out < _FEWEST_ROWS:
        return 1
    held_out, others = rows[order[:n_held_out]], rows[order[n_held_out : n_held_out + _MOST_ROWS]]

    def score(n_components: int) -> Vector:
        # The others may lack a value that all rows have: a single component needs the means of these, too.
        prior = MixturePrior.of(model, n_components, smoothing, of_all_rows=False)
        first = clusters(model, others, n_components, seed)
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
