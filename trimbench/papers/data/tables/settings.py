"""How a table is to be read, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.errors import DeclarationError

if TYPE_CHECKING:
    import pandas as pd

ColumnType = Literal["category", "number", "boolean", "date"]
COLUMN_TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
ReadAs = Literal["category", "number", "boolean", "date", "id", "target", "left out"]
# What pandas takes for missing, and the question mark of many UCI files.
MISSING_VALUES = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
_LISTS = ("drop", "features", "id", "missing_values")


@dataclass(frozen=True)
class TableSettings:
    """What is known about a table; what is not given is recognised.

    Attributes
    ----------
    separator : str, optional
        The character between two values of a text file. The default is the one of ``, ; tab |`` that the header line
        has most often.
    encoding : str, optional
        Of a text file. The default is UTF-8, or what a byte order mark says.
    decimal : {".", ","}, optional
        What stands before the decimals where the numbers of a column leave that open, as in 1,234. The default follows
        from the other columns.
    drop : tuple of str
        Columns that are not read.
    features : tuple of str, optional
        The only columns that are features; by default all that are not `drop`, `id` or the target.
    id : str or tuple of str, optional
        Columns that name a row. They are no features.
    types : mapping from column to {"category", "number", "boolean", "date"}
        How columns are read, instead of what their values look like. A column with many different texts is a feature
        only if it is a category here.
    missing_values : tuple of str
        The texts that stand for a missing value. An empty field always does.
    positive : str, optional
        The class of interest. The default is the rarer one of two classes; several classes have none.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    id: str | tuple[str, ...] | None = None
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    missing_values: tuple[str, ...] = MISSING_VALUES
    positive: str | None = None

    def __post_init__(self) -> None:
        for name in _LISTS:
            value = getattr(self, name)
            if name == "id" and isinstance(value, str):
                value = (value,)
            if isinstance(value, str):
                raise DeclarationError(f"{name} must be a list of names, got {value!r}; write {name}=[{value}]")
            if value is not None:
                object.__setattr__(self, name, tuple(map(str, value)))
        if self.separator == "\\t":  # as command lines have it
            object.__setattr__(self, "separator", "\t")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise DeclarationError(
                f"separator must be a single character, such as ';' or '\\t', got {self.separator!r}; leave it out to "
                "have it recognised"
            )
        if self.decimal not in (None, ".", ","):
            raise DeclarationError(f"decimal must be '.' or ',', got {self.decimal!r}; leave it out to be recognised")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        for column, kind in self.types.items():
            if kind not in COLUMN_TYPES:
                raise DeclarationError(f"types.{column} must be one of {', '.join(COLUMN_TYPES)}, got {kind!r}")

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return (self.id,) if isinstance(self.id, str) else self.id or ()

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """The columns that each setting names."""
        return {"drop": self.drop, "features": self.features or (), "id": self.ids, "types": tuple(self.types)}


SETTING_NAMES = tuple(one.name for one in fields(TableSettings))


def _check_encoding(name: str) -> None:
    try:
        "a".encode(name)
    except (LookupError, ValueError) as error:
        raise DeclarationError(
            f"encoding must be one that Python knows, such as 'utf-8' or 'cp1252', got {name!r}"
        ) from error


@dataclass(frozen=True)
class ColumnCard:
    """How one column was read.

    Attributes
    ----------
    name : str
    read_as : {"category", "number", "boolean", "date", "id", "target", "left out"}
        A category and a boolean are labels; a date is the number of days since 1970-01-01.
    distinct, missing : int
        Number of different values and of rows without one.
    values : str
        The most frequent values with their numbers of rows, or the range and the median of numbers and dates.
    notes : tuple of str
        What was repaired or looks wrong.
    """

    name: str
    read_as: ReadAs
    distinct: int
    missing: int
    values: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table that is ready for a study, and how it was read.

    Attributes
    ----------
    name : str
        The name of the file without its ending, or ``"table"``.
    features : DataFrame of shape (n_rows, n_features)
        Numbers (also dates) as float64, everything else as a category of text; NaN where a value is missing.
    labels : int array of shape (n_rows,)
        The place of each row's class in `classes`.
    classes : tuple of str
        In the order of their numbers if all are numbers, otherwise in that of the alphabet.
    positive : str or None
        The class of interest, None for several classes without a named one.
    card : tuple of ColumnCard
        One for each column of the source, in its order, the target among them.
    repairs : tuple of str
        Everything that was changed, left out or looks wrong, one line each.
    sha256 : str
        Hash of the features and labels, whatever the file is called and wherever it is.
    """

    name: str
    features: pd.DataFrame
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    positive: str | None
    card: tuple[ColumnCard, ...]
    repairs: tuple[str, ...]
    sha256: str
