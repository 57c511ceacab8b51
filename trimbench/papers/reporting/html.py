"""Pages in HTML: one skeleton, style and script for all of them; a page needs no network."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from trimbench.papers.execution.provenance import provenance
from trimbench.papers.reporting.tables import heading, printable
from trimbench.papers.study.tables import Table

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


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    room = files("trimbench.papers.reporting") / "page"

    def text(name: str) -> str:
        return (room / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _FILTERS
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}  # lists of jobs are long
    # Style and script are our own; everything else on a page is escaped.
    environment.globals |= {"style": Markup(text("page.css")), "script": Markup(text("page.js"))}
    return environment


def _prose(text: str) -> Markup:
    """Return text as HTML, with the parts between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", str(escape(text))))


def _breakable(name: str) -> Markup:
    """Return a name as HTML that may break after a slash or an underscore."""
    from markupsafe import Markup, escape

    return Markup(re.sub("([/_])", r"\1<wbr>", str(escape(name))))


_FILTERS: dict[str, Callable[..., str]] = {
    "anchor": anchor,
    "count": count,
    "prose": _prose,
    "breakable": _breakable,
    "words": heading,
}
