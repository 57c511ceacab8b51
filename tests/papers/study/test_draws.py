"""Probabilities of printed numbers that are draws: against counting by hand, and as permutation tests must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trimbench.papers.vocabulary.outcome import Draws, Probability

NAN = float("nan")
LEVELS = (0.01, 0.05, 0.1, 0.2, 0.5)


def tail_probability(printed: float, replications: list[float], decimals: int | None = None) -> Probability:
    """Return the probability of a number that stands alone."""
    values = np.array(replications, dtype=float)[:, None]
    return Draws([printed], values, None if decimals is None else [decimals]).alone()[0]


def tails_by_counting(values: NDArray[np.float64]) -> list[list[float]]:
    """Return two-sided tails of all rows, one comparison at a time."""
    found = []
    for row in values:
        tails = []
        for place, value in enumerate(row):
            column = [other for other in values[:, place] if not np.isnan(other)]
            below, above = sum(other <= value for other in column), sum(other >= value for other in column)
            tails.append(1.0 if np.isnan(value) else min(1.0, 2 * min(below, above) / len(column)))
        found.append(tails)
    return found


def together_by_counting(values: NDArray[np.float64]) -> list[float]:
    """Return adjusted probabilities, one row at a time."""
    columns = []
    for column in values.T:
        known = [value for value in column if not np.isnan(value)]
        middle = float(np.median(known)) if known else 0.0
        away = [0.0 if np.isnan(value) else abs(value - middle) for value in column]
        unit = (sum(away) / max(1, len(known))) or 1.0
        places = [
            len(column) if np.isnan(value) else min(sum(o <= value for o in known), sum(o >= value for o in known))
            for value in column
        ]
        # First by place, then by distance.
        columns.append([(-place, round(far / unit, 9)) for place, far in zip(places, away, strict=True)])
    rows = list(zip(*columns, strict=True))
    return [sum(max(row) >= key for row in rows) / len(rows) for key in rows[0]]


def some_values(kind: str, rng: np.random.Generator, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Return rows of which each is a draw; columns hang together, and differ in scale and form."""
    common = rng.standard_normal((n_rows, 1))
    values = common + rng.standard_normal((n_rows, n_columns))
    if kind == "skewed":
        return np.exp(values) * np.arange(1, n_columns + 1)
    if kind == "tied":
        return np.round(values)
    if kind == "rare":
        return (values > 2.5).astype(float)
    if kind == "missing":
        # What is missing hangs together with the numbers, and in some columns almost everything is.
        return np.where(values + rng.standard_normal(values.shape) > np.linspace(-1, 3, n_columns), NAN, values)
    return values


KINDS = ("normal", "skewed", "tied", "rare", "missing")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 1), (5, 3), (60, 7)])
def test_probabilities_are_what_counting_gives(kind: str, shape: tuple[int, int]) -> None:
    for seed in range(5):
        values = some_values(kind, np.random.default_rng(seed), *shape)
        draws = Draws(values[0], values[1:])
        tails = tails_by_counting(values)
        assert [one.value for one in draws.alone()] == pytest.approx(tails[0])
        assert [one.value for one in draws.together()] == pytest.approx(together_by_counting(values))
        assert {one.overall for one in draws.together()} == {draws.outside().probability.value}
        counts = [sum(tail <= 0.05 for tail in row) for row in tails]
        found = draws.outside()
        assert (found.count, found.of, found.most) == (counts[0], shape[1], max(counts[1:]))
        assert found.usual == pytest.approx(np.mean(counts[1:]))
        assert found.probability.value == pytest.approx(np.mean(np.array(counts) >= counts[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_replications", [10, 60])
def test_small_probabilities_are_as_rare_as_they_say(kind: str, n_replications: int) -> None:
    """Any row may be the printed one, so averaging over the rows is exact, table by table; no chance is left."""
    rng = np.random.default_rng(7)
    for _ in range(5):
        values = some_values(kind, rng, n_replications + 1, 6)
        tables = [Draws(row, np.delete(values, place, axis=0)) for place, row in enumerate(values)]
        alone = np.array([[one.value for one in table.alone()] for table in tables])
        smallest = np.array([min(one.value for one in table.together()) for table in tables])
        overall = np.array([table.outside().probability.value for table in tables])
        for level in LEVELS:
            assert ((alone <= level).mean(axis=0) <= level).all()
            assert (smallest <= level).mean() <= level
            assert (overall <= level).mean() <= level


def test_a_number_that_no_replication_has_is_as_improbable_as_they_can_show() -> None:
    draws = Draws([0.13, 0.5], [[0.18, 0.5]] * 100)
    assert [one.value for one in draws.together()] == pytest.approx([1 / 101, 1.0])
    assert draws.alone() == [Probability(2 / 101, 2 / 101), Probability(1.0, 2 / 101)]
    assert draws.outside().count == 1
    assert draws.outside().probability == Probability(1 / 101, 1 / 101)


def test_a_replication_that_is_as_lone_as_can_be_limits_what_can_be_shown() -> None:
    replications = np.full((100, 2), 0.5)
    replications[:, 0] = np.arange(100)
    replications[7, 1] = 0.6
    found = Draws([1e9, 0.5], replications).together()[0]
    assert (found.value, found.least) == (2 / 101, 2 / 101)


def test_printed_numbers_are_among_replications_that_are_rounded_alike() -> None:
    replications = np.linspace(0.0041, 0.0044, 50)
    assert tail_probability(0.004, replications.tolist()).value == pytest.approx(2 / 51)
    assert tail_probability(0.004, replications.tolist(), 3).value == 1.0
    exact = [round(n / 1000, 3) for n in range(-500, 500)]
    noisy = np.array(exact)[None, :] + 2e-4
    together = Draws(exact, noisy, np.full(len(exact), 3)).together()
    assert {one.value for one in together} == {1.0}, "a rounded number is the float of its decimal form"
    assert tail_probability(770, [774.0] * 60, -1).value == 1.0


def test_too_few_replications_say_what_they_can_show() -> None:
    values = np.random.default_rng(5).standard_normal((11, 60))
    values[0] += 50
    draws = Draws(values[0], values[1:])
    assert set(draws.alone()) == {Probability(2 / 11, 2 / 11)}
    assert min(one.value for one in draws.together()) >= 1 / 11
    outside = draws.outside()
    assert (outside.count, outside.usual, outside.most) == (0, 0.0, 0)
    assert outside.probability == Probability(1.0, 1.0)
    assert tail_probability(9.0, [1.0]) == Probability(1.0, 1.0)


@pytest.mark.parametrize(("n_replications", "count"), [(38, 0), (39, 1), (40, 1)])
def test_39_replications_can_show_that_a_number_is_far_out(n_replications: int, count: int) -> None:
    found = Draws([99.0], np.arange(n_replications)[:, None]).outside()
    assert (found.count, found.of) == (count, 1)
    # The smallest of the replications is as far out as the printed number.
    assert found.most == count
    assert found.probability.least == pytest.approx((1 + found.most) / (1 + n_replications) if count else 1.0)


def test_values_that_are_missing_are_not_far_out() -> None:
    replications = [[1.0, NAN], [2.0, NAN], [3.0, 5.0]]
    draws = Draws([NAN, 5.0], replications)
    assert [one.value for one in draws.alone()] == [1.0, 1.0]
    # Only what is known is counted: two values of the second number.
    assert draws.alone()[1].least == 1.0
    assert [one.value for one in draws.together()] == [1.0, 1.0]
    nothing = Draws([NAN], [[NAN], [NAN]])
    assert nothing.alone() == [Probability(1.0, 1.0)]
    assert nothing.together()[0].value == nothing.outside().probability.value == 1.0


SHAPES = r"printed must have shape \(n_numbers,\) and replications"
WHOLE = "decimals must be whole numbers, one for each of 2 numbers"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], [[]]), SHAPES),
        (([1.0], []), SHAPES),
        (([1.0], [1.0]), SHAPES),
        (([[1.0]], [[1.0]]), SHAPES),
        (([1.0, 2.0], [[1.0]]), SHAPES),
        (([1.0], np.empty((0, 1))), SHAPES),
        (([np.inf], [[1.0]]), "printed and replications must be finite, or NaN"),
        *((([1.0, 2.0], [[1.0, 2.0]], wrong), WHOLE) for wrong in ([1], [1, 2, 3], [0.5, 1.0], [[1, 2]])),
    ],
)
def test_numbers_that_do_not_fit_are_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Draws(*given)
