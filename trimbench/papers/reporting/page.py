"""Pages in HTML: one for each experiment; a page needs no network."""

from __future__ import annotations

import functools
import gzip
import json
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict
from urllib.parse import quote

from trimbench.papers.execution.store import provenance
from trimbench.papers.files import beside, write_bytes
from trimbench.papers.reporting.figures.drawing import points_name
from trimbench.papers.reporting.runs import SHORT_KEY, computed_with, environment_of
from trimbench.papers.reporting.tables import asked, heading, printable, shown
from trimbench.papers.reporting.verdicts import (
    PAPER,
    STANDINGS,
    Counted,
    Judgement,
    causes_in_words,
    in_words,
    once,
    standing,
)
from trimbench.papers.validation import Json
from trimbench.papers.vocabulary.planning import Findings
from trimbench.papers.vocabulary.reported import Literature, Paper
from trimbench.papers.vocabulary.tables import Table

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


def render(template: str, **values: object) -> str:
    """Return the page that a template of the folder ``page`` makes of these values.

    A template extends ``base.html``, which needs `facts` (see `facts_of`), and fills its blocks: ``title``, ``lead``,
    ``nav`` and ``main``. The macros in ``macros.html`` make tables that can be sorted and filtered, and that become
    cards on a phone. All values are escaped; a name that the template uses and that is not given is an error.
    """
    return _environment().get_template(template).render(values)


def facts_of(*own: str) -> list[str]:
    """Return what the head of a page says of its origin: its `own` facts, then version, commit, Python and date."""
    where = provenance()
    return [
        *own,
        f"trimbench {where['trimbench'] or 'of unknown version'}",
        f"written with commit {present_commit()}",
        f"Python {where['python']}",
        str(where["time"])[:10],
    ]


def present_commit() -> str:
    """Return the commit of the code that is running, as pages show it."""
    where = provenance()
    return f"{str(where['commit'] or 'unknown')[:12]}{' and uncommitted changes' if where['dirty'] else ''}"


def anchor(name: str) -> str:
    """Return a name as the anchor of its part of a page."""
    return re.sub(r"[^\w.-]+", "-", name)


def count(number: int, noun: str) -> str:
    """Return a number with its noun, for example ``1,234 jobs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table_part(table: Table) -> dict[str, object]:
    """Return a table as the macro ``table`` takes it: title, columns and rows of cells."""
    texts = printable(table).to_numpy().tolist()
    values = table.frame.astype(object).to_numpy().tolist()
    return {
        "title": table.title,
        "columns": [(column, table.frame[column].dtype.kind in "iuf") for column in table.frame],
        "rows": [[*map(_cell, *row)] for row in zip(values, texts, strict=True)],
    }


def _cell(value: object, text: str) -> dict[str, object]:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    known = number is not None and math.isfinite(number)
    # To sort by; the CSV has every digit.
    return {"text": text, "is_number": number is not None, "value": f"{number:.6g}" if known else ""}


def _text(name: str) -> str:
    """Return a file of the folder ``page``."""
    return (files("trimbench.papers.reporting") / "page" / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # lists of jobs are long
    # Style and script are our own; everything else on a page is escaped.
    environment.globals |= {"style": Markup(_text("page.css")), "script": Markup(_text("page.js"))}
    return environment


def _prose(text: str) -> Markup:
    """Return text as HTML, with the parts between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", str(escape(text))))


def _breakable(name: str) -> Markup:
    """Return a name as HTML that may break after a slash or an underscore."""
    from markupsafe import Markup, escape

    return Markup(re.sub("([/_])", r"\1<wbr>", str(escape(name))))


def _words(column: object) -> str:
    """Return the heading of a column, in words where it is one of the papers' tables."""
    names = [paper["names"] for paper in _texts().values() if "_" in str(column)]  # plain words may be a user's
    return next((str(found[column]) for found in names if column in found), heading(column))


_FILTERS: dict[str, Callable[..., str]] = {
    "anchor": anchor,
    "count": count,
    "prose": _prose,
    "breakable": _breakable,
    "words": _words,
}


# The page of a run: what was reproduced, what differs and why, and every table and figure with its jobs.

# A value of the template.
_Shown: TypeAlias = Mapping[str, Any]
# The pages of findings, where a clone has its results.
_FINDINGS = "../../docs/findings.md"


@functools.cache
def _texts() -> Mapping[str, Mapping[str, Any]]:
    """Return what is said of each paper besides its numbers, by family; ``papers.yaml`` says what it is."""
    import yaml

    content: Mapping[str, Mapping[str, Any]] = yaml.safe_load(_text("papers.yaml"))
    return content


def _text_of(name: str, kind: str) -> Mapping[str, Any]:
    """Return one kind of what is said of the paper of an experiment or a family."""
    found: Mapping[str, Any] = _texts().get(name.split("/")[0], {}).get(kind, {})
    return found


def render_page(
    parts: Sequence[Part], literature: Literature, *, run: str, profile: str, folder: Path | None = None
) -> str:
    """Return the page of a run: papers and tables in their order, then the experiments beyond the papers.

    The page is to be a file in the `folder` that the parts were made for.
    """
    by_name = {part["name"]: part for part in parts}
    ordered = [by_name[name] for name in literature.in_order(by_name)]
    judged = [(part, number) for part in ordered if not part["altered"] for number in part["numbers"]]
    accounts = list(dict.fromkeys(_account(number) for _, number in judged if number["differs"]))
    numbers = [_number(place, *one, literature, accounts) for place, one in enumerate(judged)]
    shown: dict[str, list[_Shown]] = {part["name"].split("/")[0]: [] for part in ordered}
    beyond: list[_Shown] = []
    for part in ordered:
        own = [one for one in numbers if one["experiment"] == part["name"]]
        experiment = _experiment(part, literature, own, profile)
        (shown[part["name"].split("/")[0]] if part["numbers"] else beyond).append(experiment)
    has_findings = folder is not None and (folder / _FINDINGS).is_file()
    return render(
        "run.html",
        facts=facts_of(f"run {run}", f"profile {profile}"),
        standings=STANDINGS,
        papers=[_paper(family, literature, own, profile) for family, own in shown.items() if own],
        beyond=beyond,
        numbers=numbers,
        reasons=_by_account(accounts, numbers),
        of_paper=profile == PAPER,
        findings=_FINDINGS if has_findings else "",
    )


def counted(part: Part) -> list[Counted]:
    """Return what tallies count of a part."""
    numbers = part["numbers"]
    found = [Counted(*(one[key] for key in ("subject", "verdict", "cause", "row", "quantity"))) for one in numbers]
    return once(found)


def _account(number: Part) -> tuple[str, str]:
    return number["cause"] or "", number["reason"]


def _number(
    place: int, part: Part, number: Part, literature: Literature, accounts: Sequence[tuple[str, str]]
) -> _Shown:
    """Return a number with what it is on this page: its own anchor, and that of what accounts for a difference."""
    names = _text_of(part["name"], "names")
    row = names.get(number["row"]) or " ".join(names.get(word, word) for word in number["row"].split())
    return {
        **number,
        "id": f"n{place}",
        "experiment": part["name"],
        "table": literature.table(part["name"]) or part["name"],
        "row": row,
        "quantity": names.get(number["quantity"], heading(number["quantity"])),
        "standing": standing(number["subject"], number["verdict"], number["cause"]),
        "reading": number.get("reading", ""),  # parts of earlier runs have none
        "why": f"why-{accounts.index(_account(number))}" if number["differs"] else "",
    }


def _by_account(accounts: Sequence[tuple[str, str]], numbers: Sequence[_Shown]) -> list[_Shown]:
    """Return what accounts for differences, each with its numbers: explanations first, what is open last."""
    groups: list[_Shown] = []
    for place, (_, account) in enumerate(accounts):
        ours = [number for number in numbers if number["why"] == f"why-{place}"]
        # What is said of a paper's numbers stands without the words that its heading repeats.
        reason = account.removeprefix("inferred set-up: ")
        groups.append({"id": f"why-{place}", "standing": ours[0]["standing"], "reason": reason, "numbers": ours})
    order = [*STANDINGS, "longer time"]
    return sorted(groups, key=lambda group: (order.index(group["standing"]), -len(group["numbers"])))


def _paper(family: str, literature: Literature, experiments: Sequence[_Shown], profile: str) -> _Shown:
    paper = literature.papers.get(family) or Paper(title=family, citation=family)
    ours = [one for experiment in experiments for one in experiment["counted"]]
    return {
        "id": anchor(family),
        "paper": paper,
        "citation": paper.citation.partition(", doi:")[0],
        **{"doi": "", "finding": "", "short": {}, **_texts().get(family, {})},
        "not_run": {name: said.reason for name, said in paper.statements.items() if said.reason and _is_shown(name)},
        "experiments": experiments,
        "outcome": in_words(ours, profile=profile),
        "because": causes_in_words(ours),
        "tally": _standings(ours),
    }


def _is_shown(statement: str) -> bool:
    """Tell whether a statement is a table or a figure, or a part of one."""
    return statement.startswith(("Table", "Figure"))


def _standings(found: Sequence[Counted]) -> Counter[str]:
    return Counter(standing(one.subject, one.verdict, one.cause) for one in found)


def _experiment(part: Part, literature: Literature, numbers: Sequence[_Shown], profile: str) -> _Shown:
    compared = [] if part["altered"] else counted(part)
    name = part["name"]
    return {
        **part,
        "id": anchor(name),
        "table": literature.table(name),
        "title": literature.table(name) or _text_of(name, "beyond").get(name, name),
        "status": "" if part["status"] == "complete" else part["status"],
        "n_reported": len(part["numbers"]),
        "counted": compared,
        "tally": _standings(compared),
        "outcome": in_words(compared, profile=profile),
        "side_by_side": _side_by_side(numbers),
        "earlier": "" if part["commit"] == present_commit() else part["commit"],
    }


def _side_by_side(numbers: Sequence[_Shown]) -> _Shown:
    """Return numbers in the shape of the paper's table: its columns, and for each row a number or None in each."""
    columns = list(dict.fromkeys(number["quantity"] for number in numbers))
    found = {(number["row"], number["quantity"]): number for number in numbers}
    rows = dict.fromkeys(number["row"] for number in numbers)
    return {"columns": columns, "rows": [(row, [found.get((row, column)) for column in columns]) for row in rows]}


# What the page of a run shows of one experiment, stored so that a page can join experiments of several runs.

# Values of JSON alone: what is read again is what was written.
Part: TypeAlias = Mapping[str, Any]
# The formats that a browser shows as pictures.
_SHOWN = (".png", ".svg")


@dataclass(frozen=True, eq=False)
class Entry:
    """One experiment of a run; without findings, but with an `error`, if it could not run."""

    name: str
    status: str
    about: str
    judgements: Sequence[Judgement]
    findings: Findings | None
    error: str = ""

    @property
    def altered(self) -> Sequence[str]:
        """The settings that were changed, so that its numbers cannot be compared."""
        return () if self.findings is None else self.findings.altered


def part_of(entry: Entry, folder: Path) -> Part:
    """Return what the page of a run shows of an experiment, with links to the files that it finds in `folder`."""
    found = entry.findings
    part: dict[str, object] = {
        "name": entry.name,
        "status": entry.status,
        "error": entry.error,
        "about": entry.about,
        "altered": list(entry.altered),
        "commit": present_commit(),
        "numbers": [_number_parts(found, one) for one in entry.judgements],
    }
    if found is None:
        return part | {"figures": [], "tables": [], "notes": [], "jobs": None, "provenance": ""}
    stem = Path(found.stem)
    tables = [table for table in found.outcome.tables if table.listed and len(table.frame)]
    return part | {
        "figures": _figures(found, folder),
        "tables": [{**table_part(table), "file": _csv_of(stem, table.name, folder)} for table in tables],
        "notes": found.notes,
        "jobs": job_list(found),
        "provenance": _link(beside(stem, "", ".json"), folder),
    }


def part_file(stem: Path) -> Path:
    """Return the file of an experiment's part of the page."""
    return beside(stem, "page", ".json.gz")


def write_part(part: Part, path: Path) -> Path:
    """Write a part of a page, and return its path."""
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    # Without the time of writing, the same part gives the same bytes.
    content = gzip.compress(text.encode(), mtime=0)
    return write_bytes(content, path)


def read_part(path: Path) -> Part:
    """Read a part of a page; raise ValueError, which names the file, if that is not possible."""
    try:
        part: Part = json.loads(gzip.decompress(path.read_bytes()))
        part["name"], part["status"], part["numbers"], part["commit"]
    except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise ValueError(f"{path} must hold the part of a page that a run has written, got {error!r}") from error
    return part


def _number_parts(found: Findings | None, one: Judgement) -> dict[str, object]:
    """Return one reported number, claim, curve or time with its verdict, cause, reason and jobs."""
    number, inferred = one.number, one.explanation
    known = found is not None and number is not None and one.verdict != "not attempted"
    places = rows_behind(found, number.jobs) if known and found and number else []
    return {
        "cell": one.reported.label,
        "row": one.reported.row,
        "quantity": one.reported.quantity,
        "subject": one.subject,
        "reported": asked(one.reported),
        "source": one.reported.source,
        "ours": shown(one),
        "verdict": one.verdict,
        "differs": one.differs,
        "cause": one.cause,
        "reason": one.account if one.differs else one.reason,
        "reading": one.reading,
        "inferred": f"{inferred.value:.4g}" if inferred and one.differs else "",
        "probability": f"{number.probability.value:.2g}" if number and number.probability else "",
        "n_jobs": len(places),
        "jobs": as_ranges(places),
    }


def _link(file: Path, folder: Path) -> str:
    """Return the address of a file of the run; empty if there is none."""
    return quote(file.as_posix(), safe="/,=") if (folder / file).is_file() else ""


def _csv_of(stem: Path, part: str, folder: Path) -> str:
    """Return the address of a table's file, which is the experiment's main one where it has no own."""
    return _link_to_csv(stem, part or "table", folder) or _link_to_csv(stem, "", folder)


def _link_to_csv(stem: Path, part: str, folder: Path) -> str:
    """Return the address of a table's file, compressed or not; empty if there is none."""
    return _link(beside(stem, part, ".csv"), folder) or _link(beside(stem, part, ".csv.gz"), folder)


def _figures(found: Findings, folder: Path) -> list[dict[str, object]]:
    stem = Path(found.stem)
    figures: list[dict[str, object]] = []
    for figure in found.outcome.figures:
        pictures = [beside(stem, figure.name, ending) for ending in _SHOWN]
        picture = next((one for one in pictures if (folder / one).is_file()), None)
        if figure.points.empty or picture is None:
            continue
        points = _link_to_csv(stem, points_name(figure), folder)
        size = _size(folder / picture)
        figures.append({"title": figure.title, "picture": _link(picture, folder), "size": size, "points": points})
    return figures


def _size(picture: Path) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG; with them, a page does not move while it loads."""
    if picture.suffix != ".png":
        return None
    with picture.open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    return width, height


# The jobs of an experiment as the page lists them, and the rows of this list behind a number.

# Enough of seconds to compare them.
_DIGITS = 3


class Column(TypedDict):
    """A column with each value once: row i has the value ``of[at[i]]``.

    Where `at` is empty, all rows have the only value, or each its own.
    """

    name: str
    of: list[Json]
    at: list[int]


class JobList(TypedDict):
    """One row for each job: status, labels, seconds, number of its environment in the provenance, and key."""

    length: int
    columns: list[Column]


def job_list(found: Findings) -> JobList:
    """Return the jobs of an experiment, by columns."""
    environments = computed_with(found.records)
    number_of = {
        record.job.key: environments.index(environment_of(record)) + 1 for record in found.records if record.provenance
    }
    rows = found.rows
    seconds = rows["seconds"].tolist() if "seconds" in rows else [None] * len(rows)
    jobs = rows["job"].tolist()
    return {
        "length": len(rows),
        "columns": [
            _column("status", rows["status"].tolist()),
            *(_column(label, rows[label].tolist()) for label in found.labels),
            _column("seconds", [_rounded(value) for value in seconds]),
            _column("computed with", [number_of.get(key) for key in jobs]),
            _column("key", [key[:SHORT_KEY] for key in jobs]),
        ],
    }


def rows_behind(found: Findings, keys: Sequence[str]) -> list[int]:
    """Return the rows of the list of jobs that have these keys."""
    wanted = set(keys)
    return [place for place, key in enumerate(found.rows["job"]) if key in wanted]


def as_ranges(places: list[int]) -> str:
    """Return ascending whole numbers as text, with consecutive ones as a range, for example ``0-3 7``."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1][1:] = [place]
        else:
            runs.append([place])
    return " ".join("-".join(map(str, run)) for run in runs)


def _column(name: str, values: Sequence[Any]) -> Column:
    plain = [_plain(value) for value in values]
    # True and 1 are equal, and yet two values.
    texts = [json.dumps(value) for value in plain]
    distinct = dict(zip(texts, plain, strict=True))
    place = {text: number for number, text in enumerate(distinct)}
    at = [place[text] for text in texts] if 1 < len(place) < len(texts) else []
    return {"name": name, "of": [*distinct.values()], "at": at}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds:.{_DIGITS}g}")


def _plain(value: Any) -> Json:
    """Return a value that JSON can represent."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False)
    plain: Json = value.item() if hasattr(value, "item") else value
    return plain
