"""What ``scripts/environment.sh`` and ``scripts/test`` say and do, with programs in the place of theirs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.reproduction.execution.programs import is_alive, wait_for

ROOT = Path(__file__).parents[2]

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
    size = re.search("`.venv` takes at most (.*?) GB", (ROOT / "docs/installation.md").read_text(encoding="utf-8"))
    assert size
    assert f"at most {size[1]} GB on disk" in told[0]
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


CHECK = """#!/bin/bash
name=$(basename "$0")
echo "$name $1"
if [[ $SLOW == *$name* ]]; then echo $$ > "$name.pid"; sleep 60; fi
[[ $FAILS != "$name" ]]
"""
TOLD = ["ruff check", "ruff format", "python scripts/size.py", "pytest --numprocesses"]
TOLD += ["mypy ", "lint-imports --no-cache", "python scripts/supply.py"]


def start_checks(folder: Path, **variables: str) -> subprocess.Popen[str]:
    """Start the check command of one folder of tests, in an environment whose programs only tell their names."""
    for name in ("scripts/test", "scripts/environment.sh", "requirements/test.lock", "pyproject.toml"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(SCRIPT.parents[1] / name, folder / name)
    environment = folder / ".venv-test"
    (environment / "bin").mkdir(parents=True)
    for name in ("ruff", "python", "mypy", "lint-imports", "pytest"):
        (environment / "bin" / name).write_text(CHECK)
        (environment / "bin" / name).chmod(0o755)
    shutil.copyfile(folder / "requirements/test.lock", environment / "installed.lock")
    shutil.copyfile(folder / "pyproject.toml", environment / "installed.toml")
    (environment / "installed.place").write_text(f"{folder}\n")
    command, told = ["bash", "scripts/test", "tests/one"], os.environ | {"FAILS": "", "SLOW": ""} | variables
    return subprocess.Popen(command, cwd=folder, env=told, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize(("fails", "n_told"), [("", 7), ("ruff", 1), ("pytest", 7), ("mypy", 5)])
def test_checks_run_beside_the_tests_and_fail_like_them(tmp_path: Path, fails: str, n_told: int) -> None:
    with start_checks(tmp_path, FAILS=fails) as checks:
        out, _ = checks.communicate(timeout=300)
    assert out.splitlines() == TOLD[:n_told]
    assert checks.returncode == (fails != "")


def test_ctrl_c_ends_the_checks_with_the_tests(tmp_path: Path) -> None:
    with start_checks(tmp_path, SLOW="mypy pytest") as checks:
        pids = [tmp_path / f"{name}.pid" for name in ("mypy", "pytest")]
        wait_for(lambda: all(path.is_file() and path.read_text() for path in pids))
        os.killpg(checks.pid, signal.SIGINT)
        checks.communicate(timeout=300)
    assert checks.returncode == 130
    wait_for(lambda: not any(is_alive(int(path.read_text())) for path in pids))
