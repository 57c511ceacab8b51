"""Run the tests of the framework where nothing else of the package is: in a copy, whose folder is removed afterwards.

    .venv-test/bin/python scripts/alone.py [arguments of pytest]

`scripts/test reproduction` runs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("trimbench/reproduction", "tests/reproduction", "tests/surroundings.py", "examples", "pyproject.toml")


def copy_to(folder: Path) -> None:
    """Copy the framework, its tests and its example into an empty folder, in a package that has nothing else."""
    for name in PARTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, folder / name)
    (folder / "trimbench/__init__.py").touch()
    (folder / "tests/__init__.py").touch()
    (folder / "tests/conftest.py").write_text('pytest_plugins = ["tests.surroundings"]\n', encoding="utf-8")


def run_in(folder: Path, *words: str) -> int:
    """Run the tests in such a folder, with arguments of pytest; return the exit code."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(words or ("tests/reproduction",))]
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, check=False).returncode


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        copy_to(Path(temporary))
        sys.exit(run_in(Path(temporary), *sys.argv[1:]))
