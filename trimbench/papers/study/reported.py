"""The numbers that the papers print, each with the rule of its comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Literal

from trimbench.papers.configuration import Catalogue
from trimbench.papers.study.numbers import Number
from trimbench.papers.validation import ConfigurationError, settings, unknown, validated

_TIMEOUT = "timeout"
# Enough digits for every float in full.
_EXACTLY = Context(prec=2000)


@settings
class Rule:
    """How a reproduced number is compared with the printed one.

    Attributes
    ----------
    kind : str
        "exact": it rounds to the printed digits. "within": it is at most `tolerance` away. "interval": the printed
        number is inside the prediction interval for one more run of the paper's size. "at_most" and "at_least": it is
        on that side of the printed number, in the paper's own direction of better.
    tolerance : float
        For "within", in units of the number.
    reason : str
        Why a difference is to be expected, as far as it is known.
    """

    kind: Literal["exact", "within", "interval", "at_most", "at_least"]
    tolerance: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Reported:
    """One number as a paper prints it.

    `source` is the paper and its table or figure. `printed` has the digits as printed, for example ``"0.50"`` or
    ``"1.2e-3"``, or ``timeout`` for a run that did not finish.
    """

    source: str
    row: str
    quantity: str
    printed: str
    rule: Rule

    def __post_init__(self) -> None:
        if self.printed != _TIMEOUT and not _is_number(self.printed):
            raise ConfigurationError(
                f"reported number {self.label} must be digits as printed, without thousands separators and units, or "
                f"{_TIMEOUT!r}, got {self.printed!r}"
            )

    @property
    def label(self) -> str:
        """The name of the number in tables."""
        return f"{self.row}/{self.quantity}"

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


@settings
class Paper:
    """A paper whose numbers are reproduced.

    `review` answers the questions of a report on a reproduction: its scope, what was easy, what was difficult.
    """

    title: str
    citation: str
    review: dict[str, str] = field(default_factory=dict)


@settings
class ReportedExperiment:
    """The printed numbers of one experiment, as a file of the group ``reported`` declares them.

    Attributes
    ----------
    rules : dict from quantity to Rule
    numbers : dict from row to dict from quantity to the printed digits
        Digits are quoted text, because a number would lose its final zeros.
    reasons : dict from the first word of a row to a reason
        For rules that have none themselves.
    """

    source: str
    rules: dict[str, Rule]
    numbers: dict[str, dict[str, str]]
    reasons: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row, numbers in self.numbers.items():
            for quantity in numbers:
                if quantity not in self.rules:
                    raise unknown(f"a quantity of {row}", list(self.rules), quantity)

    def all(self) -> list[Reported]:
        """Return the numbers one by one."""
        return [
            Reported(self.source, row, quantity, printed, self._rule(row, quantity))
            for row, numbers in self.numbers.items()
            for quantity, printed in numbers.items()
        ]

    def _rule(self, row: str, quantity: str) -> Rule:
        rule = self.rules[quantity]
        return replace(rule, reason=rule.reason or self.reasons.get(row.split(" ")[0], ""))


@dataclass(frozen=True)
class Literature:
    """All papers by family, and the printed numbers of all experiments."""

    papers: Mapping[str, Paper]
    experiments: Mapping[str, ReportedExperiment]

    @classmethod
    def of(cls, catalogue: Catalogue) -> Literature:
        """Read all files of the group ``reported``; raise ConfigurationError if one has a mistake."""
        papers, experiments = {}, {}
        for family in catalogue.names("reported"):
            content = dict(catalogue.mapping("reported", family))
            about = content.pop("paper", {"title": family, "citation": family})
            papers[family] = validated(Paper, about, f"reported/{family}: paper")
            for name, entry in content.items():
                experiments[name] = validated(ReportedExperiment, entry, f"reported numbers of {name}")
        return cls(papers, experiments)

    def reported(self, experiment: str) -> list[Reported]:
        """Return the printed numbers of an experiment; none where a paper has none."""
        return self.experiments[experiment].all() if experiment in self.experiments else []


class NumbersError(ValueError):
    """An experiment does not give the numbers that are reported for it."""


def check_numbers(reported: Sequence[Reported], numbers: Sequence[Number], *, complete: bool) -> None:
    """Raise NumbersError for a number that is not reported, is given twice, or is missing.

    If the jobs are `complete` (all succeeded), each reported number must have a value, or a reason for having none.
    """
    wanted = {(one.row, one.quantity): one.label for one in reported}
    for (row, quantity), count in Counter((one.row, one.quantity) for one in numbers).items():
        if (row, quantity) not in wanted:
            close = get_close_matches(f"{row}/{quantity}", wanted.values(), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise NumbersError(
                f"number {row}/{quantity} is computed, but not reported; correct its row and quantity, or add it to "
                f"conf/reported{hint}"
            )
        if count > 1:
            raise NumbersError(f"number {row}/{quantity} is given twice")
    has_value = {(one.row, one.quantity) for one in numbers if one.value is not None and not math.isnan(one.value)}
    explained = {(one.row, one.quantity) for one in numbers if one.reason}
    for one in reported if complete else ():
        if (one.row, one.quantity) not in has_value | explained:
            raise NumbersError(f"number {one.label} is reported, but has no value though all jobs succeeded")
