"""The jobs of a study: trimming, gaps, selection, explained rows, and the encoded rows that they use."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.estimators.columns import ColumnEncoder
from trimbench.estimators.conformant import NaiveConformantClassifier
from trimbench.estimators.trimmed import TrimmedClassifier
from trimbench.networks.discretize import IdentifierColumnWarning
from trimbench.papers.measures import brier_score, calibration_error, log_loss
from trimbench.papers.methods.missing_features import (
    METHODS,
    OK,
    Conforming,
    Learned,
    Training,
    columns_for_trees,
    enough_bins,
    first_line,
    hidden_copies,
    learn_by,
)
from trimbench.papers.own_table.settings import MOST_COLUMNS, Rows, StoredTable, some_rows, stored_table
from trimbench.reproduction.data.masks import Missingness
from trimbench.reproduction.execution.code_hash import job_function
from trimbench.reproduction.execution.job import seed_for, timed
from trimbench.reproduction.settings import Json, validated
from trimbench.trimming.result import wilson_interval


@dataclass(frozen=True, eq=False)
class Encoded:
    """Training and test rows as numbers; NaN where a value is missing.

    `columns` holds the columns of each feature in `names`, and `outputs` the names of all columns.
    """

    train: NDArray[np.float64]
    test: NDArray[np.float64]
    columns: list[list[int]]
    names: list[str]
    outputs: list[str]
    layout: FeatureLayout


def encoded(train: pd.DataFrame, test: pd.DataFrame) -> Encoded:
    """Encode rows as `NaiveConformantClassifier` does; columns without any training value are left out."""
    known = _with_values(train)
    with warnings.catch_warnings():
        # What the card says of such columns is enough.
        warnings.simplefilter("ignore", IdentifierColumnWarning)
        encoder = ColumnEncoder.fit(train[known], set(), "gaussian", np.ones(len(train)))
    widths = [len(column.outputs) for column in encoder.columns]
    ends = np.cumsum(widths)
    columns = [list(range(end - width, end)) for end, width in zip(ends.tolist(), widths, strict=True)]
    return Encoded(
        encoder.encode(train[known]),
        encoder.encode(test[known]),
        columns,
        [str(name) for name in known],
        encoder.outputs,
        encoder.layout,
    )


def _with_values(rows: pd.DataFrame) -> list[str]:
    """Return the names of the columns that have a value, found for all at once: there may be thousands."""
    return list(rows.columns[rows.notna().any().to_numpy()])


@functools.lru_cache(maxsize=1)
def encoded_once(table: str, test_share: float, rows: int, seed: int) -> tuple[Encoded, Rows, Rows]:
    """Return the encoded rows of the first split, which several jobs use, and the places of training and test rows."""
    data = stored_table(table)
    train, test = data.split(test_share, seed, most=rows)
    return encoded(data.features.iloc[train], data.features.iloc[test]), train, test


# The job of one budget: trimming, and selections by the class beside it, tested on rows that none has seen.

# The most features, rows and folds for SequentialFeatureSelector, which would take minutes with more.
CANDIDATES, SEQUENTIAL_ROWS, FOLDS = 12, 2000, 3
TRIMMING, INFORMATION, SEQUENTIAL = "trimming", "information gain", "SequentialFeatureSelector"


@job_function
def select_within(
    table: str,
    positive: str | None,
    budget: float,
    costs: Mapping[str, float],
    test_share: float,
    rows: int,
    time_limit: float,
    seed: int,
) -> dict[str, Json]:
    """Select features within a budget by each method, and test the classifiers."""
    data = stored_table(table)
    train, test = data.split(test_share, seed, most=rows)
    answers = data.answers(positive)
    features, wanted = data.features.iloc[train], answers[train]
    price = None if set(costs.values()) == {1.0} else dict(costs)
    trimmed, seconds = timed(lambda: fitted(features, wanted, budget=budget, costs=price, time_limit=time_limit))
    full, coded, ranked = _of_all_features(table, positive, test_share, rows, seed)
    tested = _Tested(data.features.iloc[test], answers[test], full, costs)
    found = [{**_about(trimmed), **tested.result(TRIMMING, trimmed, seconds), "model": _saved(trimmed)}]
    for name, select in (
        (INFORMATION, functools.partial(by_information_gain, ranked, budget, costs)),
        (SEQUENTIAL, functools.partial(by_sequential_selection, coded, wanted, ranked, len(trimmed.features_), seed)),
    ):
        try:
            chosen, seconds = timed(select)
            found.append(tested.result(name, keeping(features, wanted, chosen, data), seconds))
        except (ValueError, ArithmeticError, RuntimeError) as error:  # one that fails must not cost the others
            found.append({"method": name, "failure": first_line(error)})
    return {"n_train": len(train), "n_test": len(test), "n_features": len(data.names), "methods": found}


@functools.lru_cache(maxsize=1)
def _of_all_features(
    table: str, positive: str | None, test_share: float, rows: int, seed: int
) -> tuple[Any, pd.DataFrame, list[str]]:
    """Return what all budgets share: the classifier of all features, its categories of rows, the ranked features."""
    data = stored_table(table)
    train, _ = data.split(test_share, seed, most=rows)
    features, wanted = data.features.iloc[train], data.answers(positive)[train]
    full = fitted(features, wanted, budget=len(data.names), rows_weight=0)
    coded = full.discretizer_.transform(features)
    return full, coded, informative(coded, wanted)


def fitted(features: pd.DataFrame, wanted: NDArray[Any], **settings: Any) -> Any:
    """Return a fitted `TrimmedClassifier`; its warnings are left to the report."""
    with _quietly():
        return TrimmedClassifier(**settings).fit(features, wanted)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierColumnWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def keeping(features: pd.DataFrame, wanted: NDArray[Any], chosen: Sequence[str], data: StoredTable) -> Any:
    """Return the classifier that keeps exactly some features, with the threshold that suits them best."""
    others = [name for name in data.names if name not in chosen]
    return fitted(features, wanted, budget=len(data.names), required=chosen, forbidden=others, rows_weight=0)


def by_information_gain(ranked: Sequence[str], budget: float, costs: Mapping[str, float]) -> list[str]:
    """Return the most informative affordable features, one after the other, of those that `informative` has ranked."""
    left, chosen = budget * (1 + 1e-12), list[str]()
    for name in ranked:
        if costs[name] <= left:
            left -= costs[name]
            chosen.append(name)
    return chosen


def informative(coded: pd.DataFrame, wanted: NDArray[Any]) -> list[str]:
    """Return the columns that are not constant by falling mutual information with the class."""
    from sklearn.metrics import mutual_info_score

    codes = {str(name): column.cat.codes.to_numpy() for name, column in coded.items()}
    gains = {name: mutual_info_score(wanted, own) for name, own in codes.items() if np.ptp(own)}
    return sorted(gains, key=lambda name: -gains[name])


def by_sequential_selection(
    coded: pd.DataFrame, wanted: NDArray[Any], ranked: list[str], n_features: int, seed: int
) -> list[str]:
    """Return `n_features` of the ranked features, selected by scikit-learn's forward selection for `CategoricalNB`."""
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.naive_bayes import CategoricalNB

    if n_features >= len(ranked):
        return ranked
    names = ranked[:CANDIDATES]
    if n_features > len(names):
        raise ValueError(f"it compares the {len(names)} most informative features and cannot take {n_features}")
    if n_features == len(names):
        return names
    rng = np.random.default_rng(seed_for(purpose="sequential", seed=seed))
    rows = np.sort(rng.permutation(len(coded))[:SEQUENTIAL_ROWS])
    codes = np.stack([coded[name].cat.codes.to_numpy()[rows] + 1 for name in names], axis=1)
    model = CategoricalNB(min_categories=int(codes.max()) + 1)
    folds = folds_of(wanted[rows], FOLDS, seed)
    selector = SequentialFeatureSelector(model, n_features_to_select=n_features, cv=folds).fit(codes, wanted[rows])
    return [names[place] for place in np.flatnonzero(selector.get_support())]


# The job of the choice: a budget by cross-validation on the rows to learn from, tested on rows that no choice has seen.

# Folds of all rows, where there are fewer test rows than this: the 95 % interval of the share of 250 rows reaches up
# to 6 points to either side, and that of fewer rows farther than most differences between classifiers.
OUTER, FEW = 5, 250
MOST_FREQUENT = "most_frequent"


@job_function
def choose_budget(
    table: str,
    positive: str | None,
    budgets: Sequence[float],
    costs: Mapping[str, float],
    fold: int | None,
    test_share: float,
    rows: int,
    time_limit: float,
    seed: int,
) -> dict[str, Json]:
    """Choose a budget on the rows to learn from, and test its trimming beside all features on the others.

    `fold` is one of those of all rows; None takes the training and the test rows of the study.
    """
    data = stored_table(table)
    answers = data.answers(positive)
    if fold is None:
        train, test = data.split(test_share, seed, most=rows)
    else:
        # Folds that are made by the labels would reveal the shares of the classes in the test rows.
        test = np.array_split(np.random.default_rng(seed % 2**32).permutation(len(answers)), OUTER)[fold]
        train = np.setdiff1d(np.arange(len(answers)), test)
        train = some_rows(train, data.labels, rows, seed)
    features, wanted = data.features.iloc[train], answers[train]
    price = None if set(costs.values()) == {1.0} else dict(costs)
    right = np.zeros((len(budgets), len(train)), dtype=bool)
    quick: dict[str, Any] = {"costs": price, "time_limit": time_limit / (FOLDS * len(budgets)), "rows_weight": 0}
    for some, others in folds_of(wanted, FOLDS, seed) if len(budgets) > 1 else ():
        if len(set(wanted[some])) == 1:  # few rows may be of one class
            right[:, others] = wanted[others] == wanted[some][0]
            continue
        with _quietly():
            models = TrimmedClassifier(**quick).fit_budgets(features.iloc[some], wanted[some], budgets)
        right[:, others] = [model.predict(features.iloc[others]) == wanted[others] for model in models]
    # The cheapest that is not behind the best by more than one standard error of the paired difference.
    behind = right[right.mean(axis=1).argmax()].astype(float) - right
    place = int((behind.mean(axis=1) <= behind.std(axis=1) / np.sqrt(len(train))).argmax())
    tested = features, wanted, data.features.iloc[test]
    given = _Given(*tested)
    ours = _predicted(*tested, budget=budgets[place], costs=price, time_limit=time_limit)
    judged: dict[str, Callable[[], NDArray[Any]]] = {
        TRIMMING: lambda: ours,
        **{name: functools.partial(_predicted_by, name, given) for name in CLASSIFIERS},
        MOST_FREQUENT: functools.partial(_most_frequent, *tested),
    }
    return {
        "budget": budgets[place],
        "cross_validated": right.mean(axis=1).tolist(),
        "n_train": len(train),
        "n_test": len(test),
        "methods": _compared(judged, answers[test]),
    }


def _compared(judged: Mapping[str, Callable[[], NDArray[Any]]], truth: NDArray[Any]) -> list[Json]:
    """Return for each method how many rows it decides rightly, and how many of these each other one does not."""
    right: dict[str, NDArray[np.bool_]] = {}
    failures: list[Json] = []
    for name, predict in judged.items():
        try:
            right[name] = predict() == truth
        except (ValueError, ArithmeticError, RuntimeError) as error:  # one that fails must not cost the others
            failures.append({"method": name, "failure": first_line(error)})
    found: list[Json] = [
        {
            "method": name,
            "n_right": int(one.sum()),
            "only": {other: int((one & ~two).sum()) for other, two in right.items()},
        }
        for name, one in right.items()
    ]
    return found + failures


def _predicted_by(name: str, given: _Given) -> NDArray[Any]:
    if len(given.classes) == 1:
        return np.repeat(given.classes, len(given.test))
    return np.asarray(given.classes[CLASSIFIERS[name][1](given).argmax(axis=1)])


def _most_frequent(train: pd.DataFrame, wanted: NDArray[Any], test: pd.DataFrame) -> NDArray[Any]:
    classes, counts = np.unique(wanted, return_counts=True)
    return np.repeat(classes[counts.argmax()], len(test))


def _predicted(train: pd.DataFrame, wanted: NDArray[Any], test: pd.DataFrame, **settings: Any) -> NDArray[Any]:
    if len(set(wanted)) == 1:  # few rows may be of one class
        return np.repeat(wanted[:1], len(test))
    return np.asarray(fitted(train, wanted, **settings).predict(test))


def folds_of(wanted: NDArray[Any], n_folds: int, seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the training and the held-out rows of each fold, each class dealt out evenly."""
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed % 2**32).split(wanted, wanted))


class _Tested:
    """Test rows, and what the classifier with all features says about them."""

    def __init__(self, features: pd.DataFrame, wanted: NDArray[Any], full: Any, costs: Mapping[str, float]) -> None:
        self._features, self._wanted, self._costs = features, wanted, costs
        self._by_all = full.predict(features)
        self._first: NDArray[np.bool_] | None = None

    def result(self, method: str, model: Any, seconds: float) -> dict[str, Json]:
        """Return how good a model is, and the numbers of rows on which only it, or only the first model, is right."""
        answers = model.predict(self._features)
        right = answers == self._wanted
        first = self._first = right if self._first is None else self._first
        truth = np.searchsorted(model.classes_, self._wanted)
        of_probabilities = measured(truth, model.predict_proba(self._features))
        return {
            "method": method,
            "features": list(model.features_),
            "cost": float(sum(self._costs[name] for name in model.features_)),
            **shares_of(answers == self._by_all, "agreement"),
            **shares_of(right, "accuracy"),
            "n_gained": int((right & ~first).sum()),
            "n_lost": int((first & ~right).sum()),
            # Of decisions at the threshold; confidence and calibration are those of the probabilities.
            **{name: of_probabilities[name] for name in ("log_loss", "calibration", "confidence")},
            "method_seconds": seconds,
        }


def _about(model: Any) -> dict[str, Json]:
    """Return what the search says of a trimming; the blended agreement is cross-fitted on training rows."""
    found, ends = model.trimming_, ("", "_low", "_high")
    of_model = (found.agreement, *found.agreement_interval)
    about: dict[str, Json] = {"is_optimal": bool(found.optimal), "was_stopped": bool(found.may_go_on)}
    about |= {f"model_agreement{end}": value for end, value in zip(ends, of_model, strict=True)}
    rows = found.rows_agreement
    if rows is not None and np.isfinite(rows.value):
        about["rows_weight"] = weight = rows.weight
        for end, ours, others in zip(ends, (rows.value, *rows.interval), of_model, strict=True):
            about |= {f"rows_agreement{end}": ours, f"blended_agreement{end}": weight * ours + (1 - weight) * others}
    return about


def _saved(model: Any) -> Json:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        found: Json = json.loads(path.read_text(encoding="utf-8"))
    return found


# The job of the classifiers with all features, which people use as they come: how accurate they are, and how honest.


class _Given:
    """Rows to learn from with their labels, and rows to test on, which are encoded once for all classifiers."""

    def __init__(self, train: pd.DataFrame, labels: NDArray[Any], test: pd.DataFrame) -> None:
        self.train, self.test = train, test
        self.classes, self.codes = np.unique(labels, return_inverse=True)

    @functools.cached_property
    def encoded(self) -> Encoded:
        return encoded(self.train, self.test)


def _naive_bayes(given: _Given) -> Any:
    return fitted(given.train, given.codes, budget=given.train.shape[1], rows_weight=0).predict_proba(given.test)


def _logistic_regression(given: _Given) -> Any:
    own = given.encoded
    means = np.nanmean(own.train, axis=0)
    filled = [np.where(np.isnan(part), means, part) for part in (own.train, own.test)]
    return fit_logistic_regression(filled[0], given.codes).predict_proba(filled[1])


def _random_forest(given: _Given) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    own = given.encoded
    return RandomForestClassifier(random_state=0).fit(own.train, given.codes).predict_proba(own.test)


def _boosted_trees(given: _Given) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    own = given.encoded
    seen = columns_for_trees(own.train)
    trees = HistGradientBoostingClassifier(random_state=0, max_bins=enough_bins(len(own.train)))
    return trees.fit(own.train[:, seen], given.codes).predict_proba(own.test[:, seen])


CLASSIFIERS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "naive_bayes": ("naive Bayes", _naive_bayes),
    "logistic_regression": ("logistic regression", _logistic_regression),
    "random_forest": ("random forest", _random_forest),
    "boosted_trees": ("boosted trees", _boosted_trees),
}


@job_function
def judge_classifier(table: str, classifier: str, test_share: float, rows: int, seed: int) -> dict[str, Json]:
    """Learn a classifier of all features and all classes, and test it."""
    data = stored_table(table)
    train, test = data.split(test_share, seed, most=rows)
    start = time.perf_counter()
    given = _Given(data.features.iloc[train], data.labels[train], data.features.iloc[test])
    found = CLASSIFIERS[classifier][1](given)
    truth = data.labels[test]
    most_frequent = int(np.bincount(data.labels[train]).argmax())
    return {
        "n_train": len(train),
        "n_test": len(test),
        **measured(truth, found),
        "most_frequent": float((truth == most_frequent).mean()),
        "method_seconds": time.perf_counter() - start,
        "reliability": list(reliability(truth, found)),
    }


# The job of the explanations: which features keep the class of a row.


@job_function
def explain_rows(table: str, n_rows: int, test_share: float, rows: int, seed: int) -> dict[str, Json]:
    """Explain some test rows of each class that is predicted: the surest, the least sure, and others between them."""
    data = stored_table(table)
    train, test = data.split(test_share, seed, most=rows)
    known = _with_values(data.features.iloc[train])
    classes = np.array(data.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierColumnWarning)
        # The explanations are those of one naive Bayes model, whose evidence adds up.
        model = NaiveConformantClassifier(n_components=1, covariance="diagonal")
        model.fit(data.features[known].iloc[train], classes[data.labels[train]])
    features = data.features[known].iloc[test]
    found = model.predict_proba(features)
    explained: list[Json] = []
    for place, label in enumerate(model.classes_):
        own = np.flatnonzero(found.argmax(axis=1) == place)
        own = own[np.argsort(-found[own, place], kind="stable")]
        chosen = own[np.unique(np.linspace(0, len(own) - 1, n_rows).round().astype(int))] if len(own) else own
        stays = model.same_decision_probability(features.iloc[chosen]) if len(chosen) else ()
        for row, stable in zip(chosen.tolist(), stays, strict=True):
            rival = model.classes_[np.argsort(found[row])[-2]]
            one = model.explain(features.iloc[row], against=rival)
            explained.append(
                {
                    "row": int(test[row]),
                    "class": str(classes[data.labels[test[row]]]),
                    "predicted": str(label),
                    "against": str(rival),
                    "probability": float(found[row, place]),
                    "stability": float(stable),
                    "features": [[known[i], _plain(features.iloc[row, i])] for i in one.features],
                    "opposing": [[known[i], _plain(features.iloc[row, i])] for i in one.opposing],
                    "n_support": len(one.support),
                }
            )
    return {"n_train": len(train), "n_test": len(test), "explained": explained}


def _plain(value: object) -> Json:
    return float(value) if isinstance(value, float) else str(value)


# The job of missing features: every method on one random split with one set of masks.

# Test rows whose probability to stay is stated, at most: each takes milliseconds, as long as hundreds of predictions.
STATED_ROWS = 100
_COPIES = 4  # of training rows, each with a mask of its own, for models that are trained with masks


@job_function
def predict_with_gaps(
    table: str,
    missingness: Mapping[str, Json],
    missing: float,
    methods: Sequence[str],
    test_share: float,
    rows: int,
    split: int,
    seed: int,
) -> dict[str, Json]:
    """Hide features of the rows of a random split, and measure the predictions that methods make for its test rows."""
    given = _split(table, test_share, rows, split, seed)
    own, training, truth = given.rows, given.training, given.test_labels
    how = validated(Missingness, missingness, "missingness")
    rng = np.random.default_rng([seed, split, round(1e6 * missing)])
    columns = dict(zip(own.names, own.columns, strict=True))
    both = np.vstack([own.train, own.test])  # NaN where a value is missing anyway
    masked, gaps = hidden_copies(both, len(own.train), _COPIES, columns, given.heights, how, missing, rng)
    found: list[Json] = []
    for name in methods:
        if METHODS[name].uses_masks:
            learned = learn_by(name, replace(training, masked=masked))
        else:
            learned = _learned_once(table, test_share, rows, split, seed, name)
        found.append(_tested(name, learned, own.test, gaps, truth))
    first = [places[0] for places in own.columns]
    return {
        "n_train": len(own.train),
        "n_test": len(own.test),
        "missing_percent": 100.0 * float(np.isnan(gaps[:, first]).mean()),
        "methods": found,
    }


class _Split(NamedTuple):
    """Encoded rows of a random split, what methods learn from, the labels of test rows, and how high values are."""

    rows: Encoded
    training: Training
    test_labels: NDArray[np.int64]
    heights: NDArray[np.float64]


# Most methods learn nothing from what is hidden: all mechanisms and shares have that of a split in common.


@functools.lru_cache(maxsize=1)
def _split(table: str, test_share: float, rows: int, split: int, seed: int) -> _Split:
    data = stored_table(table)
    train, test = (some_rows(part, data.labels, rows, seed) for part in data.split(test_share, seed, split))
    own = encoded(data.features.iloc[train], data.features.iloc[test])
    raw = data.features.iloc[[*train, *test]]
    training = Training(
        own.train,
        data.labels[train],
        own.train,
        len(data.classes),
        own.columns,
        numbers=True,
        inverse_penalty=1.0,
        smoothing=1.0,
        seed=split,
        layout=own.layout,
        most_columns=MOST_COLUMNS,
    )
    return _Split(own, training, data.labels[test], np.stack([_heights(raw[name]) for name in own.names], axis=1))


@functools.lru_cache(maxsize=len(METHODS))
def _learned_once(table: str, test_share: float, rows: int, split: int, seed: int, name: str) -> Learned:
    return learn_by(name, _split(table, test_share, rows, split, seed).training)


def _tested(
    name: str,
    learned: Learned,
    rows: NDArray[np.float64],
    gaps: NDArray[np.float64],
    truth: NDArray[np.int64],
) -> dict[str, Json]:
    """Test what a method learned; where it says which decisions stay, on rows of which all values are known."""
    width = {"n_columns": rows.shape[1]}
    found = {"training": "complete", "method": name, **width, **learned.tested(gaps, truth, _measured_twice)}
    whole = ~np.isnan(rows).any(axis=1)
    predict = learned.predict
    if rows.shape[1] > MOST_COLUMNS:  # the probabilities of so many hidden features take minutes
        return found
    if found["status"] != OK or not isinstance(predict, Conforming) or not predict.states_stability or not whole.any():
        return found
    stays = predict(gaps[whole]).argmax(axis=1) == predict(rows[whole]).argmax(axis=1)
    some = np.random.default_rng(len(stays)).permutation(np.flatnonzero(whole))[
        :STATED_ROWS
    ]  # the same for all methods
    stated = float(predict.stability(gaps[np.sort(some)]).mean())
    return {**found, "stated_stability": stated, **shares_of(stays, "stability")}


def _measured_twice(truth: NDArray[np.int64], probabilities: NDArray[np.float64]) -> dict[str, Json]:
    """Return the measures, and the log loss on either half of the rows: one may choose what the other one tests."""
    order = np.random.default_rng(len(truth)).permutation(len(truth))  # the same for all methods
    halves = [part for part in np.array_split(order, 2) if len(part)]
    return {
        **measured(truth, probabilities),
        "halves": [log_loss(truth[part], probabilities[part]) for part in halves],
    }


def _heights(column: pd.Series) -> NDArray[np.float64]:
    """Return numbers by which values are high or low: codes of categories; the median where one is missing."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    numbers = column.cat.codes.where(column.notna()) if is_category else column
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isnan(values), np.nanmedian(values), values)


# How good predictions are, and how far their confidence can be trusted.

_FEWEST, _MOST_GROUPS = 25, 10


def shares_of(right: NDArray[np.bool_], name: str) -> dict[str, Json]:
    """Return the share of true values with Wilson's 95 % interval, as ``name``, ``name_low`` and ``name_high``."""
    low, high = wilson_interval(float(right.sum()), len(right))
    return {name: float(right.mean()), f"{name}_low": low, f"{name}_high": high}


def measured(truth: NDArray[np.int64], probabilities: NDArray[np.float64]) -> dict[str, Json]:
    """Return accuracy with its interval, log loss, Brier score and calibration error of the predicted class."""
    found = probabilities.argmax(axis=1)
    return {
        **shares_of(found == truth, "accuracy"),
        "log_loss": log_loss(truth, probabilities),
        "brier": brier_score(truth, probabilities),
        "calibration": calibration_error(truth, probabilities),
        "confidence": float(probabilities.max(axis=1).mean()),
    }


def reliability(truth: NDArray[np.int64], probabilities: NDArray[np.float64]) -> list[dict[str, Json]]:
    """Return mean confidence and share of right predictions, with an interval, in up to ten groups of similar size.

    Groups are rows of similar confidence, at least 25 each where there are as many: shares of fewer say little.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == truth
    n_groups = min(max(len(truth) // _FEWEST, 1), _MOST_GROUPS)
    return [
        {"confidence": float(confidence[rows].mean()), "rows": len(rows), **shares_of(right[rows], "right")}
        for rows in np.array_split(np.argsort(confidence, kind="stable"), n_groups)
    ]
