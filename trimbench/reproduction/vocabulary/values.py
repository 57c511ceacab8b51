"""Numbers that were computed elsewhere, in R, Julia or a notebook: a CSV in long form, and what it says of a table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trimbench.reproduction.files import read_csv
from trimbench.reproduction.messages import brief, reason, some
from trimbench.reproduction.settings import ConfigurationError, unknown
from trimbench.reproduction.vocabulary.numbers import CHANCE, Interval, Number, Probability, mean_of
from trimbench.reproduction.vocabulary.reported import (
    Literature,
    NumbersError,
    Reported,
    check_numbers,
    held_against,
)

# The columns of the file, and those that it may leave out.
_NEEDED, _OPTIONAL = ("table", "row", "quantity", "value"), ("replication", "low", "high")
# What R and pandas write where a line has nothing in a column that may be left out.
_NOTHING = ("", "NA", "NaN", "nan")


@dataclass(frozen=True)
class Value:
    """A line of the file: the value of one replication of a number, or of the number itself.

    The `replication` is empty for a number without any. `low` and `high` are the ends of a prediction interval, NaN
    without one. `job` stands for the job behind the value.
    """

    table: str
    row: str
    quantity: str
    value: float
    replication: str
    low: float
    high: float
    job: str

    @property
    def label(self) -> str:
        """What messages call the number."""
        return f"{self.table}, {self.row}/{self.quantity}"

    @property
    def has_ends(self) -> bool:
        """Whether an end of an interval is given."""
        return not (math.isnan(self.low) and math.isnan(self.high))


def read_values(path: Path, literature: Literature) -> list[Value]:
    """Return the lines of a file.

    Raises
    ------
    ConfigurationError
        If it is no such file, has no line, or something else for a number; if a table is not reported; if lines say the
        same; or if a number has both replications and ends of an interval, or ends that do not enclose it.
    """
    try:
        lines = read_csv(path.expanduser().resolve())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"values: {path} cannot be read: {reason(error)}") from error
    columns = list(map(str, lines.columns))
    for column in [*_NEEDED, *columns]:
        if column not in columns:
            got = brief(", ".join(columns)) if columns else "an empty file"
            raise ConfigurationError(
                f"values must have the columns {', '.join(_NEEDED)}, separated by commas, got {got} in {path}; "
                f"add {column}"
            )
        if column not in (*_NEEDED, *_OPTIONAL):
            raise unknown(f"values: each column of {path}", [*_NEEDED, *_OPTIONAL], column)
    rows = lines.reindex(columns=[*_NEEDED, *_OPTIONAL], fill_value="").to_numpy().tolist()
    if not rows:
        raise ConfigurationError(f"values must have a line for each number, got only the headings in {path}")
    found = [_value(row, number, path, literature) for number, row in enumerate(rows, start=1)]
    _check(found, path)
    return found


def _value(cells: Sequence[str], place: int, path: Path, literature: Literature) -> Value:
    table, row, quantity, value, replication, low, high = cells
    if table not in literature.experiments:
        raise unknown(f"values: table in {path}", list(literature.experiments), table)

    def number(column: str, text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise ConfigurationError(
                f"values: {column} of {table}, {row}/{quantity} must be a number such as 0.25, got {brief(text)} in "
                f"{path}; leave out the line of what was not computed"
            )
        return found

    return Value(
        table=table,
        row=row,
        quantity=quantity,
        value=number("value", value),
        replication="" if replication in _NOTHING else replication,
        low=math.nan if low in _NOTHING else number("low", low),
        high=math.nan if high in _NOTHING else number("high", high),
        job=f"value {place}",
    )


def _check(values: Sequence[Value], path: Path) -> None:
    """Raise ConfigurationError for lines that say the same, or the ends of an interval that are of no use."""
    of_each: dict[str, set[str]] = defaultdict(set)
    for one in values:
        if one.replication in of_each[one.label]:
            which = f"replication {brief(one.replication)}" if one.replication else "no replication"
            raise ConfigurationError(
                f"values must have one line for each number, or for each replication of it, got two of {one.label} "
                f"with {which} in {path}; number its replications in the column replication"
            )
        of_each[one.label].add(one.replication)
    for one in values:
        n_lines = len(of_each[one.label])
        if one.has_ends and (n_lines > 1 or not one.low <= one.value <= one.high):
            got = f"{n_lines} lines" if n_lines > 1 else f"{one.low:g}, {one.value:g}, {one.high:g}"
            raise ConfigurationError(
                f"values: low and high must enclose the value of a number with one line, got {got} for {one.label} in "
                f"{path}; give both ends, or replications instead"
            )


def numbers_in(values: Sequence[Value], reported: Sequence[Reported], file: str) -> list[Number]:
    """Return the numbers of one table: means of replications with prediction intervals, or values with the given ones.

    `reported` are the printed ones, which `file` declares. Raises ConfigurationError if a number is not reported, or
    its rule needs an interval that a single value does not have.
    """
    printed = {(one.row, one.quantity): one for one in reported}
    of_each: dict[tuple[str, str], list[Value]] = defaultdict(list)
    for one in values:
        of_each[one.row, one.quantity].append(one)
    probabilities = _probabilities(of_each, printed)
    numbers = []
    for key, ours in of_each.items():
        mean, first = mean_of([one.value for one in ours], "prediction"), ours[0]
        interval = Interval(first.low, first.high, "prediction") if first.has_ends else mean.interval
        jobs = tuple(one.job for one in ours)
        numbers.append(Number(*key, mean.value, jobs, interval, probability=probabilities.get(key)))
    try:
        check_numbers(reported, numbers, complete=False, where=file)
    except NumbersError as error:
        raise ConfigurationError(f"values: {error}") from error
    _check_intervals(numbers, printed)
    return numbers


def _check_intervals(numbers: Sequence[Number], printed: Mapping[tuple[str, str], Reported]) -> None:
    """Raise ConfigurationError if a rule needs the noise of a number of which nothing is known but one value.

    To say that it differs could be wrong; that it is reproduced, too.
    """
    lacking = [
        one.label
        for number in numbers
        for one in [printed[number.row, number.quantity]]
        if one.rule.kind == "interval" and number.interval is None
        if number.value is not None and not one.is_printed_form_of(number.value)
    ]
    if lacking:
        raise ConfigurationError(
            "values must have two or more replications of a number that is judged by its interval, got one, which "
            f"tells no noise, of {brief(some(lacking, 3))}; add replications, or the ends low and high"
        )


def _probabilities(
    of_each: Mapping[tuple[str, str], Sequence[Value]], printed: Mapping[tuple[str, str], Reported]
) -> Mapping[tuple[str, str], Probability]:
    """Return the probability of each printed number among the replications of the table, if these are enough."""
    names = list(dict.fromkeys(one.replication for ours in of_each.values() if len(ours) > 1 for one in ours))
    replicated = {
        key: [{one.replication: one.value for one in ours}.get(name, math.nan) for name in names]
        for key, ours in of_each.items()
        if len(ours) > 1
    }
    # The limit of a claim is no draw.
    draws = {k: one for k, one in printed.items() if one.rule.subject == "number" and math.isfinite(one.value)}
    held = held_against(draws, replicated)
    return {key: one for key, one in held.together.items() if one.least <= CHANCE} if held else {}
