"""The seven networks of the trimming paper, where the cache has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trimbench as tb
from trimbench.networks.formats.ace import read_problem
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declarations import compare_with_files, declare_network, load_network

PROJECT = Catalogue((configuration_folder(),))
NOWHERE = Cache((), Path("nowhere"), offline=True)
N_FEATURES = {"bupa": 6, "pima": 8, "ident": 9, "anatomy": 12, "heart": 13, "voting": 16, "hepatitis": 19}


def read(folder: Path, name: str) -> tb.NaiveBayes:
    return tb.NaiveBayes.read_ace(folder / f"files/trimbn/{name}.net.cnf", folder / f"files/trimbn/{name}.net.lmap")


@pytest.mark.parametrize("name", N_FEATURES)
def test_a_published_network_and_its_problem_are_read(given_networks: Path, name: str) -> None:
    model = read(given_networks, name)
    problem = read_problem(given_networks / f"files/trimbn/{name}.net.search")
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


@pytest.mark.parametrize("name", N_FEATURES)
def test_the_declared_figures_are_those_of_the_files_to_the_last_bit(given_networks: Path, name: str) -> None:
    cache = Cache((given_networks,), given_networks, offline=True)
    declaration = declare_network(name, PROJECT.network_mapping(name))
    assert compare_with_files(declaration, cache)
    loaded, model = load_network(declaration, cache), read(given_networks, name)
    problem = read_problem(given_networks / f"files/trimbn/{name}.net.search")
    assert isinstance(loaded.model, tb.NaiveBayes)
    assert (loaded.features, loaded.target) == (tuple(problem.costs), problem.target)
    assert loaded.model.prior.tobytes() == model.prior.tobytes()
    assert [table.tobytes() for table in loaded.model.likelihoods] == [one.tobytes() for one in model.likelihoods]


def test_the_figures_are_332_probabilities() -> None:
    loaded = [load_network(declare_network(name, PROJECT.network_mapping(name)), NOWHERE).model for name in N_FEATURES]
    assert sum(table.size for model in loaded if isinstance(model, tb.NaiveBayes) for table in model.likelihoods) == 332


def test_parameters_are_those_of_the_file(given_networks: Path) -> None:
    model = read(given_networks, "bupa")
    np.testing.assert_allclose(model.prior, [0.5794, 0.4206], atol=1e-12)
    np.testing.assert_allclose(model.likelihoods[0], [[0.5597, 0.44029], [0.46238, 0.53767]], atol=1e-4)
