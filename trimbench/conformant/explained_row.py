"""The row whose classification is explained, and the classes that are compared."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.layout import FeatureLayout, chunks
from trimbench.conformant.numeric_input import as_row
from trimbench.conformant.reduced_problem import Matrix, Vector


class Explained(Protocol):
    """What explanations need of a model, or of a mixture of models."""

    @property
    def classes(self) -> NDArray[Any]:
        """Labels of the classes, shape (n_classes,)."""

    @property
    def weights(self) -> Matrix:
        """Weights of the classifier, shape (n_columns, n_classes)."""

    @property
    def biases(self) -> Vector:
        """Biases of the classifier, shape (n_classes,)."""

    @property
    def layout(self) -> FeatureLayout:
        """Which columns make up which feature."""

    @property
    def log_weights(self) -> Vector:
        """Logarithms of the shares of the components, shape (n_components,)."""

    @property
    def components(self) -> tuple[ConformantDistribution, ...]:
        """The models that are mixed."""

    def decision_scores(self, X: ArrayLike) -> Matrix:
        """Return log P(class, observed features) up to a constant of each row, shape (n_rows, n_classes)."""


def checked_row(model: Explained, x: ArrayLike) -> Vector:
    """Return a row of the model, of shape (n_columns,); raise ValueError if it is none."""
    (rows,) = chunks(as_row(x, model.layout.n_columns), model.layout, missing=True)
    row: Vector = rows[0]
    return row


def predicted_and_rival(model: Explained, scores: Vector, against: Any) -> tuple[int, int]:
    """Return the positions of the predicted class and of the one to compare it with.

    Raises ValueError if `against` is not another class, or names none of several.
    """
    labels = model.classes.tolist()
    winner = int(np.argmax(scores))  # as `predict`
    if isinstance(against, np.generic):
        against = against.item()
    if against is None:
        if len(labels) > 2:
            raise ValueError(
                f"against must name the class to compare the predicted one, {labels[winner]!r}, with, as there are "
                f"{len(labels)} classes; choose one of {[label for label in labels if label != labels[winner]]}"
            )
        return winner, 1 - winner
    if against not in labels or labels.index(against) == winner:
        raise ValueError(
            f"against must be one of {[label for label in labels if label != labels[winner]]}, got {against!r} (the "
            f"predicted class is {labels[winner]!r})"
        )
    return winner, labels.index(against)


def predicted_and_rivals(model: Explained, row: Vector, against: Any) -> tuple[int, tuple[int, ...]]:
    """Return the positions of the predicted class and of `against`, or of all other classes if it is None."""
    scores = model.decision_scores(row[None])[0]
    if against is None:
        winner = int(np.argmax(scores))
        return winner, tuple(k for k in range(len(scores)) if k != winner)
    winner, other = predicted_and_rival(model, scores, against)
    return winner, (other,)


def without_each(model: Explained, row: Vector) -> tuple[NDArray[np.intp], Matrix]:
    """Return the observed features of a row, and the row with each of them missing, shape (n_observed, n_columns)."""
    observed = np.flatnonzero(~np.isnan(row[[columns[0] for columns in model.layout.features]]))
    owner = model.layout.feature_of_column
    return observed, np.where(owner == observed[:, None], np.nan, row)


def lost_log_odds(model: Explained, row: Vector, winner: int, other: int) -> Vector:
    """Return what the loss of each feature alone costs the log-odds of a class against another, (n_features,)."""
    observed, rows = without_each(model, row)
    scores = model.decision_scores(np.vstack([row, rows]))
    log_odds = scores[:, winner] - scores[:, other]
    lost = np.zeros(model.layout.n_features)
    lost[observed] = log_odds[0] - log_odds[1:]
    return lost
