"""Question 3 of the paper: up to which share of missing features NaCL is more accurate than naive Bayes."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant.mask_sweep import (
    METHODS,
    MIXTURE,
    MixtureSettings,
    check_missing,
    curves,
    evaluation_cells,
    fits_table,
    leads_table,
    least_lead,
    mixture_cells,
    summarise,
    title_of,
    with_mixture,
)
from trimbench.papers.conformant.mask_sweep import NOTES as MIXTURE_NOTES
from trimbench.papers.conformant.tasks import Encoding, make_task
from trimbench.papers.data.masks import Missingness

Measure = Literal["accuracy", "f1_weighted"]

_BOTH = ("nacl", "naive_bayes")
_NEVER = 100.0
_MEASURES: dict[str, str] = {"accuracy": "accuracy", "f1_weighted": "weighted F1"}
# The paper finds naive Bayes ahead from the start here, and NaCL ahead up to 40 % everywhere else.
_NAIVE_BAYES_LEADS = ("splice",)


@vocab.settings
class NaiveBayesCrossing:
    """Accuracy or weighted F1 of NaCL and of maximum-likelihood naive Bayes over the whole range of missingness (Q3).

    `repetitions` counts the random masks for each fraction of missing features. Single data sets may have another
    number and another measure: the paper has weighted F1 where classes are unbalanced. The `mixture` of conformant
    models, if any, is one more line, beyond the paper.
    """

    datasets: vocab.Axis[str]
    missing: list[float]
    repetitions: vocab.Count = 3
    repetitions_of: dict[str, vocab.Count] = field(default_factory=dict)
    measure: Measure = "accuracy"
    measure_of: dict[str, Measure] = field(default_factory=dict)
    encoding: Encoding = "paper"
    mixture: MixtureSettings | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_missing(self.missing, Missingness())

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, fraction and repetition, and one for each mixture."""
        cells = []
        for name in self.datasets:
            repetitions = self.repetitions_of.get(name, self.repetitions)
            task = make_task(inputs, name, self.encoding, self.seed)
            cells += mixture_cells([task], self.mixture)
            cells += evaluation_cells(
                task, self.missing, repetitions, Missingness(), self.seed, {"part": "masks"}, mixture=self.mixture
            )
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the crossing points, and both curves for each data set."""
        lines, figures = [], []
        beyond: list[dict[str, object]] = []
        numbers: list[vocab.Number] = []
        for name in self.datasets:
            measure = self.measure_of.get(name, self.measure)
            done = vocab.successes(rows, dataset=name, part="masks")
            summary = summarise(done, measure, (*_BOTH, MIXTURE))
            if summary.empty:
                continue
            kind, theirs = _stored(name, measure)
            complete = {method: _complete(summary, method) for method in _BOTH}
            passed, stored = crossing(_pairs(summary)), crossing(_pairs(theirs)) if _pairs(theirs) else None
            lines.append(
                {
                    "data": name,
                    "measure": _MEASURES[measure],
                    "masks": int(summary["n"].max()),
                    **{f"{METHODS[method]} complete": value for method, value in complete.items()},
                    "crossing (%)": passed,
                    "crossing of stored curves (%)": stored,
                    "measure stored": _MEASURES.get(kind),
                }
            )
            proof = _contradiction(name, stored) if kind == measure else ""
            claims = _claims(name, complete["nacl"], complete["naive_bayes"], passed)
            for number in vocab.numbers_of(name, claims, done):
                crosses = number.quantity == "crossing_percent"
                numbers.append(replace(number, contradiction=proof if crosses else ""))
            if lead := least_lead(done, measure):
                beyond.append(
                    {"data": name, "measure": _MEASURES[measure], "crossing (%)": crossing(_pairs(summary, MIXTURE))}
                    | lead
                )
            heading = with_mixture(f"NaCL and naive Bayes: {title_of(rows, name)}", summary)
            reference = theirs if kind == measure else None
            figures.append(curves(name, heading, measure, _MEASURES[measure], summary, reference))
        title = "Accuracy or weighted F1 with all features, and where naive Bayes passes NaCL"
        main = vocab.Table.of(title, lines, _COLUMNS)
        if not self.mixture:
            return vocab.Outcome((main,), figures, numbers)
        tables = (main, leads_table(beyond), fits_table(vocab.successes(rows, part="mixture"), ["dataset"]))
        return vocab.Outcome(tables, figures, numbers, MIXTURE_NOTES)


def _contradiction(name: str, stored: float | None) -> str:
    """Return the proof that the authors' own stored curves cross earlier than the paper says; empty if they do not."""
    claim = vocab.printed_numbers("conformant/naive_bayes").get((name, "crossing_percent"))
    if claim is None or stored is None or stored >= claim.value:
        return ""
    return (
        f"In the curves that the authors stored, too, naive Bayes passes NaCL before {claim.value:.0f} %, at "
        f"{stored:.1f} % missing."
    )


def _complete(summary: pd.DataFrame, method: str) -> float | None:
    """Return the mean with all features observed."""
    found = summary[(summary["percent"] < 1e-9) & (summary["method"] == method)]["mean"]
    return None if found.empty else float(found.iloc[0])


def _claims(name: str, ours: float | None, theirs: float | None, passed: float) -> dict[str, float | None]:
    """Return what the paper says of a data set: who leads with all features, and up to where NaCL does."""
    lead = None if ours is None or theirs is None else 100 * (ours - theirs)
    return {"complete_lag": lead} if name in _NAIVE_BAYES_LEADS else {"complete_lead": lead, "crossing_percent": passed}


_COLUMNS = {
    **dict.fromkeys(["data", "measure", "masks"], ""),
    **dict.fromkeys(["NaCL complete", "naive Bayes complete"], ".4f"),
    **dict.fromkeys(["crossing (%)", "crossing of stored curves (%)"], ".1f"),
    "measure stored": "",
}


def _stored(name: str, measure: str) -> tuple[str, pd.DataFrame]:
    """Return both of the authors' curves in a measure, or else in the other one, with the name of the measure."""
    for kind in (measure, *(other for other in _MEASURES if other != measure)):
        found = vocab.stored_curves(name, kind)
        both = found[found["method"].isin(_BOTH)]
        if both["method"].nunique() == len(_BOTH):
            return kind, both
    return "", both[:0]


def _pairs(curve: pd.DataFrame, first: str = "nacl") -> list[tuple[float, float, float]]:
    """Return (percent, first method, naive Bayes) by increasing percent, where both are known."""
    table = curve.pivot_table(index="percent", columns="method", values="mean")
    both = [first, "naive_bayes"]
    if not set(both) <= set(table.columns):
        return []
    known = table[both].dropna().sort_index()
    return [(float(str(percent)), float(row.iloc[0]), float(row.iloc[1])) for percent, row in known.iterrows()]


def crossing(pairs: list[tuple[float, float, float]]) -> float:
    """Return from which share on the second curve is no lower than the first.

    Each of the pairs is (percent, first, second), by increasing percent.

    >>> crossing([(0, 0.9, 0.8), (50, 0.7, 0.7), (100, 0.1, 0.1)]), crossing([(0, 0.75, 0.5), (20, 0.5, 0.75)])
    (50.0, 10.0)
    """
    before: tuple[float, float] | None = None
    for percent, first, second in pairs:
        lead = first - second
        if lead <= 0:
            if before is None:
                return float(percent)
            start, lead_before = before
            return start + (percent - start) * lead_before / (lead_before - lead)
        before = (percent, lead)
    return _NEVER
