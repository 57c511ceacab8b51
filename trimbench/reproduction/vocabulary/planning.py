"""Plan an experiment: make it from its configuration, make its cells, fetch their data, and estimate their cost."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from trimbench.reproduction.configuration import NOT_SETTINGS, Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.declarations import (
    DatasetDeclaration,
    Declaration,
    is_here,
    obstacle,
)
from trimbench.reproduction.data.errors import DataUnavailable, DeclarationError, FactsMismatch, by_host, ways_out
from trimbench.reproduction.execution.executors import Executor, run_jobs
from trimbench.reproduction.execution.job import Job, faults, fields, number
from trimbench.reproduction.execution.store import JobStore, Record, read_earlier_arrays
from trimbench.reproduction.files import without_homes
from trimbench.reproduction.messages import brief, reason
from trimbench.reproduction.project import is_trusted, project
from trimbench.reproduction.settings import ConfigurationError, Json, validated
from trimbench.reproduction.vocabulary.cells import Cell, Experiment, Input, Inputs
from trimbench.reproduction.vocabulary.numbers import Number, Outcome
from trimbench.reproduction.vocabulary.reported import Reported, check_numbers
from trimbench.reproduction.vocabulary.tables import Table

if TYPE_CHECKING:
    import pandas as pd


def make_experiment(
    name: str, values: Mapping[str, Json], shared: Sequence[str], code: Sequence[str] = ()
) -> Experiment:
    """Return the experiment that a configuration describes: ``runner`` ("module:class"), and the keys of that class.

    Of the keys that all experiments share, this one gets those that its class has. The module must be in a package of
    the project, or in one of the modules and packages in `code`, which the user trusts. Raises ConfigurationError if it
    is not, if the class does not exist, or if a key or value is wrong.
    """
    if "runner" not in values:
        raise _without_runner(name, values)
    runner = str(values["runner"])
    module, colon, class_name = runner.partition(":")
    allowed = f"experiment {name}: runner must be 'module:class' of an experiment, got {brief(runner)}"
    # Nothing is imported before this is known: importing a module runs it.
    if not colon:
        raise ConfigurationError(allowed)
    if not is_trusted(module, code):
        raise ConfigurationError(f"{allowed}, {_untrusted(module, class_name)}")
    try:
        found = getattr(importlib.import_module(module), class_name)
        names = {field.name for field in dataclasses.fields(found)}
        if absent := {"cells", "outcome"} - set(dir(found)):
            raise TypeError(f"the class has no method {min(absent)}")
    except (ImportError, AttributeError, ValueError, TypeError, RecursionError) as error:
        advice = "; install it, or name its folder in PYTHONPATH" * isinstance(error, ModuleNotFoundError)
        raise ConfigurationError(f"{allowed} ({reason(error)}){advice}") from error
    own = {key: value for key, value in values.items() if key in names or key not in (*NOT_SETTINGS, *shared)}
    experiment: Experiment = validated(found, own, f"experiment {name}")
    return experiment


def _without_runner(name: str, values: Mapping[str, Json]) -> ConfigurationError:
    # Without that line, Hydra puts the keys of a file under the name of its group.
    if isinstance(values.get("experiment"), Mapping):
        return ConfigurationError(
            f"experiment {name}: its file must begin with the line '# @package _global_', without which its keys are "
            "not settings; add it"
        )
    return ConfigurationError(f"experiment {name}: key runner is missing; add 'runner: module:Class' to its file")


def _untrusted(module: str, class_name: str) -> str:
    """Say what is wrong with a module that is not the project's, without importing it: misspelt, or another's."""
    ours = project().code
    if close := get_close_matches(module, ours, n=1):
        return f"which is no module of the project; did you mean {f'{close[0]}:{class_name}'!r}?"
    if project().is_folder and importlib.util.find_spec(module.partition(".")[0]) is None:
        return f"but there is no such module; those of the project are {', '.join(ours) or 'none'}"
    return (
        f"which is code from outside {', '.join(ours) or project().name}; if you trust it, add "
        f"--allow-code={module if len(module) < 120 else 'MODULE'}"
    )


def fetch(declaration: Declaration, cache: Cache, *, verify: bool | None = False) -> str:
    """Download data unless it is in a cache, and verify that it is what was declared; return how that was done.

    What is compared besides is up to the kind of data: with `verify` all that can be downloaded, by default what is in
    the cache, and with None, as for a run, nothing.

    Raises DataUnavailable if it can be neither read nor downloaded, DeclarationError or FactsMismatch if it is not what
    was declared.
    """
    try:
        return declaration.fetch(cache, verify=verify)
    except (DataUnavailable, DeclarationError, OSError) as error:
        blocked = obstacle(declaration, cache)
        if blocked or isinstance(error, OSError):
            raise DataUnavailable(blocked or str(error)) from error
        raise


def held_against_servers(declaration: DatasetDeclaration, cache: Cache) -> list[dict[str, str]]:
    """Download a data set afresh from each of its sources, and return how each differs from what is declared.

    Rows in another order are no difference: they are sorted by their content, and splits depend on nothing else.
    """
    lines = []
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        for place, source in enumerate((declaration.source, *declaration.others)):
            afresh = dataclasses.replace(cache, folders=(), writable=Path(folder, str(place)))
            found, why = "as declared", ""
            try:
                source.load(declaration.name, afresh)
            except (DeclarationError, FactsMismatch) as error:
                found, why = "other rows", str(error)
            except (DataUnavailable, OSError) as error:
                is_on = not cache.offline and source.road in ("", *cache.roads)
                switched_off = "not asked (offline)" if cache.offline else "not asked (roads)"
                found, why = "not reached" if is_on else switched_off, str(error)
            lines.append({"data": declaration.name, "from": source.where, "what it has": found, "why": why})
    return lines


@dataclass(frozen=True)
class Surroundings:
    """What every experiment of a run shares: the data, the store of finished jobs, and the executor of the others."""

    inputs: Inputs
    store: JobStore
    executor: Executor
    cache_mode: str
    # Why data is not available, by place; empty for what is.
    checked: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        read_earlier_arrays(self.cache_mode != "ignore")  # before any job: plans may look at them, too

    def obstacle(self, found: Input) -> str:
        """Return why the data of an input is not available, after an attempt to fetch it; empty if it is."""
        declaration, cache = found.declaration, self.inputs.cache
        if found.place not in self.checked:
            self.checked[found.place] = ""
            # Reading a table takes long, and each job verifies it anyway; hashing a network's files takes no time.
            if not (isinstance(declaration, DatasetDeclaration) and is_here(declaration, cache)):
                try:
                    fetch(declaration, cache, verify=None)
                except (DataUnavailable, ValueError) as error:
                    self.checked[found.place] = without_homes(str(error))
        return self.checked[found.place]

    def stored(self, cells: Sequence[Cell]) -> dict[str, float]:
        """Return the seconds of the stored successes among the jobs of some cells, by key."""
        found = {cell.job.key: self.store.glance(cell.job) for cell in cells}
        return {key: one.seconds for key, one in found.items() if one is not None and one.ok}


@dataclass(frozen=True, eq=False)
class Plan:
    """An experiment before its jobs run.

    Attributes
    ----------
    settings : mapping
        The resolved configuration.
    reported : sequence of Reported
        The printed numbers that it reproduces.
    cells : sequence of Cell
    missing : mapping from the place of a data set or network to the reason why it is not available
    jobs : sequence of Job
        Those that are stored, and those whose data is available.
    done : mapping from keys of jobs to seconds
        Seconds of the stored successes.
    files : mapping from names in a folder of the cache to paths
        Files that the other jobs read.
    altered, stem
        As in `Findings`.
    """

    name: str
    settings: Mapping[str, Json]
    experiment: Experiment
    reported: Sequence[Reported]
    cells: Sequence[Cell]
    missing: Mapping[str, str]
    jobs: Sequence[Job]
    done: Mapping[str, float]
    files: Mapping[str, Path]
    altered: tuple[str, ...]
    stem: str

    @classmethod
    def of(
        cls,
        name: str,
        settings: Mapping[str, Json],
        experiment: Experiment,
        reported: Sequence[Reported],
        where: Surroundings,
        *,
        altered: Sequence[str] = (),
        stem: str = "",
    ) -> Plan:
        """Plan an experiment: make its cells, and fetch the data of those that are not stored."""
        cells = experiment.cells(where.inputs)
        # Stored results need no data, which may be on another machine.
        stored = where.stored(cells) if where.cache_mode == "default" else {}
        wanted = [] if where.cache_mode == "only" else [cell for cell in cells if cell.job.key not in stored]
        needs = {found.place: found for cell in wanted for found in cell.inputs}
        missing = {place: reason for place, found in needs.items() if (reason := where.obstacle(found))}
        jobs = [
            cell.job
            for cell in cells
            if cell.job.key in stored or not any(found.place in missing for found in cell.inputs)
        ]
        files = {key: path for found in needs.values() for key, path in found.files(where.inputs.cache).items()}
        parts = (cells, missing, jobs, stored, files, tuple(altered), stem or name)
        return cls(name, settings, experiment, reported, *parts)

    def findings(self, records: Mapping[str, Record]) -> Findings:
        """Return what the experiment found; `records` has those of its jobs, by key.

        Raises NumbersError if the experiment gives a number that is not reported, or leaves out one that is. With
        altered settings, its numbers are not checked.
        """
        own = [records[job.key] for job in self.jobs]
        rows = rows_of(self.cells, {record.job.key: record for record in own}, self.missing)
        labels = tuple(dict.fromkeys(label for cell in self.cells for label in cell.labels))
        try:
            outcome = self._no_data() if (rows["status"] == NO_DATA).all() else self._outcome(rows)
        except Exception as error:
            lacking = rows.loc[rows["status"] != "ok", [*dict.fromkeys((*labels, "status", "error"))]]
            if lacking.empty:
                raise
            said = lacking.assign(error=lacking["error"].str.strip().str.split("\n").str[-1])
            raised = [{"error": without_homes(f"{type(error).__name__}: {error}")}]
            after = Table.of("The error that follows from it", raised, ["error"], name="consequence")
            outcome = Outcome((Table("Jobs without a result", said), after))
        # A user's own experiment has no reported numbers.
        if self.reported and not self.altered:
            where = f"{project().configuration.name}/reported/{self.name.partition('/')[0]}.yaml"
            check_numbers(self.reported, outcome.numbers, complete=bool((rows["status"] == "ok").all()), where=where)
        return Findings(self.name, self.settings, rows, outcome, own, self.missing, self.altered, labels, self.stem)

    def _outcome(self, rows: pd.DataFrame) -> Outcome:
        """Return the experiment's outcome for the rows, with the notes of its file, which hold whatever it finds."""
        outcome, fixed = self.experiment.outcome(rows), self.settings.get("notes", ())
        notes = [str(note) for note in fixed] if isinstance(fixed, list | tuple) else []
        return dataclasses.replace(outcome, notes=(*outcome.notes, *notes))

    def _no_data(self) -> Outcome:
        needs = {found.place: found.declaration.where for cell in self.cells for found in cell.inputs}
        lines = [{"data": name, "from": needs[name], "why not": why} for name, why in self.missing.items()]
        needed = ", ".join(f"{name} ({needs[name]})" if len(lines) < 8 else name for name in self.missing)
        columns = dict.fromkeys(("data", "from", "why not"), "")
        table = Table.of("Data that would be needed", lines, columns, listed=False)
        note = "; ".join(filter(None, [f"Not run here: no data. Needed: {needed}", ways_out(self.missing.values())]))
        return Outcome((table,), notes=(f"{note}.",))


def rows_of(cells: Sequence[Cell], records: Mapping[str, Record], missing: Mapping[str, str]) -> pd.DataFrame:
    """Return one row for each cell: its labels and what is known of its job, with the entries of its result."""
    import numpy as np
    import pandas as pd

    rows = []
    for cell in cells:
        row: dict[str, Json] = dict(cell.labels)
        record = records.get(cell.job.key)
        if record is None:
            row |= {"status": NO_DATA, "error": next(missing[i.place] for i in cell.inputs if i.place in missing)}
        else:
            row |= {"status": record.status, "error": record.error, "seconds": record.seconds}
            # A result must not overwrite what is known about the job without it.
            row = {**row, **{name: value for name, value in (record.result or {}).items() if name not in row}}
        row["job"] = cell.job.key
        rows.append(row)
    frame = pd.DataFrame(rows)
    for name in frame.columns[frame.isna().any() & (frame.dtypes == np.float64)]:
        # Whole numbers beside missing ones stay whole, so that `successes` can turn the column into integers again.
        found = [row.get(name) for row in rows]
        if {type(value) for value in found} == {int, type(None)}:
            frame[name] = pd.Series([np.nan if value is None else value for value in found], dtype=object)
    return frame


# Run the jobs of experiments as one set, and conclude each experiment when its last job has ended.


def run_plans(
    plans: Sequence[Plan],
    where: Surroundings,
    conclude: Callable[[Plan, Mapping[str, Record]], None],
    *,
    label: str,
    expected: Mapping[str, float] | None = None,
) -> None:
    """Run the jobs of several experiments that are not stored, as one set: no worker waits for an experiment to end.

    `conclude` is called with each plan and the records of its jobs, by key, as soon as the last of them is known; while
    it works, the workers go on. `label` names the set in reports of progress, and `expected` has the seconds that jobs
    are expected to take, by key.
    """
    records: dict[str, Record] = {}
    open_keys = [{job.key for job in plan.jobs} for plan in plans]
    waiting: dict[str, list[int]] = {}
    for place, keys in enumerate(open_keys):
        for key in keys:
            waiting.setdefault(key, []).append(place)

    def on_record(record: Record) -> None:
        records[record.job.key] = record
        for place in waiting[record.job.key]:
            open_keys[place].discard(record.job.key)
            if not open_keys[place]:
                conclude(plans[place], records)

    for plan in plans:
        if not plan.jobs:
            conclude(plan, records)
    run_jobs(
        [job for plan in plans for job in plan.jobs],
        where.store,
        where.executor,
        cache_mode=where.cache_mode,
        label=label,
        expected=expected,
        on_record=on_record,
        files={name: path for plan in plans for name, path in plan.files.items()},
    )


# What one run of an experiment yields.

NO_DATA = "data not available"
ADOPTED = "adopted"
"""The entry in the provenance of a record that says from which archive it is."""


def origin_of(record: Record) -> dict[str, str]:
    """Return the file and the SHA-256 of the archive that a record was adopted from; empty for one computed here."""
    found = record.provenance.get(ADOPTED)
    known = isinstance(found, Mapping) and {"file", "sha256"} <= found.keys()
    return {key: str(found[key]) for key in ("file", "sha256")} if known else {}  # type: ignore[index,call-overload]


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that one run of an experiment yields.

    Attributes
    ----------
    settings : mapping
        The resolved configuration.
    rows : DataFrame
        One row for each cell.
    records : sequence of Record
        Records of the cells whose data is available.
    missing : mapping from the place of a data set or network to the reason why it is not available
    altered : tuple of str
        Keys of the experiment that the user has set; its numbers are then not compared with the reported ones.
    labels : tuple of str
        Columns of `rows` that distinguish the cells.
    stem : str
        Beginning of the names of its files: the name, followed by the altered settings with their values.
    """

    name: str
    settings: Mapping[str, Json]
    rows: pd.DataFrame
    outcome: Outcome
    records: Sequence[Record]
    missing: Mapping[str, str]
    altered: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    stem: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stem", self.stem or self.name)

    @property
    def numbers(self) -> Sequence[Number]:
        """The numbers to compare with the reported ones: none if the experiment's settings were changed."""
        return () if self.altered else self.outcome.numbers

    @property
    def roads(self) -> dict[str, str]:
        """Where its jobs got their data from, by group and name, if their records say so."""
        found: dict[str, dict[str, None]] = {}
        for record in self.records:
            roads = record.provenance.get("roads")
            for place, road in roads.items() if isinstance(roads, Mapping) else ():
                found.setdefault(place, {})[str(road)] = None
        return {place: " and ".join(sorted(roads)) for place, roads in sorted(found.items())}

    @functools.cached_property
    def adopted(self) -> dict[str, str]:
        """The archives, by hash, from which records of its jobs were adopted, by the key of the job."""
        return {one.job.key: origin["sha256"] for one in self.records if (origin := origin_of(one))}

    @property
    def notes(self) -> list[str]:
        """What a reader must know: the notes of the outcome, data that is missing, records and machines of others."""
        lists = [record.provenance.get("left_out") for record in self.records]
        left_out = sorted({str(line) for lines in lists if isinstance(lines, list) for line in lines})
        return [
            *self.outcome.notes,
            *(f"Data not available: {line}" for line in by_host(self.missing)),
            *(f"Left out of the run: {line}" for line in left_out),
            *(
                f"Computed elsewhere, and adopted from the archive with the SHA-256 {archive}: {n:,} of "
                f"{len(self.records):,} jobs"
                for archive, n in Counter(self.adopted.values()).items()
            ),
        ]

    @property
    def failures(self) -> int:
        """Number of jobs that failed."""
        return len(self._errors)

    @property
    def first_failure(self) -> str:
        """The last line of the first error; empty without failures."""
        return self._errors[0].strip().splitlines()[-1] if self._errors else ""

    @property
    def _errors(self) -> list[str]:
        return [str(record.error) for record in self.records if record.status not in ("ok", "missing")]


# What jobs are expected to cost: the processor time of each, from stored records or from an earlier run.

COST = "cost"


def measured(catalogue: Catalogue, profile: str) -> dict[str, dict[str, float]]:
    """Return the mean seconds of a job by experiment and the name of its function, as an earlier run measured them.

    Empty for a profile that was never measured. Raises ConfigurationError if its file has anything but seconds.
    """
    if profile not in catalogue.names(COST):
        return {}
    found = catalogue.mapping(COST, profile)
    if wrong := faults(found, {"*": fields(**{"*": number(0, 1e9)})}):
        raise ConfigurationError(f"{catalogue.path(COST, profile)} must have the seconds of functions: {wrong}")
    return found


def expected_seconds(jobs: Iterable[Job], done: Mapping[str, float], typical: Mapping[str, float]) -> dict[str, float]:
    """Return the processor seconds that the jobs of an experiment are expected to take, by key, where known.

    `done` has what the stored ones took, by key. Any other is expected to take the mean of the stored ones of its
    function; if none is stored, the seconds in `typical`, which is `measured` for this experiment.
    """
    function_of = {job.key: job.function.rpartition(":")[2] for job in jobs}
    stored: dict[str, list[float]] = defaultdict(list)
    for key, function in function_of.items():
        if key in done:
            stored[function].append(done[key])
    means = {**typical, **{function: fmean(seconds) for function, seconds in stored.items()}}
    return {
        key: done.get(key, means[function]) for key, function in function_of.items() if key in done or function in means
    }
