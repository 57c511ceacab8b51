"""Reported numbers beside reproduced ones: verdicts by declared rules, and the causes of differences."""

from __future__ import annotations

import math
import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, NamedTuple

from trimbench.reproduction.configuration import has_profiles
from trimbench.reproduction.vocabulary.numbers import CHANCE, Explanation, Number
from trimbench.reproduction.vocabulary.reported import SUBJECTS, Reported, Subject

Verdict = Literal["exact", "within", "trend", "differs", "holds", "fails", "faster", "slower", "not attempted"]

# The verdicts on each kind of statement, apart from "not attempted"; the last one is for a difference.
VERDICTS_ON: Mapping[Subject, tuple[Verdict, ...]] = {
    "number": ("exact", "within", "trend", "differs"),
    "identity": ("exact", "within", "differs"),
    "claim": ("holds", "fails"),
    "curve": ("within", "differs"),
    "time": ("faster", "slower"),
}
DIFFERENCES = frozenset(verdicts[-1] for verdicts in VERDICTS_ON.values())

# What accounts for a difference: an inferred set-up that gives the printed number; statements of the paper that cannot
# all be true; chance, if the printed number is one draw and not too far out among ours; or nothing known.
Cause = Literal["explained", "contradicts itself", "chance", "unexplained"]
CAUSES: tuple[Cause, ...] = typing.get_args(Cause)
_AS_GOOD_AS_PRINTED = frozenset({"exact", "within", "holds"})


@dataclass(frozen=True)
class Judgement:
    """A reported number, its reproduced counterpart, and the verdict on them.

    The counterpart is None where the experiment could not run, or ran with settings other than the paper's. The reason
    says how a number meets its rule, or why it may not; a longer time has no cause but the machine.
    """

    reported: Reported
    number: Number | None
    verdict: Verdict
    reason: str
    cause: Cause | None = None

    @property
    def subject(self) -> Subject:
        """The kind of statement."""
        return self.reported.rule.subject

    @property
    def explanation(self) -> Explanation | None:
        """The number under an inferred set-up, if there is one, whether or not it explains a difference."""
        return None if self.number is None else self.number.explanation

    @property
    def account(self) -> str:
        """What accounts for a difference, in words: the set-up, the proof, the probability, or what is known."""
        number = self.number
        if self.cause == "explained" and self.explanation:
            return f"inferred set-up: {self.explanation.setup}"
        if self.cause == "contradicts itself" and number:
            return number.contradiction
        if self.cause == "chance" and number and number.probability:
            setup = f" with an inferred set-up ({number.probability.setup})" if number.probability.setup else ""
            return f"one draw: in more than 1 % of our replications{setup}, some number of the table is this far out"
        return self.reason

    @property
    def value(self) -> float | None:
        """The reproduced number."""
        return None if self.number is None else self.number.value

    @property
    def reading(self) -> str:
        """How we read a claim that states no limit, and the limits with which the verdict would be the same."""
        if not self.reported.reading or self.value is None or self.verdict == NOT_ATTEMPTED:
            return ""
        within, most = self.reported.rule.kind == "within", self.reported.rule.kind == "at_most"
        edge = abs(self.value - self.reported.value) if within else self.value
        limits = f"from about {edge:.3g} up" if (within or most) != self.differs else f"up to about {edge:.3g}"
        return f"our reading: {self.reported.reading}; any limit {limits} gives the same verdict"

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
        cause = None if reported.rule.subject == "time" else _cause(reported, number, number.value)
        return Judgement(reported, number, verdict, reported.rule.reason or _unmet(reported, number), cause)
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
    if not math.isfinite(reported.value):
        return "faster", "finished where the printed run did not"
    ratio = (
        f"{reported.value / ours:,.3g} times ours" if ours > 0 else "longer than ours, which is too short to measure"
    )
    return "faster", f"the printed time, of another machine, is {ratio}"


def _met(reported: Reported, number: Number, ours: float) -> tuple[Verdict, str] | None:
    rule, value = reported.rule, reported.value
    interval = number.interval if rule.kind == "interval" else None
    if interval is not None and interval.kind != "prediction":
        raise ValueError(
            f"the interval of {reported.label} must be a prediction interval, got {interval.kind!r}; as its rule is "
            'interval, take mean_of(values, "prediction")'
        )
    if _is_as_printed(reported, ours):
        return "exact", "rounds to the printed digits"
    if interval is not None and interval.low <= value <= interval.high:
        low, high = (beside_printed(reported, end) for end in (interval.low, interval.high))
        return "within", f"inside the interval {low} to {high} over the repetitions"
    if rule.kind == "within" and abs(ours - value) <= rule.tolerance:
        other = "stored curve" if rule.subject == "curve" else "printed number"
        return "within", f"within {rule.tolerance:g} of the {other}"
    if rule.kind == "at_most" and ours <= value:
        return "trend", "below the printed number" if math.isfinite(value) else "finished where the printed run did not"
    if rule.kind == "at_least" and ours >= value:
        return "trend", "above the printed number"
    return None


def _unmet(reported: Reported, number: Number) -> str:
    """Return why a number does not meet its rule where nobody has said more."""
    if reported.rule.kind != "interval" or number.interval is None:
        return "no reason is known"
    low, high = (beside_printed(reported, end) for end in (number.interval.low, number.interval.high))
    return f"outside the interval {low} to {high} over the repetitions; no reason is known"


def _is_as_printed(reported: Reported, ours: float) -> bool:
    rule = reported.rule
    if rule.subject == "curve":  # `ours` is a distance from it, which has no printed form
        return False
    if rule.subject == "claim" and rule.kind in ("at_least", "at_most"):  # a limit is no measurement that was rounded
        return math.isclose(ours, reported.value, rel_tol=1e-9)
    return reported.is_printed_form_of(ours)


def _cause(reported: Reported, number: Number, ours: float) -> Cause:
    """Return what accounts for a number that does not meet its rule; the strongest evidence counts."""
    if number.explanation is not None and _explains(reported, number, ours, number.explanation):
        return "explained"
    if number.contradiction:
        return "contradicts itself"
    found = number.probability
    # Few replications cannot show that a number is improbable, so they cannot show the contrary either. Nor is a number
    # put down to chance in a table where too many are far out.
    if found is not None and found.least <= CHANCE < min(found.value, found.overall):
        return "chance"
    return "unexplained"


def _explains(reported: Reported, number: Number, ours: float, explanation: Explanation) -> bool:
    """Tell whether an inferred set-up gives the printed number, by its rule or far more closely than the stated one."""
    inferred = replace(number, value=explanation.value, interval=explanation.interval)
    met = _met(reported, inferred, explanation.value)
    if met is not None and (met[0] in _AS_GOOD_AS_PRINTED or reported.rule.subject == "claim"):
        return True
    distance = abs(explanation.value - reported.value)
    allowed = reported.rule.explained_percent / 100 * abs(reported.value)
    return distance <= allowed and distance <= abs(ours - reported.value) / 2


# How a number of ours is written beside a printed one.

_LEAST_DIGITS, _MOST_DIGITS = 4, 17  # significant ones; the most are those of a float in full
_SMALLEST = 1e-4  # smaller numbers have an exponent


def digits_beside(reported: Reported, value: float) -> int:
    """Return how many significant digits show the whole part of a value and the printed decimals; at least four."""
    places = math.floor(math.log10(abs(value))) + 1 if value and math.isfinite(value) else 1
    return min(max(_LEAST_DIGITS, places + _printed_decimals(reported)), _MOST_DIGITS)


def beside_printed(reported: Reported, value: float, n_digits: int | None = None) -> str:
    """Return a value as text: with `n_digits` significant digits, by default `digits_beside`, and the printed decimals.

    It has an exponent if it is very small or large, or if the printed number has one.
    """
    n_digits = digits_beside(reported, value) if n_digits is None else n_digits
    is_whole, is_printed = float(value).is_integer(), math.isfinite(reported.value)
    has_exponent = (is_printed and "e" in reported.printed.lower()) or 0 < abs(value) < _SMALLEST
    if not abs(value) < 10.0 ** (_MOST_DIGITS - 1) or (has_exponent and not is_whole):
        return f"{value:.{n_digits}g}"
    whole, _, rest = f"{Decimal(f'{value:.{n_digits - 1}e}'):f}".partition(".")
    decimals = rest.rstrip("0").ljust(_printed_decimals(reported), "0")
    return f"{whole}.{decimals}" if decimals else whole


def shown_value(judgement: Judgement) -> str:
    """Return the reproduced number as text, in enough digits to see its verdict; a dash if there is none."""
    value, reported = judgement.value, judgement.reported
    if judgement.verdict == NOT_ATTEMPTED or value is None:
        return "–"
    fewest = digits_beside(reported, value)
    texts = (beside_printed(reported, value, n_digits) for n_digits in range(fewest, _MOST_DIGITS + 1))

    def tells(text: str) -> bool:
        number = replace(judgement.number, value=float(text)) if judgement.number else None
        return judge(reported, number).verdict == judgement.verdict

    return next(filter(tells, texts), repr(float(value)))


def _printed_decimals(reported: Reported) -> int:
    """Return the decimals of a printed number; 0 for the limit of a claim or a curve, and for a time."""
    is_number = reported.rule.subject in ("number", "identity") and math.isfinite(reported.value)
    return max(reported.decimals, 0) if is_number else 0


# Counts of verdicts and causes, by kind of statement, and their summary in a line.

NOT_ATTEMPTED: Verdict = "not attempted"
# The profile with the papers' repetitions, and what stands for a profile where numbers were computed elsewhere.
PAPER, ELSEWHERE = "paper", "verdict"
# The plural of each kind of statement; then the words that follow a count of those reproduced, for one and for several,
# and those that follow a count of the others.
_WORDS: Mapping[Subject, tuple[str, ...]] = {
    "number": ("numbers", "reproduced", "reproduced", "differs", "differ"),
    "identity": ("identities", "holds", "hold", "differs", "differ"),
    "claim": ("claims", "holds", "hold", "fails", "fail"),
    "curve": ("curves", "followed", "followed", "differs", "differ"),
    "time": ("times", "is shorter", "are shorter", "is longer", "are longer"),
}
# Kinds of statements whose verdicts have the same names as those on numbers.
_NAMED_WITH_SUBJECT = ("identity", "curve")


def with_profile(profile: str) -> str:
    """Return what a summary adds if a profile has fewer repetitions than the papers; nothing without profiles."""
    return "" if profile in (PAPER, ELSEWHERE) or not has_profiles() else f", with profile={profile}"


def are_reproduced(judgements: Sequence[Judgement]) -> bool:
    """Tell whether some numbers were attempted, and each of them is reproduced or its difference accounted for.

    A longer time is no difference of the method.
    """
    attempted = any(one.verdict != NOT_ATTEMPTED for one in judgements)
    return attempted and all(one.cause != "unexplained" for one in judgements)


class Counted(NamedTuple):
    """A judgement without its numbers: as much of it as tallies need."""

    subject: Subject
    verdict: Verdict
    cause: Cause | None = None
    row: str = ""
    quantity: str = ""


def counted_once(judgements: Sequence[Judgement]) -> list[Counted]:
    """Return the judgements of an experiment as tallies count them."""
    found = [(one.subject, one.verdict, one.cause, one.reported.row, one.reported.quantity) for one in judgements]
    return once([Counted(*one) for one in found])


def once(found: Sequence[Counted]) -> list[Counted]:
    """Return each statement of a paper once: the rows of a claim are its cases, and it fails if one of them does."""
    groups: dict[tuple[str, str], list[Counted]] = {}
    for one in found:
        groups.setdefault((one.quantity, "" if one.subject == "claim" else one.row), []).append(one)
    return [max(group, key=_severity) for group in groups.values()]


def _severity(one: Counted) -> int:
    if one.verdict not in DIFFERENCES:
        return int(one.verdict != NOT_ATTEMPTED)
    return 2 + (CAUSES.index(one.cause) if one.cause else 0)


# How a page sums up the verdicts on all kinds of statements except times.
STANDINGS: Mapping[str, str] = {
    "as printed": "rounds to the printed digits, or holds",
    "close": "inside a declared tolerance or interval",
    "better": "on the better side of the printed number",
    "explained": "differs; an inferred set-up gives it",
    "contradicted": "differs; the paper contradicts itself",
    "chance": "differs; so do over 1 in 100 of our runs",
    "open": "differs; nothing tried explains it",
    "not run": "not computed in this run",
}


def standing(subject: Subject, verdict: Verdict, cause: Cause | None) -> str:
    """Return in which of `STANDINGS` a judgement is; that on a time is ``shorter time`` or ``longer time``."""
    if verdict == NOT_ATTEMPTED:
        return "not run"
    if subject == "time":
        return "shorter time" if verdict == "faster" else "longer time"
    if verdict in DIFFERENCES:
        return {"contradicts itself": "contradicted", "unexplained": "open"}.get(str(cause), str(cause))
    return {"within": "close", "trend": "better"}.get(verdict, "as printed")


def column_of(subject: Subject, verdict: Verdict) -> str:
    """Return the column of a tally that counts a verdict on a kind of statement, for example ``curves within``."""
    return f"{_WORDS[subject][0]} {verdict}" if subject in _NAMED_WITH_SUBJECT else verdict


# The columns of a tally: for each kind of statement how many there are and its verdicts, then the causes of everything
# that differs or fails, then what was not attempted.
COLUMNS = [
    *(
        column
        for subject in SUBJECTS
        for column in (_WORDS[subject][0], *(column_of(subject, verdict) for verdict in VERDICTS_ON[subject]))
    ),
    *CAUSES,
    NOT_ATTEMPTED,
]
_ACCOUNTED: Mapping[str, str] = {"contradicts itself": "contradicted by the paper itself", "chance": "by chance"}


def tally(judgements: Sequence[Counted | Judgement]) -> dict[str, int]:
    """Return the counts under the names of `COLUMNS`."""
    found: list[str] = []
    for one in judgements:
        own = one.verdict if one.verdict == NOT_ATTEMPTED else column_of(one.subject, one.verdict)
        found += [_WORDS[one.subject][0], own]
        found += [one.cause] if one.cause else []
    return {column: found.count(column) for column in COLUMNS}


def in_words(judgements: Sequence[Counted | Judgement], *, detailed: bool = False, profile: str = PAPER) -> str:
    """Return the outcome in words, for example ``16 of 72 numbers reproduced (12 as printed, 4 close), 56 differ``.

    It ends with the name of the profile unless that has the papers' repetitions, and is empty if nothing is reported.
    `detailed` adds the causes of differences.
    """
    parts = [_of_subject(subject, judgements, detailed) for subject in SUBJECTS]
    attempted = any(one.verdict != NOT_ATTEMPTED for one in judgements)
    return "; ".join(filter(None, parts)) + (with_profile(profile) if attempted else "")


def made_of(name: str, judgements: Sequence[Counted | Judgement]) -> str:
    """Return how many statements have one of `STANDINGS`, and which: ``24 as printed (7 numbers, 17 claims)``."""
    found = Counter(one.subject for one in judgements if standing(one.subject, one.verdict, one.cause) == name)
    kinds = [f"{found[kind]} {kind if found[kind] == 1 else _WORDS[kind][0]}" for kind in SUBJECTS if found[kind]]
    return f"{found.total()} {name}" + (f" ({', '.join(kinds)})" if kinds else "")


def in_all(judgements: Sequence[Counted | Judgement]) -> str:
    """Return the count that a matrix shows as printed, where it has several kinds of statements; else an empty text."""
    said = made_of("as printed", judgements)
    return f"in all, {said}" if ", " in said else ""


def causes_in_words(judgements: Sequence[Counted | Judgement]) -> str:
    """Return how many differences have which cause, for example ``30 explained, 1 unexplained``; empty without any."""
    counts = tally(judgements)
    found = [(counts[cause], _ACCOUNTED.get(cause, cause)) for cause in CAUSES if counts[cause]]
    if len(found) == 1:
        count, words = found[0]
        return f"all {words}" if count > 1 else words
    return ", ".join(f"{count} {words}" for count, words in found)


def _of_subject(subject: Subject, judgements: Sequence[Counted | Judgement], detailed: bool) -> str:
    ours = [one for one in judgements if one.subject == subject]
    verdicts = [one.verdict for one in ours]
    plural, *ends = _WORDS[subject]
    several = len(ours) != 1
    noun = plural if several else subject
    missing = verdicts.count(NOT_ATTEMPTED)
    if missing == len(ours):
        return f"{missing} {noun} {NOT_ATTEMPTED}" if ours else ""
    different = sum(verdict in DIFFERENCES for verdict in verdicts)
    ways = [
        f"{verdicts.count(name)} {standing(subject, name, None)}" for name in ("exact", "within") if name in verdicts
    ]
    how = f" ({', '.join(ways)})" if len(ways) > 1 or (detailed and subject == "number" and ways) else ""
    causes = causes_in_words(ours) if detailed else ""
    better = verdicts.count("trend")
    parts = [f"{len(ours) - missing - different - better} of {len(ours)} {noun} {ends[several]}{how}"]
    parts += [f"{better} on the better side"] if better else []
    if different:
        parts.append(f"{different} {ends[2 + (different > 1)]}{f' ({causes})' if causes else ''}")
    parts += [f"{missing} {NOT_ATTEMPTED}"] if missing else []
    return ", ".join(parts)
