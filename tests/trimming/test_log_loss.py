"""The features with the lowest cross-validated log loss, against all affordable sets."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import trimbench as tb
from trimbench.estimators import TrimmedClassifier
from trimbench.trimming.problem import Limits, checked_choice, is_affordable
from trimbench.trimming.search.log_loss import HeldOutEvidence, lowest_log_loss

NAMES = [f"f{place}" for place in range(6)]


def drawn(seed: int, n_rows: int = 60, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Rows of features that depend on the class and on each other."""
    rng = np.random.default_rng(seed)
    classes = np.concatenate([np.arange(n_classes).repeat(2), rng.integers(n_classes, size=n_rows - 2 * n_classes)])
    sizes = rng.integers(2, 4, size=6)
    common = rng.random(n_rows)
    columns = [
        np.where(
            rng.random(n_rows) < 0.4, classes % size, ((0.5 * rng.random(n_rows) + 0.5 * common) * size).astype(int)
        )
        for size in sizes
    ]
    return np.stack(columns, axis=1), classes, sizes.tolist()


def loss_of(evidence: HeldOutEvidence, kept: tuple[int, ...]) -> float:
    scores = evidence.offsets + evidence.weights[:, :, list(kept)].sum(axis=2)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return float(log_loss(evidence.classes, shares, labels=range(scores.shape[1])))


def subsets(least: set[int], most: set[int]) -> list[tuple[int, ...]]:
    free = sorted(most - least)
    return [(*sorted(least), *some) for n in range(len(free) + 1) for some in itertools.combinations(free, n)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.data())
def test_no_affordable_set_is_better(seed: int, n_classes: int, data: st.DataObject) -> None:
    codes, classes, sizes = drawn(seed, n_classes=n_classes)
    evidence = HeldOutEvidence.of(codes, classes, sizes, 1.0)
    costs = dict(
        zip(NAMES, data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=6, max_size=6)), strict=True)
    )
    budget = data.draw(st.sampled_from([1.0, 2.5, 4.0, 20.0]))
    required = data.draw(st.sampled_from([[], ["f1"]]))
    if sum(costs[name] for name in required) > budget:
        return
    choice = checked_choice(NAMES, budget, costs, required=required, forbidden=["f4"])
    found = lowest_log_loss(evidence, choice, Limits())
    least = {NAMES.index(name) for name in required}
    allowed = [
        kept
        for kept in subsets(least, {0, 1, 2, 3, 5})
        if is_affordable([costs[NAMES[place]] for place in kept], budget)
    ]
    losses = [loss_of(evidence, kept) for kept in allowed]
    assert found.optimal
    assert found.log_loss == pytest.approx(min(losses), abs=1e-8)
    assert loss_of(evidence, found.features) == pytest.approx(found.log_loss, abs=1e-10)
    assert found.features in [tuple(sorted(kept)) for kept in allowed]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_a_search_that_is_stopped_is_bounded(seed: int, most: int) -> None:
    codes, classes, sizes = drawn(seed)
    evidence = HeldOutEvidence.of(codes, classes, sizes, 1.0)
    choice = checked_choice(NAMES, 3, groups={"both": ["f0", "f1"]})
    found = lowest_log_loss(evidence, choice, Limits(evaluation_limit=most))
    units = [(0, 1), (2,), (3,), (4,), (5,)]
    sets = [sum(some, ()) for n in range(4) for some in itertools.combinations(units, n)]
    best = min(loss_of(evidence, kept) for kept in sets)
    assert found.lower_bound <= best + 1e-9
    assert found.log_loss >= best - 1e-9
    assert found.optimal == (found.lower_bound >= found.log_loss - 1e-9)


def test_evidence_is_that_of_naive_bayes_without_the_fold() -> None:
    codes, classes, sizes = drawn(3)
    evidence = HeldOutEvidence.of(codes, classes, sizes, 0.5)
    frame = pd.DataFrame(
        {name: pd.Categorical.from_codes(codes[:, i], list("abc")[: sizes[i]]) for i, name in enumerate(NAMES)}
    )
    target = pd.Series(np.array(["no", "yes"])[classes])
    for train, out in StratifiedKFold(5, shuffle=True, random_state=0).split(codes, classes):
        model = tb.learn(frame.iloc[train], target.iloc[train], smoothing=0.5)
        logs = tb.BayesianClassifier(model, positive="yes").predict_proba(frame.iloc[out])
        scores = evidence.offsets[out] + evidence.weights[out].sum(axis=2)
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(shares[:, 1], logs[:, 0], atol=1e-12)


def table(n_rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Two columns that say something, one of which three others repeat."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n_rows)
    strong, weak = (np.where(rng.random(n_rows) < share, y, 1 - y) for share in (0.85, 0.75))
    copies = {f"copy{i}": np.where(rng.random(n_rows) < 0.97, strong, 1 - strong) for i in range(3)}
    return pd.DataFrame({"strong": strong, **copies, "weak": weak}).astype("category"), y


def test_the_estimator_keeps_what_predicts_well() -> None:
    X, y = table()
    by_agreement = TrimmedClassifier(budget=3).fit(X, y)
    by_loss = TrimmedClassifier(budget=3, objective="log_loss").fit(X, y)
    assert "weak" in by_loss.features_
    assert by_loss.log_loss_.optimal
    assert by_loss.trimming_ is None
    assert by_loss.classifier_.threshold == 0.5
    new, truth = table(2000)
    losses = [log_loss(truth, model.predict_proba(new)) for model in (by_agreement, by_loss)]
    assert losses[1] < losses[0]
    by_loss.save("model.json")
    loaded = TrimmedClassifier.load("model.json")
    assert loaded.objective == "log_loss"
    np.testing.assert_array_equal(loaded.predict_proba(X), by_loss.predict_proba(X))
    assert TrimmedClassifier(budget=3, objective="log_loss", required=["copy1"]).fit(X, y).features_[0] == "copy1"


def test_three_classes() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], 40)
    X = np.where(rng.random((120, 5)) < 0.3, (y == "b")[:, None] + 2.0 * (y == "c")[:, None], rng.random((120, 5)))
    model = TrimmedClassifier(budget=2, objective="log_loss", time_limit=None).fit(X, y)
    assert model.log_loss_.optimal
    assert len(model.features_) <= 2
    assert model.predict_proba(X).shape == (120, 3)


def test_a_stopped_search_warns_with_its_bound() -> None:
    X, y = table()
    with pytest.warns(ConvergenceWarning, match=r"time_limit=1e-09 seconds: .* log loss of \d.*; time_limit=None may"):
        TrimmedClassifier(budget=3, objective="log_loss", time_limit=1e-9).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"objective": "loss"}, "objective must be one of"),
        (
            {"density": "mixture"},
            "density must be 'naive_bayes' with objective='log_loss', got 'mixture'; leave it out",
        ),
        ({"rows_weight": 0}, "rows_weight must be 'auto' with objective='log_loss', got 0; leave it out"),
        ({"prefer": "cheapest"}, "prefer must be 'best' with objective='log_loss', got 'cheapest'; leave it out"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, object], complaint: str) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=complaint):
        TrimmedClassifier(**{"objective": "log_loss", **changes}).fit(X, y)


def test_a_fitted_model_has_no_labels() -> None:
    X, y = table()
    model = TrimmedClassifier(budget=2).fit(X, y).classifier_.model
    with pytest.raises(ValueError, match=r"objective must be 'agreement' for a fitted model, .* use fit"):
        TrimmedClassifier.from_fitted(model, objective="log_loss")


def test_several_budgets_learn_once() -> None:
    X, y = table()
    for budget, one in zip((1, 3), TrimmedClassifier(objective="log_loss").fit_budgets(X, y, [1, 3]), strict=True):
        alone = TrimmedClassifier(budget=budget, objective="log_loss").fit(X, y)
        assert (one.features_, one.log_loss_.log_loss) == (alone.features_, alone.log_loss_.log_loss)
