"""Trimming far beyond the paper's 19 features: time, optimality gap and baselines against the number of features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from trimbench.papers.execution.functions import JobFunction
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.checks import check_counts, check_shares
from trimbench.papers.trimming.classifiers import LearnedOnSplits
from trimbench.papers.trimming.many_features import BASELINES, select_many_features, trim_many_features
from trimbench.papers.trimming.problems import check_problems
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

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
        main = Table.of("Agreement with the original, certified", [_line(row, selections) for row in trimmed], _FORMATS)
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
        return Outcome(tables, [figure for figure in figures if len(figure.points)], (), _NOTES)


def _line(row: Mapping[Any, Any], selections: _Selections) -> dict[str, object]:
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
_FORMATS = {
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
_NOTES = (
    "The trimming's agreement is its certified lower value, those of the baselines are certified upper values (for "
    "best T' over all thresholds): where the first is above, the trimming is certainly better.",
    "The gap is the most by which any trimming could be better. With more than 2^44 instances of the features it comes "
    "from a bound on the Bayes error, which says little where the original itself often errs (splice).",
    "Information gain and greedy accuracy select one feature after another and keep the threshold on the test rows; "
    "the trimming moves it. Where all kept features are shared with information gain, both are the same selection.",
    "Greedy accuracy stops rising early: no single feature then helps, and the first of equally good ones is taken.",
)
