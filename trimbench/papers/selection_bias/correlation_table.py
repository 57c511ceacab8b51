"""The slides' table of correlations for all counts of a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job
from trimbench.papers.selection_bias import jobs
from trimbench.papers.selection_bias.settings import check_at_least
from trimbench.papers.study.plan import Cell, Outcome, Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CorrelationTable:
    """Sample correlation of a binary feature with the response, for each number of ones in each class.

    Attributes
    ----------
    n0, n1 : int
        Cases in each class.
    """

    n0: int = 8
    n1: int = 14

    def __post_init__(self) -> None:
        check_at_least(1, n0=self.n0, n1=self.n1)

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        """Return the one job."""
        job = Job.create(jobs.correlation_table, {"n0": self.n0, "n1": self.n1})
        return [Cell({"n0": self.n0, "n1": self.n1}, job)]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the table, from the largest I_1 to the smallest, as in the slides."""
        import pandas as pd

        columns = ["I1", *(f"I0 = {i0}" for i0 in range(self.n0 + 1))]
        lines: list[dict[str, Any]] = []
        reproduced: dict[str, float | None] = {}
        for found in rows.loc[rows["status"] == "ok"].to_dict("records"):
            for i1 in range(self.n1, -1, -1):
                values = found["correlation"][i1]
                lines.append(dict(zip(columns, [i1, *values], strict=True)))
                reproduced |= {f"I1 = {i1}/I0 = {i0}": value for i0, value in enumerate(values)}
        formats = {"I1": ".0f"} | dict.fromkeys(columns[1:], "+.2f")
        title = f"Correlation of a feature with I0 of {self.n0} and I1 of {self.n1} ones"
        notes = []
        if (self.n0, self.n1) == (8, 14):
            notes = [
                "The slides head this table with absolute values; its numbers have signs.",
                "Two correlations are exactly 0.375 in size: the slides print +0.38 and -0.37, a half rounded upwards.",
            ]
        return Outcome((Table("", title, pd.DataFrame(lines, columns=columns), formats),), (), reproduced, notes)
