import numpy as np
import pandas as pd
import pytest

from trimbench.papers.data.dataset import is_number_column, label_column, number_column


@pytest.mark.parametrize(
    ("values", "is_number"),
    [
        (pd.Series([1, 2], dtype="uint8"), True),
        (pd.Series([1, None], dtype="Int64"), True),
        (pd.Series([1.5], dtype="float32"), True),
        (pd.Series([True, False]), False),
        (pd.Series([True, None], dtype="boolean"), False),
        (pd.Series(["a"], dtype=object), False),
        (pd.Series(["a"], dtype="string"), False),
        (pd.Series([1, 2], dtype="category"), False),
    ],
)
def test_numbers_are_told_from_labels_by_dtype(values: pd.Series, is_number: bool) -> None:
    assert is_number_column(values) is is_number


@pytest.mark.parametrize("dtype", ["Int8", "float32", "Float64", object, "category"])
def test_numbers_become_float64(dtype: object) -> None:
    column = pd.Series([3, None, -1], name="x", dtype="Int64").astype(dtype)
    got = number_column(column)
    assert got.dtype == "float64"
    assert got.name == "x"
    np.testing.assert_array_equal(got.to_numpy(), [3.0, np.nan, -1.0])


def test_text_is_no_number() -> None:
    with pytest.raises(ValueError, match="Unable to parse"):
        number_column(pd.Series(["a"], dtype=object))


@pytest.mark.parametrize(
    ("values", "order", "categories"),
    [
        (pd.Series(["b", None], dtype=pd.CategoricalDtype(["c", "b"])), None, ["c", "b"]),
        (pd.Series(["b", None, "a"]), None, ["a", "b"]),
        (pd.Series(["b", "a"]), ["c", "b", "a"], ["c", "b", "a"]),
        (pd.Series(["b", "a"]), ["a"], ["a", "b"]),
        (pd.Series([None, None], dtype=object), None, []),
    ],
)
def test_order_of_the_source_is_kept_if_it_has_all_labels_and_text_is_sorted(
    values: pd.Series, order: list[str] | None, categories: list[str]
) -> None:
    got = label_column(values, order)
    assert list(got.cat.categories) == categories
    assert got.astype(object).equals(values.astype(object))


@pytest.mark.parametrize("dtype", [bool, "boolean", object, "category"])
def test_booleans_get_the_spelling_of_the_source(dtype: object) -> None:
    column = pd.Series([True, False]).astype(dtype)
    assert label_column(column).tolist() == ["True", "False"]
    assert label_column(column, ["TRUE", "FALSE"]).tolist() == ["TRUE", "FALSE"]
    assert label_column(column, ["no", "yes"]).tolist() == ["True", "False"]


@pytest.mark.parametrize("values", [[1, None, 2], [1.0, None, 2.0]])
def test_whole_numbers_are_labels_without_a_point(values: list[float | None]) -> None:
    got = label_column(pd.Series(values), ["2", "1"])
    assert got.isna().tolist() == [False, True, False]
    assert got.dropna().tolist() == ["1", "2"]
    assert list(got.cat.categories) == ["2", "1"]
