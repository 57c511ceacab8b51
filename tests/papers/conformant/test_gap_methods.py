"""Methods for rows with gaps, each against a second way to compute what it says."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import BernoulliNB, GaussianNB

from trimbench.conformant.layout import FeatureLayout
from trimbench.papers.beyond.incomplete_methods import (
    METHODS,
    JointNormal,
    NotApplicableError,
    Training,
    fit_naive_bayes,
)

BINARY = [(0,), (1,), (2, 3, 4)]


def training(*, complete: bool = True) -> Training:
    """Return 120 flowers of Iris; the masked rows lack the first or the last two measurements."""
    table, labels = load_iris(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(table))[:120]
    rows, labels = ((table - table.mean(axis=0)) / table.std(axis=0))[chosen], labels[chosen].astype(np.int64)
    masked = rows.copy()
    masked[::2, :2], masked[1::2, 2:] = np.nan, np.nan
    columns = [(column,) for column in range(4)]
    layout = FeatureLayout.of(4, real=range(4))
    return Training(rows if complete else masked, labels, masked, 3, columns, True, 1.0, 1.0, 0, layout)


@pytest.mark.parametrize("complete", [True, False])
def test_every_method_predicts_each_row_alone(complete: bool) -> None:
    given = training(complete=complete)
    gaps = given.masked[:6]
    for name, method in METHODS.items():
        try:
            predict = method.fit(given)
        except NotApplicableError:
            assert name == "mean_indicators" if complete else name in ("trees", "masked_regression")
            continue
        together = predict(gaps)
        assert together.sum(axis=1) == pytest.approx(1.0), name
        assert (together.argmax(axis=1) == given.labels[:6]).mean() > 0.6, name
        alone = np.vstack([predict(gaps[[place]]) for place in range(6)])
        # Rounding decides which of several equally near neighbours count.
        assert alone == pytest.approx(together, abs=0.02 if name == "knn" else 1e-9), name


def test_a_class_that_no_training_row_has_keeps_its_column() -> None:
    every = training(complete=False)
    kept = every.labels != 1
    labels = every.labels[kept]
    given = dataclasses.replace(every, rows=every.rows[kept], labels=labels, masked=every.masked[kept])
    for name in ("mixture", "nacl", "mean", "normal", "patterns", "naive_bayes"):
        found = METHODS[name].fit(given)(given.masked)
        assert (found.argmax(axis=1) == labels).mean() > 0.9, name
        assert found[:, 1].max() < 0.05, name


def test_a_complete_row_gets_what_the_classifier_says() -> None:
    given = training()
    expected = given.classifier.predict_proba(given.rows)
    for name in ("mixture", "nacl", "mean", "knn", "iterative", "normal"):
        assert METHODS[name].fit(given)(given.rows) == pytest.approx(expected, abs=1e-9), name


def test_patterns_are_regressions_of_what_is_observed() -> None:
    given = training()
    predict = METHODS["patterns"].fit(given)
    of_pattern = given.regression(given.rows[:, 2:], given.labels).predict_proba(given.rows[:1, 2:])
    assert predict(given.masked[:1]) == pytest.approx(of_pattern * 120 / 121 + 1 / 363)
    unknown = given.rows[:1].copy()
    unknown[0, 0] = np.nan
    assert predict(unknown) == pytest.approx(np.bincount(given.labels)[None] / 120), "no such rows were seen"


def test_the_normal_expectation_is_the_integral() -> None:
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(3, 3))
    normal = JointNormal.of(rng.normal(size=(500, 3)) @ mixing)
    classifier = SimpleNamespace(coef_=np.array([[1.0, -2.0, 0.5]]), intercept_=np.array([0.3]), classes_=np.arange(2))
    gaps = np.array([[0.4, np.nan, np.nan], [np.nan, 1.0, -1.0]])
    found = normal.expected_probabilities(classifier, gaps)[:, 1]
    filled = normal.fill(gaps)
    precision = np.linalg.inv(normal.covariance)
    for row, filled_row, probability in zip(gaps, filled, found, strict=True):
        missing = np.isnan(row)
        left = np.linalg.inv(precision[np.ix_(missing, missing)])
        shift = precision[np.ix_(missing, ~missing)] @ (row - normal.means)[~missing]
        mean = normal.means[missing] - left @ shift
        assert filled_row[missing] == pytest.approx(mean)
        drawn = np.random.default_rng(2).multivariate_normal(mean, left, 100_000)
        scores = 0.3 + drawn @ classifier.coef_[0, missing] + row[~missing] @ classifier.coef_[0, ~missing]
        assert probability == pytest.approx(np.mean(1 / (1 + np.exp(-scores))), abs=0.03)


def test_moments_of_incomplete_rows_come_close() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 4)) + 2.0
    whole = JointNormal.of(rows)
    part = JointNormal.of(np.where(rng.random(rows.shape) < 0.3, np.nan, rows))
    assert part.means == pytest.approx(whole.means, abs=0.15)
    assert part.covariance == pytest.approx(whole.covariance, abs=0.1 * whole.covariance.max())
    assert np.linalg.eigvalsh(part.covariance).min() > 0


def test_naive_bayes_is_that_of_scikit_learn_and_sums_over_what_is_missing() -> None:
    rng = np.random.default_rng(5)
    rows = np.hstack([rng.integers(0, 2, (200, 2)), np.eye(3)[rng.integers(0, 3, 200)]]).astype(float)
    labels = (rows[:, 0] + rng.random(200) > 0.8).astype(np.int64)
    predict = fit_naive_bayes(rows[:, :2], labels, 2, BINARY[:2], False, 1.0)
    theirs = BernoulliNB(class_prior=(np.bincount(labels) + 1) / 202).fit(rows[:, :2], labels)
    assert predict(rows[:, :2]) == pytest.approx(theirs.predict_proba(rows[:, :2]))
    predict = fit_naive_bayes(rows, labels, 2, BINARY, False, 1.0)
    row = np.array([[1.0, np.nan, np.nan, np.nan, np.nan]])
    prior = (np.bincount(labels) + 1) / 202
    assert predict(np.full((1, 5), np.nan))[0] == pytest.approx(prior), "nothing observed leaves the prior"
    ones = np.array([(rows[labels == k, 0].sum() + 1) / ((labels == k).sum() + 2) for k in (0, 1)])
    assert predict(row)[0] == pytest.approx(prior * ones / (prior * ones).sum())
    shares = np.array([(rows[labels == k, 4].sum() + 1) / ((labels == k).sum() + 3) for k in (0, 1)])
    row[0, 2:] = 0.0, 0.0, 1.0
    assert predict(row)[0] == pytest.approx(prior * ones * shares / (prior * ones * shares).sum())


def test_gaussian_naive_bayes_is_that_of_scikit_learn() -> None:
    given = training()
    predict = fit_naive_bayes(given.rows, given.labels, 3, given.columns, True, 0.0)
    theirs = GaussianNB(var_smoothing=1e-3).fit(given.rows, given.labels)  # its columns have equal variances
    assert predict(given.rows) == pytest.approx(theirs.predict_proba(given.rows), abs=5e-3)
    part = given.rows.copy()
    part[:, 1:] = np.nan
    of_one = GaussianNB(var_smoothing=1e-3).fit(given.rows[:, :1], given.labels)
    assert predict(part) == pytest.approx(of_one.predict_proba(given.rows[:, :1]), abs=5e-3)
