"""Records name no home folders and no users."""

from __future__ import annotations

from pathlib import Path

import pytest

from trimbench.papers.execution.here import ProcessExecutor
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import JobStore
from trimbench.papers.execution.workers import Executor, SerialExecutor
from trimbench.papers.files import without_homes

from . import sample_jobs


@pytest.fixture(autouse=True)
def anna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a home folder."""
    home = tmp_path / "places/anna"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOGNAME", "anna")
    return home


def test_paths_begin_with_a_tilde_or_in_the_project(anna: Path) -> None:
    root = Path(without_homes.__code__.co_filename).parents[2]
    for text, shown in {
        f"No such file: '{anna}/data/x.csv'": "No such file: '~/data/x.csv'",
        f"{anna}": "~",
        f"{anna}bella/x {anna}-old/x": f"{anna}bella/x {anna}-old/x",
        '  File "/home/bert.b/venv/x.py", line 3': '  File "~/venv/x.py", line 3',
        "/Users/carla/x and /home/dora": "~/x and ~",
        f'File "{root}/trimbench/trimming/trim.py", line 3': 'File "trimbench/trimming/trim.py", line 3',
        "/scratch/anna/x, /scratch/annas/x, https://host/home/page, conf/home/x": (
            "/scratch/~/x, /scratch/annas/x, https://host/home/page, conf/home/x"
        ),
        "anna said so": "anna said so",
    }.items():
        assert without_homes(text) == shown


def test_a_link_is_known_by_both_names_and_the_root_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert without_homes(f"{tmp_path}/link/x {tmp_path}/real/x") == "~/x ~/x"
    monkeypatch.setenv("HOME", "/")
    assert without_homes("/etc/x") == "/etc/x"


@pytest.mark.parametrize("executor", [SerialExecutor(), ProcessExecutor(workers=1)])
def test_neither_a_traceback_nor_a_log_nor_a_record_names_a_home(
    anna: Path, store: JobStore, executor: Executor
) -> None:
    # What stands for the path is in the record; the function gets the path.
    job = Job.create(
        sample_jobs.miss_a_file, {"path": "<dataset x>/x.csv"}, places={"<dataset x>/x.csv": f"{anna}/x.csv"}
    )
    (record,) = run_jobs([job], store, executor, progress=False)
    assert "No such file or directory: '~/x.csv'" in str(record.error)
    assert 'File "tests/papers/execution/sample_jobs.py"' in str(record.error)
    assert record.log == "reading ~/x.csv"
    written = [path.read_text() for path in store.folder.rglob("*") if path.is_file()]
    assert len([text for text in written if text]) == 2
    assert not any("anna" in text for text in written)
    assert record.job.parameters == {"path": "<dataset x>/x.csv"}
