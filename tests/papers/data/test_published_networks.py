"""The seven networks of the trimming paper, where the cache has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trimbench as tb

N_FEATURES = {"bupa": 6, "pima": 8, "ident": 9, "anatomy": 12, "heart": 13, "voting": 16, "hepatitis": 19}


def read(folder: Path, name: str) -> tb.NaiveBayes:
    return tb.read_ace(folder / f"files/trimbn/{name}.net.cnf", folder / f"files/trimbn/{name}.net.lmap")


@pytest.mark.parametrize("name", N_FEATURES)
def test_a_published_network_and_its_problem_are_read(given_networks: Path, name: str) -> None:
    model = read(given_networks, name)
    problem = tb.read_ace_problem(given_networks / f"files/trimbn/{name}.net.search")
    assert model.n_features == N_FEATURES[name]
    assert model.class_names == ("0", "1")
    assert set(model.cardinalities) == {2}
    assert model.prior.sum() == pytest.approx(1.0, abs=1e-15)
    assert problem.target == model.class_variable
    assert set(problem.costs) == set(model.feature_names)
    assert set(problem.costs.values()) == {1.0}
    assert problem.threshold == 0.5
    assert 2.0 <= problem.budget <= 6.3


@pytest.mark.parametrize(
    ("name", "feature", "class_value"), [("bupa", "BP6", 0), ("ident", "II4", 1), ("ident", "II9", 1)]
)
def test_a_shared_parameter_is_a_uniform_row(given_networks: Path, name: str, feature: str, class_value: int) -> None:
    model = read(given_networks, name)
    rows = model.likelihoods[model.feature_names.index(feature)]
    assert rows[class_value].tolist() == [0.5, 0.5]
    assert rows[1 - class_value].tolist() != [0.5, 0.5]


def test_parameters_are_those_of_the_file(given_networks: Path) -> None:
    model = read(given_networks, "bupa")
    np.testing.assert_allclose(model.prior, [0.5794, 0.4206], atol=1e-12)
    np.testing.assert_allclose(model.likelihoods[0], [[0.5597, 0.44029], [0.46238, 0.53767]], atol=1e-4)
