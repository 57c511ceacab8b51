"""The slides' table of correlations for all counts of a feature."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trimbench.papers import vocabulary as vocab
from trimbench.papers.execution.job import NUMBER, job, listed
from trimbench.papers.selection_bias.simulated_cases import correlation


@vocab.settings
class CorrelationTable:
    """Sample correlation of a binary feature with the response, for each number of ones among n0 and n1 cases."""

    n0: vocab.Count = 8
    n1: vocab.Count = 14

    def cells(self, inputs: vocab.Inputs) -> list[vocab.Cell]:
        """Return the one job."""
        return [vocab.Cell.of({"n0": self.n0, "n1": self.n1}, correlation_table, n0=self.n0, n1=self.n1)]

    def outcome(self, rows: pd.DataFrame) -> vocab.Outcome:
        """Return the table, from the largest I_1 to the smallest, as in the slides."""
        columns = [f"I0 = {i0}" for i0 in range(self.n0 + 1)]
        found = vocab.unlisted(rows, "I1", range(self.n1 + 1), ["correlation"])[::-1]
        lines = [
            {"I1": i1, **dict(zip(columns, row, strict=True))}
            for i1, row in found.reindex(columns=["I1", "correlation"]).itertuples(index=False)
        ]
        numbers = [
            number
            for line in lines
            for number in vocab.numbers_of(f"I1 = {line['I1']}", {column: line[column] for column in columns}, rows)
        ]
        title = f"Correlation of a feature with I0 of {self.n0} and I1 of {self.n1} ones"
        table = vocab.Table.of(title, lines, {"I1": ".0f"} | dict.fromkeys(columns, "+.2f"))
        return vocab.Outcome((table,), (), numbers)


@job(correlation=listed(listed(NUMBER)))
def correlation_table(n0: int, n1: int) -> dict[str, vocab.Json]:
    """Compute the correlation of a binary feature with the response for all its counts, of n0 and n1 cases."""
    ones0, ones1 = np.meshgrid(np.arange(n0 + 1), np.arange(n1 + 1))
    return {"correlation": correlation(ones0, ones1, n0, n1).tolist()}
