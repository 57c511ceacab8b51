"""Table 2: the data sets, and the logistic regressions that are fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant.classifier import fit_task
from trimbench.papers.conformant.protocol import check_encodings, make_task
from trimbench.papers.conformant.rows import encode_task
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.study.plan import Cell, Outcome, Table, check_axis

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table2:
    """Size, classes and features of the data sets (Table 2), with both encodings and the classifiers.

    Attributes
    ----------
    datasets : list of str
        Protocols.
    encodings : list of str
    seed : int
    """

    datasets: list[str]
    encodings: list[str]
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_encodings(encodings=self.encodings)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return two jobs for each data set and encoding: its rows and its classifier."""
        cells = []
        for encoding in self.encodings:
            for name in self.datasets:
                task = make_task(catalogue, cache, name, encoding, self.seed)
                data = {f"dataset/{task.protocol.dataset}": task.sha256}
                for part, function in (("rows", encode_task), ("classifier", fit_task)):
                    labels = {"dataset": name, "encoding": encoding, "part": part}
                    job = Job.create(function, {"task": task.parameters}, data)
                    cells.append(Cell(labels, job, (task.declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the data sets as the paper lists them, their encodings, and the classifiers."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        listed: list[dict[str, Any]] = []
        encoded: list[dict[str, Any]] = []
        reproduced: dict[str, float | None] = {}
        jobs: dict[str, list[str]] = {}
        for name in self.datasets:
            for encoding in self.encodings:
                ours = done[(done["dataset"] == name) & (done["encoding"] == encoding)]
                sizes, fits = (ours[ours["part"] == part] for part in ("rows", "classifier"))
                if sizes.empty:
                    continue
                size = sizes.iloc[0]
                if encoding == self.encodings[0]:
                    listed.append(_listed(name, size))
                    jobs[name] = list(sizes["job"])
                    reproduced |= {f"{name}/{key}": listed[-1][title] for key, title in _REPORTED.items()}
                fit: dict[str, Any] = {str(key): value for key, value in fits.iloc[0].items()} if len(fits) else {}
                encoded.append(
                    {
                        "data": name,
                        "encoding": encoding,
                        "train rows": size["n_train"],
                        "test rows": size["n_test"],
                        "columns": size["n_columns"],
                        "features": size["n_features"],
                        **{title: fit.get(key) for key, title in _FIT.items()},
                    }
                )
        tables = [
            Table("", "Table 2: the data sets", pd.DataFrame(listed, columns=_LISTED), {"largest class (%)": ".1f"}),
            Table(
                "encoded",
                "As they are encoded, and the logistic regression on the test rows with all features",
                pd.DataFrame(encoded, columns=_ENCODED),
                _FORMATS,
            ),
        ]
        notes = [
            "The size of MNIST and Fashion-MNIST is that of the training rows, as in the paper. 'largest class' is the "
            "share of rows of the most frequent class, of all rows.",
            "Rows of Splice with ambiguous letters are dropped. Splice has 60 bases; the paper's 61 counts the name of "
            "the sequence too, which is no feature of the classifier.",
            "'entropy' is that of the classifier's own predictions: the cross entropy with nothing missing.",
        ]
        return Outcome(tables, (), reproduced, notes, jobs=jobs)


_LISTED = ["data", "size (1000)", "classes", "largest class (%)", "features"]
_REPORTED = {
    "size_thousands": "size (1000)",
    "classes": "classes",
    "features": "features",
    # One number with two claims: an equal share where Table 2 says balanced, more than that where it says unbalanced.
    "balanced_percent": "largest class (%)",
    "unbalanced_percent": "largest class (%)",
}
_FIT = {
    "test_accuracy": "accuracy",
    "test_f1_weighted": "weighted F1",
    "test_entropy": "entropy",
    "iterations": "iterations",
    "fit_seconds": "seconds",
}
_ENCODED = ["data", "encoding", "train rows", "test rows", "columns", "features", *_FIT.values()]
_FORMATS = {
    **dict.fromkeys(["train rows", "test rows", "columns", "features", "iterations"], ".0f"),
    **dict.fromkeys(["accuracy", "weighted F1", "entropy"], ".4f"),
    "seconds": ".1f",
}


def _listed(name: str, size: pd.Series[Any]) -> dict[str, Any]:
    counts = size["class_counts"]
    rows = size["n_train"] if name in ("mnist", "fashion") else size["rows"]
    return {
        "data": name,
        "size (1000)": float(rows) / 1000,
        "classes": int(size["n_classes"]),
        "largest class (%)": 100 * max(counts) / sum(counts),
        "features": int(size["features"]),
    }
