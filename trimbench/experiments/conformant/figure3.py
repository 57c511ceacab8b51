"""Figure 3: cross entropy and accuracy against missingness on the image data sets, before the authors' curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.experiments.conformant.authors import authors_curves, interpolated
from trimbench.experiments.conformant.protocol import make_task
from trimbench.experiments.conformant.sweep import (
    METHODS,
    check_missing,
    check_repetitions,
    curves,
    evaluation_cells,
    formats_of,
    successes,
    summarise,
    title_of,
    wide,
)
from trimbench.experiments.plan import Cell, LineFigure, Outcome, Table, check_axis

if TYPE_CHECKING:
    import pandas as pd

_MEASURES = {"cross_entropy": "average cross entropy (nats)", "accuracy": "accuracy"}
# Maximum imputation is orders of magnitude worse and left out, as in the paper.
_DRAWN = {"cross_entropy": ["nacl", "mean", "median", "min"], "accuracy": ["nacl", "mean", "median", "min", "max"]}


@dataclass(frozen=True)
class Figure3:
    """Fidelity and accuracy under missing pixels (Figure 3).

    Attributes
    ----------
    datasets : list of str
        Protocols.
    missing : list of float
        Fractions of the pixels.
    repetitions : int
    encoding : {"paper", "authors"}
    seed : int
    """

    datasets: list[str]
    missing: list[float]
    repetitions: int = 10
    encoding: str = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_missing(self.missing)
        check_repetitions(repetitions=self.repetitions)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set, fraction and repetition."""
        by_dataset = [
            evaluation_cells(
                make_task(catalogue, cache, name, self.encoding, self.seed),
                self.missing,
                self.repetitions,
                {},
                self.seed,
            )
            for name in self.datasets
        ]
        # Data sets take turns, so that two workers do not wait for one logistic regression.
        return [cell for turn in zip(*by_dataset, strict=True) for cell in turn]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the curves with the authors' behind them, and the largest distance between both."""
        import pandas as pd

        tables, figures, distances = [], [], []
        reproduced: dict[str, float | None] = {}
        for name in self.datasets:
            done, title = successes(rows, dataset=name), title_of(rows, name)
            for measure, y_label in _MEASURES.items():
                summary = summarise(done, measure, METHODS)
                if summary.empty:
                    continue
                as_run = summarise(done, measure, [key + "@test" for key in _DRAWN[measure] if key != "nacl"])
                stored = authors_curves(name, measure)
                stem = f"{name}_{measure}"
                tables.append(Table(stem, f"{title}: {y_label}, means", wide(summary), formats_of(summary)))
                distances += _distances(name, measure, pd.concat([summary, as_run]), stored)
                figures.append(_figure(stem, f"{title}: {y_label.split(' (')[0]}", y_label, summary, stored))
        frame = pd.DataFrame(distances, columns=_COLUMNS)
        for line in distances:
            # The authors took constants from the complete test rows.
            if line["constants of"] != "training rows":
                reproduced[f"{line['data']} {line['measure']}/{line['method']}"] = line["largest distance"]
        main = Table("", "Largest distance to the authors' stored curves, over all fractions", frame, _FORMATS)
        notes = [
            "Bands are 95 % confidence intervals of the mean over random masks. Dashed lines are the curves that the "
            "authors stored with their code: one run each, with constants for imputation from the complete test rows.",
            "Each point of a curve is compared with the stored curve, linear between its points. The lines drawn have "
            "constants of the training rows; the table also has those of the complete test rows, as the authors had.",
        ]
        return Outcome((main, *tables), figures, reproduced, notes)


_COLUMNS = [
    "data",
    "measure",
    "method",
    "constants of",
    "largest distance",
    "at missing (%)",
    "ours",
    "authors",
    "interval low",
    "interval high",
]
_FORMATS = {"at missing (%)": ".1f", **dict.fromkeys(["largest distance", *_COLUMNS[6:]], ".4f")}


def _distances(name: str, measure: str, summary: pd.DataFrame, stored: pd.DataFrame) -> list[dict[str, Any]]:
    lines = []
    fills = [method for method in _DRAWN[measure] if method != "nacl"]
    for key in ("nacl", *fills, *(method + "@test" for method in fills)):
        method, _, part = key.partition("@")
        curve = stored[stored["method"] == method]
        worst: dict[str, Any] | None = None
        for point in summary[summary["method"] == key].to_dict("records"):
            theirs = interpolated(curve, point["percent"])
            distance = abs(point["mean"] - theirs) if theirs is not None else -1.0
            if theirs is not None and (worst is None or distance > worst["largest distance"]):
                worst = {
                    "data": name,
                    "measure": measure,
                    "method": METHODS[method],
                    "constants of": "" if method == "nacl" else "test rows" if part else "training rows",
                    "largest distance": distance,
                    "at missing (%)": point["percent"],
                    "ours": point["mean"],
                    "authors": theirs,
                    "interval low": point["low"],
                    "interval high": point["high"],
                }
        lines += [worst] if worst else []
    return lines


def _figure(stem: str, title: str, y_label: str, summary: pd.DataFrame, stored: pd.DataFrame) -> LineFigure:
    drawn = _DRAWN["cross_entropy" if "cross_entropy" in stem else "accuracy"]
    # The authors' curves run to all pixels; ours say how far the comparison goes.
    reach = stored[stored["percent"] <= summary["percent"].max() + 1e-9]
    ordered = summary[summary["method"].isin(drawn)].sort_values("method", key=lambda names: names.map(drawn.index))
    return curves(stem, title, y_label, ordered, reach[reach["method"].isin(drawn)])
