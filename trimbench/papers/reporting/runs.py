"""The runs in a folder of results: each has a folder of its own, which belongs to one profile."""

from __future__ import annotations

import json
from pathlib import Path

from trimbench.papers.execution.temporary import remove_stale
from trimbench.papers.reporting.whole_files import write_text
from trimbench.papers.validation import ConfigurationError, unknown

_ABOUT = "run.json"


def runs_in(root: Path) -> list[str]:
    """Return the names of the runs below a folder of results."""
    return sorted(path.parent.name for path in root.glob(f"*/{_ABOUT}"))


def folder_of(root: Path, name: str) -> Path:
    """Return the folder of a run; raise ConfigurationError, which names those that exist, if there is none."""
    if name not in runs_in(root):
        if not runs_in(root):
            raise ConfigurationError(f"no run has written to {str(root)!r} yet; start one with task=run")
        raise unknown("run", runs_in(root), name)
    return root / name


def profile_of(folder: Path) -> str:
    """Return the profile of a run; empty if the folder holds no run."""
    try:
        return str(json.loads((folder / _ABOUT).read_text(encoding="utf-8"))["profile"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_profile(folder: Path, profile: str) -> None:
    """Raise ConfigurationError if a folder holds a run of another profile."""
    found = profile_of(folder)
    if found not in ("", profile):
        raise ConfigurationError(
            f"run must have one profile: {folder.name!r} has profile={found}, got profile={profile}; "
            f"add profile={found}, or name another run"
        )


def make_run(folder: Path, profile: str) -> None:
    """Make the folder of a run of this profile, unless it exists; git sees neither it nor the jobs beside it."""
    remove_stale(folder.glob("writing.*.tmp"))  # of a program that was killed here
    if not profile_of(folder):
        for place in (folder, folder.parent / "jobs"):
            place.mkdir(parents=True, exist_ok=True)
            write_text("*\n", place / ".gitignore")
        write_profile(folder, profile)


def write_profile(folder: Path, profile: str) -> None:
    """Write what makes an existing folder a run of this profile."""
    write_text(json.dumps({"profile": profile}) + "\n", folder / _ABOUT)
