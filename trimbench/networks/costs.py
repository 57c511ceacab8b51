"""Names of features, and what their values cost alone and in groups: checks that all methods share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trimbench.networks.values import names_text

if TYPE_CHECKING:
    import pandas as pd

# Sums of costs stay finite below.
_LARGEST = 1e300
_NEVER = "a feature that must not be used is named in forbidden"


def checked_costs(
    names: Sequence[str],
    costs: Mapping[str, float] | Sequence[float] | pd.Series[Any] | None,
    *,
    grouped: bool = False,
    never: str = _NEVER,
) -> tuple[float, ...]:
    """Return the cost of each feature, or of each group and feature outside of groups; 1 by default.

    Raises ValueError if a name is unknown or has no cost, or a cost is negative, not finite or above 1e300.
    """
    what = "group, and every feature outside of groups" if grouped else "feature"
    if costs is None:
        return (1.0,) * len(names)
    if getattr(costs, "ndim", 1) != 1:
        raise ValueError(
            f"costs must be a mapping or a Series from feature to cost, got a {type(costs).__name__} of shape "
            f"{np.shape(cast('Any', costs))}; take one column or one row of it, costs['cost'] or costs.iloc[0]"
        )
    if not isinstance(costs, Mapping) and hasattr(costs, "to_dict"):  # a pandas Series, by name
        if not cast("pd.Series[Any]", costs).index.is_unique:
            raise ValueError("costs must have each name once, got an index with duplicates")
        costs = {str(name): cost for name, cost in costs.to_dict().items()}
    if isinstance(costs, Mapping):
        if len({str(name) for name in costs}) == len(costs):
            costs = {str(name): cost for name, cost in costs.items()}
        for name in costs:
            if name not in names:
                raise ValueError(f"costs must be given for names among {names_text(names)}, got {name!r}")
        absent = [name for name in names if name not in costs]
        if absent:
            raise ValueError(f"costs must have an entry for every {what}, got none for {absent[0]!r}")
        costs = [costs[name] for name in names]
    elif grouped:
        raise ValueError("costs must be a mapping by name, or None, where there are groups, got a sequence")
    if isinstance(costs, str) or not isinstance(costs, Sequence | np.ndarray):
        raise ValueError(
            f"costs must be a mapping or a Series from feature to cost, or a sequence of costs, got {short(costs)}"
        )
    if len(costs) != len(names):
        raise ValueError(f"costs must have {len(names)} entries, one for each feature, got {len(costs)}")
    for name, cost in zip(names, costs, strict=True):
        if not is_real_number(cost) or not 0 <= cost < math.inf:
            raise ValueError(f"costs must be finite numbers >= 0, got {cost!r} for {name!r}; {never}")
        if (cost if isinstance(cost, int) else float(cost)) > _LARGEST:  # a float32 cannot be compared with it
            raise ValueError(
                f"costs must be at most {_LARGEST:g}, so that sums stay finite, got {short(cost)} for {name!r}; {never}"
            )
    return tuple(float(cost) for cost in costs)


def checked_groups(features: Sequence[str], groups: Mapping[str, Sequence[str]] | None) -> dict[str, tuple[int, ...]]:
    """Return the positions of the features of each group; ValueError if they are not disjoint sets of features."""
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise ValueError(
            "groups must be a mapping from the name of a group to the names of its features, got "
            f"{type(groups).__name__}; for example groups={{'blood': ['urea', 'iron']}}"
        )
    found: dict[str, tuple[int, ...]] = {}
    group_of: dict[int, str] = {}
    for name, members in groups.items():
        if str(name) in found:
            raise ValueError(f"groups must have different names as text, got {str(name)!r} twice; rename one")
        places = feature_indices(features, members, what=f"groups[{name!r}]")
        if not places:
            raise ValueError(f"groups[{name!r}] must hold at least one feature, got none; leave the group out")
        if name in features and features.index(name) not in places:
            raise ValueError(f"groups must not be named after a feature outside of it, got {name!r}; rename the group")
        for place in places:
            if place in group_of:
                raise ValueError(
                    f"groups must not share features, got {features[place]!r} in {group_of[place]!r} and {name!r}"
                )
            group_of[place] = name
        found[str(name)] = places
    return found


def feature_indices(known: Sequence[str], chosen: Sequence[str], *, what: str = "features") -> tuple[int, ...]:
    """Return the position of each chosen feature name; raise ValueError if a name is unknown or occurs twice.

    `what` is what messages call the chosen names.
    """
    if isinstance(chosen, str):
        raise ValueError(f"{what} must be a sequence of names, got the string {chosen!r}; write [{chosen!r}]")
    if not isinstance(chosen, Iterable):
        raise ValueError(f"{what} must be a sequence of names, got {short(chosen)}")
    position = {name: index for index, name in enumerate(known)}
    for name in chosen:
        if not isinstance(name, str) or name not in position:
            raise ValueError(f"{what} must be among {names_text(known)}, got {name!r}")
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{what} must be distinct, got {names_text(chosen)}")
    return tuple(position[name] for name in chosen)


def is_real_number(value: object) -> bool:
    """Return whether a value is a real number of any type (not a bool)."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def short(value: object) -> str:
    """Return a text for messages, cut after 100 characters."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
