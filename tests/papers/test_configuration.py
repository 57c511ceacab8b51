"""The configuration folder and what is declared in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from trimbench.papers import configuration
from trimbench.papers.configuration import Catalogue, configuration_folder, plain
from trimbench.papers.validation import ConfigurationError


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


def test_the_first_folder_wins_and_an_empty_file_has_no_keys(catalogue: Catalogue) -> None:
    assert catalogue.mapping("dataset", "digits")["dataset"] == "breast_cancer"
    assert catalogue.mapping("dataset", "empty") == {}
    assert Catalogue(catalogue.folders[1:]).mapping("dataset", "digits")["dataset"] == "digits"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clinik", r"^dataset must be one of broken, clinic, .*, got 'clinik'; did you mean 'clinic'\?$"),
        ("list", r"list\.yaml must hold keys and values, got list"),
        ("broken", r"broken\.yaml cannot be read: "),
        ("loop", r"loop\.yaml cannot be read: "),
        ("latin", r"latin\.yaml cannot be read: "),
    ],
)
def test_a_declaration_that_cannot_be_read(catalogue: Catalogue, name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        catalogue.mapping("dataset", name)


def test_paths_start_at_their_file(catalogue: Catalogue, tmp_path: Path) -> None:
    assert catalogue.dataset_mapping("clinic")["path"] == str(tmp_path / "own/dataset/clinic.csv")
    assert catalogue.dataset_mapping("deep/one")["path"] == str(tmp_path / "own/dataset/x.csv")


def test_the_folder_is_found_in_both_layouts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "site" / "trimbench" / "papers"
    package.mkdir(parents=True)
    monkeypatch.setattr(configuration, "__file__", str(package / "configuration.py"))
    with pytest.raises(ConfigurationError, match=r"no folder 'conf' beside or inside .*; install trimbench again"):
        configuration_folder()
    for folder in (tmp_path / "site" / "conf", package / "conf"):
        folder.mkdir()
        (folder / "config.yaml").write_text("a: 1\n")
        assert configuration_folder() == folder


def test_plain_resolves() -> None:
    assert plain(OmegaConf.create({"a": {"b": 2}, "c": "${a.b}"})) == {"a": {"b": 2}, "c": 2}
