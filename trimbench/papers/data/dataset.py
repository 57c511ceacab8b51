"""A loaded data set, checked against the facts that were declared for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.columns import is_number_column, label_column, number_column
from trimbench.papers.data.constraints import Natural, Positive, Sha256
from trimbench.papers.data.errors import DeclarationError, FactsMismatch
from trimbench.papers.data.fingerprint import fingerprint
from trimbench.papers.validation import brief, settings

if TYPE_CHECKING:
    import pandas as pd


_LONGEST_LIST = 200  # of columns, in a message


@settings
class Facts:
    """What must hold for the loaded data, as far as it is known.

    `classes` has the number of rows of each class, `sha256` is the `fingerprint` of the values.
    """

    rows: Positive | None = None
    features: Positive | None = None
    classes: dict[str, Natural] = field(default_factory=dict)
    sha256: Sha256 | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with a class column.

    Attributes
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Numbers as float64, everything else as a category of text; NaN where a value is missing.
    target : Series of shape (n_rows,)
        Category of text without missing values and without unused categories.
    sha256 : str
        Fingerprint of the values.
    """

    name: str
    features: pd.DataFrame
    target: pd.Series[Any]
    sha256: str


def build_dataset(
    name: str, facts: Facts, table: pd.DataFrame, target: str, orders: Mapping[str, Sequence[str]] | None = None
) -> Dataset:
    """Split off the target, convert all columns to numbers or labels, and check the declared facts.

    Columns that the source calls nominal have their labels, in its order, in `orders`. Raises `DeclarationError` if
    the class column is missing or incomplete, and `FactsMismatch` if a fact differs.
    """
    import pandas as pd

    table = table.set_axis([str(column) for column in table.columns], axis="columns").reset_index(drop=True)
    columns, orders = list(table.columns), orders or {}
    if target not in columns:
        close = get_close_matches(target, columns, n=1)
        hint = f" (did you mean {brief(close[0])}?)" if close else ""
        every = ", ".join(map(brief, columns))
        shown = every if len(columns) <= 20 and len(every) <= _LONGEST_LIST else f"{every[:_LONGEST_LIST]}, ..."
        raise DeclarationError(
            f"data set {brief(name)}: target must be a column of the data, got {brief(target)}{hint}; "
            f"the columns are {shown}"
        )
    classes = label_column(table[target], orders.get(target)).cat.remove_unused_categories()
    missing = int(classes.isna().sum())
    if missing:
        raise DeclarationError(
            f"data set {name!r}: the class column {target!r} is missing in {missing} of {len(classes)} rows; "
            "remove these rows or name another target"
        )
    tidy = [_tidy(table.iloc[:, place], orders.get(one)) for place, one in enumerate(columns) if one != target]
    features = pd.concat(tidy, axis="columns") if tidy else table.iloc[:, :0]
    dataset = Dataset(name, features, classes, fingerprint(features, classes))
    _check_facts(dataset, facts)
    return dataset


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
