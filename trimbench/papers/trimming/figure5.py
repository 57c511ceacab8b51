"""Figure 5: agreement against accuracy of every feature subset, on data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs, dataset_of
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.numbers import Number, numbers_of, prediction_interval
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.checks import check_counts, check_shares
from trimbench.papers.trimming.classifiers import CODE, LearnedOnSplits, Learning, Split
from trimbench.papers.trimming.problems import Problem, check_problems
from trimbench.papers.validation import settings
from trimbench.trimming.accuracy import cross_validated_accuracy
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.curve import potential_agreements
from trimbench.trimming.engines import make_engine
from trimbench.trimming.information_gain import select_by_information_gain
from trimbench.trimming.thresholds import best_cut

if TYPE_CHECKING:
    import pandas as pd

_PICKS = {
    "optimal_eca": "highest ECA",
    "optimal_accuracy": "highest accuracy",
    "information_gain": "information gain",
}
# What the paper prints or claims; the tables have more.
_PRINTED_PICKS = ("optimal_eca", "optimal_accuracy")
_TESTED = ("agreement", "accuracy")
_REMARKS = ("full_accuracy", "better_than_full_percent")
_LEADS = ("agreement_lead", "accuracy_lead")
_MORE_ACCURATE = "more_accurate_percent"
_OFTEN_MORE_ACCURATE = "heart"


@settings
class Figure5(LearnedOnSplits):
    """Agreement and cross-validated accuracy of every feasible subset (Figure 5), over several splits.

    The data sets are names in `problems`; the figures show the first split. The budget is the number of features
    divided by `budget_divisor`, rounded down.
    """

    datasets: list[str]
    problems: dict[str, Problem]
    splits: int
    n_folds: int = 10
    budget_divisor: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_axis("datasets", self.datasets)
        check_problems("datasets", self.datasets, self.problems)
        check_counts(splits=self.splits, budget_divisor=self.budget_divisor)
        check_shares(threshold=self.threshold)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each data set and split."""
        return [
            Cell.of(
                {"name": name, "split": split},
                agreement_and_accuracy,
                learning=self.learning(problem.dataset, split, inputs),
                positive=problem.positive,
                budget_divisor=self.budget_divisor,
                n_folds=self.n_folds,
                with_points=split == 0,
            )
            for name, problem in ((name, self.problems[name]) for name in self.datasets)
            for split in range(self.splits)
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return Figure 5c averaged over the splits, the remarks of the text, and the scatter of the first split."""
        tests, remarks, claims = [], [], []
        numbers: list[Number] = []
        figures: list[LineFigure] = []
        for name in self.datasets:
            ours = successes(rows, name=name)
            if ours.empty:
                continue
            for pick, title in _PICKS.items():
                found = _averages(f"{name} {title}", ours, _TESTED, f"{pick}_")
                tests.append({"data": name, "subset": title, "splits": len(ours)} | _spread(found, "test "))
                numbers += found if pick in _PRINTED_PICKS else []
            found = _averages(name, ours, _REMARKS)
            remarks.append({"data": name} | _spread(found))
            claim = _claims(ours)
            claims.append({"data": name, "splits": len(ours)} | claim)
            claimed = (*_LEADS, _MORE_ACCURATE) if name == _OFTEN_MORE_ACCURATE else _LEADS
            numbers += found + numbers_of(name, {quantity: claim[quantity] for quantity in claimed}, ours)
            figures += [_scatter(name, first) for first in ours[ours["split"] == 0].to_dict("records")]
        tables = (
            Table.of(_TITLE, tests, {"data": "", "subset": "", "splits": ""} | _spread_formats(_TESTED, "test ")),
            Table.of(_REMARKS_TITLE, remarks, {"data": ""} | _spread_formats(_REMARKS), name="remarks"),
            Table.of(_CLAIMS_TITLE, claims, {"data": "", "splits": ""} | _CLAIMS, name="claims"),
        )
        return Outcome(tables, figures, numbers, _NOTES)


def _averages(row: str, ours: pd.DataFrame, quantities: Sequence[str], prefix: str = "") -> list[Number]:
    """Return means over the splits, with prediction intervals for one more."""
    values = {quantity: ours[f"{prefix}{quantity}"].tolist() for quantity in quantities}
    means = {quantity: float(np.mean(found)) for quantity, found in values.items()}
    intervals = {quantity: prediction_interval(found) for quantity, found in values.items()}
    return numbers_of(row, means, ours, intervals)


def _spread(numbers: Iterable[Number], prefix: str = "") -> dict[str, object]:
    """Return columns with the numbers and the ends of their intervals."""
    columns: dict[str, object] = {}
    for number in numbers:
        low, high = (number.interval.low, number.interval.high) if number.interval else (math.nan, math.nan)
        columns |= zip(_ends(f"{prefix}{number.quantity}"), (number.value, low, high), strict=True)
    return columns


def _spread_formats(quantities: Iterable[str], prefix: str = "") -> dict[str, str]:
    return {
        column: ".1f" if quantity.endswith("percent") else ".4f"
        for quantity in quantities
        for column in _ends(f"{prefix}{quantity}")
    }


def _ends(quantity: str) -> tuple[str, str, str]:
    return quantity, f"{quantity} low", f"{quantity} high"


def _claims(ours: pd.DataFrame) -> dict[str, float]:
    """Return what section 6.1 claims of one data set in words."""
    accuracy = ours["optimal_accuracy_accuracy"]
    more = ours["optimal_eca_accuracy"] - accuracy
    leads = {
        "agreement_lead": ours["optimal_eca_agreement"] - ours["information_gain_agreement"],
        "accuracy_lead": accuracy - ours["information_gain_accuracy"],
    }
    return {
        _MORE_ACCURATE: 100 * float((more > 0).mean()),
        "equally_accurate_percent": 100 * float((more == 0).mean()),
        # Equal means differ by rounding; adding 0 takes the sign from a zero.
    } | {title: round(float(lead.mean()), 12) + 0.0 for title, lead in leads.items()}


_CLAIMS = {_MORE_ACCURATE: ".0f", "equally_accurate_percent": ".0f", **dict.fromkeys(_LEADS, ".4f")}
_TITLE = "Figure 5c: test agreement and accuracy, mean and 95 % prediction interval for one more split"
_REMARKS_TITLE = "Accuracy of the full classifier, and subsets that beat it"
_CLAIMS_TITLE = (
    "Claims of section 6.1: in how many splits highest ECA is more accurate than highest accuracy; by how "
    "much highest ECA agrees more often, and highest accuracy is more accurate, than information gain"
)
_NOTES = (
    "Low and high are the ends of Student's 95 % prediction interval for one more random split; the paper reports one.",
    "Numbers are cut at their median in the training rows; the paper does not say how it cut them.",
    "Highest ECA is tested with its moved threshold, the others at the original one.",
)


def _scatter(name: str, result: Mapping[Any, Any]) -> LineFigure:
    import pandas as pd

    cloud = result["points"]
    points = [("feasible subset", x, y) for x, y in cloud]
    points += [("Pareto frontier", x, y) for x, y in _frontier(cloud)]
    points += [(title, result[f"{pick}_eca"], result[f"{pick}_cv_accuracy"]) for pick, title in _PICKS.items()]
    return LineFigure(
        f"{shown_name(name)}: agreement and accuracy of feature subsets",
        "expected classification agreement",
        "cross-validated accuracy",
        pd.DataFrame(points, columns=["series", "x", "y"]),
        name=name,
        levels={"full classifier": result["full_accuracy"]},
        marks={"feasible subset": "cloud"} | dict.fromkeys(_PICKS.values(), "highlight"),
    )


def _frontier(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the points that no other beats in both coordinates."""
    frontier: list[tuple[float, float]] = []
    for x, y in sorted(((x, y) for x, y in points), reverse=True):
        if not frontier or y > frontier[-1][1]:
            frontier.append((x, y))
    return frontier


@job_function(code=(*CODE, __name__))
def agreement_and_accuracy(
    learning: Learning, positive: str, budget_divisor: int, n_folds: int, with_points: bool
) -> dict[str, Json]:
    """Compare all feature subsets of a learned classifier by agreement and by cross-validated accuracy.

    Agreement and accuracy of each subset are part of the result where `with_points` is set.
    """
    loaded = dataset_of(learning["dataset"])
    split = Split.of(loaded.features, loaded.target, learning)
    classifier = split.learned(positive, learning)
    budget = classifier.n_features // budget_divisor
    kept, agreements = potential_agreements(classifier, budget)
    everything = range(classifier.n_features)
    *accuracies, full_accuracy = cross_validated_accuracy(
        split.train,
        split.target,
        np.array([[feature in subset for feature in everything] for subset in (*kept, everything)]),
        positive=positive,
        threshold=learning["threshold"],
        n_folds=n_folds,
        rng=np.random.default_rng(learning["split_seed"]),
        smoothing=learning["smoothing"],
    ).tolist()
    by_gain = sorted(classifier.features.index(name) for name in select_by_information_gain(classifier, budget))
    picks = {
        "optimal_eca": int(np.argmax(agreements)),
        "optimal_accuracy": int(np.argmax(accuracies)),
        "information_gain": kept.index(tuple(by_gain)),
    }
    result: dict[str, Json] = {
        "n_subsets": len(kept),
        "full_accuracy": full_accuracy,
        "full_test_accuracy": split.tested(classifier, classifier)["full_test_accuracy"],
        "better_than_full_percent": 100.0 * float((np.array(accuracies) > full_accuracy + 1e-12).mean()),
    }
    for pick, row in picks.items():
        facts = {"eca": float(agreements[row]), "cv_accuracy": accuracies[row]}
        facts |= _on_test_rows(split, classifier, kept[row], moves_threshold=pick == "optimal_eca")
        result[f"{pick}_features"] = [classifier.features[i] for i in kept[row]]
        result |= {f"{pick}_{name}": value for name, value in facts.items()}
    if with_points:
        result["points"] = [[float(x), y] for x, y in zip(agreements, accuracies, strict=True)]
    return result


def _on_test_rows(
    split: Split, classifier: BayesianClassifier, kept: Sequence[int], *, moves_threshold: bool
) -> dict[str, float]:
    """Test a subset. Trimming moves the threshold; selection by accuracy or information gain keeps it."""
    level = classifier.threshold
    if moves_threshold:
        level = best_cut(make_engine(classifier, "dense").instances(kept), level).representative(level)
    tested = split.tested(classifier, classifier.with_features([classifier.features[i] for i in kept], level))
    return {"agreement": tested["test_agreement"], "accuracy": tested["test_accuracy"]}
