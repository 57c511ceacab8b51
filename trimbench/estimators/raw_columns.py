"""Tables as estimators get them: their columns by name, and names or positions that users give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def plain_table(X: Any) -> Any:
    """Return a sparse matrix as an array, and a data frame of another library (polars, pyarrow) as one of pandas.

    Missing values become NaN or None. Anything else is returned as it is. ValueError for a lazy frame.
    """
    import pandas as pd

    if hasattr(X, "toarray"):
        return X.toarray()
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "get_column") and hasattr(X, "columns"):  # polars
        return pd.DataFrame({str(name): X.get_column(name).to_numpy() for name in X.columns})
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError(f"X must be a data frame with rows, got a {type(X).__name__}; use X.collect()")
    return X.to_pandas() if hasattr(X, "to_pandas") else X


def checked_rows(estimator: Any, X: Any, *, reset: bool = False, y: Any = "no_validation") -> pd.DataFrame:
    """Return the table as a data frame with a name for each column, checked as scikit-learn does.

    The columns of an array are called ``x0, x1, ...``. A data frame keeps the types of its columns.
    """
    import pandas as pd

    if is_frame(X):
        labels = [str(label) for label in X.columns]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise ValueError(f"X must have a different name for each column, got {twice[:80]!r} twice; rename one")
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)
        if X.shape[1] == 0 or len(X) == 0:
            raise ValueError(
                f"X must have at least one row and one column: found {len(X)} sample(s) and {X.shape[1]} feature(s)"
            )
        return X.set_axis(labels, axis=1)
    checked = validate_data(estimator, unmasked(X), y, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    table = checked if isinstance(y, str) and y == "no_validation" else checked[0]
    return pd.DataFrame(table, columns=[f"x{place}" for place in range(table.shape[1])])


def unmasked(X: Any) -> Any:
    """Return a masked array with NaN in place of masked numbers, and None of anything else; the rest as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    of_numbers = X.dtype.kind in "biuf"
    values = np.array(X.data, dtype=np.float64 if of_numbers else object)
    values[np.ma.getmaskarray(X)] = np.nan if of_numbers else None
    return values


def checked_training_rows(estimator: Any, X: Any, y: Any) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return the table and the labels of training rows."""
    check_no_missing_label(y)
    frame = checked_rows(estimator, X, reset=True, y=y)
    labels = column_or_1d(y, warn=True)
    check_array(labels, ensure_2d=False, dtype=None)
    check_consistent_length(frame, labels)
    check_classification_targets(labels)
    return frame, labels


def check_no_missing_label(y: Any) -> None:
    """Raise a ValueError if a label is missing; of numbers that are not masked, scikit-learn says it."""
    import pandas as pd

    hidden = np.ma.is_masked(y)
    labels = np.asarray(unmasked(y) if hidden else y)
    is_checked = labels.ndim == 1 and (hidden or labels.dtype.kind in "OTmM")
    if is_checked and (n_missing := int(np.sum(pd.isna(labels)))):
        raise ValueError(
            f"y must have a label for every row, got none (NaN, None or NA) in {n_missing} of {len(labels)} rows; drop "
            "those rows, or give them a label of their own"
        )


def is_frame(X: Any) -> TypeGuard[pd.DataFrame]:
    """Return whether X is a data frame of pandas."""
    import pandas as pd

    return isinstance(X, pd.DataFrame)


def plain_columns(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns of nullable text, pandas' or Arrow's, hold Python strings.

    Some versions of pandas and scikit-learn take them for numbers.
    """
    plain: pd.DataFrame = X.apply(lambda column: column.astype(object) if _is_nullable_text(column.dtype) else column)
    return plain


def column_names(given: Any, names: Sequence[str], what: str) -> list[str]:
    """Return columns that are given by name or position as names.

    Raises ValueError, with the argument named as `what`, if there is no such column.
    """
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ValueError(f"{what} must be a sequence of names or positions of columns, got {str(given)[:80]!r}")
    return [column_name(label, names, what) for label in given]


def column_name(label: Any, names: Sequence[str], what: str) -> str:
    """Return the name of a column that is given by name or position."""
    if isinstance(label, int | np.integer) and not isinstance(label, bool):
        if 0 <= label < len(names):
            return names[int(label)]
        raise ValueError(f"{what} must have positions from 0 to {len(names) - 1}, got {int(label)}")
    if str(label) not in names:
        shown = list(names[:8])
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        raise ValueError(f"{what} must name columns among {shown}{more}, got {str(label)[:80]!r}")
    return str(label)


def cost_by_name(costs: Any, names: Sequence[str], groups: Mapping[str, Any] | None) -> Any:
    """Return costs with the names of columns, or of groups, as keys; a sequence is left as it is."""
    if hasattr(costs, "to_dict") and costs.ndim == 1:  # a Series, by name
        costs = costs.to_dict()
    if not isinstance(costs, Mapping):
        return costs
    return {
        label if groups and label in groups else column_name(label, names, "costs"): cost
        for label, cost in costs.items()
    }


def groups_by_name(groups: Any, names: Sequence[str]) -> dict[str, list[str]] | None:
    """Return groups with their columns by name."""
    if groups is None:
        return None
    if not isinstance(groups, Mapping):
        raise ValueError(
            f"groups must be a mapping from the name of a group to its columns, got {type(groups).__name__}; for "
            "example groups={'blood': ['urea', 'iron']}"
        )
    return {str(name): column_names(members, names, f"groups[{name!r}]") for name, members in groups.items()}


def _is_nullable_text(dtype: object) -> bool:
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        return not pd.api.types.is_any_real_numeric_dtype(dtype)
    return isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA
