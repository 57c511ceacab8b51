"""What a command prints about its experiments, and the summary at its end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.errors import WAY_OUT
from trimbench.papers.reporting.files import unattempted, write_findings, write_summary
from trimbench.papers.reporting.page import Entry, render_page
from trimbench.papers.reporting.profiles import profile_of
from trimbench.papers.reporting.tables import markdown, side_by_side
from trimbench.papers.reporting.tallies import COLUMNS, in_words, tally
from trimbench.papers.reporting.verdicts import Judgement, compare
from trimbench.papers.study.reported import Literature, NumbersError, Reported
from trimbench.papers.study.running import NO_DATA, Findings
from trimbench.papers.study.tables import Table

FAILED = "failed"


class Overview:
    """Writes the files of each experiment as it ends, prints its tables, and keeps a line for the summary."""

    def __init__(self, folder: Path, catalogue: Catalogue) -> None:
        self._folder = folder
        # Everything is read before the first experiment runs, so that a mistake costs no time.
        self._literature = Literature.of(catalogue)
        self._catalogue = catalogue
        self._entries: list[Entry] = []
        self._lines: list[dict[str, object]] = []
        self._of_other_profiles: dict[str, list[str]] = {}

    def reported(self, name: str) -> list[Reported]:
        """Return the reported numbers of an experiment."""
        return self._literature.reported(name)

    def note(self, findings: Findings, earlier: str = "") -> None:
        """Write and print what an experiment found. If none of its jobs is stored, leave the files of an earlier run.

        `earlier` is the profile for which these files were written, if its jobs are stored.
        """
        judgements = compare(self.reported(findings.name), findings.numbers, unattempted(findings))
        profile = profile_of(findings.settings)
        if earlier not in ("", profile):
            self._of_other_profiles.setdefault(earlier, []).append(findings.name)
        status = _status(findings)
        self._keep(findings.name, status, status, judgements, findings)
        _say(f"\n## {findings.name}: {status}\n")
        if _nothing_stored(findings):
            files = f"{self._folder / findings.name}.*"
            _say(f"No job is stored for profile={profile}. The files {files} stay unchanged; run the experiment first.")
            return
        written = write_findings(findings, judgements, self._folder)
        for table in findings.outcome.tables:
            if table.listed and len(table.frame):
                _say(f"{table.title}\n\n{markdown(table)}\n")
        if judgements:
            _say(f"Printed → reproduced\n\n{markdown(side_by_side(judgements))}\n")
            _say(f"{in_words(judgements, detailed=True)}.\n")
        if findings.failures:
            _say(f"{findings.failures} jobs failed, the first with: {findings.first_failure}\n")
        _say_files(written)

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep an experiment that could not run as a line of the summary."""
        self._keep(name, f"{FAILED}: {error}", FAILED, compare(self.reported(name), (), str(error)), None)
        # The numbers are wrong, not the program: where it was found does not help.
        text = str(error) if isinstance(error, NumbersError) else "".join(traceback.format_exception(error))
        _say(f"\n## {name}: {FAILED}\n\n{text}")

    def close(self, *, summary: bool, profile: str = "") -> int:
        """Write summary and page if asked to, report missing data, and return the exit code."""
        import pandas as pd

        found = [entry.findings for entry in self._entries]
        if found and all(one is not None and _nothing_stored(one) for one in found):
            _say("\nNo results are stored for this command, so nothing was written; task=run computes them.")
            self._say_profiles(profile)
            return 1
        if summary:
            frame = pd.DataFrame(self._lines, columns=["experiment", "status", *COLUMNS])
            written = write_summary(frame, self._page(profile), self._folder)
            _say(f"\n# Reported and reproduced\n\n{markdown(Table('', frame))}\n")
            _say_files(written)
        missing = {name: reason for one in found if one for name, reason in one.missing.items()}
        if missing:
            _say(f"\nData that is not available ({WAY_OUT}):")
            for name, reason in missing.items():
                _say(f"  {name}: {reason.removesuffix('; ' + WAY_OUT)}")
        self._say_profiles(profile)
        return 1 if any(one is None or one.failures for one in found) else 0

    def _keep(
        self, name: str, status: str, short: str, judgements: Sequence[Judgement], findings: Findings | None
    ) -> None:
        """Keep an experiment for the summary, and with a short status for the page."""
        self._lines.append({"experiment": name, "status": status, **tally(judgements)})
        about = self._catalogue.about("experiment", name) if name in self._catalogue.names("experiment") else ""
        self._entries.append(Entry(name, short, about, judgements, findings))

    def _page(self, profile: str) -> str:
        return render_page(self._entries, self._literature, self._folder, run=profile, profile=profile)

    def _say_profiles(self, asked: str) -> None:
        """Name the profiles for which jobs are stored; if unknown and jobs are missing, those that may have them."""
        for profile, names in self._of_other_profiles.items():
            about = f"jobs of {', '.join(names)} are stored for profile={profile}"
            _say(f"\nThis is profile={asked}, but {about}: add profile={profile} to report those.")
        records = [record for entry in self._entries if entry.findings for record in entry.findings.records]
        if not self._of_other_profiles and any(record.status == "missing" for record in records):
            other = ", ".join(f"profile={name}" for name in self._catalogue.names("profile") if name != asked)
            _say(f"\nJobs are missing for profile={asked}; if they ran with another profile, add it: {other}.")


def _nothing_stored(findings: Findings) -> bool:
    """Tell whether the experiment has jobs and none of them is stored."""
    return bool(findings.records) and all(record.status == "missing" for record in findings.records)


def _status(findings: Findings) -> str:
    n_rows = len(findings.rows)
    counts = findings.rows["status"].value_counts()
    if counts.get("ok", 0) == n_rows:
        return "complete"
    if counts.get(NO_DATA, 0) == n_rows:
        return NO_DATA
    return ", ".join(f"{count} of {n_rows} jobs {status}" for status, count in counts.items())


def _say_files(paths: Sequence[Path]) -> None:
    for path in paths:
        _say(f"  {path}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
