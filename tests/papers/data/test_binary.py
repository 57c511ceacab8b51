"""Tables of zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from trimbench.papers.data.encodings import BinaryEncoding, encode_binary

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
