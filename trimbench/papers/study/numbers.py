"""The reproduced counterparts of reported numbers, and intervals that say what they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import stdtrit

if TYPE_CHECKING:
    import pandas as pd

IntervalKind = Literal["confidence", "prediction", "certified"]


@dataclass(frozen=True)
class Interval:
    """An interval around a number.

    A "confidence" interval says where the mean over repetitions lies, a "prediction" interval where one more run of the
    paper's size would lie, and a "certified" one has proven bounds. Verdicts use prediction intervals only.
    """

    low: float
    high: float
    kind: IntervalKind


@dataclass(frozen=True)
class Explanation:
    """What a number is under a set-up that is not the paper's in words, but was inferred from what it prints."""

    setup: str
    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class Probability:
    """How probable a number at least as far out as the printed one is, to either side, under replications of ours.

    `least` is the smallest probability that so many replications can give. `overall` is the probability that as many
    numbers of the same table are far out as are printed, or more; 1 for a number that stands alone.
    """

    value: float
    least: float
    overall: float = 1.0


@dataclass(frozen=True)
class Number:
    """The reproduced counterpart of the number that is reported under `row` and `quantity`.

    The value is None if this run could not compute it, for a `reason` if the experiment knows one. `jobs` are the keys
    of the jobs behind it.

    Three things may account for a difference from the printed number: an `explanation`; a `contradiction`, the proof in
    words that what the paper states cannot all be true; and, where the printed number is a draw, its `probability`.
    """

    row: str
    quantity: str
    value: float | None
    jobs: tuple[str, ...] = ()
    interval: Interval | None = None
    reason: str = ""
    explanation: Explanation | None = None
    contradiction: str = ""
    probability: Probability | None = None


def numbers_of(
    row: str,
    values: Mapping[str, float | None],
    rows: pd.DataFrame,
    intervals: Mapping[str, Interval | None] | None = None,
) -> list[Number]:
    """Return the numbers of one reported row, by quantity; `rows` are those of the jobs behind all of them."""
    jobs = tuple(rows["job"])
    found = intervals or {}
    return [Number(row, quantity, value, jobs, found.get(quantity)) for quantity, value in values.items()]


def prediction_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % prediction interval for one more repetition; None for fewer than two repetitions."""
    return _student(values, 1.0, "prediction")


def confidence_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % confidence interval for the mean; None for fewer than two repetitions."""
    return _student(values, 0.0, "confidence")


def _student(values: Sequence[float], own_variance: float, kind: IntervalKind) -> Interval | None:
    n = len(values)
    if n < 2:
        return None
    mean = float(np.mean(values))
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) * math.sqrt(own_variance + 1 / n)
    return Interval(mean - half, mean + half, kind)


def mean_interval(values: Sequence[float], test_per_train: float) -> tuple[float, float, float]:
    """Return a mean over random splits with a 95 % confidence interval; NaN for its ends with fewer than two values.

    Random splits share rows, so that their spread alone would give too narrow an interval: the variance of the mean is
    raised from 1/n to 1/n + n_test/n_train times that of the values (Nadeau and Bengio, 2003).
    """
    mean = float(np.mean(values))
    n = len(values)
    if n < 2:
        return mean, math.nan, math.nan
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(values, ddof=1)) * math.sqrt(1 / n + test_per_train)
    return mean, mean - half, mean + half
