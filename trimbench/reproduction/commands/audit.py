"""The task ``audit``: whether jobs of a run, of any origin, give the same values when they are computed here."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.common_settings import PUBLISHED, SHARED_KEYS
from trimbench.reproduction.commands.surroundings import surroundings
from trimbench.reproduction.execution.executors import Executor, SerialExecutor, duration, run_jobs
from trimbench.reproduction.execution.provenance import commit_of
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import hash_of, temporary_folder
from trimbench.reproduction.messages import ShortError, brief, reason, some, terminal_width
from trimbench.reproduction.reporting.archive import unpack_tables
from trimbench.reproduction.reporting.audit import (
    Audit,
    AuditedJob,
    Compared,
    compared,
    drawn,
    jobs_of_run,
    write_audit,
)
from trimbench.reproduction.reporting.certificate import audit_folder, hashes_of, read_certificate, write_certificate
from trimbench.reproduction.reporting.runs import folder_of, read_abouts, rows_file, say
from trimbench.reproduction.reporting.tables import cut, markdown
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.cells import Cell
from trimbench.reproduction.vocabulary.planning import Surroundings, make_experiment
from trimbench.reproduction.world import world

# Jobs that take more than this share of the time are not drawn: a few of them would be the whole sample.
_LONG = 0.1
# Of the time that is left, a round of draws is to take this share. The first is small: it learns what a job costs here.
_ROUND, _FIRST, _LEAST = 0.5, 40, 8
# Jobs that differ, on a terminal.
_SHOWN = 10
# The minutes of an audit, unless they are given: an adoption only looks whether something is wrong.
_MINUTES = {"audit": 5.0, "adopt": 1.0}
# The last job may end this much later than the time that was asked for.
_GRACE = 1.1


def audit(invocation: Invocation) -> int:
    """Audit a run or an archive; return 1 if a job differs, or none could be computed."""
    with opened_run(invocation) as (name, folder, hashes):
        where = surroundings(invocation, "default")
        place = audit_folder(invocation.root, name)
        abouts = read_abouts(folder)
        if invocation.chosen:
            abouts = {stem: one for stem, one in abouts.items() if one["experiment"] in invocation.experiments}
        commits = {commit_of(one): None for about in abouts.values() for one in about.get("computed_with", ())}
        jobs, notes = _jobs(abouts, folder, invocation, where)
        hashes |= hashes_of(folder, [file for one in abouts.values() if (file := rows_file(one))])
        found = audited(name, jobs, [*commits], hashes, place, invocation, where, notes)
    show(found, place)
    if name == PUBLISHED:
        say(f"task=publish run={PUBLISHED} writes the outcome on its page.")
    return 0 if found.is_clean else 1


def show(found: Audit, place: Path) -> None:
    """Print what an audit found, and write its files."""
    say(f"# Audit of {found.run}\n\n{' '.join(found.sentences)}\n")
    for table in (cut(found.different(), _SHOWN, "; jobs.csv has all"), found.table(drawn=True)):
        if len(table.frame):
            say(f"{markdown(table, terminal_width())}\n")
    for file in write_audit(found, place):
        say(f"  {file}")


@contextmanager
def opened_run(invocation: Invocation) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """Yield the name, the folder and further hashes of the run that is audited, which may be in an archive."""
    archive = invocation.settings.archive
    if isinstance(archive, str):
        path = Path(archive).expanduser()
        with temporary_folder() as folder:
            unpack_tables(path, folder)
            yield path.name, folder, {path.name: hash_of(path.resolve())}
    else:
        yield invocation.run, folder_of(invocation.root, invocation.run), {}


def audited(
    name: str,
    jobs: Sequence[AuditedJob],
    commits: Sequence[str],
    hashes: Mapping[str, str],
    place: Path,
    invocation: Invocation,
    where: Surroundings,
    notes: Sequence[str] = (),
) -> Audit:
    """Draw from jobs and compute them in a store of their own, so that the same command continues an audit.

    `commits` has those that computed the jobs, `hashes` what these were read from.
    """
    settings, before = invocation.settings, read_certificate(place)
    # Who made the run must not know the draw, so it is fresh unless a seed is given or an audit goes on.
    seed = settings.seed if invocation.seeded else int(world().token(4), 16)
    if not invocation.seeded and before.get("audited") == hashes and before.get("status") == "begun":
        seed = int(before["seed"])
    budget = 60 * (settings.minutes or _MINUTES[settings.task])
    jobs = [_with_limits(one, where, _LONG * budget) for one in jobs]
    order = drawn(jobs, seed)
    absent = sorted(data for data, why in where.checked.items() if why)
    missing = [f"Data that is not here: {some(absent, 5)}."] if absent else []
    known = Audit(name, jobs, (), {}, seed, hashes, commits, len(order), (*notes, *missing))
    write_certificate(known.certificate("begun"), place)
    say(f"{len(order):,} of {len(jobs):,} jobs of {name} can be drawn; seed={seed} repeats the draw.")
    reached, found = _compute(order, place, where, budget)
    return dataclasses.replace(known, order=order[:reached], found=found)


def _with_limits(one: AuditedJob, where: Surroundings, longest: float) -> AuditedJob:
    """Return a job, which is not covered if its data is not here, or if it takes long."""
    why = f"it took more than {duration(longest)} there" if one.seconds > longest else ""
    absent = [found.place for found in one.inputs if where.obstacle(found)]
    if absent:
        why = "cannot be computed here without its data"
    return dataclasses.replace(one, uncovered=one.uncovered or why)


def _compute(
    order: Sequence[AuditedJob], place: Path, where: Surroundings, budget: float
) -> tuple[int, dict[int, Compared]]:
    """Compute drawn jobs in rounds until the time, in seconds, is over.

    Return how many were begun, and what was found, by their places. In a round, jobs are in the order of their
    experiments, as neighbours share what they read and learn.
    """
    store, reached, size = JobStore(place / "jobs"), 0, _FIRST
    deadline = world().seconds() + budget
    records: dict[str, Record] = {}

    def on_record(record: Record) -> None:
        records[record.job.key] = record
        if world().seconds() > deadline + (_GRACE - 1) * budget:
            raise _OverError

    while reached < len(order) and size >= _LEAST:
        first, begun = reached, world().seconds()
        reached = min(len(order), reached + size)
        one_round = sorted(order[first:reached], key=lambda one: (one.stem, one.labels))
        executor = _limited(where.executor, deadline - begun)
        with contextlib.suppress(_OverError):
            jobs = [one.job for one in one_round if one.job]
            run_jobs(jobs, store, executor, label=f"audit, {first:,} to {reached:,}", on_record=on_record)
        now = world().seconds()
        each = max((now - begun) / (reached - first), 1e-3)
        # What an earlier audit stored costs nothing, so that rounds grow at most tenfold.
        size = min(10 * size, int(_ROUND * (deadline - now) / each))
    found = {at: (one, records.get(one.job.key)) for at, one in enumerate(order[:reached]) if one.job}
    return reached, {at: compared(one, record) for at, (one, record) in found.items() if record}


class _OverError(Exception):
    """The time of an audit is over."""


def _limited(executor: Executor, seconds: float) -> Executor:
    """Return an executor that stops a job when the time is over, where it can."""
    if isinstance(executor, SerialExecutor) or getattr(executor, "timeout", 0.0) is not None:
        return executor
    return dataclasses.replace(executor, timeout=max(seconds, 1.0))  # type: ignore[type-var]


# The jobs of a run, and those here that have their labels.


def _jobs(
    abouts: Mapping[str, Mapping[str, Any]], folder: Path, invocation: Invocation, where: Surroundings
) -> tuple[list[AuditedJob], list[str]]:
    """Return the jobs of the experiments of a run, and which of these cannot be planned here, in sentences."""
    jobs: list[AuditedJob] = []
    notes: list[str] = []
    for stem, about in abouts.items():
        cells: Sequence[Cell] = ()
        try:
            cells = planned(about["experiment"], about["configuration"], invocation, where)
        except (ShortError, ValueError, TypeError) as error:
            notes.append(f"{stem} cannot be planned here: {reason(error)}.")
        jobs += jobs_of_run(stem, about, folder, cells, invocation.settings.only == "printed")
    if not jobs:
        raise ConfigurationError(f"run must have jobs to audit, got none in {folder.name!r}; name another run")
    return jobs, notes


def planned(name: str, recorded: Mapping[str, Any], invocation: Invocation, where: Surroundings) -> Sequence[Cell]:
    """Return the cells of an experiment of this project with the settings that a run has recorded.

    The class is that of the experiment here, whatever the run names: its settings are data. Settings that are new here
    have the values of the declaration, and those that are not known any more are left out. Raises ConfigurationError if
    there is no such experiment, or a value is not accepted.
    """
    if name not in invocation.experiments:
        raise ConfigurationError(f"no experiment here is called {brief(name)}")
    here = invocation.experiments[name]
    values = {key: recorded.get(key, value) if key != "runner" else value for key, value in here.items()}
    return make_experiment(name, values, SHARED_KEYS, invocation.code).cells(where.inputs)
