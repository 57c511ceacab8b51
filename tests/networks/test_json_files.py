"""Models as JSON files: every bit comes back, a bad file is named, a failed save changes nothing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import trimbench as tb
from tests.networks.random_models import naive_bayes_models, networks, same_naive_bayes
from tests.networks.test_bayesian_network import lawn, same

Model = tb.NaiveBayes | tb.BayesianNetwork
TABLE = [[0.9, 0.1], [0.2, 0.8]]
MODELS = [tb.NaiveBayes([0.5, 0.5], [TABLE]), lawn()]


def load(model: Model, path: Path) -> Model:
    return tb.NaiveBayes.load(path) if isinstance(model, tb.NaiveBayes) else tb.BayesianNetwork.read(path)


@given(model=naive_bayes_models(odd_names=True) | networks())
@settings(max_examples=80)
def test_save_and_load_keep_every_bit(model: Model, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "model.json"
    model.save(path)
    again = load(model, path)
    if isinstance(model, tb.NaiveBayes):
        assert same_naive_bayes(again, model)
    else:
        assert same(again, model)


def naive_bayes(**changes: Any) -> dict[str, Any]:
    content = {
        "format": "trimbench.NaiveBayes/1",
        "class_variable": "c",
        "class_names": ["n", "y"],
        "prior": [0.5, 0.5],
        "features": [{"name": "x", "values": ["0", "1"], "likelihood": TABLE}],
    }
    return {key: value for key, value in (content | changes).items() if value != "absent"}


def network(nodes: Any) -> dict[str, Any]:
    return {"format": "trimbench.BayesianNetwork/1", "nodes": nodes}


def node(**changes: Any) -> dict[str, Any]:
    return {"name": "v", "states": ["0", "1"], "parents": [], "table": [0.5, 0.5]} | changes


NO_MODEL = [
    ("", "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
    (json.dumps(naive_bayes())[:-9], "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
    (b"\xff\xfe{}", "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
    ("[" * 100_000, "must be a JSON file with format 'trimbench.NaiveBayes/1'"),
    ("[1]", "must have format 'trimbench.NaiveBayes/1', got None; was it saved by another class?"),
    ('{"format": "trimbench.NaiveBayes/1", "format": 1}', "the key 'format' must be stated once"),
    (network([]), "got 'trimbench.BayesianNetwork/1'; was it saved by another"),
    (naive_bayes(prior="absent"), "lacks an entry or has one of the wrong type: KeyError('prior')"),
    (naive_bayes(features=[1]), "lacks an entry or has one of the wrong type: TypeError"),
    (naive_bayes(prior=[True, 0.0]), ": prior must be an array of numbers with rows of equal length: true and false"),
    (naive_bayes(prior=[math.nan, 1.0]), ": prior must hold probabilities (finite, not negative), got nan"),
]
NO_NETWORK = [
    (naive_bayes(), "must have format 'trimbench.BayesianNetwork/1', got 'trimbench.NaiveBayes/1'"),
    (network([node(table=[0, True])]), "must be an array of numbers with rows of equal length: true and false"),
    (network([node(parents=None)]), "lacks an entry or has one of the wrong type: TypeError"),
    (network([node(), node()]), ": nodes must be distinct, got 'v' more than once; rename one of them"),
]


@pytest.mark.parametrize(
    ("model", "content", "message"),
    [(model, *case) for model, cases in zip(MODELS, (NO_MODEL, NO_NETWORK), strict=True) for case in cases],
)
def test_a_file_without_a_model_is_named(tmp_path: Path, model: Model, content: Any, message: str) -> None:
    path = tmp_path / "model.json"
    content = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        load(model, path)
    assert str(caught.value).startswith(str(path))


def disk_full(content: object, stream: Any, **_: object) -> None:
    stream.write('{"format": ')
    raise OSError(28, "No space left on device")


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def not_allowed(*_: object) -> None:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    ("replaced", "failure"), [("json.dump", disk_full), ("json.dump", interrupted), ("Path.replace", not_allowed)]
)
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: str, failure: Any
) -> None:
    path = tmp_path / "model.json"
    lawn().save(path)
    monkeypatch.setattr(f"trimbench.networks.formats.parsing.{replaced}", failure)
    with pytest.raises((OSError, KeyboardInterrupt)):
        MODELS[0].save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]
    assert same(tb.BayesianNetwork.read(path), lawn())


@pytest.mark.usefixtures("capfd")
def test_only_a_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, link, older = tmp_path / "pipe", tmp_path / "link", tmp_path / "older.json"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as opened, contextlib.chdir(tmp_path):
        opened.bind("socket")
    for path, kind in [
        (pipe, "device, pipe or"),
        (link, "device, pipe or"),
        (tmp_path / "socket", "device, pipe or"),
        (tmp_path, "folder"),
        (Path("/dev/stdout"), "device, pipe or"),  # the file in which pytest captures the output
        (Path("/dev/fd/1"), "device, pipe or"),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", None)  # nothing of the machine is replaced where this test fails
            with pytest.raises(FileExistsError, match=rf"path must be a file.*{kind}.*{path.name}'; choose another"):
                MODELS[0].save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    older.write_text("older")
    link.unlink()
    link.symlink_to(older)
    MODELS[0].save(link)
    assert not link.is_symlink()
    assert older.read_text() == "older"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "older.json", "pipe", "socket"]


def test_a_saved_file_has_the_permissions_of_any_new_file_in_a_folder_that_exists(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    MODELS[0].save(tmp_path / "model.json")
    assert (tmp_path / "model.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
    with pytest.raises(FileNotFoundError):
        MODELS[0].save(tmp_path / "absent" / "model.json")
    with pytest.raises(FileNotFoundError):
        tb.NaiveBayes.load(tmp_path / "absent.json")
