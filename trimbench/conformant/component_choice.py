"""How many components a mixture of conformant models needs, by the likelihood of rows held out."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.mixture import ConformantMixture
from trimbench.conformant.mixture_learning import MixturePrior, clusters, learn_components
from trimbench.conformant.model import ConformantModel
from trimbench.conformant.reduced_problem import Vector

_CANDIDATES = (1, 2, 5, 10, 20, 50, 100, 150)
_HELD_OUT = 0.2
_MOST_HELD_OUT = 2500
_MOST_ROWS = 10_000
_FEWEST_ROWS = 10


def learn_mixture(
    model: ConformantModel, rows: NDArray[Any], n_components: int | Literal["auto"], smoothing: float, seed: int
) -> ConformantMixture:
    """Learn a mixture of conformant models.

    Raises ValueError if there are fewer rows than components.

    Parameters
    ----------
    model : ConformantModel
        Of one component, with the means of all rows.
    rows : ndarray of shape (n_rows, n_columns)
        NaN marks a missing feature.
    n_components : int or "auto"
    smoothing : float
        Pseudo-count of each value of each feature in each class, shared by the components.
    seed : int
        Of the clustering with which the search begins, and of the choice of rows held out.
    """
    chosen = _chosen(model, rows, smoothing, seed) if n_components == "auto" else n_components
    if chosen > len(rows):
        raise ValueError(f"n_components must be at most the number of rows, {len(rows)}, got {chosen}")
    return learn_components(MixturePrior.of(model, chosen, smoothing), rows, clusters(model, rows, chosen, seed))


def _chosen(model: ConformantModel, rows: NDArray[Any], smoothing: float, seed: int) -> int:
    """Return the number beyond which held-out rows do not become more likely by more than one standard error."""
    order = np.random.default_rng(seed).permutation(len(rows))
    n_held_out = min(int(_HELD_OUT * len(rows)), _MOST_HELD_OUT)
    if n_held_out < _FEWEST_ROWS:
        return 1
    held_out, others = rows[order[:n_held_out]], rows[order[n_held_out : n_held_out + _MOST_ROWS]]

    def score(n_components: int) -> Vector:
        # The others may lack a value that all rows have: a single component needs the means of these, too.
        prior = MixturePrior.of(model, n_components, smoothing, of_all_rows=False)
        first = clusters(model, others, n_components, seed)
        return learn_components(prior, others, first).log_likelihood(held_out)

    possible = [n for n in _CANDIDATES if n * _FEWEST_ROWS <= len(others)]
    best = score(possible[0])
    for fewer, more in itertools.pairwise(possible):
        scores = score(more)
        gain = scores - best
        if not gain.mean() > gain.std() / np.sqrt(len(gain)):
            return fewer
        best = scores
    return possible[-1]
