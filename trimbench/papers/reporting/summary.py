"""The files of a whole run: the counts of verdicts by experiment, and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trimbench.papers.execution.temporary import remove_stale
from trimbench.papers.reporting.page import counted, render_page
from trimbench.papers.reporting.parts import Part
from trimbench.papers.reporting.tables import markdown
from trimbench.papers.reporting.tallies import COLUMNS, tally
from trimbench.papers.reporting.whole_files import write_csv, write_text
from trimbench.papers.study.reported import Literature
from trimbench.papers.study.tables import Table


def _counts(parts: Sequence[Part], literature: Literature) -> Table:
    """Return the counts of verdicts and causes, one row for each experiment, in the papers' order."""
    by_name = {part["name"]: part for part in parts}
    ordered = [by_name[name] for name in literature.in_order(by_name)]
    lines = [
        {
            "experiment": part["name"],
            "table": literature.table(part["name"]) or "beyond the papers",
            "status": ": ".join(filter(None, [part["status"], part["error"]])),
            **tally([counted(number) for number in part["numbers"]]),
        }
        for part in ordered
    ]
    return Table.of("Reported and reproduced", lines, ["experiment", "table", "status", *COLUMNS])


def write_summary(
    parts: Sequence[Part], literature: Literature, folder: Path, *, run: str, profile: str, suffix: str = ""
) -> tuple[Table, list[Path]]:
    """Write the overview of several experiments as ``summary.csv`` and ``summary.md``, and the page ``index.html``.

    A `suffix` of these names says which settings were changed. Returns the counts and the paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_stale(folder.glob("writing.*.tmp"))
    table = _counts(parts, literature)
    page = render_page(parts, literature, run=run, profile=profile)
    return table, [
        write_csv(table.frame, folder / f"summary{suffix}.csv"),
        write_text(f"# {table.title}\n\n{markdown(table)}\n", folder / f"summary{suffix}.md"),
        write_text(page, folder / f"index{suffix}.html"),
    ]
