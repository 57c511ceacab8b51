"""`trim` of classifiers, and of fitted estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Unpack

from trimbench.trimming import trim as trimming
from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.result import Trimming

if TYPE_CHECKING:
    import pandas as pd

    Costs = Mapping[str, float] | Sequence[float] | pd.Series[Any] | None


@wraps(trimming.trim, assigned=("__doc__",))
def trim(  # noqa: D103
    classifier: Any, budget: float, costs: Costs = None, **settings: Unpack[trimming.TrimSettings]
) -> Trimming:
    if not isinstance(classifier, BayesianClassifier):
        # Taking an estimator apart needs scikit-learn, which is loaded only here.
        from trimbench.estimators.columns import cost_by_name
        from trimbench.estimators.pipeline_values import columns_of, is_estimator, rows_of

        if is_estimator(classifier):
            frame = rows_of(classifier, settings.get("rows"))
            classifier, discretizer, _ = columns_of(classifier, None, 0.5, frame)
            costs = cost_by_name(costs, classifier.features, settings.get("groups"))
            settings["rows"] = None if frame is None else discretizer.transform(frame)
    return trimming.trim(classifier, budget, costs, **settings)
