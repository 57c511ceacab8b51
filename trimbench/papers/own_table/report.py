"""What follows from a study, in sentences with its numbers, as tables and figures, and the script that repeats it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from trimbench.papers.beyond.missing_values import MECHANISMS, Group
from trimbench.papers.methods.missing_features import METHODS
from trimbench.papers.own_table.confidence import CALIBRATED, CHOOSING, CORRECTED, UNCORRECTED
from trimbench.papers.own_table.found import (
    Row,
    Steps,
    cross_fitted_loss,
    ends_of,
    error_of,
    estimate_of,
    joined,
    percent,
    stability_of,
)
from trimbench.papers.own_table.steps import CANDIDATES, CLASSIFIERS, FEW, OUTER, SEQUENTIAL_ROWS, STATED_ROWS, TRIMMING
from trimbench.papers.own_table.table_reading import DETERMINES
from trimbench.papers.own_table.table_texts import TableSettings
from trimbench.papers.own_table.tables import rows_of, title_of
from trimbench.reproduction.files import own_homes
from trimbench.reproduction.reporting.page import facts_of, render, table_parts
from trimbench.reproduction.reporting.parts import filled
from trimbench.reproduction.reporting.runs import read_about
from trimbench.reproduction.vocabulary.planning import Findings


def conclusions(found: Steps) -> list[str]:
    """Return one or two sentences for each question that the study answers."""
    said = [*_what_to_keep(found), *_beside_others(found), *_what_is_lost(found), *_whether_to_believe(found)]
    return [*said, _INTERVALS] if any("(" in one for one in said) else said


_INTERVALS = (
    "Intervals are at 95 %: of shares of rows Wilson's, as if of fewer rows where they are those of cross-validation; "
    "of differences on the same rows the normal one of a paired mean; of means over splits Student's t, wider because "
    "splits share rows."
)


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
        drawn = " that were drawn, and sample_rows=... draws more" if n_rows < found.table.n_rows else ""
        said.append(
            f"To save time, all steps except the one on missing features learn from {own.rows:,} random training rows; "
            f"rows={n_rows} takes all{drawn}."
        )
    elif n_rows < found.table.n_rows and n_rows - n_test < own.rows:
        said.append(
            f"rows={own.rows} are more than the {n_rows - n_test:,} that were drawn to learn from; sample_rows="
            f"{math.ceil(own.rows / (1 - own.test_share))} draws as many."
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
    if CALIBRATED not in found.selecting:
        said.append(
            "With more than two classes and missing values, the calibration after selection would take minutes, and is "
            "left out."
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
        f"With fewer than {FEW} test rows, the interval of their share would reach more than 6 points to either side: "
        f"then the chosen trimming and the classifiers beside it are tested on all rows, by nested cross-validation "
        f"with {OUTER} folds.",
        "SequentialFeatureSelector chooses as many features as trimming keeps, whatever they cost, from the "
        f"{CANDIDATES} most informative ones, by the cross-validated accuracy of CategoricalNB on at most "
        f"{SEQUENTIAL_ROWS:,} rows.",
        "Whether a decision stays once all values are known: what is stated is the mean same-decision probability of a "
        f"conformant model, of at most {STATED_ROWS} random ones of the test rows without gaps of their own; the true "
        "share is of all of these. It holds where values are missing at random.",
        "For logistic regression, and where the confidence after selection is judged, a category becomes several "
        "columns of zeros and ones; for the latter, numbers are cut in two at their median.",
    ]


def _what_to_keep(found: Steps) -> Iterator[str]:
    chosen, accuracy = found.chosen, found.accuracy
    if chosen is None or accuracy is None:
        yield "What to keep: no trimming could be computed."
        return
    names = joined(chosen["features"]) or "no feature"
    difference = _points(found, TRIMMING, "naive_bayes")
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
        f"{percent(*ends_of(chosen, 'agreement'))} of the decisions made with all features, and {accuracy} are right; "
        f"the difference from all features is {difference}. "
        f"{how} Neither the model nor the choice of its budget has seen the rows that it is tested on"
        f"{', thanks to nested cross-validation; the frontier has the test rows of one split' * found.is_nested}."
    )
    suspicious = [one.name for one in found.table.card if one.name in chosen["features"] and DETERMINES in one.notes]
    if suspicious:
        yield (
            f"Check {joined(suspicious)} first: {'they determine' if len(suspicious) > 1 else 'it determines'} the "
            "target in this table. Leave out with drop=[...] what is known only together with the answer, or after it; "
            "all numbers here will change."
        )


def _points(found: Steps, first: str, second: str) -> str:
    """Return how much more accurate a classifier is than another; nothing where one of them failed."""
    if found.judged is None or not {first, second} <= found.judged.n_right.keys():
        return "not known"
    mean, low, high = found.judged.difference(first, second)
    told = "" if low > 0 or high < 0 else ", so there may be none"
    return f"{100 * mean:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}{told})"


def _beside_others(found: Steps) -> Iterator[str]:
    """Compare with what people use; the best is said only with its difference from the next."""
    judged = found.judged
    if judged is None or len(judged.ranked) < 2:
        return
    shares = ((name, judged.share(name)) for name in judged.ranked)
    first, second = judged.ranked[:2]
    surely = judged.difference(first, second)[1] > 0
    yield (
        "Beside what people use, on the same rows: "
        + ", ".join(f"{title_of(name)} {percent(one.value, one.low, one.high)}" for name, one in shares)
        + f". {'The best is' if surely else 'No best can be told:'} {title_of(first)}"
        + f"{'; its' if surely else ' leads, but its'} difference from {title_of(second)} is "
        + f"{_points(found, first, second)}."
    )


def _what_is_lost(found: Steps) -> Iterator[str]:
    for group in found.gaps:
        ranked = group.ranked(found.settings.methods, "log_loss")
        if not ranked or group.missing != max(one.missing for one in found.gaps):
            continue
        best, *others = ranked
        yield (
            f"Missing features ({MECHANISMS[group.mechanism]}, {100 * group.missing:.0f} %): the lowest log loss is "
            f"{_loss(group, best)}, of {METHODS[best].title}, with {percent(*estimate_of(group, best, 'accuracy'))} "
            "right. The others: "
            + (", ".join(f"{METHODS[name].title} {_loss(group, name)}" for name in others) or "none")
            + "."
            + (_told(group, best, others[0]) if others else "")
            + _unseen(group, ranked)
            + _stays(group, ranked)
        )


def _loss(group: Group, method: str) -> str:
    mean, low, high = estimate_of(group, method, "log_loss")
    return f"{mean:.3f} ({low:.3f} to {high:.3f})" if low < high else f"{mean:.3f}"


def _stays(group: Group, methods: list[str]) -> str:
    """Say how many decisions stay once all is known, by the best of the methods that state it."""
    for name in methods:
        if (found := stability_of(group, name)) is not None:
            stated, *true = found
            return (
                f" Of the decisions of {METHODS[name].title}, {percent(*true)} stay once all values are known; "
                f"{100 * stated:.1f} % are stated."
            )
    return ""


def _unseen(group: Group, methods: list[str]) -> str:
    """Say what the choice of the lowest loss is worth on rows that it has not seen."""
    loss = cross_fitted_loss(group, methods)
    if loss is None or len(methods) < 2:
        return ""
    return f" The method that one half of the test rows chooses has a log loss of {loss:.3f} on the other half."


def _told(group: Group, best: str, second: str) -> str:
    """Say whether the best method can be told from the next by their paired differences over the splits."""
    lead, name = group.lead(best, second, "log_loss"), METHODS[second].title
    mean, low, high = lead.with_ends
    if lead.n < 2:
        return f" One split is not enough to compare it with {name}; splits=... takes more."
    may = "" if low > 0 else ", so there may be no difference"
    return f" On the same splits, it is lower than that of {name} by {mean:.3f} ({low:.3f} to {high:.3f}{may})."


def _whether_to_believe(found: Steps) -> Iterator[str]:
    if found.baseline:
        yield (
            "Whether to believe the confidence, with all features: "
            + "; ".join(
                f"{100 * row['confidence']:.1f} % stated and {percent(*ends_of(row, 'accuracy'))} right by "
                f"{CLASSIFIERS[row['classifier']][0]}"
                for row in found.baseline
            )
            + "."
        )
    too_low = []
    for n_selected in dict.fromkeys(len(row["selected"]) for row in found.confidence):
        of = {row["method"]: row for row in found.confidence if len(row["selected"]) == n_selected}
        if not {UNCORRECTED, CORRECTED} <= of.keys():
            continue
        n_columns = of[CORRECTED]["n_columns"]
        what = f"After selecting {n_selected} of {n_columns}" if n_selected < n_columns else f"With all {n_columns}"
        calibrated = f"; calibrated as well, {_stated(of[CALIBRATED])}" if CALIBRATED in of else ""
        yield (
            f"{what} columns: error rate {_stated(of[UNCORRECTED])}; with the correction {_stated(of[CORRECTED])}"
            f"{calibrated}."
        )
        last = of.get(CALIBRATED, of[CORRECTED])
        if last["expected_error"] < 1 - last["accuracy_high"]:
            too_low.append(str(n_selected))
    beside = [f"{CHOOSING[row['method']][0]} {_stated(row)}" for row in found.confidence if row["method"] in CHOOSING]
    if beside:
        yield f"Other ways to choose columns, or to shrink all, and their error rates: {'; '.join(beside)}."
    if too_low:
        yield (
            f"With {' and '.join(too_low)} columns the stated error is too low even with the correction, by more than "
            "chance explains, so selection is not the reason. Naive Bayes treats columns as independent that depend on "
            "each other, and counts what they share several times. Do not use its probabilities as they are: state the "
            "error on test rows, or take another classifier."
        )


def _stated(row: Row) -> str:
    return f"{percent(*error_of(row))}, stated {100 * row['expected_error']:.1f} %"


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
    drawn = f", sample_rows={own.sample_rows!r}, seed={own.seed!r}" * (len(found.table.labels) < found.table.n_rows)
    read, remark = ("table", "  # the data frame that was studied") if source is None else (repr(source), "")
    priced = set(found.costs.values()) != {1.0}
    arguments = f"budget={chosen['budget']!r}, {'costs=costs, ' * priced}time_limit={own.seconds(len(found.costs))!r}"
    parts = [
        "from trimbench.estimators import TrimmedClassifier",
        f"from trimbench.papers.own_table.table_reading import {'TableSettings, ' if reading else ''}read_table",
        "from trimbench.papers.own_table.settings import StoredTable",
        "",
        f"table = read_table({read}, {target!r}{f', TableSettings({reading})' if reading else ''}{drawn}){remark}",
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
    n_features = found.table.features.shape[1]
    cost = sum(float(row) for row in findings.rows["seconds"].dropna()) if "seconds" in findings.rows else 0.0
    return render(
        "study.html",
        facts=facts_of(
            f"{rows_of(found.table)}, {n_features} features, {len(found.table.classes)} classes",
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
