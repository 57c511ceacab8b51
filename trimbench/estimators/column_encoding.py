"""Columns of raw tables as features of a conformant model: binary, one-hot or real."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.layout import FeatureLayout
from trimbench.estimators.raw_columns import column_names
from trimbench.networks.discretize import IdentifierColumnWarning

if TYPE_CHECKING:
    import pandas as pd

Numeric = Literal["gaussian", "cut"]
_MARGIN = 0.05
# Text with more values than these is no category.
_FEW_VALUES, _LARGEST_SHARE = 10, 0.5


@dataclass(frozen=True, eq=False)
class BinaryColumn:
    """A column of zeros and ones, as it is."""

    name: str

    def encode(self, values: pd.Series[Any]) -> NDArray[np.float64]:
        """Return the column, shape (n_rows, 1); NaN where a value is missing."""
        numbers = as_floats(values, self.name)
        wrong = (numbers != 0) & (numbers != 1) & ~np.isnan(numbers)
        if wrong.any():
            raise ValueError(
                f"column {self.name!r} must be 0 or 1, as in the training rows, or NaN where it is missing, got "
                f"{float(numbers[wrong][0])!r}"
            )
        return numbers[:, None]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name,)


@dataclass(frozen=True, eq=False)
class ScaledColumn:
    """A numeric column in units of its deviation, so that the penalty does not depend on its scale."""

    name: str
    mean: float
    scale: float

    def encode(self, values: pd.Series[Any]) -> NDArray[np.float64]:
        """Return the column, shape (n_rows, 1)."""
        return ((as_floats(values, self.name) - self.mean) / self.scale)[:, None]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name,)


@dataclass(frozen=True, eq=False)
class CutColumn:
    """A numeric column that is 1 above a cut."""

    name: str
    cut: float

    def encode(self, values: pd.Series[Any]) -> NDArray[np.float64]:
        """Return zeros and ones, shape (n_rows, 1)."""
        numbers = as_floats(values, self.name)
        return np.where(np.isnan(numbers), np.nan, numbers > self.cut)[:, None]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (f"{self.name} > {self.cut:.6g}",)


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column of categories: text, codes, or anything else that can be compared."""

    name: str
    categories: NDArray[Any]

    def encode(self, values: pd.Series[Any]) -> NDArray[np.float64]:
        """Return one column for each category; a category that no training row has counts as missing."""
        import pandas as pd

        index = pd.Index(self.categories.astype(object), dtype=object)
        place = index.get_indexer(pd.Index(values.astype(object), dtype=object))
        encoded = np.where(place[:, None] >= 0, np.arange(len(index)) == place[:, None], np.nan)
        return np.asarray(encoded, dtype=np.float64)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(f"{self.name}_{category}" for category in self.categories)


@dataclass(frozen=True, eq=False)
class IdentifierColumn:
    """A column of text that names rows: always 0, so that it is left out."""

    name: str

    def encode(self, values: pd.Series[Any]) -> NDArray[np.float64]:
        """Return zeros, shape (n_rows, 1)."""
        return np.zeros((len(values), 1))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name,)


Column = IdentifierColumn | BinaryColumn | ScaledColumn | CutColumn | CategoricalColumn


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """How the columns of a table become columns of a logistic regression."""

    columns: tuple[Column, ...]

    @classmethod
    def fit(cls, frame: pd.DataFrame, named: set[str], numeric: Numeric, weights: NDArray[np.float64]) -> ColumnEncoder:
        """Learn the kind of each column; those of `named` hold categories, as those of text do.

        Each column must have a value. Raises ValueError if one mixes text and numbers, or has values of another kind.
        """
        return cls(tuple(_learned(frame[name], name in named, numeric, weights) for name in frame.columns))

    def encode(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the encoded columns, shape (n_rows, n_encoded); NaN where a value is missing.

        Raises ValueError if a column of numbers has another value.
        """
        return np.hstack([column.encode(frame[column.name]) for column in self.columns])

    @property
    def layout(self) -> FeatureLayout:
        """The encoded columns of each feature."""
        categorical: list[tuple[int, ...]] = []
        real: list[int] = []
        width = 0
        for column in self.columns:
            end = width + len(column.outputs)
            if isinstance(column, CategoricalColumn):
                categorical.append(tuple(range(width, end)))
            elif isinstance(column, ScaledColumn):
                real.append(width)
            width = end
        return FeatureLayout(width, tuple(categorical), tuple(real))

    @property
    def zeros_and_ones(self) -> NDArray[np.intp]:
        """The encoded columns that are columns of zeros and ones as they were given."""
        own = [isinstance(column, BinaryColumn) for column in self.columns for _ in column.outputs]
        return np.flatnonzero(own)

    @property
    def outputs(self) -> list[str]:
        """Names of the encoded columns."""
        return [name for column in self.columns for name in column.outputs]


def categorical_names(given: Any, names: Sequence[str]) -> set[str]:
    """Return the columns that `categorical_features` names by name, position or mask; none for "from_dtype"."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return set()
    try:
        is_flat = not isinstance(given, str) and np.ndim(given) == 1
    except ValueError:  # a ragged list
        is_flat = False
    if not is_flat:
        one_hot = "for columns that are one-hot, give the one before the encoding, or use trimbench.conform"
        raise ValueError(
            "categorical_features must be 'from_dtype', a mask, or a list of names or positions of columns, got "
            f"{repr(given)[:80]}; {f'write [{given!r}] for one column' if np.isscalar(given) else one_hot}"
        )
    listed = list(given)
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features must have one truth value for each of the {len(names)} columns, if it is a "
                f"mask, got {len(listed)}"
            )
        return {name for name, chosen in zip(names, listed, strict=True) if chosen}
    return set(column_names(listed, names, "categorical_features"))


def as_floats(values: pd.Series[Any], name: str) -> NDArray[np.float64]:
    """Return a column of numbers; NaN where a value is missing.

    Raises ValueError if a value is not a number, or infinite.
    """
    import pandas as pd

    is_plain = isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf"
    try:
        numbers = values if is_plain else np.where(pd.isna(values), np.nan, values.to_numpy(dtype=object))
        numbers = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} must hold numbers, and NaN where one is missing, got {error}") from error
    if np.isinf(numbers).any():
        raise ValueError(f"column {name!r} must be finite, got infinity; mark a missing value with NaN")
    return numbers


def _learned(values: pd.Series[Any], is_named: bool, numeric: Numeric, weights: NDArray[np.float64]) -> Column:
    import pandas as pd

    name = str(values.name)
    known = values[values.notna()]
    if is_named:
        return CategoricalColumn(name, _sorted_values(known))
    if isinstance(values.dtype, pd.CategoricalDtype) or _is_text(known, name):
        categories = _sorted_values(known)
        if len(categories) > max(_FEW_VALUES, _LARGEST_SHARE * len(known)):
            warnings.warn(
                f"column {name!r} is left out: its {len(categories)} different values in {len(known)} rows are names "
                "of rows, not categories; drop it, or name it in categorical_features",
                IdentifierColumnWarning,
                stacklevel=7,
            )
            return IdentifierColumn(name)
        return CategoricalColumn(name, categories)
    kind = values.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or isinstance(kind, pd.PeriodDtype) or kind.kind == "m":
        raise ValueError(f"column {name!r} must hold numbers, text or categories, got {kind}; make a number of it")
    numbers = as_floats(values, name)
    seen = ~np.isnan(numbers)
    if np.isin(numbers[seen], (0.0, 1.0)).all():
        return BinaryColumn(name)
    mean = float(np.average(numbers[seen], weights=weights[seen]))
    deviation = float(np.sqrt(np.average((numbers[seen] - mean) ** 2, weights=weights[seen])))
    if numeric == "cut":
        return CutColumn(name, mean + _MARGIN * deviation)
    return ScaledColumn(name, mean, deviation if deviation > 0 else 1.0)


def _is_text(known: pd.Series[Any], name: str) -> bool:
    """Return whether a column without missing values holds text; ValueError if only some of it is."""
    import pandas as pd

    if not (known.dtype == object or pd.api.types.is_string_dtype(known.dtype)):
        return False
    text = [isinstance(value, str) for value in known]
    if any(text) and not all(text):
        other = known[~np.array(text)].iloc[0]
        raise ValueError(
            f"column {name!r} must hold either text or numbers, got both, such as {str(other)[:40]!r}; convert one, or "
            "name the column in categorical_features"
        )
    return all(text)


def _sorted_values(known: pd.Series[Any]) -> NDArray[Any]:
    distinct = known.astype(object).unique()
    try:
        return np.sort(distinct)
    except TypeError:  # of several kinds
        return np.array(sorted(distinct, key=lambda value: (type(value).__name__, str(value))), dtype=object)
