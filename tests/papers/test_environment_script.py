"""What ``scripts/environment.sh`` says and does, with programs in the place of uv, Python and pip."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/environment.sh"
# Notes its arguments, makes the environment if asked to, and fails with the word that it is told.
PROGRAM = """#!/bin/bash
[[ $1 == -c ]] && exit 0
echo "$(basename "$0") $*" >> "$CALLS"
echo "on standard output"
if [[ -n $FAILS && "$*" == *$FAILS* ]]; then echo "no route to host" >&2; exit 7; fi
if [[ $1 == venv || $2 == venv ]]; then folder=${@: -1}; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python"; fi
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "programs").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "run.lock").write_text(
        "a==1 --hash=sha256:0\nsetuptools==3 \\\n    --hash=sha256:0\nb==2 --hash=sha256:0\n"
    )
    return tmp_path


def make(clone: Path, *programs: str, fails: str = "") -> subprocess.CompletedProcess[str]:
    """Make the environment of a clone, on a machine that has these programs."""
    for name in programs:
        program = clone / "programs" / name
        program.write_text(PROGRAM)
        program.chmod(0o755)
    environment = {
        "PATH": os.pathsep.join([str(clone / "programs"), "/usr/bin", "/bin"]),
        "TRIMBENCH_PYTHON": str(clone / "programs/python3"),
        "CALLS": str(clone / "calls"),
        "FAILS": fails,
    }
    command = ["bash", "-euo", "pipefail", "-c", f"source '{SCRIPT}'; make_environment .venv run.lock; echo afterwards"]
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def calls(clone: Path) -> list[str]:
    return (clone / "calls").read_text().splitlines()


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_each_step_is_announced_and_installers_are_silent_in_a_log(clone: Path, installer: str) -> None:
    made = make(clone, "python3", *(["uv"] if installer == "uv" else []))
    assert made.stdout == "afterwards\n"  # what the installers print is no result
    told = [line for line in made.stderr.splitlines() if line != "on standard output"]
    assert told[0].startswith("Making the environment .venv, once: 3 packages, about 0.4 GB")
    assert [line[:9] for line in told[2:5]] == ["  1 of 3:", "  2 of 3:", "  3 of 3:"]
    assert told[5].startswith("The environment is ready after ")
    environment, tools, packages, project = calls(clone)
    assert "venv" in environment
    assert "--quiet" in packages
    assert "--quiet" in project
    assert tools.endswith("--require-hashes -r .venv/build.lock")
    assert (clone / ".venv/build.lock").read_text() == "setuptools==3 \\\n    --hash=sha256:0\n"
    assert packages.endswith("--no-build-isolation --require-hashes -r run.lock")
    assert project.endswith("--editable .")


def test_an_environment_is_made_once_for_each_lock_and_place(clone: Path) -> None:
    make(clone, "python3")
    again = make(clone, "python3")
    assert (again.stdout, again.stderr, len(calls(clone))) == ("afterwards\n", "", 4)
    (clone / "run.lock").write_text("a==2\n")
    assert "1 packages" in make(clone, "python3").stderr


@pytest.mark.parametrize(("fails", "step"), [("venv", 1), ("run.lock", 2), ("editable", 3)])
def test_a_failure_says_what_to_do_and_the_next_attempt_starts_afresh(clone: Path, fails: str, step: int) -> None:
    failed = make(clone, "python3", fails=fails)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert "no route to host" in failed.stderr
    assert f"\nStep {step} of 3 failed (" in failed.stderr
    assert "run the same command again: it starts afresh" in failed.stderr
    assert make(clone, "python3").stdout == "afterwards\n"
