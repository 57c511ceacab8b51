"""A wheel of the tree works without the extras, and its command says which one is missing."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# What the extras install, by the names under which it is imported.
BLOCKED = """
    arviz_stats cvxopt cvxpy gpkit hydra jinja2 matplotlib omegaconf openml pebble platformdirs pyarrow
    pydantic pysdd ray rdata submitit tabulate tqdm yaml
"""
BLOCKER = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED.split()!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv.pop(1))
"""
LIBRARY = """
import numpy as np
from sklearn.linear_model import LogisticRegression
import trimbench as tb
from trimbench.estimators import NaiveConformantClassifier, SelectionCorrectedNB
from trimbench.papers.conformant.programs import solve_cvxpy

X = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0]])
y = np.array([0, 0, 1, 1, 1, 0])
model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
assert tb.trim(tb.BayesianClassifier(model, positive="0"), budget=1).features == ("x0",)
assert tb.conform(LogisticRegression().fit(X, y), X).residual < 1e-9
assert tb.fit_selection_corrected(X, y, k=1).selected.tolist() == [0]
assert NaiveConformantClassifier().fit(X, y).predict([[1, np.nan, np.nan]]).tolist() == [1]
assert SelectionCorrectedNB(k=1).fit(X, y).predict(X).tolist() == y.tolist()
assert tb.BayesianNetwork.read(sys.argv[1]).nodes == ("x0", "x1")
try:
    tb.conform(LogisticRegression().fit(X, y), X, solve_cvxpy)
except ImportError as error:
    assert "trimbench[solvers]" in str(error)
else:
    raise AssertionError("cvxpy is blocked")
print(tb.__file__)
"""
COMMAND = "sys.argv[0] = 'trimbench'; from trimbench.__main__ import main; main()"
UAI = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 0.3 0.7\n4 0.2 0.8 0.6 0.4\n"

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="runs in the source tree only"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("trimbench-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    folder = wheel.parent / "installed"
    with zipfile.ZipFile(wheel) as archive:  # that is all an installer does with a wheel of Python files
        archive.extractall(folder)
    return folder


def run(code: str, installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds the wheel first and no package of an extra."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKER + code, str(installed), *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=installed.parent,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )


def test_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        (scripts,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        metadata = email.message_from_bytes(archive.read(path))
        assert b"trimbench = trimbench.__main__:main" in archive.read(scripts)
    direct = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert 1 <= len(direct) <= 7
    assert {"sdd", "solvers", "papers"} <= set(metadata.get_all("Provides-Extra", []))
    assert {"trimbench/__init__.pyi", "trimbench/estimators/__init__.pyi", "trimbench/py.typed"} <= names
    assert "trimbench/papers/CITATION.cff" in names, "what an archive cites"
    assert any(name.startswith("trimbench/papers/conf/experiment/") for name in names)
    assert not any(name.startswith(("tests/", "conf/")) for name in names)


def test_the_library_works_without_the_extras(installed: Path) -> None:
    network = installed.parent / "network.uai"
    network.write_text(UAI, encoding="ascii")
    done = run(LIBRARY, installed, str(network))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{installed / 'trimbench' / '__init__.py'}\n"


@pytest.mark.parametrize("words", [[], ["--version"], ["experiment=trimming/table4"]])
def test_the_command_names_the_extra_in_one_line(words: list[str], installed: Path) -> None:
    done = run(COMMAND, installed, *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "run pip install 'trimbench[papers]'" in done.stderr
