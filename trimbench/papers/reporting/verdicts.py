"""Reported numbers beside reproduced ones, with a verdict that follows from a declared rule."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trimbench.papers.study.numbers import Number
from trimbench.papers.study.reported import Reported, Subject

Verdict = Literal["exact", "within", "trend", "differs", "holds", "fails", "faster", "slower", "not attempted"]
VERDICTS: tuple[Verdict, ...] = typing.get_args(Verdict)

# The verdicts on each kind of statement besides "not attempted"; the last one is that on a difference.
VERDICTS_ON: Mapping[Subject, tuple[Verdict, ...]] = {
    "number": ("exact", "within", "trend", "differs"),
    "claim": ("holds", "fails"),
    "time": ("faster", "slower"),
}
DIFFERENCES = frozenset(verdicts[-1] for verdicts in VERDICTS_ON.values())


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

    @property
    def differs(self) -> bool:
        """Whether the number differs, the claim fails, or the time is longer."""
        return self.verdict in DIFFERENCES


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
    found = _time(reported, number.value) if reported.rule.subject == "time" else _met(reported, number, number.value)
    if found is None:
        verdict = VERDICTS_ON[reported.rule.subject][-1]
        return Judgement(reported, number, verdict, reported.rule.reason or "no reason is known")
    if reported.rule.subject == "claim":
        return Judgement(reported, number, "holds", _CLAIMED[found[0]])
    return Judgement(reported, number, *found)


_CLAIMED: Mapping[Verdict, str] = {
    "exact": "as the paper says",
    "within": "as the paper says, within the declared tolerance",
    "trend": "on the side that the paper claims",
}


def _time(reported: Reported, ours: float) -> tuple[Verdict, str] | None:
    if ours > reported.value:
        return None
    printed = math.isfinite(reported.value)
    return (
        "faster",
        "less time than printed, on another machine" if printed else "finished where the printed run did not",
    )


def _met(reported: Reported, number: Number, ours: float) -> tuple[Verdict, str] | None:
    """Return how the number meets its rule; None if it does not."""
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
    return None
