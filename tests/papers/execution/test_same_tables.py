"""A whole command gives the same tables on any number of workers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..command_line import run_here, tables

SWEEP = (
    "experiment=selection_bias/simulation",
    *("n_features=300", "ks=[2,60]", "class_sizes=[[20,20]]", "test_sizes=[50,50]", "replicates=3"),
)


@pytest.mark.usefixtures("undrawn")
def test_the_same_seed_gives_the_same_tables_under_any_number_of_workers(tmp_path: Path) -> None:
    found = []
    for name, words in (
        ("serial", ["executor=serial"]),
        ("two workers", ["executor.workers=2"]),
        ("another seed", ["executor=serial", "seed=1"]),
    ):
        assert "6 of 6 run in" in run_here(*SWEEP, *words, f"results={tmp_path / name}", code=0).err
        found.append(tables(tmp_path / name))
    serial, two_workers, another = found
    assert any(re.fullmatch(r"simulation__.*_rows\.csv\.gz", name) for name in serial)
    assert two_workers == serial
    assert set(another.values()).isdisjoint(serial.values())
