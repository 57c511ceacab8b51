"""The page of a run over all its experiments, and the summary at the end of a command."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.errors import by_host, ways_out
from trimbench.reproduction.files import without_homes, write_csv, write_text
from trimbench.reproduction.messages import ShortError, terminal_width
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.page import assets, count, counted, render_pages
from trimbench.reproduction.reporting.parts import Entry, Part, part_of
from trimbench.reproduction.reporting.runs import (
    make_run,
    nothing_stored,
    profile_of,
    read_about,
    runs_in,
    say,
    unattempted,
    write_findings,
)
from trimbench.reproduction.reporting.tables import cut, markdown, side_by_side
from trimbench.reproduction.reporting.verdicts import (
    COLUMNS,
    ELSEWHERE,
    NOT_ATTEMPTED,
    Counted,
    Judgement,
    compare,
    counted_once,
    in_all,
    in_words,
    standing,
    tally,
    with_profile,
)
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.planning import NO_DATA, Findings
from trimbench.reproduction.vocabulary.reported import Literature, NumbersError
from trimbench.reproduction.vocabulary.tables import Table
from trimbench.reproduction.world import world

FAILED = "failed"
_COMPLETE = "complete"
# The most rows of a table that a terminal gets.
_MOST_ROWS = 40


@dataclass(eq=False)
class Overview:
    """Writes the files of each experiment as it ends, prints its tables, and keeps a line for the summary.

    The files are in the `folder` of the run; the names of those for the whole run end with `suffix`, which tells the
    settings that were changed.
    """

    folder: Path
    catalogue: Catalogue
    literature: Literature
    figure: FigureSettings
    profile: str
    suffix: str = ""
    _entries: list[Entry] = field(default_factory=list, init=False)

    def note(self, findings: Findings) -> None:
        """Write and print what an experiment found. If none of its jobs is stored, leave earlier files alone."""
        reported, lacked = self.literature.reported(findings.name), self._lacked(findings)
        why = f"{NO_DATA}: {', '.join(lacked)}" if lacked else unattempted(findings)
        judgements = compare(reported, findings.numbers, why)
        status = NO_DATA if lacked else _status(findings)
        entry = self._keep(findings.name, status, judgements, findings)
        say(f"\n## {findings.stem}{f': {status}' if status != _COMPLETE else ''}\n")
        if nothing_stored(findings):
            files = f"{self.folder / findings.stem}.*"
            when = f" When it was run here, its data was not available: {', '.join(lacked)}." if lacked else ""
            first = "fetch the data, and run the experiment first" if lacked else "run the experiment first"
            say(f"No job is stored for these settings.{when} The files {files} stay unchanged; {first}.")
            return
        make_run(self.folder, self.profile)
        write_findings(findings, judgements, self.folder, self.figure, status=entry.status, about=entry.about)
        for table in findings.outcome.tables:
            if table.listed and len(table.frame):
                short = cut(table, _MOST_ROWS, f"; all are in {self.folder / findings.stem}*.csv")
                say(f"{short.title}\n\n{markdown(short, terminal_width())}\n")
        if judgements and findings.altered:
            say(f"The paper reports nothing for {', '.join(findings.altered)}, so nothing is compared.\n")
        elif judgements:
            say(f"Printed → reproduced\n\n{markdown(side_by_side(judgements), terminal_width())}\n")
        if findings.failures:
            say(f"{count(findings.failures, 'job')} failed, the first with: {findings.first_failure}\n")
        say(_headline(entry, self.profile))

    def _lacked(self, findings: Findings) -> list[str]:
        """Return the data that an experiment without stored jobs did not get when it was run here."""
        if not nothing_stored(findings):
            return []
        try:
            return sorted(read_about(self.folder, findings.stem)["missing"])
        except (OSError, ConfigurationError):  # it was not run here
            return []

    @property
    def judgements(self) -> list[Judgement]:
        """The judgements on the numbers of all experiments so far."""
        return [one for entry in self._entries for one in entry.judgements]

    def note_failure(self, name: str, error: Exception) -> None:
        """Keep an experiment that could not run as a line of the summary."""
        reason = without_homes(str(error))
        self._keep(name, FAILED, compare(self.literature.reported(name), (), reason), None, reason)
        # What is declared is wrong, not the program, so a traceback would not help.
        text = (
            str(error) if isinstance(error, NumbersError | ShortError) else "".join(traceback.format_exception(error))
        )
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
        about = self.catalogue.about("experiment", name) if name in self.catalogue.names("experiment") else ""
        entry = Entry(name, status, about, judgements, findings, error)
        self._entries.append(entry)
        return entry

    def _summarise(self) -> None:
        parts = [self._part(entry) for entry in self._entries]
        make_run(self.folder, self.profile)
        table, page = write_summary(
            parts, self.literature, self.folder, run=self.folder.name, profile=self.profile, suffix=self.suffix
        )
        say(f"\n# {table.title}\n\n{_by_paper(parts, self.literature)}\n")
        if unsettled := _unsettled(parts, self.literature):
            say(f"{markdown(unsettled, terminal_width())}\n")
        say(f"{count(len(parts), 'experiment')}\n  {page}")

    def _page(self, entry: Entry, stem: str) -> Path:
        parts, run = [self._part(entry)], self.folder.name
        pages = render_pages(parts, self.literature, run=run, profile=self.profile, folder=self.folder, alone=True)
        for name, text in assets().items():
            write_text(text, self.folder / name)
        return write_text(pages[entry.name], self.folder / f"{stem}.html")

    def _part(self, entry: Entry) -> Part:
        """Return what the page shows of an experiment; without stored results, that is not from earlier files."""
        if entry.findings is None or nothing_stored(entry.findings):
            return part_of(dataclasses.replace(entry, findings=None), self.folder)
        part: Part = read_about(self.folder, entry.findings.stem)["page"]
        return part

    def _say_runs(self) -> None:
        """Name the other runs here that have another profile, for which jobs may be stored."""
        for name in runs_in(self.folder.parent):
            if (profile := profile_of(self.folder.with_name(name))) not in (
                "",
                ELSEWHERE,
                *project().tasks,
                self.profile,
            ):
                say(f"\nThis was for profile={self.profile}; for the run {name}, add profile={profile}.")


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
    compared += f"; {said}" if compared and (said := in_all(ours)) else ""
    if entry.status != _COMPLETE:
        return "; ".join(filter(None, [entry.status, compared]))
    if entry.altered:
        return "complete, with other settings"
    return compared or in_words(ours) or "complete, beyond the papers"


# The end of a whole run in a terminal: a line for each paper, and what is not settled.


def _by_paper(parts: Sequence[Part], literature: Literature) -> str:
    """Return a line for each paper: how many of its statements of each kind were reproduced."""
    families: dict[str, list[Counted]] = {}
    for part in _ordered(parts, literature):
        if ours := counted(part):
            families.setdefault(part["name"].partition("/")[0], []).extend(ours)
    titles = {family: paper.title for family, paper in literature.papers.items()}
    lines = [f"- {titles.get(family, family)}: {in_words(ours)}" for family, ours in families.items()]
    n_beyond = sum(not counted(part) for part in parts)
    lines += [f"- {count(n_beyond, 'experiment')} for which no number is printed"] if n_beyond else []
    return "\n".join(lines)


def _unsettled(parts: Sequence[Part], literature: Literature) -> Table | None:
    """Return the experiments that failed, lack data or have differences that nothing explains; None without any."""
    lines = []
    for part in _ordered(parts, literature):
        standings = [standing(one.subject, one.verdict, one.cause) for one in counted(part)]
        why = [f"{standings.count(name)} {name}" for name in ("open", "not run") if name in standings]
        if part["status"] != _COMPLETE:
            why.append(_status_of(part))
        if why:
            lines.append({"not settled": part["name"], "why": "; ".join(why)})
    return Table.of("Not settled", lines, ["not settled", "why"]) if lines else None


def _ordered(parts: Sequence[Part], literature: Literature) -> list[Part]:
    by_name = {part["name"]: part for part in parts}
    return [by_name[name] for name in literature.in_order(by_name)]


def _status_of(part: Part) -> str:
    return ": ".join(filter(None, [part["status"], part["error"]]))


# The files of a whole run: the counts of verdicts by experiment, and the page.


def _counts(parts: Sequence[Part], literature: Literature, profile: str) -> Table:
    lines = [
        {
            "experiment": part["name"],
            "table": literature.table(part["name"]) or "beyond the papers",
            "status": _status_of(part),
            **tally(counted(part)),
        }
        for part in _ordered(parts, literature)
    ]
    return Table.of(
        f"Reported and reproduced{with_profile(profile)}", lines, ["experiment", "table", "status", *COLUMNS]
    )


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
    world().make_folders(folder)
    table = _counts(parts, literature, profile)
    pages = render_pages(parts, literature, run=run, profile=profile, folder=folder, place=place, suffix=suffix)
    for name, text in (assets() | {f"{name}{suffix}.html": text for name, text in pages.items()}).items():
        write_text(text, folder / name)
    write_csv(table.frame, folder / f"summary{suffix}.csv")
    write_text(f"# {table.title}\n\n{markdown(table)}\n", folder / f"summary{suffix}.md")
    return table, folder / f"index{suffix}.html"
