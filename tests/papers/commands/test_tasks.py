"""The tasks of the command line: report, list, fetch and compare."""

from __future__ import annotations

import re
import shutil
from hashlib import sha256
from pathlib import Path
from runpy import run_path

import pandas as pd
import pytest
import yaml

import trimbench as tb
from tests.networks.ace_encoder import encode_ace
from tests.reproduction.stored_runs import TABLE, run
from trimbench.papers.own_table.settings import STUDY
from trimbench.papers.trimming import examples
from trimbench.reproduction.commands.tasks import measured
from trimbench.reproduction.execution.executors import duration
from trimbench.reproduction.files import beside_runs
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting.runs import make_run
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import CURVE, PROJECT, SMALL, T4, T6, Command, results, write

F7 = ("experiment=trimming/figure7", "evidence_networks=[]", "substitutes=[]")
CPCS = (*F7, "networks=[cpcs54]")


def test_report_gives_the_same_bytes(command: Command, tmp_path: Path) -> None:
    command(*SMALL, code=0)
    before = results(tmp_path / "results")
    assert {Path(name).suffix for name in before} == {".csv", ".gz", ".md", ".tex", ".png"}
    shutil.rmtree(tmp_path / "results/quick/trimming")
    answer = command("task=report", *SMALL)
    assert (answer.code, answer.err) == (0, "")
    assert results(tmp_path / "results") == before


@pytest.mark.usefixtures("few", "undrawn")
def test_report_without_stored_results_leaves_files_alone(command: Command, tmp_path: Path) -> None:
    command(T4, "executor=serial")
    before = results(tmp_path)
    assert "results/quick/trimming/table4.csv" in before
    shutil.rmtree(tmp_path / "results/jobs")
    for name, n_jobs in ((T4, 1), (T6, 189), (CURVE, 30)):
        answer = command("task=report", name, code=1)
        assert f": {n_jobs} of {n_jobs} jobs missing\n" in answer.out
        assert "No results are stored for this command, so nothing was written" in answer.out
    command("task=report", code=1)
    assert results(tmp_path) == before


@pytest.mark.usefixtures("undrawn")
def test_report_names_the_profile_that_is_stored(command: Command) -> None:
    few = (CURVE, "budgets=[1]", "evaluation_limit=10", "executor=serial")
    paper = ("profile=paper", "profile.splits=1", "seed=7")
    hint = "\nThis was for profile=quick; for the run paper, add profile=paper.\n"
    assert "add profile" not in command(*few, *paper, code=0).out
    make_run(Path("results/study-a"), STUDY)
    absent = command("task=report", *few, code=1)
    assert "No job is stored for these settings. The files " in absent.out
    assert (hint in absent.out, absent.out.count("add profile")) == (True, 1)
    assert "add profile" not in command("task=report", *few, *paper, code=0).out
    part = command("task=report", *few, "seed=7")
    assert "jobs missing, 1 of " in part.out
    assert hint in part.out


@pytest.mark.usefixtures("undrawn")
def test_a_run_says_how_long_it_will_take(command: Command) -> None:
    per_job = measured(PROJECT, "quick")["trimming/breast_cancer"]["trim_learned"]
    first = command(*SMALL, code=0)
    assert f": 0 stored, 2 to run, about {duration(2 * per_job)} left\n" in first.err


@pytest.mark.usefixtures("undrawn")
def test_costs_are_measured_from_the_records_of_a_run(command: Command, tmp_path: Path) -> None:
    bench = run_path(str(project().configuration.parent / "scripts/bench/cost.py"))
    command(T4, "executor=serial", code=0)
    command(*SMALL, code=0)  # other settings than the profile's, which are in the names of its files
    found = bench["costs_of"](tmp_path / "results/quick", bench["stored"](tmp_path / "results/jobs"))
    assert {name: list(costs) for name, costs in found["quick"].items()} == {"trimming/table4": ["best_threshold"]}
    assert 0 < found["quick"]["trimming/table4"]["best_threshold"] < 5
    costs = {"a/b": {"f": 0.123456, "g": 20.9}}
    assert bench["as_yaml"](costs) == "a/b: {f: 0.12, g: 21.0}\n"


JOBS = r"\n\| [a-z_]+/\w+ +\| +(\d+) \|"
DONE = JOBS.replace("(\\d+)", "\\d+") + r" +(\d+) \|"


@pytest.mark.usefixtures("undrawn")
def test_list_says_what_is_stored_and_what_data_is_missing(command: Command) -> None:
    assert re.search(r"\| trimming/table4 +\| +1 \| +0 \| +0 \| +1 \|.*\| none needed", command("task=list", T4).out)
    command(T4, "executor=serial")
    command(*SMALL, "positive=nonsense")
    listed = command("task=list", "offline=true", code=0)
    assert re.search(r"\| trimming/table4 +\| +1 \| +1 \| +0 \| +0 \| 0 s +\| none needed", listed.out)
    assert re.search(
        r"\| trimming/authors_networks +\| +5 \| +0 \| +0 \| +5 \|.*\| [45] of \d+ to be fetched", listed.out
    )
    assert re.search(r"\| trimming/breast_cancer +\| +30 \| +0 \| +0 \| +30 \|.*\| here", listed.out)
    # Four experiments share jobs with another one, which run once.
    n_jobs, n_done = (sum(int(n) for n in re.findall(column, listed.out)) for column in (JOBS, DONE))
    n_all, n_all_done = map(int, re.findall(r"\| all, shared jobs once +\| +(\d+) \| +(\d+) ", listed.out)[0])
    assert n_jobs - 500 < n_all < n_jobs
    assert n_all_done == n_done == 1
    assert re.search(
        r"\nRunning the rest takes about \d[\d.]* min, (\d+ at a time|one after the other)\.\n", listed.out
    )
    failed = command("task=list", *SMALL, "positive=nonsense")
    assert re.search(r"\| trimming/breast_cancer +\| +2 \| +0 \| +2 \| +0 \|.*\| here", failed.out)
    assert "shared" not in failed.out
    assert "Running the rest" not in command("task=list", T4).out  # nothing is left


@pytest.mark.usefixtures("few")
def test_list_continues_after_an_experiment_that_cannot_be_planned(command: Command, tmp_path: Path) -> None:
    curve = (project().configuration / "experiment/trimming/breast_cancer.yaml").read_text()
    write(tmp_path / "mine", {"experiment/odd.yaml": curve.replace("[breast_cancer]", "[nowhere]")})
    listed = command("--config-dir", "mine", "task=list", code=0)
    assert re.search(r"\| odd +\| +– \| +– \| +– \| +– \| – +\| cannot be planned: dataset must be one of", listed.out)
    assert re.search(r"\| trimming/table4 +\| +1 \| +0 \| +0 \| +1 \|", listed.out)
    command("--config-dir", "mine", "task=list", "experiment=odd", code=2)


def test_fetch_without_a_network(command: Command) -> None:
    answer = command("task=fetch", "offline=true", code=1)
    for name in ("breast_cancer", "digits", "example_simulated"):
        assert f"{name}: here, verified (this installation)\n" in answer.out
    *here, way_out = [line for line in answer.out.splitlines() if not line.startswith("FAILED: ")]
    failed = [line for line in answer.out.splitlines() if line.startswith("FAILED: ")]
    missing = [name for line in failed for name in line.split(": ")[1].split(", ")]
    for name in PROJECT.names("network"):
        if PROJECT.declared("network", name)["format"] == "tables":
            assert f"{name}: here, given in its declaration" in here
        else:
            assert name in missing
    assert len({*missing, *(line.partition(":")[0] for line in here)}) == len(
        {*PROJECT.names("dataset"), *PROJECT.names("network")}
    )
    hosts = [line.split(": ")[2] for line in failed]
    assert len(set(hosts)) == len(hosts), "one line for each host"
    assert way_out.startswith("To get what is missing, run trimbench task=fetch without offline=true, or set TRI")


def test_fetch_of_one_experiment(command: Command) -> None:
    assert command("task=fetch", CURVE).out == "breast_cancer: here, verified (this installation)\n"
    *_, name, end = command("task=fetch", CURVE, "verify=true", code=0).out.splitlines()
    assert (name, end) == ("  results/verified.csv", "")
    found = {"data": "breast_cancer", "from": "this installation", "what it has": "as declared"}
    assert pd.read_csv(name.strip()).dropna(axis=1).to_dict("records") == [found]
    assert command("task=fetch", T4).out == "No data is needed.\n"
    assert command("task=fetch", T6, "networks=[pima]", "offline=true").out == "pima: here, given in its declaration\n"
    answer = command("task=fetch", T6, "networks=[pima]", "offline=true", "verify=true")
    assert (answer.code, answer.out) == (0, "pima: here, given in its declaration\n")
    answer = command("task=fetch", *CPCS, "offline=true")
    assert (answer.code, answer.out[:16]) == (1, "FAILED: cpcs54: ")


def test_a_file_that_cannot_be_read_is_one_missing_data_set(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "xdg/trimbench/files/uai2008/PE/uai-2006/BN_78.erg.gz"
    path.mkdir(parents=True)
    reason = f"{path} cannot be read (Is a directory); make it readable, or remove it and run trimbench task=fetch"
    small = (*F7, "networks=[cpcs54,s386]", "offline=true")
    listed = command("task=list", *small, code=0)
    assert f"| network/cpcs54: {reason}; 1 of 2 to be fetched (trimbench task=fetch): network/s386 |" in listed.out
    assert command(*small, "executor=serial").out.count(f"  network/cpcs54: {reason}\n") == 1
    assert f"FAILED: cpcs54: {reason}\n" in command("task=fetch", *small).out


def test_fetch_compares_figures_with_the_files_that_are_there(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tb.NaiveBayes([0.25, 0.75], [[[0.5, 0.5], [0.125, 0.875]]], feature_names=["F"], class_variable="C")
    texts = [*encode_ace(model), "$ 1 0.5 1\nd C\nf F 1\n"]
    ends = {f"own.net.{end}": text for end, text in zip(("cnf", "lmap", "search"), texts, strict=True)}
    write(tmp_path / "cache/files/own", ends)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    files = {
        name.rpartition(".")[2]: {
            "path": f"own/{name}",
            "url": f"http://127.0.0.1:9/{name}",
            "sha256": sha256(text.encode()).hexdigest(),
        }
        for name, text in ends.items()
    }
    declared = {"format": "tables", "target": "C", "positive": "0", "prior": [0.25, 0.75], "files": files}
    words = ("--config-dir", "mine", "task=fetch", T6, "networks=[own]", "offline=true")
    for rows, code, said in (
        ([0.5, [0.125, 0.875]], 0, "own: here, given in its declaration, equal to its files to the last bit"),
        (
            [[0.5, 0.5], [0.1250000000000001, 0.875]],
            1,
            "FAILED: own: network 'own': P(F | C) must be [[0.5, 0.5], [0.1250000000000001, 0.875]], got",
        ),
    ):
        write(tmp_path / "mine", {"network/own.yaml": yaml.safe_dump(declared | {"likelihoods": {"F": rows}})})
        assert command(*words, code=code).out.startswith(said)
    (tmp_path / "cache/files/own/own.net.lmap").write_text("damaged")
    assert command(*words, code=0).out == "own: here, given in its declaration\n"
    assert "FAILED: own: 127.0.0.1:9: " in command(*words[:-1], "verify=true", code=1).out


def test_a_number_that_is_not_reported_fails_the_experiment_alone(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples, "_EXAMPLE", "F1, F3")
    answer = command(T4, "executor=serial", code=1)
    assert "F1, F3/agreement is computed, but not reported; correct its row" in answer.out
    assert "did you mean 'F1, F2/agreement'?" in answer.out
    assert "Traceback" not in answer.out + answer.err


FILES = ["changes.csv", "changes.md", "differences.csv", "index.html"]


@pytest.fixture
def root(tmp_path: Path, few: None) -> Path:
    """A folder of results with two equal runs."""
    for name in ("one", "other"):
        write(run(tmp_path / "results" / name), {"run.json": '{"profile": "quick"}'})
    return tmp_path / "results"


def test_a_planted_number_differs(command: Command, root: Path) -> None:
    write(root, {"other/family/one_table.csv": TABLE.replace("0.25", "0.5")})
    answer = command("task=compare", "runs=[one,other]", code=0)
    assert "1 number differs (13 numbers in 1 experiment compared)." in answer.out
    folder = root / "comparisons/one__other"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert all(f"  results/comparisons/one__other/{name}\n" in answer.out for name in FILES)


def test_a_link_beside_the_runs_is_not_written_through(command: Command, root: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (root / "comparisons").symlink_to(tmp_path / "victim")
    answer = command("task=compare", "runs=[one,other]", code=2)
    assert "results/comparisons is a symbolic link, which is not followed" in answer.err
    assert [*(tmp_path / "victim").iterdir()] == []
    for name in ("audits", "checks", "archives"):
        (root / name).symlink_to(tmp_path / "victim")
        with pytest.raises(ConfigurationError, match=f"must not lead elsewhere: .*{name} is a symbolic link"):
            beside_runs(root, name, "any")


def test_runs_may_be_folders_elsewhere(command: Command, root: Path, tmp_path: Path) -> None:
    run(tmp_path / "elsewhere/mine")
    answer = command("task=compare", f"runs=[one,{tmp_path}/elsewhere/mine]", code=0)
    assert "No number differs (13 numbers in 1 experiment compared)." in answer.out
    command("task=compare", "runs=[one,elsewhere/mine]", code=0)
    names = [path.name for path in (root / "comparisons").iterdir()]
    assert len(names) == 2
    assert all(name.startswith("one__") for name in names)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("runs=[]", "names of two runs, got none; write runs=[a,b]; the runs in results are: one, other"),
        ("runs=[one]", "runs must be the names of two runs, got 'one'; write"),
        ("runs=[one,other,one]", "got 'one', 'other', 'one'; write"),
        ("runs=[one,othr]", "name finished runs or their folders, got 'othr'; the runs in results are: one, other"),
        ("runs=one", "runs must be a list, got one; write 'runs=[one]'"),
    ],
)
def test_wrong_runs_are_refused_with_those_that_exist(
    command: Command, root: Path, setting: str, complaint: str
) -> None:
    assert complaint in command("task=compare", setting, code=2).err
    assert not (root / "comparisons").exists()


def test_without_any_run_it_says_so(command: Command, few: None) -> None:
    assert "there is no run in results yet" in command("task=compare", "runs=[a,b]", code=2).err
