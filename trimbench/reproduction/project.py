"""The project whose papers are rerun: what belongs to it and not to the framework."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
# The distribution that has the framework, and the configuration that every project shares.
DISTRIBUTION = __name__.partition(".")[0]
SHARED_CONFIGURATION = Path(__file__).resolve().parent / "conf"


@dataclass(frozen=True, kw_only=True)
class Project:
    """What a project gives the framework.

    What is code is named by texts, ``"module:name"``, and loaded when it is first needed.

    Attributes
    ----------
    reference : str
        How another process finds the project: ``"module:NAME"``, or the whole path of its folder.
    name : str
        Of the project, as its pages, its archives and the user's cache folder have it.
    command : str
        What a user types before the settings.
    folder : path
        The source tree, whose commit is recorded.
    configuration : path
        Experiments, printed numbers, data sets and everything else that is declared.
    code : tuple of str
        Packages that experiments and jobs may come from.
    skipped : tuple of str
        Modules that run jobs but decide no result, besides those of the framework: a job's version leaves them out.
    cache_variable : str
        The environment variable that names a folder with data.
    deciding, recorded : tuple of str
        Packages whose versions may decide a result, and further ones that records name.
    inputs : mapping from the group of a kind of input to the function that declares one
        Besides data sets: a name and its declaration in, a `Declaration` out.
    sources : mapping from ``kind`` to the class of a source of data sets
        Besides those of the framework; one of the same kind takes its place.
    tasks : mapping from the name of a task to its function
        Besides those of the framework. A task whose name is that of a file of the configuration has the keys in it.
    open_keys : mapping from the name of such a task to keys
        Keys that are mappings of names which no file of the configuration can list, such as those of columns.
    title : str
        What the help says first.
    citation : str
        Of a paper that does not give its own.
    usage : tuple of str
        Further lines of the help: a command and what it does.
    colours : sequence of groups
        Names that have the same colour in every figure: each group lists, by slot, the names that share a colour.
    first : str
        The experiment with which a whole run begins.
    example : str
        Settings that a message may give as an example.
    pages : path, optional
        A folder with ``papers.yaml``, what pages say about each paper besides its numbers, and further templates.
    """

    reference: str
    name: str
    command: str
    folder: Path
    configuration: Path
    code: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    cache_variable: str = ""
    deciding: tuple[str, ...] = ("numpy", "pandas", "scipy")
    recorded: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    open_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = ""
    citation: str = ""
    usage: tuple[str, ...] = ()
    colours: Sequence[Sequence[Sequence[str]]] = ()
    first: str = ""
    example: str = "task=list"
    pages: Path | None = None

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, named on the command line, rather than part of an installed package."""
        return Path(self.reference).is_absolute()


def typed() -> str:
    """Return how a user runs the command: by the script that names itself in ``TRIMBENCH_COMMAND``, or directly."""
    return os.environ.get("TRIMBENCH_COMMAND") or DISTRIBUTION


@functools.cache
def loaded(name: str) -> Any:
    """Return the object that a text of a project names, ``"module:name"``."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


# The project of this process. One process reruns the papers of one project: the command names it once, when it starts,
# and tells it to the processes that it starts.

_project = Project(
    reference="",
    name=DISTRIBUTION,
    command=typed(),
    folder=SHARED_CONFIGURATION,
    configuration=SHARED_CONFIGURATION,
)


def project() -> Project:
    """Return the project of this process; one without experiments if none was named."""
    return _project


def use(given: Project) -> None:
    """Make a project that of this process."""
    global _project
    _project = given
    for forget in _dependent:
        forget()


def is_trusted(module: str, code: Sequence[str] = ()) -> bool:
    """Tell whether a module is in a package whose code may run: of the project, or one of `code`."""
    return any(f"{module}.".startswith(f"{package}.") for package in (*_project.code, *code))


_dependent: list[Callable[[], None]] = []


def per_project(function: _F) -> _F:
    """Cache a function of few arguments until another project is used."""
    cached = functools.cache(function)
    _dependent.append(cached.cache_clear)
    return cast("_F", cached)
