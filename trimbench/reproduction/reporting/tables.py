"""Tables in Markdown, LaTeX and the terminal, and tables of verdicts."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tabulate import LATEX_ESCAPE_RULES, tabulate

from trimbench.reproduction.messages import CONTROL
from trimbench.reproduction.reporting.verdicts import Judgement, digits_beside, shown_value, standing
from trimbench.reproduction.vocabulary.reported import Reported
from trimbench.reproduction.vocabulary.tables import Table, shown_name

if TYPE_CHECKING:
    import pandas as pd


# The room beside the heading of a column, and the least widths of text columns, with short words and with long ones.
_PADDING, _NARROWEST, _LONG = 2, 10, 14
# Where a text may be broken: not within dates and numbers.
_BREAK = re.compile(r"(\s+)|(?<=[^\W\d_][_/-])")
_ABSENT = "–"  # what a missing value looks like
# Characters with a meaning in Markdown; within a word, an underscore has none.
_MARKDOWN = re.compile(r"[\\`*$~|]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<=\])[(:]")
# Beginnings that turn a line into a heading, a quotation or a list.
_BLOCK = re.compile(r"^(?=[-+>#=])|^\d+(?=[.)](?: |$))")


def printable(table: Table) -> pd.DataFrame:
    """Return the table's frame as text, with headings, each column in its format; a missing value is a dash."""

    def text(value: object, spec: str) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return _ABSENT
        return format(value, spec) if spec and not isinstance(value, str) else str(value)

    frame = table.frame.astype(object)
    for column in frame.columns:
        frame[column] = [text(value, table.formats.get(column, "")) for value in table.frame[column].tolist()]
    return frame.rename(columns=str if table.literal else heading)


def markdown(table: Table, width: int | None = None) -> str:
    """Return the table in Markdown; with a `width`, in lines that fit it."""
    frame = printable(table)
    return markdown_rows(list(frame.columns), frame.to_numpy().tolist(), numeric_columns(table), width)


def markdown_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], width: int | None = None
) -> str:
    """Return rows of text as a table in Markdown; the columns of numbers are `numeric`. This does not need pandas.

    With a `width`, for a terminal, the widest texts are broken until the lines fit. If they cannot, there are several
    tables with a part of the columns, each with those that tell the rows apart and without rows that are empty there.
    """
    cells = [[markdown_text(text) for text in row] for row in rows]
    heads = [*map(markdown_text, columns)]
    most = _widths(heads, cells, numeric, width) if width else None
    labels = _labels(rows, most, width) if most and width and sum(most) + 3 * len(most) + 1 > width else []
    rest = [place for place in range(len(heads)) if place not in labels]
    if not labels or len(rest) < 2:
        return tabulated(heads, cells, numeric, "github", most)

    def part(others: Sequence[int]) -> str:
        own = [*labels, *others]
        every = [[row[place] for place in own] for row in rows]
        shown = [row for row in every if {*row[len(labels) :]} != {_ABSENT}] or every
        return markdown_rows([columns[place] for place in own], shown, [numeric[place] for place in own], width)

    middle = (len(rest) + 1) // 2
    return f"{part(rest[:middle])}\n\n{part(rest[middle:])}"


def markdown_page(
    title: str,
    sentences: Sequence[str] = (),
    pictures: Sequence[tuple[object, str]] = (),
    tables: Iterable[Table] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return a page in Markdown: a title, sentences, pictures (title and file, or an empty text), tables and notes."""
    parts = [f"# {markdown_text(title)}", *sentences]
    parts += [f"![{markdown_text(shown)}](<{file}>)" for shown, file in pictures if file]
    for table in tables:
        parts += [
            f"## {markdown_text(table.title)}",
            markdown(table) if len(table.frame) else "No row could be computed.",
        ]
    listed = "\n".join("- " + _BLOCK.sub(r"\g<0>\\", markdown_text(note)) for note in notes)
    parts += ["## Notes", listed] if notes else []
    return "\n\n".join(parts) + "\n"


def _labels(rows: Sequence[Sequence[str]], most: Sequence[int], width: int) -> list[int]:
    """Return the places of the first columns that tell the rows apart; of the first alone if these are wide."""
    n_different = len({*map(tuple, rows)})
    n_first = next((k for k in range(1, len(most)) if len({(*row[:k],) for row in rows}) == n_different), 1)
    found = [place for place in range(n_first) if len({row[place] for row in rows}) > 1]
    return found if 0 < sum(most[place] for place in found) <= width // 2 else [0]


def _widths(heads: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], width: int) -> list[int]:
    """Return the widths of the columns, without separators, at which the lines of a table fit a width if they can."""
    columns = list(zip(*cells, strict=True)) or [()] * len(heads)
    content = [max(map(len, column), default=0) for column in columns]
    words = [max(map(len, head.split()), default=0) + _PADDING for head in heads]
    parts = [max((len(part or "") for cell in column for part in _BREAK.split(cell)), default=0) for column in columns]
    least = [
        max(word, size if is_number else sorted((_NARROWEST, part, _LONG))[1])
        for word, size, is_number, part in zip(words, content, numeric, parts, strict=True)
    ]
    # Names of rows stay whole.
    least[0] = max(
        least[0], min(max((len(word) for cell in columns[0] for word in cell.split()), default=0), width // 2)
    )
    found = [max(len(head) + _PADDING, size) for head, size in zip(heads, content, strict=True)]
    while sum(found) + 3 * len(found) + 1 > width:
        wider = [place for place, small in enumerate(least) if found[place] > small]
        if not wider:
            break
        found[max(wider, key=found.__getitem__)] -= 1
    return found


def one_line(text: object) -> str:
    """Return a text without line breaks and other control characters, which could end a cell or control a terminal."""
    return " ".join(CONTROL.sub(" ", str(text)).split())


def markdown_text(text: object) -> str:
    """Escape a text of any origin, for example a name, so that Markdown shows it as it is and on one line."""
    return _MARKDOWN.sub(r"\\\g<0>", one_line(text))


def tabulated(
    columns: Sequence[object],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    style: str,
    most: Sequence[int] | None = None,
) -> str:
    """Return rows of text in a style of tabulate; the columns of numbers, `numeric`, are aligned to the right.

    Texts that are wider than `most` says for their column are broken.
    """
    heads = [*map(str, columns)]
    if most:
        heads = [_in_lines(head, size - _PADDING) for head, size in zip(heads, most, strict=True)]
        rows = [[_in_lines(text, size) for text, size in zip(row, most, strict=True)] for row in rows]
    align = ["right" if is_number else "left" for is_number in numeric] if rows else None
    return str(tabulate(rows, headers=heads, tablefmt=style, disable_numparse=True, colalign=align))


def _in_lines(text: str, width: int) -> str:
    """Return a text in lines of a width, broken inside of words only where these are longer."""
    wrapper = textwrap.TextWrapper(width, break_on_hyphens=False)
    wrapper.wordsep_simple_re = _BREAK
    return "\n".join(wrapper.wrap(text))


def cut(table: Table, most: int, where: str = "") -> Table:
    """Return the first `most` rows of a table, types inferred anew; the title tells of more, and `where` they are."""
    n_rows = len(table.frame)
    title = table.title if n_rows <= most else f"{table.title} (the first {most} of {n_rows:,}{where})"
    return replace(table, title=title, frame=table.frame.head(most).infer_objects())


def numeric_columns(table: Table) -> list[bool]:
    """Tell of each column whether it has numbers."""
    return [table.frame[column].dtype.kind in "iuf" for column in table.frame.columns]


def heading(column: object) -> str:
    """Return the heading of a column in words, with the titles of names with underscores; the CSV keeps the names.

    >>> heading("eta_squared low")
    'eta squared low'
    """
    return " ".join(
        shown_name(word, word.replace("_", " ")) if "_" in word else word for word in str(column).split(" ")
    )


# Which columns of a table tell its rows apart.


def label_columns(frames: Sequence[pd.DataFrame]) -> list[str]:
    """Return the columns that tell the rows apart in each of several frames that have the same columns.

    Labels stand before values: they are the fewest leading columns that differ from row to row, without those that do
    not help, for example a number of repetitions. A first column of text is a label even where one row needs none.
    Where some rows are the same in all columns, the columns of text are labels.
    """
    import pandas as pd

    columns = [str(column) for column in frames[0].columns]
    texts = pd.concat([frame.astype(object) for frame in frames], keys=range(len(frames))).map(str)
    frame_of = texts.index.get_level_values(0)

    def distinguish(chosen: Sequence[str]) -> bool:
        return not texts[list(chosen)].set_axis(range(len(chosen)), axis=1).assign(of=frame_of).duplicated().any()

    words = [column for column in columns if all(frame[column].dtype.kind not in "iufb" for frame in frames)]
    first = int(columns[:1] == words[:1] != [])
    prefixes = (columns[:k] for k in range(first, len(columns) + 1))
    labels = next(filter(distinguish, prefixes), words)
    for column in reversed(labels[first:]):
        fewer = [name for name in labels if name != column]
        if distinguish(fewer):
            labels = fewer
    return labels


# Reported numbers beside reproduced ones.

_COMPARISON = {
    **{"source": "", "cell": "", "subject": "", "reported": "", "reproduced": ".6g"},
    **{"verdict": "", "reason": "", "cause": "", "explained_by": "", "explained_value": ".6g", "probability": ".3g"},
}
_DIFFERENCES = ("cell", "reported", "reproduced", "cause", "explained_value", "probability", "reason")


def comparison(judgements: Sequence[Judgement]) -> Table:
    """Return reported beside reproduced numbers, claims, curves and times, one row each.

    A row has the verdict with its reason and, where it is a difference, the cause; the number under an inferred set-up;
    and, where the printed number is a draw, its probability.
    """
    return Table.of("Reported beside reproduced", map(_line, judgements), _formats(judgements))


def differences(judgements: Sequence[Judgement]) -> Table:
    """Return the numbers that differ, the claims that fail and the times that are longer, with what accounts for it."""
    lines = [{**_line(one), "reason": _read(one, one.account)} for one in judgements if one.differs]
    formats = _formats(judgements)
    columns = {column: formats[column] for column in _DIFFERENCES}
    chosen = [{column: line[column] for column in columns} for line in lines]
    return Table.of("What differs, and why", chosen, columns, name="differences")


def _formats(judgements: Sequence[Judgement]) -> dict[str, str]:
    """Return the formats of a comparison, whose numbers have at least the printed digits."""
    values = [(one.reported, one.value) for one in judgements if one.value is not None]
    n_digits = max([6, *(digits_beside(*one) for one in values)])
    return _COMPARISON | dict.fromkeys(("reproduced", "explained_value"), f".{n_digits}g")


def _read(one: Judgement, reason: str) -> str:
    return "; ".join(filter(None, (reason, one.reading)))


def _line(one: Judgement) -> dict[str, object]:
    reported = one.reported
    about = {"source": reported.source, "cell": reported.label, "subject": reported.rule.subject}
    found = {"reported": reported.printed, "reproduced": one.value}
    inferred, draw = one.explanation, one.number.probability if one.number else None
    return {
        **about,
        **found,
        "verdict": one.verdict,
        "reason": _read(one, one.reason),
        "cause": one.cause or "",
        "explained_by": inferred.setup if inferred else "",
        "explained_value": inferred.value if inferred else math.nan,
        "probability": draw.value if draw else math.nan,
    }


def side_by_side(judgements: Sequence[Judgement]) -> Table:
    """Return a comparison in the shape of the paper's table: a line for each row, a column for each quantity."""
    cells: dict[str, dict[str, str]] = {}
    for one in judgements:
        found = standing(one.subject, one.verdict, one.cause)
        words = [one.verdict, one.cause or ""] if one.differs else [found] * (found in ("close", "better"))
        remark = ", ".join(filter(None, words))
        text = f"{asked(one.reported)} → {shown_value(one)}{f' ({remark})' * bool(remark)}"
        cells.setdefault(one.reported.row, {})[one.reported.quantity] = text
    columns = list(dict.fromkeys(one.reported.quantity for one in judgements))
    lines = [{"row": row, **quantities} for row, quantities in cells.items()]
    return Table.of("Printed → reproduced", lines, ["row", *columns], name="reported")


def asked(reported: Reported) -> str:
    """Return what a paper reports: the printed digits of a number or a time, or what is asked of a claim or a curve."""
    rule = reported.rule
    if rule.subject == "curve":
        return f"≤ {rule.tolerance:g}"
    if rule.subject != "claim" or rule.kind in ("exact", "interval"):
        return reported.printed
    if rule.kind == "within":
        return f"{reported.value:g} ± {rule.tolerance:g}"
    return f"{'≤' if rule.kind == 'at_most' else '≥'} {reported.value:g}"


# Tables in LaTeX, for an article with the packages booktabs and graphicx.

# Rows that fit on a page.
_MOST_ROWS = 45
# Characters that LaTeX lacks or, like the bar, prints as another in its default encoding; Greek letters come below.
_COMMANDS = {"→": "to", "±": "pm", "×": "times", "·": "cdot", "≤": "le", "≥": "ge", "≠": "ne", "≈": "approx"}
_SIGNS = str.maketrans(
    {sign: rf"\ensuremath{{\{name}}}" for sign, name in _COMMANDS.items()}
    | {"–": "--", "—": "---", "|": r"\ensuremath{|}", "−": r"\ensuremath{-}"}
)
_GREEK = re.compile("[Α-ΡΣ-Ωα-ω]")
# Greek letters without a command, because they look like Latin ones.
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
    body = tabulated([*cells.columns], rows, numeric_columns(table), "latex_booktabs")
    # A bracket or a star after the end of a row would be taken for its argument.
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
    name = unicodedata.name(letter).rpartition(" ")[2].lower().replace("lamda", "lambda")
    return name if letter.islower() else name.capitalize()
