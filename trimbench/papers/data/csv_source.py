"""Tables in files of one's own, or fetched."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import Text
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.files import FileDeclaration, check_one_of, existing, fetch_file
from trimbench.papers.data.source import Source
from trimbench.papers.data.tables.declared import read_declared
from trimbench.papers.data.tables.files import read_file
from trimbench.papers.data.tables.frames import SourceTable, check_columns
from trimbench.papers.data.tables.settings import MISSING_VALUES, ColumnType, TableSettings
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
_PLAIN = TableSettings()


@settings
class CsvSource(Source):
    """A table in a text file: one of the user's own (`path`) or one that is fetched.

    The file begins with a header line, unless `columns` names the columns. The other keys are those of `TableSettings`.
    Columns without an entry in `types` are numbers if all their values are, otherwise labels.
    """

    kind: Literal["csv"] = "csv"
    target: Text
    path: Text | None = None
    file: FileDeclaration | None = None
    columns: list[Text] = field(default_factory=list)
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    drop: list[Text] = field(default_factory=list)
    features: list[Text] | None = None
    id: list[Text] | Text | None = None
    types: dict[Text, ColumnType] = field(default_factory=dict)
    missing_values: list[str] = field(default_factory=lambda: list(MISSING_VALUES))

    def __post_init__(self) -> None:
        check_one_of("path", self.path, "file", self.file)
        _ = self.reading  # a mistake in it is reported with the declaration

    @functools.cached_property
    def reading(self) -> TableSettings:
        """How the table is to be read."""
        return TableSettings(
            separator=self.separator,
            encoding=self.encoding,
            decimal=self.decimal,
            drop=tuple(self.drop),
            features=None if self.features is None else tuple(self.features),
            id=self.id if self.id is None or isinstance(self.id, str) else tuple(self.id),
            types=self.types,
            missing_values=tuple(self.missing_values),
        )

    def load(self, name: str, cache: Cache) -> Dataset:
        """Read the user's own file, or the declared one."""
        path = fetch_file(self.file, cache) if self.file else existing(f"data set {name!r}", str(self.path))
        table = read_table(name, self.target, path, self.columns, self.reading)
        return build_dataset(name, self.facts, table, self.target)

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the one file may be."""
        return [cache.copies(self.file.path)] if self.file else [[Path(str(self.path))]]


def read_table(
    name: str, target: str, path: Path, columns: Sequence[str] = (), reading: TableSettings = _PLAIN
) -> pd.DataFrame:
    """Read the target and the features of a data set, whose class labels stay as they are written.

    `columns` has the names of the columns where the file has no header line. What had to be repaired is logged.
    """
    owner = f"data set {name!r}"
    frame, repairs = read_file(
        owner,
        path,
        reading.separator,
        reading.encoding,
        columns,
        check=lambda names: check_columns(owner, names, target, reading),
    )
    table, notes = read_declared(SourceTable(name, owner, frame), target, reading)
    for note in [*repairs, *notes]:
        _log.warning("%s: %s", owner, note)
    return table
