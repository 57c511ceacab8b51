"""Counts of verdicts and causes, by kind of statement, and the line that says what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from trimbench.papers.reporting.verdicts import CAUSES, DIFFERENCES, VERDICTS_ON, Cause, Verdict
from trimbench.papers.study.reported import SUBJECTS, Subject

NOT_ATTEMPTED: Verdict = "not attempted"
PLURALS: Mapping[Subject, str] = {
    "number": "numbers",
    "identity": "identities",
    "claim": "claims",
    "curve": "curves",
    "time": "times",
}
# Their verdicts have the same names as those on numbers.
_NAMED_WITH_SUBJECT = ("identity", "curve")


class Judged(Protocol):
    """What is counted: the verdict on a kind of statement, and the cause of a difference."""

    @property
    def subject(self) -> Subject:
        """The kind of statement."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on it."""

    @property
    def cause(self) -> Cause | None:
        """What accounts for a difference."""


class Counted(NamedTuple):
    """A judgement without the number."""

    subject: Subject
    verdict: Verdict
    cause: Cause | None


def column_of(subject: Subject, verdict: Verdict) -> str:
    """Return the column of a tally that counts a verdict on a kind of statement, for example ``curves within``."""
    return f"{PLURALS[subject]} {verdict}" if subject in _NAMED_WITH_SUBJECT else verdict


# Of a tally: for each kind of statement how many there are and its verdicts, then the causes of all that differs and
# fails, then those that were not attempted.
COLUMNS = [
    *(
        column
        for subject in SUBJECTS
        for column in (PLURALS[subject], *(column_of(subject, verdict) for verdict in VERDICTS_ON[subject]))
    ),
    *CAUSES,
    NOT_ATTEMPTED,
]
# What follows a count of those that came out, and of those that did not; each for one and for several.
_CAME_OUT: Mapping[Subject, tuple[str, str]] = {
    "number": ("reproduced", "reproduced"),
    "identity": ("holds", "hold"),
    "claim": ("holds", "hold"),
    "curve": ("followed", "followed"),
    "time": ("faster", "faster"),
}
_DID_NOT: Mapping[Subject, tuple[str, str]] = {
    "number": ("differs", "differ"),
    "identity": ("differs", "differ"),
    "claim": ("fails", "fail"),
    "curve": ("differs", "differ"),
    "time": ("slower", "slower"),
}
_ACCOUNTED: Mapping[str, str] = {"contradicts itself": "contradicted by the paper itself", "chance": "by chance"}


def tally(judgements: Sequence[Judged]) -> dict[str, int]:
    """Return the counts under the names of `COLUMNS`."""
    found: list[str] = []
    for one in judgements:
        own = one.verdict if one.verdict == NOT_ATTEMPTED else column_of(one.subject, one.verdict)
        found += [PLURALS[one.subject], own]
        found += [one.cause] if one.cause else []
    return {column: found.count(column) for column in COLUMNS}


def in_words(judgements: Sequence[Judged], *, detailed: bool = False) -> str:
    """Return what came out, for example ``16 of 72 numbers reproduced, 56 differ; 3 of 3 claims hold``.

    `detailed` adds how numbers were reproduced, for example ``(12 exact, 4 within)``, and what accounts for those that
    were not. It is empty where nothing is reported.
    """
    parts = [_of_subject(subject, judgements, detailed) for subject in SUBJECTS]
    return "; ".join(part for part in parts if part)


def causes_in_words(judgements: Sequence[Judged]) -> str:
    """Return how many differences have which cause, for example ``30 explained, 1 unexplained``; empty without any."""
    counts = tally(judgements)
    found = [(counts[cause], _ACCOUNTED.get(cause, cause)) for cause in CAUSES if counts[cause]]
    if len(found) == 1:
        count, words = found[0]
        return f"all {words}" if count > 1 else words
    return ", ".join(f"{count} {words}" for count, words in found)


def _of_subject(subject: Subject, judgements: Sequence[Judged], detailed: bool) -> str:
    ours = [one for one in judgements if one.subject == subject]
    verdicts = [one.verdict for one in ours]
    several = len(ours) != 1
    noun = PLURALS[subject] if several else subject
    missing = verdicts.count(NOT_ATTEMPTED)
    if missing == len(ours):
        return f"{missing} {noun} {NOT_ATTEMPTED}" if ours else ""
    different = sum(verdict in DIFFERENCES for verdict in verdicts)
    ways = [f"{verdicts.count(verdict)} {verdict}" for verdict in ("exact", "within") if verdict in verdicts]
    how = f" ({', '.join(ways)})" if detailed and subject == "number" and ways else ""
    causes = causes_in_words(ours) if detailed else ""
    better = verdicts.count("trend")
    parts = [f"{len(ours) - missing - different - better} of {len(ours)} {noun} {_CAME_OUT[subject][several]}{how}"]
    parts += [f"{better} on the better side"] if better else []
    if different:
        parts.append(f"{different} {_DID_NOT[subject][different > 1]}{f' ({causes})' if causes else ''}")
    parts += [f"{missing} {NOT_ATTEMPTED}"] if missing else []
    return ", ".join(parts)
