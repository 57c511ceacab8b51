"""The tasks ``run`` and ``report``: jobs, tables and figures of one or all experiments, or of the points of a sweep."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trimbench.papers.commands.invocation import SHARED_KEYS, Invocation, Point
from trimbench.papers.commands.sweeping import Sweep
from trimbench.papers.execution.cost import expected_seconds, measured
from trimbench.papers.execution.store import Record
from trimbench.papers.reporting.archive import experiments_of, write_archive
from trimbench.papers.reporting.file_names import settings_name
from trimbench.papers.reporting.overview import Overview
from trimbench.papers.reporting.runs import check_profile, make_run
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.outcome import Experiment
from trimbench.papers.study.planning import Plan, Surroundings
from trimbench.papers.study.reported import Literature, NumbersError
from trimbench.papers.study.running import run_plans
from trimbench.papers.validation import ConfigurationError

# A whole run begins with the table that is there after seconds.
_FIRST = "trimming/table6"
# What configurations hold beside the settings of an experiment, its seed and its profile.
_NO_SETTINGS = tuple(key for key in (*SHARED_KEYS, "runner", "smoke_test") if key not in ("seed", "profile"))


class _Reporter(Protocol):
    """Takes what was found, experiment by experiment."""

    def note(self, findings: Findings) -> None: ...

    def note_failure(self, name: str, error: Exception) -> None: ...


@dataclass(frozen=True)
class _Task:
    """One experiment of one point, and who reports it."""

    name: str
    point: Point
    experiment: Experiment
    stem: str
    reporter: _Reporter


def run(invocation: Invocation, cache_mode: str | None = None) -> int:
    """Run the experiments and write their tables and figures; return 1 if a job or an experiment failed."""
    mode = cache_mode or invocation.settings.cache_mode
    executor = invocation.make_executor()
    figure = invocation.figure.settings
    # Everything is made and read before the first job runs, so that a mistake, even in the last point of a sweep, costs
    # no time.
    made = [{name: invocation.make(name, point) for name in point.experiments} for point in invocation.points]
    literature = Literature.of(invocation.catalogue)
    where = Surroundings(Inputs(invocation.catalogue, invocation.cache()), invocation.store(), executor, mode)
    _check_writable(invocation.settings.results)
    folder = invocation.root / invocation.run
    check_profile(folder, invocation.profile)
    if invocation.sweep:
        sweep = Sweep(invocation, folder / "sweeps" / invocation.sweep, literature, figure)
        tasks = [
            _Task(name, point, experiment, name, reporter)
            for point, experiments, reporter in zip(invocation.points, made, sweep.reporters, strict=True)
            for name, experiment in experiments.items()
        ]
        _run_all(tasks, literature, where, invocation, strict=False)
        return sweep.close()
    (point,), (experiments,) = invocation.points, made
    suffix = f",{settings_name(point.named)}" if point.named else ""
    overview = Overview(folder, invocation.catalogue, literature, figure, profile=invocation.profile, suffix=suffix)
    names = sorted(literature.in_order(experiments), key=lambda name: name != _FIRST)
    tasks = [_Task(name, point, experiments[name], f"{name}{suffix}", overview) for name in names]
    _run_all(tasks, literature, where, invocation, strict=invocation.chosen)
    return overview.close(summary=not invocation.chosen)


def report(invocation: Invocation) -> int:
    """Write tables and figures again, from stored results alone, and an archive of the run if it is asked for."""
    code = run(invocation, cache_mode="only")
    if invocation.settings.archive:
        _archive(invocation)
    return code


def _archive(invocation: Invocation) -> None:
    folder = invocation.root / invocation.run
    if not experiments_of(folder):
        raise ConfigurationError(
            f"run must have results to archive, got none in {str(folder)!r}; run experiments first"
        )
    path = invocation.root / "archives" / f"{invocation.run}.zip"
    write_archive(folder, invocation.store(), invocation.catalogue, path, _NO_SETTINGS)
    sys.stdout.write(f"\nThe archive of the run {invocation.run}, an RO-Crate:\n  {path}\n")


def _run_all(
    tasks: Sequence[_Task], literature: Literature, where: Surroundings, invocation: Invocation, *, strict: bool
) -> None:
    """Plan all experiments, then run their jobs as one set. If `strict`, an experiment that cannot run ends it all."""

    def attempt(task: _Task, step: Callable[[], None], *fatal: type[Exception]) -> None:
        try:
            step()
        except fatal:
            raise
        except Exception as error:
            if strict and not isinstance(error, NumbersError):
                raise
            task.reporter.note_failure(task.name, error)

    plans: dict[Plan, _Task] = {}

    def plan(task: _Task) -> None:
        settings = task.point.experiments[task.name]
        reported = literature.reported(task.name)
        altered = task.point.altered
        made = Plan.of(task.name, settings, task.experiment, reported, where, altered=altered, stem=task.stem)
        plans[made] = task

    def conclude(plan: Plan, records: Mapping[str, Record]) -> None:
        task = plans[plan]
        # Where the files of one experiment cannot be written, those of the others cannot either.
        attempt(task, lambda: task.reporter.note(plan.findings(records)), OSError)

    for task in tasks:
        attempt(task, functools.partial(plan, task))
    typical = measured(invocation.catalogue, invocation.profile)
    expected: dict[str, float] = {}
    for one in plans:
        expected.update(expected_seconds(one.jobs, one.done, typical.get(one.name, {})))
    label = tasks[0].name if len(tasks) == 1 else f"{len(tasks)} {'points' if invocation.sweep else 'experiments'}"
    if where.cache_mode != "only":
        make_run(invocation.root / invocation.run, invocation.profile)
    run_plans(list(plans), where, conclude, label=label, expected=expected)


def _check_writable(folder: str) -> None:
    """Raise an error if a folder cannot be written to. It is not created yet: other settings may be wrong."""
    path = Path(folder).absolute()
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results must be a folder that can be written, got {folder!r}; {existing} cannot, choose another folder"
        )
