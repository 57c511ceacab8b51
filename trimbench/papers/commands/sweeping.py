"""What is found at the points of a sweep: files for each point, then one table, figures and a page of all."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

from trimbench.papers.commands.invocation import Invocation, Point
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.homes import without_homes
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.files import nothing_stored, write_findings
from trimbench.papers.reporting.runs import make_run
from trimbench.papers.reporting.sweeps.files import main_table, notes_on, write_sweep
from trimbench.papers.reporting.sweeps.points import SweepPoint
from trimbench.papers.reporting.tables import markdown
from trimbench.papers.reporting.verdicts import compare
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.reported import Literature

# More rows are only in the files.
_MOST_ROWS = 40


class PointReporter:
    """Writes what the experiments of one point find into the folder of the point, and keeps it for the whole sweep."""

    def __init__(self, point: Point, folder: Path, literature: Literature, figure: FigureSettings) -> None:
        self.swept: Mapping[str, Json] = point.swept
        self.folder = folder
        self.findings: list[Findings] = []
        self.failures: dict[str, str] = {}
        self._literature, self._figure = literature, figure

    def note(self, findings: Findings) -> None:
        """Write and keep what an experiment found. If none of its jobs is stored, leave the files of before."""
        self.findings.append(findings)
        if nothing_stored(findings):
            return
        judgements = compare(self._literature.reported(findings.name), findings.numbers)
        write_findings(findings, judgements, self.folder, self._figure, drawn=False)

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep the reason why an experiment could not run."""
        self.failures[name] = without_homes(str(error))


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
        records = [record for point in points for found in point.findings for record in found.records]
        if records and all(record.status == "missing" for record in records):
            _say("No results are stored for this sweep, so nothing was written; task=run computes them.")
            return 1
        make_run(self._folder.parents[1], self._invocation.profile)
        written = write_sweep(points, self._folder, self._figure)
        table = main_table(points)
        _say(f"\n## {table.title}\n")
        _say(markdown(dataclasses.replace(table, frame=table.frame.head(_MOST_ROWS))))
        if len(table.frame) > _MOST_ROWS:
            _say(f"\nThe first {_MOST_ROWS} of {len(table.frame):,} rows.")
        for note in notes_on(points):
            _say(f"\n{note}")
        _say("")
        for path in written:
            _say(f"  {path}")
        failed = any(point.failures or any(found.failures for found in point.findings) for point in points)
        return 1 if failed else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
