"""Declarations and settings."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from trimbench.papers import configuration
from trimbench.papers.configuration import (
    Catalogue,
    ConfigurationError,
    build_settings,
    configuration_folder,
    plain,
    unknown,
)


@dataclass(frozen=True)
class Sample:
    names: list[str]
    rate: float
    count: int = 3
    label: str | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count must be 0 or more, got {self.count}")


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    for path, text in {
        "own/dataset/clinic.yaml": "kind: csv\npath: clinic.csv\ntarget: ill\n",
        "own/dataset/deep/one.yaml": "kind: csv\npath: ../x.csv\ntarget: ill\n",
        "own/dataset/digits.yaml": "kind: bundled\ndataset: breast_cancer\n",
        "own/dataset/list.yaml": "[1, 2]\n",
        "own/dataset/broken.yaml": "kind: [csv\n",
        "own/dataset/loop.yaml": "kind: ${kind}\n",
        "own/dataset/latin.yaml": b"kind: caf\xe9\n",
        "own/dataset/empty.yaml": "",
        "base/dataset/digits.yaml": "kind: bundled\ndataset: digits\n",
        "base/dataset/notes.txt": "no declaration",
        "base/network/tiny.yaml": "format: bif\n",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Catalogue((tmp_path / "own", tmp_path / "base"))


def test_names_are_those_of_all_folders(catalogue: Catalogue) -> None:
    assert catalogue.names("dataset") == [
        *("broken", "clinic", "deep/one", "digits", "empty", "latin", "list", "loop"),
    ]
    assert catalogue.names("network") == ["tiny"]
    assert catalogue.names("nothing") == []


def test_the_first_folder_wins(catalogue: Catalogue) -> None:
    assert catalogue.mapping("dataset", "digits")["dataset"] == "breast_cancer"
    assert Catalogue(catalogue.folders[1:]).mapping("dataset", "digits")["dataset"] == "digits"


def test_a_name_that_does_not_exist(catalogue: Catalogue) -> None:
    expected = "dataset must be one of broken, clinic, .*, got 'clinik'; did you mean 'clinic'?"
    with pytest.raises(ConfigurationError, match=re.escape("did you mean 'clinic'?")) as raised:
        catalogue.mapping("dataset", "clinik")
    assert re.match(expected, str(raised.value))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("list", r"list\.yaml must hold keys and values, got list"),
        ("broken", r"broken\.yaml cannot be read: "),
        ("loop", r"loop\.yaml cannot be read: "),
        ("latin", r"latin\.yaml cannot be read: "),
    ],
)
def test_a_declaration_that_cannot_be_read(catalogue: Catalogue, name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        catalogue.mapping("dataset", name)


def test_an_empty_declaration_misses_its_keys(catalogue: Catalogue) -> None:
    assert catalogue.mapping("dataset", "empty") == {}
    with pytest.raises(ValueError, match=r"data set 'empty'.*kind"):
        catalogue.dataset("empty")


def test_paths_start_at_their_file(catalogue: Catalogue, tmp_path: Path) -> None:
    assert catalogue.dataset_mapping("clinic")["path"] == str(tmp_path / "own/dataset/clinic.csv")
    assert catalogue.dataset_mapping("deep/one")["path"] == str(tmp_path / "own/dataset/x.csv")


def test_every_declaration_of_the_project_can_be_read() -> None:
    project = Catalogue((configuration_folder(),))
    assert len(project.names("dataset")) >= 8
    for name in project.names("dataset"):
        assert project.dataset(name).name == name
    for name in project.names("network"):
        assert project.network(name).name == name


def test_the_folder_is_found_in_both_layouts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "site" / "trimbench"
    package.mkdir(parents=True)
    monkeypatch.setattr(configuration, "__file__", str(package / "configuration.py"))
    with pytest.raises(ConfigurationError, match=r"no folder 'conf' beside or inside .*; install trimbench again"):
        configuration_folder()
    for folder in (tmp_path / "site" / "conf", package / "conf"):
        folder.mkdir()
        (folder / "config.yaml").write_text("a: 1\n")
        assert configuration_folder() == folder


def test_unknown_suggests_only_what_is_close() -> None:
    assert (
        str(unknown("task", ["run", "list"], "lst")) == "task must be one of list, run, got 'lst'; did you mean 'list'?"
    )
    assert str(unknown("task", ["run", "list"], "zzz")) == "task must be one of list, run, got 'zzz'"


settings = st.builds(
    Sample,
    names=st.lists(st.text(st.characters(codec="ascii", exclude_characters="${}\\"), max_size=8), max_size=4),
    rate=st.floats(allow_nan=False),
    count=st.integers(0, 2**40),
    label=st.none() | st.sampled_from(["a", "b c", "1", "null", "true"]),
    quick=st.booleans(),
)


@given(settings)
def test_settings_come_back_as_they_were(sample: Sample) -> None:
    assert build_settings(Sample, asdict(sample), "sample") == sample


def test_defaults_fill_what_is_left_out() -> None:
    assert build_settings(Sample, {"names": [], "rate": 1}, "sample") == Sample([], 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"cuont": 1},
            "sample: a key must be one of count, label, names, quick, rate, got 'cuont'; did you mean 'count'?",
        ),
        ({"names": "a"}, "sample: names must be a list, got 'a'; write names=[a]"),
        (
            {"rate": "fast"},
            "sample: rate has no valid value: Value 'fast' of type 'str' could not be converted to Float",
        ),
        ({"rate": None}, "sample: rate has no valid value: "),
        ({"rate": [1.0]}, "sample: rate has no valid value: "),
        ({"count": 1.5}, "sample: count has no valid value: "),
        ({"quick": "maybe"}, "sample: quick has no valid value: Value 'maybe' is not a valid bool"),
        ({"count": -1}, "sample: count must be 0 or more, got -1"),
    ],
)
def test_wrong_settings_are_told(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        build_settings(Sample, {"names": ["a"], "rate": 0.5, **change}, "sample")
    assert str(raised.value).startswith(message)


def test_a_setting_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"sample: rate has no valid value: .*missing mandatory value"):
        build_settings(Sample, {"names": []}, "sample")


def test_plain_resolves() -> None:
    assert plain(OmegaConf.create({"a": {"b": 2}, "c": "${a.b}"})) == {"a": {"b": 2}, "c": 2}
