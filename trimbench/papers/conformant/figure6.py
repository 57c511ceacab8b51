"""Figure 6: sufficient explanations of classifications of MNIST digits, 5 against 3."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant.protocol import Task, check_encodings, make_task
from trimbench.papers.conformant.sweep_jobs import CODE
from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.job import Job
from trimbench.papers.study.plan import Cell, ImageFigure, Outcome, Table, check_axis
from trimbench.papers.validation import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd


@job_function(code=CODE)
def explain_rows(task: Mapping[str, Any], rows: list[int]) -> dict[str, Any]:
    """Explain the classification of all test rows; give the pixels of some.

    Parameters
    ----------
    task : mapping
        `Task.parameters` of a data set with two classes and binary features.
    rows : list of int
        Test rows.
    """
    import time

    import numpy as np

    from trimbench.conformant.explanations import explain_by_weight
    from trimbench.papers.conformant.rows import prepare
    from trimbench.papers.conformant.sweep_jobs import conformant_model

    prepared, model = prepare(task), conformant_model(task)
    start = time.perf_counter()
    explained = [model.explain(row) for row in prepared.test.astype(np.float64)]
    seconds = time.perf_counter() - start
    sizes = np.array([len(found.features) for found in explained])
    correct = np.array([found.predicted for found in explained]) == prepared.test_labels
    chosen = [
        {
            "row": row,
            "class": prepared.classes[int(prepared.test_labels[row])],
            "predicted": prepared.classes[int(explained[row].predicted)],
            "pixels": prepared.test[row].tolist(),
            "support": list(explained[row].support),
            "by_weight": list(explain_by_weight(model, explained[row], prepared.test[row])),
            "explanation": list(explained[row].features),
        }
        for row in rows
    ]
    return {
        "n_test": len(explained),
        "misclassified": int((~correct).sum()),
        "median_size": float(np.median(sizes)),
        "median_size_correct": float(np.median(sizes[correct])),
        "median_size_misclassified": float(np.median(sizes[~correct])) if (~correct).any() else None,
        "median_support": float(np.median([len(found.support) for found in explained])),
        "milliseconds_per_row": 1000 * seconds / len(explained),
        "chosen": chosen,
    }


@dataclass(frozen=True)
class Figure6:
    """Sufficient explanations beside support features and those of largest weight (Figure 6).

    Attributes
    ----------
    datasets : list of str
        Protocols with two classes whose features are pixels.
    rows : list of int
        Test rows to show, of each data set.
    encoding : {"paper", "authors"}
    seed : int
    """

    datasets: list[str]
    rows: list[int]
    encoding: str = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_axis("rows", self.rows)
        check_encodings(encoding=self.encoding)
        if min(self.rows) < 0:
            raise ValueError(f"rows must be numbers of test rows, 0 or more, got {self.rows}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set."""
        cells = []
        for name in self.datasets:
            task = make_task(catalogue, cache, name, self.encoding, self.seed)
            if len(task.protocol.image) != 2:
                raise ConfigurationError(f"datasets must be protocols with an image, got {name!r}")
            if is_here(task.declaration, cache):
                self._check_rows(name, task)
            data = {f"dataset/{task.protocol.dataset}": task.sha256}
            job = Job.create(explain_rows, {"task": task.parameters, "rows": self.rows}, data)
            labels = {"dataset": name, "title": task.title, "width": task.protocol.image[1]}
            cells.append(Cell(labels, job, (task.declaration,)))
        return cells

    def _check_rows(self, name: str, task: Task) -> None:
        from trimbench.papers.conformant.rows import prepare

        prepared = prepare(task.parameters)
        if len(prepared.classes) != 2:
            raise ConfigurationError(
                f"datasets must have two classes, got {len(prepared.classes)} in {name!r}; declare two with classes"
            )
        if max(self.rows) >= len(prepared.test):
            raise ConfigurationError(
                f"rows must be less than {len(prepared.test)}, the number of test rows of {name}, got {max(self.rows)}"
            )

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the sizes of the explanations, and for each data set the picture with four columns."""
        import pandas as pd

        lines, overall, figures = [], [], []
        reproduced: dict[str, float | None] = {}
        jobs: dict[str, list[str]] = {}
        for record in rows[rows["status"] == "ok"].to_dict("records"):
            found: dict[str, Any] = {str(key): value for key, value in record.items()}
            own = [_line(found["title"], entry) for entry in found["chosen"]]
            lines += own
            overall.append({"data": found["title"], **{title: found[key] for key, title in _OVERALL.items()}})
            title = f"Explanations of {found['title']}; grey pixels are not chosen"
            pixels = pd.DataFrame(_pixels(found["chosen"], int(found["width"])))
            first = found["dataset"] == self.datasets[0]
            figures.append(ImageFigure("" if first else found["dataset"], title, pixels))
            if first:
                jobs = {row: [found["job"]] for row in (*(f"row {line['row']}" for line in own), "all rows")}
                reproduced |= {f"row {line['row']}/size": line[_SIZE] for line in own}
                reproduced["all rows/median_size"] = found["median_size"]
                reproduced["all rows/misclassified"] = float(found["misclassified"])
        tables = [
            Table("", "Explanations of the rows shown", pd.DataFrame(lines, columns=_COLUMNS)),
            Table(
                "overall",
                "Explanations of all test rows",
                pd.DataFrame(overall, columns=["data", *_OVERALL.values()]),
                _FORMATS,
            ),
        ]
        return Outcome(tables, figures, reproduced, _NOTES, jobs=jobs)


_SIZE = "size of the explanation"
_COLUMNS = ["data", "row", "class", "predicted", "support features", _SIZE, "also among the largest weights"]
_NOTES = (
    "White and black are the true colours of chosen pixels. The columns: all pixels; support features, whose absence "
    "would not move the expected prediction further towards the predicted class; those of them of largest weight, as "
    "many as in the last column; the sufficient explanation.",
    "The paper's rows are those of the authors' code, where each number is one less: their reader takes the first row "
    "for a heading.",
    "The explanation has the fewest support features that keep the class against all opposing features; the evidence "
    "of a naive Bayes model adds up, so that taking them by decreasing evidence is exact.",
)


def _line(title: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    counts = (len(entry["support"]), len(entry["explanation"]), len({*entry["explanation"]} & {*entry["by_weight"]}))
    values = (title, entry["row"], entry["class"], entry["predicted"], *counts)
    return dict(zip(_COLUMNS, values, strict=True))


_OVERALL = {
    "n_test": "test rows",
    "misclassified": "misclassified",
    "median_size": "median size",
    "median_size_correct": "median size, correct",
    "median_size_misclassified": "median size, misclassified",
    "median_support": "median support features",
    "milliseconds_per_row": "ms per explanation",
}
_FORMATS = {**dict.fromkeys(list(_OVERALL.values())[2:6], ".0f"), "ms per explanation": ".2f"}


def _pixels(chosen: list[dict[str, Any]], width: int) -> list[dict[str, Any]]:
    points = []
    for entry in chosen:
        size = len(entry["explanation"])
        right = entry["class"] == entry["predicted"]
        row = f"row {entry['row']}: {entry['class']}" + ("" if right else f" taken for {entry['predicted']}")
        panels = {
            "all features": set(range(len(entry["pixels"]))),
            "support features": set(entry["support"]),
            "largest weights": set(entry["by_weight"]),
            "sufficient explanation": set(entry["explanation"]),
        }
        for title, kept in panels.items():
            for place, value in enumerate(entry["pixels"]):
                point = {"row": f"{row}\n(k = {size})", "column": title, "y": place // width, "x": place % width}
                points.append({**point, "value": float(value) if place in kept else math.nan})
    return points
