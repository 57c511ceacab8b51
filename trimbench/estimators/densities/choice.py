"""Which density to take for a classifier: without labels, by its own answers on rows of which values are hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.conformant.evidence import logsumexp
from trimbench.estimators.densities.density import Density
from trimbench.estimators.densities.draws import RandomNumbers
from trimbench.estimators.densities.gaussians import MOST_NUMBERS, GaussianMixture
from trimbench.estimators.densities.margins import Margins
from trimbench.estimators.densities.neighbours import Neighbours
from trimbench.estimators.densities.products import ProductMixture

DensityName = Literal["products", "gaussian", "neighbours"]
Probabilities = Callable[[Matrix], Matrix]

_COMPONENTS = {"products": (1, 2, 5, 10, 20), "gaussian": (1, 2, 4, 8, 16, 32)}
# The widest first, which is the most cautious of equally good ones.
_BANDWIDTHS = (0.29, 0.22, 0.17)
# Rows that each component needs, rows that mixtures are fitted to at most, and those that a choice is made with.
_FEWEST_ROWS = 10
MOST_ROWS = 20_000
_ROWS_OF_CHOICE = 2000
# Of few rows, so many are held out in so many parts, their values hidden in two ways; of many twice as many, in one.
_HELD_OUT, _PARTS, _DRAWS = 150, 3, 24


@dataclass(frozen=True)
class DensityScore:
    """How close the expectation under a density was to the classifier's answers on whole rows, which values it hid.

    Attributes
    ----------
    name : str
    loss : float
        Mean cross-entropy, in nats, of the expectation to the answers on the whole rows.
    excess : float
        By how much the loss is above that of the chosen density.
    standard_error : float
        Of the excess, from differences in the same rows.
    """

    name: str
    loss: float
    excess: float
    standard_error: float


def fitted_density(name: DensityName, rows: Matrix, margins: Margins, random_state: int) -> Density:
    """Fit a density of one kind; the number of components is that under which rows held out are likeliest."""
    if name == "neighbours":
        return _neighbours(margins, random_state, _BANDWIDTHS[1], rows)
    return _mixture(name, margins, random_state, _n_components(name, rows, margins, random_state), rows)


def _mixture(
    name: DensityName, margins: Margins, random_state: int, n_components: int, rows: Matrix
) -> ProductMixture | GaussianMixture:
    kind = ProductMixture if name == "products" else GaussianMixture
    n_components = min(n_components, max(len(rows) // _FEWEST_ROWS, 1))
    return kind(n_components).fit(some(rows, MOST_ROWS, random_state), margins, random_state)


def _neighbours(margins: Margins, random_state: int, bandwidth: float, rows: Matrix) -> Neighbours:
    return Neighbours(bandwidth).fit(rows, margins, random_state)


def some(rows: Matrix, most: int, random_state: int) -> Matrix:
    """Return all rows, or some of them, drawn without replacement."""
    if len(rows) <= most:
        return rows
    chosen: Matrix = rows[np.sort(np.random.default_rng(random_state).choice(len(rows), most, replace=False))]
    return chosen


def _n_components(name: DensityName, rows: Matrix, margins: Margins, random_state: int) -> int:
    """Return the number up to which rows held out become likelier by more than one standard error."""
    few = some(rows, _ROWS_OF_CHOICE, random_state)
    order = np.random.default_rng(random_state).permutation(len(few))
    n_held_out = len(few) // 4
    held_out, others = few[order[:n_held_out]], few[order[n_held_out:]]
    possible = [n for n in _COMPONENTS[name] if n * _FEWEST_ROWS <= len(others)]
    if n_held_out < _FEWEST_ROWS or len(possible) < 2:
        return 1

    def likelihoods(n_components: int) -> Vector:
        return logsumexp(_mixture(name, margins, random_state, n_components, others).log_joint(held_out))

    chosen, best = possible[0], likelihoods(possible[0])
    without_gain = 0
    for more in possible[1:]:
        found = likelihoods(more)
        gains = found - best
        if gains.mean() > gains.std() / np.sqrt(len(gains)):
            chosen, best, without_gain = more, found, 0
        else:
            without_gain += 1
        if without_gain == 2:
            break
    return chosen


def chosen_density(
    probabilities: Probabilities, rows: Matrix, margins: Margins, random_state: int
) -> tuple[Density, tuple[DensityScore, ...]]:
    """Fit the density under which expectations are closest to the answers on whole rows.

    Within one standard error of the best, the first is taken of products, normal laws and neighbours. Neighbours come
    last: most of what they draw is training rows, on which a classifier decides by the labels that it has seen, and
    less steadily than on new rows.

    Parameters
    ----------
    probabilities : callable
        From complete coded rows to the probabilities of the classifier, shape (n_rows, n_classes).
    rows : ndarray of shape (n_rows, n_features)
        Coded training rows, which may have gaps.

    Returns
    -------
    density : Density
    scores : tuple of DensityScore
        Of all that were compared, the chosen one first; empty if there are too few complete rows to compare.
    """
    names = sorted(possible_densities(rows, margins), key=lambda name: name == "neighbours")
    whole = np.flatnonzero(~np.isnan(rows).any(axis=1))
    if len(names) == 1 or len(whole) < 2 * _FEWEST_ROWS:
        return fitted_density(names[0], rows, margins, random_state), ()
    few = some(rows, _ROWS_OF_CHOICE, random_state)
    candidates: dict[str, Callable[[Matrix], Density]] = {}
    for name in names:
        if name == "neighbours":
            for bandwidth in _BANDWIDTHS:
                label = f"neighbours, bandwidth {bandwidth}"
                candidates[label] = partial(_neighbours, margins, random_state, bandwidth)
        else:
            size = _n_components(name, few, margins, random_state)
            candidates[f"{name}, {size} components"] = partial(_mixture, name, margins, random_state, size)
    losses = _losses(probabilities, few, candidates, random_state)
    chosen = _simplest_of_the_best(list(losses.values()))
    label = list(losses)[chosen]
    return candidates[label](rows), _scores(list(losses), list(losses.values()), chosen)


def possible_densities(rows: Matrix, margins: Margins) -> list[DensityName]:
    """Return the densities that may be fitted to these rows, the simplest first."""
    names: list[DensityName] = ["products"]
    if len(rows) >= 2 * _FEWEST_ROWS:
        names.append("neighbours")
    if 1 < int((~margins.categorical).sum()) <= min(MOST_NUMBERS, len(rows) - 1):
        names.append("gaussian")
    return names


def _losses(
    probabilities: Probabilities,
    rows: Matrix,
    candidates: Mapping[str, Callable[[Matrix], Density]],
    random_state: int,
) -> dict[str, Vector]:
    """Return the cross-entropy of each candidate in each row held out, the mean over the ways to hide its values."""
    rng = np.random.default_rng(random_state)
    whole = rng.permutation(np.flatnonzero(~np.isnan(rows).any(axis=1)))
    if len(rows) >= 5 * _HELD_OUT:
        parts, n_masks = [whole[: min(2 * _HELD_OUT, len(rows) // 5, len(whole) // 2)]], 1
    else:
        n_masks = 2
        parts = [part[: _HELD_OUT // _PARTS + 1] for part in np.array_split(whole, _PARTS)]
    numbers = RandomNumbers(_DRAWS, rows.shape[1], random_state)
    losses: dict[str, list[Vector]] = {}
    for part in parts:
        held_out = rows[part]
        others = np.delete(rows, part, axis=0)
        answers = probabilities(held_out)
        hidden = np.concatenate([hide(held_out, rng) for _ in range(n_masks)])
        for label, fit in candidates.items():
            drawn = fit(others).draw(hidden, numbers)
            found = probabilities(drawn.reshape(-1, rows.shape[1])).reshape(len(hidden), _DRAWS, -1)
            # As if one more draw had given each class the same probability: none is 0.
            smooth = (found.sum(axis=1) + 1 / answers.shape[1]) / (_DRAWS + 1)
            of_rows = -(np.tile(answers, (n_masks, 1)) * np.log(smooth)).sum(axis=1)
            losses.setdefault(label, []).append(of_rows.reshape(n_masks, -1).mean(axis=0))
    return {label: np.concatenate(of_parts) for label, of_parts in losses.items()}


def hide(rows: Matrix, rng: np.random.Generator) -> Matrix:
    """Return rows of which a random share of the values, and at least one, is hidden."""
    shares = rng.uniform(0.1, 0.9, size=(len(rows), 1))
    absent = rng.random(rows.shape) < shares
    absent[np.arange(len(rows)), rng.integers(0, rows.shape[1], len(rows))] = True
    return np.where(absent, np.nan, rows)


def _simplest_of_the_best(losses: Sequence[Vector]) -> int:
    best = int(np.argmin([of_rows.mean() for of_rows in losses]))
    for place, of_rows in enumerate(losses[:best]):
        differences = of_rows - losses[best]
        if differences.mean() <= _standard_error(differences):
            return place
    return best


def _scores(labels: Sequence[str], losses: Sequence[Vector], chosen: int) -> tuple[DensityScore, ...]:
    order = [chosen, *(place for place in range(len(labels)) if place != chosen)]
    differences = [losses[place] - losses[chosen] for place in order]
    return tuple(
        DensityScore(labels[place], float(losses[place].mean()), float(of_rows.mean()), _standard_error(of_rows))
        for place, of_rows in zip(order, differences, strict=True)
    )


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
