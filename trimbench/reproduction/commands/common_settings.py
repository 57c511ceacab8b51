"""The settings that every command has, and the tasks by name."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Literal

from trimbench.reproduction.configuration import NOT_SETTINGS
from trimbench.reproduction.files import is_accepted, named_folder
from trimbench.reproduction.messages import brief
from trimbench.reproduction.project import DISTRIBUTION, project
from trimbench.reproduction.settings import ConfigurationError, Json, must_be, settings, validated

TaskName = Literal[
    "run",
    "report",
    "plot",
    "publish",
    "compare",
    "list",
    "describe",
    "fetch",
    "new",
    "verdict",
    "check",
    "audit",
    "adopt",
]


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks: those of the framework, then those of the project."""
    return (*typing.get_args(TaskName), *project().tasks)


# Keys that say what is done and where: the command line alone may set them, not files from elsewhere.
OF_THE_RUN = (
    "task",
    "project",
    "run",
    "runs",
    "results",
    "cache_mode",
    "offline",
    "archive",
    "executor",
    "reported",
    "values",
    "against",
    "minutes",
    "only",
    "remove",
)
# The run with the committed results, to which only task=publish writes.
PUBLISHED = "published"
# Tasks that read somebody's archive.
_OF_ARCHIVES = ("audit", "adopt")
# Folders beside those of the runs.
_TAKEN = ("jobs", "sweeps", "plots", "comparisons", "slurm", "archives", "checks", "audits")


@settings
class CommonSettings:
    """The keys that every command has, apart from those that choose from a group."""

    task: Annotated[str, must_be("a task", lambda name: name in task_names())]
    run: str | None
    runs: list[str]
    seed: int
    results: str
    cache_mode: Literal["default", "ignore", "only"]
    offline: bool
    roads: list[Literal["openml", "file", "package"]] | None
    verify: bool = False
    archive: bool | str = False
    project: str | None = None
    reported: str | None = None
    values: str | None = None
    against: str | None = None
    minutes: float | None = None
    remove: bool = False
    only: Literal["printed"] | None = None

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
                f"run must be a name of ASCII letters, digits and _ . - other than {', '.join(_TAKEN)} that Windows "
                f"accepts, too (not aux, nul.1 or a point at the end), got {self.run!r}; write for example run=mine"
            )
        if self.run == PUBLISHED and self.task in ("run", "report", "verdict", *project().tasks):
            raise ConfigurationError(
                f"run must not be {PUBLISHED!r} for task={self.task}: nothing but task=publish writes there; "
                "leave it out, or write for example run=mine"
            )
        if self.seed < 0:
            raise ConfigurationError(f"seed must be at least 0, got {self.seed}")
        if not self.roads or len(set(self.roads)) < len(self.roads):
            raise ConfigurationError(
                f"roads must have one or more of openml, file and package, each once, got {brief(self.roads)}; write "
                "for example roads=[package], or offline=true to download nothing"
            )
        if (self.project is None) == (self.task == "new"):
            raise ConfigurationError(
                f"project must be the folder that task=new writes, and is for that task alone, got {self.project!r} "
                f"with task={self.task}; {DISTRIBUTION} --project FOLDER names the project of a command"
            )
        if [self.reported is None, self.values is None] != [self.task != "verdict"] * 2:
            raise ConfigurationError(
                "reported and values must be two files, a paper's printed numbers and yours, for task=verdict and that "
                f"task alone, got {brief(self.reported)} and {brief(self.values)} with task={self.task}; write "
                "task=verdict reported=reported.yaml values=values.csv"
            )
        if (self.against is None) == (self.task == "check"):
            raise ConfigurationError(
                "against must be a run, its archive or a numbers.csv, against which task=check checks, and is for that "
                f"task alone, got {brief(self.against)} with task={self.task}; write task=check against=published"
            )
        self._check_archive()

    def _check_archive(self) -> None:
        if self.archive is True and self.task != "report":
            raise ConfigurationError(
                f"archive=true must come with task=report, got task={self.task}; run without it, then write "
                "task=report archive=true"
            )
        if isinstance(self.archive, str) and self.task not in _OF_ARCHIVES:
            raise ConfigurationError(
                f"archive must be a file for {' and '.join(_OF_ARCHIVES)} alone, got {brief(self.archive)} with "
                f"task={self.task}; write task=audit archive=run.zip"
            )
        if self.task == "adopt" and isinstance(self.archive, str) == (self.run is not None):
            raise ConfigurationError(
                "archive or run must say whose records task=adopt takes, and only one of them; write archive=run.zip, "
                "or run=published"
            )
        if self.remove and self.task != "adopt":
            raise ConfigurationError(f"remove=true must come with task=adopt, got task={self.task}; leave it out")
        if self.minutes is not None and not (0 < self.minutes < math.inf and self.task in _OF_ARCHIVES):
            raise ConfigurationError(
                f"minutes must be a positive number, for {' and '.join(_OF_ARCHIVES)} alone, got {self.minutes} with "
                f"task={self.task}; write task=audit run=published minutes=5"
            )
        if self.only and self.task != "audit":
            raise ConfigurationError(
                f"only=printed must come with task=audit, got task={self.task}; leave it out, or name experiment=..."
            )

    @classmethod
    def of(cls, values: Mapping[str, Json]) -> CommonSettings:
        """Return the common settings in a composed configuration; raise ConfigurationError if one is not valid."""
        names = [field.name for field in fields(cls)]
        return validated(cls, {key: values[key] for key in names if key in values}, "configuration")


# Keys that every command has; the others belong to the experiment.
SHARED_KEYS = (*(field.name for field in fields(CommonSettings)), "executor", "profile", "figure")
# Keys of configurations other than the settings of an experiment, its seed and its profile.
NO_SETTINGS = tuple(key for key in (*SHARED_KEYS, *NOT_SETTINGS) if key not in ("seed", "profile"))
ALL_KEYS = (*SHARED_KEYS, "experiment")
SWITCHES = tuple(field.name for field in fields(CommonSettings) if field.type == "bool")
