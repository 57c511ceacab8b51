"""The page of a run over all its experiments, and the summary at the end of a command."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from trimbench.papers.configuration import Catalogue
from trimbench.papers.files import without_homes, write_csv, write_text
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.page import assets, counted, render_pages
from trimbench.papers.reporting.runs import (
    Entry,
    Part,
    make_run,
    nothing_stored,
    part_of,
    profile_of,
    read_about,
    runs_in,
    unattempted,
    write_findings,
)
from trimbench.papers.reporting.tables import markdown, side_by_side
from trimbench.papers.reporting.verdicts import (
    COLUMNS,
    NOT_ATTEMPTED,
    PAPER,
    Judgement,
    compare,
    counted_once,
    in_words,
    tally,
)
from trimbench.papers.validation import by_host, fitted, terminal_width, ways_out
from trimbench.papers.vocabulary.planning import NO_DATA, Findings
from trimbench.papers.vocabulary.reported import Literature, NumbersError
from trimbench.papers.vocabulary.tables import Table

FAILED = "failed"
_COMPLETE = "complete"
# What is green or red on a terminal that has colours; the words say it all.
_OUTCOME = re.compile(
    r"(?P<none>\b0\s+of\s+[\d,]+\s+\w+\s+\w+|→ reproduced)"
    r"|\b(?:(?P<good>reproduced|holds?|followed|shorter)|differs?|fails?|(?i:failed)|unexplained)\b"
)


class Overview:
    """Writes the files of each experiment as it ends, prints its tables, and keeps a line for the summary.

    The files are in the `folder` of the run; the names of those of the whole run end with `suffix`, the settings that
    were changed.
    """

    def __init__(
        self,
        folder: Path,
        catalogue: Catalogue,
        literature: Literature,
        figure: FigureSettings,
        *,
        profile: str,
        suffix: str = "",
    ) -> None:
        self._folder, self._catalogue, self._literature, self._figure = folder, catalogue, literature, figure
        self._profile, self._suffix = profile, suffix
        self._entries: list[Entry] = []

    def note(self, findings: Findings) -> None:
        """Write and print what an experiment found. If none of its jobs is stored, leave the files of before."""
        reported = self._literature.reported(findings.name)
        judgements = compare(reported, findings.numbers, unattempted(findings))
        status = _status(findings)
        entry = self._keep(findings.name, status, judgements, findings)
        say(f"\n## {findings.stem}{f': {status}' if status != _COMPLETE else ''}\n")
        if nothing_stored(findings):
            files = f"{self._folder / findings.stem}.*"
            say(f"No job is stored for these settings. The files {files} stay unchanged; run the experiment first.")
            return
        make_run(self._folder, self._profile)
        write_findings(findings, judgements, self._folder, self._figure, status=entry.status, about=entry.about)
        for table in findings.outcome.tables:
            if table.listed and len(table.frame):
                say(f"{table.title}\n\n{markdown(table, terminal_width())}\n")
        if judgements and findings.altered:
            say(f"The paper reports other settings than {', '.join(findings.altered)}, so nothing is compared.\n")
        elif judgements:
            say(f"Printed → reproduced\n\n{markdown(side_by_side(judgements), terminal_width())}\n")
        if findings.failures:
            say(f"{findings.failures} jobs failed, the first with: {findings.first_failure}\n")
        say(_headline(entry, self._profile))

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep an experiment that could not run as a line of the summary."""
        reason = without_homes(str(error))
        self._keep(name, FAILED, compare(self._literature.reported(name), (), reason), None, reason)
        # The numbers are wrong, not the program: where it was found does not help.
        text = str(error) if isinstance(error, NumbersError) else "".join(traceback.format_exception(error))
        say(f"\n## {name}: {FAILED}\n\n{text}")

    def close(self, *, summary: bool) -> int:
        """Report missing data, write the summary or else a page of each experiment, and return the exit code."""
        found = [entry.findings for entry in self._entries]
        if found and all(one is not None and nothing_stored(one) for one in found):
            say("\nNo results are stored for this command, so nothing was written; task=run computes them.")
            self._say_runs()
            return 1
        missing = {name: reason for one in found if one for name, reason in one.missing.items()}
        if missing:
            ways = ways_out(missing.values())
            say(f"\nData that is not available{f' ({ways})' if ways else ''}:")
            for line in by_host(missing):
                say(f"  {line}")
        if any(record.status == "missing" for one in found if one for record in one.records):
            self._say_runs()
        if summary:
            self._summarise()
        for entry in () if summary else self._entries:
            if entry.findings and not nothing_stored(entry.findings):
                say(f"  {self._page(entry, entry.findings.stem)}")
        return 1 if any(one is None or one.failures for one in found) else 0

    def _keep(
        self, name: str, status: str, judgements: Sequence[Judgement], findings: Findings | None, error: str = ""
    ) -> Entry:
        about = self._catalogue.about("experiment", name) if name in self._catalogue.names("experiment") else ""
        entry = Entry(name, status, about, judgements, findings, error)
        self._entries.append(entry)
        return entry

    def _summarise(self) -> None:
        parts = [self._part(entry) for entry in self._entries]
        make_run(self._folder, self._profile)
        table, page = write_summary(
            parts, self._literature, self._folder, run=self._folder.name, profile=self._profile, suffix=self._suffix
        )
        say(f"\n# {table.title}\n\n{markdown(table, terminal_width())}\n")
        say(f"{len(parts)} experiments\n  {page}")

    def _page(self, entry: Entry, stem: str) -> Path:
        parts, run = [self._part(entry)], self._folder.name
        pages = render_pages(parts, self._literature, run=run, profile=self._profile, folder=self._folder, alone=True)
        for name, text in assets().items():
            write_text(text, self._folder / name)
        return write_text(pages[entry.name], self._folder / f"{stem}.html")

    def _part(self, entry: Entry) -> Part:
        """Return what the page shows of an experiment; of one without stored results, not the files of before."""
        if entry.findings is None or nothing_stored(entry.findings):
            return part_of(dataclasses.replace(entry, findings=None), self._folder)
        part: Part = read_about(self._folder, entry.findings.stem)["page"]
        return part

    def _say_runs(self) -> None:
        """Name the profiles of the other runs here, for which jobs may be stored."""
        for name in runs_in(self._folder.parent):
            if (profile := profile_of(self._folder.with_name(name))) not in ("", self._profile):
                say(f"\nThis is profile={self._profile}; the run {name} has profile={profile}: add profile={profile}.")


def _status(findings: Findings) -> str:
    n_rows = len(findings.rows)
    counts = findings.rows["status"].value_counts()
    if counts.get("ok", 0) == n_rows:
        return _COMPLETE
    if counts.get(NO_DATA, 0) == n_rows:
        return NO_DATA
    return ", ".join(f"{count} of {n_rows} jobs {status}" for status, count in counts.items())


def _headline(entry: Entry, profile: str) -> str:
    """Say in a line how the jobs went, unless all is well, and what was reproduced."""
    attempted = any(one.verdict != NOT_ATTEMPTED for one in entry.judgements)
    ours = counted_once(entry.judgements)
    compared = in_words(ours, detailed=True, profile=profile) if attempted and not entry.altered else ""
    if entry.status != _COMPLETE:
        return "; ".join(filter(None, [entry.status, compared]))
    if entry.altered:
        return "complete, with other settings"
    return compared or "complete, beyond the papers"


def say(text: str) -> None:
    """Print a line at once, also where the output is read by another program; a terminal shows outcomes in colour."""
    text = fitted(text)
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if coloured:
        text = _OUTCOME.sub(lambda w: w[0] if w["none"] else f"\033[{32 if w['good'] else 31}m{w[0]}\033[0m", text)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# The files of a whole run: the counts of verdicts by experiment, and the page.


def _counts(parts: Sequence[Part], literature: Literature, profile: str) -> Table:
    by_name = {part["name"]: part for part in parts}
    ordered = [by_name[name] for name in literature.in_order(by_name)]
    lines = [
        {
            "experiment": part["name"],
            "table": literature.table(part["name"]) or "beyond the papers",
            "status": ": ".join(filter(None, [part["status"], part["error"]])),
            **tally(counted(part)),
        }
        for part in ordered
    ]
    title = "Reported and reproduced" + (f", with profile={profile}" if profile != PAPER else "")
    return Table.of(title, lines, ["experiment", "table", "status", *COLUMNS])


def write_summary(
    parts: Sequence[Part],
    literature: Literature,
    folder: Path,
    *,
    run: str,
    profile: str,
    suffix: str = "",
    place: Path | None = None,
) -> tuple[Table, Path]:
    """Write the overview of several experiments as ``summary.csv`` and ``summary.md``, and the pages of the run.

    A `suffix` of these names says which settings were changed; `place` is where the folder will stand, if it is moved
    there. Returns the counts and the path of the first page, ``index.html``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = _counts(parts, literature, profile)
    pages = render_pages(parts, literature, run=run, profile=profile, folder=folder, place=place, suffix=suffix)
    for name, text in (assets() | {f"{name}{suffix}.html": text for name, text in pages.items()}).items():
        write_text(text, folder / name)
    write_csv(table.frame, folder / f"summary{suffix}.csv")
    write_text(f"# {table.title}\n\n{markdown(table)}\n", folder / f"summary{suffix}.md")
    return table, folder / f"index{suffix}.html"
