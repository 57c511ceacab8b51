"""Tables and figures of the comparison on rows with missing features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trimbench.papers.conformant.gap_groups import MEASURES, Estimate, Group
from trimbench.papers.conformant.gap_methods import METHODS
from trimbench.papers.conformant.missing_values_claims import FORMATS as CLAIM_FORMATS
from trimbench.papers.conformant.missing_values_claims import claim_lines
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.tables import Table

_BASE = "mixture"
_OTHERS = [name for name in METHODS if name != _BASE]
# As many as there are colours.
_DRAWN = ("mixture", "nacl", "mean", "knn", "iterative", "naive_bayes", "masked_trees", "masked_regression")
_PLACE = {"data": "", "training rows": "", "missing": "", "share": ".1f"}
_SUMMARY_FORMATS = dict.fromkeys(
    ("training rows", "measure", "against", "cells", "wins", "draws", "losses", "better", "worse"), ""
)
_COST_FORMATS = {
    **dict.fromkeys(("data", "training rows", "method"), ""),
    "fit (s)": ".3f",
    "microseconds a row": ".1f",
}
_STATUS_FORMATS = dict.fromkeys(("method", "training rows", "status", "reason", "times", "data"), "")
_EACH_FORMATS = {
    **_PLACE,
    **dict.fromkeys(("method", "measure", "splits"), ""),
    **dict.fromkeys(("mean", "low", "high", "lead of mixture", "lead low", "lead high"), ".4f"),
}
NOTES = (
    "A lead is by how much the mixture is better than a method on the same splits and masks. Its 95 % confidence "
    "interval is widened because random splits share rows (Nadeau and Bengio, 2003); there is no correction for the "
    "number of comparisons. A win is an interval above 0, a loss one below 0, all else is a draw; 'better' and 'worse' "
    "count the means.",
    "Every method learns from training rows only and predicts each test row without the others. With complete training "
    "rows NaCL, its mixture, the imputations and the normal expectation take the same logistic regression. With "
    "incomplete ones, which miss features as the test rows do, NaCL and its mixture learn it from what is observed, "
    "and each imputation learns its own from the rows that it has filled.",
    "Models with masks see copies of complete training rows with features hidden by the same mechanism, in the same "
    "share: they know what will be missing, the others do not. Boosted trees without masks learn from complete rows. "
    "'Pattern by pattern' has a regression for each set of observed features, where these sets are few.",
    "All rows are random parts of the data sets, with at most as many rows as the settings say, so that slow methods "
    "cope; images are smaller than in the paper. The calibration error is the expected one of the predicted class, in "
    "ten bins of equal width; the Brier score is summed over the classes.",
)


def tables_of(groups: Sequence[Group]) -> list[Table]:
    """Return all tables; the main one counts what the mixture wins and loses."""
    titles = [METHODS[name].title for name in METHODS]
    losses = "Log loss where features are missing (means over splits)"
    return [
        Table.of("Wins, draws and losses of the mixture of NaCL", _summary(groups), _SUMMARY_FORMATS),
        Table.of("What is claimed of the mixture", claim_lines(groups), CLAIM_FORMATS, name="claims"),
        Table.of(losses, map(_means, groups), {**_PLACE, **dict.fromkeys(titles, ".3f")}, name="log_loss"),
        Table.of("Cost, the logistic regression included", _costs(groups), _COST_FORMATS, name="cost"),
        Table.of("Methods without predictions", _statuses(groups), _STATUS_FORMATS, name="status"),
        Table.of("Every measure", _each(groups), _EACH_FORMATS, name="measures", listed=False),
    ]


def figures_of(groups: Sequence[Group]) -> list[LineFigure]:
    """Return the log loss against the share missing at random, one figure for each data set."""
    own = [group for group in groups if group.mechanism == "mcar" and group.training == "complete"]
    return [
        _figure([group for group in own if group.dataset == name]) for name in dict.fromkeys(g.dataset for g in own)
    ]


def _summary(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for training in dict.fromkeys(group.training for group in groups):
        for measure, (title, _) in MEASURES.items():
            for other in _OTHERS:
                leads = [group.lead(_BASE, other, measure) for group in groups if group.training == training]
                leads = [lead for lead in leads if lead.n]
                if leads:
                    counts = _counts(leads)
                    place = {"training rows": training, "measure": title, "against": METHODS[other].title}
                    yield {**place, "cells": len(leads), **counts}


def _counts(leads: Sequence[Estimate]) -> dict[str, int]:
    wins, losses = sum(lead.low > 0 for lead in leads), sum(lead.high < 0 for lead in leads)
    return {
        "wins": wins,
        "draws": len(leads) - wins - losses,
        "losses": losses,
        "better": sum(lead.mean > 0 for lead in leads),
        "worse": sum(lead.mean < 0 for lead in leads),
    }


def _means(group: Group) -> dict[str, object]:
    found = {METHODS[name].title: group.estimate(name, "log_loss") for name in METHODS}
    return {**group.labels, **{title: estimate.mean for title, estimate in found.items() if estimate.n}}


def _costs(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for title, training in dict.fromkeys((group.title, group.training) for group in groups):
        own = [group for group in groups if (group.title, group.training) == (title, training)]
        for name, method in METHODS.items():
            seconds, each = (_all_values(own, name, measure) for measure in ("fit_seconds", "us_per_row"))
            if seconds:
                place = {"data": title, "training rows": training, "method": method.title}
                yield {
                    **place,
                    "fit (s)": sum(seconds) / len(seconds),
                    "microseconds a row": sum(each) / len(each),
                }


def _all_values(groups: Sequence[Group], method: str, measure: str) -> list[float]:
    return [value for group in groups for value in group.values(method, measure).values()]


def _statuses(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for name, method in METHODS.items():
        found: dict[tuple[str, str, str], list[str]] = {}
        for group in groups:
            for (status, reason), times in group.reasons(name).items():
                found.setdefault((group.training, status, reason), []).extend([group.title] * times)
        for (training, status, reason), titles in found.items():
            line = {"method": method.title, "training rows": training, "status": status, "reason": reason}
            yield {**line, "times": len(titles), "data": ", ".join(dict.fromkeys(titles))}


def _each(groups: Sequence[Group]) -> Iterator[dict[str, object]]:
    for group in groups:
        for name, method in METHODS.items():
            for measure, (title, _) in MEASURES.items():
                mean, low, high, splits = group.estimate(name, measure)
                if not splits:
                    continue
                line = {**group.labels, "method": method.title, "measure": title, "splits": splits}
                line |= {"mean": mean, "low": low, "high": high}
                if name != _BASE:
                    lead = group.lead(_BASE, name, measure)
                    line |= {"lead of mixture": lead.mean, "lead low": lead.low, "lead high": lead.high}
                yield line


def _figure(groups: Sequence[Group]) -> LineFigure:
    import pandas as pd

    points = [_point(group, name) for name in _DRAWN for group in groups if group.values(name, "log_loss")]
    first = groups[0]
    return LineFigure(
        f"{first.title}: log loss",
        "missing features (%)",
        "log loss (nats)",
        pd.DataFrame(points, columns=["series", "x", "y"]),
        name=first.dataset,
        methods={METHODS[name].title: METHODS[name].title for name in _DRAWN},
    )


def _point(group: Group, name: str) -> Mapping[str, object]:
    # Intervals of eight lines would hide them; those of the differences are in the tables.
    return {"series": METHODS[name].title, "x": 100 * group.missing, "y": group.estimate(name, "log_loss").mean}
