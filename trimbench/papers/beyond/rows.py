"""Selections of features by model, by rows and by labels, each as a trimmed classifier, on a split of a data set."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from trimbench.papers.beyond.budgets import POSITIVE_SIDE, TwoSides, is_exact
from trimbench.papers.trimming.classifiers import NAMES, SIZES, TESTED, LearnedOnSplits, Learning, Split
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import COUNT, POSITIVE, SHARE, TEXT, fields, job, list_of, seed_for, timed
from trimbench.trimming.baselines import information_gains
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import feature_indices
from trimbench.trimming.engines.bounds import CertifiedEngine
from trimbench.trimming.engines.choice import make_engine
from trimbench.trimming.result import Trimming
from trimbench.trimming.trim import trim


@dataclass(frozen=True)
class Task:
    """What a method is given: a classifier, the rows that it was learned from, a budget, and settings."""

    classifier: BayesianClassifier
    split: Split
    learning: Learning
    budget: int
    evaluation_limit: int | None
    n_folds: int
    candidates: Mapping[str, int]


Selected = tuple[BayesianClassifier, Mapping[str, vocab.Json]]


def _by_model(task: Task) -> Selected:
    # The limit is for a search that goes on until the optimum is proven; forward selection always ends soon.
    limit = task.evaluation_limit if is_exact(task.classifier) else None
    return _trimmed(trim(task.classifier, task.budget, evaluation_limit=limit))


def _by_rows(task: Task, weight: float | Literal["auto"] = "auto") -> Selected:
    return _trimmed(trim(task.classifier, task.budget, rows=task.split.train, rows_weight=weight))


def _by_sequential_selection(task: Task) -> Selected:
    """Scikit-learn's forward selection by the cross-validated accuracy of naive Bayes with Laplace smoothing."""
    from sklearn import config_context
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.model_selection import StratifiedKFold
    from sklearn.naive_bayes import CategoricalNB

    names = _most_informative(task.classifier, task.candidates["sequential"])
    sizes = [task.classifier.cardinalities[i] for i in feature_indices(task.classifier.features, names)]
    seed = seed_for(purpose="folds", split=task.learning.split_seed) % 2**32
    # The number of values is the same for all columns, whichever are tried.
    selector = SequentialFeatureSelector(
        CategoricalNB(alpha=task.learning.smoothing, min_categories=max(sizes)),
        n_features_to_select=min(task.budget, len(names) - 1),
        cv=StratifiedKFold(task.n_folds, shuffle=True, random_state=seed),
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):  # hundreds of fits on small tables
        return _selected(task, names, selector, _codes(task, names))


def _by_recursive_elimination(task: Task) -> Selected:
    """Scikit-learn's elimination by the coefficients of logistic regression on the weights of naive Bayes."""
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    names = _most_informative(task.classifier, task.candidates["recursive"])
    tables = [task.classifier.tables[place] for place in feature_indices(task.classifier.features, names)]
    columns = [np.log(table[0] / table[1])[c] for table, c in zip(tables, _codes(task, names).T, strict=True)]
    selector = RFE(LogisticRegression(max_iter=1000), n_features_to_select=task.budget, step=1)
    return _selected(task, names, selector, StandardScaler().fit_transform(np.stack(columns, axis=1)))


# Title in tables and figures, and how the features and the threshold are selected.
METHODS = {
    "model": vocab.Method("model", _by_model),
    "rows": vocab.Method("rows", functools.partial(_by_rows, weight=1.0)),
    "blend": vocab.Method("blend", _by_rows),
    "information_gain": vocab.Method(
        "information gain",
        lambda task: (_restricted(task.classifier, _most_informative(task.classifier, task.budget)), {}),
    ),
    "sequential": vocab.Method("SequentialFeatureSelector", _by_sequential_selection),
    "recursive": vocab.Method("RFE", _by_recursive_elimination),
}


_SELECTED = {"method": TEXT, "features": NAMES, "method_seconds": POSITIVE, **TESTED}
_BOUNDS = ("cross_fitted", "cross_fitted_low", "cross_fitted_high")
_CROSS_FITTED = dict.fromkeys(("rows_weight", *_BOUNDS, "apparent"), SHARE)


_METHODS = (
    fields(**_SELECTED) | fields(**_SELECTED, agreement=SHARE) | fields(**_SELECTED, agreement=SHARE, **_CROSS_FITTED)
)


@job(SIZES | {"budget": COUNT, "methods": list_of(_METHODS)})
def compare_selections(
    learning: Learning, sides: BudgetedProblem, evaluation_limit: int | None, n_folds: int, candidates: dict[str, int]
) -> dict[str, vocab.Json]:
    """Learn a naive Bayes classifier of two groups of classes, select by each of the `METHODS`, and test."""
    split = sides.split(learning)
    classifier = split.learned(POSITIVE_SIDE, learning)
    task = Task(classifier, split, learning, sides.budget, evaluation_limit, n_folds, candidates)
    methods: list[vocab.Json] = []
    for name, method in METHODS.items():
        (trimmed, more), seconds = timed(functools.partial(method.run, task))
        facts: dict[str, vocab.Json] = {"method": name, "features": list(trimmed.features), "method_seconds": seconds}
        methods.append({**facts, **split.tested(classifier, trimmed), **more})
    return {**split.sizes, "budget": sides.budget, "methods": methods}


def _trimmed(trimming: Trimming) -> Selected:
    found = trimming.rows_agreement
    if found is None:
        return trimming.classifier, {"agreement": trimming.agreement}
    values = (found.weight, found.value, *found.interval, found.apparent)
    return trimming.classifier, {"agreement": trimming.agreement, **dict(zip(_CROSS_FITTED, values, strict=True))}


def _restricted(classifier: BayesianClassifier, names: Sequence[str]) -> BayesianClassifier:
    """Return the classifier on some features, with the threshold at which the model's agreement is highest."""
    places = sorted(feature_indices(classifier.features, names))
    if is_exact(classifier):
        threshold = make_engine(classifier).best_cut(places).representative(classifier.threshold)
    else:
        threshold = CertifiedEngine(classifier).agreement(places).threshold
    return classifier.with_features([classifier.features[i] for i in places], threshold)


def _most_informative(classifier: BayesianClassifier, most: int) -> list[str]:
    """Return the features of highest information gain, in the order of the classifier."""
    best = np.argsort(-information_gains(classifier), kind="stable")[:most]
    return [classifier.features[i] for i in sorted(best.tolist())]


def _codes(task: Task, names: Sequence[str]) -> np.ndarray:
    return np.stack([task.split.train[name].cat.codes.to_numpy() for name in names], axis=1)


def _selected(task: Task, names: Sequence[str], selector: Any, table: np.ndarray) -> Selected:
    selector.fit(table, task.split.target.to_numpy(dtype=str))
    chosen = [name for name, kept in zip(names, selector.get_support(), strict=True) if kept]
    return _restricted(task.classifier, chosen), {}


# Agreement on test rows of trimmings by the model, by rows and by a blend of both, against selections by labels.

_ENTRIES = "dataset: ..., positive: [...], negative: [...], budget: ..."
# Tested quantities, each with the title and the name of its table.
_QUANTITIES = {"test_agreement": ("Agreement with the original", ""), "test_accuracy": ("Accuracy", "accuracy")}
_TITLES = {name: method.title for name, method in METHODS.items()}
_WITH_ROWS, _BY_LABELS = ("rows", "blend"), ("information_gain", "sequential", "recursive")


@vocab.settings
class BudgetedProblem(TwoSides):
    """A declared data set, the classes on both sides, and how many features to keep."""

    budget: int


@vocab.settings
class Rows(LearnedOnSplits):
    """Selections of features for naive Bayes classifiers on several splits, tested on held-out rows.

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
        cells = []
        for one in vocab.grid(data=self.datasets, split=range(self.splits)):
            sides = self.problems[one["data"]]
            learning = self.learning(sides.dataset, one["split"], inputs)
            cells.append(vocab.Cell.of(one, compare_selections, self, learning=learning, sides=sides))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return means over the splits, differences from trimming by the model, and what the rows promised."""
        methods = vocab.unpacked(rows, "methods")
        if methods.empty:
            methods = methods.reindex(columns=["method"])
        else:
            methods["selected by"] = methods["method"].map(_TITLES)
            base = methods.loc[methods["method"] == "model", ["data", "split", *_QUANTITIES]]
            methods = methods.merge(base, on=["data", "split"], suffixes=("", _OF_MODEL))
        places = {"data": "data", "features": "n_features", "rows": "n_train", "budget": "budget"}
        by_method = list(vocab.groups(methods, **places, **{"selected by": "selected by"}))
        agreement, accuracy = (
            vocab.Table.of(
                f"{title} on the test rows", [own | _leads(ours, column) for own, ours in by_method], _LEADS, name=name
            )
            for column, (title, name) in _QUANTITIES.items()
        )
        leading = pd.concat([agreement.frame.assign(quantity="agreement"), accuracy.frame.assign(quantity="accuracy")])
        if len(leading):
            leading = leading[leading["selected by"] != _TITLES["model"]]
        promises = vocab.groups(methods[methods["method"].isin(_WITH_ROWS)], "data", "selected by")
        summary = vocab.groups(leading, "quantity", "selected by")
        every = vocab.groups(methods, "data", "split", "selected by")
        summaries = [labels | _summary(ours) for labels, ours in summary]
        promised = [labels | _promise(ours) for labels, ours in promises]
        single = [labels | _single(ours.iloc[0]) for labels, ours in every]
        tables = (
            agreement,
            accuracy,
            vocab.Table.of("Against trimming by the model", summaries, _SUMMARY, name="summary"),
            vocab.Table.of("What the rows promised", promised, _PROMISES, name="promise"),
            vocab.Table.of("Each split", single, _SINGLE, name="splits", listed=False),
        )
        figures = [
            _figure(agreement.frame, _WITH_ROWS, "", "rows and blend"),
            _figure(agreement.frame, _BY_LABELS, "labels", "selections by the class"),
        ]
        return vocab.Outcome(tables, [figure for figure in figures if len(figure.points)])


_OF_MODEL = " of the model"


def _mean(ours: pd.DataFrame, values: pd.Series[float]) -> vocab.Mean:
    """Return a mean over splits, with an interval that accounts for the rows that they share."""
    return vocab.mean_of(values, test_per_train=float(ours["n_test"].iloc[0] / ours["n_train"].iloc[0]))


def _leads(ours: pd.DataFrame, column: str) -> dict[str, object]:
    """Return the mean of a result over the splits, and its lead over trimming by the model on the same."""
    mean, low, high = _mean(ours, ours[column]).with_ends
    # The interval ignores that shares lie between 0 and 1.
    line = {"splits": len(ours), "mean": mean, "low": float(np.maximum(low, 0.0)), "high": float(np.minimum(high, 1.0))}
    if (ours["method"] == "model").all():
        return {**line, **dict.fromkeys(_LEAD)}
    leads = ours[column] - ours[f"{column}{_OF_MODEL}"]
    counts = (int((leads > 0).sum()), int((leads < 0).sum()))
    return {**line, **dict(zip(_LEAD, (*_mean(ours, leads).with_ends, *counts), strict=True))}


_LEAD = ("lead", "lead low", "lead high", "wins", "losses")
_LEADS = {
    **dict.fromkeys(("data", "features", "rows", "budget", "selected by", "splits"), ""),
    **dict.fromkeys(("mean", "low", "high"), ".4f"),
    **dict.fromkeys(_LEAD[:3], "+.4f"),
    **dict.fromkeys(_LEAD[3:], ".0f"),
}


def _summary(ours: pd.DataFrame) -> dict[str, object]:
    """Return how a method compares with trimming by the model on all data sets."""
    return {
        "data sets": len(ours),
        "mean lead": ours["lead"].mean(),
        "ahead": (ours["lead"] > 0).sum(),
        "behind": (ours["lead"] < 0).sum(),
        "certainly ahead": (ours["lead low"] > 0).sum(),
        "certainly behind": (ours["lead high"] < 0).sum(),
        "splits won": int(ours["wins"].sum()),
        "splits lost": int(ours["losses"].sum()),
    }


_SUMMARY = {
    **{"quantity": "", "selected by": "", "data sets": "", "mean lead": "+.4f"},
    **dict.fromkeys(("ahead", "behind", "certainly ahead", "certainly behind", "splits won", "splits lost"), ""),
}


def _promise(ours: pd.DataFrame) -> dict[str, object]:
    """Return what the rows promised of a trimming by them, and what it kept on test rows."""
    optimism, low, high = _mean(ours, ours["cross_fitted"] - ours["test_agreement"]).with_ends
    return {
        "weight of the rows": ours["rows_weight"].mean(),
        "apparent": ours["apparent"].mean(),
        "cross-fitted": ours["cross_fitted"].mean(),
        "test rows": ours["test_agreement"].mean(),
        **{"optimism": optimism, "optimism low": low, "optimism high": high},
    }


_PROMISES = {
    **{"data": "", "selected by": "", "weight of the rows": ".2f"},
    **dict.fromkeys(("apparent", "cross-fitted", "test rows"), ".4f"),
    **dict.fromkeys(("optimism", "optimism low", "optimism high"), "+.4f"),
}


def _single(row: pd.Series[Any]) -> dict[str, object]:
    return {
        "agreement": row["test_agreement"],
        "accuracy": row["test_accuracy"],
        "accuracy of all features": row["full_test_accuracy"],
        "weight of the rows": row["rows_weight"],
        "features": " ".join(row["features"]),
        "seconds": row["method_seconds"],
    }


_SINGLE = {
    **dict.fromkeys(("data", "split", "selected by"), ""),
    **dict.fromkeys(("agreement", "accuracy", "accuracy of all features"), ".4f"),
    **{"weight of the rows": ".2f", "features": "", "seconds": ".2f"},
}


def _figure(table: pd.DataFrame, methods: Sequence[str], name: str, what: str) -> vocab.LineFigure:
    titles = [_TITLES[method] for method in methods]
    points = [
        # Intervals of one data set stand side by side.
        (title, line["rows"] * (1.0 + 0.06 * place), *(line[column] for column in ("lead", "lead low", "lead high")))
        for place, title in enumerate(titles)
        for line in table.to_dict("records")
        if line["selected by"] == title
    ]
    return vocab.LineFigure.of(
        f"Agreement on test rows: {what} against trimming by the model",
        ("number of training rows (one data set each)", "lead in agreement"),
        points,
        name=name,
        levels={"trimming by the model": 0.0},
        marks=dict.fromkeys(titles, "highlight"),
        x_scale="log",
        interval="95 % confidence interval of the mean over splits",
    )
