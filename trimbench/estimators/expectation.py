"""Means of a classifier's answers over completions of rows, with their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.estimators.densities.density import Density
from trimbench.estimators.densities.draws import RandomNumbers

MOST_DRAWS = 400
# With n_draws="auto", draws are added up to these numbers until the standard error is small enough.
_STAGES = (32, 64, 128, 256, MOST_DRAWS)
_STANDARD_ERROR = 0.005
# Cells of completions that are classified at once (32 MiB), and those of rows few enough for all draws at once.
_CELLS, _FEW_CELLS = 2**22, 2**17

# From complete coded rows, and the row that each completes, to probabilities and to the places of the decisions.
Classify = Callable[[Matrix, NDArray[np.intp]], tuple[Matrix, NDArray[np.intp]]]


@dataclass(frozen=True, eq=False)
class Answers:
    """Sums of a classifier's answers over the completions of rows.

    Attributes
    ----------
    sums, squares : ndarray of shape (n_rows, n_classes)
        Of probabilities and of their squares.
    votes : ndarray of shape (n_rows, n_classes)
        How many completions have each decision.
    n_draws : ndarray of int, shape (n_rows,)
    """

    sums: Matrix
    squares: Matrix
    votes: Matrix
    n_draws: NDArray[np.intp]

    @classmethod
    def of_none(cls, n_rows: int, n_classes: int) -> Answers:
        """Return the answers of no completion."""
        sums, squares, votes = np.zeros((3, n_rows, n_classes))
        return cls(sums, squares, votes, np.zeros(n_rows, dtype=np.intp))

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """Return the answers of several parts of rows, one after the other."""
        names = ("sums", "squares", "votes", "n_draws")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def add(self, rows: NDArray[np.intp], probabilities: NDArray[np.float64], decisions: NDArray[np.intp]) -> None:
        """Add answers of shape (n_rows, n_draws, n_classes) and (n_rows, n_draws) to some rows."""
        self.sums[rows] += probabilities.sum(axis=1)
        self.squares[rows] += (probabilities**2).sum(axis=1)
        for label in range(self.votes.shape[1]):
            self.votes[rows, label] += (decisions == label).sum(axis=1)
        self.n_draws[rows] += decisions.shape[1]

    @property
    def means(self) -> Matrix:
        """Mean probabilities, shape (n_rows, n_classes)."""
        return self.sums / self.n_draws[:, None]

    @property
    def standard_errors(self) -> Matrix:
        """Standard errors of the means for independent draws; evenly spread ones have smaller errors."""
        return _standard_errors(self.sums, self.squares, self.n_draws[:, None])


def _standard_errors(sums: NDArray[Any], squares: NDArray[Any], n_draws: NDArray[np.intp]) -> NDArray[np.float64]:
    variances = np.maximum(squares - sums**2 / n_draws, 0.0) / np.maximum(n_draws - 1, 1)
    return np.asarray(np.sqrt(variances / n_draws))


def answers_of_draws(
    classify: Classify, density: Density, rows: Matrix, n_draws: int | Literal["auto"], random_state: int
) -> Answers:
    """Return the answers over completions of coded rows with gaps that are drawn from a density.

    What a row gets does not depend on the others.
    """
    stages = _STAGES if n_draws == "auto" else (n_draws,)
    n_features = rows.shape[1]
    if len(rows) * stages[-1] * n_features <= _FEW_CELLS:
        return _at_once(classify, density, rows, stages, random_state)
    answers: Answers | None = None
    active, first = np.arange(len(rows)), 0
    for stage in stages:
        numbers = RandomNumbers(stage - first, n_features, random_state, first=first)
        step = max(_CELLS // (numbers.n_draws * n_features), 1)
        for begin in range(0, len(active), step):
            part = active[begin : begin + step]
            probabilities, decisions = _classified(classify, density, rows, part, numbers)
            answers = answers or Answers.of_none(len(rows), probabilities.shape[2])
            answers.add(part, probabilities, decisions)
        active = active[answers.standard_errors[active].max(axis=1) > _STANDARD_ERROR] if answers else active
        first = stage
        if not len(active):
            break
    return answers or Answers.of_none(0, 1)


def _at_once(classify: Classify, density: Density, rows: Matrix, stages: tuple[int, ...], random_state: int) -> Answers:
    """Return `answers_of_draws` with one call of the classifier: all draws, of which the first ones may be enough."""
    numbers = RandomNumbers(stages[-1], rows.shape[1], random_state)
    probabilities, decisions = _classified(classify, density, rows, np.arange(len(rows)), numbers)
    each_class = np.arange(probabilities.shape[2])
    starts = (0, *stages[:-1])

    def up_to_stages(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.cumsum(np.add.reduceat(values, starts, axis=1, dtype=np.float64), axis=1)

    sums, squares = up_to_stages(probabilities), up_to_stages(probabilities**2)
    errors = _standard_errors(sums, squares, np.array(stages)[:, None])
    settled = errors.max(axis=2) <= _STANDARD_ERROR
    settled[:, -1] = True
    chosen = np.arange(len(rows)), settled.argmax(axis=1)
    votes = up_to_stages(decisions[:, :, None] == each_class)
    return Answers(sums[chosen], squares[chosen], votes[chosen], np.array(stages)[chosen[1]])


def _classified(
    classify: Classify, density: Density, rows: Matrix, part: NDArray[np.intp], numbers: RandomNumbers
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return answers for draws of some rows, shape (n_part, n_draws, n_classes) and (n_part, n_draws)."""
    completed = density.draw(rows[part], numbers)
    shape = (len(part), numbers.n_draws)
    probabilities, decisions = classify(completed.reshape(-1, rows.shape[1]), np.repeat(part, numbers.n_draws))
    return probabilities.reshape(*shape, -1), decisions.reshape(shape)


def share_interval(votes: Vector, n_draws: NDArray[np.intp]) -> tuple[Vector, Vector]:
    """Return the exact 95 % interval of a share (Clopper and Pearson, 1934)."""
    from scipy.special import betaincinv

    others = n_draws - votes
    low = np.where(votes > 0, betaincinv(np.maximum(votes, 1), others + 1, 0.025), 0.0)
    high = np.where(others > 0, betaincinv(votes + 1, np.maximum(others, 1), 0.975), 1.0)
    return low, high
