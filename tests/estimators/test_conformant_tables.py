"""The conformant classifier on tables as users have them: text, categories, sparse rows, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from trimbench.estimators import IdentifierColumnWarning, MissingAsZerosWarning, NaiveConformantClassifier
from trimbench.estimators.columns import one_hot_groups
from trimbench.networks.discretize import UnknownValuesWarning


def people(seed: int = 0, n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["female", "male"], n),
            "town": pd.Categorical(rng.choice(["Aachen", "Bonn", "Cologne"], n)),
            "member": rng.random(n) < 0.4,
            "age": rng.integers(18, 90, n),
            "rooms": rng.integers(1, 4, n),
        }
    )
    score = (frame["sex"] == "male") + (frame["town"] == "Bonn") + 0.03 * frame["age"] + frame["rooms"] % 2
    return frame, np.where(score + rng.normal(size=n) > 3, "yes", "no")


def encoded_by_scikit_learn(frame: pd.DataFrame) -> np.ndarray:
    text = OneHotEncoder(sparse_output=False).fit_transform(frame[["sex", "town"]])
    numbers = StandardScaler().fit_transform(frame[["age", "rooms"]])
    return np.hstack([text, frame[["member"]].to_numpy(dtype=float), numbers])


def test_text_categories_and_truth_values_by_dtype() -> None:
    X, y = people()
    classifier = NaiveConformantClassifier().fit(X, y)
    assert classifier.get_feature_names_out().tolist() == [
        *["sex_female", "sex_male", "town_Aachen", "town_Bonn", "town_Cologne", "member", "age", "rooms"]
    ]
    rows = encoded_by_scikit_learn(X)
    expected = LogisticRegression(tol=1e-10, solver="newton-cg").fit(rows, y).predict_proba(rows)
    np.testing.assert_allclose(classifier.predict_proba(X), expected, atol=1e-7)
    assert classifier.feature_names_in_.tolist() == list(X)
    nothing = pd.DataFrame({name: [None] for name in X})
    np.testing.assert_allclose(classifier.predict_proba(nothing)[0], np.exp(classifier.model_.log_prior), atol=1e-12)


@pytest.mark.parametrize("given", [["sex", "rooms"], [0, 4], [True, False, False, False, True], np.array([0, 4])])
def test_categorical_features_by_name_position_and_mask(given: Any) -> None:
    X, y = people()
    classifier = NaiveConformantClassifier(categorical_features=given).fit(X, y)
    assert classifier.get_feature_names_out().tolist()[-3:] == ["rooms_1", "rooms_2", "rooms_3"]
    assert len(classifier.model_.layout.categorical) == 3
    by_dtype = X.assign(rooms=pd.Categorical(X["rooms"]))
    expected = NaiveConformantClassifier(categorical_features="from_dtype").fit(by_dtype, y)
    np.testing.assert_array_equal(expected.predict_proba(by_dtype), classifier.predict_proba(X))


def test_arrays_of_text_and_extension_types() -> None:
    X, y = people()
    expected = NaiveConformantClassifier().fit(X, y).predict_proba(X)
    objects = X.astype(object).to_numpy()
    np.testing.assert_array_equal(NaiveConformantClassifier().fit(objects, y).predict_proba(objects), expected)
    types = {"sex": "string", "town": "string", "member": "boolean", "age": "Int64", "rooms": "Float32"}
    typed = X.astype(types)
    np.testing.assert_array_equal(NaiveConformantClassifier().fit(typed, y).predict_proba(typed), expected)
    text = X[["sex"]].to_numpy().astype(str)
    assert NaiveConformantClassifier().fit(text, y).model_.layout.categorical == ((0, 1),)


def test_missing_and_unknown_categories() -> None:
    X, y = people()
    classifier = NaiveConformantClassifier().fit(X, y)
    rows = X.iloc[:3].astype(object)
    rows["sex"] = ["diverse", None, np.nan]
    rows.loc[:, ["town", "member", "age", "rooms"]] = X.iloc[[0, 0, 0], 1:].astype(object).to_numpy()
    first, second, third = classifier.predict_proba(rows)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


class Series:
    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def to_numpy(self) -> np.ndarray:
        return self._values


class PolarsLike:
    """What the estimator uses of a data frame of polars, which gives text with gaps as objects with None."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame, self.columns, self.shape = frame, list(frame), frame.shape

    def __len__(self) -> int:
        return len(self._frame)

    def get_column(self, name: str) -> Series:
        values = self._frame[name]
        plain = values.astype(object).where(values.notna(), None) if values.dtype.kind not in "ifb" else values
        return Series(plain.to_numpy())


class LazyFrame:
    def collect(self) -> PolarsLike:
        return PolarsLike(people()[0])

    def collect_schema(self) -> None:
        """Say that it is one."""


def test_a_lazy_frame_is_refused() -> None:
    with pytest.raises(ValueError, match=r"X must be a data frame with rows, got a LazyFrame; use X.collect\(\)"):
        NaiveConformantClassifier().fit(LazyFrame(), people()[1])


def test_data_frames_of_polars() -> None:
    X, y = people()
    expected = NaiveConformantClassifier().fit(X, y)
    classifier = NaiveConformantClassifier().fit(PolarsLike(X), y)
    np.testing.assert_array_equal(classifier.predict_proba(PolarsLike(X)), expected.predict_proba(X))
    assert classifier.feature_names_in_.tolist() == list(X)
    gaps = X.assign(sex=X["sex"].where(X["sex"] == "male", None))
    np.testing.assert_array_equal(classifier.predict_proba(PolarsLike(gaps)), expected.predict_proba(gaps))


def test_sparse_one_hot_rows() -> None:
    X, y = people()
    encoder = OneHotEncoder(handle_unknown="ignore").fit(X[["sex", "town"]])
    rows = encoder.transform(X[["sex", "town"]])
    dense = NaiveConformantClassifier().fit(rows.toarray(), y)
    for sparse in (csr_matrix(rows), csr_array(rows)):
        classifier = NaiveConformantClassifier().fit(sparse, y)
        np.testing.assert_array_equal(classifier.predict_proba(sparse), dense.predict_proba(rows.toarray()))
    gaps = encoder.transform(X[["sex", "town"]].assign(sex="?"))
    message = (
        r"300 of 300 rows have 0 in all of the columns x0, x1, of which .* exactly one 1; if an encoder made zeros"
    )
    with pytest.warns(MissingAsZerosWarning, match=message) as told:
        classifier.predict(gaps)
    assert told[0].filename == __file__


def test_zeros_in_place_of_missing_categories() -> None:
    X, y = people()
    gaps = X.assign(town=X["town"].where(np.arange(len(X)) >= 10))
    dummies = pd.get_dummies(gaps[["town", "age"]])
    with pytest.warns(
        MissingAsZerosWarning, match="10 of 300 rows have 0 in all of the columns town_Aachen, town_Bonn"
    ):
        NaiveConformantClassifier().fit(dummies, y)
    dropped = OneHotEncoder(drop="first", sparse_output=False).fit_transform(X[["town"]])
    NaiveConformantClassifier().fit(dropped, y)  # which lacks a category, no value


def test_groups_of_one_hot_columns() -> None:
    rng = np.random.default_rng(0)
    first, second = np.eye(3)[rng.integers(0, 3, 100)], np.eye(4)[rng.integers(0, 4, 100)]
    rows = np.hstack([first, rng.normal(size=(100, 1)), second, rng.integers(0, 2, (100, 3))])
    binary = np.array([0, 1, 2, 4, 5, 6, 7, 8, 9, 10])
    assert [group.tolist() for group in one_hot_groups(rows, binary, np.ones(100))] == [[0, 1, 2], [4, 5, 6, 7]]
    assert one_hot_groups(rows[:10], binary, np.ones(10)) == []
    assert len(one_hot_groups(rows[:10], binary, np.full(10, 2.0))) == 2  # as twenty rows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logarithms_and_decisions(n_classes: int) -> None:
    X, y = people()
    labels = y if n_classes == 2 else np.where(X["age"] > 70, "old", y)
    classifier = NaiveConformantClassifier(n_components=2).fit(X, labels)
    gaps = X.mask(np.random.default_rng(0).random(X.shape) < 0.3)
    probabilities = classifier.predict_proba(gaps)
    np.testing.assert_allclose(classifier.predict_log_proba(gaps), np.log(probabilities), atol=1e-12)
    decisions = classifier.decision_function(gaps)
    if n_classes == 2:
        np.testing.assert_allclose(decisions, np.log(probabilities[:, 1] / probabilities[:, 0]), atol=1e-9)
        regression = classifier.logistic_regression_
        np.testing.assert_allclose(
            classifier.decision_function(X), regression.decision_function(classifier._encoded(X)), atol=1e-9
        )
    else:
        assert (classifier.classes_[decisions.argmax(axis=1)] == classifier.predict(gaps)).all()


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_weights_count_rows(n_components: int, has_gaps: bool) -> None:
    X, y = people()
    rows = X.mask(np.random.default_rng(1).random(X.shape) < 0.2) if has_gaps else X
    times = np.random.default_rng(2).integers(0, 3, len(X))
    weighted = NaiveConformantClassifier(n_components=n_components).fit(rows, y, sample_weight=times)
    places = np.repeat(np.arange(len(X)), times)
    repeated = NaiveConformantClassifier(n_components=n_components).fit(rows.iloc[places], y[places])
    gaps = X.mask(np.random.default_rng(3).random(X.shape) < 0.3)
    np.testing.assert_allclose(weighted.predict_proba(gaps), repeated.predict_proba(gaps), atol=1e-6)


def test_fractions_of_rows_need_complete_ones() -> None:
    X, y = people()
    halves = np.full(len(X), 0.5)
    NaiveConformantClassifier().fit(X, y, halves)
    with pytest.raises(ValueError, match="sample_weight must be whole numbers for rows with missing values"):
        NaiveConformantClassifier(n_components=2).fit(X, y, halves)


@pytest.mark.parametrize("has_gaps", [False, True])
def test_weights_of_classes(has_gaps: bool) -> None:
    X, y = people()
    chosen = (y == "no") | (np.arange(len(X)) % 3 == 0)
    X, y = X[chosen], y[chosen]
    rows = X.mask(np.random.default_rng(1).random(X.shape) < 0.1) if has_gaps else X
    rare = (y == "yes").mean()
    plain, balanced, given = (
        NaiveConformantClassifier(class_weight=weights).fit(rows, y)
        for weights in (None, "balanced", {"no": 0.5 / (1 - rare), "yes": 0.5 / rare})
    )
    assert (balanced.predict(X) == "yes").mean() > (plain.predict(X) == "yes").mean() + 0.05
    np.testing.assert_allclose(balanced.predict_proba(X), given.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mixed": ["a", 1] * 150}, "column 'mixed' must hold either text or numbers, got both, such as '1'"),
        ({"age": np.inf}, "column 'age' must be finite, got infinity; mark a missing value with NaN"),
    ],
)
def test_columns_that_are_refused(change: dict[str, Any], message: str) -> None:
    X, y = people()
    with pytest.raises(ValueError, match=message):
        NaiveConformantClassifier().fit(X.assign(**change), y)


def test_mixed_columns_can_be_categories() -> None:
    X, y = people()
    rows = X.assign(mixed=["a", 1] * 150)
    classifier = NaiveConformantClassifier(categorical_features=["mixed"]).fit(rows, y)
    assert classifier.get_feature_names_out()[-2:].tolist() == ["mixed_1", "mixed_a"]


def test_names_of_rows_are_left_out() -> None:
    X, y = people()
    rows = X.assign(name=[f"P. {i}" for i in range(len(X))])
    message = "column 'name' is left out: its 300 different values in 300 rows are names of rows, not categories"
    with pytest.warns(IdentifierColumnWarning, match=message):
        classifier = NaiveConformantClassifier().fit(rows, y)
    expected = NaiveConformantClassifier().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(classifier.predict_proba(rows.assign(name=None)), expected, atol=1e-12)
    named = NaiveConformantClassifier(categorical_features=["name"]).fit(rows, y)
    assert len(named.get_feature_names_out()) == 8 + 300


def test_rows_to_explain_are_known_by_their_names() -> None:
    X, y = people()
    classifier = NaiveConformantClassifier().fit(X, y)
    expected = classifier.explain(X.iloc[0]).evidence
    for row in (X.iloc[0][::-1], X.iloc[0].to_dict(), X.iloc[0].reset_index(drop=True), X.iloc[0].tolist()):
        explained = classifier.explain(row)
        np.testing.assert_array_equal(explained.evidence, expected)
        assert explained.predicted == classifier.predict(X.iloc[:1])[0]
        assert sorted(explained.support + explained.opposing) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"x must have the columns of the fit, got other ones, or not all: \['age'\]"):
        classifier.explain(X.iloc[0].drop("age"))
    with pytest.raises(ValueError, match=r"got shape \(1, 5\); use x.iloc\[0\]"):
        classifier.explain(X[:1])


def test_masked_values_are_missing() -> None:
    X, y = people()
    rows = X[["sex", "age"]].to_numpy(dtype=object)
    masked = np.ma.masked_array(rows, np.arange(600).reshape(300, 2) % 7 == 0)
    classifier = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(masked, y)
    assert classifier.get_feature_names_out().tolist() == ["x0_female", "x0_male", "x1"]
    assert classifier.explain(masked[0]).evidence[0] == 0
    assert classifier.explain(masked[1]).evidence[0] != 0


def test_values_of_binary_columns_and_groups_of_columns_are_named() -> None:
    X, y = people()
    rows = X.assign(member=X["member"].astype(float))
    fitted = NaiveConformantClassifier().fit(rows, y)
    with pytest.warns(UnknownValuesWarning, match=r"column 'member' has other numbers than the 0 and 1 .* as 2.0"):
        counted = fitted.predict_proba(rows.assign(member=2))
    np.testing.assert_array_equal(counted, fitted.predict_proba(rows.assign(member=1)))
    with pytest.raises(
        ValueError,
        match=r"categorical_features must be .*, got \[\[0, 1\], \[2, 3, 4\]\]; for columns that are one-hot",
    ):
        NaiveConformantClassifier(categorical_features=[[0, 1], [2, 3, 4]]).fit(X, y)
