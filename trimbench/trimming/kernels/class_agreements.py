"""Agreement on rows of a subset that has one feature more, which `rows.class_agreements` explains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._compiling import compiled
from trimbench.trimming.thresholds import TIE_TOLERANCE

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def agreement(
    logs: Floats,
    places: Integers,
    values: NDArray[Any],
    weights: Floats,
    decisions: Integers,
    row_weights: Floats,
) -> float:
    """Return the weight of the rows whose decision stands; the parameters are those of `agreement_with`."""
    n_classes = logs.shape[1]
    agreed = 0.0
    for row in range(places.size):
        cell, value, decision = places[row], values[row], decisions[row]
        wanted = logs[cell, decision] + weights[value, decision]
        # The decision stands if no class before it is as probable, and none after it more probable.
        top = wanted
        for k in range(n_classes):
            top = max(top, logs[cell, k] + weights[value, k])
        if not wanted >= top - TIE_TOLERANCE:
            continue
        is_first = True
        for k in range(decision):
            if logs[cell, k] + weights[value, k] >= top - TIE_TOLERANCE:
                is_first = False
                break
        if is_first:
            agreed += row_weights[row]
    return agreed
