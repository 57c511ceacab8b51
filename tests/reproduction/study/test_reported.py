"""Reported numbers, verdicts' intervals, and probabilities of printed numbers that are draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.cells import successes
from trimbench.reproduction.vocabulary.draws import Draws
from trimbench.reproduction.vocabulary.numbers import (
    Explanation,
    Interval,
    Mean,
    Number,
    Probability,
    mean_of,
    number_of,
    numbers_of,
)
from trimbench.reproduction.vocabulary.reported import Literature, Reported, Rule, check_numbers
from trimbench.reproduction.vocabulary.tables import Table

REPORTED = [Reported("a paper", "vote", quantity, "0.5", Rule(kind="exact")) for quantity in ("error", "seconds")]
ERROR, SECONDS = Number("vote", "error", 0.5), Number("vote", "seconds", 2.0)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            [ERROR, SECONDS, Number("vote", "eror", 0.5)],
            "number vote/eror is computed, but not reported; correct its row",
        ),
        ([ERROR, SECONDS, Number("Vote", "error", 0.5)], "number Vote/error is computed, but not reported"),
        ([ERROR, SECONDS, Number("vote", "error", 0.5)], "number vote/error is given twice"),
        ([ERROR, SECONDS, Number("vote", "seconds", None)], "number vote/seconds is given twice"),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_unknown_and_duplicate_numbers_are_refused(numbers: Sequence[Number], message: str, complete: bool) -> None:
    with pytest.raises(ValueError, match=message):
        check_numbers(REPORTED, numbers, complete=complete)


@pytest.mark.parametrize(
    "numbers", [[ERROR], [ERROR, Number("vote", "seconds", None)], [ERROR, Number("vote", "seconds", math.nan)]]
)
def test_a_number_may_be_missing_only_if_a_job_failed(numbers: Sequence[Number]) -> None:
    check_numbers(REPORTED, numbers, complete=False)
    with pytest.raises(ValueError, match="number vote/seconds is reported, but has no value though all jobs succeeded"):
        check_numbers(REPORTED, numbers, complete=True)
    # It may also be missing for a reason.
    check_numbers(REPORTED, [ERROR, Number("vote", "seconds", None, reason="timed out")], complete=True)


def test_all_papers_are_read_from_one_group(tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    folder.mkdir()
    (folder / "trees.yaml").write_text(
        "paper: {title: Trees, citation: A paper (2018)}\n"
        "trees/table1:\n"
        "  source: A paper, Table 1\n"
        "  rules: {error: {kind: within, tolerance: 0.1}}\n"
        "  reasons: {vote: another split}\n"
        '  numbers: {vote 5: {error: "0.50"}, heart: {error: timeout}}\n'
    )
    (folder / "bare.yaml").write_text("bare/table2: {source: Bare, rules: {}, numbers: {}}\n")
    literature = Literature.of(Catalogue((tmp_path,)))
    assert literature.table("trees/table1") == "trees/table1"
    assert literature.papers["trees"].citation == "A paper (2018)"
    assert literature.papers["bare"].title == "bare"
    vote, heart = literature.reported("trees/table1")
    assert (vote.label, vote.value, vote.source) == ("vote 5/error", 0.5, "A paper, Table 1")
    assert vote.rule == Rule(kind="within", tolerance=0.1, reason="another split")
    assert (heart.value, heart.rule.reason) == (math.inf, "")
    assert literature.reported("bare/table2") == literature.reported("trees/absent") == []
    (folder / "trees.yaml").write_text('trees/table1: {source: A, rules: {}, numbers: {vote: {error: "0.50"}}}\n')
    with pytest.raises(ConfigurationError, match="reported numbers of trees/table1: a quantity of vote must be one of"):
        Literature.of(Catalogue((tmp_path,)))
    rest = 'rules: {error: {kind: exact}}, numbers: {vote 5: {error: "1"}}, reasons: {vote 5: another split}'
    (folder / "trees.yaml").write_text(f"trees/table1: {{source: A, {rest}}}\n")
    with pytest.raises(ConfigurationError, match=r"a key of reasons, the first word of a row, .* vote, got 'vote 5'"):
        Literature.of(Catalogue((tmp_path,)))


def test_papers_and_tables_are_in_their_own_order(tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    folder.mkdir()
    for name, place, tables in (("a", 2, ("y", "x")), ("b", 1, ("w",))):
        entries = "".join(
            f"{name}/{table}: {{table: Table {table}, source: S, rules: {{}}, numbers: {{}}}}\n" for table in tables
        )
        (folder / f"{name}.yaml").write_text(f"paper: {{title: T, citation: C, place: {place}}}\n{entries}")
    literature = Literature.of(Catalogue(base=(tmp_path,)))
    assert list(literature.papers) == ["b", "a"]
    names = ["a/beyond", "a/x", "a/y", "b/z", "b/w", "c/own"]
    assert literature.in_order(names) == ["b/w", "b/z", "a/y", "a/x", "a/beyond", "c/own"]
    assert [literature.table(name) for name in ("a/x", "a/beyond")] == ["Table x", ""]


@pytest.mark.parametrize("kind", ["exact", "within", "interval", "at_least"])
def test_a_time_can_only_be_at_most_the_printed_one(kind: Any) -> None:
    assert Rule(kind="at_most", subject="time").subject == "time"
    with pytest.raises(ConfigurationError, match=f"the rule of a time must be of the kind 'at_most', got '{kind}'"):
        Rule(kind=kind, subject="time")


PROJECT = Literature.of(Catalogue())


@pytest.mark.parametrize("name", PROJECT.experiments)
def test_claims_and_times_of_the_project_are_declared_as_such(name: str) -> None:
    for one in PROJECT.reported(name):
        # Seconds, and zeros that stand for a claim in words, are no numbers that a paper prints.
        if one.quantity.endswith("seconds"):
            assert one.rule.subject == "time", one.label
        if one.printed == "0.000000":
            assert one.rule.subject == "claim", one.label


@pytest.mark.parametrize(("printed", "decimals"), [("0.50", 2), ("774", 0), ("1.2e-3", 4), ("2e3", -3), ("-0.4", 1)])
def test_the_digits_of_a_number_tell_how_it_was_rounded(printed: str, decimals: int) -> None:
    assert Reported("a paper", "vote", "error", printed, Rule(kind="exact")).decimals == decimals


@pytest.mark.parametrize(
    ("value", "printed"),
    # The float 0.155 is a little below, 0.165 a little above; 0.125 and 0.375 are halves, which go to the even digit.
    [(0.155, "0.15"), (0.165, "0.17"), (0.125, "0.12"), (0.375, "0.38"), (0.15, "0.15"), (-0.155, "-0.15")],
)
def test_a_number_rounds_as_the_float_that_it_is(value: float, printed: str) -> None:
    others = {"0.12", "0.13", "0.15", "0.16", "0.17", "0.37", "0.38", "-0.15", "-0.16"}
    found = [
        text for text in others if Reported("a paper", "a", "b", text, Rule(kind="exact")).is_printed_form_of(value)
    ]
    assert found == [printed]


def test_a_timeout_has_no_decimals() -> None:
    with pytest.raises(ValueError, match="decimals are those of a number, but vote/seconds is a timeout"):
        _ = Reported("a paper", "vote", "seconds", "timeout", Rule(kind="exact")).decimals


VALUES = [0.3, 0.1, 0.4, 0.1, 0.5, 0.9]


def test_numbers_of_one_row_share_their_jobs() -> None:
    rows = pd.DataFrame({"job": ["a", "b"]})
    interval = Interval(0.4, 0.6, "prediction")
    assert numbers_of("vote", {"error": Mean(0.5, interval, 2), "seconds": None}, rows) == [
        Number("vote", "error", 0.5, ("a", "b"), interval),
        Number("vote", "seconds", None, ("a", "b")),
    ]
    assert numbers_of("vote", {}, rows) == []
    for count in (np.int64(3), np.float32(3), 3):
        assert [type(one.value) for one in numbers_of("vote", {"count": count}, rows)] == [float]
    with pytest.raises(
        TypeError, match="the value of vote/error must be a number, a Mean or None, got one of type Serie"
    ):
        numbers_of("vote", {"error": rows["job"]}, rows)  # type: ignore[dict-item]
    cause = Explanation("other rows", 0.6)
    assert number_of("vote", "error", 0.5, rows, explanation=cause).explanation == cause


@pytest.mark.parametrize("n", [2, 3, 6])
def test_intervals_are_those_of_scipy(n: int) -> None:
    values = VALUES[:n]
    mean, error = np.mean(values), stats.sem(values)
    # The variance of one more value, or what shared rows add, is added to that of the mean.
    for found, kind, more in (
        (mean_of(values), "confidence", 0.0),
        (mean_of(values, "prediction"), "prediction", 1.0),
        (mean_of(values, test_per_train=0.25), "confidence", 0.25),
    ):
        spread = np.sqrt(more * np.var(values, ddof=1) + error**2)
        assert found.interval is not None
        assert (found.value, found.n, found.interval.kind) == (pytest.approx(mean), n, kind)
        assert found.ends == pytest.approx(stats.t.interval(0.95, n - 1, loc=mean, scale=spread))
    assert mean_of(values, "prediction", limits=(mean, mean)).ends == (mean, mean), "shares are not above 1"


@pytest.mark.parametrize("values", [[], [3.0]])
def test_fewer_than_two_repetitions_have_no_interval(values: list[float]) -> None:
    found = mean_of(values)
    assert found.interval is None
    assert np.isnan(found.with_ends).tolist() == [not values, True, True]


ROWS = pd.DataFrame(
    {
        "network": ["pima", "pima", "heart", "heart"],
        "threshold": [0.1, 0.5, 0.1, 0.5],
        "status": ["ok", "failed", "ok", "ok"],
    }
)


def test_only_jobs_that_succeeded_are_chosen() -> None:
    assert successes(ROWS).index.tolist() == [0, 2, 3]
    assert successes(ROWS, network="pima").index.tolist() == [0]
    assert successes(ROWS, network="heart", threshold=0.5).index.tolist() == [3]
    assert successes(ROWS, network="pima", threshold=0.5).empty


def test_columns_have_the_order_and_the_formats_that_are_given() -> None:
    table = Table.of("All", [{"b": 1.5, "a": "x"}, {"a": "y"}], {"a": "", "b": ".2f"}, name="part", listed=False)
    assert list(table.frame.columns) == ["a", "b"]
    assert table.frame["a"].tolist() == ["x", "y"]
    assert math.isnan(table.frame.loc[1, "b"])
    assert table.formats == {"b": ".2f"}, "a column of texts needs no format"
    assert (table.title, table.name, table.listed) == ("All", "part", False)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lines of 'All' must have the columns \['a'\], got \['b', 'c'\] besides"):
        Table.of("All", [{"a": 1}, {"a": 1, "b": 2, "c": 3}], ["a"])


# Probabilities of printed numbers that are draws: against counting by hand, and as permutation tests must be.


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
