"""Naive Bayes models as files: every bit comes back, a bad file is named, a failed save changes nothing."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import trimbench as tb
from tests.networks.random_models import naive_bayes_models, same_naive_bayes

TABLE = [[0.9, 0.1], [0.2, 0.8]]


@given(model=naive_bayes_models(odd_names=True))
@settings(max_examples=60, deadline=None)
def test_save_and_load_keep_every_bit(model: tb.NaiveBayes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "naive_bayes.json"
    model.save(path)
    assert same_naive_bayes(tb.NaiveBayes.load(path), model)


def broken(**changes: Any) -> dict[str, Any]:
    content = {
        "format": "trimbench.NaiveBayes/1",
        "class_variable": "c",
        "class_names": ["n", "y"],
        "prior": [0.5, 0.5],
        "features": [{"name": "x", "values": ["0", "1"], "likelihood": TABLE}],
    }
    return {key: value for key, value in (content | changes).items() if value != "absent"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
        (json.dumps(broken())[:-9], "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
        (b"\xff\xfe{}", "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
        ("[" * 100_000, "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
        ("[1]", "must have format 'trimbench.NaiveBayes/1', got None; was it saved by another class?"),
        (broken(format="trimbench.BayesianNetwork/1"), "got 'trimbench.BayesianNetwork/1'; was it saved by another"),
        (broken(prior="absent"), "lacks an entry or has one of the wrong type: KeyError('prior')"),
        (broken(features=[1]), "lacks an entry or has one of the wrong type: TypeError"),
        (broken(features=None), "lacks an entry or has one of the wrong type: TypeError"),
        (broken(class_names=5), "lacks an entry or has one of the wrong type: TypeError"),
        (broken(prior=[0.5, 0.6]), ": prior must sum to 1"),
        (broken(prior=["a", {}]), ": prior must be an array of numbers"),
        (broken(prior=[math.nan, 1.0]), ": prior must hold probabilities (finite, not negative), got nan"),
        (broken(class_variable=["c"]), ": feature_names and class_variable must be non-empty strings, got ['c']"),
    ],
)
def test_a_file_without_a_model_is_named(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "model.json"
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        tb.NaiveBayes.load(path)
    assert str(caught.value).startswith(str(path))


def test_every_way_to_cut_a_file_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    tb.NaiveBayes([0.5, 0.5], [TABLE]).save(path)
    text = path.read_text(encoding="utf-8")
    for length in range(len(text) - 1):  # only the newline at the end may be lost
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tb.NaiveBayes.load(path)


@pytest.mark.parametrize("moment", ["while writing", "while renaming"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = tmp_path / "model.json"
    old = tb.NaiveBayes([0.5, 0.5], [TABLE])
    old.save(path)

    def disk_full(content: object, stream: Any, **_: object) -> None:
        stream.write('{"format": ')
        raise OSError(28, "No space left on device")

    def not_allowed(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    if moment == "while writing":
        monkeypatch.setattr("trimbench.networks.json_files.json.dump", disk_full)
    else:
        monkeypatch.setattr(Path, "replace", not_allowed)
    with pytest.raises(OSError, match=r"No space left|Permission denied"):
        tb.NaiveBayes([0.1, 0.9], [TABLE]).save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]
    assert same_naive_bayes(tb.NaiveBayes.load(path), old)


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    tb.NaiveBayes([0.5, 0.5], [TABLE]).save(tmp_path / "model.json")
    assert (tmp_path / "model.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_absent_folders_and_files_are_operating_system_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tb.NaiveBayes([0.5, 0.5], [TABLE]).save(tmp_path / "absent" / "model.json")
    with pytest.raises(FileNotFoundError):
        tb.NaiveBayes.load(tmp_path / "absent.json")
