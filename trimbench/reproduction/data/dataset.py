"""A loaded data set, what its columns are, and the declared facts that it is checked against."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimbench.reproduction.data.cache import Natural, Positive, Sha256
from trimbench.reproduction.data.errors import DeclarationError, FactsMismatch
from trimbench.reproduction.messages import brief, did_you_mean, quoted, shown
from trimbench.reproduction.settings import settings

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@settings
class Facts:
    """What is known about the data, and must hold once it is loaded.

    `classes` has the number of rows of each class, `sha256` is the `fingerprint` of the values.
    """

    rows: Positive | None = None
    features: Positive | None = None
    classes: dict[str, Natural] = field(default_factory=dict)
    sha256: Sha256 | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with a class column, whose rows are in their `canonical_order`.

    Attributes
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Numbers as float64, everything else as a category of text; NaN where a value is missing.
    target : Series of shape (n_rows,)
        Category of text without missing values and without unused categories.
    sha256 : str
        Fingerprint of the values.
    road : str
        Where they came from, for example ``"OpenML 46"``.
    """

    name: str
    features: pd.DataFrame
    target: pd.Series[Any]
    sha256: str
    road: str = ""


def build_dataset(
    name: str, facts: Facts, table: pd.DataFrame, target: str, orders: Mapping[str, Sequence[str]] | None = None
) -> Dataset:
    """Split off the target, convert all columns to numbers or labels, order the rows, and check the declared facts.

    Columns that the source calls nominal have their labels, in its order, in `orders`. Raises `DeclarationError` if
    the class column is missing or incomplete, and `FactsMismatch` if a fact differs.
    """
    import pandas as pd

    table = table.set_axis([str(column) for column in table.columns], axis="columns").reset_index(drop=True)
    columns, orders = list(table.columns), orders or {}
    if target not in columns:
        raise DeclarationError(
            f"data set {brief(name)}: target must be a column of the data, got {quoted(target)}"
            f"{did_you_mean(target, columns)}; the columns are {shown(columns)}"
        )
    classes = label_column(table[target], orders.get(target)).cat.remove_unused_categories()
    missing = int(classes.isna().sum())
    if missing:
        raise DeclarationError(
            f"data set {name!r}: the class column {target!r} is missing in {missing} of {len(classes)} rows; "
            "remove these rows or name another target"
        )
    tidy = [_tidy(column, orders.get(str(one))) for one, column in table.items() if one != target]
    features = pd.concat(tidy, axis="columns") if tidy else table.iloc[:, :0]
    order, sha256 = _order_and_hash(features, classes)
    if not (order == np.arange(len(order))).all():
        features, classes = features.iloc[order].reset_index(drop=True), classes.iloc[order].reset_index(drop=True)
    dataset = Dataset(name, features, classes, sha256)
    _check_facts(dataset, facts)
    return dataset


def without_source(dataset: Dataset, road: str) -> Dataset:
    """Return a data set with only the labels that occur, in the order of their texts, whatever its source declares."""
    labels = {str(name): one for name, one in dataset.features.items() if not is_number_column(one)}
    features = dataset.features.assign(**{name: label_column(one.astype(object)) for name, one in labels.items()})
    return replace(dataset, features=features, target=label_column(dataset.target.astype(object)), road=road)


def _tidy(column: pd.Series[Any], order: Sequence[str] | None) -> pd.Series[Any]:
    if order is None and is_number_column(column):
        return number_column(column)
    return label_column(column, order)


def _check_facts(dataset: Dataset, facts: Facts) -> None:
    """Raise an error that names every fact that differs, with the declared and the loaded value."""
    counts = {str(label): int(count) for label, count in dataset.target.value_counts(sort=False).items()}
    comparisons: list[tuple[str, object, object]] = [
        ("rows", facts.rows, len(dataset.features)),
        ("features", facts.features, dataset.features.shape[1]),
        ("classes", dict(sorted(facts.classes.items())) or None, dict(sorted(counts.items()))),
        ("sha256", facts.sha256, dataset.sha256),
    ]
    differing = [
        f"{fact}: declared {declared}, got {got}"
        for fact, declared, got in comparisons
        if declared is not None and declared != got
    ]
    if differing:
        raise FactsMismatch(
            f"data set {dataset.name!r} is not what was declared ({'; '.join(differing)}); "
            "correct the facts in its YAML, or get the data from its original source"
        )


# One order of the rows, and a SHA-256 of loaded values, that every source, format and pandas version agrees on.


class Labels(NamedTuple):
    """A column of labels: the place of each row's label in `names`, -1 where it is missing."""

    codes: NDArray[np.int64]
    names: Sequence[str]


# Numbers have NaN where one is missing.
Cells = NDArray[np.float64] | Labels


def cells_of(column: pd.Series[Any], *, as_labels: bool = False) -> Cells:
    """Return what a column holds: its numbers, or its labels; `as_labels` makes labels of numbers, too."""
    if is_number_column(column) and not as_labels:
        return column.to_numpy(dtype="float64", na_value=np.nan)
    labels = label_column(column).array
    return Labels(labels.codes.astype(np.int64), list(labels.categories))


def canonical_order(columns: Iterable[Cells], n_rows: int) -> tuple[NDArray[np.intp], int]:
    """Return the places of the rows in the order of what they hold, and how many of them repeat another one.

    The first column counts most. Numbers are sorted by value, labels by their text, and what is missing comes last.
    Rows that are equal are in the order in which they stand. With the target as the last column, the splits, folds and
    masks of a data set are then the same wherever it came from.
    """
    order, is_new = np.arange(n_rows), np.arange(n_rows) == 0
    for column in columns:
        if is_new.all():  # most rows are told apart by the first columns
            break
        key = _sortable(column)
        # Rows that no column has told apart stand together, and are put into the order of this one.
        alike = ~(is_new & np.append(is_new[1:], True))
        groups, rows = np.cumsum(is_new)[alike], order[alike]
        order[alike] = rows[np.lexsort((key[rows], groups.astype(np.min_scalar_type(groups[-1]))))]
        before, after = key[order[:-1]], key[order[1:]]
        is_new[1:] |= (before != after) & ((before == before) | (after == after))
    return order, n_rows - int(is_new.sum())


def _sortable(column: Cells) -> NDArray[Any]:
    """Return numbers in the order of the values, NaN last; as int16 where possible, which takes a third of the time."""
    if not isinstance(column, Labels):
        with np.errstate(invalid="ignore"):
            short = column.astype(np.int16)
        return short if (short == column).all() else column
    places = sorted(range(len(column.names)), key=column.names.__getitem__)
    table = np.empty(len(places) + 1, dtype=np.min_scalar_type(len(places)))
    table[[*places, -1]] = np.arange(len(table))  # the last is that of the code -1, what is missing
    return np.asarray(table[column.codes])


_MISSING = b"\xff" * 8


def _framed(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return len(encoded).to_bytes(8, "little") + encoded


def _bytes_of(column: Cells, order: NDArray[np.intp]) -> pa.Buffer | bytes:
    import pyarrow as pa

    if not isinstance(column, Labels):
        # One bit pattern of NaN out of many, and -0.0 is the same number as 0.0.
        return np.where(np.isnan(column), np.nan, column + 0.0)[order].astype("<f8", copy=False).tobytes()
    # What is missing, -1, picks the last entry. No label has the length that the marker stands for.
    table = pa.array([*map(_framed, column.names), _MISSING], pa.large_binary())
    codes = np.where(column.codes < 0, len(column.names), column.codes)[order]
    return table.take(pa.array(codes)).buffers()[2]


def fingerprint(features: pd.DataFrame, target: pd.Series[Any]) -> str:
    """Hash the names, kinds and values of all columns, the target last and always as labels.

    The hash does not depend on the width of a dtype, on the order of categories or unused ones, on the index, or on the
    order of the rows, which enter in their `canonical_order`. It depends on every value, every name, and the order of
    the columns. Numbers enter as little-endian float64 (with one NaN and one zero), labels as length-prefixed UTF-8.
    """
    return _order_and_hash(features, target)[1]


def _order_and_hash(features: pd.DataFrame, target: pd.Series[Any]) -> tuple[NDArray[np.intp], str]:
    columns = [(str(name), cells_of(column)) for name, column in features.items()]
    order, _ = canonical_order([*(cells for _, cells in columns), cells_of(target)], len(target))
    return order, hash_of(columns, (str(target.name), cells_of(target, as_labels=True)), order)


def hash_of(columns: Sequence[tuple[str, Cells]], target: tuple[str, Cells], order: NDArray[np.intp]) -> str:
    """Return the `fingerprint` of columns, of which the target has labels, given the `canonical_order` of the rows."""
    digest = hashlib.sha256(b"trimbench table 2")
    digest.update(len(order).to_bytes(8, "little") + len(columns).to_bytes(8, "little"))
    for place, (name, cells) in enumerate([*columns, target]):
        kind = b"t" if place == len(columns) else b"l" if isinstance(cells, Labels) else b"n"
        digest.update(_framed(name) + kind)
        digest.update(_bytes_of(cells, order))
    return digest.hexdigest()


# Two kinds of columns, whatever the source: numbers (float64) and labels (categories of text).


def label_text(value: object) -> str:
    """Return a label as text; whole numbers are written without a decimal point.

    >>> label_text("a"), label_text(True), label_text(2.0), label_text(0.5)
    ('a', 'True', '2', '0.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_number_column(column: pd.Series[Any]) -> bool:
    """Tell numbers from labels by dtype; booleans are labels."""
    from pandas.api import types

    kind = column.dtype
    return bool(kind == np.float64 or (types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind)))


def number_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column as float64 with NaN where a value is missing; ValueError if a value is not a number."""
    import pandas as pd

    if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype):
        column = pd.Series(pd.to_numeric(column.astype(object)), index=column.index, name=column.name)
    return pd.Series(column.to_numpy(dtype="float64", na_value=np.nan), index=column.index, name=column.name, copy=True)


def label_column(column: pd.Series[Any], order: Sequence[str] | None = None) -> pd.Series[Any]:
    """Return the column as a category of text with NaN where a value is missing.

    `order` has labels in the order of the source. It is used if it has all labels of the column (a source that turned
    TRUE and FALSE into booleans gets its own spelling back). Otherwise categories keep their order, and plain text
    is sorted.
    """
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        if order is None and column.dtype.categories.dtype == "str":
            return column.copy()
        labels = [label_text(value) for value in column.cat.categories]
        codes = column.cat.codes.to_numpy()
    else:
        texts = column.astype(object).map(label_text, na_action="ignore")
        labels = sorted(set(texts.dropna()))
        codes = pd.Categorical(texts, categories=labels).codes
    if order is not None:
        labels, codes = _reorder(labels, codes, order)
    categories = pd.Index(labels, dtype="str" if labels else object)
    return pd.Series(pd.Categorical.from_codes(codes, categories), index=column.index, name=column.name)


def _reorder(labels: list[str], codes: np.ndarray, order: Sequence[str]) -> tuple[list[str], np.ndarray]:
    spelling = {label.casefold(): label for label in order}
    if len(spelling) == len(order) and {label.casefold() for label in labels} == {"true", "false"}:
        labels = [spelling.get(label.casefold(), label) for label in labels]
    if not set(labels) <= set(order):
        return labels, codes
    position = {label: place for place, label in enumerate(order)}
    # The last entry translates the code -1 of a missing value into itself.
    translation = np.array([*(position[label] for label in labels), -1], dtype=np.int64)
    return list(order), translation[codes]
