"""Tables and figures of trimmings against information gain, on networks as they are and given evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.outcome import successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.against_information_gain import SELECTIONS

if TYPE_CHECKING:
    import pandas as pd

# Agreements that differ by less are equal: both are exact up to rounding.
_EQUAL = 1e-9
AT_LEAST = "at least as often as information gain"
STRICTLY = "strictly more often"
SUBSTITUTE = "substitute_"
_LABELS = ("network", "class", "class variable")
# Columns of the results, and how the table and the figures call them.
_METHODS = {
    "agreement": "trimming",
    "gain_same_threshold": "information gain, same T",
    **{f"{name}_best_threshold": f"{selection.title}, best T'" for name, selection in SELECTIONS.items()},
    "no_feature": "no feature",
}


@dataclass(frozen=True)
class Variant:
    """What distinguishes the results on networks as they are from those given evidence.

    Attributes
    ----------
    given : str
        What titles say of the variant.
    suffix : str
        What the names of its tables and figures end in.
    """

    given: str = ""
    suffix: str = ""

    def name(self, name: str) -> str:
        """Return the name of a table or figure of this variant."""
        return "_".join(part for part in (name, self.suffix) if part)


@dataclass(frozen=True)
class Comparison:
    """The tables and figures of one variant.

    Attributes
    ----------
    means, thresholds, claim, refused : Table
        Agreement over all thresholds and at each, in how many settings the claim of section 6.3 holds, and what could
        not be computed.
    figures : list of LineFigure
    solved : DataFrame
        The rows behind them.
    """

    means: Table
    thresholds: Table
    claim: Table
    refused: Table
    figures: list[LineFigure]
    solved: pd.DataFrame

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [self.means, self.thresholds, self.claim, self.refused]


def compared(rows: pd.DataFrame, variant: Variant, engine: str) -> Comparison:
    """Return the tables and figures of the rows of one variant; the engine is the one that was asked for."""
    import pandas as pd

    # Without any refused network, no result has such an entry.
    done = successes(rows.assign(refused=rows.get("refused")))
    solved, refused = done[done["refused"].isna()], done[done["refused"].notna()]
    results = solved.to_dict("records")
    points = pd.DataFrame([_labels(row) | point for row in results for point in row["points"]])
    means = [_summary(row) for row in results]
    lines = [_line(row, point) for row in results for point in row["points"]]
    reasons = [_refusal(row, engine) for row in refused.to_dict("records")]
    figures = []
    if results:
        figures = [_figure(str(name), group, variant) for name, group in points.groupby("network", sort=False)]
        if not variant.given:  # so many networks have evidence that their curves would be a tangle
            figures.append(_without_features(points))
    return Comparison(
        Table.of(f"Figure 7{variant.given}: {_SUMMARY_TITLE}", means, _SUMMARY_FORMATS, name=variant.suffix),
        Table.of(_LINES_TITLE + variant.given, lines, _LINE_FORMATS, name=variant.name("thresholds"), listed=False),
        Table.of(_CLAIM_TITLE + variant.given, _claim(points), _CLAIM_COLUMNS, name=variant.name("claim")),
        Table.of(_REFUSED_TITLE + variant.given, reasons, _REFUSED_COLUMNS, name=variant.name("refused")),
        figures,
        solved,
    )


def _refusal(row: Mapping[Any, Any], engine: str) -> dict[str, object]:
    # The rest of the message is advice for users of the library.
    reason = row["refused"].split("; use ")[0]
    return _labels(row) | {"features": int(row["n_features"]), "engine": engine, "reason": reason}


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
            AT_LEAST: int((lead[chosen] >= -_EQUAL).sum()),
            STRICTLY: int((lead[chosen] > _EQUAL).sum()),
            "than at the same T": int((lead_at_same[chosen] > _EQUAL).sum()),
        }
        for title, chosen in (("all", looks | ~looks), ("those in which the original looks at its features", looks))
    ]


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


def _figure(network: str, points: pd.DataFrame, variant: Variant) -> LineFigure:
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
        f"{_shown(network)}{variant.given}: trimming and information gain{over}",
        "threshold T of the original",
        "agreement (ECA)",
        pd.DataFrame(lines),
        name=variant.name(network),
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
    name = network.removeprefix(SUBSTITUTE)
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
_CLAIM_COLUMNS = ("settings", "number", AT_LEAST, STRICTLY, "than at the same T")
_REFUSED_TITLE = "Networks and classes that could not be computed within the limits"
_REFUSED_COLUMNS = (*_LABELS, "features", "engine", "reason")
_SUMMARY_TITLE = "agreement with the original, mean over the thresholds"
