"""The conformant classifier as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from trimbench.conformant.problem import solve_newton
from trimbench.estimators import NaiveConformantClassifier

# The naive Bayes model of the paper, whose evidence adds up.
PLAIN: Any = {"n_components": 1, "covariance": "diagonal"}


def sample(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 400)
    X = np.column_stack(
        [
            rng.normal(y, 1.0),
            rng.random(400) < 0.2 + 0.3 * (y == 1),
            (y + rng.integers(0, 2, 400)) % 4,
            rng.normal(size=400),
        ]
    ).astype(float)
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.mark.parametrize("numeric", ["gaussian", "cut"])
def test_missing_features_cost_accuracy_but_not_all_of_it(numeric: str) -> None:
    X, y = sample()
    train, test, truth = X[:300], X[300:], y[300:]
    classifier = NaiveConformantClassifier(categorical_features=[2], numeric=numeric).fit(train, y[:300])
    complete = (classifier.predict(test) == truth).mean()
    hidden = np.where(np.random.default_rng(1).random(test.shape) < 0.3, np.nan, test)
    partial = (classifier.predict(hidden) == truth).mean()
    assert complete > 0.6
    assert 0.45 < partial <= complete
    nothing = classifier.predict_proba(np.full((1, 4), np.nan))[0]
    np.testing.assert_allclose(nothing, [(y[:300] == label).mean() for label in classifier.classes_], atol=0.06)


@pytest.mark.parametrize("n_components", [1, "auto"])
def test_incomplete_training_rows_count(n_components: Any) -> None:
    X, y = sample()
    rng = np.random.default_rng(1)
    gaps = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    options: dict[str, Any] = {"categorical_features": [2], "n_components": n_components}
    complete = NaiveConformantClassifier(**options).fit(X, y)
    with_gaps = NaiveConformantClassifier(**options).fit(gaps, y)
    assert np.mean(with_gaps.predict(X) == y) > np.mean(complete.predict(X) == y) - 0.05
    encoded = with_gaps._encoded(X)
    expected = with_gaps.logistic_regression_.predict_proba(encoded)
    np.testing.assert_allclose(with_gaps.predict_proba(X), expected, rtol=0, atol=1e-14)
    few = NaiveConformantClassifier(**options).fit(np.vstack([gaps[:60], X[60:70]]), y[:70])
    alone = NaiveConformantClassifier(**options).fit(X[60:70], y[60:70])
    assert np.mean(few.predict(X) == y) > np.mean(alone.predict(X) == y)


def test_no_complete_row_is_needed() -> None:
    X, y = sample()
    X[np.arange(len(X)), np.arange(len(X)) % 4] = np.nan
    classifier = NaiveConformantClassifier(categorical_features=[2]).fit(X, y)
    assert np.mean(classifier.predict(X) == y) > 0.5


def test_a_category_of_incomplete_rows_alone() -> None:
    X, y = sample()
    X[0] = [np.nan, np.nan, 9.0, np.nan]
    classifier = NaiveConformantClassifier(categorical_features=[2]).fit(X, y)
    assert "x2_9" in classifier.get_feature_names_out()


def test_mixtures_of_complete_rows() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2], n_components=4, covariance="diagonal").fit(X, y)
    assert classifier.model_.n_components == 4
    single = NaiveConformantClassifier(categorical_features=[2]).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X), single.predict_proba(X), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="delta must be given to explain a model of 4 components"):
        classifier.explain(X[0])
    explained = classifier.explain(X[0], delta=0.9)
    assert explained.predicted == classifier.predict(X[:1])[0]
    assert 0.9 <= explained.probability[0] <= explained.probability[1] <= 1


@pytest.mark.parametrize("n_components", [1, 3])
def test_contrasts_are_columns_and_give_another_class(n_components: int) -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2], n_components=n_components).fit(X, y)
    for row in X[:5]:
        lost = classifier.contrast(row, by="loss")
        assert lost.predicted == classifier.predict([row])[0]
        hidden = row.copy()
        hidden[list(lost.features)] = np.nan
        assert (classifier.predict([hidden])[0] != lost.predicted) == bool(lost.features)
        changed = classifier.contrast(row)
        assert set(changed.features) <= {0, 1, 2, 3}
        assert classifier.model_.predict([changed.row])[0] != changed.predicted


def test_a_function_may_be_the_solver() -> None:
    X, y = sample()
    given, usual = (NaiveConformantClassifier(solver=one, n_components=1) for one in (solve_newton, "newton"))
    np.testing.assert_array_equal(clone(given).fit(X, y).predict_proba(X), usual.fit(X, y).predict_proba(X))
    assert usual.model_.residual < 1e-10


def test_explanations_are_columns() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2], **PLAIN).fit(X, y == "ant")
    explained = classifier.explain(X[0])
    assert set(explained.features) <= {0, 1, 2, 3}
    assert sorted(explained.support + explained.opposing) == [0, 1, 2, 3]
    likely = classifier.explain(X[0], delta=0.9)
    assert likely.predicted == explained.predicted == classifier.predict(X[:1])[0]
    assert set(likely.features) <= {0, 1, 2, 3}
    assert 0.9 <= likely.probability[0] <= likely.probability[1] <= 1
    assert likely.optimal


def test_explanations_name_classes_by_their_labels() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2], **PLAIN).fit(X, y)
    for row, predicted in zip(X[:10], classifier.predict(X[:10]), strict=True):
        for other in set(classifier.classes_) - {predicted}:
            explained = classifier.explain(row, against=other)
            assert (explained.predicted, explained.against) == (predicted, other)
    with pytest.raises(ValueError, match=r"against must be one of \['.*', '.*'\], got 1 "):
        classifier.explain(X[0], against=1)


def test_predictions_and_explanations_agree_on_even_rows() -> None:
    X, _ = sample()
    classifier = NaiveConformantClassifier(C=1e-12).fit(X[:, 1:2], np.tile(["no", "yes"], 200))
    assert classifier.predict_proba([[np.nan]])[0] == pytest.approx([0.5, 0.5], abs=1e-9)
    for row in ([np.nan], [0.0], [1.0]):
        assert classifier.explain(row).predicted == classifier.predict([row])[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric": "bins"}, "numeric must be one of gaussian, cut, got 'bins'"),
        ({"C": 0.0}, "C must be a positive number, got 0.0"),
        ({"categorical_features": [9]}, "categorical_features must have positions from 0 to 3, got 9"),
        ({"categorical_features": 2}, r"a list of names or positions of columns, got 2; write \[2\] for one column"),
        (
            {"categorical_features": [True, False]},
            "must have one truth value for each of the 4 columns, if it is a mask",
        ),
        ({"class_weight": "even"}, "class_weight"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NaiveConformantClassifier(**options).fit(*sample())


def test_bad_rows_are_refused() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="y must have at least two classes, got one class"):
        NaiveConformantClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="X must have a value in each column, got none in column 'x0'; leave it out"):
        NaiveConformantClassifier().fit(X * np.nan, y)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="solver must be 'newton' for rows with missing values, got solve_newton"):
        NaiveConformantClassifier(solver=solve_newton).fit(X, y)
