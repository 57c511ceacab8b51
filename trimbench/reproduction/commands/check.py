"""The tasks ``check`` and ``compare``: whether a run has changed from another by more than noise, and in what."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.common_settings import NO_SETTINGS
from trimbench.reproduction.files import beside_runs, safe_name, temporary_folder
from trimbench.reproduction.reporting import check as checks
from trimbench.reproduction.reporting import comparison as comparisons
from trimbench.reproduction.reporting.archive import unpack_tables
from trimbench.reproduction.reporting.check import NumbersOfRun
from trimbench.reproduction.reporting.runs import StoredRun, folder_of, is_run, read_run, runs_in, say
from trimbench.reproduction.settings import ConfigurationError


def check(invocation: Invocation) -> int:
    """Check the numbers of a run against earlier ones; return 1 if any changed by more than noise."""
    against = str(invocation.settings.against)
    run = _chosen(read_run(invocation.run, folder_of(invocation.root, invocation.run)), invocation)
    before, now = _numbers(against, invocation.root), NumbersOfRun.of(run, NO_SETTINGS)
    checked = checks.check(before, now)
    if not checked:
        raise ConfigurationError(
            f"against must have reported numbers that the run {now.name} has, too, got none in {against}; run both "
            "with the same experiments and without changed settings, or name another"
        )
    say(f"# {now.name} against {before.name}\n\n{checks.summarised(checked, before.name)}\n")
    place = beside_runs(invocation.root, "checks", safe_name(now.name, before.name))
    for file in checks.write_check(checked, before, now, place):
        say(f"  {file}")
    return 1 if any(one.why for one in checked) else 0


def compare(invocation: Invocation) -> int:
    """Print and write what differs between two runs; return 0, whether or not something does."""
    root, runs = Path(invocation.settings.results), invocation.settings.runs
    if len(runs) != 2:
        got = ", ".join(map(repr, runs)) or "none"
        raise ConfigurationError(
            f"runs must be the names of two runs, got {got}; write runs=[a,b]; {_known_runs(root)}"
        )
    first, second = (_chosen(read_run(name, _run_folder(name, root, "runs")), invocation) for name in runs)
    checked = checks.check(*(NumbersOfRun.of(run, NO_SETTINGS) for run in (first, second)))
    noise = {
        (stem, one.cell)
        for stem, experiment in first.experiments.items()
        for one in checked
        if one.standing == "within noise" and one.experiment in (stem, experiment.name)
    }
    comparison = comparisons.compare_runs(first, second, noise)
    say(f"# {first.name} and {second.name}\n\n{comparisons.summarised(comparison)}\n")
    name = safe_name(*runs, *(invocation.experiments if invocation.chosen else ()))
    for path in comparisons.write_comparison(comparison, beside_runs(root, "comparisons", name)):
        say(f"  {path}")
    return 0


def _numbers(against: str, root: Path) -> NumbersOfRun:
    """Return the numbers of a run, of its archive, or of a file that an earlier check wrote."""
    path = Path(against).expanduser()
    if path.suffix == ".csv":
        return NumbersOfRun.of_csv(path)
    if path.suffix == ".zip":
        with temporary_folder() as folder:
            unpack_tables(path, folder)
            return NumbersOfRun.of(read_run(path.name, folder), NO_SETTINGS)
    return NumbersOfRun.of(read_run(against, _run_folder(against, root, "against")), NO_SETTINGS)


def _chosen(run: StoredRun, invocation: Invocation) -> StoredRun:
    """Return a run with the experiments that the command names; ConfigurationError if it has none of them."""
    if not invocation.chosen:
        return run
    kept = {stem: one for stem, one in run.experiments.items() if one.name in invocation.experiments}
    if not kept:
        raise ConfigurationError(
            f"experiment must be one of the run {run.name}, got {', '.join(invocation.experiments)}; leave it out to "
            "take all"
        )
    return dataclasses.replace(run, experiments=kept)


def _run_folder(name: str, root: Path, key: str) -> Path:
    """Return the folder of a run, given to a key of the command by its name below the results or by its path."""
    for folder in (root / name, Path(name).expanduser()):
        if is_run(folder):
            return folder
    raise ConfigurationError(f"{key} must name finished runs or their folders, got {name!r}; {_known_runs(root)}")


def _known_runs(root: Path) -> str:
    """Say in a message which runs there are."""
    names = runs_in(root)
    return f"the runs in {root} are: {', '.join(names)}" if names else f"there is no run in {root} yet"
