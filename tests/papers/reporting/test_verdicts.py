"""Verdicts on reported and reproduced numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trimbench.papers.reporting.verdicts import DIFFERENCES, VERDICTS, VERDICTS_ON, Verdict, compare, judge
from trimbench.papers.vocabulary.numbers import Interval, IntervalKind, Number
from trimbench.papers.vocabulary.reported import SUBJECTS

from .builders import reported

CASES = [
    # printed, rule, reproduced, verdict
    ("0.50", "exact", 0.5049, "exact"),
    ("16", "exact", 27.0, "differs"),
    ("0.00", "exact", -0.001, "exact"),
    ("-0.25", "exact", 0.25, "differs"),
    ("1.2e-3", "exact", 0.00124, "exact"),
    ("1.2e-3", "exact", 0.00126, "differs"),
    ("1.5e3", "exact", 1560.0, "differs"),
    ("0.5", "exact", math.inf, "differs"),
    ("0.5", "within", 0.54, "exact"),
    ("0.5", "within", 0.625, "within"),
    ("0.5", "within", 0.375, "within"),
    ("0.5", "within", 0.626, "differs"),
    ("0.5", "within", -math.inf, "differs"),
    ("0.5", "at_most", 0.3, "trend"),
    ("0.5", "at_most", 0.6, "differs"),
    ("0.5", "at_least", 0.6, "trend"),
    ("0.5", "at_least", 0.4, "differs"),
    ("timeout", "at_most", 3600.0, "trend"),
    ("timeout", "exact", 3600.0, "differs"),
    ("timeout", "at_least", 3600.0, "differs"),
    ("0.5", "exact", None, "not attempted"),
    ("0.5", "at_most", math.nan, "not attempted"),
]


def verdict_on(printed: str, kind: str, ours: float | None) -> tuple[Verdict, str]:
    number = Number("row", "value", ours)
    found = judge(reported("row", printed, kind, tolerance=0.125, reason="known"), number)
    assert (found.number, found.value) == (number, ours)
    return found.verdict, found.reason


@pytest.mark.parametrize(("printed", "kind", "ours", "verdict"), CASES)
def test_verdicts(printed: str, kind: str, ours: float | None, verdict: str) -> None:
    found, reason = verdict_on(printed, kind, ours)
    assert found == verdict
    assert found in VERDICTS
    trends = {"at_most": "below the printed number", "at_least": "above the printed number"}
    assert reason == {
        "exact": "rounds to the printed digits",
        "within": "within 0.125 of the printed number",
        "differs": "known",
        "not attempted": "not computed in this run",
        "trend": "finished where the printed run did not" if printed == "timeout" else trends.get(kind),
    }.get(verdict)


@pytest.mark.parametrize(
    ("printed", "kind", "ours", "verdict", "reason"),
    [
        ("0.000000", "at_least", 0.25, "holds", "on the side that the paper claims"),
        ("0.000000", "at_least", -0.25, "fails", "known"),
        ("1.000", "at_most", 0.5, "holds", "on the side that the paper claims"),
        ("0.00", "within", 0.1, "holds", "as the paper says, within the declared tolerance"),
        ("0.00", "within", 0.2, "fails", "known"),
        ("4", "exact", 4.0, "holds", "as the paper says"),
        ("4", "exact", 3.0, "fails", "known"),
        ("4", "exact", None, "not attempted", "not computed in this run"),
    ],
)
def test_a_claim_holds_or_fails(printed: str, kind: str, ours: float | None, verdict: Verdict, reason: str) -> None:
    claim = reported("a", printed, kind, tolerance=0.125, reason="known", subject="claim")
    found = judge(claim, Number("a", "value", ours))
    assert (found.verdict, found.reason, found.differs) == (verdict, reason, verdict == "fails")


@pytest.mark.parametrize(
    ("printed", "ours", "verdict", "reason"),
    [
        ("12.5", 12.5, "faster", "the printed time, of another machine, is 1 times ours"),
        ("12.5", 0.5, "faster", "the printed time, of another machine, is 25 times ours"),
        (
            "12.5",
            0.0,
            "faster",
            "the printed time, of another machine, is longer than ours, which is too short to measure",
        ),
        ("12.5", 12.51, "slower", "known"),
        ("timeout", 3600.0, "faster", "finished where the printed run did not"),
        ("timeout", None, "not attempted", "not computed in this run"),
    ],
)
def test_a_time_is_faster_or_slower(printed: str, ours: float | None, verdict: Verdict, reason: str) -> None:
    time = reported("a", printed, "at_most", reason="known", subject="time")
    found = judge(time, Number("a", "value", ours))
    assert (found.verdict, found.reason, found.differs) == (verdict, reason, verdict == "slower")


def test_each_kind_of_statement_has_its_own_verdicts() -> None:
    own = dict.fromkeys(verdict for verdicts in VERDICTS_ON.values() for verdict in verdicts)
    assert [*own, "not attempted"] == [*VERDICTS]
    assert list(VERDICTS_ON) == list(SUBJECTS)
    assert {"differs", "fails", "slower"} == DIFFERENCES


def test_a_difference_without_a_known_reason() -> None:
    found = judge(reported("a", "1"), Number("a", "value", 2.0))
    assert (found.verdict, found.reason) == ("differs", "no reason is known")


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.4, 0.5, "within"), (0.5, 0.6, "within"), (0.51, 0.6, "differs")]
)
def test_a_prediction_interval_decides_under_its_rule_alone(low: float, high: float, verdict: str) -> None:
    number = Number("a", "value", 0.58, interval=Interval(low, high, "prediction"))
    found = judge(reported("a", "0.5", "interval"), number)
    assert found.verdict == verdict
    assert found.reason in (f"inside the interval {low:g} to {high:g} over the repetitions", "no reason is known")
    assert judge(reported("a", "0.5", "exact"), number).verdict == "differs"
    assert judge(reported("a", "0.5", "interval"), Number("a", "value", 0.58)).verdict == "differs"


@pytest.mark.parametrize("ours", [0.5, 0.58])
@pytest.mark.parametrize("kind", ["confidence", "certified"])
def test_the_rule_of_intervals_needs_a_prediction_interval(kind: IntervalKind, ours: float) -> None:
    number = Number("a", "value", ours, interval=Interval(0.4, 0.6, kind))
    with pytest.raises(ValueError, match=f"the interval of a/value must be a prediction interval, got '{kind}'"):
        judge(reported("a", "0.5", "interval"), number)
    assert judge(reported("a", "0.5", "at_least"), number).verdict in ("exact", "trend")


def test_numbers_are_matched_by_row_and_quantity() -> None:
    numbers = [Number("b", "value", None, reason="no proof"), Number("a", "other", 1.0), Number("c", "value", 3.0)]
    found = compare([reported(row, "3") for row in "abc"], numbers, "")
    assert [(one.reported.row, one.verdict, one.value) for one in found] == [
        *(("a", "not attempted", None), ("b", "not attempted", None), ("c", "exact", 3.0))
    ]
    assert [one.reason for one in found[:2]] == ["not computed in this run", "no proof"]
    assert [one.reason for one in compare([reported("b", "3")], numbers, "no data")] == ["no data"]


finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.integers(-(10**7), 10**7), st.integers(0, 6), st.floats(-1.5, 1.5))
def test_exact_is_within_half_of_the_last_printed_digit(digits: int, decimals: int, off: float) -> None:
    assume(abs(abs(off) - 0.5) > 1e-3)
    printed = f"{digits / 10**decimals:.{decimals}f}"
    verdict, _ = verdict_on(printed, "exact", (digits + off) / 10**decimals)
    assert verdict == ("exact" if abs(off) < 0.5 else "differs")


@given(finite, finite, st.integers(0, 6), st.sampled_from(["exact", "within", "at_most", "at_least"]))
def test_exact_means_that_the_printed_forms_are_equal(value: float, other: float, decimals: int, kind: str) -> None:
    for ours in (value, other):
        verdict, _ = verdict_on(f"{value:.{decimals}f}", kind, ours)
        assert (verdict == "exact") == (float(f"{ours:.{decimals}f}") == float(f"{value:.{decimals}f}"))


@given(finite, finite)
def test_a_number_is_on_one_side_of_the_printed_one(value: float, ours: float) -> None:
    verdicts = {verdict_on(f"{value:.3f}", kind, ours)[0] for kind in ("at_most", "at_least")}
    assert verdicts in ({"exact"}, {"trend", "differs"})
