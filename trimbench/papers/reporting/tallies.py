"""Counts of verdicts, by kind of statement, and the line that says what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimbench.papers.reporting.verdicts import DIFFERENCES, VERDICTS_ON, Judgement, Verdict
from trimbench.papers.study.reported import SUBJECTS, Subject

NOT_ATTEMPTED: Verdict = "not attempted"
PLURALS: Mapping[Subject, str] = {"number": "numbers", "claim": "claims", "time": "times"}
# Of a tally: for each kind of statement how many there are and its verdicts, then those that were not attempted.
COLUMNS = [
    *(column for subject in SUBJECTS for column in (PLURALS[subject], *VERDICTS_ON[subject])),
    NOT_ATTEMPTED,
]
# What follows a count of those that came out, and of those that did not; each for one and for several.
_CAME_OUT: Mapping[Subject, tuple[str, str]] = {
    "number": ("reproduced", "reproduced"),
    "claim": ("holds", "hold"),
    "time": ("faster", "faster"),
}
_DID_NOT: Mapping[Subject, tuple[str, str]] = {
    "number": ("differs", "differ"),
    "claim": ("fails", "fail"),
    "time": ("slower", "slower"),
}


def tally(judgements: Sequence[Judgement]) -> dict[str, int]:
    """Return the counts under the names of `COLUMNS`."""
    subjects = [PLURALS[one.reported.rule.subject] for one in judgements]
    found: list[str] = [*subjects, *(one.verdict for one in judgements)]
    return {column: found.count(column) for column in COLUMNS}


def in_words(judgements: Sequence[Judgement], *, detailed: bool = False) -> str:
    """Return what came out, for example ``16 of 72 numbers reproduced, 56 differ; 3 of 3 claims hold``.

    `detailed` adds how numbers were reproduced, for example ``(12 exact, 4 within)``. It is empty where nothing is
    reported.
    """
    parts = [_of_subject(subject, judgements, detailed) for subject in SUBJECTS]
    return "; ".join(part for part in parts if part)


def _of_subject(subject: Subject, judgements: Sequence[Judgement], detailed: bool) -> str:
    ours = [one.verdict for one in judgements if one.reported.rule.subject == subject]
    several = len(ours) != 1
    noun = PLURALS[subject] if several else subject
    missing = ours.count(NOT_ATTEMPTED)
    if missing == len(ours):
        return f"{missing} {noun} {NOT_ATTEMPTED}" if ours else ""
    different = sum(verdict in DIFFERENCES for verdict in ours)
    ways = [f"{ours.count(verdict)} {verdict}" for verdict in VERDICTS_ON[subject][:-1] if verdict in ours]
    how = f" ({', '.join(ways)})" if detailed and subject == "number" and ways else ""
    parts = [f"{len(ours) - missing - different} of {len(ours)} {noun} {_CAME_OUT[subject][several]}{how}"]
    parts += [f"{different} {_DID_NOT[subject][different > 1]}"] if different else []
    parts += [f"{missing} {NOT_ATTEMPTED}"] if missing else []
    return ", ".join(parts)
