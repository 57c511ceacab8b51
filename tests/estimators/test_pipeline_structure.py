"""What fitted steps state is what conformant models and trimmings hold, whatever rows they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import trimbench as tb
from trimbench.estimators import NaiveConformantClassifier, TrimmedClassifier


def people(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Rows with rare values: a town in 4 % of them, an income far from all others, a rare truth."""
    return pd.DataFrame(
        {
            "age": rng.normal(50, 12, n_rows).round(1),
            "income": np.where(rng.random(n_rows) < 0.04, 100.0, 1.0) * rng.gamma(2, 1, n_rows),
            "rooms": rng.poisson(3, n_rows) + 1,
            "town": rng.choice(["x", "y", "z", "rare", "also rare"], n_rows, p=[0.4, 0.3, 0.22, 0.04, 0.04]),
            "sex": rng.choice(["f", "m"], n_rows),
            "member": rng.random(n_rows) < 0.1,
        }
    )


def labels(rng: np.random.Generator, X: pd.DataFrame, n_classes: int) -> np.ndarray:
    score = (X["age"] > 50) + 2.0 * (X["income"] > 50) + (X["town"] == "x") + X["member"] + rng.random(len(X))
    y = np.minimum(score.to_numpy().astype(int), n_classes - 1)
    y[:n_classes] = np.arange(n_classes)
    return np.array(["well", "ill", "dead"])[y]


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def scaler(rng: np.random.Generator) -> Any:
    mean = bool(rng.integers(2))
    return pick(
        rng,
        "passthrough",
        StandardScaler(with_mean=mean),
        MinMaxScaler((-1, 2), clip=mean),
        MaxAbsScaler(),
        RobustScaler(with_centering=mean),
        SimpleImputer(),
    )


def bins(rng: np.random.Generator, encode: str) -> Any:
    strategy = pick(rng, "uniform", "quantile", "kmeans")
    method = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
    return KBinsDiscretizer(int(rng.integers(2, 5)), encode=encode, strategy=strategy, random_state=0, **method)


def numbers(rng: np.random.Generator) -> Any:
    """What becomes of a number: one column, or several that are one-hot, perhaps scaled."""
    last = pick(
        rng,
        "passthrough",
        QuantileTransformer(n_quantiles=20),
        PowerTransformer(),
        FunctionTransformer(np.tanh),
        PolynomialFeatures((2, 2), include_bias=False),
        Binarizer(threshold=float(rng.normal())),
        bins(rng, "onehot-dense"),
        bins(rng, "ordinal"),
        make_pipeline(bins(rng, "ordinal"), OneHotEncoder(sparse_output=False)),
        make_pipeline(bins(rng, "onehot-dense"), SelectKBest(k=1)),
    )
    return make_pipeline(scaler(rng), last)


def categories(rng: np.random.Generator) -> Any:
    one_hot = OneHotEncoder(
        drop=pick(rng, None, "first", "if_binary"),
        min_frequency=pick(rng, None, 0.1),
        handle_unknown="ignore",
        sparse_output=False,
    )
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return pick(rng, one_hot, one_hot, ordinal, make_pipeline(OrdinalEncoder(), one_hot), TargetEncoder(cv=2))


def pipeline(rng: np.random.Generator) -> Any:
    """A pipeline of steps that state what they do, and a classifier."""
    codes = bool(rng.random() < 0.2)
    if codes:
        encoder = OrdinalEncoder()
        number = [make_pipeline(scaler(rng), bins(rng, "ordinal")) for _ in range(2)]
        parts = [(encoder, ["town", "sex", "rooms", "member"]), (number[0], ["age"]), (number[1], ["income"])]
        return make_pipeline(make_column_transformer(*parts), CategoricalNB(alpha=0.3, min_categories=9))
    parts = [
        (numbers(rng), ["age"]),
        (numbers(rng), ["income"]),
        (categories(rng), ["town", "sex"]),
        (pick(rng, "passthrough", "drop", StandardScaler(), OneHotEncoder(sparse_output=False)), ["member"]),
        (pick(rng, "drop", "passthrough", OneHotEncoder(sparse_output=False, handle_unknown="ignore")), ["rooms"]),
    ]
    order = rng.permutation(len(parts)).tolist()
    after = pick(rng, "passthrough", "passthrough", StandardScaler(), SelectKBest(k=3))
    regression = LogisticRegression(solver="newton-cholesky")
    last = pick(rng, regression, regression, BernoulliNB(binarize=0.2))
    return make_pipeline(make_column_transformer(*(parts[place] for place in order)), after, last)


def can_be_cut(fitted: Any) -> bool:
    """Whether BernoulliNB compares numbers that are bent with its threshold, which is refused."""
    names = fitted.__repr__(N_CHAR_MAX=10**6)
    bent = ("Quantile", "Power", "Function", "Polynomial")
    return not (isinstance(fitted[-1], BernoulliNB) and any(name in names for name in bent))


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Bins whose width are too small:UserWarning")
@pytest.mark.filterwarnings("ignore:.*unknown categories:UserWarning")
@pytest.mark.filterwarnings("ignore:Features .* are constant:UserWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn")
@given(seed=st.integers(0, 2**32))
@settings(max_examples=100, phases=[Phase.generate])
def test_a_complete_row_is_classified_by_the_given_classifier(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = people(rng, 120)
    y = labels(rng, X, int(rng.integers(2, 4)))
    fitted = pipeline(rng).fit(X, y)
    if not can_be_cut(fitted):
        return
    rows = X.iloc[rng.choice(120, int(rng.integers(12, 60)), replace=False)]
    gaps = rows.astype(object).mask(rng.random(rows.shape) < 0.2).iloc[1:]
    gaps = pd.concat([rows.iloc[:1].astype(object), gaps]).infer_objects()
    model = NaiveConformantClassifier.from_fitted(fitted, gaps, n_components=1 + int(rng.random() < 0.2))
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-9)
    assert len(model.get_feature_names_out()) == model.model_.layout.n_columns


def test_values_that_the_rows_lack_keep_their_columns() -> None:
    # Probed with rows, the column of a category without a row was taken for a constant, and a low value for a gap.
    rng = np.random.default_rng(0)
    X = people(rng, 300)
    y = labels(rng, X, 2)
    steps = make_column_transformer(
        (OneHotEncoder(), ["town"]),
        (Binarizer(threshold=50), ["income"]),
        (KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"), ["age"]),
    )
    fitted = make_pipeline(steps, LogisticRegression(C=10, max_iter=1000)).fit(X, y)
    usual = X[(X["income"] < 50) & X["town"].isin(["x", "y"]) & (X["age"] > 45)]
    model = tb.conform(fitted, usual)
    assert model.model_.layout.categorical == ((0, 1, 2, 3, 4), (6, 7, 8, 9)) or len(model.model_.layout.binary) == 1
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    assert sorted(model.get_feature_names_out()) == sorted(fitted[:-1].get_feature_names_out())
    whole = TrimmedClassifier.from_fitted(fitted, budget=6, rows=usual, rows_weight=0)
    whole.classifier_ = whole.classifier_.with_features(list(X), 0.5)
    whole.features_ = tuple(X)
    np.testing.assert_allclose(whole.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("drop", ["first", ["x", "m"], None])
@pytest.mark.parametrize("rare", [{}, {"min_frequency": 0.1}, {"max_categories": 3}])
def test_dropped_and_infrequent_categories_are_values(drop: Any, rare: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    X = people(rng, 200)[["town", "sex"]]
    y = rng.integers(0, 3, 200)
    fitted = make_pipeline(OneHotEncoder(drop=drop, **rare), LogisticRegression(C=5, max_iter=1000)).fit(X, y)
    model = tb.conform(fitted, X.iloc[:40])
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    towns = [name for name in model.get_feature_names_out() if name.startswith("town")]
    assert len(towns) == (5 if not rare else 4 if "min_frequency" in rare and drop == "none" else len(towns))
    missing = model.predict_proba(pd.DataFrame({"town": [None], "sex": [None]}))
    np.testing.assert_allclose(missing[0], np.exp(model.model_.log_prior), atol=1e-12)


def test_a_bin_that_a_selector_keeps_alone_is_found() -> None:
    # Its column is 0, 1 and 0 again: a search that only looks at both ends does not see it.
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    y = (np.abs(X["a"]) < 0.2) ^ (rng.random(400) < 0.1)
    discretiser = KBinsDiscretizer(20, encode="onehot-dense", strategy="uniform")
    fitted = make_pipeline(discretiser, SelectKBest(k=1), BernoulliNB()).fit(X, y)
    (place,) = fitted[1].get_support(indices=True)
    whole = TrimmedClassifier.from_fitted(fitted, budget=2)
    assert len(whole.discretizer_.rules[0].cuts or ()) == 2
    np.testing.assert_allclose(whole.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    model = tb.conform(fitted, X.iloc[:5])
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    assert model.get_feature_names_out().tolist() == [f"a_{float(place)}"]


def test_an_encoder_after_a_discretiser_may_lack_empty_intervals() -> None:
    rng = np.random.default_rng(10)
    X = pd.DataFrame({"a": np.r_[rng.random(60), 9 + rng.random(20)], "town": rng.choice(["x", "y"], 80)})
    cut = make_pipeline(KBinsDiscretizer(5, encode="ordinal", strategy="uniform"), OneHotEncoder())
    steps = make_column_transformer((cut, ["a"]), (OneHotEncoder(), ["town"]))
    fitted = make_pipeline(steps, LogisticRegression()).fit(X, rng.integers(0, 2, 80))
    model = tb.conform(fitted, X.iloc[50:70])
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["float32", "float64", "int8"])
def test_steps_may_work_in_single_precision(kind: str) -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.random(200) < 0.3, "b": rng.random(200) < 0.6}).astype(kind)
    y = (X["a"].astype(float) + rng.random(200) > 0.8).to_numpy()
    for steps in (StandardScaler(), make_pipeline(KBinsDiscretizer(2, strategy="uniform"), MaxAbsScaler())):
        fitted = make_pipeline(steps, LogisticRegression()).fit(X, y)
        model = tb.conform(fitted, X)
        assert model.model_.layout.real == ()
        np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-6)


def test_more_codes_than_the_rows_have_are_values() -> None:
    rng = np.random.default_rng(4)
    codes = np.column_stack([rng.integers(0, 3, 240), rng.integers(0, 2, 240)])
    fitted = CategoricalNB(min_categories=[5, 3]).fit(codes, rng.integers(0, 2, 240))
    every = np.array([[a, b] for a in range(5) for b in range(3)])
    model = NaiveConformantClassifier.from_fitted(fitted, codes)
    np.testing.assert_allclose(model.predict_proba(every), fitted.predict_proba(every), rtol=0, atol=1e-12)
    whole = TrimmedClassifier.from_fitted(fitted, budget=2, rows=codes)
    np.testing.assert_allclose(whole.predict_proba(every), fitted.predict_proba(every), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(add_indicator=True),
        KNNImputer(n_neighbors=2, add_indicator=True),
        IterativeImputer(max_iter=2),
        FeatureUnion([("values", SimpleImputer()), ("gaps", MissingIndicator())]),
        make_union(KNNImputer(), "drop"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")
def test_imputers_pass_complete_rows(imputer: Any) -> None:
    rng = np.random.default_rng(5)
    X = people(rng, 150)[["age", "income"]]
    y = labels(rng, people(rng, 150).assign(age=X["age"]), 2)
    gaps = X.mask(rng.random(X.shape) < 0.2)
    fitted = make_pipeline(imputer, StandardScaler(), LogisticRegression()).fit(gaps, y)
    model = NaiveConformantClassifier.from_fitted(fitted, gaps)
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    assert model.model_.layout.n_columns == 2


def test_a_category_of_missing_cells_is_no_value() -> None:
    rng = np.random.default_rng(6)
    X = people(rng, 150)[["town", "sex"]].astype(object)
    y = labels(rng, people(rng, 150), 2)
    gaps = X.mask(rng.random(X.shape) < 0.2)
    fitted = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(gaps, y)
    model = NaiveConformantClassifier.from_fitted(fitted, gaps)
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
    assert model.get_feature_names_out().tolist() == [f"town_{town}" for town in sorted(set(X["town"]))] + ["sex"]


def test_numbers_other_than_the_zeros_and_ones_of_the_rows_are_refused_by_name() -> None:
    rng = np.random.default_rng(7)
    X = pd.DataFrame({"count": rng.poisson(1, 200), "b": rng.normal(size=200)}).astype(float)
    fitted = LogisticRegression().fit(X, X["count"] + rng.random(200) > 1.2)
    model = NaiveConformantClassifier.from_fitted(fitted, X[X["count"] < 2])
    with pytest.raises(ValueError, match=r"column 'count' must have 0 or 1, like the rows .*; learn it from rows that"):
        model.predict(X)
    model = NaiveConformantClassifier.from_fitted(fitted, X)
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)


class Liar(StandardScaler):
    """A scaler that does something else."""

    def transform(self, X: Any, copy: Any = None) -> Any:
        made = super().transform(X, copy)
        made[:, 0] = np.where(made[:, 0] > 1.5, np.nan, made[:, 0])
        return made


class LyingBinarizer(Binarizer):
    """A step that cuts in three."""

    def transform(self, X: Any, copy: Any = None) -> Any:
        return np.where(np.asarray(X) > 1.5, 2.0, super().transform(X, copy))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Liar(), "estimator must make of column 'age' what its steps say, got something else"),
        (LyingBinarizer(), "estimator must make of column 'age' what its steps say, got something else"),
        (FunctionTransformer(lambda table: table * 2), "the function of a FunctionTransformer must make .* np.log1p"),
        (
            make_pipeline(FunctionTransformer(np.tanh), Binarizer(threshold=0.5)),
            "Binarizer must cut raw or scaled numbers, got column 'age' after a step that does something else",
        ),
        (PolynomialFeatures(2), "got one that depends on 'age' and 'income'; leave products of columns out"),
        (make_union(StandardScaler(), MinMaxScaler()), "must make one column of column 'age', which has numbers"),
        (make_union(OneHotEncoder(), Binarizer()), "column 'age' must be either encoded or cut, got both"),
        (make_pipeline(StandardScaler(), OneHotEncoder()), "OneHotEncoder must encode raw values, got column 'age'"),
    ],
)
def test_what_steps_do_not_say_is_refused(step: Any, message: str) -> None:
    rng = np.random.default_rng(8)
    X = people(rng, 100)
    y = labels(rng, X, 2)
    rows = X[["age", "income"]] / [20.0, 10.0]
    plain = make_pipeline(step, SimpleImputer(), LogisticRegression(max_iter=1000)).fit(rows, y)
    fitted = make_pipeline(plain[0], LogisticRegression(max_iter=1000).fit(plain[:-1].transform(rows), y))
    with pytest.raises(ValueError, match=message):
        tb.conform(fitted, rows)


def test_functions_that_say_that_they_keep_columns_are_believed() -> None:
    rng = np.random.default_rng(9)
    X = people(rng, 100)
    y = labels(rng, X, 2)
    steps = FunctionTransformer(lambda table: table / 100, feature_names_out="one-to-one")
    columns = ColumnTransformer([("numbers", steps, ["age", "income"])], verbose_feature_names_out=False)
    fitted = make_pipeline(columns, LogisticRegression()).fit(X, y)
    model = tb.conform(fitted, X)
    assert model.get_feature_names_out().tolist() == ["age", "income"]
    np.testing.assert_allclose(model.predict_proba(X), fitted.predict_proba(X), rtol=0, atol=1e-12)
