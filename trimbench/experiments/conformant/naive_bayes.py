"""Question 3 of the paper: until which share of missing features NaCL is more accurate than naive Bayes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.experiments.conformant.authors import authors_curves
from trimbench.experiments.conformant.protocol import make_task
from trimbench.experiments.conformant.sweep import (
    check_missing,
    check_repetitions,
    curves,
    evaluation_cells,
    successes,
    summarise,
    title_of,
)
from trimbench.experiments.plan import Cell, Outcome, Table, check_axis

if TYPE_CHECKING:
    import pandas as pd

_BOTH = ("nacl", "naive_bayes")
_NEVER = 100.0


@dataclass(frozen=True)
class NaiveBayesCrossing:
    """Accuracy of NaCL and of maximum-likelihood naive Bayes over the whole range of missingness (Q3).

    Attributes
    ----------
    datasets : dict of str to int
        Protocols, with the number of random masks.
    missing : list of float
        Fractions of the features.
    encoding : {"paper", "authors"}
    seed : int
    """

    datasets: dict[str, int]
    missing: list[float]
    encoding: str = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", list(self.datasets))
        check_missing(self.missing)
        check_repetitions(**self.datasets)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set, fraction and repetition."""
        cells = []
        for name, repetitions in self.datasets.items():
            task = make_task(catalogue, cache, name, self.encoding, self.seed)
            cells += evaluation_cells(task, self.missing, repetitions, {}, self.seed)
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the crossing points, and both curves for each data set."""
        import pandas as pd

        lines, figures = [], []
        reproduced: dict[str, float | None] = {}
        for name in self.datasets:
            summary = summarise(successes(rows, dataset=name), "accuracy", _BOTH)
            if summary.empty:
                continue
            stored = authors_curves(name, "accuracy")
            if stored.empty:
                stored = authors_curves(name, "f1_weighted")
            theirs = stored[stored["method"].isin(_BOTH)]
            complete = summary[summary["percent"] < 1e-9].set_index("method")["mean"]
            first, second = (_pairs(curve) for curve in (summary, theirs))
            line: dict[str, Any] = {
                "data": name,
                "masks": int(summary["n"].max()),
                "NaCL complete": complete.get("nacl"),
                "naive Bayes complete": complete.get("naive_bayes"),
                "crossing (%)": crossing(first),
                "crossing of stored curves (%)": crossing(second) if second else None,
            }
            lines.append(line)
            reproduced[f"{name}/crossing_percent"] = line["crossing (%)"]
            is_accuracy = not authors_curves(name, "accuracy").empty
            figures.append(
                curves(
                    name,
                    f"NaCL and naive Bayes: {title_of(rows, name)}",
                    "accuracy",
                    summary,
                    theirs if is_accuracy else None,
                )
            )
        frame = pd.DataFrame(lines, columns=_COLUMNS)
        notes = [
            "The crossing is the share of missing features from which naive Bayes is at least as accurate as NaCL, "
            "linear between the computed shares; 0 where it is from the start, 100 where it never is.",
            "Dashed lines are what the authors stored, where they stored accuracies. Their crossing on CovType and "
            "Splice is that of the weighted F1, which they stored there.",
        ]
        table = Table("", "Accuracy with all features, and where naive Bayes passes NaCL", frame, _FORMATS)
        return Outcome((table,), figures, reproduced, notes)


_COLUMNS = [
    "data",
    "masks",
    "NaCL complete",
    "naive Bayes complete",
    "crossing (%)",
    "crossing of stored curves (%)",
]
_FORMATS = {
    "NaCL complete": ".4f",
    "naive Bayes complete": ".4f",
    "crossing (%)": ".1f",
    "crossing of stored curves (%)": ".1f",
}


def _pairs(curve: pd.DataFrame) -> list[tuple[float, float, float]]:
    """Return (percent, NaCL, naive Bayes) by increasing percent, where both are known."""
    table = curve.pivot_table(index="percent", columns="method", values="mean")
    if not set(_BOTH) <= set(table.columns):
        return []
    known = table.dropna().sort_index()
    return [(float(str(percent)), float(row["nacl"]), float(row["naive_bayes"])) for percent, row in known.iterrows()]


def crossing(pairs: list[tuple[float, float, float]]) -> float:
    """Return from which share on the second curve is no lower than the first.

    Parameters
    ----------
    pairs : list of (percent, first, second)
        By increasing percent.

    Examples
    --------
    >>> crossing([(0, 0.9, 0.8), (50, 0.7, 0.7), (100, 0.1, 0.1)]), crossing([(0, 0.9, 0.7), (20, 0.7, 0.8)])
    (50.0, 13.333333333333334)
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
