"""All columns of a table, each as its values or the settings say."""

from __future__ import annotations

from collections.abc import Sequence

from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.tables.columns import ReadColumn, read_texts
from trimbench.papers.data.tables.frames import SourceTable
from trimbench.papers.data.tables.settings import TableSettings
from trimbench.papers.data.tables.texts import TextColumn
from trimbench.papers.data.tables.typed import read_typed, type_of


def read_columns(table: SourceTable, names: Sequence[str], settings: TableSettings) -> list[ReadColumn]:
    """Read columns of a table."""
    missing = frozenset(settings.missing_values)
    types = {name: type_of(table.frame[name]) for name in names}
    texts = {
        name: TextColumn.of(name, table.frame[name], missing, str.strip)
        for name, kind in types.items()
        if kind is None or settings.types.get(name, kind) != kind
    }
    marks = set() if settings.decimal else set().union(*(column.decimal_marks for column in texts.values()))
    found = []
    for name, kind in types.items():
        try:
            if name in texts:
                found.append(read_texts(texts[name], settings.types.get(name), settings.decimal, marks))
            elif kind is not None:
                found.append(read_typed(name, table.frame[name], kind, settings.missing_values))
        except DeclarationError as error:
            raise DeclarationError(f"{table.owner}: {error}") from error
    return found
