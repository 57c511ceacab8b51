"""Pages in HTML, one for each experiment, and what a run keeps for them; a page needs no network."""

from __future__ import annotations

import contextlib
import json
import math
import operator
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, unquote

from markupsafe import Markup, escape

from trimbench.reproduction.data.cache import is_inside
from trimbench.reproduction.execution.job import COUNT, FLAG, NOTHING, POSITIVE, TEXT, fields, list_of
from trimbench.reproduction.execution.store import commit_of, computed_with, environment_of, provenance
from trimbench.reproduction.files import as_it_was, beside, read_bytes, read_csv, unlinked
from trimbench.reproduction.messages import reason, visible
from trimbench.reproduction.project import DISTRIBUTION, per_project, project
from trimbench.reproduction.reporting.tables import asked, heading, numeric_columns, printable, reproduced_text
from trimbench.reproduction.reporting.verdicts import (
    CAUSES,
    DIFFERENCES,
    ELSEWHERE,
    NOT_ATTEMPTED,
    STANDINGS,
    VERDICTS_ON,
    Counted,
    Judgement,
    causes_in_words,
    in_words,
    once,
    standing,
)
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.figures import points_name
from trimbench.reproduction.vocabulary.numbers import Number, Probability
from trimbench.reproduction.vocabulary.planning import Findings
from trimbench.reproduction.vocabulary.reported import Literature, Paper
from trimbench.reproduction.vocabulary.tables import Table

if TYPE_CHECKING:
    import jinja2
    import pandas as pd


def render(template: str, **values: object) -> str:
    """Render a template, from the project's folder or from ``page`` in this one, with these values.

    A template extends ``base.html``, which needs `facts` (see `facts_of`), and fills its blocks: ``title``, ``lead``,
    ``nav`` and ``main``. The macros in ``macros.html`` make tables that can be sorted and filtered, and that become
    cards on a phone. All values are escaped; a name that the template uses but that is not given is an error.
    """
    return _environment().get_template(template).render(values, command=project().command)


def facts_of(*own: str, written: Iterable[str] = (), computed: Iterable[str] = ()) -> list[str]:
    """Return what the foot of a page says about its origin; `written` has commits, by default the present one."""
    where = provenance()
    first, last = (" and ".join(dict.fromkeys(commits)) for commits in (computed, written or [commit_of(where)]))
    return [
        *own,
        f"{DISTRIBUTION} {where[DISTRIBUTION] or 'of unknown version'}",
        *([f"computed with commit {first}"] if first not in ("", last) else []),
        f"written with commit {last}",
        f"Python {where['python']}",
        str(where["time"])[:10],
    ]


def anchor(name: str) -> str:
    """Return a name as the anchor of its part of a page."""
    return re.sub(r"[^\w.-]+", "-", name)


def count(number: int, noun: str) -> str:
    """Return a number with its noun, for example ``1,234 jobs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table_part(table: Table, data: Mapping[str, str] | None = None) -> dict[str, object]:
    """Return a table as the macro ``table`` takes it: title, columns and rows of cells; `data` has titles for names."""
    texts = printable(table).replace({"data": data or {}})
    values = table.frame.astype(object).to_numpy().tolist()
    return {
        "title": table.title,
        "columns": [*zip(texts.columns, numeric_columns(table), strict=True)],
        "rows": [[*map(_cell, *row)] for row in zip(values, texts.to_numpy().tolist(), strict=True)],
    }


def table_parts(part: Part) -> list[dict[str, object]]:
    """Return the tables of a filled part for that macro, with their files; ConfigurationError if one cannot be."""
    names = _text_of(part["name"], "names")
    try:
        return [{**table_part(one["table"], names), "file": one["file"]} for one in part["tables"]]
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"a table of {part['name']} cannot be shown: {reason(error)}") from error


def _cell(value: object, text: str) -> dict[str, object]:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    known = number is not None and math.isfinite(number)
    # To sort by; the CSV has every digit.
    return {"text": text, "is_number": number is not None, "value": f"{number:.6g}" if known else ""}


def assets() -> dict[str, str]:
    """Return the style and the script that the pages of a run share, by the names of their files."""
    return {name: _text(name) for name in ("page.css", "page.js")}


def _text(name: str) -> str:
    ours = project().pages
    if ours and (ours / name).is_file():
        return (ours / name).read_text(encoding="utf-8")
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


@per_project
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # lists of jobs are long
    # Style and script are our own; everything else on a page is escaped.
    environment.globals |= {"style": Markup(assets()["page.css"]), "script": Markup(assets()["page.js"])}
    return environment


def _prose(text: str) -> Markup:
    return Markup(re.sub(r"(?<!`)`+([^`]+)`+", r"<code>\1</code>", str(escape(text))))


def _breakable(name: str) -> Markup:
    """Return a name as HTML that may break after a slash or an underscore."""
    return Markup(re.sub("([/_])", r"\1<wbr>", str(escape(name))))


def _named(text: str, names: Mapping[str, str]) -> str:
    words = [
        names.get(one) or " ".join(names.get(word, heading(word)) for word in one.split()) for one in text.split("/")
    ]
    return ": ".join(words)


_FILTERS: dict[str, Callable[..., str]] = {
    "anchor": anchor,
    "count": count,
    "prose": _prose,
    "breakable": _breakable,
    "named": _named,
    "page": lambda name, suffix: f"{quote(name + suffix)}.html",
}


# The page of a run: what was reproduced, what differs and why, and every table and figure with its jobs.

# A value of the template.
_Shown: TypeAlias = Mapping[str, Any]
# The page of findings on the paper of a family, from the folder of a run in a clone.
_FINDINGS = "../../docs/findings/{}.md"


@per_project
def _texts() -> Mapping[str, Mapping[str, Any]]:
    """Return the project's texts about each paper, by family."""
    import yaml

    ours = project().pages
    file = ours and ours / "papers.yaml"
    return dict(yaml.safe_load(file.read_text(encoding="utf-8"))) if file and file.is_file() else {}


def _text_of(name: str, kind: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _texts().get(_family(name), {}).get(kind, {})
    return found


def render_pages(
    parts: Sequence[Part],
    literature: Literature,
    *,
    run: str,
    profile: str,
    folder: Path,
    place: Path | None = None,
    suffix: str = "",
    alone: bool = False,
) -> dict[str, str]:
    """Return the pages of a run by name: ``index``, one for each paper, and one for each experiment.

    Papers and tables are in their order, then come the experiments beyond the papers. A page belongs in the file
    ``<name><suffix>.html`` beside the `assets`, in the `folder` of the files that it shows; `place` is where that will
    stand, if elsewhere. With `alone`, there are only the pages of experiments, without links to others.
    """
    by_name = {part["name"]: part for part in parts}
    ordered = [by_name[name] for name in literature.in_order(by_name)]
    judged = [(part, one) for part in ordered if not part["altered"] for one in enumerate(part["numbers"])]
    accounts: dict[tuple[str, ...], str] = {}
    numbers = [_number(place, part, number, literature, accounts) for part, (place, number) in judged]
    experiments = [_experiment(filled(part, folder), literature, numbers, profile) for part in ordered]
    compared: dict[str, list[_Shown]] = defaultdict(list)
    for one in experiments:
        if one["n_reported"]:
            compared[_family(one["name"])].append(one)
    papers = {name: _paper(name, literature, own, profile, place or folder) for name, own in compared.items()}
    is_elsewhere = profile == ELSEWHERE  # the numbers were computed, not by jobs
    common = {"profile": profile, "suffix": suffix, "alone": alone, "behind": "values" if is_elsewhere else "jobs"}

    def facts(*written: Part) -> list[str]:
        computed = [commit for part in written for commit in part.get("computed", ())]
        own = [f"run {run}", *([] if is_elsewhere else [f"profile {profile}"])]
        return facts_of(*own, written=[part["commit"] for part in written], computed=computed)

    found = {one["standing"] for one in numbers}
    first = {
        "papers": [*papers.values()],
        "beyond": [one for one in experiments if not one["n_reported"]],
        "numbers": numbers,
        "standings": {name: says for name, says in STANDINGS.items() if name in found},
    }
    pages = {} if alone else {"index": render("run.html", up="", facts=facts(*parts), **first, **common)}
    for paper in () if alone else papers.values():
        how = {"facts": facts(*paper["experiments"]), "here": by_name, **common}
        pages[paper["page"]] = render("paper.html", up="", paper=paper, **how)
    for one in experiments:
        name, up = one["name"], "../" * one["name"].count("/")
        how = {"paper": papers.get(_family(name)), "facts": facts(one), **common}
        pages[name] = render("experiment.html", up=up, experiment=one, **how)
    return pages


def counted(part: Part) -> list[Counted]:
    """Return what tallies count of a part."""
    return once([Counted(*(one[key] for key in Counted._fields)) for one in part["numbers"]])


def _family(name: str) -> str:
    return name.split("/")[0]


def _paper_of(family: str, literature: Literature) -> Paper:
    return literature.papers.get(family) or Paper(title=family, citation=family)


def _number(
    place: int, part: Part, number: Part, literature: Literature, accounts: dict[tuple[str, ...], str]
) -> _Shown:
    """Return a number with its anchor and, if it differs, the anchor of the reason on the page of its paper."""
    names, family = _text_of(part["name"], "names"), _family(part["name"])
    account = (family, number["cause"] or "", number["reason"])
    return {
        **number,
        "id": f"n{place}",
        "experiment": part["name"],
        "table": literature.table(part["name"]) or part["name"],
        "paper": _paper_of(family, literature).title,
        "row": _named(number["row"], names),
        "quantity": _named(number["quantity"], names),
        "standing": standing(number["subject"], number["verdict"], number["cause"]),
        "why": accounts.setdefault(account, f"why-{len(accounts)}") if number["differs"] else "",
    }


def _by_account(numbers: Sequence[_Shown]) -> list[_Shown]:
    """Return the reasons for differences, each with its numbers: explanations first, what is open last."""
    of_each: dict[str, list[_Shown]] = defaultdict(list)
    for number in numbers:
        if number["differs"]:
            of_each[number["why"]].append(number)
    groups: list[_Shown] = []
    for why, ours in of_each.items():
        # Without the words that the heading repeats.
        said = ours[0]["reason"].removeprefix("inferred set-up: ")
        groups.append({"id": why, "standing": ours[0]["standing"], "reason": said, "numbers": ours})
    order = [*STANDINGS, "longer time"]
    return sorted(groups, key=lambda group: (order.index(group["standing"]), -len(group["numbers"])))


def _paper(family: str, literature: Literature, experiments: Sequence[_Shown], profile: str, folder: Path) -> _Shown:
    paper = _paper_of(family, literature)
    ours = [one for experiment in experiments for one in experiment["counted"]]
    findings = _FINDINGS.format(family)
    return {
        "page": f"paper_{family}",
        "paper": paper,
        "citation": paper.citation.partition(", doi:")[0],
        **{"doi": "", "short": {}, "names": {}, **_texts().get(family, {})},
        "findings": findings if (folder / findings).is_file() else "",
        "tables": {name: literature.table(name) for name in literature.experiments},
        "not_run": {
            name: said.reason
            for name, said in paper.statements.items()
            if said.reason and name.startswith(("Table", "Figure"))
        },
        "experiments": experiments,
        "outcome": in_words(ours, profile=profile),
        "because": causes_in_words(ours),
        "reasons": _by_account([number for experiment in experiments for number in experiment["numbers"]]),
        "tally": sum((experiment["tally"] for experiment in experiments), Counter()),
    }


def _experiment(part: Part, literature: Literature, numbers: Sequence[_Shown], profile: str) -> _Shown:
    name, compared = part["name"], [] if part["altered"] else counted(part)
    own = [one for one in numbers if one["experiment"] == name]
    return {
        **part,
        "tables": table_parts(part),
        "numbers": own,
        "id": anchor(name),
        "table": literature.table(name),
        "title": literature.table(name) or _text_of(name, "beyond").get(name, name),
        "status": "" if part["status"] == "complete" else part["status"],
        "n_reported": len(part["numbers"]),
        "counted": compared,
        "tally": Counter(standing(one.subject, one.verdict, one.cause) for one in compared),
        "outcome": in_words(compared, profile=profile),
        "side_by_side": _side_by_side(own),
    }


def _side_by_side(numbers: Sequence[_Shown]) -> _Shown:
    """Return numbers in the shape of the paper's table: its columns, and for each row a number or None in each."""
    columns = list(dict.fromkeys(number["quantity"] for number in numbers))
    found = {(number["row"], number["quantity"]): number for number in numbers}
    rows = dict.fromkeys(number["row"] for number in numbers)
    return {"columns": columns, "rows": [(row, [found.get((row, column)) for column in columns]) for row in rows]}


# What the page of a run shows of one experiment; it is kept in the .json, without the content of tables and rows.

# The formats that a browser shows as pictures.
SHOWN = (".png", ".svg")
# Enough of a job's key to find its record in the store; the rows have all of it.
SHORT_KEY = 12


def read_texts(path: Path) -> pd.DataFrame:
    """Read a table of a run with its cells as text."""
    try:
        return read_csv(path)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"runs: {path} cannot be read ({error}); write it again with task=report") from error


# Only JSON values, so that what is read is what was written.
Part: TypeAlias = Mapping[str, Any]
# The most numbers of an experiment, all of which are in one table; and the pattern of a row, or of a range of rows.
_MOST_NUMBERS, _RUN = 500, "[0-9]{1,9}(-[0-9]{1,9})?"


def _are_ranges(text: str) -> bool:
    ends = [int(end) for end in re.findall("[0-9]+", text)]
    return bool(re.fullmatch(rf"({_RUN}( {_RUN})*)?", text)) and ends == sorted({*ends})


def _is_judged(number: Part) -> bool:
    subject, verdict, differs = number["subject"], number["verdict"], number["verdict"] in DIFFERENCES
    causes = CAUSES if differs and subject != "time" else (None,)
    known = subject in VERDICTS_ON and verdict in (*VERDICTS_ON[subject], NOT_ATTEMPTED)
    return known and number["differs"] is differs and number["cause"] in causes


_FILE = TEXT.when("the address of a file of the run", lambda a: is_inside(b := unquote(a)) and _address(Path(b)) == a)
_LINK = TEXT.when("empty", operator.not_) | _FILE
_CSV = _FILE.when("the address of a table of the run", lambda link: link.endswith((".csv", ".csv.gz")))
_RANGES = TEXT.when("rows in ascending order, such as '0-3 7'", _are_ranges)
_FORMAT = TEXT.when("a format of numbers of a few digits, such as '.3f'", lambda spec: not re.search("[0-9]{3}", spec))
_SIZE = NOTHING | list_of(COUNT).when("width and height", lambda size: len(size) == 2)
_NUMBER = fields(
    **dict.fromkeys(("cell", "row", "quantity", "subject", "reported", "source", "ours", "verdict", "reason"), TEXT),
    **dict.fromkeys(("reading", "inferred", "probability"), TEXT),
    differs=FLAG,
    cause=NOTHING | TEXT,
    n_jobs=COUNT,
    jobs=_RANGES,
    **{"replications*": COUNT, "deviation*": POSITIVE},
).when("a number with its verdict", _is_judged)
PAGE = {
    **dict.fromkeys(("name", "status", "error", "about", "commit"), TEXT),
    **dict.fromkeys(("altered", "notes", "computed*"), list_of(TEXT)),
    "numbers": list_of(_NUMBER).when(f"at most {_MOST_NUMBERS} numbers", lambda found: len(found) <= _MOST_NUMBERS),
    "figures": list_of(fields(title=TEXT, picture=_LINK, size=_SIZE, points=_LINK)),
    "tables": list_of(fields(title=TEXT, file=_CSV, formats=fields(**{"*": _FORMAT}), texts=list_of(TEXT))),
    "jobs": NOTHING
    | fields(file=_CSV, labels=list_of(TEXT), texts=list_of(TEXT), **{"computed with": list_of(_RANGES)}),
    "provenance": _LINK,
}


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
    """Return what the page of a run shows of an experiment, with links to the files that it finds in `folder`.

    In place of tables and jobs it has what `filled` needs to read their files.
    """
    found = entry.findings
    part: dict[str, Any] = {
        "name": entry.name,
        "status": entry.status,
        "error": entry.error,
        "about": entry.about,
        "altered": list(entry.altered),
        "commit": commit_of(provenance()),
        "numbers": [_number_parts(found, one) for one in entry.judgements],
    }
    if found is None:
        return part | {"figures": [], "tables": [], "notes": [], "jobs": None, "provenance": ""}
    stem = Path(found.stem)
    tables = [table for table in found.outcome.tables if table.listed and len(table.frame)]
    return part | {
        "computed": [*map(commit_of, computed_with(found.records))],
        "figures": _figures(found, folder),
        "tables": [
            {
                "title": table.title,
                "file": _link_to_csv(stem, table.name or "table", folder) or _link_to_csv(stem, "", folder),
                "formats": dict(table.formats),
                "texts": texts_of(table.frame),
            }
            for table in tables
        ],
        "notes": found.notes,
        "jobs": {
            "file": _link_to_csv(stem, "rows", folder),
            "labels": list(found.labels),
            "texts": texts_of(found.rows[list(found.labels)]),
            "computed with": _environments(found),
        },
        "provenance": _address(beside(stem, "", ".json")),
    }


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns that have only text, which a reader must not take for numbers."""
    return [str(name) for name, column in frame.items() if len(column) and all(type(v) is str for v in column.tolist())]


def filled(part: Part, folder: Path) -> Part:
    """Return a part of the page with its tables and its list of jobs, from the files in `folder` that it names."""
    tables = [
        Table(one["title"], read_cells(_file_of(one["file"], folder), one["texts"]), one["formats"])
        for one in part["tables"]
    ]
    jobs = part["jobs"] and job_list(part["jobs"], folder)
    _check_rows([number["jobs"] for number in part["numbers"]], jobs["length"] if jobs else 0)
    return {
        **part,
        "tables": [{"table": table, "file": one["file"]} for table, one in zip(tables, part["tables"], strict=True)],
        "jobs": jobs,
    }


def _file_of(address: str, folder: Path) -> Path:
    try:
        return unlinked(folder / unquote(address), folder)
    except ValueError as error:
        raise ConfigurationError(f"runs: {error}") from error


def read_cells(path: Path, texts: Sequence[str], only: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table as it was written: cells become numbers, booleans or None, except in the columns `texts`."""
    import pandas as pd

    frame = read_texts(path)
    columns: dict[Any, pd.Series[Any]] = {}
    for place, name in enumerate(frame):
        if only is not None and name not in only:
            continue
        cells = [as_it_was(cell) for cell in frame.iloc[:, place].tolist()]
        values = cells if name in texts else [_value(cell) for cell in cells]
        kinds = {type(value) for value in values}
        # Whole numbers beside missing values stay whole.
        dtype = int if kinds == {int} else float if kinds <= {float, type(None)} else object
        columns[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def _value(cell: str) -> Json:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(cell)
    return {"": None, "True": True, "False": False}.get(cell, cell)


def _number_parts(found: Findings | None, one: Judgement) -> dict[str, object]:
    number, inferred = one.number, one.explanation
    known = found is not None and number is not None and one.verdict != "not attempted"
    others = inferred.jobs if inferred and one.differs else ()
    places = rows_behind(found, (*number.jobs, *others)) if known and found and number else []
    return {
        "cell": one.reported.label,
        "row": one.reported.row,
        "quantity": one.reported.quantity,
        "subject": one.subject,
        "reported": asked(one.reported),
        "source": one.reported.source,
        "ours": reproduced_text(one),
        "verdict": one.verdict,
        "differs": one.differs,
        "cause": one.cause,
        "reason": one.account if one.differs else one.reason,
        "reading": one.reading,
        "inferred": f"{inferred.value:.4g}" if inferred and one.differs else "",
        "probability": _chance(number.probability, one) if number and number.probability else "",
        "n_jobs": len(places),
        "jobs": as_ranges(places),
        **_noise(number),
    }


def _noise(number: Number | None) -> dict[str, float]:
    interval = number.interval if number else None
    known = interval is not None and interval.n > 1 and math.isfinite(interval.deviation)
    return {"replications": interval.n, "deviation": interval.deviation} if interval and known else {}


def _chance(found: Probability, one: Judgement) -> str:
    setup = "the inferred set-up" if found.setup else "the stated set-up" if one.cause == "explained" else ""
    return f"{found.value:.2g}" + (f" with {setup}" if setup else "")


def _link(file: Path, folder: Path) -> str:
    return _address(file) if (folder / file).is_file() else ""


def _address(file: Path) -> str:
    return quote(file.as_posix(), safe="/,=")


def _link_to_csv(stem: Path, part: str, folder: Path) -> str:
    return _link(beside(stem, part, ".csv"), folder) or _link(beside(stem, part, ".csv.gz"), folder)


def _figures(found: Findings, folder: Path) -> list[dict[str, object]]:
    stem = Path(found.stem)
    figures: list[dict[str, object]] = []
    for figure in found.outcome.figures:
        pictures = [beside(stem, figure.name, ending) for ending in SHOWN]
        picture = next((one for one in pictures if (folder / one).is_file()), None)
        if figure.points.empty or picture is None:
            continue
        points = _link_to_csv(stem, points_name(figure), folder)
        size = _size(folder / picture)
        figures.append({"title": figure.title, "picture": _link(picture, folder), "size": size, "points": points})
    return figures


def _size(picture: Path) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG, so that a page does not shift while it loads."""
    if picture.suffix != ".png":
        return None
    width, height = struct.unpack(">II", read_bytes(picture)[16:24])
    return width, height


# The jobs of an experiment as the page lists them, and the rows of this list behind a number.

# Digits of seconds, enough to compare them.
_DIGITS = 3


def job_list(about: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the jobs of an experiment from the file with its rows: status, labels, seconds, environment and key.

    A column has each value once: row i has the value ``of[at[i]]``. Where `at` is empty, all rows have the only value,
    or each its own.
    """
    labels, path, environments = about["labels"], _file_of(about["file"], folder), about["computed with"]
    rows = read_cells(path, [*about["texts"], "status", "job"], [*labels, "status", "seconds", "job"])
    if absent := {*labels, "status", "job"} - {*rows}:
        raise ConfigurationError(f"{path} must have the column {min(absent)[:80]!r}; task=report writes it again")
    _check_rows(environments, len(rows))
    number_of = {row: number for number, ranges in enumerate(environments, start=1) for row in in_ranges(ranges)}
    seconds = rows["seconds"].tolist() if "seconds" in rows else [None] * len(rows)
    columns: dict[str, list[Any]] = {
        "status": rows["status"].tolist(),
        **{label: rows[label].tolist() for label in labels},
        "seconds": [float(f"{one:.{_DIGITS}g}") if type(one) in (int, float) else None for one in seconds],
        "computed with": [number_of.get(row) for row in range(len(rows))],
        "key": [key[:SHORT_KEY] for key in rows["job"]],
    }
    return {
        "length": len(rows),
        "file": about["file"],
        "columns": [_column(name, values) for name, values in columns.items()],
    }


def _environments(found: Findings) -> list[str]:
    environments = computed_with(found.records)
    place = {one.job.key: environments.index(environment_of(one)) for one in found.records if one.provenance}
    numbers = [place.get(key) for key in found.rows["job"]]
    return [as_ranges([row for row, one in enumerate(numbers) if one == at]) for at in range(len(environments))]


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


def in_ranges(text: str) -> Iterator[int]:
    """Yield the whole numbers that `as_ranges` wrote."""
    for run in text.split():
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _check_rows(ranges: Iterable[str], n_rows: int) -> None:
    last = max((int(re.split("[ -]", text)[-1]) for text in ranges if text), default=-1)
    if last >= n_rows:
        raise ConfigurationError(f"jobs on a page must be among its {n_rows} rows, got {last}; task=report writes both")


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    plain = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    # True and 1 are equal but different values, so their JSON is compared.
    texts = [json.dumps(value) for value in plain]
    distinct = dict(zip(texts, plain, strict=True))
    place = {text: number for number, text in enumerate(distinct)}
    at = [place[text] for text in texts] if 1 < len(place) < len(texts) else []
    return {"name": name, "of": [*distinct.values()], "at": at}
