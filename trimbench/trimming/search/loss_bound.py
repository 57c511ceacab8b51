"""Upper bounds on the agreement of all subsets within a budget, from what is lost without some features."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from trimbench.trimming.classifier import BayesianClassifier
from trimbench.trimming.costs import Choice
from trimbench.trimming.engines.dense import separation
from trimbench.trimming.engines.removal_losses import removal_losses
from trimbench.trimming.limits import Limits

# Sizes of the grid, and how many times longer the next one takes at most.
_POINTS, _LONGER = (2**13, 2**15, 2**17, 2**19), 5.0
# Of more features than this the coarsest grid would show little.
_MANY_FEATURES = 50
# Without a limit, a bound that says something is not refined beyond this size.
_ENOUGH_POINTS = 2**15
# Seconds for a bound below 1 after the time is over.
_GRACE = 0.2
# A finer grid is worth its time if the last one raised the loss by this factor.
_RAISED = 1.05
# Units in addition to those that are needed for a bound: their losses may be higher.
_MORE_UNITS = 1.1


def loss_bound(values: Iterable[tuple[float, tuple[int, ...]]], choice: Choice) -> float:
    """Return an upper bound on the agreement of all allowed subsets from the potential agreements without some.

    Of features that cannot all be afforded together, every allowed subset lacks at least one.

    Parameters
    ----------
    values : iterable of (float, tuple of int)
        The maximum potential agreement without some features that are bought together, and these features.

    Returns
    -------
    float
        1 if the features given can all be afforded.
    """
    wanted = set(choice.required)
    for value, features in sorted(values):
        wanted.update(features)
        if not choice.is_affordable(wanted):
            return min(1.0, value)
    return 1.0


def certain_bound(classifier: BayesianClassifier, choice: Choice, limits: Limits) -> float:
    """Return an upper bound on the agreement of all allowed subsets of a naive Bayes classifier of any size.

    The coarsest grid takes some hundredths of a second, whatever the limits; finer ones are used while there is time.

    Parameters
    ----------
    classifier : BayesianClassifier
        With a threshold strictly between 0 and 1, and a prior that rules out no class.
    """
    units = _missed_units(by_separation(classifier, choice), choice)
    groups = [choice.units[unit] for unit in units]
    bound = 1.0
    for n_points in _POINTS[classifier.n_features > _MANY_FEATURES :]:
        began, before = time.perf_counter(), bound
        losses = removal_losses(classifier, groups, choice.forbidden, n_points)
        bound = min(bound, loss_bound(zip((1.0 - loss for loss in losses), groups, strict=True), choice))
        left = limits.seconds_left()
        if left is None:
            enough = bound < 1.0 and n_points >= _ENOUGH_POINTS
        elif bound < 1.0:
            enough = 1.0 - bound < _RAISED * (1.0 - before) or _LONGER * (time.perf_counter() - began) > left
        else:
            enough = _LONGER * (time.perf_counter() - began) > max(left, _GRACE)
        if enough:
            break
    return bound


def by_separation(classifier: BayesianClassifier, choice: Choice) -> list[int]:
    """Return the units, those first whose features separate the classes best."""
    strength = [max(separation(classifier.tables[i]) for i in members) for members in choice.units]
    return sorted(range(len(strength)), key=lambda unit: -strength[unit])


def _missed_units(order: Sequence[int], choice: Choice) -> list[int]:
    """Return the first units that have a price, of which every allowed subset lacks one, and some more."""
    # A subset that lacks what is free or required is no better than one that has it.
    units = [unit for unit in order if choice.costs[unit] > 0 and unit not in choice.required_units]
    wanted = set(choice.required)
    for place, unit in enumerate(units, start=1):
        wanted.update(choice.units[unit])
        if not choice.is_affordable(wanted):
            return units[: round(_MORE_UNITS * place)]
    return units
