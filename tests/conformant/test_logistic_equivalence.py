"""Lemmas 1 and 2, and Example 2, as properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.conformant import brute_force
from trimbench.papers.conformant.figure1 import naive_bayes_of_weights, weights_of_naive_bayes

PROBABILITY = st.floats(0.01, 0.99)


@st.composite
def naive_bayes(draw: st.DrawFn) -> tuple[float, np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 6))
    thetas = [np.array(draw(st.lists(PROBABILITY, min_size=n, max_size=n))) for _ in range(2)]
    return draw(PROBABILITY), thetas[0], thetas[1]


def posterior(prior: float, positive: np.ndarray, negative: np.ndarray, x: np.ndarray) -> float:
    a = prior * np.prod(np.where(x, positive, 1 - positive))
    b = (1 - prior) * np.prod(np.where(x, negative, 1 - negative))
    return float(a / (a + b))


@given(model=naive_bayes())
@settings(max_examples=200, deadline=None)
def test_lemma_1(model: tuple[float, np.ndarray, np.ndarray]) -> None:
    bias, weights = weights_of_naive_bayes(*model)
    for x in itertools.product([0, 1], repeat=len(weights)):
        by_weights = 1 / (1 + np.exp(-(bias + weights @ np.array(x))))
        assert posterior(*model, np.array(x)) == pytest.approx(by_weights, abs=1e-12)


@given(model=naive_bayes())
@settings(max_examples=200, deadline=None)
def test_round_trip(model: tuple[float, np.ndarray, np.ndarray]) -> None:
    prior, positive, negative = model
    bias, weights = weights_of_naive_bayes(prior, positive, negative)
    back_prior, back_negative = naive_bayes_of_weights(bias, weights, positive)
    assert back_prior == pytest.approx(prior, abs=1e-10)
    np.testing.assert_allclose(back_negative, negative, atol=1e-10)


@given(model=naive_bayes(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_lemma_2(model: tuple[float, np.ndarray, np.ndarray], seed: int) -> None:
    rng = np.random.default_rng(seed)
    bias, weights = rng.normal(), rng.normal(0, 2, len(model[1]))
    prior, negative = naive_bayes_of_weights(bias, weights, model[1])
    again = weights_of_naive_bayes(prior, model[1], negative)
    assert again[0] == pytest.approx(bias, abs=1e-9)
    np.testing.assert_allclose(again[1], weights, atol=1e-9)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_example_2(seed: int, n: int) -> None:
    """With independent features and a logit of one sign, mean imputation is an over- or under-approximation."""
    rng = np.random.default_rng(seed)
    weights, means = rng.normal(0, 1, n), rng.uniform(0.05, 0.95, n)
    lowest = np.minimum(weights, 0).sum()
    bias = -lowest + rng.exponential()
    instances = np.array(list(itertools.product([0, 1], repeat=n)))
    chance = np.prod(np.where(instances, means, 1 - means), axis=1)
    expected = chance @ (1 / (1 + np.exp(-(bias + instances @ weights))))
    imputed = 1 / (1 + np.exp(-(bias + means @ weights)))
    assert imputed >= expected - 1e-15
    negated = chance @ (1 / (1 + np.exp(bias + instances @ weights)))
    assert 1 / (1 + np.exp(bias + means @ weights)) <= negated + 1e-15


@given(seed=st.integers(0, 2**32), n=st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_example_2_for_a_conformant_model(seed: int, n: int) -> None:
    """The same within a class mixture: the mean of the missing features given the observed ones is imputed."""
    rng = np.random.default_rng(seed)
    X = (rng.random((60, n)) < rng.uniform(0.2, 0.8, n)).astype(float)
    X[0], X[1] = 0, 1
    weights = np.column_stack([np.zeros(n), rng.normal(0, 1, n)])
    biases = np.array([0.0, -np.minimum(weights[:, 1], 0).sum() + 0.1])
    classifier = brute_force.fake_classifier(weights, biases)
    model = tb.conform(classifier, X)
    row = np.where(rng.random(n) < 0.5, np.nan, X[2])
    assume(np.isnan(row).any())
    rows = brute_force.instances(model)
    agrees = (np.isnan(row) | (rows == row)).all(axis=1)
    mass = brute_force.joint(model, rows[agrees]).sum(axis=1)
    imputed = mass @ rows[agrees] / mass.sum()
    assert classifier.predict_proba(imputed[None])[0, 1] >= model.predict_proba(row[None])[0, 1] - 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weights_of_naive_bayes(1.0, [0.5], [0.5]), r"prior must be probabilities strictly between 0 and 1"),
        (lambda: weights_of_naive_bayes(0.5, [0.0], [0.5]), r"positive must be probabilities strictly between"),
        (lambda: weights_of_naive_bayes(0.5, [0.5, 0.5], [0.5]), "must have the same length, got 2 and 1"),
        (lambda: naive_bayes_of_weights(0.0, [1.0, 2.0], [0.5]), "weights and positive must have the same length"),
    ],
)
def test_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
