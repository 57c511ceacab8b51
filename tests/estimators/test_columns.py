"""What is made of the columns of a table, one at a time."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trimbench.estimators import IdentifierColumnWarning, NaiveConformantClassifier, SelectionCorrectedNB
from trimbench.estimators.columns import CutColumn, ScaledColumn, column_name, plain_columns


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


def test_text_of_arrow_becomes_strings_and_its_numbers_stay() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {
            "town": pd.Series(["a", "b"], dtype=pd.ArrowDtype(pyarrow.string())),
            "age": pd.Series([1.5, 2.5], dtype=pd.ArrowDtype(pyarrow.float64())),
        }
    )
    plain = plain_columns(table)
    assert plain["town"].dtype == object
    assert plain["age"].dtype == table["age"].dtype


def test_two_cases_are_enough_to_learn_from() -> None:
    classifier = SelectionCorrectedNB().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert classifier.predict([[0.0, 1.0]]).tolist() == [0]
