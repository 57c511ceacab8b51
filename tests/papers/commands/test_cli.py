"""The command line: what it shows, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trimbench.papers.commands import tasks

from ..command_line import T4, T6, Command


def test_options_may_stand_before_or_after_settings(command: Command) -> None:
    assert "thresholds:\n- 0.2\n" in command(T6, "thresholds=[0.2]", "--cfg=job", code=0).out
    assert "seed: 7\n" in command(T6, "--cfg", "job", "seed=7", code=0).out
    command("--info", "config", T4, code=0)
    command(T4, "-i", code=0)


def test_the_version_is_the_projects(command: Command) -> None:
    assert re.fullmatch(r"trimbench \d+\.\d+\.\d+\S*\n", command("--version").out)


@pytest.mark.parametrize("words", [(T4,), ()])
def test_an_executor_that_cannot_run_here_ends_the_run(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    answer = command("executor=slurm", "offline=true", *words, code=1)
    last = answer.err.splitlines()[-1]
    assert last.startswith("executor=slurm: the tasks could not be given to 'slurm': ")
    assert last.endswith("; run where sbatch is, or use executor=processes")
    assert "Traceback" not in answer.out + answer.err


def test_a_closed_pipe_gives_no_message() -> None:
    quiet = subprocess.run(
        [f"'{sys.executable}' -m trimbench --help | true"], shell=True, capture_output=True, text=True, check=True
    )
    assert quiet.stderr == ""


def test_ctrl_c_says_how_to_continue(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(tasks.PERFORM, "run", stop)
    answer = command(T4, code=130)
    assert answer.err == "\nStopped. Finished jobs are stored; run the same command again to continue.\n"


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&- >&- 2>&-", ""])
def test_closed_streams_and_poor_encodings_are_no_error(closed: str) -> None:
    command = f'"{sys.executable}" -m trimbench {T4} executor=serial run=a {closed}'
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    answer = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=True)
    assert "Traceback" not in answer.stdout + answer.stderr
    assert list(Path("results/a/trimming").glob("table4*.csv"))
    wrong = subprocess.run(f"{command} seed=ä", shell=True, env=environment, capture_output=True, check=False)
    assert wrong.returncode == 2
