"""Files are read by one function of the library and one of the framework: regular files, up to a limit, opened once."""

from __future__ import annotations

import ast
import gzip
import importlib
import os
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trimbench as tb
from tests.networks.test_bayesian_network import lawn
from tests.reproduction.execution import sample_jobs
from trimbench.networks.formats import parsing
from trimbench.papers.own_table.table_files import Reading, read_file
from trimbench.reproduction import files
from trimbench.reproduction.configuration import checked_text
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.reporting.figures.drawing import read_points
from trimbench.reproduction.reporting.parts import read_texts
from trimbench.reproduction.reporting.runs import profile_of, read_about
from trimbench.reproduction.settings import ConfigurationError

PACKAGE = Path(tb.__file__).parent

# What else reads, and why: files of the program itself, of the kernel, and of a folder that this process alone has.
OTHERS = {
    "__main__.py": {"_make_streams_writable": "the null device"},
    "networks/formats/parsing.py": {"_opened": "the door of the library"},
    "reproduction/files.py": {"opened": "the door of the framework"},
    "reproduction/world.py": {"open_lock": "locks", "flush": "reads nothing"},
    "reproduction/configuration.py": {"replaced": "the project's own folder"},
    "papers/conformant/solvers.py": {"_resident_pages": "the kernel"},
    "papers/conformant/protocols.py": {"_listed_rows": "the project's own folder"},
    "reproduction/execution/code_hash.py": {"": "code", "_source": "code"},
    "reproduction/execution/processes.py": {"_kibibytes": "the kernel", "process_tree": "the kernel"},
    "reproduction/execution/executors.py": {
        "take": "a folder of this process",
        "shorten_file": "a folder of this process",
    },
    "reproduction/execution/provenance.py": {
        "own_version": "the project's own folder",
        "_quotas": "the kernel",
        "_quota": "the kernel",
    },
    "papers/own_table/steps.py": {"_saved": "a folder of this process"},
    "reproduction/reporting/archive.py": {
        "_provenance": "the project's own folder",
        "_write": "the project's own folder",
    },
    "reproduction/reporting/page.py": {"_text": "the package", "_texts": "the project's own folder"},
    "reproduction/commands/tasks.py": {"new": "the package"},
    "reproduction/vocabulary/tables.py": {"_titles": "the project's own folder"},
}


def _reads(node: ast.AST) -> bool:
    """Tell whether a call opens a file to read."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in ("read_text", "read_bytes"):
        return isinstance(node.func, ast.Attribute)
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if name != "open" or owner in ("webbrowser", "archive"):
        return False
    if "O_WRONLY" in ast.unparse(node):
        return False
    modes = [one.value for one in [*node.args, *[k.value for k in node.keywords]] if isinstance(one, ast.Constant)]
    return not any(isinstance(mode, str) and mode[:1] in ("w", "x", "a") for mode in modes)


def _readers() -> Iterator[tuple[str, str]]:
    """Yield the files of the package and the functions in them that open files to read."""
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes: list[tuple[ast.AST, str]] = [(ast.parse(path.read_text(encoding="utf-8")), "")]
        while nodes:
            node, owner = nodes.pop()
            if _reads(node):
                yield path.relative_to(PACKAGE).as_posix(), owner
            inside = node.name if isinstance(node, ast.FunctionDef) else owner
            nodes += [(part, inside) for part in ast.iter_child_nodes(node)]


def test_nothing_else_reads_files() -> None:
    assert {*_readers()} == {(path, function) for path, functions in OTHERS.items() for function in functions}


# What is refused at once, by every reader.

READERS: dict[str, Callable[[Path], Any]] = {
    **{
        f"network.{ending}": tb.BayesianNetwork.read
        for ending in ("bif", "uai", "erg", "xmlbif", "json", "bif.gz", "uai.gz")
    },
    "bayes.json": tb.NaiveBayes.load,
    "network.evid": lambda path: lawn().read_evidence(path),
    "table.csv": lambda path: read_file("mine", path, Reading()),
    "table.csv.gz": lambda path: read_file("mine", path, Reading()),
    "settings.yaml": checked_text,
    "run.csv": read_texts,
    "run.csv.gz": read_texts,
    "points.csv.gz": lambda path: read_points(path, []),
    "about.json": lambda path: read_about(path.parent, path.stem),
}
REFUSALS = (ValueError, OSError)


def _refusal(name: str, path: Path) -> str:
    """Return why a reader refuses a file, which it does at once, in a sentence and without reading it."""
    importlib.import_module("pandas")  # which takes memory
    start = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(REFUSALS) as caught:
            READERS[name](path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**23
    assert time.process_time() - start < 5
    message = str(caught.value)
    assert len(message) <= 500 + len(str(path))
    assert path.name in message
    return message


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(path := tmp_path / name)
    messages: list[str] = []
    thread = threading.Thread(target=lambda: messages.append(_refusal(name, path)), daemon=True)
    thread.start()
    thread.join(30)
    assert messages, "it waits for somebody to write into the pipe"
    assert "must be a regular file, got a pipe" in messages[0]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/environ", "/proc/self/status"])
def test_devices_and_files_of_the_kernel_are_no_data(tmp_path: Path, name: str, target: str) -> None:
    (path := tmp_path / name).symlink_to(target)
    message = _refusal(name, path)
    told = ("must be a regular file, got", "must be a file of a disk, got", "is a symbolic link")
    assert any(text in message for text in told), message
    assert os.environ["PATH"] not in message


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_gigabytes_is_not_read(tmp_path: Path, name: str) -> None:
    with (path := tmp_path / name).open("wb") as stream:
        stream.truncate(3 * 2**30)
    if name == "table.csv.gz":
        path.rename(path := tmp_path / "table.csv")
        name = "table.csv"
    _refusal(name, path)


def test_what_a_file_is_may_change_until_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (path := tmp_path / "file.bif").write_text("")
    about = path.stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: about)
    for door in (parsing.read_text, files.read_text):
        with pytest.raises((ValueError, OSError), match="must be a regular file, got a pipe"):
            door(pipe)


def test_a_long_table_in_a_small_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "points.csv.gz"
    with gzip.open(path, "wb", 1) as stream:
        stream.write(b"x,y\n")
        for _ in range(70):
            stream.write(b"1,2\n" * 2**18)
    tracemalloc.start()
    with pytest.raises(ConfigurationError, match="must unpack to at most 67,108,864 bytes, got more"):
        read_points(path, [])
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_a_table_of_many_cells_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST_CELLS", 100)
    (path := tmp_path / "points.csv").write_text("x,y\n" + "1,2\n" * 50)
    with pytest.raises(ConfigurationError, match="it must have at most 100 cells"):
        read_texts(path)


def test_the_store_and_the_profile_of_a_run_wait_for_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    assert profile_of(tmp_path) == ""
    job = Job.create(sample_jobs.square, {"x": 3.0})
    store = JobStore(tmp_path)
    store.path(job).parent.mkdir(parents=True)
    store.path(job).symlink_to("/dev/zero")
    assert store.get(job) is None


def test_a_model_that_would_not_be_read_again_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tb.NaiveBayes([0.5, 0.5], [[[0.9, 0.1], [0.2, 0.8]]])
    monkeypatch.setattr(parsing, "MAX_PLAIN", 100)
    with pytest.raises(ValueError, match=r"path must get a model of at most 100 bytes, got \d+; leave out features"):
        model.save(tmp_path / "model.json")
    assert [*tmp_path.iterdir()] == []
