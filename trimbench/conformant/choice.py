"""What a conformant model needs: how many components, and whether its real-valued features have a covariance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_one_of, is_whole
from trimbench._typing import Matrix, Vector
from trimbench.conformant.covariance import Normals
from trimbench.conformant.distribution import Component
from trimbench.conformant.evidence import logsumexp
from trimbench.conformant.layout import FeatureLayout, has_gaps
from trimbench.conformant.mixture import (
    Expectation,
    FilledRows,
    MixturePrior,
    NormalPrior,
    PreparedRows,
    Tilts,
    clusters,
    expect,
    has_converged,
    learn_components,
    totals,
)
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.problem import as_numbers, jointly_normal
from trimbench.conformant.rows import Rows

Covariance = Literal["auto", "full", "diagonal"]
Components = int | Literal["auto"]

_MOST_COMPONENTS = 150
_HELD_OUT, _MOST_HELD_OUT, _MOST_ROWS = 0.2, 2500, 10_000
# Rows of each component, at least; with a covariance it needs as many more as there are features.
_FEWEST_ROWS = 10
# More features have no covariance unless asked for: each row with gaps takes the cube of their number.
_MOST_JOINT = 200
# Values of categorical features, and binary features without real-valued ones, may be many, and rare: they take part as
# long as there are at most so many numbers, of complete rows and of rows with gaps.
_MOST_OF_VALUES = (_MOST_JOINT, 40)
# How many pseudo-observations without correlation there are for each row, and how many with the covariance of all rows
# for each feature of a component of several.
_SHRINKAGES, _USUAL_SHRINKAGE = (0.003, 0.01, 0.03, 0.1, 0.3), 0.03
_FEW_SHRINKAGES = _SHRINKAGES[::2]
_PRIOR_ROWS = 1.5
# Steps of expectation-maximisation between two splits, and before the first one if there are gaps. More of them do not
# lead to better choices; nor do exact ones.
_STEPS, _STEPS_OF_GAPS = 3, 5
_TOLERANCE, _ROUGH, _FINE = 1e-3, 1e-3, 1e-8
# What was chosen learns longer where steps are cheap: without covariance.
_LAST_STEPS, _LAST_TOLERANCE = 30, 1e-5
_POWER_STEPS = 8
# Of a covariance that was not asked for.
_LARGEST_RESIDUAL = 1e-6
# More components than this are learned from clusters of all rows: repeated halves are not the best parts of a whole.
_MOST_SPLIT = 16
# How many rows held out, each with how many masks, tell whether a covariance predicts better.
_MOST_COMPARED, _MASKS = 250, 2
# How many standard errors a difference has that more rows would not turn.
_CLEAR = 3.0
# How many components the blocks of the search are made for.
_WIDTH = 16


def check_form(n_components: Any, covariance: Any) -> None:
    """Raise ValueError unless these are a number of components, and a kind of covariance."""
    if not is_whole(n_components, 1) and not (isinstance(n_components, str) and n_components == "auto"):
        raise ValueError(f"n_components must be 1 or more, or 'auto', got {n_components!r}")
    check_one_of("covariance", covariance, get_args(Covariance))


def learn_mixture(
    model: Component,
    rows: NDArray[Any] | Rows,
    n_components: Components,
    smoothing: float,
    random_state: int,
    covariance: Covariance = "diagonal",
) -> ConformantModel:
    """Learn a mixture of conformant models.

    Raises ValueError if there are fewer rows than components.

    Parameters
    ----------
    model : Component
        The model that was fitted to the means of all rows.
    rows : Rows, or ndarray of shape (n_rows, n_columns)
        The rows that the statistics of the model were computed from; NaN marks a missing feature.
    n_components : int or "auto"
    smoothing : float
        Pseudo-count of each value of each feature in each class, shared by the components.
    random_state : int
        Seed of the clustering that starts the search, and of the choice of held-out rows.
    covariance : {"auto", "full", "diagonal"}
        Whether the real-valued features of a component, and others as numbers, have a covariance.

    Notes
    -----
    What is ``"auto"`` is chosen on some of the rows and tested on others. One component with or without covariance,
    whichever predicts the classifier's probabilities for the others better where values are hidden, is split, as are
    its parts, across the directions in which they differ most, each time followed by a few rough steps of
    expectation-maximisation, until that makes the others no more likely or, where features of few values take part in
    the covariance, predicts them worse. The shrinkage of the covariance makes the others most likely; where features of
    few values take part, it is 3 %, unless another predicts better. "Better" and "more likely" are by more than one
    standard error.
    The mixture that was chosen then learns from all rows, beginning where it is, or with clusters if it is large.
    """
    rows = Rows.of(rows, model.layout.n_columns)
    sample = rows.sample(random_state)
    if n_components != "auto" and n_components > sample.n_rows:
        raise ValueError(f"n_components must be at most the number of rows, {sample.n_rows}, got {n_components}")
    # On tables of binary pixels many components without covariance predict better than the few that it leaves room for.
    most = _MOST_OF_VALUES[sample.has_gaps] if covariance == "full" else 0
    numbers, n_joint = _numbers(model, most)
    if n_joint < 2 or (covariance == "auto" and n_joint > _MOST_JOINT):
        covariance = "diagonal"
    if covariance == "diagonal" and n_components != "auto":
        first = clusters(model, sample.rows, n_components, random_state)
        return learn_components(MixturePrior.of(model, n_components, smoothing), rows, first)
    search = _Search(model, rows, numbers, smoothing, random_state)
    if covariance == "auto":
        # Weights may be so large that a covariance is lost to rounding; what was not asked for must not fail.
        try:
            found = search.run(n_components, covariance)
        except np.linalg.LinAlgError:
            return learn_mixture(model, rows, n_components, smoothing, random_state)
        usable = found.normals is None or found.residual <= _LARGEST_RESIDUAL
        return found if usable else learn_mixture(model, rows, n_components, smoothing, random_state)
    return search.run(n_components, covariance)


def with_covariance(model: Component, numbers: Collection[int]) -> Component:
    """Return a component whose real-valued features and `numbers` are jointly normal, so far without correlation.

    Parameters
    ----------
    model : Component
    numbers : collection of int
        Positions in the layout of discrete features, as `as_numbers` finds them.
    """
    coding = jointly_normal(model.coding, model.layout, numbers)
    assert coding.joint_weights is not None
    n_joint = len(coding.joint)
    normal = Normals(coding.joint_weights, np.zeros((1, n_joint)), np.eye(n_joint)[None])
    solution = replace(model.solution, parameters=coding.problem.start())
    return replace(model, coding=coding, solution=solution, normal=normal)


def _numbers(model: Component, most: int) -> tuple[list[int], int]:
    """Return which discrete features take part in a covariance, and how many numbers it then has.

    Only binary ones do, beside real-valued ones, where that would be more than `most`.
    """
    coding, layout = model.coding, model.layout
    chosen = as_numbers(coding)
    n_joint = len(coding.real) + sum(max(len(layout.features[place]) - 1, 1) for place in chosen)
    if n_joint > most:
        chosen = [place for place in chosen if len(layout.features[place]) == 1] if coding.real else []
        n_joint = len(coding.real) + len(chosen)
    return chosen, n_joint


@dataclass(frozen=True, eq=False)
class _Family:
    """Mixtures of one kind: the priors of their components.

    Attributes
    ----------
    component : Component
        Of all rows.
    classes : ndarray of shape (n_classes,)
        Shares of the classes in the model of one component without covariance.
    smoothing : float
    shrinkage : float
        Share of the pseudo-observations without correlation.
    second : ndarray of shape (n_joint, n_joint), optional
        Covariance of all rows, shrunk.
    """

    component: Component
    classes: Vector
    smoothing: float
    shrinkage: float = 0.0
    second: Matrix | None = None

    @property
    def n_joint(self) -> int:
        """Number of features that are jointly normal."""
        return len(self.component.coding.joint)

    @property
    def has_few_values(self) -> bool:
        """Whether values of categories, or binary features without real-valued ones, are jointly normal."""
        layout, joint = self.component.layout, self.component.coding.joint
        return bool(joint) and (not layout.real or any(len(layout.features[place]) > 1 for place in joint))

    def prior(self, n_components: int, n_rows: int, *, of_all_rows: bool) -> MixturePrior:
        """Return the prior of some components of some rows."""
        normal = None
        if self.n_joint:
            normal = NormalPrior(self.shrinkage * n_rows, np.eye(self.n_joint), self.classes)
            if n_components > 1 and self.second is not None:
                normal = NormalPrior(_PRIOR_ROWS * self.n_joint, self.second, self.classes)
        return MixturePrior.of(self.component, n_components, self.smoothing, of_all_rows=of_all_rows, normal=normal)


class _Search:
    def __init__(
        self, model: Component, rows: Rows, numbers: Sequence[int], smoothing: float, random_state: int
    ) -> None:
        self.model, self.rows, self.numbers = model, rows, numbers
        self.smoothing, self.random_state = smoothing, random_state
        sample = rows.sample(random_state)
        self.few, self.n_rows, self.complete = sample.rows, sample.n_rows, not sample.has_gaps
        n_held_out = min(int(_HELD_OUT * self.n_rows), _MOST_HELD_OUT)
        self.n_held_out, self.enough = n_held_out, n_held_out >= _FEWEST_ROWS

    def run(self, n_components: Components, covariance: Covariance) -> ConformantModel:
        """Return the chosen mixture, learned from all rows."""
        families, classes = [], np.exp(self.model.log_prior)
        if covariance != "full":
            families.append(_Family(self.model, classes, self.smoothing))
        if covariance != "diagonal":
            component = with_covariance(self.model, self.numbers)
            families.append(_Family(component, classes, self.smoothing, _USUAL_SHRINKAGE))
        if not self.enough:
            return self._learned(families[0], 1 if n_components == "auto" else n_components)
        split = self._split(0)
        growth, *others = [_Growth.of(family, split).with_shrinkage() for family in families]
        for other in others:
            growth = self._better(growth, other)
        if n_components != "auto":
            return self._learned(growth.family, n_components)
        while (grown := growth.grown()) is not None:
            growth = grown
        return self._polished(growth)

    def _better(self, simple: _Growth, other: _Growth) -> _Growth:
        """Return which of two models predicts better where more is missing, the first one if both are as good.

        While few rows leave it open, both are learned again without others, up to five times.
        """
        gains = _gains(simple, other)
        for fold in range(1, round(1 / _HELD_OUT)):
            if len(gains) >= _MOST_COMPARED or abs(gains.mean()) > _CLEAR * _error(gains):
                break
            split = self._split(fold)
            gains = np.concatenate([gains, _gains(*(one.again(split) for one in (simple, other)))])
        return other if _is_better(gains) else simple

    def _split(self, fold: int) -> _Split:
        """Return some rows, others in each fold, and the rest."""
        start, n_held_out = fold * self.n_held_out, self.n_held_out
        rows = self.few[: n_held_out + _MOST_ROWS]
        held_out = rows[start : start + n_held_out]
        others = np.concatenate([rows[:start], rows[start + n_held_out :]])
        return _Split.of(others, held_out, self.model.layout, np.random.default_rng([self.random_state, fold]))

    def _learned(self, family: _Family, n_components: int) -> ConformantModel:
        """Return the mixture of one number of components, from clusters."""
        if n_components == 1 and self.complete and not family.n_joint:
            return ConformantModel.of(self.model)
        family = self._informed(family)
        prior = family.prior(n_components, self.n_rows, of_all_rows=True)
        if n_components == 1 and self.complete:
            return prior.maximise(totals(family.component, self.rows)).model()
        first = clusters(family.component, self.few, n_components, self.random_state)
        return learn_components(prior, self.rows, first)

    def _informed(self, family: _Family) -> _Family:
        """Return the family with the covariance of all rows."""
        if not family.n_joint:
            return family
        return replace(family, second=_shrunk(totals(family.component, self.rows), family.shrinkage))

    def _polished(self, growth: _Growth) -> ConformantModel:
        """Return the mixture that was chosen, learned from all rows."""
        family, tilts = growth.family, growth.tilts
        if tilts.n_components == 1:
            return self._learned(family, 1)
        prior = family.prior(tilts.n_components, self.n_rows, of_all_rows=True)
        parts = PreparedRows(prior.model, self.rows, tilts.n_components)
        if tilts.n_components > _MOST_SPLIT:
            first = clusters(family.component, self.few, tilts.n_components, self.random_state)
            tilts = prior.maximise(first, None, _ROUGH, 1)
        else:
            tilts = prior.maximise(expect(tilts, parts), tilts, _ROUGH, 1)
        how = (_STEPS, _TOLERANCE) if family.n_joint else (_LAST_STEPS, _LAST_TOLERANCE)
        tilts, objectives, expected = improved(prior, parts, tilts, *how)
        return prior.maximise(expected, tilts, _FINE).model(objectives)


def improved(
    prior: MixturePrior, parts: PreparedRows, tilts: Tilts, steps: int, tolerance: float = _TOLERANCE
) -> tuple[Tilts, tuple[float, ...], Expectation]:
    """Return a mixture after some steps of expectation-maximisation, and the objective before each of them."""
    objectives: list[float] = []
    while True:
        expected = expect(tilts, parts)
        objectives.append((expected.log_likelihood + prior.log_density(tilts)) / expected.n_rows)
        if len(objectives) > steps or has_converged(objectives, tolerance):
            return tilts, tuple(objectives), expected
        tilts = prior.maximise(expected, tilts, _ROUGH, 1)


def _is_better(gains: Vector) -> bool:
    """Tell whether the mean gain is above its standard error."""
    return bool(gains.mean() > _error(gains))


def _error(values: Vector) -> float:
    """Return the standard error of the mean."""
    return float(values.std() / np.sqrt(len(values)))


def _shrunk(expected: Expectation, shrinkage: float) -> Matrix:
    """Return the covariance of all rows, with the share of pseudo-observations without correlation."""
    count = expected.counts[0]
    mean = expected.first[0] / count
    covariance = expected.second[0] / count - np.outer(mean, mean)
    shrunk: Matrix = (covariance + shrinkage * np.eye(len(mean))) / (1 + shrinkage)
    return shrunk


@dataclass(frozen=True, eq=False)
class _Split:
    """Rows that models learn from, and others that test them.

    Attributes
    ----------
    others, held_out : ndarray of shape (n_rows, n_columns)
    few, fewer : ndarray of shape (n_compared * _MASKS, n_columns)
        Some rows that are held out, each several times, and the same ones with more hidden.
    """

    others: NDArray[Any]
    held_out: NDArray[Any]
    few: NDArray[np.float64]
    fewer: NDArray[np.float64]

    @classmethod
    def of(
        cls, others: NDArray[Any], held_out: NDArray[Any], layout: FeatureLayout, rng: np.random.Generator
    ) -> _Split:
        """Return a split with random masks."""
        few = np.repeat(held_out[:_MOST_COMPARED], _MASKS, axis=0).astype(np.float64)
        hidden = rng.random((len(few), layout.n_features)) < rng.uniform(0.1, 0.9, (len(few), 1))
        return cls(others, held_out, few, np.where(hidden[:, layout.feature_of_column], np.nan, few))

    def losses(self, models: Sequence[ConformantModel]) -> Matrix:
        """Return how badly models predict where more is missing, shape (n_compared, n_models).

        To be predicted, without labels, are the classifier's probabilities; where values are missing already, the mean
        of what the models expect.
        """
        wanted = np.mean([model.predict_proba(self.few) for model in models], axis=0)
        losses = [-(wanted * model.predict_log_proba(self.fewer)).sum(axis=1) for model in models]
        return np.asarray(np.reshape(losses, (len(models), -1, _MASKS)).mean(axis=2).T)


def _gains(simple: _Growth, other: _Growth) -> Vector:
    """Return by how much the second of two models predicts better for each of some rows that neither has seen."""
    losses = simple.split.losses([growth.tilts.model() for growth in (simple, other)])
    return np.asarray(losses[:, 0] - losses[:, 1])


@dataclass(frozen=True, eq=False)
class _Growth:
    """A mixture of growing size, learned from some rows and tested on others."""

    family: _Family
    split: _Split
    rows: _LearnedRows
    first: Expectation
    tilts: Tilts

    @classmethod
    def of(cls, family: _Family, split: _Split) -> _Growth:
        """Return one component."""
        rows = _LearnedRows.of(family.component, split)
        n_rows = len(split.others)
        first = rows.filled.sums(np.ones((n_rows, 1)))
        prior = family.prior(1, n_rows, of_all_rows=False)
        if has_gaps(split.others):
            tilts = prior.maximise(first, None, _ROUGH, 1)
            _, _, first = improved(prior, rows.parts, tilts, _STEPS_OF_GAPS)
        if family.n_joint:
            family = replace(family, second=_shrunk(first, family.shrinkage))
        return cls(family, split, rows, first, prior.maximise(first, None, _ROUGH, 2))

    def with_shrinkage(self) -> _Growth:
        """Return one component with the best shrinkage: the one that makes the held-out rows most likely.

        Numbers that have few values have no density worth that name: with them, it is the usual one, unless another
        predicts better where more is missing.
        """
        if not self.family.n_joint:
            return self
        prior = self.family.prior(1, len(self.split.others), of_all_rows=False)
        assert prior.normal is not None
        shrinkages = _FEW_SHRINKAGES if self.family.has_few_values else _SHRINKAGES
        rows = np.array(shrinkages) * len(self.split.others)
        several = replace(prior, normal=replace(prior.normal, rows=rows))
        tilts = several.maximise(self.first.of(np.zeros(len(rows), dtype=np.intp)), None, _ROUGH, 2)
        if self.family.has_few_values:
            losses = self.split.losses([ConformantModel.of(part) for part in tilts.model().components])
            gains = losses[:, [shrinkages.index(_USUAL_SHRINKAGE)]] - losses
            best = int(gains.mean(axis=0).argmax())
            if not _is_better(gains[:, best]):
                return self
        else:
            tilts = replace(tilts, log_weights=np.zeros(len(rows)))
            best = int(np.sum([tilts.scores(part).joint.sum(axis=0) for part in self.rows.tests], axis=0).argmax())
        family = replace(self.family, shrinkage=shrinkages[best], second=_shrunk(self.first, shrinkages[best]))
        prior = family.prior(1, len(self.split.others), of_all_rows=False)
        return replace(self, family=family, tilts=prior.maximise(self.first, None, _ROUGH, 2))

    def again(self, split: _Split) -> _Growth:
        """Return one component of the same family, learned from other rows."""
        return _Growth.of(self.family, split).with_shrinkage()

    @cached_property
    def scores(self) -> Vector:
        """The log-likelihood of the held-out rows."""
        return np.concatenate([logsumexp(self.tilts.scores(part).joint) for part in self.rows.tests])

    def grown(self) -> _Growth | None:
        """Return a mixture in which each component is split, if that makes the held-out rows more likely.

        With numbers that have few values, whose density grows without bound, it must not predict worse where more is
        missing, either.
        """
        n_components = 2 * self.tilts.n_components
        fewest = _FEWEST_ROWS + self.family.n_joint  # a covariance takes as many as it has features
        if n_components > _MOST_COMPONENTS or n_components * fewest > len(self.split.others):
            return None
        doubled = self._doubled()
        gain = doubled.scores - self.scores
        if not _is_better(gain) or (self.family.has_few_values and _gains(self, doubled).mean() < 0):
            return None
        return doubled

    def _doubled(self) -> _Growth:
        prior = self.family.prior(2 * self.tilts.n_components, len(self.split.others), of_all_rows=False)
        tilts = prior.maximise(self.rows.filled.sums(self._halves()), None, _ROUGH, 1)
        tilts, _, _ = improved(prior, self.rows.parts, tilts, _STEPS)
        return replace(self, tilts=tilts)

    def _halves(self) -> Matrix:
        """Return the members of each component, split across the direction in which they differ most."""
        k = self.tilts.n_components
        owners = np.concatenate([self.tilts.scores(part).joint.argmax(axis=1) for part in self.rows.parts])
        members = np.zeros((len(owners), 2 * k))
        for z in range(k):
            own = np.flatnonzero(owners == z)
            points = self.rows.filled.places[own]
            centred = points - points.mean(axis=0) if len(own) else np.zeros((0, 1))
            direction = np.random.default_rng(z).standard_normal(centred.shape[1])
            for _ in range(_POWER_STEPS):
                direction = centred.T @ (centred @ direction)
                direction = direction / (np.linalg.norm(direction) or 1.0)
            upper = centred @ direction > 0
            members[own[upper], 2 * z] = members[own[~upper], 2 * z + 1] = 1.0
        return members


@dataclass(frozen=True, eq=False)
class _LearnedRows:
    """The rows of a split with what they say, which is the same at each step."""

    parts: PreparedRows
    tests: PreparedRows
    filled: FilledRows

    @classmethod
    def of(cls, component: Component, split: _Split) -> _LearnedRows:
        """Return what the rows of a split say."""
        parts = PreparedRows(component, split.others, _WIDTH)
        return cls(parts, PreparedRows(component, split.held_out, _WIDTH), FilledRows.of(component, split.others))
