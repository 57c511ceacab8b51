"""Question 3 of the paper: up to which share of missing features NaCL is more accurate than naive Bayes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant import mask_sweep as sweep
from trimbench.papers.conformant.tasks import Encoding, make_task
from trimbench.papers.data.masks import Missingness

_BOTH = ("nacl", "naive_bayes")
_NEVER = 100.0
# The paper speaks of accuracy: nothing else is compared with it.
_MEASURES = {"accuracy": "accuracy", "f1_weighted": "weighted F1"}
# The paper finds naive Bayes ahead from the start here, and NaCL ahead up to 40 % everywhere else.
_NAIVE_BAYES_LEADS = ("splice",)


@vocab.settings
class NaiveBayesCrossing(sweep.Sweep):
    """Accuracy of NaCL and of maximum-likelihood naive Bayes over the whole range of missingness (Q3).

    Weighted F1 stands beside it, without a verdict. `repetitions` counts the random masks for each fraction of missing
    features; single data sets may have another number. The `mixture` of conformant models, if any, is one more line,
    beyond the paper.
    """

    repetitions_of: dict[str, vocab.Count] = field(default_factory=dict)
    encoding: Encoding = "paper"
    mixture: sweep.MixtureSettings | None = None

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return one job for each data set, fraction and repetition, and one for each mixture."""
        cells = []
        for name in self.datasets:
            repetitions = self.repetitions_of.get(name, self.repetitions)
            task = make_task(inputs, name, self.encoding, self.seed)
            cells += sweep.mixture_cells([task], self.mixture)
            cells += sweep.evaluation_cells(
                task, self.missing, repetitions, Missingness(), self.seed, {"part": "masks"}, mixture=self.mixture
            )
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the crossing points, and both curves for each data set."""
        lines, beyond, figures = [], [], []
        numbers: list[vocab.Number] = []
        for name in self.datasets:
            done = vocab.successes(rows, dataset=name, part="masks")
            for measure, title in _MEASURES.items():
                summary = sweep.summarise(done, measure, (*_BOTH, sweep.MIXTURE))
                if summary.empty:
                    continue
                theirs = _stored(name, measure)
                line = {"data": name, "measure": title} | _line(summary, theirs)
                lines.append(line)
                if lead := sweep.least_lead(done, measure):
                    own = {"data": name, "measure": title, "crossing (%)": crossing(_pairs(summary, sweep.MIXTURE))}
                    beyond.append(own | lead)
                stem = name if measure == "accuracy" else f"{name}_{measure}"
                if measure == "accuracy":
                    numbers += _numbers(name, line, done)
                elif theirs.empty:
                    continue
                heading = sweep.with_mixture(f"{sweep.title_of(rows, name)}: {title} of NaCL and naive Bayes", summary)
                figures.append(sweep.curves(stem, heading, measure, title, summary, theirs))
        main = vocab.Table.of("Accuracy with all features, and where naive Bayes passes NaCL", lines, _COLUMNS)
        if not self.mixture:
            return vocab.Outcome((main,), figures, numbers)
        tables = (main, sweep.leads_table(beyond), sweep.fits_table(vocab.successes(rows, part="mixture"), ["dataset"]))
        return vocab.Outcome(tables, figures, numbers, sweep.NOTES)


def _line(summary: pd.DataFrame, theirs: pd.DataFrame) -> dict[str, Any]:
    """Return the masks, both means with all features observed, and where the curves cross, the authors' too."""
    complete = summary[summary["percent"] < 1e-9].set_index("method")["mean"]
    return {
        "masks": int(summary["n"].max()),
        **{f"{sweep.METHODS[method]} complete": complete.get(method) for method in _BOTH},
        "crossing (%)": crossing(_pairs(summary)),
        "crossing of stored curves (%)": None if theirs.empty else crossing(_pairs(theirs)),
    }


_COLUMNS = {
    **dict.fromkeys(["data", "measure", "masks"], ""),
    **dict.fromkeys(["NaCL complete", "naive Bayes complete"], ".4f"),
    **dict.fromkeys(["crossing (%)", "crossing of stored curves (%)"], ".1f"),
}


def _numbers(name: str, line: Mapping[str, Any], done: pd.DataFrame) -> list[vocab.Number]:
    """Return what the paper says of a data set: who leads with all features, and up to where NaCL does."""
    ours, theirs = (line[f"{sweep.METHODS[method]} complete"] for method in _BOTH)
    lead = None if ours is None or theirs is None else 100 * (ours - theirs)
    if name in _NAIVE_BAYES_LEADS:
        return [vocab.number_of(name, "complete_lag", lead, done)]
    claim = vocab.printed_numbers("conformant/naive_bayes").get((name, "crossing_percent"))
    stored, proof = line["crossing of stored curves (%)"], ""
    if claim and stored is not None and stored < claim.value:
        proof = (
            f"In the curves that the authors stored, too, naive Bayes passes NaCL before {claim.value:.0f} %, at "
            f"{stored:.1f} % missing."
        )
    return [
        vocab.number_of(name, "complete_lead", lead, done),
        vocab.number_of(name, "crossing_percent", line["crossing (%)"], done, contradiction=proof),
    ]


def _stored(name: str, measure: str) -> pd.DataFrame:
    """Return both of the authors' curves in a measure; none if one of them is not stored."""
    found = vocab.stored_curves(name, measure)
    both = found[found["method"].isin(_BOTH)]
    return both if both["method"].nunique() == len(_BOTH) else both[:0]


def _pairs(curve: pd.DataFrame, first: str = "nacl") -> list[tuple[float, float, float]]:
    """Return (percent, first method, naive Bayes) by increasing percent, where both are known."""
    table = curve.pivot_table(index="percent", columns="method", values="mean")
    both = [first, "naive_bayes"]
    if not set(both) <= set(table.columns):
        return []
    known = table[both].dropna().sort_index()
    return [(float(str(percent)), float(row.iloc[0]), float(row.iloc[1])) for percent, row in known.iterrows()]


def crossing(pairs: list[tuple[float, float, float]]) -> float:
    """Return the share from which on the second curve is no lower than the first.

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
