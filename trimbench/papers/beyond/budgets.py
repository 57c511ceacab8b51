"""Agreement, accuracy and time against the budget, for trimmings of classifiers learned from data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

import pandas as pd

from trimbench.papers.networks import classifier_of, network_input
from trimbench.papers.trimming.classifiers import NAMES, SIZES, TESTED, TRIMMED, LearnedOnSplits, Learning, Split
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.code_hash import JobFunction
from trimbench.reproduction.execution.job import (
    COUNT,
    FLAG,
    NUMBER,
    POSITIVE,
    SHARE,
    fields,
    job,
    list_of,
    timed,
    timed_warm,
)
from trimbench.trimming.baselines import select_features
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.decisions import feature_indices
from trimbench.trimming.engines.bounds import CertifiedEngine
from trimbench.trimming.engines.choice import EngineName
from trimbench.trimming.engines.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.result import Trimming
from trimbench.trimming.trim import trim, trimming_curve


@vocab.settings
class AccuracyByBudget(LearnedOnSplits):
    """Agreement and accuracy of trimmings of a learned naive Bayes classifier against the budget.

    The threshold applies to the class `positive`, by default the rarer one. A search stops after `evaluation_limit`
    evaluations of the criterion, and its optimality gap is reported.
    """

    datasets: vocab.Axis[str]
    budgets: vocab.Axis[vocab.Natural]
    splits: vocab.Count = 1
    positive: str | None = None
    engine: EngineName = "auto"
    evaluation_limit: vocab.Count | None = None

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, split and budget."""
        return [
            vocab.Cell.of(one, trim_learned, self, learning=self.learning(one["dataset"], one["split"], inputs))
            for one in vocab.grid(dataset=self.datasets, split=range(self.splits), budget=self.budgets)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the means over the splits, and their curves."""
        title = "Trimming learned classifiers: means over the splits"
        lines = [labels | _means(ours) for labels, ours in vocab.groups(rows, "dataset", "budget")]
        table = vocab.Table.of(title, lines, _MEANS)
        return vocab.Outcome(
            (table,), [self._figure(own["dataset"], ours) for own, ours in vocab.groups(rows, "dataset")]
        )

    def _figure(self, dataset: str, done: pd.DataFrame) -> vocab.LineFigure:
        return vocab.LineFigure.of(
            f"{vocab.shown_name(dataset)}: trimming a naive Bayes classifier",
            (_BUDGET, "probability"),
            (
                (series, labels["budget"], ours[column].mean(), ours[column].min(), ours[column].max())
                for labels, ours in vocab.groups(done, "budget")
                for series, column in _CURVES.items()
            ),
            name="" if len(self.datasets) == 1 else dataset,
            levels={"accuracy with all features": float(done["full_test_accuracy"].mean())},
            interval="range over the splits",
        )


def _means(ours: pd.DataFrame) -> dict[str, object]:
    return {
        "splits": len(ours),
        "ECA": ours["agreement"].mean(),
        "largest gap": (ours["upper_bound"] - ours["agreement"]).clip(lower=0).max(),
        "proven": int(ours["optimal"].sum()),
        **{name.replace("_", " "): ours[name].mean() for name in TESTED},
        "evaluations": ours["n_evaluations"].mean(),
        "seconds": ours["method_seconds"].mean(),
    }


_MEANS = {
    **dict.fromkeys(("dataset", "budget", "splits"), ""),
    **{"ECA": ".4f", "largest gap": ".1e", "proven": ""},
    **{name.replace("_", " "): ".4f" for name in TESTED},
    **{"evaluations": ".0f", "seconds": ".2f"},
}
_CURVES = {
    "expected agreement (ECA)": "agreement",
    "agreement on test rows": "test_agreement",
    "accuracy on test rows": "test_accuracy",
}


@job(
    {**TRIMMED, **TESTED, **dict.fromkeys(("n_features", "n_test"), COUNT), "upper_bound": SHARE}
    | dict.fromkeys(("method_seconds", "log2_instances"), POSITIVE)
)
def trim_learned(
    learning: Learning, positive: str | None, budget: float, engine: EngineName, evaluation_limit: int | None
) -> dict[str, vocab.Json]:
    """Learn a naive Bayes classifier on a split of a data set, trim it, and test both."""
    loaded = vocab.dataset_of(learning.dataset)
    split = Split.of(loaded.features, loaded.target, learning)
    rarer = str(loaded.target.value_counts().index[-1])
    classifier = split.learned(positive or rarer, learning)
    trimming, facts = _trimmed(split, classifier, budget, engine, evaluation_limit)
    return {
        "n_features": classifier.n_features,
        "n_test": len(split.test),
        **facts,
        "agreement": trimming.agreement,
        "log2_instances": math.log2(math.prod(classifier.cardinalities)),
    }


def _trimmed(
    split: Split, classifier: BayesianClassifier, budget: float, engine: EngineName, evaluation_limit: int | None
) -> tuple[Trimming, dict[str, vocab.Json]]:
    """Trim a classifier and test both; return the trimming, and what every job returns about it."""
    trimming, seconds = timed_warm(lambda: trim(classifier, budget, engine=engine, evaluation_limit=evaluation_limit))
    return trimming, {
        "features": list(trimming.features),
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        **split.tested(classifier, trimming.classifier),
    }


# Trimming and greedy selection for naive Bayes classifiers with tens to hundreds of features, learned from data.

POSITIVE_SIDE, NEGATIVE_SIDE = "positive", "negative"


@vocab.settings
class TwoSides:
    """A declared data set and the classes on both sides; rows of other classes are left out.

    If `one_hot` is not empty, each feature becomes one binary feature for each of these values.
    """

    dataset: str
    positive: list[str]
    negative: list[str]
    one_hot: list[str] = field(default_factory=list)

    def split(self, learning: Learning) -> Split:
        """Split the rows of both groups of classes, stratified by group."""
        features, target = self.rows(learning.dataset)
        split = Split.of(features, target, learning, stratified=True)
        if values := self.one_hot:
            split = dataclasses.replace(split, train=_one_hot(split.train, values), test=_one_hot(split.test, values))
        return split

    def rows(self, dataset: vocab.Input) -> tuple[pd.DataFrame, pd.Series[Any]]:
        """Return the features of the rows of both groups of classes, and the group of each row."""
        loaded = vocab.dataset_of(dataset)
        groups = {**dict.fromkeys(self.positive, POSITIVE_SIDE), **dict.fromkeys(self.negative, NEGATIVE_SIDE)}
        known = list(loaded.target.cat.categories)
        if unknown := sorted(set(groups) - set(known)):
            raise ValueError(f"positive and negative must be classes of {loaded.name!r}, among {known}, got {unknown}")
        target = pd.Series(loaded.target.astype(str).map(groups), name="class").dropna()
        return loaded.features.loc[target.index], target


def _one_hot(frame: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Return one column for each feature and value: "1" where the feature has it, else "0"."""
    columns = {
        f"{name}={value}": pd.Categorical((frame[name] == value).map({False: "0", True: "1"}), ["0", "1"])
        for name in frame.columns
        for value in values
    }
    return pd.DataFrame(columns, index=frame.index)


def is_exact(classifier: BayesianClassifier) -> bool:
    """Tell whether the log-odds engine can hold all instances of the features."""
    return math.prod(classifier.cardinalities) <= MAX_ENTRIES


@job(
    {**SIZES, **TESTED, "features": NAMES, "agreement_low": SHARE, "agreement_high": SHARE, "upper_bound": SHARE}
    | {"optimal": FLAG, "new_threshold": NUMBER, "n_evaluations": COUNT, "method_seconds": POSITIVE}
)
def trim_many_features(
    learning: Learning, sides: TwoSides, budget: int, evaluation_limit: int | None
) -> dict[str, vocab.Json]:
    """Learn a naive Bayes classifier of two groups of classes and trim it; only exact searches have the limit."""
    split = sides.split(learning)
    classifier = split.learned(POSITIVE_SIDE, learning)
    # The limit is for searches that may go on for hours; forward selection always ends soon.
    limit = evaluation_limit if is_exact(classifier) else None
    trimming, facts = _trimmed(split, classifier, budget, "auto", limit)
    low, high = trimming.agreement_interval
    return {**split.sizes, **facts, "agreement_low": low, "agreement_high": high}


def _by_accuracy(
    classifier: BayesianClassifier, split: Split, learning: Learning, most: int, n_folds: int
) -> Sequence[str]:
    how: dict[str, Any] = {"smoothing": learning.smoothing, "n_folds": n_folds, "random_state": learning.split_seed}
    found = select_features(classifier, most, by="accuracy", rows=split.train, target=split.target, **how)
    return found.features


# Jobs, tables and figures follow from this. A selection takes a classifier, the rows and how it was learned, and the
# numbers of features and of folds. It returns names in order: the first few are the selection for a smaller budget.
BASELINES = {
    "information_gain": vocab.Method(
        "information gain",
        lambda classifier, _, __, most, ___: select_features(classifier, most, by="information_gain").features,
    ),
    "accuracy": vocab.Method("greedy accuracy", _by_accuracy),
}


_BOUNDED = dict.fromkeys((f"{at}_threshold_{end}" for at in ("same", "best") for end in ("low", "high")), SHARE)
_POINT = fields(budget=COUNT, features=NAMES, **_BOUNDED, **TESTED)


@job(SIZES | {"method_seconds": POSITIVE, "points": list_of(_POINT)})
def select_many_features(
    learning: Learning, sides: TwoSides, budgets: list[int], method: str, n_folds: int
) -> dict[str, vocab.Json]:
    """Learn the classifier of `trim_many_features` and select features by one of the `BASELINES`, for all budgets."""
    split = sides.split(learning)
    classifier = split.learned(POSITIVE_SIDE, learning)
    most = min(max(budgets), classifier.n_features)
    selected, seconds = timed(lambda: BASELINES[method].run(classifier, split, learning, most, n_folds))
    points = [{"budget": budget, **_selection(split, classifier, selected[:budget])} for budget in budgets]
    return {**split.sizes, "method_seconds": seconds, "points": points}


def _selection(split: Split, classifier: BayesianClassifier, kept: Sequence[str]) -> dict[str, vocab.Json]:
    """Bound the agreement of selected features at the same threshold and at the best one, and test them."""
    places, threshold = feature_indices(classifier.features, kept), classifier.threshold
    if is_exact(classifier):
        engine = LogOddsEngine(classifier)
        same, best = (engine.agreement(places, threshold),) * 2, (engine.best_cut(places).agreement,) * 2
    else:
        certified = CertifiedEngine(classifier)
        at_same = certified.agreement(places, threshold)
        same = (at_same.low, at_same.high)
        best = (certified.agreement(places).low, certified.highest_agreement(places))
    bounds = dict(zip(_BOUNDED, (*same, *best), strict=True))
    tested = split.tested(classifier, classifier.with_features(kept, threshold))
    return {"features": list(kept), **bounds, **tested}


# Trimming far beyond the paper's 19 features: time, optimality gap and baselines against the number of features.

# The result of a baseline, and its column: the upper bound, so that a trimming above it is certainly better.
_BEST = "{}, best T'"
_BOUNDS = {"same_threshold_high": "{}, same T", "best_threshold_high": _BEST}
_TESTED = {"test_agreement": "agreement, {}", "test_accuracy": "accuracy, {}"}
_ENTRIES = "dataset: ..., positive: [...], negative: [...]"


@vocab.settings
class Scaling(LearnedOnSplits):
    """Trimmings of naive Bayes classifiers with many features, against other selections of features.

    The data sets are names in `problems`; the tables show the `budgets` below the number of features. An exact search
    stops after `evaluation_limit` evaluations; classifiers too large for one are not searched exactly. `n_folds` is for
    the accuracy by which a baseline selects.
    """

    datasets: vocab.Axis[str]
    problems: dict[str, TwoSides]
    budgets: vocab.Axis[vocab.Count]
    threshold: vocab.Share = 0.5
    smoothing: vocab.Positive = 1.0
    n_folds: Annotated[int, vocab.at_least(2)] = 10
    evaluation_limit: vocab.Count | None = None

    def __post_init__(self) -> None:
        vocab.check_names("datasets", self.datasets, self.problems, "problems", _ENTRIES)

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set and budget, and one for each data set and baseline."""
        calls: list[tuple[str, int, JobFunction]] = [("trimming", one, trim_many_features) for one in self.budgets]
        calls += [(method, 0, select_many_features) for method in BASELINES]
        return [
            vocab.Cell.of(
                {"data": name, "method": method, "budget": budget},
                function,
                self,
                learning=self.learning(sides.dataset, 0, inputs),
                sides=sides,
            )
            for name, sides in ((name, self.problems[name]) for name in self.datasets)
            for method, budget, function in calls
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the certified agreement of all methods, their test results, and time and gap against the budget."""
        done = vocab.successes(rows)
        is_trimming = done["method"] == "trimming"
        trimmed = _beside(done[is_trimming], vocab.unpacked(done[~is_trimming], "points"))
        by_budget = list(vocab.groups(trimmed, "data", features="n_features", budget="budget"))
        lines = [labels | _certified(ours.iloc[0]) for labels, ours in by_budget]
        main = vocab.Table.of("Agreement with the original, certified", lines, _CERTIFIED)
        tests = [{"data": own["data"], "budget": own["budget"], **_tested(ours.iloc[0])} for own, ours in by_budget]
        seconds = [
            (row["data"], row["n_features"], by.title, row["method_seconds"])
            for method, by in BASELINES.items()
            for row in done[done["method"] == method].to_dict("records")
        ]
        title = "Seconds of the baselines, for all budgets together"
        tables = (
            main,
            vocab.Table.of("Agreement and accuracy on the test rows", tests, _ON_TEST_ROWS, name="test"),
            vocab.Table.of(
                title, seconds, {"data": "", "features": "", "method": "", "seconds": ".2f"}, name="baselines"
            ),
        )
        figures = [_agreement_figure(label, main.frame[main.frame["data"] == label]) for label in self.datasets]
        figures += [
            _against_budget("gap", "Optimality gap of the trimming", "optimality gap", main.frame),
            _against_budget("seconds", "Time of one trimming", "seconds", main.frame, y_scale="log"),
        ]
        return vocab.Outcome(tables, [figure for figure in figures if len(figure.points)])


def _beside(trimmed: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """Return the trimmings to fewer features than there are, and what each baseline reaches with the same budget."""
    entries = [*_BOUNDS, *_TESTED, "features"]
    for method in BASELINES if len(trimmed) else ():
        own = points.reindex(columns=["data", "method", "budget", *entries])
        own = own[own["method"] == method].drop(columns="method")
        names = {entry: f"{method}_{entry}" for entry in entries}
        trimmed = trimmed.reset_index(drop=True).merge(own.rename(columns=names), on=["data", "budget"], how="left")
    return trimmed[trimmed["budget"] < trimmed["n_features"]] if len(trimmed) else trimmed


def _shared(row: pd.Series[Any]) -> str:
    kept, selected = row["features"], row["information_gain_features"]
    return f"{len(set(kept) & set(selected))} of {len(kept)}" if isinstance(selected, list) else ""


def _of_baselines(titles: Mapping[str, str]) -> dict[str, str]:
    """Return the results of the baselines by title; `titles` names the column of each quantity."""
    return {
        title.format(by.title): f"{method}_{quantity}"
        for method, by in BASELINES.items()
        for quantity, title in titles.items()
    }


def _agreement_figure(label: str, lines: pd.DataFrame) -> vocab.LineFigure:
    points = [
        (series, budget, 1.0 - agreement)
        for series, column in {"trimming": "trimming", **{title: _BEST.format(title) for title in _TITLES}}.items()
        for budget, agreement in zip(lines["budget"], lines[column], strict=True)
        if not math.isnan(agreement)
    ]
    # Agreements of 0.99 and 0.999 look alike; a logarithm tells them apart, but has no place for 1.
    some_agree_always = any(y <= 0 for _, _, y in points)
    features = f", {lines['features'].iloc[0]} features" if len(lines) else ""
    return vocab.LineFigure.of(
        f"{vocab.shown_name(label)}: trimming a naive Bayes classifier{features}",
        (_BUDGET, "disagreement (1 − ECA), best threshold"),
        points,
        name=label,
        x_scale="log",
        y_scale="linear" if some_agree_always else "log",
        methods={title: _BEST.format(title) for title in _TITLES},
    )


def _against_budget(column: str, title: str, y_label: str, lines: pd.DataFrame, **how: Any) -> vocab.LineFigure:
    points = [
        (f"{vocab.shown_name(line['data'])}, {line['features']} features", line["budget"], line[column])
        for line in lines.to_dict("records")
    ]
    return vocab.LineFigure.of(title, (_BUDGET, y_label), points, name=column, x_scale="log", **how)


_BUDGET = "budget (number of features kept)"
_TITLES = [baseline.title for baseline in BASELINES.values()]
_BOUNDS_OF_BASELINES, _TESTED_OF_BASELINES = _of_baselines(_BOUNDS), _of_baselines(_TESTED)


def _certified(row: pd.Series[Any]) -> dict[str, object]:
    """Return what is known of a trimming, and what the baselines reach with the same budget."""
    return {
        "trimming": row["agreement_low"],
        "interval width": row["agreement_high"] - row["agreement_low"],
        "gap": max(0.0, row["upper_bound"] - row["agreement_low"]),
        "proven": "yes" if row["optimal"] else "no",
        "shared with information gain": _shared(row),
        **{title: row[result] for title, result in _BOUNDS_OF_BASELINES.items()},
        "evaluations": row["n_evaluations"],
        "seconds": row["method_seconds"],
    }


_CERTIFIED = {
    **dict.fromkeys(("data", "features", "budget"), ""),
    **{"trimming": ".6f", "interval width": ".1e", "gap": ".1e", "proven": "", "shared with information gain": ""},
    **dict.fromkeys(_BOUNDS_OF_BASELINES, ".6f"),
    **{"evaluations": "", "seconds": ".2f"},
}


def _tested(row: pd.Series[Any]) -> dict[str, object]:
    return {
        "accuracy of all features": row["full_test_accuracy"],
        **{title.format("trimming"): row[result] for result, title in _TESTED.items()},
        **{title: row[result] for title, result in _TESTED_OF_BASELINES.items()},
    }


_ON_TEST_ROWS = {
    **dict.fromkeys(("data", "budget"), ""),
    "accuracy of all features": ".4f",
    **dict.fromkeys((title.format("trimming") for title in _TESTED.values()), ".4f"),
    **dict.fromkeys(_TESTED_OF_BASELINES, ".4f"),
}


# Best agreement against the budget, for all budgets of a declared network classifier at once.


@vocab.settings
class AgreementByBudget:
    """Best agreement against the number of kept features, for networks and thresholds.

    The networks must be small enough for the dense engine. The class node `target` and its state `positive` replace the
    declared ones, and are needed where none are declared.
    """

    networks: vocab.Axis[str]
    thresholds: vocab.Axis[vocab.Threshold]
    target: str | None = None
    positive: str | None = None

    def __post_init__(self) -> None:
        if (self.target is None) != (self.positive is None):
            raise ValueError(f"target and positive must be given together, got {self.target!r} and {self.positive!r}")

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each network and threshold."""
        return [
            vocab.Cell.of(one, trim_to_every_budget, self, network=network_input(inputs, one["network"]))
            for one in vocab.grid(network=self.networks, threshold=self.thresholds)
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the curves as one table and a figure for each network."""
        lines = [
            (*(point[entry] for entry in _BUDGET_ENTRIES), " ".join(point["features"]))
            for point in vocab.unpacked(rows, "points").to_dict("records")
        ]
        every = vocab.Table.of("Best agreement for each budget", lines, _BUDGET_FORMATS, name="budgets", listed=False)
        reached = [
            labels
            | {"features": int(ours["budget"].max())}
            | {title: int(ours["budget"][ours["ECA"] >= level - _EQUAL].min()) for title, level in _LEVELS.items()}
            for labels, ours in vocab.groups(every.frame, "network", "T")
        ]
        columns = {"network": "", "T": ".2f", "features": "", **dict.fromkeys(_LEVELS, "")}
        smallest = vocab.Table.of("Smallest budget for an agreement", reached, columns)
        figures = [self._figure(name, every.frame[every.frame["network"] == name]) for name in self.networks]
        return vocab.Outcome((smallest, every), figures)

    def _figure(self, network: str, lines: pd.DataFrame) -> vocab.LineFigure:
        return vocab.LineFigure.of(
            f"{vocab.shown_name(network)}: best trimmings",
            (_BUDGET, "agreement (ECA)"),
            zip([f"T = {level:g}" for level in lines["T"]], lines["budget"], lines["ECA"], strict=True),
            name="" if len(self.networks) == 1 else network,
        )


_LEVELS = {f"ECA >= {level:g}": level for level in (0.9, 0.95, 0.99, 1.0)}
_BUDGET_ENTRIES = ("network", "threshold", "budget", "agreement", "new_threshold")
_BUDGET_FORMATS = {"network": "", "T": ".2f", "budget": "", "ECA": ".4f", "T'": ".4f", "kept": ""}
# Agreements that differ by less are equal: they are exact up to rounding.
_EQUAL = 1e-9


@job(n_features=COUNT, points=list_of(fields(budget=COUNT, agreement=SHARE, new_threshold=NUMBER, features=NAMES)))
def trim_to_every_budget(
    network: vocab.Input, target: str | None, positive: str | None, threshold: float
) -> dict[str, vocab.Json]:
    """Find the best trimming of a network input for each number of features.

    The class and its positive state are the declared ones by default.
    """
    classifier = classifier_of(network, threshold, target, positive)
    trimmings = trimming_curve(classifier, range(classifier.n_features + 1))
    return {
        "n_features": classifier.n_features,
        "points": [
            {"budget": budget, "agreement": one.agreement, "new_threshold": one.threshold, "features": [*one.features]}
            for budget, one in enumerate(trimmings)
        ],
    }
