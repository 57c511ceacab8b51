"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from trimbench.experiments.plan import Table
from trimbench.reporting.verdicts import Reported, judge

if TYPE_CHECKING:
    import pandas as pd


# What LaTeX does not know or, as a bar, prints as another sign in its default encoding.
_IN_LATEX = str.maketrans({"→": r"\ensuremath{\to}", "±": r"\ensuremath{\pm}", "–": "--", "|": r"\ensuremath{|}"})


def printable(table: Table) -> pd.DataFrame:
    """Return the table's frame as text, each column in its format; a missing value is a dash."""

    def text(value: Any, spec: str) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "–"
        return format(value, spec) if spec and not isinstance(value, str) else str(value)

    frame = table.frame.astype(object)
    for column in frame.columns:
        frame[column] = [text(value, table.formats.get(column, "")) for value in table.frame[column].tolist()]
    return frame


def markdown(table: Table) -> str:
    """Return the table in Markdown."""
    frame = printable(table).map(_markdown_cell)
    return _tabulated(frame.rename(columns=_markdown_cell), table, "github")


def heading(column: object) -> str:
    """Return how a column is headed for a reader; the CSV keeps its name."""
    return str(column).replace("_", " ")


def latex(table: Table) -> str:
    """Return the table in LaTeX, for the package booktabs."""
    return _tabulated(printable(table), table, "latex_booktabs").translate(_IN_LATEX)


def _markdown_cell(text: object) -> str:
    """Return text that stays in its cell: bars and line ends would start another one."""
    return " ".join(str(text).split()).replace("|", r"\|")


def _tabulated(frame: pd.DataFrame, table: Table, style: str) -> str:
    numeric = [table.frame[column].dtype.kind in "iuf" for column in table.frame.columns]
    return str(
        tabulate(
            frame.to_numpy().tolist(),
            headers=[heading(column) for column in frame.columns],
            tablefmt=style,
            disable_numparse=True,
            colalign=["right" if is_number else "left" for is_number in numeric] if len(frame) else None,
        )
    )


def comparison(
    reported: list[Reported],
    reproduced: Mapping[str, float | None],
    reason: str,
    intervals: Mapping[str, tuple[float, float]] | None = None,
) -> Table:
    """Return reported beside reproduced numbers, one row each, with verdict and reason.

    Parameters
    ----------
    reported : list of Reported
    reproduced : mapping from key to value
    reason : str
        Why numbers are absent, where the experiment knows.
    intervals : mapping from key to (low, high), optional
        Of reproduced numbers, over repetitions.
    """
    import pandas as pd

    rows = []
    for number in reported:
        value = reproduced.get(number.key)
        verdict, why = judge(number, value, (intervals or {}).get(number.key))
        rows.append(
            {
                "source": number.source,
                "cell": number.key,
                "reported": number.printed,
                "reproduced": value,
                "verdict": verdict,
                "reason": reason if verdict == "not attempted" and reason else why,
            }
        )
    columns = ["source", "cell", "reported", "reproduced", "verdict", "reason"]
    return Table("", "Reported beside reproduced", pd.DataFrame(rows, columns=columns), {"reproduced": ".6g"})


def side_by_side(compared: Table) -> Table:
    """Return a comparison in the shape of the paper's table: a row for each row, a column for each quantity.

    Parameters
    ----------
    compared : Table
        As `comparison` makes it.
    """
    import pandas as pd

    cells: dict[str, dict[str, str]] = {}
    for line in compared.frame.to_dict("records"):
        row, _, quantity = str(line["cell"]).partition("/")
        verdict, value = str(line["verdict"]), line["reproduced"]
        ours = "–" if verdict == "not attempted" else short(float(value))
        remark = " (differs)" if verdict == "differs" else ""
        cells.setdefault(row, {})[quantity] = f"{line['reported']} → {ours}{remark}"
    frame = pd.DataFrame.from_dict(cells, orient="index").rename_axis("row").reset_index()
    return Table("reported", "Printed → reproduced", frame)


def short(value: float) -> str:
    """Return a number in few digits: four, unless it is whole."""
    return f"{value:.0f}" if value.is_integer() else f"{value:.4g}"


def differences(compared: Table) -> Table:
    """Return the part of a comparison that differs, with the reasons."""
    frame = compared.frame[compared.frame["verdict"] == "differs"]
    return Table(
        "differences", "What differs, and why", frame[["cell", "reported", "reproduced", "reason"]], compared.formats
    )
