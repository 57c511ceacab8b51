"""Imputers, which fill missing columns in from the observed ones: the baselines of the experiments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.additive import FILLS, fill_values
from trimbench.conformant.bernoulli_mixture import fit_mixture
from trimbench.conformant.numeric_input import as_table
from trimbench.conformant.reduced_problem import Matrix

ImputerName = Literal["min", "max", "mean", "median", "em", "normal_draw", "mice", "knn"]
IMPUTERS: tuple[ImputerName, ...] = get_args(ImputerName)
Imputer = Callable[[ArrayLike], Matrix]
_Fill = Callable[[Matrix], Matrix]


def fit_imputer(
    name: ImputerName,
    rows: NDArray[Any],
    *,
    seed: int = 0,
    n_components: int = 20,
    n_neighbours: int = 10,
    n_nearest_features: int | None = None,
    max_iterations: int = 10,
) -> Imputer:
    """Fit an imputer to rows, and return a function that fills the gaps of others.

    Parameters
    ----------
    name : str
        ``"min"``, ``"max"``, ``"mean"``, ``"median"``: a constant for each column. ``"em"``: expectations of a mixture
        of independent binary columns, learned by expectation-maximisation. ``"normal_draw"``: a draw from a normal
        distribution with the mean and deviation of the observed values of the column, which is what the published
        experiments ran under the name EM. ``"mice"``: chained equations (scikit-learn's IterativeImputer). ``"knn"``:
        the mean of the nearest rows (scikit-learn's KNNImputer).
    rows : array of shape (n_rows, n_columns)
        Training rows, or the rows to fill themselves; NaN where missing. Any finite numbers; for ``"em"`` zeros and
        ones.
    seed : int
    n_components : int
        Of ``"em"``.
    n_neighbours : int
        Of ``"knn"``.
    n_nearest_features : int, optional
        Of ``"mice"``: how many other columns predict each one; default: all.
    max_iterations : int
        Of ``"em"`` (times 10) and ``"mice"``.

    Returns
    -------
    callable
        Takes rows with NaN and returns complete rows. Columns that are missing in every training row are filled with 0;
        in columns of zeros and ones ``"mice"`` fills in values between 0 and 1.

    Raises
    ------
    ValueError
        When the name is unknown, there is no row, or a value is not allowed; the returned function raises it for rows
        with the wrong columns or a value that is not allowed.
    """
    if name not in IMPUTERS:
        raise ValueError(f"imputer must be one of {', '.join(IMPUTERS)}, got {name!r}")
    table = _checked(as_table(rows, name="rows"), name, "rows")
    if len(table) == 0:
        raise ValueError("rows must have at least one row to fit an imputer to, got 0")
    if name in FILLS:
        impute = _constant(table, name)
    elif name == "normal_draw":
        impute = _normal_draw(table, seed)
    elif name == "em":
        impute = fit_mixture(table, n_components, seed=seed, max_iterations=10 * max_iterations).fill
    else:
        impute = _from_scikit_learn(name, table, seed, n_neighbours, n_nearest_features, max_iterations)

    def fill(gaps: ArrayLike) -> Matrix:
        return impute(_checked(as_table(gaps, table.shape[1], "gaps"), name, "gaps").astype(np.float64, copy=False))

    return fill


def _checked(table: NDArray[Any], imputer: str, name: str) -> NDArray[Any]:
    """Return a table whose values an imputer accepts."""
    if table.dtype.kind == "f" and np.isinf(table).any():
        row, column = np.argwhere(np.isinf(table))[0]
        raise ValueError(
            f"{name}[{row}, {column}] must be finite; mark a missing value with NaN; got {float(table[row, column])!r}"
        )
    if imputer == "em" and not _are_binary(table).all():
        row, column = np.argwhere(~np.isnan(table) & (table != 0) & (table != 1))[0]
        raise ValueError(
            f"{name}[{row}, {column}] must be 0, 1 or NaN for imputer 'em', got {float(table[row, column])!r}; use "
            "another imputer for other numbers, or binarise the column"
        )
    return table


def _are_binary(table: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which columns hold no values but 0 and 1; a column without any value is one of them."""
    return np.asarray((np.isnan(table) | (table == 0) | (table == 1)).all(axis=0))


def _constant(rows: NDArray[Any], name: Any) -> _Fill:
    if rows.dtype.kind == "f" and np.isnan(rows).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
            values = np.nan_to_num(np.asarray(getattr(np, f"nan{name}")(rows, axis=0)))
    else:
        values = fill_values(rows, name)
    return lambda gaps: np.where(np.isnan(gaps), values, gaps)


def _normal_draw(rows: NDArray[Any], seed: int) -> _Fill:
    table = np.asarray(rows, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, deviation = np.nan_to_num(np.nanmean(table, axis=0)), np.nan_to_num(np.nanstd(table, axis=0))

    def fill(gaps: Matrix) -> Matrix:
        drawn = np.random.default_rng(seed).normal(mean, deviation, gaps.shape)
        return np.where(np.isnan(gaps), drawn, gaps)

    return fill


def _from_scikit_learn(
    name: str,
    rows: NDArray[Any],
    seed: int,
    n_neighbours: int,
    n_nearest_features: int | None,
    max_iterations: int,
) -> _Fill:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    table = np.asarray(rows, dtype=np.float64)
    if name == "knn":
        imputer = KNNImputer(n_neighbors=min(n_neighbours, len(table)), keep_empty_features=True)
    else:
        binary = _are_binary(table)
        imputer = IterativeImputer(
            max_iter=max_iterations,
            n_nearest_features=n_nearest_features,
            min_value=np.where(binary, 0.0, -np.inf),
            max_value=np.where(binary, 1.0, np.inf),
            random_state=seed % 2**32,
            keep_empty_features=True,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the chained equations have not converged is part of the comparison
        imputer.fit(table)

    def fill(gaps: Matrix) -> Matrix:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # KNNImputer sets a column without training values to 0 even where it is observed.
            return np.where(np.isnan(gaps), imputer.transform(gaps), gaps)

    return fill
