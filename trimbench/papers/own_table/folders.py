"""Folders of Parquet files of any size, as a sample of their rows that fits into memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trimbench.networks.batches import scanned
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.messages import some

# More than any step of a study takes, unless its settings ask for more.
SAMPLED_ROWS = 100_000
_BATCH_ROWS = 2**16


def sampled(folder: Path, check: Callable[[list[str]], None]) -> tuple[Any, list[str]]:
    """Return rows of a folder of Parquet files, drawn at random in one pass, as an Arrow table, and a note on them.

    Each batch of rows is in memory only while it is read. The same files give the same rows. Raises DeclarationError if
    there are no such files, they do not have the same columns, or they cannot be read.
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
        chosen = np.arange(n_rows)
        if n_rows > SAMPLED_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(n_rows, SAMPLED_ROWS, replace=False, shuffle=False))
        parts, start = [rows.schema.empty_table()], 0
        for batch in scanned(rows, size=_BATCH_ROWS):
            here = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, start + batch.num_rows)]
            parts.append(pa.Table.from_batches([batch.take(pa.array(here - start))]))
            start += batch.num_rows
        table = pa.concat_tables(parts).combine_chunks()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        if isinstance(error, DeclarationError):
            raise
        reason = str(error).splitlines()[0]
        raise DeclarationError(
            f"folder {folder.name!r} must hold Parquet files of the same columns; {reason}"
        ) from error
    if len(chosen) == n_rows:
        return table, []
    return table, [f"{len(chosen):,} rows were drawn at random from {n_rows:,} in {len(files):,} files"]
