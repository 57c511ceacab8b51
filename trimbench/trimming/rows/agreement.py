"""How often a trimmed classifier agrees with the original on rows, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95


@dataclass(frozen=True)
class RowsAgreement:
    """Agreement with the original on rows, estimated on rows that the selection did not see.

    Attributes
    ----------
    value : float
        Cross-fitted: the whole selection (of features, threshold, weight of the rows and size) is repeated without
        each part of the rows in turn and judged on that part. NaN if the time limit left no part to judge on.
    interval : tuple of float
        Confidence interval of the agreement on new rows (Wilson's score interval, for fewer rows where the selections
        differ from part to part). It takes the rows as independent draws.
    confidence : float
        Of the interval.
    n_rows : int
        Rows that were judged: all of them, unless a time limit ended the selection early.
    weight : float
        Of the rows in the blend with the model: 0 model only, 1 rows only.
    apparent : float
        Share of the rows on which the returned trimming agrees with the original. The trimming was selected on these
        rows, so that this is too high as an estimate.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".
    """

    value: float
    interval: tuple[float, float]
    confidence: float
    n_rows: int
    weight: float
    apparent: float


def wilson_interval(successes: float, n_trials: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion; (0, 1) without trials."""
    if n_trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    share = successes / n_trials
    shrunk = (share + z * z / (2 * n_trials)) / (1 + z * z / n_trials)
    half = z / (1 + z * z / n_trials) * math.sqrt(share * (1 - share) / n_trials + z * z / (4 * n_trials**2))
    low = 0.0 if share == 0 else max(0.0, shrunk - half)
    return low, 1.0 if share == 1 else min(1.0, shrunk + half)


def rows_agreement(parts: Sequence[NDArray[np.bool_]], *, weight: float, apparent: float) -> RowsAgreement:
    """Return the agreement and its interval from parts of the rows, judged by selections that did not see them.

    Where the agreement differs more from part to part than independent rows would, because the selections do, the
    interval is that of accordingly fewer rows.
    """
    judged = np.concatenate([np.zeros(0, dtype=np.bool_), *parts])
    n_rows = len(judged)
    share = float(judged.mean()) if n_rows else math.nan
    n_effective = n_rows / _inflation(parts, share)
    return RowsAgreement(
        value=share,
        interval=wilson_interval(share * n_effective, n_effective) if n_rows else (0.0, 1.0),
        confidence=CONFIDENCE,
        n_rows=n_rows,
        weight=weight,
        apparent=apparent,
    )


def _inflation(parts: Sequence[NDArray[np.bool_]], share: float) -> float:
    """Return by which factor the variance of the parts' shares exceeds that of independent rows; 1 at least."""
    if len(parts) < 2 or not 0 < share < 1:
        return 1.0
    spread = sum(len(part) * (float(part.mean()) - share) ** 2 for part in parts) / (len(parts) - 1)
    return max(1.0, spread / (share * (1.0 - share)))
