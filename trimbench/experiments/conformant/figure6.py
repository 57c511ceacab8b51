"""Figure 6: sufficient explanations of classifications of MNIST digits, 5 against 3."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.execution.functions import job_function
from trimbench.execution.job import Job
from trimbench.experiments.conformant.protocol import make_task
from trimbench.experiments.conformant.sweep_jobs import CODE
from trimbench.experiments.plan import Cell, ImageFigure, Outcome, Table, check_axis

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
    from trimbench.experiments.conformant.rows import prepare
    from trimbench.experiments.conformant.sweep_jobs import conformant_model

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
        if row < len(explained)
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
    dataset : str
        A protocol with two classes whose features are pixels.
    rows : list of int
        Test rows to show.
    encoding : {"paper", "authors"}
    seed : int
    """

    dataset: str
    rows: list[int]
    encoding: str = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("rows", self.rows)
        if min(self.rows) < 0:
            raise ValueError(f"rows must be numbers of test rows, 0 or more, got {self.rows}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the one job."""
        task = make_task(catalogue, cache, self.dataset, self.encoding, self.seed)
        if len(task.protocol.image) != 2:
            raise ValueError(f"dataset must be a protocol with an image, got {self.dataset!r}")
        data = {f"dataset/{task.protocol.dataset}": task.sha256}
        job = Job.create(explain_rows, {"task": task.parameters, "rows": self.rows}, data)
        return [Cell({"dataset": self.dataset, "width": task.protocol.image[1]}, job, (task.declaration,))]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the sizes of the explanations, and the picture with four columns."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        if done.empty:
            empty = pd.DataFrame(columns=["row", "digit", "predicted", "size of the explanation"])
            return Outcome((Table("", "Explanations", empty),))
        found: dict[str, Any] = {str(key): value for key, value in done.iloc[0].items()}
        lines = [
            {
                "row": entry["row"],
                "digit": entry["class"],
                "predicted": entry["predicted"],
                "support features": len(entry["support"]),
                "size of the explanation": len(entry["explanation"]),
                "also among the largest weights": len(set(entry["explanation"]) & set(entry["by_weight"])),
            }
            for entry in found["chosen"]
        ]
        overall = {title: found[key] for key, title in _OVERALL.items()}
        tables = [
            Table("", "Explanations of the rows shown", pd.DataFrame(lines)),
            Table("overall", "Explanations of all test rows", pd.DataFrame([overall]), _FORMATS),
        ]
        figure = ImageFigure(
            "",
            "Explanations of MNIST classifications; grey pixels are not chosen",
            pd.DataFrame(_pixels(found["chosen"], int(found["width"]))),
        )
        reproduced: dict[str, float | None] = {
            f"row {line['row']}/size": line["size of the explanation"] for line in lines
        }
        reproduced["all rows/median_size"] = found["median_size"]
        reproduced["all rows/misclassified"] = float(found["misclassified"])
        notes = [
            "White and black are the true colours of chosen pixels. The columns: all pixels; support features, whose "
            "absence would not move the expected prediction further towards the predicted class; those of them of "
            "largest weight, as many as in the last column; the sufficient explanation.",
            "Rows are those of the authors' code, where each number is one less: their reader takes the first row for "
            "a heading.",
            "The explanation has the fewest support features that keep the class against all opposing features; the "
            "evidence of a naive Bayes model adds up, so that taking them by decreasing evidence is exact.",
        ]
        return Outcome(tables, (figure,), reproduced, notes)


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
