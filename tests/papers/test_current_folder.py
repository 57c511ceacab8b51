"""A command in a folder of somebody else's runs nothing of it: neither here nor in any process that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trimbench.papers.commands.cli import answer

from ..poisoned import EVERY_NAME, Theirs
from .command_line import T4

COMMAND = "from trimbench.__main__ import main\nif __name__ == '__main__':\n    main()\n"


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    """The current folder: somebody else's configuration, and files that packages and programs read as settings."""
    folder = Theirs(tmp_path / "theirs", tmp_path / "trace")
    folder.plant(EVERY_NAME)
    monkeypatch.chdir(folder.folder)
    Path("profile").mkdir()
    Path("profile/theirs.yaml").write_text("name: theirs\n")
    Path("matplotlibrc").write_bytes(b"\xff")
    Path(".numba_config.yaml").write_bytes(b"\xff")
    for name in ("git", "sinfo", "fc-list", "sh", "python"):
        Path(name).write_text(f"#!/bin/sh\necho {name} >> {folder.trace}\n")
        Path(name).chmod(0o755)
    return folder


def run(folder: Path, *words: str, **variables: str) -> None:
    """Run a command as its installed program does."""
    (folder / "trimbench").write_text(COMMAND)
    command = [sys.executable, str(folder / "trimbench"), *words]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "executor",
    [
        ("processes", "executor.workers=1"),
        pytest.param(("slurm", "executor.cluster=local", "executor.workers=1"), marks=pytest.mark.cluster),
        pytest.param(("ray", "executor.workers=1"), marks=[pytest.mark.cluster, pytest.mark.xdist_group("ray")]),
    ],
    ids=lambda words: words[0],
)
def test_nothing_of_the_folder_runs_in_a_process_of_an_executor(
    theirs: Theirs, tmp_path: Path, executor: tuple[str, ...]
) -> None:
    name, *more = executor
    path = f":.:{os.environ['PATH']}"
    run(tmp_path, "--config-dir", ".", T4, "profile=theirs", f"executor={name}", *more, PATH=path)
    assert theirs.ran() == set()
    assert list(Path("results").rglob("table4*.csv"))


LOADED = "import sys, trimbench._current_folder; print(*{name.partition('.')[0] for name in sys.modules})"


@pytest.mark.parametrize("options", [["-m"], ["-P", "-m"]], ids=" ".join)
def test_as_a_module_of_python_it_leaves_the_folder_at_once(tmp_path: Path, options: list[str]) -> None:
    """With -m alone, Python itself looks there first for what it imports until then."""
    too_early: set[str] = set()
    if "-P" not in options:
        said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
        too_early = {*said.split(), "runpy", "pkgutil"}
    theirs = Theirs(tmp_path / "theirs", tmp_path / "trace")
    theirs.plant(EVERY_NAME - too_early)
    command = [sys.executable, *options, "trimbench", T4, "executor=processes", "executor.workers=1"]
    done = subprocess.run(command, cwd=theirs.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, theirs.ran()) == (0, set()), done.stderr


def test_the_tab_key_runs_nothing_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/trimbench/__main__.py"])
    assert f"{sys.executable} -P -m trimbench --shell-completion" in answer(["install=bash"])
