from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.validation import ConfigurationError
from trimbench.papers.vocabulary.cells import successes
from trimbench.papers.vocabulary.outcome import (
    Explanation,
    Interval,
    Mean,
    Number,
    Table,
    mean_of,
    number_of,
    numbers_of,
)
from trimbench.papers.vocabulary.reported import Literature, Reported, Rule, check_numbers, printed_numbers

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


def test_papers_and_tables_are_in_their_own_order(tmp_path: Path) -> None:
    folder = tmp_path / "reported"
    folder.mkdir()
    for name, place, tables in (("a", 2, ("y", "x")), ("b", 1, ("w",))):
        entries = "".join(
            f"{name}/{table}: {{table: Table {table}, source: S, rules: {{}}, numbers: {{}}}}\n" for table in tables
        )
        (folder / f"{name}.yaml").write_text(f"paper: {{title: T, citation: C, place: {place}}}\n{entries}")
    literature = Literature.of(Catalogue((tmp_path,)))
    assert list(literature.papers) == ["b", "a"]
    names = ["a/beyond", "a/x", "a/y", "b/z", "b/w", "c/own"]
    assert literature.in_order(names) == ["b/w", "b/z", "a/y", "a/x", "a/beyond", "c/own"]
    assert [literature.table(name) for name in ("a/x", "a/beyond")] == ["Table x", ""]


@pytest.mark.parametrize("kind", ["exact", "within", "interval", "at_least"])
def test_a_time_can_only_be_at_most_the_printed_one(kind: Any) -> None:
    assert Rule(kind="at_most", subject="time").subject == "time"
    with pytest.raises(ConfigurationError, match=f"the rule of a time must be of the kind 'at_most', got '{kind}'"):
        Rule(kind=kind, subject="time")


PROJECT = Literature.of(Catalogue((configuration_folder(),)))


def test_the_papers_of_the_project_are_in_the_order_of_the_readme() -> None:
    assert [*PROJECT.papers] == ["trimming", "conformant", "selection_bias"]
    assert all(entry.table for entry in PROJECT.experiments.values())


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


def test_the_printed_numbers_of_an_experiment_are_found_by_row_and_quantity() -> None:
    found = printed_numbers("selection_bias/correlation_table")
    assert len(found) == 135
    assert found["I1 = 14", "I0 = 1"].printed == "+0.90"
    assert not printed_numbers("selection_bias/none")


VALUES = [0.3, 0.1, 0.4, 0.1, 0.5, 0.9]


def test_numbers_of_one_row_share_their_jobs() -> None:
    rows = pd.DataFrame({"job": ["a", "b"]})
    interval = Interval(0.4, 0.6, "prediction")
    assert numbers_of("vote", {"error": Mean(0.5, interval, 2), "seconds": None}, rows) == [
        Number("vote", "error", 0.5, ("a", "b"), interval),
        Number("vote", "seconds", None, ("a", "b")),
    ]
    assert numbers_of("vote", {}, rows) == []
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
