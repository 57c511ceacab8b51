"""Printed shares against all fractions, and what follows for the test rows of Figure 5."""

from __future__ import annotations

from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal

import pytest

from trimbench.papers.trimming.figure5 import contradiction, is_share, possible_sizes, stated_sizes
from trimbench.papers.vocabulary.reported import Reported, Rule, printed_numbers


def shown(text: str) -> Reported:
    return Reported("a paper", "row", "agreement", text, Rule(kind="exact"))


def shares_of(name: str) -> list[Reported]:
    return [
        one
        for (row, quantity), one in printed_numbers("trimming/figure5").items()
        if row.startswith(f"{name} ") and quantity in ("agreement", "accuracy")
    ]


@pytest.mark.parametrize("text", ["0.9863", "0.5", "0.13", "1.000", "0.0000"])
def test_a_share_is_what_rounds_to_the_printed_digits(text: str) -> None:
    for n in range(1, 200):
        rounded = {
            (Decimal(k) / n).quantize(Decimal(text), rounding)
            for k in range(n + 1)
            for rounding in (ROUND_HALF_UP, ROUND_HALF_DOWN)
        }
        assert is_share(shown(text), n) == (Decimal(text) in rounded), n


@pytest.mark.parametrize(("name", "rows", "smallest"), [("pima", 768, 73), ("heart", 303, 53)])
def test_the_printed_shares_are_of_73_and_53_rows(name: str, rows: int, smallest: int) -> None:
    sizes = possible_sizes(shares_of(name), rows)
    assert sizes == list(range(smallest, rows + 1, smallest))


def test_stated_rows_are_right_to_the_whole_percent() -> None:
    assert list(stated_sizes(768, 0.2)) == [150, 151, 152, 153, 154, 155, 156, 157]
    assert list(stated_sizes(270, 0.2)) == [53, 54, 55]
    assert list(stated_sizes(303, 0.2)) == [60, 61, 62]
    # Of few rows no number may be right to the whole percent; those on both sides are meant then.
    assert list(stated_sizes(12, 0.2)) == [2, 3]
    assert list(stated_sizes(10, 0.2)) == [2]


def test_each_of_pimas_shares_contradicts_the_stated_split() -> None:
    shares = shares_of("pima")
    assert len(shares) == 4
    for one in shares:
        assert not any(is_share(one, n) for n in range(150, 158))
        proof = contradiction(one, shares, {"diabetes": 768}, 0.2)
        assert proof.startswith(
            f"{one.printed} is not a share of the stated test rows, if all rows are used: of 150 to 157 "
        )
        assert proof.endswith("possible with 73, 146, 219, 292, 365, 438, 511, 584, 657, 730 of up to 768 rows only.")
    assert "the nearest share is 148/150 = 0.986667" in contradiction(shown("0.9863"), shares, {"diabetes": 768}, 0.2)


def test_a_share_that_one_of_the_data_sets_allows_contradicts_nothing() -> None:
    shares = shares_of("heart")
    for one in shares:
        assert not any(is_share(one, n) for n in (54, 60, 61, 62))
        assert is_share(one, 53)
        assert contradiction(one, shares, {"heart_statlog": 270, "heart_cleveland": 303}, 0.2) == ""
        assert contradiction(one, shares, {"heart_cleveland": 303}, 0.2) != ""
    assert contradiction(shown("0.9863"), [], {"diabetes": 768}, 0.2) == ""
    impossible = [shown("0.9863"), shown("0.0001")]
    proof = contradiction(impossible[0], impossible, {"small": 100}, 0.2)
    assert proof.endswith(
        ": of 20 test rows (20 % of small's 100 rows, to the whole percent) the nearest share is 20/20 = 1.000000."
    )
