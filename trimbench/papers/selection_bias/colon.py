"""Leave-one-out predictions on gene expression data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import DatasetDeclaration, Facts
from trimbench.papers.data.sources import load_dataset
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.comparison import gains
from trimbench.papers.selection_bias.settings import CORRECTIONS, check_at_least, make_prior
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table, check_axis
from trimbench.papers.validation import ConfigurationError, unknown
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
    datasets : list of str
        Any declared data sets with two classes and features that are numbers.
    positive : str, optional
        Class that is called 1; None takes the last in alphabetical order.
    n_subsets : int
        Parts into which the features are split at random.
    k : int
        Features selected inside each leave-one-out fold.
    splits : int
        Number of random splits of the features.
    prior : dict
    ties : str
    seed : int
    """

    datasets: list[str]
    prior: dict[str, Any]
    positive: str | None = None
    n_subsets: int = 10
    k: int = 5
    splits: int = 4
    ties: str = "exact"
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_ties(self.ties)
        make_prior(self.prior)
        check_at_least(1, n_subsets=self.n_subsets, k=self.k, splits=self.splits)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set and random split."""
        cells = []
        for dataset in self.datasets:
            declaration = catalogue.dataset(dataset)
            facts = self._checked_facts(declaration, cache)
            for split in range(self.splits):
                parameters = {
                    "dataset": catalogue.dataset_mapping(dataset),
                    "name": dataset,
                    "positive": self.positive or max(facts.classes),
                    "n_subsets": self.n_subsets,
                    "k": self.k,
                    "prior": dict(self.prior),
                    "ties": self.ties,
                    "split_seed": seed_for(purpose="gene subsets", dataset=dataset, split=split, seed=self.seed),
                }
                job = Job.create(jobs.leave_one_out_on_subsets, parameters, {f"dataset/{dataset}": str(facts.sha256)})
                cells.append(Cell({"dataset": dataset, "split": split}, job, (declaration,)))
        return cells

    def _checked_facts(self, declaration: DatasetDeclaration, cache: Cache) -> Facts:
        """Return what is known of a data set, once it suits the method; data without declared facts is read."""
        facts, name = declaration.facts, declaration.name
        if facts.features is None or not facts.classes or facts.sha256 is None:
            loaded = load_dataset(declaration, cache)
            classes = {str(label): int(count) for label, count in loaded.target.astype(str).value_counts().items()}
            facts = Facts(len(loaded.target), loaded.features.shape[1], classes, loaded.sha256)
        if len(facts.classes) != 2 or min(facts.classes.values()) < 2:
            raise ConfigurationError(
                f"datasets must have two classes of at least 2 cases for leave-one-out, got {name} with "
                f"{facts.classes}; choose another"
            )
        if self.positive is not None and self.positive not in facts.classes:
            raise unknown(f"positive: a class of {name}", list(facts.classes), self.positive)
        if self.n_subsets * self.k > (facts.features or 0):
            raise ConfigurationError(
                f"n_subsets times k must be at most {facts.features}, the number of features of {name}, got "
                f"{self.n_subsets} times {self.k}"
            )
        return facts

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return one line for each subset, the means, and figures over all subsets of a data set."""
        import pandas as pd

        lines: list[dict[str, Any]] = []
        for found in rows[rows["status"] == "ok"].to_dict("records"):
            for subset in range(self.n_subsets):
                line: dict[str, Any] = {
                    "dataset": found["dataset"],
                    "split": int(found["split"]),
                    "subset": subset + 1,
                }
                for correction in CORRECTIONS:
                    for key, title in _QUANTITIES.items():
                        line[f"{correction} {title}"] = found[f"{correction}_{key}"][subset]
                lines.append(line)
        quantities = [f"{c} {title}" for c in CORRECTIONS for title in _QUANTITIES.values()]
        frame = pd.DataFrame(lines, columns=["dataset", "split", "subset", *quantities])
        means = _means(frame)
        tables = (
            Table("", "Means over the subsets of features", means, dict.fromkeys(_QUANTITIES.values(), ".4f")),
            Table(
                "subsets",
                "Leave-one-out predictions on each subset of features",
                frame,
                dict.fromkeys(quantities, ".3f"),
            ),
        )
        figures = []
        reproduced: dict[str, float | None] = {}
        jobs: dict[str, list[str]] = {}
        done = rows[rows["status"] == "ok"]
        columns = [f"{correction}_{key}" for correction in CORRECTIONS for key in _QUANTITIES]
        for dataset, ours in done.groupby("dataset"):
            better = gains(ours[columns].explode(columns).astype(float))
            jobs[str(dataset)] = list(ours["job"])
            reproduced |= {f"{dataset}/{name}": gain for name, gain in better.items()}
        for dataset in self.datasets:
            part = frame[frame["dataset"] == dataset]
            if len(part):
                figures.append(_errors_figure(part, dataset))
                figures += [_loss_figure(part, title, dataset) for title in ("AMLP", "squared error")]
        notes = [
            "Features are cut at their medians over all cases, before cross-validation, as in the slides; the response "
            "plays no part in that.",
            "Lower AMLP: subsets on which that prediction has the lower AMLP; equal ones count for neither.",
        ]
        if "colon" in self.datasets:
            notes.insert(
                0,
                "The slides plot one split of the genes and print no number. This copy of the data colon is log10 and "
                "standardised within each tissue, so that it is not exactly the slides' data.",
            )
        return Outcome(tables, figures, reproduced, notes, jobs=jobs)


def _means(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    lines = []
    for dataset, ours in frame.groupby("dataset", sort=False):
        splits = [(split, part) for split, part in ours.groupby("split")]
        for split, part in [*splits, ("all", ours)]:
            amlp = {correction: part[f"{correction} AMLP"] for correction in CORRECTIONS}
            for correction, other in (CORRECTIONS, CORRECTIONS[::-1]):
                line: dict[str, Any] = {"dataset": dataset, "split": str(split), "correction": correction}
                line |= {title: float(part[f"{correction} {title}"].mean()) for title in _QUANTITIES.values()}
                line["lower AMLP"] = f"{int((amlp[correction] < amlp[other]).sum())} of {len(part)}"
                lines.append(line)
    return pd.DataFrame(lines, columns=["dataset", "split", "correction", *_QUANTITIES.values(), "lower AMLP"])


def _errors_figure(frame: pd.DataFrame, dataset: str) -> LineFigure:
    import pandas as pd

    parts = [
        pd.DataFrame(
            {"series": correction, "x": frame[f"{correction} expected error"], "y": frame[f"{correction} actual error"]}
        )
        for correction in reversed(CORRECTIONS)
    ]
    title = f"Errors on subsets of the features of {dataset}"
    return _against_diagonal(_stem("errors", dataset), title, "expected error", "actual error", parts)


def _loss_figure(frame: pd.DataFrame, title: str, dataset: str) -> LineFigure:
    import pandas as pd

    part = pd.DataFrame(
        {"series": "subset of features", "x": frame[f"uncorrected {title}"], "y": frame[f"corrected {title}"]}
    )
    name = "minus_log_probability" if title == "AMLP" else "squared_error"
    long = "average minus log probability" if title == "AMLP" else "average squared error"
    heading = f"{long.capitalize()} on subsets of the features of {dataset}"
    return _against_diagonal(_stem(name, dataset), heading, f"{long}, uncorrected", f"{long}, corrected", [part])


def _stem(name: str, dataset: str) -> str:
    return name if dataset == "colon" else f"{name}_{dataset}"


def _against_diagonal(name: str, title: str, x_label: str, y_label: str, parts: list[pd.DataFrame]) -> LineFigure:
    import pandas as pd

    both = pd.concat(parts, ignore_index=True)
    low, high = float(both[["x", "y"]].min().min()), float(both[["x", "y"]].max().max())
    diagonal = pd.DataFrame({"series": "equal", "x": [low, high], "y": [low, high]})
    marks = {"equal": "guide"} | dict.fromkeys(both["series"].unique(), "points")
    return LineFigure(name, title, x_label, y_label, pd.concat([both, diagonal], ignore_index=True), marks=marks)
