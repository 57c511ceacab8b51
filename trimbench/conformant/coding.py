"""How the columns of a logistic regression appear in the reduced problem of naive conformant learning."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.problem import ReducedProblem
from trimbench.conformant.rows import FeatureStatistics


@dataclass(frozen=True, eq=False)
class Coding:
    """How the columns of the logistic regression appear in the reduced problem.

    Attributes
    ----------
    free : ndarray of int
        Column of each row of the problem's weights.
    discrete : tuple of int
        Position, in the layout, of each discrete feature of the problem.
    real : tuple of int
        Position of each real-valued feature of the problem.
    joint, joint_columns : tuple of int
        Position in the layout of the feature, and column, of each number that is not in the problem, because all of
        them are jointly normal: real-valued features, binary ones as numbers, and all values of a categorical one but
        its reference value, each a number that is 0 or 1.
    offsets : ndarray of shape (n_features, n_classes)
        What the reference value (or the mean) of each feature adds to the score of each class.
    means, scales : ndarray of shape (n_real,)
        Means and standard deviations of the numbers that are `real` or `joint`.
    unseen : ndarray of int
        Columns that are never 1 in the training rows and are not smoothed.
    constants : dict of int to float
        Value of each real-valued column without variance in the training rows.
    joint_weights : ndarray of shape (n_joint, n_classes), optional
        Weights of the `joint` numbers, standardised; those of values minus that of the reference value.
    """

    problem: ReducedProblem
    free: NDArray[np.intp]
    discrete: tuple[int, ...]
    real: tuple[int, ...]
    offsets: Matrix
    means: Vector
    scales: Vector
    unseen: NDArray[np.intp]
    constants: dict[int, float]
    joint: tuple[int, ...] = ()
    joint_columns: tuple[int, ...] = ()
    joint_weights: Matrix | None = None


def reduce_problem(
    weights: Matrix, biases: Vector, layout: FeatureLayout, statistics: FeatureStatistics, smoothing: float
) -> Coding:
    """Return the reduced problem of a logistic regression and the means of the features.

    Without smoothing, a value that no training row has gets probability 0 in every class, because the likelihood grows
    without bound in that direction; a feature with one value, or without variance, then has no parameter.

    Parameters
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    smoothing : float
        Pseudo-count c, 0 or more.
    """
    free: list[int] = []
    unseen: list[int] = []
    varied: list[int] = []
    constants: dict[int, float] = {}
    means, is_binary, is_real = statistics.means, set(layout.binary.tolist()), set(layout.real)
    for columns in layout.features:
        if columns[0] in is_real:
            if statistics.variances[columns[0]] > 0:
                varied.append(columns[0])
            else:
                constants[columns[0]] = float(means[columns[0]])
            continue
        seen = [column for column in columns if smoothing > 0 or means[column] > 0]
        unseen += sorted(set(columns) - set(seen))
        if not (columns[0] in is_binary and (smoothing > 0 or means[columns[0]] < 1)):
            seen.remove(max(seen, key=lambda column: means[column]))  # the reference value
        free += seen
    places = ColumnPlaces(np.array(free, dtype=np.intp), np.array(unseen, dtype=np.intp), constants)
    moments = (means[varied], np.sqrt(statistics.variances[varied]))
    return coded(weights, biases, layout, places, moments, means[free], smoothing / statistics.n_rows)


@dataclass(frozen=True)
class ColumnPlaces:
    """Which columns have parameters, and which of the others are always the same.

    Attributes
    ----------
    free, unseen : ndarray of int
    constants : dict of int to float
        As `Coding` has them.
    """

    free: NDArray[np.intp]
    unseen: NDArray[np.intp]
    constants: dict[int, float]


def coded(
    weights: Matrix,
    biases: Vector,
    layout: FeatureLayout,
    places: ColumnPlaces,
    real_moments: tuple[Vector, Vector],
    means: Vector,
    pseudo: Any,
) -> Coding:
    """Return the coding of columns of which it is known what they are.

    A feature without a column that is neither free nor unseen is binary, and its reference value is 0.

    Raises ValueError if the free columns are not in the order of their features, a categorical feature has no reference
    value, or there are not as many moments as real-valued features that vary.

    Parameters
    ----------
    weights : ndarray of shape (n_columns, n_classes)
    biases : ndarray of shape (n_classes,)
    layout : FeatureLayout
    places : ColumnPlaces
    real_moments : tuple of ndarrays of shape (n_real,)
        Means and standard deviations of the real-valued features that vary.
    means : ndarray of shape (n_free,)
    pseudo : float
        As of `ReducedProblem`.
    """
    offsets = np.zeros((layout.n_features, weights.shape[1]))
    free, unseen, is_real = set(places.free.tolist()), set(places.unseen.tolist()), set(layout.real)
    starts: list[int] = []
    discrete: list[int] = []
    real: list[int] = []
    ordered: list[int] = []
    references: list[int] = []
    for place, columns in enumerate(layout.features):
        if (first := columns[0]) in is_real:
            if first in places.constants:
                offsets[place] = places.constants[first] * weights[first]
            else:
                real.append(place)
            continue
        own = [column for column in columns if column in free]
        rest = [column for column in columns if column not in free and column not in unseen]
        if len(rest) > 1 or (len(columns) > 1 and not rest):
            raise ValueError(f"free must have all columns of {list(columns)} that are not unseen but one, got {own}")
        reference = rest[0] if rest else -1  # the value 0, of weight 0
        if rest:
            offsets[place] = weights[reference]
        if own:
            starts.append(len(ordered))
            discrete.append(place)
            ordered += own
            references += [reference] * len(own)
    columns_of_real, (real_means, scales) = [layout.features[place][0] for place in real], real_moments
    if ordered != places.free.tolist() or len(real) != len(real_means):
        raise ValueError(
            f"free must have {len(ordered)} columns of discrete features, in the order of these, and there must be "
            f"moments of {len(real)} real-valued ones, got {len(places.free)} and {len(real_means)}"
        )
    offsets[real] = real_means[:, None] * weights[columns_of_real]
    rows = weights[ordered] - np.where(np.array(references)[:, None] < 0, 0.0, weights[references])
    problem = ReducedProblem(
        biases + offsets.sum(axis=0),
        rows.reshape(len(ordered), weights.shape[1]),
        np.array(starts, dtype=np.intp),
        means,
        weights[columns_of_real] * scales[:, None],
        pseudo,
    )
    return Coding(
        problem,
        places.free,
        tuple(discrete),
        tuple(real),
        offsets,
        real_means,
        scales,
        places.unseen,
        places.constants,
    )


def as_numbers(coding: Coding) -> list[int]:
    """Return the positions in the layout of the discrete features that may be numbers: all of their values occur."""
    parts = np.split(coding.problem.means, coding.problem.starts[1:])
    return [place for place, own in zip(coding.discrete, parts, strict=False) if own.min() > 0 and own.sum() < 1]


def jointly_normal(coding: Coding, layout: FeatureLayout, discrete: Collection[int] = ()) -> Coding:
    """Return the coding with its real-valued features taken out of the problem, and discrete ones as numbers.

    Parameters
    ----------
    discrete : collection of int
        Positions in the layout of discrete features, as `as_numbers` finds them.
    """
    problem, chosen = coding.problem, set(discrete)
    owners = np.repeat(coding.discrete, problem.sizes).astype(np.intp)
    taken = np.array([owner in chosen for owner in owners.tolist()], dtype=bool)
    means, offsets = problem.means[taken], coding.offsets.copy()
    scales = np.sqrt(means * (1 - means))
    np.add.at(offsets, owners[taken], means[:, None] * problem.weights[taken])
    kept = ~np.isin(coding.discrete, list(chosen))
    sizes = problem.sizes[kept]
    rest = replace(
        problem,
        biases=problem.biases + means @ problem.weights[taken],
        weights=problem.weights[~taken],
        starts=np.cumsum(sizes) - sizes,
        means=problem.means[~taken],
        real_weights=problem.real_weights[:0],
        real_moments=np.empty(0),
    )
    places = np.concatenate([owners[taken], np.array(coding.real, dtype=np.intp)])
    order = np.argsort(places, kind="stable")
    numbers = np.concatenate([problem.weights[taken] * scales[:, None], problem.real_weights])
    columns = np.concatenate([coding.free[taken], layout.first_columns[list(coding.real)]])
    return replace(
        coding,
        problem=rest,
        free=coding.free[~taken],
        discrete=tuple(place for place in coding.discrete if place not in chosen),
        real=(),
        offsets=offsets,
        means=np.concatenate([means, coding.means])[order],
        scales=np.concatenate([scales, coding.scales])[order],
        joint=tuple(places[order].tolist()),
        joint_columns=tuple(columns[order].tolist()),
        joint_weights=numbers[order],
    )
