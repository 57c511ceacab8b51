"""The outcome of an experiment: reproduced numbers, and intervals that say what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trimbench.reproduction.vocabulary.figures import Figure
from trimbench.reproduction.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    tables : sequence of Table
    figures : sequence of figures
        Such as `LineFigure`.
    numbers : sequence of Number
        If all jobs succeeded, exactly one for each reported number of the experiment; see `numbers_of`.
    notes : sequence of str
        What a reader needs to know to understand the tables.
    """

    tables: Sequence[Table]
    figures: Sequence[Figure] = ()
    numbers: Sequence[Number] = ()
    notes: Sequence[str] = ()


# The reproduced counterparts of reported numbers, and intervals that say what they mean.

IntervalKind = Literal["confidence", "prediction", "certified"]


@dataclass(frozen=True)
class Interval:
    """An interval around a number.

    A "confidence" interval says where the mean over repetitions lies, a "prediction" interval where one more run of the
    paper's size would lie, and a "certified" one has proven bounds. Verdicts use prediction intervals only.

    One from replications has their number `n`, standard deviation and `draws`, which tell the noise of another run.
    """

    low: float
    high: float
    kind: IntervalKind
    n: int = field(default=0, compare=False)
    deviation: float = field(default=math.nan, compare=False)
    draws: tuple[float, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Explanation:
    """The value of a number under a set-up that was inferred from printed numbers, and the keys of its jobs."""

    setup: str
    value: float
    interval: Interval | None = None
    jobs: tuple[str, ...] = ()


# A draw that is less probable than this is not put down to chance.
CHANCE = 0.01


@dataclass(frozen=True)
class Probability:
    """The probability of a number at least as far out as the printed one, on either side, among our replications.

    `least` is the smallest probability that this number of replications can show. `overall` is the probability that
    at least as many numbers of the table are far out as in print; 1 for a number that stands alone. `setup` is that of
    the replications if it was inferred.
    """

    value: float
    least: float
    overall: float = 1.0
    setup: str = ""


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


def number_of(row: str, quantity: str, value: float | Mean | None, rows: pd.DataFrame, **causes: Any) -> Number:
    """Return a number, with the interval of a mean; `rows` are those of the jobs behind it.

    The `causes` of a difference are fields of `Number`: explanation, contradiction, probability.
    """
    interval = value.interval if isinstance(value, Mean) else None
    number = value.value if isinstance(value, Mean) else value
    if number is not None and not isinstance(number, float | int | np.floating | np.integer):
        kind = type(number).__name__
        raise TypeError(f"the value of {row}/{quantity} must be a number, a Mean or None, got one of type {kind}")
    return Number(row, quantity, None if number is None else float(number), tuple(rows["job"]), interval, **causes)


def numbers_of(row: str, values: Mapping[str, float | Mean | None], rows: pd.DataFrame) -> list[Number]:
    """Return the numbers of one reported row.

    Parameters
    ----------
    row : str
        As the file of printed numbers calls it.
    values : mapping from quantity to float, Mean or None
        Of a mean, the interval counts as well; None is a number that this run could not compute.
    rows : DataFrame
        Those of the jobs behind all of them, which the page links to.

    Returns
    -------
    list of Number
    """
    return [number_of(row, quantity, value, rows) for quantity, value in values.items()]


@dataclass(frozen=True)
class Mean:
    """A mean over repetitions, and an interval around it; none with fewer than two repetitions."""

    value: float
    interval: Interval | None
    n: int

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval, NaN without one."""
        return (self.interval.low, self.interval.high) if self.interval else (math.nan, math.nan)

    def holds(self, value: float) -> bool:
        """Tell whether a value is in the interval."""
        return self.interval is not None and self.interval.low <= value <= self.interval.high

    @property
    def with_ends(self) -> tuple[float, float, float]:
        """The mean and the ends of the interval."""
        return (self.value, *self.ends)


def mean_of(
    values: Iterable[float],
    kind: Literal["confidence", "prediction"] = "confidence",
    *,
    test_per_train: float = 0.0,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Mean:
    """Return a mean with Student's 95 % interval, for the mean itself or for the prediction of one more repetition.

    Parameters
    ----------
    values : iterable of float
        One for each repetition. For a verdict by the rule ``interval``, a repetition has the size of the paper's run:
        if the paper prints a mean over 25 splits, it is such a mean.
    kind : {"confidence", "prediction"}
        Where the mean over repetitions lies, or where one more repetition would lie, which verdicts are based on.
    test_per_train : float
        Random splits share rows, so that their spread alone would give too narrow an interval for the mean: its
        variance is raised from 1/n to 1/n + n_test/n_train times that of the values [1]_.
    limits : (float, float)
        Of possible values, at which the interval is cut off.

    Returns
    -------
    Mean
        With `value`, NaN for no values; `interval`, which has `low` and `high`, and is None for fewer than two values;
        `ends`, these two as a pair, NaN without an interval; and `n`, how many values there are.

    References
    ----------
    .. [1] Nadeau and Bengio (2003): Inference for the generalization error. Machine Learning 52(3), pages 239-281.
    """
    found = np.asarray(list(values), dtype=float)
    n = len(found)
    mean = float(np.mean(found)) if n else math.nan
    if n < 2:
        return Mean(mean, None, n)
    from scipy.special import stdtrit  # every command would wait for it at its start

    own = 1.0 if kind == "prediction" else test_per_train
    deviation = float(np.std(found, ddof=1))
    half = float(stdtrit(n - 1, 0.975)) * deviation * math.sqrt(own + 1 / n)
    ends = max(limits[0], mean - half), min(limits[1], mean + half)
    return Mean(mean, Interval(*ends, kind, n, deviation, tuple(found.tolist())), n)


def standard_error(values: Sequence[float] | pd.Series[float]) -> float:
    """Return the standard error of a mean; NaN for fewer than two values."""
    n = len(values)
    return float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan
