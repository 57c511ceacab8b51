"""`trim` and `conform` of fitted estimators and pipelines of scikit-learn: equal predictions, names that survive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import BernoulliNB, CategoricalNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import trimbench as tb
from tests.estimators.test_conformant_tables import people as persons
from trimbench.estimators import NaiveConformantClassifier, TrimmedClassifier
from trimbench.estimators.raw_values import inside, jumps

SEEDS = st.integers(0, 2**32)
ANY_ROWS = settings(max_examples=8, phases=[Phase.generate])


def people(seed: int, n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, size=57)]
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 9, len(y)).round(int(rng.integers(0, 3))) + 6 * y,
            "town": rng.choice(["x", "y", "z"], len(y)),
            "smoker": rng.random(len(y)) < 0.2 + 0.2 * y,
            "rooms": rng.integers(0, 4, len(y)),
        }
    )
    return table, np.array(["well", "ill", "dead"])[y]


def cut_columns(kind: int, codes: str) -> Any:
    """A ColumnTransformer whose columns have few values each."""
    ages = [
        make_pipeline(StandardScaler(), KBinsDiscretizer(4, encode=codes, strategy="uniform")),
        make_pipeline(MinMaxScaler(), Binarizer(threshold=0.4)),
        KBinsDiscretizer(3, encode=codes, strategy="uniform"),
    ]
    encoder = OrdinalEncoder() if codes == "ordinal" else OneHotEncoder(drop=[None, "first", "if_binary"][kind])
    return make_column_transformer((encoder, ["town", "rooms"]), (ages[kind], ["age"]), remainder="passthrough")


PIPELINES = {
    "bits": lambda kind: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["town", "rooms"]),
            ([StandardScaler(), RobustScaler(), SimpleImputer()][kind], ["age"]),
        ),
        BernoulliNB(alpha=0.5, binarize=[0.1, 0.0, 50][kind], class_prior=None),
    ),
    "codes": lambda kind: make_pipeline(cut_columns(kind, "ordinal"), CategoricalNB(alpha=0.3)),
    "regression": lambda kind: make_pipeline(cut_columns(kind, "onehot-dense"), LogisticRegression(max_iter=1000)),
}


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_keeps_its_predictions(name: str, kind: int) -> None:
    n_classes = 2 + kind % 2
    X, y = people(kind, n_classes)
    fitted = PIPELINES[name](kind).fit(X, y)
    whole = TrimmedClassifier.from_fitted(fitted, budget=9, rows=X if name == "regression" else None, time_limit=None)
    expected = fitted.predict_proba(X)
    assert whole.classes_.tolist() == fitted.classes_.tolist()
    assert whole.feature_names_in_.tolist() == list(X)
    whole.classifier_ = whole.classifier_.with_features(
        list(X), *([0.5] if n_classes == 2 else [])
    )  # a column that decides nothing may be left out
    whole.features_ = tuple(X)
    np.testing.assert_allclose(whole.predict_proba(X), expected, rtol=0, atol=1e-12)
    conformant = tb.conform(fitted, X)
    np.testing.assert_allclose(conformant.predict_proba(X), expected, rtol=0, atol=1e-12)
    assert conformant.classes_.tolist() == fitted.classes_.tolist()


@pytest.mark.parametrize("kind", [BernoulliNB(binarize=2), CategoricalNB(), BernoulliNB(fit_prior=False)])
@given(seed=SEEDS, n_classes=st.integers(2, 3))
@ANY_ROWS
def test_naive_bayes_keeps_its_predictions(kind: Any, seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 4, size=(40, 3)), columns=["a", "b", "c"])
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, size=40 - n_classes)] * 10
    fitted = kind.fit(X, y)
    conformant = tb.conform(fitted, X)
    assert isinstance(conformant, NaiveConformantClassifier)
    np.testing.assert_allclose(conformant.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    model = tb.NaiveBayes.from_sklearn(fitted)
    assert tb.NaiveBayes.from_sklearn(fitted, list("xyz")).feature_names == ("x", "y", "z")
    rows = X if isinstance(kind, CategoricalNB) else (kind.binarize or 0) < X
    posterior = tb.BayesianClassifier(model, positive="10").posterior(rows.astype(int))
    assert posterior == pytest.approx(fitted.predict_proba(X)[:, 1])
    np.testing.assert_allclose(model.prior, np.exp(fitted.class_log_prior_), rtol=1e-14)
    assert set(tb.trim(fitted, 2).features) <= set(X)


def test_trim_names_columns_classes_and_costs() -> None:
    X, y = people(0, 2)
    fitted = PIPELINES["bits"](0).fit(X, y)
    trimming = tb.trim(fitted, 3, costs={"age": 1, "town": 2, "smoker": 1, "rooms": 4}, engine="dense")
    assert (trimming.features, trimming.classifier.positive) == (("age", "town"), "well")
    by_rows = tb.trim(fitted, 2, rows=X, rows_weight=0.5)
    assert by_rows.rows_agreement.n_rows == len(X)
    three = tb.trim(PIPELINES["codes"](2).fit(*people(1, 3)), 2)
    assert three.classifier.class_names == ("dead", "ill", "well")
    smoker = X[["smoker"]].rename(columns={"smoker": "class"})  # the name of the class is then another
    for estimator in (LogisticRegression(), BernoulliNB()):
        assert tb.trim(estimator.fit(smoker, y), 1, rows=smoker).features == ("class",)


def test_a_regression_of_scaled_zeros_and_ones_is_binary() -> None:
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.random((80, 4)) < 0.4, columns=list("abcd")), rng.integers(0, 2, 80)
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    conformant = tb.conform(fitted, X)
    assert conformant.model_.layout.real == ()
    np.testing.assert_allclose(conformant.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    assert tb.conform(LogisticRegression(C=1e6).fit(X, y), X.to_numpy(dtype=float)).layout == conformant.model_.layout
    trimming = tb.trim(fitted, 2, rows=X, rows_weight=0)
    assert len(trimming.features) <= 2
    whole = TrimmedClassifier.from_fitted(fitted, budget=4, rows=X, rows_weight=0)
    np.testing.assert_allclose(whole.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)


def test_missing_cells_are_what_imputers_make_of_them() -> None:
    X, y = people(3, 2)
    rng = np.random.default_rng(0)
    gaps = X[["age", "town"]].astype({"town": object}).mask(rng.random((len(X), 2)) < 0.3)
    steps = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["town"]),
    )
    fitted = make_pipeline(steps, BernoulliNB()).fit(gaps, y)
    whole = TrimmedClassifier.from_fitted(fitted, budget=2)
    np.testing.assert_allclose(whole.predict_proba(gaps), fitted.predict_proba(gaps), rtol=0, atol=1e-12)
    encoded = make_pipeline(make_column_transformer((OneHotEncoder(), ["town"])), BernoulliNB()).fit(gaps, y)
    whole = TrimmedClassifier.from_fitted(encoded, budget=1)
    assert whole.discretizer_.rules[1].missing == "missing"
    np.testing.assert_allclose(whole.predict_proba(gaps), encoded.predict_proba(gaps), rtol=0, atol=1e-12)


@pytest.mark.parametrize("last", [BernoulliNB(), LogisticRegression()])
def test_selectors_and_searches(last: Any) -> None:
    X, y = people(4, 2)
    numbers, is_regression = X[["age", "smoker", "rooms"]], isinstance(last, LogisticRegression)
    if is_regression:
        numbers = (numbers > numbers.mean()).astype(float)
    search = GridSearchCV(make_pipeline(StandardScaler(), SelectKBest(k=2), last), {"selectkbest__k": [2]})
    expected = search.fit(numbers, y).predict_proba(numbers)
    fitted = [tb.conform(search, numbers)]
    if is_regression:
        fitted.append(NaiveConformantClassifier(estimator=search).fit(numbers, y))
        assert fitted[1].get_feature_names_out().shape == (2,)
    else:
        fitted.append(TrimmedClassifier.from_fitted(search, budget=3))
        assert len(fitted[1].features_) == 2
    for one in fitted:
        np.testing.assert_allclose(one.predict_proba(numbers), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: make_pipeline(PolynomialFeatures(), BernoulliNB()).fit(X, y), r"depends on 'age' and 'rooms'"),
        (lambda X, y: LogisticRegression().fit(X, y), r"column 'age' must be cut into few values .*KBinsDiscretizer"),
        (lambda X, y: make_pipeline(StandardScaler(), OneHotEncoder(), BernoulliNB()).fit(X, y), r"encode the col"),
        (lambda X, y: RandomForestClassifier(2).fit(X, y), r"or a fitted pipeline that ends in one, got RandomForest"),
        (lambda X, y: BernoulliNB(), r"got BernoulliNB that is not; call its fit first|estimator must be fitted"),
        (
            lambda X, y: make_pipeline(
                make_column_transformer((OneHotEncoder(), ["rooms"]), (Binarizer(), ["rooms"])), BernoulliNB()
            ).fit(X, y),
            r"column 'rooms' must be either encoded or cut, got both",
        ),
        (
            lambda X, y: make_pipeline(OrdinalEncoder(categories=[sorted({*X["rooms"], 9})]), CategoricalNB()).fit(
                X[["rooms"]], y
            ),
            r"CategoricalNB must know each category of column 'rooms', got none for '9'",
        ),
        (
            lambda X, y: make_pipeline(Binarizer(threshold=40), BernoulliNB(alpha=0, force_alpha=True)).fit(
                X[["age"]], y
            ),
            r"probabilities above 0 and below 1, .* fit it with alpha > 0",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_what_is_not_understood_is_refused(make: Any, message: str) -> None:
    X, y = people(5, 2)
    numbers = X[["age", "rooms"]]
    fitted = make(numbers, y)
    with pytest.raises(ValueError, match=message):
        tb.trim(fitted, 1, rows=numbers[list(getattr(fitted, "feature_names_in_", numbers))])


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        BernoulliNB(alpha=0, force_alpha=True),
        CategoricalNB(alpha=0, force_alpha=True),
        BernoulliNB(class_prior=[1.0, 0.0]),
    ],
)
def test_zero_probabilities_are_refused_with_and_without_rows(estimator: Any) -> None:
    # A row that no class can have would get NaN for its probabilities, and a class by chance.
    X = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 1]] * 3)
    estimator = estimator.fit(X, X[:, 0])
    for call in (
        lambda: tb.trim(estimator, 1),
        lambda: tb.trim(estimator, 1, rows=X),
        lambda: TrimmedClassifier.from_fitted(estimator, budget=1),
        lambda: tb.conform(estimator, X),
    ):
        with pytest.raises(ValueError, match=r"above 0 and below 1, got \w+NB .*; fit it with alpha > 0"):
            call()


def test_a_regression_needs_rows_and_layouts_are_left_out() -> None:
    X, y = people(6, 2)
    with pytest.raises(ValueError, match=r"rows must be given for a logistic regression, .* write rows=X"):
        tb.trim(LogisticRegression().fit(X[["smoker"]], y), 1)
    with pytest.raises(ValueError, match="sample_weight must be left out for a BernoulliNB, which knows its columns"):
        tb.conform(BernoulliNB().fit(X[["smoker"]], y), X[["smoker"]], sample_weight=np.ones(6))


@given(st.lists(st.lists(st.floats(-1e99, 1e99), max_size=4, unique=True), min_size=1, max_size=4))
@settings(max_examples=30)
def test_jumps_are_found_to_the_last_digit(cuts: list[list[float]]) -> None:
    def values_at(columns: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        pairs = zip(columns.tolist(), numbers.tolist(), strict=True)
        return np.array([[sum(number > cut for cut in cuts[column])] for column, number in pairs], dtype=float)

    assert jumps(values_at, [[]] * len(cuts)) == [sorted(found) for found in cuts]
    assert jumps(values_at, [inside(sorted(found)) for found in cuts]) == [sorted(found) for found in cuts]


# The conformant classifier of a fitted logistic regression, alone or at the end of a pipeline.

TEXT, NUMBERS = ["sex", "town"], ["age", "rooms"]


def of_columns(numbers: Any = None) -> ColumnTransformer:
    return make_column_transformer(
        (StandardScaler() if numbers is None else numbers, NUMBERS),
        (OneHotEncoder(handle_unknown="ignore"), TEXT),
        ("passthrough", ["member"]),
    )


def regression() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


@pytest.mark.parametrize(
    "numbers",
    [
        StandardScaler(),
        make_pipeline(SimpleImputer(), MinMaxScaler()),
        KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        FunctionTransformer(np.log1p),
    ],
)
def test_a_given_pipeline_keeps_its_predictions(numbers: Any) -> None:
    X, y = persons()
    fitted = make_pipeline(of_columns(numbers), regression()).fit(X, y)
    classifier = NaiveConformantClassifier(estimator=fitted).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    assert classifier.logistic_regression_ is fitted[-1]
    width = fitted[-1].coef_.shape[1]
    assert classifier.get_feature_names_out().shape == (width,)
    assert len(classifier.model_.layout.categorical) == 2 + 2 * (width > 8)
    nothing = pd.DataFrame({name: [None] for name in X})
    np.testing.assert_allclose(classifier.predict_proba(nothing)[0], np.exp(classifier.model_.log_prior), atol=1e-12)


def test_it_is_the_model_of_the_estimator_that_encodes_itself() -> None:
    X, y = persons()
    own = NaiveConformantClassifier().fit(X, y)
    numbers = [("number", StandardScaler(), NUMBERS), ("text", OneHotEncoder(), TEXT), ("rest", "passthrough", [2])]
    fitted = Pipeline([("columns", ColumnTransformer(numbers)), ("last", LogisticRegression(tol=1e-10))])
    fitted.set_params(last__solver="newton-cg").fit(X, y)
    classifier = NaiveConformantClassifier(estimator=fitted).fit(X, y)
    gaps = X.mask(np.random.default_rng(0).random(X.shape) < 0.4)
    np.testing.assert_allclose(classifier.predict_proba(gaps), own.predict_proba(gaps), atol=1e-6)
    np.testing.assert_allclose(classifier.explain(gaps.iloc[0]).evidence, own.explain(gaps.iloc[0]).evidence, atol=1e-5)
    unknown = gaps.assign(sex="diverse")
    ignoring = make_pipeline(of_columns(), regression()).fit(X, y)
    classifier = NaiveConformantClassifier(estimator=ignoring).fit(X, y)
    missing = classifier.predict_proba(gaps.assign(sex=None))
    np.testing.assert_array_equal(classifier.predict_proba(unknown), missing)


def test_a_plain_regression_on_an_array() -> None:
    X, y = persons()
    rows = X[["member", "age"]].to_numpy(dtype=float)
    fitted = regression().fit(rows, y)
    classifier = NaiveConformantClassifier(estimator=fitted, n_components=2).fit(rows, y)
    np.testing.assert_allclose(classifier.predict_proba(rows), fitted.predict_proba(rows), rtol=0, atol=1e-12)
    assert classifier.model_.layout.real == (1,)
    assert classifier.get_feature_names_out().tolist() == ["x0", "x1"]


def test_rows_with_gaps_teach_the_features() -> None:
    X, y = persons()
    fitted = make_pipeline(of_columns(), regression()).fit(X, y)
    gaps = X.mask(np.random.default_rng(1).random(X.shape) < 0.3)
    classifier = NaiveConformantClassifier(estimator=fitted).fit(gaps, y)
    np.testing.assert_allclose(classifier.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    weighted = NaiveConformantClassifier(estimator=fitted).fit(X, y, sample_weight=np.arange(len(X)) % 3)
    np.testing.assert_allclose(weighted.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)


def test_frozen_estimators_are_cloned() -> None:
    X, y = persons()
    fitted = make_pipeline(of_columns(), regression()).fit(X, y)
    frozen = NaiveConformantClassifier(estimator=FrozenEstimator(fitted))
    assert cross_val_score(frozen, X, y, cv=3).mean() > 0.6
    with pytest.raises(
        ValueError,
        match=r"estimator must be a fitted LogisticRegression, .* and wrap it in sklearn.frozen.FrozenEstimator",
    ):
        clone(NaiveConformantClassifier(estimator=fitted)).fit(X, y)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(), "must make each column from one column of X, in ways that they state, got PCA"),
        (Normalizer(), "must make each column from one column of X, in ways that they state, got Normalizer"),
        (PolynomialFeatures(2), "got one that depends on 'age' and 'rooms'"),
        (KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), None),
        (OneHotEncoder(drop="first"), None),
        (PolynomialFeatures((2, 2), include_bias=False), None),
    ],
)
def test_steps_that_are_understood_or_refused(step: Any, message: str | None) -> None:
    X, y = persons()
    rows = X[["age", "rooms"]].astype(float)
    if isinstance(step, PolynomialFeatures) and message is None:
        rows = rows[["rooms"]]
    fitted = make_pipeline(step, regression()).fit(rows, y)
    classifier = NaiveConformantClassifier(estimator=fitted)
    if message is None:
        np.testing.assert_allclose(classifier.fit(rows, y).predict_proba(rows), fitted.predict_proba(rows), atol=1e-12)
        return
    with pytest.raises(ValueError, match=message):
        classifier.fit(rows, y)


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({"numeric": "cut"}, {}, "numeric must be left out with estimator, which is fitted"),
        ({"categorical_features": [1]}, {}, "categorical_features must be left out with estimator"),
        ({"class_weight": {"no": 2}}, {}, "class_weight must be left out with estimator"),
        ({}, {"y": ["maybe", "no"] * 150}, r"y must have the classes of estimator, \['no', 'yes'\], got 'maybe'"),
        ({}, {"X": [[0.0], [1.0]] * 150}, "X must have the columns that estimator was fitted to, 2, got 1"),
        (
            {"estimator": RandomForestClassifier(2)},
            {},
            "estimator must be a fitted LogisticRegression, .* got RandomForestClassifier",
        ),
        ({"estimator": RidgeClassifier()}, {}, "estimator must be a fitted LogisticRegression, .* got RidgeClassifier"),
    ],
)
def test_other_misuses_are_refused(settings: dict[str, Any], change: dict[str, Any], message: str) -> None:
    X, y = persons()
    rows = X[["member", "age"]].astype(float).to_numpy()
    fitted = clone(settings.get("estimator", LogisticRegression())).fit(rows, y)
    with pytest.raises(ValueError, match=message):
        NaiveConformantClassifier(**settings | {"estimator": fitted}).fit(**{"X": rows, "y": y} | change)


def test_a_step_that_makes_text_is_refused() -> None:
    X, y = persons()
    rows = X[["member", "age"]].astype(float)
    text = FunctionTransformer(lambda table: np.full(table.shape, "a"), feature_names_out="one-to-one")
    steps = make_pipeline(text, regression().fit(rows, y))
    with pytest.raises(ValueError, match="estimator must make numbers of the columns, got could not convert"):
        NaiveConformantClassifier(estimator=steps).fit(rows, y)


def test_one_versus_rest_is_refused_of_weighted_rows_too() -> None:
    X, _ = persons()
    rows = X[["member", "age"]].astype(float)
    fitted = SGDClassifier(loss="log_loss", random_state=0).fit(rows, np.arange(len(X)) % 3)
    for weights in (None, np.full(len(X), 2.0)):
        with pytest.raises(ValueError, match="must give probabilities that are the softmax"):
            NaiveConformantClassifier(estimator=fitted).fit(rows, np.arange(len(X)) % 3, sample_weight=weights)


@pytest.mark.parametrize("nested", [False, True])
def test_steps_that_do_nothing_and_sparse_coefficients(nested: bool) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(80) < 0.5
    X = pd.DataFrame(rng.random((80, 3)) < np.where(y, 0.8, 0.3)[:, None], columns=list("abc")).astype(float)
    first = Pipeline([("none", "passthrough"), ("also", None)]) if nested else "passthrough"
    last = LogisticRegression()
    scaled = Pipeline([("first", first), ("scale", MinMaxScaler()), ("last", clone(last))]).fit(X, y)
    plain = Pipeline([("first", first), ("last", clone(last))]).fit(X, y)
    for fitted in (scaled, plain, clone(last).fit(X, y)):
        (fitted[-1] if isinstance(fitted, Pipeline) else fitted).sparsify()
        expected = fitted.predict_proba(X)
        for model in (tb.conform(fitted, X), NaiveConformantClassifier(estimator=fitted).fit(X, y)):
            np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-12)
        trimmed = TrimmedClassifier.from_fitted(fitted, rows=X, budget=3, rows_weight=0)
        assert (trimmed.predict(X) == fitted.predict(X)).all()
        assert set(tb.trim(fitted, 2, rows=X, rows_weight=0).features) <= set(X)
        np.testing.assert_array_equal(trimmed.feature_names_in_, list(X))
