"""The task ``compare``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ..command_line import Command, write
from ..stored_runs import TABLE, run

FILES = ["changes.csv", "changes.md", "differences.csv", "index.html"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of results with two equal runs."""
    for name in ("one", "other"):
        write(run(tmp_path / "results" / name), {"run.json": '{"profile": "quick"}'})
    return tmp_path / "results"


def test_a_planted_number_is_the_only_row(command: Command, root: Path) -> None:
    write(root, {"other/family/one_table.csv": TABLE.replace("0.25", "0.5")})
    answer = command("task=compare", "runs=[one,other]", code=0)
    assert "1 number differs (13 numbers in 1 experiment compared)." in answer.out
    folder = root / "comparisons/one,other"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert all(f"  results/comparisons/one,other/{name}\n" in answer.out for name in FILES)
    (row,) = pd.read_csv(folder / "changes.csv").to_dict("records")
    assert (row["experiment"], row["row"], row["quantity"]) == ("family/one", "b", "error")
    assert (row["first"], row["second"], row["relative_change"]) == (0.25, 0.5, 1.0)
    assert pd.read_csv(folder / "differences.csv").empty


def test_runs_may_be_folders_elsewhere(command: Command, root: Path, tmp_path: Path) -> None:
    run(tmp_path / "elsewhere/mine")
    answer = command("task=compare", f"runs=[one,{tmp_path}/elsewhere/mine]", code=0)
    assert "No number differs (13 numbers in 1 experiment compared)." in answer.out
    command("task=compare", "runs=[one,elsewhere/mine]", code=0)
    names = [path.name for path in (root / "comparisons").iterdir()]
    assert len(names) == 2
    assert all(name.startswith("one,") for name in names)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        (
            "runs=[]",
            "runs must be the names of two runs, got none; write runs=[a,b]; the runs in results are: one, other",
        ),
        ("runs=[one]", "runs must be the names of two runs, got 'one'; write"),
        ("runs=[one,other,one]", "got 'one', 'other', 'one'; write"),
        (
            "runs=[one,othr]",
            "must name finished runs or their folders, got 'othr'; the runs in results are: one, other",
        ),
        ("runs=one", "runs must be a list, got 'one'"),
    ],
)
def test_wrong_runs_are_refused_with_those_that_exist(
    command: Command, root: Path, setting: str, complaint: str
) -> None:
    assert complaint in command("task=compare", setting, code=2).err
    assert not (root / "comparisons").exists()


def test_without_any_run_it_says_so(command: Command) -> None:
    assert "there is no run in results yet" in command("task=compare", "runs=[a,b]", code=2).err
