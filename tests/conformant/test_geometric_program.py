"""GPkit is imported silently."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extras import needs_gpkit
from trimbench.conformant.other_solvers import silent_descriptors

_SOLVE = """
import numpy as np
from sklearn.linear_model import LogisticRegression
import trimbench as tb
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
assert tb.conform(LogisticRegression().fit(X, [0, 1, 1, 1]), X, "gpkit").residual < 1e-5
import gpkit, os, sys
print(gpkit.__file__, flush=True)
os.system("echo the shell is heard >&2")
"""


@needs_gpkit
def test_the_first_import_is_silent(tmp_path: Path) -> None:
    """An installation that has not looked for solvers yet does so, with children that complain."""
    found = importlib.util.find_spec("gpkit")
    assert found is not None
    assert found.origin is not None
    shutil.copytree(
        Path(found.origin).parent, tmp_path / "gpkit", ignore=shutil.ignore_patterns("settings", "build.log")
    )
    done = subprocess.run(
        [sys.executable, "-c", _SOLVE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gpkit" / "env" / "settings").exists()
    assert done.stdout == f"{tmp_path / 'gpkit' / '__init__.py'}\n"
    assert done.stderr == "the shell is heard\n"


def test_descriptors_are_given_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(1, b"before ")
    with pytest.raises(ZeroDivisionError), silent_descriptors():
        os.write(1, b"within ") + os.write(2, b"within ") / 0
    os.write(1, b"after")
    assert capfd.readouterr() == ("before after", "")
