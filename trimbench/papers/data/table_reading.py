"""Read a table for a study: a file or a frame in, features, classes and an account of every column out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.columns import is_number_column, label_column, number_column
from trimbench.papers.data.errors import DeclarationError
from trimbench.papers.data.fingerprint import fingerprint
from trimbench.papers.data.tables.settings import ColumnCard, ReadAs, ReadTable, TableSettings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ColumnCard", "ReadTable", "TableSettings", "read_table"]

_AS_RECOGNISED = TableSettings()


def read_table(source: Any, target: str, settings: TableSettings = _AS_RECOGNISED) -> ReadTable:
    """Read a table with a column of classes.

    Parameters
    ----------
    source : path, or frame of pandas, polars or pyarrow
        A file is text (.csv, .tsv, also .gz), Parquet, or Arrow and Feather; what it holds decides, not its name.
    target : str
        The column of classes. Rows without a class are left out.
    settings : TableSettings
        What is known about the table.

    Raises
    ------
    DeclarationError
        In one line, if the source is no table, a named column does not exist, or there is nothing to learn from it.
    """
    import pandas as pd

    table = source if isinstance(source, pd.DataFrame) else pd.read_csv(Path(source), sep=None, engine="python")
    if target not in table.columns:
        raise DeclarationError(f"target must be a column of the data, got {target!r}")
    known = table[target].notna()
    repairs = [] if known.all() else [f"{int((~known).sum())} rows without a class are left out"]
    table = table[known].reset_index(drop=True)
    classes = label_column(table[target]).cat.remove_unused_categories()
    outside = {target, *settings.drop, *settings.ids}
    names = [name for name in settings.features or table.columns if name not in outside]
    read = {
        name: number_column(table[name]) if is_number_column(table[name]) else label_column(table[name])
        for name in names
    }
    features = pd.DataFrame(read)
    labels = tuple(map(str, classes.cat.categories))
    rarer = labels[int(np.argmin(np.bincount(classes.cat.codes)))] if len(labels) == 2 else None
    return ReadTable(
        name="table" if isinstance(source, pd.DataFrame) else Path(source).name.split(".")[0],
        features=features,
        labels=classes.cat.codes.to_numpy().astype(np.int64),
        classes=labels,
        positive=settings.positive or rarer,
        card=tuple(_card(table[name], name, target, names) for name in table.columns),
        repairs=tuple(repairs),
        sha256=fingerprint(features, classes),
    )


def _card(column: pd.Series[Any], name: str, target: str, features: list[str]) -> ColumnCard:
    read_as: ReadAs = "number" if is_number_column(column) else "category"
    if name not in features:
        read_as = "target" if name == target else "left out"
    return ColumnCard(name, read_as, column.nunique(), int(column.isna().sum()), "", ())
