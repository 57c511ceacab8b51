import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.execution.job import canonical_json, to_plain

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


def test_text_is_the_expected_one() -> None:
    assert canonical_json({"b": (1, 1.0, True), "a": None, "é": "ü"}, "v") == (
        '{"a":null,"b":[1,1.0,true],"\\u00e9":"\\u00fc"}'
    )


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [(np.float64(0.1), 0.1), (np.float32(0.5), 0.5), (np.int64(3), 3), (np.bool_(True), True), (np.array(2), 2)],
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


NOT_FINITE = [float("nan"), float("inf"), np.float32("-inf"), np.float64("nan")]
OTHER_TYPES = [
    *(Path("data"), pd.DataFrame({"a": [1]}), np.zeros(3), {1, 2}, b"x", 1j, object(), np.datetime64("2020-01-01")),
    frozenset(range(10_000)),
]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        *((value, ValueError, r"\['x'\]\[1\] must be a finite number, got .*; use None") for value in NOT_FINITE),
        *((value, TypeError, r"\['x'\]\[1\] cannot be written as JSON: allowed are None, .*") for value in OTHER_TYPES),
        ({1: 2}, TypeError, r"keys of p\['x'\]\[1\] must be str, got 1; write it as text"),
    ],
)
def test_what_has_no_json_form_is_refused_by_its_place(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        canonical_json({"x": [0.0, value]}, "p")
    assert len(str(caught.value)) < 400
