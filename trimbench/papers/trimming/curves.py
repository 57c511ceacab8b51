"""Agreement against the budget, for all budgets of a declared network classifier at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.functions import job_function
from trimbench.papers.execution.job import Job
from trimbench.papers.study.plan import Cell, LineFigure, Outcome, Table, check_axis
from trimbench.papers.trimming.jobs import network_classifier
from trimbench.trimming.classifier import checked_threshold
from trimbench.trimming.curve import trimming_curve

if TYPE_CHECKING:
    import pandas as pd


@job_function(
    code=(
        "trimbench.papers.data",
        "trimbench.networks",
        "trimbench.trimming",
        "trimbench.papers.trimming.curves",
        "trimbench.papers.trimming.jobs",
    )
)
def trim_to_every_budget(
    network: Mapping[str, Any], name: str, target: str | None, positive: str | None, threshold: float
) -> dict[str, Any]:
    """Find the best trimming of a declared network for each number of features.

    Parameters
    ----------
    network : mapping
        Declaration of the network.
    name : str
    target, positive : str, optional
        The class and its positive state; default: those that are declared.
    threshold : float
    """
    classifier = network_classifier(network, name, threshold, target, positive)
    trimmings = trimming_curve(classifier, range(classifier.n_features + 1))
    return {
        "n_features": classifier.n_features,
        "points": [
            {
                "budget": budget,
                "agreement": trimming.agreement,
                "new_threshold": trimming.threshold,
                "features": list(trimming.features),
            }
            for budget, trimming in enumerate(trimmings)
        ],
    }


@dataclass(frozen=True)
class Curves:
    """Best agreement against the number of kept features, for networks and thresholds.

    Attributes
    ----------
    networks : list of str
        Declared networks, small enough for the dense engine.
    thresholds : list of float
    target, positive : str, optional
        Class node and positive state, for networks that are declared without them, or instead of the declared ones.
    """

    networks: list[str]
    thresholds: list[float]
    target: str | None = None
    positive: str | None = None

    def __post_init__(self) -> None:
        check_axis("networks", self.networks)
        check_axis("thresholds", self.thresholds)
        if (self.target is None) != (self.positive is None):
            raise ValueError(f"target and positive must be given together, got {self.target!r} and {self.positive!r}")
        for threshold in self.thresholds:
            checked_threshold(threshold)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return one job for each network and threshold."""
        cells = []
        for network in self.networks:
            declaration = catalogue.network(network)
            for threshold in self.thresholds:
                parameters = {
                    "network": catalogue.network_mapping(network),
                    "name": network,
                    "target": self.target,
                    "positive": self.positive,
                    "threshold": threshold,
                }
                job = Job.create(trim_to_every_budget, parameters, {f"network/{network}": declaration.sha256})
                cells.append(Cell({"network": network, "threshold": threshold}, job, (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the curves as one table and a figure for each network."""
        import pandas as pd

        lines = [
            {
                "network": row["network"],
                "T": row["threshold"],
                "budget": point["budget"],
                "ECA": point["agreement"],
                "T'": point["new_threshold"],
                "kept": " ".join(point["features"]),
            }
            for row in rows.to_dict("records")
            if row["status"] == "ok"
            for point in row["points"]
        ]
        frame = pd.DataFrame(lines, columns=["network", "T", "budget", "ECA", "T'", "kept"])
        formats = {"T": ".2f", "ECA": ".4f", "T'": ".4f"}
        tables = (
            Table("", "Smallest budget for an agreement", _smallest_budgets(frame), formats),
            Table("budgets", "Best agreement for each budget", frame, formats, listed=False),
        )
        figures = []
        for network in self.networks:
            ours = frame[frame["network"] == network]
            points = pd.DataFrame(
                {"series": [f"T = {level:g}" for level in ours["T"]], "x": ours["budget"], "y": ours["ECA"]}
            )
            figures.append(
                LineFigure(
                    "" if len(self.networks) == 1 else network,
                    f"Best trimmings of {network}",
                    "budget (number of features kept)",
                    "agreement (ECA)",
                    points,
                )
            )
        notes = [
            "Every trimming is optimal: one sweep bounds all subsets, and thresholds are searched for the best few.",
            "The trimming for each single budget is in curves_budgets.csv.",
        ]
        return Outcome(tables, figures, {}, notes)


def _smallest_budgets(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how many features reach each level of agreement."""
    import pandas as pd

    lines = []
    for (network, threshold), group in frame.groupby(["network", "T"], sort=False):
        line = {"network": network, "T": threshold, "features": int(group["budget"].max())}
        for level in _LEVELS:
            line[f"ECA >= {level:g}"] = int(group["budget"][group["ECA"] >= level - _EQUAL].min())
        lines.append(line)
    return pd.DataFrame(lines, columns=["network", "T", "features", *(f"ECA >= {level:g}" for level in _LEVELS)])


_LEVELS = (0.9, 0.95, 0.99, 1.0)
# Agreements that differ by less are equal: they are exact up to rounding.
_EQUAL = 1e-9
