"""Figure 7: trimming of general networks against feature selection by information gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.numbers import Number, numbers_of
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.against_information_gain import SELECTIONS, trim_drawn_class, trim_tree_augmented
from trimbench.papers.trimming.checks import check_counts, check_thresholds
from trimbench.papers.trimming.problems import Problem, check_problems
from trimbench.papers.validation import settings
from trimbench.trimming.engines.choice import EngineName

if TYPE_CHECKING:
    import pandas as pd

# Agreements that differ by less are equal: both are exact up to rounding.
_EQUAL = 1e-9
_AT_LEAST = "at least as often as information gain"
_STRICTLY = "strictly more often"
_SUBSTITUTE = "substitute_"
_LABELS = ("network", "class", "class variable")
# Columns of the results, and how the table and the figures call them.
_METHODS = {
    "agreement": "trimming",
    "gain_same_threshold": "information gain, same T",
    **{f"{name}_best_threshold": f"{selection.title}, best T'" for name, selection in SELECTIONS.items()},
    "no_feature": "no feature",
}


@settings
class Figure7:
    """Agreement of trimmings of general networks, over thresholds and drawn classes (Figure 7).

    The features of a network are its leaves; `classes` class variables are drawn from its binary roots. In place of the
    network for mammography, which is not public, a tree-augmented naive Bayes classifier is learned with `smoothing` on
    each of the `substitutes`, which are names in `problems`. The budget is the number of features divided by
    `budget_divisor`, rounded down.
    """

    networks: list[str]
    thresholds: list[float]
    classes: int = 3
    substitutes: list[str] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)
    budget_divisor: int = 3
    smoothing: float = 1.0
    engine: EngineName = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("networks and substitutes", [*self.networks, *self.substitutes])
        check_problems("substitutes", self.substitutes, self.problems)
        check_thresholds(self.thresholds)
        check_counts(classes=self.classes, budget_divisor=self.budget_divisor)
        if not 0 < self.smoothing < math.inf:
            raise ValueError(f"smoothing must be a positive number, got {self.smoothing}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each network and class, and for each substitute."""
        shared = {"thresholds": self.thresholds, "budget_divisor": self.budget_divisor, "engine": self.engine}
        drawn = [
            Cell.of(
                {"network": name, "class": draw + 1},
                trim_drawn_class,
                network=network,
                draw=draw,
                seed=seed_for(purpose="class variable", network=name, seed=self.seed),
                **shared,
            )
            for name, network in ((name, inputs.network(name)) for name in self.networks)
            # A network that is declared with its class keeps it.
            for draw in range(1 if network.declared.get("target") else self.classes)
        ]
        learned = [
            Cell.of(
                {"network": f"{_SUBSTITUTE}{name}", "class": 1},
                trim_tree_augmented,
                dataset=inputs.dataset(self.problems[name].dataset),
                positive=self.problems[name].positive,
                smoothing=self.smoothing,
                **shared,
            )
            for name in self.substitutes
        ]
        return drawn + learned

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the agreement of all methods: averaged over the thresholds, and at each; and what was refused."""
        import pandas as pd

        # Without any refused network, no result has such an entry.
        done = successes(rows.assign(refused=rows.get("refused")))
        solved, refused = done[done["refused"].isna()], done[done["refused"].notna()]
        results = solved.to_dict("records")
        points = pd.DataFrame([_labels(row) | point for row in results for point in row["points"]])
        means = [_summary(row) for row in results]
        lines = [_line(row, point) for row in results for point in row["points"]]
        reasons = [self._refusal(row) for row in refused.to_dict("records")]
        claim = Table.of(_CLAIM_TITLE, _claim(points), _CLAIM_COLUMNS, name="claim")
        tables = (
            Table.of("Figure 7: agreement with the original, mean over the thresholds", means, _SUMMARY_FORMATS),
            Table.of(_LINES_TITLE, lines, _LINE_FORMATS, name="thresholds", listed=False),
            claim,
            Table.of(_REFUSED_TITLE, reasons, (*_LABELS, "features", "engine", "reason"), name="refused"),
        )
        figures = (
            [_figure(str(name), group) for name, group in points.groupby("network", sort=False)] if results else []
        )
        figures += [_without_features(points)] if results else []
        return Outcome(tables, figures, _numbers(claim, solved), _NOTES)

    def _refusal(self, row: Mapping[Any, Any]) -> dict[str, object]:
        # The rest of the message is advice for users of the library.
        reason = row["refused"].split("; use ")[0]
        return _labels(row) | {"features": int(row["n_features"]), "engine": self.engine, "reason": reason}


def _claim(points: pd.DataFrame) -> list[dict[str, object]]:
    """Count the settings in which the claim of section 6.3 holds."""
    if points.empty:
        return []
    lead = points["agreement"] - points[["gain_same_threshold", "gain_best_threshold"]].max(axis=1)
    lead_at_same = points["agreement"] - points["gain_same_threshold"]
    looks = points["no_feature"] < 1.0 - _EQUAL
    return [
        {
            "settings": title,
            "number": int(chosen.sum()),
            _AT_LEAST: int((lead[chosen] >= -_EQUAL).sum()),
            _STRICTLY: int((lead[chosen] > _EQUAL).sum()),
            "than at the same T": int((lead_at_same[chosen] > _EQUAL).sum()),
        }
        for title, chosen in (("all", looks | ~looks), ("those in which the original looks at its features", looks))
    ]


def _numbers(claim: Table, solved: pd.DataFrame) -> list[Number]:
    """Return in how many percent of all settings the claim holds, read in two ways."""
    if claim.frame.empty:
        return []
    every = claim.frame.iloc[0]
    readings = {"at_least_as_often_percent": _AT_LEAST, "more_often_percent": _STRICTLY}
    percents = {quantity: 100 * float(every[column] / every["number"]) for quantity, column in readings.items()}
    return numbers_of("all settings", percents, solved)


def _labels(row: Mapping[Any, Any]) -> dict[str, object]:
    return {"network": row["network"], "class": row["class"], "class variable": row["target"]}


def _summary(row: Mapping[Any, Any]) -> dict[str, object]:
    points = row["points"]
    leads = [_lead(point) for point in points]
    return {
        **_labels(row),
        "features": int(row["n_features"]),
        "budget": int(row["budget"]),
        "engine": _ENGINES[row["engine"]],
        **{title: sum(point[column] for point in points) / len(points) for column, title in _METHODS.items()},
        "smallest lead": min(leads),
        "largest lead": max(leads),
        "strictly better at": f"{sum(lead > _EQUAL for lead in leads)} of {len(leads)}",
        "proven": f"{sum(point['optimal'] for point in points)} of {len(points)}",
        "evaluations": sum(point["n_evaluations"] for point in points) / len(points),
        "seconds": row["engine_seconds"] + row["method_seconds"],
    }


def _line(row: Mapping[Any, Any], point: Mapping[str, Any]) -> dict[str, object]:
    return {
        **_labels(row),
        "T": point["threshold"],
        **{title: point[column] for column, title in _METHODS.items()},
        "lead": _lead(point),
        "T'": point["new_threshold"],
        "kept": " ".join(point["features"]),
    }


def _lead(point: Mapping[str, Any]) -> float:
    lead = float(point["agreement"] - point["gain_best_threshold"])
    return lead if abs(lead) > _EQUAL else 0.0


def _figure(network: str, points: pd.DataFrame) -> LineFigure:
    """Return the curves of one network, averaged over its classes."""
    import pandas as pd

    lines = [
        {"series": title, "x": threshold, "y": values.mean()}
        for column, title in _METHODS.items()
        # A classifier without features is so far below at some thresholds that the others would look alike: it has a
        # figure of its own.
        if column != "no_feature"
        for threshold, values in points.groupby("threshold")[column]
    ]
    n_classes = points["class"].nunique()
    over = f", mean over {n_classes} classes" if n_classes > 1 else ""
    return LineFigure(
        f"{_shown(network)}: trimming and information gain{over}",
        "threshold T of the original",
        "agreement (ECA)",
        pd.DataFrame(lines),
        name=network,
    )


def _without_features(points: pd.DataFrame) -> LineFigure:
    """Return the curves of the classifiers without features, averaged over the classes of each network."""
    means = points.groupby(["network", "threshold"], sort=False)["no_feature"].mean().reset_index()
    means["network"] = means["network"].map(_shown)
    return LineFigure(
        "Agreement without any feature, mean over the classes",
        "threshold T of the original",
        "agreement (ECA)",
        means.rename(columns={"network": "series", "threshold": "x", "no_feature": "y"}),
        name="no_feature",
    )


def _shown(network: str) -> str:
    """Return the name of a network in titles; the substitutes are named after their data."""
    name = network.removeprefix(_SUBSTITUTE)
    return f"{shown_name(name)} (substitute)" if name != network else shown_name(name)


_ENGINES = {"DenseEngine": "dense", "SddEngine": "sdd", "LogOddsEngine": "log_odds"}
_SUMMARY_FORMATS = {
    **dict.fromkeys((*_LABELS, "features", "budget", "engine"), ""),
    **dict.fromkeys((*_METHODS.values(), "smallest lead", "largest lead"), ".4f"),
    **dict.fromkeys(("strictly better at", "proven"), ""),
    "evaluations": ".0f",
    "seconds": ".2f",
}
_LINES_TITLE = "Agreement with the original at each threshold"
_LINE_FORMATS = {
    **dict.fromkeys(_LABELS, ""),
    "T": ".2f",
    **dict.fromkeys((*_METHODS.values(), "lead", "T'"), ".4f"),
    "kept": "",
}
_CLAIM_TITLE = "Settings (network, class and threshold) in which the trimming agrees more often"
_CLAIM_COLUMNS = ("settings", "number", _AT_LEAST, _STRICTLY, "than at the same T")
_REFUSED_TITLE = "Networks that the engine could not handle within its limits"
_NOTES = (
    "Agreement at each single threshold is in figure7_thresholds.csv. 'No feature' gives every instance the decision "
    "that the original makes more often: where it reaches 1, the original itself never looks at its features (as in "
    "networks whose leaves say little about their roots). It has a figure of its own.",
    "The lead is that of the trimming over information gain with the best threshold for its features; it is never "
    "negative where the trimming is proven optimal. Figure 7 is a picture without numbers; its claim, that the "
    "trimming consistently agrees more often, is counted in the table of settings.",
    "Engine 'auto' compiles a circuit where most probabilities of a network are 0 or 1, and makes a table otherwise; "
    "a refusal says what the table would need.",
    "The paper does not say which networks or classes it drew; the classes here are drawn by the seed from the binary "
    "roots that have children, and the positive state is the last one.",
    "The mammography network of the paper is not public. In its place stand tree-augmented naive Bayes classifiers "
    "that are learned on public medical and voting data, named as substitutes.",
)
