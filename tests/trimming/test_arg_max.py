"""Trimming of several classes, by the model and on rows, against enumeration, and what its proofs say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import distributions
from tests.trimming.brute_force import (
    allowed_subsets,
    decision,
    expected_agreement,
    frame_of,
    part,
    potential_agreement,
    random_options,
    whole,
)
from tests.trimming.test_stopping import several
from trimbench._typing import IntegerArray
from trimbench.networks.sampling import RowSampler
from trimbench.trimming import kernels
from trimbench.trimming.by_model import trim_by_model
from trimbench.trimming.classifier import ImpossibleRowWarning
from trimbench.trimming.engines.table import ClassMeasures, agreements_within
from trimbench.trimming.problem import Choice, Limits, Progress, checked_choice
from trimbench.trimming.sampled import _LeftOutRows, agreement_bound, highest_accuracy, upper_bound
from trimbench.trimming.search.row_scores import WeightedRows, agreement_with
from trimbench.trimming.search.row_search import RowProblem

CLOSE = 1e-12


def trimmed(classifier: tb.BayesianClassifier, choice: Choice, limits: Limits | None = None) -> tb.Trimming:
    return trim_by_model(classifier, choice, "auto", limits or Limits())


@st.composite
def classifiers(draw: st.DrawFn) -> tb.BayesianClassifier:
    """Naive Bayes models and networks of 2 to 4 classes; zeros, ties and duplicated features are common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    coarse = draw(st.booleans())
    n_classes = draw(st.integers(2, 4))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    prior = np.full(n_classes, 1 / n_classes) if coarse else rng.dirichlet(np.ones(n_classes))
    tables = [distributions(rng, (n_classes, size), coarse=coarse) for size in sizes]
    if len(tables) > 1 and draw(st.booleans()):
        tables[-1] = tables[0]
    model = tb.NaiveBayes(prior, tables)
    kind = draw(st.sampled_from(["naive Bayes", "mixture", "evidence", "network"]))
    if kind == "naive Bayes":
        return tb.BayesianClassifier(model)
    if kind == "mixture":
        hidden = tb.NaiveBayes(prior, tables, class_variable="component")
        return tb.BayesianClassifier(tb.NaiveBayesMixture(hidden, ["a", *"b" * (n_classes - 2), "c"]))
    if kind == "evidence" and len(tables) > 1:
        state = str(int(np.argmax(prior @ tables[0])))
        return tb.BayesianClassifier(model, evidence={"x0": state})
    # The class below the first feature, the others below both.
    first, *others = range(len(tables))
    names = [f"x{place}" for place in range(len(tables))]
    size = len(tables[first][0])
    states = {name: [str(v) for v in range(table.shape[1])] for name, table in zip(names, tables, strict=True)}
    network = tb.BayesianNetwork(
        {"x0": states["x0"], "c": [f"k{place}" for place in range(n_classes)]} | states,
        {"c": ["x0"]} | {names[place]: ["c", "x0"] for place in others},
        {"x0": distributions(rng, (size,), coarse=coarse), "c": distributions(rng, (size, n_classes), coarse=coarse)}
        | {names[p]: distributions(rng, (n_classes, size, tables[p].shape[1]), coarse=coarse) for p in others},
    )
    return tb.BayesianClassifier(network, "c", features=names)


@st.composite
def problems(draw: st.DrawFn) -> tuple[tb.BayesianClassifier, Choice]:
    classifier = draw(classifiers())
    options = random_options(np.random.default_rng(draw(st.integers(0, 2**32))), classifier.features)
    return classifier, checked_choice(classifier.features, **options)


@given(problem=problems())
@settings(max_examples=150)
def test_the_search_finds_the_best_of_all_subsets(problem: tuple[tb.BayesianClassifier, Choice]) -> None:
    classifier, choice = problem
    best = max(expected_agreement(classifier, features) for features in allowed_subsets(choice))
    found = trimmed(classifier, choice)
    assert found.kept in allowed_subsets(choice)
    assert found.optimal
    assert found.agreement == pytest.approx(best, abs=1e-11)
    assert found.agreement == pytest.approx(expected_agreement(classifier, found.kept), abs=1e-11)
    assert found.upper_bound >= found.agreement


@given(problem=problems())
@settings(max_examples=100)
def test_all_sets_have_their_agreements(problem: tuple[tb.BayesianClassifier, Choice]) -> None:
    classifier, choice = problem
    assume(classifier.is_naive_bayes)
    units = [place for place, unit in enumerate(choice.units) if any(classifier.cardinalities[i] > 1 for i in unit)]
    found: dict[tuple[int, ...], float] = {}
    for sets, agreements in agreements_within(classifier, choice):
        found |= {tuple(chosen.tolist()): value for chosen, value in zip(sets, agreements, strict=True)}
    allowed = {tuple(u for u in units if set(choice.units[u]) <= set(kept)) for kept in allowed_subsets(choice)}
    assert found.keys() == allowed
    for chosen, value in found.items():
        assert value == pytest.approx(expected_agreement(classifier, choice.features(chosen)), abs=CLOSE)


@pytest.mark.parametrize("budget", [1, 3])
def test_what_is_found_among_all_sets_is_what_the_search_finds(budget: int) -> None:
    rng = np.random.default_rng(budget)
    tables = [rng.dirichlet(np.ones(size), 3) for size in [1, *[2] * 13, 3, 4]]
    classifier = tb.BayesianClassifier(tb.NaiveBayes([0.2, 0.3, 0.5], tables))
    names = classifier.features
    choice = checked_choice(names, budget, {name: float(name != names[0]) for name in names}, required=names[2:3])
    all_sets = trimmed(classifier, choice)
    searched = trimmed(classifier, choice, Limits(evaluation_limit=10**6))
    assert all_sets.n_evaluations == sum(math.comb(14, others) for others in range(budget))
    assert all_sets.n_evaluations != searched.n_evaluations
    assert all_sets.optimal
    assert all_sets.features == searched.features
    assert all_sets.agreement == pytest.approx(searched.agreement, abs=CLOSE)


@given(classifier=classifiers())
@settings(max_examples=60)
def test_the_potential_agreement_bounds_every_smaller_subset(classifier: tb.BayesianClassifier) -> None:
    places = range(classifier.n_features)
    table = {
        features: ClassMeasures.of(classifier, features)
        for size in range(classifier.n_features + 1)
        for features in itertools.combinations(places, size)
    }
    bounds = {features: measure.potential_agreement() for features, measure in table.items()}
    assert bounds[tuple(places)] == pytest.approx(1.0, abs=1e-11)
    for features, measure in table.items():
        assert measure.agreement() == pytest.approx(expected_agreement(classifier, features), abs=1e-11)
        assert bounds[features] == pytest.approx(potential_agreement(classifier, features), abs=1e-11)
        assert measure.agreement() <= bounds[features] + CLOSE
        for feature in features:
            smaller = tuple(place for place in features if place != feature)
            assert bounds[smaller] <= bounds[features] + CLOSE
            without = [measure.potential_agreement_without([feature])]
            assert without == pytest.approx([bounds[smaller]], abs=1e-11)


@given(problem=problems(), limit=st.integers(1, 12))
@settings(max_examples=60)
def test_a_search_that_is_stopped_brackets_the_best(problem: tuple[tb.BayesianClassifier, Choice], limit: int) -> None:
    classifier, choice = problem
    best = max(expected_agreement(classifier, features) for features in allowed_subsets(choice))
    found = trimmed(classifier, choice, Limits(evaluation_limit=limit))
    assert found.kept in allowed_subsets(choice)
    assert found.agreement - 1e-11 <= best <= found.upper_bound + 1e-11
    assert not found.optimal or found.agreement == pytest.approx(best, abs=1e-11)


def test_a_search_without_time_gives_informative_features() -> None:
    better_than_required = []
    for seed in range(10):
        classifier = several(10, seed)
        stopped = tb.trim(classifier, 4, dict.fromkeys(classifier.features, 1.5), required=["x0"], evaluation_limit=1)
        assert len(stopped.features) == 2
        assert "x0" in stopped.features
        gain, best = (tb.trim(classifier, budget).agreement for budget in (0, 2))
        assert stopped.n_evaluations <= 3
        better_than_required.append(gain < stopped.agreement <= best)
    assert sum(better_than_required) >= 8


@given(classifier=classifiers(), n_left_out=st.integers(1, 3), n_hidden=st.integers(0, 1), has_positive=st.booleans())
@settings(max_examples=80)
def test_a_potential_without_features_equals_enumeration(
    classifier: tb.BayesianClassifier, n_left_out: int, n_hidden: int, has_positive: bool
) -> None:
    classifier = classifier.with_features(classifier.features[n_hidden:])
    if has_positive:
        classifier = tb.BayesianClassifier(
            classifier.model,
            classifier.target,
            positive=classifier.class_names[:1],
            features=classifier.features,
            threshold=0.4,
            evidence=classifier.evidence,
        )
    joint = {values: sum(masses) for values, masses in whole(classifier).items() if sum(masses) > 0}
    rows = _LeftOutRows.of(classifier, np.array(list(joint), dtype=np.uint8).reshape(len(joint), -1))
    weights = np.array(list(joint.values()))
    for left_out in itertools.combinations(range(classifier.n_features), n_left_out):
        kept = [place for place in range(classifier.n_features) if place not in left_out]
        assert float(weights @ rows.potential(left_out)) == pytest.approx(
            potential_agreement(classifier, kept), abs=1e-10
        )


@pytest.mark.parametrize("hidden", [0, 2])
def test_bounds_from_rows_hold_with_the_stated_confidence(hidden: int) -> None:
    missed, nontrivial = 0, 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        whole_model = depends_on_the_first(rng, 7)
        classifier = whole_model.with_features(whole_model.features[hidden:])
        choice = checked_choice(classifier.features, 2)
        rows = classifier.draw(2500, rng)
        bound = upper_bound(classifier, choice, rows[:500], rows[500:], 0.9, 10**7)
        missed += bound < trimmed(classifier, choice).agreement
        nontrivial += bound < 0.99
    # With the stated confidence, more than 3 misses of 10 have a probability below 1.3 %.
    assert missed <= 3
    assert nontrivial >= 8


@given(problem=problems())
@settings(max_examples=80)
def test_no_allowed_subset_is_right_more_often_than_the_bound(problem: tuple[tb.BayesianClassifier, Choice]) -> None:
    classifier, choice = problem
    assume(classifier.is_naive_bayes)
    joint = whole(classifier)
    right = max(sum(map(max, part(joint, kept).values())) for kept in allowed_subsets(choice))
    assert right <= highest_accuracy(classifier, choice) + 1e-11


def test_the_accuracy_bounds_agreement_with_the_stated_confidence() -> None:
    missed, nontrivial = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = tb.NaiveBayes(rng.dirichlet([3, 3, 3]), [rng.dirichlet([1, 1], size=3) for _ in range(11)])
        classifier = tb.BayesianClassifier(model)
        choice = checked_choice(classifier.features, 1)
        bound = agreement_bound(classifier, choice, classifier.draw(2000, rng), 0.9)
        missed += bound < trimmed(classifier, choice).agreement
        nontrivial += bound < 1.0
    assert missed <= 9
    assert nontrivial >= 10


def depends_on_the_first(rng: np.random.Generator, n_features: int) -> tb.BayesianClassifier:
    """Three classes below the first feature, the other features below both."""
    names = [f"x{place}" for place in range(n_features)]
    tables = {"x0": rng.dirichlet([3, 3]), "c": rng.dirichlet([2, 2, 2], size=2)}
    tables |= {name: rng.dirichlet([1, 1], size=(3, 2)) for name in names[1:]}
    network = tb.BayesianNetwork(
        {"x0": ["0", "1"], "c": ["a", "b", "d"]} | {name: ["0", "1"] for name in names[1:]},
        {"c": ["x0"]} | {name: ["c", "x0"] for name in names[1:]},
        tables,
    )
    return tb.BayesianClassifier(network, "c", features=names)


@pytest.mark.filterwarnings("ignore::trimbench.trimming.classifier.ImpossibleRowWarning")
@given(classifier=classifiers())
@settings(max_examples=40)
def test_predictions_are_those_of_the_joint(classifier: tb.BayesianClassifier) -> None:
    joint = whole(classifier)
    rows, masses = frame_of(classifier, joint), np.array(list(joint.values()))
    prior = classifier.prior.tolist()  # of a row without features, as of one that is impossible
    expected = [classifier.class_names[decision(one if any(one) else prior, None)] for one in joint.values()]
    assert classifier.predict(rows).tolist() == expected
    possible, proba = masses.any(axis=1), classifier.predict_proba(rows)
    of_class = masses[possible] / masses[possible].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba[possible], of_class, rtol=1e-11, atol=1e-300)
    assert np.isnan(proba[~possible]).all()


def test_the_first_of_equally_probable_classes_is_given() -> None:
    # The third value is impossible.
    table = [[1, 0, 0], [0.3, 0.7, 0], [0.1 + 0.2, 0.7, 0]]
    model = tb.NaiveBayes([0.2, 0.4, np.nextafter(0.4, 1)], [table], class_names=["c", "b", "a"])
    classifier = tb.BayesianClassifier(model)
    with pytest.warns(ImpossibleRowWarning):
        assert classifier.predict(pd.DataFrame({"x0": ["0", "1", "2"]})).tolist() == ["c", "b", "b"]
    assert classifier.with_features([]).predict(pd.DataFrame(index=range(2))).tolist() == ["b", "b"]


def agreement_on(classifier: tb.BayesianClassifier, names: list[str], rows: pd.DataFrame) -> float:
    original = classifier.predict(rows)
    return float((classifier.with_features(names).predict(rows) == original).mean())


@given(seed=st.integers(0, 2**32), coarse=st.booleans())
@settings(max_examples=60)
def test_the_kernel_counts_as_numpy_does(seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_cells, n_values, n_classes = 40, 6, 3, int(rng.integers(2, 5))
    with np.errstate(divide="ignore"):
        logs = np.log(distributions(rng, (n_cells, n_classes), coarse=coarse))
        weights = np.log(distributions(rng, (n_classes, n_values), coarse=coarse)).T.copy()
    places, values = rng.integers(0, n_cells, size=n_rows), rng.integers(0, n_values, size=(n_rows, 1)).astype(np.uint8)
    rows = WeightedRows(values, rng.integers(0, n_classes, size=n_rows), rng.dirichlet(np.ones(n_rows)))
    if np.isfinite(logs).all() and np.isfinite(weights).all():
        plain = agreement_with(rows, 0, weights, places, logs, np.zeros(n_classes))  # few rows: by NumPy
        counted = kernels.agreement(logs, places, values[:, 0], weights, rows.decisions, rows.weights)
        assert float(counted) == pytest.approx(plain, abs=1e-14)


@given(classifier=classifiers(), seed=st.integers(0, 2**32), budget=st.integers(0, 3), weight=st.sampled_from([0.5, 1]))
@settings(max_examples=40)
def test_the_blend_of_rows_and_model_is_the_best_of_all_subsets(
    classifier: tb.BayesianClassifier, seed: int, budget: int, weight: float
) -> None:
    codes = classifier.draw(25, np.random.default_rng(seed))
    rows = frame_of(classifier, codes)
    found = tb.trim(classifier, budget, rows=rows, rows_weight=weight)

    def blend(kept: tuple[int, ...]) -> float:
        names = [classifier.features[place] for place in kept]
        return weight * agreement_on(classifier, names, rows) + (1 - weight) * expected_agreement(classifier, kept)

    sizes = range(min(budget, classifier.n_features) + 1)
    best = max(blend(kept) for size in sizes for kept in itertools.combinations(range(classifier.n_features), size))
    assert found.rows_agreement is not None
    assert found.rows_agreement.weight == weight
    assert found.rows_agreement.apparent == pytest.approx(agreement_on(classifier, list(found.features), rows))
    assert blend(found.kept) == pytest.approx(best, abs=1e-11)
    assert found.agreement == pytest.approx(expected_agreement(classifier, found.kept), abs=1e-11)
    assert found.agreement <= found.upper_bound
    assert found.threshold is None


@given(classifier=classifiers(), seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_rows_alone_leave_the_bound_of_the_model(classifier: tb.BayesianClassifier, seed: int) -> None:
    rows = frame_of(classifier, classifier.draw(25, np.random.default_rng(seed)))
    told: list[Progress] = []
    found = tb.trim(classifier, 1, rows=rows, rows_weight=1, progress=told.append)
    best = tb.trim(classifier, 1)
    assert found.agreement - 1e-12 <= best.agreement <= found.upper_bound + 1e-12
    assert found.upper_bound <= tb.trim(classifier, 1, evaluation_limit=1).upper_bound + 1e-12
    assert told[-1].upper_bound == found.upper_bound
    assert found.resume() is found


def test_of_two_features_that_say_nothing_the_first_is_kept() -> None:
    states = {"x0": ["0"], "c": ["k", "l"], "x1": ["0"], "x2": ["0", "1"]}
    parents = {"c": ["x0"], "x1": ["c", "x0"], "x2": ["c", "x0"]}
    tables = {
        "x0": [1.0],
        "c": [[0.353521, 0.646479]],
        "x1": [[[1.0]], [[math.nextafter(1, 0)]]],
        "x2": [[[0.2, 0.8]], [[0.1, 0.9]]],
    }
    classifier = tb.BayesianClassifier(tb.BayesianNetwork(states, parents, tables), "c")
    assert [tb.trim(classifier, 2).features for _ in range(2)] == [("x0", "x2")] * 2


@given(classifier=classifiers(), seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_the_rows_of_the_model_have_its_distribution(classifier: tb.BayesianClassifier, seed: int) -> None:
    problem = RowProblem(classifier)
    weighted = problem.model_rows(np.random.default_rng(seed))
    joint = whole(classifier)
    for codes, decided, weight in zip(weighted.codes, weighted.decisions, weighted.weights, strict=True):
        masses = joint[tuple(codes.tolist())]
        assert weight == pytest.approx(sum(masses), abs=1e-12)
        assert masses[decided] >= max(masses) * (1 - 1e-11)
    assert math.fsum(weighted.weights) == pytest.approx(1.0)
    kept = list(range(0, classifier.n_features, 2))
    seen = part(joint, kept)
    for codes, decided in zip(weighted.codes, problem.decisions(kept, None, weighted.codes), strict=True):
        masses = seen[tuple(codes[kept].tolist())]
        assert masses[decided] >= max(masses) * (1 - 1e-11)


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
    stopped = tb.trim(classifier, 3, rows=rows, time_limit=1e-9)
    assert len(stopped.features) <= 3
    assert stopped.upper_bound < 0.999


def test_intervals_of_selected_features_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval is from other rows than the selection's, so that it is not too hopeful."""
    # As if tables were too large. The selection sees as many rows as the interval.
    monkeypatch.setattr("trimbench.trimming.trim.MAX_ENTRIES", 0)
    monkeypatch.setattr("trimbench.trimming.by_model.TABLE_MAX_ENTRIES", 0)
    monkeypatch.setattr("trimbench.trimming.sampled._LONGEST_BOUND", 1e-3)
    monkeypatch.setattr("trimbench.trimming.search.row_search.MAX_INSTANCES", 0)
    monkeypatch.setattr("trimbench.trimming.search.row_search.N_DRAWN", 2_000)
    monkeypatch.setattr("trimbench.trimming.sampled._N_DRAWN", 2_000)
    begun: list[int] = []
    draw = RowSampler.draw

    def noted(
        sampler: RowSampler, n_rows: int, rng: np.random.Generator, places: Sequence[int] | None = None
    ) -> IntegerArray:
        begun.append(rng.bit_generator.state["state"]["state"])
        return draw(sampler, n_rows, rng, places)

    n_models, covered = 150, 0
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
