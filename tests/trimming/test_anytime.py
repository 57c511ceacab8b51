"""Searches that are stopped, continued and watched, and engines of other classifiers."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from tests.trimming import brute_force
from trimbench.trimming.engines.choice import EngineName, make_engine
from trimbench.trimming.limits import Limits, Progress


def naive_bayes(n_features: int, seed: int = 0) -> tb.BayesianClassifier:
    return brute_force.random_classifier(np.random.default_rng(seed), [2] * n_features, 0.4)


def ten_features(seed: int = 0) -> tb.BayesianClassifier:
    """Return a classifier of three classes."""
    rng = np.random.default_rng(seed)
    return tb.BayesianClassifier(tb.NaiveBayes([0.2, 0.3, 0.5], [rng.dirichlet([1, 1], size=3) for _ in range(10)]))


def network(seed: int = 0) -> tb.BayesianClassifier:
    return brute_force.random_network_classifier(np.random.default_rng(seed), 5, 0.4)


@pytest.mark.parametrize("seed", range(5))
def test_a_search_of_a_network_in_parts_ends_where_a_whole_one_does(seed: int) -> None:
    classifier = network(seed)
    whole = tb.trim(classifier, 2)
    part = tb.trim(classifier, 2, evaluation_limit=1)
    assert whole.agreement - 1e-12 <= part.upper_bound
    while not part.optimal:
        part = part.resume(evaluation_limit=part.n_evaluations + 1)
    # What fills the budget of a stopped search may turn out to be as good.
    assert part.agreement == whole.agreement
    assert part.features == whole.features or set(whole.features) < set(part.features)


@pytest.mark.parametrize("n_features", [12, 34, 50])
def test_a_search_without_time_has_a_bound(n_features: int) -> None:
    chances = np.random.default_rng(n_features).beta(3, 3, size=(n_features, 2))
    model = tb.NaiveBayes([0.4, 0.6], [np.stack([both, 1 - both], axis=1) for both in chances])
    stopped = tb.trim(tb.BayesianClassifier(model, positive="0"), 4, time_limit=1e-6)
    assert len(stopped.features) == 4
    assert stopped.agreement_interval[0] <= stopped.upper_bound < 1.0
    assert not stopped.optimal


@pytest.mark.parametrize("limits", [{"evaluation_limit": 1}, {"time_limit": 1e-6}])
@pytest.mark.parametrize("classifier", [naive_bayes(20), ten_features()])
def test_a_hurried_search_is_continued_exactly(classifier: tb.BayesianClassifier, limits: dict[str, Any]) -> None:
    stopped = tb.trim(classifier, 3, **limits)
    assert not stopped.optimal
    assert stopped.agreement <= stopped.upper_bound < 1.0 - 1e-6
    finished = stopped.resume()
    assert finished.optimal
    assert finished.agreement == pytest.approx(tb.trim(classifier, 3).agreement, abs=1e-12)
    assert finished.agreement <= stopped.upper_bound + 1e-12


@pytest.mark.parametrize(
    ("classifier", "engine"), [(naive_bayes(10), "dense"), (naive_bayes(10), "log_odds"), (ten_features(1), "auto")]
)
def test_progress_tells_incumbent_and_bound(
    classifier: tb.BayesianClassifier, engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimbench.trimming.limits._PAUSE", 0.0)
    told: list[Progress] = []
    found = tb.trim(classifier, 4, engine=engine, progress=told.append)
    assert told[-1].n_evaluations == found.n_evaluations
    assert told[-1].agreement == pytest.approx(found.agreement, abs=1e-12)
    assert told[-1].upper_bound == pytest.approx(found.agreement, abs=1e-12)
    for attribute in ("agreement", "n_evaluations", "seconds"):
        values = [getattr(now, attribute) for now in told]
        assert values == sorted(values)
    assert all(now.agreement <= now.upper_bound + 1e-12 for now in told)


def test_progress_is_told_of_networks_and_of_large_classifiers() -> None:
    for classifier in (network(), naive_bayes(50)):
        told: list[Progress] = []
        found = tb.trim(classifier, 2, progress=told.append)
        assert told[-1].upper_bound == pytest.approx(found.upper_bound)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.with_threshold(0.6), "for threshold 0.4 instead of 0.6"),
        (lambda c: c.with_features(c.features[:3], 0.4), "for features"),
        (lambda c: naive_bayes(4, seed=1), "another model"),
    ],
)
def test_an_engine_of_another_classifier_is_refused(change: Any, message: str) -> None:
    classifier = naive_bayes(4)
    engine = make_engine(classifier)
    with pytest.raises(ValueError, match=f"engine must be made for this classifier, got one for .*{message}|{message}"):
        tb.trim(change(classifier), 2, engine=engine)
    same = tb.BayesianClassifier(tb.NaiveBayes(classifier.prior, classifier.tables), positive="0", threshold=0.4)
    assert tb.trim(same, 2, engine=engine).features == tb.trim(classifier, 2).features


def test_an_engine_of_another_network_is_refused() -> None:
    engine = make_engine(network())
    with pytest.raises(ValueError, match="engine must be made for this classifier"):
        tb.trim(network(seed=1), 2, engine=engine)


def test_a_stopped_trimming_can_be_pickled() -> None:
    stopped = tb.trim(naive_bayes(10), 4, evaluation_limit=3)
    again = pickle.loads(pickle.dumps(stopped))
    assert (again.features, again.upper_bound) == (stopped.features, stopped.upper_bound)
    assert again.resume() is again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": -1}, "budget must be a number >= 0, got -1"),
        ({"budget": math.nan}, "budget must be a number >= 0, got nan"),
        ({"budget": "3"}, "budget must be a number >= 0, got '3'"),
        ({"costs": [1, -2, 1, 1]}, "costs must be finite numbers >= 0, got -2 for 'x1'"),
        ({"costs": [1, math.inf, 1, 1]}, r"costs must be finite numbers >= 0, got inf for 'x1'.*named in forbidden"),
        ({"costs": [1, 1e308, 1, 1]}, r"costs must be at most 1e\+300, .* got 1e\+308 for 'x1'"),
        ({"costs": [1, 10**400, 1, 1]}, r"costs must be at most 1e\+300, .* got 1000"),
        (
            {"costs": pd.DataFrame({"cost": [1, 2]})},
            r"costs must be .*, got a DataFrame of shape \(2, 1\); take one",
        ),
        ({"costs": [1]}, "costs must have 4 entries, one for each feature, got 1"),
        ({"costs": {"x0": 1}}, "costs must have an entry for every feature, got none for 'x1'"),
        ({"costs": {"x0": 1, "y": 1}}, "costs must be given for names among .*, got 'y'"),
        ({"costs": 5}, "costs must be a mapping or a Series .*, or a sequence of costs, got 5"),
        ({"costs": ["1", 2, 1, 1]}, "costs must be finite numbers >= 0, got '1' for 'x0'"),
        ({"costs": set(range(1000))}, "costs must be a mapping .* got {0, 1"),
        ({"engine": "sdd2"}, "engine must be one of .* got 'sdd2'"),
        ({"engine": None}, "engine must be one of"),
        ({"evaluation_limit": 2.5}, r"evaluation_limit must be a whole number, 1 or more, or None, got 2\.5"),
        ({"evaluation_limit": 0}, "evaluation_limit must be a whole number, 1 or more, or None, got 0"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds or None, got 0"),
        ({"time_limit": "5"}, "time_limit must be a positive number of seconds or None, got '5'"),
        ({"time_limit": True}, "time_limit must be a positive number"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads, 1 or more, got 0"),
        ({"progress": 3}, "progress must be a function that takes a Progress, or None, got 3"),
        ({"groups": ["x0"]}, "groups must be a mapping from the name of a group"),
        ({"groups": {"g": []}}, r"groups\['g'\] must hold at least one feature"),
        ({"groups": {"x1": ["x0"]}}, "groups must not be named after a feature outside of it, got 'x1'"),
        ({"groups": {"g": ["x0"], "h": ["x0"]}}, "groups must not share features, got 'x0' in 'g' and 'h'"),
        (
            {"groups": {"g": ["x0"]}, "costs": [1, 2]},
            "costs must be a mapping by name, or None, where",
        ),
        ({"groups": {1: ["x0"], "1": ["x1"]}}, "groups must have different names"),
        ({"required": 5}, "required must be a sequence of names, got 5"),
        ({"required": ["y"]}, "required must be among .*, got 'y'"),
        ({"required": ["x0"], "forbidden": ["x0"]}, "required and forbidden must not share a feature, got 'x0'"),
        ({"required": ["x0", "x1", "x2"]}, "budget must be at least the cost of what is required, 3, got 2"),
        ({"forbidden": "x0"}, r"forbidden must be a sequence of names, got the string 'x0'; write \['x0'\]"),
    ],
)
def test_bad_limits_and_choices_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        tb.trim(naive_bayes(4), **({"budget": 2} | arguments))  # type: ignore[call-overload]
    assert len(str(caught.value)) < 500


def test_costs_may_be_a_series() -> None:
    classifier = naive_bayes(3)
    costs = pd.Series({"x2": 3.0, "x0": 1.0, "x1": 2.0})
    assert tb.trim(classifier, 3, costs).features == tb.trim(classifier, 3, [1.0, 2.0, 3.0]).features
    with pytest.raises(ValueError, match="costs must have each name once"):
        tb.trim(classifier, 3, pd.Series([1.0, 1.0], index=["x0", "x0"]))


def test_limits_end_in_parts() -> None:
    limits = Limits(1e9, 5)
    assert limits.may_go_on(4)
    assert not limits.may_go_on(5)
    assert limits.allows(5)
    assert not Limits(1e-9).in_time()
    left = limits.part(0.5).seconds_left()
    assert left is not None
    assert left < 0.6e9
    assert Limits().seconds_left() is None
