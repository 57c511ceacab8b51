"""`expect`: what to expect of a fitted classifier where values are missing."""

from __future__ import annotations

from typing import Any, Literal

from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from trimbench.estimators.expected import ExpectedClassifier


def expect(
    fitted: Any,
    rows: Any,
    density: Any = "auto",
    n_draws: int | Literal["auto"] = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> ExpectedClassifier:
    """Return what to expect of a fitted classifier where values are missing.

    Parameters
    ----------
    fitted : fitted classifier
        Of scikit-learn, or with its methods; a pipeline, too.
    rows : array, sparse matrix or data frame of shape (n_rows, n_columns), or rows in batches
        Rows as the classifier takes them, from which the density of the features is learned. Labels are not needed, and
        some values may be missing. Of rows in batches, such as a folder of Parquet files, a random sample is taken.
    density, n_draws, random_state, n_jobs
        As in `trimbench.estimators.ExpectedClassifier`.

    Returns
    -------
    ExpectedClassifier
        With `predict_proba`, `predict` and `decision_stability` for rows with gaps.

    Raises
    ------
    ValueError
        When the classifier is not fitted, or as in `ExpectedClassifier.fit`.

    Examples
    --------
    >>> import numpy as np, trimbench as tb
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> fitted = LogisticRegression(max_iter=1000).fit(X, y)
    >>> tb.expect(fitted, X).predict_proba([[5.0, np.nan, np.nan, np.nan]]).round(1)
    array([[0.8, 0.2, 0. ]])
    """
    from sklearn.exceptions import NotFittedError

    frozen = fitted if isinstance(fitted, FrozenEstimator) else FrozenEstimator(fitted)
    try:
        check_is_fitted(frozen)
    except (NotFittedError, TypeError) as error:
        raise ValueError(
            f"fitted must be a fitted classifier, got a {type(fitted).__name__} that is not; call its fit first"
        ) from error
    return ExpectedClassifier(frozen, density, n_draws, random_state, n_jobs).fit(rows)
