"""What is found at the points of a sweep: files for each point, then one table, figures and a page of all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trimbench.papers.commands.invocation import Invocation, Point
from trimbench.papers.execution.canonical import Json
from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.files import write_findings
from trimbench.papers.reporting.runs import make_run
from trimbench.papers.reporting.sweep import write_sweep
from trimbench.papers.reporting.sweep_points import SweepPoint
from trimbench.papers.reporting.verdicts import compare
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.reported import Literature


class PointReporter:
    """Writes what the experiments of one point find into the folder of the point, and keeps it for the whole sweep."""

    def __init__(self, point: Point, folder: Path, literature: Literature, figure: FigureSettings) -> None:
        self.swept: Mapping[str, Json] = point.swept
        self.folder = folder
        self.findings: list[Findings] = []
        self.failures: dict[str, str] = {}
        self._literature, self._figure = literature, figure

    def note(self, findings: Findings) -> None:
        """Write and keep what an experiment found."""
        judgements = compare(self._literature.reported(findings.name), findings.numbers)
        write_findings(findings, judgements, self.folder, self._figure, drawn=False)
        self.findings.append(findings)

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep the reason why an experiment could not run."""
        self.failures[name] = str(error)


class Sweep:
    """Reports the points of a sweep, and at the end the whole."""

    def __init__(self, invocation: Invocation, folder: Path, literature: Literature, figure: FigureSettings) -> None:
        self._folder, self._figure, self._invocation = folder, figure, invocation
        self.reporters = [
            PointReporter(point, folder / "points" / point.folder, literature, figure) for point in invocation.points
        ]

    def close(self) -> int:
        """Write the files of the whole sweep, print its table, and return the exit code."""
        points = [
            SweepPoint(one.swept, f"points/{one.folder.name}", one.findings, one.failures) for one in self.reporters
        ]
        make_run(self._folder.parents[1], self._invocation.profile)
        write_sweep(points, self._folder, self._figure)
        return 0
