"""A study resumes, computes nothing twice, survives a step that fails, and says in a line what is wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trimbench import papers
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.table_reading import read_table
from trimbench.papers.data.table_texts import MISSING_VALUES
from trimbench.papers.files import sealed, unsealed
from trimbench.papers.own_table import steps
from trimbench.papers.own_table.settings import StudySettings, checked_costs, keep_table, stored_table
from trimbench.papers.own_table.steps import CANDIDATES, by_sequential_selection, informative
from trimbench.papers.validation import ConfigurationError, validated

from ..command_line import Command
from .studies import SMALL, iris, studied

QUICK = ("mechanisms=[mcar]", "shares=[0.4]", "splits=1", "methods=[nacl]", "selected=[3]", "explained=1")
STUDY = ("task=study", "executor=serial", "budgets=[2]", *QUICK)


def write_table(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    iris().to_csv(path, index=False)


def test_a_study_from_the_command_line(command: Command) -> None:
    write_table(Path("a/patients.csv"))
    Path("costs.csv").write_text("feature,cost\n" + "".join(f"{n},2\n" for n in iris().columns[:4]))
    answer = command(*STUDY, "data=a/patients.csv", "target=species", "costs=costs.csv", "budget=4", code=0)
    assert answer.out.index("How each column was read") < answer.out.index("What to keep:")
    assert "16 jobs, 0 without a result" in answer.out
    folder = Path("results/study-patients")
    for name in ("index.html", "study.csv", "study_card.csv", "study_accuracy.png", "study_accuracy_points.csv"):
        assert (folder / name).is_file()
    assert json.loads((folder / "study.json").read_text())["configuration"]["budget"] == 4
    page = (folder / "index.html").read_text(encoding="utf-8")
    for part in ("What to keep:", "Whether to believe it", "How each column was read", "TrimmedClassifier(budget=4.0"):
        assert part in page
    # The same content in another place, by another name: nothing is computed again, and the numbers are the same.
    Path("b").mkdir()
    Path("a/patients.csv").rename("b/others.csv")
    again = command(*STUDY, "data=b/others.csv", "target=species", "costs=costs.csv", "budget=4", code=0)
    assert "others: 16 stored, 0 to run" in again.err
    assert Path("results/study-others/study.csv").read_bytes() == (folder / "study.csv").read_bytes()


def test_only_what_is_missing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = studied(iris(), "species", tmp_path)
    records = sorted(tmp_path.glob("??/*.json"))
    assert len(records) == len(first.findings.rows) == 15
    written = {path: path.stat().st_mtime_ns for path in records}
    records[0].unlink()
    second = studied(iris(), "species", tmp_path)
    changed = [path for path in records if path.stat().st_mtime_ns != written[path]]
    assert changed == records[:1]
    pd.testing.assert_frame_equal(first.findings.outcome.tables[1].frame, second.findings.outcome.tables[1].frame)


def damage(path: Path, how: str) -> None:
    """Change a stored table as a bad disk, a careless user and somebody who knows the hash at its end do."""
    content = path.read_bytes()
    match how:
        case "byte":
            path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
        case "emptied":
            path.write_bytes(b"")
        case "another version":
            path.write_bytes(unsealed(content))
        case "labels permuted":
            frame = pd.read_feather(io.BytesIO(unsealed(content)))
            frame["class"] = frame["class"].to_numpy()[::-1]
            frame.assign(**{"class": frame["class"].astype("category")}).to_feather(stream := io.BytesIO())
            path.write_bytes(sealed(stream.getvalue()))
        case "no table":
            path.write_bytes(sealed(b"no table"))


@pytest.mark.parametrize("how", ["byte", "emptied", "another version", "labels permuted", "no table"])
def test_a_stored_table_that_was_changed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    table, cache = read_table(iris(), "species"), Cache.from_environment(offline=True)
    keep_table(table, cache)
    (path,) = tmp_path.rglob("*.feather")
    sound = path.read_bytes()
    damage(path, how)
    with pytest.raises(FileNotFoundError, match="is no longer in the cache; start the study again"):
        stored_table.__wrapped__(table.sha256)
    assert f"{path} is not used: " in caplog.text
    # A sound copy in another folder is found behind it.
    other = tmp_path / "other"
    (other / path.relative_to(cache.writable)).parent.mkdir(parents=True)
    (other / path.relative_to(cache.writable)).write_bytes(sound)
    with monkeypatch.context() as patch:
        patch.setattr(Cache, "from_environment", lambda offline: replace(cache, folders=(cache.writable, other)))
        assert stored_table.__wrapped__(table.sha256).labels.tolist() == table.labels.tolist()
    keep_table(table, cache)
    assert path.read_bytes() == sound
    found = stored_table.__wrapped__(table.sha256)
    assert (found.labels.tolist(), found.classes) == (table.labels.tolist(), table.classes)
    pd.testing.assert_frame_equal(found.features, table.features, check_names=False)


def test_a_step_that_fails_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no such luck")

    broken: Mapping[str, Any] = {**steps.CLASSIFIERS, "boosted_trees": ("boosted trees", fail)}
    monkeypatch.setattr(steps, "CLASSIFIERS", broken)
    found = studied(iris(), "species", tmp_path)
    (failure,) = found.findings.outcome.tables[-1].frame.to_dict("records")
    assert failure["step"] == "baseline"
    assert failure["of"] == "classifier boosted_trees"
    assert "no such luck" in failure["reason"]
    assert len(found.steps.baseline) == 2
    assert found.code


def test_a_class_with_fewer_rows_than_folds(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [0.1, 0.2, 0.9, 0.8] * 3, "b": list("xyxz") * 3, "y": list("ppqp") * 3})
    assert studied(table, "y", tmp_path, budgets=[1]).findings.failures == 0


def test_missing_values_in_the_table(tmp_path: Path) -> None:
    table = iris()
    hidden = np.random.default_rng(0).random((len(table), 4)) < 0.1
    table = table.mask(np.column_stack([hidden, np.zeros(len(table), dtype=bool)]))
    found = studied(table, "species", tmp_path)
    assert found.findings.failures == 0
    (group,) = found.steps.gaps
    assert group.values("nacl", "accuracy")[0] > 0.8


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, MISSING_VALUES), (["NA"], ("NA",)), ([-999, "gone", 1e20], ("-999", "gone", "1e+20"))],
)
def test_what_stands_for_missing_is_text(given: Any, expected: tuple[str, ...]) -> None:
    found = validated(StudySettings, {"missing_values": given, "drop": [7], "id": 8}, "study")
    assert (found.missing_values, found.drop, found.ids) == (expected, ("7",), ("8",))


def test_what_stands_for_missing_can_be_said(command: Command) -> None:
    values = ["NA", "-999.0", "gone"] * 10 + ["a", "b", "c"] * 40
    iris().iloc[:, 2:].assign(x=values).to_csv("t.csv", index=False)
    command(*STUDY, "data=t.csv", "target=species", "missing_values=[-999,gone]", "explained=0", code=0)
    found = papers.study("t.csv", "species", missing_values=["NA"], **{**SMALL, "explained": 0})
    for card, expected in ((pd.read_csv("results/study-t/study_card.csv"), 20), (found.tables["card"], 10)):
        assert pd.DataFrame(card).set_index("column")["missing"]["x"] == expected


def test_a_study_from_python(tmp_path: Path) -> None:
    found = papers.study(iris(), "species", folder=tmp_path / "study", **{**SMALL, "budgets": (2,), "selected": (4, 9)})
    assert list(found.tables) == ["frontier", "card", "baseline", "missing", "confidence", "explanations"]
    assert set(found.points) == {"accuracy", "agreement", "calibration", "missing_mcar", "confidence"}
    assert set(found.figures) == set(found.points)
    assert found.files[-1].name == "index.html"
    assert found.model.features_ == found.features
    assert (found.model.predict(iris().drop(columns="species")) == iris()["species"]).mean() > 0.9
    assert found.conclusions[0].startswith("What to keep: ")
    assert str(found).splitlines() == list(found.conclusions)
    assert repr(found) == f"Study(features={found.features}, tables={tuple(found.tables)})"
    # All four columns were selected both times, which is shown once.
    assert list(found.tables["confidence"]["columns selected"]) == [4, 4]
    assert sum(one.startswith("With all 4 columns: error rate") for one in found.conclusions) == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["target=diagnosis"], "task=study needs data; write for example data=patients.csv"),
        (["data=t.csv"], "task=study needs target; write for example target=diagnosis"),
        (["data=t.csv", "target=diagnose"], "target must be"),
        (["data=t.csv", "target=species", "budget=-1"], "study: budget must be at least 0"),
        (["data=t.csv", "target=diagnosis", "bugdet=3"], "did you mean 'budget'?"),
        (["data=t.csv", "target=species", "costs=c.csv"], "costs must have a cost for each of the 4 features"),
        (["data=t.csv", "target=diagnosis", "run=published"], "run must not be 'published'"),
    ],
)
def test_a_mistake_is_said_in_a_line(command: Command, words: list[str], complaint: str) -> None:
    write_table(Path("t.csv"))
    Path("c.csv").write_text("feature,cost\npetal width (cm),1\n")
    answer = command(*STUDY, *words)
    assert answer.code == 2
    assert complaint in answer.err
    assert answer.err.count("\n") == 1
    assert not Path("results").exists()


def test_costs_and_budgets() -> None:
    assert checked_costs(None, ["a", "b"]) == {"a": 1.0, "b": 1.0}
    assert checked_costs({"b": 2, "a": 3, "id": 9}, ["a", "b"], {"id"}) == {"a": 3.0, "b": 2.0}
    for costs, complaint in (
        ({"c": 1.0}, "a feature must be one of 'a', 'b', got 'c'"),
        ({"a": -1.0, "b": 1.0}, "0 or more"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            checked_costs(costs, ["a", "b"])
    for changes, complaint in (
        ({"shares": [2.0]}, "between 0 and 1"),
        ({"methods": ["magic"]}, "methods must be one of"),
    ):
        with pytest.raises(ValueError, match=complaint):
            StudySettings(**changes)
    assert StudySettings().levels(dict.fromkeys("abcdef", 1.0)) == [1, 2, 3, 5, 6]
    assert StudySettings(budget=4).levels(dict.fromkeys("abcdef", 1.0)) == [1, 2, 3, 4, 5, 6]
    assert StudySettings(budget=9).levels({"a": 1.0, "b": 4.0}) == [0.25, 0.5, 1.0, 1.75, 3.0, 5.0]


def coded(n_features: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    wanted = rng.integers(2, size=120)
    noise = rng.random((120, n_features)) < np.linspace(0.1, 0.5, n_features)
    columns = {f"f{i}": pd.Categorical(wanted ^ noise[:, i]) for i in range(n_features)}
    return pd.DataFrame({**columns, "constant": pd.Categorical([0] * 120)}), wanted


def test_as_many_features_as_there_are_need_no_selection() -> None:
    table, wanted = coded(4)
    assert by_sequential_selection(table, wanted, 4, 0) == informative(table, wanted)
    assert by_sequential_selection(table, wanted, 5, 0) == informative(table, wanted)
    assert len(by_sequential_selection(table, wanted, 2, 0)) == 2


def test_the_most_informative_features_are_all_that_is_compared() -> None:
    table, wanted = coded(CANDIDATES + 2)
    assert by_sequential_selection(table, wanted, CANDIDATES, 0) == informative(table, wanted)[:CANDIDATES]
    with pytest.raises(ValueError, match=f"compares the {CANDIDATES} most informative .* cannot take {CANDIDATES + 1}"):
        by_sequential_selection(table, wanted, CANDIDATES + 1, 0)
