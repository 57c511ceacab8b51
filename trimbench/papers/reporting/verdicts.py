"""Reported numbers beside reproduced ones, with a verdict that follows from a declared rule."""

from __future__ import annotations

import math
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trimbench.papers.study.numbers import Number
from trimbench.papers.study.reported import Reported

Verdict = Literal["exact", "within", "trend", "differs", "not attempted"]
VERDICTS: tuple[Verdict, ...] = typing.get_args(Verdict)


@dataclass(frozen=True)
class Judgement:
    """A reported number, its reproduced counterpart, and the verdict on them.

    The counterpart is None where the experiment could not run, or ran with settings that are not the paper's.
    """

    reported: Reported
    number: Number | None
    verdict: Verdict
    reason: str

    @property
    def value(self) -> float | None:
        """The reproduced number."""
        return None if self.number is None else self.number.value


def compare(reported: Sequence[Reported], numbers: Sequence[Number], absent: str = "") -> list[Judgement]:
    """Return the judgement on each reported number, in order; `absent` says why numbers are absent, if known."""
    found = {(number.row, number.quantity): number for number in numbers}
    return [judge(one, found.get((one.row, one.quantity)), absent) for one in reported]


def judge(reported: Reported, number: Number | None, absent: str = "") -> Judgement:
    """Return the judgement on one number; `absent` says why there is none, if known.

    Raises ValueError if the rule needs a prediction interval and the number has one of another kind.
    """
    if number is None or number.value is None or math.isnan(number.value):
        reason = absent or (number.reason if number else "") or "not computed in this run"
        return Judgement(reported, number, "not attempted", reason)
    return Judgement(reported, number, *_verdict(reported, number, number.value))


def _verdict(reported: Reported, number: Number, ours: float) -> tuple[Verdict, str]:
    rule, value = reported.rule, reported.value
    interval = number.interval if rule.kind == "interval" else None
    if interval is not None and interval.kind != "prediction":
        raise ValueError(f"the interval of {reported.label} must be a prediction interval, got {interval.kind!r}")
    if reported.is_printed_form_of(ours):
        return "exact", "rounds to the printed digits"
    if interval is not None and interval.low <= value <= interval.high:
        return "within", f"inside the interval {interval.low:.4g} to {interval.high:.4g} over the repetitions"
    if rule.kind == "within" and abs(ours - value) <= rule.tolerance:
        return "within", f"within {rule.tolerance:g} of the printed number"
    if rule.kind == "at_most" and ours <= value:
        return "trend", "below the printed number" if math.isfinite(value) else "finished where the printed run did not"
    if rule.kind == "at_least" and ours >= value:
        return "trend", "above the printed number"
    return "differs", rule.reason or "no reason is known"
