"""Distributions of classes and features that conform with a classifier: their components, and what they predict."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.coding import Coding
from trimbench.conformant.covariance import Normals
from trimbench.conformant.evidence import (
    ComponentScores,
    Evidence,
    ObservedRows,
    component_scores,
    logsumexp,
)
from trimbench.conformant.layout import CHUNK_ROWS, Block, FeatureLayout, as_row, as_table, blocks, chunks
from trimbench.conformant.problem import Solution

# From this many multiplications on, compiled sums, which take a second to load, pay off.
_MANY = 2**28


@dataclass(frozen=True, eq=False, repr=False)
class ConformantDistribution:
    """A distribution over classes and features: a mixture of one component or more, and its predictions.

    Attributes
    ----------
    log_weights : ndarray of shape (n_components,)
    components : tuple of Component
    objectives : tuple of float
    column_names : tuple of str, optional
    """

    log_weights: Vector
    components: tuple[Component, ...]
    objectives: tuple[float, ...] = ()
    column_names: tuple[str, ...] | None = None
    evidence: Evidence = field(init=False)
    normals: Normals | None = field(init=False)
    _missing: Matrix = field(init=False)
    _parameters: Matrix = field(init=False)
    _levels: Vector = field(init=False)

    def __post_init__(self) -> None:
        parts = self.components
        object.__setattr__(self, "evidence", Evidence(self.layout, parts[0].coding))
        joint = [part.normal for part in parts if part.normal is not None]
        object.__setattr__(self, "normals", Normals.together(joint) if joint else None)
        object.__setattr__(self, "_missing", np.hstack([part.missing_scores for part in parts]))
        object.__setattr__(self, "_parameters", np.stack([part.solution.parameters for part in parts], axis=1))
        object.__setattr__(self, "_levels", self.log_weights - np.array([part.log_normaliser for part in parts]))

    @classmethod
    def of(cls, component: Component) -> Self:
        """Return the distribution of a single component."""
        return cls(np.zeros(1), (component,))

    def __repr__(self) -> str:
        form = f"n_components={self.n_components}" + (", covariance='full'" if self.normals is not None else "")
        return f"{type(self).__name__}({form}, classes={self.classes.tolist()})"

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.components)

    @property
    def covariance(self) -> Literal["full", "diagonal"]:
        """Whether features, as numbers, have a covariance in each component ("full"), or are independent."""
        return "diagonal" if self.normals is None else "full"

    @property
    def is_naive(self) -> bool:
        """Whether it is one naive Bayes model: a single component, with features that are independent in each class."""
        return self.n_components == 1 and self.normals is None

    @property
    def classes(self) -> NDArray[Any]:
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
    def layout(self) -> FeatureLayout:
        """Which columns make up which feature."""
        return self.components[0].layout

    @property
    def residual(self) -> float:
        """Largest violation of the moment equations over the components: the certificate of the optimum."""
        return max(part.residual for part in self.components)

    @cached_property
    def log_prior(self) -> Vector:
        """Logarithm of the class distribution, shape (n_classes,): the prediction when everything is missing."""
        priors = np.stack([part.log_prior for part in self.components], axis=1)
        return logsumexp(priors + self.log_weights)

    def with_column_names(self, names: Sequence[str] | None) -> Self:
        """Return the model with a name for each column, or with none; it shares its arrays with this one."""
        named = copy.copy(self)
        vars(named)["column_names"] = None if names is None else tuple(str(name) for name in names)  # frozen
        return named

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features of the layout: of the column, or the common prefix of the one-hot columns' names."""
        names = self.column_names
        if names is None:
            return None
        groups = ([names[column] for column in columns] for columns in self.layout.features)
        return tuple(_shared_name(group) if len(group) > 1 else group[0] for group in groups)

    def decision_scores(self, X: ArrayLike) -> Matrix:
        """Return log P(class, observed features) up to a constant for each row, shape (n_rows, n_classes).

        Exactly the scores of the logistic regression for a row without missing features.

        Raises
        ------
        ValueError
            When X has the wrong number of columns, an infinite value, or a value that its feature cannot have.
        """
        table = as_table(X, self.layout.n_columns, columns=self.column_names)
        if self.is_naive:
            scores = np.empty((len(table), len(self.classes)))
            for block in blocks(table, self.layout):
                scores[block.rows] = self.components[0].scores(block)
            return scores
        if table.size * self._missing.shape[1] >= _MANY and not self.layout.real and self.normals is None:
            return self._scores_of_many(table)
        scores = np.empty((len(table), len(self.classes)))
        for block in self._blocks(table):
            here = self.scores_of(ObservedRows.of(self.evidence, block, self.weights, self.biases), only_gaps=True)
            scores[block.rows] = here.observed.whole
            expected = here.of_absent
            expected += here.levels[here.observed.gaps][:, :, None]
            scores[block.rows.start + here.observed.gaps] += logsumexp(expected, axis=1)
        return scores

    def _blocks(self, table: NDArray[Any]) -> Iterator[Block]:
        return self.evidence.blocks(table, self._missing.shape[1])

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Return the expected prediction of the logistic regression given the observed features.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            NaN marks a missing feature. A row of NaN gives the class distribution of the model.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            P(class | observed features); the classifier's own probabilities for a complete row.

        Raises
        ------
        ValueError
            As `decision_scores`.

        References
        ----------
        Khosravi et al. (2019), Equation 1.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: ArrayLike) -> Matrix:
        """Return the logarithm of `predict_proba`."""
        scores = self.decision_scores(X)
        log_proba: Matrix = scores - logsumexp(scores)[:, None]
        return log_proba

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row."""
        predicted: NDArray[Any] = self.classes[self.decision_scores(X).argmax(axis=1)]
        return predicted

    def log_likelihood(self, X: ArrayLike) -> Vector:
        """Return log P(observed features) of each row, in nats; a density where features are real-valued."""
        table = as_table(X, self.layout.n_columns, columns=self.column_names)
        total = np.empty(len(table))
        for block in self._blocks(table):
            observed = ObservedRows.of(self.evidence, block, self.weights, self.biases)
            total[block.rows] = logsumexp(self.scores_of(observed).joint) + self.evidence.base(block)
        return total

    def scores_of(self, observed: ObservedRows, *, only_gaps: bool = False) -> ComponentScores:
        """Return the scores of some rows under each component; if `only_gaps`, without the levels of complete rows."""
        return component_scores(
            observed, self._parameters, self._levels, self._missing, self.normals, only_gaps=only_gaps
        )

    def _scores_of_many(self, table: NDArray[Any]) -> Matrix:
        """Return `decision_scores` of many rows without real-valued features, from tables of partial sums."""
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


def _shared_name(names: Sequence[str]) -> str:
    """Return the common prefix of one-hot columns' names, "town" for "town_x" and "town_y"; the first name if none."""
    pairs = zip(min(names), max(names), strict=False)
    shared = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    last = max(shared.rfind(separator) for separator in "_=.")
    return (shared[:last] if last > 0 else shared) or names[0]


# One component: its parameters and probabilities.


@dataclass(frozen=True, eq=False)
class Component:
    """A naive Bayes model that conforms with a logistic regression.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    layout : FeatureLayout
    solution : Solution
        Parameters with their certificate: ``solution.residual`` is the largest violation of the moment equations.
    coding : Coding
        The reduced problem that was solved.
    normal : Normals, optional
        The joint distribution of the features that are numbers (standardised), if they have a covariance.
    missing_scores : ndarray of shape (n_features, n_classes)
        What each feature adds to the score of each class while it is missing; without what `normal` adds, which
        depends on the other features.
    log_prior : ndarray of shape (n_classes,)
        Logarithm of the class distribution: what is predicted when everything is missing.
    log_normaliser : float
        Log-normaliser A of the joint distribution of classes and features.
    """

    classes: NDArray[Any]
    weights: Matrix
    biases: Vector
    layout: FeatureLayout
    solution: Solution
    coding: Coding = field(repr=False)
    normal: Normals | None = field(default=None, repr=False)
    missing_scores: Matrix = field(init=False, repr=False)
    log_prior: Vector = field(init=False, repr=False)
    log_normaliser: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        at = self.coding.problem.evaluate(self.solution.parameters)
        expected = self.coding.offsets.copy()
        expected[[*self.coding.discrete, *self.coding.real]] += at.normalisers
        # Sums of thousands of log-normalisers round; those of their differences between classes hardly do.
        scores = self.biases + _column_sums(expected - expected[:, :1])
        if self.normal is not None:
            scores = scores + self.normal.normalisers[0]
        share = float(logsumexp(scores[None])[0])
        object.__setattr__(self, "missing_scores", expected)
        object.__setattr__(self, "log_prior", scores - share)
        object.__setattr__(self, "log_normaliser", share + float(_column_sums(expected[:, :1])[0]))

    @property
    def residual(self) -> float:
        """Largest violation of the moment equations: the certificate of the solution."""
        return self.solution.residual

    @property
    def tilts(self) -> Vector:
        """The free parameter t of each column, shape (n_columns,).

        The log-odds of a binary feature in class k are ``t_i + w_ki``; the values of a categorical feature have
        probabilities in proportion to ``exp(t_i + w_ki)``. Minus infinity for a value that no training row has,
        infinity for a feature that is always 1, NaN for a real-valued one (see `real_moments`) and for those that are
        jointly normal.
        """
        tilts = np.zeros(self.layout.n_columns)
        tilts[self.coding.unseen] = -np.inf
        tilts[self.coding.free] = self.solution.parameters[: len(self.coding.free)]
        binary = self.layout.binary
        always = [c for c in binary if c not in self.coding.free and c not in self.coding.unseen]
        tilts[always] = np.inf  # the value 0 does not occur
        tilts[self._numbers] = np.nan
        return tilts

    @property
    def log_probabilities(self) -> Matrix:
        """Logarithm of P(column = 1 | class), shape (n_columns, n_classes); NaN for real-valued columns."""
        log_theta = np.full((self.layout.n_columns, len(self.classes)), np.nan)
        owner, tilts = self.layout.feature_of_column, self.tilts
        discrete = np.ones(self.layout.n_columns, dtype=bool)
        discrete[self._numbers] = False
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
        log_theta[self._numbers] = np.nan
        return log_theta

    @property
    def _numbers(self) -> list[int]:
        """Columns of the features that are numbers to the model: real-valued ones, and what `normal` has."""
        return [*self.layout.real, *(column for place in self.coding.joint for column in self.layout.features[place])]

    @property
    def real_moments(self) -> tuple[Matrix, Vector]:
        """Mean in each class (n_real, n_classes) and common variance (n_real,) of the real-valued features.

        In the order of the layout; a feature without variance in the training rows has variance 0.
        """
        means = np.empty((len(self.layout.real), len(self.classes)))
        variances = np.zeros(len(self.layout.real))
        at = self.coding.problem.evaluate(self.solution.parameters)
        for row, column in enumerate(self.layout.real_columns):
            if column in self.coding.constants:
                means[row] = self.coding.constants[column]
                continue
            if self.normal is not None:
                i = self.coding.joint.index(self.layout.feature_of_column[column])
                moved = self.normal.means[0, i] + self.normal.slopes[0, i]
                means[row] = self.coding.means[i] + self.coding.scales[i] * moved
                variances[row] = self.normal.covariances[0, i, i] * self.coding.scales[i] ** 2
                continue
            i = self.coding.real.index(self.layout.feature_of_column[column])
            first = len(self.coding.free) + 2 * i
            means[row] = self.coding.means[i] + self.coding.scales[i] * at.moments[first]
            variances[row] = -0.5 / self.solution.parameters[first + 1] * self.coding.scales[i] ** 2
        return means, variances

    def scores(self, block: Block) -> Matrix:
        """Return log P(class, observed features) up to a constant for each row of a block, (n_rows, n_classes).

        ``b_k + sum of w_ki x_i over the observed features + log-normalisers of the missing ones``.
        """
        scores = block.values @ self.weights + self.biases
        if block.absent.any():
            scores += block.absent.astype(np.float64) @ self.missing_scores
        return scores


def _column_sums(table: Matrix) -> Vector:
    """Return the sum of each column, added pairwise, which rounds less than row by row."""
    sums: Vector = np.ascontiguousarray(table.T).sum(axis=1)
    return sums


# The row whose classification is explained, and the classes that are compared.


def checked_row(model: ConformantDistribution, x: ArrayLike) -> Vector:
    """Return a row, of shape (n_columns,); raise ValueError if it is not a row of the model."""
    (rows,) = chunks(as_row(x, model.layout.n_columns, model.column_names), model.layout, missing=True)
    row: Vector = rows[0]
    return row


def compared_classes(
    model: ConformantDistribution, row: Vector, against: Any, *, only_one: bool = False
) -> tuple[int, tuple[int, ...]]:
    """Return the positions of the predicted class and of `against`, or of all other classes if it is None.

    Raises ValueError if `against` is not another class, or is None with `only_one` and several other classes.
    """
    labels = model.classes.tolist()
    winner = int(np.argmax(model.decision_scores(row[None])[0]))  # as `predict`
    others = [label for label in labels if label != labels[winner]]
    if isinstance(against, np.generic):
        against = against.item()
    if against is None and only_one and len(others) > 1:
        raise ValueError(
            f"against must name the class to compare the predicted one, {labels[winner]!r}, with, as there are "
            f"{len(labels)} classes; choose one of {others}"
        )
    if against is not None and against not in others:
        raise ValueError(
            f"against must be one of {others}, got {against!r} (the predicted class is {labels[winner]!r})"
        )
    rivals = others if against is None else [against]
    return winner, tuple(map(labels.index, rivals))


def lost_log_odds(model: ConformantDistribution, row: Vector, winner: int, other: int) -> Vector:
    """Return by how much the loss of each feature alone lowers the log-odds of `winner` over `other`, (n_features,)."""
    observed = np.flatnonzero(~np.isnan(row[model.layout.first_columns]))
    rows = np.where(model.layout.feature_of_column == observed[:, None], np.nan, row)
    scores = model.decision_scores(np.vstack([row, rows]))
    log_odds = scores[:, winner] - scores[:, other]
    lost = np.zeros(model.layout.n_features)
    lost[observed] = log_odds[0] - log_odds[1:]
    return lost
