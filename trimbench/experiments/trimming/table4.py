"""Table 4: the worked example of the maximum achievable agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue
from trimbench.data.cache import Cache
from trimbench.execution.job import Job
from trimbench.experiments.plan import Cell, Outcome, Table
from trimbench.experiments.trimming import jobs
from trimbench.trimming.classifier import checked_threshold

if TYPE_CHECKING:
    import pandas as pd

_EXAMPLE = "F1, F2"


@dataclass(frozen=True)
class Table4:
    """The worked example of the maximum achievable agreement (Table 4).

    Attributes
    ----------
    instances : list of [posterior, positive mass, negative mass]
    threshold : float
        Threshold of the original classifier.
    """

    instances: list[Any]
    threshold: float

    def __post_init__(self) -> None:
        checked_threshold(self.threshold)
        if not self.instances:
            raise ValueError("instances must have at least one entry, got []")
        for instance in self.instances:
            if not _is_instance(instance):
                raise ValueError(
                    "instances must each be [posterior, positive mass, negative mass], probabilities in [0, 1], "
                    f"got {instance}"
                )

        total = sum(positive + negative for _, positive, negative in self.instances)
        if abs(total - 1.0) > 0.01:
            raise ValueError(f"instances must have masses that add up to 1 (within 0.01), got {total:g}")

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


def _is_instance(values: Any) -> bool:
    numbers = values if isinstance(values, list) else []
    return len(numbers) == 3 and all(isinstance(value, int | float) and 0 <= value <= 1 for value in numbers)
