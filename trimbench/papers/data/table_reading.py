"""Read a table for a study: a file or a frame in, features, classes and an account of every column out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.fingerprint import fingerprint
from trimbench.papers.data.tables.cards import card_of, card_of_source
from trimbench.papers.data.tables.columns import ReadColumn
from trimbench.papers.data.tables.findings import equal_columns, reason_to_leave_out, repeated_rows, suspicion
from trimbench.papers.data.tables.frames import SourceTable, check_columns, open_source
from trimbench.papers.data.tables.reading import read_columns
from trimbench.papers.data.tables.settings import ColumnCard, ReadTable, TableSettings
from trimbench.papers.data.tables.target import Classes, read_classes
from trimbench.papers.data.tables.wording import quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ColumnCard", "ReadTable", "TableSettings", "read_table"]

_AS_RECOGNISED = TableSettings()
_FEWEST_ROWS, _MOST_FEATURES = 10, 5_000


def read_table(source: Any, target: str, settings: TableSettings = _AS_RECOGNISED) -> ReadTable:
    """Read a table with a column of classes.

    Parameters
    ----------
    source : path, or frame of pandas, polars or pyarrow
        A file is text (plain or gzip), Parquet, or Arrow and Feather; what it holds decides, not its name.
    target : str
        The column of classes. Rows without a class are left out.
    settings : TableSettings
        What is known about the table.

    Raises
    ------
    DeclarationError
        In one line, if the source is no table, a named column does not exist, or there is nothing to learn from it.
    """

    def check(owner: str, names: list[str]) -> None:
        check_columns(owner, names, target, settings)
        _check_features(owner, _features(names, target, settings))

    table = open_source(source, settings, check)
    chosen = _features(table.frame.columns, target, settings)
    classes = read_classes(table, target, settings)
    if len(classes.labels) < _FEWEST_ROWS:
        raise DeclarationError(
            f"{table.owner}: at least {_FEWEST_ROWS} rows with a class are needed to learn from, got "
            f"{len(classes.labels)}; add rows"
        )
    read = [_kept(column, classes.rows, settings) for column in read_columns(table, chosen, settings)]
    features = [column for column in read if column.data is not None]
    if not features:
        raise DeclarationError(
            f"{table.owner}: at least one column must be a feature, got none of {len(read):,}; {_first_reason(read)}"
        )
    codes = {column.name: _codes(column.data) for column in features if column.data is not None}
    read = _with_suspicions(read, codes, classes.labels)
    repeated = repeated_rows([*codes.values(), classes.labels])
    frame = _frame(features)
    cards = _cards(table, read, classes, settings)
    return ReadTable(
        name=table.name,
        features=frame,
        labels=classes.labels,
        classes=classes.names,
        positive=classes.positive,
        card=cards,
        repairs=(*table.repairs, *classes.repairs, *([repeated] if repeated else []), *_notes(cards)),
        sha256=fingerprint(frame, classes.column()),
    )


def _features(names: Iterable[str], target: str, settings: TableSettings) -> list[str]:
    outside = {target, *settings.drop, *settings.ids}
    wanted = None if settings.features is None else set(settings.features)
    return [name for name in names if name not in outside and (wanted is None or name in wanted)]


def _check_features(owner: str, features: list[str]) -> None:
    if not features:
        raise DeclarationError(
            f"{owner}: there must be a column beside the target to be a feature, got none; if the columns were "
            "not told apart, name the separator"
        )
    if len(features) > _MOST_FEATURES:
        raise DeclarationError(
            f"{owner}: at most {_MOST_FEATURES:,} columns can be features, got {len(features):,}; name those of "
            "interest in features, or the others in drop"
        )


def _kept(column: ReadColumn, rows: NDArray[np.int64], settings: TableSettings) -> ReadColumn:
    """Return a column in the rows with a class, left out if it is none then."""
    if column.data is None:
        return column
    values = column.data.iloc[rows].reset_index(drop=True)
    if column.read_as in ("category", "boolean"):
        values = values.cat.remove_unused_categories()
    asked_for = column.name in (settings.features or ()) or column.name in settings.types
    reason = reason_to_leave_out(values, asked_for)
    if reason is None:
        return replace(column, data=values)
    return ReadColumn(column.name, "left out", None, (*column.notes, reason))


def _first_reason(read: list[ReadColumn]) -> str:
    column = next(column for column in read if column.notes)
    return f"of {quoted(column.name)}: {column.notes[-1]}; add columns, or correct separator, types and missing_values"


def _codes(values: pd.Series[Any]) -> NDArray[np.int64]:
    import pandas as pd

    return np.asarray(pd.factorize(values)[0], dtype=np.int64)


def _with_suspicions(
    read: list[ReadColumn], codes: dict[str, NDArray[np.int64]], labels: NDArray[np.int64]
) -> list[ReadColumn]:
    same = equal_columns([column.data for column in read if column.data is not None], codes)
    found = []
    for column in read:
        if column.data is not None:
            notes = suspicion(column.data, codes[column.name], labels)
            if column.name in same:
                notes.append(f"it says the same as {quoted(same[column.name])} in every row")
            column = replace(column, notes=(*column.notes, *notes))
        found.append(column)
    return found


def _frame(features: list[ReadColumn]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({column.name: column.data for column in features})


def _cards(
    table: SourceTable, read: list[ReadColumn], classes: Classes, settings: TableSettings
) -> tuple[ColumnCard, ...]:
    """Return the cards of all columns of the source, in its order."""
    cards = {column.name: card_of(column) for column in read if column.data is not None}
    cards[classes.name] = classes.card()
    notes = {column.name: column.notes for column in read}
    found = []
    for name in table.frame.columns:
        card = cards.get(name)
        if card is None:
            card = card_of_source(table.frame[name], settings, notes.get(name))
        found.append(card)
    return tuple(found)


def _notes(cards: Iterable[ColumnCard]) -> list[str]:
    return [f"column {quoted(card.name)}: {note}" for card in cards for note in card.notes]
