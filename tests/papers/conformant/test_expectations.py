"""Classifiers with gaps: how tables are encoded, what is hidden, and how leads, losses and stability are counted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from trimbench.papers.beyond.expected_predictions import ExpectedPredictions, Lead
from trimbench.papers.methods.expectations import (
    CLASSIFIERS,
    METHODS,
    Encoder,
    Fitted,
    Split,
    compare_expectations,
)
from trimbench.reproduction.vocabulary.cells import Inputs

from ..experiments import inputs_of


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": pd.Categorical(["u", None, "v"], ["u", "v", "w"])})


def test_numbers_are_standardised_and_categories_become_indicators(table: pd.DataFrame) -> None:
    expected = [[-1, 1, 0, 0], [1, np.nan, np.nan, np.nan], [np.nan, 0, 1, 0]]
    np.testing.assert_array_equal(Encoder.of(table)(table), expected)
    np.testing.assert_array_equal(Encoder.of(table)(table.iloc[[2]]), expected[2:])


def iris(inputs: Inputs, test_rows: int = 1000) -> Split:
    return Split.of(inputs.dataset("iris"), 1000, test_rows, seed=3)


def test_a_split_has_each_row_once_and_all_classes() -> None:
    split = iris(inputs_of())
    assert (len(split.train), len(split.test)) == (105, 45)
    assert not set(split.train.index) & set(split.test.index)
    assert np.bincount(split.test_labels).tolist() == [15, 15, 15]
    assert len(iris(inputs_of(), test_rows=20).test) == 20


@pytest.mark.parametrize("mechanism", ["mcar", "depends_on_features", "depends_on_value"])
def test_gaps_hide_the_share_and_nothing_else(mechanism: str) -> None:
    split = iris(inputs_of())
    encoder = Encoder.of(split.train)
    gaps = split.gaps(encoder, mechanism, 0.5, 2, np.random.default_rng(0))  # type: ignore[arg-type]
    assert (gaps.table.isna().sum(axis=1) == 2).all()
    assert gaps.copies.shape == (2 * 105, 4)
    whole = encoder(split.test)
    known = ~np.isnan(gaps.encoded)
    np.testing.assert_array_equal(gaps.encoded[known], whole[known])
    np.testing.assert_array_equal(known, gaps.table.notna())
    own = ~np.isnan(gaps.copies)
    np.testing.assert_array_equal(gaps.copies[own], np.tile(encoder(split.train), (2, 1))[own])
    if mechanism == "depends_on_value":  # higher values hide more often
        hidden = np.where(known, np.nan, whole)
        assert np.nanmean(hidden) > np.nanmean(np.where(known, whole, np.nan))


def test_jobs_measure_each_method_and_the_stability_of_one() -> None:
    found = compare_expectations(
        inputs_of().dataset("iris"),
        "regression",
        ["mcar"],
        [0.25],
        ["expected", "native", "mean", "indicators"],
        train_rows=80,
        test_rows=30,
        copies=1,
        seed=1,
    )
    results = {one["method"]: one for one in found["results"]}  # type: ignore[index, union-attr]
    assert set(results) == {"expected", "mean", "indicators"}  # a regression takes no NaN
    assert {name for name, one in results.items() if "stated" in one} == {"expected"}
    assert 0.5 < results["expected"]["kept"] <= 1
    assert results["expected"]["sure_kept"] <= results["expected"]["sure"] <= 30


def test_a_classifier_is_trained_with_gaps_where_a_column_has_no_value_left() -> None:
    split = iris(inputs_of())
    fitted = Fitted(CLASSIFIERS["boosting"].make(), Encoder.of(split.train), split.train, split.train_labels, 0)
    gaps = split.gaps(fitted.encoder, "mcar", 0.5, 1, np.random.default_rng(0))
    gaps.copies[:, 3] = np.nan
    probabilities = METHODS["masks"].run(fitted, gaps)
    assert probabilities.shape == (45, 3)
    assert (probabilities.argmax(axis=1) == split.test_labels).mean() > 0.5


def test_what_methods_learn_they_learn_once() -> None:
    split = iris(inputs_of())
    encoder = Encoder.of(split.train)
    fitted = Fitted(None, encoder, split.train, split.train_labels, 0)
    rows = np.full((2, 4), np.nan)
    np.testing.assert_allclose(fitted.filled("mean", rows), 0, atol=1e-12)
    kept = fitted.imputers["mean"]
    fitted.filled("mean", rows)
    assert fitted.imputers["mean"] is kept


def test_leads_are_paired_and_lost_beyond_a_standard_error() -> None:
    ours, theirs = pd.Series([0.5, 0.7, 0.9]), pd.Series([0.4, 0.6, 0.8])
    lead = Lead(("iris", "forest", "mcar", 0.5), "knn", "log_loss", ours, theirs)
    assert lead.verdict == "worse"
    assert dataclasses.replace(lead, measure="accuracy").verdict == "better"
    noisy = dataclasses.replace(lead, theirs=pd.Series([0.2, 1.2, 0.6]))
    assert noisy.verdict == "even"
    assert lead.line[-2] == pytest.approx(0.0, abs=1e-12)


def settings(methods: list[str]) -> ExpectedPredictions:
    return ExpectedPredictions(
        datasets=["iris"], classifiers=["forest"], mechanism=["mcar"], missing=[0.5], methods=methods
    )


def results(*, kept: float, share: float = 0.5) -> pd.DataFrame:
    """Return a row for a job with two methods, of which the expectation has half the log loss."""
    place = {"mechanism": "mcar", "missing": share, "accuracy": 0.9, "calibration": 0.1, "seconds": 0.1}
    stable = {"stated": 0.9, "kept": kept, "sure": 10, "sure_kept": 10}
    methods = [place | {"method": "expected", "log_loss": 0.2} | stable, place | {"method": "knn", "log_loss": 0.4}]
    labels = {"dataset": "iris", "split": 0, "classifier": "forest", "status": "ok", "job": "j"}
    return pd.DataFrame([labels | {"n_train": 9, "n_test": 9, "results": methods}])


@pytest.mark.parametrize(("kept", "verdict"), [(0.9, "holds"), (0.8, "does not hold")])
def test_claims_are_judged_by_the_results(kept: float, verdict: str) -> None:
    experiment = settings(["expected", "knn"])
    outcome = experiment.outcome(results(kept=kept))
    (claims,) = [table.frame for table in outcome.tables if table.name == "claims"]
    assert claims["verdict"].tolist() == ["open", "holds", verdict, "holds"]  # nothing took NaN by itself
    assert claims["claim"].iloc[2].startswith("cells whose mean stated stability")
    (summary,) = [table.frame for table in outcome.tables if not table.name]
    assert summary.set_index("measure").loc["log loss", ["better", "even", "worse"]].tolist() == [1, 0, 0]


def test_the_expectation_is_always_among_the_methods() -> None:
    with pytest.raises(ValueError, match="methods must have expected"):
        settings(["knn"])
