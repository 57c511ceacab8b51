"""What is made of the columns of a table, one at a time."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

import trimbench as tb
from trimbench._typing import FloatArray
from trimbench.estimators import (
    IdentifierColumnWarning,
    MissingAsZerosWarning,
    NaiveConformantClassifier,
    SelectionCorrectedNB,
    TrimmedClassifier,
)
from trimbench.estimators import columns as columns_of_tables
from trimbench.estimators.columns import Column, ColumnEncoder, column_names, warn_of_zeros
from trimbench.estimators.pipeline_values import Density, Model, learned
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.discretize import UnknownValuesWarning
from trimbench.networks.learning import CodedColumns
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes
from trimbench.networks.values import places_among, plain_columns, value_names, widened


def encoded(column: Column, values: Any) -> FloatArray:
    return ColumnEncoder((column,)).encode(pd.DataFrame({"a": values}))


def test_a_number_at_the_cut_is_not_above_it_and_a_scaled_one_is_a_deviation_from_the_mean() -> None:
    found = encoded(Column("age", "cut", limit=40.0), [39.0, 40.0, 40.5, np.nan])
    assert np.array_equal(found, [[0.0], [0.0], [1.0], [np.nan]], equal_nan=True)
    assert encoded(Column("age", "scaled", mean=40.0, scale=8.0), [40.0, 56.0]).tolist() == [[0.0], [2.0]]


_CELLS = st.sampled_from([0.0, 1.0, -0.0, 3.5, np.nan, 1.0 + 1e-16, 1e-300, -1e300, 5e-324])


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from(["gaussian", "cut"]), st.data())
def test_columns_that_are_learned_at_once_are_those_of_one_after_the_other(
    n_rows: int, seed: int, numeric: Any, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    drawn = data.draw(arrays(np.float64, (n_rows, 4), elements=_CELLS))
    frame = pd.DataFrame({f"d{place}": drawn[:, place] for place in range(4)})
    frame = frame.assign(
        normal=rng.normal(size=n_rows), whole=rng.integers(-3, 3, n_rows), truth=rng.random(n_rows) < 0.5
    )
    frame = frame.assign(narrow=frame["normal"].astype(np.float32), named=frame["whole"], text=["a"] * n_rows)
    weights = rng.random(n_rows) + 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        at_once = ColumnEncoder.fit(frame, {"named"}, numeric, weights)
        alone = [columns_of_tables._learned(frame[name], name == "named", numeric, weights) for name in frame]
        known = columns_of_tables._learned_at_once(frame, {"named"}, numeric, weights)
    assert [vars(own) for own in at_once.columns] == [vars(own) for own in alone]
    assert {"normal", "whole", "truth"} <= known.keys()
    assert not {"named", "text", "narrow"} & known.keys()


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.integers(-900, 900))
def test_moments_of_all_columns_are_those_of_each_to_the_last_digit(n_rows: int, seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    weights, numbers = rng.random(n_rows) + 0.1, np.ldexp(rng.normal(size=(5, n_rows)), exponent)
    numbers[4] = numbers[4, 0]
    means, deviations = columns_of_tables._moments(numbers, weights)
    for own, mean, deviation in zip(numbers, means.tolist(), deviations.tolist(), strict=True):
        if n_rows == 1 or np.ptp(own) == 0:
            assert (mean, deviation) == (own[0], 0.0)
            continue
        scale = int(np.frexp(np.abs(own).max())[1])
        units = np.ldexp(own, -scale)
        centre = np.average(units, weights=weights)
        spread = np.sqrt(np.average((units - centre) ** 2, weights=weights))
        assert (mean, deviation) == (np.ldexp(centre, scale), np.ldexp(spread, scale))


@pytest.mark.parametrize(("n_values", "is_left_out"), [(20, False), (21, True)])
def test_text_with_different_values_in_most_rows_names_rows(n_values: int, is_left_out: bool) -> None:
    table = pd.DataFrame({"name": [f"n{i % n_values}" for i in range(40)], "height": np.tile([1.0, 2.0, 4.0, 5.0], 10)})
    classifier = NaiveConformantClassifier()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdentifierColumnWarning)
        classifier.fit(table, [0, 1] * 20)
    assert len(caught) == is_left_out
    # The line that called `fit` can do something about it.
    assert all(Path(one.filename) == Path(__file__) for one in caught)


def test_eight_names_are_shown_and_the_others_counted() -> None:
    names = [f"c{i}" for i in range(10)]
    assert column_names(["c9"], names, "costs") == column_names([9], names, "costs") == ["c9"]
    with pytest.raises(ValueError, match=r"costs must name columns among \['c0', .* 'c7'\] and 2 more, got 'age'"):
        column_names(["age"], names, "costs")
    with pytest.raises(ValueError, match=r"among \['c0', .* 'c7'\], got 'c8'"):
        column_names(["c8"], names[:8], "costs")


def test_two_cases_are_enough_to_learn_from() -> None:
    for classifier in (SelectionCorrectedNB(), NaiveConformantClassifier(n_components="auto")):
        assert classifier.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]).predict([[0.0, 1.0]]).tolist() == [0]


def written(cells: list[float | None]) -> dict[str, pd.Series]:
    """The same column of zeros, ones and gaps in the types of several libraries."""
    # See pandas-dev/pandas#59122 (Arrow's NaN), scikit-learn/scikit-learn#32312 (marks) and #21112 (text with pd.NA),
    # fastai/fastai#1403 (truth with gaps), mloda-ai/mloda#1538 (decimals) and PriorLabs/TabPFN#1265 (objects).
    pa = pytest.importorskip("pyarrow")
    arrow = pa.array([np.nan if cell is None else cell for cell in cells])  # NaN, which Arrow does not call null
    mark = iter([None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.ma.masked, np.datetime64("NaT", "s")] * len(cells))
    marked = [next(mark) if cell is None else cell for cell in cells]
    return {
        "NaN": pd.Series(cells, dtype=float),
        "marks": pd.Series(marked, dtype=object),
        "truth": pd.Series([None if cell is None else bool(cell) for cell in cells], dtype=object),
        "boolean": pd.Series([pd.NA if cell is None else bool(cell) for cell in cells], dtype="boolean"),
        "Int8": pd.Series(cells, dtype="Int8"),
        "scalars": pd.Series([None if cell is None else np.int16(cell) for cell in cells], dtype=object),
        "Decimal": pd.Series([None if cell is None else Decimal(int(cell)) for cell in cells], dtype=object),
        "text": pd.Series([None if cell is None else str(int(cell)) for cell in cells], dtype=object),
        "string": pd.Series([None if cell is None else str(int(cell)) for cell in cells], dtype="string"),
        "Arrow's text": pd.Series([None if x is None else f"{x:.0f}" for x in cells], dtype=pd.ArrowDtype(pa.string())),
        "Arrow's NaN": pd.Series(pd.arrays.ArrowExtensionArray(arrow)),
        "Arrow's null": pd.Series(cells, dtype=pd.ArrowDtype(pa.float64())),
        "Arrow's bool": pd.Series([None if x is None else bool(x) for x in cells], dtype=pd.ArrowDtype(pa.bool_())),
        "Arrow's decimals": pd.Series(
            [None if x is None else Decimal(x) for x in cells], dtype=pd.ArrowDtype(pa.decimal128(3, 1))
        ),
        "category": pd.Series(pd.Categorical(cells)),
        "objects": pd.Series(pd.Categorical(pd.Series(cells, dtype=object))),
        "words": pd.Series([None if cell is None else str(bool(cell)) for cell in cells], dtype=object),
    }


RNG = np.random.default_rng(0)
Y = RNG.random(120) < 0.5
ONES = (RNG.random((120, 3)) < np.where(Y, 0.85, 0.2)[:, None]).astype(float)
GAPS = RNG.random(120) < 0.3
FORMS = {
    name: pd.DataFrame({"a": column, "b": ONES[:, 1], "c": ONES[:, 2]})
    for name, column in written([None if gap else cell for gap, cell in zip(GAPS, ONES[:, 0], strict=True)]).items()
}
MAKERS: dict[str, Any] = {
    "trimmed": lambda: TrimmedClassifier(3, rows_weight=0),
    "conformant": NaiveConformantClassifier,
    "corrected": lambda: SelectionCorrectedNB(k=3),
}


@functools.cache
def fitted_to(kind: str, table: str) -> Any:
    complete = pd.DataFrame(ONES, columns=list("abc"))
    return MAKERS[kind]().fit({"ones": complete, "truth": complete.astype(bool), "gaps": FORMS["NaN"]}[table], Y)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_the_same_in_every_type(kind: str, form: str) -> None:
    usual = FORMS["NaN"]
    for fitted in (fitted_to(kind, "ones"), fitted_to(kind, "truth"), fitted_to(kind, "gaps")):
        expected = fitted.predict_proba(usual.astype({"b": bool, "c": bool}))
        np.testing.assert_allclose(fitted.predict_proba(FORMS[form]), expected, rtol=0, atol=1e-12)
    if form not in ("category", "objects", "text", "string", "Arrow's text", "words"):  # which say that it is no number
        found, expected = MAKERS[kind]().fit(FORMS[form], Y), fitted_to(kind, "gaps").predict_proba(usual)
        np.testing.assert_allclose(found.predict_proba(usual), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", ["float32", "Float32", "float[pyarrow]", "mixed"])
def test_a_decimal_is_the_same_in_narrow_types(form: str) -> None:
    """At a cut, which is a median here, and as a category: BayesWitnesses/m2cgen#168."""
    X = pd.DataFrame({"x": (RNG.normal(size=120) + Y).round(1), "y": RNG.choice([0.1, 0.3, 0.7], 120), "z": ONES[:, 0]})
    other = X.astype({"x": "float32", "y": "float32"} if form == "mixed" else form)
    fits = [make().fit for make in MAKERS.values()] + [NaiveConformantClassifier(categorical_features=["y"]).fit]
    for fit in (*fits, lambda X, y: tb.fit_selection_corrected(X, y, k=2)):
        wide = fit(X, Y)
        expected, on_other = wide.predict_proba(X), wide.predict_proba(other)
        narrow = fit(other, Y)  # of the same estimator, which forgets the wide rows
        for found in (on_other, narrow.predict_proba(X), narrow.predict_proba(other)):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@given(st.integers(-(10**6) + 1, 10**6 - 1), st.integers(-15, 15))
def test_six_digits_survive_narrow_floats(digits: int, exponent: int) -> None:
    number = float(f"{digits}e{exponent}")
    assert widened(np.float32([number, np.nan])).tolist()[0] == pytest.approx(number, rel=1e-7 * (exponent >= 0), abs=0)


@pytest.mark.parametrize("form", FORMS)
def test_library_functions_take_the_same_values(form: str) -> None:
    usual, other = FORMS["NaN"], FORMS[form]
    logistic = LogisticRegression().fit(ONES, Y)
    model, corrected = tb.conform(logistic, usual), tb.fit_selection_corrected(usual, Y, k=2)
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(usual))
    np.testing.assert_array_equal(tb.conform(logistic, other).predict_proba(usual), model.predict_proba(usual))
    np.testing.assert_array_equal(corrected.predict_proba(other), corrected.predict_proba(usual))
    again = tb.fit_selection_corrected(other, Y, k=2)
    np.testing.assert_array_equal(again.predict_proba(usual), corrected.predict_proba(usual))
    known = ~GAPS
    learned = tb.learn(usual[known], pd.Series(Y[known]))
    np.testing.assert_array_equal(learned.encode(other[known]), learned.encode(usual[known]))
    counted = tb.learn(other, pd.Series(Y), missing="ignore")
    np.testing.assert_array_equal(
        counted.likelihoods[0], tb.learn(usual, pd.Series(Y), missing="ignore").likelihoods[0]
    )


# The second is scikit-learn-contrib/category_encoders#154.
@pytest.mark.parametrize("towns", ["BONN", ["London", "Oslo", "Rom"] * 40])
@pytest.mark.parametrize("kind", ["trimmed", "conformant"])
def test_a_column_of_unknown_values_is_pointed_out(kind: str, towns: Any) -> None:
    X = pd.DataFrame({"town": np.where(Y, "Bonn", "Ulm"), "b": ONES[:, 1]})
    fitted = MAKERS[kind]().fit(X, Y)
    with pytest.warns(
        UnknownValuesWarning, match=r"column 'town' has no value that the training rows had, .*'(BONN|London)'"
    ):
        found = fitted.predict_proba(X.assign(town=towns))
    nothing = pd.Series([pd.NA] * 120, dtype="string")  # alteryx/evalml#3959
    np.testing.assert_array_equal(fitted.predict_proba(X.assign(town=nothing)), found)


@given(
    st.lists(st.sampled_from([0, 1, 2.0, 0.5, True, False, np.int8(1), np.float32(2), Decimal(1), None]), min_size=1)
)
def test_equal_cells_have_one_name(cells: list[Any]) -> None:
    column = plain_columns(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))["x"]
    known = column[column.notna()]
    names = value_names(known)
    assert len(names) == len({float(cell) for cell in cells if cell is not None})
    places = places_among(pd.Series(cells, dtype=object), names)
    assert [-1 if cell is None else float(cell) for cell in cells] == [
        -1 if place < 0 else float({"True": "1", "False": "0"}.get(names[place], names[place])) for place in places
    ]


def test_text_that_resembles_a_number_stays_text() -> None:
    names = value_names(pd.Series(["1", "01", "1.0"], dtype=object))
    assert names == ("01", "1", "1.0")
    assert places_among(pd.Series(["01", 1, True, "1e0"], dtype=object), names).tolist() == [0, 1, 1, -1]


NUMERIC: dict[str, list[dict[str, str]]] = {
    "trimmed": [{}],
    "conformant": [{"numeric": "gaussian"}, {"numeric": "cut"}],
    "corrected": [{"features": "gaussian"}, {"features": "binary"}],
}


# Of 14.62, see scikit-learn/scikit-learn#17794.
@pytest.mark.parametrize("value", [0.0, 0.1, 14.62, np.log(1e-5), 1e-200, 2.0**60, 1e200])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_column_that_is_constant_up_to_rounding_says_nothing(kind: str, value: float) -> None:
    shaken = np.where(RNG.random(120) < 0.5, value, np.nextafter(value, np.inf))
    X = pd.DataFrame({"b": ONES[:, 1], "c": ONES[:, 2] + 0.5 * RNG.random(120), "same": shaken})
    other = X.assign(same=value * 100)
    for settings in NUMERIC[kind]:
        estimator = clone(MAKERS[kind]()).set_params(**settings)
        if settings.get("features") == "binary":
            estimator.set_params(k=2)
        fitted = estimator.fit(X, Y)
        np.testing.assert_allclose(fitted.predict_proba(other), fitted.predict_proba(X), rtol=0, atol=1e-6)


# See scikit-learn/scikit-learn#5314 (1e-7), #19726 (1e-15) and awslabs/gluonts#3312 (1e20).
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("unit", [1e-200, 1e-100, 1e-15, 1e-7, 1e20, 1e200])
def test_the_unit_of_a_column_changes_nothing(kind: str, unit: float) -> None:
    X = pd.DataFrame({"a": RNG.normal(size=120) + 2 * Y, "b": RNG.normal(size=120)})
    for settings in NUMERIC[kind]:
        usual, scaled = (
            clone(MAKERS[kind]()).set_params(
                **settings, **({} if kind == "conformant" else {"k" if kind == "corrected" else "budget": 1})
            )
            for _ in range(2)
        )
        expected = usual.fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(scaled.fit(X * unit, Y).predict_proba(X * unit), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", MAKERS)
def test_folds_with_a_new_count_or_an_empty_column_have_a_score(kind: str) -> None:
    rows = np.arange(120)  # with an island in five (ageron/handson-ml2#521); see scikit-learn/scikit-learn#8613, too
    X = pd.DataFrame({"count": np.where(rows == 7, 2.0, ONES[:, 0]), "b": ONES[:, 1]})
    X["rare"] = np.where(rows < 40, RNG.random(120), np.nan)
    X["note"] = pd.Series(np.where(rows < 40, np.where(Y, "x", "y"), None), dtype=object)
    X["ocean"] = np.where(rows // 5 == 1, "ISLAND", np.where(ONES[:, 2], "INLAND", "BAY"))
    table = X.drop(columns=["note", "ocean"]) if kind == "corrected" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = cross_val_score(MAKERS[kind](), table, Y, cv=KFold(3), error_score="raise")
    assert scores.min() > 0.5
    if kind != "corrected":
        with pytest.warns(UserWarning, match="column 'rare' is left out: it has no value in the training rows"):
            MAKERS[kind]().fit(X.loc[40:, ["rare", "b"]], Y[40:])


def test_a_weight_is_as_good_as_copies_for_every_rule() -> None:
    town = np.array([f"t{i}" for i in range(12)])[np.arange(20) % 12]
    X = pd.DataFrame({"town": town, "x": ONES[:20, 0], "y": 1 - ONES[:20, 0]})
    copies = X.loc[np.repeat(X.index, 2)].reset_index(drop=True)
    weighted = NaiveConformantClassifier().fit(X, Y[:20], sample_weight=np.full(20, 2))
    copied = NaiveConformantClassifier().fit(copies, np.repeat(Y[:20], 2))
    assert weighted.get_feature_names_out().tolist() == copied.get_feature_names_out().tolist()
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), rtol=0, atol=1e-7)
    assert [group.tolist() for group in weighted._one_hot_groups] == [
        group.tolist() for group in copied._one_hot_groups
    ]


@pytest.mark.parametrize("kind", ["conformant", "corrected"])  # bbstats/chimeraboost#22
def test_rows_of_weight_zero_are_no_rows(kind: str) -> None:
    X = pd.DataFrame({name: RNG.normal(size=120) + Y for name in "abc"})
    both, y = pd.concat([X, X[:30] * 1e6 - 7], ignore_index=True), np.r_[Y, ~Y[:30]]
    for settings in NUMERIC[kind]:
        bare, weighted = (clone(MAKERS[kind]()).set_params(**settings) for _ in range(2))
        weighted.fit(both, y, sample_weight=np.r_[np.ones(120), np.zeros(30)])
        np.testing.assert_allclose(weighted.predict_proba(X), bare.fit(X, Y).predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", ["balanced", {0: 1, 1: 20, 2: 0.05}])  # scikit-learn/scikit-learn#14100
def test_the_most_probable_class_is_predicted(weights: Any) -> None:
    X, y = (part[::5] for part in load_iris(return_X_y=True))
    fitted = NaiveConformantClassifier(class_weight=weights).fit(X, y)
    np.testing.assert_array_equal(fitted.classes_[fitted.predict_proba(X).argmax(axis=1)], fitted.predict(X))


@pytest.mark.parametrize("gaps", [False, True])
def test_a_class_of_weight_zero_has_probability_zero(gaps: bool) -> None:
    X = pd.DataFrame({"a": RNG.normal(size=120) + 2 * Y, "b": RNG.normal(size=120)})
    X = X.mask(RNG.random(X.shape) < 0.2) if gaps else X
    y = np.where(np.arange(120) % 5 == 0, "none", np.where(Y, "yes", "no"))
    for weights in ({"none": 0, "yes": 2}, {"no": 1, "none": 0, "yes": 2}):
        with pytest.warns(UserWarning, match=r"class_weight is 0 for \['none'\]: their rows are left out, their prob"):
            fitted = NaiveConformantClassifier(class_weight=weights).fit(X, y)
        seen = y != "none"
        without = NaiveConformantClassifier(class_weight={"yes": 2}).fit(X[seen], y[seen])
        np.testing.assert_array_equal(fitted.predict_proba(X)[:, [0, 2]], without.predict_proba(X))
        assert fitted.classes_.tolist() == ["no", "none", "yes"]
        assert (fitted.predict_proba(X)[:, 1] == 0).all()
        assert (fitted.classes_[fitted.predict_proba(X).argmax(axis=1)] == fitted.predict(X)).all()
    for wrong in ({"none": 1, "no": -1, "yes": 1}, {"none": 1, "no": np.nan, "yes": 1}):
        with pytest.raises(ValueError, match="class_weight must have finite weights, 0 or more"):
            NaiveConformantClassifier(class_weight=wrong).fit(X, y)
    with pytest.raises(ValueError, match="class_weight must be above 0 for two classes or more"):
        NaiveConformantClassifier(class_weight={"none": 1, "no": 0, "yes": 0}).fit(X, y)


@pytest.mark.parametrize(
    ("density", "other"), [("naive_bayes", "ill"), ("tree_augmented", "ill"), ("mixture", " ")]
)  # argilla-io/biome-text#336
def test_empty_text_is_a_label_and_a_category(density: str, other: str, tmp_path: Path) -> None:
    X = pd.DataFrame({"a": np.where(Y, "", "full"), "b": ONES[:, 1]})
    y = np.where(Y, "", other)
    trimmed = TrimmedClassifier(1, density=density, rows_weight=0).fit(X, y)
    assert trimmed.score(X, y) == NaiveConformantClassifier().fit(X, y).score(X, y) == 1.0
    trimmed.save(tmp_path / "empty.json")
    assert TrimmedClassifier.load(tmp_path / "empty.json").score(X, y) == 1.0


@functools.cache
def readers_of_numbers() -> list[Any]:
    """Everything that reads a table of the columns a and size, which hold numbers."""
    X = pd.DataFrame({"a": ONES[:, 0] + 0.1 * ONES[:, 1], "size": ONES[:, 2] + 0.1 * ONES[:, 0]})
    regression = LogisticRegression().fit(X, Y)
    return [
        TrimmedClassifier(3, required=["size"], rows_weight=0).fit(X, Y).predict,
        NaiveConformantClassifier().fit(X, Y).predict,
        SelectionCorrectedNB(k=2).fit(X, Y).predict,
        lambda rows: SelectionCorrectedNB().fit(rows, Y),
        lambda rows: tb.fit_selection_corrected(rows, Y, k=1),
        lambda rows: tb.conform(regression, rows, real=[0, 1]),
    ]


# See Hvass-Labs/TensorFlow-Tutorials#122 (a date as text) and AutoViML/Auto_TS#103 (a date).
@pytest.mark.parametrize(
    "value", ["tall", "", "28-12-2017", pd.Timestamp("2020-01-01"), pd.Timedelta("1D"), np.datetime64("2020-01-01"), 1j]
)
def test_what_is_no_number_is_named_with_its_column(value: Any) -> None:
    wrong = pd.DataFrame({"a": np.linspace(0, 1, 120), "size": [value, *[1.0] * 119]})
    for read in readers_of_numbers():
        with pytest.raises(ValueError, match="column 'size' must hold numbers, and NaN where one is missing, got"):
            read(wrong)


DAYS = pd.Series(pd.date_range("2020-01-01", periods=30).repeat(4))
DATES = {"datetime64": DAYS, "timedelta64": DAYS - DAYS[0], "period": DAYS.dt.to_period("D"), "date": DAYS.dt.date}
DATES |= {"datetime": DAYS.dt.tz_localize("America/Lima"), "time": DAYS.dt.time.where(DAYS.dt.day > 1, None)}


@pytest.mark.parametrize("kind", DATES)
@pytest.mark.parametrize("estimator", [TrimmedClassifier(rows_weight=0), NaiveConformantClassifier()])
def test_dates_are_neither_numbers_nor_categories(estimator: Any, kind: str) -> None:
    expected = f"column 'when' must hold numbers, text or categories, got {kind}; make a number of it"
    with pytest.raises(ValueError, match=expected):
        clone(estimator).fit(pd.DataFrame({"when": DATES[kind]}), Y)
    months = pd.DataFrame({"when": DAYS.dt.day.astype("category")})
    assert clone(estimator).fit(months, Y).n_features_in_ == 1


COLUMNS = (
    Column("a", "binary"),
    Column("b", "scaled", mean=2.0, scale=3.0),
    Column("c", "cut", limit=0.5),
    Column("d", "identifier"),
)


@given(
    arrays(np.float64, (5, 4), elements=st.sampled_from([0.0, 1.0, 2.0, 1e300, np.nan, -np.inf])),
    st.permutations(COLUMNS),
)
def test_numbers_are_encoded_at_once_as_column_by_column(values: FloatArray, columns: list[Column]) -> None:
    """Zeros, ones, gaps, numbers beyond the squares, and the warnings and errors of other numbers."""

    def outcome(call: Callable[[], FloatArray]) -> object:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = call().tolist()
            except ValueError as error:
                return str(error)
        return repr(found), [str(warning.message) for warning in caught]

    frame = pd.DataFrame(values)
    mixed = frame.astype({0: object})
    expected = outcome(lambda: np.hstack([encoded(column, mixed[place]) for place, column in enumerate(columns)]))
    encoder = ColumnEncoder(tuple(columns))
    assert outcome(lambda: encoder.encode(values)) == outcome(lambda: encoder.encode(frame)) == expected
    assert outcome(lambda: encoder.encode(mixed)) == expected


@pytest.mark.parametrize(
    ("density", "kind"),
    [("naive_bayes", NaiveBayes), ("tree_augmented", BayesianNetwork), ("mixture", NaiveBayesMixture)],
)
def test_each_density_is_of_its_kind(density: Density, kind: type[Model]) -> None:
    rng = np.random.default_rng(0)
    rows = CodedColumns(rng.integers(0, 2, (30, 2)), ["class", "b"], [["u", "v"], ["x", "y"]])
    model, variable = learned(density, rows, np.arange(30) % 2, ["no", "yes"], 1.0, 2)
    assert type(model) is kind
    assert variable == "class_", "a feature has the name"


@pytest.mark.parametrize(
    ("n_columns", "shown"), [(3, "c0, c1, c2,"), (4, "c0, c1, c2, c3,"), (6, "c0, c1, c2, c3, ...,")]
)
def test_four_columns_of_a_group_without_a_one_are_named(n_columns: int, shown: str) -> None:
    rows = np.vstack([np.zeros((2, n_columns)), np.eye(n_columns)])
    with pytest.warns(MissingAsZerosWarning) as told:
        warn_of_zeros(rows, [np.arange(n_columns)], [f"c{i}" for i in range(n_columns)], stacklevel=1)
    assert f"2 of {len(rows)} rows have 0 in all of the columns {shown} of which" in str(told[0].message)
    assert told[0].filename == __file__


CUTS = np.arange(8) % 4


@pytest.mark.parametrize("kind", [TrimmedClassifier, NaiveConformantClassifier])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ({"a": CUTS, "b": [[1], [2]] * 4}, [0, 1] * 4, r"column 'b' must have numbers, .*, got a list '\[1\]'; make c"),
        ({"a": CUTS, "b": [{"x": 1}] * 8}, [0, 1] * 4, r"column 'b' must have numbers, text or truth values, got a d"),
        ({"a": CUTS}, np.array([1, "1"] * 4, dtype=object), "y must have labels of one kind, got 1 and the text '1'"),
        ({"a": CUTS}, np.array([1, np.nan] * 4), "Input y contains NaN"),
    ],
)
def test_what_cannot_be_learned_from_is_named(kind: Any, X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind().fit(pd.DataFrame(X), y)
