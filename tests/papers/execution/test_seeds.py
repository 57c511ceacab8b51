import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.execution.job import generator_for, seed_for

axis_values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
axis_names = st.sampled_from(["dataset", "repetition", "fold", "level", "ünïcode"])


def test_seed_is_the_first_63_bits_of_the_hash() -> None:
    text = b'{"dataset":"vote","level":0.5,"repetition":3,"use":null}'
    expected = int(hashlib.sha256(text).hexdigest()[:16], 16) // 2
    assert seed_for(repetition=3, use=None, level=0.5, dataset="vote") == expected
    assert expected == 5430632520036098291


def test_generator_is_pcg64_of_the_seed() -> None:
    twin = np.random.Generator(np.random.PCG64(seed_for(dataset="vote")))
    np.testing.assert_array_equal(generator_for(dataset="vote").random(5), twin.random(5))


@given(st.dictionaries(axis_names, axis_values, min_size=1))
def test_order_does_not_matter_and_the_range_is_63_bits(axes: dict[str, Any]) -> None:
    seed = seed_for(**axes)
    assert seed == seed_for(**{name: axes[name] for name in reversed(axes)})
    assert 0 <= seed < 2**63


@given(st.lists(st.dictionaries(axis_names, axis_values, min_size=1), min_size=2, max_size=6))
def test_different_axes_have_different_seeds(many: list[dict[str, Any]]) -> None:
    distinct = {repr(sorted(axes.items())) for axes in many}
    assert len({seed_for(**axes) for axes in many}) == len(distinct)


def test_numpy_numbers_count_as_numbers() -> None:
    assert seed_for(a=np.int64(3), b=np.float64(0.1)) == seed_for(a=3, b=0.1)


def test_types_and_names_matter() -> None:
    axes = [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {"b": 1}, {"a": 1, "b": 1}]
    assert len({seed_for(**values) for values in axes}) == 6


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ({}, TypeError, "seed_for needs at least one named axis, got none; name what"),
        ({"a": (1,)}, TypeError, "axis 'a' must be str, int, float, bool or None, got .*; use one axis"),
        ({"a": {"b": 1}}, TypeError, "axis 'a' must be str, int, float, bool or None, got .*; use one axis"),
        ({"a": float("nan")}, ValueError, r"axes\['a'\] must be a finite number, got nan"),
        ({"a": object()}, TypeError, r"axes\['a'\] cannot be written as JSON"),
    ],
)
def test_wrong_axes_are_refused(axes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        seed_for(**axes)
