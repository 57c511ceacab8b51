"""Tables in LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.reporting.latex import escaped, latex
from trimbench.papers.study.tables import Table

TABULAR = re.compile(r"\\begin\{tabular\}\{@\{\}([^@]+)@\{\}\}\n(.*?)\n\\end\{tabular\}", re.DOTALL)
SIGNS = "_ % & # → ± – — | < > $ { } ~ ^ \\ α Ω é − × ≤ \" '"


def parts(text: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the specifications of the columns, and the cells of the rows, of each part of a table."""
    found = []
    for specification, body in TABULAR.findall(text):
        lines = [line for line in body.split("\n") if not re.fullmatch(r"\\(top|mid|bottom)rule", line)]
        assert all(line.endswith(r" \tabularnewline") for line in lines)
        rows = [re.split(r"(?<!\\) ?& ", line.removesuffix(r" \tabularnewline")) for line in lines]
        found.append((re.findall(r"[lr]|p\{\d+pt\}", specification), rows))
    return found


def plain(cell: str) -> str:
    return cell.removeprefix(r"\raggedright ")


def test_a_table_is_an_environment_with_caption_and_label() -> None:
    frame = pd.DataFrame({"name": ["x_y & 50%", "z"], "the_share": [0.25, -0.5], "n": [3, 4]})
    text = latex(Table("Shares in %", frame, {"the_share": ".1%"}), "tab:family/one-table")
    assert text.splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Shares in \%}",
        r"\label{tab:family/one-table}",
        r"\medskip",
        r"\normalsize",
        r"\setlength{\tabcolsep}{6pt}",
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r"name & the share & n \tabularnewline",
        r"\midrule",
        r"x\_y \& 50\% & 25.0\% & 3 \tabularnewline",
        r"z & \ensuremath{-}50.0\% & 4 \tabularnewline",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5 → 0.4", r"0.5 \ensuremath{\to} 0.4"),
        ("±1 – 2", r"\ensuremath{\pm}1 -- 2"),
        ("P(x | α)", r"P(x \ensuremath{|} \ensuremath{\alpha})"),
        ("a_b#c$", r"a\_b\#c\$"),
        (r"{\^~}", r"\{\textbackslash{}\textasciicircum{}\textasciitilde{}\}"),
        ("x >= 1 < 2", r"x \ensuremath{>}= 1 \ensuremath{<} 2"),
        ("-1e-05", r"\ensuremath{-}1e-05"),
        ("[0, 1]", "{}[0, 1]"),
        ("* best", "{}* best"),
        ("José\n  Núñez", "José Núñez"),
    ],
)
def test_signs(text: str, expected: str) -> None:
    assert escaped(text) == expected


@given(st.text())
def test_braces_stay_balanced(text: str) -> None:
    without_signs = re.sub(r"\\[\\{}]", "", escaped(text))
    assert without_signs.count("{") == without_signs.count("}")
    assert not re.search(r"(?<!\\)[%&#$]", escaped(text))


def test_a_label_has_no_sign_of_latex() -> None:
    text = latex(Table("", pd.DataFrame({"a": [1]})), "tab:trimming/table6,name=Größe {x}~%")
    assert r"\label{tab:trimming/table6,name=Gr-e-x-}" in text
    assert r"\caption" not in text


def test_what_is_wide_gets_a_smaller_font() -> None:
    def size(n_columns: int) -> str:
        frame = pd.DataFrame({f"c{i}": ["123456"] for i in range(n_columns)})
        return re.findall(r"\\(normalsize|small|footnotesize|scriptsize)\n", latex(Table("", frame), "x"))[0]

    assert [size(n) for n in (3, 9, 10)] == ["normalsize", "small", "footnotesize"]


def test_long_text_has_lines() -> None:
    frame = pd.DataFrame({"row": ["a", "b"], "reason": ["many words " * 20, "few"], "value": [1.5, 2.5]})
    ((columns, rows),) = parts(latex(Table("", frame), "x"))
    assert columns[0] == "l"
    assert re.fullmatch(r"p\{\d+pt\}", columns[1])
    assert columns[2] == "r"
    assert [plain(row[1]) for row in rows] == ["reason", ("many words " * 20).strip(), "few"]


def test_many_columns_are_parts_that_begin_alike() -> None:
    frame = pd.DataFrame({"group": ["a", "a", "b"], "n": [1, 2, 1]} | {f"value {i}": [0.123456] * 3 for i in range(20)})
    found = parts(latex(Table("", frame, {f"value {i}": ".6f" for i in range(20)}), "x"))
    assert len(found) > 1
    values = []
    for columns, rows in found:
        assert all(len(row) == len(columns) for row in rows)
        assert [row[:2] for row in rows[1:]] == [["a", "1"], ["a", "2"], ["b", "1"]]
        assert sum(8 if column == "r" else 4 for column in columns) * 4.0 < 400
        values += rows[1][2:]
    assert values == ["0.123456"] * 20, "each column is in one part"


def test_what_is_longer_than_a_page_continues() -> None:
    text = latex(Table("Numbers", pd.DataFrame({"n": range(100)})), "tab:numbers")
    pages = text.count(r"\begin{table}")
    assert pages == text.count(r"\end{table}") == 3
    assert text.count(r"\label{tab:numbers}") == 1
    assert text.count(r"\addtocounter{table}{-1}") == text.count("(continued)") == pages - 1
    assert [int(row[0]) for _, rows in parts(text) for row in rows[1:]] == [*range(100)]


def test_tables_without_rows_or_columns() -> None:
    ((columns, rows),) = parts(latex(Table("", pd.DataFrame(columns=["a", "b"])), "x"))
    assert (columns, rows) == (["l", "l"], [["a", "b"]])
    assert latex(Table("", pd.DataFrame()), "x") == ""


CELLS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)


@given(st.lists(st.lists(CELLS, min_size=12, max_size=12), min_size=1, max_size=3), st.integers(1, 12))
def test_every_cell_is_in_the_table(rows: list[list[str]], n_columns: int) -> None:
    frame = pd.DataFrame([row[:n_columns] for row in rows], columns=[f"c{i}" for i in range(n_columns)])
    found = parts(latex(Table("", frame), "x"))
    shown = {plain(row[0]) + "|" + plain(cell) for _, lines in found for row in lines[1:] for cell in row}
    assert {escaped(row[0]) + "|" + escaped(cell) for row in rows for cell in row[:n_columns]} <= shown


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_takes_it(tmp_path: Path) -> None:
    words = {"text": [SIGNS * 3, "[0, 1]", "*"], **{f"column {i}": [-1.5, 1e-9, None] for i in range(30)}}
    tables = [Table(SIGNS, pd.DataFrame(words)), Table("", pd.DataFrame({"n": range(300)}))]
    text = "\n".join(latex(table, f"tab:{place}_ä") for place, table in enumerate(tables))
    whole = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{text}\end{{document}}"
    (tmp_path / "all.tex").write_text(whole, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-draftmode", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout
    assert "Overfull \\hbox" not in done.stdout
