"""Ctrl-C, full disks, read-only folders: nothing is lost, nothing is repeated. `tests/hardening` breaks more."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reproduction.execution.programs import wait_for

from .command_line import run_here, start

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("undrawn")]

SWEEP = (
    "experiment=selection_bias/simulation",
    *("n_features=300", "ks=[2,60]", "class_sizes=[[20,20]]", "test_sizes=[50,50]", "replicates=30"),
)
N_JOBS = 60


def outcome(*words: str) -> tuple[int, str]:
    """Run the sweep; return the exit code and the output."""
    answer = run_here(*SWEEP, "executor=serial", *words)
    assert "Traceback" not in answer.out + answer.err
    return answer.code, answer.err + answer.out


def run_to_the_end(*words: str) -> str:
    code, out = outcome(*words)
    assert code == 0, out
    return out


def records(results: Path, only: bytes = b"") -> dict[str, tuple[int, bytes]]:
    """Return the inode and content of each stored record; one that is computed again has another inode."""
    found = {path.stem: (path.stat().st_ino, path.read_bytes()) for path in results.glob("jobs/??/*.json")}
    return {job: record for job, record in found.items() if only in record[1]}


def test_ctrl_c_at_any_moment_ends_with_one_line(tmp_path: Path) -> None:
    for n_records, sent in ((0, signal.SIGINT), (20, signal.SIGINT), (5, signal.SIGTERM)):
        n_records += len(records(tmp_path / "results"))
        program = start(*SWEEP, "executor.workers=1", folder=tmp_path)
        # The worker starts once the store is there.
        wait_for((tmp_path / "results/jobs").exists, program)
        wait_for(lambda n=n_records: len(records(tmp_path / "results")) >= n, program)  # type: ignore[misc]
        # A container's manager tells the first process alone: watchexec/watchexec#140.
        os.killpg(program.pid, sent) if sent == signal.SIGINT else program.send_signal(sent)
        out, _ = program.communicate(timeout=300)
        assert program.returncode in (130, -signal.SIGINT), out  # a shell calls both 130
        assert out.endswith("\nStopped. Finished jobs are stored; run the same command again to continue.\n")
        assert "Traceback" not in out


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for some of the records."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k,mode=0777", "none", str(folder)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(disk)], check=True)


def test_a_full_disk_is_reported_and_stored_records_stay(small_disk: Path) -> None:
    code, out = outcome(f"results={small_disk}")
    assert code == 1
    assert re.search(r"cannot write to the folder of results '.*/jobs': No space left on device; make it writable", out)
    assert "Stored results are intact. Fix this, then run the same command again." in out
    stored = records(small_disk)
    assert 0 < len(stored) < N_JOBS
    remount(small_disk, "size=64m")
    again = run_to_the_end(f"results={small_disk}")
    assert f"{len(stored)} stored, {N_JOBS - len(stored)} to run" in again
    assert {job: record for job, record in records(small_disk).items() if job in stored} == stored
    assert not list(small_disk.rglob("*.tmp"))


def test_a_disk_that_is_full_when_tables_are_written(small_disk: Path) -> None:
    words = (f"results={small_disk}", "replicates=5")
    remount(small_disk, "size=64m")
    run_to_the_end(*words)
    before = {path: path.read_bytes() for path in small_disk.rglob("*") if path.is_file()}
    used = shutil.disk_usage(small_disk).used
    remount(small_disk, f"size={used // 1024}k")
    code, out = outcome(*words, "task=report")
    assert code == 1
    assert re.search(r"cannot write .*/selection_bias/simulation\S*: No space left on device", out)
    assert {path: path.read_bytes() for path in small_disk.rglob("*") if path.is_file()} == before


def test_a_results_folder_that_is_read_only(small_disk: Path) -> None:
    remount(small_disk, "size=64m")
    run_to_the_end(f"results={small_disk}", "replicates=2")
    before = records(small_disk)
    assert len(before) == 4
    remount(small_disk, "ro")
    for words in (("replicates=3",), ("replicates=2", "task=report")):
        code, out = outcome(f"results={small_disk}", *words)
        assert code == 2
        assert out.startswith(f"results must be a folder that can be written, got '{small_disk}'; ")
    out = run_to_the_end(f"results={small_disk}", "replicates=3", "task=list")  # it only reads
    assert re.search(r"\| selection_bias/simulation +\| +6 \| +4 \|", out)
    assert records(small_disk) == before


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
