from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import Job, located
from trimbench.papers.validation import DataUnavailable, FactsMismatch
from trimbench.papers.vocabulary.cells import Cell, Input, Inputs, check_axis, dataset_of, network_of

from ..execution.sample_jobs import numpy_result, square

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
    return Inputs(Catalogue((tmp_path, configuration_folder())), Cache((), tmp_path / "cache", offline=True))


def as_parameter(found: Input) -> Input:
    """Return an input as the function of a job gets it."""
    job = Cell.of({}, square, x=found).job
    return Input(**located(job.parameters, dict(job.places))["x"])


def test_a_declared_hash_is_taken_without_reading_the_data(inputs: Inputs) -> None:
    colon = inputs.dataset("colon")
    assert (colon.group, colon.name) == ("dataset", "colon")
    assert colon.sha256 == colon.declared["facts"]["sha256"]
    assert colon.declaration.name == "colon"
    pima = inputs.network("pima")
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
    assert set(network_of(as_parameter(inputs.network("noted"))).features) == {"Rash", "Cough"}


@pytest.mark.parametrize(
    ("group", "name", "file", "old", "new"),
    [("dataset", "clinic", "clinic.csv", "1,ill", "4,ill"), ("network", "wet", "wet.bif", "0.25, 0.75", "0.5, 0.5")],
)
def test_data_that_changed_after_the_job_was_made_is_refused(
    inputs: Inputs, tmp_path: Path, group: str, name: str, file: str, old: str, new: str
) -> None:
    parameter = as_parameter(getattr(inputs, group)(name))
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
