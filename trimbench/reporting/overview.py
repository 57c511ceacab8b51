"""What a command prints of its experiments, and the summary at its end."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from trimbench.configuration import Catalogue
from trimbench.data.errors import WAY_OUT
from trimbench.experiments.plan import Table
from trimbench.experiments.running import NO_DATA, Findings
from trimbench.reporting.files import write_findings, write_summary
from trimbench.reporting.tables import comparison, markdown, side_by_side
from trimbench.reporting.verdicts import VERDICTS, Reported, read_reported

FAILED = "failed"


class Overview:
    """Writes each experiment's files as it ends, prints its main table, and keeps a line for the summary.

    Parameters
    ----------
    folder : Path
        Results folder.
    catalogue : Catalogue
        Holds the reported numbers.
    """

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self._folder = folder
        numbers: dict[str, Any] = {}
        for group in catalogue.names("reported"):
            numbers |= catalogue.mapping("reported", group)
        # All are read before the first experiment runs, so that a mistake in them costs no time.
        self._reported = {name: read_reported(numbers, name) for name in numbers}
        self._lines: list[dict[str, Any]] = []
        self._missing: dict[str, str] = {}
        self._failed = False

    def note(self, findings: Findings) -> None:
        """Write and print what one experiment found."""
        reported = self._reported.get(findings.name, [])
        written = write_findings(findings, reported, self._folder)
        self._failed = self._failed or findings.failures > 0
        self._missing |= findings.missing
        line = {"experiment": findings.name, "status": _status(findings), **_verdicts(findings, reported)}
        self._lines.append(line)
        _say(f"\n## {findings.name}: {line['status']}\n")
        for table in findings.outcome.tables:
            if table.listed and len(table.frame):
                _say(f"{table.title}\n\n{markdown(table)}\n")
        if reported:
            compared = comparison(reported, findings.reproduced, "", findings.outcome.intervals)
            _say(f"Printed → reproduced\n\n{markdown(side_by_side(compared))}\n")
            _say(f"{_counts(line)}\n")
        if findings.failures:
            _say(f"{findings.failures} jobs failed, the first with: {findings.first_failure}\n")
        for path in written:
            _say(f"  {path}")

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep an experiment that could not run as a line of the summary."""
        self._failed = True
        line: dict[str, Any] = {"experiment": name, "status": f"{FAILED}: {error}", **dict.fromkeys(VERDICTS, 0)}
        self._lines.append(line | {"not attempted": len(self._reported.get(name, []))})
        _say(f"\n## {name}: {FAILED}\n\n{''.join(traceback.format_exception(error))}")

    def close(self, *, summary: bool) -> int:
        """Write the summary if there are several experiments, say what data is missing, and return the exit code."""
        import pandas as pd

        if summary:
            frame = pd.DataFrame(self._lines, columns=["experiment", "status", *VERDICTS])
            written = write_summary(frame, self._folder)
            _say(f"\n# Reported and reproduced\n\n{markdown(Table('', '', frame))}\n")
            for path in written:
                _say(f"  {path}")
        if self._missing:
            _say(f"\nData that could not be had ({WAY_OUT}):")
            for name, reason in self._missing.items():
                _say(f"  {name}: {reason.removesuffix('; ' + WAY_OUT)}")
        return 1 if self._failed else 0


def _status(findings: Findings) -> str:
    n_rows = len(findings.rows)
    counts = findings.rows["status"].value_counts()
    if counts.get("ok", 0) == n_rows:
        return "complete"
    if counts.get(NO_DATA, 0) == n_rows:
        return NO_DATA
    return ", ".join(f"{count} of {n_rows} jobs {status}" for status, count in counts.items())


def _verdicts(findings: Findings, reported: list[Reported]) -> dict[str, int]:
    found = comparison(reported, findings.reproduced, "", findings.outcome.intervals).frame["verdict"].value_counts()
    return {verdict: int(found.get(verdict, 0)) for verdict in VERDICTS}


def _counts(line: dict[str, Any]) -> str:
    total = sum(line[verdict] for verdict in VERDICTS)
    parts = [f"{line[verdict]} {verdict}" for verdict in VERDICTS if line[verdict]]
    return f"Reported numbers: {total}; reproduced: {', '.join(parts)}."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
