"""`trim` and `conform` for fitted estimators of scikit-learn, besides what the methods themselves take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from trimbench.conformant import conform as conformant
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel
from trimbench.estimators.columns import cost_by_name
from trimbench.estimators.conformant import NaiveConformantClassifier
from trimbench.estimators.fitted_pipeline import is_naive_bayes, unwrapped
from trimbench.estimators.pipeline_values import columns_of, is_estimator, rows_of
from trimbench.trimming import trim as trimming
from trimbench.trimming.classifier import ArgMaxClassifier, BayesianClassifier
from trimbench.trimming.model import short
from trimbench.trimming.result import Trimming
from trimbench.trimming.trim import ArgMaxTrimming

if TYPE_CHECKING:
    import pandas as pd


if TYPE_CHECKING:
    Costs = Mapping[str, float] | Sequence[float] | pd.Series[Any] | None


@overload
def trim(
    classifier: BayesianClassifier, budget: float, costs: Costs = None, **settings: Unpack[trimming.TrimSettings]
) -> Trimming: ...


@overload
def trim(
    classifier: ArgMaxClassifier, budget: float, costs: Costs = None, **settings: Unpack[trimming.TrimSettings]
) -> ArgMaxTrimming: ...


@overload
def trim(
    classifier: Any, budget: float, costs: Costs = None, **settings: Unpack[trimming.TrimSettings]
) -> Trimming | ArgMaxTrimming: ...


@wraps(trimming.trim, assigned=("__doc__",))
def trim(  # noqa: D103
    classifier: Any, budget: float, costs: Any = None, **settings: Any
) -> Trimming | ArgMaxTrimming:
    if is_estimator(classifier):
        frame = rows_of(classifier, settings.get("rows"))
        classifier, discretizer, _ = columns_of(classifier, None, 0.5, frame)
        costs = cost_by_name(costs, classifier.features, settings.get("groups"))
        settings["rows"] = None if frame is None else discretizer.transform(frame)
    found: Trimming | ArgMaxTrimming = trimming.trim(classifier, budget, costs, **settings)
    return found


@overload
def conform(
    logistic_regression: Pipeline,
    X: ArrayLike,
    solver: conformant.SolverName = "newton",
    smoothing: float = 1.0,
    *,
    n_components: int | Literal["auto"] = 1,
) -> NaiveConformantClassifier: ...


@overload
def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: conformant.SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: Literal[1] = 1,
    seed: int = 0,
) -> ConformantModel: ...


@overload
def conform(
    logistic_regression: Any,
    X: ArrayLike,
    solver: conformant.SolverName = "newton",
    smoothing: float = 1.0,
    *,
    categorical: Sequence[Sequence[int]] | None = None,
    real: Sequence[int] | None = None,
    n_components: int | Literal["auto"],
    seed: int = 0,
) -> ConformantModel | ConformantMixture: ...


@wraps(conformant.conform, assigned=("__doc__",))
def conform(  # noqa: D103
    logistic_regression: Any,
    X: ArrayLike,
    solver: conformant.SolverName = "newton",
    smoothing: float = 1.0,
    **settings: Any,
) -> ConformantModel | ConformantMixture | NaiveConformantClassifier:
    inner = unwrapped(logistic_regression)
    if not (isinstance(inner, Pipeline) or isinstance(logistic_regression, Pipeline) or is_naive_bayes(inner)):
        found: ConformantModel | ConformantMixture = conformant.conform(inner, X, solver, smoothing, **settings)
        return found
    for name in ("categorical", "real", "seed"):
        if (given := settings.pop(name, None)) not in (None, 0):
            raise ValueError(
                f"{name} must be left out for a {type(inner).__name__}, which knows its columns, got {short(given)}"
            )
    return NaiveConformantClassifier.from_fitted(inner, X, solver=solver, smoothing=smoothing, **settings)
