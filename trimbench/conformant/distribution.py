"""The distribution of a conformant model: its parameters, its probabilities and what it predicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.evidence import Evidence
from trimbench.conformant.expected_predictions import ExpectedPredictions, logsumexp
from trimbench.conformant.layout import Block, FeatureLayout, blocks
from trimbench.conformant.newton import Solution
from trimbench.conformant.numeric_input import as_table
from trimbench.conformant.reduced_problem import Coding, Matrix, Vector


@dataclass(frozen=True, eq=False)
class ConformantDistribution(ExpectedPredictions):
    """What `ConformantModel` holds (its docstring describes the attributes), and its predictions."""

    classes: NDArray[Any]
    weights: Matrix
    biases: Vector
    layout: FeatureLayout
    solution: Solution
    coding: Coding = field(repr=False)
    missing_scores: Matrix = field(init=False, repr=False)
    log_prior: Vector = field(init=False, repr=False)
    log_normaliser: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        at = self.coding.problem.evaluate(self.solution.parameters)
        expected = self.coding.offsets.copy()
        expected[[*self.coding.discrete, *self.coding.real]] += at.normalisers
        # Sums of thousands of log-normalisers round; those of their differences between classes hardly do.
        scores = self.biases + _column_sums(expected - expected[:, :1])
        share = float(logsumexp(scores[None])[0])
        object.__setattr__(self, "missing_scores", expected)
        object.__setattr__(self, "log_prior", scores - share)
        object.__setattr__(self, "log_normaliser", share + float(_column_sums(expected[:, :1])[0]))

    @property
    def residual(self) -> float:
        """Largest violation of the moment equations: the certificate of the solution."""
        return self.solution.residual

    @property
    def components(self) -> tuple[ConformantDistribution, ...]:
        """The model itself: a mixture of one component."""
        return (self,)

    @property
    def log_weights(self) -> Vector:
        """Logarithm of the share of the only component: 0."""
        return np.zeros(1)

    @property
    def tilts(self) -> Vector:
        """The free parameter t of each column, shape (n_columns,).

        The log-odds of a binary feature in class k are ``t_i + w_ki``; the values of a categorical feature have
        probabilities in proportion to ``exp(t_i + w_ki)``. Minus infinity for a value that no training row has,
        infinity for a feature that is always 1, NaN for a real-valued one (see `real_moments`).
        """
        tilts = np.zeros(self.layout.n_columns)
        tilts[self.coding.unseen] = -np.inf
        tilts[self.coding.free] = self.solution.parameters[: len(self.coding.free)]
        binary = self.layout.binary
        always = [c for c in binary if c not in self.coding.free and c not in self.coding.unseen]
        tilts[always] = np.inf  # the value 0 does not occur
        tilts[list(self.layout.real)] = np.nan
        return tilts

    @property
    def log_probabilities(self) -> Matrix:
        """Logarithm of P(column = 1 | class), shape (n_columns, n_classes); NaN for real-valued columns."""
        log_theta = np.full((self.layout.n_columns, len(self.classes)), np.nan)
        owner, tilts = self.layout.feature_of_column, self.tilts
        discrete = np.ones(self.layout.n_columns, dtype=bool)
        discrete[list(self.layout.real)] = False
        sure = np.isposinf(tilts)
        log_theta[discrete] = tilts[discrete, None] + self.weights[discrete] - self.missing_scores[owner[discrete]]
        log_theta[sure & discrete] = 0.0
        return log_theta

    @property
    def log_complements(self) -> Matrix:
        """Logarithm of P(column = 0 | class) for binary columns, shape (n_columns, n_classes); NaN for all others."""
        log_theta = np.full((self.layout.n_columns, len(self.classes)), np.nan)
        owner, binary = self.layout.feature_of_column, self.layout.binary
        log_theta[binary] = -self.missing_scores[owner[binary]]
        log_theta[np.isposinf(self.tilts)] = -np.inf
        return log_theta

    @property
    def real_moments(self) -> tuple[Matrix, Vector]:
        """Mean in each class (n_real, n_classes) and common variance (n_real,) of the real-valued features.

        In the order of the layout; a feature without variance in the training rows has variance 0.
        """
        means = np.empty((len(self.layout.real), len(self.classes)))
        variances = np.zeros(len(self.layout.real))
        places = [place for place, columns in enumerate(self.layout.features) if columns[0] in set(self.layout.real)]
        at = self.coding.problem.evaluate(self.solution.parameters)
        for row, place in enumerate(places):
            if place not in self.coding.real:
                means[row] = self.coding.constants[self.layout.features[place][0]]
                continue
            i = self.coding.real.index(place)
            first = len(self.coding.free) + 2 * i
            means[row] = self.coding.means[i] + self.coding.scales[i] * at.moments[first]
            variances[row] = -0.5 / self.solution.parameters[first + 1] * self.coding.scales[i] ** 2
        return means, variances

    def decision_scores(self, X: ArrayLike) -> Matrix:
        """Return log P(class, observed features) up to a constant of each row, shape (n_rows, n_classes).

        ``b_k + sum of w_ki x_i over the observed features + log-normalisers of the missing ones``: exactly the scores
        of the logistic regression for a row without missing features.

        Raises
        ------
        ValueError
            When X has the wrong number of columns, an infinite value, or a value that its feature cannot have.
        """
        table = as_table(X, self.layout.n_columns)
        scores = np.empty((len(table), len(self.classes)))
        for block in blocks(table, self.layout):
            scores[block.rows] = self._scores(block)
        return scores

    def log_likelihood(self, X: ArrayLike) -> Vector:
        """Return log P(observed features) of each row, in nats; a density where features are real-valued."""
        table = as_table(X, self.layout.n_columns)
        evidence = Evidence(self.layout, self.coding)
        total = np.empty(len(table))
        for block in blocks(table, self.layout):
            known = evidence.statistics(block) @ self.solution.parameters + evidence.base(block)
            total[block.rows] = known + logsumexp(self._scores(block)) - self.log_normaliser
        return total

    def _scores(self, block: Block) -> Matrix:
        scores = block.values @ self.weights + self.biases
        if block.absent.any():
            scores += block.absent.astype(np.float64) @ self.missing_scores
        return scores


def _column_sums(table: Matrix) -> Vector:
    """Return the sum of each column, added pairwise, which rounds less than row by row."""
    sums: Vector = np.ascontiguousarray(table.T).sum(axis=1)
    return sums
