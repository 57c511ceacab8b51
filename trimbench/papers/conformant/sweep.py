"""Predictions against the share of missing features, on any data set; other experiments build on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant import sweep_jobs
from trimbench.papers.conformant.protocol import Task, check_encodings, make_task
from trimbench.papers.conformant.rows import prepare
from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.missingness import Missingness, check_fraction
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.seeds import seed_for
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table, check_axis
from trimbench.papers.validation import unknown

if TYPE_CHECKING:
    import pandas as pd

METHODS = {
    "nacl": "NaCL",
    "nacl_groups": "NaCL, categorical",
    "mean": "mean",
    "median": "median",
    "min": "min",
    "max": "max",
    "naive_bayes": "naive Bayes",
}
MEASURES = {
    "cross_entropy": "cross entropy to the complete prediction (nats)",
    "accuracy": "accuracy",
    "f1_weighted": "weighted F1",
}


def check_missing(missing: Sequence[float]) -> None:
    """Raise an error unless these are fractions of missing features, each once."""
    check_axis("missing", missing)
    for fraction in missing:
        check_fraction(fraction)


def check_repetitions(**repetitions: int) -> None:
    """Raise an error unless every number of repetitions is positive."""
    for name, number in repetitions.items():
        if number < 1:
            raise ValueError(f"{name} must be 1 or more, got {number}")


def check_masks(repetitions: int, repetitions_of: Mapping[str, int]) -> None:
    """Raise an error unless every number of random masks is positive."""
    check_repetitions(repetitions=repetitions, **{f"repetitions_of.{name}": n for name, n in repetitions_of.items()})


def evaluation_cells(
    task: Task,
    missing: Iterable[float],
    repetitions: int,
    missingness: Mapping[str, Any],
    seed: int,
    labels: Mapping[str, Any] | None = None,
) -> list[Cell]:
    """Return one job for each share of missing features and repetition.

    A mask depends on the data set, the share and the repetition, so that all methods and experiments share it.
    """
    cells = []
    for fraction in missing:
        for repetition in range(repetitions):
            mask_seed = seed_for(
                purpose="mask", dataset=task.name, missing=float(fraction), repetition=repetition, seed=seed
            )
            parameters = {
                "task": task.parameters,
                "missing": float(fraction),
                "missingness": dict(missingness),
                "mask_seed": mask_seed,
            }
            job = Job.create(sweep_jobs.evaluate, parameters, {f"dataset/{task.protocol.dataset}": task.sha256})
            own = {"dataset": task.name, "title": task.title, "missing": float(fraction), "repetition": repetition}
            cells.append(Cell({**own, **(labels or {})}, job, (task.declaration,)))
    return cells


@dataclass(frozen=True)
class Sweep:
    """Every method against the share of missing features, on data sets of one's choice.

    Attributes
    ----------
    datasets : list of str
        Protocols (of the group ``protocol``) or data sets.
    missing : list of float
        Fractions of the features.
    repetitions : int
        Random masks for each fraction.
    encoding : {"paper", "authors"}
    mechanism : {"mcar", "rates", "block"}
    rounding : {"down", "nearest", "fifths"}
    rates : dict of str to float
        Of the mechanism ``rates``.
    seed : int
    """

    datasets: list[str]
    missing: list[float]
    repetitions: int = 3
    encoding: str = "paper"
    mechanism: str = "mcar"
    rounding: str = "down"
    rates: dict[str, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        check_axis("datasets", self.datasets)
        check_missing(self.missing)
        check_repetitions(repetitions=self.repetitions)
        check_encodings(encoding=self.encoding)
        missingness = Missingness(self.mechanism, self.rounding, self.rates)  # type: ignore[arg-type]
        for fraction in self.missing:
            missingness.check_fraction(fraction)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each data set, fraction and repetition."""
        cells = []
        for name in self.datasets:
            task = make_task(catalogue, cache, name, self.encoding, self.seed)
            missingness: dict[str, Any] = {"mechanism": self.mechanism, "rounding": self.rounding}
            if self.mechanism == "rates":
                missingness["rates"] = self.rates
                if self.rates and is_here(task.declaration, cache):
                    _check_rates(self.rates, name, prepare(task.parameters).features)
            if self.mechanism == "block" and task.protocol.image:
                missingness["image"] = task.protocol.image
            cells += evaluation_cells(task, self.missing, self.repetitions, missingness, self.seed)
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the repetitions, and their curves."""
        tables, figures = [], []
        several = len(self.datasets) > 1
        for name in self.datasets:
            done, shown_name = successes(rows, dataset=name), title_of(rows, name)
            for measure, title in MEASURES.items():
                stem = f"{name}_{measure}" if several else measure
                main = "" if (name, measure) == (self.datasets[0], "accuracy") else stem
                summary = summarise(done, measure)
                tables.append(Table(main, f"{shown_name}: {title}", wide(summary), formats_of(summary)))
                shown = summary[summary["method"] != "max"] if measure == "cross_entropy" else summary
                if len(shown) and measure != "f1_weighted":
                    figures.append(curves(main, f"{shown_name}: {title.split(' to ')[0]}", title, shown))
        notes = [
            "Means over random masks; bars are 95 % confidence intervals of the mean. Constants for imputation are "
            "those of the training rows. Maximum imputation is not in the figure of entropies, as in the paper's.",
        ]
        tables.sort(key=lambda table: table.name != "")
        return Outcome(tables, sorted(figures, key=lambda figure: figure.name != ""), {}, notes)


def _check_rates(rates: Mapping[str, float], dataset: str, features: Sequence[str]) -> None:
    for feature in rates:
        if feature not in features:
            raise unknown(f"rates: a feature of {dataset}", features, feature)


def title_of(rows: pd.DataFrame, dataset: str) -> str:
    """Return the name of a data set in titles."""
    return str(rows.loc[rows["dataset"] == dataset, "title"].iloc[0])


def successes(rows: pd.DataFrame, **labels: Any) -> pd.DataFrame:
    """Return the rows of finished jobs with these labels."""
    chosen = rows["status"] == "ok"
    for name, value in labels.items():
        chosen &= rows[name] == value
    return rows[chosen]


def summarise(done: pd.DataFrame, measure: str, methods: Iterable[str] | None = None) -> pd.DataFrame:
    """Return mean and 95 % confidence interval over the repetitions, for each share of missing features and method.

    Fractions that hide the same number of features are one share.

    Parameters
    ----------
    done : DataFrame
        Rows of finished jobs of one data set.
    measure : str
    methods : iterable of str, optional
        Keys of the results; default: those of `METHODS`.

    Returns
    -------
    DataFrame with the columns missing, percent, method, mean, low, high (NaN for a single repetition) and n
    """
    import pandas as pd
    from scipy.special import stdtrit

    lines = []
    wanted = [name for name in (methods or METHODS) if f"{name}/{measure}" in done.columns]
    if not wanted:  # no job has ended
        return pd.DataFrame(columns=_SUMMARY)
    shares = done["missing"].map(done.groupby("missing")["missing_percent"].mean().round(9))
    for _, group in done.groupby(shares):
        fraction = group["missing"].min()
        for method in wanted:
            values = group[f"{method}/{measure}"].dropna()
            if values.empty:
                continue
            n, mean = len(values), float(values.mean())
            # One mask has a mean and tells nothing of its spread.
            half = float(stdtrit(n - 1, 0.975)) * float(values.std()) / math.sqrt(n) if n > 1 else math.nan
            line = {"missing": fraction, "percent": float(group["missing_percent"].mean()), "method": method}
            lines.append(line | {"mean": mean, "low": mean - half, "high": mean + half, "n": n})
    return pd.DataFrame(lines, columns=_SUMMARY)


_SUMMARY = ["missing", "percent", "method", "mean", "low", "high", "n"]


def wide(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with a row for each fraction and a column for each method."""
    import pandas as pd

    lines = []
    for percent, group in summary.groupby("percent"):
        line: dict[str, Any] = {"missing (%)": percent, "masks": int(group["n"].max())}
        names = [METHODS.get(str(method), str(method)) for method in group["method"]]
        lines.append(line | dict(zip(names, group["mean"], strict=True)))
    return pd.DataFrame(lines)


def formats_of(summary: pd.DataFrame) -> dict[str, str]:
    """Return the formats of the columns of `wide`."""
    names = [METHODS.get(str(method), str(method)) for method in summary["method"].unique()]
    return {"missing (%)": ".1f", **dict.fromkeys(names, ".4f")}


def curves(
    name: str, title: str, y_label: str, summary: pd.DataFrame, references: pd.DataFrame | None = None
) -> LineFigure:
    """Return a figure of a summary, each method followed by its reference (percent, method, mean) if there is one."""
    import pandas as pd

    points: list[dict[str, Any]] = []
    marks = {}
    # Some figures leave maximum imputation out: behind the others, it changes no colour.
    for method in sorted(summary["method"].unique(), key="max".__eq__):
        ours = summary[summary["method"] == method]
        label = METHODS.get(str(method), str(method))
        for line in ours.itertuples():
            points.append({"series": label, "x": line.percent, "y": line.mean, "low": line.low, "high": line.high})
        theirs = references[references["method"] == method] if references is not None else ours[:0]
        for line in theirs.itertuples():
            marks[f"{label} (authors)"] = "reference"
            points.append({"series": f"{label} (authors)", "x": line.percent, "y": line.mean})
    interval = "95 % confidence interval of the mean over masks"
    return LineFigure(
        name, title, "missing features (%)", y_label, pd.DataFrame(points), marks=marks, interval=interval
    )
