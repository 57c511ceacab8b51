"""The task ``publish``: put the experiments of a run in the place of the published ones."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimbench.papers.commands.arguments import PUBLISHED, SHARED_KEYS, Invocation
from trimbench.papers.execution.store import no_commit, provenance
from trimbench.papers.files import remove_temporary_folders, temporary_folder
from trimbench.papers.reporting.overview import say, write_summary
from trimbench.papers.reporting.runs import Part, check_profile, folder_of, read_about, write_profile
from trimbench.papers.validation import ConfigurationError, Json
from trimbench.papers.vocabulary.reported import Literature

# The published outcome is part of every clone.
_MOST_MEGABYTES = 15
_STEM = "publishing"  # of temporary folders
_AGAIN = "write it again with trimbench task=report"
_RESTORE = f"restore results/{PUBLISHED} with git, or publish a run that has this experiment"


def publish(invocation: Invocation) -> int:
    """Publish the experiments of a run, which this commit must have written; those it lacks stay as published.

    The page and the counts of verdicts are made of both; of the published run itself, they are written again.
    """
    target = invocation.root / PUBLISHED
    source = folder_of(invocation.root, invocation.run)
    check_profile(source, invocation.profile)
    _undo_killed(target)
    here = provenance()
    if here["commit"] is None or here["dirty"]:
        found = "changes that are not committed" if here["commit"] else no_commit() or "no git repository"
        raise ConfigurationError(f"task=publish needs a clean commit of trimbench, got {found}; commit first")
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
        check_profile(target, invocation.profile)
    _replace(target, folders, invocation)
    if source == target:
        say(f"The page and the summary in {target} are written again; commit them.")
    else:
        _say_new(target, folders, source)
    return 0


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
    """Raise ConfigurationError unless this commit has written an experiment with the settings of its declaration."""
    found = about["configuration"]
    ignored = {*SHARED_KEYS} - {"seed", "profile"}  # which change nothing in what it finds
    wanted, has = ({key: value for key, value in one.items() if key not in ignored} for one in (declared, found))
    if wanted != has:
        raise ConfigurationError(f"run must have the settings of the declarations, got others for {name}; {_AGAIN}")
    commit, dirty = about["written_with"]["commit"], about["written_with"]["dirty"]
    if commit != here or dirty:
        got = f"{name} of {str(commit)[:12]}{' with changes' if dirty else ''}"
        raise ConfigurationError(f"run must be written by the present commit {here[:12]}, got {got}; {_AGAIN}")


def _replace(target: Path, folders: Mapping[str, Path], invocation: Invocation) -> None:
    """Make a new folder of the files of all experiments, which then takes the place of the old one."""
    with temporary_folder(target.parent, _STEM) as beside:
        new, old = beside / "new", beside / "old"
        parts = [_copied(name, folder, new) for name, folder in folders.items()]
        literature = Literature.of(invocation.catalogue)
        write_summary(parts, literature, new, run=PUBLISHED, profile=invocation.profile, place=target)
        write_profile(new, invocation.profile)
        size = _megabytes(new)
        if size > _MOST_MEGABYTES:
            raise ConfigurationError(
                f"a published run must take at most {_MOST_MEGABYTES} MB, got {size:.1f} MB; run it with fewer formats "
                "of figures or smaller tables"
            )
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise


def _undo_killed(target: Path) -> None:
    """Put back the published outcome where a kill came between the two renames, and remove what it left."""
    for old in target.parent.glob(f"{_STEM}.*.tmp/old"):
        if not target.exists():
            old.rename(target)
    remove_temporary_folders(target.parent, _STEM)


def _copied(name: str, folder: Path, new: Path) -> Part:
    """Copy what belongs to an experiment, and return what the page shows of it.

    Raises ConfigurationError if a file is missing, or a job is not done.
    """
    which, again = ("the published run", _RESTORE) if folder.name == PUBLISHED else ("run", _AGAIN)
    about, path = _about(folder, name), folder / f"{name}.json"
    part: Part = about["page"]
    for file in (path.with_name(file) for file in about["files"]):
        copy = new / file.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(file, copy)
        except FileNotFoundError as error:
            raise ConfigurationError(f"{which} must have all files of {name}, got no {file}; {again}") from error
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
        say(f"As before, written by {commit[:12]}: {', '.join(names)}.")
    n_new = sum(folder == source for folder in folders.values())
    say(f"{n_new} of {len(folders)} experiments are new in {target}, {_megabytes(target):.1f} MB; commit them.")
