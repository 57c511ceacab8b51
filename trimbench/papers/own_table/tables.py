"""The tables of a study."""

from __future__ import annotations

from collections.abc import Iterator

from trimbench.papers.conformant.gap_groups import MEASURES, MECHANISMS
from trimbench.papers.conformant.gap_methods import METHODS
from trimbench.papers.data.table_reading import ReadTable
from trimbench.papers.own_table.baseline import CLASSIFIERS
from trimbench.papers.own_table.frontier import TRIMMING
from trimbench.papers.own_table.steps import Steps
from trimbench.papers.study.tables import Table

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
    "weight of rows": ".2f",
    "proven best": "",
    "seconds": ".2f",
    "reason": "",
}
_GAPS = {
    **dict.fromkeys(("missing", "method"), ""),
    "share": ".2f",
    **dict.fromkeys(("accuracy", "log loss", "log loss low", "log loss high", "calibration error"), ".4f"),
    "fit (s)": ".3f",
    "microseconds a row": ".1f",
    "reason": "",
}
_CONFIDENCE = {
    "columns selected": "",
    "confidence": "",
    **dict.fromkeys(("expected error", "actual error", "surplus", "log loss", "calibration error"), ".4f"),
    "first columns": "",
}
_EXPLAINED = {
    **dict.fromkeys(("row", "class", "predicted", "against"), ""),
    "probability": ".4f",
    **dict.fromkeys(("kept by", "although"), ""),
}
_FAILURES = dict.fromkeys(("step", "of", "status", "reason"), "")


def card_of(table: ReadTable) -> Table:
    """Return how each column was read."""
    lines = [
        {
            "column": one.name,
            "read as": one.read_as,
            "values": one.distinct,
            "missing": one.missing,
            "what they are": one.values,
            "notes": "; ".join(one.notes),
        }
        for one in table.card
    ]
    return Table.of("How each column was read", lines, _CARD, name="card")


def tables_of(found: Steps) -> list[Table]:
    """Return all tables; the main one is the frontier."""
    tables = [
        Table.of("What to keep at which price", _frontier(found), _FRONTIER),
        card_of(found.table),
        Table.of("All features: accuracy and calibration", _baseline(found), _BASELINE, name="baseline"),
        Table.of("Predictions with missing features", _gaps(found), _GAPS, name="missing"),
        Table.of("Confidence after selection", _confidence(found), _CONFIDENCE, name="confidence"),
        Table.of("Why: some test rows", _explained(found), _EXPLAINED, name="explanations"),
    ]
    if found.failures:
        tables.append(Table.of("Steps without a result", _failures(found), _FAILURES, name="failures"))
    return tables


def _baseline(found: Steps) -> Iterator[dict[str, object]]:
    for row in found.baseline:
        yield {
            "classifier": CLASSIFIERS[row["classifier"]][0],
            "accuracy": row["accuracy"],
            "low": row["accuracy_low"],
            "high": row["accuracy_high"],
            "log loss": row["log_loss"],
            "Brier score": row["brier"],
            "confidence": row["confidence"],
            "calibration error": row["calibration"],
            "seconds": row["method_seconds"],
        }


def _frontier(found: Steps) -> Iterator[dict[str, object]]:
    for row in found.frontier:
        for one in row["methods"]:
            line: dict[str, object] = {"budget": row["budget"], "selected by": one["method"]}
            if "failure" in one:
                yield {**line, "reason": one["failure"]}
                continue
            line |= {"cost": one["cost"], "features": ", ".join(one["features"]), "seconds": one["method_seconds"]}
            for name in ("agreement", "accuracy"):
                line |= {name: one[name], f"{name} low": one[f"{name}_low"], f"{name} high": one[f"{name}_high"]}
            if one["method"] == TRIMMING:
                line |= {
                    "promised agreement": one.get("blended_agreement", one["model_agreement"]),
                    "promised low": one.get("blended_agreement_low", one["model_agreement_low"]),
                    "promised high": one.get("blended_agreement_high", one["model_agreement_high"]),
                    "weight of rows": one.get("rows_weight", 0.0),
                    "proven best": "yes" if one["is_optimal"] else "no",
                }
            yield line


def _gaps(found: Steps) -> Iterator[dict[str, object]]:
    for group in found.gaps:
        place = {"missing": MECHANISMS[group.mechanism], "share": group.missing}
        for name in found.settings.methods:
            line: dict[str, object] = {**place, "method": METHODS[name].title}
            loss = group.estimate(name, "log_loss")
            reasons = "; ".join(
                f"{status}: {reason} ({n} times)" for (status, reason), n in group.reasons(name).items()
            )
            if not loss.n:
                yield {**line, "reason": reasons}
                continue
            line |= {"log loss": loss.mean, "log loss low": loss.low, "log loss high": loss.high}
            for measure in ("accuracy", "calibration"):
                line[MEASURES[measure][0]] = group.estimate(name, measure).mean
            for measure, title in (("fit_seconds", "fit (s)"), ("us_per_row", "microseconds a row")):
                values = list(group.values(name, measure).values())
                line[title] = sum(values) / len(values)
            yield {**line, "reason": reasons}


def _confidence(found: Steps) -> Iterator[dict[str, object]]:
    for row in found.confidence:
        yield {
            "columns selected": len(row["selected"]),
            "confidence": "corrected" if row["correct"] else "uncorrected",
            "expected error": row["expected_error"],
            "actual error": row["actual_error"],
            "surplus": row["actual_error"] - row["expected_error"],
            "log loss": row["log_loss"],
            "calibration error": row["calibration"],
            "first columns": ", ".join(row["selected"][:5]),
        }


def _explained(found: Steps) -> Iterator[dict[str, object]]:
    for one in found.explanations:
        yield {
            **{name: one[name] for name in ("row", "class", "predicted", "against", "probability")},
            "kept by": ", ".join(one["features"]) or "no feature: nothing opposes it",
            "although": ", ".join(one["opposing"]),
        }


def _failures(found: Steps) -> Iterator[dict[str, object]]:
    for row in found.failures:
        place = {name: row.get(name) for name in ("classifier", "budget", "k", "mechanism", "missing", "split")}
        known = [f"{name} {value}" for name, value in place.items() if value is not None and value == value]
        reason = str(row.get("error") or "").strip().splitlines()
        yield {
            "step": row["step"],
            "of": ", ".join(known),
            "status": row["status"],
            "reason": reason[-1][:300] if reason else "",
        }
