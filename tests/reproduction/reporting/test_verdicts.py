"""Verdicts on reported and reproduced numbers, what accounts for differences, and counts of both."""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.reproduction.reporting.tables import differences
from trimbench.reproduction.reporting.verdicts import (
    COLUMNS,
    DIFFERENCES,
    STANDINGS,
    VERDICTS_ON,
    Judgement,
    Verdict,
    causes_in_words,
    compare,
    in_all,
    in_words,
    judge,
    made_of,
    shown_value,
    standing,
    tally,
)
from trimbench.reproduction.vocabulary.numbers import Explanation, Interval, IntervalKind, Number, Probability
from trimbench.reproduction.vocabulary.reported import SUBJECTS

from .builders import judged, reported

EXACT, WITHIN = "rounds to the printed digits", "within 0.125 of the printed number"
BELOW, ABOVE, FINISHED = (
    "below the printed number",
    "above the printed number",
    "finished where the printed run did not",
)
CLAIMED, NOT_TRIED = "on the side that the paper claims", "not computed in this run"
ELSEWHERE = "the printed time, of another machine, is"
CASES = [
    # subject, printed, rule, reproduced, verdict, reason
    ("number", "0.50", "exact", 0.5049, "exact", EXACT),
    ("number", "16", "exact", 27.0, "differs", "known"),
    ("number", "0.00", "exact", -0.001, "exact", EXACT),
    ("number", "-0.25", "exact", 0.25, "differs", "known"),
    ("number", "1.2e-3", "exact", 0.00124, "exact", EXACT),
    ("number", "1.2e-3", "exact", 0.00126, "differs", "known"),
    ("number", "1.5e3", "exact", 1560.0, "differs", "known"),
    ("number", "0.5", "exact", math.inf, "differs", "known"),
    ("number", "0.5", "within", 0.54, "exact", EXACT),
    ("number", "0.5", "within", 0.625, "within", WITHIN),
    ("number", "0.5", "within", 0.375, "within", WITHIN),
    ("number", "0.5", "within", 0.626, "differs", "known"),
    ("number", "0.5", "within", -math.inf, "differs", "known"),
    ("number", "0.5", "at_most", 0.3, "trend", BELOW),
    ("number", "0.5", "at_most", 0.6, "differs", "known"),
    ("number", "0.5", "at_least", 0.6, "trend", ABOVE),
    ("number", "0.5", "at_least", 0.4, "differs", "known"),
    ("number", "timeout", "at_most", 3600.0, "trend", FINISHED),
    ("number", "timeout", "exact", 3600.0, "differs", "known"),
    ("number", "timeout", "at_least", 3600.0, "differs", "known"),
    ("number", "0.5", "exact", None, "not attempted", NOT_TRIED),
    ("number", "0.5", "at_most", math.nan, "not attempted", NOT_TRIED),
    ("claim", "0.000000", "at_least", 0.25, "holds", CLAIMED),
    ("claim", "0.000000", "at_least", -0.25, "fails", "known"),
    ("claim", "0", "at_least", -0.4, "fails", "known"),  # a limit is not rounded, as a measurement is
    ("claim", "2", "at_most", 2.4, "fails", "known"),
    ("claim", "100", "at_least", 99.99999999999999, "holds", "as the paper says"),
    ("claim", "4", "at_least", 4.0, "holds", "as the paper says"),
    ("claim", "1.000", "at_most", 0.5, "holds", CLAIMED),
    ("claim", "0.00", "within", 0.1, "holds", "as the paper says, within the declared tolerance"),
    ("claim", "0.00", "within", 0.2, "fails", "known"),
    ("claim", "4", "exact", 4.0, "holds", "as the paper says"),
    ("claim", "4", "exact", 3.0, "fails", "known"),
    ("claim", "4", "exact", None, "not attempted", NOT_TRIED),
    ("time", "12.5", "at_most", 12.5, "faster", f"{ELSEWHERE} 1 times ours"),
    ("time", "12.5", "at_most", 0.5, "faster", f"{ELSEWHERE} 25 times ours"),
    ("time", "12.5", "at_most", 0.0, "faster", f"{ELSEWHERE} longer than ours, which is too short to measure"),
    ("time", "12.5", "at_most", 12.51, "slower", "known"),
    ("time", "timeout", "at_most", 3600.0, "faster", FINISHED),
    ("time", "timeout", "at_most", None, "not attempted", NOT_TRIED),
]


@pytest.mark.parametrize(("subject", "printed", "kind", "ours", "verdict", "reason"), CASES)
def test_verdicts(subject: str, printed: str, kind: str, ours: float | None, verdict: Verdict, reason: str) -> None:
    number = Number("row", "value", ours)
    found = judge(reported("row", printed, kind, tolerance=0.125, reason="known", subject=subject), number)
    assert (found.number, found.value) == (number, ours)
    assert (found.verdict, found.reason, found.differs) == (verdict, reason, verdict in DIFFERENCES)


@pytest.mark.parametrize(
    ("kind", "ours", "edge"), [("at_most", 1.5, 1.5), ("at_least", 1.5, 1.5), ("within", 2.2, 0.2)]
)
@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_limit_of_ours_is_said_with_those_that_give_the_same_verdict(
    kind: str, ours: float, edge: float, factor: float
) -> None:
    limit = edge * factor
    printed, tolerance = ("2.00", limit) if kind == "within" else (f"{limit:.4f}", 0.0)
    claim = reported("a", printed, kind, tolerance=tolerance, subject="claim")
    one = judge(dataclasses.replace(claim, reading="two at most"), Number("a", "value", ours))
    assert one.differs == ((factor > 1) == (kind == "at_least"))
    limits = f"from about {edge} up" if factor > 1 else f"up to about {edge}"
    assert one.reading == f"our reading: two at most; any limit {limits} gives the same verdict"
    assert differences([one]).frame["reason"].tolist() == [f"no reason is known; {one.reading}"] * one.differs
    assert dataclasses.replace(one, verdict="not attempted").reading == ""


def test_each_kind_of_statement_has_its_own_verdicts() -> None:
    own = dict.fromkeys(verdict for verdicts in VERDICTS_ON.values() for verdict in verdicts)
    assert [*own, "not attempted"] == [*typing.get_args(Verdict)]
    assert list(VERDICTS_ON) == list(SUBJECTS)
    assert {"differs", "fails", "slower"} == DIFFERENCES


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.4, 0.5, "within"), (0.5, 0.6, "within"), (0.51, 0.6, "differs")]
)
def test_a_prediction_interval_decides_under_its_rule_alone(low: float, high: float, verdict: str) -> None:
    number = Number("a", "value", 0.58, interval=Interval(low, high, "prediction"))
    found = judge(reported("a", "0.5", "interval"), number)
    assert found.verdict == verdict
    said = f"the interval {low:g} to {high:g} over the repetitions"
    assert found.reason in (f"inside {said}", f"outside {said}; no reason is known")
    assert judge(reported("a", "0.5", "exact"), number).verdict == "differs"
    assert judge(reported("a", "0.5", "interval"), Number("a", "value", 0.58)).verdict == "differs"


@pytest.mark.parametrize("ours", [0.5, 0.58])
@pytest.mark.parametrize("kind", ["confidence", "certified"])
def test_the_rule_of_intervals_needs_a_prediction_interval(kind: IntervalKind, ours: float) -> None:
    number = Number("a", "value", ours, interval=Interval(0.4, 0.6, kind))
    with pytest.raises(ValueError, match=f"the interval of a/value must be a prediction interval, got '{kind}'"):
        judge(reported("a", "0.5", "interval"), number)
    assert judge(reported("a", "0.5", "at_least"), number).verdict in ("exact", "trend")


# Found to be shown with four digits, whatever is printed.
SHOWN = [
    ("-3482258.63459", "exact", -3482258.634590, "-3482258.63459"),
    ("-3482258.63459", "exact", -3482258.634597, "-3482258.63460"),
    ("0.995469004577", "exact", 0.99546900457662, "0.995469004577"),
    ("1200345.12", "exact", 1200345.12, "1200345.12"),
    ("0.50", "exact", 0.5, "0.50"),
    ("0.12", "exact", 0.1250001, "0.1250001"),  # 0.125 would round to what is printed
    ("100", "within", 100.5000004, "100.5000004"),
    ("0.123", "exact", 0.12345, "0.1235"),
    ("1.2e-3", "exact", 0.00123456, "0.001235"),
    ("1.2e-7", "exact", 1.23456e-7, "1.235e-07"),
    ("0.0000123456", "exact", 1.23457e-05, "1.23457e-05"),
    ("7", "exact", 123456.789, "123457"),
    ("0.0", "exact", 0.0, "0.0"),
    ("1", "exact", 1e300, "1.0000000000000001e+300"),
]


@pytest.mark.parametrize(("printed", "kind", "ours", "text"), SHOWN)
def test_a_number_is_shown_with_the_printed_digits_and_those_that_tell(
    printed: str, kind: Any, ours: float, text: str
) -> None:
    rule = {"tolerance": 0.5} if kind == "within" else {}
    [judgement] = judged([reported("a", printed, kind, **rule)], {"a": ours})
    assert shown_value(judgement) == text


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(0, 9), st.sampled_from(["exact", "at_most", "at_least"]))
def test_what_is_shown_has_the_verdict_of_what_is_computed(value: float, ours: float, decimals: int, kind: Any) -> None:
    one = reported("a", f"{value:.{decimals}f}", kind)
    [judgement] = judged([one], {"a": ours})
    [again] = judged([one], {"a": float(shown_value(judgement))})
    assert again.verdict == judgement.verdict


def test_numbers_are_matched_by_row_and_quantity() -> None:
    numbers = [Number("b", "value", None, reason="no proof"), Number("a", "other", 1.0), Number("c", "value", 3.0)]
    found = compare([reported(row, "3") for row in "abc"], numbers, "")
    assert [(one.reported.row, one.verdict, one.value) for one in found] == [
        *(("a", "not attempted", None), ("b", "not attempted", None), ("c", "exact", 3.0))
    ]
    assert [one.reason for one in found[:2]] == ["not computed in this run", "no proof"]
    assert [one.reason for one in compare([reported("b", "3")], numbers, "no data")] == ["no data"]


finite = st.floats(-1e9, 1e9, allow_nan=False)


def verdict_on(printed: str, kind: str, ours: float) -> Verdict:
    return judge(reported("row", printed, kind, tolerance=0.125), Number("row", "value", ours)).verdict


@given(finite, finite, st.integers(0, 6), st.sampled_from(["exact", "within", "at_most", "at_least"]))
def test_exact_means_that_the_printed_forms_are_equal(value: float, other: float, decimals: int, kind: str) -> None:
    for ours in (value, other):
        verdict = verdict_on(f"{value:.{decimals}f}", kind, ours)
        assert (verdict == "exact") == (float(f"{ours:.{decimals}f}") == float(f"{value:.{decimals}f}"))


@given(finite, finite)
def test_a_number_is_on_one_side_of_the_printed_one(value: float, ours: float) -> None:
    verdicts = {verdict_on(f"{value:.3f}", kind, ours) for kind in ("at_most", "at_least")}
    assert verdicts in ({"exact"}, {"trend", "differs"})


RARE, FREQUENT = Probability(0.008, 0.001), Probability(0.02, 0.001)


def difference(printed: str, ours: float, kind: str = "exact", rule: Any = None, **evidence: Any) -> Judgement:
    one = reported("a", printed, kind, reason="known", **(rule or {}))
    return judge(one, Number("a", "value", ours, **evidence))


@pytest.mark.parametrize(
    ("ours", "evidence", "told"),
    [
        *((1.0, one, ("exact", None)) for one in ({"explanation": Explanation("s", 1.0)}, {"contradiction": "No."})),
        (1.0, {"probability": FREQUENT}, ("exact", None)),
        (2.0, {}, ("differs", "unexplained", "known")),
        (2.0, {"kind": "at_most", "rule": {"subject": "time"}}, ("slower", None, "known")),
        (2.0, {"explanation": Explanation("half of it", 1.0)}, ("differs", "explained", "inferred set-up: half of it")),
        (2.0, {"contradiction": "No.", "probability": FREQUENT}, ("differs", "contradicts itself", "No.")),
    ],
)
def test_what_accounts_for_a_difference_never_changes_the_verdict(
    ours: float, evidence: dict[str, Any], told: tuple[Any, ...]
) -> None:
    found = difference("1.0", ours, **evidence)
    assert (found.verdict, found.cause, found.account)[: len(told)] == told
    assert found.value == ours


@pytest.mark.parametrize(
    ("ours", "inferred", "percent", "cause"),
    [
        (20.0, 10.04, 0, "explained"),  # rounds to the printed digits
        (20.0, 10.5, 5, "explained"),
        (20.0, 10.6, 5, "unexplained"),  # too far from the printed number
        (20.0, 10.6, 0, "unexplained"),
        (10.8, 10.5, 5, "unexplained"),  # hardly nearer than the paper's own words
        (11.0, 10.5, 5, "explained"),
        (9.0, 9.5, 5, "explained"),
    ],
)
def test_an_explanation_must_come_near_and_much_nearer(
    ours: float, inferred: float, percent: float, cause: str
) -> None:
    found = difference("10.0", ours, rule={"explained_percent": percent}, explanation=Explanation("s", inferred))
    assert found.cause == cause
    assert found.explanation is not None, "it is shown whether or not it explains"


def test_an_explanation_may_meet_the_rule() -> None:
    inside, outside = Interval(0.5, 1.5, "prediction"), Interval(1.5, 2.5, "prediction")
    for interval, cause in ((inside, "explained"), (outside, "unexplained")):
        own = Explanation("s", 1.2, interval)
        found = difference("1.0", 2.0, "interval", explanation=own, interval=Interval(1.9, 2.1, "prediction"))
        assert found.cause == cause
    claim = {"subject": "claim"}
    assert difference("40", 30.0, "at_least", claim, explanation=Explanation("s", 41.0)).cause == "explained"
    assert difference("40", 30.0, "at_least", claim, explanation=Explanation("s", 39.0)).cause == "unexplained"
    # To be on the better side explains no printed number.
    for inferred, cause in ((14.0, "explained"), (10.0, "unexplained")):
        assert difference("14", 15.0, "at_most", explanation=Explanation("s", inferred)).cause == cause


@pytest.mark.parametrize(
    ("probability", "cause"),
    [
        (FREQUENT, "chance"),
        (RARE, "unexplained"),
        (Probability(0.01, 0.001), "unexplained"),
        (Probability(0.5, 0.02), "unexplained"),  # 100 replications cannot show less than 1 %
        (Probability(0.5, 0.001, overall=0.02), "chance"),
        (Probability(0.5, 0.001, overall=0.01), "unexplained"),  # too many of the table are far out
    ],
)
def test_chance_needs_enough_replications(probability: Probability, cause: str) -> None:
    found = difference("1.0", 2.0, "interval", probability=probability)
    assert found.cause == cause
    assert (found.account == "known") == (cause == "unexplained")


def test_chance_under_an_inferred_set_up_names_it() -> None:
    found = difference("1.0", 2.0, "interval", probability=Probability(0.5, 0.001, setup="200 cases"))
    assert "of our replications with an inferred set-up (200 cases), some number" in found.account


@given(st.floats(0, 10))
def test_the_distance_to_a_curve_is_never_exact(distance: float) -> None:
    found = difference("0.00", distance, "within", {"subject": "curve", "tolerance": 0.02})
    assert found.verdict == ("within" if distance <= 0.02 else "differs")


NUMBERS = [reported(row, "0.5", "within", tolerance=0.125) for row in "abcd"]
CLAIMS = [reported(row, "0.0", "at_least", subject="claim") for row in "efg"]
TIMES = [reported(row, "9", "at_most", subject="time") for row in "hi"]
VALUES = {"a": 0.5, "b": 0.6, "c": 0.7, "e": 1.0, "f": -1.0, "g": 0.5, "h": 10.0, "i": 8.0}
JUDGED = judged([*NUMBERS, *CLAIMS, *TIMES], dict(VALUES))


def test_kinds_are_counted_apart() -> None:
    counted = tally(JUDGED)
    assert [*counted] == COLUMNS
    assert {name: n for name, n in counted.items() if n} == {
        **{"numbers": 4, "exact": 1, "within": 1, "differs": 1, "claims": 3, "holds": 2, "fails": 1},
        **{"times": 2, "faster": 1, "slower": 1, "unexplained": 2, "not attempted": 1},
    }
    assert set(tally([]).values()) == {0}


def test_a_count_of_the_matrix_says_what_it_is_made_of() -> None:
    assert made_of("as printed", JUDGED) == "3 as printed (1 number, 2 claims)"
    assert in_all(JUDGED) == "in all, 3 as printed (1 number, 2 claims)"
    assert made_of("chance", JUDGED) == "0 chance"
    for n in range(len(JUDGED)):
        counts = [standing(one.subject, one.verdict, one.cause) for one in JUDGED[:n]]
        for name in STANDINGS:
            assert made_of(name, JUDGED[:n]).startswith(f"{counts.count(name)} {name}")
    assert in_all(JUDGED[:2]) == "", "one kind alone is what the words before it count"


@pytest.mark.parametrize(
    ("judgements", "words"),
    [
        (
            JUDGED,
            "2 of 4 numbers reproduced (1 as printed, 1 close), 1 differs, 1 not attempted; "
            "2 of 3 claims hold, 1 fails; 1 of 2 times are shorter, 1 is longer",
        ),
        (JUDGED[2:3], "0 of 1 number reproduced, 1 differs"),
        (JUDGED[3:4], "1 number not attempted"),
        (JUDGED[4:5], "1 of 1 claim holds"),
        (JUDGED[7:8], "0 of 1 time is shorter, 1 is longer"),
        (judged(NUMBERS[:2], {"a": 9.0, "b": 9.0}), "0 of 2 numbers reproduced, 2 differ"),
        (judged(CLAIMS[:2], {"e": -9.0, "f": -9.0}), "0 of 2 claims hold, 2 fail"),
        ([], ""),
    ],
)
def test_what_came_out_in_words(judgements: list[Judgement], words: str) -> None:
    assert in_words(judgements) == words


def test_curves_and_identities_are_counted_apart_from_measured_numbers() -> None:
    curves = [reported(row, "0.00", "within", tolerance=0.02, subject="curve") for row in "ab"]
    identities = [reported(row, "2", subject="identity") for row in "cd"]
    found = judged([*curves, *identities], {"a": 0.001, "b": 0.1, "c": 2.0, "d": 2.0})
    assert {name: n for name, n in tally(found).items() if n} == {
        **{"identities": 2, "identities exact": 2},
        **{"curves": 2, "curves within": 1, "curves differs": 1, "unexplained": 1},
    }
    assert in_words(found) == "2 of 2 identities hold; 1 of 2 curves followed, 1 differs"


def test_causes_are_counted_over_all_differences() -> None:
    evidence: list[dict[str, Any]] = [
        *({"explanation": Explanation("twice", 1.0)}, {"contradiction": "Both cannot be."}),
        *({"probability": Probability(0.5, 0.001)}, {}, {}),
    ]
    numbers = [Number(row, "value", 9.0, **own) for row, own in zip("abcde", evidence, strict=True)]
    found = compare([reported(row, "1") for row in "abcde"], numbers)
    assert causes_in_words(found) == "1 explained, 1 contradicted by the paper itself, 1 by chance, 2 unexplained"
    assert causes_in_words(found[3:]) == "all unexplained"
    assert causes_in_words(found[2:3]) == "by chance"
    assert causes_in_words([]) == ""
    assert in_words(found[:4], detailed=True) == (
        "0 of 4 numbers reproduced, 4 differ (1 explained, 1 contradicted by the paper itself, 1 by chance, "
        "1 unexplained)"
    )


def test_a_number_on_the_better_side_does_not_count_as_reproduced() -> None:
    found = judged([reported(row, "9", "at_most") for row in "abc"], {"a": 9.0, "b": 2.0, "c": 10.0})
    assert in_words(found) == "1 of 3 numbers reproduced, 1 on the better side, 1 differs"
    assert in_words(found, detailed=True) == (
        "1 of 3 numbers reproduced (1 as printed), 1 on the better side, 1 differs (unexplained)"
    )
