import hashlib
import struct

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.data.dataset import canonical_order, cells_of, fingerprint

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


@pytest.mark.parametrize(
    ("features", "target"),
    [
        (FEATURES.rename(columns={"number": "numbers"}), TARGET),
        (FEATURES.rename(columns={"number": "label", "label": "number"}), TARGET),
        (FEATURES[["label", "number"]], TARGET),
        (FEATURES, TARGET.rename("other")),
        (FEATURES.assign(number=["1", "2"]), TARGET),
        (FEATURES.assign(label=["a", "bc"]), TARGET),
    ],
)
def test_names_kinds_and_ends_of_labels_matter(features: pd.DataFrame, target: pd.Series) -> None:
    assert fingerprint(features, target) != fingerprint(FEATURES, TARGET)


def test_class_labels_count_as_text() -> None:
    assert fingerprint(FEATURES, pd.Series([1, 2], name="t")) == fingerprint(FEATURES, pd.Series(["1", "2"], name="t"))


def test_there_is_one_zero_and_one_nan() -> None:
    other_nan = np.frombuffer(struct.pack("<Q", 0xFFF8_0000_0000_0001), dtype="<f8")[0]
    one, two = pd.DataFrame({"x": [0.0, np.nan]}), pd.DataFrame({"x": [-0.0, other_nan]})
    assert fingerprint(one, TARGET) == fingerprint(two, TARGET)
    assert np.signbit(two["x"][0]), "the data itself must not be changed"
