"""Conformant models against tables over all instances, with incomplete classifiers too; Lemmas and Examples 1 and 2."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant import brute_force
from tests.conformant.problems import Case, cases, hide, learned
from trimbench.conformant.coding import reduce_problem
from trimbench.conformant.conform import IncompleteRows, fit_incomplete, linear_scores
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.problem import ReducedProblem, Solution
from trimbench.conformant.rows import FeatureStatistics
from trimbench.papers.conformant.figure1 import naive_bayes_of_weights, weights_of_naive_bayes


@given(case=cases(), n_components=st.integers(1, 4), gaps=st.booleans(), seed=st.integers(0, 2**32))
@settings(max_examples=80)
def test_the_model_is_a_distribution_that_conforms_and_predictions_are_expectations(
    case: Case, n_components: int, gaps: bool, seed: int
) -> None:
    """Learned from rows with gaps, too, or not."""
    hidden = hide(case.X, case.categorical, np.random.default_rng(seed))
    training = np.vstack([case.X, hidden]) if gaps else case.X
    options: dict[str, Any] = {"smoothing": case.smoothing, "categorical": case.categorical}
    model = tb.conform(case.classifier, training, n_components=n_components, covariance="diagonal", **options)
    assert model.n_components == n_components
    is_plain = n_components == 1 and not gaps
    assert model.residual < (1e-10 if is_plain else 1e-9)
    rows = brute_force.instances(model)
    joint = brute_force.joint(model, rows)
    mass, posterior = joint.sum(axis=1), case.classifier.predict_proba(rows)
    assert mass.sum() == pytest.approx(1, abs=1e-10)
    np.testing.assert_allclose(joint / mass[:, None], posterior, atol=1e-11)
    np.testing.assert_allclose(model.predict_proba(rows), posterior, rtol=0, atol=2e-14 if is_plain else 1e-13)
    assert (model.predict(case.X) == case.classifier.predict(case.X)).all()
    np.testing.assert_allclose(model.log_likelihood(rows), np.log(mass), atol=1e-9)
    np.testing.assert_allclose(np.exp(model.log_prior), joint.sum(axis=0), atol=1e-10)
    assert model.conformity_error(rows) < 1e-12
    if case.smoothing == 0 and is_plain:
        np.testing.assert_allclose(mass @ rows, case.X.mean(axis=0), atol=1e-10)
    hidden = hidden[:6]
    hidden[0] = np.nan
    predicted = model.predict_proba(hidden)
    for row, prediction, log_likelihood in zip(hidden, predicted, model.log_likelihood(hidden), strict=True):
        agrees = (np.isnan(row) | (rows == row)).all(axis=1)
        # Definition 1: the classifier's prediction, averaged over P(missing features | observed ones).
        total = mass[agrees].sum()
        np.testing.assert_allclose(prediction, mass[agrees] @ posterior[agrees] / total, atol=1e-10)
        assert log_likelihood == pytest.approx(math.log(total), abs=1e-9)
    np.testing.assert_allclose(predicted[0], np.exp(model.log_prior), atol=1e-12)


def penalised_likelihood(model: tb.ConformantModel, X: np.ndarray, smoothing: float) -> float:
    """The objective by its definition: mean log P(x), and c times the logarithms of all probabilities."""
    value = float(np.log(brute_force.joint(model, X).sum(axis=1)).mean())
    complements = model.components[0].log_complements
    logs = [model.log_prior, model.components[0].log_probabilities.ravel(), complements[~np.isnan(complements)]]
    return value + smoothing / len(X) * float(sum(part.sum() for part in logs)) if smoothing else value


@given(case=cases(max_binary=3), seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_no_other_conforming_model_fits_better(case: Case, seed: int) -> None:
    model = learned(case)
    best = penalised_likelihood(model, case.X, case.smoothing)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 1.0):
        (part,) = model.components
        moved = part.solution.parameters + rng.normal(0, size, part.solution.parameters.shape)
        other = tb.ConformantModel.of(replace(part, solution=type(part.solution)(moved, 0, 0, 0)))
        assert penalised_likelihood(other, case.X, case.smoothing) <= best + 1e-12 * (1 + abs(best))
        rows = brute_force.instances(other)
        assert other.conformity_error(rows) < 1e-12, "any parameters conform (Lemma 2)"


@given(seed=st.integers(0, 2**32), n_real=st.integers(0, 2), groups=st.booleans(), pseudo=st.sampled_from([0.0, 0.3]))
@settings(max_examples=50)
def test_derivatives_by_finite_differences(seed: int, n_real: int, groups: bool, pseudo: float) -> None:
    rng = np.random.default_rng(seed)
    n_columns = 6 + n_real
    layout = FeatureLayout.of(n_columns, [[0, 1, 2]] if groups else None, range(6, n_columns))
    means = np.concatenate([[0.2, 0.3, 0.5], rng.uniform(0.1, 0.9, 3), np.zeros(n_real)])
    statistics = FeatureStatistics(10, means, np.ones(n_columns))
    problem = reduce_problem(rng.normal(0, 1, (n_columns, 3)), rng.normal(0, 1, 3), layout, statistics, pseudo).problem
    point = problem.start() + rng.normal(0, 0.2, len(problem.linear))
    point[problem.n_free + 1 :: 2] = -rng.uniform(0.3, 2, n_real)
    gradient = problem.evaluate(point).gradient
    step = 1e-6
    for i in range(len(point)):
        ahead, behind = point.copy(), point.copy()
        ahead[i] += step
        behind[i] -= step
        slope = (problem.evaluate(ahead).value - problem.evaluate(behind).value) / (2 * step)
        assert slope == pytest.approx(gradient[i], abs=1e-7)


# --- degenerate columns


def never(problem: ReducedProblem) -> Solution:
    raise AssertionError("there is nothing to solve")


@pytest.mark.parametrize("solver", ["newton", never])
@pytest.mark.parametrize("real", [[], [0, 1, 2]])
@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
def test_nothing_but_constant_columns_without_smoothing(solver: Any, real: list[int], values: list[float]) -> None:
    classifier = brute_force.fake_classifier(np.array([[0.0, 1.0], [0.0, -2.0], [0.0, 0.5]]), np.array([0.0, 0.3]))
    model = tb.conform(classifier, np.tile(values, (20, 1)), solver, 0, real=real)
    assert model.residual == 0
    # The only row that the model knows.
    np.testing.assert_allclose(model.predict_proba([[np.nan] * 3]), classifier.predict_proba([values]), atol=1e-15)


@pytest.mark.parametrize("n_components", [1, 2])
def test_constant_columns_without_smoothing(n_components: int) -> None:
    rng = np.random.default_rng(10)
    X = np.column_stack([rng.random((50, 3)) < 0.5, np.zeros(50), np.ones(50)]).astype(float)
    weights = np.column_stack([np.zeros(5), [1.0, -2.0, 0.5, 3.0, -1.5]])
    classifier = brute_force.fake_classifier(weights, np.array([0.0, 0.3]))
    model = tb.conform(classifier, X, smoothing=0, n_components=n_components, covariance="diagonal")
    assert model.residual < 1e-10
    hidden = X.copy()
    hidden[:, 3:] = np.nan
    np.testing.assert_allclose(model.predict_proba(hidden), classifier.predict_proba(X), atol=1e-15)
    others = X.copy()
    others[:, 3:] = [1, 0]  # never seen: the classifier still says what it says
    np.testing.assert_allclose(model.predict_proba(others), classifier.predict_proba(others), atol=1e-15)
    assert (model.log_likelihood(others) == -np.inf).all()
    assert np.isfinite(model.log_likelihood(X)).all()
    for part in model.components:
        np.testing.assert_array_equal(np.exp(part.log_probabilities[3:]), [[0, 0], [1, 1]])
    assert model.conformity_error(X) < 1e-12
    smoothed = tb.conform(classifier, X, smoothing=1.0, n_components=n_components, covariance="diagonal")
    assert np.isfinite(smoothed.log_likelihood(others)).all()


def test_a_value_that_is_never_seen_and_a_feature_of_one_value() -> None:
    rng = np.random.default_rng(11)
    X = np.hstack([np.eye(3)[rng.integers(0, 2, 60)], np.eye(2)[np.zeros(60, dtype=int)]])
    classifier = brute_force.fake_classifier(rng.normal(0, 1, (5, 3)), np.zeros(3))
    model = tb.conform(classifier, X, smoothing=0, categorical=[[0, 1, 2], [3, 4]], covariance="diagonal")
    assert model.residual < 1e-10
    np.testing.assert_array_equal(np.exp(model.components[0].log_probabilities[[2, 4]]), np.zeros((2, 3)))
    hidden = X.copy()
    hidden[:, 3:] = np.nan
    np.testing.assert_allclose(model.predict_proba(hidden), classifier.predict_proba(X), atol=1e-15)


def test_large_tables_are_read_in_parts() -> None:
    rng = np.random.default_rng(13)
    X = (rng.random((20_000, 4)) < 0.4).astype(np.uint8)
    classifier = LogisticRegression().fit(X[:500], X[:500, 0] ^ (rng.random(500) < 0.2))
    layout = FeatureLayout.of(4)
    np.testing.assert_allclose(FeatureStatistics.of(X, layout).means, X.mean(axis=0), rtol=1e-12)
    model = tb.conform(classifier, X, covariance="diagonal")
    np.testing.assert_allclose(model.predict_proba(X), classifier.predict_proba(X), atol=1e-15)
    assert len(model.log_likelihood(X)) == 20_000


@pytest.mark.parametrize("constant", [0, 1])
def test_rows_that_cannot_be_say_nothing_about_conformity(constant: int) -> None:
    every = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=float)
    classifier = tb.fit_logistic_regression(every, [0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1])
    model = tb.conform(classifier, every[every[:, 1] == constant], smoothing=0)
    assert abs(classifier.coef_[0, 1]) > 0.1
    assert model.conformity_error(every) < 1e-12


def problem(seed: int, n_classes: int, share: float, n_rows: int = 80) -> IncompleteRows:
    """One categorical, one real-valued and two binary features."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    groups = np.eye(3)[np.concatenate([np.arange(3), rng.integers(0, 3, n_rows - 3)])]
    binary = rng.random((n_rows, 2)) < 0.2 + 0.5 * (labels == 1)[:, None]
    X = np.column_stack([groups, rng.normal(labels, 1.0), binary])
    gone = rng.random((n_rows, 4)) < share
    gone[:4] = False
    X[gone[:, [0, 0, 0, 1, 2, 3]]] = np.nan
    return IncompleteRows(X, labels, FeatureLayout.of(6, [[0, 1, 2]], [3]), 1.0, 1.0)


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 3), n_components=st.integers(1, 3), weighted=st.booleans())
@settings(max_examples=25)
def test_the_objective_by_its_definition_and_its_derivatives_by_differences(
    seed: int, n_classes: int, n_components: int, weighted: bool
) -> None:
    rows = problem(seed, n_classes, 0.3)
    rng = np.random.default_rng(seed)
    of_rows = rng.uniform(0, 3, len(rows.labels)) if weighted else np.ones(len(rows.labels))
    rows = replace(rows, weights=of_rows if weighted else None)
    weights, biases = rng.normal(0, 0.5, (6, n_classes)), rng.normal(0, 0.5, n_classes)
    if n_classes == 2:
        weights[:, 0], biases[0] = 0, 0
    mixture = rows.conformant(weights, biases, np.arange(n_classes), n_components, 0)
    value, by_weights, by_biases = rows.objective(mixture)
    log_proba = mixture.predict_log_proba(rows.table)[np.arange(len(rows.labels)), rows.labels]
    assert value == pytest.approx(of_rows @ log_proba - 0.5 * (weights**2).sum(), rel=1e-10)

    def moved(weights: np.ndarray, biases: np.ndarray) -> float:
        return rows.objective(rows.with_classifier(mixture, weights, biases))[0]

    step = 1e-5
    direction, of_biases = rng.normal(size=weights.shape), rng.normal(size=biases.shape)
    ahead = moved(weights + step * direction, biases + step * of_biases)
    behind = moved(weights - step * direction, biases - step * of_biases)
    slope = float((by_weights * direction).sum() + by_biases @ of_biases)
    assert (ahead - behind) / (2 * step) == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_complete_rows_give_the_classifier_of_scikit_learn(n_classes: int) -> None:
    rows = problem(1, n_classes, 0.0)
    reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(rows.table, rows.labels)
    start = LogisticRegression(C=0.01).fit(rows.table, rows.labels)
    weights, biases = rows.improve(rows.conformant(*linear_scores(start), 2, 0))
    np.testing.assert_allclose(rows.table @ weights, rows.table @ linear_scores(reference)[0], atol=1e-3)
    np.testing.assert_allclose(
        biases - biases[0], linear_scores(reference)[1] - linear_scores(reference)[1][0], atol=1e-3
    )


@pytest.mark.parametrize("n_components", [1, 3, "auto"])
def test_the_classes_become_more_likely_than_with_means_in_the_gaps(n_components: int | str) -> None:
    rows = problem(2, 2, 0.4, n_rows=300)
    filled = np.where(np.isnan(rows.table), np.nanmean(rows.table, axis=0), rows.table)
    start = LogisticRegression().fit(filled, rows.labels)
    before = rows.objective(rows.conformant(*linear_scores(start), n_components, 0))[0]  # type: ignore[arg-type]
    found = fit_incomplete(start, rows, n_components)  # type: ignore[arg-type]
    assert rows.objective(found)[0] >= before


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
@settings(max_examples=200)
def test_lemma_1(model: tuple[float, np.ndarray, np.ndarray]) -> None:
    bias, weights = weights_of_naive_bayes(*model)
    for x in itertools.product([0, 1], repeat=len(weights)):
        by_weights = 1 / (1 + np.exp(-(bias + weights @ np.array(x))))
        assert posterior(*model, np.array(x)) == pytest.approx(by_weights, abs=1e-12)


@given(model=naive_bayes(), seed=st.integers(0, 2**32))
@settings(max_examples=200)
def test_lemma_2(model: tuple[float, np.ndarray, np.ndarray], seed: int) -> None:
    """For any weights and any parameters of one class there is a model, and it is the only one."""
    prior, positive, negative = model
    rng = np.random.default_rng(seed)
    bias, weights = rng.normal(), rng.normal(0, 2, len(positive))
    found_prior, found_negative = naive_bayes_of_weights(bias, weights, positive)
    again = weights_of_naive_bayes(found_prior, positive, found_negative)
    assert again[0] == pytest.approx(bias, abs=1e-9)
    np.testing.assert_allclose(again[1], weights, atol=1e-9)
    # Whatever model has these weights and parameters is the one that they give.
    only_prior, only_negative = naive_bayes_of_weights(*weights_of_naive_bayes(prior, positive, negative), positive)
    assert only_prior == pytest.approx(prior, abs=1e-10)
    np.testing.assert_allclose(only_negative, negative, atol=1e-10)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 6))
@settings(max_examples=100)
def test_examples_1_and_2(seed: int, n: int) -> None:
    """With independent features, mean imputation is right for a logit, and off to one side if that has one sign."""
    rng = np.random.default_rng(seed)
    weights, means = rng.normal(0, 1, n), rng.uniform(0.05, 0.95, n)
    lowest = np.minimum(weights, 0).sum()
    bias = -lowest + rng.exponential()
    instances = np.array(list(itertools.product([0, 1], repeat=n)))
    chance = np.prod(np.where(instances, means, 1 - means), axis=1)
    assert chance @ (bias + instances @ weights) == pytest.approx(bias + means @ weights)
    expected = chance @ (1 / (1 + np.exp(-(bias + instances @ weights))))
    imputed = 1 / (1 + np.exp(-(bias + means @ weights)))
    assert imputed >= expected - 1e-15
    negated = chance @ (1 / (1 + np.exp(bias + instances @ weights)))
    assert 1 / (1 + np.exp(bias + means @ weights)) <= negated + 1e-15


@given(seed=st.integers(0, 2**32), n=st.integers(1, 6))
@settings(max_examples=100)
def test_example_1_is_bayes_optimal(seed: int, n: int) -> None:
    """If a linear function is the probability, the class of its imputed value is the likelier one of what is seen."""
    rng = np.random.default_rng(seed)
    weights, means = rng.uniform(-1, 1, n) / n, rng.uniform(0.05, 0.95, n)
    row = np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), np.nan)
    instances = np.array(list(itertools.product([0, 1], repeat=n)))
    agrees = (np.isnan(row) | (instances == row)).all(axis=1)
    chance = np.prod(np.where(instances, means, 1 - means), axis=1) * agrees
    positive = chance @ (0.5 + (instances - 0.5) @ weights)
    imputed = 0.5 + (np.where(np.isnan(row), means, row) - 0.5) @ weights
    assert positive / chance.sum() == pytest.approx(imputed)
    chosen = positive if imputed > 0.5 else chance.sum() - positive
    assert chosen >= max(positive, chance.sum() - positive) - 1e-12


@given(seed=st.integers(0, 2**32), n=st.integers(2, 6))
@settings(max_examples=60)
def test_example_2_for_a_conformant_model(seed: int, n: int) -> None:
    """The same within a class mixture: the mean of the missing features given the observed ones is imputed."""
    rng = np.random.default_rng(seed)
    X = (rng.random((60, n)) < rng.uniform(0.2, 0.8, n)).astype(float)
    X[0], X[1] = 0, 1
    weights = np.column_stack([np.zeros(n), rng.normal(0, 1, n)])
    biases = np.array([0.0, -np.minimum(weights[:, 1], 0).sum() + 0.1])
    classifier = brute_force.fake_classifier(weights, biases)
    model = tb.conform(classifier, X, covariance="diagonal")
    row = np.where(rng.random(n) < 0.5, np.nan, X[2])
    assume(np.isnan(row).any())
    rows = brute_force.instances(model)
    agrees = (np.isnan(row) | (rows == row)).all(axis=1)
    mass = brute_force.joint(model, rows[agrees]).sum(axis=1)
    imputed = mass @ rows[agrees] / mass.sum()
    assert classifier.predict_proba(imputed[None])[0, 1] >= model.predict_proba(row[None])[0, 1] - 1e-12
