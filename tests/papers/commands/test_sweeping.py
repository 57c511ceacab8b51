"""Sweeps: which points there are, that each is composed as Hydra composes it, and one table of them all."""

from __future__ import annotations

import inspect
import json
import random
import time
from pathlib import Path
from typing import Any

import hydra
import pandas as pd
import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig

from trimbench.reproduction.commands.arguments import CommandLine, Composer
from trimbench.reproduction.commands.cli import _compose, sweep_name, value_of
from trimbench.reproduction.configuration import plain
from trimbench.reproduction.project import SHARED_CONFIGURATION, project
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import CURVE, OTHER, PROJECT, SMALL, T4, YET_OTHER, Command, results

pytestmark = pytest.mark.usefixtures("undrawn")

SERIAL = "executor=serial"


def sweep_folder(results_folder: Path) -> Path:
    """Return the folder of the only sweep."""
    (folder,) = (results_folder / "quick/sweeps").iterdir()
    return folder


def test_a_sweep_is_one_table_of_all_points(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("-m", *SMALL, "threshold=0.3,0.5", "results=out")
    answer = command(*words, code=0)
    folder = sweep_folder(tmp_path / "out")
    assert folder.name.startswith("trimming_breast_cancer__threshold-0.3-0.5__")
    assert pd.read_csv(folder / "sweep.csv").groupby("budget")["ECA"].nunique().min() == 2
    about = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    assert [point["swept"] for point in about["points"]] == [{"threshold": 0.3}, {"threshold": 0.5}]
    assert ("threshold" in about["configuration"], about["configuration"]["budgets"]) == (False, [1, 2])
    assert len(about["jobs"]) == 4
    assert {path.resolve() for path in answer.files} == set(folder.iterdir())
    *said, page = answer.out.splitlines()
    assert max(map(len, said)) <= 80
    assert page == f"  {(folder / 'index.html').relative_to(tmp_path)}"
    assert len(list((tmp_path / "out/jobs").rglob("*.json"))) == 4
    assert {path.name for path in tmp_path.iterdir()} - {"xdg"} == {"out"}, "nothing beside results and cache"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["jobs", "quick"]
    before = results(tmp_path / "out")
    everything = set((tmp_path / "out").rglob("*"))
    command(*words, "task=report", code=0)
    assert results(tmp_path / "out") == before
    assert set((tmp_path / "out").rglob("*")) == everything


def test_a_point_that_is_the_same_by_value_runs_once(command: Command, tmp_path: Path) -> None:
    answer = command("-m", T4, SERIAL, "seed=1,1,2", code=0)
    assert answer.err.startswith("seed=1,1,2: equal values run once, 2 of 3 are different.\n")
    assert "seed changes nothing here: no experiment that runs has a setting of this name" in answer.err
    folder = sweep_folder(tmp_path / "results")
    assert pd.read_csv(folder / "sweep_seeds.csv")["seed"].tolist() == [1, 2]
    assert pd.read_csv(folder / "sweep.csv")["seeds"].tolist() == [2]


def test_seeds_are_replications_and_a_further_one_costs_its_own_jobs(command: Command, tmp_path: Path) -> None:
    words = ("-m", *SMALL, "budgets=[1]", "threshold=0.3,0.5", "profile.splits=1")
    command(*words, "seed=1,2,3", code=0)
    records = {path: path.read_bytes() for path in (tmp_path / "results/jobs").rglob("*.json")}
    assert len(records) == 6
    answer = command(*words, "seed=1,2,3,4", code=0)
    after = {path: path.read_bytes() for path in (tmp_path / "results/jobs").rglob("*.json")}
    assert len(after) == 8, "one for each threshold"
    assert {path: after[path] for path in records} == records
    assert "Means over 4 seeds (1, 2, 3, 4), which are replications." in " ".join(answer.out.split())
    (folder,) = [one for one in (tmp_path / "results/quick/sweeps").iterdir() if "seed-1-2-3-4" in one.name]
    table, each = (pd.read_csv(folder / f"{name}.csv") for name in ("sweep", "sweep_seeds"))
    assert table["seeds"].tolist() == [4, 4]
    means = each.groupby("threshold")["ECA"].mean()
    assert table.set_index("threshold")["ECA"].to_dict() == pytest.approx(means.to_dict())
    assert (folder / "sweep_ECA_points.csv").read_text().startswith("series,x,y,low,high")


def test_many_points_take_little_more_than_their_jobs(command: Command, tmp_path: Path) -> None:
    seconds = []
    for last in (5, 65):
        began = time.process_time()
        command("-m", T4, f"seed=range(0,{last})", SERIAL, f"results=to{last}", code=0)
        seconds.append(time.process_time() - began)
    assert len(pd.read_csv(sweep_folder(tmp_path / "to65") / "sweep_seeds.csv")) == 65
    assert (seconds[1] - seconds[0]) / 60 < 0.1  # a fifth of that on a machine that does nothing else


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
        (("seed=1,x",), "configuration: seed must be a whole number, got 'x'"),
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


# Composing many configurations quickly gives what Hydra composes one by one; the points of a sweep are its product.


EXPERIMENTS = [f"experiment={name}" for name in PROJECT.names("experiment")]
SEARCHED = f"hydra.searchpath=['file://{project().configuration}']"
SETTINGS = ["profile=paper", "seed=3", "profile.splits=2", "executor=serial", "results='a b'", "offline=true"]


def read(*words: str) -> list[Override]:
    return CommandLine.of(words).first


def test_every_experiment_is_composed_as_by_hydra() -> None:
    with hydra.initialize_config_dir(str(SHARED_CONFIGURATION), version_base="1.3"):
        slowly = [plain(hydra.compose("config", overrides=[*SETTINGS, one, SEARCHED])) for one in EXPERIMENTS]
    composer = Composer(PROJECT)
    assert [composer.compose(read(*SETTINGS, experiment)) for experiment in EXPERIMENTS] == slowly


@pytest.mark.parametrize(
    "words",
    [
        ["executor.workers=1", "experiment=trimming/table4"],
        ["experiment=trimming/table6", "thresholds=[0.1]", "+extra=1"],
        ["experiment=selection_bias/simulation", "alpha=30", "prior.shape=0.5", "ks=[5,50]"],
        ["experiment=trimming/breast_cancer", "positive='a b'", "~engine"],
    ],
)
def test_settings_of_an_experiment_are_composed_as_by_hydra(words: list[str]) -> None:
    with hydra.initialize_config_dir(str(SHARED_CONFIGURATION), version_base="1.3"):
        slowly = plain(hydra.compose("config", overrides=[*words, SEARCHED]))
    assert Composer(PROJECT).compose(read(*words)) == slowly


def test_points_that_differ_in_values_are_composed_as_each_alone() -> None:
    swept = [
        "experiment=trimming/table6 seed=3 thresholds=[0.1],[0.2]",
        "experiment=conformant/digits profile.splits=3,4 missing=[0.1],[]",
        "experiment=trimming/table4 results=a,b instances=[[1,0,0]],[[0,1,0]]",
        "experiment=trimming/table6 seed=1,2 thresholds=[0.1],['${seed}'],'${thresholds}'",
    ]
    for words in swept:
        composer = Composer(PROJECT)
        for point in CommandLine.of(["-m", *words.split()]).points:
            try:
                alone = Composer(PROJECT).compose(point)
            except (ConfigurationError, HydraException) as error:
                with pytest.raises(type(error)):
                    composer.compose(point)
            else:
                assert composer.compose(point) == alone


@pytest.mark.parametrize(
    "words",
    [
        "",
        "experiment=trimming/table4 instances=[] executor.workers=1",
        "-m experiment=trimming/table4,trimming/table6 seed=1,2",
        "task=study data=x.csv target=y",
        "--help",
        "--help experiment=trimming/table4",
    ],
)
def test_a_command_is_composed_once(monkeypatch: pytest.MonkeyPatch, few: None, words: str) -> None:
    composed: list[object] = []
    compose = hydra.compose

    def counted(*given: Any, **named: Any) -> DictConfig:
        composed.append(given)
        return compose(*given, **named)

    monkeypatch.setattr(hydra, "compose", counted)
    monkeypatch.setattr(Composer, "_compose", inspect.unwrap(Composer._compose))  # not what other tests have composed
    _compose(CommandLine.of(words.split()))
    assert len(composed) == 1


def test_what_is_swept_is_known_and_the_first_point_has_first_values() -> None:
    line = CommandLine.of(["a=1,2", "--multi", "--config-d", "x", "b=x", "c='p q',[r,s]"])
    assert line.swept == ["a", "c"]
    assert [str(one.input_line) for one in line.first] == ["a=1", "b=x", "c='p q'"]
    assert (line.options.config_dir, line.options.multirun) == ("x", True)
    assert CommandLine.of(["-m", "a=1,2", "a=4"]).swept == [], "of a repeated setting the last counts"


# Of each line, what the project's own parser once made of it was lost, doubled or mislabelled.
SWEEPS = [
    ("x=range(0.1,0.5,0.1)", [0.1, 0.2, 0.3, 0.4]),
    ("x=range(0,0.9,0.3)", [0.0, 0.3, 0.6]),
    ("x=range(0.3,0,-0.1)", [0.3, 0.2, 0.1]),
    ("x=float(range(1,3))", [1.0, 2.0]),
    ("x=range(3)", [0, 1, 2]),
    ("x=no,on,Yes", ["no", "on", "Yes"]),
    ("x=[no],[on]", ["no", "on"]),
    ("x=true,null", [True, "null"]),
    ("x='1',\"2\"", ["1", "2"]),
    ("x=0x10,1_000", ["0x10", 1000]),
    ("x='a,b','it\\'s'", ["a,b", "it's"]),
    ("x=choice(a,b)", ["a", "b"]),
    ("x=sort(3,1,2)", [1, 2, 3]),
    ("x=[1,2],[3]", ["[1,2]", 3]),
    ("x={a:1},{a:2}", ["{a:1}", "{a:2}"]),
    ("x=a\\=b,c", ["a=b", "c"]),
    ("x='[1,2]','[a,b]'", ["[1,2]", "[a,b]"]),  # hydra-ecosystem/hydra#96
    ("x='bar,baz',q", ["bar,baz", "q"]),  # hydra-ecosystem/hydra#573
    ("x=1e-5,1e-9,1e-05", [1e-05, 1e-09]),  # hydra-ecosystem/hydra#999, and #1969: a value may be repeated
    ("x=1,true,'1',1.0,1", [1, True, "1"]),
]


@pytest.mark.parametrize(("word", "values"), SWEEPS)
def test_swept_values_are_those_that_hydra_reads(word: str, values: list[object]) -> None:
    found = [value_of(one) for (one,) in CommandLine.of(["--multirun", word]).points]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in values]


@pytest.mark.parametrize("word", ["task=study", "task='study'", 'task="study"'])
def test_a_study_has_a_root_of_its_own_however_it_is_written(word: str) -> None:
    line = CommandLine.of(["data=x.csv", word, "types.age=number"])
    assert (line.root, str(line.first[-1].input_line)) == ("study", "++types.age=number")
    given = [word, "task=run", "types.age=number"]
    assert [str(one.input_line) for one in CommandLine.of(given).first] == given[1:]


VALUES = st.one_of(
    st.sampled_from(
        ["1", "-2", "0.5", "1e-3", "no", "on", "null", "true", "a/b", "x=y", "'it\\'s'", '"a, b"', "[1,2]"]
    ),
    st.sampled_from(
        ["[]", "{a:1,b:[x,y]}", "''", "a\\,b", "'1'", "nan", "inf", "a b", "0x1F", "2020-01-01", "${seed}"]
    ),
    st.from_regex(r"[a-z0-9_.:-]{1,6}", fullmatch=True),
)
SWEPT = st.one_of(
    VALUES,
    st.lists(VALUES, min_size=2, max_size=3).map(",".join),
    st.lists(VALUES, min_size=1, max_size=3).map(lambda items: f"choice({','.join(items)})"),
    st.lists(st.integers(0, 9), min_size=1, max_size=4).map(lambda items: f"sort({','.join(map(str, items))})"),
    st.tuples(st.integers(-3, 3), st.integers(4, 9), st.integers(1, 3)).map(lambda ends: f"range{ends}"),
)
KEYS = st.sampled_from(["a", "b.c", "+d", "++e", "g@h", "seed", "threshold"])
OPTIONS = st.sampled_from([["--config-dir", "x"], ["--config-d=x"], ["-cd", "x"], ["--cfg", "job"], ["-c", "job"], []])
FLAGS = st.sampled_from(["-m", "--multirun", "--multi", "--mul"])


@settings(max_examples=300)
@given(st.lists(st.tuples(KEYS, SWEPT).map("=".join), min_size=1, max_size=4), OPTIONS, FLAGS, st.randoms())
def test_the_points_are_those_of_a_plain_hydra_application(
    words: list[str], option: list[str], flag: str, rng: random.Random
) -> None:
    try:
        overrides = OverridesParser.create().parse_overrides(words)
    except HydraException:
        with pytest.raises(ConfigurationError, match="a setting must be key=value"):
            CommandLine.of([flag, *words])
        return
    assert all(one.is_discrete_sweep() for one in overrides if one.is_sweep_override())
    last = {one.get_key_element().lstrip("+"): one for one in overrides}
    (expected,) = BasicSweeper.split_arguments(list(last.values()), None)
    parts = [[word] for word in words]
    for extra in ([flag], option):
        parts.insert(rng.randint(0, len(parts)), extra)
    mixed = [word for part in parts for word in part]
    try:
        plain = [OverridesParser.create().parse_overrides(point) for point in expected]
    except HydraException:  # a function has lost the quotes of a text
        with pytest.raises(HydraException):
            CommandLine.of(mixed)
        return
    line = CommandLine.of(mixed)

    def meant(points: list[list[Override]]) -> list[list[tuple[str, str]]]:
        return [[(one.get_key_element(), repr(one.value())) for one in point] for point in points]

    different: list[list[Override]] = []
    for point in plain:
        if not any(meant([point]) == meant([one]) or all(map(are_equal, point, one)) for one in different):
            different.append(point)
    assert meant(line.points) == meant(different)


def are_equal(one: Override, other: Override) -> bool:
    """Tell whether two settings have the same value; true is not 1."""
    values = one.value(), other.value()
    return values[0] == values[1] and len({isinstance(value, bool) for value in values}) == 1


def test_a_sweep_is_named_after_experiments_and_settings() -> None:
    words = ["task=report", "executor=serial", "threshold=0.4,0.5", "experiment=trimming/table4", "results=x"]
    assert sweep_name(CommandLine.of(["-m", *words]).written) == "trimming_table4__threshold-0.4-0.5"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a=interval(0,1)", r"must have values separated by commas or a range, got a=interval"),
        ("a=glob(*)", r"must have values separated by commas or a range, got a=glob"),
        ("a=sort(range(10,0,-3))", r"got a=sort\(range\(10,0,-3\)\); write a=1,2"),  # hydra-ecosystem/hydra#3228
        ("a=sort(range(1.3,0,-0.5))", r"must have values separated by commas or a range, got a=sort"),
        ("a=range(1,2,0)", r"a swept setting must have a value, got a=range\(1,2,0\); write a=1,2"),
        ("a=range(0,1,0.0)", r"a swept setting must have a value, got a=range\(0,1,0.0\); write a=1,2"),
        ("a=range(5,1)", r"a swept setting must have a value, got a=range\(5,1\); write a=1,2"),
    ],
)
def test_what_is_no_list_of_points_is_refused(word: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        _ = CommandLine.of(["-m", word]).points
