"""Pages in HTML, one for each experiment, and what a run keeps for them; a page needs no network."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from markupsafe import Markup, escape

from trimbench.reproduction.configuration import has_profiles
from trimbench.reproduction.execution.provenance import commit_of, provenance
from trimbench.reproduction.messages import reason, visible
from trimbench.reproduction.project import DISTRIBUTION, per_project, project
from trimbench.reproduction.reporting.certificate import audited_line
from trimbench.reproduction.reporting.parts import Part, filled
from trimbench.reproduction.reporting.tables import heading, numeric_columns, printable
from trimbench.reproduction.reporting.verdicts import (
    ELSEWHERE,
    STANDINGS,
    Counted,
    causes_in_words,
    in_all,
    in_words,
    made_of,
    once,
    standing,
)
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.reported import Literature, Paper
from trimbench.reproduction.vocabulary.tables import Table

if TYPE_CHECKING:
    import jinja2


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
    first, last = (", ".join(dict.fromkeys(commits)) for commits in (computed, written or [commit_of(where)]))
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
    named = profile if has_profiles() else ""
    common = {"profile": named, "suffix": suffix, "alone": alone, "behind": "values" if is_elsewhere else "jobs"}

    def facts(*written: Part) -> list[str]:
        computed = [commit for part in written for commit in part.get("computed", ())]
        own = [f"run {run}", *([] if is_elsewhere or not named else [f"profile {profile}"])]
        ours = [number for part in written for number in part["numbers"]]
        if n := sum(bool(number.get("elsewhere")) for number in ours):
            own.append(f"of {count(len(ours), 'number')} {n:,} rest on records computed elsewhere")
        if said := audited_line(folder, place or folder):
            own.append(said.removesuffix("."))
        return facts_of(*own, written=[part["commit"] for part in written], computed=computed)

    found = {one["standing"] for one in numbers}
    first = {
        "papers": [*papers.values()],
        "beyond": [one for one in experiments if not one["n_reported"]],
        "numbers": numbers,
        "has_times": any(one["subject"] == "time" for one in numbers),
        "glossary": {word: says for one in _texts().values() for word, says in one.get("glossary", {}).items()},
        "heading": project().title if project().is_folder else "",
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
        "said": {name: made_of(name, compared) for name in STANDINGS},
        "outcome": in_words(compared, profile=profile),
        "in_all": in_all(compared),
        "side_by_side": _side_by_side(own),
    }


def _side_by_side(numbers: Sequence[_Shown]) -> _Shown:
    """Return numbers in the shape of the paper's table: its columns, and for each row a number or None in each."""
    columns = list(dict.fromkeys(number["quantity"] for number in numbers))
    found = {(number["row"], number["quantity"]): number for number in numbers}
    rows = dict.fromkeys(number["row"] for number in numbers)
    return {"columns": columns, "rows": [(row, [found.get((row, column)) for column in columns]) for row in rows]}
