"""Agreement, accuracy and time against the budget, for trimmings of classifiers learned from data."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from trimbench.papers.execution.code_hash import JobFunction, job_function
from trimbench.papers.trimming.classifiers import (
    LearnedOnSplits,
    Learning,
    Split,
    check_counts,
    check_problems,
    check_shares,
    check_thresholds,
    network_classifier,
)
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, check_axis, successes
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.inputs import Inputs, dataset_of
from trimbench.papers.vocabulary.tables import Table, shown_name
from trimbench.trimming.baselines import select_by_accuracy, select_by_information_gain
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.curve import trimming_curve
from trimbench.trimming.engines.bounds import CertifiedEngine
from trimbench.trimming.engines.choice import EngineName
from trimbench.trimming.engines.log_odds import MAX_ENTRIES, LogOddsEngine
from trimbench.trimming.model import feature_indices
from trimbench.trimming.trim import trim

if TYPE_CHECKING:
    import pandas as pd


@settings
class AccuracyByBudget(LearnedOnSplits):
    """Agreement and accuracy of trimmings of a learned naive Bayes classifier against the budget.

    The threshold applies to the class `positive`, by default the rarer one. A search stops after `evaluation_limit`
    evaluations of the criterion, and its optimality gap is reported.
    """

    datasets: list[str]
    budgets: list[int]
    splits: int = 1
    positive: str | None = None
    engine: EngineName = "auto"
    evaluation_limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis("datasets", self.datasets)
        check_axis("budgets", self.budgets)
        if min(self.budgets) < 0:
            raise ValueError(f"budgets must be 0 or more, got {self.budgets}")
        check_counts(splits=self.splits, evaluation_limit=self.evaluation_limit)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set, split and budget."""
        return [
            Cell.of(
                {"dataset": dataset, "split": split, "budget": budget},
                trim_learned,
                learning=self.learning(dataset, split, inputs),
                positive=self.positive,
                budget=budget,
                engine=self.engine,
                evaluation_limit=self.evaluation_limit,
            )
            for dataset in self.datasets
            for split in range(self.splits)
            for budget in self.budgets
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the splits, and their curves."""
        done = successes(rows)
        lines = [
            _line(dataset, budget, group)
            for dataset in self.datasets
            for budget in self.budgets
            if len(group := done[(done["dataset"] == dataset) & (done["budget"] == budget)])
        ]
        table = Table.of("Trimming learned classifiers: means over the splits", lines, _FORMATS)
        figures = [
            self._figure(dataset, ours) for dataset in self.datasets if len(ours := done[done["dataset"] == dataset])
        ]
        return Outcome((table,), figures, (), _NOTES)

    def _figure(self, dataset: str, done: pd.DataFrame) -> LineFigure:
        import pandas as pd

        points = [
            {"series": series, "x": budget, "y": values.mean(), "low": values.min(), "high": values.max()}
            for budget in self.budgets
            for series, column in _CURVES.items()
            if len(values := done[column][done["budget"] == budget])
        ]
        return LineFigure(
            f"{shown_name(dataset)}: trimming a naive Bayes classifier",
            "budget (number of features kept)",
            "probability",
            pd.DataFrame(points),
            name="" if len(self.datasets) == 1 else dataset,
            levels={"accuracy with all features": float(done["full_test_accuracy"].mean())},
            interval="range over the splits",
        )


def _line(dataset: str, budget: int, group: pd.DataFrame) -> dict[str, object]:
    gap = (group["upper_bound"] - group["agreement"]).clip(lower=0)
    return {
        "dataset": dataset,
        "budget": budget,
        "splits": len(group),
        "ECA": group["agreement"].mean(),
        "largest gap": gap.max(),
        "proven": int(group["optimal"].sum()),
        "test agreement": group["test_agreement"].mean(),
        "test accuracy": group["test_accuracy"].mean(),
        "full test accuracy": group["full_test_accuracy"].mean(),
        "evaluations": group["n_evaluations"].mean(),
        "seconds": group["method_seconds"].mean(),
    }


_CURVES = {
    "expected agreement (ECA)": "agreement",
    "agreement on test rows": "test_agreement",
    "accuracy on test rows": "test_accuracy",
}
_FORMATS = {
    "dataset": "",
    "budget": "",
    "splits": "",
    "ECA": ".4f",
    "largest gap": ".1e",
    "proven": "",
    **dict.fromkeys(("test agreement", "test accuracy", "full test accuracy"), ".4f"),
    "evaluations": ".0f",
    "seconds": ".2f",
}
_NOTES = (
    "The ECA of each trimming is exact; 'largest gap' bounds how much better any trimming within the budget could be, "
    "and 'proven' counts the splits whose trimming is proven optimal.",
    "Bars in the figure span the splits.",
)


@job_function
def trim_learned(
    learning: Learning, positive: str | None, budget: float, engine: EngineName, evaluation_limit: int | None
) -> dict[str, Json]:
    """Learn a naive Bayes classifier on a split of a data set, trim it, and test both."""
    loaded = dataset_of(learning["dataset"])
    split = Split.of(loaded.features, loaded.target, learning)
    rarer = str(loaded.target.value_counts().index[-1])
    classifier = split.learned(positive or rarer, learning)
    start = time.perf_counter()
    trimming = trim(classifier, budget, engine=engine, evaluation_limit=evaluation_limit)
    seconds = time.perf_counter() - start
    return {
        "n_features": classifier.n_features,
        "n_test": len(split.test),
        "features": list(trimming.features),
        "agreement": trimming.agreement,
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        **split.tested(classifier, trimming.classifier),
        "log2_instances": math.log2(math.prod(classifier.cardinalities)),
    }


# Trimming and greedy selection for naive Bayes classifiers with tens to hundreds of features, learned from data.

POSITIVE, NEGATIVE = "positive", "negative"


class Sides(TypedDict):
    """Which classes make up the positive and the negative class, and values that become features of their own.

    Rows of other classes are left out. Where `one_hot` is not empty, each feature becomes one binary feature for each
    of these values.
    """

    positive: Sequence[str]
    negative: Sequence[str]
    one_hot: Sequence[str]


@job_function
def trim_many_features(learning: Learning, sides: Sides, budget: int, evaluation_limit: int | None) -> dict[str, Json]:
    """Learn a naive Bayes classifier of two groups of classes and trim it; the limit is that of an exact search."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE, learning)
    # The limit is for searches that may go on for hours; forward selection ends by itself.
    limit = evaluation_limit if _is_exact(classifier) else None
    start = time.perf_counter()
    trimming = trim(classifier, budget, evaluation_limit=limit)
    seconds = time.perf_counter() - start
    low, high = trimming.agreement_interval
    return {
        **_sizes(classifier, split),
        "features": list(trimming.features),
        "agreement_low": low,
        "agreement_high": high,
        "upper_bound": trimming.upper_bound,
        "optimal": trimming.optimal,
        "new_threshold": trimming.threshold,
        "n_evaluations": trimming.n_evaluations,
        "method_seconds": seconds,
        **split.tested(classifier, trimming.classifier),
    }


@dataclass(frozen=True)
class Learned:
    """A learned classifier, its rows, and how it was learned; `n_folds` is that of cross-validation."""

    classifier: BayesianClassifier
    split: Split
    learning: Learning
    n_folds: int


@dataclass(frozen=True)
class Baseline:
    """A selection of features to compare trimming with: its name in tables, and how it selects a number of features.

    `select` returns names in the order of selection, of which the first few are the selection for a smaller budget.
    """

    title: str
    select: Callable[[Learned, int], Sequence[str]]


def _by_information_gain(learned: Learned, most: int) -> Sequence[str]:
    return select_by_information_gain(learned.classifier, most)


def _by_accuracy(learned: Learned, most: int) -> Sequence[str]:
    return select_by_accuracy(
        learned.split.train,
        learned.split.target,
        most,
        positive=POSITIVE,
        threshold=learned.learning["threshold"],
        n_folds=learned.n_folds,
        rng=np.random.default_rng(learned.learning["split_seed"]),
        smoothing=learned.learning["smoothing"],
    )


# Jobs, tables and figures follow from this.
BASELINES: Mapping[str, Baseline] = {
    "information_gain": Baseline("information gain", _by_information_gain),
    "accuracy": Baseline("greedy accuracy", _by_accuracy),
}


@job_function
def select_many_features(
    learning: Learning, sides: Sides, budgets: list[int], method: str, n_folds: int
) -> dict[str, Json]:
    """Learn the classifier of `trim_many_features` and select features by one of the `BASELINES`, for all budgets."""
    split = split_between(learning, sides)
    classifier = split.learned(POSITIVE, learning)
    most = min(max(budgets), classifier.n_features)
    start = time.perf_counter()
    selected = BASELINES[method].select(Learned(classifier, split, learning, n_folds), most)
    seconds = time.perf_counter() - start
    points = [{"budget": budget, **_selection(split, classifier, selected[:budget])} for budget in budgets]
    return {**_sizes(classifier, split), "method_seconds": seconds, "points": points}


def split_between(learning: Learning, sides: Sides) -> Split:
    """Split the rows of both groups of classes, each in proportion."""
    import pandas as pd

    loaded = dataset_of(learning["dataset"])
    groups = {**dict.fromkeys(sides["positive"], POSITIVE), **dict.fromkeys(sides["negative"], NEGATIVE)}
    known = list(loaded.target.cat.categories)
    if unknown := sorted(set(groups) - set(known)):
        raise ValueError(f"positive and negative must be classes of {loaded.name!r}, among {known}, got {unknown}")
    target = pd.Series(loaded.target.astype(str).map(groups), name="class").dropna()
    split = Split.of(loaded.features.loc[target.index], target, learning, stratified=True)
    if values := sides["one_hot"]:
        split = dataclasses.replace(split, train=_one_hot(split.train, values), test=_one_hot(split.test, values))
    return split


def _one_hot(frame: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Return one column for each feature and value: "1" where the feature has it, else "0"."""
    import pandas as pd

    columns = {
        f"{name}={value}": pd.Categorical((frame[name] == value).map({False: "0", True: "1"}), ["0", "1"])
        for name in frame.columns
        for value in values
    }
    return pd.DataFrame(columns, index=frame.index)


def _sizes(classifier: BayesianClassifier, split: Split) -> dict[str, int]:
    return {"n_features": classifier.n_features, "n_train": len(split.train), "n_test": len(split.test)}


def _selection(split: Split, classifier: BayesianClassifier, kept: Sequence[str]) -> dict[str, Json]:
    """Bound the agreement of selected features at the same threshold and at the best one, and test them."""
    places = feature_indices(classifier.features, kept)
    threshold = classifier.threshold
    if _is_exact(classifier):
        engine = LogOddsEngine(classifier)
        same_low = same_high = engine.agreement(places, threshold)
        best_low = best_high = engine.best_cut(places).agreement
    else:
        certified = CertifiedEngine(classifier)
        same, best = certified.agreement(places, threshold), certified.agreement(places)
        same_low, same_high = same.low, same.high
        best_low, best_high = best.low, certified.highest_agreement(places)
    return {
        "features": list(kept),
        "same_threshold_low": same_low,
        "same_threshold_high": same_high,
        "best_threshold_low": best_low,
        "best_threshold_high": best_high,
        **split.tested(classifier, classifier.with_features(kept, threshold)),
    }


def _is_exact(classifier: BayesianClassifier) -> bool:
    return math.prod(classifier.cardinalities) <= MAX_ENTRIES


# Trimming far beyond the paper's 19 features: time, optimality gap and baselines against the number of features.

# What a baseline reaches, and its column. The upper bound: a trimming that is above it is certainly better.
_BEST = "{}, best T'"
_BOUNDS = {"same_threshold_high": "{}, same T", "best_threshold_high": _BEST}
_TESTED = {"test_agreement": "agreement, {}", "test_accuracy": "accuracy, {}"}
_ENTRIES = "dataset: ..., positive: [...], negative: [...]"
_Selections = Mapping[tuple[str, str, int], Mapping[str, Any]]


@settings
class TwoSides:
    """A declared data set and the classes on both sides; others are left out.

    Values in `one_hot` become binary features of their own.
    """

    dataset: str
    positive: list[str]
    negative: list[str]
    one_hot: list[str] = field(default_factory=list)


@settings
class Scaling(LearnedOnSplits):
    """Trimmings of naive Bayes classifiers with many features, against other selections of features.

    The data sets are names in `problems`; the `budgets` below the number of features are run. An exact search stops
    after `evaluation_limit` evaluations; classifiers too large for it are not searched exactly. `n_folds` is for the
    accuracy by which a baseline selects.
    """

    datasets: list[str]
    problems: dict[str, TwoSides]
    budgets: list[int]
    n_folds: int = 10
    evaluation_limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis("datasets", self.datasets)
        check_problems("datasets", self.datasets, self.problems, _ENTRIES)
        check_axis("budgets", self.budgets)
        if min(self.budgets) < 1:
            raise ValueError(f"budgets must be numbers of features, 1 or more, got {self.budgets}")
        check_shares(threshold=self.threshold)
        if not self.smoothing:
            raise ValueError(f"smoothing must be a positive number, got {self.smoothing}")
        check_counts(evaluation_limit=self.evaluation_limit)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set and budget, and one for each data set and baseline."""
        calls: list[tuple[str, int, JobFunction, dict[str, object]]] = [
            ("trimming", budget, trim_many_features, {"budget": budget, "evaluation_limit": self.evaluation_limit})
            for budget in self.budgets
        ]
        baseline = {"budgets": self.budgets, "n_folds": self.n_folds}
        calls += [(method, 0, select_many_features, {"method": method, **baseline}) for method in BASELINES]
        return [
            Cell.of(
                {"data": name, "method": method, "budget": budget},
                function,
                learning=self.learning(problem.dataset, 0, inputs),
                sides={"positive": problem.positive, "negative": problem.negative, "one_hot": problem.one_hot},
                **own,
            )
            for name, problem in ((name, self.problems[name]) for name in self.datasets)
            for method, budget, function, own in calls
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the certified agreement of all methods, their test results, and time and gap against the features."""
        done = successes(rows).to_dict("records")
        trimmed = [row for row in done if row["method"] == "trimming" and row["budget"] < row["n_features"]]
        selections = {
            (row["data"], row["method"], point["budget"]): point
            for row in done
            if row["method"] in BASELINES
            for point in row["points"]
        }
        main = Table.of(
            "Agreement with the original, certified",
            [_line_scaling(row, selections) for row in trimmed],
            _FORMATS_SCALING,
        )
        tests = [_test_line(row, selections) for row in trimmed]
        seconds = [
            {"data": row["data"], "features": row["n_features"], "method": by.title, "seconds": row["method_seconds"]}
            for method, by in BASELINES.items()
            for row in done
            if row["method"] == method
        ]
        tables = (
            main,
            Table.of("Agreement and accuracy on the test rows", tests, _TEST_FORMATS, name="test"),
            Table.of("Seconds of the baselines, for all budgets together", seconds, _SECONDS_FORMATS, name="baselines"),
        )
        figures = [_agreement_figure(label, main.frame[main.frame["data"] == label]) for label in self.datasets]
        figures += [
            _against_features("gap", "Optimality gap of the trimming", "optimality gap", main.frame),
            _against_features("seconds", "Time of one trimming", "seconds", main.frame, "log"),
        ]
        return Outcome(tables, [figure for figure in figures if len(figure.points)], (), _NOTES_SCALING)


def _line_scaling(row: Mapping[Any, Any], selections: _Selections) -> dict[str, object]:
    return {
        "data": row["data"],
        "features": row["n_features"],
        "budget": row["budget"],
        "trimming": row["agreement_low"],
        "interval width": row["agreement_high"] - row["agreement_low"],
        "gap": max(0.0, row["upper_bound"] - row["agreement_low"]),
        "proven": "yes" if row["optimal"] else "no",
        "shared with information gain": _shared(row, selections),
        "evaluations": row["n_evaluations"],
        "seconds": row["method_seconds"],
    } | _of_baselines(row, selections, _BOUNDS)


def _shared(row: Mapping[Any, Any], selections: _Selections) -> str:
    """Return how many of the kept features information gain selects too."""
    point = selections.get((row["data"], "information_gain", row["budget"]))
    return f"{len(set(row['features']) & set(point['features']))} of {len(row['features'])}" if point else ""


def _test_line(row: Mapping[Any, Any], selections: _Selections) -> dict[str, object]:
    return {
        "data": row["data"],
        "budget": row["budget"],
        "accuracy of all features": row["full_test_accuracy"],
        **{title.format("trimming"): row[quantity] for quantity, title in _TESTED.items()},
    } | _of_baselines(row, selections, _TESTED)


def _of_baselines(row: Mapping[Any, Any], selections: _Selections, titles: Mapping[str, str]) -> dict[str, float]:
    """Return what the baselines reach with the budget of a row, by column; `titles` names it for each quantity."""
    return {
        title.format(baseline.title): selections.get((row["data"], method, row["budget"]), {}).get(quantity, math.nan)
        for method, baseline in BASELINES.items()
        for quantity, title in titles.items()
    }


def _agreement_figure(label: str, lines: pd.DataFrame) -> LineFigure:
    import pandas as pd

    points = [
        {"series": series, "x": budget, "y": 1.0 - agreement}
        for series, column in {"trimming": "trimming", **{title: _BEST.format(title) for title in _TITLES}}.items()
        for budget, agreement in zip(lines["budget"], lines[column], strict=True)
        if not math.isnan(agreement)
    ]
    # Agreements of 0.99 and 0.999 look alike; a logarithm tells them apart, but has no place for 1.
    some_agree_always = any(point["y"] <= 0 for point in points)
    features = f", {lines['features'].iloc[0]} features" if len(lines) else ""
    return LineFigure(
        f"{shown_name(label)}: trimming a naive Bayes classifier{features}",
        "budget (number of features kept)",
        "disagreement (1 − ECA), best threshold",
        pd.DataFrame(points, columns=["series", "x", "y"]),
        name=label,
        x_scale="log",
        y_scale="linear" if some_agree_always else "log",
        methods={title: _BEST.format(title) for title in _TITLES},
    )


def _against_features(
    column: str, title: str, y_label: str, lines: pd.DataFrame, y_scale: Literal["linear", "log"] = "linear"
) -> LineFigure:
    series = [f"budget {budget}" for budget in lines["budget"]]
    points = lines[["features", column]].rename(columns={"features": "x", column: "y"})
    points.insert(0, "series", series)
    # Each number of features is another data set: nothing lies between two of them.
    marks = dict.fromkeys(series, "highlight")
    return LineFigure(
        title, "number of features", y_label, points, name=column, marks=marks, x_scale="log", y_scale=y_scale
    )


_TITLES = [baseline.title for baseline in BASELINES.values()]
_FORMATS_SCALING = {
    "data": "",
    "features": "",
    "budget": "",
    "trimming": ".6f",
    "interval width": ".1e",
    "gap": ".1e",
    "proven": "",
    "shared with information gain": "",
    **{column.format(title): ".6f" for title in _TITLES for column in _BOUNDS.values()},
    "evaluations": "",
    "seconds": ".2f",
}
_TEST_FORMATS = {
    "data": "",
    "budget": "",
    "accuracy of all features": ".4f",
    **{column.format(title): ".4f" for title in ("trimming", *_TITLES) for column in _TESTED.values()},
}
_SECONDS_FORMATS = {"data": "", "features": "", "method": "", "seconds": ".2f"}
_NOTES_SCALING = (
    "The trimming's agreement is its certified lower value, those of the baselines are certified upper values (for "
    "best T' over all thresholds): where the first is above, the trimming is certainly better.",
    "The gap is the most by which any trimming could be better. With more than 2^44 instances of the features it comes "
    "from a bound on the Bayes error, which says little where the original itself often errs (splice).",
    "Information gain and greedy accuracy select one feature after another and keep the threshold on the test rows; "
    "the trimming moves it. Where all kept features are shared with information gain, both are the same selection.",
    "Greedy accuracy stops rising early: no single feature then helps, and the first of equally good ones is taken.",
)


# Best agreement against the budget, for all budgets of a declared network classifier at once.


@settings
class AgreementByBudget:
    """Best agreement against the number of kept features, for networks and thresholds.

    The networks must be small enough for the dense engine. The class node `target` and its state `positive` replace the
    declared ones, or those that are not declared.
    """

    networks: list[str]
    thresholds: list[float]
    target: str | None = None
    positive: str | None = None

    def __post_init__(self) -> None:
        check_axis("networks", self.networks)
        check_thresholds(self.thresholds)
        if (self.target is None) != (self.positive is None):
            raise ValueError(f"target and positive must be given together, got {self.target!r} and {self.positive!r}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each network and threshold."""
        return [
            Cell.of(
                {"network": network, "threshold": threshold},
                trim_to_every_budget,
                network=inputs.network(network),
                target=self.target,
                positive=self.positive,
                threshold=threshold,
            )
            for network in self.networks
            for threshold in self.thresholds
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the curves as one table and a figure for each network."""
        lines = [
            {
                "network": row["network"],
                "T": row["threshold"],
                "budget": point["budget"],
                "ECA": point["agreement"],
                "T'": point["new_threshold"],
                "kept": " ".join(point["features"]),
            }
            for row in successes(rows).to_dict("records")
            for point in row["points"]
        ]
        every = Table.of(
            "Best agreement for each budget", lines, _FORMATS_AGREEMENT_BY_BUDGET, name="budgets", listed=False
        )
        smallest = Table.of("Smallest budget for an agreement", _smallest_budgets(every.frame), _SMALLEST_FORMATS)
        figures = [self._figure(name, every.frame[every.frame["network"] == name]) for name in self.networks]
        return Outcome((smallest, every), figures, (), _NOTES_AGREEMENT_BY_BUDGET)

    def _figure(self, network: str, lines: pd.DataFrame) -> LineFigure:
        import pandas as pd

        series = [f"T = {level:g}" for level in lines["T"]]
        return LineFigure(
            f"{shown_name(network)}: best trimmings",
            "budget (number of features kept)",
            "agreement (ECA)",
            pd.DataFrame({"series": series, "x": lines["budget"], "y": lines["ECA"]}),
            name="" if len(self.networks) == 1 else network,
        )


def _smallest_budgets(lines: pd.DataFrame) -> list[dict[str, object]]:
    """Return how many features reach each level of agreement."""
    return [
        {"network": network, "T": threshold, "features": int(group["budget"].max())}
        | {title: int(group["budget"][group["ECA"] >= level - _EQUAL].min()) for title, level in _LEVELS.items()}
        for (network, threshold), group in lines.groupby(["network", "T"], sort=False)
    ]


_LEVELS = {f"ECA >= {level:g}": level for level in (0.9, 0.95, 0.99, 1.0)}
_SMALLEST_FORMATS = {"network": "", "T": ".2f", "features": "", **dict.fromkeys(_LEVELS, "")}
_FORMATS_AGREEMENT_BY_BUDGET = {"network": "", "T": ".2f", "budget": "", "ECA": ".4f", "T'": ".4f", "kept": ""}
# Agreements that differ by less are equal: they are exact up to rounding.
_EQUAL = 1e-9
_NOTES_AGREEMENT_BY_BUDGET = (
    "Every trimming is optimal: one sweep bounds all subsets, and thresholds are searched for the best few.",
    "The trimming for each single budget is in curves_budgets.csv.",
)


@job_function
def trim_to_every_budget(
    network: Mapping[str, Json], target: str | None, positive: str | None, threshold: float
) -> dict[str, Json]:
    """Find the best trimming of a network input for each number of features.

    The class and its positive state are the declared ones by default.
    """
    classifier = network_classifier(network, threshold, target, positive)
    trimmings = trimming_curve(classifier, range(classifier.n_features + 1))
    return {
        "n_features": classifier.n_features,
        "points": [
            {
                "budget": budget,
                "agreement": trimming.agreement,
                "new_threshold": trimming.threshold,
                "features": list(trimming.features),
            }
            for budget, trimming in enumerate(trimmings)
        ],
    }
