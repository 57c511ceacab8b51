"""Figure 6: explanations of classifications of MNIST digits, 5 against 3, and their pictures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, TypedDict

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trimbench._typing import Vector
from trimbench.conformant.distribution import checked_row
from trimbench.conformant.explanations import SufficientExplanation
from trimbench.conformant.model import ConformantModel
from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant.mask_sweep import conformant_model
from trimbench.papers.conformant.tasks import EncodedRows, Encoding, Task, encoded_rows, make_task, rows_at_hand
from trimbench.papers.execution.job import COUNT, NOTHING, NUMBER, POSITIVE, SHARE, TEXT, fields, job, listed

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
        for name in self.datasets:
            task = make_task(inputs, name, self.encoding, self.seed)
            if len(task.protocol.image) != 2:
                raise vocab.ConfigurationError(f"datasets must be protocols with an image, got {name!r}")
            found = rows_at_hand(task)
            if found and len(found.classes) != 2:
                raise vocab.ConfigurationError(
                    f"datasets must have two classes, got {len(found.classes)} in {name!r}; declare two with classes"
                )
            _check_rows(found, task, self.rows)
            labels: dict[str, vocab.Label] = {"dataset": name, "title": task.title, "width": task.protocol.image[1]}
            cells.append(vocab.Cell.of({**labels, "part": "paper"}, explain_rows, task=task, rows=self.rows))
            labels["part"] = "images"
            cells.append(vocab.Cell.of(labels, explain_further, task=task, rows=self.rows, delta=self.delta))
        for name in self.tables:
            task = make_task(inputs, name, self.encoding, self.seed)
            _check_rows(rows_at_hand(task), task, self.table_rows)
            labels = {"dataset": name, "title": task.title, "width": None, "part": "table"}
            cells.append(vocab.Cell.of(labels, explain_further, task=task, rows=self.table_rows, delta=self.delta))
        return cells

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the sizes of the explanations, and for each data set the picture with four columns."""
        lines, overall = [], []
        figures: list[vocab.Figure] = []
        numbers: list[vocab.Number] = []
        for name in self.datasets:
            done = vocab.successes(rows, dataset=name, part="paper")
            if done.empty:
                continue
            found, first = done.iloc[0], name == self.datasets[0]
            shown: list[_Shown] = found["chosen"]
            lines += [_line(found["title"], entry) for entry in shown]
            counts = {title: int(found[key]) for key, title in _COUNTS.items()}
            overall.append({"data": found["title"], **counts, **{title: found[key] for key, title in _OVERALL.items()}})
            title = vocab.shown_name(name, found["title"])
            figures.append(_figure("" if first else name, title, shown, int(found["width"])))
            if first:
                medians = {"median_size": found["median_size"], "misclassified": float(found["misclassified"])}
                numbers += vocab.numbers_of("all rows", medians, done)
                for entry in shown:
                    numbers += vocab.numbers_of(f"row {entry['row']}", {"size": len(entry["explanation"])}, done)
                # White pixels are 1 and black ones 0.
                both = sum({entry["pixels"][place] for place in entry["explanation"]} == {0, 1} for entry in shown)
                numbers += vocab.numbers_of("rows shown", {"both_colours": float(both)}, done)
        tables = (
            vocab.Table.of("Explanations of the rows shown", lines, _COLUMNS),
            vocab.Table.of("Explanations of all test rows", overall, _FORMATS, name="overall"),
        )
        further = rows[(rows["status"] == "ok") & rows["part"].isin(["images", "table"])]
        for one in further.to_dict("records"):
            if one["part"] == "table":
                figures += further_bars(one, self.delta)
                continue
            name = "beyond" if one["dataset"] == self.datasets[0] else f"{one['dataset']}_beyond"
            title = vocab.shown_name(one["dataset"], one["title"])
            figures.append(further_images(title, one["explained"], int(one["width"]), self.delta, name))
        return vocab.Outcome((*tables, further_table(further, self.delta)), figures, numbers)


def _check_rows(found: EncodedRows | None, task: Task, rows: Sequence[int]) -> None:
    if found and max(rows, default=0) >= len(found.test):
        raise vocab.ConfigurationError(
            f"rows must be less than {len(found.test)}, the number of test rows of {task.name}, got {max(rows)}"
        )


def _line(title: str, entry: _Shown) -> dict[str, object]:
    counts = (len(entry["support"]), len(entry["explanation"]), len({*entry["explanation"]} & {*entry["by_weight"]}))
    values = (title, entry["row"], entry["class"], entry["predicted"], *counts)
    return dict(zip(_COLUMNS, values, strict=True))


def _figure(name: str, title: str, chosen: Sequence[_Shown], width: int) -> vocab.ImageFigure:
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


_PLACES = listed(COUNT)
_ROW = {"row": COUNT, "class": TEXT, "predicted": TEXT}
_CHOSEN_ROW = fields(**_ROW, **dict.fromkeys(("pixels", "support", "by_weight", "explanation"), _PLACES))
_EXPLAINED_ROW = fields(
    **{**_ROW, "sufficient": _PLACES, "kept": _PLACES, "least": COUNT, "probability": listed(SHARE)},
    **{"evidence": listed(NUMBER), "changed": _PLACES, "becomes": TEXT | NOTHING, "values": listed(NUMBER)},
)


@job(
    {
        **{"n_test": COUNT, "misclassified": COUNT, "median_size": POSITIVE, "median_size_correct": POSITIVE},
        **{"median_size_misclassified": POSITIVE | NOTHING, "median_support": POSITIVE},
        **{"milliseconds_per_row": POSITIVE, "chosen": listed(_CHOSEN_ROW)},
    }
)
def explain_rows(task: Task, rows: list[int]) -> dict[str, vocab.Json]:
    """Explain the classification of all test rows of a task with two classes, and give the pixels of some."""
    found, model = encoded_rows(task), conformant_model(task)
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


def explain_by_weight(model: ConformantModel, explanation: SufficientExplanation, x: ArrayLike) -> tuple[int, ...]:
    """Return the baseline of Figure 6: the same number of support features, by the size of their weights.

    A weight says what flipping a value does to the log-odds, not what its absence does. For a categorical feature, the
    largest difference between the weight of its value and that of another counts.

    Parameters
    ----------
    model : ConformantModel
    explanation : Explanation
        Of the same row.
    x : array of shape (n_columns,)
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

_COLUMNS_FURTHER_EXPLANATIONS = {
    **dict.fromkeys(["data", "row", "class", "predicted", "features kept", "proven least"], ""),
    **dict.fromkeys(["probability low", "probability high"], ".4f"),
    **dict.fromkeys(["features changed", "becomes"], ""),
}


@job(features=listed(TEXT), explained=listed(_EXPLAINED_ROW))
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


def further_table(done: pd.DataFrame, delta: float) -> vocab.Table:
    """Return the sizes of all explanations of successful jobs."""
    lines = []
    for one in done.to_dict("records"):
        for entry in one["explained"]:
            sizes = (len(entry["kept"]), entry["least"], *entry["probability"], len(entry["changed"]), entry["becomes"])
            values = (one["title"], entry["row"], entry["class"], entry["predicted"], *sizes)
            lines.append(dict(zip(_COLUMNS_FURTHER_EXPLANATIONS, values, strict=True)))
    title = f"Beyond the paper: explanations that hold with probability {delta:g}, and contrastive ones"
    return vocab.Table.of(title, lines, _COLUMNS_FURTHER_EXPLANATIONS, name="beyond")


def further_images(
    title: str, explained: Sequence[Mapping[str, Any]], width: int, delta: float, name: str
) -> vocab.ImageFigure:
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


def further_bars(job: Mapping[Any, Any], delta: float) -> list[vocab.BarFigure]:
    """Return a figure for each row of a table: the evidence of its features, those of the explanation in colour."""
    figures = []
    for entry in job["explained"]:
        chosen = np.isin(np.arange(len(entry["evidence"])), entry["kept"])
        table = pd.DataFrame({"feature": job["features"], "evidence": entry["evidence"], "chosen": chosen})
        probability = f"in colour, features that keep the class with probability {delta:g} (beyond the paper)"
        title = f"{job['title']}, {heading(entry)}; {probability}"
        figures.append(evidence_bars(title, table, name=f"{job['dataset']}_{entry['row']}"))
    return figures


# Figures of explanations: images of chosen pixels, and bars of the evidence of a table's features.

_MOST_BARS = 20
_CHOSEN, _OTHER = "in the explanation", "not in it"


def only(values: ArrayLike, features: Sequence[int]) -> Vector:
    """Return a row with NaN in place of all but some features."""
    row = np.asarray(values, dtype=np.float64)
    kept = np.full(len(row), np.nan)
    kept[list(features)] = row[list(features)]
    return kept


def image_grid(title: str, images: Mapping[str, Mapping[str, ArrayLike]], name: str = "") -> vocab.ImageFigure:
    """Return a figure of images: a line of the grid for each key of `images`, whose images have names.

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
