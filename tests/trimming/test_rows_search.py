"""Agreement on weighted rows and the search for the best subset, against predictions of the trimmed classifiers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming.problem import checked_choice
from trimbench.trimming.search.row_scores import (
    AdditiveScores,
    Cells,
    Columns,
    GeneralScores,
    cells_of,
    compiled_balances,
    highest_balances,
    pooled,
    scores_of,
)
from trimbench.trimming.search.row_search import RowProblem, count_subsets, select, select_exhaustively, select_greedily


def random_rows(classifier: tb.BayesianClassifier, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows that are likelier to have the first values: not from the model."""
    return pd.DataFrame(
        {
            name: rng.choice(values, size=n_rows, p=np.arange(len(values), 0, -1) / sum(range(len(values) + 1)))
            for name, values in zip(classifier.features, classifier.value_names, strict=True)
        }
    )


def share(classifier: tb.BayesianClassifier, names: Sequence[str], threshold: float, rows: pd.DataFrame) -> float:
    """Return on which share of the rows a trimming agrees with the original."""
    trimmed = classifier.with_features(names, threshold)
    return float((trimmed.decide(trimmed.encode(rows)) == classifier.decide(classifier.encode(rows))).mean())


def blends(
    classifier: tb.BayesianClassifier,
    kept: Sequence[int],
    thresholds: Sequence[float],
    rows: pd.DataFrame,
    weight: float,
) -> list[float]:
    """Return the blended agreement of one subset at each threshold."""
    codes = classifier.encode(rows)
    original, seen = classifier.decide(codes), codes[:, list(kept)]
    trimmed = classifier.with_features([classifier.features[i] for i in kept])
    weights = trimmed.weights(seen)

    def by_rows(threshold: float) -> float:
        other = trimmed.with_threshold(threshold)
        decided = other.decided(weights) if weights.any(axis=0).all() else other.decide(seen)
        return float((decided == original).mean())

    def by_model(threshold: float) -> float:
        return brute_force.expected_agreement(classifier, kept, threshold) if weight < 1 else 0.0

    return [weight * by_rows(one) + (1 - weight) * by_model(one) for one in thresholds]


def best_blend(classifier: tb.BayesianClassifier, kept: Sequence[int], rows: pd.DataFrame, weight: float) -> float:
    """Return the highest blended agreement over every threshold that can make a difference."""
    # Rows that are impossible have the posterior of no features. Exactly there they are decided by class, not by a
    # score: no cut of scores has to find it.
    prior = float(classifier.prior[0])
    around = [prior * (1 - 1e-9), min(1.0, prior * (1 + 1e-9))]
    thresholds = sorted([*brute_force.candidate_thresholds(classifier, kept), *around])
    middles = [0.5 * (low + high) for low, high in itertools.pairwise(thresholds)]
    codes = classifier.encode(rows)[:, list(kept)]
    is_possible = classifier.with_features([classifier.features[i] for i in kept]).weights(codes).any(axis=0).all()
    tried = [one for one in (*thresholds, *middles) if is_possible or not np.isclose(one, prior, rtol=1e-10, atol=0)]
    return max(blends(classifier, kept, tried, rows, weight))


def best_of_pairs(classifier: tb.BayesianClassifier, rows: pd.DataFrame, weight: float) -> float:
    """Return the highest blended agreement of all subsets of at most two features."""
    subsets = brute_force.all_subsets(classifier.n_features, 2)
    return max(best_blend(classifier, kept, rows, weight) for kept in subsets)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([0.0, 0.4, 1.0]))
def test_value_and_cut_are_the_best_over_all_thresholds(
    seed: int, coarse: bool, threshold: float, weight: float
) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, [2, 3, 2], threshold, coarse=coarse)
    rows = random_rows(classifier, 12, rng)
    problem = RowProblem(classifier)
    objective = problem.objective(pooled(problem.model_rows(rng), problem.rows(rows), weight))
    for kept in brute_force.all_subsets(3):
        expected = best_blend(classifier, kept, rows, weight)
        assert objective.value(kept) == pytest.approx(expected, abs=1e-9)
        cut = objective.cut(kept)
        assert cut is not None
        assert cut.agreement == pytest.approx(expected, abs=1e-9)
        level = cut.representative(threshold)
        assert blends(classifier, kept, [level], rows, weight) == pytest.approx([expected], abs=1e-9)


@example(208251, True)
@settings(max_examples=10)
@given(st.integers(0, 2**32), st.booleans())
def test_networks_are_judged_by_their_posteriors(seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_network_classifier(rng, 3, 0.5, coarse=coarse)
    rows = random_rows(classifier, 10, rng)
    problem = RowProblem(classifier)
    objective = problem.objective(problem.rows(rows))
    for kept in [(), (0,), (0, 2), (0, 1, 2)]:
        assert objective.value(kept) == pytest.approx(best_blend(classifier, kept, rows, 1.0), abs=1e-9)
    assert objective.values_with((0,), [(1,), (1, 2)]) == pytest.approx(
        [objective.value((0, 1)), objective.value((0, 1, 2))]
    )


def test_a_network_too_large_for_a_table_is_judged_by_posteriors(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    classifier = brute_force.random_network_classifier(rng, 3, 0.5)
    scores = scores_of(classifier)
    assert isinstance(scores, GeneralScores)
    codes = np.stack(np.unravel_index(np.arange(math.prod(scores.cardinalities)), scores.cardinalities), axis=1)
    from_table = scores.of_rows((0, 2), codes[:, [0, 2]])
    for limit in ("_MAX_TABLE", "_MAX_OPERATIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(f"trimbench.trimming.search.row_scores.{limit}", 1)
            by_rows = scores_of(brute_force.random_network_classifier(np.random.default_rng(3), 3, 0.5))
            assert by_rows.of_rows((0, 2), codes[:, [0, 2]]) == pytest.approx(from_table)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 4), min_size=2, max_size=12), st.booleans())
def test_compiled_and_plain_balances_and_single_values_are_equal(
    seed: int, cardinalities: list[int], coarse: bool
) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, cardinalities, 0.5, coarse=coarse)
    problem = RowProblem(classifier)
    rows = problem.rows(random_rows(classifier, 40, rng)).merged()
    scores = scores_of(classifier)
    assert isinstance(scores, AdditiveScores)
    signed = np.where(rows.decisions == 1, rows.weights, -rows.weights)
    columns = Columns(rows.codes, scores.cardinalities, scores.weights, signed, scores.prior)
    kept = sorted(rng.choice(len(cardinalities), size=len(cardinalities) // 2, replace=False).tolist())
    candidates = [i for i in range(len(cardinalities)) if i not in kept]
    places, codes = cells_of(rows.codes, kept, scores.cardinalities)
    cells = Cells.sorted(places, scores.of_rows(kept, codes))
    plain = highest_balances(columns, cells, candidates)
    if columns.are_possible:
        assert compiled_balances(columns, cells, candidates) == pytest.approx(plain, abs=1e-12)
    objective = problem.objective(rows)
    values = [objective.value(sorted([*kept, i])) for i in candidates]
    assert 0.5 * (1 + plain) == pytest.approx(values, abs=1e-12)


def test_cells_are_the_combinations_that_occur() -> None:
    rng = np.random.default_rng(0)
    cardinalities = [2**20, 2**20, 2**20, 2**20, 3]  # more combinations than a 64-bit number can count
    codes = rng.integers(0, 3, size=(50, 5)) * 7
    codes[:, 4] //= 7
    places, cells = cells_of(codes, [0, 1, 2, 3, 4], cardinalities)
    assert (cells[places] == codes).all()
    assert len(np.unique(cells, axis=0)) == len(cells)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_searches_stay_within_the_choice_and_enumeration_finds_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, [2, 2, 3, 2, 2, 2], 0.5, coarse=bool(rng.integers(2)))
    choice = checked_choice(classifier.features, **brute_force.random_options(rng, classifier.features))
    problem = RowProblem(classifier)
    objective = problem.objective(problem.rows(random_rows(classifier, 30, rng)))
    affordable = map(frozenset, brute_force.affordable_subsets(choice.costs, choice.budget))
    allowed = [units for units in affordable if choice.required_units <= units]
    assert count_subsets(choice) == len(allowed)
    best = max(objective.value(choice.features(units)) for units in allowed)
    everything = select_exhaustively(objective, choice, lambda _: True)
    assert everything.value == pytest.approx(best, abs=1e-9)
    assert everything.n_evaluations == len(allowed)
    assert select(objective, choice, lambda _: True).units == everything.units
    greedy = select_greedily(objective, choice, lambda _: True)
    for found in (everything, greedy):
        assert found.units in allowed
        assert found.value == pytest.approx(objective.value(choice.features(found.units)), abs=1e-9)
        assert found.finished
    assert greedy.value <= best + 1e-9
    stopped = select_greedily(objective, choice, lambda _: False)
    assert stopped.units in allowed
    assert not stopped.finished or len(allowed) == 1


def test_many_subsets_are_counted_no_further_than_needed() -> None:
    choice = checked_choice([f"x{i}" for i in range(40)], 12)
    assert count_subsets(choice, most=1000) > 1000
