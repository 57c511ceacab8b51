"""Data sets: their columns, the order and hash of their rows, tables of zeros and ones, and how columns are encoded."""

import hashlib
import struct
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.reproduction.data.dataset import (
    Facts,
    build_dataset,
    canonical_order,
    cells_of,
    fingerprint,
    is_number_column,
    label_column,
    number_column,
)
from trimbench.reproduction.data.encodings import BinaryEncoding, categorize, encode_binary
from trimbench.reproduction.data.errors import FactsMismatch

TABLE = pd.DataFrame({"x": [1, 2, 3], "y": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"])})


def test_classes_without_rows_do_not_count() -> None:
    facts = Facts(classes={"a": 1, "b": 2})
    dataset = build_dataset("mine", facts, TABLE, "y", {"y": ["c", "b", "a"]})
    assert list(dataset.target.cat.categories) == ["b", "a"]


@pytest.mark.parametrize("classes", [{"a": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2, "c": 0}])
def test_all_wrong_facts_are_named(classes: dict[str, int]) -> None:
    wrong = (
        r"rows: declared 5, got 3.*features: declared 2, got 1.*classes: declared \{'a': .*\}, got \{'a': 1, 'b': 2\}"
    )
    with pytest.raises(FactsMismatch, match=f"{wrong}.*sha256: declared 11"):
        build_dataset("mine", Facts(rows=5, features=2, sha256="1" * 64, classes=classes), TABLE, "y")


def test_the_table_is_not_changed_and_not_shared() -> None:
    before = TABLE.copy()
    dataset = build_dataset("mine", Facts(), TABLE.assign(x=[0.5, 1.5, 2.5]), "y")
    numbers = pd.DataFrame({"x": [0.5, 1.5], "y": ["a", "b"]})
    other = build_dataset("mine", Facts(), numbers, "y")
    other.features.iloc[0, 0] = 99.0
    assert numbers["x"].tolist() == [0.5, 1.5]
    assert dataset.features["x"].tolist() == [0.5, 1.5, 2.5]
    pd.testing.assert_frame_equal(TABLE, before)


def test_index_and_names_of_columns_are_made_plain_and_there_may_be_no_features() -> None:
    table = pd.DataFrame({0: [1, 2], "y": ["a", "b"]}, index=[5, 6])
    dataset = build_dataset("mine", Facts(), table, "y")
    assert list(dataset.features.columns) == ["0"]
    assert dataset.features.index.equals(pd.RangeIndex(2))
    assert dataset.target.index.equals(pd.RangeIndex(2))
    dataset = build_dataset("mine", Facts(), TABLE[["y"]], "y")
    assert (dataset.features.shape, len(dataset.target)) == ((3, 0), 3)


RNG = np.random.default_rng(0)
TRAIN = pd.DataFrame(
    {
        "size": RNG.normal(10, 3, 200),
        "colour": pd.Categorical(RNG.choice(["red", "blue", "green"], 200)),
        "soil_1": pd.Categorical(["0", "1"] * 100),
        "age": RNG.integers(17, 90, 200).astype(float),
        "soil_2": pd.Categorical(["1", "0"] * 100),
    }
)
TEST = TRAIN.sample(50, random_state=1).assign(size=RNG.normal(12, 3, 50))
MERGED = {"soil": "soil_"}


def test_numbers_are_cut_above_the_mean_of_the_training_rows() -> None:
    table = encode_binary(TRAIN, TEST, BinaryEncoding(merged=MERGED))
    level = TRAIN["size"].mean() + 0.05 * TRAIN["size"].std(ddof=0)
    assert table.features == ("size", "colour", "soil", "age")
    assert table.columns == ((0,), (1, 2, 3), (4, 5), (6,))
    assert table.train[:, 0].tolist() == (TRAIN["size"] > level).astype(int).tolist()
    assert table.test[:, 0].tolist() == (TEST["size"] > level).astype(int).tolist()
    assert (
        table.train[:, 1:4].tolist()
        == pd.get_dummies(TRAIN["colour"])[["blue", "green", "red"]].astype(int).to_numpy().tolist()
    )
    assert table.train[:, 4:6].tolist() == [[0, 1], [1, 0]] * 100
    assert (table.train.dtype, table.train.shape, table.test.shape) == (np.uint8, (200, 7), (50, 7))


def test_the_part_or_the_row_can_give_the_level() -> None:
    numbers, others = TRAIN[["size", "age"]], TEST[["size", "age"]]
    own = encode_binary(numbers, others, BinaryEncoding("part_mean"))
    values = others.to_numpy()
    assert own.test.tolist() == (values > values.mean(axis=0) + 0.05 * values.std(axis=0)).astype(int).tolist()
    rows = encode_binary(numbers, others, BinaryEncoding("row_mean"))
    assert (
        rows.test.tolist()
        == (values > values.mean(axis=1, keepdims=True) + 0.05 * values.std(axis=1, keepdims=True)).tolist()
    )


def test_bins() -> None:
    encoding = BinaryEncoding("bins", bins=4, cuts={"age": [25, 35]}, merged=MERGED)
    table = encode_binary(TRAIN, TEST, encoding)
    assert [len(columns) for columns in table.columns] == [4, 3, 2, 3]
    assert (np.abs(table.train[:, :4].sum(axis=0) - 50) <= 1).all(), "equally many training rows"
    age = table.train[:, list(table.columns[3])].argmax(axis=1)
    assert age.tolist() == [0 if a <= 25 else 1 if a <= 35 else 2 for a in TRAIN["age"]]
    for columns in table.columns:
        assert (table.train[:, columns].sum(axis=1) == 1).all()
        assert (table.test[:, columns].sum(axis=1) == 1).all()


@pytest.mark.parametrize("value", ["violet", "amber", None])
def test_a_value_that_only_test_rows_have_has_a_column(value: str | None) -> None:
    train, test = (pd.DataFrame({"colour": column}) for column in (["red", "blue"], ["red", value]))
    table = encode_binary(train, test, BinaryEncoding())
    names = sorted(["blue", "red", value or "missing"])
    for part, values in ((table.train, ["red", "blue"]), (table.test, ["red", value or "missing"])):
        assert part.tolist() == [[int(name == one) for name in names] for one in values]


def test_every_value_of_a_number_can_be_a_bin() -> None:
    frame = pd.DataFrame({"grade": [1.0, 3.0, 3.0, 7.0]})
    table = encode_binary(frame[:3], frame[3:], BinaryEncoding("bins", distinct=("grade",)))
    assert table.train.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]
    assert table.test.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BinaryEncoding(bins=1), "bins must be 2 or more, got 1"),
        (lambda: encode_binary(TRAIN[:0], TEST, BinaryEncoding()), "train and test must have rows, got 0 and 50"),
        (
            lambda: encode_binary(TRAIN, TEST, BinaryEncoding(cuts={"weight": [1]})),
            "cuts and distinct must name columns of the table, got 'weight'",
        ),
        (lambda: encode_binary(TRAIN, TEST, BinaryEncoding(merged={"a": "z"})), "merged: no column begins with 'z'"),
    ],
)
def test_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "encoding",
    [
        BinaryEncoding(),
        BinaryEncoding("bins", bins=2),
        BinaryEncoding("bins", distinct=("age",)),
        BinaryEncoding("bins", cuts={"age": [5]}),
    ],
)
def test_a_missing_number_is_a_value_of_its_own(encoding: BinaryEncoding) -> None:
    table = encode_binary(pd.DataFrame({"age": [1.0, np.nan, 9.0]}), pd.DataFrame({"age": [np.nan, 1.0]}), encoding)
    assert table.train.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert (table.test.tolist(), table.columns) == ([[0, 0, 1], [1, 0, 0]], ((0, 1, 2),))


@pytest.mark.parametrize("cut", ["mean", "part_mean", "row_mean", "bins"])
def test_numbers_that_are_all_missing_are_one_value(cut: Any) -> None:
    ages = pd.DataFrame({"age": [np.nan, np.nan], "size": [1.0, 2.0]})
    table = encode_binary(ages, ages, BinaryEncoding(cut))
    age = table.train[:, list(table.columns[0])]
    assert age[:, -1].tolist() == [1, 1]
    assert age.sum() == 2


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
    assert (got.dtype, got.name) == ("float64", "x")
    np.testing.assert_array_equal(got.to_numpy(), [3.0, np.nan, -1.0])
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


NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(NUMBERS, NUMBERS, st.sampled_from(["median", "mean"]))
def test_numbers_are_cut_at_a_level_of_the_training_rows(train: list[float], other: list[float], cut: Any) -> None:
    given_frame = pd.DataFrame({"x": train}, index=range(7, 7 + len(train)))
    frames = categorize(given_frame, pd.DataFrame({"x": other}), cut=cut)
    assert frames[0].index.equals(given_frame.index)
    assert given_frame["x"].tolist() == train, "the input is left alone"
    level = getattr(pd.Series(train), cut)()
    for frame, values in zip(frames, (train, other), strict=True):
        high = [value > level if max(train) > level else value >= level for value in values]
        assert frame["x"].tolist() == [str(int(value)) for value in high]
        assert frame["x"].cat.categories.tolist() == ["0", "1"]


def test_labels_keep_the_categories_of_the_source_and_learn_new_ones() -> None:
    declared = pd.Series(pd.Categorical(["b", "a"], categories=["c", "b", "a"]))
    train, other = categorize(pd.DataFrame({"x": declared}), pd.DataFrame({"x": ["d", "a"]}))
    assert train["x"].cat.categories.tolist() == other["x"].cat.categories.tolist() == ["c", "b", "a", "d"]
    assert other["x"].tolist() == ["d", "a"]


def test_missing_values_are_a_category_of_every_frame() -> None:
    train, other = categorize(
        pd.DataFrame({"n": [1.0, 5.0], "l": ["a", "b"]}), pd.DataFrame({"n": [np.nan, 7.0], "l": [None, "a"]})
    )
    assert other["n"].tolist() == ["missing", "1"]
    assert other["l"].tolist() == ["missing", "a"]
    assert train["n"].cat.categories.tolist() == ["0", "1", "missing"]
    assert train["l"].tolist() == ["a", "b"]


def test_missing_values_can_stay_or_be_drawn_by_a_fair_coin() -> None:
    table = pd.DataFrame({"n": [1.0, 5.0, *[np.nan] * 2000], "l": ["a", "b", *[None] * 2000]})
    (kept,) = categorize(table, gaps="keep")
    assert kept.isna().sum().tolist() == [2000, 2000]
    (drawn,) = categorize(table, gaps="draw", rng=np.random.default_rng(0))
    assert drawn.iloc[:2].to_numpy().tolist() == [["0", "a"], ["1", "b"]]
    for name, value in (("n", "1"), ("l", "b")):
        # Four standard deviations of 2,000 tosses.
        assert abs((drawn[name].iloc[2:] == value).mean() - 0.5) < 4 * 0.5 / 2000**0.5
    with pytest.raises(ValueError, match="`rng` must be a numpy Generator where gaps='draw', got None"):
        categorize(table, gaps="draw")


@pytest.mark.parametrize(
    ("train", "other", "message"),
    [
        ({"x": []}, {"x": [1.0]}, "`train` must have at least one row to take medians from, got 0 rows"),
        ({"x": [1.0]}, {"y": [1.0]}, r"frame 1 of `others` must have the columns of `train`, \['x'\], got \['y'\]"),
        ({"x": [np.nan]}, {"x": [1.0]}, r"`train` must have a number in column 'x', got missing values only; drop it"),
    ],
)
def test_frames_are_checked(train: dict[str, list[float]], other: dict[str, list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        categorize(pd.DataFrame(train), pd.DataFrame(other))


# One order of the rows, and one hash of them, whatever the source and its types.

LABELS = st.one_of(st.none(), st.text(max_size=3))
SMALL = st.one_of(st.none(), st.integers(-100, 100))


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.Series]:
    """A column of small whole numbers, one of labels, and a target; up to six rows."""
    rows = draw(st.integers(1, 6))
    column = lambda values: draw(st.lists(values, min_size=rows, max_size=rows))  # noqa: E731
    features = pd.DataFrame(
        {
            "number": pd.array(column(SMALL), dtype="Float64").to_numpy(dtype="float64", na_value=np.nan),
            "label": pd.Series(column(LABELS), dtype=object),
        }
    )
    return features, pd.Series(column(st.sampled_from(["a", "b", "c"])), name="class", dtype=object)


def in_order(features: pd.DataFrame, target: pd.Series) -> list[int]:
    """The rows sorted as tuples: numbers by value, labels by text, what is missing last."""

    def key(row: int) -> list[tuple[bool, object]]:
        cells = [*features.iloc[row], target.iloc[row]]
        return [(bool(pd.isna(cell)), 0 if pd.isna(cell) else cell) for cell in cells]

    return sorted(range(len(features)), key=key)


def slow_twin(features: pd.DataFrame, target: pd.Series) -> str:
    """The documented layout, value by value."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def label(value: object) -> bytes:
        return b"\xff" * 8 if value is None or value != value else text(str(value))

    order = in_order(features, target)
    features, target = features.iloc[order], target.iloc[order]
    parts = [b"trimbench table 2", struct.pack("<QQ", *features.shape)]
    for name in features.columns:
        if name == "number":
            parts += [text(name), b"n", *(struct.pack("<d", value + 0.0) for value in features[name])]
        else:
            parts += [text(name), b"l", *(label(value) for value in features[name])]
    parts += [text(str(target.name)), b"t", *(label(value) for value in target)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


@given(tables())
def test_equals_the_documented_layout(table: tuple[pd.DataFrame, pd.Series]) -> None:
    """Which has one order of rows, whatever order they come in."""
    assert fingerprint(*table) == slow_twin(*table)


def test_order_by_many_columns_of_all_kinds_of_numbers() -> None:
    rng = np.random.default_rng(0)
    numbers = [0.0, -0.0, 0.5, -1e300, 40_000.0, 40_000.5, -7.0, np.inf, np.nan]
    for alike in (0, 18):  # columns in which all rows are alike
        varied = pd.DataFrame(rng.choice(numbers[: 4 + alike], (40, 3)))
        features = pd.concat([pd.DataFrame(np.ones((40, alike))), varied], axis="columns", ignore_index=True)
        target = pd.Series(rng.choice(["a", "B", "\u00e4"], 40), name="class")
        columns = [cells_of(column) for _, column in features.assign(target=target).items()]
        assert canonical_order(columns, len(target))[0].tolist() == in_order(features, target)


@given(tables(), st.randoms(use_true_random=False))
def test_order_and_surplus_of_categories_do_not_matter(
    table: tuple[pd.DataFrame, pd.Series], random: "np.random.Generator"
) -> None:
    features, target = table

    def shuffled(column: pd.Series) -> pd.Series:
        categories = [*dict.fromkeys(column.dropna()), "surplus \N{SNOWMAN}"]
        random.shuffle(categories)
        return column.astype(pd.CategoricalDtype(categories, ordered=True))

    other = features.assign(label=shuffled(features["label"]))
    assert fingerprint(other, shuffled(target)) == fingerprint(features, target)


@given(tables(), st.sampled_from(["float32", "Float64", "Int8", "Int64", "float16"]))
def test_index_text_dtype_and_width_of_numbers_do_not_matter(table: tuple[pd.DataFrame, pd.Series], dtype: str) -> None:
    features, target = table
    number, label = features["number"].astype("Float64").astype(dtype), features["label"].astype("string")
    other = features.assign(number=number, label=label).set_axis(features.index + 7)
    assert fingerprint(other, target.astype("string").set_axis(target.index + 7)) == fingerprint(features, target)


TARGET = pd.Series(["a", "b"], name="class")
FEATURES = pd.DataFrame({"number": [1.0, 2.0], "label": ["ab", "c"]})


def test_class_labels_count_as_text() -> None:
    assert fingerprint(FEATURES, pd.Series([1, 2], name="t")) == fingerprint(FEATURES, pd.Series(["1", "2"], name="t"))


def test_there_is_one_zero_and_one_nan() -> None:
    other_nan = np.frombuffer(struct.pack("<Q", 0xFFF8_0000_0000_0001), dtype="<f8")[0]
    one, two = pd.DataFrame({"x": [0.0, np.nan]}), pd.DataFrame({"x": [-0.0, other_nan]})
    assert fingerprint(one, TARGET) == fingerprint(two, TARGET)
    assert np.signbit(two["x"][0]), "the data itself must not be changed"
