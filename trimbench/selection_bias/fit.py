"""Fitting classifiers with correction for feature selection, of every kind of feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_whole, is_whole
from trimbench.networks.batches import Batches, in_batches
from trimbench.networks.values import names_of
from trimbench.selection_bias.calibration import Recalibration
from trimbench.selection_bias.factors import Simulation, Ties
from trimbench.selection_bias.features import (
    checked_classes,
    checked_more_cases,
    checked_response,
    checked_row_numbers,
    checked_table,
    known_cuts,
)
from trimbench.selection_bias.learning import (
    How,
    Kind,
    Learned,
    Task,
    check_enough,
    from_categories,
    from_counts,
    from_moments,
    learn_binary,
    learn_categorical,
    learn_gaussian,
)
from trimbench.selection_bias.model import SelectionCorrectedModel
from trimbench.selection_bias.prior import Prior, log_shares
from trimbench.selection_bias.selection import checked_k

if TYPE_CHECKING:
    from trimbench.selection_bias.mixture import MixturePosterior, MixtureSampler

Calibrate = bool | Literal["auto"]


class Settings(TypedDict, total=False):
    """Further settings of `fit_selection_corrected`, for type checkers."""

    prior: Prior
    selection_rows: ArrayLike | None
    unlabelled: ArrayLike | None
    cuts: ArrayLike | None
    n_categories: ArrayLike | None
    simulation: Simulation
    calibrate: Calibrate


@overload
def fit_selection_corrected(
    X: Any,
    y: Any,
    k: int,
    correct: bool = ...,
    ties: Ties = ...,
    *,
    features: Kind = ...,
    **settings: Unpack[Settings],
) -> SelectionCorrectedModel: ...


@overload
def fit_selection_corrected(
    X: Any,
    y: Any,
    k: int,
    correct: bool = ...,
    ties: Ties = ...,
    *,
    features: Literal["mixture"],
    sampler: MixtureSampler | None = ...,
    **settings: Unpack[Settings],
) -> MixturePosterior: ...


def fit_selection_corrected(
    X: Any,
    y: Any,
    k: int,
    correct: bool = True,
    ties: Ties = "exact",
    *,
    features: Kind | Literal["mixture"] = "binary",
    prior: Prior | None = None,
    selection_rows: ArrayLike | None = None,
    unlabelled: ArrayLike | None = None,
    cuts: ArrayLike | None = None,
    n_categories: ArrayLike | None = None,
    simulation: Simulation | None = None,
    sampler: MixtureSampler | None = None,
    calibrate: Calibrate = "auto",
) -> SelectionCorrectedModel | MixturePosterior:
    """Select the k features that depend most on the response, and fit a classifier that accounts for it.

    Parameters
    ----------
    X : array of shape (n_cases, n_features), or rows in batches
        Values of the kind that `features` names. They may be missing (NaN, masked, None or the missing value of
        pandas) if the features are binary or Gaussian, see Notes. Cases that do not fit into memory come in batches,
        see `trimbench.learn`, with the classes in a column. All that is learned are sums over them, in one pass, or in
        fourteen where medians are to be found, which are exact; a mixture and a calibration need a table, so that
        ``calibrate="auto"`` means False.
    y : array of shape (n_cases,), or str
        Classes 0, 1, ..., at least one case of each; two classes for "categorical" and "mixture". The name of their
        column where cases come in batches.
    k : int
        Number of features to select, from 1 to n_features; n_features keeps all and corrects nothing.
    correct : bool
        Whether predictions condition on the weak dependence of the discarded features.
    ties : {"exact", "less", "less_equal"}
        What is known about the correlation of a discarded feature: whether it is below gamma or equal to it ("exact"),
        that it is below ("less", which the R package predbayescor assumes), or that it is not above ("less_equal").
        Gaussian features have no ties.
    features : {"binary", "categorical", "gaussian", "mixture"}
        "binary": zeros and ones; a feature with two other values is cut between them, any other at its median. With
        more than two classes, the correlation is replaced by the correlation ratio eta, whose square is the share of a
        feature's variance that lies between the classes: it orders features as the F statistic and Cramer's V do.
        "categorical": categories 0, 1, ..., at most five for each feature, selected by Cramer's V; phi_yj ~
        Dirichlet(alpha theta_j), theta_j ~ Dirichlet(1, ..., 1). With two categories it is the binary model. Make
        missing values a category.
        "gaussian": real values, selected by the F statistic. In class c a feature has the mean mu_cj and the variance
        sigma_j^2, mu_cj ~ N(nu_j, sigma_j^2 / alpha). The prior of nu_j and sigma_j is flat, with density 1 / sigma_j:
        location and scale of a feature change nothing. Needs more cases than classes.
        "mixture": as "binary", but each case has a latent label z in {1, 2}; given it, response and features are
        independent: x_j ~ Bernoulli(phi_zj), phi_zj ~ Beta(alpha theta_j, alpha (1 - theta_j)), theta_j ~ Uniform(0,
        1), with alpha0 in place of alpha for the response, P(z = 1) ~ Beta(f1, f0). Sampled by Markov chains.
    prior : Prior, optional
        `trimbench.selection_bias.prior.Prior`: alpha ~ Inverse-Gamma(shape, rate), where for Gaussian features
        1 / alpha is the variance between the classes over that within; theta_j ~ Uniform(theta0, 1 - theta0), for
        binary features only; P(y = 1) ~ Beta(f1, f0), which must be equal if there are more classes; and the sizes of
        the grids.
    selection_rows : array of int or bool, optional
        Rows on which features are selected; default: all. The classifier learns from all rows.
    unlabelled : array of shape (n_more_cases, n_features), optional
        Cases without response whose values count towards the medians, for example the test cases, as in the slides.
    cuts : array of shape (n_features,), optional
        Where to cut each feature, NaN for its median. A feature that looks binary in some rows may be real in others:
        `trimbench.selection_bias.features.known_cuts` on all data finds the binary features.
    n_categories : array of int of shape (n_features,), optional
        Number of categories of each feature; default: one more than the largest that occurs, at least two.
    simulation : Simulation, optional
        `trimbench.selection_bias.factors.Simulation`. With more than two classes or categories, or 1000 cases: whether
        to sum the probability that a feature is discarded over all counts that it can have (feasible for thousands of
        cases of three classes, about 200 of five, about 80 with three categories) or to simulate it, and with how many
        points; `log_adjustment_error` has the standard error.
    sampler : MixtureSampler, optional
        `trimbench.selection_bias.mixture.MixtureSampler`: the Markov chains of a mixture, and its prior of alpha0.
    calibrate : bool or "auto"
        Whether to divide evidence that dependent features repeat, by a scale and offsets of the log odds that
        cross-validation of the training cases finds, see Notes. "auto": where it finds that they are needed; never for
        mixtures, and where a class has fewer than 5 cases. It takes about ten times as long as False.

    Returns
    -------
    SelectionCorrectedModel
        For a mixture a `trimbench.selection_bias.mixture.MixturePosterior`, with the same `predict_proba`.

    Raises
    ------
    ValueError
        When an argument is out of range or not one of the kind of features, or a selected feature does not depend on y
        at all.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the chains have not converged: R-hat is above 1.05 or not defined, or the effective sample size below 100.

    Notes
    -----
    Features with missing values are ranked, and enter the likelihood, by the cases in which they were observed. The
    condition on a discarded feature is that its eta over its own observed cases is below gamma, so the factor is the
    product over the numbers of observed cases of the discarded features. This is exact if whether a value is missing
    depends on nothing but the class, except that (a) a cut at a median counts as known, as it does in complete data,
    and (b) binary features with about the same numbers share a factor where one for each would take minutes.

    To calibrate, the training cases are predicted by cross-validation with the selection inside each fold (10 folds, 3
    from 1,000 cases). `trimbench.selection_bias.calibration.Recalibration` is what makes their classes most likely;
    "auto" takes it if they become more than e^3 = 20 times as likely, which is rare where the model is right.

    For Gaussian features everything is in closed form, except the factor of three or more classes, a series with a
    bound on the omitted terms (`log_adjustment_error`). Features that are constant, or were observed in one class only
    or in no more cases than classes, say nothing about alpha: they rank last, and the factor leaves them out.

    Examples
    --------
    >>> import trimbench as tb
    >>> X = [[1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    >>> model = tb.fit_selection_corrected(X, [1, 1, 1, 0, 0, 0], k=1)
    >>> model.selected.tolist(), round(model.gamma, 3)
    ([0], 0.707)
    >>> model.expected_error(X) > model.uncorrected().expected_error(X)
    True
    >>> Z = [[1.2, 0.3, 0.5], [1.9, 0.1, 0.4], [1.4, 0.9, 0.8], [0.3, 0.2, 0.7], [0.1, 0.8, 0.3], [0.7, 0.4, 0.4]]
    >>> round(tb.fit_selection_corrected(Z, [1, 1, 1, 0, 0, 0], k=1, features="gaussian").gamma, 3)
    0.901

    References
    ----------
    Li, Zhang and Neal (2008), for discrete features.
    """
    prior, simulation = prior or Prior(), simulation or Simulation()
    how = How(correct, ties, features, prior, selection_rows, unlabelled, cuts, n_categories, simulation, sampler)
    found: SelectionCorrectedModel | MixturePosterior = fitted(X, y, k, how, calibrate)
    return found


def fitted(X: Any, y: Any, k: int, how: How, calibrate: Calibrate = False, *, allow_fewer: bool = False) -> Any:
    """Fit a classifier as `fit_selection_corrected` does.

    Parameters
    ----------
    allow_fewer : bool
        Whether to select fewer than `k` features if fewer depend on the response, and all if none does.
    """
    kind, prior = how.features, how.prior
    if in_batches(X):
        return _fitted_in_batches(X, y, k, how, calibrate, allow_fewer)
    table = checked_table("X", X, allow_missing=kind in ("binary", "gaussian"))
    if kind in ("categorical", "mixture"):
        response, n_classes = checked_response(y, len(table)), 2
    else:
        response, n_classes = checked_classes(y, len(table))
    k, names = checked_k(k, table.shape[1]), names_of(X)
    if how.unlabelled is not None:
        more = checked_more_cases(how.unlabelled, table.shape[1], names, allow_missing=kind == "binary")
        how = replace(how, unlabelled=more)
    calibrates = _calibrates(calibrate, kind, response)
    if kind == "mixture":
        from trimbench.selection_bias.mixture import MixtureSampler, sample_mixture

        given: dict[str, Any] = {
            "unlabelled": how.unlabelled,
            "correct": how.correct,
            "ties": how.ties,
            "column_names": names,
        }
        return sample_mixture(table, response, k, prior, how.sampler or MixtureSampler(), **given)
    prior.pseudo_counts(n_classes)
    rows = checked_row_numbers("selection_rows", how.selection_rows, response)
    task = Task(table, response, n_classes, rows, k, allow_fewer, how)
    learned = {"binary": learn_binary, "categorical": learn_categorical, "gaussian": learn_gaussian}[kind](task)
    model = _model_of(learned, how, np.bincount(response), names)
    if not calibrates:
        return model
    calibration = _calibration(task, names)
    return replace(model, calibration=calibration) if calibrate is True or calibration.gain > _LEAST_GAIN else model


def _model_of(
    learned: Learned, how: How, class_sizes: NDArray[np.int64], names: tuple[str, ...] | None
) -> SelectionCorrectedModel:
    prior = how.prior
    log_factor, error = learned.log_factor() if how.correct else np.zeros((2, prior.n_alpha))
    return SelectionCorrectedModel(
        prior=prior,
        class_sizes=class_sizes,
        alpha_grid=prior.alphas(),
        log_adjustment=log_factor,
        log_adjustment_error=error,
        log_likelihood=learned.log_likelihood,
        selection=learned.selection,
        features=learned.features,
        column_names=names,
    )


def _fitted_in_batches(
    X: Any, y: Any, k: int, how: How, calibrate: Calibrate, allow_fewer: bool
) -> SelectionCorrectedModel:
    """Fit a classifier to rows in batches, by their sums."""
    from trimbench.selection_bias import batches

    if how.features == "mixture" or calibrate is True:
        name, got = ("calibrate", True) if calibrate is True else ("features", "mixture")
        raise ValueError(f"{name} must be another one for rows in batches, got {got!r}, which needs all rows in memory")
    for name in ("selection_rows", "unlabelled"):
        if getattr(how, name) is not None:
            raise ValueError(f"{name} must be left out for rows in batches, whose sums are those of all rows")
    rows = batches.LabelledBatches(Batches.of(X), y, allow_missing=how.features != "categorical")
    sums: Any
    if how.features == "binary":
        sums = batches.class_counts(rows, None if how.cuts is None else np.asarray(how.cuts, dtype=float))
    elif how.features == "categorical":
        sums = batches.sums_of_categories(rows, how.n_categories)
    else:
        sums = batches.sums_of_classes(rows)
    sizes = np.array(rows.class_sizes)
    if len(sizes) < 2 or not sizes.all():
        raise ValueError(f"y must have cases of all classes from 0 to {max(1, len(sizes) - 1)}, got {sizes.tolist()}")
    names = tuple(rows.names)
    return fitted_to_sums(sums, sizes, len(names), k, how, names, allow_fewer=allow_fewer)


def fitted_to_sums(
    sums: Any,
    class_sizes: NDArray[np.int64],
    n_features: int,
    k: int,
    how: How,
    names: tuple[str, ...] | None = None,
    *,
    allow_fewer: bool = False,
) -> SelectionCorrectedModel:
    """Fit a classifier to sums over cases.

    Parameters
    ----------
    sums : tuple of Binariser and ClassCounts, tuple of Categories and ndarray, or GaussianMoments
        Of binary, categorical or Gaussian features, as `how` says.
    class_sizes : ndarray of shape (n_classes,)
        Cases of each class, at least one.
    """
    how.prior.pseudo_counts(len(class_sizes))
    k = checked_k(k, n_features)
    if how.features == "binary":
        binariser, counts = sums
        learned = from_counts(binariser, counts, counts, k, how, allow_fewer)
    elif how.features == "categorical":
        coding, counts = sums
        learned = from_categories(coding, counts, k, how, allow_fewer)
    else:
        check_enough(int(class_sizes.sum()), len(class_sizes))
        learned = from_moments(sums, sums, n_features, k, how, allow_fewer)
    return _model_of(learned, how, class_sizes, names)


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
    X: ArrayLike, y: ArrayLike, k: int, *, n_folds: int | None = None, random_state: int = 0, **settings: Any
) -> CrossValidated:
    """Predict each case after selecting features on, and learning from, the other folds.

    Parameters
    ----------
    X : array of shape (n_cases, n_features)
        Where `features` is "binary", real values are cut at their medians over the training part of each fold; cut
        them beforehand to use one cut. Which features are binary, and how many categories each has, is decided once, on
        all cases.
    y : array of shape (n_cases,)
    k : int
    n_folds : int, optional
        Default: leave-one-out. Otherwise each class is dealt out evenly to the folds, in random order.
    random_state : int
        Determines that order.
    **settings
        As for `fit_selection_corrected`, apart from `correct`, `selection_rows` and `calibrate` (TypeError) and
        "mixture" features.

    Returns
    -------
    CrossValidated

    Raises
    ------
    ValueError
        When an argument is out of range, or a fold leaves no training case of a class.

    Examples
    --------
    >>> import numpy as np, trimbench as tb
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(2, size=(40, 100)), rng.integers(2, size=40)
    >>> found = tb.cross_validate_selection(X, y, k=3, n_folds=4)
    >>> found.corrected.shape, len(found.selected)
    ((40, 2), 4)
    """
    for name in ("correct", "selection_rows", "calibrate"):
        if name in settings:
            raise TypeError(f"{name} cannot be set here: both predictions are returned, and each fold selects features")
    how = How(**settings)
    if how.features == "mixture":
        raise ValueError("features must be binary, categorical or gaussian in cross-validation, got 'mixture'")
    check_whole("random_state", random_state, 0)
    table = checked_table("X", X, allow_missing=how.features != "categorical")
    response, n_classes = checked_classes(y, len(table))
    folds = _folds(response, n_folds, random_state)
    how = _decided(table, how, names_of(X))
    corrected, uncorrected = np.empty((2, len(table), n_classes))
    selected = []
    for fold in range(int(folds.max()) + 1):
        left_out = folds == fold
        model = fitted(table[~left_out], response[~left_out], k, how)
        corrected[left_out] = model.predict_proba(table[left_out])
        uncorrected[left_out] = model.uncorrected().predict_proba(table[left_out])
        selected.append(model.selected)
    return CrossValidated(corrected, uncorrected, tuple(selected), folds)


def _decided(table: NDArray[Any], how: How, names: tuple[str, ...] | None) -> How:
    """Return how to fit each fold: what a feature is, is decided once, on all cases."""
    if how.features == "binary" and how.cuts is None:
        cases = [table]
        if how.unlabelled is not None:
            cases.append(checked_more_cases(how.unlabelled, table.shape[1], names, allow_missing=True))
        return replace(how, cuts=known_cuts(np.concatenate(cases)))
    if how.features == "categorical" and how.n_categories is None:
        return replace(how, n_categories=np.maximum(table.max(axis=0), 1).astype(np.int64) + 1)
    return how


# Whether predictions hold for cases that were held out, and what makes them hold.

# A class with fewer cases says nothing about it.
_FEWEST_OF_CLASS = 5
_FOLDS, _MANY_CASES, _FOLDS_OF_MANY = 10, 1000, 3
# By how much the log likelihood of the held-out classes must rise: less is common where nothing is wrong.
_LEAST_GAIN = 3.0


def _calibrates(calibrate: Any, kind: str, response: NDArray[np.int64]) -> bool:
    """Return whether to calibrate; ValueError if that was asked for and is not possible."""
    if not isinstance(calibrate, bool) and not (isinstance(calibrate, str) and calibrate == "auto"):
        raise ValueError(f"calibrate must be True, False or 'auto', got {calibrate!r}")
    smallest = int(np.bincount(response).min())
    possible = kind != "mixture" and smallest >= _FEWEST_OF_CLASS
    if calibrate is True and not possible:
        reason = (
            "mixtures, whose chains would run once for each fold"
            if kind == "mixture"
            else f"classes of fewer than {_FEWEST_OF_CLASS} cases, got one of {smallest}"
        )
        raise ValueError(f"calibrate must be False or 'auto' for {reason}; add cases, or leave it out")
    return bool(calibrate) and possible


def _calibration(task: Task, names: tuple[str, ...] | None) -> Recalibration:
    """Return the calibration that cross-validation finds, with the selection inside each fold."""
    n_cases = len(task.response)
    n_folds = min(_FOLDS if n_cases < _MANY_CASES else _FOLDS_OF_MANY, int(np.bincount(task.response).min()))
    folds, how = _folds(task.response, n_folds, 0), _decided(task.table, task.how, names)
    selects = np.isin(np.arange(n_cases), task.rows)
    added = np.empty((n_cases, task.n_classes))
    for fold in range(n_folds):
        left_out = folds == fold
        in_fold = replace(how, selection_rows=None if selects.all() else selects[~left_out])
        model = fitted(task.table[~left_out], task.response[~left_out], task.k, in_fold, allow_fewer=True)
        added[left_out] = model.log_probabilities(task.table[left_out]) - model.log_shares
    return Recalibration.of(added, log_shares(task.prior, np.bincount(task.response)), task.response)


def _folds(y: NDArray[np.int64], n_folds: int | None, random_state: int) -> NDArray[np.int64]:
    smallest = int(np.bincount(y).min())
    if n_folds is None:
        if smallest < 2:
            raise ValueError(f"y must have at least 2 cases of each class for leave-one-out, got {smallest} of one")
        return np.arange(len(y))
    if not is_whole(n_folds, 2) or n_folds > len(y):
        raise ValueError(f"n_folds must be a whole number from 2 to {len(y)}, or None, got {n_folds!r}")
    if smallest < 2:
        raise ValueError(f"y must have at least 2 cases of each class for {n_folds} folds, got {smallest} of one")
    rng = np.random.default_rng(random_state)
    folds = np.empty(len(y), dtype=np.int64)
    dealt = 0
    for label in range(int(y.max()) + 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        folds[rows] = (np.arange(len(rows)) + dealt) % n_folds
        dealt += len(rows)
    return folds
