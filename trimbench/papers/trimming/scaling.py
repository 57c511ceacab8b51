"""Trimming far beyond the paper's 19 features: time, optimality gap and baselines against the number of features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table, check_axis
from trimbench.papers.trimming import scaling_jobs
from trimbench.papers.trimming.problems import chosen_problems

if TYPE_CHECKING:
    import pandas as pd

_PROBLEM = ("dataset", "positive", "negative")
_BASELINES = {"information_gain": "information gain", "accuracy": "greedy accuracy"}


@dataclass(frozen=True)
class Scaling:
    """Trimmings of naive Bayes classifiers with many features, against selection by information gain and by accuracy.

    Attributes
    ----------
    datasets : list of str
        Names in `problems`.
    problems : dict
        For each name, ``dataset``, ``positive`` and ``negative`` (lists of classes), and optionally ``one_hot``
        (values that become binary features of their own).
    budgets : list of int
        Those below the number of features are run.
    threshold, smoothing, test_fraction : float
    n_folds : int
        Of the accuracy by which the second baseline selects.
    evaluation_limit : int, optional
        After so many evaluations an exact search is stopped; classifiers too large for it are not searched exactly.
    seed : int
    """

    datasets: list[str]
    problems: dict[str, Any]
    budgets: list[int]
    threshold: float = 0.5
    smoothing: float = 1.0
    test_fraction: float = 0.2
    n_folds: int = 10
    evaluation_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        chosen_problems("datasets", self.datasets, self.problems, _PROBLEM)
        check_axis("budgets", self.budgets)
        if min(self.budgets) < 1:
            raise ValueError(f"budgets must be numbers of features, 1 or more, got {self.budgets}")
        if not 0 < self.threshold < 1 or not 0 < self.test_fraction < 1:
            raise ValueError(
                "threshold and test_fraction must be strictly between 0 and 1, got "
                f"{self.threshold} and {self.test_fraction}"
            )
        if not 0 < self.smoothing < math.inf:
            raise ValueError(f"smoothing must be a positive number, got {self.smoothing}")
        if self.evaluation_limit is not None and self.evaluation_limit < 1:
            raise ValueError(f"evaluation_limit must be 1 or more, or null, got {self.evaluation_limit}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set and budget, and one for each data set and baseline."""
        cells = []
        for label, choice in chosen_problems("datasets", self.datasets, self.problems, _PROBLEM).items():
            name = choice["dataset"]
            declaration = catalogue.dataset(name)
            sha256 = declaration.facts.sha256 or load_dataset(declaration, cache).sha256
            shared = {
                "dataset": catalogue.dataset_mapping(name),
                "name": name,
                "positive": list(choice["positive"]),
                "negative": list(choice["negative"]),
                "one_hot": list(choice.get("one_hot", ())),
                "threshold": self.threshold,
                "smoothing": self.smoothing,
                "test_fraction": self.test_fraction,
                "split_seed": seed_for(purpose="split", dataset=name, split=0, seed=self.seed),
            }
            for budget in self.budgets:
                parameters = shared | {"budget": budget, "evaluation_limit": self.evaluation_limit}
                job = Job.create(scaling_jobs.trim_many_features, parameters, {f"dataset/{name}": sha256})
                cells.append(Cell({"data": label, "method": "trimming", "budget": budget}, job, (declaration,)))
            for method in _BASELINES:
                parameters = shared | {"budgets": self.budgets, "method": method, "n_folds": self.n_folds}
                job = Job.create(scaling_jobs.select_many_features, parameters, {f"dataset/{name}": sha256})
                cells.append(Cell({"data": label, "method": method, "budget": 0}, job, (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the certified agreement of all methods, their test results, and time and gap against the features."""
        import pandas as pd

        done = [row for row in rows.to_dict("records") if row["status"] == "ok"]
        trimmed = [row for row in done if row["method"] == "trimming" and row["budget"] < row["n_features"]]
        selected = {
            (row["data"], row["method"], point["budget"]): point
            for row in done
            if row["method"] in _BASELINES
            for point in row["points"]
        }
        lines = pd.DataFrame([_line(row, selected) for row in trimmed], columns=_COLUMNS)
        tests = pd.DataFrame([_test_line(row, selected) for row in trimmed], columns=_TEST_COLUMNS)
        seconds = pd.DataFrame(
            [
                {"data": row["data"], "features": row["n_features"], "method": title, "seconds": row["method_seconds"]}
                for method, title in _BASELINES.items()
                for row in done
                if row["method"] == method
            ],
            columns=["data", "features", "method", "seconds"],
        )
        tables = (
            Table("", "Agreement with the original, certified", lines, _FORMATS),
            Table("test", "Agreement and accuracy on the test rows", tests, _TEST_FORMATS),
            Table("baselines", "Seconds of the baselines, for all budgets together", seconds, {"seconds": ".2f"}),
        )
        figures = [_agreement_figure(label, lines[lines["data"] == label]) for label in self.datasets]
        figures += [
            _against_features("gap", "Optimality gap of the trimming", "optimality gap", lines),
            _against_features("seconds", "Time of one trimming", "seconds", lines),
        ]
        return Outcome(tables, [figure for figure in figures if len(figure.points)], {}, _NOTES)


def _line(row: Mapping[Any, Any], selected: Mapping[tuple[str, str, int], Mapping[str, Any]]) -> dict[str, Any]:
    line = {
        "data": row["data"],
        "features": row["n_features"],
        "budget": row["budget"],
        "trimming": row["agreement_low"],
        "interval width": row["agreement_high"] - row["agreement_low"],
        "gap": max(0.0, row["upper_bound"] - row["agreement_low"]),
        "proven": "yes" if row["optimal"] else "no",
        "shared with information gain": _shared(row, selected),
        "evaluations": row["n_evaluations"],
        "seconds": row["method_seconds"],
    }
    for method, title in _BASELINES.items():
        point = selected.get((row["data"], method, row["budget"]), {})
        # The upper value: a trimming that is above it is certainly better.
        line[f"{title}, same T"] = point.get("same_threshold_high", math.nan)
        line[f"{title}, best T'"] = point.get("best_threshold_high", math.nan)
    return line


def _shared(row: Mapping[Any, Any], selected: Mapping[tuple[str, str, int], Mapping[str, Any]]) -> str:
    """Return how many of the kept features information gain selects, too."""
    point = selected.get((row["data"], "information_gain", row["budget"]))
    return f"{len(set(row['features']) & set(point['features']))} of {len(row['features'])}" if point else ""


def _test_line(row: Mapping[Any, Any], selected: Mapping[tuple[str, str, int], Mapping[str, Any]]) -> dict[str, Any]:
    line = {
        "data": row["data"],
        "budget": row["budget"],
        "accuracy of all features": row["full_test_accuracy"],
        "agreement, trimming": row["test_agreement"],
        "accuracy, trimming": row["test_accuracy"],
    }
    for method, title in _BASELINES.items():
        point = selected.get((row["data"], method, row["budget"]), {})
        line[f"agreement, {title}"] = point.get("test_agreement", math.nan)
        line[f"accuracy, {title}"] = point.get("test_accuracy", math.nan)
    return line


def _agreement_figure(label: str, lines: pd.DataFrame) -> LineFigure:
    import pandas as pd

    points = [
        {"series": series.removesuffix(", best T'"), "x": line["budget"], "y": line[series]}
        for series in ("trimming", *(f"{title}, best T'" for title in _BASELINES.values()))
        for line in lines.to_dict("records")
        if not math.isnan(line[series])
    ]
    features = f"{lines['features'].iloc[0]} features" if len(lines) else ""
    return LineFigure(
        label,
        f"Trimming naive Bayes on {label}, {features}",
        "budget (number of features kept)",
        "agreement (ECA), best threshold",
        pd.DataFrame(points, columns=["series", "x", "y"]),
    )


def _against_features(column: str, title: str, y_label: str, lines: pd.DataFrame) -> LineFigure:
    points = lines[["budget", "features", column]].rename(columns={"features": "x", column: "y"})
    points.insert(0, "series", [f"budget {budget}" for budget in points["budget"]])
    # Each number of features is another data set: nothing lies between two of them.
    marks = dict.fromkeys(points["series"], "highlight")
    return LineFigure(column, title, "number of features", y_label, points.drop(columns="budget"), marks=marks)


_COLUMNS = [
    "data",
    "features",
    "budget",
    "trimming",
    "interval width",
    "gap",
    "proven",
    "shared with information gain",
    *(f"{title}, {threshold}" for title in _BASELINES.values() for threshold in ("same T", "best T'")),
    "evaluations",
    "seconds",
]
_TEST_COLUMNS = [
    "data",
    "budget",
    "accuracy of all features",
    *(f"{what}, {title}" for title in ("trimming", *_BASELINES.values()) for what in ("agreement", "accuracy")),
]
_FORMATS = {
    "trimming": ".6f",
    "interval width": ".1e",
    "gap": ".1e",
    **{f"{title}, {threshold}": ".6f" for title in _BASELINES.values() for threshold in ("same T", "best T'")},
    "seconds": ".2f",
}
_TEST_FORMATS = dict.fromkeys(_TEST_COLUMNS[2:], ".4f")
_NOTES = (
    "The trimming's agreement is its certified lower value, those of the baselines are certified upper values (for "
    "best T' over all thresholds): where the first is above, the trimming is certainly better.",
    "The gap is what the best trimming of all could have more, at most. With more than 2^44 instances of the features "
    "it comes from a bound on the Bayes error, which says little where the original itself often errs (splice).",
    "Information gain and greedy accuracy select one feature after another and keep the threshold on the test rows; "
    "the trimming moves it. Where all kept features are shared with information gain, both are the same selection.",
    "Greedy accuracy stops rising early: no single feature then helps, and the first of equally good ones is taken.",
)
