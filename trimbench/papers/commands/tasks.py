"""What the command line can do: run, report, list, fetch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.validation import ConfigurationError, settings, unknown, validated

if TYPE_CHECKING:
    from trimbench.papers.data.cache import Cache
    from trimbench.papers.execution.executors import Executor
    from trimbench.papers.execution.store import JobStore
    from trimbench.papers.study.inputs import Declaration
    from trimbench.papers.study.outcome import Experiment

# Keys that every command has; what else the configuration holds belongs to the experiment.
SHARED_KEYS = ("task", "seed", "results", "cache_mode", "offline", "executor", "profile")
# Columns of the list of experiments.
COUNTS = ("jobs", "done", "failed", "missing")
COST = "processor time to run the rest"


@settings
class CommonSettings:
    """The keys that every command has, apart from those that are groups.

    Attributes
    ----------
    task : str
    seed : int
    results : str
        Folder.
    cache_mode : str
    offline : bool
    """

    task: str
    seed: int
    results: str
    cache_mode: str
    offline: bool

    def __post_init__(self) -> None:
        from trimbench.papers.execution.run import CACHE_MODES

        for key, allowed in (("task", tuple(TASKS)), ("cache_mode", CACHE_MODES)):
            if getattr(self, key) not in allowed:
                raise unknown(key, allowed, getattr(self, key))
        if not self.results:
            raise ConfigurationError("results must be a folder, got ''; write results=. for this one")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CommonSettings:
        """Return the common settings in a composed configuration.

        Raises
        ------
        ConfigurationError
            When one is missing or has no valid value.
        """
        names = [field.name for field in fields(cls)]
        return validated(cls, {key: values[key] for key in names if key in values}, "configuration")


@dataclass(frozen=True)
class Invocation:
    """What a command line asks for.

    Attributes
    ----------
    settings : CommonSettings
    executor : mapping
        How jobs run: the class as ``_target_``, and its options.
    experiments : mapping from name to composed configuration
        The chosen experiment, or all there are.
    chosen : bool
        Whether one experiment was asked for.
    catalogue : Catalogue
    results : Path
        Where tables and figures go.
    altered : tuple of str
        Keys of the experiments that were set on the command line.
    """

    settings: CommonSettings
    executor: Mapping[str, Any]
    experiments: Mapping[str, Mapping[str, Any]]
    chosen: bool
    catalogue: Catalogue
    results: Path
    altered: tuple[str, ...] = ()

    @property
    def profile(self) -> str:
        """Name of the profile, as far as the experiments have one."""
        profiles = [settings.get("profile") for settings in self.experiments.values()]
        return str(next((profile.get("name") for profile in profiles if isinstance(profile, Mapping)), "unknown"))

    def cache(self) -> Cache:
        """Return the data cache of this machine."""
        from trimbench.papers.data.cache import Cache
        from trimbench.papers.execution.temporary import remove_abandoned

        named = os.environ.get("TRIMBENCH_CACHE", "")
        if named and not Path(named).expanduser().exists():
            sys.stderr.write(f"TRIMBENCH_CACHE names a folder that does not exist, {named!r}: an empty one is made.\n")
        try:
            cache = Cache.from_environment(offline=self.settings.offline)
        except ValueError as error:  # TRIMBENCH_CACHE names something that is no folder
            raise ConfigurationError(str(error)) from error
        # Of downloads that were killed.
        remove_abandoned(cache.writable.glob(".partial-*"))
        return cache

    def store(self) -> JobStore:
        """Return the store of finished jobs."""
        from trimbench.papers.execution.store import JobStore

        return JobStore(Path(self.settings.results) / "jobs")

    def make_executor(self) -> Executor:
        """Return the executor of the configuration."""
        from trimbench.papers.execution.executors import executor_of

        return executor_of(self.executor)

    def make(self, name: str) -> Experiment:
        """Return one of the experiments."""
        from trimbench.papers.study.running import make_experiment

        return make_experiment(name, self.experiments[name], SHARED_KEYS)

    def check(self) -> None:
        """Find wrong settings before anything runs.

        Raises
        ------
        ConfigurationError
            When the executor or an experiment cannot be made from them.
        """
        if self.settings.task in ("run", "report"):
            self.make_executor()
        for name in self.experiments:
            self.make(name)


def run(invocation: Invocation, cache_mode: str | None = None) -> int:
    """Run the experiments and write their tables and figures; return 1 if a job or an experiment failed."""
    from trimbench.papers.execution.executors import ExecutorError
    from trimbench.papers.reporting.earlier import stored_profile
    from trimbench.papers.reporting.overview import Overview
    from trimbench.papers.study.inputs import Inputs
    from trimbench.papers.study.running import Surroundings, run_experiment

    mode = cache_mode or invocation.settings.cache_mode
    only = mode == "only"
    executor = invocation.make_executor()
    # All are made before the first runs, so that a wrong key costs no time.
    experiments = {name: invocation.make(name) for name in invocation.experiments}
    overview = Overview(invocation.results, invocation.catalogue)
    cache, store = invocation.cache(), invocation.store()
    where = Surroundings(Inputs(invocation.catalogue, cache), cache, store, executor, mode)
    _check_writable(invocation.settings.results)
    for name, experiment in experiments.items():
        try:
            composed = invocation.experiments[name]
            findings = run_experiment(name, composed, experiment, overview.reported(name), where, invocation.altered)
        except ExecutorError:  # it would fail for the others, too
            raise
        except Exception as error:
            if invocation.chosen:
                raise
            overview.note_failure(name, error)
        else:
            # Where jobs ran, they are of this profile.
            overview.note(findings, stored_profile(invocation.results / f"{name}.json", store) if only else "")
    return overview.close(summary=not invocation.chosen, profile=invocation.profile)


def _check_writable(folder: str) -> None:
    """Raise an error if nothing can be written to a folder; nothing is made yet, in case there is another mistake."""
    path = Path(folder).absolute()
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results must be a folder that can be written, got {folder!r}, and {existing} cannot; choose another"
        )


def report(invocation: Invocation) -> int:
    """Write tables and figures again, from stored results alone."""
    return run(invocation, cache_mode="only")


def list_experiments(invocation: Invocation) -> int:
    """Print each experiment with its data, how many of its jobs are stored, and what the others will cost."""
    import pandas as pd

    from trimbench.papers.commands.cost import duration, estimate, measured
    from trimbench.papers.data.availability import is_here, obstacle
    from trimbench.papers.reporting.tables import markdown
    from trimbench.papers.study.inputs import Inputs
    from trimbench.papers.study.tables import Table

    cache, store = invocation.cache(), invocation.store()
    inputs = Inputs(invocation.catalogue, cache)
    experiments = {name: invocation.make(name) for name in invocation.experiments}
    typical = measured(invocation.catalogue, invocation.profile)
    lines = []
    for name, experiment in experiments.items():
        line: dict[str, Any] = {"experiment": name}
        try:
            cells = experiment.cells(inputs)
        except Exception as error:
            if invocation.chosen:
                raise
            line |= {COST: duration(None), "data": f"cannot be planned: {error}"}
        else:
            records = [store.get(cell.job) for cell in cells]
            needs = {found.name: found.declaration for cell in cells for found in cell.inputs}
            absent = {name: obstacle(need, cache) for name, need in needs.items() if not is_here(need, cache)}
            line |= {
                "jobs": len(cells),
                "done": sum(record is not None and record.ok for record in records),
                "failed": sum(record is not None and not record.ok for record in records),
                "missing": records.count(None),
                COST: duration(estimate(records, typical.get(name))),
                "data": _data(list(needs), absent),
            }
        lines.append(line)
    frame = pd.DataFrame(lines, columns=["experiment", *COUNTS, COST, "data"])
    counts = dict.fromkeys(COUNTS, ".0f")
    sys.stdout.write(markdown(Table("", frame, counts)) + "\n")
    return 0


def _data(needs: list[str], absent: Mapping[str, str]) -> str:
    """Say how much of the data is here: of what is not, why it cannot be read, or nothing where it is to be fetched."""
    if not needs:
        return "none needed"
    if not absent:
        return "here"
    blocked = [f"{name}: {reason}" for name, reason in absent.items() if reason]
    wanted = [name for name, reason in absent.items() if not reason]
    if wanted:
        blocked.append(f"{len(wanted)} of {len(needs)} to be fetched (trimbench task=fetch): {', '.join(wanted)}")
    return "; ".join(blocked)


def fetch(invocation: Invocation) -> int:
    """Download and verify the data of the experiment, or all that is declared; return 1 if some could not be had."""
    from trimbench.papers.study.running import fetch as fetch_one

    cache = invocation.cache()
    failures = 0
    for declaration in _declarations(invocation, cache):
        try:
            fetch_one(declaration, cache)
        except Exception as error:  # noqa: BLE001 - one host that is down must not keep the rest from being fetched
            failures += 1
            sys.stdout.write(f"{declaration.name}: FAILED: {error}\n")
        else:
            sys.stdout.write(f"{declaration.name}: here, verified\n")
    return 1 if failures else 0


def _declarations(invocation: Invocation, cache: Cache) -> Iterator[Declaration]:
    from trimbench.papers.data.declaration import declare_dataset
    from trimbench.papers.data.network_declaration import declare_network
    from trimbench.papers.study.inputs import Inputs

    if invocation.chosen:
        found = {}
        for name in invocation.experiments:
            for cell in invocation.make(name).cells(Inputs(invocation.catalogue, cache)):
                found.update({(need.group, need.name): need.declaration for need in cell.inputs})
        yield from found.values()
        return
    catalogue = invocation.catalogue
    yield from (declare_dataset(name, catalogue.dataset_mapping(name)) for name in catalogue.names("dataset"))
    yield from (declare_network(name, catalogue.network_mapping(name)) for name in catalogue.names("network"))


TASKS: dict[str, Callable[[Invocation], int]] = {
    "run": run,
    "report": report,
    "list": list_experiments,
    "fetch": fetch,
}
