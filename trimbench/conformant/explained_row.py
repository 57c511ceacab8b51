"""The row whose classification is explained, and the classes that are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.layout import chunks
from trimbench.conformant.numeric_input import as_row
from trimbench.conformant.reduced_problem import Vector


def checked_row(model: ConformantDistribution, x: ArrayLike) -> Vector:
    """Return a row of the model, of shape (n_columns,); raise ValueError if it is none."""
    (rows,) = chunks(as_row(x, model.layout.n_columns), model.layout, missing=True)
    row: Vector = rows[0]
    return row


def predicted_and_rival(model: ConformantDistribution, scores: Vector, against: Any) -> tuple[int, int]:
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


def predicted_and_rivals(model: ConformantDistribution, row: Vector, against: Any) -> tuple[int, tuple[int, ...]]:
    """Return the positions of the predicted class and of `against`, or of all other classes if it is None."""
    scores = model.decision_scores(row[None])[0]
    if against is None:
        winner = int(np.argmax(scores))
        return winner, tuple(k for k in range(len(scores)) if k != winner)
    winner, other = predicted_and_rival(model, scores, against)
    return winner, (other,)
