"""A logistic regression from incomplete rows: the likelihood of the classes given what is observed, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.classifier_weights import linear_scores, set_linear_scores
from trimbench.conformant.conform import conform
from trimbench.conformant.expected_predictions import logsumexp
from trimbench.conformant.feature_statistics import FeatureStatistics
from trimbench.conformant.layout import FeatureLayout, blocks
from trimbench.conformant.mixture import ComponentScores, ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.reduced_problem import Matrix, Vector, reduce_problem

_TURNS = 2
_MAX_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class IncompleteRows:
    """Rows with classes, and how a classifier of them is judged.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_columns)
        NaN marks a missing feature.
    labels : ndarray of int, shape (n_rows,)
        Positions of classes.
    inverse_penalty : float
        C of scikit-learn.
    smoothing : float
    weights : ndarray of shape (n_rows,), optional
        Of the rows in the likelihood of the classes; the density of the features does not depend on them.
    """

    table: NDArray[np.float64]
    labels: NDArray[np.intp]
    layout: FeatureLayout
    inverse_penalty: float
    smoothing: float
    weights: Vector | None = None
    statistics: FeatureStatistics = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistics", FeatureStatistics.of(self.table, self.layout, missing=True))

    def objective(self, mixture: ConformantMixture) -> tuple[float, Matrix, Vector]:
        """Return the log-likelihood of the classes minus the penalty, and its derivatives by weights and biases.

        The tilts of the components stay as they are. The penalty is that of scikit-learn: half the squares of the
        weights, divided by C; of two classes the first has no weights.
        """
        n_components, n_classes = mixture.n_components, len(mixture.biases)
        total, of_components = 0.0, np.zeros(n_components)
        weights, biases = np.zeros_like(mixture.weights), np.zeros(n_classes)
        hidden = np.zeros((self.layout.n_features, n_components * n_classes))
        for block in blocks(self.table, self.layout, n_components * n_classes):
            scores = mixture.scores_of(block)
            likely, shares = _errors(scores, self.labels[block.rows])
            if self.weights is not None:
                of_rows = self.weights[block.rows]
                likely, shares = likely * of_rows, shares * of_rows[:, None, None]
            total += float(likely.sum())
            by_class = shares.sum(axis=1)
            weights += block.values.T @ by_class
            biases += by_class.sum(axis=0)
            of_components += shares.sum(axis=(0, 2))
            hidden += scores.absent.T @ shares[scores.gaps].reshape(len(scores.gaps), n_components * n_classes)
        missing = hidden.reshape(-1, n_components, n_classes)[self.layout.feature_of_column]
        for z, part in enumerate(mixture.components):
            prior = of_components[z] * np.exp(part.log_prior)
            weights += (missing[:, z] - prior) * _expectations(part)
            biases -= prior
        penalised = mixture.weights / self.inverse_penalty
        return total - 0.5 * float((mixture.weights * penalised).sum()), weights - penalised, biases

    def with_classifier(self, mixture: ConformantMixture, weights: Matrix, biases: Vector) -> ConformantMixture:
        """Return the mixture with the same tilts for another classifier."""
        coding = reduce_problem(weights, biases, self.layout, self.statistics, self.smoothing)
        parts = [replace(part, weights=weights, biases=biases, coding=coding) for part in mixture.components]
        return replace(mixture, components=tuple(parts))

    def conformant(
        self, weights: Matrix, biases: Vector, classes: NDArray[Any], n_components: int | Literal["auto"], seed: int
    ) -> ConformantMixture:
        """Return the mixture that conforms with a classifier and fits the rows best."""
        classifier = SimpleNamespace(classes_=classes)
        set_linear_scores(classifier, weights, biases)
        categorical, real = self.layout.categorical, self.layout.real
        found = conform(
            classifier,
            self.table,
            smoothing=self.smoothing,
            categorical=categorical,
            real=real,
            n_components=n_components,
            seed=seed,
        )
        return found if isinstance(found, ConformantMixture) else ConformantMixture(np.zeros(1), (found,))

    def improve(self, mixture: ConformantMixture) -> tuple[Matrix, Vector]:
        """Return the weights and biases that maximise the objective while the tilts stay as they are."""
        from scipy import optimize

        n_columns, n_classes = mixture.weights.shape
        free = slice(1, None) if n_classes == 2 else slice(None)  # of two classes the first has no weights

        def unpacked(point: Vector) -> tuple[Matrix, Vector]:
            table = np.zeros((n_columns + 1, n_classes))
            table[:, free] = point.reshape(n_columns + 1, -1)
            return table[:-1], table[-1]

        def negative(point: Vector) -> tuple[float, Vector]:
            value, weights, biases = self.objective(self.with_classifier(mixture, *unpacked(point)))
            return -value, -np.vstack([weights, biases])[:, free].ravel()

        start = np.vstack([mixture.weights, mixture.biases])[:, free].ravel()
        found = optimize.minimize(
            negative, start, jac=True, method="L-BFGS-B", options={"maxiter": _MAX_ITERATIONS, "gtol": 1e-5}
        )
        return unpacked(found.x)


def fit_incomplete(
    start: Any, rows: IncompleteRows, n_components: int | Literal["auto"], seed: int = 0
) -> ConformantModel | ConformantMixture:
    """Learn a classifier and the density of the features from incomplete rows, in turns.

    A turn learns the density that conforms with the classifier, then the classifier that makes the classes most likely,
    given the observed features and this density; turns end when the classes become no more likely.

    Parameters
    ----------
    start : fitted LogisticRegression
        Where to begin, for example the regression of the rows with means in place of missing values.
    rows : IncompleteRows
    n_components : int or "auto"
    seed : int
    """
    weights, biases, classes = linear_scores(start)
    best = rows.conformant(weights, biases, classes, n_components, seed)
    reached = rows.objective(best)[0]
    for _ in range(_TURNS):
        mixture = rows.conformant(*rows.improve(best), classes, best.n_components, seed)
        value = rows.objective(mixture)[0]
        if not value > reached:
            break
        best, reached = mixture, value
    return best.components[0] if best.n_components == 1 else best


def _errors(scores: ComponentScores, labels: NDArray[np.intp]) -> tuple[Vector, NDArray[np.float64]]:
    """Return the log-likelihood of the class of each row, and its derivatives by the scores of all components."""
    joint = scores.levels[:, :, None] + scores.whole[:, None, :]
    joint[scores.gaps] = scores.levels[scores.gaps][:, :, None] + scores.of_gaps
    right = joint[np.arange(len(labels)), :, labels]
    flat = joint.reshape(len(joint), -1)
    of_label, of_all = logsumexp(right), logsumexp(flat)
    derivatives = -np.exp(joint - of_all[:, None, None])
    derivatives[np.arange(len(labels)), :, labels] += np.exp(right - of_label[:, None])
    return of_label - of_all, derivatives


def _expectations(model: ConformantModel) -> Matrix:
    """Return the expectation of each column in each class, shape (n_columns, n_classes)."""
    expected = np.exp(model.log_probabilities)
    real = [columns[0] for columns in model.layout.features if columns[0] in set(model.layout.real)]
    expected[real] = model.real_moments[0]
    return expected
