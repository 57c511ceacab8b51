"""Reported numbers and the verdicts on them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trimbench.papers.configuration import Catalogue, ConfigurationError, configuration_folder
from trimbench.papers.reporting.verdicts import VERDICTS, Reported, Rule, judge, read_reported

CASES = [
    # printed, rule, reproduced, verdict
    ("0.50", "exact", 0.4951, "exact"),
    ("0.50", "exact", 0.5049, "exact"),
    ("0.50", "exact", 0.4949, "differs"),
    ("0.50", "exact", 0.5051, "differs"),
    ("0.5", "exact", 0.4951, "exact"),
    ("16", "exact", 15.87, "exact"),
    ("16", "exact", 16.49, "exact"),
    ("16", "exact", 15.49, "differs"),
    ("16", "exact", 27.0, "differs"),
    ("0", "exact", 0.0, "exact"),
    ("0.00", "exact", -0.001, "exact"),
    ("0.00", "exact", -0.006, "differs"),
    ("-0.25", "exact", -0.2501, "exact"),
    ("-0.25", "exact", 0.25, "differs"),
    ("1.2e-3", "exact", 0.00124, "exact"),
    ("1.2e-3", "exact", 0.00126, "differs"),
    ("1e-3", "exact", 0.0004, "differs"),
    ("1.5e3", "exact", 1540.0, "exact"),
    ("1.5e3", "exact", 1560.0, "differs"),
    ("0.5", "exact", math.inf, "differs"),
    ("0.5", "exact", 1e300, "differs"),
    ("0.5", "within", 0.6, "within"),
    ("0.5", "within", 0.54, "exact"),
    ("0.5", "within", 0.625, "within"),
    ("0.5", "within", 0.375, "within"),
    ("0.5", "within", 0.626, "differs"),
    ("0.5", "within", -math.inf, "differs"),
    ("0.5", "at_most", 0.3, "trend"),
    ("0.5", "at_most", 0.5, "exact"),
    ("0.5", "at_most", 0.6, "differs"),
    ("0.5", "at_least", 0.6, "trend"),
    ("0.5", "at_least", 0.4, "differs"),
    ("timeout", "at_most", 3600.0, "trend"),
    ("timeout", "exact", 3600.0, "differs"),
    ("timeout", "within", 3600.0, "differs"),
    ("timeout", "at_least", 3600.0, "differs"),
    ("0.5", "exact", None, "not attempted"),
    ("0.5", "at_most", math.nan, "not attempted"),
    ("timeout", "at_most", None, "not attempted"),
]


@pytest.mark.parametrize(("printed", "kind", "reproduced", "verdict"), CASES)
def test_verdicts(printed: str, kind: str, reproduced: float | None, verdict: str) -> None:
    reported = Reported("a paper", "row/number", printed, Rule(kind, tolerance=0.125, reason="known"))
    found, reason = judge(reported, reproduced)
    assert found == verdict
    assert found in VERDICTS
    assert reason == {
        "exact": "rounds to the printed digits",
        "within": "within 0.125 of the printed number",
        "differs": "known",
        "not attempted": "not computed in this run",
        "trend": {
            "timeout": "finished where the printed run did not",
            "0.5": "below the printed number" if kind == "at_most" else "above the printed number",
        }.get(printed),
    }.get(verdict)


def test_a_difference_without_a_reason_says_so() -> None:
    assert judge(Reported("", "a/b", "1", Rule("exact")), 2.0) == ("differs", "no reason is known")


finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.integers(-(10**7), 10**7), st.integers(0, 6), st.floats(-1.5, 1.5))
def test_exact_is_within_half_of_the_last_printed_digit(digits: int, decimals: int, off: float) -> None:
    assume(abs(abs(off) - 0.5) > 1e-3)
    reported = Reported("", "a/b", f"{digits / 10**decimals:.{decimals}f}", Rule("exact"))
    verdict, _ = judge(reported, (digits + off) / 10**decimals)
    assert verdict == ("exact" if abs(off) < 0.5 else "differs")


@given(finite, finite, st.integers(0, 6), st.sampled_from(["exact", "within", "at_most", "at_least"]))
def test_exact_means_that_the_printed_forms_are_equal(value: float, other: float, decimals: int, kind: str) -> None:
    for reproduced in (value, other):
        printed = f"{value:.{decimals}f}"
        verdict, _ = judge(Reported("", "a/b", printed, Rule(kind)), reproduced)
        assert (verdict == "exact") == (float(f"{reproduced:.{decimals}f}") == float(printed))


@given(finite, finite)
def test_one_of_both_sides_holds(value: float, reproduced: float) -> None:
    verdicts = {
        judge(Reported("", "a/b", f"{value:.3f}", Rule(kind)), reproduced)[0] for kind in ("at_most", "at_least")
    }
    assert verdicts in ({"exact"}, {"trend", "differs"})


ENTRY: dict[str, Any] = {
    "source": "A paper, Table 1",
    "rules": {"error": {"kind": "within", "tolerance": 0.1, "reason": "seeds"}, "seconds": {"kind": "at_most"}},
    "numbers": {"vote": {"error": "0.50", "seconds": "timeout"}, "heart": {"error": "0.25"}},
}


def test_reported_numbers_are_read() -> None:
    read = read_reported({"a/b": ENTRY}, "a/b")
    assert [(number.key, number.printed, number.value) for number in read] == [
        ("vote/error", "0.50", 0.5),
        ("vote/seconds", "timeout", math.inf),
        ("heart/error", "0.25", 0.25),
    ]
    assert read[0].rule == Rule("within", 0.1, "seeds")
    assert {number.source for number in read} == {"A paper, Table 1"}
    assert read_reported({"a/b": ENTRY}, "a/c") == []


def test_reasons_of_single_rows_stand_where_a_rule_has_none() -> None:
    numbers = {"vote 5": {"error": "0.50", "seconds": "1"}, "heart 5": {"seconds": "2"}}
    read = read_reported({"a/b": ENTRY | {"numbers": numbers, "reasons": {"vote": "votes"}}}, "a/b")
    assert [number.rule.reason for number in read] == ["seeds", "votes", ""]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numbers": {"vote": {"error": 0.5}}}, r"a/b: vote/error must be quoted, got 0\.5; quotes keep the printed"),
        ({"numbers": {"vote": {"eror": "0.5"}}}, r"a/b: a quantity must be one of error, seconds, got 'eror'"),
        ({"numbers": {"vote": {"error": "1,234"}}}, r"vote/error must be digits as printed, .* got '1,234'"),
        ({"numbers": {"vote": {"error": "12%"}}}, r"vote/error must be digits as printed, .* got '12%'"),
        ({"numbers": {"vote": {"error": "nan"}}}, r"vote/error must be digits as printed, .* got 'nan'"),
        ({"numbers": {"vote": {"error": "inf"}}}, r"vote/error must be digits as printed, .* got 'inf'"),
        ({"numbers": {"vote": {"error": ""}}}, r"vote/error must be digits as printed, .* got ''"),
        ({"numbers": {"vote": "0.5"}}, r"a/b must have source \(text\), rules .* and numbers"),
        ({"numbers": None}, r"a/b must have source \(text\), rules .* and numbers"),
        ({"reasons": "seeds"}, r"a/b: reasons must be a text for each first word of a row, got 'seeds'"),
        ({"source": 2018}, r"a/b must have source \(text\), rules .* and numbers"),
        ({"rules": {"error": {"kind": "near"}}}, r"a/b: rule of error: rule must be one of at_least, .*, got 'near'"),
        ({"rules": {"error": {"knd": "exact"}}}, r"a/b: rule of error: a key must be one of kind, reason, tolerance"),
        ({"rules": {"error": {"tolerance": 1}}}, r"a/b: rule of error: kind has no valid value: .*missing"),
        ({"rules": {"error": {"kind": "within", "tolerance": "x"}}}, r"rule of error: tolerance has no valid value"),
        ({"rules": {"error": "exact"}}, r"a/b: rule of error must be keys and values, got 'exact'"),
    ],
)  # fmt: skip
def test_mistakes_in_reported_numbers_are_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_reported({"a/b": ENTRY | change}, "a/b")


def test_an_entry_that_is_no_mapping() -> None:
    with pytest.raises(ConfigurationError, match="must have source"):
        read_reported({"a/b": ["0.5"]}, "a/b")


def test_the_projects_reported_numbers_belong_to_its_experiments() -> None:
    catalogue = Catalogue((configuration_folder(),))
    found = 0
    for group in catalogue.names("reported"):
        numbers = catalogue.mapping("reported", group)
        assert {"title", "citation", "review"} == set(numbers.pop("paper"))
        assert set(numbers) <= set(catalogue.names("experiment"))
        for experiment in numbers:
            read = read_reported(numbers, experiment)
            assert len({number.key for number in read}) == len(read)
            found += len(read)
    assert found >= 46
