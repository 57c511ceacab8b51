"""Contrastive explanations: the fewest features whose change, or whose loss, gives another class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from trimbench.conformant.decision_problem import DecisionProblem
from trimbench.conformant.distribution import ConformantDistribution
from trimbench.conformant.explained_row import Explained, checked_row, lost_log_odds, predicted_and_rivals
from trimbench.conformant.explanation_views import ExplanationViews
from trimbench.conformant.losses import smallest_losses
from trimbench.conformant.reduced_problem import Matrix, Vector
from trimbench.conformant.smallest_covers import smallest_covers

By = Literal["change", "loss"]
# How far past the boundary, in log-odds, a real-valued feature is moved.
_PAST = 1e-6


@dataclass(frozen=True, eq=False)
class ContrastiveExplanation(ExplanationViews):
    """The fewest features without whose values the class would be another.

    Attributes
    ----------
    predicted : label
    by : {"change", "loss"}
    features : tuple of int
        The explanation, positions in the layout by decreasing `evidence`; empty if no set gives another class.
    becomes : label or None
        The class that then has a higher score than `predicted`.
    row : ndarray of shape (n_columns,)
        The row with `features` changed to the values that are worst for `predicted`, or missing. A real-valued feature,
        which alone can reach any score, is changed just enough.
    sets : tuple of tuple of int
        Smallest sets, `features` first.
    size_lower_bound : int
        No set of fewer features gives another class: proven. The number of `features`, except for the loss of features
        of a mixture, where not all sets can be tried if there are many.
    complete : bool
        Whether these are proven to be all smallest sets.
    evidence : ndarray of shape (n_features,)
        What the change, or loss, of each feature alone costs `predicted` in log-odds against `becomes`.
    """

    predicted: Any
    by: By
    features: tuple[int, ...]
    becomes: Any
    row: Vector
    sets: tuple[tuple[int, ...], ...]
    size_lower_bound: int
    complete: bool
    evidence: Vector


def contrast(
    model: Explained, x: ArrayLike, against: Any = None, *, by: By = "change", max_sets: int = 1
) -> ContrastiveExplanation:
    """Return the contrastive explanation of the classification of one row, see `ConformantModel.contrast`.

    What each feature can cost adds up, so that the features that cost most are a smallest set, exactly. Only what the
    loss of features of a mixture costs does not (`losses`).

    References
    ----------
    Ignatiev, Narodytska, Asher and Marques-Silva (2020), *From Contrastive to Abductive Explanations and Back Again*.
    """
    if by not in get_args(By):
        raise ValueError(f"by must be 'change' or 'loss', got {by!r}")
    if isinstance(max_sets, bool) or not isinstance(max_sets, int | np.integer) or max_sets < 1:
        raise ValueError(f"max_sets must be a whole number, 1 or more, got {max_sets!r}")
    row = checked_row(model, x)
    winner, rivals = predicted_and_rivals(model, row, against)
    if len(model.components) == 1 or (by == "change" and not np.isnan(row).any()):
        # The classifier alone decides what changes of a complete row do, and every component has it.
        return _additive(model.components[0], row, winner, rivals, by, max_sets)
    if by == "change":
        raise ValueError(
            "x must have no missing value for by='change' with several components, as what values change then depends "
            "on each other; use by='loss', or a model of one component"
        )
    found, becomes = smallest_losses(model, row, winner, rivals, max_sets)
    evidence = lost_log_odds(model, row, winner, becomes[0] if becomes else rivals[0])
    listed = tuple(tuple(sorted(chosen, key=lambda i: (-evidence[i], i))) for chosen in found.sets)
    lost = np.isin(model.layout.feature_of_column, listed[0] if listed else ())
    return ContrastiveExplanation(
        predicted=model.classes[winner],
        by=by,
        features=listed[0] if listed else (),
        becomes=model.classes[becomes[0]] if becomes else None,
        row=np.where(lost, np.nan, row),
        sets=listed,
        size_lower_bound=found.size_lower_bound,
        complete=found.complete,
        evidence=evidence,
    )


def _additive(
    model: ConformantDistribution, row: Vector, winner: int, rivals: tuple[int, ...], by: By, max_sets: int
) -> ContrastiveExplanation:
    """Return the contrastive explanation where what each feature can cost adds up."""
    problem = DecisionProblem.of(model, row, winner, rivals)
    costs = _costs(model, problem, by)
    found: list[tuple[int, tuple[tuple[int, ...], ...], bool]] = []
    for j in range(len(rivals)):
        margin = _margin(model, problem, j)
        useful = np.flatnonzero(costs[:, j] > 0)
        covers = smallest_covers(costs[useful, j : j + 1], np.array([np.nextafter(margin, np.inf)]), max_sets)
        if covers.sets:
            found.append((j, tuple(tuple(useful[list(chosen)].tolist()) for chosen in covers.sets), covers.complete))
    label = model.classes[winner]
    if not found:
        return ContrastiveExplanation(
            label, by, (), None, row.copy(), (), int(problem.observed.sum()) + 1, True, costs[:, 0]
        )
    size = min(len(sets[0]) for _, sets, _ in found)
    smallest = [entry for entry in found if len(entry[1][0]) == size]
    sets = list(dict.fromkeys(tuple(sorted(chosen)) for _, those, _ in smallest for chosen in those))
    j = smallest[0][0]
    evidence = costs[:, j]
    listed = [tuple(sorted(chosen, key=lambda i: (-evidence[i], i))) for chosen in sets]
    return ContrastiveExplanation(
        predicted=label,
        by=by,
        features=listed[0],
        becomes=model.classes[rivals[j]],
        row=_changed(model, problem, row, listed[0], j, by),
        sets=tuple(listed[:max_sets]),
        size_lower_bound=size,
        complete=all(complete for *_, complete in smallest) and len(listed) <= max_sets,
        evidence=evidence,
    )


def _margin(model: ConformantDistribution, problem: DecisionProblem, j: int) -> float:
    """Return the log-odds against a rival, with missing features averaged out, as the classification has them."""
    expected = model.missing_scores[:, problem.winner] - model.missing_scores[:, problem.rivals[j]]
    return float(problem.base[j] + np.where(problem.observed, problem.shown[:, j], expected).sum())


def _costs(model: ConformantDistribution, problem: DecisionProblem, by: By) -> Matrix:
    """Return what each observed feature can cost against each rival, shape (n_features, n_rivals)."""
    others = list(problem.rivals)
    if by == "loss":
        least = model.missing_scores[:, [problem.winner]] - model.missing_scores[:, others]
    else:
        # The classifier has a score for any value, also for one that the model holds to be impossible.
        lowest = []
        for feature, columns in zip(problem.hidden, model.layout.features, strict=True):
            slope = model.weights[columns[0], problem.winner] - model.weights[columns[0], others]
            is_real = columns[0] in model.layout.real
            lowest.append(np.where(slope != 0, -np.inf, 0.0) if is_real else feature.values.min(axis=0))
        least = np.stack(lowest)
    costs: Matrix = np.where(problem.observed[:, None], problem.shown - least, 0.0)
    return costs


def _changed(
    model: ConformantDistribution, problem: DecisionProblem, row: Vector, features: tuple[int, ...], j: int, by: By
) -> Vector:
    changed = row.copy()
    for place in features:
        columns = list(model.layout.features[place])
        if by == "loss":
            changed[columns] = np.nan
        elif columns[0] in model.layout.real:
            slope = model.weights[columns[0], problem.winner] - model.weights[columns[0], problem.rivals[j]]
            changed[columns] -= (_margin(model, problem, j) + _PAST) / slope
        else:
            worst = int(np.argmin(problem.hidden[place].values[:, j]))
            binary = len(columns) == 1 and columns not in [list(group) for group in model.layout.categorical]
            changed[columns] = worst if binary else np.eye(len(columns))[worst]
    return changed
