"""What a command line asks for: common settings, experiments, and what they run with."""

from __future__ import annotations

import os
import sys
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trimbench.papers.configuration import Catalogue
from trimbench.papers.files import is_accepted, named_folder, safe_name
from trimbench.papers.validation import ConfigurationError, Json, brief, settings, unknown, validated

if TYPE_CHECKING:
    from trimbench.papers.data.cache import Cache
    from trimbench.papers.execution.store import JobStore
    from trimbench.papers.execution.workers import Executor
    from trimbench.papers.reporting.figures.settings import FigureSettings
    from trimbench.papers.vocabulary.cells import Experiment


Task = Literal["run", "report", "plot", "publish", "compare", "list", "describe", "fetch", "study"]
TASKS: tuple[Task, ...] = typing.get_args(Task)
# Keys that every command has; the others belong to the experiment.
SHARED_KEYS = (
    *("task", "run", "runs", "seed", "results", "cache_mode", "offline", "roads", "verify", "archive"),
    *("executor", "profile", "figure"),
)
# Those that say what is done and where, which is for the command line alone: files of others do not set them.
OF_THE_RUN = ("task", "run", "runs", "results", "cache_mode", "offline", "archive", "executor")
# The committed outcome, which no run writes to.
PUBLISHED = "published"
# Folders beside those of the runs.
_TAKEN = ("jobs", "sweeps", "plots", "comparisons", "slurm", "archives")


@settings
class CommonSettings:
    """The keys that every command has, apart from groups."""

    task: Task
    run: str | None
    runs: list[str]
    seed: int
    results: str
    cache_mode: Literal["default", "ignore", "only"]
    offline: bool
    roads: list[Literal["openml", "file", "package"]] | None
    verify: bool = False
    archive: bool = False

    def __post_init__(self) -> None:
        if self.results.startswith("~") or "://" in self.results:
            try:
                object.__setattr__(self, "results", str(named_folder(self.results)))
            except ValueError as error:
                raise ConfigurationError(f"results {error}") from error
        if not self.results.isprintable() or not self.results:
            raise ConfigurationError(
                f"results must be a folder with a printable name, got {brief(self.results)}; write results=. for the "
                "current one"
            )
        if self.run is not None and (not is_accepted(self.run) or self.run in _TAKEN or self.run[:1] in "-."):
            raise ConfigurationError(
                f"run must be a name of ASCII letters, digits and the signs _ = + , . - and none of "
                f"{', '.join(_TAKEN)}, got {self.run!r}; write for example run=mine"
            )
        if self.run == PUBLISHED and self.task in ("run", "report", "study"):
            raise ConfigurationError(
                f"run must not be {PUBLISHED!r} for task={self.task}: nothing but task=publish writes there; "
                "leave it out, or write for example run=mine"
            )
        if not self.roads or len(set(self.roads)) < len(self.roads):
            raise ConfigurationError(
                f"roads must have one or more of openml, file and package, each once, got {brief(self.roads)}; write "
                "for example roads=[package], or offline=true to download nothing"
            )
        if self.archive and self.task != "report":
            raise ConfigurationError(
                f"archive=true must come with task=report, got task={self.task}; run without it, then write "
                "task=report archive=true"
            )

    @classmethod
    def of(cls, values: Mapping[str, Json]) -> CommonSettings:
        """Return the common settings in a composed configuration; raise ConfigurationError if one is not valid."""
        names = [field.name for field in fields(cls)]
        return validated(cls, {key: values[key] for key in names if key in values}, "configuration")


@dataclass(frozen=True)
class Point:
    """The experiments of a command, or of one point of a sweep.

    Attributes
    ----------
    experiments : mapping from names to composed configurations
        Of the chosen experiment, or of all if none was chosen.
    altered : tuple of str
        The experiments' settings that the command line changes, as ``key=value``.
    named : tuple of str
        The settings in the names of files: those that change what the experiments find.
    swept : mapping from keys to values
        What distinguishes this point from the others of its sweep.
    folder : str
        The name of its folder among those of the other points.
    """

    experiments: Mapping[str, Mapping[str, Json]]
    altered: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    swept: Mapping[str, Json] = field(default_factory=dict)
    folder: str = ""


@dataclass(frozen=True)
class Invocation:
    """What a command line asks for.

    `points` has the points of a `sweep`, which names its folder, or a single one. `chosen` tells whether an experiment
    was chosen, and `figure` how figures are drawn. `code` names the modules and packages beside this one from which
    experiments may come. `study` has the keys of a study, for that task alone.
    """

    settings: CommonSettings
    executor: Mapping[str, Json]
    executor_name: str
    figure: FigureChoice
    points: Sequence[Point]
    chosen: bool
    catalogue: Catalogue
    profile: str
    sweep: str = ""
    code: tuple[str, ...] = ()
    study: Mapping[str, Json] = field(default_factory=dict)

    @property
    def experiments(self) -> Mapping[str, Mapping[str, Json]]:
        """The experiments of the first point."""
        return self.points[0].experiments

    @property
    def root(self) -> Path:
        """The folder of all runs and of the store of jobs."""
        return Path(self.settings.results)

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.settings.run or self.profile

    def cache(self) -> Cache:
        """Return the data cache of this machine."""
        from trimbench.papers.data.cache import Cache
        from trimbench.papers.files import remove_temporary_folders

        named = os.environ.get("TRIMBENCH_CACHE", "")
        try:
            if named and not named_folder(named).exists():
                sys.stderr.write(
                    f"TRIMBENCH_CACHE names a folder that does not exist, {named!r}; creating an empty one.\n"
                )
            cache = replace(
                Cache.from_environment(offline=self.settings.offline), roads=tuple(self.settings.roads or ())
            )
        except ValueError as error:  # TRIMBENCH_CACHE names something that is not a folder
            raise ConfigurationError(f"TRIMBENCH_CACHE {str(error).removeprefix('TRIMBENCH_CACHE ')}") from error
        remove_temporary_folders(cache.writable, ".partial")  # of downloads that were killed
        return cache

    def store(self) -> JobStore:
        """Return the store of finished jobs."""
        from trimbench.papers.execution.store import JobStore

        return JobStore(self.root / "jobs")

    def make_executor(self) -> Executor:
        """Return the executor of the configuration."""
        from trimbench.papers.execution.workers import executor_of

        return executor_of(self.executor)

    def make(self, name: str, point: Point | None = None) -> Experiment:
        """Return one of the experiments of a point, by default the first."""
        from trimbench.papers.vocabulary.planning import make_experiment

        return make_experiment(name, (point or self.points[0]).experiments[name], SHARED_KEYS, self.code)


# Which figures a command line asks for.

GROUP = "figure"


@dataclass(frozen=True)
class FigureChoice:
    """The settings of figures, and a name for them.

    The name is that of the chosen file of the group `figure`, followed by the values that the command line changes, for
    example ``column,width=4``.
    """

    settings: FigureSettings
    name: str

    @classmethod
    def of(cls, values: Mapping[str, Json], chosen: str, catalogue: Catalogue) -> FigureChoice:
        """Return the choice in a composed configuration; raise ConfigurationError if a value is not valid."""
        from trimbench.papers.reporting.figures.settings import FigureSettings

        ours = values.get(GROUP)
        if not isinstance(ours, Mapping):
            raise unknown(GROUP, catalogue.names(GROUP), str(ours))
        settings = validated(FigureSettings, ours, GROUP)
        preset = catalogue.mapping(GROUP, chosen)
        changes = [f"{key}={_text(value)}" for key, value in ours.items() if value != preset.get(key)]
        return cls(settings, safe_name(",".join([chosen, *changes])))

    @property
    def is_default(self) -> bool:
        """Whether the command line asks for nothing in particular."""
        return self.name == "default"


def _text(value: Json) -> str:
    text = "+".join(map(str, value)) if isinstance(value, list) else str(value)
    return text.lower() if isinstance(value, bool) else text
