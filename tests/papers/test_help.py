"""`trimbench --help` says what there is, quickly and on one screen; of an experiment, what each setting means."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.test_package import loaded_by
from trimbench.papers.commands import cli
from trimbench.papers.configuration import NOT_SETTINGS, Catalogue, configuration_folder

CATALOGUE = Catalogue((configuration_folder(),))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def answer(*words: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(sys, "argv", ["trimbench", *words])
        cli.main()
        return capsys.readouterr().out.splitlines()

    return answer


def test_help_names_the_commands_and_loads_no_heavy_package() -> None:
    modules, text = loaded_by("from trimbench.papers.commands.cli import main; main()", "--help")
    assert modules == []
    assert "trimbench experiment=trimming/table6       run one table or figure" in text
    for part in (
        "task=list",
        "task=fetch",
        "task=report",
        "processes, ray, serial, slurm",
        "trimbench --help experiment",
    ):
        assert part in text


def test_help_fits_a_screen_and_offers_only_what_can_be_chosen(said: Any) -> None:
    lines = said("--help")
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if "dataset=" in line]


@pytest.mark.parametrize("name", CATALOGUE.names("experiment"))
def test_every_setting_of_an_experiment_is_described(name: str) -> None:
    settings = {*CATALOGUE.keys("experiment", name)} - {*NOT_SETTINGS, "defaults"}
    said = CATALOGUE.comments("experiment", name)
    assert not [key for key in settings if not said.get(key)]


def test_an_experiment_lists_its_settings_with_values_and_meanings(said: Any) -> None:
    lines = said("--help", "experiment=trimming/rows", "splits=7")
    assert "  splits=7                 random splits" in lines
    assert "  offline=false            never download" in lines
    assert max(map(len, lines[2:])) <= 80
    assert said("task=describe", "experiment=trimming/rows", "splits=7")[:17] == lines[:17]
    assert any("gap_rows=1000" in line for line in said("task=study", "--help"))
