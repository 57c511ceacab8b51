"""What a command prints of its experiments, and the summary at its end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.errors import WAY_OUT
from trimbench.papers.reporting.files import unattempted, write_findings, write_summary
from trimbench.papers.reporting.page import Entry, render_page
from trimbench.papers.reporting.profiles import profile_of
from trimbench.papers.reporting.tables import markdown, side_by_side
from trimbench.papers.reporting.verdicts import VERDICTS, Judgement, compare
from trimbench.papers.study.reported import Literature, Paper, Reported
from trimbench.papers.study.running import NO_DATA, Findings
from trimbench.papers.study.tables import Table

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
        # All are read before the first experiment runs, so that a mistake in them costs no time.
        self._literature = Literature.of(catalogue)
        self._catalogue = catalogue
        self._entries: list[Entry] = []
        self._lines: list[dict[str, Any]] = []
        self._missing: dict[str, str] = {}
        self._failed = False
        self._n_absent = 0
        self._n_missing = 0
        self._elsewhere: dict[str, list[str]] = {}

    def reported(self, name: str) -> list[Reported]:
        """Return the reported numbers of an experiment."""
        return self._literature.reported(name)

    def note(self, findings: Findings, earlier: str = "") -> None:
        """Write and print what one experiment found; without a stored result, leave the files of an earlier run.

        Parameters
        ----------
        findings : Findings
        earlier : str
            Profile of which jobs are stored, by the files of an earlier run; empty if it is not known.
        """
        judgements = compare(self.reported(findings.name), findings.numbers, unattempted(findings))
        missing = [record for record in findings.records if record.status == "missing"]
        absent = 0 < len(missing) == len(findings.records)
        self._n_absent += absent
        self._n_missing += len(missing)
        profile = profile_of(findings.settings)
        if earlier not in ("", profile):
            self._elsewhere.setdefault(earlier, []).append(findings.name)
        written = [] if absent else write_findings(findings, judgements, self._folder)
        self._failed = self._failed or findings.failures > 0
        self._missing |= findings.missing
        line = {"experiment": findings.name, "status": _status(findings), **_verdicts(judgements)}
        self._lines.append(line)
        self._keep(findings.name, str(line["status"]), judgements, findings)
        _say(f"\n## {findings.name}: {line['status']}\n")
        if absent:
            where = self._folder / findings.name
            _say(f"No job of it is stored for profile={profile}: what {where}.* hold is left as it is; run it first.")
            return
        for table in findings.outcome.tables:
            if table.listed and len(table.frame):
                _say(f"{table.title}\n\n{markdown(table)}\n")
        if judgements:
            _say(f"Printed → reproduced\n\n{markdown(side_by_side(judgements))}\n")
            _say(f"{_counts(line)}\n")
        if findings.failures:
            _say(f"{findings.failures} jobs failed, the first with: {findings.first_failure}\n")
        for path in written:
            _say(f"  {path}")

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep an experiment that could not run as a line of the summary."""
        self._failed = True
        line: dict[str, Any] = {"experiment": name, "status": f"{FAILED}: {error}", **dict.fromkeys(VERDICTS, 0)}
        self._lines.append(line | {"not attempted": len(self.reported(name))})
        self._keep(name, FAILED, compare(self.reported(name), (), str(error)), None)
        _say(f"\n## {name}: {FAILED}\n\n{''.join(traceback.format_exception(error))}")

    def _keep(self, name: str, status: str, judgements: Sequence[Judgement], findings: Findings | None) -> None:
        """Keep an experiment for the page."""
        about = self._catalogue.about("experiment", name) if name in self._catalogue.names("experiment") else ""
        self._entries.append(Entry(name, status, about, judgements, findings))

    def _page(self, profile: str) -> str:
        families = dict.fromkeys(entry.name.split("/")[0] for entry in self._entries)
        unknown = {family: Paper(title=family, citation=family) for family in families}
        papers = {family: self._literature.papers.get(family, paper) for family, paper in unknown.items()}
        return render_page(self._entries, papers, self._folder, profile=profile)

    def close(self, *, summary: bool, profile: str = "") -> int:
        """Write summary and page if there are several experiments, say what data is missing, return the exit code."""
        import pandas as pd

        if self._n_absent == len(self._entries) > 0:
            _say("\nNothing is stored of what was asked for, so nothing was written; task=run runs it.")
            self._say_profiles(profile)
            return 1
        if summary:
            frame = pd.DataFrame(self._lines, columns=["experiment", "status", *VERDICTS])
            written = write_summary(frame, self._page(profile), self._folder)
            _say(f"\n# Reported and reproduced\n\n{markdown(Table('', frame))}\n")
            for path in written:
                _say(f"  {path}")
        if self._missing:
            _say(f"\nData that could not be had ({WAY_OUT}):")
            for name, reason in self._missing.items():
                _say(f"  {name}: {reason.removesuffix('; ' + WAY_OUT)}")
        self._say_profiles(profile)
        return 1 if self._failed else 0

    def _say_profiles(self, asked: str) -> None:
        """Say for which other profile jobs are stored; if that is not known and some are missing, that it may be so."""
        for profile, names in self._elsewhere.items():
            about = f"of {', '.join(names)} jobs are stored for profile={profile}"
            _say(f"\nThis is profile={asked}; {about}: add profile={profile} to report those.")
        if self._n_missing and not self._elsewhere:
            other = ", ".join(f"profile={name}" for name in self._catalogue.names("profile") if name != asked)
            _say(f"\nJobs are missing for profile={asked}; if they ran with another one, add it: {other}.")


def _status(findings: Findings) -> str:
    n_rows = len(findings.rows)
    counts = findings.rows["status"].value_counts()
    if counts.get("ok", 0) == n_rows:
        return "complete"
    if counts.get(NO_DATA, 0) == n_rows:
        return NO_DATA
    return ", ".join(f"{count} of {n_rows} jobs {status}" for status, count in counts.items())


def _verdicts(judgements: Sequence[Judgement]) -> dict[str, int]:
    found = [one.verdict for one in judgements]
    return {verdict: found.count(verdict) for verdict in VERDICTS}


def _counts(line: dict[str, Any]) -> str:
    total = sum(line[verdict] for verdict in VERDICTS)
    parts = [f"{line[verdict]} {verdict}" for verdict in VERDICTS if line[verdict]]
    return f"Reported numbers: {total}; reproduced: {', '.join(parts)}."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
