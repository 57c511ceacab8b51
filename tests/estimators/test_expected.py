"""What to expect of any classifier where values are missing, and whether its decision would stay."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import trimbench as tb
from trimbench.estimators import ExpectedClassifier, NaiveConformantClassifier, UnseenGapsWarning
from trimbench.estimators.densities.products import ProductMixture
from trimbench.networks.discretize import UnknownValuesWarning

LOGISTIC = LogisticRegression(max_iter=2000)
CLASSIFIERS = [
    AdaBoostClassifier(n_estimators=10, random_state=0),
    BaggingClassifier(random_state=0),
    CalibratedClassifierCV(LinearSVC(), cv=2),
    DecisionTreeClassifier(random_state=0),
    ExtraTreeClassifier(random_state=0),
    ExtraTreesClassifier(10, random_state=0),
    GaussianNB(),
    GaussianProcessClassifier(random_state=0),
    GradientBoostingClassifier(n_estimators=10, random_state=0),
    HistGradientBoostingClassifier(max_iter=10, random_state=0),
    KNeighborsClassifier(),
    LinearDiscriminantAnalysis(),
    LOGISTIC,
    MLPClassifier((8,), max_iter=20, random_state=0),
    OneVsRestClassifier(LOGISTIC),
    QuadraticDiscriminantAnalysis(reg_param=0.1),
    RandomForestClassifier(10, random_state=0),
    SGDClassifier(loss="log_loss", random_state=0),
    StackingClassifier([("nb", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))], cv=2),
    VotingClassifier([("nb", GaussianNB()), ("lr", LOGISTIC)], voting="soft"),
    make_pipeline(StandardScaler(), LOGISTIC),
    make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), LOGISTIC),
    make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((8,), max_iter=20, random_state=0)),
]


def hidden(X: Any, share: float, seed: int = 0) -> Any:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c[-1] if hasattr(c, "steps") else c).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_row_without_gaps_gets_the_classifiers_own_answer_bit_for_bit(classifier: Any) -> None:
    X, y = load_wine(return_X_y=True)
    fitted = clone(classifier).fit(X, y)
    expected = tb.expect(fitted, X, density="neighbours", n_draws=8)
    assert (expected.predict_proba(X) == fitted.predict_proba(X)).all()
    assert (expected.predict(X) == fitted.predict(X)).all()
    # Among rows with gaps, too.
    mixed, whole = hidden(X, 0.5), np.arange(0, len(X), 2)
    mixed[whole] = X[whole]
    probabilities, errors = expected.predict_proba(mixed, return_std=True)
    assert (probabilities[whole] == fitted.predict_proba(X[whole])).all()
    assert (expected.predict(mixed)[whole] == fitted.predict(X[whole])).all()
    assert not errors[whole].any()
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(X)))
    # Fitted by itself, it is the same classifier.
    own = ExpectedClassifier(classifier, density="neighbours").fit(X, y)
    assert (own.predict_proba(X) == fitted.predict_proba(X)).all()


def test_draws_come_close_to_the_exact_expectation_within_their_standard_errors() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    rows = hidden(X[:60], 0.5)
    exact = tb.expect(forest, X, density="products")
    assert exact.is_exact_
    probabilities, errors = exact.predict_proba(rows, return_std=True)
    assert not errors.any()
    # A pipeline hides the forest, whose expectation is then drawn.
    unscaled = StandardScaler(with_mean=False, with_std=False).fit(X)
    drawn = tb.expect(make_pipeline(unscaled, forest), X, "products")
    assert not drawn.is_exact_
    close, of_draws = drawn.predict_proba(rows, return_std=True)
    assert of_draws.max() < 0.02
    assert (np.abs(close - probabilities) < 4 * of_draws + 0.01).all()


@pytest.mark.parametrize(
    "density",
    ["products", "gaussian", "neighbours", ProductMixture(2)],
    ids=["products", "gaussian", "neighbours", "own"],
)
def test_expectations_are_better_than_means_in_the_gaps(density: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, tested, y, labels = X[:400], X[400:], y[:400], y[400:]
    fitted = make_pipeline(StandardScaler(), LOGISTIC).fit(X, y)
    rows = hidden(tested, 0.7)
    expected = tb.expect(fitted, X, density)
    filled = np.where(np.isnan(rows), X.mean(axis=0), rows)

    def loss(probabilities: Any) -> float:
        return float(-np.log(np.clip(probabilities[np.arange(len(labels)), labels], 1e-6, 1)).mean())

    assert loss(expected.predict_proba(rows)) < loss(fitted.predict_proba(filled))


def test_the_density_is_chosen_by_the_classifiers_own_answers() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    expected = tb.expect(make_pipeline(StandardScaler(), LOGISTIC).fit(X, y), X)
    scores = expected.density_scores_
    assert {score.name.split(",")[0] for score in scores} == {"products", "gaussian", "neighbours"}
    assert scores[0].excess == 0
    # What is simpler and within one standard error is taken.
    assert all(score.excess >= -score.standard_error for score in scores)
    assert scores[0].name.startswith(type(expected.density_).__name__.lower()[:7])


def test_what_a_row_gets_depends_neither_on_other_rows_nor_on_threads() -> None:
    X, y = load_iris(return_X_y=True)
    rows = hidden(np.tile(X, (40, 1)), 0.4)
    one, two = (tb.expect(LOGISTIC.fit(X, y), X, "neighbours", n_jobs=n_jobs) for n_jobs in (None, 2))
    together = one.predict_proba(rows)
    assert one.predict_proba(rows[:7]) == pytest.approx(together[:7], abs=1e-12)
    assert one.predict_proba(rows[[77]]) == pytest.approx(together[[77]], abs=1e-12)
    assert two.predict_proba(rows) == pytest.approx(together, abs=1e-12)
    assert (one.predict_proba(rows) == together).all()
    assert (pickle.loads(pickle.dumps(one)).predict_proba(rows[:20]) == one.predict_proba(rows[:20])).all()


def test_stability_is_the_share_of_completions_and_is_calibrated() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    fitted = RandomForestClassifier(30, random_state=0).fit(X[:300], y[:300])
    expected = tb.expect(fitted, X[:300])
    rows = hidden(X[300:], 0.6)
    with pytest.warns(UnseenGapsWarning, match="had no gaps"):
        stability = expected.decision_stability(rows)
    assert (stability.decision == expected.predict(rows)).all()
    assert ((stability.lower <= stability.probability) & (stability.probability <= stability.upper)).all()
    kept = stability.decision == fitted.predict(X[300:])
    assert abs(stability.probability.mean() - kept.mean()) < 0.03
    assert kept[stability.probability >= 0.99].mean() > 0.985
    whole = expected.decision_stability(X[300:])
    assert (whole.probability == 1).all()
    assert (whole.lower == 1).all()
    assert (whole.decision == fitted.predict(X[300:])).all()


def test_gaps_that_training_never_had_are_warned_of() -> None:
    X, y = load_iris(return_X_y=True)
    taught = X.copy()
    taught[:50, 2] = np.nan
    expected = tb.expect(LOGISTIC.fit(X, y), taught, "neighbours")
    row = np.array([[5.0, 3.0, np.nan, 0.2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected.decision_stability(row)
    with pytest.warns(UnseenGapsWarning, match=r"missing in \['x3'\], but the training rows had none in"):
        expected.decision_stability(np.array([[5.0, 3.0, np.nan, np.nan]]))


def mixed_table(n_rows: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n_rows)
    frame = pd.DataFrame(
        {
            "age": age,
            "weight": 50 + 0.4 * age + rng.normal(0, 8, n_rows),
            "town": rng.choice(["Basel", "Bern", "Genf"], n_rows),
            "smoker": pd.Categorical(np.where(age + rng.normal(0, 20, n_rows) > 50, "yes", "no")),
            "insured": rng.random(n_rows) < 0.7,
        }
    )
    return frame, (age + 20 * (frame["smoker"] == "yes") > 60).to_numpy()


ONE_HOT = OneHotEncoder(handle_unknown="ignore")
MIXED = make_pipeline(
    make_column_transformer((ONE_HOT, ["town", "smoker"]), remainder=StandardScaler()), LogisticRegression()
)


@pytest.mark.parametrize("density", ["auto", "products", "gaussian", "neighbours"])
def test_a_table_of_every_kind_of_column_with_every_kind_of_gap(density: str) -> None:
    X, y = mixed_table(300)
    fitted = clone(MIXED).fit(X, y)
    expected = tb.expect(fitted, X, density)
    assert (expected.predict_proba(X) == fitted.predict_proba(X)).all()
    rows = X.iloc[:6].copy()
    plain = rows.astype(object)
    plain.iloc[0, 0] = None
    plain.iloc[1, 2] = np.nan
    plain.iloc[2, 3] = pd.NA
    plain.iloc[3, 1:] = None
    nullable = rows.astype({"age": "Int64", "weight": "Float64", "town": "string", "insured": "boolean"})
    for row, columns in enumerate(([0], [2], [3], [1, 2, 3, 4])):
        for column in columns:
            nullable.iloc[row, column] = pd.NA
    for table in (plain, nullable):
        probabilities = expected.predict_proba(table)
        assert probabilities == pytest.approx(expected.predict_proba(plain))
        assert (probabilities[4:] == fitted.predict_proba(X.iloc[4:6])).all()
    # The column that the classifier hardly depends on changes little, the one that decides much.
    own = fitted.predict_proba(rows)
    assert np.abs(expected.predict_proba(plain) - own)[1].max() < 0.2


def test_training_rows_with_gaps_are_completed_for_a_classifier_that_takes_none() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    taught = hidden(X[:400], 0.2)
    classifier = make_pipeline(StandardScaler(), LOGISTIC)
    completed = ExpectedClassifier(classifier, random_state=0).fit(taught, y[:400])
    assert completed.estimator_.n_features_in_ == 30
    rows = hidden(X[400:], 0.3)
    assert completed.score(rows, y[400:]) > 0.9
    native = ExpectedClassifier(HistGradientBoostingClassifier(max_iter=20), "gaussian").fit(taught, y[:400])
    assert native.score(rows, y[400:]) > 0.9
    frame, labels = mixed_table(200)
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    assert ExpectedClassifier(MIXED, random_state=0).fit(frame, labels).score(frame, labels) > 0.75


def test_a_classifier_in_a_search_and_a_frozen_one() -> None:
    X, y = load_iris(return_X_y=True)
    rows = hidden(X, 0.2)
    scores = cross_val_score(ExpectedClassifier(DecisionTreeClassifier(random_state=0), "products"), rows, y, cv=3)
    assert scores.mean() > 0.8
    frozen = FrozenEstimator(LOGISTIC.fit(X, y))
    again = clone(ExpectedClassifier(frozen, "neighbours", random_state=0))
    assert (again.fit(X).estimator_.coef_ == LOGISTIC.coef_).all()
    assert (again.fit(X, None).predict_proba(X) == LOGISTIC.predict_proba(X)).all()


def test_metadata_reaches_the_classifier() -> None:
    X, y = load_iris(return_X_y=True)
    weights = np.where(y == 0, 5.0, 1.0)
    direct = LogisticRegression(max_iter=2000).fit(X, y, sample_weight=weights)
    plain = ExpectedClassifier(LogisticRegression(max_iter=2000), "products").fit(X, y, sample_weight=weights)
    assert (plain.estimator_.coef_ == direct.coef_).all()
    with sklearn.config_context(enable_metadata_routing=True):
        asked = LogisticRegression(max_iter=2000).set_fit_request(sample_weight=True)
        routed = ExpectedClassifier(asked, "products").fit(X, y, sample_weight=weights)
        assert (routed.estimator_.coef_ == direct.coef_).all()
        with pytest.raises(ValueError, match="sample_weight"):
            ExpectedClassifier(LogisticRegression(), "products").fit(X, y, sample_weight=weights)
    gaps = hidden(X, 0.1)
    assert (
        ExpectedClassifier(LogisticRegression(max_iter=2000)).fit(gaps, y, sample_weight=weights).score(gaps, y) > 0.8
    )


def test_a_classifier_without_probabilities_has_shares_of_decisions() -> None:
    X, y = load_iris(return_X_y=True)
    fitted = LinearSVC().fit(X, y)
    with pytest.warns(UserWarning, match="LinearSVC has no predict_proba: the probabilities are shares"):
        expected = tb.expect(fitted, X, "neighbours", n_draws=50)
    assert (expected.predict_proba(X) == np.eye(3)[fitted.predict(X)]).all()
    shares = expected.predict_proba(hidden(X, 0.5))
    assert (np.abs(shares * 50 - np.rint(shares * 50)) < 1e-9).all()


def test_a_classifier_that_does_not_decide_by_its_largest_probability() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    inner = make_pipeline(StandardScaler(), LOGISTIC)
    fitted = FixedThresholdClassifier(inner, threshold=0.97, response_method="predict_proba").fit(X, y)
    expected = tb.expect(fitted, X, "gaussian", n_draws=100)
    rows = hidden(X[:100], 0.5)
    with pytest.warns(UnseenGapsWarning):
        stability = expected.decision_stability(rows)
    assert (stability.decision == expected.predict(rows)).all()
    assert (stability.probability >= 0.5).all()
    assert (expected.predict(rows) != expected.predict_proba(rows).argmax(axis=1)).any()


def test_a_row_of_nothing_gets_the_mean_over_all_rows() -> None:
    X, y = load_iris(return_X_y=True)
    expected = tb.expect(LOGISTIC.fit(X, y), X, n_draws=400)
    prior = expected.predict_proba(np.full((2, 4), np.nan))
    assert prior[0] == pytest.approx(LOGISTIC.predict_proba(X).mean(axis=0), abs=0.03)


def test_values_that_training_never_had_are_warned_of() -> None:
    X, y = mixed_table(200)
    expected = tb.expect(clone(MIXED).fit(X, y), X, "products")
    rows = X.iloc[:3].astype({"town": object, "weight": float}).copy()
    rows.loc[:, "town"] = "Chur"
    rows.loc[0, "weight"] = np.nan
    with pytest.warns(UnknownValuesWarning, match="'town'"):
        expected.predict_proba(rows)
    rows = X.iloc[:3].astype({"age": float}).copy()
    rows.loc[0, "weight"] = 80_000.0
    rows.loc[0, "age"] = np.nan
    with pytest.warns(
        UnknownValuesWarning, match=r"'weight' has numbers far outside .* such as 80000.*check the units"
    ):
        expected.predict_proba(rows)


class Unnormalised(ClassifierMixin, BaseEstimator):
    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), len(self.classes_)), 0.7)

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


def test_bad_input_is_said_in_one_sentence() -> None:
    X, y = load_iris(return_X_y=True)
    fitted = LogisticRegression(max_iter=2000).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = LogisticRegression(max_iter=2000).fit(frame, y)
    cases: list[tuple[str, Any]] = [
        ("fitted must be a fitted classifier", lambda: tb.expect(LogisticRegression(), X)),
        ("estimator must be a classifier", lambda: ExpectedClassifier(StandardScaler()).fit(X, y)),
        ("density must be one of auto, products", lambda: tb.expect(fitted, X, "kde")),
        ("n_draws must be 'auto' or a whole number", lambda: tb.expect(fitted, X, n_draws=0.5)),
        ("n_jobs must be None or a whole number", lambda: tb.expect(fitted, X, n_jobs=0)),
        ("X must have the 4 columns that estimator was fitted to", lambda: tb.expect(fitted, X[:, :3])),
        ("The feature names should match", lambda: tb.expect(named, frame).predict(frame.rename(columns={"a": "e"}))),
        ("3 features", lambda: tb.expect(fitted, X).predict(X[:, :3])),
        ("must have a value in each column, got none in column 'x1'", lambda: tb.expect(fitted, X * [1, np.nan, 1, 1])),
        ("needs more rows than columns of numbers", lambda: tb.expect(fitted, X[:4], "gaussian")),
        ("must give each row probabilities that sum to 1", lambda: tb.expect(Unnormalised().fit(X, y), X)),
        ("infinity", lambda: tb.expect(fitted, X).predict([[1.0, np.inf, np.nan, 1.0]])),
        ("one output", lambda: tb.expect(DecisionTreeClassifier().fit(X, np.column_stack([y, y])), X)),
        ("text", lambda: tb.expect(fitted, X).predict([["a", 1.0, None, 1.0]])),
    ]
    for message, call in cases:
        with pytest.raises(ValueError) as caught:
            call()
        said = str(caught.value)
        assert message in said or message == "text", said
        assert len(said) < 500


def test_few_rows_and_odd_columns() -> None:
    X, y = load_iris(return_X_y=True)
    fitted = LOGISTIC.fit(X, y)
    for n_rows in (1, 3, 12, 25):
        expected = tb.expect(fitted, X[:: len(X) // n_rows])
        assert expected.predict_proba(hidden(X, 0.4)).sum(axis=1) == pytest.approx(np.ones(len(X)))
    odd = np.column_stack([X, np.ones(len(X)), np.arange(len(X)) % 2, np.where(X[:, 0] > 6, X[:, 0], 0.0)])
    for density in ("products", "gaussian", "neighbours"):
        expected = tb.expect(LogisticRegression(max_iter=2000).fit(odd, y), odd, density)
        assert np.isfinite(expected.predict_proba(hidden(odd, 0.4))).all()


def test_ordinals_and_text_alone() -> None:
    rng = np.random.default_rng(0)
    size = rng.choice(["small", "middle", "large"], 200)
    colour = np.where(rng.random(200) < 0.8, np.where(size == "large", "red", "blue"), "green")
    X = pd.DataFrame({"size": size, "colour": colour})
    y = size == "large"
    fitted = make_pipeline(OrdinalEncoder(), DecisionTreeClassifier(random_state=0)).fit(X, y)
    expected = tb.expect(fitted, X, random_state=1)
    rows = pd.DataFrame({"size": [None, None, "small"], "colour": ["red", "blue", None]})
    probabilities = expected.predict_proba(rows)
    assert probabilities[0, 1] > 0.8
    assert probabilities[1, 1] < 0.2
    assert probabilities[2, 1] == 0


def test_a_conformant_classifier_states_how_likely_its_classes_stay() -> None:
    X, y = mixed_table(200)
    fitted = NaiveConformantClassifier().fit(X, y)
    rows = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.4)
    stays = fitted.same_decision_probability(rows)
    low, high = fitted.same_decision_probability(rows, interval=True)
    assert ((low <= stays) & (stays <= high)).all()
    assert (high - low).max() < 5e-3
    assert (stays[~rows.isna().any(axis=1)] == 1).all()
    assert abs(stays.mean() - (fitted.predict(rows) == fitted.predict(X)).mean()) < 0.06
