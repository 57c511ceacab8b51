"""The column of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.tables.columns import MAX_CATEGORIES, alike
from trimbench.papers.data.tables.frames import SourceTable
from trimbench.papers.data.tables.numbers import plain_numbers
from trimbench.papers.data.tables.sentinels import words_for_missing
from trimbench.papers.data.tables.settings import ColumnCard, TableSettings
from trimbench.papers.data.tables.texts import TextColumn
from trimbench.papers.data.tables.wording import did_you_mean, quoted, rows_in, rows_named, shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of the rows that have one.

    Attributes
    ----------
    rows, labels : int arrays of shape (n_rows,)
        The places of the rows with a class in the source, and of their classes in `names`.
    n_missing : int
        Number of other rows.
    """

    name: str
    names: tuple[str, ...]
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    n_missing: int
    positive: str | None
    repairs: tuple[str, ...]
    notes: tuple[str, ...]

    def column(self) -> pd.Series[Any]:
        """Return the classes as a category of text."""
        import pandas as pd

        return pd.Series(pd.Categorical.from_codes(self.labels, pd.Index(self.names, dtype="str")), name=self.name)

    def card(self) -> ColumnCard:
        """Return how the target was read."""
        counts = np.bincount(self.labels, minlength=len(self.names))
        listed = ", ".join(f"{quoted(name)} {n:,}" for name, n in zip(self.names, counts.tolist(), strict=True))
        return ColumnCard(self.name, "target", len(self.names), self.n_missing, listed, self.notes)


def read_classes(table: SourceTable, target: str, settings: TableSettings) -> Classes:
    """Read the target; raise `DeclarationError` if there are not several classes, or no such positive one."""
    column = TextColumn.of(target, table.frame[target], settings.missing_values, str.strip)
    _check_classes(table, column)
    numbers = plain_numbers(column.texts, ".")
    keys = column.texts if numbers is None else list(zip(numbers, column.texts, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    names = tuple(column.texts[place] for place in order)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    rows = np.flatnonzero(column.codes >= 0)
    labels = places[column.codes[rows]]
    gaps = np.flatnonzero(column.codes < 0) + 1
    repairs: tuple[str, ...] = ()
    if len(gaps):
        verb = "has" if len(gaps) == 1 else "have"
        what = f"{rows_in(len(gaps))} without a class in {quoted(target)} ({rows_named(gaps.tolist())})"
        repairs = (f"{what} {'was' if verb == 'has' else 'were'} left out",)
    return Classes(
        name=target,
        names=names,
        rows=rows,
        labels=labels,
        n_missing=len(gaps),
        positive=_positive(table, names, labels, settings.positive),
        repairs=repairs,
        notes=tuple(_notes(column)),
    )


def _check_classes(table: SourceTable, column: TextColumn) -> None:
    what = f"{table.owner}: the target {quoted(column.name)} must have from 2 to {MAX_CATEGORIES} classes"
    if not len(column.codes):
        raise DeclarationError(f"{table.owner}: there must be rows to learn from, got a table without any; add rows")
    if not column.texts:
        raise DeclarationError(f"{what}, got missing values only; name another column")
    if len(column.texts) == 1:
        gaps = "".join(f"; {note}, which missing_values=[...] changes" for note in column.missing_notes())
        every = "every row with a class" if gaps else "every row"
        raise DeclarationError(f"{what}, got {quoted(column.texts[0])} in {every}{gaps}; name another column")
    if len(column.texts) > MAX_CATEGORIES:
        raise DeclarationError(
            f"{what}, got {len(column.texts):,} different values such as {shown(column.texts, 3)}; name another "
            "column, or cut it into classes first"
        )


def _positive(table: SourceTable, names: tuple[str, ...], labels: NDArray[np.int64], wanted: str | None) -> str | None:
    if wanted is None:
        return names[int(np.argmin(np.bincount(labels)))] if len(names) == 2 else None
    if wanted not in names:
        raise DeclarationError(
            f"{table.owner}: positive must be a class of the target, got {quoted(wanted)}"
            f"{did_you_mean(wanted, names)}; the classes are {shown(names)}"
        )
    return wanted


def _notes(column: TextColumn) -> list[str]:
    rare = [text for text, count in zip(column.texts, column.counts.tolist(), strict=True) if count < 2]
    notes = [*column.missing_notes()]
    if rare:
        notes.append(f"only 1 row each of {shown(rare)}: too few to learn from and to test")
    return notes + words_for_missing(column) + alike(column)
