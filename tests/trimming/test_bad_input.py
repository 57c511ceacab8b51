"""Arguments that make no sense: the message names the parameter, what is allowed and what was given, in one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

import trimbench as tb
from tests.trimming import brute_force
from tests.trimming.brute_force import random_classifier, random_network_classifier
from trimbench.trimming.engines.choice import make_engine

THREE = tb.NaiveBayes(
    [0.2, 0.3, 0.5], [[[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]] * 2, class_names=["a", "b", "c"], feature_names=["x", "y"]
)
# The value 1 of x0 is impossible.
TWO = tb.NaiveBayes([0.4, 0.6], [[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.3, 0.7]]])
SEVERAL, POSITIVE = tb.BayesianClassifier(THREE), tb.BayesianClassifier(THREE, positive="a")
CLASSIFIER = random_classifier(np.random.default_rng(0), [2] * 4, 0.4)
NETWORK = random_network_classifier(np.random.default_rng(0), 5, 0.4)
LARGE, HUGE = (random_classifier(np.random.default_rng(0), [2] * n, 0.5) for n in (27, 45))
CERTAIN = tb.BayesianClassifier(  # some instances of more features than an exact engine takes are certain
    tb.NaiveBayes([0.5, 0.5], [[[0.5, 0.5], [0.0, 1.0]]] * 50), positive="0", threshold=1.0
)
MANY_CLASSES = tb.BayesianClassifier(tb.NaiveBayes([0.2, 0.3, 0.5], [[[0.5, 0.5], [0.2, 0.8], [0.3, 0.7]]] * 40))
ROWS = brute_force.frame_of(CLASSIFIER, np.random.default_rng(0).integers(0, 2, (80, 4)))


def check(call: Callable[[], object], message: str, kind: type[Exception] = ValueError) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def make(model: Any = TWO, **arguments: Any) -> tb.BayesianClassifier:
    return tb.BayesianClassifier(model, **({"positive": "0"} | arguments))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make(evidence={"x0": "2"}), r"evidence on 'x0' must be one of its states \['0', '1'\], got '2'"),
        (lambda: make(evidence={"y": "0"}), r"evidence must be on variables among \['x0', 'x1'\], got 'y'"),
        (lambda: make(evidence={"class": "0"}), "evidence must not be on the target 'class'"),
        (lambda: make(evidence=["x0"]), "evidence must be a mapping from node to its observed state, got list"),
        (lambda: make(evidence=ROWS), "evidence must be a mapping from node to its observed state, got DataFrame"),
        (lambda: make(evidence={"x0": "0"}, features=["x0"]), "features must not be among the evidence, got 'x0' in"),
        (lambda: make(evidence={"x0": "1"}), "evidence must have a probability above 0, got x0=1, which is impossible"),
        (lambda: make(positive=[]), r"target 'class' must have states on both sides, .*; got positive=\[\]"),
        (lambda: make(positive=["0", "1"]), r"states on both sides, positive and not; got positive=\['0', '1'\]"),
        (lambda: make(positive=2), r"positive must be one of \['0', '1'\], got '2'"),
        (lambda: make(positive=1.5), r"positive must be one of \['0', '1'\], got '1.5'"),
        (lambda: make(features="x0"), r"features must be a sequence of names, got the string 'x0'; write \['x0'\]"),
        (lambda: make(features=3), "features must be a sequence of names, got 3"),
        (lambda: make(features=[3]), r"features must be among \['x0', 'x1'\], got 3"),
        (lambda: make(features=[["x0"]]), r"features must be among \['x0', 'x1'\], got \['x0'\]"),
        (lambda: make(features=["z"], positive=None), r"features must be among \['x0', 'x1'\], got 'z'"),
        (lambda: make(features=["x0", "x0"]), "features must be distinct"),
        (lambda: make(target="C"), "target must be the class variable 'class', got 'C'"),
        (lambda: make(TWO.to_network()), "target must be a node of the network, one of .*got None"),
        (lambda: make(tb.NaiveBayes([1.0], []), positive=None), r"at least two classes, got \['0'\]"),
        (lambda: make(positive=None, threshold=0.3), "threshold must be left out without a positive class"),
        (lambda: SEVERAL.with_threshold(0.3), "threshold must be left out without a positive class"),
        (lambda: tb.expected_agreement(SEVERAL, [], 0.5), "must have a positive class"),
        (lambda: SEVERAL.posterior(pd.DataFrame({"x": [0], "y": [0]})), r"one of \['a', 'b', 'c'\]"),
        (
            lambda: make(tb.NaiveBayes([0.2, 0.3, 0.5], [], class_names=["a", "b", "a or b"]), positive=["a", "b"]),
            "both classes would be called 'a or b'; rename a state",
        ),
        (lambda: NETWORK.tables, "must be naive Bayes for the log-odds engine, got .*; use engine 'auto'"),
        (lambda: make(NETWORK.model, target="c", positive=None).tables, "must be naive Bayes .*; use joint"),
        (lambda: make(THREE, positive=["c", "a"]).tables, "naive Bayes with one component for each class"),
        (
            lambda: POSITIVE.predict(np.zeros((3, 2))),
            r"must be a DataFrame .* got ndarray; .*pd\.DataFrame\(array, columns=\['x', ",
        ),
        (
            lambda: POSITIVE.predict(pd.DataFrame({"x": np.linspace(0, 1, 50), "y": 0})),
            "column 'x' must hold values among .* cut a column of numbers first",
        ),
        (
            lambda: POSITIVE.predict(pd.DataFrame({"x": [0, 1]})),
            r"exactly one column 'y', got \['x'\]; add it, or use a model",
        ),
        (
            lambda: tb.learn(pd.DataFrame({"x": np.linspace(0, 1, 40)}), pd.Series(["a", "b"] * 20)),
            "feature 'x' must hold categories, .* cut it into intervals first",
        ),
    ],
)
def test_of_a_classifier(call: Any, message: str) -> None:
    check(call, message)


@pytest.mark.parametrize("threshold", [-0.1, 2, math.nan, True, np.True_, "0.5"])
def test_of_a_threshold(threshold: Any) -> None:
    for ask in (lambda: make(threshold=threshold), lambda: tb.expected_agreement(CLASSIFIER, ["x0"], threshold)):
        check(ask, r"threshold must be a probability in \[0, 1\], got")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tb.maximum_potential_agreement(CLASSIFIER, ["x9"]), "features must be among .*got 'x9'"),
        (lambda: tb.maximum_potential_agreement(CLASSIFIER, ["x0", "x0"]), "features must be distinct"),
        (lambda: tb.maximum_potential_agreement(CLASSIFIER, "x0"), "features must be a sequence of names"),
        (lambda: tb.expected_agreement(LARGE, ["x0"], 0.5, engine="sparse"), "engine must be one of .*got 'sparse'"),
        (
            lambda: tb.expected_agreement(LARGE, ["x0"], 0.5, engine="dense"),
            r"at most 2\^26 instances.*2\^27\.0 for 27 features.*engine='log_odds'",
        ),
        (lambda: tb.expected_agreement(HUGE, ["x0"], 0.5), r"at most 2\^44 instances.*interval=True.*fewer features"),
        (
            lambda: tb.expected_agreement(CLASSIFIER, [], 0.5, n_points=-1, interval=True),
            "n_points must be a whole number, 2 or more, got -1",
        ),
        (
            lambda: tb.expected_agreement(CLASSIFIER, ["x0"], 0, interval=True),
            "threshold must be strictly between 0 and 1 for certified bounds, got 0",
        ),
        (lambda: tb.trimming_curve(CLASSIFIER, 2), r"budgets must be a sequence of numbers, got 2; write \[2\]"),
        (lambda: tb.trimming_curve(CLASSIFIER, "2"), r"budgets must be a sequence of numbers, got '2'; write \[2\]"),
        (lambda: tb.trimming_curve(CLASSIFIER, []), "budgets must be a sequence of at least one number, got none"),
        (
            lambda: tb.trimming_curve(CLASSIFIER, [1], thresholds=0.5),
            r"thresholds must be a sequence of numbers, got 0\.5; write",
        ),
        (
            lambda: tb.trimming_curve(CLASSIFIER, [1], thresholds=[]),
            "thresholds must be a sequence of at least one number, got none",
        ),
        (lambda: tb.trim(CERTAIN, 3), r"need a threshold strictly between 0 and 1.*got threshold 1\.0"),
        (lambda: tb.trim(MANY_CLASSES, 5), r"got 2\^41\.6 \(3 classes, 40 features\); pass rows="),
        (lambda: tb.trim(NETWORK, 0.5, engine="log_odds"), "must be naive Bayes for the log-odds engine.*use engine"),
        (
            lambda: tb.trim(SEVERAL, 1, engine="dense"),
            "engine must be 'auto' for a classifier that gives the most probable class, got 'dense'",
        ),
        (lambda: tb.trim(SEVERAL, 1, prefer="cheapest"), "prefer must be 'best' without rows, got 'cheapest'"),
        (
            lambda: tb.trim(SEVERAL, 1, rows_weight=0.5),
            r"rows_weight must be 'auto' or 0 without rows, got 0\.5; give rows",
        ),
        (lambda: tb.trim(CLASSIFIER, 3, pd.Series([1.0, 1.0], index=["x0", "x0"])), "costs must have each name once"),
    ],
)
def test_of_agreements_and_searches(call: Any, message: str) -> None:
    check(call, message)


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
        ({"costs": pd.DataFrame({"cost": [1, 2]})}, r"costs must be .*, got a DataFrame of shape \(2, 1\); take one"),
        ({"costs": [1]}, "costs must have 4 entries, one for each feature, got 1"),
        ({"costs": {"x0": 1}}, "costs must have an entry for every feature, got none for 'x1'"),
        ({"costs": {"x0": 1, "y": 1}}, "costs must be given for names among .*, got 'y'"),
        ({"costs": 5}, "costs must be a mapping or a Series .*, or a sequence of costs, got 5"),
        ({"costs": ["1", 2, 1, 1]}, "costs must be finite numbers >= 0, got '1' for 'x0'"),
        ({"costs": set(range(1000))}, "costs must be a mapping .* got {0, 1"),
        ({"engine": "sdd2"}, "engine must be one of .* got 'sdd2'"),
        ({"engine": None}, "engine must be one of"),
        ({"engine": 3}, "engine must be one of .*, got 3"),
        ({"evaluation_limit": 2.5}, r"evaluation_limit must be a whole number, 1 or more, or None, got 2\.5"),
        ({"evaluation_limit": 0}, "evaluation_limit must be a whole number, 1 or more, or None, got 0"),
        ({"time_limit": 0}, "time_limit must be a positive number of seconds or None, got 0"),
        ({"time_limit": "5"}, "time_limit must be a positive number of seconds or None, got '5'"),
        ({"time_limit": True}, "time_limit must be a positive number"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads or processes, 1 or more, got 0"),
        ({"executor": 3}, "executor must have a method submit, as those of concurrent.futures .*, got '3'"),
        ({"progress": 3}, "progress must be a function that takes a Progress, or None, got 3"),
        ({"groups": ["x0"]}, "groups must be a mapping from the name of a group"),
        ({"groups": {"g": []}}, r"groups\['g'\] must hold at least one feature"),
        ({"groups": {"x1": ["x0"]}}, "groups must not be named after a feature outside of it, got 'x1'"),
        ({"groups": {"g": ["x0"], "h": ["x0"]}}, "groups must not share features, got 'x0' in 'g' and 'h'"),
        ({"groups": {"g": ["x0"]}, "costs": [1, 2]}, "costs must be a mapping by name, or None, where"),
        ({"groups": {1: ["x0"], "1": ["x1"]}}, "groups must have different names"),
        ({"required": 5}, "required must be a sequence of names, got 5"),
        ({"required": ["y"]}, "required must be among .*, got 'y'"),
        ({"required": ["x0"], "forbidden": ["x0"]}, "required and forbidden must not share a feature, got 'x0'"),
        ({"required": ["x0", "x1", "x2"]}, "budget must be at least the cost of what is required, 3, got 2"),
        ({"forbidden": "x0"}, r"forbidden must be a sequence of names, got the string 'x0'; write \['x0'\]"),
        ({"rows": ROWS.to_numpy()}, "rows must be a DataFrame with one column for each feature, got ndarray"),
        ({"rows": ROWS[:1]}, "rows must have at least two rows, got 1"),
        ({"rows": ROWS[:0]}, "rows must have at least two rows, got 0"),
        ({"rows": ROWS.drop(columns="x2")}, "rows must have one column for each of the 4 features, got 0 columns for"),
        ({"rows": pd.concat([ROWS, ROWS["x1"]], axis=1)}, "got 2 columns for 'x1'"),
        ({"rows": ROWS.assign(x0=None)}, "rows must hold values that the classifier knows: column 'x0' must have no m"),
        ({"rows": ROWS.assign(x0="odd")}, "rows must hold values that the classifier knows.*got 'odd'"),
        *(({"rows": ROWS, "rows_weight": weight}, "rows_weight must be 'auto' or a number from 0")
          for weight in (-0.1, 1.5, math.nan, "model", True, None, [0.5])),
        ({"rows": ROWS, "prefer": "quickest"}, "prefer must be one of"),
    ],
)  # fmt: skip
def test_of_trim(arguments: dict[str, Any], message: str) -> None:
    check(lambda: tb.trim(CLASSIFIER, **({"budget": 2} | arguments)), message)


@pytest.mark.parametrize("number", [Decimal, Fraction, np.float32, np.int64])
def test_numbers_of_every_type_are_budgets_and_costs(number: Any) -> None:
    classifier = tb.BayesianClassifier(THREE, positive="a", threshold=number(1))
    expected = tb.trim(classifier, 2, [1, 2])
    found = tb.trim(classifier, number(2), {"x": number(1), "y": number(2)})
    assert (found.features, found.agreement) == (expected.features, expected.agreement)
    for wrong in (number(-1), 2 > 1, "2"):
        check(partial(tb.trim, classifier, wrong), "budget must be a number >= 0")
        check(partial(tb.trim, classifier, 2, [1, wrong]), "costs must be finite numbers >= 0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: CLASSIFIER.with_threshold(0.6), "got one for threshold 0.4 instead of 0.6"),
        (lambda: CLASSIFIER.with_features(CLASSIFIER.features[:3], 0.4), "got one for features"),
        (lambda: random_classifier(np.random.default_rng(1), [2] * 4, 0.4), "got one for another model"),
    ],
)
def test_an_engine_of_another_classifier_is_refused(change: Any, message: str) -> None:
    engine = make_engine(CLASSIFIER)
    check(lambda: tb.trim(change(), 2, engine=engine), f"engine must be made for this classifier, {message}")
    same = make(tb.NaiveBayes(CLASSIFIER.prior, CLASSIFIER.tables), threshold=0.4)
    assert tb.trim(same, 2, engine=engine).features == tb.trim(CLASSIFIER, 2).features


def test_an_engine_of_another_network_is_refused() -> None:
    other, engine = random_network_classifier(np.random.default_rng(1), 5, 0.4), make_engine(NETWORK)
    check(lambda: tb.trim(other, 2, engine=engine), "engine must be made for this classifier")


@pytest.mark.parametrize(
    ("thing", "how"),
    [
        (THREE, r"got NaiveBayes; make one with BayesianClassifier\(model, positive=\.\.\.\)"),
        (THREE.to_network(), r"BayesianClassifier\(network, target, positive=\.\.\.\)"),
        (BernoulliNB(), r"NaiveBayes\.from_sklearn\(estimator, feature_names\)"),
        (GaussianNB(), r"got GaussianNB; make one with BayesianClassifier\(learn\(features, target\)"),
    ],
)
def test_other_objects_are_told_how_to_become_a_classifier(thing: Any, how: str) -> None:
    check(lambda: tb.expected_agreement(thing, ["x"], 0.5), how, TypeError)
    check(lambda: tb.trimming_curve(thing, [2]), how, TypeError)
    check(lambda: tb.select_features(thing, 2, by="information_gain"), how, TypeError)


@pytest.mark.parametrize("kind", [BernoulliNB, CategoricalNB])
def test_what_is_not_a_model_is_told_how_to_become_one(kind: type) -> None:
    check(lambda: make(kind()), r"got \w+NB; convert it with NaiveBayes\.from_sklearn", TypeError)
    check(lambda: make({}), "model must be a NaiveBayes or a BayesianNetwork, got dict$", TypeError)
    fitted = kind().fit(np.eye(2, dtype=int), [0, 1])
    check(lambda: tb.NaiveBayes.from_sklearn(fitted, ["a"]), "feature_names must have 2 names, got 1")
    check(lambda: tb.NaiveBayes.from_sklearn(kind()), r"estimator must be fitted, got .*; call fit\(\) first")
    check(lambda: tb.NaiveBayes.from_sklearn({}), "must be a BernoulliNB or a CategoricalNB, got dict", TypeError)
