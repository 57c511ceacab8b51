"""The weights of a fitted logistic regression, and whether it is one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.numeric_input import as_numbers
from trimbench.conformant.reduced_problem import Matrix, Vector

_INSTEAD = "fit LogisticRegression to the same data, with its default (multinomial) handling of several classes"
_SAME_PROBABILITY = 1e-6
_COMPARED_ROWS = 100


def linear_scores(logistic_regression: Any) -> tuple[Matrix, Vector, NDArray[Any]]:
    """Return weights (n_columns, n_classes), biases and classes of a fitted logistic regression.

    Raises ValueError if it is not a fitted classifier, has infinite weights, or its weights, intercepts and classes do
    not match.
    """
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(logistic_regression, name)]
    if missing:
        raise ValueError(
            f"logistic_regression must be a fitted LogisticRegression, got {type(logistic_regression).__name__} "
            f"without {', '.join(missing)}; call its fit first, or {_INSTEAD}"
        )
    classes = np.asarray(logistic_regression.classes_)
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"classes_ must be a list of at least two classes, got {logistic_regression.classes_!r}")
    sparse_or_not = logistic_regression.coef_
    dense = sparse_or_not.toarray() if hasattr(sparse_or_not, "toarray") else sparse_or_not  # after sparsify()
    coefficients = np.atleast_2d(as_numbers(dense, "coef_")).astype(np.float64)
    intercepts = as_numbers(logistic_regression.intercept_, "intercept_").astype(np.float64)
    if coefficients.ndim != 2 or not (len(coefficients) == len(classes) or (len(classes), len(coefficients)) == (2, 1)):
        raise ValueError(
            "coef_ must have one row of weights for each class, or one row for the second of two classes, got shape "
            f"{coefficients.shape} for {len(classes)} classes"
        )
    if intercepts.shape not in ((), (len(coefficients),)):
        raise ValueError(
            f"intercept_ must be one number, or one for each row of coef_, which has {len(coefficients)}, got shape "
            f"{intercepts.shape}"
        )
    biases = np.broadcast_to(intercepts, len(coefficients))
    if len(coefficients) < len(classes):  # scikit-learn stores only the second class
        coefficients = np.vstack([np.zeros_like(coefficients), coefficients])
        biases = np.concatenate([[0.0], biases])
    check_finite(coefficients, biases)
    return coefficients.T.copy(), biases.copy(), classes


def set_linear_scores(logistic_regression: Any, weights: Matrix, biases: Vector) -> None:
    """Give a fitted logistic regression other weights (n_columns, n_classes) and biases."""
    if len(biases) == 2:
        weights, biases = weights[:, 1:] - weights[:, :1], biases[1:] - biases[:1]
    logistic_regression.coef_, logistic_regression.intercept_ = weights.T.copy(), biases.copy()


def check_probabilities(logistic_regression: Any, X: NDArray[Any], weights: Matrix, biases: Vector) -> None:
    """Raise an error unless the classifier's probabilities are a softmax of its linear scores (one-vs-rest are not)."""
    name = type(logistic_regression).__name__
    if not hasattr(logistic_regression, "predict_proba"):
        if not hasattr(logistic_regression, "predict"):
            return
        raise ValueError(
            f"logistic_regression must give probabilities that are the softmax of its linear scores, got {name} "
            f"without predict_proba; {_INSTEAD}"
        )
    # Rows from across the table: if it is sorted by class, the first ones may be too certain to reveal a difference.
    few = X[np.linspace(0, len(X) - 1, min(len(X), _COMPARED_ROWS)).astype(np.intp)].astype(np.float64)
    few = np.nan_to_num(few)  # any rows will do
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a table without column names
        theirs = np.asarray(logistic_regression.predict_proba(few))
    scores = few @ weights + biases
    ours = np.exp(scores - scores.max(axis=1, keepdims=True))
    ours /= ours.sum(axis=1, keepdims=True)
    if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0, atol=_SAME_PROBABILITY):
        raise ValueError(
            f"logistic_regression must give probabilities that are the softmax of its linear scores, got {name} with "
            f"other probabilities (one-versus-rest, calibrated or clipped, say); {_INSTEAD}"
        )


def check_finite(weights: Matrix, biases: Vector) -> None:
    """Raise ValueError unless all weights and biases are finite."""
    if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
        raise ValueError("weights and biases must be finite; fit the logistic regression with regularisation")
