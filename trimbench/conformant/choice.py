"""What a conformant model needs: how many components, and whether its real-valued features have a covariance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_one_of, is_whole
from trimbench._typing import Matrix, Vector
from trimbench.conformant.coding import as_numbers, jointly_normal
from trimbench.conformant.covariance import Normals
from trimbench.conformant.distribution import Component
from trimbench.conformant.evidence import logsumexp
from trimbench.conformant.layout import FeatureLayout, has_gaps
from trimbench.conformant.mixture import (
    CLUSTERED_ROWS,
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
from trimbench.conformant.rows import Rows

Covariance = Literal["auto", "full", "diagonal"]
Components = int | Literal["auto"]

_MOST_COMPONENTS = 150
_HELD_OUT, _MOST_HELD_OUT, _MOST_ROWS = 0.2, 2500, 10_000
# Rows of each component, at least.
_FEWEST_ROWS = 10
# Sizes of mixtures with a covariance. The search ends after so many that do not predict better; with more than so many
# cubes of the number of features, a row with gaps takes milliseconds, and so many fewer may have to be learned from.
_SIZES, _MOST_WORSE = (4, 16, 64), 2
_MOST_CUBES, _MOST_CUBES_OF_GAPS = 2**23, 2**20
# More features have no covariance unless asked for: each row with gaps takes the cube of their number.
_MOST_JOINT = 200
# Values of categorical features, and binary features without real-valued ones, may be many, and rare: they take part as
# long as there are at most so many numbers, of complete rows and of rows with gaps.
_MOST_OF_VALUES = (_MOST_JOINT, 40)
# How many pseudo-observations without correlation there are for each row, and how many with the covariance within
# clusters for each feature of a component of several.
_SHRINKAGES, _USUAL_SHRINKAGE = (0.003, 0.03, 0.3), 0.03
_PRIOR_ROWS = 0.5
# Steps of expectation-maximisation between two splits, and before the first one if there are gaps. More of them do not
# lead to better choices; nor do exact ones.
_STEPS, _STEPS_OF_GAPS = 3, 5
_TOLERANCE, _ROUGH, _FINE = 1e-3, 1e-3, 1e-8
# What was chosen without covariance learns longer.
_LAST_STEPS, _LAST_TOLERANCE = 30, 1e-5
_POWER_STEPS = 8
# Of a covariance that was not asked for.
_LARGEST_RESIDUAL = 1e-6
# More components than this are learned from clusters of all rows: repeated halves are not the best parts of a whole.
_MOST_SPLIT = 16
# How many rows held out, each with how many masks, tell which of two models predicts better, and how many tell whether
# one is better than a simpler one.
_MOST_COMPARED, _MASKS = 250, 2
_ENOUGH = 150
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
    What is ``"auto"`` is chosen on some of the rows and tested on others, where values are hidden: what counts is how
    well the classifier's probabilities are predicted, and "better" is by more than one standard error. Where rows are
    few, all of them are held out in turns.

    One component has a covariance if that is better; 3 % of its rows are pseudo-observations without correlation,
    unless another share is better. Mixtures with a covariance begin with 4, 16 or 64 clusters, and the size that
    predicts best is taken if it is better than one component. Components without covariance are split, as are their
    parts, across the direction in which they differ most, each time followed by a few rough steps of
    expectation-maximisation, until that makes the others no more likely. Where values of categories, or binary features
    alone, take part in the covariance, one component with it and as many without it as are useful are compared, and the
    one that predicts best is taken.

    What was chosen then learns from all rows: from clusters if it has a covariance or is large, else from where it is.
    """
    rows = Rows.of(rows, model.layout.n_columns)
    sample = rows.sample(random_state)
    if n_components != "auto" and n_components > sample.n_rows:
        raise ValueError(f"n_components must be at most the number of rows, {sample.n_rows}, got {n_components}")
    numbers, n_joint = _numbers(model, _MOST_OF_VALUES[sample.has_gaps])
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
    """

    component: Component
    classes: Vector
    smoothing: float
    shrinkage: float = 0.0

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
        """Return the prior of one component of some rows, or of several without covariance."""
        normal = None
        if self.n_joint:
            normal = NormalPrior(self.shrinkage * n_rows, np.eye(self.n_joint), self.classes)
        return MixturePrior.of(self.component, n_components, self.smoothing, of_all_rows=of_all_rows, normal=normal)

    def from_clusters(
        self, filled: FilledRows, n_components: int, random_state: int
    ) -> tuple[MixturePrior, Expectation]:
        """Return the prior of several components, and the clusters of rows with which they begin."""
        first, normal = filled.sums(filled.clustered(n_components, random_state)), None
        if self.n_joint:
            normal = NormalPrior.of_clusters(_PRIOR_ROWS * self.n_joint, first, self.classes, self.shrinkage)
        return MixturePrior.of(self.component, n_components, self.smoothing, normal=normal), first


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
        self._splits: dict[int, _Split] = {}
        self._growths: dict[tuple[int, int], _Growth] = {}

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
        one, *others = [self._one(family) for family in families]
        if n_components != "auto":
            joint = bool(others) and _is_better(self._gains(others[0], one))
            return self._learned((others[0] if joint else one).family, n_components)
        if not others:
            return self._finished(self._grown(one))
        (other,) = others
        if other.family.has_few_values and (grown := self._grown(one)).n_components > 1:
            # On tables of pixels, many components without covariance predict better than one with it.
            return self._finished(other if self._gains(other, grown, even=True).mean() > 0 else grown)
        return self._finished(self._grown(other if _is_better(self._gains(other, one)) else one))

    def _one(self, family: _Family) -> _Candidate:
        """Return one component of a family, with the shrinkage that is best on the first split."""
        return _Candidate.of(self._growth(family, 0).with_shrinkage())

    def _grown(self, one: _Candidate) -> _Candidate:
        """Return as many components as are useful."""
        if one.family.has_few_values:
            return one
        if not one.family.n_joint:
            while (growth := one.growth.grown()) is not None:
                one = _Candidate.of(growth)
            return one
        best, n_worse = one, 0
        for size in self._sizes(one.family.n_joint):
            several = _Candidate(one.family, size, one.growth)
            if self._gains(several, best).mean() > 0:
                best, n_worse = several, 0
            else:
                n_worse += 1
            if n_worse == _MOST_WORSE:
                break
        return best if best is one or _is_better(self._gains(best, one)) else one

    def _sizes(self, n_joint: int) -> list[int]:
        """Return the sizes of mixtures with a covariance that are tried."""
        most = (_MOST_CUBES if self.complete else _MOST_CUBES_OF_GAPS) // n_joint**3
        n_rows = len(self._split(0).others)
        return sorted({min(size, most) for size in _SIZES if size * _FEWEST_ROWS <= n_rows and most > 1})

    def _gains(self, other: _Candidate, simple: _Candidate, *, even: bool = False) -> Vector:
        """Return by how much a model predicts better than another for each of some rows that neither has seen.

        While few rows leave it open, both are learned again without others, up to five times. What is open is whether
        the first one is better than the simple one, or, with `even`, which one is better.
        """
        gains = np.empty(0)
        for fold in range(round(1 / _HELD_OUT)):
            losses = self._split(fold).losses([self._predictions(one, fold) for one in (simple, other)])
            gains = np.concatenate([gains, losses[:, 0] - losses[:, 1]])
            mean, error = gains.mean(), _error(gains)
            enough, bad = (_MOST_COMPARED, _CLEAR) if even else (_ENOUGH, 1.0)
            if len(gains) >= enough or mean > _CLEAR * error or mean < -bad * error:
                break
        return gains

    def _predictions(self, candidate: _Candidate, fold: int) -> _Predictions:
        """Return what a candidate predicts for the rows that are held out of a split."""
        if fold not in candidate.predictions:
            learned = candidate.learned if fold == 0 else None
            tilts = self._tilts(candidate, fold) if learned is None else learned
            candidate.predictions[fold] = self._split(fold).predictions(tilts.model())
        return candidate.predictions[fold]

    def _tilts(self, candidate: _Candidate, fold: int) -> Tilts:
        """Return the parameters of a candidate that is learned without the rows that are held out of a split."""
        growth = self._growth(candidate.family, fold)
        if candidate.n_components == 1:
            return growth.tilts
        prior, first = candidate.family.from_clusters(growth.rows.filled, candidate.n_components, self.random_state)
        tilts, *_ = improved(prior, growth.rows.parts, prior.maximise(first, None, _ROUGH, 1), _STEPS)
        return tilts

    def _growth(self, family: _Family, fold: int) -> _Growth:
        """Return one component of a family, learned without the rows that are held out of a split."""
        key = fold, family.n_joint
        if key not in self._growths:
            self._growths[key] = _Growth.of(family, self._split(fold))
        return self._growths[key]

    def _split(self, fold: int) -> _Split:
        """Return some rows, others in each fold, and the rest."""
        if fold not in self._splits:
            self._splits[fold] = self._split_of(fold)
        return self._splits[fold]

    def _split_of(self, fold: int) -> _Split:
        start, n_held_out = fold * self.n_held_out, self.n_held_out
        rows = self.few[: n_held_out + _MOST_ROWS]
        held_out = rows[start : start + n_held_out]
        others = np.concatenate([rows[:start], rows[start + n_held_out :]])
        return _Split.of(others, held_out, self.model.layout, np.random.default_rng([self.random_state, fold]))

    def _learned(self, family: _Family, n_components: int) -> ConformantModel:
        """Return a mixture of all rows, from clusters."""
        few = self.few[:CLUSTERED_ROWS]
        if n_components > 1:
            filled = FilledRows.of(family.component, few)
            prior, first = family.from_clusters(filled, n_components, self.random_state)
            return learn_components(prior, self.rows, first)
        if self.complete and not family.n_joint:
            return ConformantModel.of(self.model)
        prior = family.prior(1, self.n_rows, of_all_rows=True)
        if self.complete:
            return prior.maximise(totals(family.component, self.rows)).model()
        return learn_components(prior, self.rows, clusters(family.component, few, 1, self.random_state))

    def _finished(self, chosen: _Candidate) -> ConformantModel:
        """Return the mixture that was chosen, learned from all rows."""
        family, n_components, tilts = chosen.family, chosen.n_components, chosen.growth.tilts
        if n_components == 1:
            return self._learned(family, 1)
        if family.n_joint or n_components > _MOST_SPLIT:
            filled = FilledRows.of(family.component, self.few[:CLUSTERED_ROWS])
            prior, first = family.from_clusters(filled, n_components, self.random_state)
            parts = PreparedRows(prior.model, self.rows, n_components)
            tilts = prior.maximise(first, None, _ROUGH, 1)
        else:
            prior = family.prior(n_components, self.n_rows, of_all_rows=True)
            parts = PreparedRows(prior.model, self.rows, n_components)
            tilts = prior.maximise(expect(tilts, parts), tilts, _ROUGH, 1)
        tolerance = _TOLERANCE if family.n_joint else _LAST_TOLERANCE
        tilts, objectives, expected = improved(prior, parts, tilts, _LAST_STEPS, tolerance)
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


class _Predictions(NamedTuple):
    """Class probabilities of rows that are held out, and their logarithms where more is missing."""

    few: Matrix
    fewer: Matrix


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

    def predictions(self, model: ConformantModel) -> _Predictions:
        """Return what a model predicts for the rows that are held out."""
        return _Predictions(model.predict_proba(self.few), model.predict_log_proba(self.fewer))

    @staticmethod
    def losses(predictions: Sequence[_Predictions]) -> Matrix:
        """Return how badly models predict where more is missing, shape (n_compared, n_models).

        To be predicted, without labels, are the classifier's probabilities; where values are missing already, the mean
        of what the models expect.
        """
        wanted = np.mean([one.few for one in predictions], axis=0)
        losses = [-(wanted * one.fewer).sum(axis=1) for one in predictions]
        return np.asarray(np.reshape(losses, (len(losses), -1, _MASKS)).mean(axis=2).T)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A mixture that may be chosen.

    Attributes
    ----------
    family : _Family
    n_components : int
    growth : _Growth
        On the first split: one component, or all of them where they were found by splitting.
    learned : Tilts, optional
        Its parameters there, if they are known.
    predictions : dict from fold to _Predictions
        Those that were needed so far.
    """

    family: _Family
    n_components: int
    growth: _Growth
    learned: Tilts | None = None
    predictions: dict[int, _Predictions] = field(default_factory=dict)

    @classmethod
    def of(cls, growth: _Growth) -> _Candidate:
        """Return the mixture that has grown."""
        return cls(growth.family, growth.tilts.n_components, growth, growth.tilts)


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
        return cls(family, split, rows, first, prior.maximise(first, None, _ROUGH, 2))

    def with_shrinkage(self) -> _Growth:
        """Return one component with the best shrinkage: the usual one, unless another predicts better."""
        if not self.family.n_joint:
            return self
        prior = self.family.prior(1, len(self.split.others), of_all_rows=False)
        assert prior.normal is not None
        rows = np.array(_SHRINKAGES) * len(self.split.others)
        several = replace(prior, normal=replace(prior.normal, rows=rows))
        tilts = several.maximise(self.first.of(np.zeros(len(rows), dtype=np.intp)), None, _ROUGH, 2)
        models = [ConformantModel.of(part) for part in tilts.model().components]
        losses = self.split.losses([self.split.predictions(model) for model in models])
        gains = losses[:, [_SHRINKAGES.index(_USUAL_SHRINKAGE)]] - losses
        best = int(gains.mean(axis=0).argmax())
        if not _is_better(gains[:, best]):
            return self
        family = replace(self.family, shrinkage=_SHRINKAGES[best])
        prior = family.prior(1, len(self.split.others), of_all_rows=False)
        return replace(self, family=family, tilts=prior.maximise(self.first, None, _ROUGH, 2))

    @cached_property
    def scores(self) -> Vector:
        """The log-likelihood of the held-out rows."""
        return np.concatenate([logsumexp(self.tilts.scores(part).joint) for part in self.rows.tests])

    def grown(self) -> _Growth | None:
        """Return a mixture in which each component is split, if that makes the held-out rows more likely."""
        n_components = 2 * self.tilts.n_components
        if n_components > _MOST_COMPONENTS or n_components * _FEWEST_ROWS > len(self.split.others):
            return None
        doubled = self._doubled()
        return doubled if _is_better(doubled.scores - self.scores) else None

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
                direction = centred.T @ (centred @ direction)  # type: ignore[assignment, unused-ignore]
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
