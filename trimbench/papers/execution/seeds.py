"""Seeds from named axes, so that what must share randomness shares it and the rest differs."""

import hashlib
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import canonical_json

if TYPE_CHECKING:
    import numpy as np

Axis = str | int | float | bool | None


def seed_for(**axes: Axis) -> int:
    """Return a seed in [0, 2**63) that depends on the named axes and on nothing else, on every machine.

    The order of the axes does not matter; the types do: ``1``, ``1.0`` and ``True`` are three values. Raises TypeError
    if there is no axis or one has another type, and ValueError if an axis is NaN or infinite.

    >>> seed_for(dataset="vote", repetition=3) == seed_for(repetition=3, dataset="vote")
    True
    """
    if not axes:
        raise TypeError("seed_for needs at least one named axis, got none; name what the randomness is for")
    for name, value in axes.items():
        if isinstance(value, list | tuple | dict):
            raise TypeError(
                f"axis {name!r} must be str, int, float, bool or None, got {value!r}; use one axis per value"
            )
    digest = hashlib.sha256(canonical_json(axes, "axes").encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator_for(**axes: Axis) -> "np.random.Generator":
    """Return a new random generator for the named axes, at the start of its stream."""
    import numpy as np

    # PCG64 is named here because NumPy may change what ``default_rng`` means.
    return np.random.Generator(np.random.PCG64(seed_for(**axes)))
