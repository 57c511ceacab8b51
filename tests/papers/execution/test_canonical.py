import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.execution.canonical import canonical_json, to_plain

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


def shuffled(value: Any) -> Any:
    """The same value with every mapping in the opposite order and tuples for lists."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return tuple(map(shuffled, value)) if isinstance(value, list) else value


@given(json_values)
def test_text_reads_back_as_the_value_and_is_stable(value: Any) -> None:
    text = canonical_json(value, "value")
    assert json.loads(text) == value
    assert canonical_json(json.loads(text), "value") == text
    assert canonical_json(shuffled(value), "value") == text
    assert text.isascii()


@given(json_values, json_values)
def test_different_values_have_different_texts(left: Any, right: Any) -> None:
    same = canonical_json(left, "value") == canonical_json(right, "value")
    assert not same or left == right


def test_text_is_the_expected_one() -> None:
    assert canonical_json({"b": (1, 1.0, True), "a": None, "é": "ü"}, "v") == (
        '{"a":null,"b":[1,1.0,true],"\\u00e9":"\\u00fc"}'
    )


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array(2), 2),
    ],
)
def test_numpy_scalars_become_python_numbers(scalar: Any, expected: Any) -> None:
    plain = to_plain(scalar, "x")
    assert plain == expected
    assert type(plain) is type(expected)


def test_the_copy_shares_nothing() -> None:
    original = {"rows": [[1, 2]]}
    copy = to_plain(original, "x")
    copy["rows"][0][0] = 9
    assert original == {"rows": [[1, 2]]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf"), np.float64("nan")])
def test_numbers_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match=r"p\['grid'\]\[1\] must be a finite number, got .*; use None"):
        canonical_json({"grid": [0.0, value]}, "p")


@pytest.mark.parametrize(
    "value",
    [
        Path("data"),
        pd.DataFrame({"a": [1]}),
        np.zeros(3),
        {1, 2},
        b"x",
        1j,
        object(),
        np.datetime64("2020-01-01"),
    ],
)
def test_other_types_are_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=r"p\['x'\] cannot be written as JSON: allowed are None, .*, got "):
        canonical_json({"x": value}, "p")


def test_keys_must_be_text() -> None:
    with pytest.raises(TypeError, match=r"keys of p\['costs'\] must be str, got 1; write it as text"):
        canonical_json({"costs": {1: 2}}, "p")


def test_a_long_value_is_shortened_in_the_error() -> None:
    with pytest.raises(TypeError) as caught:
        canonical_json(frozenset(range(10_000)), "p")
    assert len(str(caught.value)) < 400
