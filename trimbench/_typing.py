"""Types of arrays that the whole library uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntegerArray = NDArray[np.integer[Any]]
# A vector has one axis, a matrix two; type checkers do not count axes.
Vector = FloatArray
Matrix = FloatArray
