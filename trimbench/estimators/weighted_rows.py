"""Rows and classes that count more or less often."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from trimbench.conformant.classifier_weights import check_probabilities, linear_scores
from trimbench.conformant.conform import SolverName, conform, conform_to_statistics
from trimbench.conformant.feature_statistics import FeatureStatistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.model import ConformantModel


def class_weights(
    given: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of each class: ones for None, the inverse of its share of the weighted rows for "balanced".

    Raises ValueError if `given` is neither of these nor a dictionary.
    """
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return np.asarray(weights.sum() / (len(classes) * np.bincount(codes, weights)))
    found: NDArray[np.float64] = compute_class_weight(given, classes=classes, y=classes[codes])
    return found


def repeated(
    encoded: NDArray[np.float64], codes: NDArray[np.intp], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return each row as often as its weight says, with weights of 1."""
    times = weights.astype(np.intp)
    if (times != weights).any():
        raise ValueError(
            "sample_weight must be whole numbers where rows have missing values or n_components is not 1, got "
            f"{float(weights[times != weights][0])!r}; multiply and round them, or leave incomplete rows out"
        )
    places = np.repeat(np.arange(len(codes)), times)
    return encoded[places], codes[places], np.ones(len(places))


def conformant_model(
    classifier: Any,
    encoded: NDArray[np.float64],
    layout: FeatureLayout,
    weights: NDArray[np.float64],
    solver: SolverName,
    smoothing: float,
    n_components: int | Literal["auto"],
) -> ConformantModel | ConformantMixture:
    """Return the model that conforms with a classifier and fits rows best; weights other than 1 need complete rows."""
    if (weights != 1).any():
        statistics = _weighted_statistics(encoded, layout, weights)
        scores = linear_scores(classifier)
        check_probabilities(classifier, encoded, *scores[:2])
        return conform_to_statistics(*scores, layout, statistics, solver, smoothing)
    return conform(
        classifier,
        encoded,
        solver,
        smoothing,
        categorical=layout.categorical,
        real=layout.real,
        n_components=n_components,
    )


def _weighted_statistics(
    encoded: NDArray[np.float64], layout: FeatureLayout, weights: NDArray[np.float64]
) -> FeatureStatistics:
    """Return the statistics of complete, weighted rows."""
    means = np.average(encoded, axis=0, weights=weights)
    variances = np.average((encoded - means) ** 2, axis=0, weights=weights)
    return FeatureStatistics(float(weights.sum()), means, variances)
