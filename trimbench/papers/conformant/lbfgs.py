"""Logistic regression as the solver "lbfgs" of scikit-learn 0.20 and 0.21 fitted it, when the paper was written."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.reduced_problem import Matrix, Vector

# SciPy's bounds, which scikit-learn left alone: the fit ends where an iteration gains less than 2.2e-9 of the loss.
_LEAST_GAIN = 1e7 * float(np.finfo(np.float64).eps)
_GRADIENT_TOLERANCE = 1e-4


def fit_lbfgs(
    rows: NDArray[np.uint8],
    labels: NDArray[np.int64],
    counts: NDArray[np.intp],
    n_classes: int,
    inverse_penalty: float,
    max_iterations: int,
) -> tuple[Matrix, Vector, int]:
    """Return weights, biases and the number of iterations.

    It minimises the sum of the losses, not their mean as later versions do, and does not go on for the last digits:
    where the columns of each feature add up to one, the biases and the level of the weights are far from the optimum
    when it stops. That moves imputations by a constant, such as the maximum, and hardly anything else.

    Two classes have one vector of weights, that of the second class; more classes have one each. Rows count as often
    as `counts` says.
    """
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    features = csr_matrix(rows, dtype=np.float64)
    transposed = features.T.tocsr()
    weight, truth = counts.astype(np.float64)[:, None], np.eye(n_classes)[labels]
    own = slice(1 if n_classes == 2 else 0, None)
    shape = (rows.shape[1] + 1, n_classes - 1 if n_classes == 2 else n_classes)

    def unpacked(parameters: Vector) -> Matrix:
        whole = np.zeros((shape[0], n_classes))
        whole[:, own] = parameters.reshape(shape)
        return whole

    def loss(parameters: Vector) -> tuple[float, Vector]:
        whole = unpacked(parameters)
        scores = np.asarray(features @ whole[:-1] + whole[-1])
        scores -= scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores)
        totals = exponentials.sum(axis=1, keepdims=True)
        value = -float((weight * truth * (scores - np.log(totals))).sum()) + float(
            (whole[:-1] ** 2).sum() / (2 * inverse_penalty)
        )
        residuals = ((exponentials / totals - truth) * weight)[:, own]
        slopes = transposed @ residuals + whole[:-1, own] / inverse_penalty
        return value, np.vstack([slopes, residuals.sum(axis=0)]).ravel()

    found = minimize(
        loss,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "ftol": _LEAST_GAIN, "gtol": _GRADIENT_TOLERANCE},
    )
    whole = unpacked(found.x)
    return whole[:-1], whole[-1], int(found.nit)
