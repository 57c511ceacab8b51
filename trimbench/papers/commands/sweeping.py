"""What is found at the points of a sweep: files for each point, then one table, figures and a page of all."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from trimbench.papers.commands.invocation import Invocation, Point
from trimbench.papers.commands.names import settings_name
from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.files import write_findings
from trimbench.papers.reporting.runs import make_run
from trimbench.papers.reporting.sweep import SweepPoint, write_sweep
from trimbench.papers.reporting.tables import markdown
from trimbench.papers.reporting.verdicts import compare
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.reported import Literature


class PointReporter:
    """Writes what the experiments of one point find into the folder of the point, and keeps it for the whole sweep."""

    def __init__(self, point: Point, folder: Path, literature: Literature) -> None:
        self.swept: Mapping[str, object] = point.swept
        self.findings: list[Findings] = []
        self.failures: dict[str, str] = {}
        self._folder, self._literature = folder, literature

    def note(self, findings: Findings) -> None:
        """Write and keep what an experiment found."""
        judgements = compare(self._literature.reported(findings.name), findings.numbers)
        write_findings(findings, judgements, self._folder, self._figure, drawn=False)
        self.findings.append(findings)

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep the reason why an experiment could not run."""
        self.failures[name] = str(error)
