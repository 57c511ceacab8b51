"""Names that mean something to Markdown, LaTeX or HTML are shown as they are."""

from __future__ import annotations

import html.parser
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.page import render_pages
from trimbench.papers.reporting.runs import read_about, write_findings
from trimbench.papers.reporting.tables import heading, latex, markdown, markdown_text
from trimbench.papers.vocabulary.reported import Literature
from trimbench.papers.vocabulary.tables import Table

from .builders import findings, line_figure, record

NAMES = [
    *("a|b", "a\\|b", "a\\", "\\", "`code", "$x$", "a&b", "&lt;", "&#60;", "50%", "#1", "_x_", "__x__", "x_", "{y}"),
    *("*b*", "2**36", "~~a~~", "<script>alert(1)</script>"),
    *("<!-- -->", "<http://e>", "![x](http://e)", "[l](http://e)"),
]
BROKEN = ["two\nlines", "two\r\n\r\nlines", "two\u2028lines", "two\x00\x1blines", "two\u202elines"]


class _Cells(html.parser.HTMLParser):
    """The texts of the cells of a page, and the tags in them."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.inside: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("td", "th", "h2"):
            self._open = True
            self.cells.append("")
        elif self._open:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th", "h2")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1] += data


def cells(page: str) -> list[str]:
    found = _Cells()
    found.feed(page)
    assert found.inside == []
    return found.cells


def rendered(text: str) -> list[str]:
    return cells(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


@pytest.mark.parametrize("name", NAMES)
def test_markdown_shows_names_as_they_are(name: str) -> None:
    table = Table("", pd.DataFrame({name: [name, "end"]}), {})
    assert rendered(markdown(table)) == [heading(name).strip(), name, "end"]
    assert rendered(f"## {markdown_text(name)}\n") == [name]


@given(st.text("ab_*`~\\|<>&;[]()!$# 1.-", min_size=1).map(str.strip).filter(bool))
def test_markdown_shows_any_text_as_it_is(name: str) -> None:
    shown = " ".join(name.split())
    assert rendered(markdown(Table("", pd.DataFrame({"name": [name]}), {}))) == ["name", shown]


@pytest.mark.parametrize("name", BROKEN)
def test_no_name_ends_its_line(name: str) -> None:
    table = Table(name, pd.DataFrame({name: [name]}), {})
    assert rendered(markdown(table)) == ["two lines", "two lines"]
    text = latex(table, "x")
    assert r"\caption{two lines}" in text
    assert len(re.findall(r"^ two lines +\\\\$", text, re.MULTILINE)) == 2
    assert re.search(r"[^\n -~]", text) is None


@pytest.mark.parametrize("name", NAMES)
def test_latex_has_no_sign_of_its_own_in_a_name(name: str) -> None:
    text = latex(Table("", pd.DataFrame({"a": ["x" + name]}), {}), "t")
    (line,) = (line for line in text.splitlines() if " x" in line)
    body = line.removesuffix(r"\\")
    plain = re.sub(r"\\[&%$#_{}]|\\\^\{\}|\\text\w+\{\}|\\ensuremath\{[|<>]\}", "", body)
    assert re.search(r"[\\&%$#_{}^~]", plain) is None


def test_notes_show_names_in_their_line(tmp_path: Path) -> None:
    found = findings(records=[record(0)], figures=())
    sentences = [f"What to keep: {name}, and no more." for name in (*NAMES, "two\nlines", "[l](javascript:alert(1))")]
    sentences += ["[a]: http://evil.example", "see [a]"]
    sentences += ["# 1", "> 2", "- 3", "4. 5", "12) 6", "+ 7", "---", "-1", "1.5"]
    found = replace(found, outcome=replace(found.outcome, notes=sentences))
    write_findings(found, (), tmp_path, FigureSettings(), drawn=False)
    (file,) = tmp_path.rglob("*.md")
    notes = (
        MarkdownIt("commonmark").enable(["strikethrough"]).render(file.read_text(encoding="utf-8").split("## Notes")[1])
    )
    shown = [one.replace("two\nlines", "two lines") for one in sentences]
    assert [html.unescape(one) for one in re.findall(r"<li>([^<>]*)</li>", notes)] == shown


def test_files_and_page_of_an_experiment_show_names(tmp_path: Path) -> None:
    table = Table.of(NAMES[0], [{"name": name, "value": 1} for name in NAMES], ["name", "value"])
    points = pd.DataFrame({"series": NAMES, "x": 1, "y": 2})
    found = findings(tables=(table,), records=[record(0)], figures=(line_figure(points, title="<b>|`_x_`"),))
    write_findings(found, (), tmp_path, FigureSettings(), drawn=False)
    (file,) = tmp_path.rglob("*.md")
    assert {NAMES[0], *NAMES} <= set(rendered(file.read_text(encoding="utf-8")))
    part = {**read_about(tmp_path, "family/one")["page"], "about": "<b>"}
    page = _Cells()
    made = render_pages([part], Literature({}, {}), run="<i>", profile="quick", folder=tmp_path)
    page.feed(made["family/one"])
    assert set(NAMES) <= set(page.cells)
    assert set(page.inside) <= {"code", "wbr", "span", "a"}
