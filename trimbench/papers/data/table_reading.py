"""Read a table for a study: a file or a frame in, features, classes and an account of every column out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.column_reading import (
    LEFT_OUT,
    MAX_CATEGORIES,
    MISSING,
    ReadColumn,
    TextColumn,
    alike,
    read_columns,
    read_texts,
    read_typed,
    type_of,
    words_for_missing,
)
from trimbench.papers.data.dataset import fingerprint, is_number_column
from trimbench.papers.data.table_files import (
    SourceTable,
    check_columns,
    open_source,
    within_memory,
)
from trimbench.papers.data.table_texts import ReadAs, TableSettings, plain_number, text_of
from trimbench.papers.validation import DeclarationError, did_you_mean, quoted, rows_in, rows_named, shown

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["ColumnCard", "ReadTable", "TableSettings", "read_table"]


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


_AS_RECOGNISED = TableSettings()
_FEWEST_ROWS, _MOST_FEATURES = 10, 5_000


@within_memory
def read_table(source: Any, target: str, settings: TableSettings = _AS_RECOGNISED) -> ReadTable:
    """Read a table with a column of classes.

    Parameters
    ----------
    source : path, or frame of pandas, polars or pyarrow
        A file is text (plain or gzip), Parquet, or Arrow and Feather; what it holds decides, not its name.
    target : str
        The column of classes. Rows without a class are left out.
    settings : TableSettings
        What is known about the table.

    Raises
    ------
    DeclarationError
        In one line, if the source is no table, a named column does not exist, or there is nothing to learn from it.
    """

    def check(owner: str, names: list[str]) -> None:
        check_columns(owner, names, target, settings)
        _check_features(owner, _features(names, target, settings))

    table = open_source(source, settings, target, check)
    chosen = _features(table.frame.columns, target, settings)
    classes = read_classes(table, target, settings)
    if len(classes.labels) < _FEWEST_ROWS:
        raise DeclarationError(
            f"{table.owner}: at least {_FEWEST_ROWS} rows with a class are needed to learn from, got "
            f"{len(classes.labels)}; add rows"
        )
    read = [_kept(column, classes.rows, settings) for column in read_columns(table, chosen, settings)]
    features = [column for column in read if column.data is not None]
    if not features:
        raise DeclarationError(
            f"{table.owner}: at least one column must be a feature, got none of {len(read):,}; {_first_reason(read)}"
        )
    codes = {column.name: _codes(column.data) for column in features if column.data is not None}
    read = _with_suspicions(read, codes, classes.labels)
    repeated = repeated_rows([*codes.values(), classes.labels])
    frame = _frame(features)
    cards = _cards(table, read, classes, settings)
    return ReadTable(
        name=table.name,
        features=frame,
        labels=classes.labels,
        classes=classes.names,
        positive=classes.positive,
        card=cards,
        repairs=(*table.repairs, *classes.repairs, *([repeated] if repeated else []), *_notes(cards)),
        sha256=fingerprint(frame, classes.column()),
    )


def _features(names: Iterable[str], target: str, settings: TableSettings) -> list[str]:
    outside = {target, *settings.drop, *settings.ids}
    wanted = None if settings.features is None else set(settings.features)
    return [name for name in names if name not in outside and (wanted is None or name in wanted)]


def _check_features(owner: str, features: list[str]) -> None:
    if not features:
        raise DeclarationError(
            f"{owner}: there must be a column beside the target to be a feature, got none; if the columns were "
            "not told apart, name the separator"
        )
    if len(features) > _MOST_FEATURES:
        raise DeclarationError(
            f"{owner}: at most {_MOST_FEATURES:,} columns can be features, got {len(features):,}; name those of "
            "interest in features, or the others in drop"
        )


def _kept(column: ReadColumn, rows: NDArray[np.int64], settings: TableSettings) -> ReadColumn:
    """Return a column in the rows with a class, left out if it is none then."""
    if column.data is None:
        return column
    values = column.data
    if len(rows) < len(values):
        values = values.iloc[rows].reset_index(drop=True)
    if values.dtype == "category" and len(np.unique(_known(values))) < len(values.cat.categories):
        values = values.cat.remove_unused_categories()
    asked_for = column.name in (settings.features or ()) or column.name in settings.types
    reason = reason_to_leave_out(values, asked_for)
    if reason is None:
        return column if values is column.data else replace(column, data=values)
    return ReadColumn(column.name, "left out", None, (*column.notes, reason))


def _first_reason(read: list[ReadColumn]) -> str:
    column = next(column for column in read if column.notes)
    return f"of {quoted(column.name)}: {column.notes[-1]}; add columns, or correct separator, types and missing_values"


def _codes(values: pd.Series[Any]) -> NDArray[np.int64]:
    import pandas as pd

    # Arrays take half the time.
    return np.asarray(pd.factorize(values.to_numpy() if is_number_column(values) else values)[0], dtype=np.int64)


def _with_suspicions(
    read: list[ReadColumn], codes: dict[str, NDArray[np.int64]], labels: NDArray[np.int64]
) -> list[ReadColumn]:
    same = equal_columns([column.data for column in read if column.data is not None], codes)
    found = []
    for column in read:
        if column.data is not None:
            notes = suspicion(column.data, codes[column.name], labels)
            if column.name in same:
                notes.append(f"it says the same as {quoted(same[column.name])} in every row")
            column = replace(column, notes=(*column.notes, *notes)) if notes else column
        found.append(column)
    return found


def _frame(features: list[ReadColumn]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({column.name: column.data.array for column in features if column.data is not None})


def _cards(
    table: SourceTable, read: list[ReadColumn], classes: Classes, settings: TableSettings
) -> tuple[ColumnCard, ...]:
    """Return the cards of all columns of the source, in its order."""
    cards = {column.name: card_of(column) for column in read if column.data is not None}
    cards[classes.name] = classes.card()
    notes = {column.name: column.notes for column in read}
    found = []
    for name in table.frame.columns:
        card = cards.get(name)
        if card is None:
            card = card_of_source(table.frame[name], settings, notes.get(name))
        found.append(card)
    return tuple(found)


def _notes(cards: Iterable[ColumnCard]) -> list[str]:
    return [f"column {quoted(card.name)}: {note}" for card in cards for note in card.notes]


# The column of classes.


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of the rows that have one.

    Attributes
    ----------
    rows, labels : int arrays of shape (n_rows,)
        The places of the rows with a class in the source, and of their classes in `names`.
    n_missing : int
        Number of other rows.
    """

    name: str
    names: tuple[str, ...]
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    n_missing: int
    positive: str | None
    repairs: tuple[str, ...]
    notes: tuple[str, ...]

    def column(self) -> pd.Series[Any]:
        """Return the classes as a category of text."""
        import pandas as pd

        return pd.Series(pd.Categorical.from_codes(self.labels, pd.Index(self.names, dtype="str")), name=self.name)

    def card(self) -> ColumnCard:
        """Return how the target was read."""
        counts = np.bincount(self.labels, minlength=len(self.names))
        listed = ", ".join(f"{quoted(name)} {n:,}" for name, n in zip(self.names, counts.tolist(), strict=True))
        return ColumnCard(self.name, "target", len(self.names), self.n_missing, listed, self.notes)


def read_classes(table: SourceTable, target: str, settings: TableSettings) -> Classes:
    """Read the target; raise `DeclarationError` if there are not several classes, or no such positive one."""
    column = TextColumn.of(target, table.frame[target], settings.missing_values)
    _check_classes(table, column)
    numbers = list(map(plain_number, column.texts))
    keys = [
        (0.0 if any(map(math.isnan, numbers)) else number, text)
        for number, text in zip(numbers, column.texts, strict=True)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    names = tuple(column.texts[place] for place in order)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    rows = np.flatnonzero(column.codes >= 0)
    labels = places[column.codes[rows]]
    gaps = np.flatnonzero(column.codes < 0) + 1
    repairs: tuple[str, ...] = ()
    if len(gaps):
        verb = "has" if len(gaps) == 1 else "have"
        what = f"{rows_in(len(gaps))} without a class in {quoted(target)} ({rows_named(gaps.tolist())})"
        repairs = (f"{what} {'was' if verb == 'has' else 'were'} left out",)
    return Classes(
        name=target,
        names=names,
        rows=rows,
        labels=labels,
        n_missing=len(gaps),
        positive=_positive(table, names, labels, settings.positive),
        repairs=repairs,
        notes=tuple(_notes_target(column)),
    )


def _check_classes(table: SourceTable, column: TextColumn) -> None:
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
        raise DeclarationError(
            f"{what}, got {len(column.texts):,} different values such as {shown(column.texts, 3)}; name another "
            "column, or cut it into classes first"
        )


def _positive(table: SourceTable, names: tuple[str, ...], labels: NDArray[np.int64], wanted: str | None) -> str | None:
    if wanted is None:
        return names[int(np.argmin(np.bincount(labels)))] if len(names) == 2 else None
    if wanted not in names:
        raise DeclarationError(
            f"{table.owner}: positive must be a class of the target, got {quoted(wanted)}"
            f"{did_you_mean(wanted, names)}; the classes are {shown(names)}"
        )
    return wanted


def _notes_target(column: TextColumn) -> list[str]:
    rare = [text for text, count in zip(column.texts, column.counts.tolist(), strict=True) if count < 2]
    notes = [*column.missing_notes()]
    if rare:
        notes.append(f"only 1 row each of {shown(rare)}: too few to learn from and to test")
    return notes + words_for_missing(column) + alike(column)


# What looks wrong in a table: identifiers, constants, columns that know the target, rows and columns twice.

_NAME_OF_ID = re.compile(r"(?:^|[^a-zA-Z])(?:id|nr|no|num|number|index|key)$|(?:ID|Id|Nr)$|^Unnamed: \d+$")
_FEWEST_FOR_ID, _ROWS_PER_VALUE, _ROWS_PER_BIN, _MOST_BINS = 20, 5, 20, 100
DETERMINES = "it determines the target; drop it if it is known only afterwards"
# A column knows the target if it leaves this share of the errors that the most frequent class makes.
_ERRORS_LEFT = 0.01


def reason_to_leave_out(column: pd.Series[Any], asked_for: bool) -> str | None:
    """Return why a column cannot serve as a feature, if so: it never changes, or numbers the rows and is not wanted."""
    known = _known(column)
    if not len(known):
        return "it has no values in the rows with a class, so it is left out"
    if len(known) == len(column) and (known == known[0]).all():
        return f"it has the same value in every row, {quoted(str(column.iloc[0]))}, so it is left out"
    if not asked_for and _numbers_rows(column):
        span = int(column.max() - column.min())
        if span == len(column) - 1 or _NAME_OF_ID.search(str(column.name)):
            return "it numbers the rows, so it is left out; to keep it, write types: number"
    return None


def suspicion(column: pd.Series[Any], codes: NDArray[np.int64], labels: NDArray[np.int64]) -> list[str]:
    """Return what looks wrong about a feature; `codes` number its different values."""
    notes = []
    if codes.max() == 0:
        notes.append("it has a single value beside missing ones")
    if codes.max() + 1 == len(codes) and _numbers_rows(column):
        notes.append("every row has another whole number; if they name the rows, name the column in id")
    errors = _errors(column, codes, labels)
    most = len(labels) - int(np.bincount(labels).max())
    if errors == 0:
        notes.append(DETERMINES)
    elif errors <= _ERRORS_LEFT * most:
        share = 1 - errors / len(labels)
        notes.append(f"it alone tells the target in {share:.2%} of the rows; drop it if it is known only afterwards")
    return notes


def repeated_rows(codes: Sequence[NDArray[np.int64]]) -> str | None:
    """Return that rows occur more than once, if so, given the codes of all columns and of the target."""
    import pandas as pd

    twice = np.flatnonzero(pd.Index([row.tobytes() for row in np.column_stack(codes)]).duplicated()) + 1
    if not len(twice):
        return None
    verb = "repeats" if len(twice) == 1 else "repeat"
    return f"{rows_in(len(twice))} {verb} an earlier one in all features and the class; they were kept"


def equal_columns(columns: Sequence[pd.Series[Any]], codes: Mapping[str, NDArray[np.int64]]) -> dict[str, str]:
    """Return the columns that say the same as an earlier one: equal numbers, or labels that only have other names."""
    first: dict[tuple[bool, bytes], str] = {}
    found = {}
    for column in columns:
        name = str(column.name)
        is_number = is_number_column(column)
        values = column.to_numpy(dtype=np.float64) if is_number else codes[name]
        earlier = first.setdefault((is_number, values.tobytes()), name)
        if earlier != name:
            found[name] = earlier
    return found


def _known(column: pd.Series[Any]) -> NDArray[Any]:
    """Return the values of a column that are not missing, of a category their codes."""
    is_number = is_number_column(column)
    values: NDArray[Any] = column.to_numpy(dtype=np.float64) if is_number else np.asarray(column.array.codes)
    return np.asarray(values[~np.isnan(values) if is_number else values >= 0])


def _numbers_rows(column: pd.Series[Any]) -> bool:
    """Tell whether every row has another whole number."""
    is_nameless = str(column.name).startswith("Unnamed: ")
    if (len(column) < _FEWEST_FOR_ID and not is_nameless) or not is_number_column(column):
        return False
    values = column.to_numpy(dtype=np.float64)
    return bool(
        np.isfinite(values).all() and (values == np.round(values)).all() and len(np.unique(values)) == len(values)
    )


def _errors(column: pd.Series[Any], codes: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    """Return how many rows get the wrong class from the most frequent class of each value, or bin of values."""
    n_values = int(codes.max()) + 1
    if n_values * _ROWS_PER_VALUE <= len(codes):
        return _errors_by_value(codes, labels)
    if not is_number_column(column):
        return len(labels)
    order = np.argsort(column.to_numpy(dtype=np.float64), kind="stable")
    if _is_sorted_by_class(column.to_numpy(dtype=np.float64)[order], labels[order]):
        return 0
    n_bins = min(_MOST_BINS, len(order) // _ROWS_PER_BIN)
    if n_bins < 2:
        return len(labels)
    bins = np.empty(len(order), dtype=np.int64)
    bins[order] = np.arange(len(order)) * n_bins // len(order)
    return max(1, _errors_by_value(bins, labels))


def _errors_by_value(codes: NDArray[np.int64], labels: NDArray[np.int64]) -> int:
    n_classes = int(labels.max()) + 1
    shifted = codes - codes.min()  # a missing value, -1, is a value too
    table = np.bincount(shifted * n_classes + labels, minlength=(int(shifted.max()) + 1) * n_classes)
    return len(labels) - int(table.reshape(-1, n_classes).max(axis=1).sum())


def _is_sorted_by_class(values: NDArray[np.float64], labels: NDArray[np.int64]) -> bool:
    """Tell whether each class has an interval of the sorted values to itself; missing values, at the end, are one."""
    changes = np.flatnonzero(np.diff(labels)) + 1
    same = np.isnan(values[changes]) & np.isnan(values[changes - 1]) | (values[changes] == values[changes - 1])
    return len(changes) < len(np.unique(labels)) and not same.any()


# What is said about each column.

_EXAMPLES = 3


def card_of(column: ReadColumn) -> ColumnCard:
    """Return the card of a feature."""
    values = column.data
    if values is None:
        raise ValueError(f"column {column.name!r} is left out; its card is that of the source")
    known = _known(values)
    known.sort()
    distinct, missing = 1 + int((known[1:] != known[:-1]).sum()), len(values) - len(known)
    if column.read_as in ("number", "date"):
        lowest, highest = known[[0, -1]].tolist()
        middle = float(known[[(len(known) - 1) // 2, len(known) // 2]].mean())
        text = text_of if column.read_as == "date" else "{:.6g}".format
        return ColumnCard(
            column.name,
            column.read_as,
            distinct,
            missing,
            f"{text(lowest)} to {text(highest)}, median {text(middle)}",
            column.notes,
        )
    counts = np.bincount(known)
    names = values.cat.categories
    top = np.argsort(-counts, kind="stable")[:_EXAMPLES].tolist()
    listed = ", ".join(f"{quoted(str(names[place]))} {counts[place]:,}" for place in top)
    more = f" and {distinct - len(top):,} more" if distinct > len(top) else ""
    return ColumnCard(column.name, column.read_as, distinct, missing, listed + more, column.notes)


def card_of_source(column: pd.Series[Any], settings: TableSettings, notes: tuple[str, ...] | None) -> ColumnCard:
    """Return the card of a column that is no feature; `notes` say why, None if settings do."""
    name = str(column.name)
    texts = TextColumn.of(name, column, settings.missing_values)
    is_id = name in settings.ids
    if notes is None:
        notes = _repeated(texts) if is_id else ()
        if not is_id and name not in settings.drop:
            notes = ("it is not among the named features",)
    counts = texts.counts
    top = sorted(range(len(counts)), key=lambda place: -counts[place])[:_EXAMPLES]
    listed = ", ".join(f"{quoted(texts.texts[place])} {counts[place]:,}" for place in top)
    return ColumnCard(name, "id" if is_id else "left out", len(counts), len(column) - texts.n_present, listed, notes)


def _repeated(texts: TextColumn) -> tuple[str, ...]:
    twice = np.flatnonzero(texts.counts > 1)
    if not len(twice):
        return ()
    rows = texts.rows_of(twice.tolist())
    return (f"it does not name rows uniquely: {rows_in(len(rows))} share a value with another ({rows_named(rows)})",)


# The columns of a table whose declaration says what they are: none is left out.

_TRUTH = {spelling: word for word in ("True", "False") for spelling in (word, word.upper(), word.lower())}


def read_declared(table: SourceTable, target: str, settings: TableSettings) -> tuple[pd.DataFrame, list[str]]:
    """Return the features and the target of a table, and notes on what had to be repaired.

    Features are read as in a study, but none is left out: what would be has labels, or missing values where its type
    is declared. The target always has labels. Raises `DeclarationError` if a column cannot be read as its type.
    """
    import pandas as pd

    frame, features = table.frame, _features(table.frame.columns, target, settings)
    texts = [name for name in features if name in settings.types or type_of(frame[name]) is None]
    read = {column.name: column for column in read_columns(table, texts, settings)}
    found: dict[str, pd.Series[Any]] = {}
    notes: list[str] = []
    # The target keeps its place: messages list the columns as the file has them.
    chosen = {target, *features}
    for name in filter(chosen.__contains__, frame.columns):
        column = read.get(name)
        if column is None:
            found[name] = _typed(frame[name], settings, name == target)
            continue
        if name not in settings.types:
            column = _as_feature(column, frame[name], settings)
        found[name] = pd.Series(np.nan, index=frame.index) if column.data is None else column.data
        notes += [f"column {quoted(name)}: {note}" for note in column.notes]
    return pd.DataFrame(found), notes


def _as_feature(column: ReadColumn, values: pd.Series[Any], settings: TableSettings) -> ReadColumn:
    """Return a column of text whose type nobody gave: with labels where it would be left out.

    It has the labels of truth values that frames have. What is missing by the declaration is not told.
    """
    ambiguous = [note.replace(LEFT_OUT, "it has labels,") for note in column.notes if note.startswith(LEFT_OUT)]
    if column.data is None:
        texts = TextColumn.of(column.name, values, settings.missing_values)
        column = read_texts(texts, "category") if texts.texts else replace(column, notes=())
    elif column.read_as == "boolean":
        column = replace(column, data=column.data.cat.rename_categories(_TRUTH))
    notes = [note for note in column.notes if not note.startswith(MISSING)]
    return replace(column, notes=(*notes, *ambiguous))


def _typed(column: pd.Series[Any], settings: TableSettings, is_target: bool) -> pd.Series[Any]:
    kind = type_of(column)
    if kind is None:
        return TextColumn.of(str(column.name), column, settings.missing_values).labels()
    read = read_typed(str(column.name), column, kind, settings.missing_values).data if not is_target else None
    return column if read is None or kind not in ("number", "date") else read
