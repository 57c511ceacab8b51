"""A random case of a comparison, which counts what is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Comparison = Callable[["Case"], None]
COMPARISONS: dict[str, Comparison] = {}


class Case:
    """Random numbers for one model, and the values that were compared for it."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_compared = 0

    def equal(self, what: str, one: Any, other: Any, tolerance: float) -> None:
        """Raise an AssertionError unless two numbers or arrays are equal up to a tolerance, relative or absolute."""
        self.n_compared += 1
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=what)

    def holds(self, what: str, fact: object) -> None:
        """Raise an AssertionError unless something holds."""
        self.n_compared += 1
        if not fact:
            raise AssertionError(what)

    def chance(self, probability: float = 0.5) -> bool:
        """Return True with a probability."""
        return bool(self.rng.random() < probability)

    def any_of(self, values: Any) -> Any:
        """Return one of some values."""
        return values[int(self.rng.integers(len(values)))]


def comparison(room: str) -> Callable[[Comparison], Comparison]:
    """List a function among the comparisons of a room of the library, under its own name."""

    def listed(function: Comparison) -> Comparison:
        COMPARISONS[f"{room}/{function.__name__}"] = function
        return function

    return listed
