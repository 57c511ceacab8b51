"""Tables in LaTeX, for an article with the packages booktabs and graphicx."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from tabulate import LATEX_ESCAPE_RULES

from trimbench.papers.reporting.tables import numeric_columns, one_line, printable, tabulated
from trimbench.papers.study.tables import Table

# What a page holds.
_MOST_ROWS = 45
# Signs that LaTeX lacks, or, for the bar, prints as another sign in its default encoding; Greek letters besides.
_COMMANDS = {"→": "to", "±": "pm", "×": "times", "·": "cdot", "≤": "le", "≥": "ge", "≠": "ne", "≈": "approx"}
_SIGNS = str.maketrans(
    {sign: rf"\ensuremath{{\{name}}}" for sign, name in _COMMANDS.items()}
    | {"–": "--", "—": "---", "|": r"\ensuremath{|}", "−": r"\ensuremath{-}"}
)
_GREEK = re.compile("[Α-ΡΣ-Ωα-ω]")
# Greek letters without a command, because they look as Latin ones.
_LATIN = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo")


def latex(table: Table, label: str) -> str:
    """Return a table as an environment ``table`` with caption and label; what is wide is scaled to the width of a line.

    What is longer than a page continues in another environment of the same number.
    """
    starts = range(0, max(len(table.frame), 1), _MOST_ROWS)
    pages = [replace(table, frame=table.frame.iloc[start : start + _MOST_ROWS]) for start in starts]
    return "\n\n".join(_environment(page, label, continued=number > 0) for number, page in enumerate(pages))


def _environment(table: Table, label: str, *, continued: bool) -> str:
    cells = printable(table).map(one_line).rename(columns=one_line)
    # Without any row, tabulate would declare no column.
    rows = cells.to_numpy().tolist() or [["" for _ in cells.columns]]
    body = tabulated(list(cells.columns), rows, numeric_columns(table), "latex_booktabs")
    # A bracket or a star behind the end of a row would be an argument of it.
    body = re.sub(r"(?m)^(\s*)([\[*])", r"\1{}\2", body)
    caption = "".join(LATEX_ESCAPE_RULES.get(sign, sign) for sign in one_line(table.title))
    head = [
        r"\begin{table}",
        *([r"\addtocounter{table}{-1}"] if continued else []),
        r"\centering",
        rf"\caption{{{caption}{' (continued)' if continued else ''}}}",
        *([] if continued else [rf"\label{{{re.sub('[^A-Za-z0-9:/.,=+_-]+', '-', label)}}}"]),
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
    ]
    text = "\n".join([*head, body + "}", r"\end{table}"])
    return _GREEK.sub(lambda found: rf"\ensuremath{{\{_name(found[0])}}}", text.translate(_SIGNS).translate(_LATIN))


def _name(letter: str) -> str:
    """Return the name of a Greek letter in LaTeX."""
    name = unicodedata.name(letter).rpartition(" ")[2].lower().replace("lamda", "lambda")
    return name if letter.islower() else name.capitalize()
