"""Replications of two runs exchanged: how probable differences are, of single numbers and of experiments as wholes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# Exchanges that are drawn, always the same ones: a check must give the same answer twice.
N_EXCHANGES, _SEED = 1999, 0
# With fewer ways to exchange, such as 6 beside 3 replications, the smallest probability would be too large.
_FEWEST_WAYS = 200
_Key = TypeVar("_Key", bound=Hashable)
_Values = Sequence[float]


@dataclass(frozen=True)
class Both:
    """The replications of a number in two runs, and the experiment that it belongs to."""

    experiment: str
    before: _Values
    now: _Values

    @property
    def can_be_exchanged(self) -> bool:
        """Whether there are enough ways to exchange the replications."""
        return bool(self.before and self.now) and math.comb(self.n, len(self.now)) >= _FEWEST_WAYS

    @property
    def n(self) -> int:
        """The replications of both runs."""
        return len(self.before) + len(self.now)


def probabilities(numbers: Mapping[_Key, Both]) -> tuple[dict[_Key, float], dict[str, float]]:
    """Return adjusted probabilities of the differences between two runs: of each number, and of each experiment.

    If nothing has changed, the replications of both runs are draws of one kind, so that any exchange of them between
    the runs was as probable as what was found. This is the minimum-p rule (Westfall and Young 1993): a difference has
    the share of exchanges in which any is as improbable. The probability that anything is reported at the level a is
    at most a, whatever the noise is and however numbers depend on each other, since each exchange moves whole
    replications: the first of each number belong together, as do the second, within and between experiments.

    How improbable a single difference is, Welch's test says; it is a scale here and needs not be right. An experiment
    is judged by the mean of the squares of all its differences, in units of their noise, whatever their signs: a shift
    too small to be seen in any number shows in many. Where they vary together, the mean does so in the exchanges,
    too, and gains nothing. Numbers and experiments share the level by halves, so that a few experiments are not lost
    among hundreds of numbers.

    Replications of a number that the two runs count differently, or other experiments do, are exchanged apart.
    """
    from scipy.special import gammaincc, ndtri

    scores: dict[_Key, NDArray[np.float64]] = {}
    rng = np.random.default_rng(_SEED)
    shapes: dict[tuple[int, int], list[_Key]] = {}
    for key, both in numbers.items():
        shapes.setdefault((len(both.before), len(both.now)), []).append(key)
    for (n_before, _), keys in shapes.items():
        values = np.array([[*numbers[key].before, *numbers[key].now] for key in keys], dtype=float).T
        scores |= dict(zip(keys, _welch(values, _exchanges(len(values), n_before, rng)).T, strict=True))
    squares: dict[str, list[NDArray[np.float64]]] = {}
    for key, score in scores.items():
        squares.setdefault(numbers[key].experiment, []).append(ndtri(np.maximum(score, 1e-300) / 2) ** 2)
    together: dict[str, NDArray[np.float64]] = {}
    for name, own in squares.items():
        mean = np.mean(own, axis=0)
        if len(own) > 1 and mean.std() > 0:  # one number is judged as such
            # A gamma distribution makes the means of experiments comparable.
            scale = mean.var() / mean.mean()
            together[name] = np.asarray(gammaincc(mean.mean() / scale, mean / scale), dtype=np.float64)
    weighted = [score * len(scores) for score in scores.values()]
    weighted += [score * len(together) for score in together.values()]
    least = np.sort(np.min(weighted, axis=0)) if weighted else np.ones(1)

    def share(score: NDArray[np.float64], weight: int) -> float:
        # Equal scores differ by rounding where they are computed from other sums.
        return float(np.searchsorted(least, score[0] * weight * (1 + 1e-9), side="right") / len(least))

    return (
        {key: share(score, len(scores)) for key, score in scores.items()},
        {name: share(score, len(together)) for name, score in together.items()},
    )


def _exchanges(n: int, n_before: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which replications count as those of the run before: in the first row, those that are."""
    orders = np.vstack([np.arange(n), rng.permuted(np.tile(np.arange(n), (N_EXCHANGES, 1)), axis=1)])
    return orders < n_before


def _welch(values: NDArray[np.float64], is_before: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the probability of each column's difference in each exchange, with the fewer degrees of freedom."""
    from scipy.special import stdtr

    middle, deviation = values.mean(axis=0), values.std(axis=0)
    # In such units, sums of squares lose no digits. Values that differ by rounding alone are equal.
    is_noisy = deviation > 1e-9 * np.abs(middle)
    units = np.where(is_noisy, (values - middle) / np.where(is_noisy, deviation, 1.0), 0.0)
    parts = []
    for chosen in (is_before.astype(float), (~is_before).astype(float)):
        n = int(chosen[0].sum())
        mean = chosen @ units / n
        parts.append((n, mean, np.maximum(chosen @ units**2 / n - mean**2, 0.0) * n / (n - 1)))
    (n, mean, variance), (n_other, other, other_variance) = parts
    scale = np.sqrt(variance / n + other_variance / n_other)
    apart = np.abs(mean - other)
    distance = np.where(scale > 1e-7, apart / np.maximum(scale, 1e-7), np.where(apart > 1e-7, np.inf, 0.0))
    return 2 * np.asarray(stdtr(min(n, n_other) - 1, -distance), dtype=float)
