"""Fitting the naive Bayes classifier with correction for feature selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.networks.values import names_of
from trimbench.selection_bias.binary import ClassCounts, Marginals, class_marginals, marginals
from trimbench.selection_bias.factors import (
    Factor,
    Simulation,
    Ties,
    WeaknessSums,
    check_ties,
    log_adjustment,
    log_class_adjustment,
)
from trimbench.selection_bias.features import (
    Binariser,
    checked_classes,
    checked_cuts,
    checked_more_cases,
    checked_rows,
    checked_table,
    known_cuts,
)
from trimbench.selection_bias.model import SelectionCorrectedModel
from trimbench.selection_bias.prior import Prior, Rule, check_whole
from trimbench.selection_bias.selection import (
    DependenceSelection,
    Selection,
    checked_k,
    select_dependent,
    select_features,
)

__all__ = ["SelectionCorrectedModel", "fit_selection_corrected"]

# With more cases, tables of all counts take longer than loading the compiled loops that do without them.
_MOST_TABLED = 2000


def fit_selection_corrected(
    X: ArrayLike,
    y: ArrayLike,
    k: int,
    correct: bool = True,
    ties: Ties = "exact",
    n_alpha: int = 100,
    n_theta: int = 20,
    n_theta_adjust: int = 100,
    shape: float = 0.5,
    rate: float = 5.0,
    theta0: float = 0.0,
    *,
    f0: float = 1.0,
    f1: float = 1.0,
    rule: Rule = "gauss",
    selection_rows: ArrayLike | None = None,
    unlabelled: ArrayLike | None = None,
    cuts: ArrayLike | None = None,
    factor: Factor = "auto",
    n_simulations: int = 100_000,
    seed: int = 0,
) -> SelectionCorrectedModel:
    """Select the k features that correlate most with the response, and fit a classifier that accounts for it.

    Parameters
    ----------
    X : array of shape (n_cases, n_features)
        Zeros and ones, or real values: a feature with two values is cut between them, any other at its median. Values
        may be missing (NaN, masked, None or the missing value of pandas), see Notes.
    y : array of shape (n_cases,)
        Classes 0, 1, ..., at least one case of each. With more than two, the correlation is replaced by the correlation
        ratio eta, whose square is the share of a feature's variance that lies between the classes: it orders features
        as the F statistic and as Cramer's V do.
    k : int
        Number of features to select, from 1 to n_features; n_features keeps all and corrects nothing.
    correct : bool
        Whether predictions condition on the weak correlations of the discarded features.
    ties : {"exact", "less", "less_equal"}
        What is known about a discarded feature: its correlation is below gamma, or equals it if it does ("exact"), is
        below it ("less", which the R package predbayescor assumes), or is not above it ("less_equal").
    n_alpha : int
        Number of values of alpha.
    n_theta, n_theta_adjust : int
        Grids over theta, see `Prior`; n_theta is used by the rule "simpson" only.
    shape, rate : float
        alpha ~ Inverse-Gamma(shape, rate).
    theta0 : float
        theta_j ~ Uniform(theta0, 1 - theta0).
    f0, f1 : float
        P(y = 1) ~ Beta(f1, f0); they must be equal if there are more classes.
    rule : {"gauss", "simpson"}
        Integration over theta, see `Prior`.
    selection_rows : array of int or bool, optional
        Rows on which features are selected; default: all. The classifier learns from all rows.
    unlabelled : array of shape (n_more_cases, n_features), optional
        Cases without response whose values count towards the medians, for example the test cases, as in the slides.
    cuts : array of shape (n_features,), optional
        Where to cut each feature, NaN for its median. A feature that looks binary in some rows may be real in others:
        `trimbench.selection_bias.features.known_cuts` on all data finds the binary features.
    factor : {"auto", "enumerate", "simulate"}
        With more than two classes: whether the probability of weakness is a sum over all counts that a feature can have
        (three classes: thousands of cases; five classes: about 200) or simulated. "auto" enumerates where that takes
        seconds.
    n_simulations : int
        Points for each alpha where it is simulated; `log_adjustment_error` has the standard error.
    seed : int
        Of the simulation.

    Returns
    -------
    SelectionCorrectedModel

    Raises
    ------
    ValueError
        When an argument is out of range, or a selected feature has no correlation with y at all.

    Notes
    -----
    Features with missing values are ranked, and enter the likelihood, by the cases in which they were observed. The
    condition on a discarded feature is that its correlation over its own observed cases is below gamma, so the factor
    is the product over the numbers of observed cases of the discarded features. This is exact if whether a value is
    missing depends on nothing but the class, except that (a) a cut at a median counts as known, as it does in complete
    data, and (b) where all different numbers of cases would take minutes, features of about the same ones share a
    factor.

    Examples
    --------
    >>> import trimbench as tb
    >>> X = [[1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    >>> model = tb.fit_selection_corrected(X, [1, 1, 1, 0, 0, 0], k=1)
    >>> model.selected.tolist(), round(model.gamma, 3)
    ([0], 0.707)
    >>> model.expected_error(X) > model.uncorrected().expected_error(X)
    True

    References
    ----------
    Li, Zhang and Neal (2008).
    """
    table = checked_table("X", X, allow_missing=True)
    response, n_classes = checked_classes(y, len(table))
    check_ties(ties)
    prior = Prior(shape, rate, theta0, f0, f1, n_alpha, n_theta, n_theta_adjust, rule)
    prior.pseudo_counts(n_classes)
    simulation = Simulation(factor, n_simulations, seed)
    n_selected = checked_k(k, table.shape[1])
    rows = checked_rows("selection_rows", selection_rows, response)
    more = (
        None if unlabelled is None else checked_more_cases(unlabelled, table.shape[1], names_of(X), allow_missing=True)
    )
    binariser = Binariser.fit(table, more, checked_cuts(cuts, table.shape[1]))
    counts = ClassCounts.of(table, response, n_classes, binariser, rows)
    if n_classes == 2 and counts.complete and len(response) <= _MOST_TABLED:
        (n0, n1), (ones0, ones1) = counts.sizes[:, 0].tolist(), counts.ones
        selection: Selection | DependenceSelection = select_features(ones0, ones1, n0, n1, n_selected)
    else:
        selection = select_dependent(counts.ones, counts.sizes, n_selected)
    if len(rows) < len(response):
        counts = ClassCounts.of(table, response, n_classes, binariser, np.arange(len(response)))
    counts = counts.of_features(selection.features)
    features, pair_of_feature, log_factor, error = _integrals(prior, selection, counts, ties, simulation, correct)
    return SelectionCorrectedModel(
        prior=prior,
        selection=selection,
        binariser=binariser,
        class_sizes=np.bincount(response),
        counts=counts,
        alpha_grid=prior.alphas(),
        log_adjustment=log_factor,
        log_adjustment_error=error,
        log_likelihood=features.log_likelihood @ np.bincount(pair_of_feature),
        features=features,
        pair_of_feature=pair_of_feature,
        column_names=names_of(X),
    )


def _integrals(
    prior: Prior,
    selection: Selection | DependenceSelection,
    counts: ClassCounts,
    ties: Ties,
    simulation: Simulation,
    correct: bool,
) -> tuple[Marginals, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the marginals of the distinct counts, which feature has which, and the factor with its error."""
    none = np.zeros(prior.n_alpha)
    if isinstance(selection, DependenceSelection):
        distinct, places = np.unique(np.concatenate([counts.ones, counts.sizes]), axis=1, return_inverse=True)
        groups = selection.groups if correct else ()
        factor = log_class_adjustment(prior, groups, selection.cut, ties, simulation)
        return class_marginals(prior, *np.split(distinct, 2)), places.ravel(), *factor
    (n0, n1), (kept0, kept1) = counts.sizes[:, 0].tolist(), counts.ones
    codes, pair_of_feature = np.unique(kept0 * (n1 + 1) + kept1, return_inverse=True)
    pairs = np.stack(np.divmod(codes, n1 + 1), axis=1)
    if correct and selection.n_discarded and (selection.n0, selection.n1) == (n0, n1):
        # Factor and marginals are sums over the same tables.
        sums = WeaknessSums(prior, n0, n1, selection.cut_ones)
        features = marginals(prior, pairs, n0, n1, sums.add)
        log_factor = log_adjustment(prior, selection, ties, sums.result())
    else:
        features = marginals(prior, pairs, n0, n1)
        log_factor = log_adjustment(prior, selection, ties) if correct else none
    return features, pair_of_feature, log_factor, none


# Cross-validation with the selection of features inside each fold.


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Predictions for each case by a classifier that was not trained on it.

    Attributes
    ----------
    corrected, uncorrected : ndarray of shape (n_cases, n_classes)
        P(y | x) with and without correction for the selection.
    selected : tuple of ndarray
        The features that were selected in each fold.
    folds : ndarray of shape (n_cases,)
        Fold in which each case was left out.
    """

    corrected: NDArray[np.float64]
    uncorrected: NDArray[np.float64]
    selected: tuple[NDArray[np.int64], ...]
    folds: NDArray[np.int64]


def cross_validate_selection(
    X: ArrayLike, y: ArrayLike, k: int, n_folds: int | None = None, seed: int = 0, **settings: Any
) -> CrossValidated:
    """Predict each case after selecting features on, and learning from, the other folds.

    Parameters
    ----------
    X : array of shape (n_cases, n_features)
        Real values are cut at their medians over the training part of each fold; cut them first to use one cut. Which
        features are binary is decided once, on all cases.
    y : array of shape (n_cases,)
    k : int
    n_folds : int, optional
        Default: leave-one-out. Otherwise each class is dealt out evenly to the folds, in random order.
    seed : int
        Determines that order.
    **settings
        As for `fit_selection_corrected`, apart from `correct` and `selection_rows`.

    Returns
    -------
    CrossValidated

    Raises
    ------
    ValueError
        When an argument is out of range, or a fold leaves no training case of a class.
    """
    for name in ("correct", "selection_rows"):
        if name in settings:
            raise TypeError(f"{name} cannot be set here: both predictions are returned, and each fold selects features")
    check_whole("seed", seed, 0)
    table = checked_table("X", X, allow_missing=True)
    response, n_classes = checked_classes(y, len(table))
    folds = _folds(response, n_folds, seed)
    if settings.get("cuts") is None:
        more = settings.get("unlabelled")
        cases = (
            [table]
            if more is None
            else [table, checked_more_cases(more, table.shape[1], names_of(X), allow_missing=True)]
        )
        settings["cuts"] = known_cuts(np.concatenate(cases))
    corrected, uncorrected = np.empty((2, len(table), n_classes))
    selected = []
    for fold in range(int(folds.max()) + 1):
        left_out = folds == fold
        model = fit_selection_corrected(table[~left_out], response[~left_out], k, **settings)
        corrected[left_out] = model.predict_proba(table[left_out])
        uncorrected[left_out] = model.uncorrected().predict_proba(table[left_out])
        selected.append(model.selected)
    return CrossValidated(corrected, uncorrected, tuple(selected), folds)


def _folds(y: NDArray[np.int64], n_folds: int | None, seed: int) -> NDArray[np.int64]:
    smallest = int(np.bincount(y).min())
    if n_folds is None:
        if smallest < 2:
            raise ValueError(f"y must have at least 2 cases of each class for leave-one-out, got {smallest} of one")
        return np.arange(len(y))
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= len(y):
        raise ValueError(f"n_folds must be a whole number from 2 to {len(y)}, or None, got {n_folds!r}")
    if smallest < 2:
        raise ValueError(f"y must have at least 2 cases of each class for {n_folds} folds, got {smallest} of one")
    rng = np.random.default_rng(seed)
    folds = np.empty(len(y), dtype=np.int64)
    dealt = 0
    for label in range(int(y.max()) + 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        folds[rows] = (np.arange(len(rows)) + dealt) % n_folds
        dealt += len(rows)
    return folds
