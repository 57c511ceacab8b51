"""Tables as text, in Markdown and LaTeX; no cell is a formula to a spreadsheet, and any name is shown as it is."""

from __future__ import annotations

import csv
import html
import io
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.reproduction.reporting.builders import findings, judged, line_figure, record, reported
from trimbench.reproduction import files
from trimbench.reproduction.files import _tame, as_it_was, read_csv, write_csv
from trimbench.reproduction.reporting.figures.drawing import read_points, write_figures
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.page import render_pages
from trimbench.reproduction.reporting.runs import read_about, write_findings
from trimbench.reproduction.reporting.tables import (
    asked,
    comparison,
    differences,
    heading,
    latex,
    markdown,
    markdown_text,
    printable,
    side_by_side,
)
from trimbench.reproduction.reporting.verdicts import compare
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.numbers import Explanation, Number, Probability
from trimbench.reproduction.vocabulary.reported import Literature
from trimbench.reproduction.vocabulary.tables import Table

FRAME = pd.DataFrame({"name": ["a|b", "x_y & 50%"], "share": [0.25, math.nan], "n": [3, 4]})


def table(frame: pd.DataFrame, **formats: str) -> Table:
    return Table("", frame, formats)


def cells(line: str) -> list[str]:
    """Return the cells of a line as a reader of Markdown sees them."""
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_formats_and_missing_values() -> None:
    frame = pd.DataFrame({"a": [0.123456, math.nan, None], "b": ["x", None, "y"], "c": [1.5, 2.0, math.inf]})
    shown = printable(table(frame, a=".2f", b=".2f"))
    assert shown.to_dict("list") == {"a": ["0.12", "–", "–"], "b": ["x", "–", "y"], "c": ["1.5", "2.0", "inf"]}
    assert frame["a"].iloc[0] == 0.123456, "the frame itself is not changed"


def test_markdown() -> None:
    assert markdown(table(FRAME, share=".1%")).splitlines() == [
        "| name      |   share |   n |",
        "|-----------|---------|-----|",
        r"| a\|b      |   25.0% |   3 |",
        "| x_y & 50% |       – |   4 |",
    ]


@pytest.mark.parametrize("width", [45, 60, 80, 200])
def test_a_table_fits_the_terminal(width: int) -> None:
    texts = pd.DataFrame({"experiment": ["trimming/figure7", "x"], "share": [0.25, 123456.0], "why": ["no " * 40, "-"]})
    lines = markdown(table(texts, share=".3f"), width).splitlines()
    assert max(map(len, lines)) <= width
    shown = "".join(cell for line in lines for cell in cells(line))
    assert shown.count("no") == 40, "nothing is lost"
    assert any("123456.000" in line for line in lines), "numbers are whole"
    assert markdown(table(FRAME), 200) == markdown(table(FRAME))


def test_a_table_of_many_numbers_becomes_several_that_fit() -> None:
    numbers = pd.DataFrame([{"row": "a name", **{f"quantity {place}": 12345.678 + place for place in range(9)}}])
    parts = [part.splitlines() for part in markdown(table(numbers), 60).split("\n\n")]
    assert max(len(line) for part in parts for line in part) <= 60
    assert len(parts) > 1
    assert [cells(part[-1])[0] for part in parts] == ["a name"] * len(parts)
    assert sum(len(cells(part[-1])) - 1 for part in parts) == 9
    rows = [{"row": "a", "by": by, **dict.fromkeys("pqrs", 1e9)} for by in "xy"] + [{"row": "b", "by": "x", "p": 1e9}]
    parts = [part.splitlines() for part in markdown(table(pd.DataFrame(rows)), 60).split("\n\n")]
    assert [[cells(line)[:2] for line in part[2:]] for part in parts] == [
        [["a", "x"], ["a", "y"], ["b", "x"]],
        [["a", "x"], ["a", "y"]],
    ], "rows are told apart in each part, and those that are empty there are left out"


def test_empty_frames() -> None:
    without_rows = table(pd.DataFrame(columns=["a", "b"]))
    assert [cells(line) for line in markdown(without_rows).splitlines()[::2]] == [["a", "b"]]
    assert markdown(table(pd.DataFrame())) == ""


NUMBERS = [
    reported("a", "0.50"),
    reported("b", "0.50"),
    reported("c", "0.50"),
    reported("d", "timeout", "at_most", subject="time"),
]
JUDGEMENTS = judged(NUMBERS, {"a": 0.5, "b": 0.7, "c": None, "d": 12.0})


def test_comparison() -> None:
    compared = comparison(JUDGEMENTS).frame
    assert compared["cell"].tolist() == ["a/value", "b/value", "c/value", "d/value"]
    assert compared["verdict"].tolist() == ["exact", "differs", "not attempted", "faster"]
    assert compared["reason"].tolist()[1:3] == ["no reason is known", "not computed in this run"]
    assert compared["subject"].tolist() == ["number", "number", "number", "time"]
    assert compared["reported"].tolist() == ["0.50", "0.50", "0.50", "timeout"], "digits as printed"
    assert list(comparison([]).frame) == [
        *("source", "cell", "subject", "reported", "reproduced", "verdict", "reason"),
        *("cause", "explained_by", "explained_value", "probability"),
    ]
    assert compared["cause"].tolist() == ["", "unexplained", "", ""]
    assert comparison(compare(NUMBERS[:1], (), "no data")).frame["reason"].tolist() == ["no data"]


def test_differences_are_listed_with_their_reasons() -> None:
    found = differences(JUDGEMENTS).frame
    assert found.drop(columns=["explained_value", "probability"]).to_dict("records") == [
        {
            **{"cell": "b/value", "reported": "0.50", "reproduced": 0.7},
            **{"cause": "unexplained", "reason": "no reason is known"},
        }
    ]
    assert found[["explained_value", "probability"]].isna().all(axis=None)
    assert differences([]).frame.empty
    # Claims that fail and longer times are listed, too.
    numbers = [reported("a", "0", "at_least", subject="claim"), reported("b", "1.5", "at_most", subject="time")]
    assert differences(judged(numbers, {"a": -1.0, "b": 2.0})).frame["cell"].tolist() == ["a/value", "b/value"]
    assert differences(judged(numbers, {"a": 1.0, "b": 1.0})).frame.empty


def test_side_by_side_has_the_shape_of_the_papers_table() -> None:
    beside = side_by_side(JUDGEMENTS)
    assert list(beside.frame) == ["row", "value"]
    assert beside.frame["row"].tolist() == ["a", "b", "c", "d"]
    assert beside.frame["value"].tolist() == [
        "0.50 → 0.50",
        "0.50 → 0.70 (differs, unexplained)",
        "0.50 → –",
        "timeout → 12",
    ]
    numbers = [reported("a", "0.50", "at_least"), reported("b", "0.74", "within", tolerance=0.02)]
    found = side_by_side(judged(numbers, {"a": 0.75, "b": 0.75})).frame["value"]
    assert found.tolist() == ["0.50 → 0.75 (better)", "0.74 → 0.75 (close)"]


@pytest.mark.parametrize(
    ("printed", "rule", "shown"),
    [
        ("0.50", {"kind": "at_least"}, "0.50"),
        ("12.66", {"kind": "at_most", "subject": "time"}, "12.66"),
        ("0.000000", {"kind": "at_least", "subject": "claim"}, "≥ 0"),
        ("1.000", {"kind": "at_most", "subject": "claim"}, "≤ 1"),
        ("0.00", {"kind": "within", "tolerance": 0.02, "subject": "curve"}, "≤ 0.02"),
        ("0.00", {"kind": "within", "tolerance": 0.02, "subject": "claim"}, "0 ± 0.02"),
        ("4", {"kind": "exact", "subject": "claim"}, "4"),
    ],
)
def test_a_claim_in_words_is_not_shown_as_a_printed_number(printed: str, rule: dict[str, Any], shown: str) -> None:
    number = reported("a", printed, **rule)
    assert asked(number) == shown
    (cell,) = side_by_side(judged([number], {"a": 0.75})).frame["value"]
    assert cell.split(" → ")[0] == shown
    assert latex(side_by_side(judged([number], {"a": 0.75})), "tab:x").isascii()


def test_inferred_values_and_probabilities_are_columns() -> None:
    number = Number("a", "value", 9.0, explanation=Explanation("twice", 1.04), probability=Probability(0.25, 0.01))
    (line,) = comparison(compare([reported("a", "1.0")], [number])).frame.to_dict("records")
    assert (line["verdict"], line["cause"], line["explained_by"]) == ("differs", "explained", "twice")
    assert (line["explained_value"], line["probability"], line["reproduced"]) == (1.04, 0.25, 9.0)
    (difference,) = differences(compare([reported("a", "1.0")], [number])).frame.to_dict("records")
    assert difference["reason"] == "inferred set-up: twice"


GREEK = "ΑΒΓΔΕΖΗΘΙΚΛΜ ΝΞΟΠΡΣΤΥΦΧΨΩ αβγδεζηθικλμ νξοπρςστυφχψω"
SIGNS = "_ % & # → ± – — | < > $ { } ~ ^ \\ α Ω é − × ≤ \" '"


def test_a_table_is_an_environment_with_caption_and_label() -> None:
    frame = pd.DataFrame({"name": ["x_y & 50%", "z"], "the_share": [0.25, -0.5], "n": [3, 4]})
    text = latex(Table("Shares in %", frame, {"the_share": ".1%"}), "tab:family/one-table")
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Shares in \%}",
        r"\label{tab:family/one-table}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name & the share & n \\",
        r"\midrule",
        r"x\_y \& 50\% & 25.0\% & 3 \\",
        r"z & -50.0\% & 4 \\",
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5 → 0.4", r"0.5 \ensuremath{\to} 0.4"),
        ("±1 – 2", r"\ensuremath{\pm}1 -- 2"),
        ("P(x | α)", r"P(x \ensuremath{|} \ensuremath{\alpha})"),
        ("Γ−1", r"\ensuremath{\Gamma}\ensuremath{-}1"),
        ("λ Λ Αο", r"\ensuremath{\lambda} \ensuremath{\Lambda} Ao"),
        ("a_b#c$", r"a\_b\#c\$"),
        ("José Núñez", "José Núñez"),
    ],
)
def test_signs_in_cells_and_titles(text: str, expected: str) -> None:
    found = latex(Table(text, pd.DataFrame({"a": [text]})), "x")
    assert rf"\caption{{{expected}}}" in found
    assert f" {expected} " in found


def test_a_table_without_rows_declares_its_columns() -> None:
    assert r"\begin{tabular}{ll}" in latex(Table("", pd.DataFrame({"a": [], "b": []}, dtype=object)), "x")


def test_a_label_has_no_sign_of_latex() -> None:
    text = latex(Table("", pd.DataFrame({"a": [1]})), "tab:trimming/table6,name=Größe {x}~%")
    assert r"\label{tab:trimming/table6,name=Gr-e-x-}" in text


def test_what_is_longer_than_a_page_continues() -> None:
    text = latex(Table("Numbers", pd.DataFrame({"n": range(100)})), "tab:numbers")
    pages = text.count(r"\begin{table}")
    assert pages == text.count(r"\end{table}") == 3
    assert text.count(r"\label{tab:numbers}") == 1
    assert text.count(r"\addtocounter{table}{-1}") == text.count("(continued)") == pages - 1
    assert [int(found) for found in re.findall(r"^ *(\d+) ", text, re.MULTILINE)] == [*range(100)]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_takes_it(tmp_path: Path) -> None:
    words = {"text": [SIGNS * 3, "[0, 1]", "*"], **{f"column {i}": [-1.5, 1e-9, None] for i in range(30)}}
    tables = [
        Table(SIGNS, pd.DataFrame(words)),
        Table("", pd.DataFrame({"n": range(300)})),
        Table(GREEK, pd.DataFrame({"no": [], "rows": []})),
    ]
    text = "\n".join(latex(table, f"tab:{place}_ä") for place, table in enumerate(tables))
    packages = r"\usepackage{booktabs,graphicx}"
    whole = rf"\documentclass{{article}}{packages}\begin{{document}}{text}\end{{document}}"
    (tmp_path / "all.tex").write_text(whole, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-draftmode", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull \\hbox" not in done.stdout


FORMULAS = ["=1+2", "@SUM(A1)", "+cmd|'/c calc'!A1", "-3+cmd|x", "- 1+cmd|x", "-1\n", "\t=1", "\n=1", "＝1", "'=1"]
HARMLESS = ["-0.5", "+1e-3", ".5", "-", "a=b", "-inf", "", "'tis", "x;y=1", "a;-1;'b"]


@pytest.mark.parametrize(
    ("frame", "written"),
    [
        (
            pd.DataFrame([["=1;-2+x;-3", "a;'@b;"]], columns=["x;=SUM(A1)", "y"]),
            "x;'=SUM(A1),y\n'=1;'-2+x;-3,a;''@b;\n",
        ),
        (pd.DataFrame([["=1", 1, "a"]], columns=["=x", "y", "y"]), "'=x,y,y\n'=1,1,a\n"),
        (pd.DataFrame({"a": [1, None], "b": [0.1, 1e-17]}, dtype=object), "a,b\n1,0.1\n,1e-17\n"),
    ],
    ids=["where semicolons end cells", "headings that repeat", "numbers keep their digits"],
)
def test_no_cell_begins_like_a_formula(tmp_path: Path, frame: pd.DataFrame, written: str) -> None:
    assert write_csv(frame, tmp_path / "table.csv").read_text() == written


@given(st.text("'=+-@;\t\n1.ea＝"))
def test_what_is_added_can_be_taken_away(text: str) -> None:
    tame = str(_tame(text))
    assert as_it_was(tame) == text
    assert tame[:1] not in ("\t", "\n")
    assert not any(re.match("[\"']?[=@＝]", cell) for cell in re.split("[;,\t\r\n]", tame) if cell[:1] != "'")


@given(st.lists(st.text("a'\"=;,\t\r\n\ufeff"), min_size=1, max_size=4, unique_by=lambda name: name.strip("\ufeff")))
def test_any_text_reads_back_and_begins_no_formula(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = write_csv(pd.DataFrame([texts, texts[::-1]], columns=texts), Path(folder) / "table.csv")
        found = read_csv(path)
        whole = path.read_bytes().decode()
    names = [texts[0].lstrip("\ufeff"), *texts[1:]]
    assert list(found) == names
    assert [[as_it_was(cell) for cell in row] for row in found.to_numpy().tolist()] == [texts, texts[::-1]]
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(whole, newline=""), delimiter=separator):
            assert not any(re.match("[=@]", cell) for cell in row)


def test_a_table_that_would_not_read_back_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_csv(pd.DataFrame({"a": ["old"]}), tmp_path / "table.csv")
    with pytest.raises(ConfigurationError, match="two headings differ in a byte order mark alone"):
        write_csv(pd.DataFrame([[1, 2]], columns=["\ufeffa", "a"]), path)
    monkeypatch.setattr(files, "_MOST_CELLS", 3)
    with pytest.raises(ConfigurationError, match="cannot be written: it must have at most 3 cells"):
        write_csv(pd.DataFrame([[1, 2]], columns=["a", "b"]), path)
    monkeypatch.setattr(files, "_TO_QUOTE", re.compile('[",]'))
    with pytest.raises(ConfigurationError, match="cannot be written: its column 'a' does not read back"):
        write_csv(pd.DataFrame({"a": ["b\rc"]}), path)
    assert path.read_text() == "a\nold\n"
    assert [*tmp_path.iterdir()] == [path]


def test_points_of_figures_are_read_as_they_were(tmp_path: Path) -> None:
    names = [*FORMULAS, *HARMLESS]
    points = pd.DataFrame({"series": names, "x": -1.0, "y": range(len(names))})
    figure = LineFigure("title", "x", "y", points)
    ((path,), _) = write_figures([figure], tmp_path / "figure", FigureSettings(), drawn=False)
    with path.open(newline="", encoding="utf-8") as stream:
        written = [row["series"] for row in csv.DictReader(stream)]
    assert written == [*(re.sub(r"\A|(?<=[\t\n])(?==)", "'", text) for text in FORMULAS), *HARMLESS]
    assert [as_it_was(text) for text in written] == names
    assert read_points(path, ["series"])["series"].tolist() == names


# Names that mean something to Markdown, LaTeX or HTML are shown as they are.


NAMES = [
    *("a|b", "a\\|b", "a\\", "\\", "`code", "$x$", "a&b", "&lt;", "&#60;", "50%", "#1", "_x_", "__x__", "x_", "{y}"),
    *("*b*", "2**36", "~~a~~", "<script>alert(1)</script>"),
    *("<!-- -->", "<http://e>", "![x](http://e)", "[l](http://e)"),
]
BROKEN = ["two\nlines", "two\r\n\r\nlines", "two\u2028lines", "two\x00\x1blines", "two\u202elines"]


def cells_of(page: str) -> tuple[list[str], set[str]]:
    """Return the texts of the cells of a page, and the tags in them."""
    inside = [one for _, one in re.findall(r"<(td|th|h2)\b[^>]*>(.*?)</\1>", page, re.DOTALL)]
    tags = {tag for one in inside for tag in re.findall("</?([^ />]*)", one)}
    return [html.unescape(re.sub("<[^>]*>", "", one)) for one in inside], tags


def rendered(text: str) -> list[str]:
    shown, tags = cells_of(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
    assert not tags
    return shown


@given(st.sampled_from(NAMES) | st.text("ab_*`~\\|<>&;[]()!$# 1.-", min_size=1).map(str.strip).filter(bool))
def test_markdown_shows_any_text_as_it_is(name: str) -> None:
    shown = " ".join(name.split())
    assert rendered(markdown(Table("", pd.DataFrame({"name": [name], "end": 1}), {})))[2:] == [shown, "1"]
    assert rendered(f"## {markdown_text(name)}\n") == [shown]


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
    made = render_pages([part], Literature({}, {}), run="<i>", profile="quick", folder=tmp_path)
    shown, tags = cells_of(made["family/one"])
    assert set(NAMES) <= set(shown)
    assert tags <= {"code", "wbr", "span", "a"}


def test_a_narrow_terminal_breaks_texts_between_words_and_parts_of_names() -> None:
    columns = dict.fromkeys(("printed", "kind", "measure", "what"), "")
    table = Table.of("A title", [("1,824.6", "uncorrected", "cross_entropy", 30 * "word ")], columns)
    assert {"1,824.6", "uncorrected", "cross_", "entropy"} <= {*markdown(table, 56).split()}


def test_names_of_the_papers_have_their_titles_in_headings() -> None:
    assert heading("fs_sdd_seconds") == "seconds, FS-SDD"
