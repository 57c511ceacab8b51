"""Seeds from named axes, so that what must share randomness shares it and the rest differs."""

import hashlib
from typing import TYPE_CHECKING

from trimbench.papers.execution.canonical import canonical_json

if TYPE_CHECKING:
    import numpy as np

Axis = str | int | float | bool | None


def seed_for(**axes: Axis) -> int:
    """Seed that depends on the named axes and on nothing else.

    Parameters
    ----------
    **axes : str, int, float, bool or None
        For example ``dataset="vote", repetition=3, use="split"``. The order does not matter; the types do:
        ``1``, ``1.0`` and ``True`` are three values.

    Returns
    -------
    int
        In [0, 2**63): the first 63 bits of the SHA-256 of the axes in canonical JSON. The same on every
        machine.

    Raises
    ------
    TypeError
        If there is no axis, or one has another type.
    ValueError
        If an axis is NaN or infinite.

    Examples
    --------
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
    """Random generator of the named axes.

    Parameters
    ----------
    **axes : str, int, float, bool or None
        As for `seed_for`.

    Returns
    -------
    numpy.random.Generator
        A new one at every call, always at the start of its stream. PCG64 is named here because NumPy may
        change what ``default_rng`` means.
    """
    import numpy as np

    return np.random.Generator(np.random.PCG64(seed_for(**axes)))
