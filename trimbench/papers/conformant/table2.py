"""Table 2: the data sets, and the logistic regressions that are fitted to them."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.conformant.tasks import Encoding, count_rows, fit_task, make_task

_JOBS = {"rows": count_rows, "classifier": fit_task}
# Table 2 calls these balanced: each class has an equal share. The largest class of the others has more than that.
_BALANCED = ("mnist", "fashion")
_TRAINING_ROWS_PRINTED = ("mnist", "fashion")


@vocab.settings
class Table2:
    """Size, classes and features of the data sets (Table 2), with both encodings and the classifiers.

    The files of the `named_rows` have one more column, which names each row: counting it is an inferred set-up.
    """

    datasets: vocab.Axis[str]
    encodings: vocab.Axis[Encoding]
    named_rows: list[str] = field(default_factory=list)
    seed: int = 0

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return two jobs for each data set and encoding: its rows and its classifier."""
        # Fits of large data sets take a minute or two each, and another fit of the same rows waits for the first: the
        # data sets take turns, and the encoding with more columns comes first.
        tasks = [make_task(inputs, name, one, self.seed) for one in reversed(self.encodings) for name in self.datasets]
        return [
            vocab.Cell.of({"dataset": task.name, "encoding": task.encoding, "part": part}, function, task=task)
            for part, function in reversed(_JOBS.items())
            for task in tasks
        ]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the data sets as the paper lists them, their encodings, and the classifiers."""
        listed, encoded = [], []
        numbers: list[vocab.Number] = []
        for name in self.datasets:
            for encoding in self.encodings:
                sizes, fits = (vocab.successes(rows, dataset=name, encoding=encoding, part=part) for part in _JOBS)
                if sizes.empty:
                    continue
                size = sizes.iloc[0]
                if encoding == self.encodings[0]:
                    printed = _printed(name, size)
                    listed.append({"data": name} | printed)
                    share = "balanced_percent" if name in _BALANCED else "unbalanced_percent"
                    quantities = ("size_thousands", "classes", share, "features")
                    found = vocab.numbers_of(name, dict(zip(quantities, printed.values(), strict=True)), sizes)
                    if name in self.named_rows:
                        named = vocab.Explanation("the name of the sequence is counted, too", printed["features"] + 1)
                        found[-1] = replace(found[-1], explanation=named)
                    numbers += found
                line = {"data": name, "encoding": encoding, **{title: size[key] for key, title in _SIZES.items()}}
                encoded.append(line | ({t: fits.iloc[0][key] for key, t in _FIT.items()} if len(fits) else {}))
        tables = (
            vocab.Table.of("Table 2: the data sets", listed, _LISTED),
            vocab.Table.of(_ENCODED_TITLE, encoded, _ENCODED, name="encoded"),
        )
        return vocab.Outcome(tables, (), [*numbers, *self._most_values(rows)])

    def _most_values(self, rows: pd.DataFrame) -> list[vocab.Number]:
        """Return the largest number of values of a categorical feature, with what contradicts the printed one."""
        done = vocab.successes(rows, part="rows")
        if not {"adult", "covtype"} <= set(done["dataset"]) or "most_values" not in done:
            return []
        widest = done.sort_values("most_values").to_dict("records")[-1]
        most, proof = int(widest["most_values"]), ""
        if most != vocab.printed_numbers("conformant/table2")["all data sets", "values"].value:
            feature = f"{widest['most_valued']} of {widest['dataset']}"
            proof = f"{feature}, a data set of Table 2, has {most} values, a missing one included."
        return [vocab.number_of("all data sets", "values", most, done, contradiction=proof)]


def _printed(name: str, size: pd.Series[Any]) -> dict[str, float]:
    counts = size["class_counts"]
    return {
        "size (1000)": float(size["n_train" if name in _TRAINING_ROWS_PRINTED else "rows"]) / 1000,
        "classes": int(size["n_classes"]),
        "largest class (%)": 100 * max(counts) / sum(counts),
        "features": int(size["features"]),
    }


_LISTED = {"data": "", "size (1000)": "", "classes": "", "largest class (%)": ".1f", "features": ""}
_SIZES = {"n_train": "train rows", "n_test": "test rows", "n_columns": "columns", "n_features": "features"}
_FIT = {
    "test_accuracy": "accuracy",
    "test_f1_weighted": "weighted F1",
    "test_entropy": "entropy",
    "iterations": "iterations",
    "fit_seconds": "seconds",
}
_ENCODED_TITLE = "As they are encoded, and the logistic regression on the test rows with all features"
_ENCODED = {
    "data": "",
    "encoding": "",
    **dict.fromkeys(_SIZES.values(), ".0f"),
    **dict.fromkeys(["accuracy", "weighted F1", "entropy"], ".4f"),
    "iterations": ".0f",
    "seconds": ".1f",
}
