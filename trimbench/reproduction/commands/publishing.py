"""The task ``publish``: replace published experiments by those of a run."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.common_settings import PUBLISHED, SHARED_KEYS
from trimbench.reproduction.execution.provenance import no_commit, provenance
from trimbench.reproduction.files import (
    hash_of,
    lock_of,
    remove_temporary_folders,
    temporary_folder,
    temporary_folders,
    turn,
)
from trimbench.reproduction.messages import some
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.overview import write_summary
from trimbench.reproduction.reporting.parts import Part
from trimbench.reproduction.reporting.runs import (
    check_run,
    folder_of,
    inside_run,
    not_written,
    read_about,
    say,
    write_profile,
)
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.reported import Literature
from trimbench.reproduction.world import world

# The published run is part of every clone.
_MOST_MEGABYTES = 20
_STEM = "publishing"  # of temporary folders
_AGAIN = "write it again with task=report"
_RESTORE = f"restore results/{PUBLISHED} with git, or publish a run that has this experiment"


def publish(invocation: Invocation) -> int:
    """Publish the experiments of a run, which this commit must have written; those it lacks stay as published.

    The page and the counts of verdicts cover both. For the published run itself, only these are written again.
    """
    source = folder_of(invocation.root, invocation.run)
    check_run(source, invocation.profile)
    with turn(invocation.root, lambda: say("Waiting for another program that publishes here.")):
        _publish(invocation, source, invocation.root / PUBLISHED)
    return 0


def _publish(invocation: Invocation, source: Path, target: Path) -> None:
    _undo_killed(target)
    here = provenance()
    if here["commit"] is None or here["dirty"]:
        found = "changes that are not committed" if here["commit"] else no_commit() or "no git repository"
        raise ConfigurationError(f"task=publish needs a clean commit of {project().name}, got {found}; commit first")
    names = invocation.catalogue.names("experiment")
    renewed = [name for name in names if name in invocation.experiments and (source / f"{name}.json").is_file()]
    if source == target:
        renewed = []
    elif not renewed:
        raise ConfigurationError(f"run must have an experiment to publish, got none in {source}; {_AGAIN}")
    folders = {name: source if name in renewed else target for name in names}
    for name in renewed:
        _check(name, _about(source, name), invocation.experiments[name], str(here["commit"]))
    if len(renewed) < len(names):
        check_run(target, invocation.profile)
    _replace(target, folders, invocation)
    if source == target:
        say(f"The page and the summary in {target} are written again; commit them.")
    else:
        _say_new(target, folders, source)


def _about(folder: Path, name: str) -> Mapping[str, Any]:
    file = folder / f"{name}.json"
    try:
        content = read_about(folder, name)
        content["written_with"]["commit"], content["written_with"]["dirty"]
    except (OSError, ValueError, KeyError) as error:
        if folder.name == PUBLISHED and (file.exists() or (folder / f"{name}.csv").exists()):
            raise ConfigurationError(
                f"the published run must say in {file} how {name} was run, got {error}; {_RESTORE}"
            ) from error
        raise ConfigurationError(
            f"run must have every experiment that is not published yet, got none for {name} ({error}); run it first"
        ) from error
    return content


def _check(name: str, about: Mapping[str, Any], declared: Mapping[str, Json], here: str) -> None:
    """Raise ConfigurationError unless this commit wrote an experiment, with the settings of its declaration."""
    found = about["configuration"]
    ignored = {*SHARED_KEYS} - {"seed", "profile"}  # these change nothing in what it finds
    wanted, has = ({key: value for key, value in one.items() if key not in ignored} for one in (declared, found))
    if wanted != has:
        raise ConfigurationError(f"run must have the settings of the declarations, got others for {name}; {_AGAIN}")
    commit, dirty = about["written_with"]["commit"], about["written_with"]["dirty"]
    if commit != here or dirty:
        got = f"{name} of {str(commit)[:12]}{' with changes' if dirty else ''}"
        raise ConfigurationError(f"run must be written by the present commit {here[:12]}, got {got}; {_AGAIN}")


def _replace(target: Path, folders: Mapping[str, Path], invocation: Invocation) -> None:
    """Make a new folder with the files of all experiments, and then replace the old one by it."""
    with temporary_folder(target.parent, _STEM, is_needed=lambda beside: _is_kept_in(beside, target)) as beside:
        new, old = beside / "new", beside / "old"
        parts = [_copied(name, folder, new) for name, folder in folders.items()]
        if others := not_written(target):
            raise ConfigurationError(
                f"{target} must have only what task=publish writes, which replaces it, got {some(others, 5)}; "
                "move that elsewhere, or remove it if an earlier version wrote it"
            )
        literature = Literature.of(invocation.catalogue)
        write_summary(parts, literature, new, run=PUBLISHED, profile=invocation.profile, place=target)
        write_profile(new, invocation.profile)
        size = _megabytes(new)
        if size > _MOST_MEGABYTES:
            raise ConfigurationError(
                f"a published run must take at most {_MOST_MEGABYTES} MB, got {size:.1f} MB; run it with fewer formats "
                "of figures or smaller tables"
            )
        for folder in [new, *filter(Path.is_dir, new.iterdir())]:
            remove_temporary_folders(folder, "writing")  # that a failing disk has left
            if left := temporary_folders(folder, "writing"):
                raise OSError(errno.EIO, f"{left[0]} cannot be removed, so nothing is published; try again")
        # A power cut leaves names of files whose content was never written, unless they are flushed before.
        for path in [*new.rglob("*"), new]:
            world().flush(path)
        try:
            if target.exists():
                world().rename(target, old)
            world().rename(new, target)
        except BaseException:
            if _is_kept_in(beside, target):
                world().rename(old, target)
            raise


def _is_kept_in(beside: Path, target: Path) -> bool:
    """Tell whether the published run is only in a temporary folder, because something came between two renames."""
    return (beside / "old").is_dir() and not target.exists()


def _undo_killed(target: Path) -> None:
    """Put back the published run if a kill came between the two renames, and remove what was left over."""
    for beside in filter(lock_of, temporary_folders(target.parent, _STEM)):
        if _is_kept_in(beside, target):
            world().rename(beside / "old", target)
    remove_temporary_folders(target.parent, _STEM)


def _copied(name: str, folder: Path, new: Path) -> Part:
    """Copy what belongs to an experiment, and return what the page shows of it.

    Raises ConfigurationError if a file is missing, or a job is not done.
    """
    which, again = ("the published run", _RESTORE) if folder.name == PUBLISHED else ("run", _AGAIN)
    about, path = _about(folder, name), folder / f"{name}.json"
    part: Part = about["page"]
    hashes = about.get("sha256", {})  # earlier versions wrote none
    for file in (inside_run(path.with_name(file), folder) for file in about["files"]):
        copy = new / file.relative_to(folder)
        world().make_folders(copy.parent)
        try:
            world().copy(file, copy)
        except FileNotFoundError as error:
            raise ConfigurationError(f"{which} must have all files of {name}, got no {file}; {again}") from error
        if hashes.get(copy.name, digest := hash_of(copy)) != digest:
            raise ConfigurationError(
                f"{which} must have the files of {name} as it wrote them, got another {file}; {again}"
            )
    if part["status"] != "complete":
        raise ConfigurationError(
            f"{which} must have all jobs of each experiment, got {name} with {part['status']}; run it again"
        )
    return part


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _say_new(target: Path, folders: Mapping[str, Path], source: Path) -> None:
    kept: dict[str, list[str]] = {}
    for name in [name for name, folder in folders.items() if folder != source]:
        kept.setdefault(str(_about(target, name)["written_with"]["commit"]), []).append(name)
    for commit, names in kept.items():
        say(f"Unchanged, written by commit {commit[:12]}: {', '.join(names)}.")
    n_new = sum(folder == source for folder in folders.values())
    say(f"{n_new} of {len(folders)} experiments are new in {target}, {_megabytes(target):.1f} MB; commit them.")
