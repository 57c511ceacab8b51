"""What differs between two finished runs: numbers, verdicts, settings, data and environment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimbench.papers.reporting.comparisons.runs import POINTS, REPORTED, StoredExperiment, StoredRun
from trimbench.papers.reporting.comparisons.tables import Change, Kind, compare_tables

# What a command does, where it writes, and how the experiment is programmed and tested.
_NOT_SETTINGS = ("task", "results", "run", "runs", "runner", "smoke_test")
# In the order of the report.
_KINDS: tuple[Kind, ...] = ("number", "verdict", "words", "time", "rounding")
_PARTS = ("setting", "data", "environment")


@dataclass(frozen=True)
class Difference:
    """A setting, a data set or a part of the environment that differs, with the experiments in which it does."""

    part: str
    name: str
    first: str
    second: str
    experiments: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs.

    Attributes
    ----------
    runs : (str, str)
        Their names.
    changes : tuple of Change
        By kind, numbers first; those of a kind by falling relative change.
    differences : tuple of Difference
        Settings, data and environment.
    only : tuple of (int, str)
        What only one run has, with the number of the run (0 or 1).
    experiments : tuple of str
        Those that both runs have.
    n_compared : int
        How many numbers both runs have.
    """

    runs: tuple[str, str]
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    only: tuple[tuple[int, str], ...]
    experiments: tuple[str, ...]
    n_compared: int

    def of_kind(self, kind: Kind) -> list[Change]:
        """Return the changes of this kind."""
        return [change for change in self.changes if change.kind == kind]

    @property
    def verdicts(self) -> list[Change]:
        """The reported numbers, changed or not, that the runs judge differently."""
        return [change for change in self.changes if change.verdict_changed]


def compare_runs(first: StoredRun, second: StoredRun) -> Comparison:
    """Compare the experiments that two runs have in common, and list those of one run only."""
    pairs = dict(_pairs(first, second))
    changes: list[Change] = []
    only = [(0, f"experiment {stem}") for stem in first.experiments if stem not in pairs]
    partners = {other.stem for _, other in pairs.values()}
    only += [(1, f"experiment {stem}") for stem in second.experiments if stem not in partners]
    found: dict[tuple[str, str, str, str], list[str]] = {}
    n_compared = 0
    for stem, (one, two) in pairs.items():
        own: list[Change] = []
        for place, (mine, other) in enumerate(((one, two), (two, one))):
            only += [(place, f"{stem}: {part}") for part in mine.tables if part not in other.tables]
        for part in sorted(set(one.tables) & set(two.tables), key=_rank):
            result = compare_tables(stem, part, one.tables[part], two.tables[part])
            own += result.changes
            only += [(place, f"{stem}, {part}: {what}") for place, what in result.only]
            n_compared += result.n_compared
        changes += _once(own)
        for difference in _differences(one.about, two.about):
            found.setdefault(difference, []).append(stem)
    changes.sort(key=_order)
    differences = [Difference(*difference, tuple(stems)) for difference, stems in found.items()]
    differences.sort(key=lambda one: (_PARTS.index(one.part), -len(one.experiments)))
    names = first.name, second.name
    return Comparison(names, tuple(changes), tuple(differences), tuple(only), tuple(pairs), n_compared)


def _pairs(first: StoredRun, second: StoredRun) -> Iterator[tuple[str, tuple[StoredExperiment, StoredExperiment]]]:
    """Yield the experiments of both runs; other settings have another stem, and are paired if there is no doubt."""
    for stem, one in first.experiments.items():
        if stem in second.experiments:
            yield stem, (one, second.experiments[stem])
            continue
        rest = [
            two for two in second.experiments.values() if two.name == one.name and two.stem not in first.experiments
        ]
        same = [other for other in first.experiments.values() if other.name == one.name]
        if len(rest) == len([other for other in same if other.stem not in second.experiments]) == 1:
            yield stem, (one, rest[0])


def _once(changes: Sequence[Change]) -> list[Change]:
    """Return the changes of an experiment, each number once: tables and figures may show a number again."""
    found: dict[object, Change] = {}
    for change in changes:
        values: tuple[object, ...] = (change.first, change.second)
        if not any(isinstance(value, float) and not value.is_integer() for value in values):
            # Small whole numbers and words are equal by chance; digits after the point are not.
            values = (*values, change.row, change.quantity)
        if values in found:
            earlier = found[values]
            also = f"{change.table}: {change.place}"
            found[values] = replace(earlier, also=(*earlier.also, also))
        else:
            found[values] = change
    return list(found.values())


def _rank(part: str) -> tuple[bool, bool, str]:
    """Order tables so that a number is listed where it is best known: reported, in a table, in a figure."""
    return part != REPORTED, part.endswith(POINTS), part


def _order(change: Change) -> tuple[int, bool, float]:
    relative = change.relative
    return _KINDS.index(change.kind), relative is None, -abs(relative or 0)


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield part, name and both values of whatever differs in the provenance of an experiment."""
    for part, describe in zip(_PARTS, (_settings, _data, _environment), strict=True):
        first, second = describe(one), describe(two)
        for name in [*first, *(name for name in second if name not in first)]:
            if first.get(name) != second.get(name):
                yield part, name, first.get(name, "–"), second.get(name, "–")


def _settings(about: Mapping[str, Any]) -> dict[str, str]:
    configuration = about.get("configuration", {})
    values = _flat({key: value for key, value in configuration.items() if key not in _NOT_SETTINGS})
    return {name: value for name, value in values if not name.endswith("._target_")}


def _data(about: Mapping[str, Any]) -> dict[str, str]:
    missing = dict.fromkeys(about.get("missing", {}), "not available")
    return dict(_flat(about.get("data", {}))) | missing


def _environment(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the jobs of an experiment ran with; several environments give several values."""
    values: dict[str, dict[str, None]] = {}
    described = [("computed with", entry) for entry in about.get("computed_with", ())]
    described.append(("written with", about.get("written_with", {})))
    for prefix, entry in described:
        for name, value in _flat({key: value for key, value in entry.items() if key != "time"}):
            values.setdefault(f"{prefix} {name.removeprefix('packages.')}", {})[value] = None
    return {name: ", ".join(sorted(found)) for name, found in values.items()}


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of nested mappings, joined by points, with their values as text."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{above}{key}", text
