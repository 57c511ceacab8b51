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

    Attributes
    ----------
    low, high : float
    kind : {"confidence", "prediction", "certified"}
        Where the mean over repetitions lies, where one more run of the paper's size would lie, or proven bounds. A
        verdict uses prediction intervals alone.
    """

    low: float
    high: float
    kind: IntervalKind


@dataclass(frozen=True)
class Number:
    """The reproduced counterpart of one reported number.

    Attributes
    ----------
    row, quantity : str
        The names under which the number is reported.
    value : float or None
        None if this run could not compute it.
    jobs : tuple of str
        Keys of the jobs from which it was computed.
    interval : Interval, optional
    reason : str
        Why there is no value, if the experiment knows.
    """

    row: str
    quantity: str
    value: float | None
    jobs: tuple[str, ...] = ()
    interval: Interval | None = None
    reason: str = ""


def numbers_of(
    row: str,
    values: Mapping[str, float | None],
    rows: pd.DataFrame,
    intervals: Mapping[str, Interval | None] | None = None,
) -> list[Number]:
    """Return the numbers of one reported row that come from the same jobs.

    Parameters
    ----------
    row : str
    values, intervals : mapping from quantity to value and to interval
    rows : DataFrame
        The rows of the jobs behind these numbers.
    """
    jobs = tuple(rows["job"])
    found = intervals or {}
    return [Number(row, quantity, value, jobs, found.get(quantity)) for quantity, value in values.items()]


def prediction_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % prediction interval for one more repetition; None for fewer than two repetitions."""
    n = len(values)
    return _student(values, math.sqrt(1 + 1 / n), "prediction") if n > 1 else None


def confidence_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % confidence interval for the mean; None for fewer than two repetitions."""
    n = len(values)
    return _student(values, math.sqrt(1 / n), "confidence") if n > 1 else None


def _student(values: Sequence[float], scale: float, kind: IntervalKind) -> Interval:
    mean = float(np.mean(values))
    half = float(stdtrit(len(values) - 1, 0.975)) * float(np.std(values, ddof=1)) * scale
    return Interval(mean - half, mean + half, kind)
