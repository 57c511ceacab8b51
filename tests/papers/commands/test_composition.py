"""Composing many configurations quickly gives what Hydra composes one by one; the points of a sweep are its product."""

from __future__ import annotations

import random
from typing import Any

import hydra
import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig

from trimbench.papers.commands.arguments import CommandLine, Composer
from trimbench.papers.commands.cli import _compose, sweep_name, value_of
from trimbench.papers.configuration import configuration_folder, plain
from trimbench.papers.validation import ConfigurationError

from ..command_line import PROJECT

EXPERIMENTS = [f"experiment={name}" for name in PROJECT.names("experiment")]
SETTINGS = ["profile=paper", "seed=3", "profile.splits=2", "executor=serial", "results='a b'", "offline=true"]


def read(*words: str) -> list[Override]:
    return CommandLine.of(words).first


def points_of(*words: str) -> list[list[str]]:
    return [[str(one.input_line) for one in point] for point in CommandLine.of(["-m", *words]).points]


def test_every_experiment_is_composed_as_by_hydra() -> None:
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        composer = Composer(PROJECT)
        for experiment in EXPERIMENTS:
            slowly = plain(hydra.compose("config", overrides=[*SETTINGS, experiment]))
            assert composer.compose(read(*SETTINGS, experiment)) == slowly


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
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        slowly = plain(hydra.compose("config", overrides=words))
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
    monkeypatch.setattr(hydra, "main", None)
    _compose(CommandLine.of(words.split()))
    assert len(composed) == 1


def test_the_points_of_a_sweep_are_all_combinations() -> None:
    words = ["a=1,2", "b=x", "c='p q',[r,s]"]
    points = [
        ["a=1", "b=x", "c='p q'"],
        ["a=1", "b=x", "c=[r,s]"],
        ["a=2", "b=x", "c='p q'"],
        ["a=2", "b=x", "c=[r,s]"],
    ]
    assert points_of(*words) == points
    line = CommandLine.of(["a=1,2", "--multi", "--config-d", "x", *words[1:]])
    assert line.swept == ["a", "c"]
    assert (line.for_hydra.config_dir, line.for_hydra.overrides, line.for_hydra.multirun) == ("x", points[0], False)
    assert CommandLine.of(["-m", "a=1,2", "a=4"]).swept == [], "of a repeated setting the last counts"
    assert points_of("a=range(1,4)") == [["a=1"], ["a=2"], ["a=3"]]


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
    assert (line.root, line.for_hydra.overrides[-1]) == ("study", "++types.age=number")
    given = [word, "task=run", "types.age=number"]
    assert CommandLine.of(given).for_hydra.overrides == given[1:]


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
OPTIONS = st.sampled_from(
    [["--config-dir", "x"], ["--config-d=x"], ["-cd", "x"], ["--package", "p"], ["-p", "a=1"], []]
)
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
        points_of(word)
