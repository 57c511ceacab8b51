"""Data files of R, trusted only by the fingerprint of the values that are read from them."""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import lzma
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.constraints import Text
from trimbench.papers.data.csv_source import read_table
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.errors import DeclarationError, FactsMismatch, Unreadable
from trimbench.papers.data.files import CacheOnlyFile, UnverifiedFile, download, fetching, find_file
from trimbench.papers.data.reachability import one_line_reason
from trimbench.papers.data.source import Source
from trimbench.papers.validation import settings

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
# The ways in which R packs a file, by its first bytes, and how long it may be when it is unpacked.
_PACKED: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_MAX_UNPACKED = 2**26


@settings
class RSource(Source):
    """A data file of R with a matrix and class labels; no hash is known, so its values' fingerprint vouches for it.

    The class labels, called `labels` in the file, become the column `target`; the other columns are called `prefix` and
    a number from 1. `table` is the same table as text, used where a cache folder holds it.
    """

    kind: Literal["r"] = "r"
    target: Text
    prefix: Text
    labels: Text
    file: UnverifiedFile
    table: CacheOnlyFile | None = None

    def __post_init__(self) -> None:
        if self.facts.sha256 is None:
            raise ValueError(
                "key facts.sha256 is missing; add it (no hash of the R file is declared, so only the fingerprint of "
                "its values vouches for it)"
            )

    def load(self, name: str, cache: Cache) -> Dataset:
        """Read the table or the R file from the cache, or download the R file and keep it if its values are right."""
        table = find_file(self.table, cache) if self.table is not None else None
        if table is not None:
            return build_dataset(name, self.facts, read_table(name, self.target, table), self.target)
        for path in cache.copies(self.file.path):
            if not path.is_file():
                continue
            try:
                return self._read(name, path)
            except (Unreadable, FactsMismatch, OSError) as error:
                _log.warning("skipping %s: %s", path, error)
        with fetching(f"data set {name!r}", self.file.url, cache) as folder:
            partial = download(self.file.url, folder / "partial", cache.hosts, self.file.size)
            try:
                dataset = self._read(name, partial)
            except FactsMismatch as error:
                raise FactsMismatch(f"{error}; the download from {self.file.url} was not kept") from error
            cache.keep(partial, self.file.path)
            return dataset

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return where the R file or the table may be: one of the two is enough."""
        return [[*cache.copies(self.file.path), *(cache.copies(self.table.path) if self.table else [])]]

    def _read(self, name: str, path: Path) -> Dataset:
        try:
            return build_dataset(name, self.facts, self._table(_objects(path)), self.target)
        except DeclarationError as error:  # here the file is at fault, not the declaration
            raise Unreadable(str(error)) from error

    def _table(self, objects: dict[str, Any]) -> pd.DataFrame:
        """Convert a matrix and labels, or a data frame with a column of labels, to the declared columns."""
        import pandas as pd

        members = _members(objects, self.labels)
        labels = np.asarray(members.pop(self.labels)).ravel()
        matrix = next((value for value in members.values() if np.ndim(value) == 2), None)
        columns = [np.asarray(value) for value in (members.values() if matrix is None else np.asarray(matrix).T)]
        if not columns or any(column.shape != labels.shape for column in columns):
            raise Unreadable(f"the file has {len(labels)} labels and no features with as many rows")
        try:
            numbers = np.column_stack(columns).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise Unreadable(f"the features in the file are not all numbers ({one_line_reason(error)})") from error
        names = [f"{self.prefix}{number}" for number in range(1, len(columns) + 1)]
        return pd.DataFrame(numbers, columns=names).assign(**{self.target: labels})


def _objects(path: Path) -> dict[str, Any]:
    """Return the objects in an R file by name."""
    import rdata

    try:
        with warnings.catch_warnings():
            # It warns of unknown classes, whose values it reads all the same, and of what it then cannot read.
            warnings.simplefilter("ignore")
            # Files of older versions of R do not say how their texts are encoded.
            return dict(rdata.read_rda(io.BytesIO(_unpacked(path)), default_encoding="utf-8"))
    except Exception as error:  # the parser fails in many ways on damaged files
        raise Unreadable(f"the file is no intact data file of R ({one_line_reason(error)})") from error


def _unpacked(path: Path) -> bytes:
    """Return what is in an R file; raise ValueError if it is too long, or packed twice, which could go on forever."""
    for unpack in [unpack for magic, unpack in _PACKED.items() if path.read_bytes().startswith(magic)]:
        with unpack(path) as stream:
            content: bytes = stream.read(_MAX_UNPACKED + 1)
        if len(content) > _MAX_UNPACKED or content.startswith(tuple(_PACKED)):
            raise ValueError(f"unpacked, it must have at most {_MAX_UNPACKED} bytes and not be packed again")
        return content
    return path.read_bytes()


def _members(objects: dict[str, Any], labels: str) -> dict[str, Any]:
    """Return the parts of the list or data frame that has the labels, or all objects if they are one of them."""
    import pandas as pd

    for candidate in (objects, *objects.values()):
        if isinstance(candidate, Mapping | pd.DataFrame) and labels in candidate:
            return {str(name): candidate[name] for name in candidate}
    raise Unreadable(f"the file has no {labels!r} in a list or data frame; it has {', '.join(objects) or 'nothing'}")
