"""The numbers that the papers print, each with the rule of its comparison, and curves that authors stored."""

from __future__ import annotations

import math
import typing
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trimbench.reproduction.configuration import Catalogue, mapping_in
from trimbench.reproduction.project import per_project, project
from trimbench.reproduction.settings import ConfigurationError, settings, unknown, validated
from trimbench.reproduction.vocabulary.draws import Draws
from trimbench.reproduction.vocabulary.numbers import Number, Probability

if TYPE_CHECKING:
    import pandas as pd


# The kinds of statements that a paper makes.
Subject = Literal["number", "identity", "claim", "curve", "time"]
SUBJECTS: tuple[Subject, ...] = typing.get_args(Subject)

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
    subject : str
        What is compared: a "number" that the paper measured and prints; an "identity", a printed number that follows by
        arithmetic; a "claim" that the paper makes in words or pictures and that a number stands for here; a "curve"
        that its authors stored, whose largest distance to ours must be "within" a tolerance; or a "time" that it
        measured on its own machine, for which the rule must be "at_most".
    reason : str
        Why a difference is to be expected, where that is known.
    explained_percent : float
        How far off, in percent of the printed number, the number of an inferred set-up may be to explain a difference.
        It must also be at most half as far off as that of the paper's own words. By default it must meet this rule.
    """

    kind: Literal["exact", "within", "interval", "at_most", "at_least"]
    tolerance: float = 0.0
    subject: Subject = "number"
    reason: str = ""
    explained_percent: float = 0.0

    def __post_init__(self) -> None:
        for subject, kind in (("time", "at_most"), ("curve", "within")):
            if self.subject == subject and self.kind != kind:
                raise ConfigurationError(f"the rule of a {subject} must be of the kind {kind!r}, got {self.kind!r}")
        if self.kind == "within" and not 0 < self.tolerance < math.inf:
            raise ConfigurationError(
                "tolerance must be a positive number where kind is within, the largest distance in units of the number "
                f"(not in percent), got {self.tolerance:g}; write for example {{kind: within, tolerance: 0.01}}"
            )


@dataclass(frozen=True)
class Reported:
    """One number as a paper prints it.

    `source` is the paper and its table or figure. `printed` has the digits as printed, for example ``"0.50"`` or
    ``"1.2e-3"``, or ``timeout`` for a run that did not finish. `reading` says how we read the words of a claim whose
    limit the paper does not state.
    """

    source: str
    row: str
    quantity: str
    printed: str
    rule: Rule
    reading: str = ""

    def __post_init__(self) -> None:
        if self.printed != _TIMEOUT and not _is_finite_number(self.printed):
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

    @property
    def largest(self) -> float:
        """The largest number that rounds to it."""
        return self.value + 0.5 * 10.0**-self.decimals

    @property
    def decimals(self) -> int:
        """The decimals to which the number is printed; negative for one in whole thousands such as ``"2e3"``."""
        if self.printed == _TIMEOUT:
            raise ValueError(f"decimals are those of a number, but {self.label} is a {_TIMEOUT}")
        return -int(Decimal(self.printed).as_tuple().exponent)

    def is_printed_form_of(self, value: float) -> bool:
        """Tell whether a number rounds to the printed digits (a half goes to the even digit)."""
        if self.printed == _TIMEOUT or not math.isfinite(value):
            return False
        printed = Decimal(self.printed)
        return Decimal(value).quantize(printed, context=_EXACTLY) == printed


# More digits than any float has, before and after the point.
_MOST_DIGITS = 400


def _is_finite_number(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.is_finite() and -_MOST_DIGITS <= int(number.as_tuple().exponent) <= number.adjusted() <= _MOST_DIGITS


# The limit of a claim that the paper itself states.
STATED = "stated"


@settings
class Statement:
    """What backs one statement of a paper, however often the paper repeats it.

    Attributes
    ----------
    rows : dict from experiment to list of str
        Its reported numbers: rows, quantities, or both as ``row/quantity``; the longest name decides, and an empty
        list stands for all numbers of the experiment.
    tests : list of str
        Tests of what is proven rather than measured, as ``file.py::test_name`` in the folder of the tests.
    reason : str
        Why neither an experiment nor a test covers it.
    limit : str
        For a claim: ``stated`` by the paper, or how we read words such as "comparable" that state none.
    """

    rows: dict[str, list[str]] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    reason: str = ""
    limit: str = ""

    def __post_init__(self) -> None:
        if bool(self.reason) == bool(self.rows or self.tests):
            raise ConfigurationError("a statement must have rows or tests, or else the reason why it has none")

    @property
    def reading(self) -> str:
        """How we read words that state no limit; empty where the paper states it."""
        return "" if self.limit == STATED else self.limit


@settings
class Paper:
    """A paper whose numbers are reproduced.

    `review` answers the questions of a report on a reproduction: its scope, what was easy, what was difficult. Papers
    are shown in the order of `place`. `statements` are everything that the paper reports, in its order: tables,
    figures, numbers, claims, algorithms and propositions.
    """

    title: str
    citation: str
    place: int = 0
    review: dict[str, str] = field(default_factory=dict)
    statements: dict[str, Statement] = field(default_factory=dict)

    def stating(self, experiment: str, one: Reported) -> list[Statement]:
        """Return the statements that name a reported number most closely; each number should have one."""
        ours = [(said, said.rows[experiment]) for said in self.statements.values() if experiment in said.rows]
        for name in (one.label, one.row, one.quantity):
            if found := [said for said, names in ours if name in names]:
                return found
        return [said for said, names in ours if not names]


@settings
class ReportedExperiment:
    """The printed numbers of one experiment, as a file of the group ``reported`` declares them.

    Attributes
    ----------
    rules : dict from quantity to Rule
    numbers : dict from row to dict from quantity to the printed digits
        Digits are quoted text, because a number would lose its final zeros.
    reasons : dict from the first word of a row to a reason
        Reasons for rules that have none themselves.
    table : str
        What the paper calls its table or figure, for example ``Table 6``.
    """

    source: str
    rules: dict[str, Rule]
    numbers: dict[str, dict[str, str]]
    reasons: dict[str, str] = field(default_factory=dict)
    table: str = ""

    def __post_init__(self) -> None:
        for row, numbers in self.numbers.items():
            for quantity in numbers:
                if quantity not in self.rules:
                    raise unknown(f"a quantity of {row}", list(self.rules), quantity)
        words = [*dict.fromkeys(row.split(" ")[0] for row in self.numbers)]
        for word in self.reasons:
            if word not in words:
                raise unknown("a key of reasons, the first word of a row,", words, word)

    def all(self) -> list[Reported]:
        """Return the numbers one by one."""
        return [
            Reported(self.source, row, quantity, printed, replace(rule, reason=reason))
            for row, numbers in self.numbers.items()
            for quantity, printed in numbers.items()
            for rule in [self.rules[quantity]]
            for reason in [rule.reason or self.reasons.get(row.split(" ")[0], "")]
        ]


@dataclass(frozen=True)
class Literature:
    """All papers by family, and the printed numbers of all experiments, both in the order in which they are shown.

    The experiments of a paper are in the order of its file, which follows the paper.
    """

    papers: Mapping[str, Paper]
    experiments: Mapping[str, ReportedExperiment]

    @classmethod
    def of(cls, catalogue: Catalogue) -> Literature:
        """Read all files of the group ``reported``; raise ConfigurationError if one has a mistake."""
        papers: dict[str, Paper] = {}
        experiments: dict[str, ReportedExperiment] = {}
        for family in catalogue.names("reported"):
            ours = project()
            known = (ours.title, ours.citation) if ours.citation else (family, family)
            about = dict(zip(("title", "citation"), known, strict=True))
            papers[family], tables = _declared(catalogue.mapping("reported", family), about, f"reported/{family}")
            experiments |= tables
        return cls(dict(sorted(papers.items(), key=lambda item: item[1].place)), experiments)

    @classmethod
    def of_file(cls, path: Path) -> Literature:
        """Read one such file of any name, whose tables may be of several families."""
        paper, tables = _declared(mapping_in(path), {"title": path.stem, "citation": path.stem}, str(path))
        if not tables:
            raise ConfigurationError(
                f"{path} must have the printed numbers of a table, under a key such as fisher/table2, got none"
            )
        return cls({name.partition("/")[0]: paper for name in tables}, tables)

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return names of experiments in the order of the papers and their tables.

        Experiments for which a paper reports nothing come after those of their family, and other families last, by
        name.
        """
        families, tables = list(self.papers), list(self.experiments)

        def place(name: str) -> tuple[int, int, str]:
            family = name.split("/")[0]
            return (
                families.index(family) if family in families else len(families),
                tables.index(name) if name in tables else len(tables),
                name,
            )

        return sorted(names, key=place)

    def table(self, experiment: str) -> str:
        """Return what the paper calls the table or figure of an experiment; empty where it reports nothing."""
        found = self.experiments.get(experiment)
        return found.table or experiment if found else ""

    def reported(self, experiment: str) -> list[Reported]:
        """Return the printed numbers of an experiment; none where a paper has none."""
        paper = self.papers.get(experiment.split("/")[0])
        numbers = self.experiments[experiment].all() if experiment in self.experiments else []
        found = [(one, paper.stating(experiment, one) if paper else []) for one in numbers]
        return [replace(one, reading="".join(said.reading for said in stating)) for one, stating in found]


def _declared(
    content: Mapping[str, Any], unnamed: Mapping[str, str], where: str
) -> tuple[Paper, dict[str, ReportedExperiment]]:
    """Return the paper that a file is about, `unnamed` if it does not say, and its tables."""
    entries = dict(content)
    paper = validated(Paper, entries.pop("paper", unnamed), f"{where}: paper")
    return paper, {
        name: validated(ReportedExperiment, entry, f"reported numbers of {name}") for name, entry in entries.items()
    }


@per_project
def printed_numbers(experiment: str) -> Mapping[tuple[str, str], Reported]:
    """Return what the project declares as printed for an experiment, by row and quantity, for tables that need it."""
    literature = Literature.of(Catalogue())
    return {(one.row, one.quantity): one for one in literature.reported(experiment)}


class NumbersError(ValueError):
    """An experiment does not give the numbers that are reported for it."""


def check_numbers(
    reported: Sequence[Reported],
    numbers: Sequence[Number],
    *,
    complete: bool,
    where: str = "the file of printed numbers",
) -> None:
    """Raise NumbersError for a number that is not reported, is given twice, or is missing.

    If the jobs are `complete` (all succeeded), each reported number must have a value, or a reason for having none.
    `where` is the file that could report more.
    """
    wanted = {(one.row, one.quantity): one.label for one in reported}
    for (row, quantity), count in Counter((one.row, one.quantity) for one in numbers).items():
        if (row, quantity) not in wanted:
            close = get_close_matches(f"{row}/{quantity}", wanted.values(), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise NumbersError(
                f"number {row}/{quantity} is computed, but not reported; correct its row and quantity, or add it to "
                f"{where}{hint}"
            )
        if count > 1:
            raise NumbersError(f"number {row}/{quantity} is given twice")
    has_value = {(one.row, one.quantity) for one in numbers if one.value is not None and not math.isnan(one.value)}
    explained = {(one.row, one.quantity) for one in numbers if one.reason}
    for one in reported if complete else ():
        if (one.row, one.quantity) not in has_value | explained:
            raise NumbersError(f"number {one.label} is reported, but has no value though all jobs succeeded")


# Printed numbers that are one draw, beside our replications.

_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Held(Generic[_Key]):
    """The probability of each printed number, by its key, alone and among all of them, and the columns of a table."""

    alone: Mapping[_Key, Probability]
    together: Mapping[_Key, Probability]
    n_replications: int
    columns: Mapping[str, object]


def held_against(printed: Mapping[_Key, Reported], replicated: Mapping[_Key, ArrayLike]) -> Held[_Key] | None:
    """Compare printed numbers with replications of the same numbers; None if no printed number has any.

    `replicated` has the value of every replication in the same order, NaN for one that has none.
    """
    keys = [key for key in printed if key in replicated]
    values = np.array([replicated[key] for key in keys], dtype=float).T
    if not values.size:
        return None
    chosen = [printed[key] for key in keys]
    draws = Draws([one.value for one in chosen], values, [one.decimals for one in chosen])
    alone, together = (dict(zip(keys, found, strict=True)) for found in (draws.alone(), draws.together()))
    return Held(alone, together, len(values), draws.outside().columns)


# Curves that authors stored with their code.


def interpolated(curve: pd.DataFrame, percent: float) -> float | None:
    """Return the value of a stored curve (percent, mean) at a share of missing features; None beyond its ends."""
    if curve.empty or not curve["percent"].min() - 1e-9 <= percent <= curve["percent"].max() + 1e-9:
        return None
    return float(np.interp(percent, curve["percent"], curve["mean"]))
