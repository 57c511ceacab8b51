"""Selections that trimming is compared with: by information gain, by accuracy, and by same decision (FS-SDD)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.learning import check_rows, learn
from trimbench.networks.values import names_text, places_among
from trimbench.trimming.classifier import BayesianClassifier, checked_classifier
from trimbench.trimming.decisions import TIE_TOLERANCE, check_feature_columns, is_positive
from trimbench.trimming.engines.choice import Engine
from trimbench.trimming.engines.table import DenseEngine, SubsetBatch, subset_batches
from trimbench.trimming.problem import Choice, checked_budget, checked_choice, checked_costs
from trimbench.trimming.result import AGREEMENT_TOLERANCE

if TYPE_CHECKING:
    import pandas as pd


By = Literal["same_decision", "information_gain", "accuracy"]


@dataclass(frozen=True)
class FeatureSelection:
    """Features that were selected.

    Attributes
    ----------
    features : tuple of str
        By same decision, in the order of the classifier: of several best subsets the smallest, then the first in
        lexicographic order of feature positions. Otherwise in the order of their selection.
    agreement : float or None
        By same decision, the expected same-decision probability: the expected agreement with the threshold kept
        (Proposition 4). Otherwise None.
    n_evaluations : int
        By same decision, the number of non-empty subsets within the budget, all of which were evaluated. Otherwise 0.
    tied : tuple of tuples of str
        By same decision, all subsets with that agreement, `features` among them. Otherwise empty.
    """

    features: tuple[str, ...]
    agreement: float | None = None
    n_evaluations: int = 0
    tied: tuple[tuple[str, ...], ...] = ()


def select_features(
    classifier: BayesianClassifier,
    budget: float,
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None = None,
    *,
    by: By = "same_decision",
    joint: bool = False,
    engine: Engine | None = None,
    rows: pd.DataFrame | None = None,
    target: pd.Series | None = None,
    n_folds: int = 10,
    smoothing: float = 1.0,
    random_state: int = 0,
) -> FeatureSelection:
    """Select features within a budget by a criterion other than that of trimming, as a baseline.

    Parameters
    ----------
    classifier : BayesianClassifier
        With a positive class; to select by same decision, small enough for a table of all instances.
    budget : float
        Largest sum of costs, 0 or more.
    costs : mapping from feature name to cost, or sequence of n_features costs, optional
        0 or more. Default: 1 for each feature. Must be left out by accuracy, where features are counted.
    by : {"same_decision", "information_gain", "accuracy"}
        Most equal decisions at the original threshold, among all subsets; mutual information with the class, the most
        informative affordable feature first; or the cross-validated accuracy of naive Bayes, features one by one.
    joint : bool
        By information gain. False: each feature by its own gain. True: greedily by the gain together with those already
        selected; the number of instances of the selected features must be small.
    engine : Engine, optional
        By information gain: gives the joint probabilities of a general network. Default: exact contraction.
    rows : DataFrame with a column for each feature, optional
        By accuracy: the rows that naive Bayes is learned from.
    target : Series of length n_rows, optional
        By accuracy: the state of the classifier's target in each row.
    n_folds : int
        By accuracy: between 2 and the number of rows.
    smoothing : float
        By accuracy: pseudo-count of the naive Bayes classifiers.
    random_state : int
        By accuracy: seed of the assignment of rows to folds.

    Returns
    -------
    FeatureSelection

    Raises
    ------
    TypeError
        When `rows` is not a data frame, or `target` not a series.
    ValueError
        When an argument is out of range, a feature is unknown, there are too many features or too few rows, or `joint`,
        `engine`, `rows` or `target` belongs to another criterion (the other arguments are then ignored).

    Examples
    --------
    >>> import trimbench as tb
    >>> model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    >>> classifier = tb.BayesianClassifier(model, positive="0")
    >>> tb.select_features(classifier, 1, by="information_gain").features
    ('x0',)
    """
    if by not in get_args(By):
        raise ValueError(f"by must be one of {list(get_args(By))}, got {str(by)[:80]!r}")
    gain, accuracy = "information_gain", "accuracy"
    named = {"joint": (joint, gain), "engine": (engine, gain), "rows": (rows, accuracy), "target": (target, accuracy)}
    for name, (given, whose) in named.items():
        if by != whose and given is not None and given is not False:
            raise ValueError(f"{name} must be left out for by={by!r}; it is for by={whose!r}")
    checked_classifier(classifier)
    if by == "same_decision":
        return _by_same_decision(classifier, checked_costs(classifier.features, costs), checked_budget(budget))
    if by == gain:
        choice = checked_choice(classifier.features, budget, costs)
        return FeatureSelection(_by_information_gain(classifier, choice, joint, engine))
    if rows is None or target is None or costs is not None:
        raise ValueError("by='accuracy' needs rows and target, and takes no costs, as it counts features")
    import pandas as pd

    rng = np.random.default_rng(random_state)
    check_rows(rows, target, "rows")
    check_feature_columns(rows.columns, classifier.features)
    features = rows.set_axis(rows.columns.map(str), axis=1)[list(classifier.features)]
    states = [*classifier.positive_states, *classifier.negative_states]
    places = places_among(target, states)
    if (unknown := places < 0).any():
        raise ValueError(
            f"target must be one of {names_text(states)} in every row, got {target[unknown].tolist()[0]!r}"
        )
    target = pd.Series(np.where(places < len(classifier.positive_states), *classifier.class_names), target.index)
    folds = folds_of(features, target, classifier.positive, classifier.threshold, n_folds, rng, smoothing)
    return FeatureSelection(_by_accuracy(classifier.features, folds, checked_budget(budget)))


# Feature selection by information gain: what the features say about the class, not about the classifier's decisions.

# Gains closer than this are equal; the feature that comes first is then taken.
_TIE = 1e-13


def information_gains(
    classifier: BayesianClassifier, *, given: Sequence[int] = (), engine: Engine | None = None
) -> NDArray[np.float64]:
    """Return the mutual information of the class with each feature, together with those that are given.

    Parameters
    ----------
    given : sequence of int
        Positions of features whose values are known: the result is I(C; given, F_i).
    engine : Engine, optional
        Gives the joint probabilities of a general network; default: exact contraction.

    Returns
    -------
    ndarray of shape (n_features,), in nats
    """
    gains = []
    for feature in range(classifier.n_features):
        features = [*given, feature] if feature not in given else list(given)
        gains.append(_mutual_information(_joint(classifier, features, engine)))
    return np.array(gains)


def _by_information_gain(
    classifier: BayesianClassifier, choice: Choice, joint: bool, engine: Engine | None
) -> tuple[str, ...]:
    """Return features by information gain, the most informative affordable one first."""
    chosen: list[int] = []
    gains = information_gains(classifier, engine=engine)
    while open_ := choice.open_units(chosen):
        if joint and chosen:
            gains = information_gains(classifier, given=chosen, engine=engine)
        highest = max(gains[i] for i in open_)
        chosen.append(next(i for i in open_ if gains[i] >= highest - _TIE))
    return tuple(classifier.features[i] for i in chosen)


def _joint(classifier: BayesianClassifier, features: Sequence[int], engine: Engine | None) -> NDArray[np.float64]:
    if engine is None or classifier.is_naive_bayes:
        return classifier.joint(features)
    instances = engine.instances(features)
    return np.stack([instances.positive, instances.negative])


def most_informative_units(classifier: BayesianClassifier, choice: Choice) -> frozenset[int]:
    """Return the required units and, while the budget lasts, those that say most about the class for their cost.

    Each feature counts by itself, so this takes hardly any time.
    """
    # Rounded, as equal gains may differ by how their joint probabilities were summed: the first one is taken.
    gains = [
        round(math.fsum(_mutual_information(classifier.joint([feature])) for feature in unit), 12) / max(cost, _TIE)
        for unit, cost in zip(choice.units, choice.costs, strict=True)
    ]
    return frozenset(choice.filled(choice.required_units, sorted(range(len(gains)), key=lambda unit: -gains[unit])))


def _mutual_information(table: NDArray[np.float64]) -> float:
    """Return I(C; F') in nats from Pr(c, f'), shape (n_classes, n_instances)."""
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    seen = (table > 0) & (independent > 0)
    return float((table[seen] * np.log(table[seen] / independent[seen])).sum())


# Selection by the cross-validated accuracy of naive Bayes classifiers.


def _by_accuracy(features: Sequence[str], folds: Sequence[Fold], budget: float) -> tuple[str, ...]:
    """Select features one by one, each time the one that gives naive Bayes the highest cross-validated accuracy.

    The first m of them are the selection for the budget m.
    """
    scores = [np.zeros(len(fold.truth)) for fold in folds]
    open_ = list(range(len(features)))
    chosen: list[int] = []
    while open_ and len(chosen) < budget:
        accuracies = np.zeros(len(open_))
        for fold, score in zip(folds, scores, strict=True):
            predicted = fold.weights[:, open_] >= (fold.needed - score)[:, None]
            accuracies += (predicted == fold.truth[:, None]).mean(axis=0)
        best = open_.pop(int(np.argmax(accuracies)))
        chosen.append(best)
        scores = [score + fold.weights[:, best] for fold, score in zip(folds, scores, strict=True)]
    return tuple(features[i] for i in chosen)


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows of a fold as seen by a naive Bayes model that was learned on the other folds.

    Attributes
    ----------
    weights : ndarray of shape (n_rows, n_features)
        Log-likelihood ratios.
    needed : float
        Smallest sum of weights of a positive row.
    truth : ndarray of bool, shape (n_rows,)
        Which rows are positive.
    """

    weights: NDArray[np.float64]
    needed: float
    truth: NDArray[np.bool_]


def folds_of(
    features: pd.DataFrame,
    target: pd.Series,
    positive: str,
    threshold: float,
    n_folds: int,
    rng: np.random.Generator,
    smoothing: float,
) -> list[Fold]:
    """Return the folds, each as seen by a naive Bayes model that was learned on the others.

    Raises ValueError if there are too few rows for the folds, or no classifier can be learned from the data.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Categorical.
    target : Series of length n_rows
        Two classes.
    positive : str
        The class whose probability is compared with the threshold.
    threshold : float in (0, 1)
    n_folds : int
        Between 2 and the number of rows.
    rng : numpy.random.Generator
        Assigns the rows to the folds.
    smoothing : float
        Pseudo-count of the naive Bayes classifier.
    """
    if not 2 <= n_folds <= len(features):
        raise ValueError(f"n_folds must be between 2 and the number of rows, {len(features)}, got {n_folds}")
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be strictly between 0 and 1, got {threshold!r}")
    # A value that occurs in one fold only is known in all of them.
    features = features.apply(lambda column: column if column.dtype == "category" else column.astype("category"))
    dealt = rng.permutation(len(features)) % n_folds
    folds = []
    for fold in range(n_folds):
        out = dealt == fold
        model = learn(features[~out], target[~out], smoothing=smoothing)
        classifier = BayesianClassifier(model, positive=positive, threshold=threshold)
        pairs = zip(classifier.tables, model.encode(features[out]).T, strict=True)
        weights = np.stack([np.log(table[0] / table[1])[codes] for table, codes in pairs], axis=1)
        prior = float(np.log(classifier.prior[0] / classifier.prior[1]))
        needed = float(np.log(threshold) - np.log1p(-threshold)) - prior - TIE_TOLERANCE
        folds.append(Fold(weights, needed, (target[out].astype(str) == positive).to_numpy()))
    return folds


# Feature selection by expected same-decision probability: the threshold stays, every subset is tried.


def _by_same_decision(classifier: BayesianClassifier, costs: Sequence[float], budget: float) -> FeatureSelection:
    """Select the features within a budget that keep the most decisions, at the original threshold."""
    batches = subset_batches(DenseEngine.build(classifier).root, costs, budget)
    highest, leaders, n_subsets = leading((batch.kept, _same_decision(classifier, batch)) for batch in batches)
    best = sorted(map(tuple, map(sorted, leaders)), key=lambda kept: (len(kept), kept))
    tied = tuple(tuple(classifier.features[i] for i in kept) for kept in best)
    return FeatureSelection(tied[0], highest, n_subsets - 1, tied)  # without the empty one


def leading(
    batches: Iterable[tuple[NDArray[np.int64], NDArray[np.float64]]],
) -> tuple[float, dict[tuple[int, ...], float], int]:
    """Return the highest agreement of all sets, the sets that reach it up to rounding, and the number of sets.

    Parameters
    ----------
    batches : iterable of (ndarray of shape (n_sets, n_members), ndarray of shape (n_sets,))
        Sets of one size with their agreements.
    """
    highest, n_sets, leaders = 0.0, 0, {}
    for sets, agreements in batches:
        n_sets += len(sets)
        highest = max(highest, float(agreements.max(initial=0.0)))
        for row in np.flatnonzero(agreements >= highest - AGREEMENT_TOLERANCE):
            leaders[tuple(sets[row].tolist())] = float(agreements[row])
    best = {chosen: value for chosen, value in leaders.items() if value >= highest - AGREEMENT_TOLERANCE}
    return highest, best, n_sets


def _same_decision(classifier: BayesianClassifier, batch: SubsetBatch) -> NDArray[np.float64]:
    """Return the expected same-decision probability of each subset of a batch."""
    positive, negative, signed = batch.instances(classifier)
    kept = is_positive(positive, negative, classifier.threshold)
    return np.asarray(0.5 * (1.0 + np.where(kept, signed, -signed).sum(axis=1)))
