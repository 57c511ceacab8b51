"""Counts of verdicts and causes, by kind of statement."""

from __future__ import annotations

from typing import Any

import pytest

from trimbench.papers.reporting.verdicts import COLUMNS, Judgement, causes_in_words, compare, in_words, tally
from trimbench.papers.vocabulary.numbers import Explanation, Number, Probability

from .builders import judged, reported

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


@pytest.mark.parametrize(
    ("judgements", "words"),
    [
        (
            JUDGED,
            "2 of 4 numbers reproduced, 1 differs, 1 not attempted; 2 of 3 claims hold, 1 fails; "
            "1 of 2 times faster, 1 slower",
        ),
        (JUDGED[:2], "2 of 2 numbers reproduced"),
        (JUDGED[2:3], "0 of 1 number reproduced, 1 differs"),
        (JUDGED[3:4], "1 number not attempted"),
        (JUDGED[4:5], "1 of 1 claim holds"),
        (JUDGED[7:8], "0 of 1 time faster, 1 slower"),
        (judged(NUMBERS[:2], {"a": 9.0, "b": 9.0}), "0 of 2 numbers reproduced, 2 differ"),
        (judged(CLAIMS[:2], {"e": -9.0, "f": -9.0}), "0 of 2 claims hold, 2 fail"),
        ([], ""),
    ],
)
def test_what_came_out_in_words(judgements: list[Judgement], words: str) -> None:
    assert in_words(judgements) == words


def test_the_ways_in_which_numbers_were_reproduced() -> None:
    assert in_words(JUDGED[:5], detailed=True) == (
        "2 of 4 numbers reproduced (1 exact, 1 within), 1 differs (unexplained), 1 not attempted; 1 of 1 claim holds"
    )
    assert in_words(JUDGED[2:3], detailed=True) == "0 of 1 number reproduced, 1 differs (unexplained)"


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
        "1 of 3 numbers reproduced (1 exact), 1 on the better side, 1 differs (unexplained)"
    )
