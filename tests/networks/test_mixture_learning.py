"""Learning mixtures: one component is naive Bayes, steps never lose, and hidden groups are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from trimbench.networks.mixture_learning import _fit, _Table


def table(seed: int, n_rows: int = 80) -> tuple[pd.DataFrame, pd.Series]:
    """Two classes; in each, a hidden group decides all three features at once."""
    rng = np.random.default_rng(seed)
    ill, group = rng.random(n_rows) < 0.4, rng.random(n_rows) < 0.5
    same = ill == group
    columns = {f"x{i}": np.where(rng.random(n_rows) < 0.9, same if i < 2 else group, ill) for i in range(3)}
    columns["k"] = rng.integers(0, 3, size=n_rows)
    return pd.DataFrame(columns), pd.Series(np.where(ill, "ill", "well"), name="state")


@given(seed=st.integers(0, 2**32), smoothing=st.sampled_from([0.5, 1.0, 3.0]), gaps=st.booleans())
@settings(max_examples=30, deadline=None)
def test_one_component_is_naive_bayes(seed: int, smoothing: float, gaps: bool) -> None:
    rows, target = table(seed, 30)
    if gaps:
        rows = rows.astype(object).mask(np.random.default_rng(seed).random(rows.shape) < 0.1)
    plain = tb.learn_naive_bayes(rows, target, smoothing=smoothing, missing="ignore")
    mixture = tb.learn_naive_bayes_mixture(rows, target, n_components=1, smoothing=smoothing, missing="ignore")
    assert mixture.class_names == plain.class_names
    assert mixture.class_variable == "state"
    assert mixture.components.value_names == plain.value_names
    np.testing.assert_allclose(mixture.components.prior, plain.prior)
    for one, other in zip(mixture.components.likelihoods, plain.likelihoods, strict=True):
        np.testing.assert_allclose(one, other)


@given(seed=st.integers(0, 2**32), n_components=st.integers(1, 4), n_rows=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_no_step_loses(seed: int, n_components: int, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 1]
    columns = [rng.integers(-1, size, size=n_rows) for size in sizes]
    rows = _Table.of(columns, sizes)
    scores = [_fit(rows, n_components, 1.0, steps, np.random.default_rng(seed)).score for steps in range(1, 12)]
    assert (np.diff(scores) >= -1e-9).all()
    found = _fit(rows, n_components, 1.0, 5, rng)
    np.testing.assert_allclose(found.shares.sum(), 1.0)
    np.testing.assert_allclose(np.add.reduceat(found.chances, [0, 2, 5], axis=1), 1.0)


def log_likelihood(model: Any, rows: pd.DataFrame, target: pd.Series) -> float:
    classifier = tb.ArgMaxClassifier(model)
    proba = classifier.predict_proba(rows)
    places = [classifier.class_names.index(label) for label in target]
    return float(np.log(proba[np.arange(len(rows)), places]).mean())


def test_hidden_groups_are_found() -> None:
    rows, target = table(0, 400)
    new, labels = table(1, 400)
    plain = tb.learn_naive_bayes(rows, target)
    mixture = tb.learn_naive_bayes_mixture(rows, target, n_components=2)
    assert mixture.class_of == ("ill", "ill", "well", "well")
    assert log_likelihood(mixture, new, labels) > log_likelihood(plain, new, labels) + 0.1
    again = tb.learn_naive_bayes_mixture(rows, target, n_components=2)
    assert again.components.prior.tobytes() == mixture.components.prior.tobytes()


def test_a_class_has_no_more_components_than_rows() -> None:
    rows = pd.DataFrame({"component": ["a", "b", "a", "b"]})
    mixture = tb.learn_naive_bayes_mixture(rows, pd.Series(["x", "y", "y", "y"]), n_components=3)
    assert mixture.class_of == ("x", "y", "y", "y")
    assert mixture.components.class_variable == "component_"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smoothing": 0}, "smoothing must be positive for a mixture, got 0"),
        ({"n_components": 0}, "n_components must be a whole number, 1 or more, got 0"),
        ({"n_starts": 1.5}, "n_starts must be a whole number, 1 or more, got 1.5"),
        ({"max_steps": True}, "max_steps must be a whole number, 1 or more, got True"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    rows, target = table(0, 20)
    with pytest.raises(ValueError) as caught:
        tb.learn_naive_bayes_mixture(rows, target, **change)
    assert message in str(caught.value)
