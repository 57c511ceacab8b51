"""Which colour a method has: the same in every figure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

N_SLOTS = 8  # as many as the colours of Okabe and Ito
# By slot, the methods that have it. What is compared with each other is in one group and has slots of its own; names in
# one slot are one method, or are in no figure together.
_GROUPS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (  # predictions where features are missing
        ("NaCL",),
        ("mean",),
        ("median",),
        ("min",),
        ("max",),
        ("naive Bayes", "EM, mixture"),
        ("NaCL, categorical", "MICE", "NaCL, mixture (beyond the paper)"),
        ("nearest neighbours",),
        ("EM as the authors ran it",),
    ),
    (  # selections of features
        ("trimming", "ECA-trim", "MAA", "highest ECA", "expected agreement (ECA)"),
        ("information gain", "information gain, same T", "FS-SDD", "MPA"),
        ("greedy accuracy", "greedy accuracy, best T'", "highest accuracy", "accuracy on test rows"),
        ("joint information gain, best T'", "agreement on test rows"),
        ("information gain, best T'",),
        ("Pareto frontier",),
        ("no feature",),
    ),
    (  # selection bias
        ("corrected",),
        ("uncorrected",),
        ("subset of features",),
    ),
)


def _key(method: str) -> str:
    return re.sub(r"[\s_-]+", " ", method).strip().casefold()


_SLOTS = {_key(name): slot for group in _GROUPS for slot, names in enumerate(group) for name in names}


def slots(methods: Sequence[str]) -> list[int]:
    """Return the colour slot, 0 or more, of each of the methods in a figure.

    A known method has its own slot in every figure; capitals do not matter, nor do hyphens, underscores and spaces.
    The others take the free slots in their order, and so does a known one whose slot another has. Equal methods share a
    slot, different ones never do. From `N_SLOTS` on the colours repeat: draw these slots with other markers or dashes.

    >>> slots(["uncorrected", "own method", "corrected", "another"])
    [1, 2, 0, 3]
    """
    keys = [_key(method) for method in methods]
    found: dict[str, int] = {}
    for key in keys:
        if key in _SLOTS and _SLOTS[key] not in found.values():
            found.setdefault(key, _SLOTS[key])
    free = (slot for slot in itertools.count() if slot not in {*found.values()})
    for key in keys:
        if key not in found:
            found[key] = next(free)
    return [found[key] for key in keys]


def is_method(name: str) -> bool:
    """Tell whether a name is that of a method with a slot of its own, in any spelling.

    >>> is_method("FS_SDD"), is_method("seconds")
    (True, False)
    """
    return _key(name) in _SLOTS
