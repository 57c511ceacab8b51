"""Conformant models with a covariance against densities by their definition, a general optimiser and quadrature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, optimize
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from tests.conformant.brute_force import fake_classifier
from trimbench.conformant.choice import _USUAL_SHRINKAGE, _Split
from trimbench.conformant.covariance import NormalMoments, Normals, fit_normals
from trimbench.conformant.mixture import (
    MixturePrior,
    NormalPrior,
    PreparedRows,
    Tilts,
    clusters,
    expect,
    learn_components,
)

Array = NDArray[np.float64]


def random_moments(rng: np.random.Generator, scale: float) -> tuple[NormalMoments, Array, Array]:
    """Moments of correlated rows, with pseudo-observations, and a classifier."""
    k, d, n_classes = (int(rng.integers(1, high)) for high in (4, 7, 5))
    n_classes += 1
    rows = rng.normal(0, 1, (k, 40, d)) @ rng.normal(0, 1, (k, d, d)) + rng.normal(0, 1, (k, 1, d))
    pseudo = float(rng.choice([0.0, 0.01, 0.3]))
    second = np.einsum("zni,znj->zij", rows, rows) / 40 + (2 * pseudo * n_classes + 1e-3) * np.eye(d)
    moments = NormalMoments(
        rows.mean(axis=1), second, np.full(k, 1 + pseudo * n_classes), np.full((k, n_classes), pseudo)
    )
    return moments, rng.normal(0, scale, (d, n_classes)), rng.normal(0, scale, (k, n_classes))


@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.1, 1.0, 5.0, 20.0]))
@settings(max_examples=100)
def test_the_moments_of_the_model_are_those_of_the_rows(seed: int, scale: float) -> None:
    moments, weights, biases = random_moments(np.random.default_rng(seed), scale)
    normals, shares = fit_normals(moments, weights, biases)
    np.testing.assert_allclose(softmax(biases + normals.normalisers, axis=1), shares, rtol=0, atol=1e-8)
    of_classes = moments.share[:, None] * shares + moments.constant
    means = normals.means[:, :, None] + normals.covariances @ weights
    size = np.abs(moments.second).max()
    np.testing.assert_allclose(np.einsum("zc,zdc->zd", of_classes, means), moments.first, rtol=0, atol=1e-7 * size)
    second = of_classes.sum(axis=1)[:, None, None] * normals.covariances
    second = second + np.einsum("zc,zdc,zec->zde", of_classes, means, means)
    np.testing.assert_allclose(second, moments.second, rtol=0, atol=1e-7 * size)
    assert (np.linalg.eigvalsh(normals.covariances) > 0).all()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_what_incomplete_rows_say_is_what_conditioning_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, d, n_classes, n = 2, int(rng.integers(1, 6)), 3, 8
    roots = rng.normal(0, 1, (k, d, d))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(d)
    normals = Normals(rng.normal(0, 1, (d, n_classes)), rng.normal(0, 1, (k, d)), covariances)
    values, absent = rng.normal(0, 1, (n, d)), rng.random((n, d)) < rng.random()
    shares = rng.random((n, k, n_classes))
    found = normals.given(values, absent)
    first, second = np.zeros((k, d)), np.zeros((k, d, d))
    for i in range(n):
        seen, gone = ~absent[i], absent[i]
        for z in range(k):
            mean, covariance = normals.means[z], covariances[z]
            gain = covariance[np.ix_(gone, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
            centre = mean[gone] + gain @ (values[i] - mean)[seen]
            spread = covariance[np.ix_(gone, gone)] - gain @ covariance[np.ix_(seen, gone)]
            if seen.any():
                twin = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(values[i, seen])
                assert found.log_density[i, z] == pytest.approx(float(twin), abs=1e-7)
            weights = normals.weights[gone]
            scores = weights.T @ centre + (weights * (spread @ weights)).sum(axis=0) / 2
            np.testing.assert_allclose(found.scores[i, z], scores, atol=1e-7)
            for c in range(n_classes):
                row, product = values[i].copy(), np.zeros((d, d))
                row[gone] = centre + spread @ weights[:, c]
                product[np.ix_(gone, gone)] = spread
                first[z] += shares[i, z, c] * row
                second[z] += shares[i, z, c] * (np.outer(row, row) + product)
    means, products = found.expected(normals, shares)
    np.testing.assert_allclose(means, first, atol=1e-6)
    np.testing.assert_allclose(products, second, atol=1e-6)


def mixed_rows(rng: np.random.Generator, n_rows: int) -> Array:
    """Two numbers that hang together, a binary feature that depends on them, and a category of three values."""
    numbers = rng.normal(0, 1, (n_rows, 2)) @ np.array([[1.0, 0.7], [0.0, 0.6]]) * [2.0, 5.0] + [1.0, -3.0]
    category = np.eye(3)[np.arange(n_rows) % 3]
    return np.column_stack([numbers, numbers[:, 0] + rng.normal(0, 1, n_rows) > 1, category])


_LAYOUT: dict[str, Any] = {"real": [0, 1], "categorical": [[3, 4, 5]]}


@pytest.fixture
def category_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The category of `mixed_rows` takes no part in the covariance, as if it had many values."""
    monkeypatch.setattr("trimbench.conformant.choice._MOST_OF_VALUES", (4, 4))


def log_density(x: Array, model: tb.ConformantModel) -> Array:
    """Log p(x, class) of one component by Bayes' rule from its parts: nothing of the classifier but the labels."""
    (part,) = model.components
    assert part.normal is not None
    names = [0, 1, 2]
    scales = part.coding.scales
    covariance = part.normal.covariances[0] * scales[:, None] * scales
    moved = part.normal.means[0][:, None] + part.normal.slopes[0]
    means = part.coding.means[:, None] + scales[:, None] * moved
    found = []
    for k in range(len(model.classes)):
        density = multivariate_normal(means[:, k], covariance).logpdf(x[names])
        found.append(model.log_prior[k] + density + part.log_probabilities[3:, k] @ x[3:])
    return np.array(found)


@pytest.mark.usefixtures("category_apart")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_the_classes_have_the_probabilities_of_the_classifier(scale: float, gaps: bool) -> None:
    rng = np.random.default_rng(1)
    X = mixed_rows(rng, 90)
    weights, biases = rng.normal(0, scale, (6, 3)), rng.normal(0, scale, 3)
    training = X.copy()
    if gaps:
        training[::3, 0] = training[1::4, 2] = np.nan
    model = tb.conform(fake_classifier(weights, biases), training, **_LAYOUT, n_components=1, covariance="full")
    assert model.covariance == "full"
    assert model.residual < 1e-9
    for x in X[:20]:
        joint = log_density(x, model)
        np.testing.assert_allclose(softmax(joint), softmax(x @ weights + biases), rtol=0, atol=1e-10)
        assert model.log_likelihood([x])[0] == pytest.approx(logsumexp(joint), abs=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), softmax(X @ weights + biases, axis=1), rtol=0, atol=1e-12)


def penalised(
    free: Array, rows: Array, weights: Array, biases: Array, smoothing: float, shrinkage: float, shares: Array
) -> float:
    """The negative objective of one component, from its definition; `free` has a mean, a Cholesky factor, and tilts."""
    n_rows, n_classes = len(rows), len(biases)
    spread = rows[:, :3].std(axis=0)
    values, slopes = (rows[:, :3] - rows[:, :3].mean(axis=0)) / spread, weights[:3] * spread[:, None]
    constant = biases + rows[:, :3].mean(axis=0) @ weights[:3]
    mean, root, tilts = free[:3], np.zeros((3, 3)), np.append(free[9:], 0.0)
    root[np.tril_indices(3)] = free[3:9]
    covariance = root @ root.T + 1e-12 * np.eye(3)
    normal = multivariate_normal(mean, covariance)
    of_classes = mean @ slopes + (slopes * (covariance @ slopes)).sum(axis=0) / 2
    of_values = logsumexp(tilts[:, None] + weights[3:], axis=0)
    normaliser = logsumexp(constant + of_classes + of_values)
    scores = constant + values @ slopes + rows[:, 3:] @ weights[3:]
    total = float((logsumexp(scores, axis=1) + normal.logpdf(values) + rows[:, 3:] @ tilts - normaliser).sum())
    # Of each pair of pseudo-observations of a number, one lies a standard deviation below and one above.
    pairs = sum(float(normal.logpdf(np.zeros(3))) for _ in range(2)) - float(np.trace(np.linalg.inv(covariance)))
    total += smoothing * (n_classes * (pairs + tilts.sum() - normaliser) - of_classes.sum() - 2 * of_values.sum())
    alone = float(normal.logpdf(np.zeros(3))) - float(np.trace(np.linalg.inv(covariance))) / 2
    return -(total + shrinkage * n_rows * (alone - float(of_classes @ shares))) / n_rows


@pytest.mark.usefixtures("category_apart")
@pytest.mark.parametrize(("smoothing", "scale"), [(0.0, 0.5), (1.0, 0.5), (1.0, 2.0)])
def test_no_other_parameters_are_better(smoothing: float, scale: float) -> None:
    """A general optimiser on a Cholesky factor ends where the closed form is, and finds nothing better from there."""
    rng = np.random.default_rng(4)
    X = mixed_rows(rng, 45)  # so few that nothing is held out: the shrinkage is the usual one
    weights, biases = rng.normal(0, scale, (6, 3)) / [[2], [5], [1], [1], [1], [1]], rng.normal(0, scale, 3)
    how: dict[str, Any] = {**_LAYOUT, "smoothing": smoothing, "n_components": 1}
    classifier = fake_classifier(weights, biases)
    model = tb.conform(classifier, X, covariance="full", **how)
    shares = np.exp(tb.conform(classifier, X, covariance="diagonal", **how).log_prior)
    (part,) = model.components
    assert part.normal is not None
    root = np.linalg.cholesky(part.normal.covariances[0])
    tilts = part.tilts[3:] - part.tilts[5]
    ours = np.concatenate([part.normal.means[0], root[np.tril_indices(3)], tilts[:2]])
    given_rows = (X, weights, biases, smoothing, _USUAL_SHRINKAGE, shares)
    reached = penalised(ours, *given_rows)
    steps = 1e-5 * np.eye(len(ours))
    sides = [penalised(ours + step, *given_rows) - penalised(ours - step, *given_rows) for step in steps]
    assert np.abs(np.array(sides) / 2e-5).max() < 1e-6
    start = np.concatenate([np.zeros(3), np.eye(3)[np.tril_indices(3)], np.zeros(2)])
    found = optimize.minimize(penalised, start, given_rows, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    assert found.fun == pytest.approx(reached, abs=1e-8)
    np.testing.assert_allclose(found.x, ours, atol=2e-3)


@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 4), scale=st.sampled_from([0.3, 1.5]))
@settings(max_examples=15, deadline=None)
def test_categories_as_numbers_are_conditioned_like_numbers(seed: int, n_classes: int, scale: float) -> None:
    """Given the class, numbers and values are jointly normal; their marginals and Bayes' rule give the class."""
    rng = np.random.default_rng(seed)
    X = mixed_rows(rng, 60)
    weights, biases = rng.normal(0, scale, (6, n_classes)), rng.normal(0, scale, n_classes)
    model = tb.conform(fake_classifier(weights, biases), X, **_LAYOUT, n_components=1, covariance="full")
    coding, (part,) = model.evidence.coding, model.components
    joint = np.array(coding.joint_columns)
    assert coding.joint == (0, 1, 2, 3, 3)
    assert part.normal is not None
    covariance = part.normal.covariances[0] * coding.scales[:, None] * coding.scales
    means = coding.means[:, None] + coding.scales[:, None] * (part.normal.means[0][:, None] + part.normal.slopes[0])
    np.testing.assert_allclose(model.predict_proba(X), softmax(X @ weights + biases, axis=1), rtol=0, atol=1e-12)
    hidden = rng.random((20, 4)) < 0.5
    hidden[:5] = False
    hidden[5:8] = True
    for row in np.where(hidden[:, [0, 1, 2, 3, 3, 3]], np.nan, X[:20]):
        seen = ~np.isnan(row[joint])
        scores = model.log_prior.copy()
        if seen.any():
            marginals = (multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]) for mean in means.T)
            scores += [marginal.logpdf(row[joint[seen]]) for marginal in marginals]
        np.testing.assert_allclose(model.predict_proba([row])[0], softmax(scores), rtol=0, atol=1e-9)
        assert model.log_likelihood([row])[0] == pytest.approx(logsumexp(scores), abs=1e-8)


@given(seed=st.integers(0, 2**32), gaps=st.booleans())
@settings(max_examples=15, deadline=None)
def test_values_that_are_declared_as_numbers_give_the_same_model(seed: int, gaps: bool) -> None:
    """Binary features and categories as numbers are fitted as real-valued columns with the same values would be."""
    rng = np.random.default_rng(seed)
    X = mixed_rows(rng, 80)
    weights, biases = rng.normal(0, 0.5, (6, 3)), rng.normal(0, 0.5, 3)
    if gaps:
        X = np.where((rng.random((80, 4)) < 0.2)[:, [0, 1, 2, 3, 3, 3]], np.nan, X)
    own = tb.conform(fake_classifier(weights, biases), X, **_LAYOUT, n_components=1, covariance="full")
    columns = list(own.evidence.coding.joint_columns)
    (reference,) = {3, 4, 5} - set(columns)
    differences = weights - np.where(np.isin(np.arange(6), [3, 4, 5])[:, None], weights[reference], 0.0)
    classifier = fake_classifier(differences[columns], biases + weights[reference])
    numbers: Any = range(5)
    other = tb.conform(classifier, X[:, columns], real=numbers, n_components=1, covariance="full")
    found = []
    for model, rows in ((own, X), (other, X[:, columns])):
        normal = NormalPrior(5.0, np.eye(5), np.full(3, 1 / 3))
        prior = MixturePrior.of(model.components[0], 1, 1.0, normal=normal)
        first = clusters(model.components[0], rows, 1, 0)
        found.append((learn_components(prior, rows, first, 5), rows))
    (one, rows), (two, of_numbers) = found
    np.testing.assert_allclose(one.predict_proba(rows), two.predict_proba(of_numbers), rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.log_likelihood(rows), two.log_likelihood(of_numbers), rtol=0, atol=1e-7)


@given(
    seed=st.integers(0, 2**32),
    n_components=st.integers(1, 3),
    smoothing=st.sampled_from([0.0, 1.0]),
    apart=st.booleans(),
    centred=st.booleans(),
)
@settings(max_examples=15)
def test_expectation_maximisation_never_lowers_the_objective(
    seed: int, n_components: int, smoothing: float, apart: bool, centred: bool
) -> None:
    rng = np.random.default_rng(seed)
    whole = mixed_rows(rng, 60)
    rows = np.where((rng.random((60, 4)) < 0.4)[:, [0, 1, 2, 3, 3, 3]], np.nan, whole)
    rows[:6] = whole[:6]
    classifier = fake_classifier(rng.normal(0, 0.5, (6, 3)), rng.normal(0, 1, 3))
    how: Any = {**_LAYOUT, "n_components": n_components, "covariance": "full"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimbench.conformant.choice._MOST_OF_VALUES", [4 if apart else 5] * 2)
        found = tb.conform(classifier, rows, smoothing=smoothing, **how)
    tilts = Tilts.of(found)
    n_joint = 3 if apart else 5
    centres = rng.normal(0, 1, (n_components, n_joint)) if centred else 0.0
    normal = NormalPrior(5.0, np.eye(n_joint), np.full(3, 1 / 3), centres)
    prior = MixturePrior.of(found.components[0], n_components, smoothing, normal=normal)
    objectives, parts = [], PreparedRows(prior.model, rows, n_components)
    for sweeps in [1, 1, 1, 1, 100, 100, 100]:
        expected = expect(tilts, parts)
        assert expected.log_likelihood == pytest.approx(tilts.model().log_likelihood(rows).sum(), rel=1e-10)
        assert expected.counts.sum() == pytest.approx(60)
        objectives.append(expected.log_likelihood + prior.log_density(tilts))
        tilts = prior.maximise(expected, tilts, sweeps=sweeps)
    assert tilts.residuals.max() < 1e-9
    assert (np.diff(objectives) >= -1e-9 * (1 + np.abs(objectives[1:]))).all()


@given(seed=st.integers(0, 2**32), n_real=st.integers(1, 9), n_components=st.integers(1, 3), share=st.floats(0.0, 1.0))
@settings(max_examples=30, deadline=None)
def test_compiled_expectations_are_those_of_conditional_distributions(
    seed: int, n_real: int, n_components: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_components, n_real, n_real + 2))
    covariances = factors @ np.swapaxes(factors, 1, 2)
    normals = Normals(rng.normal(size=(n_real, 3)), rng.normal(size=(n_components, n_real)), covariances)
    values, absent = rng.normal(size=(7, n_real)), rng.random((7, n_real)) < share
    expected = normals.given(values, absent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimbench.conformant.covariance._MANY", 0)
        density, scores = normals.gap_scores(np.where(absent, np.nan, values), absent)
    size = 1 + np.linalg.cond(covariances).max()
    np.testing.assert_allclose(density, expected.log_density, rtol=1e-12 * size, atol=1e-12 * size)
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-12 * size, atol=1e-12 * size)


def correlated(n_rows: int = 200) -> tuple[Array, NDArray[np.bool_], LogisticRegression]:
    rng = np.random.default_rng(0)
    common = rng.normal(0, 1, (n_rows, 1))
    X = common + rng.normal(0, 0.4, (n_rows, 6))
    y = X[:, 0] + rng.normal(0, 0.5, n_rows) > 0
    return X, y, LogisticRegression().fit(X, y)


@pytest.mark.parametrize("n_components", [1, 2])
def test_expectations_by_quadrature(n_components: int) -> None:
    X, _, _ = correlated()
    pair = X[:, :2]
    classifier = LogisticRegression().fit(pair, pair.sum(axis=1) + np.random.default_rng(0).normal(0, 1, 200) > 0)
    model = tb.conform(classifier, pair, real=[0, 1], n_components=n_components, covariance="full")
    for x in (-1.0, 0.3, 2.0):

        def density(other: float, x: float = x) -> float:
            return float(np.exp(model.log_likelihood([[x, other]])[0]))

        def weighted(other: float, x: float = x) -> float:
            return density(other, x) * float(classifier.predict_proba([[x, other]])[0, 1])

        total, expected = (integrate.quad(f, -12, 12, limit=200)[0] for f in (density, weighted))
        assert math.log(total) == pytest.approx(model.log_likelihood([[x, np.nan]])[0], abs=1e-7)
        assert expected / total == pytest.approx(model.predict_proba([[x, np.nan]])[0, 1], abs=1e-7)


def test_a_single_number_has_no_covariance() -> None:
    X, y, _ = correlated()
    column = X[:, :1]
    classifier = LogisticRegression().fit(column, y)
    usual = {"real": [0], "n_components": 1}
    full = tb.conform(classifier, column, covariance="full", **usual)  # type: ignore[call-overload]
    assert full.covariance == "diagonal"
    zeros_and_ones = (X > 0).astype(float)
    binary = LogisticRegression().fit(zeros_and_ones, y)
    assert tb.conform(binary, zeros_and_ones, covariance="full").covariance == "full"
    constant = np.column_stack([zeros_and_ones[:, 0], np.ones(len(X))])
    alone = LogisticRegression().fit(constant, y)
    assert tb.conform(alone, constant, covariance="full").covariance == "diagonal"


def test_a_covariance_is_chosen_where_it_predicts_better() -> None:
    X, y, classifier = correlated()
    chosen = tb.conform(classifier, X, real=range(6))  # type: ignore[arg-type]
    assert chosen.covariance == "full"
    assert repr(chosen).startswith(f"ConformantModel(n_components={chosen.n_components}, covariance='full', ")
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.5, np.nan, X)

    def loss(model: tb.ConformantModel) -> float:
        return -float(model.predict_log_proba(gaps)[np.arange(len(y)), y.astype(int)].mean())

    plain = tb.conform(classifier, X, real=range(6), n_components=1, covariance="diagonal")  # type: ignore[arg-type]
    assert loss(chosen) < loss(plain) - 0.05
    rng = np.random.default_rng(1)
    alone = rng.normal(0, 1, (300, 5))
    simple = LogisticRegression().fit(alone, alone[:, 0] + rng.normal(0, 1, 300) > 0)
    assert tb.conform(simple, alone, real=range(5)).covariance == "diagonal"  # type: ignore[arg-type]
    forced = tb.conform(simple, alone, real=range(5), n_components=3, covariance="full")  # type: ignore[arg-type]
    assert (forced.n_components, forced.covariance) == (3, "full")
    fixed = tb.conform(classifier, X, real=range(6), n_components=2)  # type: ignore[arg-type]
    assert (fixed.n_components, fixed.covariance) == (2, "full")


@pytest.mark.parametrize(("difference", "n_comparisons"), [(0.0, 5), (10.0, 1)])
def test_few_rows_are_held_out_in_turns_while_they_leave_the_covariance_open(
    monkeypatch: pytest.MonkeyPatch, difference: float, n_comparisons: int
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(103, 3))
    classifier = LogisticRegression().fit(X, X[:, 0] > rng.normal(size=103))
    splits: list[_Split] = []
    predictions = _Split.predictions

    def noted(split: _Split, model: tb.ConformantModel) -> Any:
        rows, others = split.held_out, split.others
        assert not set(others[:, 0]) & set(rows[:, 0])
        assert set(split.few[:, 0]) == set(rows[:, 0])
        assert len(others) == 103 - 20
        splits.extend([] if split in splits else [split])
        return predictions(split, model)

    def losses(models: list[Any]) -> Array:
        found = np.zeros((20, len(models)))
        if len(models) == 2:  # one component and what may be better
            found[:, 0] = difference + np.resize([-1.0, 1.0], 20)
        return found

    monkeypatch.setattr(_Split, "predictions", noted)
    monkeypatch.setattr(_Split, "losses", staticmethod(losses))
    tb.conform(classifier, X, real=range(3))
    assert len(splits) == n_comparisons
    assert len(np.unique(np.concatenate([split.held_out for split in splits])[:, 0])) == 20 * n_comparisons


def test_many_features_have_a_covariance_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, classifier = correlated()
    monkeypatch.setattr("trimbench.conformant.choice._MOST_JOINT", 5)
    assert tb.conform(classifier, X, real=range(6)).covariance == "diagonal"  # type: ignore[arg-type]
    assert tb.conform(classifier, X, real=range(6), covariance="full").covariance == "full"  # type: ignore[arg-type]


def test_samples_have_the_moments_of_the_model() -> None:
    rng = np.random.default_rng(2)
    X = mixed_rows(rng, 600)
    X = np.column_stack([X, np.full(600, 7.0)])
    classifier = fake_classifier(rng.normal(0, 0.3, (7, 2)), np.array([0.0, 1.0]))
    model = tb.conform(classifier, X, real=[0, 1, 6], categorical=[[3, 4, 5]], n_components=2, covariance="full")
    rows, labels = model.sample(40_000, rng)
    assert set(np.unique(rows[:, 2])) == {0.0, 1.0}
    assert (rows[:, 3:6].sum(axis=1) == 1).all()
    assert set(np.unique(rows[:, 3:6])) == {0.0, 1.0}
    assert (rows[:, 6] == 7).all()
    np.testing.assert_allclose(rows[:, :2].mean(axis=0), X[:, :2].mean(axis=0), atol=0.15)
    np.testing.assert_allclose(np.cov(rows[:, :2].T), np.cov(X[:, :2].T), rtol=0.1)
    np.testing.assert_allclose((labels == 1).mean(), np.exp(model.log_prior[1]), atol=0.01)
    means, variances = model.components[0].real_moments
    assert means.shape == (3, 2)
    assert variances[2] == 0


def test_contrasts_of_complete_rows_are_those_of_the_classifier() -> None:
    rng = np.random.default_rng(3)
    X = mixed_rows(rng, 120)
    classifier = LogisticRegression().fit(X, X[:, 0] + rng.normal(0, 1, 120) > 1)
    model = tb.conform(classifier, X, **_LAYOUT, n_components=1, covariance="full")
    plain = tb.conform(classifier, X, **_LAYOUT, n_components=1, covariance="diagonal")
    # What changes of a complete row do, the classifier alone decides.
    ours, theirs = model.contrast(X[0]), plain.contrast(X[0])
    assert (ours.features, ours.becomes) == (theirs.features, theirs.becomes)
    lost = model.contrast(X[0], by="loss")
    if lost.features:
        assert model.predict(lost.row[None])[0] == lost.becomes
    gap = np.where(np.arange(6) == 0, np.nan, X[0])
    with pytest.raises(ValueError, match="with several components or a covariance"):
        model.contrast(gap)


def test_what_the_rows_or_the_solver_do_not_allow() -> None:
    X, _, classifier = correlated()
    columns: Any = range(6)
    with pytest.raises(ValueError, match="covariance must be one of auto, full, diagonal, got 'some'"):
        tb.conform(classifier, X, real=columns, covariance="some")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="sample_weight must be left out for incomplete rows, several components and"):
        tb.conform(classifier, X, real=columns, covariance="full", sample_weight=np.ones(200))
    weighted = tb.conform(classifier, X, real=columns, sample_weight=np.full(200, 0.5))
    assert (weighted.n_components, weighted.covariance) == (1, "diagonal")


def test_a_covariance_that_is_lost_to_rounding_fails_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, classifier = correlated()
    columns: Any = range(6)

    def lost(*_: Any) -> None:
        raise np.linalg.LinAlgError("Matrix is not positive definite")

    monkeypatch.setattr("trimbench.conformant.mixture.fit_normals", lost)
    assert tb.conform(classifier, X, real=columns).covariance == "diagonal"
    with pytest.raises(RuntimeError, match="covariance='full' is lost to rounding, as the weights of the classifier"):
        tb.conform(classifier, X, real=columns, covariance="full")


def test_a_covariance_that_misses_its_moments_is_taken_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, classifier = correlated()
    columns: Any = range(6)
    monkeypatch.setattr("trimbench.conformant.choice._LARGEST_RESIDUAL", -1.0)
    assert tb.conform(classifier, X, real=columns).covariance == "diagonal"
    assert tb.conform(classifier, X, real=columns, covariance="full").covariance == "full"


@pytest.mark.parametrize("objective", ["information", "stability"])
def test_a_category_that_takes_part_can_be_asked_for(objective: Any) -> None:
    """It is worth nothing to a classifier without weight on it, and most to one that looks at nothing else."""
    rng = np.random.default_rng(5)
    X = mixed_rows(rng, 200)
    X[:, 3:] = np.eye(3)[rng.integers(0, 3, 200)]  # which says nothing of the numbers
    unknown = np.full((3, 6), np.nan)
    for own, is_wanted in ((np.array([0, 0, 0, 2.0, -2.0, 0.0]), True), (np.array([1.0, 0.2, 2.0, 0, 0, 0]), False)):
        weights = np.stack([own, -own], axis=1)
        model = tb.conform(fake_classifier(weights, np.zeros(2)), X, **_LAYOUT, covariance="full")
        assert len(model.normals.means[0]) == 5  # type: ignore[union-attr]
        found = model.next_feature(unknown, objective=objective)
        assert np.isfinite(found.gains).all()
        category = len(found.questions) - 1  # after the two numbers and the binary feature
        assert {*(found.gains.argmax(axis=1) == category)} == {is_wanted}
        if not is_wanted:
            np.testing.assert_allclose(found.gains[:, category], 0, atol=0.02)
        policy = model.acquire(np.full_like(X[:20], np.nan), X[:20], budget=4.0)
        np.testing.assert_array_equal(policy.predictions, model.predict(X[:20]))
