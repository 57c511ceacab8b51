"""A loaded data set, checked against the facts that were declared for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from trimbench.papers.data.columns import is_number_column, label_column, number_column
from trimbench.papers.data.declaration import DatasetDeclaration, Facts
from trimbench.papers.data.errors import DeclarationError, FactsMismatch
from trimbench.papers.data.fingerprint import fingerprint

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with a class column.

    Parameters
    ----------
    name : str
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
    declaration: DatasetDeclaration,
    table: pd.DataFrame,
    target: str,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> Dataset:
    """Split off the target, bring all columns to the two kinds, and check the declared facts.

    Parameters
    ----------
    declaration : DatasetDeclaration
    table : DataFrame of shape (n_rows, n_features + 1)
    target : str
        Name of the class column.
    orders : mapping of str to sequence of str, optional
        Labels in the order of the source, for the columns that the source calls nominal.

    Returns
    -------
    Dataset

    Raises
    ------
    DeclarationError
        The class column is missing or incomplete.
    FactsMismatch
        The data differs from the declared facts.
    """
    import pandas as pd

    table = table.set_axis([str(name) for name in table.columns], axis="columns").reset_index(drop=True)
    names = list(table.columns)
    if target not in names:
        close = get_close_matches(target, names, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        shown = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        raise DeclarationError(
            f"data set {declaration.name!r}: `target` must be a column of the data, got {target!r}{hint}; "
            f"the columns are {shown}"
        )
    orders = orders or {}
    classes = label_column(table[target], orders.get(target)).cat.remove_unused_categories()
    missing = int(classes.isna().sum())
    if missing:
        raise DeclarationError(
            f"data set {declaration.name!r}: the class column {target!r} is missing in {missing} of "
            f"{len(classes)} rows; remove these rows or name another `target`"
        )
    columns = [_tidy(table.iloc[:, place], orders.get(name)) for place, name in enumerate(names) if name != target]
    features = pd.concat(columns, axis="columns") if columns else table.iloc[:, :0]
    dataset = Dataset(declaration.name, features, classes, fingerprint(features, classes))
    check_facts(dataset, declaration.facts)
    return dataset


def check_facts(dataset: Dataset, facts: Facts) -> None:
    """Compare a data set with its declared facts.

    Raises
    ------
    FactsMismatch
        Names every fact that differs, with the declared and the loaded value.
    """
    counts = {str(label): int(count) for label, count in dataset.target.value_counts(sort=False).items()}
    comparisons: list[tuple[str, object, object]] = []
    if facts.rows is not None:
        comparisons.append(("rows", facts.rows, len(dataset.features)))
    if facts.features is not None:
        comparisons.append(("features", facts.features, dataset.features.shape[1]))
    if facts.classes:
        comparisons.append(("classes", dict(sorted(facts.classes.items())), dict(sorted(counts.items()))))
    if facts.sha256 is not None:
        comparisons.append(("sha256", facts.sha256, dataset.sha256))
    differing = [f"{name}: declared {told}, got {got}" for name, told, got in comparisons if told != got]
    if differing:
        raise FactsMismatch(
            f"data set {dataset.name!r} is not what was declared ({'; '.join(differing)}); "
            "correct the facts in its YAML, or get the data from its original source"
        )


def _tidy(column: pd.Series[Any], order: Sequence[str] | None) -> pd.Series[Any]:
    if order is None and is_number_column(column):
        return number_column(column)
    return label_column(column, order)
