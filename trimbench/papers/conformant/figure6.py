"""Figure 6: explanations of classifications of MNIST digits, 5 against 3, and their pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trimbench.conformant.distribution import checked_row
from trimbench.conformant.explanations import SufficientExplanation
from trimbench.conformant.model import ConformantModel
from trimbench.papers.conformant.mask_sweep import conformant_model
from trimbench.papers.conformant.protocols import Encoding, Task, encoded_rows, make_task, rows_at_hand
from trimbench.reproduction import vocabulary as vocab
from trimbench.reproduction.execution.job import (
    COUNT,
    NOTHING,
    NUMBER,
    POSITIVE,
    SHARE,
    TEXT,
    fields,
    job,
    list_of,
    timed,
)

# What a job returns about a row that is shown.
_Shown = Mapping[str, Any]
_COLUMNS = (
    *("data", "row", "class", "predicted", "support features"),
    *("size of the explanation", "also among the largest weights"),
)
# Of all test rows of a data set: the result of the job behind each column, and its format.
_OVERALL = {
    "data": ("title", ""),
    "test rows": ("n_test", ""),
    "misclassified": ("misclassified", ""),
    "median size": ("median_size", ".0f"),
    "median size, correct": ("median_size_correct", ".0f"),
    "median size, misclassified": ("median_size_misclassified", ".0f"),
    "median support features": ("median_support", ".0f"),
    "ms per explanation": ("milliseconds_per_row", ".2f"),
}
# The paper's columns, and the features that each shows.
_PANELS = {"support features": "support", "largest weights": "by_weight", "sufficient explanation": "explanation"}


@vocab.settings
class Figure6:
    """Sufficient explanations beside support features and those of largest weight (Figure 6).

    The data sets are protocols with two classes whose features are pixels; `rows` are the test rows to show of each.

    Beyond the paper, the same rows, and the test rows `table_rows` of `tables`, are explained with the probability
    `delta`.
    """

    datasets: vocab.Axis[str]
    rows: vocab.Axis[vocab.Natural]
    tables: list[str] = field(default_factory=list)
    table_rows: list[vocab.Natural] = field(default_factory=list)
    delta: Annotated[float, vocab.must("above 0 and at most 1", lambda share: 0 < share <= 1)] = 0.95
    encoding: Encoding = "paper"
    seed: int = 0

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return two jobs for each data set, and one for each table."""
        cells = []
        for name in (*self.datasets, *self.tables):
            is_table = name not in self.datasets
            task, rows = make_task(inputs, name, self.encoding, self.seed), self.table_rows if is_table else self.rows
            if not is_table and len(task.protocol.image) != 2:
                raise vocab.ConfigurationError(f"datasets must be protocols with an image, got {name!r}")
            found = rows_at_hand(task)
            if found and not is_table and len(found.classes) != 2:
                raise vocab.ConfigurationError(
                    f"datasets must have two classes, got {len(found.classes)} in {name!r}; declare two with classes"
                )
            if found and max(rows, default=0) >= len(found.test):
                raise vocab.ConfigurationError(
                    f"rows must be less than {len(found.test)}, the number of test rows of {name}, got {max(rows)}"
                )
            width = None if is_table else task.protocol.image[1]
            labels: dict[str, vocab.Label] = {"dataset": name, "title": task.title, "width": width}
            if not is_table:
                cells.append(vocab.Cell.of({**labels, "part": "paper"}, explain_rows, task=task, rows=rows))
            labels["part"] = "table" if is_table else "images"
            cells.append(vocab.Cell.of(labels, explain_further, self, task=task, rows=rows))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the sizes of the explanations, and for each data set the picture with four columns."""
        done = vocab.successes(rows)
        lines = []
        figures: list[vocab.Figure] = []
        numbers: list[vocab.Number] = []
        papers = vocab.successes(rows, part="paper")
        for found in papers.to_dict("records"):
            shown: Sequence[_Shown] = found["chosen"]
            for entry in shown:
                both = {*entry["explanation"]} & {*entry["by_weight"]}
                counts = (len(entry["support"]), len(entry["explanation"]), len(both))
                lines.append((found["title"], entry["row"], entry["class"], entry["predicted"], *counts))
            first = found["dataset"] == self.datasets[0]
            title = f"{vocab.shown_name(found['dataset'], found['title'])}: explanations; grey pixels are not chosen"
            headings = [f"{heading(entry)}\n(k = {len(entry['explanation'])})" for entry in shown]
            figures.append(_images(title, headings, shown, "pixels", found, _PANELS, "" if first else found["dataset"]))
            numbers += _numbers(found, vocab.successes(papers, dataset=found["dataset"])) if first else []
        overall = [
            [ours[result].iloc[0] for result, _ in _OVERALL.values()] for _, ours in vocab.groups(papers, "dataset")
        ]
        formats = {title: one for title, (_, one) in _OVERALL.items()}
        tables = (
            vocab.Table.of("Explanations of the rows shown", lines, _COLUMNS),
            vocab.Table.of("Explanations of all test rows", overall, formats, name="overall"),
        )
        further = done[done["part"] != "paper"]
        for one in further.to_dict("records"):
            figures += self._further(one)
        beyond = []
        for one in vocab.unpacked(further, "explained").to_dict("records"):
            sizes = (len(one["kept"]), one["least"], *one["probability"], len(one["changed"]), one["becomes"])
            beyond.append((one["title"], one["row"], one["class"], one["predicted"], *sizes))
        title = f"Beyond the paper: explanations that hold with probability {self.delta:g}, and contrastive ones"
        return vocab.Outcome((*tables, vocab.Table.of(title, beyond, _FURTHER, name="beyond")), figures, numbers)

    def _further(self, job: Mapping[Any, Any]) -> list[vocab.Figure]:
        """Return the pictures beyond the paper of a data set or a table."""
        holds = f"keep the class with probability {self.delta:g}"
        if job["part"] == "table":
            return [_bars(job, entry, holds) for entry in job["explained"]]
        panels = {
            "sufficient explanation": "sufficient",
            f"beyond the paper: {holds}": "kept",
            "beyond the paper: change the class if they change": "changed",
        }
        title = vocab.shown_name(job["dataset"], job["title"])
        title = f"{title}: the paper's explanations and those beyond it; grey pixels are not chosen"
        headings = [heading(entry) for entry in job["explained"]]
        name = "beyond" if job["dataset"] == self.datasets[0] else f"{job['dataset']}_beyond"
        return [_images(title, headings, job["explained"], "values", job, panels, name)]


def _numbers(found: Mapping[Any, Any], done: pd.DataFrame) -> list[vocab.Number]:
    """Return the numbers that the paper reports for its data set."""
    medians = {"median_size": found["median_size"], "misclassified": float(found["misclassified"])}
    numbers = vocab.numbers_of("all rows", medians, done)
    for entry in found["chosen"]:
        numbers += vocab.numbers_of(f"row {entry['row']}", {"size": len(entry["explanation"])}, done)
    # White pixels are 1 and black ones 0.
    colours = [{entry["pixels"][place] for place in entry["explanation"]} for entry in found["chosen"]]
    both = float(sum(found == {0, 1} for found in colours))
    return [*numbers, vocab.number_of("rows shown", "both_colours", both, done)]


def _images(
    title: str,
    headings: Sequence[str],
    shown: Sequence[_Shown],
    pixels: str,
    job: Mapping[Any, Any],
    panels: Mapping[str, str],
    name: str,
) -> vocab.ImageFigure:
    """Return a line of images for each row: all of its `pixels`, and those that each of the `panels` has chosen."""
    images: dict[str, dict[str, ArrayLike]] = {}
    for line, entry in zip(headings, shown, strict=True):
        whole = np.asarray(entry[pixels], dtype=np.float64)
        columns = {"all features": np.ones(len(whole), dtype=bool)}
        columns |= {title: np.isin(np.arange(len(whole)), entry[chosen]) for title, chosen in panels.items()}
        width = int(job["width"])
        images[line] = {key: np.where(kept, whole, np.nan).reshape(-1, width) for key, kept in columns.items()}
    return image_grid(title, images, name)


_PLACES = list_of(COUNT)
_ROW = {"row": COUNT, "class": TEXT, "predicted": TEXT}
_CHOSEN_ROW = fields(**_ROW, **dict.fromkeys(("pixels", "support", "by_weight", "explanation"), _PLACES))
_EXPLAINED_ROW = fields(
    **{**_ROW, "sufficient": _PLACES, "kept": _PLACES, "least": COUNT, "probability": list_of(SHARE)},
    **{"evidence": list_of(NUMBER), "changed": _PLACES, "becomes": TEXT | NOTHING, "values": list_of(NUMBER)},
)


@job(
    {
        **{"n_test": COUNT, "misclassified": COUNT, "median_size": POSITIVE, "median_size_correct": POSITIVE},
        **{"median_size_misclassified": POSITIVE | NOTHING, "median_support": POSITIVE},
        **{"milliseconds_per_row": POSITIVE, "chosen": list_of(_CHOSEN_ROW)},
    }
)
def explain_rows(task: Task, rows: list[int]) -> dict[str, vocab.Json]:
    """Explain the classification of all test rows of a task with two classes, and give the pixels of some."""
    found, model = encoded_rows(task), conformant_model(task)
    explained, seconds = timed(lambda: [model.explain(row) for row in found.test.astype(np.float64)])
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


def explain_by_weight(model: ConformantModel, explanation: SufficientExplanation, x: ArrayLike) -> tuple[int, ...]:
    """Return the baseline of Figure 6: the same number of support features, by the size of their weights.

    A weight says what flipping a value does to the log-odds, not what its absence does. For a categorical feature, the
    largest difference between the weight of its value and that of another counts. `explanation` is that of `x`.
    """
    row = checked_row(model, x)
    labels = model.classes.tolist()
    winner, other = labels.index(explanation.predicted), labels.index(explanation.against)
    difference = model.weights[:, winner] - model.weights[:, other]
    strength = np.zeros(model.layout.n_features)
    groups = set(model.layout.categorical)
    for place, columns in enumerate(model.layout.features):
        if columns in groups and not np.isnan(row[columns[0]]):
            value = float(np.nansum(row[list(columns)] * difference[list(columns)]))
            strength[place] = float(np.abs(difference[list(columns)] - value).max())
        else:
            strength[place] = abs(float(difference[columns[0]]))
    support = np.array(explanation.support, dtype=np.intp)
    ordered = support[np.argsort(-strength[support], kind="stable")]
    return tuple(ordered[: len(explanation.features)].tolist())


# Explanations beyond the paper: with a stated probability, contrastive, and of rows of tables.

_FURTHER = {
    **dict.fromkeys(["data", "row", "class", "predicted", "features kept", "proven least"], ""),
    **{"probability low": ".4f", "probability high": ".4f", "features changed": "", "becomes": ""},
}


@job(features=list_of(TEXT), explained=list_of(_EXPLAINED_ROW))
def explain_further(task: Task, rows: list[int], delta: float) -> dict[str, vocab.Json]:
    """Explain the classification of some test rows of a task with a probability, and by contrast."""
    found, model = encoded_rows(task), conformant_model(task, groups=True)
    explained: list[vocab.Json] = []
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


def heading(entry: Mapping[str, Any]) -> str:
    """Return the heading of the images of a row."""
    taken = "" if entry["class"] == entry["predicted"] else f" taken for {entry['predicted']}"
    return f"row {entry['row']}: {entry['class']}{taken}"


def _bars(job: Mapping[Any, Any], entry: _Shown, holds: str) -> vocab.BarFigure:
    """Return a figure of the evidence of a table row's features, with those of the explanation in colour."""
    chosen = np.isin(np.arange(len(entry["evidence"])), entry["kept"])
    table = pd.DataFrame({"feature": job["features"], "evidence": entry["evidence"], "chosen": chosen})
    title = f"{job['title']}, {heading(entry)}; in colour, features that {holds} (beyond the paper)"
    return evidence_bars(title, table, name=f"{job['dataset']}_{entry['row']}")


# Figures of explanations: images of chosen pixels, and bars of the evidence of a table's features.

_MOST_BARS = 20
_CHOSEN, _OTHER = "in the explanation", "not in it"


def image_grid(title: str, images: Mapping[str, Mapping[str, ArrayLike]], name: str = "") -> vocab.ImageFigure:
    """Return a figure of images in a grid, with a line for each key of `images`.

    Parameters
    ----------
    images : mapping from line to mapping from column to array of shape (height, width)
        From 0 (black) to 1 (white), NaN for grey: what ``explanation.image(x, (height, width))`` returns.
    name : str
        Stem of its file in an experiment.
    """
    panels = []
    for row, columns in images.items():
        for column, image in columns.items():
            values = np.asarray(image, dtype=np.float64)
            y, x = np.indices(values.shape)
            labels = {"row": row, "column": column}
            panels.append(pd.DataFrame(labels | {"y": y.ravel(), "x": x.ravel(), "value": values.ravel()}))
    return vocab.ImageFigure(title, pd.concat(panels, ignore_index=True), name)


def evidence_bars(title: str, table: pd.DataFrame, most: int = _MOST_BARS, name: str = "") -> vocab.BarFigure:
    """Return a figure of the evidence of features, with those of an explanation in colour.

    Parameters
    ----------
    table : DataFrame with the columns feature, evidence and chosen
        As ``explanation.table(feature_names)`` returns it.
    most : int
        How many features to show: all that were chosen, and those with the most evidence.
    name : str
        Stem of its file in an experiment.
    """
    order = np.lexsort((-table["evidence"].abs(), ~table["chosen"].astype(bool)))
    order = order[: max(most, int(table["chosen"].sum()))]
    shown = table.iloc[order].sort_values("evidence", ascending=False, kind="stable")
    points = pd.DataFrame(
        {
            "bar": shown["feature"].astype(str).to_numpy(),
            "series": np.where(shown["chosen"], _CHOSEN, _OTHER),
            "y": np.arange(len(shown)),
            "x": shown["evidence"].to_numpy(),
        }
    )
    return vocab.BarFigure(title, "evidence for the class (log-odds, nats)", points, _CHOSEN, name)
