"""Reported numbers beside reproduced ones, with a verdict that follows from a declared rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Literal

from trimbench.configuration import ConfigurationError, build_settings, unknown

Verdict = Literal["exact", "within", "trend", "differs", "not attempted"]
VERDICTS: tuple[Verdict, ...] = ("exact", "within", "trend", "differs", "not attempted")
_RULES = ("exact", "within", "interval", "at_most", "at_least")
_TIMEOUT = "timeout"
# Enough digits for every float in full.
_EXACTLY = Context(prec=2000)


@dataclass(frozen=True)
class Rule:
    """How a reproduced number is compared with the printed one.

    Attributes
    ----------
    kind : str
        "exact": it rounds to the printed digits. "within": it is at most `tolerance` away. "interval": the printed
        number is inside the interval over the repetitions. "at_most" and "at_least": it is on that side of the printed
        number, in the paper's own direction of better.
    tolerance : float
        Of "within", in units of the number.
    reason : str
        Why a difference is to be expected, as far as it is known.
    """

    kind: str
    tolerance: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _RULES:
            raise unknown("rule", _RULES, self.kind)


@dataclass(frozen=True)
class Reported:
    """One number as a paper prints it.

    Attributes
    ----------
    source : str
        Paper and table or figure.
    key : str
        ``row/quantity``.
    printed : str
        The digits as printed, for example ``"0.50"`` or ``"1.2e-3"``; ``timeout`` for a run that did not finish.
    rule : Rule
    """

    source: str
    key: str
    printed: str
    rule: Rule

    def __post_init__(self) -> None:
        if self.printed != _TIMEOUT and not _is_number(self.printed):
            raise ConfigurationError(
                f"reported number {self.key} must be digits as printed, without thousands separators and units, or "
                f"{_TIMEOUT!r}, got {self.printed!r}"
            )

    @property
    def value(self) -> float:
        """The number; infinity for a run that timed out."""
        return math.inf if self.printed == _TIMEOUT else float(self.printed)

    def is_printed_form_of(self, value: float) -> bool:
        """Tell whether a number rounds to the printed digits (a half goes to the even digit)."""
        if self.printed == _TIMEOUT or not math.isfinite(value):
            return False
        printed = Decimal(self.printed)
        return Decimal(value).quantize(printed, context=_EXACTLY) == printed


def _is_number(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


def read_reported(mapping: Mapping[str, Any], experiment: str) -> list[Reported]:
    """Return the reported numbers of one experiment.

    Parameters
    ----------
    mapping : mapping
        For each experiment: ``source``, ``rules`` (for each quantity) and ``numbers`` (for each row, for each
        quantity the printed digits as text); optionally ``reasons``, by the first word of a row, for rules
        without a reason.
    experiment : str

    Raises
    ------
    ConfigurationError
        When a part is missing, or a number is not text, not digits, or has no rule.
    """
    entry = mapping.get(experiment)
    if entry is None:
        return []
    what = f"reported numbers of {experiment}"
    _check_parts(entry, what)
    rules = {
        quantity: build_settings(Rule, rule, f"{what}: rule of {quantity}") for quantity, rule in entry["rules"].items()
    }
    reasons = entry.get("reasons", {})
    if not isinstance(reasons, dict) or not all(isinstance(reason, str) for reason in reasons.values()):
        raise ConfigurationError(f"{what}: reasons must be a text for each first word of a row, got {reasons!r}")
    reported = []
    for row, numbers in entry["numbers"].items():
        for quantity, printed in numbers.items():
            if quantity not in rules:
                raise unknown(f"{what}: a quantity", list(rules), quantity)
            if not isinstance(printed, str):
                raise ConfigurationError(
                    f"{what}: {row}/{quantity} must be quoted, got {printed!r}; quotes keep the printed digits"
                )
            rule = rules[quantity]
            rule = replace(rule, reason=rule.reason or reasons.get(row.split(" ")[0], ""))
            reported.append(Reported(entry["source"], f"{row}/{quantity}", printed, rule))
    return reported


def _check_parts(entry: Any, what: str) -> None:
    parts = entry if isinstance(entry, dict) else {}
    rows = parts.get("numbers")
    if not (
        isinstance(parts.get("source"), str)
        and isinstance(parts.get("rules"), dict)
        and isinstance(rows, dict)
        and all(isinstance(numbers, dict) for numbers in rows.values())
    ):
        raise ConfigurationError(
            f"{what} must have source (text), rules (for each quantity) and numbers (for each row, for each "
            f"quantity), got {entry!r}"
        )


def judge(
    reported: Reported, reproduced: float | None, interval: tuple[float, float] | None = None
) -> tuple[Verdict, str]:
    """Return the verdict on one number and the reason for it.

    Parameters
    ----------
    reported : Reported
    reproduced : float or None
        None (or NaN) where it was not computed.
    interval : tuple of float, optional
        Of the reproduced number, over repetitions.

    Returns
    -------
    verdict : str
    reason : str
    """
    rule, value = reported.rule, reported.value
    if reproduced is None or math.isnan(reproduced):
        return "not attempted", "not computed in this run"
    if reported.is_printed_form_of(reproduced):
        return "exact", "rounds to the printed digits"
    if rule.kind == "interval" and interval is not None and interval[0] <= value <= interval[1]:
        return "within", f"inside the interval {interval[0]:.4g} to {interval[1]:.4g} over the repetitions"
    if rule.kind == "within" and abs(reproduced - value) <= rule.tolerance:
        return "within", f"within {rule.tolerance:g} of the printed number"
    if rule.kind == "at_most" and reproduced <= value:
        return "trend", "below the printed number" if math.isfinite(value) else "finished where the printed run did not"
    if rule.kind == "at_least" and reproduced >= value:
        return "trend", "above the printed number"
    return "differs", rule.reason or "no reason is known"
