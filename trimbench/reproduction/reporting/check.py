"""Noise or real: the numbers of a run against earlier ones, at a level that holds for all of them together."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

import pandas as pd
from markupsafe import escape

from trimbench.reproduction.files import read_csv, write_csv, write_text
from trimbench.reproduction.messages import brief, reason, some, terminal_width
from trimbench.reproduction.reporting.comparison import is_rounding, settings_of
from trimbench.reproduction.reporting.exchange import Both, probabilities
from trimbench.reproduction.reporting.page import count
from trimbench.reproduction.reporting.runs import REPORTED, StoredRun
from trimbench.reproduction.reporting.tables import cut, markdown, markdown_page
from trimbench.reproduction.reporting.verdicts import CAUSES, DIFFERENCES, NOT_ATTEMPTED
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.tables import Table

# The share of reruns with other seeds, and nothing else changed, in which any number may be reported.
LEVEL = 0.05
# What an entry is about that stands for all numbers of an experiment.
TOGETHER = "numbers together"
# Where a number stands: of those with noise, only the last has left it.
Standing = Literal["equal", "within noise", "cannot be told", "changed", "left its noise", "missing"]


@dataclass(frozen=True)
class Measured:
    """A reproduced number as a run keeps it; `n` replications with a standard deviation, 0 if these are unknown.

    A run that was written by an earlier version lacks their values, `draws`.
    """

    value: float | None
    verdict: str
    cause: str = ""
    subject: str = "number"
    n: int = 0
    deviation: float = math.nan
    draws: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class NumbersOfRun:
    """The numbers of a run by experiment and label, and the settings of its experiments, where they are known."""

    name: str
    numbers: Mapping[tuple[str, str], Measured]
    settings: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, run: StoredRun, passed_over: Sequence[str] = ()) -> NumbersOfRun:
        """Return the reported numbers of a stored run; `passed_over` are keys that are no settings of an experiment."""
        numbers: dict[tuple[str, str], Measured] = {}
        settings: dict[str, Mapping[str, str]] = {}
        compared = {stem: one for stem, one in run.experiments.items() if REPORTED in one.tables}
        names = [one.name for one in compared.values()]
        for stem, experiment in compared.items():
            # Another seed is part of the stem, too.
            name = experiment.name if names.count(experiment.name) == 1 else stem
            noise = {one["cell"]: one for one in experiment.about.get("page", {}).get("numbers", ())}
            if experiment.about.get("jobs"):  # otherwise they were computed elsewhere
                known = settings_of(experiment.about)
                settings[name] = {key: one for key, one in known.items() if key.partition(".")[0] not in passed_over}
            for line in experiment.tables[REPORTED].to_dict("records"):
                about = noise.get(line["cell"], {})
                kept = {key: about.get(key, "") for key in ("replications", "deviation", "draws")}
                numbers[name, line["cell"]] = _measured({**line, **kept})
        return cls(run.name, numbers, settings)

    @classmethod
    def of_csv(cls, path: Path) -> NumbersOfRun:
        """Return the numbers of a file that `write_check` wrote; ConfigurationError if it is none."""
        try:
            lines = read_csv(path.resolve()).to_dict("records")
            for line in lines:
                line["draws"] = json.loads(str(line.get("draws") or "[]"))
            numbers = {(str(line["experiment"]), str(line["cell"])): _measured(line) for line in lines}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"against: {path} must be a numbers.csv that task=check wrote, got {brief(reason(error))}"
            ) from error
        return cls(path.name, numbers, {})


def _measured(line: Mapping[Any, Any]) -> Measured:
    value = float(line["reproduced"] or "nan")
    n, deviation = int(line["replications"] or 0), float(line["deviation"] or "nan")
    known = n > 1 and math.isfinite(deviation) and deviation >= 0
    draws = tuple(map(float, line.get("draws", ())))
    # Those of a number that is another function of them, such as a rate over all, do not tell how it changes.
    are_its_own = known and len(draws) == n and math.isclose(fmean(draws), value, rel_tol=1e-6, abs_tol=1e-12)
    return Measured(
        value=None if math.isnan(value) else value,
        verdict=str(line["verdict"]),
        cause=str(line.get("cause", "")),
        subject=str(line.get("subject", "number")),
        n=n if known else 0,
        deviation=deviation if known else math.nan,
        draws=draws if are_its_own else (),
    )


# How probable a difference is if only the seeds are others.


def probability(before: Measured, now: Measured) -> float | None:
    """Return the probability of a difference of two means at least this large; None if neither has replications.

    It is Welch's test with the degrees of freedom of the run with fewer replications. His own are more, which is too
    many where the noise is skewed and the numbers of replications differ: among 120 numbers of exponential noise, 3
    beside 100 replications, every second rerun would be reported. Replications of a whole computation are independent,
    which parts of one, such as its rows or folds, are not. A number whose replications are unknown counts as one.
    """
    from scipy.special import stdtr

    if before.value is None or now.value is None:
        return None
    noisy = [one for one in (before, now) if one.n > 1]
    if not noisy:
        return None
    if is_rounding(before.value, now.value):
        return 1.0
    single = noisy[0].deviation ** 2 * (2 - len(noisy))  # has the noise of the other run
    scale = math.sqrt(sum(one.deviation**2 / one.n for one in noisy) + single)
    freedom = min(one.n for one in noisy) - 1
    return 2 * float(stdtr(freedom, -abs(now.value - before.value) / scale)) if scale > 0 else 0.0


@dataclass(frozen=True)
class Checked:
    """A number of both runs, where it stands, and why it counts as a change; nothing if it does not."""

    experiment: str
    cell: str
    before: Measured
    now: Measured
    standing: Standing
    probability: float | None
    why: str = ""


def check(before: NumbersOfRun, now: NumbersOfRun) -> list[Checked]:
    """Return the numbers of both runs, times aside, each with what has become of it.

    If nothing has changed, any number is reported in at most 5 % of reruns. Where both runs keep their replications,
    these are exchanged between the runs; see `exchange.probabilities`. Then an experiment whose numbers left their
    noise together, though none did alone, is an entry of its own.

    Where they do not, or there are too few for that, the probabilities of all numbers are adjusted together by the rule
    of Benjamini and Hochberg, which holds whether the numbers are independent or move together, and finds more of what
    has changed than one that divides the level by the count of numbers. If numbers of both sorts are there, each sort
    has half of the level.

    A number without replications is compared to rounding, if the settings are the same, seed included. One that an
    experiment had and has no more is missing; an experiment that only one of the runs has is left out.
    """
    from scipy.stats import false_discovery_control

    experiments = {experiment for experiment, _ in now.numbers}
    lost = {
        key: Measured(None, NOT_ATTEMPTED, subject=one.subject)
        for key, one in before.numbers.items()
        if key[0] in experiments and key not in now.numbers
    }
    now = replace(now, numbers={**now.numbers, **lost})
    keys = [
        key
        for key, two in now.numbers.items()
        if two.subject != "time"
        and (one := before.numbers.get(key))
        and one.verdict != NOT_ATTEMPTED
        and one.value is not None
    ]
    exchanged: dict[tuple[str, str], Both] = {}
    others: dict[tuple[str, str], float] = {}
    for key in keys:
        one, two = before.numbers[key], now.numbers[key]
        both, found = Both(key[0], one.draws, two.draws), probability(one, two)
        if found is not None and both.can_be_exchanged:
            exchanged[key] = both
        elif found is not None:
            others[key] = found
    adjusted, together = probabilities(exchanged)
    if others:
        adjusted |= zip(others, false_discovery_control([*others.values()]).tolist(), strict=True)
    share = 2 if exchanged and others else 1
    checked = [_checked(key, before, now, min(1.0, share * adjusted[key]) if key in adjusted else None) for key in keys]
    told = {one.experiment for one in checked if one.standing == "left its noise"}
    for name, value in together.items():
        if share * value <= LEVEL and name not in told:
            why = f"left the noise of their replications together, though none did alone (probability {value:.2g})"
            whole = Measured(None, "", subject=TOGETHER)
            checked.append(Checked(name, "all numbers", whole, whole, "left its noise", share * value, why))
    return checked


def _checked(key: tuple[str, str], before: NumbersOfRun, now: NumbersOfRun, adjusted: float | None) -> Checked:
    one, two, stem = before.numbers[key], now.numbers[key], key[0]
    standing: Standing
    if one.value is None or two.value is None:  # the former has a value: see `check`
        standing = "missing"
    elif is_rounding(one.value, two.value):
        standing = "equal"
    elif adjusted is not None:
        standing = "left its noise" if adjusted <= LEVEL else "within noise"
    else:
        known = before.settings.get(stem), now.settings.get(stem)
        standing = "changed" if None in known or known[0] == known[1] else "cannot be told"
    why = []
    if standing == "left its noise":
        why.append(f"left the noise of its replications (probability {adjusted:.2g})")
    elif standing == "changed":
        why.append("differs, and has no replications that could explain it")
    elif standing == "missing":
        why.append("is not computed any more")
    if standing not in ("within noise", "cannot be told", "missing") and _rank(two) > _rank(one):
        new = two.cause == "unexplained" and one.verdict not in DIFFERENCES
        became = ", ".join(filter(None, [two.verdict, two.cause]))
        why.append("an open difference is new" if new else f"verdict {one.verdict} became {became}")
    return Checked(*key, one, two, standing, adjusted, "; ".join(why))


def _rank(one: Measured) -> int:
    """Order verdicts: as printed, close, better than printed, and differences by their cause."""
    if one.verdict in DIFFERENCES:
        return 3 + (CAUSES.index(one.cause) if one.cause in CAUSES else 0)
    return {"within": 1, "trend": 2}.get(one.verdict, 0)


# What a check found, for a terminal, a pull request, a program and a badge.

_ON_TERMINAL, _IN_MARKDOWN = 20, 100


def write_check(checked: Sequence[Checked], before: NumbersOfRun, now: NumbersOfRun, folder: Path) -> list[Path]:
    """Write a check to a folder, and return the files.

    ``check.md`` is for a pull request, ``check.json`` for programs, ``badge.svg`` for a README, and ``numbers.csv``
    has the numbers of this run, against which later ones can be checked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    changed = [one for one in checked if one.why]
    summary = {
        "against": before.name,
        "run": now.name,
        "level": LEVEL,
        "counts": counts(checked),
        "changed": [_line(one) | {"probability": one.probability} for one in changed],
    }
    lines = [
        {
            "experiment": stem,
            "cell": cell,
            "subject": one.subject,
            "reproduced": one.value,
            "verdict": one.verdict,
            "cause": one.cause,
            "replications": str(one.n) if one.n else "",
            "deviation": one.deviation,
            "draws": json.dumps(one.draws) if one.draws else "",
        }
        for (stem, cell), one in now.numbers.items()
    ]
    table = table_of(checked, _IN_MARKDOWN)
    text = markdown_page(f"{now.name} against {before.name}", [in_words(checked, before.name)], tables=table)
    return [
        write_text(text, folder / "check.md"),
        write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", folder / "check.json"),
        write_text(badge(checked), folder / "badge.svg"),
        write_csv(pd.DataFrame(lines), folder / "numbers.csv"),
    ]


def counts(checked: Sequence[Checked]) -> dict[str, int]:
    """Return how many numbers stand where, and how many count as changed."""
    numbers = [one for one in checked if one.now.subject != TOGETHER]
    found = Counter(one.standing for one in numbers)
    return {name: found[name] for name in get_args(Standing)} | {"reported": sum(bool(one.why) for one in numbers)}


def in_words(checked: Sequence[Checked], against: str) -> str:
    """Say in a few sentences what has become of the numbers."""
    found = counts(checked)
    changed = f"{found['reported']:,}" if found["reported"] else "None"
    joint = [one.experiment for one in checked if one.now.subject == TOGETHER]
    of = count(len(checked) - len(joint), "number")
    sentences = [
        f"{changed} of {of} changed against {against}: {found['equal']:,} equal, "
        f"{found['within noise']:,} within the noise of their replications."
    ]
    if joint:
        sentences.append(f"The numbers of {some(joint, 3)} left their noise together, though none did alone.")
    if worse := sum(one.standing == "within noise" and _rank(one.now) > _rank(one.before) for one in checked):
        verb = "verdict is" if worse == 1 else "verdicts are"
        sentences.append(f"{worse:,} {verb} worse by no more than noise, which does not count.")
    if untold := found["cannot be told"]:
        sentences.append(
            f"Of {count(untold, 'number')} no noise can be told: other settings, such as the seed, and one replication."
        )
    return " ".join(sentences)


def summarised(checked: Sequence[Checked], against: str) -> str:
    """Return what a terminal shows: sentences, and the first numbers that changed."""
    shown = [markdown(one, terminal_width()) for one in table_of(checked, _ON_TERMINAL)]
    return "\n\n".join([in_words(checked, against), *shown])


def table_of(checked: Sequence[Checked], most: int) -> list[Table]:
    """Return the numbers that changed as a table of at most so many rows; none if there are none."""
    lines = [_line(one) for one in checked if one.why]
    if not lines:
        return []
    columns = {"experiment": "", "number": "", "before": ".6g", "now": ".6g", "why": ""}
    return [cut(Table.of("What changed", lines, columns), most, "; check.json has all")]


def _line(one: Checked) -> dict[str, object]:
    before, now = one.before.value, one.now.value
    return {"experiment": one.experiment, "number": one.cell, "before": before, "now": now, "why": one.why}


def badge(checked: Sequence[Checked]) -> str:
    """Return a badge as SVG: green if nothing changed, red otherwise."""
    changed = sum(bool(one.why) for one in checked)
    words = ("reproduction", f"{changed:,} changed" if changed else "within noise")
    widths = [7 * len(word) + 12 for word in words]
    fills = ("#555", "#c0392b" if changed else "#2e7d32")
    parts = [
        f'<rect x="{start}" width="{width}" height="20" fill="{fill}"/>'
        f'<text x="{start + width / 2:g}" y="14" text-anchor="middle">{escape(word)}</text>'
        for word, width, fill, start in zip(words, widths, fills, (0, widths[0]), strict=True)
    ]
    title = f"<title>{': '.join(words)}</title>"
    font = 'fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11"'
    size = f'width="{sum(widths)}" height="20"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{title}<g {font}>{"".join(parts)}</g></svg>\n'
