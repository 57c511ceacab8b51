"""The fewest features whose loss gives another class, where what their losses cost does not add up."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.explained_row import Explained
from trimbench.conformant.reduced_problem import Vector
from trimbench.conformant.smallest_covers import FoundSets

# Rows that may be classified to try all sets of one size.
_MOST_ROWS = 20_000


def smallest_losses(
    model: Explained, row: Vector, winner: int, rivals: tuple[int, ...], max_sets: int
) -> tuple[FoundSets, tuple[int, ...]]:
    """Return sets of observed features without which a rival has a higher score, and that rival for each.

    All sets of one size after the other are tried as long as they are few, which finds the smallest. After that,
    features are taken one by one, always the one whose loss costs most, and those that are not needed are given back.

    Parameters
    ----------
    row : ndarray of shape (n_columns,)
    winner, rivals : int
        Positions of classes.
    max_sets : int
    """
    search = _Search(model, row, winner, rivals)
    n_observed = len(search.observed)
    for size in range(1, n_observed + 1):
        if math.comb(n_observed, size) > _MOST_ROWS:
            return search.greedy(size)
        found = search.all_of(size)
        if found:
            kept = found[:max_sets]
            sets = tuple(chosen for chosen, _ in kept)
            return FoundSets(sets, size, len(found) <= max_sets), tuple(rival for _, rival in kept)
    return FoundSets((), n_observed + 1, True), ()


class _Search:
    def __init__(self, model: Explained, row: Vector, winner: int, rivals: tuple[int, ...]) -> None:
        self.model, self.row, self.winner, self.rivals = model, row, winner, list(rivals)
        self.observed = np.flatnonzero(~np.isnan(row[[columns[0] for columns in model.layout.features]]))

    def margins(self, sets: NDArray[np.intp]) -> tuple[Vector, NDArray[np.intp]]:
        """Return the least log-odds of the class without the features of each set, and the rival that they are of."""
        lost = np.zeros((len(sets), self.model.layout.n_features), dtype=bool)
        np.put_along_axis(lost, sets, True, axis=1)
        rows = np.where(lost[:, self.model.layout.feature_of_column], np.nan, self.row)
        scores = self.model.decision_scores(rows)
        best = scores[:, self.rivals].argmax(axis=1)
        at = np.arange(len(sets))
        return scores[:, self.winner] - scores[:, self.rivals][at, best], np.array(self.rivals)[best]

    def all_of(self, size: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the sets of a size that give another class, with the class, those that cost most first."""
        sets = np.array(list(itertools.combinations(self.observed.tolist(), size)), dtype=np.intp)
        margins, rivals = self.margins(sets)
        order = np.argsort(margins, kind="stable")
        changed = order[margins[order] < 0]
        return [(tuple(sets[place].tolist()), int(rivals[place])) for place in changed]

    def greedy(self, lower: int) -> tuple[FoundSets, tuple[int, ...]]:
        """Return one set, which need not be smallest; no set of fewer than `lower` features gives another class."""
        chosen, margin, rival = np.zeros(0, dtype=np.intp), np.inf, -1
        while margin >= 0:
            left = np.setdiff1d(self.observed, chosen)
            if not left.size:
                return FoundSets((), lower, False), ()
            margins, rivals = self.margins(np.column_stack([np.tile(chosen, (len(left), 1)), left]))
            best = int(margins.argmin())
            chosen, margin, rival = np.append(chosen, left[best]), float(margins[best]), int(rivals[best])
        for feature in chosen.tolist():
            fewer = chosen[chosen != feature]
            margins, rivals = self.margins(fewer[None])
            if margins[0] < 0:
                chosen, rival = fewer, int(rivals[0])
        return FoundSets((tuple(chosen.tolist()),), lower, False), (rival,)
