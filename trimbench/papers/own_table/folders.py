"""Folders of Parquet files of any size: a sample of their rows that fits into memory, and counts of all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.networks.batches import scanned
from trimbench.papers.own_table.table_texts import LARGEST, missing_among, numbers_among
from trimbench.reproduction.data.dataset import label_text
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.execution.job import seed_for
from trimbench.reproduction.messages import some

if TYPE_CHECKING:
    import pyarrow as pa

# More than any step of a study takes, unless its settings ask for more.
SAMPLED_ROWS = 100_000
# Different values of a column that are counted one by one.
MOST_COUNTED = 1_000
_MOST_CLASSES = 1_000
_BATCH_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class AllOfColumn:
    """What a column has in all rows with a class; the target, in all rows.

    Attributes
    ----------
    n_rows : int
    n_missing : int
        Rows without a value; where there are no `counts`, also those of values that stand for a missing one.
    found : Arrow array
        The different values; where there are more than `MOST_COUNTED`, the smallest and the largest.
    counts : list of int, optional
        The number of rows of each of them; None where these are the smallest and the largest.
    is_infinite : bool
        Whether an infinite number is among all, which is not among those found.
    """

    n_rows: int
    n_missing: int
    found: pa.Array
    counts: list[int] | None
    is_infinite: bool


@dataclass(frozen=True, eq=False)
class AllRows:
    """The rows of a folder from which a sample was drawn.

    Attributes
    ----------
    n_rows, n_with_class, n_sampled, n_files : int
    columns : mapping from name to AllOfColumn
        Without columns of which one pass tells nothing for certain: more than `MOST_COUNTED` different texts.
    """

    n_rows: int
    n_with_class: int
    n_sampled: int
    n_files: int
    columns: Mapping[str, AllOfColumn]

    @property
    def note(self) -> str:
        """What was drawn from what."""
        return (
            f"{self.n_sampled:,} rows were drawn at random from {self.n_rows:,} in {self.n_files:,} files, of which "
            f"{self.n_with_class:,} have a class; the card counts all rows with a class where it says so, notes on "
            "columns are about the rows drawn, and number these"
        )


def sampled(
    folder: Path,
    check: Callable[[list[str]], None],
    target: str,
    missing: Collection[str],
    most: int = SAMPLED_ROWS,
    seed: int = 0,
) -> tuple[pa.Table, AllRows | None]:
    """Return rows of a folder of Parquet files, drawn at random, and counts of all rows; both in one pass.

    Each set of so many rows is equally likely. The rows depend on how many there are and on the seed, not on batches.
    Each batch is in memory only while it is read.

    Parameters
    ----------
    folder : Path
    check : callable
        Raises an error if the names of the columns are not as they should be.
    target : str
        The column of classes.
    missing : collection of str
        The texts that stand for a missing value.
    most : int
        How many rows to draw.
    seed : int

    Returns
    -------
    table : pyarrow.Table
        In the order of the files and rows.
    rows : AllRows, optional
        None if the table has all rows.

    Raises
    ------
    DeclarationError
        If there are no such files, they do not have the same columns, or they cannot be read.
    """
    import pyarrow as pa
    from pyarrow import dataset

    files = sorted(folder.rglob("*.parquet"))
    if not files:
        raise DeclarationError(
            f"data must be a file or a folder of Parquet files, got the folder {str(folder)!r}; name a table in it"
        )
    try:
        rows = dataset.dataset(files)
        for fragment in rows.get_fragments():
            if other := {*fragment.physical_schema.names} ^ {*rows.schema.names}:
                # Arrow would take the first file's columns, and fill those that another file lacks.
                raise ValueError(f"{Path(fragment.path).name} differs from {files[0].name} in {some(sorted(other), 5)}")
        check(list(rows.schema.names))
        n_rows = rows.count_rows()
        chosen, count = np.arange(n_rows), None
        if n_rows > most:
            rng = np.random.default_rng(seed_for(purpose="rows of a folder", seed=seed))
            chosen = np.sort(rng.choice(n_rows, most, replace=False, shuffle=False))
            count = _Counts(rows.schema, target, missing)
        parts, start = [rows.schema.empty_table()], 0
        for batch in scanned(rows, size=_BATCH_ROWS):
            here = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, start + batch.num_rows)]
            parts.append(pa.Table.from_batches([batch.take(pa.array(here - start))]))
            start += batch.num_rows
            if count is not None:
                count.add(batch)
        table = pa.concat_tables(parts).combine_chunks()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        if isinstance(error, DeclarationError):
            raise
        reason = str(error).splitlines()[0]
        raise DeclarationError(
            f"folder {folder.name!r} must hold Parquet files of the same columns; {reason}"
        ) from error
    if count is None:
        return table, None
    return table, AllRows(n_rows, count.n_with_class, len(chosen), len(files), dict(count.found()))


class _Counts:
    """Counts of the columns of batches, in the rows with a class."""

    def __init__(self, schema: pa.Schema, target: str, missing: Collection[str]) -> None:
        self.n_with_class = self._n_rows = 0
        self._target, self._missing = target, missing
        self._is_missing = dict[Any, bool]()
        self._columns = {one.name: _Column(one.name, one.type, missing) for one in schema}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        self._n_rows += batch.num_rows
        classes = batch.column(self._target)
        self._columns[self._target].add(classes)
        if (known := self._with_class(classes)) is not None:
            batch = batch.filter(known)
        self.n_with_class += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name != self._target:
                self._columns[name].add(column)

    def found(self) -> Iterator[tuple[str, AllOfColumn]]:
        """Yield what each column has."""
        for name, column in self._columns.items():
            n_rows = self._n_rows if name == self._target else self.n_with_class
            if (found := column.found(n_rows)) is not None:
                yield name, found

    def _with_class(self, classes: pa.Array) -> pa.Array | None:
        """Return which rows have a class; None where all have one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        different = pc.unique(classes)
        if len(different) > _MOST_CLASSES:  # which no study takes
            return classes.is_valid() if classes.null_count else None
        gone = [self._stands_for_missing(value) for value in different.to_pylist()]
        if not any(gone):
            return None
        values = different.dictionary_decode() if pa.types.is_dictionary(different.type) else different
        return pc.invert(pc.is_in(classes, value_set=values.filter(pa.array(gone))))

    def _stands_for_missing(self, value: Any) -> bool:
        if value is None or value != value:
            return True
        if (known := self._is_missing.get(value)) is None:
            known = self._is_missing[value] = bool(missing_among([label_text(value).strip()], self._missing))
        return known


@dataclass(eq=False)
class _Column:
    """The values of a column: each is counted while they are few, then the smallest and the largest."""

    name: str
    kind: pa.DataType
    missing: Collection[str]
    n_missing: int = 0
    counts: dict[Any, int] | None = field(default_factory=dict)
    ends: list[Any] = field(default_factory=list)
    is_known: bool = True
    is_infinite: bool = False
    _whole: pa.DataType | None = None  # of the whole numbers by which days and durations are kept

    def __post_init__(self) -> None:
        import pyarrow as pa
        import pyarrow.types as types

        if types.is_dictionary(self.kind):
            self.kind = self.kind.value_type
        self.is_known = not (types.is_nested(self.kind) or types.is_null(self.kind))
        if types.is_temporal(self.kind) and self.kind.bit_width <= 64:  # whose values Python may not hold
            self._whole = pa.int32() if self.kind.bit_width == 32 else pa.int64()
        numbers = numbers_among(tuple(self.missing), days=False)
        self._marks = np.array([number for _, number in numbers], dtype=np.float64)

    def add(self, values: pa.Array) -> None:
        """Count values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.is_known or not len(values):
            return
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if self._whole is not None:
            values = values.view(self._whole)
        if self.counts is None:
            self._extend(values)
            return
        found = pc.value_counts(values)
        if len(found) <= MOST_COUNTED:
            for value, n in zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True):
                if value is None or value != value or self._is_infinite(value):
                    self.n_missing += n
                else:
                    self.counts[value] = self.counts.get(value, 0) + n
            if len(self.counts) <= MOST_COUNTED:
                return
            values = values.slice(0, 0)
        before, self.counts = self.counts, None
        self._extend(pa.array([*before], self._whole or self.kind), np.array([*before.values()], dtype=np.int64))
        self._extend(values)

    def _is_infinite(self, value: Any) -> bool:
        """Tell whether this is an infinite number; remember so unless it stands for a missing one."""
        if not isinstance(value, float) or not math.isinf(value):
            return False
        self.is_infinite |= value not in self._marks
        return True

    def _extend(self, values: pa.Array, times: Any = None) -> None:
        """Take account of values, each as many `times`, which are too many to be counted."""
        import pyarrow.compute as pc
        import pyarrow.types as types

        if self._whole is not None:
            # A day or a duration that stands for a missing value is not looked for.
            self.is_known = not any(numbers_among(tuple(self.missing), days=days) for days in (True, False))
            self.n_missing += values.null_count
            ends = pc.min_max(values).as_py()
            self.ends = _ends([*self.ends, *(one for one in ends.values() if one is not None)])
        elif types.is_integer(values.type) or types.is_floating(values.type) or types.is_decimal(values.type):
            self._extend_numbers(values, times)
        else:
            self.is_known = False

    def _extend_numbers(self, values: pa.Array, times: Any) -> None:
        import pyarrow as pa

        if not pa.types.is_floating(values.type):
            values = values.cast(pa.float64(), safe=False)
        numbers = values.to_numpy(zero_copy_only=False)  # NaN where one is missing
        gone = np.isnan(numbers)
        if len(self._marks):
            gone |= np.isin(numbers, self._marks.astype(numbers.dtype))
        known = numbers[~gone] if gone.any() else numbers
        if len(known) and not -LARGEST <= float(known.min()) <= float(known.max()) <= LARGEST:
            self.is_infinite |= bool(np.isinf(known).any())
            gone |= np.abs(numbers) > LARGEST
            known = numbers[~gone]
        self.n_missing += int(gone.sum() if times is None else times[gone].sum())
        if len(known):
            self.ends = _ends([*self.ends, float(known.min()), float(known.max())])

    def found(self, n_rows: int) -> AllOfColumn | None:
        """Return what is known of the column."""
        import pyarrow as pa

        if not self.is_known or not (self.counts or self.ends):
            return None
        if self.counts is None:
            values = pa.array(self.ends, self._whole or pa.float64())
        else:
            values = pa.array([*self.counts], self._whole or self.kind)
        values = values if self._whole is None else values.view(self.kind)
        counts = None if self.counts is None else [*self.counts.values()]
        return AllOfColumn(n_rows, self.n_missing, values, counts, self.is_infinite)


def _ends(values: list[Any]) -> list[Any]:
    return [min(values), max(values)] if values else []
