from __future__ import annotations

from dataclasses import dataclass

import pytest

from trimbench.papers.execution.job import Job
from trimbench.papers.vocabulary.cells import Cell
from trimbench.papers.vocabulary.checks import check_axis
from trimbench.papers.vocabulary.inputs import Input

from ..execution.sample_jobs import numpy_result, square

HEART = Input("dataset", "heart", {"kind": "csv", "path": "heart.csv"}, "a" * 64)
PIMA = Input("network", "pima", {"format": "ace"}, "b" * 64)


@dataclass(frozen=True)
class Problem:
    data: Input
    others: tuple[Input, ...]


def test_a_cell_holds_the_job_of_a_call() -> None:
    cell = Cell.of({"x": 2}, square, x=2.0)
    assert cell.labels == {"x": 2}
    assert cell.job.parameters == {"x": 2.0}
    assert cell.job.function.endswith("sample_jobs:square")
    assert (cell.job.data, cell.inputs) == ((), ())


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
