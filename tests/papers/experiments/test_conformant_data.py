"""The protocol on the data sets of the NaCL paper, and what must hold of conformant models on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.statistics import FeatureStatistics
from trimbench.papers.configuration import Catalogue, ConfigurationError, configuration_folder
from trimbench.papers.conformant.classifier import distinct_rows, fit_task, fitted
from trimbench.papers.conformant.protocol import Task, make_task
from trimbench.papers.conformant.rows import Prepared, encode_task, prepare
from trimbench.papers.data.availability import is_here
from trimbench.papers.data.cache import Cache

PROJECT = Catalogue((configuration_folder(),))
# Training and test rows, columns and features, by protocol and encoding.
SHAPES = {
    ("splice", "paper"): (2541, 634, 240, 60),
    ("adult", "paper"): (39_074, 9768, 107, 13),
    ("adult", "authors"): (39_074, 9768, 138, 13),
    ("covtype", "paper"): (464_810, 116_202, 54, 12),
    ("covtype", "authors"): (464_810, 116_202, 104, 12),
    ("mnist", "paper"): (60_000, 10_000, 784, 784),
    ("fashion", "authors"): (60_000, 10_000, 784, 784),
    ("mnist_5v3", "paper"): (11_552, 1902, 784, 784),
}


@pytest.fixture(autouse=True)
def _kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are encoded once for all tests of this file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "conformant"))


def task_of(name: str, encoding: str = "paper") -> Task:
    cache = Cache.from_environment(offline=True)
    task = make_task(PROJECT, cache, name, encoding, seed=2018)
    if not is_here(task.declaration, cache):
        pytest.skip(f"TRIMBENCH_CACHE does not hold {task.declaration.name}")
    return task


@pytest.mark.parametrize(("name", "encoding"), SHAPES)
def test_shapes_are_those_of_the_protocol(name: str, encoding: str, given_folder: Path) -> None:
    task = task_of(name, encoding)
    found = encode_task(task=task.parameters)
    assert (found["n_train"], found["n_test"], found["n_columns"], found["n_features"]) == SHAPES[name, encoding]
    prepared = prepare(task.parameters)
    for columns in prepared.columns:
        if len(columns) > 1:
            assert (prepared.train[:100, columns].sum(axis=1) == 1).all()
    assert prepared is prepare(task.parameters)


def test_splice_has_the_authors_test_rows(given_folder: Path) -> None:
    path = given_folder / "files/nacl/splice/test-splice-samples.txt.gz"
    if not path.is_file():
        pytest.skip("TRIMBENCH_CACHE does not hold files/nacl/splice")
    theirs = np.loadtxt(path, delimiter=",")[1:].reshape(634, 60, 4)[:, :, [0, 3, 1, 2]]  # A, G, T, C here A, C, G, T
    ours = prepare(task_of("splice").parameters).test.reshape(634, 60, 4)
    assert sorted(map(bytes, theirs.astype(np.uint8))) == sorted(map(bytes, ours))


def test_3_versus_5_has_the_authors_images(given_folder: Path) -> None:
    path = given_folder / "files/nacl/binaryizedMNIST-3-5/test-3-5-images.txt.gz"
    if not path.is_file():
        pytest.skip("TRIMBENCH_CACHE does not hold files/nacl/binaryizedMNIST-3-5")
    theirs = np.loadtxt(path, delimiter=",").astype(np.uint8).reshape(-1, 784)
    np.testing.assert_array_equal(prepare(task_of("mnist_5v3").parameters).test, theirs)


def learned(task: Task, prepared: Prepared, solver: str) -> tb.ConformantModel:
    classifier = fitted(task.parameters)
    layout = FeatureLayout.of(prepared.train.shape[1])
    return conform_to_statistics(
        classifier.weights,
        classifier.biases,
        np.arange(len(prepared.classes)),
        layout,
        FeatureStatistics.of(prepared.train, layout),
        solver,  # type: ignore[arg-type]
        task.protocol.smoothing,
    )


@pytest.mark.parametrize("name", ["splice", "adult"])
def test_newton_agrees_with_gpkit(name: str, given_folder: Path) -> None:
    task = task_of(name)
    prepared = prepare(task.parameters)
    newton, gpkit, cvxpy = (learned(task, prepared, solver) for solver in ("newton", "gpkit", "cvxpy"))
    check_agreement(newton, gpkit, prepared.train[:2000], prepared.test[:500])
    check_agreement(newton, cvxpy, prepared.train[:2000], prepared.test[:500])


def test_newton_agrees_with_gpkit_on_a_crop_of_mnist(given_folder: Path) -> None:
    prepared = prepare(task_of("mnist").parameters)
    middle = [28 * row + column for row in range(10, 18) for column in range(10, 18)]
    train, labels = prepared.train[:5000, middle], prepared.train_labels[:5000]
    classifier = LogisticRegression(max_iter=1000).fit(train, labels)
    newton, gpkit = (tb.conform(classifier, train, solver) for solver in ("newton", "gpkit"))
    check_agreement(newton, gpkit, train, prepared.test[:500, middle])


def check_agreement(newton: tb.ConformantModel, other: tb.ConformantModel, train: np.ndarray, test: np.ndarray) -> None:
    assert newton.residual < 1e-10
    assert newton.log_likelihood(train).mean() == pytest.approx(other.log_likelihood(train).mean(), abs=1e-6)
    hidden = np.where(np.random.default_rng(0).random(test.shape) < 0.5, np.nan, test)
    for rows in (test, hidden, np.full((1, test.shape[1]), np.nan)):
        np.testing.assert_allclose(newton.predict_proba(rows), other.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("name", ["splice", "adult", "covtype", "mnist", "fashion"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_conform(name: str, groups: bool, given_folder: Path) -> None:
    """On all training rows; a classifier of some of them is as good a one to conform with."""
    task = task_of(name)
    prepared = prepare(task.parameters)
    classifier = LogisticRegression(C=task.protocol.inverse_penalty, max_iter=50)
    classifier.fit(prepared.train[:4000], prepared.train_labels[:4000])
    categorical = [list(columns) for columns in prepared.columns if len(columns) > 1] if groups else None
    model = tb.conform(classifier, prepared.train, smoothing=task.protocol.smoothing, categorical=categorical)
    assert model.residual < 1e-10
    assert model.conformity_error(prepared.test) < 1e-12


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


def test_the_fit_is_that_of_the_paper(given_folder: Path) -> None:
    found = fit_task(task=task_of("splice").parameters)
    # The authors' stored curve begins at 0.9653.
    assert found["test_f1_weighted"] == pytest.approx(0.9653, abs=0.005)
    again = fit_task(task=task_of("splice").parameters)
    assert again == found


def test_a_data_set_without_a_protocol_has_a_default() -> None:
    cache = Cache.from_environment(offline=True)
    task = make_task(PROJECT, cache, "breast_cancer", "paper", seed=1)
    prepared = prepare(task.parameters)
    assert (prepared.train.shape, len(prepared.features)) == ((455, 30), 30)
    assert fit_task(task=task.parameters)["test_accuracy"] > 0.9
    with pytest.raises(ConfigurationError, match="encoding must be one of paper, authors, got 'codes'"):
        make_task(PROJECT, cache, "digits", "codes", seed=1)
    with pytest.raises(ConfigurationError, match="dataset must be one of adult, "):
        make_task(PROJECT, cache, "digitz", "paper", seed=1)
