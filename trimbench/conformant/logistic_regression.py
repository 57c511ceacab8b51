"""Logistic regression, fast where the columns hold small whole numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench._checks import check_positive, check_whole
from trimbench._typing import Matrix, Vector
from trimbench.conformant.layout import as_table, row_weights
from trimbench.networks.values import check_no_missing_label

_CHECKED_ROWS = 8192
# Least product of C and the total weight whose inverse, the penalty, is still a finite number.
_LEAST_STRENGTH = 1e-300


def fit_logistic_regression(
    X: Any,
    y: ArrayLike,
    C: float = 1.0,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Any:
    """Fit scikit-learn's logistic regression, several times faster on columns of small whole numbers.

    It minimises ``sum_n s_n loss(x_n, y_n) + |W|^2 / (2 C)``, where `s` are the weights of the rows and intercepts are
    not penalised: for two classes the log-loss with one vector of weights, for more the multinomial loss with one
    vector for each class.

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
        Bound on the largest absolute entry of the gradient of the mean loss, which is the objective divided by
        ``sum(s)``, as in scikit-learn.
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
    Newton's method with conjugate gradients, on one thread. Tables of whole numbers from -128 to 127 or from 0 to 255
    are stored as bytes, which products with the Hessian convert to float32 block by block. Few products are needed,
    because the preconditioner has the correlations of the columns among rows that the classifier is not certain of.

    Weights need a smaller tolerance than predictions for complete rows do. The penalty makes the mean loss strongly
    convex: with intercepts at their best, the distance of the weights from the optimum is at most ``C sum(s)`` times
    the Euclidean norm of the gradient. The weights of rare values may be that far off, which matters where a value is
    missing or imputed.

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
    from threadpoolctl import threadpool_limits

    check_positive("C", C)
    check_positive("tol", tol)
    check_whole("max_iter", max_iter, 1)
    table = _finite_table(X)
    check_no_missing_label(y)
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
    if C * total < _LEAST_STRENGTH:
        raise ValueError(
            f"C times the sum of sample_weight must be at least {_LEAST_STRENGTH:g}, got C={C:g} times {total:g}"
        )
    penalty = 1.0 / (C * total)
    if penalty > float(np.finfo(np.float32).max):
        rows = replace(rows, precision=np.float64)
    loss = LogisticLoss(rows, codes, weights / total, len(classes), penalty)
    # Products of blocks are too short to share: with several threads, they wait for one another most of the time.
    with threadpool_limits(1, user_api="blas"):
        parameters, gradient_norm, iterations = minimise(loss, tol, max_iter)
    if gradient_norm > tol:
        warnings.warn(
            f"the gradient is {gradient_norm:.2g} after {iterations} steps, more than tol={tol:g}; "
            "raise max_iter, scale the columns, or choose a smaller C",
            ConvergenceWarning,
            stacklevel=2,
        )
    classifier = LogisticRegression(C=C, solver="newton-cg", tol=tol, max_iter=int(max_iter))
    validate_data(classifier, X, skip_check_array=True)  # remembers the names of the columns
    classifier.classes_ = classes
    classifier.coef_, classifier.intercept_ = _coefficients(parameters, used, table.shape[1]), parameters[-1].copy()
    classifier.n_iter_ = np.array([iterations], dtype=np.int32)
    classifier.gradient_norm_ = gradient_norm
    return classifier


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


def _stored(table: Any) -> tuple[Rows, NDArray[np.intp] | slice]:
    """Return the rows in the form that products need, and the columns that are kept: those not 0 everywhere."""
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


# Newton's method with preconditioned conjugate gradients for regularised logistic regression.

# Arrays of float32 or float64.
_Numbers = NDArray[Any]
Precision = type[np.float32] | type[np.float64]

# Rows that are converted to floats at a time: small enough to stay in the cache for both products.
_BLOCK_ROWS = 1024
# With at most this many columns, the preconditioner is a matrix of columns by columns. With at most this many
# parameters, and where it costs less than _WORTH_PRODUCTS products with the Hessian, it is one of all parameters.
_MOST_GRAM_COLUMNS = 2000
_GRAM_ROWS_PER_COLUMN = 5
_JOINT_ROWS_PER_PARAMETER = 10
_WORTH_PRODUCTS = 30
_JOINT_RIDGE = 1e-6
_MOST_PRODUCTS = 300
_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-10
_POOR_GAIN = 0.1

Product = Callable[[_Numbers], _Numbers]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that is stored as small integers, as float64 or sparse, and multiplied block by block.

    Attributes
    ----------
    table : ndarray or csr_matrix of shape (n_rows, n_columns)
    precision : type
        Type of the products with the Hessian, which only choose the direction of a step: float32 for integers, which
        it holds exactly. Values and gradients are always computed in float64.
    """

    table: Any
    precision: Precision

    def blocks(self, precision: Precision) -> Iterator[tuple[slice, Any]]:
        """Yield slices of the rows with their values; a dense block is valid until the next one."""
        n_rows, n_columns = self.table.shape
        is_ready = self.table.dtype == precision or hasattr(self.table, "toarray")
        buffer = np.empty((0 if is_ready else min(_BLOCK_ROWS, n_rows), n_columns), precision)
        for start in range(0, n_rows, _BLOCK_ROWS):
            part = slice(start, min(start + _BLOCK_ROWS, n_rows))
            if is_ready:
                yield part, self.table[part]
            else:
                block = buffer[: part.stop - start]
                np.copyto(block, self.table[part])
                yield part, block

    def taken(self, places: NDArray[np.intp]) -> _Numbers:
        """Return some rows, dense, with a column of ones at the end."""
        chosen = self.table[places]
        dense = np.ones((len(places), self.table.shape[1] + 1), self.precision)
        dense[:, :-1] = chosen.toarray() if hasattr(chosen, "toarray") else chosen
        return dense


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    """Mean logistic loss with a squared penalty: of one vector of weights for two classes, else of one for each class.

    Parameters are a matrix of shape (n_columns + 1, n_scores), whose last row has the intercepts, without penalty.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of int, shape (n_rows,)
        The class of each row, from 0 to n_classes - 1.
    weights : ndarray of shape (n_rows,)
        Weights of the rows; they sum to 1.
    n_classes : int
    penalty : float
        The loss has ``penalty / 2`` times the sum of the squared weights.
    """

    rows: Rows
    codes: NDArray[np.intp]
    weights: Vector
    n_classes: int
    penalty: float

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the parameters."""
        return self.rows.table.shape[1] + 1, 1 if self.n_classes == 2 else self.n_classes

    def evaluate(self, parameters: _Numbers) -> tuple[float, _Numbers, _Numbers]:
        """Return the loss, its gradient and the probabilities: of each class, or of the second of two."""
        value = 0.5 * self.penalty * float((parameters[:-1] ** 2).sum())
        gradient = np.zeros(self.shape)
        probabilities = np.empty((len(self.codes), self.shape[1]), self.rows.precision)
        for part, block in self.rows.blocks(np.float64):
            losses, likely, residuals = self._compare(block @ parameters[:-1] + parameters[-1], self.codes[part])
            value += float(losses @ self.weights[part])
            residuals *= self.weights[part, None]
            probabilities[part] = likely
            gradient[:-1] += block.T @ residuals
            gradient[-1] += residuals.sum(axis=0)
        gradient[:-1] += self.penalty * parameters[:-1]
        return value, gradient, probabilities

    def _compare(self, scores: _Numbers, codes: NDArray[np.intp]) -> tuple[Vector, _Numbers, _Numbers]:
        """Return the losses, the probabilities and the derivatives of the losses with respect to the scores."""
        if self.n_classes == 2:
            from scipy.special import expit

            losses = np.logaddexp(0.0, np.where(codes == 1, -scores[:, 0], scores[:, 0]))
            likely: _Numbers = expit(scores)
            return losses, likely, likely - codes[:, None]
        scores = scores - scores.max(axis=1, keepdims=True)
        likely = np.exp(scores)
        totals = likely.sum(axis=1, keepdims=True)
        likely /= totals
        every = np.arange(len(codes))
        residuals = likely.copy()
        residuals[every, codes] -= 1.0
        return np.log(totals[:, 0]) - scores[every, codes], likely, residuals

    def hessian(self, probabilities: _Numbers) -> Product:
        """Return a function that multiplies the Hessian by a matrix of parameters."""
        precision = self.rows.precision
        weights = self.weights.astype(precision)[:, None]
        curvature = weights * probabilities * (1 - probabilities) if self.n_classes == 2 else weights * probabilities

        def product(direction: _Numbers) -> _Numbers:
            direction = direction.astype(precision, copy=False)
            result = np.zeros(self.shape, precision)
            for part, block in self.rows.blocks(precision):
                change = block @ direction[:-1] + direction[-1]
                if self.n_classes > 2:
                    change -= (probabilities[part] * change).sum(axis=1, keepdims=True)
                change *= curvature[part]
                result[:-1] += block.T @ change
                result[-1] += change.sum(axis=0)
            result[:-1] += precision(self.penalty) * direction[:-1]
            return result

        return product

    def preconditioner(self, probabilities: _Numbers) -> Product:
        """Return a cheap approximation of the inverse of the Hessian.

        The diagonal is that of the Hessian. The correlations come from rows that are drawn at even steps along the
        cumulative curvature: those between all parameters where that is worth it, else those between columns, common
        to all classes.
        """
        curvature = self.weights[:, None] * probabilities * (1 - probabilities)
        diagonal = self._diagonal(curvature)
        if self.shape[0] > _MOST_GRAM_COLUMNS:
            return self._centred(lambda residual: np.asarray(residual / diagonal))
        roots: _Numbers = (1.0 / np.sqrt(diagonal)).astype(self.rows.precision)
        cumulative = np.cumsum(curvature.sum(axis=1, dtype=np.float64))
        if not self._is_joint_worth_it:
            inverse = self._inverse_of_columns(cumulative)
            return self._centred(lambda residual: np.asarray(roots * (inverse @ (roots * residual))))
        joint = self._inverse_of_parameters(cumulative, probabilities)

        def product(residual: _Numbers) -> _Numbers:
            scaled = (roots * residual).T.reshape(-1)
            return np.asarray(roots * (joint @ scaled).reshape(self.shape[::-1]).T)

        return self._centred(product)

    @property
    def _is_joint_worth_it(self) -> bool:
        """Whether drawing, multiplying and inverting cost less than the products with the Hessian that they save."""
        n_parameters = self.shape[0] * self.shape[1]
        if self.shape[1] == 1 or n_parameters > _MOST_GRAM_COLUMNS:
            return False
        n_drawn = min(len(self.codes), _JOINT_ROWS_PER_PARAMETER * n_parameters)
        return n_parameters * (n_drawn + 2 * n_parameters) <= 4 * _WORTH_PRODUCTS * len(self.codes)

    def _inverse_of_columns(self, cumulative: Vector) -> _Numbers:
        """Return the inverse of the correlations between columns, shape (n_columns + 1, n_columns + 1)."""
        drawn, share = self._drawn(cumulative, _GRAM_ROWS_PER_COLUMN * self.shape[0])
        rows = self.rows.taken(drawn)
        gram = (rows.T @ rows).astype(np.float64) * share
        # The matrix is invertible whatever rows are drawn, and its inverse accurate enough for a step.
        ridge = 10 * np.finfo(self.rows.precision).eps * np.diag(gram)
        ridge[:-1] += self.penalty * self.shape[1]
        gram[np.diag_indices_from(gram)] += np.maximum(ridge, np.finfo(np.float64).tiny)
        scale = np.sqrt(np.diag(gram))
        inverse: _Numbers = np.linalg.inv(gram / np.outer(scale, scale)).astype(self.rows.precision)
        return inverse

    def _inverse_of_parameters(self, cumulative: Vector, probabilities: _Numbers) -> _Numbers:
        """Return the inverse of the correlations between parameters, class by class, shape (n_scores * n_columns, ...).

        Each drawn row counts as much as any other, whatever its curvature.
        """
        n_columns, n_scores = self.shape
        drawn, share = self._drawn(cumulative, _JOINT_ROWS_PER_PARAMETER * n_columns * n_scores)
        rows, chances = self.rows.taken(drawn), probabilities[drawn]
        tiny = np.finfo(chances.dtype).tiny
        relative = chances / np.maximum((chances * (1 - chances)).sum(axis=1, keepdims=True), tiny)
        hessian = np.empty((n_scores, n_columns, n_scores, n_columns))
        for one in range(n_scores):
            for other in range(one, n_scores):
                curvature = relative[:, one] * (float(one == other) - chances[:, other])
                hessian[one, :, other] = (rows.T * curvature) @ rows
                hessian[other, :, one] = hessian[one, :, other].T
        whole = hessian.reshape(n_scores * n_columns, -1) * share
        diagonal = np.diag(whole).copy()
        # What a few drawn rows say about rare values is not certain enough to be amplified without limit.
        ridge = _JOINT_RIDGE * diagonal
        ridge += np.tile(np.append(np.full(n_columns - 1, self.penalty), 0.0), n_scores)
        scale = np.sqrt(diagonal + np.maximum(ridge, np.finfo(np.float64).tiny))
        whole[np.diag_indices_from(whole)] = scale**2
        correlations = whole / np.outer(scale, scale)
        # Adding a number to the parameters of a column for all classes changes nothing but the penalty, so that nothing
        # else keeps the matrix from being singular. Within what `_centred` leaves, this changes little.
        flat = scale.reshape(n_scores, n_columns)
        flat = flat / np.sqrt((flat**2).sum(axis=0))
        every = np.arange(n_columns)
        blocks = correlations.reshape(n_scores, n_columns, n_scores, n_columns)
        blocks[:, every, :, every] += np.einsum("kc,lc->ckl", flat, flat)
        inverse: _Numbers = np.linalg.inv(correlations).astype(self.rows.precision)
        return inverse

    def _drawn(self, cumulative: Vector, n_wanted: int) -> tuple[NDArray[np.intp], float]:
        """Return rows at even steps along the cumulative curvature, and what share of it each stands for."""
        n_drawn = min(len(cumulative), n_wanted)
        share = float(cumulative[-1]) / n_drawn
        steps = (np.arange(n_drawn) + 0.5) * share
        return np.minimum(np.searchsorted(cumulative, steps), len(cumulative) - 1), share

    def _diagonal(self, curvature: _Numbers) -> _Numbers:
        diagonal = np.zeros(self.shape)
        for part, block in self.rows.blocks(self.rows.precision):
            squares = block.multiply(block) if hasattr(block, "toarray") else block * block
            diagonal[:-1] += squares.T @ curvature[part]
        diagonal[-1] = curvature.sum(axis=0)
        diagonal[:-1] += self.penalty
        return np.maximum(diagonal, np.finfo(np.float32).tiny)

    def _centred(self, approximate: Product) -> Product:
        """Return the approximation within the parameters that add up to 0 over the classes.

        The gradient and the optimum are there; the loss is flat, but for the penalty, along the rest.
        """
        if self.n_classes == 2:
            return approximate

        def product(residual: _Numbers) -> _Numbers:
            result = approximate(residual - residual.mean(axis=1, keepdims=True))
            return np.asarray(result - result.mean(axis=1, keepdims=True))

        return product


def minimise(loss: LogisticLoss, tolerance: float, max_iterations: int) -> tuple[_Numbers, float, int]:
    """Return the parameters, the largest absolute entry of their gradient, and the number of Newton steps.

    Stops when that entry is at most `tolerance`, after `max_iterations`, or when rounding allows no more progress.
    """
    parameters = np.zeros(loss.shape)
    value, gradient, probabilities = loss.evaluate(parameters)
    for iteration in range(max_iterations):
        size = float(np.abs(gradient).max())
        if size <= tolerance:
            return parameters, size, iteration
        step = _newton_step(loss, gradient, probabilities)
        slope = float((gradient * step).sum())
        moved = _line_search(loss, parameters, value, step, slope)
        stalls = moved is None or (moved[1] >= value and np.abs(moved[2]).max() >= size)
        if stalls and loss.rows.precision is np.float64:
            return parameters, size, iteration
        # An exact Newton step gains about half of what the slope says. Where nearly all probabilities are 0 or 1, steps
        # of float32 gain far less.
        if stalls or moved is None or value - moved[1] < -_POOR_GAIN * slope:
            loss = replace(loss, rows=replace(loss.rows, precision=np.float64))
        if moved is not None and not stalls:
            parameters, value, gradient, probabilities = moved
    return parameters, float(np.abs(gradient).max()), max_iterations


def _line_search(
    loss: LogisticLoss, parameters: _Numbers, value: float, step: _Numbers, slope: float
) -> tuple[_Numbers, float, _Numbers, _Numbers] | None:
    """Return the parameters after the step, halved until it gains enough; None if it never does.

    With them come the loss, its gradient and the probabilities.
    """
    rounding, length = 8 * np.finfo(np.float64).eps * abs(value), 1.0
    while length > _SMALLEST_STEP:
        moved = parameters + length * step
        after, gradient, probabilities = loss.evaluate(moved)
        if after <= value + _SUFFICIENT_DECREASE * length * slope + rounding:
            return moved, after, gradient, probabilities
        length /= 2
    return None


def _newton_step(loss: LogisticLoss, gradient: _Numbers, probabilities: _Numbers) -> _Numbers:
    """Solve for Newton's step by conjugate gradients, the more accurately the smaller the gradient is."""
    hessian, precondition = loss.hessian(probabilities), loss.preconditioner(probabilities)
    step, residual = np.zeros_like(gradient), -gradient
    direction = conditioned = precondition(residual)
    product = first = float((residual * conditioned).sum())
    forcing = min(0.5, float(np.abs(gradient).max()) ** 0.5)
    for _ in range(_MOST_PRODUCTS):
        image = hessian(direction)
        curvature = float((direction * image).sum(dtype=np.float64))
        if not curvature > 0:  # only rounding makes it so
            break
        length = product / curvature
        step += length * direction
        residual = residual - length * image
        conditioned = precondition(residual)
        previous, product = product, float((residual * conditioned).sum(dtype=np.float64))
        if not product > forcing**2 * first:
            break
        direction = conditioned + (product / previous) * direction
    return step if step.any() else -gradient
