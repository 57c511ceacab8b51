"""The columns of a table whose declaration says what they are: nothing is guessed beyond numbers and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.data.columns import is_number_column
from trimbench.papers.data.tables.frames import SourceTable
from trimbench.papers.data.tables.numbers import plain_numbers
from trimbench.papers.data.tables.reading import read_columns
from trimbench.papers.data.tables.settings import TableSettings
from trimbench.papers.data.tables.texts import TextColumn
from trimbench.papers.data.tables.typed import type_of
from trimbench.papers.data.tables.wording import quoted

if TYPE_CHECKING:
    import pandas as pd

_TRUTH = {spelling: word for word in ("True", "False") for spelling in (word, word.upper(), word.lower())}


def read_declared(table: SourceTable, target: str, settings: TableSettings) -> tuple[pd.DataFrame, list[str]]:
    """Return the features and the target of a table, and notes on what had to be repaired.

    Columns in `settings.types` are read as it says. Others are numbers if all their values are, otherwise labels, and
    the target always has labels. Raises `DeclarationError` if a column cannot be read as its type.
    """
    import pandas as pd

    outside = {target, *settings.drop, *settings.ids}
    features = (
        settings.features
        if settings.features is not None
        else [name for name in table.frame.columns if name not in outside]
    )
    declared = [name for name in features if name in settings.types]
    typed = {column.name: column for column in read_columns(table, declared, settings)}
    found: dict[str, pd.Series[Any]] = {}
    # The target keeps its place: messages list the columns as the file has them.
    for name in (one for one in table.frame.columns if one == target or one in features):
        if name not in typed:
            found[name] = _plain(table.frame[name], settings, name == target)
        elif (data := typed[name].data) is not None:
            found[name] = data
        else:
            found[name] = pd.Series(np.nan, index=table.frame.index, name=name)
    notes = [f"column {quoted(column.name)}: {note}" for column in typed.values() for note in column.notes]
    return pd.DataFrame(found), notes


def _plain(column: pd.Series[Any], settings: TableSettings, is_target: bool) -> pd.Series[Any]:
    if type_of(column) is not None or is_number_column(column):
        return column
    texts = TextColumn.of(str(column.name), column, settings.missing_values, str)
    numbers = None if is_target else plain_numbers(texts.texts, settings.decimal or ".")
    if numbers is not None:
        import pandas as pd

        return pd.Series(texts.numbers(numbers), name=column.name)
    if not is_target and set(texts.texts) <= _TRUTH.keys():
        texts = texts.merged({text: _TRUTH[text] for text in texts.texts})
    return texts.labels()
