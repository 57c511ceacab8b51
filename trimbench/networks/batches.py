"""Rows that need not fit into memory: Parquet files, datasets and iterators of batches, as frames of some rows each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench._extras import required
from trimbench.networks.values import column_numbers, is_plain, names_text, plain_table

if TYPE_CHECKING:
    import pandas as pd

# Rows of a batch, where the source lets one choose: fifty columns take 50 MB as floats.
_BATCH_ROWS = 2**17


@dataclass(frozen=True, eq=False)
class Batches:
    """A table in batches of rows, which is passed over as often as a method needs.

    Attributes
    ----------
    columns : tuple of str, optional
        The columns that are read, in this order; None for all.
    """

    _begin: Callable[[Sequence[str] | None], Iterator[Any]]
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, rows: Any, columns: Iterable[str] | None = None) -> Batches:
        """Return the batches of a source.

        Parameters
        ----------
        rows : Batches, path, dataset, callable or iterable
            A Parquet file or a folder of them; a `pyarrow.dataset.Dataset`, a `pyarrow.parquet.ParquetFile` or a Ray
            dataset; or frames or Arrow record batches of the same columns: in a list, from a function that returns a
            new iterator at each call, or from an iterator, which can be passed over only once.
        columns : iterable of str, optional
            Which columns to read.

        Raises
        ------
        TypeError
            When it is none of these.
        trimbench._extras.MissingExtraError
            When a path is given and pyarrow is not installed.
        """
        found = rows if isinstance(rows, Batches) else cls(_beginning(rows))
        return found if columns is None else replace(found, columns=tuple(map(str, columns)))

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Yield frames of all columns, in order, with one row or more.

        Raises ValueError where a batch lacks a column or has another one, and at a second pass over an iterator.
        """
        names, n_rows = self.columns, 0
        for batch in self._begin(names):
            frame = _frame(batch)
            labels = [str(label) for label in frame.columns.tolist()]
            names = tuple(labels) if names is None else names
            if labels != list(names):
                given = self.columns is not None and set(names) <= set(labels)
                if not given and sorted(labels) != sorted(names):
                    wanted, got = names_text(names), names_text(labels)
                    raise ValueError(f"each batch must have the columns {wanted}, got {got} after {n_rows} rows")
                frame = frame.set_axis(labels, axis=1)[list(names)]
            n_rows += len(frame)
            if len(frame):
                yield frame
        if not n_rows:
            raise ValueError("the batches must have at least one row, got none")

    def sample(self, most: int, random_state: int) -> pd.DataFrame:
        """Return at most so many rows, drawn at random in one pass, in their order."""
        import pandas as pd

        rng, bar = np.random.default_rng(random_state), np.inf
        parts: list[pd.DataFrame] = []
        lots = np.empty(0)
        for frame in self:
            drawn = rng.random(len(frame))
            parts.append(frame[drawn < bar])
            lots = np.concatenate([lots, drawn[drawn < bar]])
            if len(lots) > most:
                kept = np.sort(np.argpartition(lots, most)[:most])
                parts, lots = [pd.concat(parts, ignore_index=True).iloc[kept]], lots[kept]
                bar = lots.max()
        return pd.concat(parts, ignore_index=True)

    def labelled(self, target: Any) -> Iterator[tuple[pd.DataFrame, pd.Series[Any]]]:
        """Yield the features and the class of each batch; ValueError unless `target` names a column."""
        if not isinstance(target, str):
            raise TypeError(
                f"where rows come in batches, the class must be the name of a column, got {type(target).__name__}"
            )
        columns = self.columns if self.columns is None or target in self.columns else (*self.columns, target)
        for frame in replace(self, columns=columns):
            if target not in frame.columns:
                raise ValueError(
                    f"the class must be a column of the batches, got {target!r}, not one of "
                    f"{names_text(list(frame.columns))}"
                )
            yield frame.drop(columns=target), frame[target]

    def numbers(self, size: int = _BATCH_ROWS) -> Iterator[NDArray[np.float64]]:
        """Yield parts of at most `size` rows as numbers, NaN where a value is missing; ValueError for other values.

        In Fortran order: the values of a column are side by side.
        """
        for frame in self:
            yield from _parts(frame, size)

    def labelled_numbers(
        self, target: Any, size: int, names: list[str]
    ) -> Iterator[tuple[NDArray[np.float64], pd.Series[Any]]]:
        """Yield parts of the features as numbers, as `numbers` does, and the class of each row; fill in the names."""
        for frame, labels in self.labelled(target):
            names[:] = frame.columns.tolist()
            for start, part in zip(range(0, len(frame), size), _parts(frame, size), strict=True):
                yield part, labels.iloc[start : start + size]


def in_batches(rows: Any) -> bool:
    """Tell whether rows come in batches, and are not a table."""
    if isinstance(rows, Batches | str | Path) or callable(rows) or _is_dataset(rows):
        return True
    if isinstance(rows, Mapping) or hasattr(rows, "__array__") or hasattr(rows, "toarray") or _is_frame(rows):
        return False
    if isinstance(rows, list | tuple):
        return bool(rows) and _is_frame(rows[0])
    return isinstance(rows, Iterable)


def _parts(frame: pd.DataFrame, size: int) -> Iterator[NDArray[np.float64]]:
    columns = [_numbers(column, str(name)) for name, column in frame.items()]
    for start in range(0, len(frame), size):
        part = np.empty((len(columns), min(size, len(frame) - start)))
        for place, column in enumerate(columns):
            part[place] = column[start : start + size]
        yield part.T


def _numbers(column: pd.Series[Any], name: str) -> NDArray[Any]:
    """Return the numbers of a column in their type."""
    plain = isinstance(column.dtype, np.dtype) and is_plain(column.dtype) and column.dtype.kind in "biuf"
    return column.to_numpy() if plain else column_numbers(column, name, finite=False)


def _is_frame(rows: Any) -> bool:
    """Tell whether this is a table of some library, such as a frame, an Arrow table or a record batch."""
    return not _is_dataset(rows) and (hasattr(rows, "columns") or hasattr(rows, "to_pandas"))


def _is_dataset(rows: Any) -> bool:
    return hasattr(rows, "scanner") or hasattr(rows, "iter_batches")


def _frame(batch: Any) -> pd.DataFrame:
    import pandas as pd

    if hasattr(batch, "to_pandas") and hasattr(batch, "schema") and not hasattr(batch, "get_column"):
        frame = batch.to_pandas(split_blocks=True)  # numbers without gaps are not copied
    else:
        frame = plain_table(batch)
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"each batch must be a data frame or an Arrow record batch, got {type(batch).__name__}; make it a frame "
            "with pd.DataFrame(array, columns=names)"
        )
    return frame


def _beginning(rows: Any) -> Callable[[Sequence[str] | None], Iterator[Any]]:
    """Return a function that begins a pass over some columns."""
    if isinstance(rows, str | Path):
        (dataset,) = required("pyarrow.dataset", extra="arrow", what="a folder of Parquet files")
        rows = dataset.dataset(str(Path(rows).expanduser()), format="parquet")
    if hasattr(rows, "scanner"):
        return lambda columns: scanned(rows, columns)
    if hasattr(rows, "iter_batches"):
        given = inspect.signature(rows.iter_batches).parameters
        if "batch_format" in given:  # Ray Data
            return lambda columns: iter(
                (rows if columns is None else rows.select_columns(list(columns))).iter_batches(
                    batch_size=_BATCH_ROWS, batch_format="pyarrow"
                )
            )
        return lambda columns: rows.iter_batches(batch_size=_BATCH_ROWS, columns=_listed(columns))
    if callable(rows):
        return lambda _: iter(rows())
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping) or _is_frame(rows):
        raise TypeError(
            "rows in batches must be a folder of Parquet files, a dataset, a function that returns an iterator of "
            f"frames or record batches, or a list of these, got {type(rows).__name__}"
        )
    iterator = iter(rows)
    return _Once(iterator) if iterator is rows else lambda _: iter(rows)


def scanned(rows: Any, columns: Sequence[str] | None = None, size: int = _BATCH_ROWS) -> Iterator[Any]:
    """Yield record batches of at most `size` rows of a `pyarrow.dataset.Dataset`.

    Arrow scans a whole dataset up to a GiB ahead of whoever uses its batches slowly. So Parquet files are read one row
    group after the other, of which one is in memory; other formats, and a dataset with a filter, are left to Arrow.
    """
    settings: dict[str, Any] = {"columns": _listed(columns), "batch_size": size}
    files = _parquet_files(rows)
    if files is None:
        yield from rows.to_batches(**settings, batch_readahead=2, fragment_readahead=1)
        return
    (dataset,) = required("pyarrow.dataset", extra="arrow", what="a dataset of Parquet files")
    # Nor are the bytes of a whole file loaded before its first row group is used.
    scan = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    for file in files:
        for group in file.split_by_row_group():
            yield from group.to_batches(schema=rows.schema, fragment_scan_options=scan, **settings)


def _parquet_files(rows: Any) -> list[Any] | None:
    """Return the files of a dataset; None if they are of another format, or the dataset does not tell."""
    try:
        files = list(rows.get_fragments())
    except (AttributeError, ValueError):  # ValueError: it has a filter
        return None
    return files if all(hasattr(file, "split_by_row_group") for file in files) else None


def _listed(columns: Sequence[str] | None) -> list[str] | None:
    return None if columns is None else list(columns)


@dataclass(eq=False)
class _Once:
    """An iterator, which begins once."""

    iterator: Iterator[Any] | None

    def __call__(self, columns: Sequence[str] | None) -> Iterator[Any]:
        iterator, self.iterator = self.iterator, None
        if iterator is None:
            raise ValueError(
                "the batches must be ones that can be passed over several times, got an iterator, which is used up "
                "after one pass; give a list of batches, a folder or dataset, or a function that returns a new iterator"
            )
        return iterator
