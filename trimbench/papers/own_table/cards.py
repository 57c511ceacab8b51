"""The card of a table: what is said about each column, of the rows that were read or of all rows of a folder."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.own_table.column_reading import ReadColumn, TextColumn, are_answers, read_typed, type_of
from trimbench.papers.own_table.folders import AllOfColumn
from trimbench.papers.own_table.table_files import SourceTable, in_pandas, plain_column
from trimbench.papers.own_table.table_texts import ReadAs, Reading, stated_number, text_of
from trimbench.reproduction.data.dataset import Cells, Labels
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.messages import quoted, rows_in, rows_named

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ColumnCard:
    """How one column was read.

    Attributes
    ----------
    name : str
    read_as : {"category", "number", "boolean", "date", "id", "target", "left out"}
        A category and a boolean are labels; a date is the number of days since 1970-01-01.
    distinct : int, optional
        Number of different values; None where they are too many to be counted in all rows of a folder.
    missing : int
        Number of rows without a value.
    values : str
        The most frequent values with their numbers of rows, or the range and the median of numbers and dates.
    notes : tuple of str
        What was repaired or looks wrong.
    rows : int
        The rows in which values and missing ones were counted.
    """

    name: str
    read_as: ReadAs
    distinct: int | None
    missing: int
    values: str
    notes: tuple[str, ...] = ()
    rows: int = 0


def card_of(column: ReadColumn | None, name: str, table: SourceTable, settings: Reading, codes: Any) -> ColumnCard:
    """Return the card of a column of a table, with the codes of its numbers; `column` is None unless it was read."""
    cells, notes = (None, ()) if column is None else (column.cells, column.notes)
    read_as: ReadAs = "left out" if column is None or cells is None else column.read_as
    if cells is None:
        texts = TextColumn.of(name, table.frame[name], settings.missing_values)
        cells = texts.labels()
        if name in settings.ids:
            read_as, rows = "id", texts.rows_of(np.flatnonzero(texts.counts > 1).tolist())
            again = f"it does not name rows uniquely: {rows_in(len(rows))} share a value with another"
            notes = (f"{again} ({rows_named(rows)})",) if rows else ()
        elif column is None and name not in settings.drop:
            notes = ("it is not among the named features",)
    card = _card(name, read_as, cells, notes, codes)
    every = None if table.every is None else table.every.columns.get(name)
    if every is not None and every.is_infinite and read_as == "number":
        what = f"column {quoted(name)} must have finite numbers, got inf in rows that were not drawn"
        raise DeclarationError(f"{table.owner}: {what}; correct them, or add inf and -inf to missing_values")
    return card if every is None else _of_all(card, cells, every, table.frame[name], settings)


def _card(name: str, read_as: ReadAs, cells: Cells, notes: Iterable[str], codes: Any = None) -> ColumnCard:
    """Return the card of a column of numbers, with the codes of `_numbered`, or of labels."""
    values = array_of(cells)
    known = known_of(values)
    if isinstance(cells, Labels):
        distinct, said = _of_labels(np.bincount(known), cells.names, read_as)
    else:
        distinct = int(codes.max()) + 1
        said = _of_numbers(known.min(), known.max(), np.median(known), read_as)
    return ColumnCard(name, read_as, distinct, len(values) - len(known), said, tuple(notes), len(values))


def _of_labels(counts: NDArray[np.int64], names: Sequence[str], read_as: ReadAs) -> tuple[int, str]:
    distinct = int(np.count_nonzero(counts))
    top = range(distinct) if read_as == "target" else np.argsort(-counts, kind="stable")[:3].tolist()
    said = ", ".join(f"{quoted(names[place])} {counts[place]:,}" for place in top)
    return distinct, said + (f" and {distinct - len(top):,} more" if distinct > len(top) else "")


def _of_numbers(low: float, high: float, median: float, read_as: ReadAs) -> str:
    text = text_of if read_as == "date" else "{:.6g}".format
    return f"{text(low)} to {text(high)}, median {text(median)}"


def in_order(classes: Iterable[str]) -> list[str]:
    """Return classes in the order of their numbers if all are numbers, otherwise in that of the alphabet."""
    numbers = {text: stated_number(text) for text in classes}
    if any(map(math.isnan, numbers.values())):
        numbers = dict.fromkeys(numbers, 0.0)
    return sorted(numbers, key=lambda text: (numbers[text], text))


def array_of(cells: Cells) -> NDArray[Any]:
    """Return the numbers of a column, NaN where one is missing, or the codes of its labels, -1 there."""
    return cells.codes if isinstance(cells, Labels) else cells


def known_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return those of the numbers or codes of `array_of` that are not missing."""
    return np.asarray(values[~np.isnan(values) if values.dtype.kind == "f" else values >= 0])


# Of all rows of a folder, of which those that were read are a sample.


def _of_all(
    card: ColumnCard, cells: Cells, every: AllOfColumn, sample: pd.Series[Any], settings: Reading
) -> ColumnCard:
    """Return a card with what all rows have, where their different values or ends can be read as the sample was."""
    found = _read_alike(card, cells, every, sample, settings)
    if found is None or not len(known_of(array_of(found))):
        return card
    values = array_of(found)
    if every.counts is None:
        # The median is that of the sample.
        low, high = known_of(values).min(), known_of(values).max()
        median = np.median(known_of(array_of(cells)))
        said = f"{_of_numbers(low, high, median, card.read_as)} of {rows_in(card.rows)} drawn"
        return replace(card, distinct=None, missing=every.n_missing, values=said, rows=every.n_rows)
    counts = np.array(every.counts, dtype=np.int64)
    is_known = ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
    missing = every.n_missing + int(counts[~is_known].sum())
    values, counts = values[is_known], counts[is_known]
    if isinstance(found, Labels):
        totals = np.zeros(len(found.names), dtype=np.int64)
        np.add.at(totals, values, counts)
        distinct, said = _of_labels(totals, found.names, card.read_as)
    else:
        order = np.argsort(values)
        distinct, sums, ordered = len(np.unique(values)), np.cumsum(counts[order]), values[order]
        middle = [ordered[np.searchsorted(sums, place, "right")] for place in ((sums[-1] - 1) // 2, sums[-1] // 2)]
        said = _of_numbers(ordered[0], ordered[-1], float(np.mean(middle)), card.read_as)
    return replace(card, distinct=distinct, missing=missing, values=said, rows=every.n_rows)


def _read_alike(
    card: ColumnCard, cells: Cells, every: AllOfColumn, sample: pd.Series[Any], settings: Reading
) -> Cells | None:
    """Return the values of all rows as those of the sample were read; None where that depends on other values."""
    import pyarrow as pa

    values = plain_column(in_pandas(pa.table({card.name: every.found}))[card.name], settings.encoding, [])
    kind, missing = type_of(sample), settings.missing_values
    if not isinstance(cells, Labels):
        is_typed = kind is not None and kind != "category" and settings.types.get(card.name, kind) == kind
        return read_typed(card.name, values, kind, missing).cells if is_typed and kind is not None else None
    if every.counts is None:
        return None
    if card.read_as == "boolean" and kind == "boolean":
        return read_typed(card.name, values, kind, missing).cells
    texts = TextColumn.of(card.name, values, missing)
    if card.read_as not in ("boolean", "target"):
        return texts.labels()
    spelling = {name.casefold(): name for name in cells.names}
    if are_answers(texts) and len(spelling) == len(cells.names) and {*map(str.casefold, texts.texts)} <= {*spelling}:
        places = [cells.names.index(spelling[text.casefold()]) for text in texts.texts]
        return Labels(np.array([*places, -1])[texts.codes], [*cells.names])
    if card.read_as == "boolean":
        return None
    return texts.labels(in_order(texts.texts))
