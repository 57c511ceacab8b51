"""Selections of features by model, by rows and by labels, each as a trimmed classifier, on a split of a data set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.beyond.budgets import POSITIVE, Sides, split_between
from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.execution.job import seed_for
from trimbench.papers.trimming.classifiers import (
    LearnedOnSplits,
    Learning,
    Split,
    check_counts,
    check_problems,
    check_shares,
)
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, check_axis, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import mean_interval
from trimbench.papers.vocabulary.tables import Table
from trimbench.trimming.baselines import information_gains
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.engines.bounds import CertifiedEngine
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.engines.log_odds import MAX_ENTRIES
from trimbench.trimming.model import feature_indices
from trimbench.trimming.result import Trimming
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd


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


Selected = tuple[BayesianClassifier, Mapping[str, Json]]


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
        CategoricalNB(alpha=task.learning["smoothing"], min_categories=max(sizes)),
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


@job_function
def compare_selections(
    learning: Learning,
    sides: Sides,
    budget: int,
    evaluation_limit: int | None,
    n_folds: int,
    candidates: dict[str, int],
) -> dict[str, Json]:
    """Learn a naive Bayes classifier of two groups of classes, select by each of the `METHODS`, and test."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE, learning)
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
    return seed_for(purpose="folds", split=task.learning["split_seed"]) % 2**32


# Agreement on test rows of trimmings by the model, by rows and by a blend of both, against selections by labels.

_ENTRIES = "dataset: ..., positive: [...], negative: [...], budget: ..."
_QUANTITIES = {"agreement": "test_agreement", "accuracy": "test_accuracy"}
_TITLES = {name: title for name, (title, _) in METHODS.items()}
_OTHERS = [name for name in METHODS if name != "model"]
_WITH_ROWS = ("rows", "blend")


@settings
class BudgetedProblem:
    """A declared data set, the classes on both sides, and how many features to keep.

    Rows of other classes are left out. Values in `one_hot` become binary features of their own.
    """

    dataset: str
    positive: list[str]
    negative: list[str]
    budget: int
    one_hot: list[str] = field(default_factory=list)


@settings
class Rows(LearnedOnSplits):
    """Selections of features for naive Bayes classifiers on several splits, tested on rows that none has seen.

    The data sets are names in `problems`. An exact search by the model stops after `evaluation_limit` evaluations.
    `n_folds` is for the accuracy by which scikit-learn's SequentialFeatureSelector selects; it and RFE choose among the
    features of highest information gain, as many as `candidates` says.
    """

    datasets: list[str]
    problems: dict[str, BudgetedProblem]
    splits: int = 10
    n_folds: int = 3
    candidates: dict[str, int] = field(default_factory=lambda: {"sequential": 12, "recursive": 100})
    evaluation_limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis("datasets", self.datasets)
        check_problems("datasets", self.datasets, self.problems, _ENTRIES)
        check_shares(threshold=self.threshold)
        if not self.smoothing:
            raise ValueError(f"smoothing must be a positive number, got {self.smoothing}")
        check_counts(splits=self.splits, evaluation_limit=self.evaluation_limit)
        if self.n_folds < 2:
            raise ValueError(f"n_folds must be 2 or more, got {self.n_folds}")
        if set(self.candidates) != {"sequential", "recursive"}:
            raise ValueError(f"candidates must have the entries sequential and recursive, got {list(self.candidates)}")
        for name in self.datasets:
            budget = self.problems[name].budget
            if not 1 <= budget < min(self.candidates.values()):
                raise ValueError(
                    f"problems.{name}.budget must be 1 or more and below every number in candidates, "
                    f"{self.candidates}, got {budget}"
                )

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set and split."""
        return [
            Cell.of(
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

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return means over the splits, differences from trimming by the model, and what the rows promised."""
        done = successes(rows).to_dict("records")
        groups = [group for name in self.datasets if (group := [row for row in done if row["data"] == name])]
        lines = {
            quantity: [_line(group, method, column) for group in groups for method in METHODS]
            for quantity, column in _QUANTITIES.items()
        }
        tables = (
            Table.of("Agreement with the original on the test rows", lines["agreement"], _FORMATS),
            Table.of("Accuracy on the test rows", lines["accuracy"], _FORMATS, name="accuracy"),
            Table.of("Against trimming by the model", _summary(lines), _SUMMARY_FORMATS, name="summary"),
            Table.of(
                "What the rows promised",
                [_promise(group, method) for group in groups for method in _WITH_ROWS],
                _PROMISE_FORMATS,
                name="promise",
            ),
            Table.of(
                "Each split",
                [_single(row, found) for row in done for found in row["methods"]],
                _SINGLE_FORMATS,
                name="splits",
                listed=False,
            ),
        )
        figures = [_figure(groups, lines["agreement"], _WITH_ROWS, "", "rows and blend")]
        by_labels = [name for name in _OTHERS if name not in _WITH_ROWS]
        figures.append(_figure(groups, lines["agreement"], by_labels, "labels", "selections by the class"))
        return Outcome(tables, [figure for figure in figures if len(figure.points)], (), _NOTES)


def _values(group: Sequence[Mapping[Any, Any]], method: str, column: str) -> list[float]:
    """Return what a method reached on each split of a data set."""
    return [float(found[column]) for row in group for found in row["methods"] if found["method"] == method]


def _line(group: Sequence[Mapping[Any, Any]], method: str, column: str) -> dict[str, object]:
    first = group[0]
    ratio = first["n_test"] / first["n_train"]
    values = _values(group, method, column)
    mean, low, high = mean_interval(values, ratio)
    leads = [ours - base for ours, base in zip(values, _values(group, "model", column), strict=True)]
    lead, lead_low, lead_high = mean_interval(leads, ratio)
    line: dict[str, object] = {
        "data": first["data"],
        "features": first["n_features"],
        "rows": first["n_train"],
        "budget": first["budget"],
        "selected by": _TITLES[method],
        "splits": len(values),
        "mean": mean,
        # The interval does not know that shares end at 0 and 1.
        "low": float(np.maximum(low, 0.0)),
        "high": float(np.minimum(high, 1.0)),
    }
    if method != "model":
        wins, losses = sum(value > 0 for value in leads), sum(value < 0 for value in leads)
        line |= {"lead": lead, "lead low": lead_low, "lead high": lead_high, "wins": wins, "losses": losses}
    return line


def _summary(lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, object]]:
    """Count for each method on how many data sets it is ahead of trimming by the model, and behind."""
    found = []
    for quantity, all_lines in lines.items():
        for method in _OTHERS:
            ours = [line for line in all_lines if line["selected by"] == _TITLES[method]]
            if not ours:
                continue
            leads = [line["lead"] for line in ours]
            found.append(
                {
                    "quantity": quantity,
                    "selected by": _TITLES[method],
                    "data sets": len(ours),
                    "mean lead": float(np.mean(leads)),
                    "ahead": sum(lead > 0 for lead in leads),
                    "behind": sum(lead < 0 for lead in leads),
                    "certainly ahead": sum(line["lead low"] > 0 for line in ours),
                    "certainly behind": sum(line["lead high"] < 0 for line in ours),
                    "splits won": sum(line["wins"] for line in ours),
                    "splits lost": sum(line["losses"] for line in ours),
                }
            )
    return found


def _promise(group: Sequence[Mapping[Any, Any]], method: str) -> dict[str, object]:
    """Compare the estimates on the training rows with the test rows."""
    first = group[0]
    ours = {
        column: _values(group, method, column)
        for column in ("rows_weight", "apparent", "cross_fitted", "test_agreement")
    }
    gaps = [promise - kept for promise, kept in zip(ours["cross_fitted"], ours["test_agreement"], strict=True)]
    gap, low, high = mean_interval(gaps, first["n_test"] / first["n_train"])
    return {
        "data": first["data"],
        "selected by": _TITLES[method],
        "weight of the rows": float(np.mean(ours["rows_weight"])),
        "apparent": float(np.mean(ours["apparent"])),
        "cross-fitted": float(np.mean(ours["cross_fitted"])),
        "test rows": float(np.mean(ours["test_agreement"])),
        "optimism": gap,
        "optimism low": low,
        "optimism high": high,
    }


def _single(row: Mapping[Any, Any], found: Mapping[str, Any]) -> dict[str, object]:
    return {
        "data": row["data"],
        "split": row["split"],
        "selected by": _TITLES[found["method"]],
        "agreement": found["test_agreement"],
        "accuracy": found["test_accuracy"],
        "accuracy of all features": found["full_test_accuracy"],
        "weight of the rows": found.get("rows_weight", math.nan),
        "features": " ".join(found["features"]),
        "seconds": found["method_seconds"],
    }


def _figure(
    groups: Sequence[Sequence[Mapping[Any, Any]]],
    lines: Sequence[Mapping[str, Any]],
    methods: Sequence[str],
    name: str,
    what: str,
) -> LineFigure:
    import pandas as pd

    known = {group[0]["data"] for group in groups}
    points = [
        {
            "series": _TITLES[method],
            # Intervals of one data set stand side by side.
            "x": line["rows"] * (1.0 + 0.06 * place),
            "y": line["lead"],
            "low": line["lead low"],
            "high": line["lead high"],
        }
        for place, method in enumerate(methods)
        for line in lines
        if line["selected by"] == _TITLES[method] and line["data"] in known
    ]
    return LineFigure(
        f"Agreement on test rows: {what} against trimming by the model",
        "number of training rows (one data set each)",
        "lead in agreement",
        pd.DataFrame(points, columns=["series", "x", "y", "low", "high"]),
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
_PROMISE_FORMATS = {
    "data": "",
    "selected by": "",
    "weight of the rows": ".2f",
    **dict.fromkeys(("apparent", "cross-fitted", "test rows"), ".4f"),
    **dict.fromkeys(("optimism", "optimism low", "optimism high"), "+.4f"),
}
_SINGLE_FORMATS = {
    **dict.fromkeys(("data", "split", "selected by"), ""),
    **dict.fromkeys(("agreement", "accuracy", "accuracy of all features"), ".4f"),
    "weight of the rows": ".2f",
    "features": "",
    "seconds": ".2f",
}
_NOTES = (
    "Every method selects at most the same number of features, and its selection is tested as a trimming of the same "
    "naive Bayes classifier. Model, rows and blend choose the threshold along with the features; for the others it is "
    "the threshold at which the model's agreement is highest. Rows are the training rows, without their labels.",
    "The lead is over trimming by the model on the same split. Intervals are 95 % confidence intervals of means over "
    "the splits, widened because random splits share rows (Nadeau and Bengio, 2003); wins and losses count splits. "
    "'Certainly' means that the interval of the lead excludes 0; there is no correction for the number of data sets.",
    "SequentialFeatureSelector adds features to CategoricalNB by cross-validated accuracy; RFE eliminates features by "
    "the coefficients of LogisticRegression on standardised log-likelihood ratios. Both see the labels, and choose "
    "among the features of highest information gain: 12 and 100 by default.",
    "'Apparent' is the agreement on the rows that the selection saw, 'cross-fitted' the one that the trimming itself "
    "reports; 'optimism' is by how much the latter exceeds the agreement on the test rows. It need not be 0: the "
    "classifier was learned from the same rows, and may decide on them more clearly than on new ones.",
)
