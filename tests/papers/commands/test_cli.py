"""The command line: what it shows, how it ends, and sweeps."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trimbench.papers.commands import tasks

from ..command_line import SMALL, T4, T6, Command, results


def test_options_may_stand_before_or_after_settings(command: Command) -> None:
    assert "thresholds:\n- 0.2\n" in command(T6, "thresholds=[0.2]", "--cfg=job", code=0).out
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


def test_a_sweep_has_a_folder_for_each_point(command: Command, tmp_path: Path) -> None:
    command("-m", T4, "threshold=0.5,0.55", "executor=serial", "results=out", code=0)
    sweeps = tmp_path / "out/sweeps"
    names = [f"executor=serial,experiment=trimming_table4,threshold={value}" for value in ("0.5", "0.55")]
    assert sorted(path.name for path in sweeps.iterdir() if path.is_dir()) == names
    for name, threshold in zip(names, (0.5, 0.55), strict=True):
        provenance = json.loads((sweeps / name / "trimming/table4.json").read_text())
        assert provenance["configuration"]["threshold"] == threshold
    assert len(list((tmp_path / "out/jobs").rglob("*.json"))) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing beside the results"
    before = results(tmp_path / "out")
    command("-m", "task=report", T4, "threshold=0.5,0.55", "executor=serial", "results=out", code=0)
    assert results(tmp_path / "out") == before


def test_a_sweep_continues_after_a_point_that_fails(command: Command, tmp_path: Path) -> None:
    command("-m", *SMALL, "positive=nonsense,malignant", code=1)
    pages = sorted((tmp_path / "results/sweeps").rglob("breast_cancer.md"))
    assert ["positive=malignant" in str(page) for page in pages] == [True, False]
    assert [page.with_suffix(".png").is_file() for page in pages] == [True, False]


def test_folders_of_a_sweep_have_names_that_every_file_system_accepts(command: Command, tmp_path: Path) -> None:
    long = ",".join(["[0.5,0.01,0.015]"] * 40)
    command("-m", "executor=serial", T4, f"instances=[{long}],[{long},[0.1,0,0]]", code=0)
    names = [path.name for path in (tmp_path / "results/sweeps").iterdir() if path.is_dir()]
    assert len(names) == len(set(names)) == 2
    assert all(len(name.encode()) <= 255 for name in names)
