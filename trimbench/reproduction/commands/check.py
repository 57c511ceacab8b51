"""The task ``check``: whether a run has changed from an earlier one by more than noise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.common_settings import NO_SETTINGS
from trimbench.reproduction.files import beside_runs, safe_name, temporary_folder
from trimbench.reproduction.reporting.archive import unpack_tables
from trimbench.reproduction.reporting.runs import StoredRun, folder_of, is_run, read_run, runs_in, say
from trimbench.reproduction.settings import ConfigurationError


def check(invocation: Invocation) -> int:
    """Check the numbers of a run against earlier ones; return 1 if any changed by more than noise."""
    # These load pandas.
    from trimbench.reproduction.reporting.check import NumbersOfRun, summarised, write_check
    from trimbench.reproduction.reporting.check import check as check_numbers

    against = str(invocation.settings.against)
    run = chosen(read_run(invocation.run, folder_of(invocation.root, invocation.run)), invocation)
    path = Path(against).expanduser()
    if path.suffix == ".csv":
        before = NumbersOfRun.of_csv(path)
    elif path.suffix == ".zip":
        with temporary_folder() as folder:
            unpack_tables(path, folder)
            before = NumbersOfRun.of(read_run(path.name, folder), NO_SETTINGS)
    else:
        before = NumbersOfRun.of(read_run(against, run_folder(against, invocation.root, "against")), NO_SETTINGS)
    now = NumbersOfRun.of(run, NO_SETTINGS)
    checked = check_numbers(before, now)
    if not checked:
        raise ConfigurationError(
            f"against must have reported numbers that the run {now.name} has, too, got none in {against}; run both "
            "with the same experiments and without changed settings, or name another"
        )
    say(f"# {now.name} against {before.name}\n\n{summarised(checked, before.name)}\n")
    place = beside_runs(invocation.root, "checks", safe_name(now.name, before.name))
    for file in write_check(checked, before, now, place):
        say(f"  {file}")
    return 1 if any(one.why for one in checked) else 0


def chosen(run: StoredRun, invocation: Invocation) -> StoredRun:
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


def run_folder(name: str, root: Path, key: str = "runs") -> Path:
    """Return the folder of a run, given to a key of the command by its name below the results or by its path."""
    for folder in (root / name, Path(name).expanduser()):
        if is_run(folder):
            return folder
    raise ConfigurationError(f"{key} must name finished runs or their folders, got {name!r}; {known_runs(root)}")


def known_runs(root: Path) -> str:
    """Say in a message which runs there are."""
    names = runs_in(root)
    return f"the runs in {root} are: {', '.join(names)}" if names else f"there is no run in {root} yet"
