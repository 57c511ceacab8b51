"""The task ``publish``: put a run in the place of the published outcome."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trimbench.papers.commands.invocation import PUBLISHED, SHARED_KEYS, Invocation
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.provenance import provenance
from trimbench.papers.execution.temporary import temporary_name
from trimbench.papers.reporting.runs import check_profile, folder_of
from trimbench.papers.validation import ConfigurationError

# The published outcome is part of every clone.
_MOST_MEGABYTES = 15
_MEGABYTE = 1_000_000
_PAGE = "index.html"
_AGAIN = "write it again with trimbench task=report"


def publish(invocation: Invocation) -> int:
    """Replace the published outcome by a run of all experiments that this commit has written."""
    target = invocation.root / PUBLISHED
    if invocation.run == PUBLISHED:
        raise ConfigurationError(f"run must be another one than {PUBLISHED!r}; write task=publish profile=paper")
    source = folder_of(invocation.root, invocation.run)
    check_profile(source, invocation.profile)
    files = sorted(_files(source, invocation))
    size = sum(path.stat().st_size for path in files) / _MEGABYTE
    if size > _MOST_MEGABYTES:
        raise ConfigurationError(
            f"a published run must take at most {_MOST_MEGABYTES} MB, got {size:.1f} MB; run it with fewer formats of "
            "figures or smaller tables"
        )
    _replace(source, target, files)
    sys.stdout.write(f"{len(files)} files, {size:.1f} MB, are now in {target}; commit them.\n")
    return 0


def _files(source: Path, invocation: Invocation) -> Iterator[Path]:
    """Yield the files of all experiments, with the settings of their declarations, and those of the whole run.

    Raises ConfigurationError unless the code that is here, and committed, has written all of them.
    """
    here = provenance()
    if here["commit"] is None or here["dirty"]:
        found = "changes that are not committed" if here["commit"] else "no git repository"
        raise ConfigurationError(f"task=publish needs a clean commit of trimbench, got {found}; commit first")
    for name in invocation.catalogue.names("experiment"):
        about = source / f"{name}.json"
        try:
            content = json.loads(about.read_text(encoding="utf-8"))
            commit, dirty = content["written_with"]["commit"], content["written_with"]["dirty"]
            yield from (about.with_name(str(file)) for file in content["files"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"run must have all experiments, got none for {name} ({error}); {_AGAIN}"
            ) from error
        if _changed(content["configuration"], invocation.experiments[name]):
            raise ConfigurationError(f"run must have the settings of the declarations, got others for {name}; {_AGAIN}")
        if commit != here["commit"] or dirty:
            got = f"{name} of {str(commit)[:12]}{' with changes' if dirty else ''}"
            wanted = str(here["commit"])[:12]
            raise ConfigurationError(f"run must be written by the present commit {wanted}, got {got}; {_AGAIN}")
    whole = {path.name: path for path in source.iterdir() if path.is_file()}
    if _PAGE not in whole:
        raise ConfigurationError(f"run must have a page of all experiments, got no {_PAGE}; {_AGAIN}")
    # A comma is followed by settings that were changed.
    yield from (path for name, path in whole.items() if "," not in name and not name.startswith("."))


def _changed(stored: object, declared: Mapping[str, Json]) -> bool:
    """Tell whether an experiment ran with other settings, apart from those that change nothing in what it finds."""
    ignored = {*SHARED_KEYS} - {"seed", "profile"}
    wanted = {key: value for key, value in declared.items() if key not in ignored}
    return not isinstance(stored, dict) or wanted != {k: v for k, v in stored.items() if k not in ignored}


def _replace(source: Path, target: Path, files: Sequence[Path]) -> None:
    """Copy files to a new folder, which then takes the place of the old one."""
    new, old = (target.with_name(temporary_name(kind)) for kind in ("new", "old"))
    try:
        for path in files:
            copy = new / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
