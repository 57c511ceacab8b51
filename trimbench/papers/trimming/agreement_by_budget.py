"""Best agreement against the budget, for all budgets of a declared network classifier at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.functions import job_function
from trimbench.papers.study.cells import Cell, check_axis
from trimbench.papers.study.figures import LineFigure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.names import shown_name
from trimbench.papers.study.outcome import Outcome, successes
from trimbench.papers.study.tables import Table
from trimbench.papers.trimming.checks import check_thresholds
from trimbench.papers.trimming.classifiers import CODE, network_classifier
from trimbench.papers.validation import settings
from trimbench.trimming.curve import trimming_curve

if TYPE_CHECKING:
    import pandas as pd


@settings
class AgreementByBudget:
    """Best agreement against the number of kept features, for networks and thresholds.

    The networks must be small enough for the dense engine. The class node `target` and its state `positive` replace the
    declared ones, or those that are not declared.
    """

    networks: list[str]
    thresholds: list[float]
    target: str | None = None
    positive: str | None = None

    def __post_init__(self) -> None:
        check_axis("networks", self.networks)
        check_thresholds(self.thresholds)
        if (self.target is None) != (self.positive is None):
            raise ValueError(f"target and positive must be given together, got {self.target!r} and {self.positive!r}")

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return one job for each network and threshold."""
        return [
            Cell.of(
                {"network": network, "threshold": threshold},
                trim_to_every_budget,
                network=inputs.network(network),
                target=self.target,
                positive=self.positive,
                threshold=threshold,
            )
            for network in self.networks
            for threshold in self.thresholds
        ]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the curves as one table and a figure for each network."""
        lines = [
            {
                "network": row["network"],
                "T": row["threshold"],
                "budget": point["budget"],
                "ECA": point["agreement"],
                "T'": point["new_threshold"],
                "kept": " ".join(point["features"]),
            }
            for row in successes(rows).to_dict("records")
            for point in row["points"]
        ]
        every = Table.of("Best agreement for each budget", lines, _FORMATS, name="budgets", listed=False)
        smallest = Table.of("Smallest budget for an agreement", _smallest_budgets(every.frame), _SMALLEST_FORMATS)
        figures = [self._figure(name, every.frame[every.frame["network"] == name]) for name in self.networks]
        return Outcome((smallest, every), figures, (), _NOTES)

    def _figure(self, network: str, lines: pd.DataFrame) -> LineFigure:
        import pandas as pd

        series = [f"T = {level:g}" for level in lines["T"]]
        return LineFigure(
            f"{shown_name(network)}: best trimmings",
            "budget (number of features kept)",
            "agreement (ECA)",
            pd.DataFrame({"series": series, "x": lines["budget"], "y": lines["ECA"]}),
            name="" if len(self.networks) == 1 else network,
        )


def _smallest_budgets(lines: pd.DataFrame) -> list[dict[str, object]]:
    """Return how many features reach each level of agreement."""
    return [
        {"network": network, "T": threshold, "features": int(group["budget"].max())}
        | {title: int(group["budget"][group["ECA"] >= level - _EQUAL].min()) for title, level in _LEVELS.items()}
        for (network, threshold), group in lines.groupby(["network", "T"], sort=False)
    ]


_LEVELS = {f"ECA >= {level:g}": level for level in (0.9, 0.95, 0.99, 1.0)}
_SMALLEST_FORMATS = {"network": "", "T": ".2f", "features": "", **dict.fromkeys(_LEVELS, "")}
_FORMATS = {"network": "", "T": ".2f", "budget": "", "ECA": ".4f", "T'": ".4f", "kept": ""}
# Agreements that differ by less are equal: they are exact up to rounding.
_EQUAL = 1e-9
_NOTES = (
    "Every trimming is optimal: one sweep bounds all subsets, and thresholds are searched for the best few.",
    "The trimming for each single budget is in curves_budgets.csv.",
)


@job_function(code=CODE)
def trim_to_every_budget(
    network: Mapping[str, Json], target: str | None, positive: str | None, threshold: float
) -> dict[str, Json]:
    """Find the best trimming of a network input for each number of features.

    The class and its positive state are the declared ones by default.
    """
    classifier = network_classifier(network, threshold, target, positive)
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
