"""Figure 3: cross entropy and accuracy against missingness on the image data sets, before the authors' curves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant.authors import authors_curves, interpolated
from trimbench.papers.conformant.protocol import check_encodings, make_task
from trimbench.papers.conformant.sweep import (
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
from trimbench.papers.data.cache import Cache
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table, check_axis

if TYPE_CHECKING:
    import pandas as pd

# The encoding of the runs that the authors stored.
_STORED = "authors"
_MEASURES = {"cross_entropy": "average cross entropy (nats)", "accuracy": "accuracy"}
# By cross entropy, maximum imputation is orders of magnitude worse and left out, as in the paper.
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
    encodings : list of str
        Of ``authors``, whose stored curves are compared with, and ``paper``.
    seed : int
    """

    datasets: list[str]
    missing: list[float]
    repetitions: int = 10
    encodings: list[str] = field(default_factory=lambda: [_STORED, "paper"])
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_missing(self.missing)
        check_repetitions(repetitions=self.repetitions)
        check_encodings(encodings=self.encodings)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set, encoding, fraction and repetition."""
        cells: list[Cell] = []
        for encoding in self.encodings:
            by_dataset = []
            for name in self.datasets:
                task = make_task(catalogue, cache, name, encoding, self.seed)
                labels = {"encoding": encoding}
                by_dataset.append(evaluation_cells(task, self.missing, self.repetitions, {}, self.seed, labels))
            # Data sets take turns, so that two workers do not wait for one logistic regression.
            cells += [cell for turn in zip(*by_dataset, strict=True) for cell in turn]
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the curves with the authors' behind them, and the largest distance between both."""
        import pandas as pd

        tables, figures, distances = [], [], []
        reproduced: dict[str, float | None] = {}
        jobs: dict[str, list[str]] = {}
        for encoding in self.encodings:
            for name, measure in itertools.product(self.datasets, _MEASURES):
                done = successes(rows, dataset=name, encoding=encoding)
                summary = summarise(done, measure, METHODS)
                if summary.empty:
                    continue
                title, stem = f"{title_of(rows, name)}: {_MEASURES[measure]}", f"{name}_{measure}"
                if encoding != _STORED:
                    title, stem = f"{title}, encoding of the paper", f"{stem}_{encoding}"
                tables.append(Table(stem, f"{title}, means", wide(summary), formats_of(summary)))
                if encoding != _STORED:
                    continue
                stored = authors_curves(name, measure)
                as_run = summarise(done, measure, [key + "@test" for key in _DRAWN[measure] if key != "nacl"])
                distances += _distances(name, measure, pd.concat([summary, as_run]), stored)
                jobs[f"{name} {measure}"] = list(done["job"])
                reproduced[f"{name} {measure}/outperformed"] = _outperformed(measure, summary)
                if measure == "cross_entropy":
                    reproduced[f"{name} {measure}/max by worst of the rest"] = _dismissed(summary)
                figures.append(_figure(stem, measure, title_of(rows, name), summary, stored))
        for line in distances:
            # The authors took constants from the complete test rows.
            if line["constants of"] != "training rows":
                reproduced[f"{line['data']} {line['measure']}/{line['method']}"] = line["largest distance"]
        frame = pd.DataFrame(distances, columns=_COLUMNS)
        main = Table("", "Largest distance to the authors' stored curves, over all fractions", frame, _FORMATS)
        return Outcome((main, *tables), figures, reproduced, _NOTES, jobs=jobs)


_NOTES = (
    "Bands are 95 % confidence intervals of the mean over random masks. Dashed lines are the curves that the authors "
    "stored with their code: one run each, with constants for imputation from the complete test rows.",
    "The authors cut the test images at their own mean plus 0.05 standard deviations; their curves are compared with "
    "runs of the same encoding. Tables of the encoding of the paper, with the cuts of the training images, stand by "
    "themselves.",
    "Each point of a curve is compared with the stored curve, linear between its points. The lines drawn have "
    "constants of the training rows; the table of distances also has those of the complete test rows, as the authors "
    "had.",
)


def _outperformed(measure: str, summary: pd.DataFrame) -> float | None:
    """Return how many imputations NaCL outperforms wherever a feature is missing: the fewest over all shares."""
    sign = -1 if measure == "cross_entropy" else 1
    means = summary[(summary["percent"] > 0) & summary["method"].isin(_DRAWN[measure])]
    table = sign * means.pivot_table(index="percent", columns="method", values="mean")
    if table.empty:
        return None
    return float(table.lt(table["nacl"], axis=0).sum(axis=1).min())


def _dismissed(summary: pd.DataFrame) -> float | None:
    """Return the cross entropy of max imputation by that of the worst of the rest, at the share where it is largest."""
    rest = [method for method in _DRAWN["cross_entropy"] if method != "max"]
    table = summary[summary["percent"] > 0].pivot_table(index="percent", columns="method", values="mean")
    if table.empty or "max" not in table:
        return None
    return float((table["max"] / table[rest].max(axis=1)).max())


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


def _figure(stem: str, measure: str, title: str, summary: pd.DataFrame, stored: pd.DataFrame) -> LineFigure:
    drawn, y_label = _DRAWN[measure], _MEASURES[measure]
    # The authors' curves run to all pixels; ours say how far the comparison goes.
    reach = stored[stored["percent"] <= summary["percent"].max() + 1e-9]
    ordered = summary[summary["method"].isin(drawn)].sort_values("method", key=lambda names: names.map(drawn.index))
    heading = f"{title}: {y_label.split(' (')[0]}"
    return curves(stem, heading, y_label, ordered, reach[reach["method"].isin(drawn)])
