"""The conformant classifier as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from trimbench.estimators import IncompleteRowsWarning, NaiveConformantClassifier


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


def test_a_complete_row_is_classified_by_the_logistic_regression() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2]).fit(X, y)
    encoded = classifier._encode(X)[0]
    assert encoded.shape[1] == 1 + 1 + 4 + 1
    np.testing.assert_allclose(
        classifier.predict_proba(X), classifier.logistic_regression_.predict_proba(encoded), atol=1e-13
    )
    assert classifier.model_.residual < 1e-10


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


def test_it_is_tuned_and_cross_validated() -> None:
    X, y = sample()
    assert cross_val_score(NaiveConformantClassifier(), X, y, cv=3).mean() > 0.5
    search = GridSearchCV(NaiveConformantClassifier(), {"inverse_penalty": [0.01, 1.0]}, cv=2).fit(X, y)
    assert clone(search.best_estimator_).get_params()["inverse_penalty"] in (0.01, 1.0)


def test_incomplete_training_rows_are_left_out() -> None:
    X, y = sample()
    gaps = np.vstack([X, np.where([True, False, False, False], np.nan, X[:20])])
    with pytest.warns(IncompleteRowsWarning, match="^20 of 420 training rows have missing values and were left out"):
        with_gaps = NaiveConformantClassifier().fit(gaps, np.concatenate([y, y[:20]]))
    np.testing.assert_array_equal(with_gaps.predict_proba(X), NaiveConformantClassifier().fit(X, y).predict_proba(X))


def test_explanations_are_columns() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2]).fit(X, y == "ant")
    explained = classifier.explain(X[0])
    assert set(explained.features) <= {0, 1, 2, 3}
    assert sorted(explained.support + explained.opposing) == [0, 1, 2, 3]


def test_explanations_hold_with_a_probability() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2]).fit(X, y == "ant")
    explained = classifier.explain(X[0], delta=0.9)
    assert explained.predicted == classifier.predict(X[:1])[0]
    assert set(explained.features) <= {0, 1, 2, 3}
    assert 0.9 <= explained.probability[0] <= explained.probability[1] <= 1
    assert explained.optimal


def test_explanations_name_classes_by_their_labels() -> None:
    X, y = sample()
    classifier = NaiveConformantClassifier(categorical_features=[2]).fit(X, y)
    for row, predicted in zip(X[:10], classifier.predict(X[:10]), strict=True):
        for other in set(classifier.classes_) - {predicted}:
            explained = classifier.explain(row, against=other)
            assert (explained.predicted, explained.against) == (predicted, other)
    with pytest.raises(ValueError, match=r"against must be one of \['.*', '.*'\], got 1 "):
        classifier.explain(X[0], against=1)
    with pytest.raises(ValueError, match=r"x must be one row of 4 values, got shape \(1, 4\)"):
        classifier.explain(X[:1], against="ant")
    with pytest.raises(ValueError, match="x must be finite"):
        classifier.explain([np.inf, 0, 0, 0], against="ant")


def test_predictions_and_explanations_agree_on_even_rows() -> None:
    X, _ = sample()
    classifier = NaiveConformantClassifier(inverse_penalty=1e-12).fit(X[:, 1:2], np.tile(["no", "yes"], 200))
    assert classifier.predict_proba([[np.nan]])[0] == pytest.approx([0.5, 0.5], abs=1e-9)
    for row in ([np.nan], [0.0], [1.0]):
        assert classifier.explain(row).predicted == classifier.predict([row])[0]


def test_data_frames_with_gaps() -> None:
    X, y = sample()
    rows = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
    classifier = NaiveConformantClassifier().fit(pd.DataFrame(X, columns=list("abcd")), y)
    frame = pd.DataFrame(rows, columns=list("abcd"))
    frame["c"] = frame["c"].astype("Int64").astype(object)
    assert frame["c"].isna().any()
    expected = NaiveConformantClassifier().fit(X, y).predict_proba(rows)
    np.testing.assert_array_equal(classifier.predict_proba(frame), expected)
    frame["c"] = frame["c"].astype("Int64")
    np.testing.assert_array_equal(classifier.predict_proba(frame), expected)
    assert classifier.explain(frame.iloc[0], against="bee" if classifier.predict(frame)[0] != "bee" else "ant")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric": "bins"}, "numeric must be one of gaussian, cut, got 'bins'"),
        ({"inverse_penalty": 0.0}, "inverse_penalty must be a positive number, got 0.0"),
        ({"solver": "simplex"}, "solver must be one of newton, gpkit, cvxpy"),
        ({"categorical_features": [9]}, "categorical_features must be from 0 to 3, got 9"),
        ({"categorical_features": 2}, r"must be a list of columns, got 2; write \[2\] for one column"),
        (
            {"categorical_features": [True, False, False, False]},
            "categorical_features must name columns by their position, a whole number, got True; np.flatnonzero gives",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NaiveConformantClassifier(**options).fit(*sample())


def test_bad_rows_are_refused() -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="y must have at least two classes among the complete rows, got one class"):
        NaiveConformantClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="X must have a row without missing values to learn from"):
        NaiveConformantClassifier().fit(X * np.nan, y)
    fitted = NaiveConformantClassifier(categorical_features=[2]).fit(X, y)
    message = r"column 2 must have one of the categories .*, or NaN, got .*7\.0.*; mark an unknown category with NaN"
    with pytest.raises(ValueError, match=message):
        fitted.predict([[0, 0, 7, 0]])
