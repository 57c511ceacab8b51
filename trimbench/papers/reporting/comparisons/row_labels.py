"""Which columns of a table tell its rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def label_columns(frames: Sequence[pd.DataFrame]) -> list[str]:
    """Return the columns that tell the rows apart in each of several frames that have the same columns.

    Labels stand before values: they are the fewest leading columns that differ from row to row, without those that do
    not help, for example a number of repetitions. A first column of text is a label even where one row needs none.
    Where some rows are the same in all columns, the columns of text are labels.
    """
    columns = [str(column) for column in frames[0].columns]
    texts = [frame.astype(object).map(str) for frame in frames]

    def distinguish(chosen: Sequence[str]) -> bool:
        return all(not frame.duplicated(subset=list(chosen)).any() if chosen else len(frame) < 2 for frame in texts)

    words = [column for column in columns if all(frame[column].dtype.kind not in "iufb" for frame in frames)]
    first = int(columns[:1] == words[:1] != [])
    prefixes = (columns[:k] for k in range(first, len(columns) + 1))
    labels = next(filter(distinguish, prefixes), words)
    for column in reversed(labels[first:]):
        fewer = [name for name in labels if name != column]
        if distinguish(fewer):
            labels = fewer
    return labels
