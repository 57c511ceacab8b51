"""Where and with what a result was computed."""

import copy
import functools
import os
import platform
import subprocess
import tomllib
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from trimbench.papers.execution.canonical import Json

_PACKAGES = (
    "cvxpy",
    "gpkit",
    "hydra-core",
    "numpy",
    "omegaconf",
    "openml",
    "pandas",
    "pebble",
    "pysdd",
    "scikit-learn",
    "scipy",
    "threadpoolctl",
)
_GIT_SECONDS = 5.0


def provenance() -> dict[str, Json]:
    """Describe the program and the machine, once per process: versions, commit, platform, processors, time in UTC.

    ``commit`` and ``dirty`` describe the source tree and are None without git; the caller may change the copy.
    """
    return copy.deepcopy(_collect())


def usable_cpus() -> int:
    """Count the processors that this process may use: a container or batch system may allow fewer than there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, len(affinity(0)) if affinity is not None else os.cpu_count() or 1)


@functools.cache
def _collect() -> dict[str, Json]:
    commit, dirty = _git_state(_root())
    return {
        "trimbench": own_version(),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
        "commit": commit,
        "dirty": dirty,
        "platform": platform.platform(),
        "cpus": usable_cpus(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _root() -> Path:
    return Path(__file__).resolve().parents[3]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def own_version() -> str | None:
    """Return the version of this package; None where it is unknown."""
    installed = _version("trimbench")
    if installed is not None:
        return installed
    try:  # run from a source tree without installation
        project = tomllib.loads((_root() / "pyproject.toml").read_text(encoding="utf-8"))
        return str(project["project"]["version"])
    except (OSError, ValueError, KeyError):
        return None


def _git_state(root: Path) -> tuple[str | None, bool | None]:
    """Return the commit and whether files differ from it; (None, None) when `root` is not the top of a git tree."""
    # Looking for .git first keeps an installation inside somebody else's repository from reporting that one.
    if not (root / ".git").exists():
        return None, None
    command = ["git", "--no-optional-locks", "-C", str(root), "status", "--porcelain=v2", "--branch"]
    # What a run writes into the repository does not change the code that wrote it.
    command += ["--", ".", ":(exclude)results"]
    # Inside a git hook these variables point at another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None, None
    lines = answer.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), None)
    # Before the first commit git says "(initial)".
    return (None if commit == "(initial)" else commit), any(not line.startswith("#") for line in lines)
