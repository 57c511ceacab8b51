"""Mixtures of conformant models: a richer density of the features, and the same classifier on complete rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.contrastive import By, ContrastiveExplanation, contrast
from trimbench.conformant.evidence import Evidence
from trimbench.conformant.expected_predictions import ExpectedPredictions, logsumexp
from trimbench.conformant.layout import CHUNK_ROWS, Block, FeatureLayout, blocks
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.numeric_input import as_table
from trimbench.conformant.probabilistic_explanations import ProbabilisticExplanation, explain_with_probability
from trimbench.conformant.reduced_problem import Matrix, Vector
from trimbench.conformant.sampling import draw_rows

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
        table = as_table(X, self.layout.n_columns)
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
        table = as_table(X, self.layout.n_columns)
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
        from trimbench.conformant.mixture_kernels import mixed_scores, packed_masks, selected_sums

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
