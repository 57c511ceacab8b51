"""What an experiment is: settings that become cells, and rows that become an outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trimbench.papers.study.cells import Cell, Label
from trimbench.papers.study.figures import Figure
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Number
from trimbench.papers.study.tables import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    It has exactly one number for each reported number of the experiment. The notes say what a reader needs to know to
    understand the tables.
    """

    tables: Sequence[Table]
    figures: Sequence[Figure] = ()
    numbers: Sequence[Number] = ()
    notes: Sequence[str] = ()


class Experiment(Protocol):
    """One table or figure: a dataclass whose fields are the keys of its configuration."""

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the jobs of the experiment."""

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables, figures and numbers.

        `rows` has one row for each cell: its labels, ``status``, ``job`` (the key) and the entries of its result (NaN
        where it failed).
        """


def successes(rows: pd.DataFrame, **labels: Label) -> pd.DataFrame:
    """Return the rows of successful jobs with these labels; what is whole in all of them has an integer type."""
    chosen = rows["status"] == "ok"
    for name, value in labels.items():
        chosen &= rows[name] == value
    return rows[chosen].infer_objects()
