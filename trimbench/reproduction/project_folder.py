"""A project in a folder: another paper, rerun without a change of this program."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.files import is_accepted
from trimbench.reproduction.messages import brief
from trimbench.reproduction.project import DISTRIBUTION, Project, loaded, typed, use
from trimbench.reproduction.settings import ConfigurationError, must_be, settings, validated

FILE = "project.yaml"
# Folders of a project with declarations, not code.
_DECLARATIONS = ("dataset", "experiment", "profile", "reported", "results")


@settings
class ProjectFile:
    """What ``project.yaml`` says.

    Attributes
    ----------
    name : str
        Of the project, in the names of archives and of the user's cache folder.
    title : str
        What the help and the pages say that it reruns.
    citation : str
        Of the paper, where a file in ``reported`` does not give its own.
    packages : list of str
        Distributions whose versions may decide a result, besides those that the framework records.
    cache_variable : str
        An environment variable that names a folder with data.
    """

    name: Annotated[str, must_be("a name of ASCII letters, digits and _ . -", is_accepted)]
    title: str
    citation: str = ""
    packages: list[str] = field(default_factory=list)
    cache_variable: str = ""


def project_of(folder: Path) -> Project:
    """Return the project in a folder, from whose modules jobs may come from now on.

    Raises ConfigurationError if it is no project, or if one of its modules has the name of another one.
    """
    folder = folder.expanduser().absolute()
    path = folder / FILE
    if not path.is_file():
        raise ConfigurationError(
            f"--project must be a folder with a file {FILE}, got {brief(str(folder))}; write one with "
            f"{DISTRIBUTION} task=new project=FOLDER"
        )
    about = validated(ProjectFile, Catalogue((), (folder,)).mapping("", path.stem), str(path))
    for package in about.packages:
        _check_installed(package, path)
    modules = _modules(folder)
    for module in modules:
        known = importlib.util.find_spec(module) if str(folder) not in sys.path else None
        if known is not None or module in sys.builtin_module_names:
            raise ConfigurationError(
                f"{folder / module} has the name of a module that is installed; rename it, so that jobs find yours"
            )
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return Project(
        reference=str(folder),
        name=about.name,
        command=f"{typed()} --project {folder.name}",
        title=about.title,
        citation=about.citation,
        folder=folder,
        configuration=folder,
        code=tuple(modules),
        cache_variable=about.cache_variable,
        deciding=tuple(sorted({*Project.deciding, *about.packages})),
        example=_example(folder),
    )


def take_up(reference: str) -> None:
    """Make the project with this reference that of this process, as the process that started it has it."""
    use(project_of(Path(reference)) if Path(reference).is_absolute() else loaded(reference))


def _check_installed(package: str, path: Path) -> None:
    try:
        version(package)
    except (PackageNotFoundError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: packages must be installed distributions, whose versions are recorded, got {brief(package)}; "
            "install it, correct its name (that for pip, not for import) or leave it out"
        ) from error


def _modules(folder: Path) -> list[str]:
    """Return the names of the modules and packages right in a folder."""
    names = [path.stem for path in folder.glob("*.py")]
    names += [path.parent.name for path in folder.glob("*/__init__.py") if path.parent.name not in _DECLARATIONS]
    return sorted(name for name in names if name.isidentifier())


def _example(folder: Path) -> str:
    names = sorted(path.relative_to(folder / "experiment") for path in (folder / "experiment").rglob("*.yaml"))
    return f"experiment={names[0].with_suffix('').as_posix()}" if names else "task=list"
