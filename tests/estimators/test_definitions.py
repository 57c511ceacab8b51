"""Single functions of the estimators against what their docstrings say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trimbench.estimators import MissingAsZerosWarning
from trimbench.estimators.conformant import warn_of_zeros
from trimbench.estimators.fitted_pipeline import GivenClassifier
from trimbench.estimators.pipeline_values import Density, Model, learned
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.mixture import NaiveBayesMixture
from trimbench.networks.naive_bayes import NaiveBayes


@pytest.mark.parametrize(
    ("density", "kind"),
    [("naive_bayes", NaiveBayes), ("tree_augmented", BayesianNetwork), ("mixture", NaiveBayesMixture)],
)
def test_each_density_is_of_its_kind(density: Density, kind: type[Model]) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"class": pd.Categorical(rng.choice(["u", "v"], 30)), "b": pd.Categorical(rng.choice(["x", "y"], 30))}
    )
    model, variable = learned(density, rows, np.arange(30) % 2, ["no", "yes"], 1.0, 2)
    assert type(model) is kind
    assert variable == "class_", "a feature has the name"


@pytest.mark.parametrize(
    ("n_columns", "shown"), [(3, "c0, c1, c2,"), (4, "c0, c1, c2, c3,"), (6, "c0, c1, c2, c3, ...,")]
)
def test_four_columns_of_a_group_without_a_one_are_named(n_columns: int, shown: str) -> None:
    rows = np.vstack([np.zeros((2, n_columns)), np.eye(n_columns)])
    with pytest.warns(MissingAsZerosWarning) as told:
        warn_of_zeros(rows, [np.arange(n_columns)], [f"c{i}" for i in range(n_columns)], stacklevel=1)
    assert f"2 of {len(rows)} rows have 0 in all of the columns {shown} of which" in str(told[0].message)
    assert told[0].filename == __file__


def test_scaled_zeros_and_ones_are_zeros_and_ones_again() -> None:
    X = pd.DataFrame({"a": [0.0, 1, 1, 0, 1, 1], "b": [0.5, 2.0, 1.0, -1.0, 0.0, 3.0], "c": [0, 0, 0, 0, 1, 1]})
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, [0, 1, 0, 1, 1, 0])
    given = GivenClassifier.of(pipeline, X)
    encoded = given.encode(X)
    np.testing.assert_allclose(encoded[:, 0], X["a"], atol=1e-12)
    np.testing.assert_allclose(encoded[:, 2], X["c"], atol=1e-12)
    np.testing.assert_allclose(encoded[:, 1], (X["b"] - X["b"].mean()) / X["b"].std(ddof=0))
    assert given.zeros_and_ones.tolist() == [0, 2]
