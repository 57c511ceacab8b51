"""What a command line asks for: common settings, experiments, and what they run with."""

from __future__ import annotations

import os
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trimbench.papers.commands.figure_choice import FigureChoice
from trimbench.papers.configuration import Catalogue
from trimbench.papers.validation import ConfigurationError, settings, validated

if TYPE_CHECKING:
    from trimbench.papers.data.cache import Cache
    from trimbench.papers.execution.canonical import Json
    from trimbench.papers.execution.executors import Executor
    from trimbench.papers.execution.store import JobStore
    from trimbench.papers.study.outcome import Experiment

Task = Literal["run", "report", "list", "fetch", "plot"]
TASKS: tuple[Task, ...] = typing.get_args(Task)
# Keys that every command has; the others belong to the experiment.
SHARED_KEYS = ("task", "run", "seed", "results", "cache_mode", "offline", "executor", "profile", "figure")


@settings
class CommonSettings:
    """The keys that every command has, apart from groups."""

    task: Task
    seed: int
    run: str | None = None
    results: str
    cache_mode: Literal["default", "ignore", "only"]
    offline: bool

    def __post_init__(self) -> None:
        if not self.results:
            raise ConfigurationError("results must be a folder, got ''; write results=. for the current one")

    @classmethod
    def of(cls, values: Mapping[str, Json]) -> CommonSettings:
        """Return the common settings in a composed configuration; raise ConfigurationError if one is not valid."""
        names = [field.name for field in fields(cls)]
        return validated(cls, {key: values[key] for key in names if key in values}, "configuration")


@dataclass(frozen=True)
class Invocation:
    """What a command line asks for.

    `experiments` maps names to composed configurations: of the chosen experiment, or of all if none was `chosen`.
    `results` is the folder of tables and figures, and `figure` how the latter are drawn; `altered` has the experiments'
    keys that the command line sets.
    """

    settings: CommonSettings
    executor: Mapping[str, Json]
    executor_name: str
    experiments: Mapping[str, Mapping[str, Json]]
    chosen: bool
    catalogue: Catalogue
    results: Path
    figure: FigureChoice
    altered: tuple[str, ...] = ()

    @property
    def profile(self) -> str:
        """Name of the experiments' profile."""
        from trimbench.papers.reporting.profiles import profile_of

        return next(filter(None, map(profile_of, self.experiments.values())), "unknown")

    def cache(self) -> Cache:
        """Return the data cache of this machine."""
        from trimbench.papers.data.cache import Cache
        from trimbench.papers.execution.temporary import remove_abandoned

        named = os.environ.get("TRIMBENCH_CACHE", "")
        if named and not Path(named).expanduser().exists():
            sys.stderr.write(f"TRIMBENCH_CACHE names a folder that does not exist, {named!r}; creating an empty one.\n")
        try:
            cache = Cache.from_environment(offline=self.settings.offline)
        except ValueError as error:  # TRIMBENCH_CACHE names something that is not a folder
            raise ConfigurationError(str(error)) from error
        # Left by downloads that were killed.
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
        """Raise ConfigurationError if the executor or an experiment cannot be made from the settings."""
        if self.settings.task in ("run", "report"):
            self.make_executor()
        for name in self.experiments:
            self.make(name)
