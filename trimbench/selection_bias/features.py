"""Checks of tables and responses, and the cuts that make real values zeros and ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.networks.values import as_numbers, in_order, is_constant, is_missing, is_narrow, unmasked, widened

# Values of a block of columns or rows.
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class Binariser:
    """How features become zeros and ones.

    Attributes
    ----------
    cuts : ndarray of shape (n_features,), optional
        A value becomes 1 if it is greater than its feature's cut; None for features that are 0 and 1 already.
    """

    n_features: int
    cuts: NDArray[np.float64] | None

    @classmethod
    def fit(
        cls, X: NDArray[Any], unlabelled: NDArray[Any] | None = None, cuts: NDArray[np.float64] | None = None
    ) -> Binariser:
        """Learn the cuts: medians, except where they are known.

        Parameters
        ----------
        X : ndarray of shape (n_cases, n_features)
        unlabelled : ndarray of shape (n_more_cases, n_features), optional
            Further cases whose values count towards the medians.
        cuts : ndarray of shape (n_features,), optional
            Known cuts, NaN for those to be learned. Default: `known_cuts` of these cases.
        """
        values = X if unlabelled is None else np.concatenate([X, unlabelled])
        known = known_cuts(values) if cuts is None else cuts
        if known is None:
            return cls(X.shape[1], None)
        learned = np.array(known, dtype=np.float64)
        is_open = np.isnan(learned)
        for columns in blocks(np.flatnonzero(is_open), len(values)):
            # Small integers would overflow in the sum of two values.
            learned[columns] = _medians(values[:, columns].astype(np.float64, copy=False))
        return cls(X.shape[1], learned)

    def transform(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Return complete cases as zeros and ones, of shape (n_cases, n_features)."""
        return self.cut(self._checked(X, slice(None), allow_missing=False))

    def codes(self, X: ArrayLike, columns: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return some features as zeros and ones, -1 where a value is missing, of shape (n_cases, n_columns).

        Raises ValueError if X is not a table of numbers with the features of the training cases, or not binary where
        these were.
        """
        chosen = self._checked(X, columns, allow_missing=True)
        codes = self.cut(chosen, columns).view(np.int8)
        if chosen.dtype.kind == "f":
            codes[np.isnan(chosen)] = -1
        return codes

    def _checked(self, X: ArrayLike, columns: NDArray[np.int64] | slice, *, allow_missing: bool) -> NDArray[Any]:
        chosen: NDArray[Any] = checked_cases(X, self.n_features, allow_missing=allow_missing)[:, columns]
        if self.cuts is None and not _is_binary(chosen):
            raise ValueError(
                "X must hold only 0 and 1, as the training cases did, got other values; fit with real values to "
                "have them cut at their medians, or give cuts"
            )
        # A narrow float that stands for the same decimal as a cut must not come out above it.
        return np.minimum(chosen, widened(chosen)) if is_narrow(chosen.dtype) else chosen

    def cut(self, values: NDArray[Any], columns: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.uint8]:
        """Return zeros and ones for values of all features, or of some columns, that have been checked; 0 for NaN."""
        return (values > (0.5 if self.cuts is None else self.cuts[columns])).view(np.uint8)


def known_cuts(X: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the cuts of columns that are binary in all cases; what is binary in some cases may be real in others.

    Parameters
    ----------
    X : ndarray of shape (n_cases, n_features)

    Returns
    -------
    ndarray of shape (n_features,), optional
        1/2 for a column of zeros and ones, the mean of the two values where a column has two others, NaN for a real
        column, whose cut depends on the training cases. None for a table of zeros and ones, which needs no cuts.
    """
    if _is_binary(X):
        return None
    cuts = np.empty(X.shape[1])
    for columns in blocks(np.arange(X.shape[1]), len(X)):
        values = X[:, columns].astype(np.float64, copy=False)
        missing = np.isnan(values)
        low, high = np.where(missing, np.inf, values).min(axis=0), np.where(missing, -np.inf, values).max(axis=0)
        two_values = ((values == low) | (values == high) | missing).all(axis=0) & (low < high)
        middle = 0.5 * np.where(two_values, low, np.nan) + 0.5 * np.where(two_values, high, np.nan)
        middle = np.where(is_constant(low, high), high, middle)  # nothing is above
        cuts[columns] = np.where(((values == 0) | (values == 1) | missing).all(axis=0), 0.5, middle)
    return cuts


def blocks(columns: NDArray[np.int64], n_cases: int) -> Iterator[NDArray[np.int64]]:
    """Yield the columns in parts that fit into a few megabytes each."""
    step = max(1, _BLOCK_ENTRIES // n_cases)
    for start in range(0, len(columns), step):
        yield columns[start : start + step]


def _medians(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the medians of the values that are not missing; 0 for a column without any."""
    missing = np.isnan(values)
    if not missing.any():
        found: NDArray[np.float64] = np.median(values, axis=0)
        return found
    result = np.zeros(values.shape[1])
    seen = ~missing.all(axis=0)
    result[seen] = np.nanmedian(values[:, seen], axis=0)
    return result


def checked_cuts(cuts: ArrayLike | None, n_features: int) -> NDArray[np.float64] | None:
    """Return given cuts; raise ValueError unless they are one number or NaN for each feature."""
    if cuts is None:
        return None
    try:
        values = np.asarray(cuts, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cuts must hold numbers, or NaN for a median, got {cuts!r}") from error
    if values.shape != (n_features,) or np.isinf(values).any():
        raise ValueError(
            f"cuts must be one finite number for each of the {n_features} features, or NaN for a median, got {cuts!r}"
        )
    return values


def checked_table(name: str, X: ArrayLike, *, allow_missing: bool = False) -> NDArray[Any]:
    """Return X as an array, or raise ValueError unless it is a table of finite numbers.

    Parameters
    ----------
    allow_missing : bool
        Whether values may be missing. NaN, masked values, None and the missing value of pandas become NaN.
    """
    values = as_numbers(X, name)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"{name} must be a table of shape (n_cases, n_features) with at least one of each, got shape {values.shape}"
        )
    if values.dtype.kind == "f":
        for rows in row_blocks(values):
            if not (np.isfinite(rows) | (allow_missing & np.isnan(rows))).all():
                raise ValueError(
                    f"{name} must hold finite numbers {'or NaN' if allow_missing else 'only'}, got "
                    + ("infinity" if allow_missing else "NaN or infinity; remove or impute the missing values first")
                )
    return values


def checked_cases(X: ArrayLike, n_features: int, *, allow_missing: bool = True) -> NDArray[Any]:
    """Return cases to predict as an array; raise ValueError unless they have the features of the training cases."""
    values = checked_table("X", X, allow_missing=allow_missing)
    if values.shape[1] != n_features:
        raise ValueError(f"X must have the {n_features} features of the training cases, got {values.shape[1]} features")
    return values


def row_blocks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield some rows of a table at a time."""
    step = max(1, _BLOCK_ENTRIES // values.shape[1])
    for start in range(0, len(values), step):
        yield values[start : start + step]


def has_missing(values: NDArray[Any]) -> bool:
    """Tell whether a checked table has missing values."""
    return values.dtype.kind == "f" and any(bool(np.isnan(rows).any()) for rows in row_blocks(values))


def checked_classes(y: ArrayLike, n_cases: int) -> tuple[NDArray[np.int64], int]:
    """Return the classes 0, 1, ..., C - 1 of the cases, and C.

    Raises ValueError for a wrong length, values other than classes, or a class below the largest without cases.
    """
    values = _as_array("y", y)
    if values.dtype == object and all(isinstance(value, int | np.integer) for value in values.flat):
        values = values.astype(np.float64)
    numbers = values.dtype.kind in "biuf" and values.shape == (n_cases,)
    if not numbers or not (np.isfinite(values) & (values >= 0) & (values == np.floor(values))).all():
        return checked_response(y, n_cases, "0, 1, 2, ..."), 2
    found = np.unique(values)
    if found[-1] <= 1:
        return checked_response(values, n_cases), 2
    absent = np.flatnonzero(found != np.arange(len(found)))
    if len(absent):
        raise ValueError(
            f"y must have cases of all classes from 0 to {int(found[-1])}, got none of {absent[0]}; renumber them"
        )
    return values.astype(np.int64), len(found)


def checked_response(y: ArrayLike, n_cases: int, classes: str = "0 and 1") -> NDArray[np.int64]:
    """Return the response as zeros and ones; raise ValueError for another length, other values or a single class.

    `classes` describes the allowed values in the error message.
    """
    values = _as_array("y", y)
    if values.shape != (n_cases,):
        raise ValueError(f"y must have one value for each of the {n_cases} cases, got shape {values.shape}")
    found = [value for value in (0, 1) if any(value == y for y in values.tolist())]
    others = sorted({repr(value) for value in values.tolist() if value not in (0, 1)})
    if others:
        shown = ", ".join([*(repr(value) for value in found), *others][:5])
        raise ValueError(f"y must hold only {classes}, got {shown}; encode the classes as {classes}")
    if len(found) < 2:
        raise ValueError(f"y must have cases of both classes, got only {found[0]}; add cases of the other class")
    return values.astype(np.int64)


def checked_row_numbers(name: str, rows: ArrayLike | None, y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return row numbers; None means all rows.

    Raises ValueError if they are not row numbers (or a mask), repeat a row, or lack a class.
    """
    if rows is None:
        return np.arange(len(y))
    values = _as_array(name, rows)
    if values.dtype == bool and values.shape == y.shape:
        values = np.flatnonzero(values)
    in_range = values.ndim == 1 and values.size and values.dtype.kind in "iu"
    if not in_range or values.min() < 0 or values.max() >= len(y) or len(np.unique(values)) < len(values):
        raise ValueError(
            f"{name} must be row numbers from 0 to {len(y) - 1}, each once, or a mask of the {len(y)} cases, "
            f"got {rows!r}"
        )
    if len(np.unique(y[values])) < len(np.unique(y)):
        only = np.unique(y[values]).tolist()
        n_classes = "both" if len(np.unique(y)) == 2 else "all"
        raise ValueError(f"{name} must have cases of {n_classes} classes, got only {str(only)[1:-1]}; add rows")
    return values.astype(np.int64)


def checked_more_cases(
    unlabelled: ArrayLike, n_features: int, names: Sequence[str] | None = None, *, allow_missing: bool = False
) -> NDArray[Any]:
    """Return the cases without response; raise ValueError unless they are a table of numbers with the same features."""
    more = checked_table("unlabelled", in_order(unlabelled, names), allow_missing=allow_missing)
    if more.shape[1] != n_features:
        raise ValueError(f"unlabelled must have the {n_features} features of X, got {more.shape[1]} features")
    return more


def _as_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array; what any library calls missing becomes NaN."""
    try:
        array = np.asarray(unmasked(values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have rows of one length, got {values!r}") from error
    if array.dtype == object and array.ndim and (missing := is_missing(array)).any():
        array = np.where(missing, np.nan, array)
    return array


def without_masks(X: Any) -> Any:
    """Return an array for scikit-learn's checks, which know neither masks nor every missing value among objects."""
    is_unknown = isinstance(X, np.ma.MaskedArray) or (isinstance(X, np.ndarray) and X.dtype == object)
    return _as_array("X", X) if is_unknown else X


def _is_binary(values: NDArray[Any]) -> bool:
    """Tell whether all values are 0, 1 or missing."""
    if values.dtype == bool:
        return True
    if values.dtype.kind == "u":
        return bool(values.max() <= 1)
    return all(bool(((rows == 0) | (rows == 1) | np.isnan(rows)).all()) for rows in row_blocks(values))
