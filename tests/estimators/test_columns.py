"""What is made of the columns of a table, one at a time."""

from __future__ import annotations

import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.estimators import (
    IdentifierColumnWarning,
    NaiveConformantClassifier,
    SelectionCorrectedNB,
    TrimmedClassifier,
)
from trimbench.estimators.columns import CutColumn, ScaledColumn, column_name
from trimbench.networks.discretize import UnknownValuesWarning
from trimbench.networks.values import places_among, plain_columns, value_names


def test_a_number_at_the_cut_is_not_above_it() -> None:
    encoded = CutColumn("age", 40.0).encode(pd.Series([39.0, 40.0, 40.5, np.nan]))
    assert np.array_equal(encoded, [[0.0], [0.0], [1.0], [np.nan]], equal_nan=True)


def test_scaled_numbers_are_deviations_from_the_mean() -> None:
    assert ScaledColumn("age", 40.0, 8.0).encode(pd.Series([40.0, 56.0])).tolist() == [[0.0], [2.0]]


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
    assert column_name("c9", names, "costs") == column_name(9, names, "costs") == "c9"
    with pytest.raises(ValueError, match=r"costs must name columns among \['c0', .* 'c7'\] and 2 more, got 'age'"):
        column_name("age", names, "costs")
    with pytest.raises(ValueError, match=r"among \['c0', .* 'c7'\], got 'c8'"):
        column_name("c8", names[:8], "costs")


def test_text_of_arrow_becomes_strings_and_its_numbers_numbers() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {
            "town": pd.Series(["a", "b"], dtype=pd.ArrowDtype(pyarrow.string())),
            "age": pd.Series([1.5, 2.5], dtype=pd.ArrowDtype(pyarrow.float64())),
        }
    )
    plain = plain_columns(table)
    assert plain["town"].dtype == object
    assert plain["age"].dtype == np.float64


def test_two_cases_are_enough_to_learn_from() -> None:
    classifier = SelectionCorrectedNB().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert classifier.predict([[0.0, 1.0]]).tolist() == [0]


def written(cells: list[float | None]) -> dict[str, pd.Series]:
    """The same column of zeros, ones and gaps in the types of several libraries."""
    pa = pytest.importorskip("pyarrow")
    arrow = pa.array([np.nan if cell is None else cell for cell in cells])  # NaN, which Arrow does not call null
    mark = iter([None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.ma.masked, np.datetime64("NaT")] * len(cells))
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
        "Arrow's NaN": pd.Series(pd.arrays.ArrowExtensionArray(arrow)),
        "Arrow's null": pd.Series(cells, dtype=pd.ArrowDtype(pa.float64())),
        "Arrow's bool": pd.Series([None if x is None else bool(x) for x in cells], dtype=pd.ArrowDtype(pa.bool_())),
        "category": pd.Series(pd.Categorical(cells)),
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


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_value_is_the_same_in_every_type(kind: str, form: str) -> None:
    complete, usual = pd.DataFrame(ONES, columns=list("abc")), FORMS["NaN"]
    of_complete, of_gaps = MAKERS[kind]().fit(complete, Y), MAKERS[kind]().fit(usual, Y)
    for fitted in (of_complete, of_gaps, MAKERS[kind]().fit(complete.astype(bool), Y)):
        expected = fitted.predict_proba(usual.astype({"b": bool, "c": bool}))
        np.testing.assert_allclose(fitted.predict_proba(FORMS[form]), expected, rtol=0, atol=1e-12)
    if form not in ("category", "text", "string"):  # which are statements of their own
        learned = MAKERS[kind]().fit(FORMS[form], Y)
        np.testing.assert_allclose(learned.predict_proba(usual), of_gaps.predict_proba(usual), rtol=0, atol=1e-9)


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
    learned = tb.learn_naive_bayes(usual[known], pd.Series(Y[known]))
    np.testing.assert_array_equal(learned.encode(other[known]), learned.encode(usual[known]))
    counted = tb.learn_naive_bayes(other, pd.Series(Y), missing="ignore")
    np.testing.assert_array_equal(
        counted.likelihoods[0], tb.learn_naive_bayes(usual, pd.Series(Y), missing="ignore").likelihoods[0]
    )


@pytest.mark.parametrize("kind", ["trimmed", "conformant"])
def test_a_column_of_unknown_values_is_pointed_out(kind: str) -> None:
    X = pd.DataFrame({"town": np.where(Y, "Bonn", "Ulm"), "b": ONES[:, 1]})
    fitted = MAKERS[kind]().fit(X, Y)
    with pytest.warns(UnknownValuesWarning, match=r"column 'town' has no value that the training rows had, .*'BONN'"):
        fitted.predict(X.assign(town="BONN"))


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
