"""A study computes nothing twice, survives what fails, and refuses in one line what it cannot take."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from trimbench import papers
from trimbench.papers.methods.missing_features import Learned, Training, learn_by
from trimbench.papers.own_table import steps
from trimbench.papers.own_table.settings import StudySettings, costs_by_feature, keep_table, read_costs, stored_table
from trimbench.papers.own_table.steps import CANDIDATES, by_sequential_selection, informative
from trimbench.papers.own_table.study import OwnTable, Study, prepared
from trimbench.papers.own_table.table_reading import read_table
from trimbench.papers.own_table.table_texts import MISSING_VALUES
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.processes import ProcessExecutor
from trimbench.reproduction.files import sealed, unsealed
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError, validated

from ..command_line import Command
from .studies import SMALL, iris, studied

QUICK = ("mechanisms=[mcar]", "shares=[0.4]", "splits=1", "methods=[nacl]", "selected=[3]", "explained=1")
STUDY = ("task=study", "executor=serial", "budgets=[2]", *QUICK)


@pytest.mark.usefixtures("undrawn")
def test_a_study_from_the_command_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Path("a").mkdir()
    iris().to_csv("a/patients.csv", index=False)
    Path("costs.csv").write_text("feature,cost\n" + "".join(f"{n},2\n" for n in iris().columns[:4]))
    answer = command(*STUDY, "data=a/../a/patients.csv", "target=species", "costs=costs.csv", "budget=4", code=0)
    assert answer.out.index("How each column was read") < answer.out.index("What to keep:")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert answer.out.endswith(", 0 without a result\n  results/study-patients/index.html\n")
    folder = Path("results/study-patients")
    for name in ("index.html", "study.csv", "study_card.csv", "study_accuracy.png", "study_accuracy_points.csv"):
        assert (folder / name).is_file()
    assert f"read_table('{Path('a/patients.csv').absolute()}'" in (folder / "model.py").read_text()
    assert json.loads((folder / "study.json").read_text())["configuration"]["budget"] == 4
    page = (folder / "index.html").read_text(encoding="utf-8")
    seconds = f"{pd.read_csv(folder / 'study_rows.csv.gz')['seconds'].sum():.0f} s in 23 jobs"
    for part in ("What to keep:", "Whether to believe", "How each column was read", "Classifier(budget=4.0", seconds):
        assert part in page
    assert (folder / ".gitignore").is_file()
    # The same content in another place, by another name: nothing is computed again, and the numbers are the same.
    Path("b").mkdir()
    Path("a/patients.csv").rename("b/others.csv")
    again = command(*STUDY, "data=b/others.csv", "target=species", "costs=costs.csv", "budget=4", code=0)
    assert "others: 23 stored, 0 to run" in again.err
    assert Path("results/study-others/study.csv").read_bytes() == (folder / "study.csv").read_bytes()


def test_a_step_that_fails_is_a_row_and_runs_again_alone(
    flowers: Study, flower_jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no such luck")

    store = shutil.copytree(flower_jobs, tmp_path / "jobs")
    records = sorted(store.glob("??/*.json"))
    texts = {path: path.read_text() for path in records}
    (trees,) = (path for path, text in texts.items() if "boosted_trees" in text and '"only"' not in text)
    assert len(records) == len(flowers.findings.rows) == 22
    written = {path: path.stat().st_mtime_ns for path in records if path != trees}
    trees.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(steps, "CLASSIFIERS", {**steps.CLASSIFIERS, "boosted_trees": ("boosted trees", fail)})
        found = studied(iris(), "species", store)
    (failure,) = found.findings.outcome.tables[-1].frame.to_dict("records")
    assert (failure["step"], failure["of"]) == ("baseline", "classifier boosted_trees")
    assert "no such luck" in failure["reason"]
    assert len(found.steps.baseline) == 3
    assert found.code
    again = studied(iris(), "species", store)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert [path for path in store.glob("??/*.json") if path not in written] == [trees]
    for ours, first in zip(again.findings.outcome.tables, flowers.findings.outcome.tables, strict=True):
        pd.testing.assert_frame_equal(*(one.frame.drop(columns="seconds", errors="ignore") for one in (ours, first)))


def damage(path: Path, how: str) -> None:
    """Change a stored table as a bad disk, a careless user and somebody who knows the seal at its end do."""
    content, seal = path.read_bytes(), ("table", path.stem)
    match how:
        case "byte":
            path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
        case "emptied":
            path.write_bytes(b"")
        case "another version":
            path.write_bytes(unsealed(content, *seal))
        case "labels permuted":
            frame = pd.read_feather(io.BytesIO(unsealed(content, *seal)))
            frame["class"] = frame["class"].to_numpy()[::-1]
            frame.assign(**{"class": frame["class"].astype("category")}).to_feather(stream := io.BytesIO())
            path.write_bytes(sealed(stream.getvalue(), *seal))
        case "no table":
            path.write_bytes(sealed(b"no table", *seal))
        case "sealed as another":
            path.write_bytes(sealed(unsealed(content, *seal), "table", "0" * 64))
        case "folder":
            path.unlink()
            path.mkdir()


@pytest.mark.parametrize(
    "how", ["byte", "emptied", "another version", "labels permuted", "no table", "sealed as another", "folder"]
)
def test_a_stored_table_that_was_changed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    table, cache = read_table(iris(), "species"), Cache.from_environment(offline=True)
    keep_table(table, cache)
    (path,) = tmp_path.rglob("*.table")
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


def test_a_table_that_finds_no_room_is_told_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    table = read_table(iris(), "species")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=rf"cannot write {tmp_path}/cache/.*: No space left on device"):
        keep_table(table, Cache((), tmp_path / "cache"))


def test_a_table_whose_folder_is_a_file_is_told_what_is_in_its_way(tmp_path: Path) -> None:
    cache = Cache((), tmp_path / "cache")
    (tmp_path / "cache/files").mkdir(parents=True)
    (tmp_path / "cache/files/tables").write_text("mine")
    with pytest.raises(OSError, match=r"cannot keep .*/cache/files/tables/.*; remove what is in its way, or set "):
        keep_table(read_table(iris(), "species"), cache)
    assert (tmp_path / "cache/files/tables").read_text() == "mine"


def test_a_class_with_fewer_rows_than_folds(tmp_path: Path) -> None:
    """Two are enough for a class; so are the training rows in which a text differs in most rows."""
    table = pd.DataFrame({"a": [0.1, 0.2, 0.9, 0.8] * 9, "b": [f"n{row % 18}" for row in range(36)], "y": "p"})
    table.loc[[1, 2], "y"] = "q"
    found = studied(table, "y", tmp_path, budgets=[1], time_limit=1e-9)
    assert found.findings.failures == 0
    frontier = found.tables["frontier"].set_index("selected by")
    assert frontier.loc[["trimming"], "promised agreement"].notna().all()


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, MISSING_VALUES), (["NA"], ("NA",)), ([-999, "gone", 1e20], ("-999", "gone", "1e+20"))],
)
def test_what_stands_for_missing_is_text(given: Any, expected: tuple[str, ...]) -> None:
    found = validated(StudySettings, {"missing_values": given, "drop": [7], "id": 8}, "study")
    assert (found.missing_values, found.drop, found.ids) == (expected, ("7",), ("8",))


def test_what_stands_for_missing_can_be_said(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    every = OwnTable.cells
    monkeypatch.setattr(OwnTable, "cells", lambda *given: every(*given)[:1])  # how columns are read is all that counts
    values = ["NA", "-999.0", "gone"] * 10 + ["a", "b", "c"] * 40
    iris().iloc[:, 2:].assign(x=values, **{f"n{place}": 0 for place in range(35)}).to_csv("t.csv", index=False)
    answer = command(*STUDY, "data=t.csv", "target=species", "missing_values=[-999,gone]", code=0)
    assert ("read (the first 30 of 39)\n" in answer.out, answer.out.count("\n- ")) == (True, 31)
    monkeypatch.setattr(ProcessExecutor, "run", None)  # one job at a time needs no other process
    found = papers.study("t.csv", "species", missing_values=["NA"], n_jobs=1, **SMALL)
    for card, expected in ((pd.read_csv("results/study-t/study_card.csv"), 20), (found.tables["card"], 10)):
        assert pd.DataFrame(card).set_index("column")["missing"]["x"] == expected


def test_advice_on_columns_can_be_copied() -> None:
    table = iris().assign(
        word=["a", "b", "NA", "k. A.", "NULL"] * 30,
        code=[-999, -999, *range(20, 168)],
        **{"Patient-ID": [f"patient {row}" for row in range(150)]},
    )
    read = prepared(table, "species", None, StudySettings()).table
    listed = 'missing_values=["NA","NULL","k. A.","-999"]'
    assert read.repairs[-1].endswith(f"write '{listed}'")
    (left_out,) = (one for one in read.card if one.name == "Patient-ID")
    assert left_out.notes[-1].endswith("write types.Patient-ID=category to keep it")
    assert f"column 'Patient-ID': {left_out.notes[-1]}" in read.repairs
    # Followed, it is complete: nothing more is pointed out, and the usual texts are still missing.
    setting = OverridesParser.create().parse_override(listed)
    followed = {"missing_values": setting.value(), "types": {"Patient-ID": "category"}}
    again = prepared(table, "species", None, validated(StudySettings, followed, "study")).table
    assert not [line for line in again.repairs if "missing_values" in line or "left out" in line]
    assert again.features[["word", "code"]].isna().sum().tolist() == [90, 2]
    # A list of one's own is kept whole.
    read = prepared(table, "species", None, StudySettings(missing_values=("?", "k. A."))).table
    assert read.repairs[-1].endswith("""'missing_values=["?","k. A.","NA","NULL","-999"]'""")


def test_a_study_from_python(flowers: Study, flower_jobs: Path, tmp_path: Path) -> None:
    shutil.copytree(flower_jobs, tmp_path / "jobs")  # only the confidence is judged anew
    found = papers.study(iris(), "species", folder=tmp_path / "study", **{**SMALL, "budgets": (2,), "selected": (4, 9)})
    assert list(found.tables) == [
        "frontier",
        "card",
        "classifiers",
        "baseline",
        "missing",
        "confidence",
        "explanations",
        "used",
    ]
    assert set(found.points) == {"accuracy", "agreement", "calibration", "missing_mcar", "confidence"}
    assert set(found.figures) == set(found.points)
    assert found.files[-1].name == "index.html"
    assert found.model.features_ == found.features
    assert "read_table(table, 'species')  # the data frame that was studied" in found.code
    exec(found.code, {"table": iris()})
    assert found.steps.chosen
    assert json.loads(Path("model.json").read_text(encoding="utf-8")) == found.steps.chosen["model"]
    assert (found.model.predict(iris().drop(columns="species")) == iris()["species"]).mean() > 0.9
    assert found.conclusions[0].startswith("What to keep: ")
    assert str(found).splitlines() == list(found.conclusions)
    assert repr(found) == f"Study(features={found.features}, tables={tuple(found.tables)})"
    # All four columns were selected both times, which is shown once.
    assert list(found.tables["confidence"]["columns selected"]) == [4] * 8
    assert sum(one.startswith("With all 4 columns: error rate") for one in found.conclusions) == 1


def test_a_study_is_not_written_into_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.html").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"^folder must be the folder of a run, .* with index\.html"):
        papers.study(iris(), "species", folder=tmp_path / "docs", **SMALL)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/offer.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"^folder must lie in a folder of results, .* has offer\.txt"):
        papers.study(iris(), "species", folder=tmp_path / "new", **SMALL)
    names = ["docs", "index.html", "jobs", "offer.txt"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == names


def test_costs_and_budgets() -> None:
    assert costs_by_feature(None, ["a", "b"]) == {"a": 1.0, "b": 1.0}
    assert costs_by_feature({"b": 2, "a": 3, "id": 9}, ["a", "b"], {"id"}) == {"a": 3.0, "b": 2.0}
    for costs, complaint in (
        ({"c": 1.0}, "a feature must be one of 'a', 'b', got 'c'"),
        ({"a": -1.0, "b": 1.0}, "from 0 to 1e100, got -1.0 for a"),
        ({"a": 1.0, "b": 1e308}, "got 1e.308 for b"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            costs_by_feature(costs, ["a", "b"])
    for changes, complaint in (
        ({"shares": [2.0]}, r"^shares must be fractions between 0 and 1, got 2.0; 20 % is 0.2"),
        ({"shares": [0.9, 0.95]}, "at most 0.9 where what goes missing depends on values"),
        ({"methods": ["magic"]}, "methods must be one of"),
    ):
        with pytest.raises(ValueError, match=complaint):
            StudySettings(**changes)
    assert StudySettings(shares=[0.9]).shares == [0.9]
    stated = yaml.safe_load((project().configuration / "study.yaml").read_text(encoding="utf-8"))
    values = {name: stated[name] for name in vars(StudySettings())}
    assert validated(StudySettings, values, "study") == StudySettings()
    # What help says of a setting does not begin with the head of its section.
    assert Catalogue().comments("", "study")["budgets"].startswith("budgets to try")
    assert StudySettings().levels(dict.fromkeys("abcdef", 1.0)) == [1, 2, 3, 5, 6]
    assert StudySettings(budget=4).levels(dict.fromkeys("abcdef", 1.0)) == [1, 2, 3, 4, 5, 6]
    assert StudySettings(budget=9).levels({"a": 1.0, "b": 4.0}) == [0.25, 0.5, 1.0, 1.75, 3.0, 5.0]
    # A model is chosen within the budgets that were given; what pays for all features is shown beside them.
    costs = dict.fromkeys("abcdef", 1.0)
    table = prepared(iris(), "species", None, StudySettings()).table
    assert StudySettings(budgets=[3, 1]).levels(costs) == [1, 3, 6]
    for given, expected in (
        (StudySettings(budgets=[3, 1]), [1, 3]),
        (StudySettings(), [1, 2, 3, 5, 6]),
        (StudySettings(budgets=[1, 9]), [1, 6]),
        (StudySettings(budget=4, budgets=[1, 5]), [4]),
        (StudySettings(budget=9), [6]),
    ):
        cell, *_ = OwnTable(table, costs, given)._choice()
        assert json.loads(cell.job.parameters_json)["budgets"] == expected


def test_a_wide_table_says_what_is_done_otherwise(tmp_path: Path) -> None:
    own = StudySettings()
    assert [own.seconds(n) for n in (8, 1000, 1001)] == [20.0, 20.0, 1.0]
    assert StudySettings(time_limit=7).seconds(5000) == 7.0
    assert own.about_width(1000, 250) == []
    assert [one.partition(":")[0][:40] for one in own.about_width(1001, 251)] == [
        "With more than 1,000 features, the searc",
        "Iterative imputation",
        "Boosted trees see the 250 of 251 columns",
        "With more than 250 columns, the probabil",
    ]
    assert len(StudySettings(time_limit=20, methods=["mean"]).about_width(1001, 251)) == 1
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(24, 252))).add_prefix("g").assign(y=["a", "b"] * 12)
    table["x"] = np.where(table["y"] == "a", 1.0, -1.0) + rng.normal(size=24) / 4
    wide = {
        "methods": ["mean", "iterative", "masked_trees"],
        "mechanisms": ["mcar", "depends_on_value"],
        "explained": 0,
    }
    found = studied(table, "y", tmp_path, **wide)
    assert not found.findings.failures
    (note,) = (one for one in found.notes if one.startswith("Iterative imputation"))
    assert "the 250 of 253 columns that weigh most" in note


def test_what_is_hidden_changes_nothing_in_what_most_methods_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[str] = []

    def learn(name: str, training: Training) -> Learned:
        learned.append(name)
        return learn_by(name, training)

    steps._learned_once.cache_clear()
    monkeypatch.setattr(steps, "learn_by", learn)
    changes = {"mechanisms": ["mcar", "depends_on_value"], "splits": 2, "methods": ["mean", "masked_trees"]}
    found = studied(iris(), "species", tmp_path, **changes)
    assert not found.findings.failures
    assert Counter(learned) == {"mean": 2, "masked_trees": 4}
    steps._learned_once.cache_clear()


def coded(n_features: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    wanted = rng.integers(2, size=120)
    noise = rng.random((120, n_features)) < np.linspace(0.1, 0.5, n_features)
    columns = {f"f{i}": pd.Categorical(wanted ^ noise[:, i]) for i in range(n_features)}
    return pd.DataFrame({**columns, "constant": pd.Categorical([0] * 120)}), wanted


def test_as_many_features_as_there_are_need_no_selection() -> None:
    for n_features in (4, CANDIDATES + 2):
        table, wanted = coded(n_features)
        ranked = informative(table, wanted)
        assert sorted(ranked) == sorted(set(table.columns) - {"constant"})
        assert by_sequential_selection(table, wanted, ranked, n_features, 0) == ranked
        assert by_sequential_selection(table, wanted, ranked, n_features + 1, 0) == ranked
        assert len(by_sequential_selection(table, wanted, ranked, 2, 0)) == 2
    # The most informative are all that is compared.
    assert by_sequential_selection(table, wanted, ranked, CANDIDATES, 0) == ranked[:CANDIDATES]
    with pytest.raises(ValueError, match=f"compares the {CANDIDATES} most informative .* cannot take {CANDIDATES + 1}"):
        by_sequential_selection(table, wanted, ranked, CANDIDATES + 1, 0)


# What a study refuses: one line that names what is wrong, what is allowed, what was got, and what to do.


ROWS = [f"{row % 7},{row % 5},{'p' if row % 3 else 'q'}" for row in range(60)]
TABLE = "\n".join(["a,b,y", *ROWS]) + "\n"


@pytest.mark.parametrize(
    ("body", "words", "complaint"),
    [
        (TABLE, ["target=Y"], "target must be a column of the data, got 'Y' (did you mean 'y'?)"),
        ("Dear all,\nthis is a letter; with commas, and so on.\n", [], "the columns are 'Dear all', 'Unnamed: 1'"),
        (TABLE + "1,2,r\n", [], "target must have each class in at least two rows, got 'r' in 1; leave such rows out"),
        (TABLE, ["data=s.csv"], "data must be an existing file, got 's.csv' (did you mean 't.csv'?)"),
        (TABLE, ["data=."], "data must be a file or a folder of Parquet files, got the folder '.'; name a table in it"),
        (TABLE, ["costs=target.csv"], "costs: a feature must be one of 'a', 'b', got 'y'; the target has no cost"),
        (TABLE, ["costs=unknown.csv"], "costs: a feature must be one of 'a', 'b', got 'bb' (did you mean 'b'?)"),
        (TABLE, ["costs=partial.csv"], "costs must have a cost for each of the 2 features, got none for b; write 0"),
        (TABLE, ["costs=none.csv"], "costs must be a file with the columns feature and cost, got 'none.csv'; correct"),
        (TABLE, ["budget=-3"], "study: budget must be at least 0.0, got -3"),
        (TABLE, ["test_share=1e-9"], "test_share must leave rows to test on, and of each class rows to learn from"),
        (TABLE, ["test_share=0.99"], "got 0.99 of 60 rows; write for example test_share=0.25"),
        (TABLE, ["seed=-1"], "configuration: seed must be at least 0, got -1"),
        (TABLE, ["bugdet=3"], "did you mean budget=3?\n"),
        (TABLE, ["data=null"], "task=study needs data; write for example data=patients.csv"),
        (TABLE, ["target=null"], "task=study needs target; write for example target=diagnosis"),
        (TABLE, ["run=published"], "run must not be 'published'"),
        (TABLE, ["types.a=numbe"], "types.a must be one of boolean, category, date, number, got 'numbe'; did you mean"),
        (TABLE, ['types={a: category, b: date}'], "types.b is date, but no value of the column is one, got '0', '1'"),
    ],
    ids=lambda value: "" if isinstance(value, str | bytes) else None,
)  # fmt: skip
def test_a_table_or_its_costs_are_refused_in_a_line(
    command: Command, body: str | bytes, words: list[str], complaint: str
) -> None:
    Path("t.csv").write_bytes(body.encode() if isinstance(body, str) else body)
    Path("target.csv").write_text("feature,cost\na,1\nb,1\ny,2\n")
    Path("partial.csv").write_text("feature,cost\na,1\n")
    Path("unknown.csv").write_text("feature;cost\na;1,5\nbb;2\n")
    given = {word.partition("=")[0] for word in words}
    usual = [word for word in ("data=t.csv", "target=y") if word.partition("=")[0] not in given]
    answer = command("task=study", "executor=serial", *usual, *words)
    assert answer.code == 2
    assert complaint in answer.err
    assert answer.err.count("\n") == 1
    assert len(answer.err) < 500
    assert not answer.out
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("name,a,b,c,d,e\n1,1,1,1,1,1\n", "columns feature and cost, got 'name', .*'d' and 1 more in costs.csv; re"),
        ("feature,cost\na,1\na,2\n", "must have each feature once, got 'a' again"),
        ("feature,cost\na,cheap\n", "must be numbers, got 'cheap' for a"),
    ],
)
def test_files_of_costs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, complaint: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("costs.csv").write_text(body)
    with pytest.raises(ConfigurationError, match=complaint):
        read_costs(Path("costs.csv"))
    Path("costs.csv").write_text("feature;cost\na;1,5\nlong name;0\n")
    assert read_costs(Path("costs.csv")) == {"a": 1.5, "long name": 0.0}


def test_columns_may_be_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.normal(size=120), 1: rng.integers(0, 7, 120), 2: rng.normal(size=120)})
    frame[3] = np.where(frame[0] > 0, "ill", "well")
    small = SMALL | {"methods": ["mean"], "selected": [1], "explained": 0, "budgets": [1]}
    found = papers.study(
        frame, frame.columns[3], costs={0: 1, 1: 2}, drop=frame.columns[2:3], types={1: "category"}, **small
    )
    card = found.tables["card"].set_index("column")
    assert card["read as"].to_dict() == {"0": "number", "1": "category", "2": "left out", "3": "target"}
    with pytest.raises(ValueError, match="4"):
        papers.study(frame, 4)  # type: ignore[arg-type]
