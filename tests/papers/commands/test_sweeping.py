"""Sweeps: one table with exactly the rows of the single runs."""

from __future__ import annotations

import csv
import gzip
import json
import shlex
import time
from pathlib import Path

import pandas as pd
import pytest

from .. import pages
from ..command_line import CURVE, OTHER, SMALL, T4, YET_OTHER, Command, results, write

pytestmark = pytest.mark.usefixtures("undrawn")

SERIAL = "executor=serial"


def sweep_folder(results_folder: Path) -> Path:
    """Return the folder of the only sweep."""
    (folder,) = (results_folder / "quick/sweeps").iterdir()
    return folder


def lines_of(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file as they are written."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.reader(content.decode("utf-8").splitlines()))


def joint_tables(folder: Path) -> dict[str, list[list[str]]]:
    """Return the tables of a whole sweep, by the ends of their names; not the points of figures."""
    paths = [*folder.glob("sweep*.csv"), *folder.glob("sweep*.csv.gz")]
    found = {path.name.removeprefix("sweep"): lines_of(path) for path in paths}
    return {end: lines for end, lines in found.items() if not end.endswith("_points.csv")}


def test_the_sweep_of_the_readme_has_exactly_the_rows_of_its_single_runs(command: Command, tmp_path: Path) -> None:
    (shown,) = [
        line for line in pages.commands((pages.ROOT / "README.md").read_text(encoding="utf-8")) if "-m " in line
    ]
    command(*shlex.split(shown), SERIAL, code=0)
    tables = joint_tables(sweep_folder(tmp_path / "results"))
    assert {".csv", "_losses.csv", "_rows.csv.gz"} == set(tables)
    swept = [("30", "500"), ("30", "1000"), ("300", "500"), ("300", "1000")]
    singles: dict[str, list[list[str]]] = {end: [] for end in tables}
    for words, values in zip(pages.points(shown), swept, strict=True):
        assert {f"alpha={values[0]}", f"n_features={values[1]}"} < set(words)
        answer = command(*words, SERIAL, code=0)
        assert "8 stored, 0 to run" in answer.err, "the jobs are those of the sweep"
        (page,) = [path for path in answer.files if path.suffix == ".md"]
        for end, rows in singles.items():
            head, *lines = lines_of(page.with_name(page.name.removesuffix(".md") + end))
            rows += [[*values, *line] for line in lines]
            before, columns = tables[end][0][:2], tables[end][0][2:]
            assert columns == head
            assert [name.removeprefix("swept ") for name in before] == ["alpha", "n_features"]
    for end, rows in singles.items():
        assert len(rows) >= 8
        assert tables[end][1:] == rows, end


def test_a_sweep_is_one_table_of_all_points(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("-m", *SMALL, "threshold=0.3,0.5", "results=out")
    answer = command(*words, code=0)
    folder = sweep_folder(tmp_path / "out")
    assert folder.name.startswith("trimming_breast_cancer__threshold-0.3-")
    assert pd.read_csv(folder / "sweep.csv").groupby("budget")["ECA"].nunique().min() == 2
    about = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    assert [point["swept"] for point in about["points"]] == [{"threshold": 0.3}, {"threshold": 0.5}]
    assert ("threshold" in about["configuration"], about["configuration"]["budgets"]) == (False, [1, 2])
    assert len(about["jobs"]) == 4
    assert {path.resolve() for path in answer.files} == set(folder.iterdir())
    *said, page = answer.out.splitlines()
    assert max(map(len, [*said, page])) <= 80
    assert page == f"  {(folder / 'index.html').relative_to(tmp_path)}"
    assert len(list((tmp_path / "out/jobs").rglob("*.json"))) == 4
    assert {path.name for path in tmp_path.iterdir()} - {"xdg"} == {"out"}, "nothing beside results and cache"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["jobs", "quick"]
    before = results(tmp_path / "out")
    everything = set((tmp_path / "out").rglob("*"))
    command(*words, "task=report", code=0)
    assert results(tmp_path / "out") == before
    assert set((tmp_path / "out").rglob("*")) == everything


@pytest.mark.parametrize(
    ("words", "points", "said"),
    [
        (f"{T4} seed=1,1", ["seed=1"], "seed=1,1: equal values run once, 1 of 2 are different.\n"),
        (
            f"{' '.join(SMALL)} threshold=0.3,0.30,3e-1,0.5",
            ["threshold=0.3", "threshold=0.5"],
            "threshold=0.3,0.30,3e-1,0.5: equal values run once, 2 of 4 are different.\n",
        ),
        (f"{T4} seed=1,2 ++seed=3,4", ["seed=3", "seed=4"], ""),
    ],
)
def test_a_point_that_is_the_same_by_value_runs_once(
    command: Command, tmp_path: Path, words: str, points: list[str], said: str
) -> None:
    answer = command("-m", *words.split(), code=0)
    folder = sweep_folder(tmp_path / "results")
    assert answer.err.startswith(said)
    key = points[0].partition("=")[0]
    assert sorted({f"{key}={value}" for value in pd.read_csv(folder / "sweep.csv")[key]}) == points


def test_many_points_take_little_more_than_their_jobs(command: Command, tmp_path: Path) -> None:
    seconds = []
    for last in (5, 65):
        began = time.process_time()
        command("-m", T4, f"seed=range(0,{last})", SERIAL, f"results=to{last}", code=0)
        seconds.append(time.process_time() - began)
    assert len(pd.read_csv(sweep_folder(tmp_path / "to65") / "sweep.csv")) == 65
    assert (seconds[1] - seconds[0]) / 60 < 0.03


def test_a_sweep_over_experiments(command: Command, tmp_path: Path) -> None:
    command("-m", "experiment=trimming/table4,conformant/figure1", SERIAL, code=0)
    folder = sweep_folder(tmp_path / "results")
    table = pd.read_csv(folder / "sweep.csv")
    assert table["experiment"].value_counts().to_dict() == {"trimming/table4": 1, "conformant/figure1": 4}


def test_a_sweep_continues_after_a_point_whose_jobs_fail(command: Command, tmp_path: Path) -> None:
    command("-m", *SMALL, "positive=nonsense,malignant", code=1)
    folder = sweep_folder(tmp_path / "results")
    assert pd.read_csv(folder / "sweep.csv")["positive"].tolist() == ["malignant"] * 2
    rows = pd.read_csv(folder / "sweep_rows.csv.gz")
    found = rows.groupby("positive")["status"].unique().map(list).to_dict()
    assert found == {"malignant": ["ok"], "nonsense": ["failed"]}
    assert "2 jobs failed; sweep_rows.csv.gz has the errors" in (folder / "sweep.md").read_text(encoding="utf-8")


def test_a_sweep_continues_after_a_point_that_cannot_run(command: Command, tmp_path: Path) -> None:
    words = ("experiment=selection_bias/colon", "datasets=[breast_cancer]", "n_subsets=2", "splits=1")
    answer = command("-m", *words, "prior.n_alpha=4", "k=100,3", SERIAL, code=1)
    table = pd.read_csv(sweep_folder(tmp_path / "results") / "sweep.csv").set_index("k")
    reason = "n_subsets times k must be at most 30, the number of features of breast_cancer, got 2 times 100"
    assert table.loc[100, "error"] == reason
    assert len(table.loc[3]) == 4
    assert table.loc[3, "error"].isna().all()
    assert table.loc[3, "expected error"].notna().all()
    assert "1 of 2 points could not run; the column error has the reasons." in answer.out


def test_values_that_differ_in_spaces_and_umlauts_are_points_of_their_own(command: Command, tmp_path: Path) -> None:
    lines = ["a,b,state", *(f"{i % 2},{i % 3},{'äö'[i % 5 > 1]} b" for i in range(60))]
    for name in ("x y", "x_y"):
        declaration = f"kind: csv\npath: {name}.csv\ntarget: state\n"
        write(tmp_path / "mine/dataset", {f"{name}.yaml": declaration, f"{name}.csv": "\n".join(lines) + "\n"})
    swept = ("datasets=['x y'],['x_y']", "positive='ä b','ö b'")
    command("--config-dir", "mine", "-m", *SMALL, *swept, code=0)
    folder = sweep_folder(tmp_path / "results")
    assert folder.name.isascii()
    assert " " not in folder.name
    table = pd.read_csv(folder / "sweep.csv")
    found = set(zip(table["dataset"], table["positive"], strict=True))
    assert found == {(data, positive) for data in ("x y", "x_y") for positive in ("ä b", "ö b")}
    assert len(table) == 8


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("executor=serial",), "a sweep (-m) must have a setting with several values; write for example alpha=30"),
        (("offline=true,false",), "a sweep must go over experiments, their settings or seed, got offline; give"),
        (("executor=serial,processes",), "a sweep must go over experiments, their settings or seed, got exec"),
        (("threshold=0.4,0.5", "task=list"), "task must be run or report in a sweep, got 'list'"),
        (("seed=range(0,100000)", "task=report"), "a sweep must have at most 10,000 points, got 100,000; sweep over"),
        (("seed=1,2", "threshold=range(0,inf)"), "at most 10,000 points, got endlessly many; sweep over fewer"),
        (("threshold=0.4,2",), "threshold must be a probability in [0, 1], got 2"),
    ],
)
def test_what_cannot_be_swept_is_refused(
    command: Command, tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    assert complaint in command("-m", CURVE, *words, code=2).err
    assert not (tmp_path / "results").exists(), "nothing runs"


def test_a_report_of_a_sweep_counts_the_jobs_that_are_not_stored(command: Command, tmp_path: Path) -> None:
    command(T4, OTHER, SERIAL, code=0)
    answer = command("-m", T4, f"{OTHER},{YET_OTHER.partition('=')[2]}", "task=report", code=0)
    assert "1 job not stored; task=run computes what is missing." in answer.out
    (value,) = set(
        pd.read_csv(sweep_folder(tmp_path / "results") / "sweep_rows.csv.gz").query("status == 'ok'").iloc[:, 0]
    )
    assert f"{OTHER.partition('=')[0]}={value}" == OTHER
