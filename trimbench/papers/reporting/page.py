"""The page of a run: what was reproduced, what differs and why, and every table and figure with its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from trimbench.papers.reporting.html import anchor, facts_of, present_commit, render
from trimbench.papers.reporting.parts import Part
from trimbench.papers.reporting.tallies import COLUMNS, PLURALS, Counted, causes_in_words, column_of, in_words, tally
from trimbench.papers.reporting.verdicts import CAUSES, VERDICTS, VERDICTS_ON
from trimbench.papers.study.reported import Literature, Paper

# A value of the template.
_Shown: TypeAlias = Mapping[str, object]


def render_page(parts: Sequence[Part], literature: Literature, *, run: str, profile: str) -> str:
    """Return the page of a run: papers and tables in their order, then the experiments beyond the papers.

    The page is to be a file in the folder that the parts were made for.
    """
    by_name = {part["name"]: part for part in parts}
    ordered = [by_name[name] for name in literature.in_order(by_name)]
    judged = [(part, number) for part in ordered if not part["altered"] for number in part["numbers"]]
    accounts = list(dict.fromkeys(_account(number) for _, number in judged if number["differs"]))
    numbers = [_number(place, *one, literature, accounts) for place, one in enumerate(judged)]
    families = {part["name"].split("/")[0]: list[_Shown]() for part in ordered}
    beyond: list[_Shown] = []
    for part in ordered:
        shown = _experiment(part, literature, [one for one in numbers if one["experiment"] == part["name"]])
        (families[part["name"].split("/")[0]] if part["numbers"] else beyond).append(shown)
    found = [counted(number) for _, number in judged]
    return render(
        "run.html",
        facts=facts_of(f"run {run}", f"profile {profile}"),
        kinds=[
            (PLURALS[subject], [(verdict, column_of(subject, verdict)) for verdict in verdicts])
            for subject, verdicts in VERDICTS_ON.items()
        ],
        subjects={plural: subject for subject, plural in PLURALS.items()},
        causes=CAUSES,
        columns=len(COLUMNS) - len(PLURALS),
        verdicts=VERDICTS,
        outcome=in_words(found),
        because=causes_in_words(found),
        papers=[_paper(family, literature, parts, judged) for family, parts in families.items() if parts],
        beyond=beyond,
        numbers=numbers,
        reasons=_by_account(accounts, numbers),
    )


def counted(number: Part) -> Counted:
    """Return what tallies count of a number of a part."""
    return Counted(number["subject"], number["verdict"], number["cause"])


def _account(number: Part) -> tuple[str, str]:
    return number["cause"] or "", number["reason"]


def _number(
    place: int, part: Part, number: Part, literature: Literature, accounts: Sequence[tuple[str, str]]
) -> _Shown:
    """Return a number with what it is on this page: its own anchor, and that of what accounts for a difference."""
    return {
        **number,
        "id": f"n{place}",
        "experiment": part["name"],
        "table": literature.table(part["name"]) or part["name"],
        "cause": number["cause"] or "",
        "why": f"why-{accounts.index(_account(number))}" if number["differs"] else "",
    }


def _by_account(accounts: Sequence[tuple[str, str]], numbers: Sequence[_Shown]) -> list[_Shown]:
    """Return what accounts for differences, each with its numbers: unexplained ones first, then the most frequent."""
    groups: list[dict[str, object]] = []
    for place, (cause, account) in enumerate(accounts):
        ours = [number for number in numbers if number["why"] == f"why-{place}"]
        groups.append({"id": f"why-{place}", "cause": cause, "reason": account, "numbers": ours, "count": len(ours)})
    return sorted(groups, key=lambda group: (group["cause"] != "unexplained", -int(str(group["count"]))))


def _paper(family: str, literature: Literature, parts: Sequence[_Shown], judged: Sequence[tuple[Part, Part]]) -> _Shown:
    ours = [counted(number) for part, number in judged if part["name"].split("/")[0] == family]
    paper = literature.papers.get(family) or Paper(title=family, citation=family)
    return {"id": anchor(family), "paper": paper, "experiments": parts, "tally": tally(ours), "outcome": in_words(ours)}


def _experiment(part: Part, literature: Literature, numbers: Sequence[_Shown]) -> _Shown:
    compared = [] if part["altered"] else [counted(number) for number in part["numbers"]]
    return {
        **part,
        "id": anchor(part["name"]),
        "table": literature.table(part["name"]),
        "status": "" if part["status"] == "complete" else part["status"],
        "n_reported": len(part["numbers"]),
        "tally": tally(compared),
        "outcome": in_words(compared),
        "side_by_side": _side_by_side(numbers),
        "earlier": "" if part["commit"] == present_commit() else part["commit"],
    }


def _side_by_side(numbers: Sequence[_Shown]) -> _Shown:
    """Return numbers in the shape of the paper's table: its columns, and for each row a number or None in each."""
    columns = list(dict.fromkeys(number["quantity"] for number in numbers))
    found = {(number["row"], number["quantity"]): number for number in numbers}
    rows = dict.fromkeys(number["row"] for number in numbers)
    return {"columns": columns, "rows": [(row, [found.get((row, column)) for column in columns]) for row in rows]}
