"""Tables of what mixtures of conformant models gain, beyond the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from trimbench.papers.conformant.evaluation import MIXTURE
from trimbench.papers.conformant.mask_means import summarise
from trimbench.papers.study.cells import Label
from trimbench.papers.study.numbers import confidence_interval
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd

NOTES = (
    "The mixture of conformant models goes beyond the paper, and nothing printed is compared with it. Each component "
    "conforms with the logistic regression, so that the mixture is exactly the classifier where nothing is missing. "
    "Its number of components is set, or with auto the one beyond which rows held out do not become more likely.",
)
_SHARES = (50.0, 80.0, 90.0)
_MOST_MISSING = 90.0
_FITS = {
    "components": "components",
    "learned_from": "training rows",
    "fit_seconds": "processor seconds",
    "residual": "moment residual",
    "difference": "largest difference to the classifier",
}
_FIT_FORMATS = {
    **dict.fromkeys(["components", "training rows"], ".0f"),
    "processor seconds": ".1f",
    **dict.fromkeys(["moment residual", "largest difference to the classifier"], ".1e"),
}
_INTERVAL = ("interval low", "interval high")
_ACCURACIES = {
    "missing (%)": ".1f",
    "masks": ".0f",
    **dict.fromkeys(["NaCL", "mixture", *_INTERVAL, "naive Bayes"], ".4f"),
}
_LEADS = {
    **dict.fromkeys(["data", "measure"], ""),
    "masks": ".0f",
    "crossing (%)": ".1f",
    **dict.fromkeys(["least lead (points)", *_INTERVAL], ".2f"),
    "at missing (%)": ".1f",
}


def fits_table(fits: pd.DataFrame, labels: Iterable[str]) -> Table:
    """Return how the mixtures were learned; `labels` are the columns of successful jobs that tell them apart."""
    columns = list(labels)
    lines = [
        {label: fit[label] for label in columns} | {title: fit[key] for key, title in _FITS.items()}
        for fit in fits.to_dict("records")
    ]
    title = "Beyond the paper: mixtures of conformant models"
    return Table.of(title, lines, dict.fromkeys(columns, "") | _FIT_FORMATS, name="mixtures")


def accuracy_lines(done: pd.DataFrame, labels: Mapping[str, Label]) -> list[dict[str, object]]:
    """Return the accuracies of one data set where much is missing; none if there is no mixture."""
    summary = summarise(done, "accuracy", ("nacl", MIXTURE, "naive_bayes"))
    lines = []
    for percent, group in summary.groupby("percent"):
        of = group.set_index("method")
        # Masks hide whole pixels.
        if MIXTURE in of.index and any(abs(float(str(percent)) - share) < 0.5 for share in _SHARES):
            mean, mixture = of["mean"], of.loc[MIXTURE]
            values = (percent, mixture["n"], mean["nacl"], mixture["mean"], mixture["low"], mixture["high"])
            lines.append({**labels, **dict(zip(_ACCURACIES, (*values, mean["naive_bayes"]), strict=True))})
    return lines


def accuracies_table(lines: list[dict[str, object]], labels: Iterable[str]) -> Table:
    """Return the table of `accuracy_lines`, with intervals of the mixture's means."""
    title = "Beyond the paper: accuracy where much is missing"
    return Table.of(title, lines, dict.fromkeys(labels, "") | _ACCURACIES, name="mixture_accuracy")


def least_lead(done: pd.DataFrame, measure: str) -> dict[str, object] | None:
    """Return the smallest mean lead of the mixture over naive Bayes, in points, up to 90 % missing.

    With the interval of the mean over the masks, which both share; None if there is no mixture.
    """
    ours, theirs = (f"{method}/{measure}" for method in (MIXTURE, "naive_bayes"))
    if ours not in done.columns:
        return None
    leads = (100 * (done[ours] - done[theirs])).groupby(done["missing_percent"].round(9))
    found = [(float(lead.mean()), percent, lead) for percent, lead in leads if percent <= _MOST_MISSING + 1e-6]
    if not found:
        return None
    least, percent, lead = min(found, key=lambda one: one[0])
    interval = confidence_interval(lead.tolist())
    low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
    columns = ("least lead (points)", *_INTERVAL, "at missing (%)")
    return {"masks": len(lead), **dict(zip(columns, (least, low, high, percent), strict=True))}


def leads_table(lines: list[dict[str, object]]) -> Table:
    """Return the table of `least_lead`, where each line also has its data, measure and crossing."""
    title = "Beyond the paper: where naive Bayes passes the mixture, and its least lead up to 90 % missing"
    return Table.of(title, lines, _LEADS, name="mixture_leads")
