"""Read a table for a study: a file or a frame in, features, classes and an account of every column out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.own_table.cards import ColumnCard, array_of, card_of, in_order, known_of
from trimbench.papers.own_table.column_reading import (
    LEFT_OUT,
    MAX_CATEGORIES,
    MISSING,
    ReadColumn,
    TextColumn,
    are_answers,
    labels_of_answers,
    read_categories,
    read_columns,
    type_of,
)
from trimbench.papers.own_table.folders import SAMPLED_ROWS
from trimbench.papers.own_table.table_files import SourceTable, open_source, within_memory
from trimbench.papers.own_table.table_texts import Reading, TableSettings
from trimbench.reproduction.data.dataset import Cells, Labels, canonical_order, hash_of
from trimbench.reproduction.data.errors import DeclarationError
from trimbench.reproduction.messages import did_you_mean, quoted, rows_in, rows_named, shown

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["ColumnCard", "ReadTable", "TableSettings", "read_table"]


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
    n_rows : int
        How many rows with a class the source has; a folder may have more than were drawn from it.
    """

    name: str
    features: pd.DataFrame
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    positive: str | None
    card: tuple[ColumnCard, ...]
    repairs: tuple[str, ...]
    sha256: str
    n_rows: int


_AS_RECOGNISED = TableSettings()
_FEWEST_ROWS, _MOST_FEATURES = 10, 5_000


@within_memory()
def read_table(
    source: Any,
    target: str,
    settings: TableSettings = _AS_RECOGNISED,
    *,
    sample_rows: int = SAMPLED_ROWS,
    seed: int = 0,
) -> ReadTable:
    """Read a table with a column of classes.

    Parameters
    ----------
    source : path, or frame of pandas, polars or pyarrow
        A file is text (plain or gzip), Parquet, or Arrow and Feather; what it holds decides, not its name. A folder has
        Parquet files of any size.
    target : str
        The column of classes. Rows without a class are left out.
    settings : TableSettings
        What is known about the table.
    sample_rows : int
        Of a folder with more rows, so many are drawn at random.
    seed : int
        Of this draw.

    Raises
    ------
    DeclarationError
        In one line, if the source is no table, a named column does not exist, or there is nothing to learn from it.
    """
    import pandas as pd

    table = open_source(source, settings, target, _MOST_FEATURES, sample_rows, seed)
    classes, notes, repairs = _classes(table, target, settings)
    rows = np.flatnonzero(classes.codes >= 0)
    labels = classes.codes[rows]
    if len(labels) < _FEWEST_ROWS:
        what = f"at least {_FEWEST_ROWS} rows with a class are needed to learn from, got {len(labels)}"
        raise DeclarationError(f"{table.owner}: {what}; add rows")
    read = read_columns(table, settings.features_of(table.frame.columns, target), settings)
    read = [_kept(column, rows, settings) for column in read]
    features = {column.name: column.cells for column in read if column.cells is not None}
    if not features:
        first = next(column for column in read if column.notes)
        what = f"got none of {len(read):,}; of {quoted(first.name)}: {first.notes[-1]}"
        advice = "add columns, or correct separator, types and missing_values"
        raise DeclarationError(f"{table.owner}: at least one column must be a feature, {what}; {advice}")
    arrays = {name: array_of(values) for name, values in features.items()}
    codes = {name: _numbered(values) for name, values in arrays.items()}
    same = equal_columns(arrays, codes)
    more = {name: suspicion(name, values, codes[name], labels, same.get(name)) for name, values in arrays.items()}
    columns = {one.name: replace(one, notes=(*one.notes, *more.get(one.name, ()))) for one in read}
    columns[target] = ReadColumn(target, "target", classes, tuple(notes))
    card = tuple(card_of(columns.get(name), name, table, settings, codes.get(name)) for name in map(str, table.frame))
    order, n_again = canonical_order([*features.values(), Labels(labels, classes.names)], len(labels))
    repairs = [*table.repairs, *repairs]
    if n_again:
        verb = "repeats" if n_again == 1 else "repeat"
        repairs.append(f"{rows_in(n_again)} {verb} an earlier one in all features and the class; they were kept")
    return ReadTable(
        name=table.name,
        features=pd.DataFrame(_in_pandas(features)),
        labels=labels,
        classes=tuple(classes.names),
        positive=_positive(table, classes, settings.positive),
        card=card,
        repairs=(*repairs, *(f"column {quoted(one.name)}: {note}" for one in card for note in one.notes)),
        sha256=hash_of([*features.items()], (target, Labels(labels, classes.names)), order),
        n_rows=len(labels) if table.every is None else table.every.n_with_class,
    )


def _kept(column: ReadColumn, rows: NDArray[np.int64], settings: Reading) -> ReadColumn:
    """Return a column in the rows with a class, left out if it cannot be a feature there."""
    if column.cells is None:
        return column
    cells = _taken(column.cells, rows)
    asked_for = column.name in (settings.features or ()) or column.name in settings.types
    if reason := reason_to_leave_out(column.name, cells, column.cells, asked_for):
        return ReadColumn(column.name, notes=(*column.notes, reason))
    return replace(column, cells=cells)


def _taken(cells: Cells, rows: NDArray[np.int64]) -> Cells:
    """Return the cells of some rows, without labels that none of them has."""
    if not isinstance(cells, Labels):
        return cells if len(rows) == len(cells) else cells[rows]
    codes = cells.codes[rows]
    counts = np.bincount(codes + 1, minlength=len(cells.names) + 1)[1:]
    if (counts > 0).all():
        return Labels(codes, cells.names)
    places = np.append(np.cumsum(counts > 0) - 1, -1)
    return Labels(places[codes], [name for name, count in zip(cells.names, counts.tolist(), strict=True) if count])


def _in_pandas(columns: Mapping[str, Cells]) -> dict[str, Any]:
    """Return columns as arrays that pandas makes a frame of."""
    import pandas as pd

    labels = {name: cells for name, cells in columns.items() if isinstance(cells, Labels)}
    # Most of the time for a small column is taken by its type, half of it by an index that has texts of its own.
    every = dict.fromkeys(tuple(cells.names) for cells in labels.values())
    texts, ends = pd.Index([*itertools.chain(*every)], dtype="str"), itertools.accumulate(map(len, every))
    types = {
        names: pd.CategoricalDtype(texts[end - len(names) : end] if names else pd.Index([], dtype=object))
        for names, end in zip(every, ends, strict=True)
    }
    coded = {name: pd.Categorical.from_codes(own.codes, dtype=types[tuple(own.names)]) for name, own in labels.items()}
    return {**columns, **coded}


# The column of classes.


def _classes(table: SourceTable, target: str, settings: Reading) -> tuple[Labels, list[str], list[str]]:
    """Return the target as labels in the order of `ReadTable.classes`, notes on it, and what is left out.

    Raises `DeclarationError` if there are not several classes.
    """
    column = TextColumn.of(target, table.frame[target], settings.missing_values)
    what = f"{table.owner}: the target {quoted(column.name)} must have from 2 to {MAX_CATEGORIES} classes"
    if not len(column.codes):
        raise DeclarationError(f"{table.owner}: there must be rows to learn from, got a table without any; add rows")
    if not column.texts:
        raise DeclarationError(f"{what}, got missing values only; name another column")
    if len(column.texts) == 1:
        gaps = "".join(f"; {note}, which missing_values=[...] changes" for note in column.missing_notes())
        every = "every row with a class" if gaps else "every row"
        raise DeclarationError(f"{what}, got {quoted(column.texts[0])} in {every}{gaps}; name another column")
    if len(column.texts) > MAX_CATEGORIES:
        got = f"got {len(column.texts):,} different values such as {shown(column.texts, 3)}"
        raise DeclarationError(f"{what}, {got}; name another column, or cut it into classes first")
    order = in_order(column.texts)
    notes, repairs = [*column.missing_notes()], []
    if rare := [text for text, count in zip(column.texts, column.counts.tolist(), strict=True) if count < 2]:
        notes.append(f"only 1 row each of {shown(rare)}: too few to learn from and to test")
    if left := column.rows_of([-1]):
        what = f"{rows_in(len(left))} without a class in {quoted(target)} ({rows_named(left)})"
        repairs.append(f"{what} {'was' if len(left) == 1 else 'were'} left out")
    if len(order) > 2 and are_answers(column):
        labels, joined = labels_of_answers(column)
        return labels, [*notes, *joined], repairs
    notes += read_categories(column).notes
    return column.labels(order), notes, repairs


def _positive(table: SourceTable, classes: Labels, wanted: str | None) -> str | None:
    names = classes.names
    if wanted is None:
        return names[int(np.argmin(np.bincount(known_of(classes.codes))))] if len(names) == 2 else None
    if wanted not in names:
        what = f"positive must be a class of the target, got {quoted(wanted)}{did_you_mean(wanted, names)}"
        raise DeclarationError(f"{table.owner}: {what}; the classes are {shown(names)}")
    return wanted


# What looks wrong in a table: identifiers, constants, columns that know the target, rows and columns twice.

_NAME_OF_ID = re.compile(r"(?:^|[^a-zA-Z])(?:id|nr|no|num|number|index|key)$|(?:ID|Id|Nr)$|^Unnamed: \d+$")
_FEWEST_FOR_ID, _ROWS_PER_VALUE, _ROWS_PER_BIN, _MOST_BINS = 20, 5, 20, 100
DETERMINES = "it determines the target; drop it if it is known only afterwards"
# A column knows the target if it leaves this share of the errors that the most frequent class makes.
_ERRORS_LEFT = 0.01


def reason_to_leave_out(name: str, cells: Cells, every: Cells, asked_for: bool) -> str | None:
    """Return why a column cannot be a feature, if so: it never changes, or numbers the rows and nobody asked for it."""
    values = array_of(cells)
    known = known_of(values)
    if not len(known):
        return "it has no values in the rows with a class, so it is left out"
    if len(known) == len(values) and (known == known[0]).all():
        first = cells.names[0] if isinstance(cells, Labels) else str(cells[0])
        return f"it has the same value in every row, {quoted(first)}, so it is left out"
    # What numbers every row of the table has gaps in those with a class.
    for one in () if asked_for else (values, array_of(every)):
        if _numbers_rows(name, one) and (one.max() - one.min() == len(one) - 1 or _NAME_OF_ID.search(name)):
            return "it numbers the rows, so it is left out; to keep it, write types: number"
    return None


def suspicion(
    name: str, values: NDArray[Any], codes: NDArray[np.int64], labels: NDArray[np.int64], same: str | None = None
) -> list[str]:
    """Return what looks wrong about a feature, given the codes of `_numbered`; its values equal those of `same`."""
    notes = []
    if codes.max() == 0:
        notes.append("it has a single value beside missing ones")
    if codes.max() + 1 == len(codes) and _numbers_rows(name, values):
        notes.append("every row has another whole number; if they name the rows, name the column in id")
    errors = _errors(values, codes, labels)
    if errors == 0:
        notes.append(DETERMINES)
    elif errors <= _ERRORS_LEFT * (len(labels) - int(np.bincount(labels).max())):
        share = 1 - errors / len(labels)
        notes.append(f"it alone tells the target in {share:.2%} of the rows; drop it if it is known only afterwards")
    if same:
        notes.append(f"it says the same as {quoted(same)} in every row")
    return notes


def equal_columns(arrays: Mapping[str, NDArray[Any]], codes: Mapping[str, NDArray[np.int64]]) -> dict[str, str]:
    """Return the columns that say the same as an earlier one: equal numbers, or labels that only have other names."""
    kinds = {name: values.dtype.kind for name, values in arrays.items()}
    said = {name: (kind, (arrays if kind == "f" else codes)[name].tobytes()) for name, kind in kinds.items()}
    first = {one: name for name, one in reversed(said.items())}
    return {name: first[one] for name, one in said.items() if first[one] != name}


def _numbered(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each number among the different ones, or of a label as they appear; -1 is missing."""
    if values.dtype.kind == "f":
        distinct, codes = np.unique(values, return_inverse=True)
        return np.where(np.isnan(values), -1, codes) if np.isnan(distinct[-1]) else codes
    first = np.full(int(values.max()) + 2, -1)
    first[values[::-1]] = np.arange(len(values))[::-1]  # of rows with the same label, the first counts
    first[-1] = -1  # of the code -1, what is missing
    return np.asarray((np.argsort(np.argsort(first)) - 1)[values])


def _numbers_rows(name: str, values: NDArray[Any]) -> bool:
    fewest = 0 if name.startswith("Unnamed: ") else _FEWEST_FOR_ID
    if len(values) < fewest or values.dtype.kind != "f" or values.max() - values.min() < len(values) - 1:
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == len(values)


def _errors(values: NDArray[Any], codes: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    """Return how many rows get the wrong class from the most frequent class of each value, or bin of values."""
    n_values = int(codes.max()) + 1
    if n_values * _ROWS_PER_VALUE <= len(codes):
        return _errors_by_value(codes, labels)
    if values.dtype.kind != "f":
        return len(labels)
    # As the shortest integers, which are sorted fastest; what is missing is the largest of them.
    order = np.argsort(codes.astype(np.min_scalar_type(n_values)), kind="stable")
    if _is_sorted_by_class(values[order], labels[order]):
        return 0
    n_bins = min(_MOST_BINS, len(order) // _ROWS_PER_BIN)
    if n_bins < 2:
        return len(labels)
    return max(1, _errors_by_value(np.arange(len(order)) * n_bins // len(order), labels[order]))


def _errors_by_value(codes: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    n_classes = int(labels.max()) + 1
    shifted = codes - codes.min()  # a missing value, -1, is a value too
    table = np.bincount(shifted * n_classes + labels, minlength=(int(shifted.max()) + 1) * n_classes)
    return len(labels) - int(table.reshape(-1, n_classes).max(axis=1).sum())


def _is_sorted_by_class(values: NDArray[np.float64], labels: NDArray[np.int64]) -> bool:
    """Tell whether each class has an interval of the sorted values to itself; missing values, at the end, are one."""
    changes = np.flatnonzero(np.diff(labels)) + 1
    same = np.isnan(values[changes]) & np.isnan(values[changes - 1]) | (values[changes] == values[changes - 1])
    return bool(len(changes) < np.count_nonzero(np.bincount(labels)) and not same.any())


# The columns of a table whose declaration says what they are: none is left out.

_TRUTH = {spelling: word for word in ("True", "False") for spelling in (word, word.upper(), word.lower())}


def read_declared(table: SourceTable, target: str, settings: Reading) -> tuple[pd.DataFrame, list[str]]:
    """Return the features and the target of a table, and notes on what had to be repaired.

    Features are read as in a study, but none is left out: what would be has labels, or missing values where its type
    is declared. The target always has labels. Raises `DeclarationError` if a column cannot be read as its type.
    """
    import pandas as pd

    frame, types = table.frame, settings.types
    kinds = {name: type_of(frame[name]) for name in settings.features_of(frame.columns, target)}
    names = [name for name, kind in kinds.items() if name in types or kind not in ("boolean", "category")]
    read = {column.name: column for column in read_columns(table, names, settings)}
    found: dict[str, Any] = {}
    notes: list[str] = []
    # The target keeps its place: messages list the columns as the file has them.
    for name in [name for name in frame.columns if name in kinds or name == target]:
        if name in read:
            column = read[name] if name in types else _as_feature(read[name], frame[name], settings)
            found[name] = np.full(len(frame), np.nan) if column.cells is None else column.cells
            notes += [f"column {quoted(name)}: {note}" for note in column.notes]
        elif name == target and type_of(frame[name]) is None:
            found[name] = TextColumn.of(name, frame[name], settings.missing_values).labels()
        else:
            found[name] = frame[name]
    return pd.DataFrame(_in_pandas(found)), notes


def _as_feature(column: ReadColumn, values: pd.Series[Any], settings: Reading) -> ReadColumn:
    """Return a column of text whose type nobody gave: with labels where it would be left out.

    Truth values get the labels that they have in frames. Values that the declaration calls missing are not noted.
    """
    ambiguous = [note.replace(LEFT_OUT, "it has labels,") for note in column.notes if note.startswith(LEFT_OUT)]
    if column.cells is None:
        texts = TextColumn.of(column.name, values, settings.missing_values)
        column = read_categories(texts) if texts.texts else replace(column, notes=())
    elif isinstance(column.cells, Labels) and column.read_as == "boolean":
        codes, names = column.cells
        column = replace(column, cells=Labels(codes, [_TRUTH.get(name, name) for name in names]))
    notes = [note for note in column.notes if not note.startswith(MISSING)]
    return replace(column, notes=(*notes, *ambiguous))
