"""A study as an experiment: its jobs, and what they found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.table_reading import ReadTable
from trimbench.papers.execution.functions import JobFunction
from trimbench.papers.execution.job import Job
from trimbench.papers.own_table.baseline import CLASSIFIERS, judge_classifier
from trimbench.papers.own_table.conclusion import conclusions, notes
from trimbench.papers.own_table.confidence import judge_confidence
from trimbench.papers.own_table.explained_rows import explain_rows
from trimbench.papers.own_table.figures import figures_of
from trimbench.papers.own_table.frontier import select_within
from trimbench.papers.own_table.gaps import predict_with_gaps
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.steps import Steps
from trimbench.papers.own_table.tables import tables_of
from trimbench.papers.study.cells import Cell, Label
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class OwnTable:
    """The study of a table that was read.

    `costs` has that of each feature. `positive` is the class of interest if it was named: with more than two classes,
    trimming then decides between it and all others.
    """

    table: ReadTable
    costs: Mapping[str, float]
    settings: StudySettings

    @property
    def positive(self) -> str | None:
        """The class that trimming sets against the rest; None where it takes all classes as they are."""
        named = self.settings.positive is not None and len(self.table.classes) > 2
        return self.table.positive if named else None

    def cells(self, inputs: Inputs) -> list[Cell]:
        """Return the jobs of all steps; nothing in them depends on where the table comes from."""
        return [*self._gaps(), *self._frontier(), *self._baseline(), *self._confidence(), *self._explanations()]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return tables, figures and conclusions."""
        found = Steps.of(rows, self.table, self.costs, self.settings, self.positive)
        return Outcome(tables_of(found), figures_of(found), (), [*conclusions(found), *notes(found)])

    def _frontier(self) -> Iterator[Cell]:
        given: dict[str, Any] = {
            "positive": self.positive,
            "costs": dict(self.costs),
            "time_limit": self.settings.time_limit,
        }
        for budget in self.settings.levels(self.costs):
            yield self._cell("frontier", select_within, {"budget": budget}, **given, rows=self.settings.rows)

    def _baseline(self) -> Iterator[Cell]:
        for name in CLASSIFIERS:
            yield self._cell("baseline", judge_classifier, {"classifier": name}, rows=self.settings.rows)

    def _gaps(self) -> Iterator[Cell]:
        own = self.settings
        for mechanism in own.mechanisms:
            for share in own.shares:
                for split in range(own.splits):
                    yield self._cell(
                        "gaps",
                        predict_with_gaps,
                        {"missing": share, "split": split},
                        {"mechanism": mechanism},
                        missingness={"mechanism": mechanism},
                        methods=own.methods,
                        rows=own.gap_rows,
                    )

    def _confidence(self) -> Iterator[Cell]:
        for k in self.settings.selected:
            for correct in (True, False):
                place = {"k": k, "correct": correct}
                yield self._cell("confidence", judge_confidence, place, rows=self.settings.rows)

    def _explanations(self) -> Iterator[Cell]:
        if self.settings.explained:
            more: dict[str, Any] = {"n_rows": self.settings.explained, "rows": self.settings.rows}
            yield self._cell("explanations", explain_rows, {}, **more)

    def _cell(
        self,
        step: str,
        function: JobFunction,
        place: Mapping[str, Label],
        labels: Mapping[str, Label] | None = None,
        **parameters: object,
    ) -> Cell:
        """Return the cell of a step; its `place` is in the labels and among the parameters."""
        shared = {"table": self.table.sha256, "test_share": self.settings.test_share, "seed": self.settings.seed}
        job = Job.create(function, {**shared, **place, **parameters}, {"table": self.table.sha256})
        return Cell({"step": step, **place, **(labels or {})}, job)
