"""Logistic regression to the optimum: by scikit-learn, and several times faster for bytes of several classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_positive, check_whole
from trimbench._typing import Matrix, Vector
from trimbench.conformant.layout import as_table, row_weights

# Up to this number of parameters, solving for all of them at once is the fastest step.
_FEW_PARAMETERS = 1500


def fit_logistic_regression(
    X: Any,
    y: ArrayLike,
    C: float = 1.0,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Any:
    """Fit scikit-learn's logistic regression so close to the optimum that rows with missing features can be predicted.

    It minimises ``sum_n s_n loss(x_n, y_n) + |W|^2 / (2 C)`` where `s` are the weights of the
    rows, and intercepts are not penalised: of two classes the log-loss with one vector of weights, of more classes the
    multinomial one with a vector each.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_rows, n_columns)
        Numbers, without missing values. Columns of comparable scale are best, as the penalty is the same for all.
    y : array of shape (n_rows,)
        Labels of two or more classes.
    C : float
        Inverse of the strength of the penalty, positive and finite.
    sample_weight : array of shape (n_rows,), optional
        How often each row counts, 0 or more. A row of weight 0 counts as absent.
    tol : float
        Largest absolute entry of the gradient of the mean loss, the objective divided by ``C sum(s)``, as in
        scikit-learn.
    max_iter : int
        Maximum number of Newton steps.

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
    Up to 1,500 parameters it is scikit-learn's solver ``newton-cholesky``, beyond it ``newton-cg``. A larger table of
    whole numbers from 0 to 255 with three classes or more stays one of bytes and is fitted here, with conjugate
    gradients as well, but in float32 and with far fewer products: the preconditioner knows the correlations of the
    columns among rows that the classifier is not sure of.

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

    check_positive("C", C)
    check_positive("tol", tol)
    check_whole("max_iter", max_iter, 1)
    table: Any = X.tocsr().astype(np.float64) if hasattr(X, "toarray") else as_table(X)
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError(
            f"y must have a label for every row, got {int(np.ma.getmaskarray(y).sum())} masked ones; drop those rows"
        )
    cells = table.data if hasattr(table, "toarray") else table
    if cells.dtype.kind == "f" and not np.isfinite(cells).all():
        raise ValueError("X must have finite numbers only; leave rows with missing values out, or impute them")
    labels = np.asarray(y)
    if labels.shape != (table.shape[0],):
        raise ValueError(f"y must have one label for each of the {table.shape[0]} rows, got shape {labels.shape}")
    check_classification_targets(labels)
    weights = row_weights(sample_weight, table.shape[0])
    if not weights.all():
        present = weights > 0
        table, labels, weights = table[present], labels[present], weights[present]
    classes = np.unique(labels)
    n_parameters = (table.shape[1] + 1) * (1 if len(classes) == 2 else len(classes))
    solver = "newton-cholesky" if n_parameters <= _FEW_PARAMETERS else "newton-cg"
    classifier = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=max_iter)
    if n_parameters > _FEW_PARAMETERS and len(classes) > 2 and _holds_bytes(table):
        _fit_bytes(classifier, table.astype(np.uint8), labels, weights)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gradient tells
            classifier.fit(table, labels, weights)
        classifier.gradient_norm_ = _gradient_norm(classifier, table, labels, weights)
    if classifier.gradient_norm_ > tol:
        warnings.warn(
            f"the gradient is {classifier.gradient_norm_:.2g} after {classifier.n_iter_[0]} steps, more than "
            f"tol={tol:g}; raise max_iter, scale the columns, or choose a smaller C",
            ConvergenceWarning,
            stacklevel=2,
        )
    validate_data(classifier, X, skip_check_array=True)  # remembers the names of the columns
    return classifier


def _gradient_norm(classifier: Any, table: Any, labels: NDArray[Any], weights: Vector) -> float:
    """Return the largest absolute entry of the gradient of the mean loss."""
    residuals = classifier.predict_proba(table) - (labels[:, None] == classifier.classes_)
    residuals = (residuals * weights[:, None])[:, -len(classifier.coef_) :]
    slopes = (table.T @ residuals).T + classifier.coef_ / classifier.C
    return float(max(np.abs(slopes).max(), np.abs(residuals.sum(axis=0)).max()) / weights.sum())


# Newton's method with preconditioned conjugate gradients for tables of bytes and several classes.

# Rows that are converted to floats at a time: small enough to stay in the cache for both products.
_BLOCK_ROWS = 1024
# The preconditioner is a matrix of columns by columns, which some rows for each of them estimate.
_MOST_COLUMNS = 2000
_ROWS_PER_COLUMN = 5
_MOST_PRODUCTS = 300
# An exact Newton step gains about half of what the slope says, and hardly ever needs to be halved.
_SUFFICIENT_DECREASE = 0.1
_SHORT_STEP, _SMALLEST_STEP = 0.1, 1e-10

# Of float32 or float64.
_Floats = NDArray[Any]
_Product = Callable[[_Floats], _Floats]


def _holds_bytes(table: Any) -> bool:
    """Tell whether a dense table has whole numbers from 0 to 255 only, and not too many columns."""
    if hasattr(table, "toarray") or table.shape[1] > _MOST_COLUMNS:
        return False
    if table.dtype in (np.uint8, np.bool_):
        return True
    parts = (table[start : start + 8 * _BLOCK_ROWS] for start in range(0, len(table), 8 * _BLOCK_ROWS))
    return all(((part >= 0) & (part <= 255) & (part == np.floor(part))).all() for part in parts)


def _fit_bytes(classifier: Any, table: NDArray[np.uint8], labels: NDArray[Any], weights: Vector) -> None:
    """Fit a scikit-learn classifier to a table of bytes."""
    from threadpoolctl import threadpool_limits

    classifier.classes_, codes = np.unique(labels, return_inverse=True)
    total = float(weights.sum())
    loss = _ByteLoss(table, codes, weights / total, len(classifier.classes_), 1.0 / (classifier.C * total))
    # Products of blocks are too short to share: with several threads, they wait for one another most of the time.
    with threadpool_limits(1, user_api="blas"):
        parameters, classifier.gradient_norm_, iterations = _minimise(loss, classifier.tol, classifier.max_iter)
    classifier.coef_, classifier.intercept_ = parameters[:-1].T.copy(), parameters[-1].copy()
    classifier.n_iter_ = np.array([iterations], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class _ByteLoss:
    """Mean multinomial logistic loss with a squared penalty.

    Parameters are a matrix of shape (n_columns + 1, n_classes), whose last row has the intercepts, without penalty.

    Attributes
    ----------
    table : ndarray of uint8, shape (n_rows, n_columns)
    codes : ndarray of int, shape (n_rows,)
        The class of each row, from 0 to n_classes - 1.
    weights : ndarray of shape (n_rows,)
        Of the rows; they sum to 1.
    n_classes : int
    penalty : float
        The loss has ``penalty / 2`` times the sum of the squared weights.
    """

    table: NDArray[np.uint8]
    codes: NDArray[np.intp]
    weights: Vector
    n_classes: int
    penalty: float

    def blocks(self, precision: Any) -> Iterator[tuple[slice, _Floats]]:
        """Yield slices of the rows with their values, which are valid until the next one."""
        n_rows, n_columns = self.table.shape
        buffer = np.empty((min(_BLOCK_ROWS, n_rows), n_columns), precision)
        for start in range(0, n_rows, _BLOCK_ROWS):
            part = slice(start, min(start + _BLOCK_ROWS, n_rows))
            block = buffer[: part.stop - start]
            np.copyto(block, self.table[part])
            yield part, block

    def evaluate(self, parameters: Matrix) -> tuple[float, Matrix, Matrix]:
        """Return the loss, its gradient and the probabilities of the classes, in float64."""
        value = 0.5 * self.penalty * float((parameters[:-1] ** 2).sum())
        gradient, chances = np.zeros(parameters.shape), np.empty((len(self.codes), self.n_classes))
        for part, block in self.blocks(np.float64):
            scores = block @ parameters[:-1] + parameters[-1]
            scores -= scores.max(axis=1, keepdims=True)
            likely = np.exp(scores)
            totals = likely.sum(axis=1, keepdims=True)
            chances[part] = likely / totals
            rows, codes, weights = np.arange(len(block)), self.codes[part], self.weights[part]
            value += float((np.log(totals[:, 0]) - scores[rows, codes]) @ weights)
            residuals = chances[part].copy()
            residuals[rows, codes] -= 1.0
            residuals *= weights[:, None]
            gradient[:-1] += block.T @ residuals
            gradient[-1] += residuals.sum(axis=0)
        gradient[:-1] += self.penalty * parameters[:-1]
        return value, gradient, chances

    def hessian(self, chances: _Floats) -> _Product:
        """Return what multiplies the Hessian by a matrix of parameters, in the precision of the probabilities."""
        precision: Any = chances.dtype.type
        curvature = self.weights.astype(precision)[:, None] * chances

        def product(direction: _Floats) -> _Floats:
            direction = direction.astype(precision, copy=False)
            result = np.zeros(direction.shape, precision)
            for part, block in self.blocks(precision):
                change = block @ direction[:-1] + direction[-1]
                change -= (chances[part] * change).sum(axis=1, keepdims=True)
                change *= curvature[part]
                result[:-1] += block.T @ change
                result[-1] += change.sum(axis=0)
            result[:-1] += precision(self.penalty) * direction[:-1]
            return result

        return product

    def preconditioner(self, chances: _Floats) -> _Product:
        """Return a cheap approximation of the inverse of the Hessian.

        The diagonal is that of the Hessian. The correlations between columns, common to all classes, come from rows
        that are drawn at even steps along the sum of the curvatures. It stays within the parameters that add up to 0
        over the classes, where the gradient and the optimum are: along the rest the loss is flat but for the penalty.
        """
        precision: Any = chances.dtype.type
        curvature = self.weights[:, None] * chances * (1 - chances)
        diagonal = np.zeros((self.table.shape[1] + 1, self.n_classes))
        for part, block in self.blocks(precision):
            diagonal[:-1] += (block * block).T @ curvature[part]
        diagonal[:-1] += self.penalty
        diagonal[-1] = curvature.sum(axis=0)
        roots = (1.0 / np.sqrt(np.maximum(diagonal, np.finfo(np.float32).tiny))).astype(precision)
        cumulative = np.cumsum(curvature.sum(axis=1, dtype=np.float64))
        share = cumulative[-1] / min(len(cumulative), _ROWS_PER_COLUMN * len(diagonal))
        steps = np.arange(0.5 * share, cumulative[-1], share)
        drawn = np.minimum(np.searchsorted(cumulative, steps), len(cumulative) - 1)
        rows = np.ones((len(drawn), len(diagonal)), precision)
        rows[:, :-1] = self.table[drawn]
        gram = (rows.T @ rows).astype(np.float64) * share
        # The matrix is invertible whatever rows are drawn, and its inverse accurate enough for a step.
        ridge = 10 * np.finfo(precision).eps * np.diag(gram)
        ridge[:-1] += self.penalty * self.n_classes
        gram[np.diag_indices_from(gram)] += np.maximum(ridge, np.finfo(np.float64).tiny)
        scale = np.sqrt(np.diag(gram))
        inverse = np.linalg.inv(gram / np.outer(scale, scale)).astype(precision)

        def product(residual: _Floats) -> _Floats:
            result = roots * (inverse @ (roots * (residual - residual.mean(axis=1, keepdims=True))))
            return np.asarray(result - result.mean(axis=1, keepdims=True))

        return product


def _minimise(loss: _ByteLoss, tol: float, max_iter: int) -> tuple[Matrix, float, int]:
    """Return the parameters, the largest absolute entry of their gradient, and the number of Newton steps.

    It ends where that entry is at most `tol`, after `max_iter` steps, or where rounding leaves no progress.
    """
    parameters = np.zeros((loss.table.shape[1] + 1, loss.n_classes))
    precision: Any = np.float32
    value, gradient, chances = loss.evaluate(parameters)
    size, iteration = float(np.abs(gradient).max()), 0
    while size > tol and iteration < max_iter:
        step = _newton_step(loss, gradient, chances.astype(precision))
        slope, rounding, length = float((gradient * step).sum()), 8 * np.finfo(np.float64).eps * abs(value), 1.0
        moved = loss.evaluate(parameters + step)
        while not moved[0] <= value + _SUFFICIENT_DECREASE * length * slope + rounding and length > _SMALLEST_STEP:
            length /= 2
            moved = loss.evaluate(parameters + length * step)
        gain, left = value - moved[0], float(np.abs(moved[1]).max())
        stalls = not (gain > 0 or left < size)
        if stalls and precision is np.float64:
            break
        # Steps of float32, which hold the bytes exactly and choose a direction only, do not lead far where nearly all
        # probabilities are 0 or 1.
        if stalls or length < _SHORT_STEP:
            precision = np.float64
        if not stalls:
            parameters, size = parameters + length * step, left
            value, gradient, chances = moved
        iteration += 1
    return parameters, size, iteration


def _newton_step(loss: _ByteLoss, gradient: Matrix, chances: _Floats) -> Matrix:
    """Solve for Newton's step by conjugate gradients, the more accurately the smaller the gradient is."""
    from scipy.sparse.linalg import LinearOperator, cg

    def operator(product: _Product) -> LinearOperator:
        of_vector = lambda vector: product(vector.reshape(gradient.shape)).ravel()  # noqa: E731
        return LinearOperator((gradient.size, gradient.size), of_vector, dtype=np.float64)

    hessian, inverse = operator(loss.hessian(chances)), operator(loss.preconditioner(chances))
    forcing = min(0.5, float(np.abs(gradient).max()) ** 0.5)
    step, _ = cg(hessian, -gradient.ravel(), rtol=forcing, maxiter=_MOST_PRODUCTS, M=inverse)
    return np.asarray(step.reshape(gradient.shape))
