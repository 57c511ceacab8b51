"""The command line: what it runs, what it writes, and how it says that something does not exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
from hydra._internal.utils import get_args_parser

from trimbench.papers.commands import cli
from trimbench.papers.commands.arguments import OPTIONS
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.errors import DataUnavailable
from trimbench.papers.data.availability import is_here, obstacle
from trimbench.papers.execution.executors import TARGETS
from trimbench.papers.study.running import fetch

from .command_line import Answer, results

Command = Callable[..., Answer]

PROJECT = Catalogue((configuration_folder(),))
FIRST = PROJECT.names("experiment")[0]
EXPERIMENTS = ", ".join(PROJECT.names("experiment"))
EXECUTORS = ", ".join(PROJECT.names("executor"))
NETWORKS = ", ".join(PROJECT.names("network"))
SHARED = "cache_mode, executor, experiment, offline, profile, results, seed, task"
PROFILE = ", ".join(sorted(PROJECT.mapping("profile", "quick")))
T4, T6, CURVE = "experiment=trimming/table4", "experiment=trimming/table6", "experiment=trimming/breast_cancer"
NO = "a setting must be key=value, without spaces, got"
UN = f"experiment must be one of {EXPERIMENTS}"
SMALL = (CURVE, "budgets=[1,2]", "splits=1", "evaluation_limit=10", "executor=serial")

# What a user may get wrong, and the start of the answer.
MISTAKES = [
    ("experiment=trimming/tabel6", f"experiment must be one of {EXPERIMENTS}, got 'trimming/tabel6'; did you mean"),
    ("experiment=trimming", f"experiment must be one of {EXPERIMENTS}, got 'trimming'"),
    ("experiment=null", f"experiment must be one of {EXPERIMENTS}, got 'null'"),
    ("experiment=", f"experiment must be one of {EXPERIMENTS}, got ''"),
    ("experiment=[trimming/table4]", f"experiment must be one of {EXPERIMENTS}, got '[trimming/table4]'"),
    ("experiment=trimming/table4,trimming/table6", "Ambiguous value for argument"),
    ("sed=3", f"key must be one of {SHARED}, got 'sed'; did you mean 'seed'?; keys of an experiment need experiment="),
    ("splits=3", f"key must be one of {SHARED}, got 'splits'"),
    (f"{T6} threshold=0.3", "key must be one of budget_divisor, cache_mode, "),
    ("executor.wrkers=2", "executor.key must be one of _target_, timeout, workers, got 'wrkers'; did you mean"),
    ("executor.workers.most=2", "executor.key must be one of _target_, timeout, workers, got 'workers.most'"),
    ("profile.split=2", f"profile.key must be one of {PROFILE}, got 'split'"),
    ("cache_mode.more=1", f"key must be one of {SHARED}, got 'cache_mode.more'"),
    ("+foo=3", f"experiment {FIRST}: a key must be one of "),
    (f"{T6} +foo=3", "experiment trimming/table6: a key must be one of budget_divisor, engine, networks, thresholds, "),
    ("+executor.foo=3", "executor: a key must be one of timeout, workers, got 'foo'"),
    ("executor=proceses", f"executor must be one of {EXECUTORS}, got 'proceses'; did you mean 'processes'?"),
    ("executor=null", f"executor must be one of {EXECUTORS}, got 'null'"),
    ("~executor", f"executor must be one of {EXECUTORS}, got 'None'"),
    ("profile=papers", "profile must be one of paper, quick, got 'papers'; did you mean 'paper'?"),
    ("task=rum", "configuration: task must be one of fetch, list, report, run, got 'rum'; did you mean 'run'?"),
    ("cache_mode=onyl", "configuration: cache_mode must be one of default, ignore, only, got 'onyl'"),
    ("seed=abc", "configuration: seed has no valid value: Value 'abc'"),
    ("~seed", "configuration: seed has no valid value: "),
    ("offline=maybe", "configuration: offline has no valid value: Value 'maybe' is not a valid bool"),
    ("results=null", "configuration: results has no valid value: "),
    ("results=", "configuration: results must be a folder, got ''"),
    ("executor.workers=0", "executor: workers must be a positive int or None, got 0"),
    ("executor._target_=os.system", f"executor: _target_ must be one of {', '.join(sorted(TARGETS))}, got 'os.system'"),
    ("executor=serial executor.timeout=3", "executor: timeout must be None for the serial executor"),
    (f"{T6} networks=pima", "experiment trimming/table6: networks must be a list, got 'pima'; write networks=[pima]"),
    (f"{T6} networks=[pim]", f"network must be one of {NETWORKS}, got 'pim'"),
    (f"{T6} networks=[]", "experiment trimming/table6: networks must be a list of at least one value, each once, got"),
    (f"{T6} thresholds=[0.5,0.5]", "experiment trimming/table6: thresholds must be a list of at least one value, each"),
    (f"{T6} thresholds=[1.5]", "experiment trimming/table6: threshold must be a probability in [0, 1], got 1.5"),
    (f"{T6} budget_divisor=0", "experiment trimming/table6: budget_divisor must be 1 or more, got 0"),
    (f"{T6} engine=fast", "experiment trimming/table6: engine must be one of ['auto', 'dense', 'log_odds', 'sdd'],"),
    (f"{T6} runner=nowhere:Table6", "experiment trimming/table6: runner must be 'module:class' of an experiment, got"),
    (f"{T6} runner=json:Table6", "experiment trimming/table6: runner must be 'module:class' of an experiment, got"),
    (f"{T6} runner=Table6", "experiment trimming/table6: runner must be 'module:class' of an experiment, got 'Table6'"),
    (f"{T6} runner=json:dumps", "experiment trimming/table6: runner must be 'module:class' of an experiment, got"),
    (f"{T4} threshold=high", "experiment trimming/table4: threshold has no valid value: Value 'high'"),
    (f"{T4} instances=[]", "experiment trimming/table4: instances must have at least one entry, got []"),
    (f"{T4} instances=[[0.5,0.1]]", "experiment trimming/table4: instances must each be [posterior, positive mass, "),
    (f"{CURVE} datasets=[breast]", "dataset must be one of "),
    (f"{CURVE} budgets=[]", "experiment trimming/breast_cancer: budgets must be a list of at least one value"),
    (f"{CURVE} budgets=[-1]", "experiment trimming/breast_cancer: budgets must be numbers >= 0, got [-1]"),
    (f"{CURVE} splits=0", "experiment trimming/breast_cancer: splits must be 1 or more, got 0"),
    (f"{CURVE} test_fraction=1", "experiment trimming/breast_cancer: test_fraction must be between 0 and 1, got 1.0"),
    (f"{CURVE} smoothing=-1", "experiment trimming/breast_cancer: smoothing must be a number >= 0, got -1.0"),
    (f"{CURVE} evaluation_limit=0", "experiment trimming/breast_cancer: evaluation_limit must be 1 or more, or null"),
    (f"task=list {T6} engine=fast", "experiment trimming/table6: engine must be one of"),
    ("task=list +foo=1", f"experiment {FIRST}: a key must be one of"),
    (f"-m {T4},trimming/table6 sed=3", "key must be one of cache_mode, executor, experiment, instances, "),
    ("--config-dir nowhere", "Additional config directory"),
    ("foo", f"{NO} 'foo'; for example experiment=trimming/table4"),
    ("=3", f"{NO} '=3'; for example"),
    ("trimming/table4", f"{NO} 'trimming/table4'; write {T4}\n"),
    ("experiment trimming/table4", f"{NO} 'experiment'; write {T4}\n"),
    ("experiment= trimming/table4", f"{NO} 'trimming/table4'; write {T4}\n"),
    ("experiment =trimming/table4", f"{NO} 'experiment'; write {T4}\n"),
    ("experiment:trimming/table4", f"{NO} 'experiment:trimming/table4'; write"),
    ("experiment==trimming/table4", f"{NO} 'experiment==trimming/table4'; wr"),
    ("experiment tabel4", f"{NO} 'experiment'; write experiment=..., where {UN}"),
    ("table6", f"{NO} 'table6'; write {T6}\n"),
    ("list", f"{NO} 'list'; write task=list\n"),
    (f"{T4} lst", f"{NO} 'lst'; write task=list\n"),
    ("task", f"{NO} 'task'; write task=..., where task must be one of fetch, "),
    ("seed 3", f"{NO} 'seed'; write seed=3\n"),
    ("--experiment trimming/table4", f"settings are written without dashes, got '--experiment'; write {T4}\n"),
    ("--experiment x", f"settings are written without dashes, got '--experiment'; write experiment=..., where {UN}"),
    ("--profile=paper", "settings are written without dashes, got '--profile=paper'; write profile=paper\n"),
    ("--resume", "an option must be one of --cfg, "),
    (f"{T4} --cfg", "--cfg must have a value, got none; write --cfg job|hydra|all\n"),
    (f"{T4} --cfg jobs", "--cfg must be one of all, hydra, job, got 'jobs'; did you mean 'job'?\n"),
    (f"{T4}.yaml", f"{UN}, got 'trimming/table4.yaml'; did you mean 'trimming/table4'?\n"),
    ("experiment=table4", f"{UN}, got 'table4'; did you mean 'conformant/table4' or 'trimming/table4'?\n"),
    ("exeriment=trimming/table4", f"key must be one of {SHARED}, got 'exeriment'; did you mean 'experiment'?"),
    ("profle=paper", f"key must be one of {SHARED}, got 'profle'; did you mean 'profile'?"),
    ("task=lst", "configuration: task must be one of fetch, list, report, run, got 'lst'; did you mean 'list'?"),
    (f"{T6} thresholds=[0.5", "the value of thresholds must be a number, a word, a list [a,b] or a text in quotes"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_a_mistake_is_told_and_nothing_is_written(command: Command, tmp_path: Path, words: str, message: str) -> None:
    answer = command(*words.split())
    assert answer.err.startswith(message)
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


def test_the_options_are_those_of_the_configuration_system() -> None:
    parsed = {name: action for action in get_args_parser()._actions for name in action.option_strings}
    assert set(OPTIONS) == set(parsed)
    for name, values in OPTIONS.items():
        takes_none = parsed[name].nargs == 0
        assert values == (() if takes_none else parsed[name].choices and tuple(parsed[name].choices))


def test_an_option_may_follow_a_setting_and_have_its_value_left_out(command: Command) -> None:
    assert command(T4, "--cfg=job").code == command("--info", "config", T4).code == command(T4, "-i").code == 0


def test_the_version_is_that_of_the_project(command: Command) -> None:
    assert re.fullmatch(r"trimbench \d+\.\d+\.\d+\S*\n", command("--version").out)


def test_a_key_of_a_users_own_experiment_is_known(command: Command, tmp_path: Path) -> None:
    own = tmp_path / "mine/experiment/mine"
    own.mkdir(parents=True)
    shutil.copy(configuration_folder() / "experiment/trimming/table4.yaml", own / "t4.yaml")
    for option in (["--config-dir", "mine"], ["--config-dir=mine"], ["-cd", str(tmp_path / "mine")]):
        wrong_key = command(*option, "experiment=mine/t4", "instnces=[]")
        assert "instances" in wrong_key.err.partition(", got")[0]
        assert "did you mean 'instances'?" in wrong_key.err
        wrong_name = command(*option, "experiment=mine/t5")
        listed = ", ".join(sorted(["mine/t4", *EXPERIMENTS.split(", ")]))
        assert wrong_name.err.startswith(f"experiment must be one of {listed}, got 'mine/t5'")
        assert wrong_key.code == wrong_name.code == 2
    assert command(*option, "experiment=mine/t4", "executor=serial").out.startswith("\n## mine/t4: complete\n")
    assert (tmp_path / "results/mine/t4.csv").is_file()


def test_a_file_that_is_no_yaml(command: Command, tmp_path: Path) -> None:
    for group, name in (("experiment", "odd"), ("reported", "odd")):
        path = tmp_path / "mine" / group / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text("a: [1\n")
        words = [f"experiment={name}"] if group == "experiment" else [T4]
        answer = command("--config-dir", "mine", *words)
        assert (answer.code, "odd.yaml" in answer.err, "Traceback" in answer.err) == (2, True, False)
        path.unlink()


def test_a_results_folder_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    answer = command(T4, "results=taken", "executor=serial")
    assert answer.err == (
        f"results must be a folder that can be written, got 'taken', and {tmp_path / 'taken'} cannot; choose another\n"
    )
    assert answer.code == 2
    inside = command(T4, "results=taken/inside", "executor=serial")
    assert (inside.code, inside.err.startswith("results must be a folder that can be written")) == (2, True)


def test_a_cache_that_is_no_folder(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "taken"))
    answer = command(T4, "executor=serial")
    assert answer.err.startswith("TRIMBENCH_CACHE must name a folder that exists or can be created, got")
    assert answer.code == 2


def test_a_cache_that_does_not_exist_is_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cahce"))
    note = f"TRIMBENCH_CACHE names a folder that does not exist, '{tmp_path / 'cahce'}': an empty one is made.\n"
    assert command("task=list", T4).err == note
    assert command("task=list", T4).err == ""


@pytest.mark.parametrize("words", [(T4,), ()])
def test_an_executor_that_cannot_run_here_ends_the_run(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    answer = command("executor=slurm", "offline=true", *words)
    assert answer.code == 1
    last = answer.err.splitlines()[-1]
    assert last.startswith("executor: the tasks could not be given to 'slurm': ")
    assert last.endswith("; run where sbatch is, or use executor=processes")
    assert "Traceback" not in answer.out + answer.err


def test_a_reader_that_has_seen_enough_gets_no_message() -> None:
    quiet = subprocess.run(
        [f"'{sys.executable}' -m trimbench --help | true"], shell=True, capture_output=True, text=True, check=True
    )
    assert quiet.stderr == ""


def test_ctrl_c_says_how_to_go_on(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.TASKS, "run", stop)
    answer = command(T4)
    assert answer.code == 130
    assert answer.err == "\nStopped. Finished jobs are stored; the same command goes on from there.\n"


def test_help_and_configuration_are_shown(command: Command) -> None:
    assert "trimbench experiment=trimming/table6       one table or figure" in command("--help").out
    shown = command(T6, "thresholds=[0.2]", "--cfg", "job")
    assert shown.code == 0
    assert "thresholds:\n- 0.2\n" in shown.out


def test_report_gives_the_same_bytes(command: Command, tmp_path: Path) -> None:
    assert command(*SMALL).code == 0
    before = results(tmp_path / "results")
    assert {Path(name).suffix for name in before} == {".csv", ".md", ".tex", ".png", ".pdf"}
    shutil.rmtree(tmp_path / "results/trimming")
    answer = command("task=report", *SMALL)
    assert (answer.code, answer.err) == (0, "")
    assert results(tmp_path / "results") == before


def test_report_without_stored_results_leaves_files_alone(command: Command, tmp_path: Path) -> None:
    command(T4, "executor=serial")
    before = results(tmp_path)
    assert "results/trimming/table4.csv" in before
    shutil.rmtree(tmp_path / "results/jobs")
    for name, n_jobs in ((T4, 1), (T6, 126), (CURVE, 30)):
        answer = command("task=report", name)
        assert answer.code == 1
        assert f": {n_jobs} of {n_jobs} jobs missing\n" in answer.out
        assert "Nothing is stored of what was asked for, so nothing was written" in answer.out
    assert command("task=report").code == 1
    assert results(tmp_path) == before


def test_report_names_the_profile_that_is_stored(command: Command) -> None:
    few = (CURVE, "budgets=[1]", "evaluation_limit=10", "executor=serial")
    paper = ("profile=paper", "profile.splits=1", "seed=7")
    hint = "\nThis is profile=quick; of trimming/breast_cancer jobs are stored for profile=paper: add profile=paper to"
    assert "are stored for profile" not in command(*few, *paper).out
    absent = command("task=report", *few)
    assert "No job of it is stored for profile=quick" in absent.out
    assert hint in absent.out
    assert "add profile" not in command("task=report", *few, *paper).out
    part = command("task=report", *few, "seed=7")
    assert "jobs missing, 1 of " in part.out
    assert hint in part.out
    again = command("task=report", *few, "seed=7")
    assert "\nJobs are missing for profile=quick; if they ran with another one, add it: profile=paper.\n" in again.out


def test_report_of_a_part(command: Command, tmp_path: Path) -> None:
    command(T4, "executor=serial")
    assert command("task=report").code == 0
    summary = pd.read_csv(tmp_path / "results/summary.csv").set_index("experiment")
    assert summary.loc["trimming/table4", "status"] == "complete"
    assert summary.loc["trimming/table6", "not attempted"] == 45


def test_report_of_failed_jobs_shows_the_failure(command: Command) -> None:
    assert command(*SMALL, "positive=nonsense").code == 1
    answer = command("task=report", *SMALL, "positive=nonsense")
    assert answer.code == 1
    assert "2 jobs failed, the first with: " in answer.out


def test_list_says_what_is_stored_and_what_data_is_missing(command: Command) -> None:
    assert re.search(r"\| trimming/table4 +\| +1 \| +0 \| +0 \| +1 \|.*\| none needed", command("task=list").out)
    command(T4, "executor=serial")
    command(*SMALL, "positive=nonsense")
    listed = command("task=list", "offline=true")
    assert listed.code == 0
    assert re.search(r"\| trimming/table4 +\| +1 \| +1 \| +0 \| +0 \| 0 s +\| none needed", listed.out)
    assert re.search(
        r"\| trimming/table6 +\| +126 \| +0 \| +0 \| +126 \|.*\| 7 of 7 to be fetched \(trimbench task=fetch\): bupa,",
        listed.out,
    )
    assert re.search(r"\| trimming/breast_cancer +\| +30 \| +0 \| +0 \| +30 \|.*\| here", listed.out)
    failed = command("task=list", *SMALL, "positive=nonsense")
    assert re.search(r"\| trimming/breast_cancer +\| +2 \| +0 \| +2 \| +0 \|.*\| here", failed.out)


def test_list_goes_on_after_an_experiment_that_cannot_be_planned(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine/experiment"
    folder.mkdir(parents=True)
    curve = (configuration_folder() / "experiment/trimming/breast_cancer.yaml").read_text()
    (folder / "odd.yaml").write_text(curve.replace("[breast_cancer]", "[nowhere]"))
    listed = command("--config-dir", "mine", "task=list")
    assert listed.code == 0
    assert re.search(r"\| odd +\| +– \| +– \| +– \| +– \| – +\| cannot be planned: dataset must be one of", listed.out)
    assert re.search(r"\| trimming/table4 +\| +1 \| +0 \| +0 \| +1 \|", listed.out)
    assert command("--config-dir", "mine", "task=list", "experiment=odd").code == 2


def test_fetch_without_a_network(command: Command) -> None:
    answer = command("task=fetch", "offline=true")
    assert answer.code == 1
    for name in ("breast_cancer", "digits", "example_simulated"):
        assert f"{name}: here, verified\n" in answer.out
    for name in PROJECT.names("network"):
        assert f"\n{name}: FAILED: file '" in answer.out
    assert len(answer.out.splitlines()) == len(PROJECT.names("dataset")) + len(PROJECT.names("network"))
    assert "run `trimbench task=fetch` with a network, or set TRIMBENCH_CACHE" in answer.out


def test_fetch_of_one_experiment(command: Command) -> None:
    assert command("task=fetch", CURVE).out == "breast_cancer: here, verified\n"
    assert command("task=fetch", T4).out == ""
    answer = command("task=fetch", T6, "networks=[pima]", "offline=true")
    assert (answer.code, answer.out[:14]) == (1, "pima: FAILED: ")


@pytest.mark.parametrize("trouble", ["folder", "link"])
def test_a_file_that_cannot_be_read_is_one_missing_data_set(command: Command, tmp_path: Path, trouble: str) -> None:
    path = tmp_path / "xdg/trimbench/files/trimbn/pima.net.cnf"
    if trouble == "folder":
        path.mkdir(parents=True)
        reason = f"{path} cannot be read (Is a directory)"
    else:
        path.parent.mkdir(parents=True)
        path.symlink_to(tmp_path / "nowhere")
        reason = f"{path} is a link to a file that does not exist"
    reason += "; make it readable, or remove it and run `trimbench task=fetch`"
    small = (T6, "networks=[pima,bupa]", "offline=true")
    listed = command("task=list", *small)
    assert listed.code == 0
    assert f"| pima: {reason}; 1 of 2 to be fetched (trimbench task=fetch): bupa |" in listed.out
    assert command(*small, "executor=serial").out.count(f"  pima: {reason}\n") == 1
    assert f"pima: FAILED: {reason}\n" in command("task=fetch", *small).out


def test_a_folder_that_cannot_be_searched_is_missing_data(monkeypatch: pytest.MonkeyPatch) -> None:
    need = PROJECT.network("pima")

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    cache = Cache((Path("closed"),), Path("closed"), offline=True)
    assert not is_here(need, cache)
    with pytest.raises(DataUnavailable, match=r"Permission denied: 'closed/files/trimbn/pima\.net\.cnf'"):
        fetch(need, cache)


def test_a_data_set_that_cannot_be_read(tmp_path: Path) -> None:
    cache = Cache((tmp_path,), tmp_path, offline=True)
    for name, path in (
        ("adult", "openml/org/openml/www/datasets/1590/dataset_1590.pq"),
        ("colon", "files/colon/colon.csv.gz"),
    ):
        assert obstacle(PROJECT.dataset(name), cache) == ""
        (tmp_path / path).mkdir(parents=True)
        assert f"{tmp_path / path} cannot be read" in obstacle(PROJECT.dataset(name), cache)
    other = tmp_path / "other"
    (other / path).parent.mkdir(parents=True)
    (other / path).touch()
    assert obstacle(PROJECT.dataset("colon"), Cache((tmp_path, other), other)) == "", "there is a good copy"


def test_fetch_reads_what_is_there(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declaration = (configuration_folder() / "network/pima.yaml").read_text()
    files = tmp_path / "cache/files/trimbn"
    files.mkdir(parents=True)
    for end in ("cnf", "lmap", "search"):
        (files / f"pima.net.{end}").write_text(end)
        declared = re.search(rf"pima\.net\.{end}\n    sha256: \"(\w+)\"", declaration)
        assert declared
        declaration = declaration.replace(declared[1], sha256(end.encode()).hexdigest())
    (tmp_path / "mine/network").mkdir(parents=True)
    (tmp_path / "mine/network/pima.yaml").write_text(declaration)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    words = ("--config-dir", "mine", "task=fetch", T6, "networks=[pima]", "offline=true")
    assert command(*words).out == "pima: here, verified\n"
    (files / "pima.net.lmap").write_text("damaged")
    answer = command(*words)
    assert (answer.code, answer.out[:38]) == (1, "pima: FAILED: file 'trimbn/pima.net.lm")


def test_a_sweep_has_a_folder_for_each_point(command: Command, tmp_path: Path) -> None:
    answer = command("-m", T4, "threshold=0.5,0.55", "executor=serial", "results=out")
    assert answer.code == 0
    sweeps = tmp_path / "out/sweeps"
    names = [f"executor=serial,experiment=trimming_table4,threshold={value}" for value in ("0.5", "0.55")]
    assert sorted(path.name for path in sweeps.iterdir() if path.is_dir()) == names
    for name, threshold in zip(names, (0.5, 0.55), strict=True):
        provenance = json.loads((sweeps / name / "trimming/table4.json").read_text())
        assert provenance["configuration"]["threshold"] == threshold
    assert len(list((tmp_path / "out/jobs").rglob("*.json"))) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing beside the results"
    before = results(tmp_path / "out")
    assert command("-m", "task=report", T4, "threshold=0.5,0.55", "executor=serial", "results=out").code == 0
    assert results(tmp_path / "out") == before


def test_a_sweep_goes_on_after_a_point_that_fails(command: Command, tmp_path: Path) -> None:
    answer = command("-m", *SMALL, "positive=nonsense,malignant")
    assert answer.code == 1
    pages = sorted((tmp_path / "results/sweeps").rglob("breast_cancer.md"))
    assert ["positive=malignant" in str(page) for page in pages] == [True, False]
    assert [page.with_suffix(".png").is_file() for page in pages] == [True, False]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("offline=true,maybe", "configuration: offline has no valid value"),
        ("threshold=0.5,1.5", "experiment trimming/table4: threshold must be a probability in [0, 1], got 1.5"),
        ("executor.workers=1,0", "executor: workers must be a positive int or None, got 0"),
    ],
)
def test_a_wrong_point_of_a_sweep_is_found_before_the_first_runs(
    command: Command, tmp_path: Path, word: str, message: str
) -> None:
    answer = command("-m", T4, word)
    assert answer.code == 2
    assert answer.err.startswith(message)
    assert not list(tmp_path.rglob("table4*"))


def test_folders_of_a_sweep_have_names_that_file_systems_take(command: Command, tmp_path: Path) -> None:
    long = ",".join(["[0.5,0.01,0.015]"] * 40)
    answer = command("-m", "executor=serial", T4, f"instances=[{long}],[{long},[0.1,0,0]]")
    assert answer.code == 0
    names = [path.name for path in (tmp_path / "results/sweeps").iterdir() if path.is_dir()]
    assert len(names) == len(set(names)) == 2
    assert all(len(name.encode()) <= 255 for name in names)
