"""Learning naive Bayes models from tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.naive_bayes import NaiveBayes

if TYPE_CHECKING:
    import pandas as pd

MissingValues = Literal["error", "ignore"]
# A column of at least so many rows that are all different is not one of categories.
_FEWEST_ROWS_OF_AN_IDENTIFIER = 20
# Nor are numbers, most of which occur once or twice, which are measurements.
_LARGEST_SHARE_OF_NUMBERS = 0.5


def learn_naive_bayes(
    features: pd.DataFrame,
    target: pd.Series,
    *,
    smoothing: float = 1.0,
    missing: MissingValues = "error",
) -> NaiveBayes:
    """Learn a naive Bayes model by counting, with Laplace smoothing.

    ``P(x_i = v | c) = (count(v, c) + smoothing) / (count(c) + smoothing * n_values_i)`` and likewise for the prior.

    Parameters
    ----------
    features : DataFrame of shape (n_rows, n_features)
        Every distinct value of a column is a value of the feature. The values of a categorical column are its
        categories, used or not; those of other columns are sorted.
    target : Series of length n_rows
        The class of each row. Rows are matched by position, as scikit-learn does.
    smoothing : float
        Pseudo-count of every value, 0 or more. 0 is maximum likelihood.
    missing : {"error", "ignore"}
        What NaN in a feature means: an error, or a cell that is left out of that feature's counts.

    Returns
    -------
    NaiveBayes

    Raises
    ------
    TypeError
        When `features` is no data frame, or `target` no series.
    ValueError
        When a table is empty, holds NaN (see `missing`) or two columns with the same name; when `features` and `target`
        have different lengths, or the same row labels in another order; when a column of 20 rows or more that is not
        categorical has a different value in each, or numbers with more different values than half of the rows; when the
        smoothing is negative, or a feature has no observed value in some class while the smoothing is 0.
    """
    check_smoothing(smoothing)
    check_rows(features, target)
    class_codes, class_names = category_codes(target, "target", missing="error")
    feature_names = [str(label) for label in features.columns]
    likelihoods, value_names = [], []
    for position, name in enumerate(feature_names):
        # By position: a name that occurs twice would select a table; the model rejects such names.
        codes, values = category_codes(features.iloc[:, position], f"feature {name!r}", missing=missing)
        counts = np.zeros((len(class_names), len(values)))
        seen = codes >= 0
        np.add.at(counts, (class_codes[seen], codes[seen]), 1.0)
        counts += smoothing
        totals = counts.sum(axis=1, keepdims=True)
        if (totals == 0).any():
            empty = class_names[int(np.flatnonzero(totals[:, 0] == 0)[0])]
            raise ValueError(
                f"feature {name!r} must be observed in every class when smoothing is 0, got no value in class "
                f"{empty!r}; use a positive smoothing"
            )
        likelihoods.append(counts / totals)
        value_names.append(values)
    prior = np.bincount(class_codes, minlength=len(class_names)) + smoothing
    return NaiveBayes(
        prior / prior.sum(),
        likelihoods,
        feature_names=feature_names,
        class_names=class_names,
        value_names=value_names,
        class_variable=str(target.name) if target.name is not None else "class",
    )


def check_smoothing(smoothing: float) -> None:
    """Raise a ValueError unless the pseudo-count is a finite number of 0 or more."""
    if not isinstance(smoothing, int | float | np.number) or not np.isfinite(smoothing) or smoothing < 0:
        raise ValueError(f"smoothing must be a finite number >= 0, got {smoothing!r}; 1 is Laplace's rule")


def check_rows(features: pd.DataFrame, target: pd.Series) -> None:
    """Raise a TypeError or ValueError unless both are tables of pandas with the same rows, at least one."""
    import pandas as pd

    if not isinstance(features, pd.DataFrame):
        raise TypeError(
            f"features must be a DataFrame with a name for each column, got {type(features).__name__}; make it one "
            "with pd.DataFrame(array, columns=names)"
        )
    if not isinstance(target, pd.Series):
        raise TypeError(
            f"target must be a Series with the class of each row, got {type(target).__name__}; make it one with "
            "pd.Series(values, name='class')"
        )
    if len(features) == 0 or len(features) != len(target):
        raise ValueError(
            "features and target must have the same number of rows, at least one, "
            f"got {len(features)} and {len(target)}"
        )
    if _shuffled(features.index, target.index):
        raise ValueError(
            "features and target must have their rows in the same order, got the same row labels in another order; "
            "use target.loc[features.index], or target.reset_index(drop=True) if the order is meant"
        )


def _shuffled(rows: pd.Index, others: pd.Index) -> bool:
    return not rows.equals(others) and bool(rows.isin(others).all() and others.isin(rows).all())


def category_codes(column: pd.Series, what: str, *, missing: MissingValues) -> tuple[NDArray[np.int64], list[str]]:
    """Return value indices (-1 where missing) and the names of the values.

    Raises ValueError, with the column named as `what`, if values are missing and may not be, or there is none at all.
    """
    if missing not in get_args(MissingValues):
        raise ValueError(f"missing must be 'error' or 'ignore', got {missing!r}")
    if column.dtype.kind == "f":
        if np.isinf(column.to_numpy(np.float64, na_value=np.nan)).any():
            raise ValueError(f"{what} must hold finite numbers, got infinity; mark a missing value with NaN")
        column = column.astype("float64")  # pandas has no categories of half precision
    try:
        categorical = column.astype("category")
    except TypeError as error:
        raise ValueError(f"{what} must hold categories, got cells that are no single value: {error}") from error
    codes = np.asarray(categorical.cat.codes, dtype=np.int64)
    if missing == "error" and (codes < 0).any():
        raise ValueError(
            f"{what} must have no missing values, got NaN in {int((codes < 0).sum())} of {codes.size} rows; drop those "
            "rows, make 'missing' a value of its own, or pass missing='ignore' (features only)"
        )
    names = [str(value) for value in categorical.cat.categories.tolist()]
    n_rows = int((codes >= 0).sum())
    if _are_no_categories(column, len(names), n_rows):
        different = "a different value in each of" if len(names) == n_rows else f"{len(names)} different values in"
        raise ValueError(
            f"{what} must hold categories, got {different} {n_rows} rows; if these are numbers, "
            "cut it into intervals first (pd.cut or pd.qcut), and drop a column that only numbers the rows"
        )
    if not names:
        raise ValueError(f"{what} must have at least one value that is not missing, got none; drop the column")
    return codes, names


def _are_no_categories(column: pd.Series, n_values: int, n_rows: int) -> bool:
    """Return whether a column holds names of rows, or measurements."""
    if column.dtype == "category" or n_rows < _FEWEST_ROWS_OF_AN_IDENTIFIER:
        return False
    return n_values > _LARGEST_SHARE_OF_NUMBERS * n_rows if column.dtype.kind in "fiu" else n_values == n_rows
