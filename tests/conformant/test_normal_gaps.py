"""Decisions, questions and explanations of models with a covariance, against draws by textbook conditioning."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, softmax
from scipy.stats import multivariate_normal

import trimbench as tb
from trimbench.conformant import normal_gaps

Array = NDArray[np.float64]
_LAYOUT: dict[str, Any] = {"real": [0, 1], "categorical": [[3, 4, 5]]}


def fitted(
    seed: int, n_classes: int, n_components: int, scale: float = 1.0, *, values: bool = False
) -> tuple[tb.ConformantModel, Array]:
    """Return a model of two numbers, a binary feature and a category, and rows; the category as numbers if `values`."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(150, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 3.0
    X = np.column_stack([numbers, rng.random(150) < 0.5, np.eye(3)[rng.integers(0, 3, 150)]])
    weights, biases = rng.normal(0, scale, (6, n_classes)), rng.normal(0, scale, n_classes)
    classifier = FakeClassifier(weights, biases - X.mean(axis=0) @ weights)
    how: Any = {**_LAYOUT, "n_components": n_components, "covariance": "full"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimbench.conformant.choice._MOST_OF_VALUES", [5 if values else 4] * 2)
        model = tb.conform(classifier, X, **how)
    assert len(model.evidence.coding.joint) == (5 if values else 3)
    return model, X


class FakeClassifier:
    """A regression with given weights."""

    def __init__(self, weights: Array, biases: Array) -> None:
        self.classes_ = np.arange(len(biases))
        several = len(biases) > 2
        self.coef_ = weights.T if several else (weights[:, 1] - weights[:, 0])[None]
        self.intercept_ = biases if several else biases[1:] - biases[:1]


def completions(model: tb.ConformantModel, row: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """Draw completions of a row by the formulas for joint normal distributions, from all features of each state."""
    coding = model.components[0].coding
    joint = np.array(coding.joint_columns)
    reference = np.setdiff1d([3, 4, 5], joint)
    absent = np.isnan(row[joint])
    weights, drawn = [], []
    for log_weight, part in zip(model.log_weights, model.components, strict=True):
        assert part.normal is not None
        covariance = part.normal.covariances[0] * np.outer(coding.scales, coding.scales)
        for c in range(len(model.classes)):
            mean = coding.means + coding.scales * (part.normal.means[0] + part.normal.slopes[0][:, c])
            known, total = ~absent, log_weight + part.log_prior[c]
            completed = np.tile(row, (n_draws, 1))
            if known.any():
                total += multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(row[joint[known]])
            if absent.any():
                across = covariance[np.ix_(absent, known)] @ np.linalg.pinv(covariance[np.ix_(known, known)])
                centre = mean[absent] + across @ (row[joint[known]] - mean[known])
                spread = covariance[np.ix_(absent, absent)] - across @ covariance[np.ix_(known, absent)]
                completed[:, joint[absent]] = rng.multivariate_normal(centre, spread, n_draws)
            chances = np.exp(part.log_probabilities[3:, c])
            if len(reference) == 1:
                completed[:, reference] = 1 - completed[:, np.setdiff1d([3, 4, 5], reference)].sum(
                    axis=1, keepdims=True
                )
            elif np.isnan(row[3]):
                completed[:, 3:] = np.eye(3)[rng.choice(3, n_draws, p=chances / chances.sum())]
            else:
                total += float(np.log(chances[row[3:] == 1][0]))
            weights.append(total)
            drawn.append(completed)
    shares = np.exp(np.array(weights) - np.max(weights))
    chosen = rng.choice(len(shares), n_draws, p=shares / shares.sum())
    return np.array(drawn)[chosen, np.arange(n_draws)]


def gaps_of(rng: np.random.Generator, rows: Array) -> Array:
    hidden = rng.random((len(rows), 4)) < 0.5
    hidden[np.arange(len(rows)), rng.integers(0, 4, len(rows))] = True
    return np.where(hidden[:, [0, 1, 2, 3, 3, 3]], np.nan, rows)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("values", [False, True])
def test_decisions_stay_as_often_as_in_draws(n_classes: int, n_components: int, values: bool) -> None:
    rng, n_draws = np.random.default_rng(n_classes), 40_000
    model, X = fitted(n_classes, n_classes, n_components, values=values)
    rows = gaps_of(rng, X[:12])
    lower, upper = model.same_decision_probability(rows, interval=True)
    assert (model.same_decision_probability(rows) == (lower + upper) / 2).all()
    if n_classes == 2:
        assert (lower == upper).all()
    assert (upper - lower).max() < 0.01
    decisions = model.decision_scores(rows).argmax(axis=1)
    for row, decision, low, high in zip(rows, decisions, lower, upper, strict=True):
        completed = completions(model, row, n_draws, rng)
        stays = float(((completed @ model.weights + model.biases).argmax(axis=1) == decision).mean())
        noise = 4.5 * np.sqrt(max(stays * (1 - stays), 1 / n_draws) / n_draws)
        assert low - noise <= stays <= high + noise


def test_with_two_classes_the_margin_is_normal() -> None:
    model, X = fitted(0, 2, 1)
    row = np.where(np.arange(6) < 3, np.nan, X[0])
    (part,) = model.components
    assert part.normal is not None
    weights = (model.weights[:, 1] - model.weights[:, 0])[:3]
    scaled = weights * part.coding.scales
    deviation = np.sqrt(scaled @ part.normal.covariances[0] @ scaled)
    chances, shares = [], model.predict_proba([row])[0]
    for c in range(2):
        mean = part.coding.means + part.coding.scales * (part.normal.means[0] + part.normal.slopes[0][:, c])
        rest = X[0, 3:] @ (model.weights[3:, 1] - model.weights[3:, 0]) + model.biases[1] - model.biases[0]
        chances.append(ndtr((rest + mean @ weights) / deviation))
    of_second = float(shares @ chances)
    expected = of_second if shares[1] > shares[0] else 1 - of_second
    assert model.same_decision_probability([row])[0] == pytest.approx(expected, abs=1e-12)


def test_a_complete_row_stays_and_features_without_weight_do_not_matter() -> None:
    model, X = fitted(1, 3, 1)
    assert (model.same_decision_probability(X[:5]) == 1).all()
    weights = np.zeros((6, 2))
    weights[3, 1] = 1.0
    how: Any = {**_LAYOUT, "n_components": 1, "covariance": "full"}
    flat = tb.conform(FakeClassifier(weights, np.array([0.0, -0.5])), X, **how)
    rows = np.where(np.arange(6) < 3, np.nan, X[:20])
    lower, upper = flat.same_decision_probability(rows, interval=True)
    assert lower == pytest.approx(np.ones(20), abs=1e-12)
    assert upper == pytest.approx(np.ones(20), abs=1e-12)


def test_many_completions_of_categories_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted(2, 2, 2)
    rows = gaps_of(np.random.default_rng(0), X[:10])
    exact = model.same_decision_probability(rows)
    monkeypatch.setattr(normal_gaps, "_MOST_COMPLETIONS", 0)
    lower, upper = model.same_decision_probability(rows, interval=True)
    assert ((lower <= exact + 1e-12) & (exact - 1e-12 <= upper)).all()
    assert (upper - lower).max() < 0.02


@pytest.mark.parametrize("n_classes", [2, 4])
def test_draws_for_questions_are_those_of_the_model(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    model, X = fitted(3, n_classes, 2)
    rows = gaps_of(rng, X[:8])
    answers = model._asker().answers(rows)
    n_draws = answers.decisions.shape[1]
    for row, drawn, probabilities in zip(rows, answers.drawn, answers.probabilities, strict=True):
        completed = completions(model, row, 20_000, rng)
        coded = np.column_stack([completed[:, :3], completed[:, 3:].argmax(axis=1)])
        spread = coded.std(axis=0)
        assert np.abs(drawn.mean(axis=0) - coded.mean(axis=0)).max() < 6 * spread.max() / np.sqrt(n_draws)
        numbers = np.cov(drawn[:, :3].T) - np.cov(coded[:, :3].T)
        assert np.abs(numbers).max() < 0.35 * max(spread[:3].max() ** 2, 0.1)
        expected = softmax(completed @ model.weights + model.biases, axis=1).mean(axis=0)
        assert np.abs(probabilities.mean(axis=0) - expected).max() < 0.06
    known = ~np.isnan(rows[:, :4])
    assert (
        answers.drawn[:, 0][known[:, :4]] == np.column_stack([rows[:, :3], rows[:, 3:].argmax(axis=1)])[known]
    ).all()


@pytest.mark.parametrize("objective", ["information", "stability"])
def test_what_to_ask_next_is_the_feature_that_tells_most(objective: Any) -> None:
    # One number decides, its twin tells much of it, and the third nothing.
    rng = np.random.default_rng(0)
    first = rng.normal(size=400)
    X = np.column_stack([first, first + 0.5 * rng.normal(size=400), rng.normal(size=400)])
    weights = np.array([[0.0, 6.0], [0.0, 0.0], [0.0, 0.0]])
    model = tb.conform(FakeClassifier(weights, np.zeros(2)), X, real=range(3), n_components=1, covariance="full")
    asked = model.next_feature(np.full((1, 3), np.nan), objective=objective)
    gains = asked.gains[0]
    assert gains[0] > gains[1] > gains[2] + 0.05
    rows = np.where(np.arange(3) == 1, X[:30], np.nan)
    got = model.acquire(rows, lambda asked, features: X[:30][asked][:, features], budget=1.0)
    assert all(questions == (0,) for questions in got.asked)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_explanations_are_the_smallest_sets(n_classes: int) -> None:
    model, X = fitted(5, n_classes, 1)
    for row in X[:6]:
        for delta in (0.7, 0.95):
            found = model.explain(row, delta=delta, max_sets=10)
            winner = int(model.decision_scores(row[None])[0].argmax())
            reaching: dict[int, set[tuple[int, ...]]] = {}
            for size in range(5):
                for chosen in itertools.combinations(range(4), size):
                    shown = np.isin([0, 1, 2, 3, 3, 3], chosen)
                    hidden = np.where(shown, row, np.nan)[None]
                    ((low, _),) = normal_gaps.same_decision_of_normals(model, hidden, np.array([winner]))
                    if low >= delta:
                        reaching.setdefault(size, set()).add(chosen)
            smallest = min(reaching)
            assert {tuple(sorted(chosen)) for chosen in found.sets} == reaching[smallest]
            assert found.probability[0] >= delta
            assert found.size_lower_bound <= smallest
            assert n_classes > 2 or found.size_lower_bound == smallest
            few = model.explain(row, delta=delta, max_evaluations=1)
            assert tuple(sorted(few.features)) in {one for sets in reaching.values() for one in sets}


def test_what_is_refused_says_what_to_do() -> None:
    model, X = fitted(6, 2, 1)
    with pytest.raises(ValueError, match="delta must be given to explain a model of 1 component and a covariance"):
        model.explain(X[0])
    with pytest.raises(ValueError, match="delta must be below 1 for a model with a covariance"):
        model.explain(X[0], delta=1)
    gap = np.where(np.arange(6) < 2, np.nan, X[0])
    found = model.explain(gap, delta=0.999999)
    assert not found.sets or found.probability[0] >= 0.999999
