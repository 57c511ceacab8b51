"""Mixtures of conformant models against tables over all instances, and their compiled sums against NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant import brute_force
from tests.conformant.problems import Case, cases, hide
from trimbench.conformant.conform import conform_to_statistics
from trimbench.conformant.evidence import logsumexp as our_logsumexp
from trimbench.conformant.kernels import mixed_scores, packed_masks, selected_sums
from trimbench.conformant.layout import FeatureLayout
from trimbench.conformant.mixture import Expectation, MixturePrior, PreparedRows, Tilts, expect, learn_components
from trimbench.conformant.rows import FeatureStatistics

Array = NDArray[np.float64]


@given(seed=st.integers(0, 2**32), n_features=st.integers(1, 12), scale=st.sampled_from([1.0, 20.0]))
@settings(max_examples=15)
def test_conformity_on_all_rows_whatever_the_weights(seed: int, n_features: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    weights, biases = rng.normal(0, scale, (n_features, 3)), rng.normal(0, scale, 3)
    X = (rng.random((40, n_features)) < rng.random(n_features)).astype(float)
    mixture = tb.conform(brute_force.fake_classifier(weights, biases), X, n_components=3)
    rows = brute_force.instances(mixture)  # type: ignore[union-attr]
    assert mixture.conformity_error(rows) <= 1e-12
    classifier = softmax(rows @ weights + biases, axis=1)
    np.testing.assert_allclose(mixture.predict_proba(rows), classifier, rtol=0, atol=1e-12)


@given(case=cases(max_binary=4))
@settings(max_examples=40)
def test_one_component_learned_in_steps_is_the_model_learned_at_once(case: Case) -> None:
    layout = FeatureLayout.of(case.X.shape[1], case.categorical)
    classes = np.arange(case.weights.shape[1])
    statistics = FeatureStatistics.of(case.X, layout)
    model = conform_to_statistics(case.weights, case.biases, classes, layout, statistics, "newton", case.smoothing)
    near = np.clip(model.components[0].coding.problem.moments * 0.9, 0.01, 0.99)
    start = Expectation(np.array([3.0]), 3.0 * near[None], -np.inf)
    mixture = learn_components(MixturePrior.of(model.components[0], 1, case.smoothing), case.X, start)
    hidden = hide(case.X, case.categorical, np.random.default_rng(0))
    np.testing.assert_allclose(mixture.predict_proba(hidden), model.predict_proba(hidden), atol=1e-10)
    np.testing.assert_allclose(mixture.log_likelihood(hidden), model.log_likelihood(hidden), atol=1e-10)
    same = tb.conform(case.classifier, case.X, smoothing=case.smoothing, categorical=case.categorical, n_components=1)
    np.testing.assert_allclose(same.predict_proba(hidden), model.predict_proba(hidden), rtol=1e-13)
    assert same.objectives == ()


def log_prior(mixture: tb.ConformantModel, smoothing: float, means: Array, mean_rows: float) -> float:
    """The prior by its definition: rows with the means of all, and pseudo-counts of all probabilities."""
    total = float(mixture.log_weights.sum())
    for part in mixture.components:
        complements = part.log_complements
        logs = [part.log_prior, part.log_probabilities.ravel(), complements[~np.isnan(complements)]]
        total += smoothing / mixture.n_components * float(sum(piece.sum() for piece in logs))
        tilts = part.tilts
        total += mean_rows * float(tilts @ means - part.log_normaliser)
    return total


@given(case=cases(max_binary=4, groups=False), n_components=st.integers(1, 4), seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_expectation_maximisation_never_lowers_the_objective(case: Case, n_components: int, seed: int) -> None:
    rows = hide(case.X, [], np.random.default_rng(seed))
    rows[:2] = case.X[:2]
    layout = FeatureLayout.of(rows.shape[1])
    classes = np.arange(case.weights.shape[1])
    statistics = FeatureStatistics.of(rows, layout, missing=True)
    model = conform_to_statistics(case.weights, case.biases, classes, layout, statistics, "newton", 1.0)
    prior = MixturePrior.of(model.components[0], n_components, 1.0)
    rng = np.random.default_rng(seed)
    counts = rng.dirichlet(np.ones(n_components)) * len(rows)
    first = Expectation(counts, counts[:, None] * rng.uniform(0.05, 0.95, (n_components, rows.shape[1])), -np.inf)
    mixture = learn_components(prior, rows, first, max_iterations=15)
    objectives = np.array(mixture.objectives)
    assert (np.diff(objectives) >= -1e-11 * (1 + np.abs(objectives[1:]))).all()
    # The last objective by its definition, up to the constant of the pseudo-observations.
    instances = brute_force.instances(model)
    table = brute_force.joint(mixture, instances).sum(axis=1)
    likelihood = sum(math.log(table[(np.isnan(row) | (instances == row)).all(axis=1)].sum()) for row in rows)
    twin = log_prior(mixture, 1.0, statistics.means, prior.mean_rows)
    constant = float(case.weights.sum() + case.biases.sum())
    assert objectives[-1] * len(rows) == pytest.approx(likelihood + twin - constant, rel=1e-9, abs=1e-8)


@given(seed=st.integers(0, 2**32), n_components=st.integers(1, 4), smoothing=st.sampled_from([0.0, 1.0]))
@settings(max_examples=20)
def test_it_never_lowers_the_objective_of_features_of_all_kinds(seed: int, n_components: int, smoothing: float) -> None:
    rng = np.random.default_rng(seed)
    kinds = np.column_stack([np.eye(3)[np.arange(60) % 3], rng.normal(3, 2, 60), rng.random((60, 2)) < 0.5])
    rows = np.where((rng.random((60, 4)) < 0.4)[:, [0, 0, 0, 1, 2, 3]], np.nan, kinds)
    rows[:6] = kinds[:6]
    classifier = brute_force.fake_classifier(rng.normal(0, 1, (6, 3)), rng.normal(0, 1, 3))
    found = tb.conform(
        classifier,
        rows,
        smoothing=smoothing,
        categorical=[[0, 1, 2]],
        real=[3],
        n_components=n_components,
        covariance="diagonal",
    )
    model = found
    layout, classes = model.layout, model.classes
    statistics = FeatureStatistics.of(rows, layout, missing=True)
    model = conform_to_statistics(model.weights, model.biases, classes, layout, statistics, "newton", smoothing)
    prior = MixturePrior.of(model.components[0], n_components, smoothing)
    objectives, tilts, parts = [], Tilts.of(found), PreparedRows(prior.model, rows, n_components)
    for _ in range(12):
        expected = expect(tilts, parts)
        assert expected.log_likelihood == pytest.approx(tilts.model().log_likelihood(rows).sum(), rel=1e-12)
        assert expected.counts.sum() == pytest.approx(60)
        objectives.append(expected.log_likelihood + prior.log_density(tilts))
        tilts = prior.maximise(expected, tilts)
        assert tilts.residuals.max() < 1e-9
    assert (np.diff(objectives) >= -1e-10 * (1 + np.abs(objectives[1:]))).all()


@given(case=cases(max_binary=4), seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_one_component_of_incomplete_rows_fits_what_is_observed_best(case: Case, seed: int) -> None:
    """No small change of the parameters makes the observed values (and the pseudo-counts) more likely."""
    rows = hide(case.X, case.categorical, np.random.default_rng(seed))
    rows[:2] = case.X[:2]
    model = tb.conform(case.classifier, rows, smoothing=1.0, categorical=case.categorical)

    def objective(model: tb.ConformantModel) -> float:
        complements = model.components[0].log_complements
        logs = [model.log_prior, model.components[0].log_probabilities.ravel(), complements[~np.isnan(complements)]]
        return float(model.log_likelihood(rows).sum()) + float(sum(part.sum() for part in logs))

    best = objective(model)
    parameters = model.components[0].solution.parameters
    for i in range(len(parameters)):
        for step in (-0.05, 0.05):
            moved = parameters.copy()
            moved[i] += step
            (part,) = model.components
            other = tb.ConformantModel.of(replace(part, solution=type(part.solution)(moved, 0, 0, 0)))
            assert objective(other) <= best + 1e-6 * (1 + abs(best))


def test_rows_whose_missing_values_say_nothing_do_not_change_the_model() -> None:
    rng = np.random.default_rng(3)
    X = (rng.random((60, 5)) < 0.4).astype(float)
    classifier = LogisticRegression().fit(X, X[:, 0] + X[:, 1] > 0)
    empty = np.full((40, 5), np.nan)
    complete, longer = (
        tb.conform(classifier, X, smoothing=0),
        tb.conform(classifier, np.vstack([X, empty]), smoothing=0),
    )
    np.testing.assert_allclose(longer.components[0].tilts, complete.components[0].tilts, atol=1e-4)


def real_problem() -> tuple[Array, NDArray[np.bool_], LogisticRegression]:
    rng = np.random.default_rng(5)
    y = rng.random(300) < 0.4
    centre = np.where(rng.random(300) < 0.5, -2.0, 2.0)
    X = np.column_stack(
        [rng.normal(centre + y, 0.6), rng.random(300) < 0.3 + 0.4 * y, np.eye(3)[rng.integers(0, 3, 300)]]
    )
    return X, y, LogisticRegression().fit(X, y)


@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("gaps", [False, True])
def test_real_valued_features_by_numerical_integration(gaps: bool, n_components: int) -> None:
    X, _, classifier = real_problem()
    training = X.copy()
    if gaps:
        training[::3, 0] = np.nan
    model = tb.conform(classifier, training, real=[0], categorical=[[2, 3, 4]], n_components=n_components)
    assert model.residual < 1e-9
    for rest in ([0.0, 1, 0, 0], [1.0, 0, 0, 1]):

        def density(x: float, rest: list[float] = rest) -> float:
            return float(np.exp(model.log_likelihood([[x, *rest]])[0]))

        def weighted(x: float, rest: list[float] = rest) -> float:
            return density(x, rest) * float(classifier.predict_proba([[x, *rest]])[0, 1])

        total, expected = (integrate.quad(f, -16, 16, points=[-2, 2], limit=200)[0] for f in (density, weighted))
        assert math.log(total) == pytest.approx(model.log_likelihood([[np.nan, *rest]])[0], abs=1e-8)
        assert expected / total == pytest.approx(model.predict_proba([[np.nan, *rest]])[0, 1], abs=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), classifier.predict_proba(X), atol=1e-12)
    if n_components > 1:
        single = tb.conform(classifier, training, real=[0], categorical=[[2, 3, 4]], n_components=1)
        assert model.log_likelihood(X).mean() > single.log_likelihood(X).mean() + 0.1


def test_the_number_of_components_is_found() -> None:
    rng = np.random.default_rng(6)
    X = (rng.random((1500, 8)) < np.where(rng.random((1500, 1)) < 0.5, 0.1, 0.9)).astype(float)
    classifier = LogisticRegression().fit(X, X[:, 0] + rng.random(1500) > 0.8)
    seed = 2**63  # more than scikit-learn's seeds hold
    mixture = tb.conform(classifier, X, n_components="auto", covariance="diagonal", random_state=seed)
    assert mixture.n_components == 2
    assert repr(mixture) == "ConformantModel(n_components=2, classes=[False, True])"
    np.testing.assert_allclose(np.exp(mixture.log_weights), 0.5, atol=0.05)
    alike, _ = tb.conform(classifier, X, n_components=1, covariance="diagonal").sample(1500, rng)
    assert tb.conform(classifier, alike, n_components="auto").n_components == 1
    assert tb.conform(classifier, X[:20], n_components="auto").n_components == 1


def test_the_number_is_found_without_smoothing_where_one_row_alone_has_a_value() -> None:
    rng = np.random.default_rng(6)
    X = (rng.random((400, 8)) < np.where(rng.random((400, 1)) < 0.5, 0.1, 0.9)).astype(float)
    X = np.column_stack([X, np.arange(400) == np.random.default_rng(0).permutation(400)[0]])  # is held out
    classifier = LogisticRegression().fit(X, X[:, 0] + rng.random(400) > 0.8)
    assert tb.conform(classifier, X, smoothing=0, n_components="auto").n_components > 1


def test_the_largest_number_of_components_is_taken_if_each_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimbench.conformant.choice._MOST_COMPONENTS", 2)
    rng = np.random.default_rng(7)
    X = (rng.random((600, 8)) < np.array([0.1, 0.5, 0.9])[rng.integers(0, 3, 600)][:, None]).astype(float)
    classifier = LogisticRegression().fit(X, X[:, 0] + rng.random(600) > 0.8)
    mixture = tb.conform(classifier, X, n_components="auto")
    assert mixture.n_components == 2


@given(case=cases(max_binary=4), n_components=st.integers(1, 4), seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_what_rows_say_is_the_joint_distribution_given_them(case: Case, n_components: int, seed: int) -> None:
    mixture = tb.conform(
        case.classifier, case.X, smoothing=case.smoothing, categorical=case.categorical, n_components=n_components
    )
    gaps = hide(case.X, case.categorical, np.random.default_rng(seed))
    for part in PreparedRows(mixture.components[0], gaps, n_components):
        scores = mixture.scores_of(part)
        found = scores.posterior
        np.testing.assert_allclose(found.log_likelihood, logsumexp(scores.joint, axis=1), atol=1e-11)
        np.testing.assert_allclose(found.shares, softmax(scores.joint, axis=1), atol=1e-12)
        of_classes = (scores.of_gaps + scores.levels[part.gaps][:, :, None]).reshape(len(part.gaps), -1)
        expected = softmax(of_classes, axis=1) if len(of_classes) else of_classes
        np.testing.assert_allclose(found.of_classes.reshape(len(part.gaps), -1), expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(700, 2), (700, 3, 2), (2, 700), (300, 8), (3, 2)])
@pytest.mark.parametrize("axis", [0, -1])
def test_sums_of_short_axes_are_those_of_long_ones(shape: tuple[int, ...], axis: int) -> None:
    scores = np.random.default_rng(0).normal(scale=300, size=shape)
    np.testing.assert_allclose(our_logsumexp(scores, axis), logsumexp(scores, axis=axis), rtol=1e-14)


@pytest.mark.parametrize("n_components", [1, 3])
def test_samples_have_the_probabilities_of_the_model(n_components: int) -> None:
    X, _, classifier = real_problem()
    constant = np.column_stack([X, np.full(300, 7.0)])
    wide = brute_force.fake_classifier(
        np.column_stack([np.zeros(6), np.append(classifier.coef_[0], 0.5)]), np.array([0.0, classifier.intercept_[0]])
    )
    model = tb.conform(wide, constant, real=[0, 5], categorical=[[2, 3, 4]], n_components=n_components)
    rows, labels = model.sample(40_000, np.random.default_rng(0))
    assert (rows[:, 2:5].sum(axis=1) == 1).all()
    assert (rows[:, 5] == 7).all()
    np.testing.assert_allclose(rows[:, :5].mean(axis=0), X.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(rows[:, 0].std(), X[:, 0].std(), rtol=0.02)
    np.testing.assert_allclose((labels == 1).mean(), model.predict_proba(np.full((1, 6), np.nan))[0, 1], atol=0.01)
    assert model.log_likelihood(rows).mean() == pytest.approx(model.log_likelihood(constant).mean(), abs=0.1)


@pytest.mark.parametrize(
    ("n_masks", "n_features", "n_columns"), [(0, 3, 2), (5, 1, 1), (7, 24, 40), (30, 25, 41), (300, 50, 97)]
)
def test_selected_sums_are_a_product_of_matrices(n_masks: int, n_features: int, n_columns: int) -> None:
    rng = np.random.default_rng(n_masks)
    masks, table = rng.random((n_masks, n_features)) < 0.5, rng.normal(0, 3, (n_features, n_columns))
    parts = selected_sums(packed_masks(masks), table)
    np.testing.assert_allclose(np.hstack(list(parts))[:, :n_columns], masks @ table, rtol=0, atol=1e-12)
    assert (np.hstack(list(parts))[:, n_columns:] == 0).all()


@pytest.mark.parametrize(("n_components", "n_classes"), [(1, 2), (3, 5), (20, 3), (17, 10)])
def test_mixed_scores_are_a_sum_over_components(n_components: int, n_classes: int) -> None:
    rng = np.random.default_rng(n_components)
    scores, levels = rng.normal(0, 20, (50, n_components, n_classes)), rng.normal(0, 20, (50, n_components))
    flat = np.zeros((50, -(-n_components * n_classes // 40) * 40))
    flat[:, : n_components * n_classes] = scores.reshape(50, -1)
    parts = np.ascontiguousarray(flat.reshape(50, -1, 40).transpose(1, 0, 2))
    expected = logsumexp(scores + levels[:, :, None], axis=1)
    np.testing.assert_allclose(mixed_scores(parts, levels, n_classes), expected, rtol=1e-14, atol=1e-13)


@given(case=cases(max_binary=4), n_components=st.integers(2, 4), seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_many_rows_are_predicted_like_few(case: Case, n_components: int, seed: int) -> None:
    mixture = tb.conform(
        case.classifier, case.X, smoothing=case.smoothing, categorical=case.categorical, n_components=n_components
    )
    rows = np.vstack([hide(case.X, case.categorical, np.random.default_rng(seed)), case.X])
    few = mixture.decision_scores(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimbench.conformant.distribution._MANY", 0)
        many = mixture.decision_scores(rows)
        with pytest.raises(ValueError, match=r"X\[1, 0\] must be"):
            mixture.decision_scores([case.X[0], np.full(len(case.X[0]), 7.0)])
    np.testing.assert_allclose(many, few, rtol=1e-13, atol=1e-12)
    classifier = case.classifier.predict_proba(case.X)
    scores = many[len(case.X) :]
    np.testing.assert_allclose(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)), classifier, atol=1e-13)
