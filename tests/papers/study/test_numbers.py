from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trimbench.papers.vocabulary.numbers import Interval, Number, confidence_interval, numbers_of, prediction_interval

VALUES = [0.3, 0.1, 0.4, 0.1, 0.5, 0.9]


def test_numbers_of_one_row_share_their_jobs() -> None:
    rows = pd.DataFrame({"job": ["a", "b"]})
    interval = Interval(0.4, 0.6, "prediction")
    assert numbers_of("vote", {"error": 0.5, "seconds": None}, rows, {"error": interval}) == [
        Number("vote", "error", 0.5, ("a", "b"), interval),
        Number("vote", "seconds", None, ("a", "b")),
    ]
    assert numbers_of("vote", {}, rows) == []


@pytest.mark.parametrize("n", [2, 3, 6])
def test_intervals_are_those_of_scipy(n: int) -> None:
    values = VALUES[:n]
    mean, error = np.mean(values), stats.sem(values)
    found = confidence_interval(values)
    assert found is not None
    assert found.kind == "confidence"
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, n - 1, loc=mean, scale=error))
    wider = prediction_interval(values)
    assert wider is not None
    assert wider.kind == "prediction"
    # The variance of one more value is added to that of the mean.
    spread = np.sqrt(np.var(values, ddof=1) + error**2)
    assert (wider.low, wider.high) == pytest.approx(stats.t.interval(0.95, n - 1, loc=mean, scale=spread))


@pytest.mark.parametrize("values", [[], [3.0]])
def test_fewer_than_two_repetitions_have_no_interval(values: list[float]) -> None:
    assert prediction_interval(values) is None
    assert confidence_interval(values) is None
