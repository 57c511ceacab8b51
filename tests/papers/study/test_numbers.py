from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trimbench.papers.vocabulary.numbers import Explanation, Interval, Mean, Number, mean_of, number_of, numbers_of

VALUES = [0.3, 0.1, 0.4, 0.1, 0.5, 0.9]


def test_numbers_of_one_row_share_their_jobs() -> None:
    rows = pd.DataFrame({"job": ["a", "b"]})
    interval = Interval(0.4, 0.6, "prediction")
    assert numbers_of("vote", {"error": Mean(0.5, interval, 2), "seconds": None}, rows) == [
        Number("vote", "error", 0.5, ("a", "b"), interval),
        Number("vote", "seconds", None, ("a", "b")),
    ]
    assert numbers_of("vote", {}, rows) == []
    cause = Explanation("other rows", 0.6)
    assert number_of("vote", "error", 0.5, rows, explanation=cause).explanation == cause


@pytest.mark.parametrize("n", [2, 3, 6])
def test_intervals_are_those_of_scipy(n: int) -> None:
    values = VALUES[:n]
    mean, error = np.mean(values), stats.sem(values)
    # The variance of one more value, or what shared rows add, is added to that of the mean.
    for found, kind, more in (
        (mean_of(values), "confidence", 0.0),
        (mean_of(values, "prediction"), "prediction", 1.0),
        (mean_of(values, test_per_train=0.25), "confidence", 0.25),
    ):
        spread = np.sqrt(more * np.var(values, ddof=1) + error**2)
        assert found.interval is not None
        assert (found.value, found.n, found.interval.kind) == (pytest.approx(mean), n, kind)
        assert found.ends == pytest.approx(stats.t.interval(0.95, n - 1, loc=mean, scale=spread))


@pytest.mark.parametrize("values", [[], [3.0]])
def test_fewer_than_two_repetitions_have_no_interval(values: list[float]) -> None:
    found = mean_of(values)
    assert found.interval is None
    assert np.isnan(found.with_ends).tolist() == [not values, True, True]
