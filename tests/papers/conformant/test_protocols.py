"""The protocol on the data sets of the NaCL paper, and what must hold of conformant models on them."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.papers.conformant import protocols
from trimbench.papers.conformant.imputers import ImputerOptions, evaluate_imputer
from trimbench.papers.conformant.protocols import (
    Encoding,
    Task,
    count_rows,
    distinct_rows,
    encoded_rows,
    fit_task,
    make_task,
    rows_at_hand,
)
from trimbench.papers.conformant.solvers import SOLVERS
from trimbench.reproduction import vocabulary
from trimbench.reproduction.data.dataset import Dataset
from trimbench.reproduction.execution.code_hash import JobFunction
from trimbench.reproduction.execution.job import arguments_of
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.cells import Cell, dataset_of

from ..command_line import PROJECT
from ..experiments import inputs_of

# Training and test rows, columns and features, by protocol and encoding.
SHAPES = {
    ("splice", "paper"): (2541, 634, 240, 60),
    ("adult", "paper"): (39_074, 9768, 107, 13),
    ("adult", "authors"): (39_074, 9768, 138, 13),
    ("covtype", "paper"): (464_810, 116_202, 54, 12),
    ("covtype", "authors"): (464_810, 116_202, 104, 12),
    ("fashion", "authors"): (60_000, 10_000, 784, 784),
    ("mnist", "paper"): (60_000, 10_000, 784, 784),
    ("mnist_5v3", "paper"): (11_552, 1902, 784, 784),
}

# One worker reads and encodes the rows, for all tests of this file.
pytestmark = pytest.mark.xdist_group("conformant_rows")


@pytest.fixture(autouse=True)
def _kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are encoded once for all tests of this file, and data for several tasks in turn is read once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "conformant"))
    monkeypatch.setattr(vocabulary, "dataset_of", lambda found: read(found.name))


@lru_cache(maxsize=1)
def read(name: str) -> Dataset:
    return dataset_of(inputs_of().dataset(name))


def declared(name: str, encoding: Encoding = "paper") -> Task:
    return make_task(inputs_of(), name, encoding, seed=2018)


def task_of(name: str, encoding: Encoding = "paper") -> Task:
    task = declared(name, encoding)
    if rows_at_hand(task) is None:
        pytest.skip(f"TRIMBENCH_CACHE does not hold {task.data.name}")
    return task


def result(function: JobFunction, task: Task) -> dict[str, object]:
    """Run a job as a worker does: with the parameters that the cell wrote."""
    return dict(function(**arguments_of(Cell.of({}, function, task=task).job)))


@pytest.mark.parametrize(("name", "encoding"), SHAPES)
def test_shapes_are_those_of_the_protocol(name: str, encoding: Encoding, given_folder: Path) -> None:
    task = task_of(name, encoding)
    found = result(count_rows, task)
    assert (found["n_train"], found["n_test"], found["n_columns"], found["n_features"]) == SHAPES[name, encoding]
    rows = encoded_rows(task)
    for columns in rows.columns:
        if len(columns) > 1:
            assert (rows.train[:100, columns].sum(axis=1) == 1).all()
    assert rows is encoded_rows(declared(name, encoding)), "equal tasks are encoded once"


def test_splice_has_the_authors_test_rows(given_folder: Path) -> None:
    path = given_folder / "files/nacl/splice/test-splice-samples.txt.gz"
    if not path.is_file():
        pytest.skip("TRIMBENCH_CACHE does not hold files/nacl/splice")
    theirs = np.loadtxt(path, delimiter=",")[1:].reshape(634, 60, 4)[:, :, [0, 3, 1, 2]]  # A, G, T, C here A, C, G, T
    ours = encoded_rows(task_of("splice")).test.reshape(634, 60, 4)
    assert sorted(map(bytes, theirs.astype(np.uint8))) == sorted(map(bytes, ours))


def test_3_versus_5_has_the_authors_images(given_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = given_folder / "files/nacl/binaryizedMNIST-3-5/test-3-5-images.txt.gz"
    if not path.is_file():
        pytest.skip("TRIMBENCH_CACHE does not hold files/nacl/binaryizedMNIST-3-5")
    theirs = np.loadtxt(path, delimiter=",").astype(np.uint8).reshape(-1, 784)
    encoded_rows.cache_clear()
    ours = encoded_rows(task := task_of("mnist_5v3")).test
    # The split is the authors': no seed decides it, and the rows of another one are not encoded again.
    monkeypatch.setattr(protocols, "_encode", None)
    np.testing.assert_array_equal(ours, encoded_rows(dataclasses.replace(task, split_seed=1)).test)
    assert sorted(map(bytes, theirs)) == sorted(map(bytes, ours))
    shown = yaml.safe_load((project().configuration / "experiment/conformant/figure6.yaml").read_text("utf-8"))["rows"]
    np.testing.assert_array_equal(ours[shown], theirs[[1, 4, 194, 570, 845]], err_msg="the images of Figure 6")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_solvers_agree_on_real_data(given_folder: Path) -> None:
    task = task_of("adult")
    rows, test = encoded_rows(task).train, encoded_rows(task).test
    # A classifier of some training rows, which is as good a one to conform with.
    classifier = LogisticRegression(C=task.protocol.inverse_penalty, max_iter=50)
    classifier.fit(rows[:4000], encoded_rows(task).train_labels[:4000])
    newton, *others = (
        tb.conform(
            classifier, rows, solver=solver, smoothing=task.protocol.smoothing, n_components=1, covariance="diagonal"
        )
        for solver in SOLVERS.values()
    )
    assert newton.residual < 1e-10
    train, test = rows[:2000], test[:500]
    hidden = np.where(np.random.default_rng(0).random(test.shape) < 0.5, np.nan, test)
    for other in others:
        assert newton.log_likelihood(train).mean() == pytest.approx(other.log_likelihood(train).mean(), abs=1e-6)
        for shown in (test, hidden, np.full((1, test.shape[1]), np.nan)):
            np.testing.assert_allclose(newton.predict_proba(shown), other.predict_proba(shown), atol=1e-6)


def test_a_fit_of_distinct_rows_is_that_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (400, 3)).astype(np.uint8)
    labels = rng.integers(0, 3, 400)
    places, counts = distinct_rows(rows, labels)
    seen: dict[tuple[int, ...], list[int]] = {}
    for place, key in enumerate(map(tuple, np.column_stack([rows, labels]).tolist())):
        seen.setdefault(key, []).append(place)
    assert places.tolist() == [found[0] for found in seen.values()]
    assert counts.tolist() == [len(found) for found in seen.values()]
    whole = LogisticRegression(tol=1e-10, max_iter=1000).fit(rows, labels)
    distinct = LogisticRegression(tol=1e-10, max_iter=1000).fit(rows[places], labels[places], sample_weight=counts)
    np.testing.assert_allclose(distinct.coef_, whole.coef_, atol=1e-6)


def test_imputers_are_judged_on_drawn_test_rows_with_their_own_labels() -> None:
    task = task_of("digits")
    options = ImputerOptions(n_components=20, n_neighbours=10, n_nearest_features=20, max_iterations=5)
    found = evaluate_imputer(task, 0.0, 0, "mean", "test", train_rows=100, test_rows=200, settings=options)
    assert found["accuracy"] == pytest.approx(fit_task(task)["test_accuracy"], abs=0.05)


def test_the_fit_is_that_of_the_paper(given_folder: Path) -> None:
    found = result(fit_task, task_of("splice"))
    # The authors' stored curve begins at 0.9653.
    assert found["test_f1_weighted"] == pytest.approx(0.9653, abs=0.005)


def test_a_data_set_without_a_protocol_has_a_default() -> None:
    task = declared("breast_cancer")
    rows = encoded_rows(task)
    assert (rows.train.shape, len(rows.features)) == ((455, 30), 30)
    accuracy = result(fit_task, task)["test_accuracy"]
    assert isinstance(accuracy, float)
    assert accuracy > 0.9
    with pytest.raises(ConfigurationError, match="dataset must be one of adult, "):
        declared("digitz")


@pytest.mark.parametrize("name", [*PROJECT.names("protocol"), "breast_cancer"])
def test_a_job_reads_back_the_task_that_its_cell_was_given(name: str) -> None:
    task = declared(name, "authors")
    cell = Cell.of({}, count_rows, task=task)
    assert arguments_of(cell.job)["task"] == task
    assert cell.inputs == (task.data,)
    assert cell.job.data == ((f"dataset/{task.data.name}", task.data.sha256),)
