"""What the jobs of each step of a study found, and which model follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trimbench.papers.conformant.gap_groups import Group, groups_of
from trimbench.papers.data.table_reading import ReadTable
from trimbench.papers.own_table.frontier import TRIMMING
from trimbench.papers.own_table.settings import StudySettings

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Steps:
    """What the jobs of each step found, and why some have failed.

    `positive` is the class that trimming set against the rest, None where it took all classes as they are.
    """

    table: ReadTable
    costs: Mapping[str, float]
    settings: StudySettings
    positive: str | None
    frontier: list[Row]
    baseline: list[Row]
    gaps: list[Group]
    confidence: list[Row]
    explanations: list[Row]
    failures: list[Row]

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        table: ReadTable,
        costs: Mapping[str, float],
        settings: StudySettings,
        positive: str | None,
    ) -> Steps:
        """Sort the rows of the jobs into steps."""
        done = rows[rows["status"] == "ok"]

        def step(name: str) -> list[Row]:
            return [_plain(row) for row in done[done["step"] == name].to_dict("records")]

        gaps = done[done["step"] == "gaps"].dropna(axis=1, how="all").assign(dataset=table.name, title=table.name)
        return cls(
            table,
            costs,
            settings,
            positive,
            step("frontier"),
            step("baseline"),
            groups_of(gaps) if len(gaps) else [],
            _each_once(step("confidence")),
            [one for row in step("explanations") for one in row["explained"]],
            [_plain(row) for row in rows[rows["status"] != "ok"].to_dict("records")],
        )

    @cached_property
    def trimmings(self) -> list[Row]:
        """The trimming of each budget, with the budget."""
        return [{**self.selected(row, TRIMMING), "budget": row["budget"]} for row in self.frontier]

    @staticmethod
    def selected(row: Row, method: str) -> Row:
        """Return what a method selected within the budget of a row."""
        found: Row = next(one for one in row["methods"] if one["method"] == method)
        return found

    @cached_property
    def chosen(self) -> Row | None:
        """The trimming of the given budget, or the cheapest within one standard error of the best accuracy."""
        if not self.trimmings:
            return None
        wanted = self.settings.budget
        if wanted is not None:
            affordable = [one for one in self.trimmings if one["budget"] <= wanted]
            return affordable[-1] if affordable else None
        best = max(one["accuracy"] for one in self.trimmings)
        error = math.sqrt(best * (1 - best) / self.frontier[0]["n_test"])
        return next(one for one in self.trimmings if one["accuracy"] >= best - error)


def _each_once(confidence: Sequence[Row]) -> list[Row]:
    """Return one row for each number of selected columns: there may be fewer than were asked for."""
    return list({(len(row["selected"]), bool(row["correct"])): row for row in confidence}.values())


def _plain(row: Mapping[Any, Any]) -> Row:
    """Return a row without the columns of other steps, which are NaN in it."""
    return {str(key): value for key, value in row.items() if isinstance(value, list) or value == value}
