"""Leave-one-out predictions on gene expression data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue, ConfigurationError
from trimbench.data.cache import Cache
from trimbench.data.sources import load_dataset
from trimbench.execution.job import Job
from trimbench.execution.seeds import seed_for
from trimbench.experiments.plan import Cell, LineFigure, Outcome, Table
from trimbench.experiments.selection_bias import jobs
from trimbench.experiments.selection_bias.settings import CORRECTIONS, make_prior
from trimbench.selection_bias.adjustment import check_ties

if TYPE_CHECKING:
    import pandas as pd

_QUANTITIES = {
    "expected_error": "expected error",
    "actual_error": "actual error",
    "minus_log_probability": "AMLP",
    "squared_error": "squared error",
}


@dataclass(frozen=True)
class Colon:
    """Predictions for each tissue from the others, on random subsets of the genes.

    Attributes
    ----------
    dataset : str
        Any declared data set with two classes and features that are numbers.
    positive : str
        Class that is called 1.
    n_subsets : int
        Parts into which the genes are split at random.
    k : int
        Genes selected inside each leave-one-out fold.
    splits : int
        Number of random splits of the genes.
    prior : dict
    ties : str
    seed : int
    """

    prior: dict[str, Any]
    dataset: str = "colon"
    positive: str = "1"
    n_subsets: int = 10
    k: int = 5
    splits: int = 4
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        check_ties(self.ties)
        make_prior(self.prior)
        for name in ("n_subsets", "k", "splits"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each random split."""
        declaration = catalogue.dataset(self.dataset)
        facts = declaration.facts
        if facts.features is not None and not self.n_subsets * self.k <= facts.features:
            raise ConfigurationError(
                f"n_subsets times k must be at most {facts.features}, the number of features of {self.dataset}, got "
                f"{self.n_subsets} times {self.k}"
            )
        # Data without a declared fingerprint (a user's own) is read once to know what it is.
        sha256 = facts.sha256 or load_dataset(declaration, cache).sha256
        cells = []
        for split in range(self.splits):
            parameters = {
                "dataset": catalogue.dataset_mapping(self.dataset),
                "name": self.dataset,
                "positive": self.positive,
                "n_subsets": self.n_subsets,
                "k": self.k,
                "prior": dict(self.prior),
                "ties": self.ties,
                "split_seed": seed_for(purpose="gene subsets", dataset=self.dataset, split=split, seed=self.seed),
            }
            job = Job.create(jobs.leave_one_out_on_subsets, parameters, {f"dataset/{self.dataset}": sha256})
            cells.append(Cell({"split": split}, job, (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return one line for each subset, the means, and figures over all subsets."""
        import pandas as pd

        lines: list[dict[str, Any]] = []
        for found in rows[rows["status"] == "ok"].to_dict("records"):
            for subset in range(self.n_subsets):
                line: dict[str, Any] = {"split": int(found["split"]), "subset": subset + 1}
                for correction in CORRECTIONS:
                    for key, title in _QUANTITIES.items():
                        line[f"{correction} {title}"] = found[f"{correction}_{key}"][subset]
                lines.append(line)
        columns = ["split", "subset", *(f"{c} {title}" for c in CORRECTIONS for title in _QUANTITIES.values())]
        frame = pd.DataFrame(lines, columns=columns)
        formats = dict.fromkeys(columns[2:], ".3f")
        means = _means(frame, self.splits)
        tables = (
            Table("", "Means over the subsets of genes", means, dict.fromkeys(means.columns[2:-1], ".4f")),
            Table("subsets", "Leave-one-out predictions on each subset of genes", frame, formats),
        )
        figures = [_errors_figure(frame), *(_loss_figure(frame, title) for title in ("AMLP", "squared error"))]
        notes = [
            "The slides plot one split of the genes and print no number. This copy of the data is log10 and "
            "standardised within each tissue, so that it is not exactly the slides' data.",
            "Genes are cut at their medians over all tissues, before cross-validation, as in the slides; the response "
            "plays no part in that.",
        ]
        return Outcome(tables, figures if len(frame) else (), {}, notes)


def _means(frame: pd.DataFrame, splits: int) -> pd.DataFrame:
    import pandas as pd

    lines = []
    for split in [*range(splits), "all"] if len(frame) else []:
        part = frame if split == "all" else frame[frame["split"] == split]
        if part.empty:
            continue
        for correction in CORRECTIONS:
            line: dict[str, Any] = {"split": str(split), "correction": correction}
            line |= {title: float(part[f"{correction} {title}"].mean()) for title in _QUANTITIES.values()}
            better = int((part["corrected AMLP"] < part["uncorrected AMLP"]).sum())
            line["lower AMLP"] = f"{better if correction == 'corrected' else len(part) - better} of {len(part)}"
            lines.append(line)
    return pd.DataFrame(lines, columns=["split", "correction", *_QUANTITIES.values(), "lower AMLP"])


def _errors_figure(frame: pd.DataFrame) -> LineFigure:
    import pandas as pd

    parts = [
        pd.DataFrame(
            {"series": correction, "x": frame[f"{correction} expected error"], "y": frame[f"{correction} actual error"]}
        )
        for correction in CORRECTIONS
    ]
    return _against_diagonal(
        "errors", "Expected and actual error on subsets of genes", "expected error", "actual error", parts
    )


def _loss_figure(frame: pd.DataFrame, title: str) -> LineFigure:
    import pandas as pd

    part = pd.DataFrame(
        {"series": "subset of genes", "x": frame[f"uncorrected {title}"], "y": frame[f"corrected {title}"]}
    )
    name = "minus_log_probability" if title == "AMLP" else "squared_error"
    long = "Average minus log probability" if title == "AMLP" else "Average squared error"
    return _against_diagonal(name, f"{long} on subsets of genes", "uncorrected", "corrected", [part])


def _against_diagonal(name: str, title: str, x_label: str, y_label: str, parts: list[pd.DataFrame]) -> LineFigure:
    import pandas as pd

    both = pd.concat(parts, ignore_index=True)
    low, high = float(both[["x", "y"]].min().min()), float(both[["x", "y"]].max().max())
    diagonal = pd.DataFrame({"series": "equal", "x": [low, high], "y": [low, high]})
    marks = {"equal": "guide"} | dict.fromkeys(both["series"].unique(), "points")
    return LineFigure(name, title, x_label, y_label, pd.concat([both, diagonal], ignore_index=True), marks=marks)
