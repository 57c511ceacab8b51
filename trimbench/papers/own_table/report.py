"""What follows from a study, in sentences with its numbers, as tables and figures, and the script that repeats it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from trimbench.papers.beyond.missing_values import MEASURES, MECHANISMS, Group, groups_of
from trimbench.papers.methods.missing_features import METHODS, OK
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.steps import (
    CANDIDATES,
    CLASSIFIERS,
    INFORMATION,
    OUTER,
    SEQUENTIAL,
    SEQUENTIAL_ROWS,
    TRIMMING,
)
from trimbench.papers.own_table.table_reading import DETERMINES, ReadTable
from trimbench.papers.own_table.table_texts import TableSettings, text_of
from trimbench.reproduction.files import own_homes
from trimbench.reproduction.reporting.page import facts_of, filled, render, table_parts
from trimbench.reproduction.reporting.runs import read_about
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.tables import Table
from trimbench.trimming.result import wilson_interval


def conclusions(found: Steps) -> list[str]:
    """Return one or two sentences for each question that the study answers."""
    return [*_what_to_keep(found), *_what_is_lost(found), *_whether_to_believe(found)]


def notes(found: Steps) -> list[str]:
    """Return what a reader needs to know: repairs of the table, rows that were left out, classes, methods."""
    own, n_rows = found.settings, len(found.table.labels)
    n_test = round(n_rows * own.test_share)
    said = [*found.table.repairs]
    said.append(
        f"The {n_rows:,} rows were split at random, with the same shares of the classes in both parts: "
        f"{n_rows - n_test:,} to learn from and {n_test:,} to test on."
    )
    if n_rows - n_test > own.rows:
        said.append(
            f"To save time, all steps except the one on missing features learn from {own.rows:,} random training rows; "
            f"rows={n_rows} takes all."
        )
    if n_test > own.gap_rows or n_rows - n_test > own.gap_rows:
        said.append(
            f"Missing features: {own.splits} random splits with at most {own.gap_rows:,} rows to learn from and as "
            "many to test on; gap_rows=... changes that."
        )
    classes = found.table.classes
    if found.positive is not None:
        said.append(
            f"Trimming decides between {found.positive} and the other {len(classes) - 1} classes together; all other "
            f"steps predict the {len(classes)} classes."
        )
    elif len(classes) > 2:
        said.append(
            f"All steps predict the {len(classes)} classes as they are; positive=... makes trimming decide between one "
            "class and the rest."
        )
    stopped = [f"{one['budget']:g}" for one in found.trimmings if one["was_stopped"]]
    said += own.about_stopped(stopped, len(found.costs))
    results = (one for group in found.gaps for by_split in group.by_method.values() for one in by_split.values())
    said += own.about_width(len(found.costs), max((one["n_columns"] for one in results), default=0))
    return [
        *said,
        "Trimming keeps the features whose naive Bayes classifier agrees most often with that of all features; the "
        "promised agreement blends that of the model with the cross-fitted one on training rows. Agreement and "
        "accuracy are measured on test rows, with Wilson's 95 % intervals; differences are between the same rows or "
        "splits.",
        "SequentialFeatureSelector chooses as many features as trimming keeps, whatever they cost, from the "
        f"{CANDIDATES} most informative ones, by the cross-validated accuracy of CategoricalNB on at most "
        f"{SEQUENTIAL_ROWS:,} rows.",
        "For logistic regression, and where the confidence after selection is judged, a category becomes several "
        "columns of zeros and ones; for the latter, numbers are cut in two at their median.",
    ]


def _what_to_keep(found: Steps) -> Iterator[str]:
    chosen, accuracy = found.chosen, found.accuracy
    if chosen is None or accuracy is None:
        yield "What to keep: no trimming could be computed."
        return
    names = _joined(chosen["features"]) or "no feature"
    behind, low, high = found.difference
    told = "" if low > 0 or high < 0 else ", so there may be none"
    total = sum(found.costs.values())
    price = "" if set(found.costs.values()) == {1.0} else f", for {chosen['cost']:g} of {total:g}"
    how = (
        "It is the best found within the given budget."
        if len(found.choices[0]["cross_validated"]) == 1
        else "The budget was chosen by cross-validation on the training rows: the cheapest within one standard error "
        "of the best."
    )
    yield (
        f"What to keep: {names} ({len(chosen['features'])} of {len(found.costs)} features{price}). This keeps "
        f"{_percent(chosen, 'agreement')} of the decisions made with all features, and {accuracy} are right; the "
        f"difference from all features is {100 * behind:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}{told}). "
        f"{how} Neither the model nor the choice of its budget has seen the rows that it is tested on"
        f"{', thanks to nested cross-validation; the frontier has the test rows of one split' * found.is_nested}."
    )
    suspicious = [one.name for one in found.table.card if one.name in chosen["features"] and DETERMINES in one.notes]
    if suspicious:
        yield (
            f"Check {_joined(suspicious)} first: {'they determine' if len(suspicious) > 1 else 'it determines'} the "
            "target in this table. Leave out with drop=[...] what is known only together with the answer, or after it; "
            "all numbers here will change."
        )


def _joined(names: Iterable[str]) -> str:
    return ", ".join(repr(name) if "," in name else name for name in names)


def _what_is_lost(found: Steps) -> Iterator[str]:
    for group in found.gaps:
        ranked = group.ranked(found.settings.methods, "log_loss")
        if not ranked or group.missing != max(one.missing for one in found.gaps):
            continue
        best, *others = ranked
        known = {name: group.estimate(name, "log_loss").value for name in ranked}
        yield (
            f"Missing features ({MECHANISMS[group.mechanism]}, {100 * group.missing:.0f} %): the lowest log loss is "
            f"{known[best]:.3f} ({METHODS[best].title}), with {_share(*_estimate(group, best, 'accuracy'))} right. "
            "The others: "
            + (", ".join(f"{METHODS[name].title} {known[name]:.3f}" for name in others) or "none")
            + "."
            + (_told(group, best, others[0]) if others else "")
        )


def _estimate(group: Group, method: str, measure: str) -> tuple[float, float, float]:
    """Return a mean with its interval over the splits; for equal accuracies, with the interval over rows of one."""
    is_share = measure == "accuracy"
    mean, low, high = group.estimate(method, measure).with_ends
    if is_share and not high - low > 1e-9:  # also of a single split
        one, *_ = (one for one in group.by_method[method].values() if one["status"] == OK)
        low, high = one["accuracy_low"], one["accuracy_high"]
    return mean, low, high


def _told(group: Group, best: str, second: str) -> str:
    """Say whether the best method can be told from the next by their paired differences over the splits."""
    lead, name = group.lead(best, second, "log_loss"), METHODS[second].title
    mean, low, high = lead.with_ends
    if lead.n < 2:
        return f" One split is not enough to compare it with {name}; splits=... takes more."
    may = "" if low > 0 else ", so there may be no difference"
    return f" On the same splits, it is lower than that of {name} by {mean:.3f} ({low:.3f} to {high:.3f}{may})."


def _share(mean: float, low: float, high: float) -> str:
    return f"{100 * mean:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _percent(row: Mapping[str, Any], name: str) -> str:
    return _share(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _errors(row: Mapping[str, Any]) -> tuple[float, float, float]:
    return row["actual_error"], 1 - row["accuracy_high"], 1 - row["accuracy_low"]


def _whether_to_believe(found: Steps) -> Iterator[str]:
    if found.baseline:
        yield (
            "Whether to believe the confidence, with all features: "
            + "; ".join(
                f"{100 * row['confidence']:.1f} % stated and {_percent(row, 'accuracy')} right by "
                f"{CLASSIFIERS[row['classifier']][0]}"
                for row in found.baseline
            )
            + "."
        )
    too_low = []
    for k in dict.fromkeys(row["k"] for row in found.confidence):
        both = {bool(row["correct"]): row for row in found.confidence if row["k"] == k}
        if len(both) < 2:
            continue
        with_it, without = both[True], both[False]
        n_selected, n_columns = len(with_it["selected"]), with_it["n_columns"]
        what = f"After selecting {n_selected} of {n_columns}" if n_selected < n_columns else f"With all {n_columns}"
        yield (
            f"{what} columns: error rate {_share(*_errors(without))}, stated {100 * without['expected_error']:.1f} %; "
            f"with the correction {_share(*_errors(with_it))}, stated {100 * with_it['expected_error']:.1f} %."
        )
        if with_it["expected_error"] < 1 - with_it["accuracy_high"]:
            too_low.append(str(n_selected))
    if too_low:
        yield (
            f"With {' and '.join(dict.fromkeys(too_low))} columns the stated error is too low even with the "
            "correction, by more than chance explains, so selection is not the reason. Naive Bayes treats columns as "
            "independent that depend on each other, and counts what they share several times. Do not use its "
            "probabilities as they are: calibrate them on rows that it has not learned from (CalibratedClassifierCV "
            "of scikit-learn), or state the error on test rows."
        )


# The figures of a study.

_OF_TEST_ROWS = "95 % confidence interval on test rows"


def figures_of(found: Steps) -> list[LineFigure]:
    """Return the frontier, calibration, missing features and confidence as figures; those without points are empty."""
    return [
        _frontier(found, "accuracy", "accuracy on test rows"),
        _frontier(found, "agreement", "agreement with all features"),
        _reliability(found),
        *_gaps(found),
        _confidence(found),
    ]


def _frontier(found: Steps, measure: str, label: str) -> LineFigure:
    # Of budgets whose selections cost the same, the smallest counts.
    points = {
        (method, one["cost"]): tuple(one[f"{measure}{end}"] for end in ("", "_low", "_high"))
        for method in (TRIMMING, INFORMATION, SEQUENTIAL)
        for row in reversed(found.frontier)
        for one in row["methods"]
        if one["method"] == method and "failure" not in one
    }
    is_count = set(found.costs.values()) == {1.0}
    return LineFigure.of(
        f"{label[0].upper()}{label[1:]} against {'number' if is_count else 'cost'} of features",
        ("features kept" if is_count else "cost of the features kept", label),
        [(*place, *values) for place, values in sorted(points.items())],
        name=measure,
        interval=_OF_TEST_ROWS,
    )


def _reliability(found: Steps) -> LineFigure:
    points = [
        (CLASSIFIERS[row["classifier"]][0], *(one[key] for key in ("confidence", "right", "right_low", "right_high")))
        for row in found.baseline
        for one in row["reliability"]
    ]
    return LineFigure.against_diagonal(
        "Is the confidence honest? All features",
        ("stated probability of the predicted class", "share that is right"),
        points,
        (min((stated for _, stated, *_ in points), default=1.0), 1.0),
        mark="highlight",
        diagonal="honest",
        name="calibration",
        interval=_OF_TEST_ROWS,
    )


def _gaps(found: Steps) -> list[LineFigure]:
    titles = {name: METHODS[name].title for name in found.settings.methods}
    return [
        LineFigure.of(
            f"What missing features cost ({MECHANISMS[mechanism]})",
            ("missing features (%)", "log loss (nats)"),
            [
                (title, 100 * group.missing, *_estimate(group, name, "log_loss"))
                for name, title in titles.items()
                for group in found.gaps
                if group.mechanism == mechanism and group.values(name, "log_loss")
            ],
            name=f"missing_{mechanism}",
            interval="95 % confidence interval of the mean over splits",
            methods={title: title for title in titles.values()},
        )
        for mechanism in dict.fromkeys(group.mechanism for group in found.gaps)
    ]


def _confidence(found: Steps) -> LineFigure:
    points = [
        (f"{kind}, {what}", len(row["selected"]), *values)
        for correct, kind in ((True, "corrected"), (False, "uncorrected"))
        for what in ("expected", "actual")
        for row in found.confidence
        if bool(row["correct"]) == correct
        for values in [_errors(row) if what == "actual" else (row["expected_error"],)]
    ]
    names = dict.fromkeys(name for name, *_ in points)
    return LineFigure.of(
        "Expected and actual error rates after selection",
        ("columns selected", "error rate"),
        points,
        name="confidence",
        interval=f"{_OF_TEST_ROWS}, of actual errors",
        marks={name: "reference" for name in names if name.endswith("actual")},
        methods={name: name.partition(",")[0] for name in names},
    )


# The tables of a study.

_CARD = dict.fromkeys(("column", "read as", "values", "missing", "what they are", "notes"), "")
_BASELINE = {
    "classifier": "",
    **dict.fromkeys(("accuracy", "low", "high", "log loss", "Brier score", "confidence", "calibration error"), ".4f"),
    "seconds": ".2f",
}
_FRONTIER = {
    "budget": "g",
    "selected by": "",
    "cost": "g",
    "features": "",
    **dict.fromkeys(
        ("agreement", "agreement low", "agreement high", "accuracy", "accuracy low", "accuracy high"), ".4f"
    ),
    **dict.fromkeys(("promised agreement", "promised low", "promised high"), ".4f"),
    **dict.fromkeys(("difference from trimming", "difference low", "difference high"), "+.4f"),
    "differs from trimming": "",
    "weight of rows": ".2f",
    "proven best": "",
    "seconds": ".2f",
    "reason": "",
}
_GAPS = {
    **dict.fromkeys(("missing", "method"), ""),
    "share": ".2f",
    **dict.fromkeys(("accuracy", "accuracy low", "accuracy high", "log loss", "log loss low", "log loss high"), ".4f"),
    **dict.fromkeys(("behind the best", "behind low", "behind high"), "+.4f"),
    "differs from the best": "",
    "calibration error": ".4f",
    "fit (s)": ".3f",
    "microseconds a row": ".1f",
    "reason": "",
}
_CONFIDENCE = {
    "columns selected": "",
    "confidence": "",
    **dict.fromkeys(("expected error", "actual error", "actual low", "actual high", "surplus"), ".4f"),
    **dict.fromkeys(("log loss", "calibration error"), ".4f"),
    "first columns": "",
}
_WHY = "Why some test rows are predicted as they are (row: among those with a class, counted from 1)"
_EXPLAINED = {
    **dict.fromkeys(("row", "class", "predicted", "against"), ""),
    "probability": ".4f",
    **dict.fromkeys(("kept by", "although"), ""),
}
_FAILURES = dict.fromkeys(("step", "of", "status", "reason"), "")


def card_of(table: ReadTable) -> Table:
    """Return how each column was read."""
    lines = [
        (one.name, one.read_as, one.distinct, one.missing, one.values, "; ".join(one.notes))  # noqa: PD011
        for one in table.card
    ]
    return Table.of("How each column was read", lines, _CARD, name="card")


def tables_of(found: Steps) -> list[Table]:
    """Return all tables; the main one is the frontier."""
    tables = [
        Table.of("What to keep, at what price", _frontier_tables(found), _FRONTIER),
        card_of(found.table),
        Table.of("All features: accuracy and calibration", _baseline(found), _BASELINE, name="baseline"),
        Table.of("Predictions with missing features", _gaps_tables(found), _GAPS, name="missing"),
        Table.of("Confidence after selection", _confidence_tables(found), _CONFIDENCE, name="confidence"),
        Table.of(_WHY, _explained(found), _EXPLAINED, name="explanations"),
    ]
    if found.failures:
        tables.append(Table.of("Steps without a result", _failures(found), _FAILURES, name="failures"))
    return tables


def _baseline(found: Steps) -> Iterator[tuple[object, ...]]:
    measures = ("accuracy", "accuracy_low", "accuracy_high", "log_loss", "brier", "confidence", "calibration")
    for row in found.baseline:
        yield CLASSIFIERS[row["classifier"]][0], *(row[name] for name in measures), row["method_seconds"]


def _frontier_tables(found: Steps) -> Iterator[dict[str, object]]:
    for row in found.frontier:
        for one in row["methods"]:
            line: dict[str, object] = {"budget": row["budget"], "selected by": one["method"]}
            if "failure" in one:
                yield {**line, "reason": one["failure"]}
                continue
            line |= {"cost": one["cost"], "features": _joined(one["features"]), "seconds": one["method_seconds"]}
            for name in ("agreement", "accuracy"):
                line |= {name: one[name], f"{name} low": one[f"{name}_low"], f"{name} high": one[f"{name}_high"]}
            if one["method"] == TRIMMING:
                for name, end in (("agreement", ""), ("low", "_low"), ("high", "_high")):
                    line[f"promised {name}"] = one.get(f"blended_agreement{end}", one[f"model_agreement{end}"])
                line["weight of rows"] = one.get("rows_weight", 0.0)
                line["proven best"] = "yes" if one["is_optimal"] else "no"
            else:
                more, low, high = paired_difference(one["n_gained"], one["n_lost"], row["n_test"])
                line |= {"difference from trimming": more, "difference low": low, "difference high": high}
                line["differs from trimming"] = "yes" if low > 0 or high < 0 else "no"
            yield line


def _gaps_tables(found: Steps) -> Iterator[dict[str, object]]:
    for group in found.gaps:
        place = {"missing": MECHANISMS[group.mechanism], "share": group.missing}
        best, *_ = *group.ranked(found.settings.methods, "log_loss"), ""
        for name in found.settings.methods:
            line: dict[str, object] = {**place, "method": METHODS[name].title}
            reasons = "; ".join(
                f"{status}: {reason} ({n} times)" for (status, reason), n in group.reasons(name).items()
            )
            if not group.estimate(name, "log_loss").n:
                yield {**line, "reason": reasons}
                continue
            loss, accuracy = (_estimate(group, name, measure) for measure in ("log_loss", "accuracy"))
            line |= zip(("log loss", "log loss low", "log loss high"), loss, strict=True)
            line |= zip(("accuracy", "accuracy low", "accuracy high"), accuracy, strict=True)
            line[MEASURES["calibration"][0]] = group.estimate(name, "calibration").value
            if name != best:
                behind = group.lead(best, name, "log_loss")
                line |= zip(("behind the best", "behind low", "behind high"), behind.with_ends, strict=True)
                line["differs from the best"] = "yes" if behind.ends[0] > 0 else "no"
            for measure, title in (("fit_seconds", "fit (s)"), ("us_per_row", "microseconds a row")):
                line[title] = group.estimate(name, measure).value
            yield {**line, "reason": reasons}


def _confidence_tables(found: Steps) -> Iterator[tuple[object, ...]]:
    for row in found.confidence:
        errors = (row["expected_error"], *_errors(row))
        measures = (row["actual_error"] - row["expected_error"], row["log_loss"], row["calibration"])
        kind, first = "corrected" if row["correct"] else "uncorrected", _joined(row["selected"][:5])
        yield len(row["selected"]), kind, *errors, *measures, first


def _explained(found: Steps) -> Iterator[tuple[object, ...]]:
    dates = {one.name for one in found.table.card if one.read_as == "date"}

    def with_values(values: Iterable[tuple[str, Any]]) -> str:
        texts = ((name, text_of(one) if name in dates else one) for name, one in values)
        return _joined(f"{name} = {one if isinstance(one, str) else f'{one:.4g}'}" for name, one in texts)

    for one in found.explanations:
        kept_by = with_values(one["features"]) or "no feature: nothing opposes it"
        place = (one[name] for name in ("class", "predicted", "against", "probability"))
        yield one["row"] + 1, *place, kept_by, with_values(one["opposing"])


def _failures(found: Steps) -> Iterator[tuple[object, ...]]:
    for row in found.failures:
        place = {name: row.get(name) for name in ("classifier", "budget", "k", "mechanism", "missing", "split")}
        known = [f"{name} {value}" for name, value in place.items() if value is not None and value == value]
        reason = str(row.get("error") or "").strip().splitlines()
        yield row["step"], ", ".join(known), row["status"], reason[-1][:300] if reason else ""


# What the jobs of each step of a study found, and which model follows from it.

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Studied:
    """A table to study, the cost of each of its features, and what to try."""

    table: ReadTable
    costs: Mapping[str, float]
    settings: StudySettings

    @property
    def positive(self) -> str | None:
        """The class that trimming sets against the rest; None where it takes all classes as they are."""
        named = self.settings.positive is not None and len(self.table.classes) > 2
        return self.table.positive if named else None


@dataclass(frozen=True, eq=False)
class Steps(Studied):
    """What the jobs of each step found, and why some have failed."""

    frontier: list[Row]
    choices: list[Row]
    baseline: list[Row]
    gaps: list[Group]
    confidence: list[Row]
    explanations: list[Row]
    failures: list[Row]

    @classmethod
    def of(cls, rows: pd.DataFrame, studied: Studied) -> Steps:
        """Sort the rows of the jobs into steps."""
        name, done = studied.table.name, rows[rows["status"] == "ok"]

        def step(one: str) -> list[Row]:
            return [_plain(row) for row in done[done["step"] == one].to_dict("records")]

        gaps = done[done["step"] == "gaps"].dropna(axis=1, how="all").assign(dataset=name, title=name)
        return cls(
            studied.table,
            studied.costs,
            studied.settings,
            step("frontier"),
            step("choice"),
            step("baseline"),
            groups_of(gaps) if len(gaps) else [],
            # A table may have fewer columns than were asked for.
            list({(len(row["selected"]), bool(row["correct"])): row for row in step("confidence")}.values()),
            [one for row in step("explanations") for one in row["explained"]],
            [_plain(row) for row in rows[rows["status"] != "ok"].to_dict("records")],
        )

    @cached_property
    def trimmings(self) -> list[Row]:
        """The trimming of each budget, with the budget."""
        every = [(row["budget"], one) for row in self.frontier for one in row["methods"]]
        return [{**one, "budget": budget} for budget, one in every if one["method"] == TRIMMING]

    @cached_property
    def chosen(self) -> Row | None:
        """The trimming of the budget that was chosen on the training rows."""
        budgets = [row["budget"] for row in self.choices if row.get("fold") is None]
        return next((one for one in self.trimmings if one["budget"] in budgets), None)

    @property
    def is_nested(self) -> bool:
        """Whether what was chosen was tested by nested cross-validation, because rows are few."""
        return len(self.choices) == OUTER + 1

    @property
    def _tested(self) -> list[Row]:
        return [row for row in self.choices if (row.get("fold") is not None) == self.is_nested]

    @cached_property
    def accuracy(self) -> Share | None:
        """The share of rows, unseen by any choice, that the trimming decides correctly."""
        n_rows = sum(row["n_test"] for row in self._tested)
        return Share.of(sum(row["n_right"] for row in self._tested), n_rows, self.is_nested) if n_rows else None

    @cached_property
    def difference(self) -> tuple[float, float, float]:
        """How much more accurate the trimming is than all features, on the same rows, with a 95 % interval."""
        n, gained, lost = (sum(row[name] for row in self._tested) for name in ("n_test", "n_gained", "n_lost"))
        return paired_difference(gained, lost, n, self.is_nested)


def paired_difference(gained: int, lost: int, n: int, are_folds: bool = False) -> tuple[float, float, float]:
    """Return the difference of two accuracies on the same rows, with a 95 % interval.

    `gained` and `lost` are the numbers of rows on which only the first, or only the second, is right.
    """
    # As if one more row had been gained and one lost, so that there is an interval even if no row was.
    variance = (gained + lost + 2 - (gained - lost) ** 2 / n) / n**2 * (_SHARED if are_folds else 1)
    mean, half = (gained - lost) / n, 1.96 * math.sqrt(variance)
    return mean, max(mean - half, -1.0), min(mean + half, 1.0)


# Folds learn from shared rows: their mean varies as if there were fewer rows (Nadeau and Bengio, 2003).
_SHARED = 1 + OUTER / (OUTER - 1)


@dataclass(frozen=True)
class Share:
    """A share of rows with Wilson's 95 % interval, wider for rows of cross-validation."""

    value: float
    low: float
    high: float
    n_rows: int

    @classmethod
    def of(cls, n_right: float, n_rows: float, are_folds: bool = False) -> Share:
        """Return the share that `n_right` is of `n_rows`."""
        shared = _SHARED if are_folds else 1
        return cls(n_right / n_rows, *wilson_interval(n_right / shared, n_rows / shared), int(n_rows))

    def __str__(self) -> str:
        """Return it in percent, with its interval."""
        return f"{_share(self.value, self.low, self.high)} of {self.n_rows:,} rows"


def _plain(row: Mapping[Any, Any]) -> Row:
    """Return a row without the columns of other steps, which are NaN in it."""
    return {str(key): value for key, value in row.items() if isinstance(value, list) or value == value}


# The lines of Python that rebuild the model to keep.


def model_lines(found: Steps, source: str | None, target: str) -> str:
    """Return a program that learns and saves the model to keep, if any, from the file `source` or a frame `table`."""
    own, chosen = found.settings, found.chosen
    if chosen is None:
        return ""
    usual = TableSettings()
    names = [name for name in vars(usual) if getattr(own, name) != getattr(usual, name)]
    reading = ", ".join(f"{name}={getattr(own, name)!r}" for name in names)
    if source is not None and (home := next((one for one in own_homes() if source.startswith(f"{one}/")), None)):
        source = f"~{source.removeprefix(home)}"  # pages of a study may be shared
    read, remark = ("table", "  # the data frame that was studied") if source is None else (repr(source), "")
    priced = set(found.costs.values()) != {1.0}
    arguments = f"budget={chosen['budget']!r}, {'costs=costs, ' * priced}time_limit={own.seconds(len(found.costs))!r}"
    parts = [
        "from trimbench.estimators import TrimmedClassifier",
        f"from trimbench.papers.own_table.table_reading import {'TableSettings, ' if reading else ''}read_table",
        "from trimbench.papers.own_table.settings import StoredTable",
        "",
        f"table = read_table({read}, {target!r}{f', TableSettings({reading})' if reading else ''}){remark}",
        "data = StoredTable(table.features, table.labels, table.classes)",
        f"answers = data.answers({found.positive!r})",
        f"rows = data.split({own.test_share!r}, {own.seed!r}, most={own.rows!r})[0]  # those of the study",
        *([f"costs = {dict(found.costs)!r}"] if priced else []),
        f"model = TrimmedClassifier({arguments})",
        "model.fit(data.features.iloc[rows], answers[rows])  # .fit(data.features, answers) learns from all rows",
        'print("features:", ", ".join(model.features_))',
        'model.save("model.json")  # TrimmedClassifier.load("model.json").predict(new_rows)',
    ]
    return "\n".join(parts) + "\n"


# The page of a study.


def render_study(found: Steps, findings: Findings, lines: str, seconds: float, folder: Path) -> str:
    """Return the page of a study, to be written into the folder of its other files."""
    part = filled(read_about(folder, findings.stem)["page"], folder)
    n_rows, n_features = found.table.features.shape
    cost = sum(float(row) for row in findings.rows["seconds"].dropna()) if "seconds" in findings.rows else 0.0
    return render(
        "study.html",
        facts=facts_of(
            f"{n_rows:,} rows, {n_features} features, {len(found.table.classes)} classes",
            f"{seconds:.0f} s, {cost:.0f} s in {len(findings.rows)} jobs",
            computed=part["computed"],
        ),
        title=f"{found.table.name}: what to keep, what missing values cost, whether to believe it",
        conclusions=conclusions(found),
        notes=notes(found),
        tables=table_parts(part),
        figures=part["figures"],
        jobs=part["jobs"],
        provenance=part["provenance"],
        lines=lines,
    )
