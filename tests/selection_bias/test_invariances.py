"""Changes of the data that must not change a prediction, and ways to compute that must not either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import trimbench as tb
from tests.selection_bias.settings import grouped

Array = NDArray[Any]
SEVERAL = st.integers(2, 3)


@dataclass(frozen=True)
class Data:
    """Training cases, the number of features to select, cases to predict, and the settings of a fit."""

    X: Array
    y: Array
    k: int
    new: Array
    options: dict[str, Any]
    rng: np.random.Generator

    def fit(self, **changes: Any) -> Any:
        return tb.fit_selection_corrected(self.X, self.y, self.k, **grouped(**(self.options | changes)))


@st.composite
def data_sets(draw: st.DrawFn, n_classes: st.SearchStrategy[int] = SEVERAL, most: int = 8, **options: Any) -> Data:
    """Draw from the model; without those where a selected feature has no correlation, which is refused."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = [draw(st.integers(2, most)) for _ in range(draw(n_classes))]
    p = draw(st.integers(2, 39))
    theta, alpha = rng.uniform(0.05, 0.95, size=p), draw(st.sampled_from([1.0, 5.0, 50.0]))
    phi = rng.beta(alpha * theta, alpha * (1 - theta), size=(len(sizes), p))
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = (rng.random((len(y), p)) < phi[y]).astype(float)
    X[0], X[1] = 0, 1
    ties = draw(st.sampled_from(["exact", "less", "less_equal"]))
    settings = {"ties": ties, "n_alpha": 9, "correct": draw(st.integers(0, 4)) > 0} | options
    data = Data(X, y, draw(st.integers(1, p)), (rng.random((9, p)) < 0.5).astype(float), settings, rng)
    try:
        data.fit()
    except ValueError as error:
        assume("y at all" not in str(error))
        raise
    return data


def check(one: Any, other: Any, rows: Array, other_rows: Array, tolerance: float = 1e-9) -> None:
    """Compare all that two models say, each on its own form of the rows."""
    values = [(other.gamma, one.gamma), (other.log_adjustment, one.log_adjustment)]
    if not getattr(getattr(one, "selection", None), "n_tied", 0):  # else features of other counts may be selected
        values += [(other.alpha_posterior, one.alpha_posterior)]
        values += [(other.predict_proba(other_rows), one.predict_proba(rows))]
    for found, expected in values:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@given(data=data_sets())
@settings(max_examples=10)
def test_orders_of_cases_and_features_do_not_matter(data: Data) -> None:
    rows, columns = data.rng.permutation(len(data.y)), data.rng.permutation(data.X.shape[1])
    other = replace(data, X=data.X[np.ix_(rows, columns)], y=data.y[rows])
    check(data.fit(), other.fit(), data.new, data.new[:, columns])


@given(data=data_sets())
@settings(max_examples=10)
def test_a_feature_may_be_coded_by_its_opposite(data: Data) -> None:
    flipped = data.rng.random(data.X.shape[1]) < 0.5
    other = replace(data, X=np.where(flipped, 1 - data.X, data.X))
    check(data.fit(), other.fit(), data.new, np.where(flipped, 1 - data.new, data.new))


@given(data=data_sets())
@settings(max_examples=10)
def test_classes_may_have_any_numbers(data: Data) -> None:
    name = data.rng.permutation(int(data.y.max()) + 1)
    one, other = data.fit(), replace(data, y=name[data.y]).fit()
    np.testing.assert_allclose(other.gamma, one.gamma, rtol=1e-9)
    np.testing.assert_allclose(other.log_adjustment, one.log_adjustment, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.predict_proba(data.new)[:, name], one.predict_proba(data.new), rtol=0, atol=1e-9)


@given(data=data_sets(), place=st.integers(1, 8))
@settings(max_examples=10)
def test_cases_are_predicted_alike_together_and_apart_and_without_what_was_discarded(data: Data, place: int) -> None:
    model = data.fit()
    whole = model.predict_proba(data.new)
    for places in ([place], range(1, 9)):
        parts = [model.predict_proba(part) for part in np.split(data.new, places)]
        np.testing.assert_allclose(np.vstack(parts), whole, rtol=1e-12, atol=1e-12)
    many = model.predict_proba(np.tile(data.new, (300, 1)))
    np.testing.assert_allclose(many, np.tile(whole, (300, 1)), rtol=1e-12, atol=1e-12)
    seen = np.isin(np.arange(data.X.shape[1]), model.selected)
    np.testing.assert_allclose(model.predict_proba(np.where(seen, data.new, np.nan)), whole, rtol=1e-12, atol=1e-12)


@given(data=data_sets(st.just(2), 13))
@settings(max_examples=5)
def test_two_categories_are_the_binary_model(data: Data) -> None:
    binary, discrete = data.fit(), data.fit(features="categorical")
    assert discrete.selected.tolist() == binary.selected.tolist()
    check(binary, discrete, data.new, data.new, 1e-8)
    check(binary.uncorrected(), discrete.uncorrected(), data.new, data.new, 1e-8)


@given(data=data_sets(st.just(2), 59), rule=st.sampled_from(["gauss", "simpson"]))
@settings(max_examples=8)
def test_walks_through_counts_are_tables_of_them(data: Data, rule: str) -> None:
    room = "trimbench.selection_bias"
    with mock.patch(f"{room}.binary.MOST_TABLED", 0), mock.patch(f"{room}.factors.MOST_TABLED", 0):
        walked = data.fit(rule=rule)
    tabled = data.fit(rule=rule)
    assert walked.selected.tolist() == tabled.selected.tolist()
    check(tabled, walked, data.new, data.new)
    np.testing.assert_allclose(walked.log_likelihood, tabled.log_likelihood, rtol=1e-12)
