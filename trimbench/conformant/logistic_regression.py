"""Logistic regression, fast where the columns hold small whole numbers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.conformant.logistic_newton import LogisticLoss, Rows, minimise
from trimbench.conformant.numeric_input import as_numbers, as_table
from trimbench.conformant.reduced_problem import Matrix, Vector

_CHECKED_ROWS = 8192


def fit_logistic_regression(
    X: Any,
    y: ArrayLike,
    inverse_penalty: float = 1.0,
    *,
    sample_weight: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
) -> Any:
    """Fit the logistic regression that scikit-learn defines, several times faster on columns of small whole numbers.

    It minimises ``sum_n s_n loss(x_n, y_n) + |W|^2 / (2 C)`` where `C` is `inverse_penalty`, `s` are the weights of the
    rows, and intercepts are not penalised: of two classes the log-loss with one vector of weights, of more classes the
    multinomial one with a vector each.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_rows, n_columns)
        Numbers, without missing values. Columns of comparable scale are best, as the penalty is the same for all.
    y : array of shape (n_rows,)
        Labels of two or more classes.
    inverse_penalty : float
        C, positive and finite.
    sample_weight : array of shape (n_rows,), optional
        How often each row counts, 0 or more. A row of weight 0 counts as absent.
    tolerance : float
        Largest absolute entry of the gradient of the mean loss, the objective divided by ``C sum(s)``, as the
        parameter `tol` of scikit-learn.
    max_iterations : int
        Most steps of Newton's method.

    Returns
    -------
    sklearn.linear_model.LogisticRegression
        Fitted. Its attribute ``gradient_norm_`` is the certificate: the largest absolute entry of the gradient, in
        float64, that the tolerance bounds. ``n_iter_`` counts steps of Newton's method.

    Raises
    ------
    ValueError
        When a value is missing, infinite or not a number, there are fewer than two classes, or a parameter is not
        allowed.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the tolerance was not reached.

    Notes
    -----
    Newton's method with conjugate gradients, on one thread. Tables of whole numbers from -128 to 127 or from 0 to 255
    are stored as bytes, which products with the Hessian convert to float32 block by block. Few products are needed,
    because the preconditioner knows the correlations of the columns among rows that the classifier is not sure of.

    Weights need a smaller tolerance than predictions for complete rows do. By the penalty the mean loss is strongly
    convex: with intercepts at their best, the distance of the weights from the optimum is at most ``C sum(s)`` times
    the Euclidean norm of the gradient. Those of values that few rows have may be that far off, and count where a value
    is missing or imputed.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    >>> classifier = fit_logistic_regression(X, ["no", "no", "no", "yes", "yes"])
    >>> classifier.predict([[1, 1], [0, 1]]).tolist(), classifier.gradient_norm_ <= 1e-6
    (['yes', 'no'], True)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
    from threadpoolctl import threadpool_limits  # a requirement of scikit-learn

    _check_positive(inverse_penalty, "inverse_penalty")
    _check_positive(tolerance, "tolerance")
    if not isinstance(max_iterations, int | np.integer) or isinstance(max_iterations, bool) or max_iterations < 1:
        raise ValueError(f"max_iterations must be a whole number from 1, got {max_iterations!r}")
    table = _finite_table(X)
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError(
            f"y must have a label for every row, got {int(np.ma.getmaskarray(y).sum())} masked ones; drop those rows"
        )
    labels = np.asarray(y)
    if labels.shape != (table.shape[0],):
        raise ValueError(f"y must have one label for each of the {table.shape[0]} rows, got shape {labels.shape}")
    check_classification_targets(labels)
    weights = row_weights(sample_weight, table.shape[0])
    if not weights.all():
        present = weights > 0
        table, labels, weights = table[present], labels[present], weights[present]
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes in rows of positive weight, got {classes.tolist()}")
    rows, used = _stored(table)
    total = float(weights.sum())
    loss = LogisticLoss(rows, codes, weights / total, len(classes), 1.0 / (inverse_penalty * total))
    # Products of blocks are too short to share: with several threads, they wait for one another most of the time.
    with threadpool_limits(1, user_api="blas"):
        parameters, gradient_norm, iterations = minimise(loss, tolerance, max_iterations)
    if gradient_norm > tolerance:
        warnings.warn(
            f"the gradient is {gradient_norm:.2g} after {iterations} steps, more than the tolerance {tolerance:g}; "
            "allow more max_iterations, scale the columns, or choose a smaller inverse_penalty",
            ConvergenceWarning,
            stacklevel=2,
        )
    classifier = LogisticRegression(C=inverse_penalty, solver="newton-cg", tol=tolerance, max_iter=int(max_iterations))
    validate_data(classifier, X, skip_check_array=True)  # remembers the names of the columns
    classifier.classes_ = classes
    classifier.coef_, classifier.intercept_ = _coefficients(parameters, used, table.shape[1]), parameters[-1].copy()
    classifier.n_iter_ = np.array([iterations], dtype=np.int32)
    classifier.gradient_norm_ = gradient_norm
    return classifier


def _check_positive(value: float, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}")


def _finite_table(X: Any) -> Any:
    """Return the rows as an array of numbers or a CSR matrix of float64."""
    is_sparse = hasattr(X, "toarray")
    table: Any = X.tocsr().astype(np.float64) if is_sparse else as_table(X)
    if 0 in table.shape:
        raise ValueError(f"X must have at least one row and one column, got shape {table.shape}")
    values = table.data if is_sparse else table
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("X must have finite numbers only; leave rows with missing values out, or impute them")
    return table


def row_weights(sample_weight: ArrayLike | None, n_rows: int) -> Vector:
    """Return weights of rows as float64, ones if there are none; ValueError if they are not allowed."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights: Vector = as_numbers(sample_weight, "sample_weight").astype(np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one number for each of the {n_rows} rows, got shape {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight must have finite numbers, 0 or more, and not be zero in all rows")
    return weights


def _stored(table: Any) -> tuple[Rows, NDArray[np.intp] | slice]:
    """Return the rows as the products take them, and which columns they have: not those that are 0 everywhere."""
    if hasattr(table, "toarray"):
        return Rows(table, np.float64), slice(None)
    used = np.flatnonzero(table.any(axis=0))
    for small in (np.uint8, np.int8):
        stored = np.empty((len(table), len(used)), small)
        for start in range(0, len(table), _CHECKED_ROWS):
            values = table[start : start + _CHECKED_ROWS, used]
            bounds = np.iinfo(small)
            if values.size and not (bounds.min <= values.min() and values.max() <= bounds.max):
                break
            part = stored[start : start + _CHECKED_ROWS]
            part[:] = values
            if not (part == values).all():
                break
        else:
            return Rows(stored, np.float32), used
    return Rows(np.asarray(table[:, used], dtype=np.float64), np.float64), used


def _coefficients(parameters: Matrix, used: NDArray[np.intp] | slice, n_columns: int) -> Matrix:
    coefficients = np.zeros((parameters.shape[1], n_columns))
    coefficients[:, used] = parameters[:-1].T
    return coefficients
