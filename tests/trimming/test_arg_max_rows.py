"""Trimming of several classes on rows: against every subset, and the compiled kernel against NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import distributions
from tests.trimming.test_arg_max import agreement, classifiers, part, whole
from trimbench._typing import IntegerArray
from trimbench.networks.sampling import RowSampler
from trimbench.trimming import kernels
from trimbench.trimming.engines.table import ClassMeasures
from trimbench.trimming.limits import Progress
from trimbench.trimming.search.row_scores import numpy_agreement
from trimbench.trimming.search.rows import RowProblem


def agreement_on(classifier: tb.BayesianClassifier, names: list[str], rows: pd.DataFrame) -> float:
    original = classifier.predict(rows)
    return float((classifier.with_features(names).predict(rows) == original).mean())


@given(seed=st.integers(0, 2**32), coarse=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_kernel_counts_as_numpy_does(seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_cells, n_values, n_classes = 40, 6, 3, int(rng.integers(2, 5))
    with np.errstate(divide="ignore"):
        logs = np.log(distributions(rng, (n_cells, n_classes), coarse=coarse))
        weights = np.log(distributions(rng, (n_classes, n_values), coarse=coarse)).T.copy()
    arguments = (
        logs,
        rng.integers(0, n_cells, size=n_rows),
        rng.integers(0, n_values, size=n_rows).astype(np.uint8),
        weights,
        rng.integers(0, n_classes, size=n_rows),
        rng.dirichlet(np.ones(n_rows)),
    )
    if np.isfinite(logs).all() and np.isfinite(weights).all():
        plain = numpy_agreement(*arguments, np.zeros(n_classes))
        assert float(kernels.agreement(*arguments)) == pytest.approx(plain, abs=1e-14)


@given(classifier=classifiers(), seed=st.integers(0, 2**32), budget=st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_rows_alone_give_the_best_subset_on_the_rows(classifier: tb.BayesianClassifier, seed: int, budget: int) -> None:
    codes = classifier.draw(25, np.random.default_rng(seed))
    rows = _frame(classifier, codes)
    found = tb.trim(classifier, budget, rows=rows, rows_weight=1)
    best = max(
        agreement_on(classifier, list(names), rows)
        for size in range(min(budget, classifier.n_features) + 1)
        for names in itertools.combinations(classifier.features, size)
    )
    assert found.rows_agreement is not None
    assert found.rows_agreement.apparent == pytest.approx(best, abs=1e-12)
    assert agreement_on(classifier, list(found.features), rows) == pytest.approx(best, abs=1e-12)
    assert found.agreement == pytest.approx(agreement(whole(classifier), found.kept), abs=1e-11)
    assert found.agreement <= found.upper_bound


@given(classifier=classifiers(), seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_rows_alone_leave_the_bound_of_the_model(classifier: tb.BayesianClassifier, seed: int) -> None:
    rows = _frame(classifier, classifier.draw(25, np.random.default_rng(seed)))
    told: list[Progress] = []
    found = tb.trim(classifier, 1, rows=rows, rows_weight=1, progress=told.append)
    best = tb.trim(classifier, 1)
    assert found.agreement - 1e-12 <= best.agreement <= found.upper_bound + 1e-12
    assert found.upper_bound <= tb.trim(classifier, 1, evaluation_limit=1).upper_bound + 1e-12
    assert told[-1].upper_bound == found.upper_bound
    assert found.resume() is found


@given(classifier=classifiers(), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_weight_zero_is_the_trimming_by_the_model(classifier: tb.BayesianClassifier, seed: int) -> None:
    rows = _frame(classifier, classifier.draw(25, np.random.default_rng(seed)))
    by_model = tb.trim(classifier, 2)
    found = tb.trim(classifier, 2, rows=rows, rows_weight=0)
    assert (found.features, found.agreement) == (by_model.features, by_model.agreement)
    assert found.rows_agreement is not None
    assert found.rows_agreement.apparent == agreement_on(classifier, list(found.features), rows)


@given(classifier=classifiers(), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_rows_of_the_model_have_its_distribution(classifier: tb.BayesianClassifier, seed: int) -> None:
    problem = RowProblem(classifier)
    weighted = problem.model_rows(np.random.default_rng(seed))
    joint = whole(classifier)
    for codes, decision, weight in zip(weighted.codes, weighted.decisions, weighted.weights, strict=True):
        masses = joint[tuple(int(code) for code in codes)]
        assert weight == pytest.approx(float(masses.sum()), abs=1e-12)
        assert masses[decision] >= masses.max() * (1 - 1e-11)
    assert math.fsum(weighted.weights) == pytest.approx(1.0)
    kept = list(range(0, classifier.n_features, 2))
    seen = part(joint, kept)
    decided = problem.decisions(kept, None, weighted.codes)
    for codes, decision in zip(weighted.codes, decided, strict=True):
        masses = seen[tuple(int(codes[place]) for place in kept)]
        assert masses[decision] >= masses.max() * (1 - 1e-11)


def test_more_classes_and_features_than_a_table_holds_are_trimmed_on_rows() -> None:
    rng = np.random.default_rng(0)
    sharp = [rng.dirichlet([0.3, 0.3, 0.3], size=4) for _ in range(3)]
    dull = [rng.dirichlet([50, 50, 50], size=4) for _ in range(27)]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.1, 0.2, 0.3, 0.4], [*dull, *sharp]))
    rows = classifier.model.sample(300, rng)
    found = tb.trim(classifier, 3, rows=rows)
    assert set(found.features) == {"x27", "x28", "x29"}
    low, high = found.agreement_interval
    assert 0 < high - low < 0.03
    assert low <= found.agreement <= high
    assert found.rows_agreement is not None
    assert found.rows_agreement.value > 0.6
    assert not found.optimal
    assert found.confidence == 0.99
    assert high <= found.upper_bound < 0.999
    with pytest.raises(ValueError, match="prefer must be 'best' without rows"):
        tb.trim(classifier, 3, prefer="cheapest")
    stopped = tb.trim(classifier, 3, rows=rows, time_limit=1e-9)
    assert len(stopped.features) <= 3
    assert stopped.upper_bound < 0.999


def _frame(classifier: tb.BayesianClassifier, codes: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: [values[code] for code in column]
            for name, values, column in zip(classifier.features, classifier.value_names, codes.T, strict=True)
        }
    )


def test_intervals_of_selected_features_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval is from other rows than the selection's, so that it is not too hopeful."""
    # As if tables were too large. The selection sees as many rows as the interval.
    monkeypatch.setattr("trimbench.trimming.trim.MAX_ENTRIES", 0)
    monkeypatch.setattr("trimbench.trimming.by_model.TABLE_MAX_ENTRIES", 0)
    monkeypatch.setattr("trimbench.trimming.sampled._LONGEST_BOUND", 1e-3)
    monkeypatch.setattr("trimbench.trimming.search.rows.MAX_INSTANCES", 0)
    monkeypatch.setattr("trimbench.trimming.search.rows.N_DRAWN", 2_000)
    monkeypatch.setattr("trimbench.trimming.sampled._N_DRAWN", 2_000)
    begun: list[int] = []
    draw = RowSampler.draw

    def noted(sampler: RowSampler, n_rows: int, rng: np.random.Generator) -> IntegerArray:
        begun.append(rng.bit_generator.state["state"]["state"])
        return draw(sampler, n_rows, rng)

    n_models, covered = 300, 0
    for seed in range(n_models):
        rng = np.random.default_rng([7, seed])
        tables = [rng.dirichlet(np.full(3, 5.0), 3) for _ in range(5)]
        classifier = tb.BayesianClassifier(tb.NaiveBayes(rng.dirichlet([3, 3, 3]), tables))
        rows = pd.DataFrame(classifier.draw(2, rng).astype(str), columns=classifier.features)
        with monkeypatch.context() as patched:
            patched.setattr(RowSampler, "draw", noted)
            found = tb.trim(classifier, 2, rows=rows, rows_weight=0.0)
        assert len(set(begun)) == len(begun) >= 2  # no rows twice
        begun.clear()
        exact = ClassMeasures.of(classifier, found.kept).agreement()
        low, high = found.agreement_interval
        covered += low <= exact <= high
    assert covered >= 0.97 * n_models


def test_each_class_has_its_share_of_the_drawn_rows() -> None:
    network = tb.BayesianNetwork(
        {"c": ["a", "b", "d"], "x": ["0", "1", "2"], "e": ["0", "1"]},
        {"x": ["c"], "e": ["c"]},
        {"c": [0.2, 0.3, 0.5], "x": np.eye(3), "e": [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]},
    )
    for classifier in (tb.BayesianClassifier(network, "c", features=["x"], evidence={"e": "1"}),
                       tb.BayesianClassifier(network, "c", features=["x"], evidence={"e": "0"})):  # fmt: skip
        counts = np.bincount(classifier.draw_by_class(1001, np.random.default_rng(0))[:, 0], minlength=3)
        assert counts.sum() == 1001
        assert np.abs(counts - 1001 * classifier.prior).max() <= 1.0
