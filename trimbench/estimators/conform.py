"""`conform` of linear classifiers, and of fitted pipelines and naive Bayes estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from trimbench.conformant import conform as conformant
from trimbench.conformant.choice import Components, Covariance
from trimbench.conformant.model import ConformantModel

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from trimbench.estimators.conformant import NaiveConformantClassifier


@overload
def conform(
    logistic_regression: Pipeline,
    X: Any,
    solver: conformant.Solver = "newton",
    smoothing: float = 1.0,
    *,
    n_components: Components = "auto",
    covariance: Covariance = "auto",
) -> NaiveConformantClassifier: ...


@overload
def conform(
    logistic_regression: Any,
    X: Any,
    solver: conformant.Solver = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: Components = "auto",
    covariance: Covariance = "auto",
    sample_weight: ArrayLike | None = None,
    random_state: int = 0,
) -> ConformantModel: ...


@wraps(conformant.conform, assigned=("__doc__",))
def conform(  # noqa: D103
    logistic_regression: Any,
    X: Any,
    solver: conformant.Solver = "newton",
    smoothing: float = 1.0,
    **settings: Any,
) -> ConformantModel | NaiveConformantClassifier:
    inner = logistic_regression
    if not hasattr(inner, "coef_"):
        # Taking anything but a linear classifier apart needs scikit-learn, which is loaded only here.
        from sklearn.pipeline import Pipeline

        from trimbench.estimators.pipeline_steps import is_naive_bayes, unwrapped

        inner = unwrapped(logistic_regression)
        if isinstance(inner, Pipeline) or isinstance(logistic_regression, Pipeline) or is_naive_bayes(inner):
            return _conformant_pipeline(inner, X, solver, smoothing, **settings)
    return conformant.conform(inner, X, solver, smoothing, **settings)


def _conformant_pipeline(
    fitted: Any, X: ArrayLike, solver: conformant.Solver, smoothing: float, **settings: Any
) -> NaiveConformantClassifier:
    from trimbench.estimators.conformant import NaiveConformantClassifier
    from trimbench.trimming.decisions import short

    for name in ("categorical", "real", "sample_weight", "random_state"):
        if (given := settings.pop(name, None)) is not None and (name, given) != ("random_state", 0):
            raise ValueError(
                f"{name} must be left out for a {type(fitted).__name__}, which knows its columns, got {short(given)}"
            )
    return NaiveConformantClassifier.from_fitted(fitted, X, solver=solver, smoothing=smoothing, **settings)
