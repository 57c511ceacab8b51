"""The seven networks of the trimming paper, where the cache has them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import trimbench as tb

FOLDER = Path(os.environ.get("TRIMBENCH_CACHE") or "no-cache") / "files" / "trimbn"
N_FEATURES = {"bupa": 6, "pima": 8, "ident": 9, "anatomy": 12, "heart": 13, "voting": 16, "hepatitis": 19}

pytestmark = pytest.mark.skipif(
    not all((FOLDER / f"{name}.net.{end}").is_file() for name in N_FEATURES for end in ("cnf", "lmap", "search")),
    reason="TRIMBENCH_CACHE names no folder with files/trimbn/*.net.{cnf,lmap,search}",
)


def read(name: str) -> tb.NaiveBayes:
    return tb.read_ace(FOLDER / f"{name}.net.cnf", FOLDER / f"{name}.net.lmap")


@pytest.mark.parametrize("name", N_FEATURES)
def test_a_published_network_and_its_problem_are_read(name: str) -> None:
    model = read(name)
    problem = tb.read_ace_problem(FOLDER / f"{name}.net.search")
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
def test_a_shared_parameter_is_a_uniform_row(name: str, feature: str, class_value: int) -> None:
    model = read(name)
    rows = model.likelihoods[model.feature_names.index(feature)]
    assert rows[class_value].tolist() == [0.5, 0.5]
    assert rows[1 - class_value].tolist() != [0.5, 0.5]


def test_parameters_are_those_of_the_file() -> None:
    model = read("bupa")
    np.testing.assert_allclose(model.prior, [0.5794, 0.4206], atol=1e-12)
    np.testing.assert_allclose(model.likelihoods[0], [[0.5597, 0.44029], [0.46238, 0.53767]], atol=1e-4)


def test_files_of_two_networks_do_not_mix() -> None:
    for one in N_FEATURES:
        for other in N_FEATURES:
            if one != other:
                with pytest.raises(ValueError, match=re.escape(str(FOLDER / one))):
                    tb.read_ace(FOLDER / f"{one}.net.cnf", FOLDER / f"{other}.net.lmap")


def read_all(paths: dict[str, Path]) -> tuple[int, int]:
    """The numbers of features in the network and in the problem."""
    return tb.read_ace(paths["cnf"], paths["lmap"]).n_features, len(tb.read_ace_problem(paths["search"]).costs)


@pytest.mark.parametrize("name", ["bupa", "voting"])
@pytest.mark.parametrize("end", ["cnf", "lmap", "search"])
def test_a_published_file_cut_short_after_any_line_is_refused(tmp_path: Path, name: str, end: str) -> None:
    """Blank lines at the end say nothing; every other cut is seen."""
    paths = {e: FOLDER / f"{name}.net.{e}" for e in ("cnf", "lmap", "search")}
    lines = paths[end].read_text(encoding="utf-8").splitlines(keepends=True)
    while not lines[-1].strip():
        lines.pop()
    paths[end] = tmp_path / "cut"
    for count in range(len(lines) + 1):
        paths[end].write_text("".join(lines[:count]), encoding="utf-8")
        if count == len(lines):
            assert read_all(paths) == (N_FEATURES[name], N_FEATURES[name])
            continue
        with pytest.raises(ValueError, match=re.escape(str(paths[end]))):
            read_all(paths)
