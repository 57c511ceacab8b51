"""Trimming with rows: weights, cross-fitted agreements, the cheapest subset, messages."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming.problem import Limits, Progress, checked_choice
from trimbench.trimming.result import RowsAgreement, wilson_interval
from trimbench.trimming.search.cross_fitting import dealt_folds, trim_on_rows
from trimbench.trimming.search.row_search import MAX_INSTANCES, RowProblem
from trimbench.trimming.trim import trim_by_rows

from .test_rows_search import best_of_pairs, blends, random_rows, share


def classifier_and_rows(seed: int = 0, n_rows: int = 80) -> tuple[tb.BayesianClassifier, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    classifier = brute_force.random_classifier(rng, [2, 3, 2, 2, 2, 2], 0.5)
    return classifier, random_rows(classifier, n_rows, rng)


def agreement_of(trimming: tb.Trimming) -> RowsAgreement:
    assert trimming.rows_agreement is not None
    return trimming.rows_agreement


@pytest.mark.parametrize("seed", range(2))
def test_weight_0_is_the_model(seed: int) -> None:
    classifier, rows = classifier_and_rows(seed)
    alone, found = tb.trim(classifier, 2), tb.trim(classifier, 2, rows=rows, rows_weight=0)
    assert (found.features, found.agreement, found.optimal) == (alone.features, alone.agreement, True)
    assert agreement_of(found).value == share(classifier, alone.features, alone.threshold, rows)


@pytest.mark.parametrize("is_naive", [True, False])
def test_skipped_rows_leave_the_generator_as_drawn_ones_do(is_naive: bool) -> None:
    rng = np.random.default_rng(5)
    if is_naive:
        classifier = brute_force.random_classifier(rng, [2, 3, 1, 2, 4], 0.5)
    else:
        classifier = brute_force.random_network_classifier(rng, 4, 0.5)
    skipping, drawing = np.random.default_rng(7), np.random.default_rng(7)
    classifier.skip(13, skipping)
    classifier.draw(13, drawing)
    assert skipping.bit_generator.state == drawing.bit_generator.state


def test_rows_that_weight_0_does_not_need_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    classifier = brute_force.random_classifier(rng, [2] * 14, 0.5)
    rows = random_rows(classifier, 40, rng)
    found = tb.trim(classifier, 3, rows=rows, rows_weight=0)
    made: list[object] = []

    def draw(problem: RowProblem, generator: np.random.Generator) -> None:
        made.append(problem.model_rows(generator))

    monkeypatch.setattr(RowProblem, "skip_model_rows", draw)
    drawn = tb.trim(classifier, 3, rows=rows, rows_weight=0)
    assert len(made) == 1
    assert (found.features, found.threshold, found.rows_agreement) == (
        drawn.features,
        drawn.threshold,
        drawn.rows_agreement,
    )


@pytest.mark.parametrize("weight", [0.3, 1.0])
@pytest.mark.parametrize("is_naive", [True, False])
def test_the_blend_of_rows_and_model_is_the_best_of_all_subsets(is_naive: bool, weight: float) -> None:
    rng = np.random.default_rng(1)
    if is_naive:
        classifier = brute_force.random_classifier(rng, [2, 3, 2, 2, 2, 2], 0.5)
    else:
        classifier = brute_force.random_network_classifier(rng, 4, 0.5)
    rows = random_rows(classifier, 40, rng)
    found = tb.trim(classifier, 2, rows=rows, rows_weight=weight)
    by_rows = share(classifier, found.features, found.threshold, rows)
    assert agreement_of(found).apparent == pytest.approx(by_rows)
    assert found.agreement == pytest.approx(brute_force.expected_agreement(classifier, found.kept, found.threshold))
    best = best_of_pairs(classifier, rows, weight)
    assert weight * by_rows + (1 - weight) * found.agreement == pytest.approx(best)
    assert max(found.agreement, tb.trim(classifier, 2).agreement) <= found.upper_bound
    assert not is_naive or found.upper_bound < 1.0
    assert agreement_of(found).n_rows == 40


def test_features_of_a_single_value_may_be_more_than_an_array_has_axes() -> None:
    tables = [[[0.3, 0.7], [0.8, 0.2]], *[[[1.0], [1.0]]] * 70]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.4, 0.6], [np.array(table) for table in tables]), positive="0")
    rows = RowProblem(classifier).model_rows(np.random.default_rng(0))
    assert rows.codes.shape == (2, 71)
    assert sorted(rows.weights) == pytest.approx([0.4, 0.6])


def test_the_cross_fitted_agreement_repeats_the_selection_without_each_part() -> None:
    classifier, rows = classifier_and_rows(7)
    trimming = tb.trim(classifier, 2, rows=rows, rows_weight=1)
    rng = np.random.default_rng(0)
    decisions = (classifier.predict(rows) == classifier.positive).astype(np.int64)
    folds = dealt_folds(decisions, 5, rng)
    assert all(
        abs(int(((folds == k) & (decisions == d)).sum()) * 5 - (decisions == d).sum()) <= 5
        for k, d in itertools.product(range(5), (0, 1))
    )
    right = 0
    for fold in range(5):
        part = tb.trim(classifier, 2, rows=rows[folds != fold], rows_weight=1)
        held_out = rows[folds == fold]
        right += int((part.classifier.predict(held_out) == classifier.predict(held_out)).sum())
    found = agreement_of(trimming)
    assert found.value == pytest.approx(right / len(rows))
    assert found.n_rows == len(rows)
    assert found.interval[0] <= found.value <= found.interval[1]


def test_the_interval_covers_the_agreement_on_new_rows() -> None:
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        classifier = brute_force.random_classifier(rng, [2] * 7, 0.5)
        world = brute_force.random_classifier(rng, [2] * 7, 0.5).model
        assert isinstance(world, tb.NaiveBayes)
        trimming = tb.trim(classifier, 3, rows=world.sample(100, rng))
        new = world.sample(4000, rng)
        low, high = agreement_of(trimming).interval
        covered += low <= share(classifier, trimming.features, trimming.threshold, new) <= high
    assert covered >= 16  # of 20 intervals of 95 %, fewer than 16 cover with probability 0.003


def test_the_apparent_agreement_is_too_high_and_the_cross_fitted_one_is_not() -> None:
    apparent, fitted, truth = [], [], []
    for seed in range(25):
        rng = np.random.default_rng(1000 + seed)
        classifier = brute_force.random_classifier(rng, [2] * 8, 0.5)
        world = brute_force.random_classifier(rng, [2] * 8, 0.5).model
        assert isinstance(world, tb.NaiveBayes)
        trimming = tb.trim(classifier, 3, rows=world.sample(40, rng), rows_weight=1)
        found = agreement_of(trimming)
        apparent.append(found.apparent)
        fitted.append(found.value)
        truth.append(share(classifier, trimming.features, trimming.threshold, world.sample(2000, rng)))
    error = float(np.std(np.subtract(fitted, truth))) / 5
    assert np.mean(apparent) > np.mean(truth) + 0.01
    assert np.mean(fitted) < np.mean(truth) + 3 * error


def test_the_cheapest_subset_is_within_one_standard_error() -> None:
    rng = np.random.default_rng(2)
    # One feature says nearly everything: more of them gain little.
    tables = [[[0.9, 0.1], [0.1, 0.9]], *[[[0.7, 0.3], [0.3, 0.7]]] * 4]
    model = tb.NaiveBayes([0.5, 0.5], tables)
    classifier = tb.BayesianClassifier(model, positive="0")
    rows = model.sample(150, rng)
    best = tb.trim(classifier, 4, rows=rows, rows_weight=1)
    cheap = tb.trim(classifier, 4, rows=rows, rows_weight=1, prefer="cheapest")
    assert cheap.features == ("x0",)
    assert len(best.features) > 1
    found = agreement_of(cheap)
    error = math.sqrt(agreement_of(best).value * (1 - agreement_of(best).value) / len(rows))
    assert found.value >= agreement_of(best).value - 2 * error


@pytest.mark.parametrize("weight", ["auto", 0.5, 1.0])
def test_the_result_does_not_depend_on_the_number_of_jobs(weight: Any) -> None:
    classifier, rows = classifier_and_rows(3)
    choice = checked_choice(classifier.features, 3)
    one, two = (trim_on_rows(classifier, choice, rows, Limits(n_jobs=n), rows_weight=weight) for n in (1, 3))
    assert one == two


def test_a_time_limit_stops_the_selection() -> None:
    classifier, rows = classifier_and_rows(3)
    choice = checked_choice(classifier.features, 3)
    found = trim_on_rows(classifier, choice, rows, Limits(1e-9))
    assert not found.finished
    assert found.rows_agreement.n_rows == 0
    assert math.isnan(found.rows_agreement.value)
    assert found.rows_agreement.interval == (0.0, 1.0)
    assert choice.is_affordable(found.features)
    assert trim_on_rows(classifier, choice, rows, Limits(60)).finished


def test_rows_from_a_large_model_have_its_distribution() -> None:
    rng = np.random.default_rng(0)
    classifier = brute_force.random_classifier(rng, [3, *[2] * 14], 0.5)
    assert math.prod(classifier.cardinalities) > MAX_INSTANCES
    drawn = RowProblem(classifier).model_rows(rng)
    exact = classifier.joint([0])
    shares = np.bincount(drawn.codes[:, 0], minlength=3) / len(drawn)
    assert shares == pytest.approx(exact[0] + exact[1], abs=0.025)


@pytest.mark.usefixtures("coarse_grid")
def test_a_classifier_too_large_for_exact_values_gets_certified_bounds() -> None:
    rng = np.random.default_rng(0)
    classifier = brute_force.random_classifier(rng, [2] * 46, 0.5)
    rows = random_rows(classifier, 60, rng)
    trimming = tb.trim(classifier, 3, rows=rows, rows_weight=1)
    low, high = trimming.agreement_interval
    assert 0 <= low <= trimming.agreement <= high <= 1
    assert high - low < 0.01
    drawn = classifier.model.sample(4000, rng)
    assert share(classifier, trimming.features, trimming.threshold, drawn) == pytest.approx(low, abs=0.04)


def test_a_network_without_an_exact_engine_gets_an_interval_from_drawn_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    classifier = brute_force.random_network_classifier(rng, 4, 0.5)
    rows = random_rows(classifier, 40, rng)
    exact = tb.trim(classifier, 2, rows=rows, rows_weight=1)
    assert exact.confidence == 1
    monkeypatch.setattr("trimbench.trimming.by_model.exact_engine", lambda *_: None)
    sampled = tb.trim(classifier, 2, rows=rows, rows_weight=1)
    assert sampled.features == exact.features
    assert sampled.agreement_interval[0] <= exact.agreement <= sampled.agreement_interval[1]
    assert sampled.confidence == 0.99


def test_networks_with_evidence_are_judged_on_rows() -> None:
    rng = np.random.default_rng(6)
    network = brute_force.random_network_classifier(rng, 5, 0.5).model
    classifier = tb.BayesianClassifier(
        network, "c", positive="1", features=["f0", "f1", "f2"], evidence={"f4": "1"}, threshold=0.4
    )
    rows = random_rows(classifier, 50, rng)
    trimming = tb.trim(classifier, 2, rows=rows, rows_weight=1)
    shares = []
    for places in brute_force.all_subsets(3, 2):
        subset = [classifier.features[i] for i in places]
        levels = classifier.with_features(subset, 0.5).posterior(rows)
        shares += blends(classifier, places, (0.0, 1.0, *levels), rows, 1.0)
    assert agreement_of(trimming).apparent == pytest.approx(max(shares))


# See statsmodels/statsmodels#7386 (none or all of some) and microsoft/haste#116 (2 of 199).
@pytest.mark.parametrize(("right", "trials"), [(0, 10), (10, 10), (7, 10), (930, 1000), (38, 38), (0, 77), (2, 199)])
def test_wilson_interval_solves_its_equation(right: int, trials: int) -> None:
    share_, z = right / trials, 1.959963984540054
    low, high = wilson_interval(right, trials)
    for end in (low, high):
        if 0 < end < 1:
            assert abs(share_ - end) == pytest.approx(z * math.sqrt(end * (1 - end) / trials))
    assert 0 <= low <= share_ <= high <= 1


@pytest.mark.parametrize("weight", [0, 1, "auto"])
def test_a_stopped_trimming_by_rows_goes_on_with_the_rows(weight: Any) -> None:
    rng = np.random.default_rng(1)
    model = tb.NaiveBayes([0.4, 0.6], [rng.dirichlet([2, 2], size=2) for _ in range(14)])
    classifier = tb.BayesianClassifier(model, positive="0")
    rows = model.sample(200, rng).drop(columns=model.class_variable)
    seen: list[Progress] = []
    whole = tb.trim(classifier, 4, rows=rows, rows_weight=weight, progress=seen.append)
    assert seen[-1].agreement == whole.agreement
    stopped = tb.trim(classifier, 4, rows=rows, rows_weight=weight, evaluation_limit=30)
    assert stopped.n_evaluations < whole.n_evaluations
    again = tb.trim(classifier, 4, rows=rows, rows_weight=weight, evaluation_limit=30, n_jobs=3)
    assert (again.features, again.n_evaluations) == (stopped.features, stopped.n_evaluations)
    finished = stopped.resume()
    assert finished.features == whole.features
    assert agreement_of(finished) == agreement_of(whole)
    assert finished.resume() is finished


def test_the_cheapest_is_taken_of_what_was_judged_before_a_limit() -> None:
    rng = np.random.default_rng(3)
    model = tb.NaiveBayes(rng.dirichlet([3.0] * 3), [rng.dirichlet([2, 2], size=3) for _ in range(7)])
    rows = model.sample(60, rng).drop(columns=model.class_variable)
    for limit in (440, 460, 480):  # the whole budget was judged, the others were not
        found = tb.trim(tb.BayesianClassifier(model), 3, rows=rows, prefer="cheapest", evaluation_limit=limit)
        assert found.may_go_on
        assert len(found.features) <= 3


@pytest.mark.parametrize("n_constant", [1, 40])
def test_constant_features_that_are_forbidden_change_nothing(n_constant: int) -> None:
    rng = np.random.default_rng(n_constant)
    n_features = 14
    tables = rng.dirichlet(np.ones(2), size=(n_features, 2))
    constant = [[[1.0], [1.0]]] * n_constant
    # Between the others, so that all draws but theirs would move.
    likelihoods = [*tables[:5], *constant, *tables[5:]]
    names = [f"f{i}" for i in range(5)] + [f"c{i}" for i in range(n_constant)] + [f"f{i}" for i in range(5, n_features)]
    with_them = tb.NaiveBayes([0.4, 0.6], likelihoods, feature_names=names)
    rows = with_them.sample(50, rng).drop(columns="class")
    classifier = tb.BayesianClassifier(with_them, positive="1")
    varying = [name for name in names if name[0] == "f"]
    gone = [name for name in names if name[0] == "c"]
    found = tb.trim(classifier, 3, forbidden=gone, rows=rows)
    # The twin searches among all features.
    choice = checked_choice(names, 3, forbidden=gone)
    twin = trim_by_rows(classifier, choice, rows, "auto", "best", "auto", Limits())
    assert found.features == twin.features
    assert found.threshold_interval == pytest.approx(twin.threshold_interval)
    assert found.agreement == pytest.approx(twin.agreement, abs=1e-12)
    assert found.rows_agreement == twin.rows_agreement
    assert found.original is classifier
    assert set(found.features) <= set(varying)
    with pytest.raises(ValueError, match="rows must hold values that the classifier knows"):
        tb.trim(classifier, 3, forbidden=gone, rows=rows.assign(c0="never"))
