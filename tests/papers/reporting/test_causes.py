"""What accounts for a difference: an inferred set-up, a contradiction, chance, or nothing that is known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.reporting.verdicts import Judgement, judge
from trimbench.papers.vocabulary.numbers import Explanation, Interval, Number, Probability

from .builders import reported

RARE, FREQUENT = Probability(0.008, 0.001), Probability(0.02, 0.001)


def difference(printed: str, ours: float, kind: str = "exact", rule: Any = None, **evidence: Any) -> Judgement:
    one = reported("a", printed, kind, reason="known", **(rule or {}))
    return judge(one, Number("a", "value", ours, **evidence))


def test_what_meets_its_rule_has_no_cause() -> None:
    for evidence in ({"explanation": Explanation("twice", 1.0)}, {"contradiction": "No."}, {"probability": FREQUENT}):
        found = difference("1.0", 1.0, **evidence)
        assert (found.verdict, found.cause) == ("exact", None)


def test_nothing_known_is_unexplained() -> None:
    found = difference("1.0", 2.0)
    assert (found.verdict, found.cause, found.account) == ("differs", "unexplained", "known")


def test_a_longer_time_has_no_cause_besides_the_machine() -> None:
    found = difference("1.0", 2.0, "at_most", {"subject": "time"})
    assert (found.verdict, found.cause, found.account) == ("slower", None, "known")


def test_an_explanation_never_changes_the_verdict() -> None:
    found = difference("1.0", 2.0, explanation=Explanation("half of it", 1.0))
    assert (found.verdict, found.cause, found.value) == ("differs", "explained", 2.0)
    assert found.account == "inferred set-up: half of it"


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


def test_to_be_on_the_better_side_explains_no_printed_number() -> None:
    for inferred, cause in ((14.0, "explained"), (10.0, "unexplained")):
        assert difference("14", 15.0, "at_most", explanation=Explanation("s", inferred)).cause == cause


def test_a_contradiction_is_told() -> None:
    found = difference("1.0", 2.0, contradiction="One and two.", probability=FREQUENT)
    assert (found.cause, found.account) == ("contradicts itself", "One and two.")


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


@given(st.floats(0, 10))
def test_the_distance_to_a_curve_is_never_exact(distance: float) -> None:
    found = difference("0.00", distance, "within", {"subject": "curve", "tolerance": 0.02})
    assert found.verdict == ("within" if distance <= 0.02 else "differs")
