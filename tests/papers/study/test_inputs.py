from __future__ import annotations

from pathlib import Path

import pytest

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import located
from trimbench.papers.validation import ConfigurationError, DataUnavailable, FactsMismatch
from trimbench.papers.vocabulary.cells import Cell
from trimbench.papers.vocabulary.inputs import Input, Inputs, dataset_of, network_of

from ..execution.sample_jobs import square

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


def test_the_users_own_network_changes_its_hash(inputs: Inputs, tmp_path: Path) -> None:
    wet = inputs.network("wet")
    assert network_of(as_parameter(wet)).nodes == ("a",)
    (tmp_path / "network/wet.bif").write_text(NETWORK.format(p=0.5, q=0.5))
    assert inputs.network("wet").sha256 != wet.sha256


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


def test_unknown_names_are_reported_with_those_that_exist(inputs: Inputs) -> None:
    with pytest.raises(
        ConfigurationError, match=r"dataset must be one of adult, .*, got 'clinik'; did you mean 'clinic'"
    ):
        inputs.dataset("clinik")
    with pytest.raises(ConfigurationError, match=r"network must be one of anatomy, .*, got 'pma'; did you mean 'pima'"):
        inputs.network("pma")
