"""Tables in text files."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import Text
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.files import FileDeclaration, check_one_of, existing, fetch_file
from trimbench.papers.data.reachability import one_line_reason
from trimbench.papers.data.source import Source
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')


@settings
class CsvSource(Source):
    """A table in a text file: one of the user's own (`path`) or one that is fetched.

    The file begins with a header line, unless `columns` names the columns.
    """

    kind: Literal["csv"] = "csv"
    target: Text
    path: Text | None = None
    file: FileDeclaration | None = None
    columns: list[Text] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_one_of("path", self.path, "file", self.file)

    def load(self, name: str, cache: Cache) -> Dataset:
        """Read the user's own file, or the declared one."""
        path = fetch_file(self.file, cache) if self.file else existing(f"data set {name!r}", str(self.path))
        return build_dataset(name, self.facts, read_table(name, self.target, path, self.columns), self.target)

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the one file may be."""
        return [cache.copies(self.file.path)] if self.file else [[Path(str(self.path))]]


def read_table(name: str, target: str, path: Path, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Read the text table of a data set, whose class labels stay as they are written.

    `columns` has the names of the columns where the file has no header line.
    """
    import pandas as pd

    try:
        table = pd.read_csv(
            path,
            sep=_separator(path),
            names=list(columns) or None,
            header=None if columns else "infer",
            dtype={target: str},
            na_values=["?"],  # how many UCI files write a missing value
            skipinitialspace=True,
            encoding="utf-8-sig",
            low_memory=False,
        )
    except (ValueError, OSError, EOFError) as error:  # parser errors and wrong encodings are ValueErrors
        raise DeclarationError(
            f"data set {name!r}: {path} must be a text table in UTF-8 with a header line and one of the "
            f"separators , ; tab |, plain or gzip; reading it failed: {one_line_reason(error)}"
        ) from error
    if not isinstance(table.index, pd.RangeIndex):
        raise DeclarationError(
            f"data set {name!r}: {path} must have as many names in its header line as values in each row, "
            f"got {table.shape[1]} names and more values; add the missing names"
        )
    return table


def _separator(path: Path) -> str:
    """Return the separator that occurs most often in the header line, outside quotes."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as stream:
        header = _QUOTED.sub("", stream.readline())
    return max(_SEPARATORS, key=header.count)
