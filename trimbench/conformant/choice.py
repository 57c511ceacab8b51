"""What a conformant model needs: how many components, and whether its real-valued features have a covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import check_one_of, is_whole
from trimbench._typing import Matrix, Vector
from trimbench.conformant.covariance import Normals
from trimbench.conformant.distribution import Component
from trimbench.conformant.evidence import logsumexp
from trimbench.conformant.layout import has_gaps
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
from trimbench.conformant.problem import joint_problem
from trimbench.conformant.rows import FeatureStatistics, Rows

Covariance = Literal["auto", "full", "diagonal"]
Components = int | Literal["auto"]

_MOST_COMPONENTS = 150
_HELD_OUT, _MOST_HELD_OUT, _MOST_ROWS = 0.2, 2500, 10_000
# Rows of each component, at least; with a covariance it needs as many more as there are features.
_FEWEST_ROWS = 10
# More features have no covariance unless asked for: each row with gaps takes the cube of their number.
_MOST_JOINT = 200
# How many pseudo-observations without correlation there are for each row, and how many with the covariance of all rows
# for each feature of a component of several.
_SHRINKAGES, _USUAL_SHRINKAGE = (0.003, 0.01, 0.03, 0.1, 0.3), 0.03
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
        Whether the real-valued features of a component have a covariance.

    Notes
    -----
    What is ``"auto"`` is chosen on some of the rows and tested on others. One component with or without covariance,
    whichever predicts the classifier's probabilities for the others better where values are hidden, is split, as are
    its parts, across the directions in which they differ most, each time followed by a few rough steps of
    expectation-maximisation, until that makes the others no more likely. "Better" is by more than one standard error.
    The mixture that was chosen then learns from all rows, beginning where it is, or with clusters if it is large.
    """
    rows = Rows.of(rows, model.layout.n_columns)
    sample = rows.sample(random_state)
    if n_components != "auto" and n_components > sample.n_rows:
        raise ValueError(f"n_components must be at most the number of rows, {sample.n_rows}, got {n_components}")
    n_joint = len(model.layout.binary) + len(model.coding.real) if model.coding.real else 0
    if n_joint < 2 or (covariance == "auto" and n_joint > _MOST_JOINT):
        covariance = "diagonal"
    if covariance == "diagonal" and n_components != "auto":
        first = clusters(model, sample.rows, n_components, random_state)
        return learn_components(MixturePrior.of(model, n_components, smoothing), rows, first)
    search = _Search(model, rows, smoothing, random_state)
    if covariance == "auto":
        # Weights may be so large that a covariance is lost to rounding; what was not asked for must not fail.
        try:
            found = search.run(n_components, covariance)
        except np.linalg.LinAlgError:
            return learn_mixture(model, rows, n_components, smoothing, random_state)
        usable = found.normals is None or found.residual <= _LARGEST_RESIDUAL
        return found if usable else learn_mixture(model, rows, n_components, smoothing, random_state)
    return search.run(n_components, covariance)


def with_covariance(model: Component, rows: Rows, smoothing: float) -> Component:
    """Return a component whose real-valued and binary features are jointly normal, so far without correlation."""
    statistics = FeatureStatistics.of(rows, model.layout, missing=True)
    coding = joint_problem(model.weights, model.biases, model.layout, statistics, smoothing)
    assert coding.joint_weights is not None
    n_joint = len(coding.joint)
    normal = Normals(coding.joint_weights, np.zeros((1, n_joint)), np.eye(n_joint)[None])
    solution = replace(model.solution, parameters=coding.problem.start())
    return replace(model, coding=coding, solution=solution, normal=normal)


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

    def prior(self, n_components: int, n_rows: int, *, of_all_rows: bool) -> MixturePrior:
        """Return the prior of some components of some rows."""
        normal = None
        if self.n_joint:
            normal = NormalPrior(self.shrinkage * n_rows, np.eye(self.n_joint), self.classes)
            if n_components > 1 and self.second is not None:
                normal = NormalPrior(_PRIOR_ROWS * self.n_joint, self.second, self.classes)
        return MixturePrior.of(self.component, n_components, self.smoothing, of_all_rows=of_all_rows, normal=normal)


class _Search:
    def __init__(self, model: Component, rows: Rows, smoothing: float, random_state: int) -> None:
        self.model, self.rows, self.smoothing, self.random_state = model, rows, smoothing, random_state
        sample = rows.sample(random_state)
        self.few, self.n_rows, self.complete = sample.rows, sample.n_rows, not sample.has_gaps
        n_held_out = min(int(_HELD_OUT * self.n_rows), _MOST_HELD_OUT)
        self.enough = n_held_out >= _FEWEST_ROWS
        self.held_out = self.few[:n_held_out]
        self.others = self.few[n_held_out : n_held_out + _MOST_ROWS]

    def run(self, n_components: Components, covariance: Covariance) -> ConformantModel:
        """Return the chosen mixture, learned from all rows."""
        families, classes = [], np.exp(self.model.log_prior)
        if covariance != "full":
            families.append(_Family(self.model, classes, self.smoothing))
        if covariance != "diagonal":
            component = with_covariance(self.model, self.rows, self.smoothing)
            families.append(_Family(component, classes, self.smoothing, _USUAL_SHRINKAGE))
        if not self.enough:
            return self._learned(families[0], 1 if n_components == "auto" else n_components)
        growths = [_Growth(family, self.others, self.held_out) for family in families]
        growth = growths[0] if len(growths) == 1 else self._better(growths[0], growths[1])
        if n_components != "auto":
            return self._learned(growth.family, n_components)
        while growth.grow():
            pass
        return self._polished(growth)

    def _better(self, simple: _Growth, other: _Growth) -> _Growth:
        """Return which of two models predicts better where more is missing, the first one if both are as good.

        To be predicted, without labels, are the classifier's probabilities for held-out rows, of which more and more is
        hidden; where values are missing already, the mean of what both models expect. While few rows leave it open,
        both are learned again without others, up to five times.
        """
        rng = np.random.default_rng(self.random_state)
        gains = self._gains(simple, other, self.held_out, rng)
        for fold in range(1, round(1 / _HELD_OUT)):
            if len(gains) >= _MOST_COMPARED or abs(gains.mean()) > _CLEAR * _error(gains):
                break
            held_out, others = self._fold(fold)
            again = [_Growth(one.family, others, held_out) for one in (simple, other)]
            gains = np.concatenate([gains, self._gains(again[0], again[1], held_out, rng)])
        return other if gains.mean() > _error(gains) else simple

    def _fold(self, fold: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return some rows, others in each fold, and the rest."""
        start, n_held_out = fold * len(self.held_out), len(self.held_out)
        rows = self.few[: n_held_out + _MOST_ROWS]
        held_out = rows[start : start + n_held_out]
        return held_out, np.concatenate([rows[:start], rows[start + n_held_out :]])

    def _gains(self, simple: _Growth, other: _Growth, rows: NDArray[Any], rng: np.random.Generator) -> Vector:
        """Return by how much the second of two models predicts better for each of some rows that neither has seen."""
        rows = np.repeat(rows[:_MOST_COMPARED], _MASKS, axis=0).astype(np.float64)
        layout = self.model.layout
        hidden = rng.random((len(rows), layout.n_features)) < rng.uniform(0.1, 0.9, (len(rows), 1))
        fewer = np.where(hidden[:, layout.feature_of_column], np.nan, rows)
        models = [growth.tilts.model() for growth in (simple, other)]
        wanted = np.mean([model.predict_proba(rows) for model in models], axis=0)
        losses = [-(wanted * model.predict_log_proba(fewer)).sum(axis=1) for model in models]
        return np.asarray((losses[0] - losses[1]).reshape(-1, _MASKS).mean(axis=1))

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


class _Growth:
    """A mixture of growing size, learned from some rows and tested on others."""

    def __init__(self, family: _Family, others: NDArray[Any], held_out: NDArray[Any]) -> None:
        self.family, self.others = family, others
        component = family.component
        self.parts = PreparedRows(component, others, _WIDTH)
        self.tests = PreparedRows(component, held_out, _WIDTH)
        self.filled = FilledRows.of(component, others)
        self.n_rows, self.gaps = len(others), has_gaps(others)
        first = self.filled.sums(np.ones((self.n_rows, 1)))
        prior = self.family.prior(1, self.n_rows, of_all_rows=False)
        if self.gaps:
            tilts = prior.maximise(first, None, _ROUGH, 1)
            _, _, first = improved(prior, self.parts, tilts, _STEPS_OF_GAPS)
        if family.n_joint:
            self.family = self._shrunk(first)
            prior = self.family.prior(1, self.n_rows, of_all_rows=False)
        self.tilts = prior.maximise(first, None, _ROUGH, 2)
        self.scores = self._scores(self.tilts)

    def _shrunk(self, first: Expectation) -> _Family:
        """Return the family with the shrinkage that makes held-out rows most likely."""
        prior = self.family.prior(1, self.n_rows, of_all_rows=False)
        assert prior.normal is not None
        n_shares = len(_SHRINKAGES)
        several = replace(prior, normal=replace(prior.normal, rows=np.array(_SHRINKAGES) * self.n_rows))
        tilts = several.maximise(first.of(np.zeros(n_shares, dtype=np.intp)), None, _ROUGH, 2)
        tilts = replace(tilts, log_weights=np.zeros(n_shares))
        likely = np.concatenate([tilts.scores(part).joint for part in self.tests]).mean(axis=0)
        shrinkage = _SHRINKAGES[int(likely.argmax())]
        return replace(self.family, shrinkage=shrinkage, second=_shrunk(first, shrinkage))

    def _scores(self, tilts: Tilts) -> Vector:
        """Return the log-likelihood of the held-out rows."""
        return np.concatenate([logsumexp(tilts.scores(part).joint) for part in self.tests])

    def grow(self) -> bool:
        """Split the components, and tell whether that made the held-out rows more likely."""
        n_components = 2 * self.tilts.n_components
        fewest = _FEWEST_ROWS + self.family.n_joint  # a covariance takes as many as it has features
        if n_components > _MOST_COMPONENTS or n_components * fewest > self.n_rows:
            return False
        prior = self.family.prior(n_components, self.n_rows, of_all_rows=False)
        tilts = prior.maximise(self.filled.sums(self._halves()), None, _ROUGH, 1)
        tilts, _, _ = improved(prior, self.parts, tilts, _STEPS)
        scores = self._scores(tilts)
        gain = scores - self.scores
        if not gain.mean() > _error(gain):
            return False
        self.tilts, self.scores = tilts, scores
        return True

    def _halves(self) -> Matrix:
        """Return the members of each component, split across the direction in which they differ most."""
        k = self.tilts.n_components
        owners = np.concatenate([self.tilts.scores(part).joint.argmax(axis=1) for part in self.parts])
        members = np.zeros((self.n_rows, 2 * k))
        for z in range(k):
            own = np.flatnonzero(owners == z)
            centred = self.filled.places[own] - self.filled.places[own].mean(axis=0) if len(own) else np.zeros((0, 1))
            direction = np.random.default_rng(z).standard_normal(centred.shape[1])
            for _ in range(_POWER_STEPS):
                direction = centred.T @ (centred @ direction)
                direction = direction / (np.linalg.norm(direction) or 1.0)
            upper = centred @ direction > 0
            members[own[upper], 2 * z] = members[own[~upper], 2 * z + 1] = 1.0
        return members
