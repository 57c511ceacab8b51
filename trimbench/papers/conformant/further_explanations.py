"""Explanations beyond the paper: with a stated probability, contrastive, and of rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.conformant.encoded_rows import encoded_rows
from trimbench.papers.conformant.evaluation import CODE, conformant_model
from trimbench.papers.conformant.explanation_figures import evidence_bars, image_grid, only
from trimbench.papers.conformant.protocol import Task
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.figures import BarFigure, ImageFigure
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd

NOTES = (
    "Beyond the paper: the fewest features that keep the class with the stated probability, if those that are not "
    "shown are drawn from the conformant model given those that are; the bounds of the probability are certified, and "
    "no set smaller than the proven least reaches it. And the fewest features whose change gives another class. In "
    "tables the columns of a categorical feature are one variable.",
)
_COLUMNS = {
    **dict.fromkeys(["data", "row", "class", "predicted", "features kept", "proven least"], ""),
    **dict.fromkeys(["probability low", "probability high"], ".4f"),
    **dict.fromkeys(["features changed", "becomes"], ""),
}


@job_function(code=(*CODE, "trimbench.papers.conformant.further_explanations"))
def explain_further(task: Mapping[str, Json], rows: list[int], delta: float) -> dict[str, Json]:
    """Explain the classification of some test rows of a `Task` with a probability, and by contrast."""
    own = Task.of(task)
    found, model = encoded_rows(own), conformant_model(own, groups=True)
    explained: list[Json] = []
    for row in rows:
        values = found.test[row].astype(np.float64)
        probable, contrast = model.explain(values, delta=delta), model.contrast(values)
        sufficient = model.explain(values, against=contrast.becomes)
        explained.append(
            {
                "row": row,
                "class": found.classes[int(found.test_labels[row])],
                "predicted": found.classes[int(probable.predicted)],
                "sufficient": list(sufficient.features),
                "kept": list(probable.features),
                "least": probable.size_lower_bound,
                "probability": list(probable.probability),
                "evidence": probable.evidence.tolist(),
                "changed": list(contrast.features),
                "becomes": None if contrast.becomes is None else found.classes[int(contrast.becomes)],
                "values": found.test[row].tolist(),
            }
        )
    return {"features": list(found.features), "explained": explained}


def further_table(done: pd.DataFrame, delta: float) -> Table:
    """Return the sizes of all explanations of successful jobs."""
    lines = []
    for job in done.to_dict("records"):
        for entry in job["explained"]:
            sizes = (len(entry["kept"]), entry["least"], *entry["probability"], len(entry["changed"]), entry["becomes"])
            values = (job["title"], entry["row"], entry["class"], entry["predicted"], *sizes)
            lines.append(dict(zip(_COLUMNS, values, strict=True)))
    title = f"Beyond the paper: explanations that hold with probability {delta:g}, and contrastive ones"
    return Table.of(title, lines, _COLUMNS, name="beyond")


def further_images(
    title: str, explained: Sequence[Mapping[str, Any]], width: int, delta: float, name: str
) -> ImageFigure:
    """Return images of the pixels of a job's explanations."""
    images = {}
    for entry in explained:
        values = np.asarray(entry["values"], dtype=np.float64)
        everything = range(len(values))
        panels = {
            "all features": everything,
            "sufficient explanation": entry["sufficient"],
            f"beyond the paper: keep the class with probability {delta:g}": entry["kept"],
            "beyond the paper: change it if they change": entry["changed"],
        }
        images[heading(entry)] = {column: only(values, kept).reshape(-1, width) for column, kept in panels.items()}
    return image_grid(
        f"{title}: the paper's explanations and those beyond it; grey pixels are not chosen", images, name
    )


def heading(entry: Mapping[str, Any]) -> str:
    """Return what stands beside the images of a row."""
    taken = "" if entry["class"] == entry["predicted"] else f" taken for {entry['predicted']}"
    return f"row {entry['row']}: {entry['class']}{taken}"


def further_bars(job: Mapping[Any, Any], delta: float) -> list[BarFigure]:
    """Return a figure for each row of a table: the evidence of its features, those of the explanation in colour."""
    import pandas as pd

    figures = []
    for entry in job["explained"]:
        chosen = np.isin(np.arange(len(entry["evidence"])), entry["kept"])
        table = pd.DataFrame({"feature": job["features"], "evidence": entry["evidence"], "chosen": chosen})
        probability = f"in colour, features that keep the class with probability {delta:g} (beyond the paper)"
        title = f"{job['title']}, {heading(entry)}; {probability}"
        figures.append(evidence_bars(title, table, name=f"{job['dataset']}_{entry['row']}"))
    return figures
