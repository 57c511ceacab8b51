"""Inputs of jobs, and experiments on data of the user's own."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reproduction.execution.sample_jobs import numpy_result, square
from trimbench.papers.networks import network_input, network_of
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.errors import DataUnavailable, FactsMismatch
from trimbench.reproduction.execution.job import Job, located
from trimbench.reproduction.vocabulary.cells import Cell, Input, Inputs, check_axis, dataset_of

from ..command_line import Command, file_of, table_of, write

pytestmark = pytest.mark.usefixtures("undrawn")

NETWORK = (
    "network wet {{}}\nvariable a {{ type discrete [ 2 ] {{ yes, no }}; }}\nprobability ( a ) {{ table {p}, {q}; }}\n"
)


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """A data set and a network of the user's own, declared beside the project's."""
    for group, name, text in (
        ("dataset", "clinic", "kind: csv\npath: clinic.csv\ntarget: state\n"),
        ("network", "wet", "format: bif\npath: wet.bif\n"),
    ):
        (tmp_path / group).mkdir()
        (tmp_path / group / f"{name}.yaml").write_text(text)
    (tmp_path / "dataset/clinic.csv").write_text("age,state\n1,ill\n2,well\n3,well\n")
    (tmp_path / "network/wet.bif").write_text(NETWORK.format(p=0.25, q=0.75))
    return Inputs(Catalogue((tmp_path,)), Cache((), tmp_path / "cache", offline=True))


def as_parameter(found: Input) -> Input:
    """Return an input as the function of a job gets it."""
    job = Cell.of({}, square, x=found).job
    return Input(**located(job.parameters, dict(job.places))["x"])


def test_a_declared_hash_is_taken_without_reading_the_data(inputs: Inputs) -> None:
    colon = inputs.dataset("colon")
    assert (colon.group, colon.name) == ("dataset", "colon")
    assert colon.sha256 == colon.declared["facts"]["sha256"]
    assert colon.declaration.name == "colon"
    pima = network_input(inputs, "pima")
    assert (pima.group, pima.declaration.name, len(pima.sha256)) == ("network", "pima", 64)


def test_the_users_own_data_is_read_for_its_hash(inputs: Inputs, tmp_path: Path) -> None:
    clinic = inputs.dataset("clinic")
    assert clinic.sha256 == inputs.loaded("clinic").sha256
    assert inputs.loaded("clinic") is inputs.loaded("clinic"), "read once"
    read = dataset_of(as_parameter(clinic))
    assert (read.sha256, read.target.tolist()) == (clinic.sha256, ["ill", "well", "well"])
    (tmp_path / "dataset/clinic.csv").unlink()
    fresh = Inputs(inputs.catalogue, Cache((), tmp_path / "cache", offline=True))
    with pytest.raises(DataUnavailable, match="path must be an existing file"):
        fresh.dataset("clinic")


def test_a_job_takes_figures_whose_features_are_in_any_order(inputs: Inputs, tmp_path: Path) -> None:
    figures = "prior: [0.3, 0.7], likelihoods: {Rash: [[0.4, 0.6], 0.5], Cough: [[0.7, 0.3], 0.5]}"
    text = f"{{format: tables, target: C, positive: '0', {figures}}}"
    (tmp_path / "network/noted.yaml").write_text(text)
    assert set(network_of(as_parameter(network_input(inputs, "noted"))).features) == {"Rash", "Cough"}


@pytest.mark.parametrize(
    ("group", "name", "file", "old", "new"),
    [("dataset", "clinic", "clinic.csv", "1,ill", "4,ill"), ("network", "wet", "wet.bif", "0.25, 0.75", "0.5, 0.5")],
)
def test_data_that_changed_after_the_job_was_made_is_refused(
    inputs: Inputs, tmp_path: Path, group: str, name: str, file: str, old: str, new: str
) -> None:
    parameter = as_parameter(inputs.dataset(name) if group == "dataset" else network_input(inputs, name))
    read = dataset_of if group == "dataset" else network_of
    path = tmp_path / group / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(FactsMismatch, match=f"^{group} '{name}' has changed since the run .* start the run again$"):
        read(parameter)
    path.write_text(path.read_text().replace(new, old))
    read(parameter)


HEART = Input("dataset", "heart", {"kind": "csv", "path": "heart.csv"}, "a" * 64)
PIMA = Input("network", "pima", {"format": "ace"}, "b" * 64)


@dataclass(frozen=True)
class Problem:
    data: Input
    others: tuple[Input, ...]


def test_inputs_enter_the_job_and_its_key() -> None:
    cell = Cell.of({}, square, x={"problem": Problem(HEART, (PIMA, HEART)), "list": [1, "text"]})
    heart = {"group": "dataset", "name": "heart", "declared": dict(HEART.declared), "sha256": "a" * 64}
    pima = {"group": "network", "name": "pima", "declared": {"format": "ace"}, "sha256": "b" * 64}
    assert cell.job.parameters == {"x": {"problem": {"data": heart, "others": [pima, heart]}, "list": [1, "text"]}}
    assert dict(cell.job.data) == {"dataset/heart": "a" * 64, "network/pima": "b" * 64}
    assert cell.inputs == (HEART, PIMA)
    changed = Input("dataset", "heart", HEART.declared, "c" * 64)
    assert Cell.of({}, square, x=HEART).job.key != Cell.of({}, square, x=changed).job.key


def test_the_folder_of_a_users_own_file_does_not_enter_the_key() -> None:
    def job(path: str) -> Job:
        return Cell.of({}, square, x={"data": Input("dataset", "own", {"kind": "csv", "path": path}, "a" * 64)}).job

    here, there = job("/home/anna/own.csv"), job("/elsewhere/own.csv")
    assert here == there
    assert here.key == there.key
    assert (here.places, there.places) == (
        (("<dataset own>/own.csv", "/home/anna/own.csv"),),
        (("<dataset own>/own.csv", "/elsewhere/own.csv"),),
    )
    assert "anna" not in here.parameters_json


def test_parameters_must_fit_the_function() -> None:
    with pytest.raises(TypeError, match="parameters must fit"):
        Cell.of({}, numpy_result, m=1)


@pytest.mark.parametrize("values", [[], [1, 1], [0.5, 0.5], ["a", "b", "a"]])
def test_an_axis_has_values_each_once(values: list[object]) -> None:
    check_axis("budgets", [1, 2, "a", (1, 2), (2, 1)])
    with pytest.raises(ValueError, match=r"budgets must be a list of at least one value, each once, got \["):
        check_axis("budgets", values)


# Experiments on data of the user's own: computed again when it changes, refused when it is not what was declared.


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A table of numbers and labels with missing values, declared in the folder `mine`."""
    random_numbers = random.Random(5)
    rows = []
    for number in range(120):
        ill = random_numbers.random() < 0.35
        dose = f"{random_numbers.gauss(3 + 2 * ill, 1):.2f}" if number % 11 else ""
        ward = random_numbers.choice(["north", "south & east", "west|50%"]) if number % 7 else "?"
        smoker = "true" if random_numbers.random() < 0.3 + 0.4 * ill else "false"
        rows.append(f'{number % 5},{dose},"{ward}",{smoker},{"ill" if ill else "well"}')
    table = "\n".join(["age,dose,ward,smoker,state", *rows]) + "\n"
    folder = tmp_path / "mine/dataset"
    write(folder, {"clinic.csv": table, "clinic.yaml": "kind: csv\npath: clinic.csv\ntarget: state\n"})
    return folder / "clinic.csv"


OWN = (
    *("--config-dir", "mine", "experiment=trimming/breast_cancer", "datasets=[clinic]", "budgets=[1,2]", "splits=1"),
    *("evaluation_limit=10", "executor=serial", "offline=true"),
)


def test_an_experiment_on_the_users_own_data(command: Command, clinic: Path) -> None:
    words = (*OWN, "budgets=[1,2,4]")
    command(*words, code=0)
    rows = table_of("trimming/breast_cancer_rows")
    assert rows["budget"].tolist() == [1, 2, 4]
    assert rows["agreement"].is_monotonic_increasing
    assert rows["agreement"].iloc[-1] == 1.0, "nothing is removed"
    assert (rows["test_accuracy"].iloc[-1], rows["test_agreement"].iloc[-1]) == (rows["full_test_accuracy"].iloc[0], 1)
    assert {name for text in rows["features"] for name in json.loads(text)} <= {"age", "dose", "ward", "smoker"}
    about = file_of("trimming/breast_cancer.json")
    assert about.name.startswith("breast_cancer__datasets-clinic__"), "named after the data"
    assert list(json.loads(about.read_text())["data"]) == ["dataset/clinic"]
    assert ": 3 stored, 0 to run" in command(*words).err
    clinic.write_text(clinic.read_text().replace("south & east", "south"))
    assert ": 0 stored, 3 to run" in command(*words).err


def test_the_same_data_elsewhere_is_not_computed_again(
    command: Command, clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ": 0 stored, 2 to run" in command(*OWN, code=0).err
    (tmp_path / "mine").rename(tmp_path / "moved")
    assert ": 2 stored, 0 to run" in command(*OWN[:1], "moved", *OWN[2:], code=0).err
    written = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert len(written) > 3
    for path in written:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert os.fsencode(tmp_path) not in content, f"{path} names the home folder"


def test_a_bad_table_is_refused(command: Command, clinic: Path) -> None:
    clinic.write_text("age,state\n1,ill\n1,2,3,4,5\n")
    answer = command(*OWN, code=2)
    assert re.search(r"data set 'clinic': .*clinic\.csv must be a text table with a", answer.err)
    assert "Traceback" not in answer.err


def test_three_classes_fail_with_the_reason(command: Command, clinic: Path) -> None:
    clinic.write_text(clinic.read_text().replace(",well", ",unknown", 20))
    answer = command(*OWN, code=1)
    assert "must be binary, got 3 classes" in answer.out
