"""No child process and no package takes code or settings from the current folder, and children start in one place."""

from __future__ import annotations

import ast
import io
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import trimbench
from trimbench.reproduction import children
from trimbench.reproduction.children import run, run_python, safe_environment, safe_path, starting
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.project import project
from trimbench.trimming.engines import sdd
from trimbench.trimming.engines.sdd import CircuitError, compile_network, encode

from .extras import needs_pysdd
from .poisoned import EVERY_NAME, Theirs

PACKAGE = Path(trimbench.__file__).parent
Program = Callable[..., str]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    """The current folder, with a module of every name."""
    folder = Theirs(tmp_path / "theirs", tmp_path / "trace")
    folder.plant(EVERY_NAME)
    monkeypatch.chdir(folder.folder)
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run a program that lies elsewhere, as an installed command does, in the current folder; return its output."""

    def run_program(code: str, **variables: str) -> str:
        script = tmp_path / "elsewhere/program.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(code)
        told = {
            name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "MPL", "PYTHONSAFE"))
        }
        command = [sys.executable, str(script)]
        done = subprocess.run(command, env=told | variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_program


# Child processes.

SPAWNS = """
import os
from trimbench.reproduction.execution.processes import _safe_context
if __name__ == "__main__":
    print(os.environ.get("PYTHONSAFEPATH"), flush=True)
    process = _safe_context().Process(target=print, args=("a child",))
    process.start()
    process.join()
    print(os.environ.get("PYTHONSAFEPATH"))
"""
COMPILES = """
import trimbench as tb
from trimbench.trimming.engines.sdd import compile_network, encode
states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
rain = tb.BayesianNetwork(states, {"wet": ["rain"]}, {"rain": [0.2, 0.8], "wet": [[0.9, 0.1], [0.3, 0.7]]})
print(compile_network(encode(rain, "rain", "yes", ("wet",))).values.shape)
"""


def test_a_worker_takes_no_module_from_there_and_the_program_keeps_its_environment(
    theirs: Theirs, program: Program
) -> None:
    assert program(SPAWNS).split("\n") == ["None", "a child", "None", ""]
    assert theirs.ran() == set()


@needs_pysdd
def test_the_process_that_compiles_a_network_takes_no_module_from_there(theirs: Theirs, program: Program) -> None:
    assert program(COMPILES) == "(2, 2)\n"
    assert theirs.ran() == set()


class Theft:
    """A value that leaves a file where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.mark,)


@needs_pysdd
@pytest.mark.parametrize("as_array", [False, True])
def test_the_answer_of_that_process_is_read_as_arrays_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_array: bool
) -> None:
    stream = io.BytesIO()
    if as_array:
        np.savez(stream, np.array([Theft(tmp_path / "ran")]))
    else:
        pickle.dump(Theft(tmp_path / "ran"), stream)
    answer = subprocess.CompletedProcess((), 0, stream.getvalue(), b"")
    monkeypatch.setattr(sdd, "run_python", lambda *_, **__: answer)
    network = trimbench.BayesianNetwork({"rain": ["no", "yes"]}, {}, {"rain": [0.2, 0.8]})
    with pytest.raises(CircuitError, match="answer cannot be read"):
        compile_network(encode(network, "rain", "yes", ()))
    assert not (tmp_path / "ran").exists()


def test_the_current_folder_is_on_the_path_only_where_somebody_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, root, library = str(tmp_path), str(PACKAGE.parent), children._STANDARD_LIBRARY
    monkeypatch.chdir(here)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "path", ["", here, f"{here}/", "sub", "/other", library, root, here])
    assert safe_path() == [f"{here}/sub", "/other", library, root, here], "the last one is of a .pth file"
    for named in (".", here, f"/other:{here}"):
        monkeypatch.setenv("PYTHONPATH", named)
        assert safe_path().count(here) == 3
    for unnamed in (":/other", "/other:", "::"):
        monkeypatch.setenv("PYTHONPATH", unnamed)
        assert safe_path().count(here) == 1
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", ["", library])
    assert safe_path() == [root, library], "a source tree that is not installed"


def test_no_search_path_of_a_child_leads_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ":.:bin::/usr/bin:/bin:")
    monkeypatch.setenv("PYTHONPATH", ":/other::sub:")
    for name in ("MPLCONFIGDIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX"):
        monkeypatch.setenv(name, "cache")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/settings")
    safe = safe_environment()
    assert (safe["PATH"], safe["PYTHONPATH"]) == ("/usr/bin:/bin", f"/other:{tmp_path}/sub")
    assert safe.keys() & {"MPLCONFIGDIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX"} == set()
    assert (safe["XDG_CONFIG_HOME"], safe["PYTHONSAFEPATH"]) == ("/settings", "1")
    monkeypatch.setenv("PYTHONPATH", ":")
    assert "PYTHONPATH" not in safe_environment()
    (tmp_path / "git").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "git").chmod(0o755)
    run(["git", "--version"], capture_output=True, check=False)
    assert not (tmp_path / "ran").exists()


def test_a_relative_folder_of_the_cache_is_the_same_for_a_child_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(project(), cache_variable="SOME_CACHE")
    monkeypatch.setattr("trimbench.reproduction.project._project", other)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(children, "_kept_folders", set())
    data = str(tmp_path / "data")
    for given, wanted in (("cache", f"{tmp_path}/cache"), (data, data), ("~/data", "~/data"), ("", "")):
        monkeypatch.setenv("SOME_CACHE", given)
        Cache.from_environment()
        assert safe_environment()["SOME_CACHE"] == wanted
        with starting():  # as a cluster of Ray is started
            assert os.environ["SOME_CACHE"] == wanted
        assert os.environ["SOME_CACHE"] == given
    monkeypatch.delenv("SOME_CACHE")
    assert "SOME_CACHE" not in safe_environment()


def test_a_child_of_python_finds_what_this_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/beside.py").write_text("print('beside')")
    (tmp_path / "json.py").write_text("print('theirs')")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    monkeypatch.chdir(tmp_path)
    done = run_python(("-c", "import json, beside"), {}, capture_output=True, text=True, check=True)
    assert done.stdout == "beside\n"


def test_the_environment_is_restored_after_an_error_and_keeps_other_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.delenv("SET_WITHIN", raising=False)

    def start() -> None:
        assert (os.environ["PYTHONSAFEPATH"], os.environ.get("XDG_CACHE_HOME")) == ("1", None)
        monkeypatch.setenv("SET_WITHIN", "kept")
        raise OSError("no more processes")

    with pytest.raises(OSError, match="no more processes"), starting(), starting():
        start()
    assert "PYTHONSAFEPATH" not in os.environ
    assert (os.environ["XDG_CACHE_HOME"], os.environ["SET_WITHIN"]) == ("relative", "kept")


def test_in_a_folder_that_was_removed_nothing_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(sys, "path", ["", "/other"])
    assert safe_path() == ["/other"]
    assert safe_environment()["PYTHONSAFEPATH"] == "1"


# numba keeps machine code in pickles. `double` is compiled once in a folder of an attacker's, who then changes these.
DOUBLES = """
{first}
from trimbench._numba import compiled

@compiled
def double(x):
    return 2 * x

print(double(1.0), double._cache.cache_path)
"""


@pytest.mark.parametrize("first", ["", "import numba"], ids=["", "numba imported before"])
@pytest.mark.parametrize("way", ["cache_dir", "a variable"])
def test_no_machine_code_is_taken_from_there(
    tmp_path: Path, program: Program, first: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    kept_there = tmp_path / "folder/theirs"
    said = program(DOUBLES.format(first=first), NUMBA_CACHE_DIR=str(kept_there))
    assert str(kept_there) in said, "an absolute path is the user's own choice"
    for path in (kept := list(kept_there.rglob("*.nbi"))):
        path.write_bytes(pickle.dumps(Theft(tmp_path / "ran")))
    assert kept
    if way != "a variable":
        Path(".numba_config.yaml").write_text(f"{way}: {kept_there}\n")
    said = program(DOUBLES.format(first=first), **({"NUMBA_CACHE_DIR": "theirs"} if way == "a variable" else {}))
    assert said.startswith("2.0 ")
    assert str(kept_there) not in said
    assert not (tmp_path / "ran").exists()


READS = """
from trimbench._numba import compiled
compiled(lambda x: x)(1.0)
import numba
print(numba.config.CACHE_LOCATOR_CLASSES, numba.config.CHROME_TRACE, int(numba.config.OPT))
"""
THEIR_SETTINGS = b"cache_locator_classes: theirs.Locator\nchrome_trace: kept\nopt: '0'\n"


@pytest.mark.parametrize("content", [THEIR_SETTINGS, b"\xff: ["], ids=["settings", "no YAML"])
def test_numba_reads_no_settings_there(tmp_path: Path, program: Program, content: bytes) -> None:
    Path(".numba_config.yaml").write_bytes(content)
    Path("kept").write_text("mine")
    assert program(READS, NUMBA_OPT="2").split() == ["2"]
    assert Path("kept").read_text() == "mine"


DRAWS = """
from trimbench.reproduction.reporting.figures.settings import FigureSettings
{first}
from trimbench.reproduction.reporting.figures.drawing import style
with style(FigureSettings()):
    import matplotlib
print(matplotlib.rcParams["lines.linewidth"])
"""


def test_pictures_of_results_follow_no_settings_there(program: Program) -> None:
    Path("matplotlibrc").write_text("lines.linewidth: 5\n")
    drawn = """
from trimbench.estimators import StabilityDisplay
print(StabilityDisplay([0.5]).plot().ax_.get_lines()[0].get_linewidth())
"""
    assert program(drawn, MPLBACKEND="agg") == "1.5\n"


@pytest.mark.parametrize("first", ["", "FigureSettings(palette=['black'])"], ids=["", "colours first"])
@pytest.mark.parametrize("content", [b"lines.linewidth: 5\n", b"lines.linewidth: 5 # \xff\n"], ids=["text", "bytes"])
def test_matplotlib_reads_its_settings_at_home_but_not_there(
    tmp_path: Path, program: Program, first: str, content: bytes
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/matplotlibrc").write_text("lines.linewidth: 3\n")
    Path("matplotlibrc").write_bytes(content)
    assert program(DRAWS.format(first=first), MPLCONFIGDIR=str(tmp_path / "home")) == "3.0\n"


# The contract: nothing else in the package starts a process, or imports what reads settings in the current folder.

STARTS = re.compile(
    r"subprocess\.(run|Popen|call|check_call|check_output|getoutput|getstatusoutput)|sys\.executable"
    r"|os\.(system|popen|startfile|(fork|exec|spawn|posix_spawn)\w*)|(.*\.)?ProcessPoolExecutor"
    r"|multiprocessing\.(?!active_children|parent_process|resource_tracker|context)\w+|pty\..*"
    r"|multiprocessing\.context\.(?!SpawnContext|SpawnProcess)\w+|(joblib|loky|runpy|pty)\b.*|asyncio\.create_subprocess\w*"
)
# Other packages start processes only within `starting`; workers do by their context.
INDIRECT = re.compile(r"ray\.init|.*\.map_array|.*\.ensure_running|super\(\)\.start")
READERS = ("numba", "matplotlib")
MAY_READ = ("_numba.py", "reproduction/reporting/figures/")
SAMPLES = {
    "import subprocess\nsubprocess.run(['ls'])": "subprocess.run",
    "from subprocess import Popen": "subprocess.Popen",
    "import subprocess as quiet": "subprocess as quiet",
    "import os\nos.execv": "os.execv",
    "from os import system": "os.system",
    "import multiprocessing\nmultiprocessing.get_context('spawn')": "multiprocessing.get_context",
    "from multiprocessing import Pool": "multiprocessing.Pool",
    "from concurrent.futures import ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor",
    "import joblib": "joblib",
    "import sys\nsys.executable": "sys.executable",
    "with closing():\n    ray.init()": "ray.init",
    "ProcessPool(max_workers=2)": "ProcessPool",
    "SpawnContext()": "SpawnContext",
    "import numba": "numba",
    "def f():\n    from matplotlib.figure import Figure": "matplotlib.figure.Figure",
}


def is_within(node: ast.AST, parents: dict[ast.AST, ast.AST], sign: str) -> bool:
    """Tell whether code lies in a ``with`` or ``if`` block whose head has this text."""
    while (node := parents.get(node)) is not None:  # type: ignore[assignment]
        if isinstance(node, ast.With | ast.If) and sign in ast.unparse(node).partition("\n")[0]:
            return True
    return False


def offences(text: str, may_read: bool = False) -> Iterator[str]:
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (
                f"{alias.name} as {alias.asname}"
                for alias in node.names
                if alias.asname and alias.name in ("subprocess", "multiprocessing", "os", "sys")
            )
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        yield from filter(STARTS.fullmatch, names)
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import and not (may_read or is_within(node, parents, "TYPE_CHECKING")):
            yield from (name for name in names if name.partition(".")[0] in READERS)
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if INDIRECT.fullmatch(called) and not is_within(node, parents, "starting()"):
                yield called
            is_safe = called != "ProcessPool" or any(one.arg == "context" for one in node.keywords)
            if not is_safe or called in ("SpawnContext", "SpawnProcess"):
                yield called


@pytest.mark.parametrize("sample", SAMPLES, ids=SAMPLES.values())
def test_every_other_way_to_start_a_process_is_noticed(sample: str) -> None:
    assert [*offences(sample)] == [SAMPLES[sample]]


def test_children_are_started_in_one_place() -> None:
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert {*offences(texts.pop("_current_folder.py"))} == {"sys.executable", "subprocess.run"}
    assert [*offences(texts.pop("reproduction/children.py"))] == ["sys.executable", "subprocess.run"]
    found = {name: said for name, text in texts.items() if (said := [*offences(text, name.startswith(MAY_READ))])}
    assert found == {}
