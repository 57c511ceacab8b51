"""Tables in LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.reporting.tables import latex
from trimbench.papers.vocabulary.tables import Table

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
