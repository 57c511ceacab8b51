"""The tables and figures of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trimbench.papers.beyond.missing_values import MEASURES, MECHANISMS
from trimbench.papers.methods.missing_features import METHODS
from trimbench.papers.own_table.confidence import CALIBRATED, CHOOSING, CORRECTED, SELECTING, UNCORRECTED
from trimbench.papers.own_table.found import Steps, error_of, estimate_of, joined, paired_difference, stability_of
from trimbench.papers.own_table.steps import (
    CLASSIFIERS,
    INFORMATION,
    MOST_FREQUENT,
    SEQUENTIAL,
    TRIMMING,
)
from trimbench.papers.own_table.table_reading import ReadTable
from trimbench.papers.own_table.table_texts import text_of
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.tables import Table

# The tables of a study; titles name the kind and the level of the intervals.

_WILSON = "shares of test rows with Wilson's 95 % intervals"

_COUNTED = "counted in rows"
_CARD = dict.fromkeys(("column", "read as", "values", "missing", "what they are", _COUNTED, "notes"), "")
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
_COMPARED = {
    **dict.fromkeys(("classifier", "features", "rows"), ""),
    **dict.fromkeys(("accuracy", "accuracy low", "accuracy high"), ".4f"),
    **dict.fromkeys(("behind the first", "behind low", "behind high"), "+.4f"),
    **dict.fromkeys(("differs from the first", "reason"), ""),
}
_LOST = "Predictions with missing features (means over splits with 95 % intervals by Student's t)"
_GAPS = {
    **dict.fromkeys(("missing", "method"), ""),
    "share": ".2f",
    **dict.fromkeys(("accuracy", "accuracy low", "accuracy high", "log loss", "log loss low", "log loss high"), ".4f"),
    **dict.fromkeys(("behind the best", "behind low", "behind high"), "+.4f"),
    "differs from the best": "",
    **dict.fromkeys(("calibration error", "stays, stated", "stays", "stays low", "stays high"), ".4f"),
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
    **dict.fromkeys(("probability", "stays"), ".4f"),
    **dict.fromkeys(("kept by", "although"), ""),
}
_USED = dict.fromkeys(("step", "learned from", "tested on", "times", "drawn", "of rows"), "")
_FAILURES = dict.fromkeys(("step", "of", "status", "reason"), "")


def card_of(table: ReadTable) -> Table:
    """Return how each column was read."""
    title, names = "How each column was read", dict(_CARD)
    is_sample = table.n_rows > len(table.labels)
    if not is_sample:
        del names[_COUNTED]
    lines = [
        {
            **dict(zip(_CARD, (one.name, one.read_as, one.distinct, one.missing, one.values), strict=False)),
            **({_COUNTED: one.rows} if is_sample else {}),
            "notes": "; ".join(one.notes),
        }
        for one in table.card
    ]
    return Table.of(title, lines, names, name="card")


def rows_of(table: ReadTable) -> str:
    """Return how many rows a table has, and how many they were drawn from."""
    n_rows = len(table.labels)
    return f"{n_rows:,} rows" if n_rows == table.n_rows else f"{n_rows:,} of {table.n_rows:,} rows"


def tables_of(found: Steps) -> list[Table]:
    """Return all tables; the main one is the frontier."""
    tables = [
        Table.of(f"What to keep, at what price ({_WILSON})", _frontier_tables(found), _FRONTIER),
        card_of(found.table),
        Table.of(_beside(found), _compared(found), _COMPARED, name="classifiers"),
        Table.of(f"All features: accuracy and calibration ({_WILSON})", _baseline(found), _BASELINE, name="baseline"),
        Table.of(_LOST, _gaps_tables(found), _GAPS, name="missing"),
        Table.of(f"Confidence after selection ({_WILSON})", _confidence_tables(found), _CONFIDENCE, name="confidence"),
        Table.of(_WHY, _explained(found), _EXPLAINED, name="explanations"),
        Table.of(
            "Rows that each step used (with a class; times: with other rows, budgets or methods)",
            _used(found),
            _USED,
            name="used",
        ),
    ]
    if found.failures:
        tables.append(Table.of("Steps without a result", _failures(found), _FAILURES, name="failures"))
    return tables


def _beside(found: Steps) -> str:
    kind = "Wilson's 95 % intervals"
    if found.is_nested:
        kind += ", wider because folds learn from shared rows"
    return f"Beside what people use, on rows that no choice has seen ({kind}; the most accurate first)"


def _compared(found: Steps) -> Iterator[dict[str, object]]:
    judged = found.judged
    if judged is None:
        return
    first, *_ = judged.ranked
    n_kept = len(found.chosen["features"]) if found.chosen else None
    n_features = {TRIMMING: n_kept, MOST_FREQUENT: 0}
    for name in judged.ranked:
        share = judged.share(name)
        line: dict[str, object] = {"classifier": title_of(name), "features": n_features.get(name, len(found.costs))}
        line |= {"rows": share.n_rows, "accuracy": share.value, "accuracy low": share.low, "accuracy high": share.high}
        if name != first:
            behind = judged.difference(first, name)
            line |= zip(("behind the first", "behind low", "behind high"), behind, strict=True)
            line["differs from the first"] = "yes" if behind[1] > 0 else "no"
        yield line
    for name, reason in judged.failures.items():
        yield {"classifier": title_of(name), "reason": reason}


def title_of(name: str) -> str:
    """Return what a classifier is called: the trimming, one of `CLASSIFIERS`, or the most frequent class."""
    return CLASSIFIERS[name][0] if name in CLASSIFIERS else name.replace("_", " ")


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
            line |= {"cost": one["cost"], "features": joined(one["features"]), "seconds": one["method_seconds"]}
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
            loss, accuracy = (estimate_of(group, name, measure) for measure in ("log_loss", "accuracy"))
            line |= zip(("log loss", "log loss low", "log loss high"), loss, strict=True)
            line |= zip(("accuracy", "accuracy low", "accuracy high"), accuracy, strict=True)
            line[MEASURES["calibration"][0]] = group.estimate(name, "calibration").value
            if (stability := stability_of(group, name)) is not None:
                line |= zip(("stays, stated", "stays", "stays low", "stays high"), stability, strict=True)
            if name != best:
                behind = group.lead(best, name, "log_loss")
                line |= zip(("behind the best", "behind low", "behind high"), behind.with_ends, strict=True)
                line["differs from the best"] = "yes" if behind.ends[0] > 0 else "no"
            for measure, title in (("fit_seconds", "fit (s)"), ("us_per_row", "microseconds a row")):
                line[title] = group.estimate(name, measure).value
            yield {**line, "reason": reasons}


def _confidence_tables(found: Steps) -> Iterator[tuple[object, ...]]:
    for row in found.confidence:
        errors = (row["expected_error"], *error_of(row))
        measures = (row["actual_error"] - row["expected_error"], row["log_loss"], row["calibration"])
        title, first = {**SELECTING, **CHOOSING}[row["method"]][0], joined(row["selected"][:5])
        yield len(row["selected"]), title, *errors, *measures, first


def _explained(found: Steps) -> Iterator[tuple[object, ...]]:
    dates = {one.name for one in found.table.card if one.read_as == "date"}

    def with_values(values: Iterable[tuple[str, Any]]) -> str:
        texts = ((name, text_of(one) if name in dates else one) for name, one in values)
        return joined(f"{name} = {one if isinstance(one, str) else f'{one:.4g}'}" for name, one in texts)

    for one in found.explanations:
        kept_by = with_values(one["features"]) or "no feature: nothing opposes it"
        place = (one[name] for name in ("class", "predicted", "against", "probability", "stability"))
        yield one["row"] + 1, *place, kept_by, with_values(one["opposing"])


def _used(found: Steps) -> Iterator[tuple[object, ...]]:
    for (step, n_train, n_test), times in found.used.items():
        yield _STEPS[step], n_train, n_test, times, len(found.table.labels), found.table.n_rows


_STEPS = {
    "frontier": "frontier",
    "choice": "choice of a budget",
    "baseline": "all features",
    "gaps": "missing features",
    "confidence": "confidence",
    "explanations": "explanations",
}


def _failures(found: Steps) -> Iterator[tuple[object, ...]]:
    for row in found.failures:
        place = {
            name: row.get(name) for name in ("classifier", "budget", "method", "k", "mechanism", "missing", "split")
        }
        known = [f"{name} {value}" for name, value in place.items() if value is not None and value == value]
        reason = str(row.get("error") or "").strip().splitlines()
        yield row["step"], ", ".join(known), row["status"], reason[-1][:300] if reason else ""


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
                (title, 100 * group.missing, *estimate_of(group, name, "log_loss"))
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
        (f"{SELECTING[method][0]}, {what}", len(row["selected"]), *values)
        for method in (CORRECTED, UNCORRECTED, CALIBRATED)
        for what in ("expected", "actual")
        for row in found.confidence
        if row["method"] == method
        for values in [error_of(row) if what == "actual" else (row["expected_error"],)]
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
