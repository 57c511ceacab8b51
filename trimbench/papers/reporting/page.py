"""The page of a run: what was reproduced, what differs and why, and every table and figure with its jobs."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from trimbench.papers.reporting.figures.files import points_name
from trimbench.papers.reporting.html import anchor, facts_of, render, table_part
from trimbench.papers.reporting.job_list import as_ranges, job_list, rows_behind
from trimbench.papers.reporting.tables import asked, shown
from trimbench.papers.reporting.tallies import COLUMNS, PLURALS, causes_in_words, column_of, in_words, tally
from trimbench.papers.reporting.verdicts import CAUSES, VERDICTS, VERDICTS_ON, Judgement
from trimbench.papers.reporting.whole_files import beside
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.reported import Literature, Paper

# A part of the page as the template takes it.
_Part: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Entry:
    """One experiment on the page; without findings if it could not run."""

    name: str
    status: str
    about: str
    judgements: Sequence[Judgement]
    findings: Findings | None

    @property
    def altered(self) -> Sequence[str]:
        """The settings that were changed, so that its numbers cannot be compared."""
        return () if self.findings is None else self.findings.altered


def render_page(entries: Sequence[Entry], literature: Literature, folder: Path, *, run: str, profile: str) -> str:
    """Return the page of a run: papers and tables in their order, then the experiments beyond the papers.

    The page is to be a file in `folder`; it links to the pictures and tables that it finds there.
    """
    by_name = {entry.name: entry for entry in entries}
    ordered = [by_name[name] for name in literature.in_order(by_name)]
    judged = [(entry, one) for entry in ordered if not entry.altered for one in entry.judgements]
    accounts = list(dict.fromkeys((one.cause or "", one.account) for _, one in judged if one.differs))
    numbers = [_number(place, entry, one, literature, accounts) for place, (entry, one) in enumerate(judged)]
    families = {entry.name.split("/")[0]: list[_Part]() for entry in ordered}
    beyond: list[_Part] = []
    for entry in ordered:
        part = _experiment(entry, literature, folder, [one for one in numbers if one["experiment"] == entry.name])
        (families[entry.name.split("/")[0]] if entry.judgements else beyond).append(part)
    return render(
        "run.html",
        facts=facts_of(f"run {run}", f"profile {profile}"),
        kinds=[
            (PLURALS[subject], [(verdict, column_of(subject, verdict)) for verdict in verdicts])
            for subject, verdicts in VERDICTS_ON.items()
        ],
        subjects={plural: subject for subject, plural in PLURALS.items()},
        causes=CAUSES,
        columns=len(COLUMNS) - len(PLURALS),
        verdicts=VERDICTS,
        outcome=in_words([one for _, one in judged]),
        because=causes_in_words([one for _, one in judged]),
        papers=[_paper(family, literature, parts, judged) for family, parts in families.items() if parts],
        beyond=beyond,
        numbers=numbers,
        reasons=_by_account(accounts, numbers),
    )


def _number(
    place: int, entry: Entry, one: Judgement, literature: Literature, accounts: Sequence[tuple[str, str]]
) -> _Part:
    """Return one reported number, claim, curve or time with its verdict, cause, reason and jobs."""
    found, number, inferred = entry.findings, one.number, one.explanation
    known = found is not None and number is not None and one.verdict != "not attempted"
    places = rows_behind(found, number.jobs) if known and found and number else []
    return {
        "id": f"n{place}",
        "experiment": entry.name,
        "table": literature.table(entry.name) or entry.name,
        "cell": one.reported.label,
        "row": one.reported.row,
        "quantity": one.reported.quantity,
        "subject": one.reported.rule.subject,
        "reported": asked(one.reported),
        "source": one.reported.source,
        "ours": shown(one),
        "verdict": one.verdict,
        "cause": one.cause or "",
        "reason": one.account if one.differs else one.reason,
        "inferred": f"{inferred.value:.4g}" if inferred and one.differs else "",
        "probability": f"{number.probability.value:.2g}" if number and number.probability else "",
        "why": f"why-{accounts.index((one.cause or '', one.account))}" if one.differs else "",
        "n_jobs": len(places),
        "jobs": as_ranges(places),
    }


def _by_account(accounts: Sequence[tuple[str, str]], numbers: Sequence[_Part]) -> list[_Part]:
    """Return what accounts for differences, each with its numbers: unexplained ones first, then the most frequent."""
    groups: list[dict[str, object]] = []
    for place, (cause, account) in enumerate(accounts):
        ours = [number for number in numbers if number["why"] == f"why-{place}"]
        groups.append({"id": f"why-{place}", "cause": cause, "reason": account, "numbers": ours, "count": len(ours)})
    return sorted(groups, key=lambda group: (group["cause"] != "unexplained", -int(str(group["count"]))))


def _paper(
    family: str, literature: Literature, parts: Sequence[_Part], judged: Sequence[tuple[Entry, Judgement]]
) -> _Part:
    ours = [one for entry, one in judged if entry.name.split("/")[0] == family]
    paper = literature.papers.get(family) or Paper(title=family, citation=family)
    return {"id": anchor(family), "paper": paper, "experiments": parts, "tally": tally(ours), "outcome": in_words(ours)}


def _experiment(entry: Entry, literature: Literature, folder: Path, numbers: Sequence[_Part]) -> _Part:
    compared = [] if entry.altered else entry.judgements
    about: dict[str, object] = {
        "id": anchor(entry.name),
        "name": entry.name,
        "table": literature.table(entry.name),
        "status": "" if entry.status == "complete" else entry.status,
        "about": entry.about,
        "altered": entry.altered,
        "n_reported": len(entry.judgements),
        "tally": tally(compared),
        "outcome": in_words(compared),
        "side_by_side": _side_by_side(numbers),
    }
    found = entry.findings
    if found is None:
        return about | {"figures": (), "tables": (), "notes": (), "jobs": None, "provenance": ""}
    stem = Path(found.stem)
    tables = [table for table in found.outcome.tables if table.listed and len(table.frame)]
    return about | {
        "figures": _figures(found, folder),
        "tables": [{**table_part(table), "file": _csv_of(stem, table.name, folder)} for table in tables],
        "notes": [*found.outcome.notes, *(f"Data not available: {reason}" for reason in found.missing.values())],
        "jobs": job_list(found),
        "provenance": _link(beside(stem, "", ".json"), folder),
    }


def _side_by_side(numbers: Sequence[_Part]) -> _Part:
    """Return numbers in the shape of the paper's table: its columns, and for each row a number or None in each."""
    columns = list(dict.fromkeys(number["quantity"] for number in numbers))
    found = {(number["row"], number["quantity"]): number for number in numbers}
    rows = dict.fromkeys(number["row"] for number in numbers)
    return {"columns": columns, "rows": [(row, [found.get((row, column)) for column in columns]) for row in rows]}


def _link(file: Path, folder: Path) -> str:
    """Return the address of a file of the run; empty if there is none."""
    return quote(file.as_posix(), safe="/,=") if (folder / file).is_file() else ""


def _csv_of(stem: Path, part: str, folder: Path) -> str:
    """Return the address of a table's file, which is the experiment's main one where it has no own."""
    return _link(beside(stem, part or "table", ".csv"), folder) or _link(beside(stem, "", ".csv"), folder)


def _figures(found: Findings, folder: Path) -> list[_Part]:
    stem = Path(found.stem)
    figures: list[_Part] = []
    for figure in found.outcome.figures:
        pictures = [beside(stem, figure.name, ending) for ending in _SHOWN]
        picture = next((one for one in pictures if (folder / one).is_file()), None)
        if figure.points.empty or picture is None:
            continue
        points = _link(beside(stem, points_name(figure), ".csv"), folder)
        size = _size(folder / picture)
        figures.append({"title": figure.title, "picture": _link(picture, folder), "size": size, "points": points})
    return figures


# The formats that a browser shows as pictures.
_SHOWN = (".png", ".svg")


def _size(picture: Path) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG; with them, a page does not move while it loads."""
    if picture.suffix != ".png":
        return None
    with picture.open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    return width, height
