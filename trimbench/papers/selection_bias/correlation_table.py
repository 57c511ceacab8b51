"""The slides' table of correlations for all counts of a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.execution.code_hash import job_function
from trimbench.papers.selection_bias.simulated_cases import check_at_least, correlation
from trimbench.papers.validation import Json, settings
from trimbench.papers.vocabulary.cells import Cell, Outcome, successes
from trimbench.papers.vocabulary.inputs import Inputs
from trimbench.papers.vocabulary.numbers import Number, numbers_of
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


@settings
class CorrelationTable:
    """Sample correlation of a binary feature with the response, for each number of ones among n0 and n1 cases."""

    n0: int = 8
    n1: int = 14

    def __post_init__(self) -> None:
        check_at_least(1, n0=self.n0, n1=self.n1)

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the one job."""
        return [Cell.of({"n0": self.n0, "n1": self.n1}, correlation_table, n0=self.n0, n1=self.n1)]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the table, from the largest I_1 to the smallest, as in the slides."""
        done = successes(rows)
        columns = [f"I0 = {i0}" for i0 in range(self.n0 + 1)]
        lines: list[dict[str, float]] = []
        numbers: list[Number] = []
        for table in done.get("correlation", ()):
            for i1 in range(self.n1, -1, -1):
                values = dict(zip(columns, table[i1], strict=True))
                lines.append({"I1": i1, **values})
                numbers += numbers_of(f"I1 = {i1}", values, done)
        notes = []
        if (self.n0, self.n1) == (8, 14):
            notes = [
                "The slides head this table with absolute values; its numbers have signs.",
                "Two correlations are exactly 0.375 in size: the slides print +0.38 and -0.37, a half rounded upwards.",
            ]
        title = f"Correlation of a feature with I0 of {self.n0} and I1 of {self.n1} ones"
        formats = {"I1": ".0f"} | dict.fromkeys(columns, "+.2f")
        return Outcome((Table.of(title, lines, formats),), (), numbers, notes)


@job_function
def correlation_table(n0: int, n1: int) -> dict[str, Json]:
    """Compute the correlation of a binary feature with the response for all its counts, of n0 and n1 cases."""
    ones0, ones1 = np.meshgrid(np.arange(n0 + 1), np.arange(n1 + 1))
    return {"correlation": correlation(ones0, ones1, n0, n1).tolist()}
