"""Experiments of Choi and Van den Broeck (2018), On Robust Trimming of Bayesian Network Classifiers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.data.sources import load_dataset
from trimbench.execution.job import Job
from trimbench.execution.seeds import seed_for
from trimbench.experiments import trimming_jobs as jobs
from trimbench.experiments.plan import Cell, LineFigure, Outcome, Table

if TYPE_CHECKING:
    import pandas as pd

_METHODS: dict[str, Callable[..., dict[str, Any]]] = {"eca_trim": jobs.trim_network, "fs_sdd": jobs.select_from_network}
_EXAMPLE = "F1, F2"
# Agreements that differ by less are equal: both are exact up to rounding.
_STRICTLY = 1e-9


@dataclass(frozen=True)
class Table6:
    """Run time and evaluations of both methods on the seven naive Bayes networks (Table 6).

    Attributes
    ----------
    networks : list of str
    thresholds : list of float
    budget_divisor : int
        The budget is the number of features divided by this, rounded down.
    engine : str
    """

    networks: list[str]
    thresholds: list[float]
    budget_divisor: int = 3
    engine: str = "dense"

    def __post_init__(self) -> None:
        _check_thresholds(self.thresholds)
        if self.budget_divisor < 1:
            raise ValueError(f"budget_divisor must be 1 or more, got {self.budget_divisor}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each network, threshold and method."""
        cells = []
        for network in self.networks:
            declaration = catalogue.network(network)
            for threshold in self.thresholds:
                for method, function in _METHODS.items():
                    parameters: dict[str, Any] = {
                        "network": catalogue.mapping("network", network),
                        "name": network,
                        "threshold": threshold,
                        "budget_divisor": self.budget_divisor,
                    }
                    if method == "eca_trim":
                        parameters["engine"] = self.engine
                    job = Job.create(function, parameters, {f"network/{network}": declaration.sha256})
                    labels = {"network": network, "threshold": threshold, "method": method}
                    cells.append(Cell(labels, job, (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the table, averaged over the thresholds, and the share of strictly better trimmings."""
        import pandas as pd

        lines = [self._line(network, rows[rows["network"] == network]) for network in self.networks]
        frame = pd.DataFrame([line for line in lines if line is not None], columns=_TABLE_6_COLUMNS)
        shares = _strictly_better(rows)
        reproduced: dict[str, float | None] = {
            f"{line['network']}/{column}": line[column]
            for line in frame.to_dict("records")
            for column in _TABLE_6_COLUMNS[1:]
            if not pd.isna(line[column])
        }
        reproduced["all/strictly_better_percent"] = shares.get("threshold kept")
        table = Table("", "Table 6: seconds and evaluations, mean over the thresholds", frame, _TABLE_6_FORMATS)
        better = Table(
            "strictly_better",
            "Share of (network, threshold) instances in which the trimming agrees strictly more often than FS-SDD",
            pd.DataFrame(
                [{"FS-SDD's features": reading, "percent": share} for reading, share in shares.items()],
                columns=["FS-SDD's features", "percent"],
            ),
            {"percent": ".1f"},
        )
        notes = [
            "Parameters in the networks' files are rounded; each distribution is normalised when it is read.",
            "Seconds are those of the method alone, without reading the network.",
        ]
        return Outcome((table, better), (), reproduced, notes)

    def _line(self, network: str, rows: pd.DataFrame) -> dict[str, Any] | None:
        done = rows[rows["status"] == "ok"]
        if done.empty:
            return None
        n_features, budget = int(done["n_features"].iloc[0]), int(done["budget"].iloc[0])
        line: dict[str, Any] = {
            "network": network,
            "n_features": n_features,
            "budget": budget,
            "subsets": math.comb(n_features, budget),
        }
        for method in _METHODS:
            ours = done[done["method"] == method]
            # A mean over fewer thresholds would not be the number that is asked for.
            whole = len(ours) == len(self.thresholds)
            line[f"{method}_seconds"] = float(ours["method_seconds"].mean()) if whole else math.nan
            line[f"{method}_evaluations"] = float(ours["n_evaluations"].mean()) if whole else math.nan
        return line


_TABLE_6_COLUMNS = [
    "network",
    "n_features",
    "budget",
    "fs_sdd_seconds",
    "fs_sdd_evaluations",
    "eca_trim_seconds",
    "eca_trim_evaluations",
    "subsets",
]
_TABLE_6_FORMATS = {
    "fs_sdd_seconds": ".4f",
    "fs_sdd_evaluations": ".0f",
    "eca_trim_seconds": ".4f",
    "eca_trim_evaluations": ".1f",
}


def _strictly_better(rows: pd.DataFrame) -> dict[str, float]:
    """Return in how many percent of the instances the trimming is strictly better, by reading of the claim."""
    done = rows[rows["status"] == "ok"]
    if done.empty or done["method"].nunique() < len(_METHODS):
        return {}
    values = ["agreement", "agreement_at_best_threshold"]
    wide = done.pivot(index=["network", "threshold"], columns="method", values=values)  # noqa: PD010 - nothing to aggregate
    trimmed = wide[("agreement", "eca_trim")]
    shares = {}
    for reading, column in (("threshold kept", "agreement"), ("best threshold", "agreement_at_best_threshold")):
        difference = (trimmed - wide[(column, "fs_sdd")]).dropna()
        if len(difference):
            shares[reading] = 100.0 * float((difference > _STRICTLY).mean())
    return shares


@dataclass(frozen=True)
class Table4:
    """The worked example of the maximum achievable agreement (Table 4).

    Attributes
    ----------
    instances : list of [posterior, positive mass, negative mass]
    threshold : float
        Threshold of the original classifier.
    """

    instances: list[list[float]]
    threshold: float

    def __post_init__(self) -> None:
        _check_thresholds([self.threshold])
        for instance in self.instances:
            if len(instance) != 3 or not all(0 <= value <= 1 for value in instance):
                raise ValueError(
                    "instances must each be [posterior, positive mass, negative mass], probabilities in [0, 1], "
                    f"got {instance}"
                )

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the one job."""
        parameters = {"instances": self.instances, "threshold": self.threshold}
        return [Cell({"example": _EXAMPLE}, Job.create(jobs.achievable_agreement_of_table, parameters))]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the agreement and the interval of best thresholds."""
        columns = ["agreement", "threshold_low", "threshold_high"]
        done = rows[rows["status"] == "ok"].reindex(columns=["example", *columns])
        reproduced: dict[str, float | None] = {
            f"{_EXAMPLE}/{column}": float(done[column].iloc[0]) if len(done) else None for column in columns
        }
        title = "Table 4: maximum achievable agreement of {F1, F2}, reached for low < T' <= high"
        return Outcome((Table("", title, done, dict.fromkeys(columns, ".2f")),), (), reproduced)


@dataclass(frozen=True)
class BudgetCurve:
    """Agreement and accuracy of trimmings of a learned naive Bayes classifier against the budget.

    Attributes
    ----------
    dataset : str
    budgets : list of int
    splits : int
        Number of random splits.
    positive : str, optional
        Class that the threshold speaks of; default: the rarer one.
    threshold, smoothing, test_fraction : float
    engine : str
    evaluation_limit : int, optional
        After so many evaluations of the criterion a search is stopped; its optimality gap is then reported.
    seed : int
    """

    dataset: str
    budgets: list[int]
    splits: int = 1
    positive: str | None = None
    threshold: float = 0.5
    smoothing: float = 1.0
    test_fraction: float = 0.2
    engine: str = "auto"
    evaluation_limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_thresholds([self.threshold])
        if self.splits < 1:
            raise ValueError(f"splits must be 1 or more, got {self.splits}")
        if not self.budgets or min(self.budgets) < 0:
            raise ValueError(f"budgets must be a list of numbers >= 0, at least one, got {self.budgets}")

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each split and budget."""
        declaration = catalogue.dataset(self.dataset)
        # Data without a declared fingerprint (a user's own) is read once to know what it is.
        sha256 = declaration.facts.sha256 or load_dataset(declaration, cache).sha256
        shared = {
            "dataset": catalogue.dataset_mapping(self.dataset),
            "name": self.dataset,
            "positive": self.positive,
            "threshold": self.threshold,
            "smoothing": self.smoothing,
            "test_fraction": self.test_fraction,
            "engine": self.engine,
            "evaluation_limit": self.evaluation_limit,
        }
        cells = []
        for split in range(self.splits):
            split_seed = seed_for(purpose="split", dataset=self.dataset, split=split, seed=self.seed)
            for budget in self.budgets:
                parameters = {**shared, "budget": budget, "split_seed": split_seed}
                job = Job.create(jobs.trim_learned, parameters, {f"dataset/{self.dataset}": sha256})
                cells.append(Cell({"split": split, "budget": budget}, job, (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the means over the splits, and their curves."""
        import pandas as pd

        done = rows[rows["status"] == "ok"]
        lines, points = [], []
        for budget, group in done.groupby("budget") if len(done) else ():
            gap = (group["upper_bound"] - group["agreement"]).clip(lower=0)
            lines.append(
                {
                    "budget": budget,
                    "splits": len(group),
                    "ECA": group["agreement"].mean(),
                    "largest gap": gap.max(),
                    "proven": int(group["optimal"].sum()),
                    "test agreement": group["test_agreement"].mean(),
                    "test accuracy": group["test_accuracy"].mean(),
                    "full test accuracy": group["full_test_accuracy"].mean(),
                    "evaluations": group["n_evaluations"].mean(),
                    "seconds": group["method_seconds"].mean(),
                }
            )
            for series, column in _CURVES.items():
                points.append(
                    {
                        "series": series,
                        "x": budget,
                        "y": group[column].mean(),
                        "low": group[column].min(),
                        "high": group[column].max(),
                    }
                )
        table = Table("", f"Trimming {self.dataset}: means over the splits", pd.DataFrame(lines), _CURVE_FORMATS)
        figure = LineFigure(
            "",
            f"Trimming a naive Bayes classifier ({self.dataset})",
            "budget (number of features kept)",
            "probability",
            pd.DataFrame(points, columns=["series", "x", "y", "low", "high"]),
            {"accuracy with all features": float(done["full_test_accuracy"].mean())} if len(done) else {},
        )
        notes = [
            "ECA is exact for the trimming that is given; 'largest gap' bounds how much better any trimming within the "
            "budget could be, and 'proven' counts the splits whose trimming is proven optimal.",
            "Bands in the figure span the splits.",
        ]
        return Outcome((table,), (figure,), {}, notes)


_CURVES = {"expected agreement (ECA)": "agreement", "accuracy on test rows": "test_accuracy"}
_CURVE_FORMATS = {
    "ECA": ".4f",
    "largest gap": ".1e",
    "test agreement": ".4f",
    "test accuracy": ".4f",
    "full test accuracy": ".4f",
    "evaluations": ".0f",
    "seconds": ".2f",
}


def _check_thresholds(thresholds: list[float]) -> None:
    for threshold in thresholds:
        if not 0 <= threshold <= 1:
            raise ValueError(f"a threshold must be a probability in [0, 1], got {threshold!r}")
    if not thresholds:
        raise ValueError("thresholds must be a list of at least one number, got none")
