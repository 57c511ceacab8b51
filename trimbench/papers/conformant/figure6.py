"""Figure 6: sufficient explanations of classifications of MNIST digits, 5 against 3."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, TypedDict

import numpy as np
from pydantic import Field, NonNegativeInt

from trimbench.conformant.explanations import explain_by_weight
from trimbench.papers.conformant.encoded_rows import EncodedRows, encoded_rows, rows_at_hand
from trimbench.papers.conformant.evaluation import CODE, conformant_model
from trimbench.papers.conformant.explanation_figures import image_grid, only
from trimbench.papers.conformant.further_explanations import NOTES as FURTHER_NOTES
from trimbench.papers.conformant.further_explanations import (
    explain_further,
    further_bars,
    further_images,
    further_table,
    heading,
)
from trimbench.papers.conformant.protocol import Encoding, Task, make_task
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.cells import Cell, Label, check_axis
from trimbench.papers.study.figures import Figure, ImageFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.numbers import Number, numbers_of
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.validation import ConfigurationError, settings

if TYPE_CHECKING:
    import pandas as pd

_Shown = TypedDict(
    "_Shown",
    {
        "row": int,
        "class": str,
        "predicted": str,
        "pixels": Sequence[int],
        "support": Sequence[int],
        "by_weight": Sequence[int],
        "explanation": Sequence[int],
    },
)
_COLUMNS = (
    *("data", "row", "class", "predicted", "support features"),
    *("size of the explanation", "also among the largest weights"),
)
_COUNTS = {"n_test": "test rows", "misclassified": "misclassified"}
_OVERALL = {
    "median_size": "median size",
    "median_size_correct": "median size, correct",
    "median_size_misclassified": "median size, misclassified",
    "median_support": "median support features",
    "milliseconds_per_row": "ms per explanation",
}
_FORMATS = {
    **dict.fromkeys(["data", *_COUNTS.values()], ""),
    **{title: ".0f" for key, title in _OVERALL.items() if key.startswith("median")},
    "ms per explanation": ".2f",
}
_NOTES = (
    "White and black are the true colours of chosen pixels. The columns: all pixels; support features, whose absence "
    "would not move the expected prediction further towards the predicted class; those of them of largest weight, as "
    "many as in the last column; the sufficient explanation.",
    "The paper's rows are those of the authors' code, where each number is one less: their reader takes the first row "
    "for a heading.",
    "The explanation has the fewest support features that keep the class against all opposing features; the evidence "
    "of a naive Bayes model adds up, so that taking them by decreasing evidence is exact.",
)


@settings
class Figure6:
    """Sufficient explanations beside support features and those of largest weight (Figure 6).

    The data sets are protocols with two classes whose features are pixels; `rows` are the test rows to show of each.

    Beyond the paper, the same rows, and the test rows `table_rows` of `tables`, are explained with the probability
    `delta`.
    """

    datasets: list[str]
    rows: list[NonNegativeInt]
    tables: list[str] = field(default_factory=list)
    table_rows: list[NonNegativeInt] = field(default_factory=list)
    delta: Annotated[float, Field(gt=0, le=1)] = 0.95
    encoding: Encoding = "paper"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_axis("rows", self.rows)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return two jobs for each data set, and one for each table."""
        cells = []
        for name in self.datasets:
            task = make_task(inputs, name, self.encoding, self.seed)
            if len(task.protocol.image) != 2:
                raise ConfigurationError(f"datasets must be protocols with an image, got {name!r}")
            found = rows_at_hand(task)
            if found and len(found.classes) != 2:
                raise ConfigurationError(
                    f"datasets must have two classes, got {len(found.classes)} in {name!r}; declare two with classes"
                )
            _check_rows(found, task, self.rows)
            labels: dict[str, Label] = {"dataset": name, "title": task.title, "width": task.protocol.image[1]}
            cells.append(Cell.of({**labels, "part": "paper"}, explain_rows, task=task, rows=self.rows))
            labels["part"] = "images"
            cells.append(Cell.of(labels, explain_further, task=task, rows=self.rows, delta=self.delta))
        for name in self.tables:
            task = make_task(inputs, name, self.encoding, self.seed)
            _check_rows(rows_at_hand(task), task, self.table_rows)
            labels = {"dataset": name, "title": task.title, "width": None, "part": "table"}
            cells.append(Cell.of(labels, explain_further, task=task, rows=self.table_rows, delta=self.delta))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the sizes of the explanations, and for each data set the picture with four columns."""
        lines, overall = [], []
        figures: list[Figure] = []
        numbers: list[Number] = []
        for name in self.datasets:
            done = successes(rows, dataset=name, part="paper")
            if done.empty:
                continue
            found, first = done.iloc[0], name == self.datasets[0]
            shown: list[_Shown] = found["chosen"]
            lines += [_line(found["title"], entry) for entry in shown]
            counts = {title: int(found[key]) for key, title in _COUNTS.items()}
            overall.append({"data": found["title"], **counts, **{title: found[key] for key, title in _OVERALL.items()}})
            title = shown_name(name, found["title"])
            figures.append(_figure("" if first else name, title, shown, int(found["width"])))
            if first:
                medians = {"median_size": found["median_size"], "misclassified": float(found["misclassified"])}
                numbers += numbers_of("all rows", medians, done)
                for entry in shown:
                    numbers += numbers_of(f"row {entry['row']}", {"size": len(entry["explanation"])}, done)
        tables = (
            Table.of("Explanations of the rows shown", lines, _COLUMNS),
            Table.of("Explanations of all test rows", overall, _FORMATS, name="overall"),
        )
        further = rows[(rows["status"] == "ok") & rows["part"].isin(["images", "table"])]
        for job in further.to_dict("records"):
            if job["part"] == "table":
                figures += further_bars(job, self.delta)
                continue
            name = "beyond" if job["dataset"] == self.datasets[0] else f"{job['dataset']}_beyond"
            title = shown_name(job["dataset"], job["title"])
            figures.append(further_images(title, job["explained"], int(job["width"]), self.delta, name))
        return Outcome((*tables, further_table(further, self.delta)), figures, numbers, _NOTES + FURTHER_NOTES)


def _check_rows(found: EncodedRows | None, task: Task, rows: Sequence[int]) -> None:
    if found and max(rows, default=0) >= len(found.test):
        raise ConfigurationError(
            f"rows must be less than {len(found.test)}, the number of test rows of {task.name}, got {max(rows)}"
        )


def _line(title: str, entry: _Shown) -> dict[str, object]:
    counts = (len(entry["support"]), len(entry["explanation"]), len({*entry["explanation"]} & {*entry["by_weight"]}))
    values = (title, entry["row"], entry["class"], entry["predicted"], *counts)
    return dict(zip(_COLUMNS, values, strict=True))


def _figure(name: str, title: str, chosen: Sequence[_Shown], width: int) -> ImageFigure:
    images = {}
    for entry in chosen:
        values = np.asarray(entry["pixels"], dtype=np.float64)
        panels = {
            "all features": range(len(values)),
            "support features": entry["support"],
            "largest weights": entry["by_weight"],
            "sufficient explanation": entry["explanation"],
        }
        row = f"{heading(entry)}\n(k = {len(entry['explanation'])})"
        images[row] = {column: only(values, kept).reshape(-1, width) for column, kept in panels.items()}
    return image_grid(f"{title}: explanations; grey pixels are not chosen", images, name)


@job_function(code=(*CODE, "trimbench.papers.conformant.figure6"))
def explain_rows(task: Mapping[str, Json], rows: list[int]) -> dict[str, Json]:
    """Explain the classification of all test rows of a `Task` with two classes, and give the pixels of some."""
    own = Task.of(task)
    found, model = encoded_rows(own), conformant_model(own)
    start = time.perf_counter()
    explained = [model.explain(row) for row in found.test.astype(np.float64)]
    seconds = time.perf_counter() - start
    sizes = np.array([len(one.features) for one in explained])
    correct = np.array([one.predicted for one in explained]) == found.test_labels
    chosen = [
        {
            "row": row,
            "class": found.classes[int(found.test_labels[row])],
            "predicted": found.classes[int(explained[row].predicted)],
            "pixels": found.test[row].tolist(),
            "support": list(explained[row].support),
            "by_weight": list(explain_by_weight(model, explained[row], found.test[row])),
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
        "median_support": float(np.median([len(one.support) for one in explained])),
        "milliseconds_per_row": 1000 * seconds / len(explained),
        "chosen": chosen,
    }
