"""The job of one budget: trimming, and selections by the class beside it, tested on rows that none has seen."""

from __future__ import annotations

import functools
import json
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from trimbench.estimators.trimmed import IdentifierColumnWarning, TrimmedClassifier
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.own_table.measures import measured, shares_of
from trimbench.papers.own_table.stored_table import StoredTable, stored_table

CODE = (
    "trimbench.estimators",
    "trimbench.networks",
    "trimbench.trimming",
    "trimbench.conformant.metrics",
    "trimbench.papers.data.splits",
    "trimbench.papers.own_table.measures",
    "trimbench.papers.own_table.stored_table",
)
# What SequentialFeatureSelector chooses from and fits, which would take minutes with more.
CANDIDATES, SEQUENTIAL_ROWS, FOLDS = 12, 2000, 3
TRIMMING, INFORMATION, SEQUENTIAL = "trimming", "information gain", "SequentialFeatureSelector"


@job_function(code=(*CODE, __name__))
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
    train = data.training_rows(test_share, seed, rows)
    _, test = data.split(test_share, seed)
    answers = data.answers(positive)
    features, wanted = data.features.iloc[train], answers[train]
    start = time.perf_counter()
    price = None if set(costs.values()) == {1.0} else dict(costs)
    trimmed = fitted(features, wanted, budget=budget, costs=price, time_limit=time_limit)
    seconds = time.perf_counter() - start
    full = fitted(features, wanted, budget=len(data.names), rows_weight=0)
    tested = _Tested(data.features.iloc[test], answers[test], full, costs)
    found = [{**_about(trimmed), **tested.result(TRIMMING, trimmed, seconds), "model": _saved(trimmed)}]
    coded = full.discretizer_.transform(features)
    for name, select in (
        (INFORMATION, functools.partial(by_information_gain, coded, wanted, budget, costs)),
        (SEQUENTIAL, functools.partial(by_sequential_selection, coded, wanted, len(trimmed.features_), seed)),
    ):
        try:
            start = time.perf_counter()
            chosen = select()
            seconds = time.perf_counter() - start
            found.append(tested.result(name, keeping(features, wanted, chosen, data), seconds))
        except (ValueError, ArithmeticError, RuntimeError) as error:  # one method must not cost the others
            found.append({"method": name, "failure": f"{type(error).__name__}: {error}".splitlines()[0][:200]})
    return {"n_train": len(train), "n_test": len(test), "n_features": len(data.names), "methods": found}


def fitted(features: pd.DataFrame, wanted: NDArray[Any], **settings: Any) -> Any:
    """Return a fitted `TrimmedClassifier`; what the card says of names of rows needs no further warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierColumnWarning)
        return TrimmedClassifier(**settings).fit(features, wanted)


def keeping(features: pd.DataFrame, wanted: NDArray[Any], chosen: Sequence[str], data: StoredTable) -> Any:
    """Return the classifier that keeps exactly some features, with the threshold that suits them best."""
    others = [name for name in data.names if name not in chosen]
    return fitted(features, wanted, budget=len(data.names), required=chosen, forbidden=others, rows_weight=0)


def by_information_gain(
    coded: pd.DataFrame, wanted: NDArray[Any], budget: float, costs: Mapping[str, float]
) -> list[str]:
    """Return the most informative affordable features, one after the other."""
    left, chosen = budget * (1 + 1e-12), list[str]()
    for name in informative(coded, wanted):
        if costs[name] <= left:
            left -= costs[name]
            chosen.append(name)
    return chosen


def informative(coded: pd.DataFrame, wanted: NDArray[Any]) -> list[str]:
    """Return the columns that are not constant by falling mutual information with the class."""
    from sklearn.metrics import mutual_info_score

    gains = {
        str(name): mutual_info_score(wanted, coded[name].cat.codes)
        for name in coded.columns
        if len(coded[name].unique()) > 1
    }
    return sorted(gains, key=lambda name: -gains[name])


def by_sequential_selection(coded: pd.DataFrame, wanted: NDArray[Any], n_features: int, seed: int) -> list[str]:
    """Return as many features as given by scikit-learn's forward selection for `CategoricalNB`."""
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import CategoricalNB

    everything = informative(coded, wanted)
    if n_features >= len(everything):
        return everything
    names = everything[:CANDIDATES]
    if n_features > len(names):
        raise ValueError(f"it compares the {len(names)} most informative features and cannot take {n_features}")
    if n_features == len(names):
        return names
    rng = np.random.default_rng(seed_for(purpose="sequential", seed=seed))
    rows = np.sort(rng.permutation(len(coded))[:SEQUENTIAL_ROWS])
    codes = np.stack([coded[name].cat.codes.to_numpy()[rows] + 1 for name in names], axis=1)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed % 2**32)
    model = CategoricalNB(min_categories=int(codes.max()) + 1)
    selector = SequentialFeatureSelector(model, n_features_to_select=n_features, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
        selector.fit(codes, wanted[rows])
    return [names[place] for place in np.flatnonzero(selector.get_support())]


class _Tested:
    """Test rows, and what the classifier with all features says of them."""

    def __init__(self, features: pd.DataFrame, wanted: NDArray[Any], full: Any, costs: Mapping[str, float]) -> None:
        self._features, self._wanted, self._costs = features, wanted, costs
        self._by_all = full.predict(features)

    def result(self, method: str, model: Any, seconds: float) -> dict[str, Json]:
        answers = model.predict(self._features)
        truth = np.searchsorted(model.classes_, self._wanted)
        of_probabilities = measured(truth, model.predict_proba(self._features))
        return {
            "method": method,
            "features": list(model.features_),
            "cost": float(sum(self._costs[name] for name in model.features_)),
            **shares_of(answers == self._by_all, "agreement"),
            **shares_of(answers == self._wanted, "accuracy"),
            # Of decisions at the threshold; confidence and calibration are those of the probabilities.
            **{name: of_probabilities[name] for name in ("log_loss", "calibration", "confidence")},
            "method_seconds": seconds,
        }


def _about(model: Any) -> dict[str, Json]:
    """Return what the search says of a trimming; the blended agreement is cross-fitted on training rows."""
    found = model.trimming_
    low, high = found.agreement_interval
    about: dict[str, Json] = {
        "model_agreement": found.agreement,
        "model_agreement_low": low,
        "model_agreement_high": high,
        "is_optimal": bool(found.optimal),
        "was_stopped": bool(found.may_go_on),
    }
    rows = found.rows_agreement
    if rows is None or not np.isfinite(rows.value):
        return about
    weight = rows.weight
    return about | {
        "rows_weight": weight,
        "rows_agreement": rows.value,
        "rows_agreement_low": rows.interval[0],
        "rows_agreement_high": rows.interval[1],
        "blended_agreement": weight * rows.value + (1 - weight) * found.agreement,
        "blended_agreement_low": weight * rows.interval[0] + (1 - weight) * low,
        "blended_agreement_high": weight * rows.interval[1] + (1 - weight) * high,
    }


def _saved(model: Any) -> Json:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        found: Json = json.loads(path.read_text(encoding="utf-8"))
    return found
