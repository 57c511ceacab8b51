"""The smallest sets of features whose gains reach what is needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trimbench.conformant.reduced_problem import Matrix, Vector

# The search for covers of several requirements looks at so many partial sets.
_MAX_STEPS = 100_000


@dataclass(frozen=True)
class FoundSets:
    """Smallest sets of features, and what is proven of them.

    Attributes
    ----------
    sets : tuple of tuple of int
        Of the smallest size that was found; empty if none was.
    size_lower_bound : int
        No smaller set does.
    complete : bool
        Whether these are all sets of their size, and no smaller one does.
    """

    sets: tuple[tuple[int, ...], ...]
    size_lower_bound: int
    complete: bool

    @property
    def optimal(self) -> bool:
        """Whether no smaller set does."""
        return bool(self.sets) and len(self.sets[0]) <= self.size_lower_bound


def smallest_covers(gains: Matrix, needed: Vector, max_sets: int) -> FoundSets:
    """Return the smallest sets of rows of `gains` whose sums reach `needed` in every column.

    With one column the rows with the largest gains are one of them; with several it is a covering problem, searched
    depth first with the sum of the largest gains that are left, column by column, as the bound.

    Parameters
    ----------
    gains : ndarray of shape (n_features, n_requirements)
        0 or more; infinity is allowed.
    needed : ndarray of shape (n_requirements,)
    max_sets : int
        How many sets to list at most, 1 or more.
    """
    ranked = -np.sort(-gains, axis=0)
    reach = np.concatenate([np.zeros((1, len(needed))), np.cumsum(ranked, axis=0)])
    enough = (reach >= needed).all(axis=1)
    if not enough.any():
        return FoundSets((), len(gains) + 1, True)
    first = int(np.argmax(enough))
    order = np.lexsort((np.arange(len(gains)), -gains.sum(axis=1)))
    steps = 0
    for size in range(first, len(gains) + 1):
        search = _Covers(gains[order], needed, max_sets + 1, _MAX_STEPS - steps)
        search.extend((), 0, size, np.zeros(len(needed)))
        steps += search.steps
        if search.found:
            sets = tuple(tuple(order[list(chosen)].tolist()) for chosen in search.found[:max_sets])
            finished = search.steps < search.max_steps and len(search.found) <= max_sets
            return FoundSets(sets, size, finished)
        if steps >= _MAX_STEPS:
            greedy = _greedy(gains, needed)
            return FoundSets((greedy,), size, False)
    raise AssertionError("all features together reach what is needed")


class _Covers:
    def __init__(self, gains: Matrix, needed: Vector, limit: int, max_steps: int) -> None:
        self.gains, self.needed, self.limit, self.max_steps = gains, needed, limit, max_steps
        self.found: list[tuple[int, ...]] = []
        self.steps = 0

    def extend(self, chosen: tuple[int, ...], start: int, left: int, reached: Vector) -> None:
        self.steps += 1
        if not left:
            if (reached >= self.needed).all():
                self.found.append(chosen)
            return
        for place in range(start, len(self.gains) - left + 1):
            if len(self.found) >= self.limit or self.steps >= self.max_steps:
                return
            if not self._may_reach(place, left, reached):
                return
            self.extend((*chosen, place), place + 1, left - 1, reached + self.gains[place])

    def _may_reach(self, start: int, left: int, reached: Vector) -> bool:
        rest = self.gains[start:]
        # With one requirement the rows are sorted by their gains.
        best = rest[:left] if len(self.needed) == 1 else np.partition(rest, len(rest) - left, axis=0)[-left:]
        return bool((reached + best.sum(axis=0) >= self.needed - 1e-9 * np.abs(self.needed)).all())


def _greedy(gains: Matrix, needed: Vector) -> tuple[int, ...]:
    chosen: list[int] = []
    reached = np.zeros(len(needed))
    while not (reached >= needed).all():
        worth = np.minimum(gains, np.maximum(needed - reached, 0)).sum(axis=1)
        worth[chosen] = -1
        chosen.append(int(np.argmax(worth)))
        reached = reached + gains[chosen[-1]]
    return tuple(chosen)
