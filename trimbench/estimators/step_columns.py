"""Which raw column each column of a pipeline comes from, by what is known of the steps of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trimbench.estimators.fitted_naive_bayes import NaiveBayesBits

_ADVICE = (
    "use scalers, Binarizer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, SimpleImputer, selectors of columns and "
    "a ColumnTransformer of them, or learn from the raw table with TrimmedClassifier().fit(X, y)"
)


@dataclass(frozen=True)
class StepColumn:
    """A column between the steps of a pipeline.

    Attributes
    ----------
    source : int
        Place of the raw column that it is made of.
    categories : tuple, optional
        The values of the raw column that an encoder knows; None for a number.
    is_raw : bool
        Whether its values are still those of the raw column, where these are not missing.
    has_steps : bool
        Whether it has few values, between which it jumps as the raw number grows.
    takes_missing : bool
        Whether a missing value of the raw column is imputed.
    """

    source: int
    categories: tuple[Any, ...] | None = None
    is_raw: bool = True
    has_steps: bool = False
    takes_missing: bool = False


def columns_through(steps: Any, n_columns: int, names: Sequence[str]) -> list[StepColumn]:
    """Return what fitted steps make of raw columns; ValueError if a step is unknown or mixes columns."""
    return _through(steps, [StepColumn(place) for place in range(n_columns)], list(names))


def _through(step: Any, columns: list[StepColumn], names: list[str]) -> list[StepColumn]:
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_selection import SelectorMixin
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder

    if step is None or step == "passthrough":
        return columns
    if isinstance(step, NaiveBayesBits):
        return _made_of_bits(step, _through(step.steps, columns, names))
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            columns = _through(part, columns, names)
        return columns
    if isinstance(step, ColumnTransformer):
        return _side_by_side(step, columns, names)
    if isinstance(step, SelectorMixin):
        return [column for column, kept in zip(columns, step.get_support(), strict=True) if kept]
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        return _encoded(step, columns, names)
    if isinstance(step, KBinsDiscretizer):
        counts = step.n_bins_.tolist() if step.encode != "ordinal" else [1] * len(columns)
        stepped = [replace(column, is_raw=False, has_steps=True) for column in columns]
        return [column for column, count in zip(stepped, counts, strict=True) for _ in range(count)]
    return _one_to_one(step, columns)


def _one_to_one(step: Any, columns: list[StepColumn]) -> list[StepColumn]:
    import pandas as pd
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import (
        Binarizer,
        FunctionTransformer,
        MaxAbsScaler,
        MinMaxScaler,
        RobustScaler,
        StandardScaler,
    )

    if isinstance(step, FunctionTransformer) and step.func is None:  # a ColumnTransformer's passthrough
        return columns
    if isinstance(step, Binarizer):
        return [replace(column, is_raw=False, has_steps=True) for column in columns]
    if isinstance(step, StandardScaler | MinMaxScaler | MaxAbsScaler | RobustScaler):
        return [replace(column, is_raw=False) for column in columns]
    if isinstance(step, SimpleImputer) and not step.add_indicator and not pd.isna(step.statistics_).any():
        return [replace(column, takes_missing=True) for column in columns]
    raise ValueError(
        f"the steps of a pipeline must make each column of one raw column, and known ways, got "
        f"{type(step).__name__}; {_ADVICE}"
    )


def _encoded(step: Any, columns: list[StepColumn], names: list[str]) -> list[StepColumn]:
    """Return the columns of an encoder of categories."""
    found = []
    for place, column in enumerate(columns):
        if column.is_raw:
            column = replace(column, categories=tuple(step.categories_[place].tolist()), is_raw=False)
        elif column.categories is None and not column.has_steps:
            raise ValueError(
                f"{type(step).__name__} must encode raw values, got column {names[column.source][:60]!r} after another "
                "step; encode the column as it is"
            )
        found.append(column)
    if not hasattr(step, "drop_idx_"):
        return found
    # How many columns each gives, whatever is dropped or merged.
    return [column for column, count in zip(found, step._n_features_outs, strict=True) for _ in range(count)]


def _side_by_side(step: Any, columns: list[StepColumn], names: list[str]) -> list[StepColumn]:
    """Return the columns of a ColumnTransformer."""
    import pandas as pd

    places = pd.Series(range(len(columns)), index=getattr(step, "feature_names_in_", None))
    found: list[StepColumn] = []
    for _, part, chosen in step.transformers_:
        if part == "drop":
            continue
        by_name = any(isinstance(label, str) for label in np.atleast_1d(np.asarray(chosen, dtype=object)))
        picked = places.loc[chosen] if by_name else places.iloc[chosen]
        found += _through(part, [columns[place] for place in np.atleast_1d(picked).tolist()], names)
    return found


def _made_of_bits(step: NaiveBayesBits, columns: list[StepColumn]) -> list[StepColumn]:
    """Return the zeros and ones that a naive Bayes estimator looks at."""
    counts = getattr(step.estimator, "n_categories_", None)
    if counts is None:
        cut = step.estimator.binarize is not None
        return [replace(column, is_raw=False, has_steps=column.has_steps or cut) for column in columns]
    found = []
    for column, count in zip(columns, counts.tolist(), strict=True):
        if column.is_raw:
            column = replace(column, categories=tuple(range(count)))
        found += [replace(column, is_raw=False)] * count
    return found
