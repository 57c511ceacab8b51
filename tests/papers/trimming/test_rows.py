"""The comparison of selections on test rows, on data that comes with scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trimbench.papers.beyond.rows import METHODS, BudgetedProblem, Rows
from trimbench.papers.validation import ConfigurationError, validated
from trimbench.papers.vocabulary.numbers import mean_of

from .experiments import rows_of

DIGITS = {"digits_1v7": BudgetedProblem(dataset="digits", positive=["1"], negative=["7"], budget=3)}
SETTINGS = {
    "datasets": ["digits"],
    "problems": {"digits": {"dataset": "digits", "positive": ["1"], "negative": ["7"], "budget": 3}},
}


@pytest.fixture(scope="module")
def experiment() -> Rows:
    return Rows(datasets=list(DIGITS), problems=DIGITS, splits=2, candidates={"sequential": 6, "recursive": 8})


@pytest.fixture(scope="module")
def rows(experiment: Rows) -> pd.DataFrame:
    return rows_of(experiment)


def test_every_method_keeps_to_the_budget(rows: pd.DataFrame) -> None:
    for row in rows.to_dict("records"):
        assert [found["method"] for found in row["methods"]] == list(METHODS)
        assert (row["n_features"], row["budget"]) == (64, 3)
        for found in row["methods"]:
            assert 1 <= len(found["features"]) <= 3
            assert 0.5 < found["test_agreement"] <= 1
            assert ("cross_fitted" in found) == (found["method"] in ("rows", "blend"))


def test_tables_hold_means_leads_and_counts(experiment: Rows, rows: pd.DataFrame) -> None:
    outcome = experiment.outcome(rows)
    agreement, accuracy, summary, promise, single = (table.frame for table in outcome.tables)
    assert len(agreement) == len(accuracy) == len(METHODS)
    assert len(single) == 2 * len(METHODS)
    for title in ("model", "rows", "blend", "RFE"):
        values = single[single["selected by"] == title]["agreement"].to_numpy()
        model = single[single["selected by"] == "model"]["agreement"].to_numpy()
        line = agreement[agreement["selected by"] == title].iloc[0]
        assert line["mean"] == pytest.approx(values.mean())
        if title == "model":
            assert math.isnan(line["lead"])
            continue
        assert line["lead"] == pytest.approx((values - model).mean())
        assert (line["wins"], line["losses"]) == ((values > model).sum(), (values < model).sum())
        ours = summary[(summary["selected by"] == title) & (summary["quantity"] == "agreement")].iloc[0]
        assert ours["mean lead"] == pytest.approx(line["lead"])
        assert ours["splits won"] == line["wins"]
        assert ours["certainly ahead"] == int(line["lead low"] > 0)
    gap = promise["cross-fitted"] - promise["test rows"]
    assert promise["optimism"].to_numpy() == pytest.approx(gap.to_numpy())
    assert [figure.name for figure in outcome.figures] == ["", "labels"]
    drawn = outcome.figures[0].points
    assert drawn["y"].to_numpy() == pytest.approx(
        agreement[agreement["selected by"].isin(["rows", "blend"])]["lead"].to_numpy()
    )


def test_without_successful_jobs_there_is_nothing_to_show(experiment: Rows, rows: pd.DataFrame) -> None:
    outcome = experiment.outcome(rows.assign(status="failed"))
    assert all(table.frame.empty for table in outcome.tables)
    assert not outcome.figures


def test_intervals_of_splits_that_share_rows_are_wider() -> None:
    values = [0.1, 0.3, 0.2, 0.6]
    mean, low, high = mean_of(values, test_per_train=0.25).with_ends
    assert mean == pytest.approx(0.3)
    scale = np.std(values, ddof=1) * math.sqrt(1 / 4 + 0.25)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 3, loc=0.3, scale=scale))
    assert mean_of([0.5], test_per_train=0.25).with_ends[0] == 0.5
    assert math.isnan(mean_of([0.5], test_per_train=0.25).with_ends[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": ["x"]}, r"datasets must be among the names in problems, \['digits'\], got 'x'"),
        ({"splits": 0}, "splits must be 1 or more, got 0"),
        ({"n_folds": 1}, "n_folds must be 2 or more, got 1"),
        ({"smoothing": 0.0}, "smoothing must be a positive number"),
        ({"threshold": 1.0}, "threshold must be strictly between 0 and 1"),
        ({"candidates": {"sequential": 5}}, "candidates must have the entries sequential and recursive"),
        ({"candidates": {"sequential": 3, "recursive": 9}}, r"problems\.digits\.budget must be 1 or more and below"),
    ],
)
def test_wrong_settings_are_refused(changes: Mapping[str, object], message: str) -> None:
    assert isinstance(validated(Rows, SETTINGS, "experiment"), Rows)
    with pytest.raises(ConfigurationError, match=message):
        validated(Rows, {**SETTINGS, **changes}, "experiment")
