"""Selections of features by model, by rows and by labels, each as a trimmed classifier, on a split of a data set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.beyond.budgets import POSITIVE_SIDE, Sides, split_between
from trimbench.papers.execution.job import COUNT, POSITIVE, SHARE, TEXT, fields, job, listed, seed_for
from trimbench.papers.trimming.classifiers import (
    NAMES,
    SIZES,
    TESTED,
    LearnedOnSplits,
    Learning,
    Split,
)
from trimbench.trimming.baselines import information_gains
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.bounds import CertifiedEngine
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES
from trimbench.trimming.model import feature_indices
from trimbench.trimming.result import Trimming
from trimbench.trimming.trim import trim


@dataclass(frozen=True)
class Task:
    """What a method selects for: a classifier, the rows that it was learned from, a budget, and settings."""

    classifier: BayesianClassifier
    split: Split
    learning: Learning
    budget: int
    evaluation_limit: int | None
    n_folds: int
    candidates: Mapping[str, int]


Selected = tuple[BayesianClassifier, Mapping[str, vocab.Json]]


def _by_model(task: Task) -> Selected:
    return _trimmed(trim(task.classifier, task.budget, evaluation_limit=_limit(task)))


def _by_rows(task: Task) -> Selected:
    return _trimmed(trim(task.classifier, task.budget, rows=task.split.train, rows_weight=1.0))


def _by_blend(task: Task) -> Selected:
    return _trimmed(trim(task.classifier, task.budget, rows=task.split.train))


def _by_information_gain(task: Task) -> Selected:
    return _restricted(task.classifier, _most_informative(task, task.budget)), {}


def _by_sequential_selection(task: Task) -> Selected:
    """Scikit-learn's forward selection by the cross-validated accuracy of naive Bayes with Laplace smoothing."""
    from sklearn import config_context
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import CategoricalNB

    names = _most_informative(task, task.candidates["sequential"])
    codes = _codes(task, names)
    sizes = [task.classifier.cardinalities[i] for i in feature_indices(task.classifier.features, names)]
    folds = StratifiedKFold(task.n_folds, shuffle=True, random_state=_seed(task))
    # The number of values is the same for all columns, whichever are tried.
    selector = SequentialFeatureSelector(
        CategoricalNB(alpha=task.learning.smoothing, min_categories=max(sizes)),
        n_features_to_select=min(task.budget, len(names) - 1),
        cv=folds,
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):  # hundreds of fits on small tables
        selector.fit(codes, task.split.target.to_numpy(dtype=str))
    return _restricted(task.classifier, [names[i] for i in np.flatnonzero(selector.get_support())]), {}


def _by_recursive_elimination(task: Task) -> Selected:
    """Scikit-learn's elimination by the coefficients of logistic regression on the weights of naive Bayes."""
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    names = _most_informative(task, task.candidates["recursive"])
    codes = _codes(task, names)
    columns = []
    for place, column in zip(feature_indices(task.classifier.features, names), codes.T, strict=True):
        table = task.classifier.tables[place]
        columns.append(np.log(table[0] / table[1])[column])
    weights = StandardScaler().fit_transform(np.stack(columns, axis=1))
    selector = RFE(LogisticRegression(max_iter=1000), n_features_to_select=task.budget, step=1)
    selector.fit(weights, task.split.target.to_numpy(dtype=str))
    return _restricted(task.classifier, [names[i] for i in np.flatnonzero(selector.get_support())]), {}


# Title in tables and figures, and how the features and the threshold are selected.
METHODS: Mapping[str, tuple[str, Callable[[Task], Selected]]] = {
    "model": ("model", _by_model),
    "rows": ("rows", _by_rows),
    "blend": ("blend", _by_blend),
    "information_gain": ("information gain", _by_information_gain),
    "sequential": ("SequentialFeatureSelector", _by_sequential_selection),
    "recursive": ("RFE", _by_recursive_elimination),
}


_SELECTED = {"method": TEXT, "features": NAMES, "method_seconds": POSITIVE, **TESTED}
_CROSS_FITTED = dict.fromkeys(("rows_weight", "cross_fitted_low", "cross_fitted_high", "apparent"), SHARE)


@job(
    SIZES
    | {
        "budget": COUNT,
        "methods": listed(
            fields(**_SELECTED)
            | fields(**_SELECTED, agreement=SHARE)
            | fields(**_SELECTED, agreement=SHARE, cross_fitted=SHARE, **_CROSS_FITTED)
        ),
    }
)
def compare_selections(
    learning: Learning,
    sides: Sides,
    budget: int,
    evaluation_limit: int | None,
    n_folds: int,
    candidates: dict[str, int],
) -> dict[str, vocab.Json]:
    """Learn a naive Bayes classifier of two groups of classes, select by each of the `METHODS`, and test."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE_SIDE, learning)
    task = Task(classifier, split, learning, budget, evaluation_limit, n_folds, candidates)
    methods = []
    for name, (_, select) in METHODS.items():
        start = time.perf_counter()
        trimmed, more = select(task)
        seconds = time.perf_counter() - start
        tested = split.tested(classifier, trimmed)
        methods.append(
            {"method": name, "features": list(trimmed.features), "method_seconds": seconds, **tested, **more}
        )
    sizes = {"n_features": classifier.n_features, "n_train": len(split.train), "n_test": len(split.test)}
    return {**sizes, "budget": budget, "methods": methods}


def _limit(task: Task) -> int | None:
    """Return the limit of a search that goes on until the optimum is proven; forward selection ends by itself."""
    return task.evaluation_limit if _is_exact(task.classifier) else None


def _trimmed(trimming: Trimming) -> Selected:
    found = trimming.rows_agreement
    if found is None:
        return trimming.classifier, {"agreement": trimming.agreement}
    low, high = found.interval
    return trimming.classifier, {
        "agreement": trimming.agreement,
        "rows_weight": found.weight,
        "cross_fitted": found.value,
        "cross_fitted_low": low,
        "cross_fitted_high": high,
        "apparent": found.apparent,
    }


def _restricted(classifier: BayesianClassifier, names: Sequence[str]) -> BayesianClassifier:
    """Return the classifier on some features, with the threshold at which the model's agreement is highest."""
    places = sorted(feature_indices(classifier.features, names))
    if _is_exact(classifier):
        threshold = make_engine(classifier).best_cut(places).representative(classifier.threshold)
    else:
        threshold = CertifiedEngine(classifier).agreement(places).threshold
    return classifier.with_features([classifier.features[i] for i in places], threshold)


def _is_exact(classifier: BayesianClassifier) -> bool:
    return math.prod(classifier.cardinalities) <= MAX_ENTRIES


def _most_informative(task: Task, most: int) -> list[str]:
    """Return the features of highest information gain, in the order of the classifier."""
    gains = information_gains(task.classifier)
    best = np.sort(np.argsort(-gains, kind="stable")[:most])
    return [task.classifier.features[i] for i in best]


def _codes(task: Task, names: Sequence[str]) -> np.ndarray:
    frame: pd.DataFrame = task.split.train[list(names)]
    return np.stack([frame[name].cat.codes.to_numpy() for name in names], axis=1)


def _seed(task: Task) -> int:
    return seed_for(purpose="folds", split=task.learning.split_seed) % 2**32


# Agreement on test rows of trimmings by the model, by rows and by a blend of both, against selections by labels.

_ENTRIES = "dataset: ..., positive: [...], negative: [...], budget: ..."
_QUANTITIES = {"agreement": "test_agreement", "accuracy": "test_accuracy"}
_TITLES = {name: title for name, (title, _) in METHODS.items()}
_OTHERS = [name for name in METHODS if name != "model"]
_WITH_ROWS = ("rows", "blend")


@vocab.settings
class BudgetedProblem:
    """A declared data set, the classes on both sides, and how many features to keep.

    Rows of other classes are left out. Values in `one_hot` become binary features of their own.
    """

    dataset: str
    positive: list[str]
    negative: list[str]
    budget: int
    one_hot: list[str] = field(default_factory=list)


@vocab.settings
class Rows(LearnedOnSplits):
    """Selections of features for naive Bayes classifiers on several splits, tested on rows that none has seen.

    The data sets are names in `problems`. An exact search by the model stops after `evaluation_limit` evaluations.
    `n_folds` is for the accuracy by which scikit-learn's SequentialFeatureSelector selects; it and RFE choose among the
    features of highest information gain, as many as `candidates` says.
    """

    datasets: vocab.Axis[str]
    problems: dict[str, BudgetedProblem]
    threshold: vocab.Share = 0.5
    smoothing: vocab.Positive = 1.0
    splits: vocab.Count = 10
    n_folds: Annotated[int, vocab.at_least(2)] = 3
    candidates: dict[str, int] = field(default_factory=lambda: {"sequential": 12, "recursive": 100})
    evaluation_limit: vocab.Count | None = None

    def __post_init__(self) -> None:
        vocab.check_names("datasets", self.datasets, self.problems, "problems", _ENTRIES)
        if set(self.candidates) != {"sequential", "recursive"}:
            raise ValueError(f"candidates must have the entries sequential and recursive, got {list(self.candidates)}")
        for name in self.datasets:
            budget = self.problems[name].budget
            if not 1 <= budget < min(self.candidates.values()):
                raise ValueError(
                    f"problems.{name}.budget must be 1 or more and below every number in candidates, "
                    f"{self.candidates}, got {budget}"
                )

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set and split."""
        return [
            vocab.Cell.of(
                {"data": name, "split": split},
                compare_selections,
                learning=self.learning(problem.dataset, split, inputs),
                sides={"positive": problem.positive, "negative": problem.negative, "one_hot": problem.one_hot},
                budget=problem.budget,
                evaluation_limit=self.evaluation_limit,
                n_folds=self.n_folds,
                candidates=self.candidates,
            )
            for name, problem in ((name, self.problems[name]) for name in self.datasets)
            for split in range(self.splits)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return means over the splits, differences from trimming by the model, and what the rows promised."""
        methods = vocab.unpacked(rows, "methods")
        lines = {
            quantity: [_line(labels, ours, methods, column) for labels, ours in vocab.groups(methods, "data", "method")]
            for quantity, column in _QUANTITIES.items()
        }
        with_rows = methods[methods["method"].isin(_WITH_ROWS)] if len(methods) else methods
        promises = vocab.groups(with_rows, "data", **{"selected by": "method"})
        every = [_single(row) for row in methods.to_dict("records")]
        tables = (
            vocab.Table.of("Agreement with the original on the test rows", lines["agreement"], _FORMATS),
            vocab.Table.of("Accuracy on the test rows", lines["accuracy"], _FORMATS, name="accuracy"),
            vocab.Table.of("Against trimming by the model", _summary(lines), _SUMMARY_FORMATS, name="summary"),
            vocab.Table.of_groups("What the rows promised", _titled(promises), _PROMISES, name="promise"),
            vocab.Table.of("Each split", every, _SINGLE_FORMATS, name="splits", listed=False),
        )
        figures = [_figure(lines["agreement"], _WITH_ROWS, "", "rows and blend")]
        by_labels = [name for name in _OTHERS if name not in _WITH_ROWS]
        figures.append(_figure(lines["agreement"], by_labels, "labels", "selections by the class"))
        return vocab.Outcome(tables, [figure for figure in figures if len(figure.points)])


def _titled(
    groups: Iterator[tuple[dict[str, Any], pd.DataFrame]],
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    for labels, ours in groups:
        yield labels | {"selected by": _TITLES[labels["selected by"]]}, ours


def _ratio(ours: pd.DataFrame) -> float:
    """Return the test rows for each training row."""
    return float(ours["n_test"].iloc[0] / ours["n_train"].iloc[0])


def _line(labels: Mapping[str, Any], ours: pd.DataFrame, methods: pd.DataFrame, column: str) -> dict[str, object]:
    """Return the mean of a method over the splits, and its lead over trimming by the model on the same splits."""
    first, found = ours.iloc[0], vocab.mean_of(ours[column], test_per_train=_ratio(ours))
    low, high = found.ends
    line: dict[str, object] = {
        **{"data": labels["data"], "features": first["n_features"], "rows": first["n_train"]},
        **{"budget": first["budget"], "selected by": _TITLES[labels["method"]], "splits": found.n, "mean": found.value},
        # The interval does not know that shares end at 0 and 1.
        **{"low": float(np.maximum(low, 0.0)), "high": float(np.minimum(high, 1.0))},
    }
    if labels["method"] != "model":
        base = methods[(methods["data"] == labels["data"]) & (methods["method"] == "model")]
        leads = ours.set_index("split")[column] - base.set_index("split")[column]
        lead, lead_low, lead_high = vocab.mean_of(leads, test_per_train=_ratio(ours)).with_ends
        line |= {"lead": lead, "lead low": lead_low, "lead high": lead_high}
        line |= {"wins": int((leads > 0).sum()), "losses": int((leads < 0).sum())}
    return line


def _summary(lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[dict[str, object]]:
    """Count for each method on how many data sets it is ahead of trimming by the model, and behind."""
    for quantity, all_lines in lines.items():
        for method in _OTHERS:
            ours = pd.DataFrame([line for line in all_lines if line["selected by"] == _TITLES[method]])
            if len(ours):
                yield {
                    **{"quantity": quantity, "selected by": _TITLES[method], "data sets": len(ours)},
                    **{"mean lead": ours["lead"].mean(), "ahead": (ours["lead"] > 0).sum()},
                    **{"behind": (ours["lead"] < 0).sum(), "certainly ahead": (ours["lead low"] > 0).sum()},
                    "certainly behind": (ours["lead high"] < 0).sum(),
                    **{"splits won": ours["wins"].sum(), "splits lost": ours["losses"].sum()},
                }


def _optimism(ours: pd.DataFrame) -> tuple[float, float, float]:
    """Return by how much the rows promise more than the test rows keep, with the ends of its interval."""
    return vocab.mean_of(ours["cross_fitted"] - ours["test_agreement"], test_per_train=_ratio(ours)).with_ends


_PROMISES = [
    *vocab.means({"weight of the rows": "rows_weight"}, ".2f"),
    *vocab.means({"apparent": "apparent", "cross-fitted": "cross_fitted", "test rows": "test_agreement"}, ".4f"),
    vocab.Column(
        ("optimism", "optimism low", "optimism high"),
        "+.4f",
        lambda ours: (
            vocab.mean_of(ours["cross_fitted"] - ours["test_agreement"], test_per_train=_ratio(ours)).with_ends
        ),
    ),
]


def _single(row: Mapping[Any, Any]) -> dict[str, object]:
    return {
        **{"data": row["data"], "split": row["split"], "selected by": _TITLES[row["method"]]},
        **{"agreement": row["test_agreement"], "accuracy": row["test_accuracy"]},
        "accuracy of all features": row["full_test_accuracy"],
        "weight of the rows": row.get("rows_weight", np.nan),
        **{"features": " ".join(row["features"]), "seconds": row["method_seconds"]},
    }


def _figure(lines: Sequence[Mapping[str, Any]], methods: Sequence[str], name: str, what: str) -> vocab.LineFigure:
    points = [
        # Intervals of one data set stand side by side.
        (title, line["rows"] * (1.0 + 0.06 * place), line["lead"], line["lead low"], line["lead high"])
        for place, title in enumerate(_TITLES[method] for method in methods)
        for line in lines
        if line["selected by"] == title
    ]
    return vocab.LineFigure.of(
        f"Agreement on test rows: {what} against trimming by the model",
        ("number of training rows (one data set each)", "lead in agreement"),
        points,
        name=name,
        levels={"trimming by the model": 0.0},
        marks={_TITLES[method]: "highlight" for method in methods},
        x_scale="log",
        interval="95 % confidence interval of the mean over splits",
    )


_SHARES = dict.fromkeys(("mean", "low", "high"), ".4f")
_LEADS = dict.fromkeys(("lead", "lead low", "lead high"), "+.4f")
_LABELS = dict.fromkeys(("data", "features", "rows", "budget", "selected by", "splits"), "")
_FORMATS = {**_LABELS, **_SHARES, **_LEADS, "wins": ".0f", "losses": ".0f"}
_SUMMARY_FORMATS = {
    **dict.fromkeys(("quantity", "selected by", "data sets"), ""),
    "mean lead": "+.4f",
    **dict.fromkeys(("ahead", "behind", "certainly ahead", "certainly behind", "splits won", "splits lost"), ""),
}
_SINGLE_FORMATS = {
    **dict.fromkeys(("data", "split", "selected by"), ""),
    **dict.fromkeys(("agreement", "accuracy", "accuracy of all features"), ".4f"),
    "weight of the rows": ".2f",
    "features": "",
    "seconds": ".2f",
}
