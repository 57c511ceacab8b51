"""Data sets in text files, read as a study reads a table: with types, dates and marks for missing values."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from trimbench.papers.own_table.table_files import SourceTable, read_file, within_memory
from trimbench.papers.own_table.table_reading import read_declared
from trimbench.papers.own_table.table_texts import Reading
from trimbench.reproduction.data.cache import Text
from trimbench.reproduction.data.dataset import Dataset, build_dataset
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.data.sources import InFiles, Members, OneFile
from trimbench.reproduction.messages import quoted, shown
from trimbench.reproduction.settings import settings

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


@settings
class _DeclaredText(Reading, InFiles):
    """A table in text files, read as a study reads one.

    `values` has, by column, texts and the values that replace them. Columns without an entry in `types` have labels
    where a study would leave them out.
    """

    values: dict[Text, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        super(Reading, self).__post_init__()  # of where the files are; `Reading` is no source

    def read(self, name: str, paths: Sequence[Path], skip: Sequence[int] = (0,), omit: Sequence[int] = ()) -> Dataset:
        """Read the table in files, one below the other, each without its first `skip` lines, and leave rows out."""
        return build_dataset(name, self.facts, self._table(f"data set {name!r}", paths, skip, omit), self.target)

    @within_memory()
    def _table(self, owner: str, paths: Sequence[Path], skip: Sequence[int], omit: Sequence[int]) -> pd.DataFrame:
        """Return the target and the features, whose class labels stay as they are written; log what was repaired."""
        import pandas as pd

        parts, repairs = [], []
        for path, lines in zip(paths, skip, strict=True):
            part, mended = read_file(owner, path, self, self.target, self.columns, lines)
            parts.append(part)
            repairs += mended
        names = dict.fromkeys(self.columns or [str(name) for part in parts for name in part])
        for path, part in zip(paths, parts, strict=True):
            if absent := [name for name in names if name not in part.columns]:
                raise DeclarationError(f"{owner}: {path.name} must have the column {quoted(absent[0])}, as declared")
        frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        if omit:
            if max(omit) >= len(frame):
                raise DeclarationError(f"{owner}: omit must be below the {len(frame)} rows, got {max(omit)}")
            frame = frame.drop(frame.index[list(omit)]).reset_index(drop=True)
        for column, others in self.values.items():
            if column not in frame.columns:
                raise DeclarationError(
                    f"{owner}: values must name columns, got {column!r}; there are {list(frame)[:20]}"
                )
            present = set(frame[column])
            if unused := [value for value in others if value not in present]:
                repairs.append(f"values.{column} names {shown(unused)}, which no row has")
            frame[column] = frame[column].replace(others)
        table, notes = read_declared(SourceTable(owner, owner, frame), self.target, self)
        for note in [*repairs, *([] if self.facts.sha256 else notes)]:  # rows that match a hash are as intended
            _log.warning("%s: %s", owner, note)
        return table


@settings
class CsvSource(_DeclaredText, OneFile):
    """A table in a text file."""


@settings
class PackageSource(_DeclaredText, Members):
    """A table in text files inside a package."""
