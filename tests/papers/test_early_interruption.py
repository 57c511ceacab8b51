"""Ctrl-C before the command line has begun with anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LINE = "\nStopped before anything was done.\n"
# Found instead of the package that the command line imports first.
IMPORTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise ImportError('still here')\n"
SWALLOWED = """
import os, signal, hydra
compose = hydra.compose
def composed(*words, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        pass
    return compose(*words, **options)
hydra.compose = composed
"""
START = "import sys\nsys.argv = ['trimbench', 'task=list']\nfrom trimbench.__main__ import main\nmain()\n"


def run(folder: Path, *command: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("command", [["-m", "trimbench", "task=list"], ["-c", START]])
def test_while_packages_are_imported(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "hydra.py").write_text(IMPORTED)
    done = run(tmp_path, *command)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", LINE)


def test_while_the_configuration_is_composed(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", SWALLOWED + START)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", LINE)


def test_where_it_is_ignored_it_stays_ignored(tmp_path: Path) -> None:
    (tmp_path / "hydra.py").write_text(IMPORTED)
    assert "still here" in run(tmp_path, "-m", "trimbench", ignored=True).stderr
