"""Compiled counts of categories.

Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._numba import compiled


@compiled
def count_pairs(first: NDArray[Any], second: NDArray[Any], table: NDArray[np.int64]) -> None:
    """Add to a table of shape (n_first, n_second) how often two codes occur together; negative ones are left out."""
    for row in range(len(first)):
        if first[row] >= 0 and second[row] >= 0:
            table[first[row], second[row]] += 1
