"""Mixtures of naive Bayes: their network, files, and learning by expectation maximisation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.networks.random_models import same_naive_bayes
from trimbench.networks.inference.joint import joint_distribution


def mixture() -> tb.NaiveBayesMixture:
    rng = np.random.default_rng(1)
    parts = tb.NaiveBayes(
        rng.dirichlet(np.ones(5)),
        [rng.dirichlet(np.ones(n), size=5) for n in (2, 3, 2)],
        class_variable="component",
        feature_names=["x", "y", "z"],
    )
    return tb.NaiveBayesMixture(parts, ["ill", "well", "ill", "odd", "well"], class_variable="state")


def rows_of_two_kinds(n_rows: int) -> tuple[pd.DataFrame, pd.Series]:
    """In one class, rows are mostly 0 or mostly 1; in the other, every cell is a fair coin."""
    rng = np.random.default_rng(0)
    ill = np.arange(n_rows) % 2 == 0
    kind = rng.random(n_rows) < 0.5
    chance = np.where(ill, np.where(kind, 0.9, 0.1), 0.5)
    cells = (rng.random((n_rows, 8)) < chance[:, None]).astype(int)
    return pd.DataFrame(cells, columns=list("abcdefgh")), pd.Series(np.where(ill, "ill", "well"), name="health")


def test_the_network_of_a_mixture_has_its_distribution() -> None:
    model, parts = mixture(), mixture().components
    belongs = np.array([[home == name for home in model.class_of] for name in model.class_names])
    expected = np.einsum("ck,k,kx,ky,kz->cxyz", belongs, parts.prior, *parts.likelihoods)
    np.testing.assert_allclose(joint_distribution(model.to_network(), ["state", "x", "y", "z"]), expected, rtol=1e-12)
    rows = model.sample(100, np.random.default_rng(3))
    settings: dict[str, Any] = {"positive": ["ill", "odd"], "features": ["z", "x"], "evidence": {"y": "2"}}
    one = tb.BayesianClassifier(model, **settings)
    other = tb.BayesianClassifier(model.to_network(), "state", **settings)
    assert one.prior == pytest.approx(other.prior)
    assert one.posterior(rows) == pytest.approx(other.posterior(rows))
    assert tb.BayesianClassifier(model, positive="ill").features == ("x", "y", "z")


def test_a_saved_mixture_is_the_same(tmp_path: Path) -> None:
    model = mixture()
    model.save(tmp_path / "model.json")
    again = tb.NaiveBayesMixture.load(tmp_path / "model.json")
    assert (again.class_of, again.class_variable) == (model.class_of, "state")
    assert same_naive_bayes(again.components, model.components)
    assert repr(model) == "NaiveBayesMixture('state' in ['ill', 'well', 'odd'] with [2, 2, 1] components, 3 features)"


def test_one_component_is_naive_bayes() -> None:
    features, target = rows_of_two_kinds(60)
    model = tb.learn(features, target, structure="mixture", n_components=1, smoothing=0.5)
    plain = tb.learn(features, target, smoothing=0.5)
    assert model.components.prior == pytest.approx(plain.prior)
    for one, other in zip(model.components.likelihoods, plain.likelihoods, strict=True):
        np.testing.assert_allclose(one, other)


def test_components_are_found() -> None:
    features, target = rows_of_two_kinds(2000)
    model = tb.learn(features, target, structure="mixture", random_state=1)
    assert model.class_names == ("ill", "well")
    means = sorted(np.mean([table[row, 1] for table in model.components.likelihoods]) for row in (0, 1))
    assert means == pytest.approx([0.1, 0.9], abs=0.03)
    plain = tb.BayesianClassifier(tb.learn(features, target), positive="ill")
    mixed = tb.BayesianClassifier(model, positive="ill")
    accuracy = {name: float((c.predict(features) == target).mean()) for name, c in (("nb", plain), ("mix", mixed))}
    assert accuracy["mix"] > accuracy["nb"] + 0.2
    again = tb.learn(features, target, structure="mixture", random_state=1)
    assert again.components.prior.tolist() == model.components.prior.tolist()
    gaps = features.astype(object).mask(np.random.default_rng(1).random(features.shape) < 0.1)
    with pytest.raises(ValueError, match="feature 'a' must have no missing values"):
        tb.learn(gaps, target, structure="mixture")
    model = tb.learn(gaps, target, structure="mixture", missing="ignore")
    means = sorted(np.mean([table[row, 1] for table in model.components.likelihoods]) for row in (0, 1))
    assert means == pytest.approx([0.1, 0.9], abs=0.03)


def test_impossible_mixtures_are_named() -> None:
    parts = tb.NaiveBayes([0.5, 0.5], [], class_variable="component")
    with pytest.raises(ValueError, match="class_of must name a class for each of the 2 components, got 1"):
        tb.NaiveBayesMixture(parts, "a")
    with pytest.raises(ValueError, match="must be distinct, got 'component' more than once"):
        tb.NaiveBayesMixture(parts, ["a", "b"], class_variable="component")
    with pytest.raises(TypeError, match="components must be a NaiveBayes, got list"):
        tb.NaiveBayesMixture([], ["a"])  # type: ignore[arg-type]
