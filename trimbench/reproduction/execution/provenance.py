"""Where and with what a result was computed."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import platform
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from trimbench.reproduction.children import run, safe_environment
from trimbench.reproduction.execution.job import COUNT, FLAG, NOTHING, TEXT, Job, fields
from trimbench.reproduction.execution.store import Record, noted_road
from trimbench.reproduction.project import DISTRIBUTION, per_project, project
from trimbench.reproduction.settings import Json

# What the framework itself uses to compute; their versions are recorded beside those that the project names.
_PACKAGES = ("hydra-core", "numpy", "omegaconf", "openml", "pandas", "pebble", "scipy", "threadpoolctl")
_GIT_SECONDS = 5.0
PROVENANCE = fields(
    **{DISTRIBUTION: TEXT | NOTHING},
    python=TEXT,
    packages=fields(**{"*": TEXT}),
    commit=TEXT | NOTHING,
    dirty=FLAG | NOTHING,
    platform=TEXT,
    cpus=COUNT,
    time=TEXT,
    roads=fields(**{"*": TEXT}),
)
"""What `provenance_of` returns."""


def provenance() -> dict[str, Json]:
    """Describe the program and the machine, once per process: versions, commit, platform, processors, time in UTC.

    ``commit`` and ``dirty`` describe the source tree and are None without git; the caller may change the copy.
    """
    return copy.deepcopy(_collect())


def provenance_of(job: Job) -> dict[str, Json]:
    """Return the `provenance` of a job that ran in this process, with ``roads``: where its data came from."""
    return provenance() | {"roads": {name: road for name, sha256 in job.data if (road := noted_road(sha256))}}


def commit_of(where: Mapping[str, Json]) -> str:
    """Return the commit of an environment as pages show it."""
    return f"{str(where.get('commit') or 'unknown')[:12]}{' and uncommitted changes' if where.get('dirty') else ''}"


def computed_with(records: Sequence[Record]) -> list[dict[str, Json]]:
    """Return the environments (versions and machine) in which jobs ran, each once."""
    entries = [environment_of(record) for record in records if record.provenance]
    return list({json.dumps(entry, sort_keys=True): entry for entry in entries}.values())


def environment_of(record: Record) -> dict[str, Json]:
    """Return the provenance of a job without its data."""
    return {name: value for name, value in record.provenance.items() if name != "roads"}


def usable_cpus() -> int:
    """Count the processors that this process may use: a container or batch system may allow fewer than there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min([available, *map(math.ceil, _quotas(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")))]))


def _quotas(root: Path, own: Path) -> Iterator[float]:
    """Yield the numbers of processors that the control groups of this process, and those above them, leave it."""
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, kinds, name = line.split(":", 2)
            top = root if not kinds else root / kinds
            group = top / name.lstrip("/")
            for folder in {group, *(one for one in group.parents if one.is_relative_to(top)), top, root / "cpu"}:
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    names = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    for parts in names:
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = " ".join((folder / part).read_text() for part in parts).split()
            if quota != "max" and int(quota) > 0:
                yield int(quota) / int(period)


@per_project
def _collect() -> dict[str, Json]:
    commit, dirty, _ = _git()
    return {
        DISTRIBUTION: own_version(),
        "python": platform.python_version(),
        "packages": {name: found for name in _recorded() if (found := _version(name)) is not None},
        "commit": commit,
        "dirty": dirty,
        "platform": platform.platform(),
        "cpus": usable_cpus(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def deciding_versions() -> dict[str, str]:
    """Return the versions on which results may depend, by name: of this package, Python and the libraries here."""
    versions = {name: _version(name) for name in sorted(project().deciding)} | {DISTRIBUTION: own_version()}
    versions["Python"] = platform.python_version().rpartition(".")[0]
    return {name: version for name, version in versions.items() if version is not None}


def _recorded() -> list[str]:
    return sorted({*_PACKAGES, *project().deciding, *project().recorded})


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def own_version() -> str | None:
    """Return the version of this package; None where it is unknown."""
    installed = _version(DISTRIBUTION)
    if installed is not None:
        return installed
    try:  # run from a source tree without installation
        tree = Path(__file__).resolve().parents[3]
        about = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
        return str(about["project"]["version"])
    except (OSError, ValueError, KeyError):
        return None


def _git_state(root: Path) -> tuple[str | None, bool | None, str]:
    """Return the commit, whether files differ from it (both None if unknown), and why the commit is not known."""
    # Looking for .git first keeps an installation inside somebody else's repository from reporting that one.
    if not (root / ".git").exists():
        return None, None, "no git repository"
    command = ["git", "--no-optional-locks", "-C", str(root), "status", "--porcelain=v2", "--branch"]
    # What a run writes into the repository does not change the code that wrote it.
    command += ["--", ".", ":(exclude)results"]
    # Inside a git hook these variables point at another repository; those of its configuration remain.
    outside = safe_environment()
    environment = {name: value for name, value in outside.items() if not name.startswith("GIT_") or "CONFIG" in name}
    try:
        answer = run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=True,
        )
    except OSError:
        return None, None, "no git on this machine"
    except subprocess.SubprocessError as error:
        return None, None, f"git says: {' '.join((getattr(error, 'stderr', '') or str(error)).split())[:300]}"
    lines = answer.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    # Before the first commit git says "(initial)".
    unknown = commit in (None, "(initial)")
    dirty = any(not line.startswith("#") for line in lines)
    return (None if unknown else commit), dirty, "git has no commit yet" if unknown else ""


def no_commit() -> str:
    """Return why the commit of this program is not known, as when another user owns the clone; empty if it is."""
    return _git()[2]


@per_project
def _git() -> tuple[str | None, bool | None, str]:
    return _git_state(project().folder)
