"""What Figure 5 and its section say of one data set, averaged over splits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trimbench.papers.study.numbers import Number, numbers_of, prediction_interval

if TYPE_CHECKING:
    import pandas as pd

PICKS = {
    "optimal_eca": "highest ECA",
    "optimal_accuracy": "highest accuracy",
    "information_gain": "information gain",
}
# What the paper prints or claims; the tables have more.
PRINTED_PICKS = ("optimal_eca", "optimal_accuracy")
TESTED = ("agreement", "accuracy")
REMARKS = ("full_accuracy", "better_than_full_percent")
_LEADS = ("agreement_lead", "accuracy_lead")
_MORE_ACCURATE = "more_accurate_percent"
_OFTEN_MORE_ACCURATE = "heart"


@dataclass(frozen=True, eq=False)
class Averages:
    """The lines of the tables for one data set and set-up, and the counterparts of printed numbers.

    `rows` are those of the jobs, one for each split; `draws` has the values of all splits for each number that one
    split of the paper gave.
    """

    rows: pd.DataFrame
    tests: Sequence[Mapping[str, object]]
    remarks: Mapping[str, object]
    claims: Mapping[str, object]
    numbers: Sequence[Number]
    draws: Mapping[tuple[str, str], Sequence[float]]


def averages_of(name: str, setup: str, ours: pd.DataFrame) -> Averages:
    """Return the averages of one data set in one set-up; `ours` are the rows of its successful jobs."""
    labels: dict[str, object] = {"data": name, "set-up": setup}
    tests, numbers = [], []
    draws: dict[tuple[str, str], Sequence[float]] = {}
    for pick, title in PICKS.items():
        found = _averages(f"{name} {title}", ours, TESTED, f"{pick}_")
        tests.append(labels | {"subset": title, "splits": len(ours)} | _spread(found, "test "))
        if pick in PRINTED_PICKS:
            numbers += found
            draws |= {(f"{name} {title}", quantity): ours[f"{pick}_{quantity}"].tolist() for quantity in TESTED}
    remarks = _averages(name, ours, REMARKS)
    draws |= {(name, quantity): ours[quantity].tolist() for quantity in REMARKS}
    claim = _claims(ours)
    claimed = (*_LEADS, _MORE_ACCURATE) if name == _OFTEN_MORE_ACCURATE else _LEADS
    numbers += remarks + numbers_of(name, {quantity: claim[quantity] for quantity in claimed}, ours)
    return Averages(ours, tests, labels | _spread(remarks), labels | {"splits": len(ours)} | claim, numbers, draws)


def spread_columns(table: Literal["tests", "remarks"]) -> dict[str, str]:
    """Return the columns of a table with their formats."""
    labels = dict.fromkeys(("data", "set-up"), "")
    if table == "tests":
        return labels | dict.fromkeys(("subset", "splits"), "") | _spread_formats(TESTED, "test ")
    return labels | _spread_formats(REMARKS)


def claim_columns() -> dict[str, str]:
    """Return the columns of the table of claims with their formats."""
    labels = dict.fromkeys(("data", "set-up", "splits"), "")
    return labels | {_MORE_ACCURATE: ".0f", "equally_accurate_percent": ".0f", **dict.fromkeys(_LEADS, ".4f")}


def _averages(row: str, ours: pd.DataFrame, quantities: Sequence[str], prefix: str = "") -> list[Number]:
    """Return means over the splits, with prediction intervals for one more."""
    values = {quantity: ours[f"{prefix}{quantity}"].tolist() for quantity in quantities}
    means = {quantity: float(np.mean(found)) for quantity, found in values.items()}
    intervals = {quantity: prediction_interval(found) for quantity, found in values.items()}
    return numbers_of(row, means, ours, intervals)


def _spread(numbers: Iterable[Number], prefix: str = "") -> dict[str, object]:
    """Return columns with the numbers and the ends of their intervals."""
    columns: dict[str, object] = {}
    for number in numbers:
        low, high = (number.interval.low, number.interval.high) if number.interval else (math.nan, math.nan)
        columns |= zip(_ends(f"{prefix}{number.quantity}"), (number.value, low, high), strict=True)
    return columns


def _spread_formats(quantities: Iterable[str], prefix: str = "") -> dict[str, str]:
    return {
        column: ".1f" if quantity.endswith("percent") else ".4f"
        for quantity in quantities
        for column in _ends(f"{prefix}{quantity}")
    }


def _ends(quantity: str) -> tuple[str, str, str]:
    return quantity, f"{quantity} low", f"{quantity} high"


def _claims(ours: pd.DataFrame) -> dict[str, float]:
    """Return what section 6.1 claims of one data set in words."""
    accuracy = ours["optimal_accuracy_accuracy"]
    more = ours["optimal_eca_accuracy"] - accuracy
    leads = {
        "agreement_lead": ours["optimal_eca_agreement"] - ours["information_gain_agreement"],
        "accuracy_lead": accuracy - ours["information_gain_accuracy"],
    }
    return {
        _MORE_ACCURATE: 100 * float((more > 0).mean()),
        "equally_accurate_percent": 100 * float((more == 0).mean()),
        # Equal means differ by rounding; adding 0 takes the sign from a zero.
    } | {title: round(float(lead.mean()), 12) + 0.0 for title, lead in leads.items()}
