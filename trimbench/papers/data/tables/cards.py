"""What is said about each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.tables.columns import ReadColumn
from trimbench.papers.data.tables.dates import text_of
from trimbench.papers.data.tables.settings import ColumnCard, TableSettings
from trimbench.papers.data.tables.texts import TextColumn
from trimbench.papers.data.tables.wording import quoted, rows_in, rows_named

if TYPE_CHECKING:
    import pandas as pd

_EXAMPLES = 3


def card_of(column: ReadColumn) -> ColumnCard:
    """Return the card of a feature."""
    values = column.data
    if values is None:
        raise ValueError(f"column {column.name!r} is left out; its card is that of the source")
    distinct, missing = int(values.nunique()), int(values.isna().sum())
    if column.read_as in ("number", "date"):
        lowest, middle, highest = (float(getattr(values, name)()) for name in ("min", "median", "max"))
        text = text_of if column.read_as == "date" else "{:.6g}".format
        return ColumnCard(
            column.name,
            column.read_as,
            distinct,
            missing,
            f"{text(lowest)} to {text(highest)}, median {text(middle)}",
            column.notes,
        )
    return ColumnCard(
        column.name, column.read_as, distinct, missing, _most_frequent(values.value_counts()), column.notes
    )


def card_of_source(column: pd.Series[Any], settings: TableSettings, notes: tuple[str, ...] | None) -> ColumnCard:
    """Return the card of a column that is no feature; `notes` say why, None if settings do."""
    name = str(column.name)
    texts = TextColumn.of(name, column, settings.missing_values, str.strip)
    is_id = name in settings.ids
    if notes is None:
        notes = _repeated(texts) if is_id else ()
        if not is_id and name not in settings.drop:
            notes = ("it is not among the named features",)
    counts = texts.counts
    top = sorted(range(len(counts)), key=lambda place: -counts[place])[:_EXAMPLES]
    listed = ", ".join(f"{quoted(texts.texts[place])} {counts[place]:,}" for place in top)
    return ColumnCard(name, "id" if is_id else "left out", len(counts), len(column) - texts.n_present, listed, notes)


def _repeated(texts: TextColumn) -> tuple[str, ...]:
    twice = np.flatnonzero(texts.counts > 1)
    if not len(twice):
        return ()
    rows = texts.rows_of(twice.tolist())
    return (f"it does not name rows uniquely: {rows_in(len(rows))} share a value with another ({rows_named(rows)})",)


def _most_frequent(counts: pd.Series[int]) -> str:
    listed = [f"{quoted(str(value))} {count:,}" for value, count in counts.head(_EXAMPLES).items()]
    more = len(counts) - _EXAMPLES
    return ", ".join(listed) + (f" and {more:,} more" if more > 0 else "")
