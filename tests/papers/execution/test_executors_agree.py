"""The same seed gives the same tables under every executor (Ray's: Table 6) and any number of workers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..command_line import run_here, tables
from .programs import ON_CLUSTER

pytestmark = [*ON_CLUSTER, pytest.mark.usefixtures("undrawn")]

SWEEP = (
    "experiment=selection_bias/simulation",
    *("n_features=300", "ks=[2,60]", "class_sizes=[[20,20]]", "test_sizes=[50,50]", "replicates=3"),
)
EXECUTORS = {
    "two workers": ("executor=processes", "executor.workers=2"),
    "slurm": ("executor=slurm", "executor.cluster=local", "executor.jobs_per_task=6"),
}


def run(folder: Path, *words: str) -> dict[str, str]:
    answer = run_here(*SWEEP, *words, f"results={folder}", code=0)
    assert "6 of 6 run in" in answer.err
    return tables(folder)


def test_tables_are_those_of_the_serial_executor(tmp_path: Path) -> None:
    expected = run(tmp_path / "serial", "executor=serial")
    assert any(re.fullmatch(r"simulation__.*_rows\.csv\.gz", name) for name in expected)
    for name, words in EXECUTORS.items():
        assert run(tmp_path / name, *words) == expected, name
    assert set(run(tmp_path / "another seed", "executor=serial", "seed=1").values()).isdisjoint(expected.values())
