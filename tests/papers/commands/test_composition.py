"""Composing many configurations quickly gives what Hydra composes one by one; the points of a sweep are its product."""

from __future__ import annotations

import hydra
import pytest

from trimbench.papers.commands.arguments import Composer
from trimbench.papers.commands.cli import first_point, points_of, sweep_name, swept_keys, value_of
from trimbench.papers.configuration import configuration_folder, plain
from trimbench.papers.validation import ConfigurationError

from ..command_line import PROJECT

EXPERIMENTS = [f"experiment={name}" for name in PROJECT.names("experiment")]
SETTINGS = ["profile=paper", "seed=3", "profile.splits=2", "executor=serial", "results='a b'", "offline=true"]


def test_every_experiment_is_composed_as_by_hydra() -> None:
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        composer = Composer(PROJECT)
        for experiment in EXPERIMENTS:
            slowly = plain(hydra.compose("config", overrides=[*SETTINGS, experiment]))
            assert composer.compose([*SETTINGS, experiment]) == slowly


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
        assert Composer(PROJECT).compose(words) == slowly


def test_a_composed_configuration_does_not_change_the_next() -> None:
    with hydra.initialize_config_dir(str(configuration_folder()), version_base="1.3"):
        composer = Composer(PROJECT)
        before = composer.compose(EXPERIMENTS[:1])
        composer.compose([*EXPERIMENTS[:1], "seed=9", "executor.workers=1"])
        assert composer.compose(EXPERIMENTS[:1]) == before


def test_the_points_of_a_sweep_are_all_combinations() -> None:
    words = ["a=1,2", "b=x", "c='p q',[r,s]"]
    points = [
        ["a=1", "b=x", "c='p q'"],
        ["a=1", "b=x", "c=[r,s]"],
        ["a=2", "b=x", "c='p q'"],
        ["a=2", "b=x", "c=[r,s]"],
    ]
    assert points_of(words) == points
    assert swept_keys(words) == ["a", "c"]
    assert points_of(["a=range(1,4)"]) == [["a=1"], ["a=2"], ["a=3"]]
    assert first_point(["-m", "--config-dir", "x", *words]) == ["--config-dir", "x", *points[0]]


def test_values_of_numbers_are_numbers() -> None:
    texts = ("0.4", "3", "[0.5]", "[1,2]", "[x]", "'a b'", "x")
    assert [value_of(text) for text in texts] == [0.4, 3, 0.5, "[1,2]", "[x]", "a b", "x"]


def test_a_sweep_is_named_after_experiments_and_settings() -> None:
    words = ["task=report", "executor=serial", "threshold=0.4,0.5", "experiment=trimming/table4", "results=x"]
    assert sweep_name(words) == "trimming_table4,threshold=0.4+0.5"


def test_an_interval_is_no_list_of_points() -> None:
    with pytest.raises(ConfigurationError, match=r"must have values separated by commas or a range, got a=interval"):
        points_of(["a=interval(0,1)"])
