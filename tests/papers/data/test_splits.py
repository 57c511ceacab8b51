from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trimbench.papers.data.masks import split_rows

SIZES = st.integers(2, 200)
FRACTIONS = st.floats(0.01, 0.99)
SEEDS = st.integers(0, 2**32)


@given(SIZES, FRACTIONS, SEEDS)
def test_parts_are_disjoint_and_complete_and_of_the_right_size(n: int, fraction: float, seed: int) -> None:
    assume(0 < round(n * fraction) < n)
    train, test = split_rows(n, fraction, seed)
    assert len(test) == round(n * fraction)
    assert sorted([*train, *test]) == list(range(n))
    assert train.tolist() == sorted(train)
    assert test.tolist() == sorted(test)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=60), FRACTIONS, SEEDS)
def test_each_label_gets_its_share(labels: list[str], fraction: float, seed: int) -> None:
    n_test = round(len(labels) * fraction)
    assume(0 < n_test < len(labels))
    train, test = split_rows(len(labels), fraction, seed, stratify=labels)
    assert len(test) == n_test
    assert sorted([*train, *test]) == list(range(len(labels)))
    drawn = Counter(labels[row] for row in test)
    for label, count in Counter(labels).items():
        assert abs(drawn[label] - count * n_test / len(labels)) < 1


def test_seed_decides_the_split() -> None:
    one, again, other = (split_rows(100, 0.3, seed)[1].tolist() for seed in (1, 1, 2))
    assert one == again != other
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - shows that the global state is left alone
    split_rows(100, 0.3, 1, stratify=["a", "b"] * 50)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_every_row_is_equally_likely() -> None:
    drawn = np.zeros(10)
    for seed in range(2000):
        drawn[split_rows(10, 0.3, seed)[1]] += 1
    # Five standard deviations of a binomial count.
    np.testing.assert_allclose(drawn, 600, atol=5 * np.sqrt(2000 * 0.3 * 0.7))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0.5, 0), "`n_rows` must be at least 2, got 1"),
        ((10, 0.0, 0), "`test_fraction` must be between 0 and 1"),
        ((10, 1.5, 0), "got 1.5"),
        ((10, float("nan"), 0), "got nan"),
        ((10, 0.01, 0), "`test_fraction` must leave rows on both sides: 0.01 of 10 rows is 0; use a value between"),
        ((10, 0.99, 0), "0.99 of 10 rows is 10"),
        ((10, 0.5, -1), "`seed` must not be negative, got -1"),
        ((3, 0.5, 0, ["a", "b"]), r"one label for each of the 3 rows, got shape \(2,\)"),
        ((3, 0.5, 0, ["a", None, float("nan")]), "must not have missing labels, got 2; remove these rows"),
    ],
)
def test_arguments_are_checked(arguments: tuple[int, float, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_rows(*arguments)
