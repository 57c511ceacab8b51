"""What is learned of the selected features of each kind, and the settings that say how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_one_of
from trimbench.selection_bias.binary import ClassCounts, marginals
from trimbench.selection_bias.factors import Simulation, Ties, check_ties, log_adjustment
from trimbench.selection_bias.features import Binariser, checked_cuts
from trimbench.selection_bias.model import DiscreteFeatures, Features
from trimbench.selection_bias.prior import Prior
from trimbench.selection_bias.selection import Selection, distinct_columns, select, select_by_rank

if TYPE_CHECKING:
    from trimbench.selection_bias.categorical import Categories
    from trimbench.selection_bias.gaussian import GaussianMoments
    from trimbench.selection_bias.mixture import MixtureSampler

Kind = Literal["binary", "categorical", "gaussian"]
KINDS: tuple[str, ...] = (*get_args(Kind), "mixture")
# The settings that each kind of feature takes; further ones must be left at their defaults.
_TAKEN = {
    "binary": ("ties", "simulation", "selection_rows", "unlabelled", "cuts"),
    "categorical": ("ties", "simulation", "n_categories"),
    "gaussian": ("selection_rows",),
    "mixture": ("ties", "unlabelled", "sampler"),
}
# The fields of the prior that each kind has.
_OF_PRIOR = {
    "binary": ("shape", "rate", "theta0", "f0", "f1", "n_alpha", "n_theta", "n_theta_adjust", "rule"),
    "categorical": ("shape", "rate", "f0", "f1", "n_alpha"),
    "gaussian": ("shape", "rate", "f0", "f1", "n_alpha"),
    "mixture": ("shape", "rate", "f0", "f1", "n_alpha", "n_theta_adjust"),
}


@dataclass(frozen=True, eq=False)
class How:
    """How to fit, as `fit_selection_corrected` says."""

    correct: bool = True
    ties: Ties = "exact"
    features: Kind | Literal["mixture"] = "binary"
    prior: Prior = field(default_factory=Prior)
    selection_rows: ArrayLike | None = None
    unlabelled: ArrayLike | None = None
    cuts: ArrayLike | None = None
    n_categories: ArrayLike | None = None
    simulation: Simulation = field(default_factory=Simulation)
    sampler: MixtureSampler | None = None

    def __post_init__(self) -> None:
        check_one_of("features", self.features, KINDS)
        check_ties(self.ties)
        kinds: dict[str, type] = {"prior": Prior, "simulation": Simulation}
        if self.sampler is not None:  # otherwise there is no need to load it
            from trimbench.selection_bias.mixture import MixtureSampler

            kinds["sampler"] = MixtureSampler
        for name, kind in kinds.items():
            if not isinstance(value := getattr(self, name), kind):
                raise ValueError(f"{name} must be a {kind.__module__}.{kind.__name__}, got {str(value)[:80]!r}")
        for name in ("ties", "selection_rows", "unlabelled", "cuts", "n_categories", "simulation", "sampler"):
            _check_left(name, getattr(self, name), _DEFAULTS.get(name), self.features, _TAKEN)
        for setting in fields(Prior):
            _check_left(setting.name, getattr(self.prior, setting.name), setting.default, self.features, _OF_PRIOR)


_DEFAULTS: dict[str, Any] = {"ties": "exact", "simulation": Simulation()}


def _check_left(name: str, value: Any, default: Any, kind: str, taken: dict[str, tuple[str, ...]]) -> None:
    """Raise ValueError if a setting was given that this kind of features does not take."""
    is_default = value is default or (isinstance(value, str | float | int | Simulation) and value == default)
    if name not in taken[kind] and not is_default:
        takers = ", ".join(repr(other) for other in KINDS if name in taken[other])
        raise ValueError(
            f"{name} must be left at {default!r} where features is {kind!r}, got {value!r}; it is for {takers} only"
        )


class Task(NamedTuple):
    """Checked training cases, the rows to select features on, and how to fit."""

    table: NDArray[Any]
    response: NDArray[np.int64]
    n_classes: int
    rows: NDArray[np.int64]
    k: int
    allow_fewer: bool
    how: How

    @property
    def prior(self) -> Prior:
        """The prior of `how`."""
        return self.how.prior


class Learned(NamedTuple):
    """What a model is made of: the selection, log A_alpha with its error, and what the selected features say."""

    selection: Selection
    log_factor: Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]]
    log_likelihood: NDArray[np.float64]
    features: Features


def learn_binary(task: Task) -> Learned:
    """Cut the features at their medians where they need a cut, and learn from their ones."""
    how = task.how
    cuts = checked_cuts(how.cuts, task.table.shape[1])
    more: Any = how.unlabelled  # which `fitted` has checked
    binariser = Binariser.fit(task.table, more, cuts)
    counts = ClassCounts.of(task.table, task.response, task.n_classes, binariser, task.rows)
    every = counts
    if len(task.rows) < len(task.response):
        rows = np.arange(len(task.response))
        every = ClassCounts.of(task.table, task.response, task.n_classes, binariser, rows)
    return from_counts(binariser, counts, every, task.k, how, task.allow_fewer)


def from_counts(
    binariser: Binariser, selected_on: ClassCounts, counts: ClassCounts, k: int, how: How, allow_fewer: bool
) -> Learned:
    """Learn from the ones of binary features, selected on those of some cases."""
    prior = how.prior
    selection = select(selected_on.ones, selected_on.sizes, k, allow_fewer=allow_fewer)
    ones, sizes = counts.ones[:, selection.features], counts.sizes[:, selection.features]
    first, places = distinct_columns(np.concatenate([ones, sizes]))
    ones, sizes = ones[:, first], sizes[:, first]
    found = marginals(prior, ones, sizes)
    n_values = 2 * len(first)
    features = DiscreteFeatures(
        binariser,
        selection.features,
        prior.alphas(),
        np.stack([sizes - ones, ones], axis=2).reshape(-1, n_values),
        np.repeat(sizes, 2, axis=1),
        np.stack([found.theta_rest, found.theta_mean], axis=2).reshape(-1, n_values),
        2 * places,
        np.full(len(places), 2),
    )
    factor = partial(log_adjustment, prior, selection, how.ties, how.simulation)
    return Learned(selection, factor, found.log_likelihood @ np.bincount(places), features)


def learn_categorical(task: Task) -> Learned:
    """Learn from how often each category occurs in each class."""
    from trimbench.selection_bias import categorical

    coding = categorical.Categories.of(task.table, task.how.n_categories)
    counts = categorical.category_counts(coding.codes(task.table), task.response, coding.numbers)
    return from_categories(coding, counts, task.k, task.how, task.allow_fewer)


def from_categories(coding: Categories, counts: NDArray[np.int64], k: int, how: How, allow_fewer: bool) -> Learned:
    """Learn from counts of categories, shape (n_categories, n_classes, n_features)."""
    from trimbench.selection_bias import categorical

    alphas = how.prior.alphas()
    # By Cramer's V.
    patterns = np.vstack([counts.sum(axis=1), coding.numbers])
    selection = select(counts[1], counts.sum(axis=0), k, patterns, allow_fewer=allow_fewer)
    factor = partial(categorical.log_category_adjustment, alphas, selection, how.ties, how.simulation)
    selected = selection.features
    learned = categorical.learn_categorical(alphas, coding, selected, counts[:, :, selected])
    return Learned(selection, factor, *learned)


def learn_gaussian(task: Task) -> Learned:
    """Learn from means and variances of the classes."""
    from trimbench.selection_bias import gaussian

    check_enough(len(task.rows), task.n_classes)
    n_cases = len(task.response)
    moments = gaussian.GaussianMoments.of(task.table, task.response, task.n_classes, task.rows)
    every = moments
    if len(task.rows) < n_cases:
        every = gaussian.GaussianMoments.of(task.table, task.response, task.n_classes, np.arange(n_cases))
    return from_moments(moments, every, task.table.shape[1], task.k, task.how, task.allow_fewer)


def check_enough(n_cases: int, n_classes: int) -> None:
    """Raise ValueError unless a variance within the classes can be told from so many cases."""
    if n_cases <= n_classes:
        raise ValueError(
            f"y must have more cases than its {n_classes} classes for a variance within, got {n_cases}; add cases"
        )


def from_moments(
    selected_on: GaussianMoments, moments: GaussianMoments, n_features: int, k: int, how: How, allow_fewer: bool
) -> Learned:
    """Learn from moments of real features, selected on those of some cases."""
    from trimbench.selection_bias import gaussian

    alphas = how.prior.alphas()
    # By the F statistic, (n - C) eta^2 / ((C - 1) (1 - eta^2)). What says nothing about alpha is in no group.
    ratios = selected_on.squared_ratios
    patterns = np.vstack([np.sort(selected_on.sizes, axis=0), np.full(len(ratios), 2)])
    selection = select_by_rank(ratios, ratios, patterns, k, selected_on.informative, allow_fewer=allow_fewer)
    selected = selection.features
    varying = np.flatnonzero(moments.scales[selected] > 0.0)
    kept = moments.of_features(selected[varying])
    features = gaussian.GaussianFeatures(alphas, n_features, selected[varying], kept)
    factor = partial(gaussian.log_gaussian_adjustment, alphas, selection)
    return Learned(selection, factor, gaussian.gaussian_log_likelihood(alphas, kept).sum(axis=0), features)
