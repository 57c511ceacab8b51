"""From the command line to the rows of an experiment: all experiments, missing data, failures, interruptions."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trimbench.papers.commands import cli
from trimbench.papers.configuration import Catalogue, ConfigurationError, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.errors import WAY_OUT
from trimbench.papers.execution.executors import SerialExecutor
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import JobStore
from trimbench.papers.study.plan import Cell, Outcome, Table, check_axis
from trimbench.papers.study.running import Findings, make_experiment, run_experiment
from trimbench.papers.trimming import jobs
from trimbench.papers.reporting import overview
from trimbench.papers.reporting.files import write_findings

from ..command_line import Answer, start

Command = Callable[..., Answer]

PROJECT = Catalogue((configuration_folder(),))
# A tiny setting for each experiment; one that is not here runs as it is.
SMALL_SIMULATION = ["n_features=60", "test_sizes=[20,20]", "prior.n_alpha=8", "replicates=2"]
TINY = {
    "selection_bias/alpha_posterior": [*SMALL_SIMULATION, "ks=[2,5]", "class_sizes=[8,8]"],
    "selection_bias/calibration": [*SMALL_SIMULATION, "k=5", "class_sizes=[[8,8]]"],
    "selection_bias/colon": ["splits=1", "n_subsets=100", "prior.n_alpha=4"],
    "selection_bias/mixture": [
        *("n_features=40", "n_train=12", "n_test=10", "ks=[2]", "replicates=1", "n_warmup=2", "n_draws=8"),
        "prior.n_alpha=5",
    ],
    "selection_bias/runtime": [*SMALL_SIMULATION[:3], "ks=[2,60]", "class_sizes=[8,8]", "repeats=1"],
    "selection_bias/selection_scatter": [*SMALL_SIMULATION, "ks=[2,5]", "class_sizes=[[8,8]]"],
    "selection_bias/simulation": [*SMALL_SIMULATION, "ks=[2,60]", "class_sizes=[[8,8]]"],
    "conformant/digits": ["missing=[0.0,0.5]", "repetitions=1"],
    "conformant/solvers": ["n_features=50", "n_classes=3"],
    "trimming/breast_cancer": ["budgets=[1,2]", "splits=1", "evaluation_limit=10"],
    "trimming/curves": ["networks=[pima]", "thresholds=[0.5]"],
    "trimming/figure5": ["splits=1"],
    "trimming/figure7": ["networks=[cpcs54]", "classes=1", "thresholds=[0.5]"],
    "trimming/quiz": ["n_grid=2"],
    "trimming/scaling": [
        "budgets=[3]",
        "evaluation_limit=5",
        "datasets=[breast_cancer]",
    ],
    "trimming/table6": ["thresholds=[0.5]"],
}
CURVE = ("experiment=trimming/breast_cancer", *TINY["trimming/breast_cancer"], "executor=serial")


@pytest.mark.parametrize("name", PROJECT.names("experiment"))
def test_every_experiment_runs_without_a_network(command: Command, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Findings] = []

    def write_and_keep(findings: Findings, *others: Any) -> list[Path]:
        kept.append(findings)
        return write_findings(findings, *others)

    monkeypatch.setattr(overview, "write_findings", write_and_keep)
    answer = command(f"experiment={name}", *TINY.get(name, []), "offline=true", "executor=serial")
    assert answer.code == 0, (
        f"{name} must end well without data; if it is only too slow, add a tiny setting: {answer.err}"
    )
    assert f"\n## {name}: " in answer.out
    endings = [path.suffix for path in answer.files]
    assert {".csv", ".md", ".tex", ".json"} <= set(endings)
    for path in answer.files:
        assert path.stat().st_size > 0
        if path.suffix == ".csv":
            assert len(pd.read_csv(path).columns) >= 2
    (provenance,) = [path for path in answer.files if path.suffix == ".json"]
    content = json.loads(provenance.read_text(encoding="utf-8"))
    assert content["experiment"] == name
    declared = (configuration_folder() / f"experiment/{name}.yaml").read_text(encoding="utf-8")
    assert f"\nrunner: {content['configuration']['runner']}\n" in declared
    assert set(content["jobs"].values()) <= {"ok"}
    assert content["jobs"] or content["missing"]
    assert set(content) >= {"data", "computed_with", "written_with"}
    (found,) = kept
    check_jobs_behind(found)
    again = command(f"experiment={name}", *TINY.get(name, []), "offline=true", "executor=serial")
    assert f"{name}: {len(content['jobs'])} stored, 0 to run\n" in again.err, "nothing runs twice"


def check_jobs_behind(found: Findings) -> None:
    """Assert that each number names jobs that ran, and that nothing else does."""
    done = set(found.rows.loc[found.rows["status"] == "ok", "job"])
    numbers = {number for number, value in found.outcome.reproduced.items() if value is not None}
    for number in numbers:
        keys = found.outcome.jobs_behind(number)
        assert keys is None or (keys and set(keys) <= done and len(set(keys)) == len(keys)), number
    assert set(found.outcome.jobs) <= numbers | {number.partition("/")[0] for number in numbers}


def test_settings_of_experiments_that_are_gone() -> None:
    assert set(TINY) <= set(PROJECT.names("experiment"))


def test_table_6_without_data(command: Command, tmp_path: Path) -> None:
    answer = command("experiment=trimming/table6", "offline=true")
    assert answer.code == 0
    assert "## trimming/table6: data not available\n" in answer.out
    assert "Reported numbers: 45; reproduced: 45 not attempted.\n" in answer.out
    assert f"Data that could not be had ({WAY_OUT}):\n  bupa: file 'trimbn/bupa.net.cnf' is not available" in answer.out
    compared = pd.read_csv(tmp_path / "results/trimming/table6.csv")
    assert set(compared["verdict"]) == {"not attempted"}
    assert set(compared["reason"]) == {
        "data not available: anatomy, bupa, heart, hepatitis, ident, pima, voting",
    }
    rows = pd.read_csv(tmp_path / "results/trimming/table6_rows.csv")
    assert len(rows) == 126
    assert set(rows["status"]) == {"data not available"}
    assert rows["error"].str.endswith(WAY_OUT).all()
    page = (tmp_path / "results/trimming/table6.md").read_text(encoding="utf-8")
    assert page.count("- Data not available: ") == 7


# --- a user's own data


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A table of numbers and labels with missing values; declared in the folder `mine`."""
    random_numbers = random.Random(5)
    rows = []
    for number in range(120):
        ill = random_numbers.random() < 0.35
        dose = f"{random_numbers.gauss(3 + 2 * ill, 1):.2f}" if number % 11 else ""
        ward = random_numbers.choice(["north", "south & east", "west|50%"]) if number % 7 else "?"
        smoker = "true" if random_numbers.random() < 0.3 + 0.4 * ill else "false"
        rows.append(f'{number % 5},{dose},"{ward}",{smoker},{"ill" if ill else "well"}')
    folder = tmp_path / "mine/dataset"
    folder.mkdir(parents=True)
    path = folder / "clinic.csv"
    path.write_text("\n".join(["age,dose,ward,smoker,state", *rows]) + "\n", encoding="utf-8")
    (folder / "clinic.yaml").write_text("kind: csv\npath: clinic.csv\ntarget: state\n")
    return path


OWN = ("--config-dir", "mine", *CURVE, "datasets=[clinic]", "offline=true")


def test_a_users_own_data(command: Command, clinic: Path, tmp_path: Path) -> None:
    answer = command(*OWN, "budgets=[1,2,4]")
    assert answer.code == 0, answer.out + answer.err
    rows = pd.read_csv(tmp_path / "results/trimming/breast_cancer_rows.csv")
    assert rows["budget"].tolist() == [1, 2, 4]
    assert rows["agreement"].is_monotonic_increasing
    assert rows["agreement"].iloc[-1] == 1.0, "nothing is removed"
    assert (rows["test_accuracy"].iloc[-1], rows["test_agreement"].iloc[-1]) == (rows["full_test_accuracy"].iloc[0], 1)
    assert {name for text in rows["features"] for name in json.loads(text)} <= {"age", "dose", "ward", "smoker"}
    provenance = json.loads((tmp_path / "results/trimming/breast_cancer.json").read_text())
    assert list(provenance["data"]) == ["dataset/clinic"]


def test_changed_data_is_computed_again(command: Command, clinic: Path) -> None:
    command(*OWN)
    assert ": 2 stored, 0 to run" in command(*OWN).err
    clinic.write_text(clinic.read_text().replace("south & east", "south"))
    assert ": 0 stored, 2 to run" in command(*OWN).err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,c\n1,2,x\n", r"data set 'clinic': `target` must be a column of the data, got 'state'; the columns are"),
        ("age,state\n1,ill\n2,\n", r"the class column 'state' is missing in 1 of 2 rows"),
        ("age,state\n1,ill\n1,2,3,4,5\n", r"data set 'clinic': .*clinic\.csv must be a text table in UTF-8 with a"),
        ("", r"data set 'clinic': .*clinic\.csv must be a text table in UTF-8 with a header line"),
        (None, r"data set 'clinic': `path` must be an existing file, got '.*clinic\.csv'; correct it in"),
    ],
)
def test_a_bad_table_is_told(command: Command, clinic: Path, content: str | None, message: str) -> None:
    if content is None:
        clinic.unlink()
    else:
        clinic.write_text(content)
    answer = command(*OWN)
    assert answer.code == 2
    assert re.search(message, answer.err)
    assert "Traceback" not in answer.err


def test_facts_of_a_users_own_data_are_checked(command: Command, clinic: Path) -> None:
    declaration = clinic.with_suffix(".yaml")
    declaration.write_text(declaration.read_text() + "facts: {rows: 121}\n")
    answer = command(*OWN)
    assert answer.code == 2
    assert "data set 'clinic' is not what was declared (rows: declared 121, got 120)" in answer.err


def test_three_classes_fail_with_the_reason(command: Command, clinic: Path) -> None:
    clinic.write_text(clinic.read_text().replace(",well", ",unknown", 20))
    answer = command(*OWN)
    assert answer.code == 1
    assert "must be binary, got 3 classes" in answer.out


# --- failures


def test_failed_jobs_are_rows_with_their_error(command: Command, tmp_path: Path) -> None:
    answer = command(*CURVE, "positive=nonsense")
    assert answer.code == 1
    error = "ValueError: positive must be one of ['malignant', 'benign'], got 'nonsense'"
    assert "## trimming/breast_cancer: 2 of 2 jobs failed\n" in answer.out
    assert f"2 jobs failed, the first with: {error}\n" in answer.out
    rows = pd.read_csv(tmp_path / "results/trimming/breast_cancer_rows.csv")
    assert rows["status"].tolist() == ["failed", "failed"]
    assert rows["error"].str.strip().str.endswith(error).all()
    page = (tmp_path / "results/trimming/breast_cancer.md").read_text(encoding="utf-8")
    assert f"- 2 of 2 jobs failed, the first with: {error}\n" in page
    mended = command(*CURVE, "positive=malignant")
    assert (mended.code, ": 0 stored, 2 to run" in mended.err) == (0, True)


@pytest.fixture
def few_experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder with a quick experiment, one whose jobs fail and one that cannot be planned."""
    folder = tmp_path / "conf"
    shutil.copytree(configuration_folder(), folder)
    curve = (folder / "experiment/trimming/breast_cancer.yaml").read_text()
    curve = re.sub(r"budgets: .*", "budgets: [1]", curve).replace("${profile.splits}", "1")
    shutil.rmtree(folder / "experiment")
    for name, text in {
        "a/unplanned": curve.replace("[breast_cancer]", "[nowhere]"),
        "b/failing": curve.replace("positive: null", "positive: nonsense"),
        "trimming/table4": (configuration_folder() / "experiment/trimming/table4.yaml").read_text(),
    }.items():
        path = folder / "experiment" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(cli, "configuration_folder", lambda: folder)
    return folder


def test_the_rest_runs_when_an_experiment_fails(few_experiments: Path, command: Command, tmp_path: Path) -> None:
    answer = command("executor=serial", "offline=true")
    assert answer.code == 1
    summary = pd.read_csv(tmp_path / "results/summary.csv").set_index("experiment")
    assert summary.index.tolist() == ["a/unplanned", "b/failing", "trimming/table4"]
    assert summary.loc["a/unplanned", "status"].startswith("failed: dataset must be one of adult, ")
    assert summary.loc["b/failing", "status"] == "1 of 1 jobs failed"
    assert summary.loc["trimming/table4", ["status", "exact"]].tolist() == ["complete", 3]
    assert (tmp_path / "results/trimming/table4.csv").is_file()
    page = (tmp_path / "results/summary.md").read_text(encoding="utf-8")
    assert len([line for line in page.splitlines() if line.startswith("|")]) == 5
    assert f"{page.split(chr(10), 2)[2].strip()}\n" in answer.out


def test_nothing_runs_when_one_of_the_experiments_has_a_wrong_key(
    few_experiments: Path, command: Command, tmp_path: Path
) -> None:
    path = few_experiments / "experiment/z.yaml"
    path.write_text("# @package _global_\nrunner: trimbench.papers.trimming.table4:Table4\nthreshhold: 1\n")
    answer = command("executor=serial", "offline=true")
    assert answer.code == 2
    assert answer.err.startswith("experiment z: a key must be one of instances, threshold, got 'threshhold'; did you")
    assert not (tmp_path / "results").exists()


# --- interruption


def finished(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the inode and time of each record of a success."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in (folder / "jobs").rglob("*.json")
        if json.loads(path.read_bytes())["status"] == "ok"
    }


def without_seconds(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of Table 6 without what a clock has measured."""
    tables = {path.name: pd.read_csv(path) for path in sorted((folder / "trimming").glob("table6*.csv"))}
    compared = tables["table6.csv"]
    tables["table6.csv"] = compared[~compared["cell"].str.endswith("seconds")]
    return {
        name: frame.drop(columns=[column for column in frame if "seconds" in column]) for name, frame in tables.items()
    }


def test_a_killed_run_goes_on_where_it_was(command: Command, given_networks: Path, tmp_path: Path) -> None:
    networks = "networks=[bupa,pima,ident,anatomy,heart,voting]"
    words = ("experiment=trimming/table6", networks, "offline=true", "executor.workers=2")
    results = tmp_path / "results"
    enough = random.randint(1, 60)
    process = start(*words, folder=tmp_path)
    deadline = time.monotonic() + 60
    while len(list((results / "jobs").rglob("*.json"))) < enough:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = finished(results)
    assert enough <= len(before) < 108
    assert not (results / "trimming").exists()

    again = start(*words, folder=tmp_path)
    output, _ = again.communicate(timeout=120)
    assert again.returncode == 0, output
    assert f"{len(before)} stored, {108 - len(before)} to run" in output
    after = finished(results)
    assert len(after) == 108
    assert {name: after[name] for name in before} == before, "what was finished has not been touched"
    assert not list((results / "jobs").rglob("*.tmp"))

    assert command(*words[:3], "executor=serial", "results=undisturbed").code == 0
    ours, undisturbed = without_seconds(results), without_seconds(tmp_path / "undisturbed")
    assert list(ours) == [f"table6{part}.csv" for part in ("", "_rows", "_strictly_better", "_table")]
    for name, table in ours.items():
        pd.testing.assert_frame_equal(table, undisturbed[name], check_exact=True)


# --- the parts


@dataclass(frozen=True)
class Sample:
    """An experiment of one job for each data set and one without data."""

    datasets: list[str] = field(default_factory=list)
    seed: int = 0

    def cells(self, catalogue: Catalogue, cache: Cache) -> list[Cell]:
        cells = [Cell({"cell": "none"}, self._job(0.1))]
        for place, name in enumerate(self.datasets):
            declaration = declare_dataset(name, {"kind": "csv", "path": f"{name}.csv", "target": "y"})
            cells.append(Cell({"cell": name}, self._job(0.2 + place / 10), (declaration,)))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        return Outcome((Table("", "All", rows),))

    def _job(self, mass: float) -> Job:
        parameters: dict[str, Any] = {"instances": [[0.5, mass, 0.1]], "threshold": 0.5}
        return Job.create(jobs.achievable_agreement_of_table, parameters)


RUNNER = f"{__name__}:Sample"
SHARED = ("task", "seed")


def test_an_experiment_gets_the_shared_keys_that_it_has() -> None:
    values = {"runner": RUNNER, "task": "run", "seed": 7, "datasets": ["a"]}
    made = make_experiment("x", values, SHARED)
    assert (type(made).__name__, vars(made)) == ("Sample", {"datasets": ["a"], "seed": 7})
    with pytest.raises(ConfigurationError, match=r"experiment x: a key must be one of datasets, seed, got 'data'; did"):
        make_experiment("x", values | {"data": 1}, SHARED)


@pytest.mark.parametrize("runner", [None, "", "Sample", "nowhere:Sample", f"{__name__}:Absent", "json:dumps", ":x"])
def test_a_runner_that_is_none(runner: str | None) -> None:
    with pytest.raises(ConfigurationError, match=r"experiment x: runner must be 'module:class' of an experiment, got "):
        make_experiment("x", {"runner": runner}, SHARED)


def test_missing_data_costs_the_rows_that_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here.csv").write_text("a,y\n1,p\n2,q\n")
    cache = Cache((), tmp_path / "cache", offline=True)
    store = JobStore(tmp_path / "jobs")
    findings = run_experiment(
        "x", {}, Sample(["here", "away"]), Catalogue(()), cache, store, SerialExecutor(), "default"
    )
    assert findings.rows["cell"].tolist() == ["none", "here", "away"]
    assert findings.rows["status"].tolist() == ["ok", "ok", "data not available"]
    assert list(findings.missing) == ["away"]
    assert "`path` must be an existing file" in findings.rows["error"].iloc[2]
    assert findings.rows["agreement"].notna().tolist() == [True, True, False]
    assert (findings.failures, findings.first_failure) == (0, "")
    # Stored results are reported without their data.
    Path("here.csv").unlink()
    again = run_experiment("x", {}, Sample(["here", "away"]), Catalogue(()), cache, store, SerialExecutor(), "only")
    assert again.rows["status"].tolist() == ["ok", "ok", "missing"]
    assert again.missing == {}
    pd.testing.assert_frame_equal(again.rows.iloc[:2], findings.rows.iloc[:2], check_dtype=False)


def test_the_values_of_a_grid() -> None:
    check_axis("budgets", [1, 2])
    for wrong in ([], [1, 1], [0.5, 0.5]):
        with pytest.raises(ValueError, match=r"budgets must be a list of at least one value, each once, got \["):
            check_axis("budgets", wrong)
