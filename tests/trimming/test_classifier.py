"""Classifiers against enumeration of their networks: rows, evidence, several positive states; and their messages."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.extras import needs_pysdd
from tests.networks.random_models import random_network
from tests.trimming import brute_force
from tests.trimming.test_bad_input import THREE
from trimbench.trimming.classifier import ImpossibleRowWarning
from trimbench.trimming.engines.choice import EngineName, make_engine


def random_classifier(seed: int, *, naive: bool = False) -> tb.BayesianClassifier:
    """Return a classifier with up to four classes, hidden nodes, evidence, zeros and ties."""
    rng = np.random.default_rng(seed)
    order = [f"v{i}" for i in range(int(rng.integers(3, 7)))]
    sizes = {node: int(rng.integers(2, 5)) for node in order}
    target = order[0] if naive else str(rng.choice(order))
    parents = {
        node: (["v0"] if i else []) if naive else [other for other in order[:i] if rng.random() < 0.5][:3]
        for i, node in enumerate(order)
    }
    network = random_network(rng, parents, sizes, coarse=bool(rng.random() < 0.5))
    others = [str(node) for node in rng.permutation([node for node in order if node != target])]
    n_seen = int(rng.integers(0, len(others)))
    row = network.sample(1, rng).iloc[0]
    evidence = {node: str(row[node]) for node in others[:n_seen] if rng.random() < 0.5}
    features = [node for node in others if node not in evidence][: int(rng.integers(0, 5))]
    positive = [str(s) for s in rng.permutation(network.states(target))[: int(rng.integers(1, sizes[target]))]]
    threshold = float(rng.choice([0.0, 0.2, 0.5, 0.7, 1.0]))
    return tb.BayesianClassifier(
        network, target, positive=positive, features=features, threshold=threshold, evidence=evidence
    )


@pytest.mark.filterwarnings("ignore::trimbench.trimming.classifier.ImpossibleRowWarning")
@given(seed=st.integers(0, 2**32), naive=st.booleans())
@settings(max_examples=80)
def test_rows_and_joint_equal_enumeration(seed: int, naive: bool) -> None:
    classifier = random_classifier(seed, naive=naive)
    whole = brute_force.whole(classifier)
    frame = brute_force.frame_of(classifier, whole)
    masses = np.array(list(whole.values()))
    expected = np.array([np.nan if sum(pair) == 0 else pair[0] / sum(pair) for pair in whole.values()])
    np.testing.assert_allclose(classifier.posterior(frame), expected, rtol=1e-10, atol=1e-12)
    possible = masses.sum(axis=1) > 0
    decided = [brute_force.positive(pair, classifier.threshold) for pair in whole.values()]
    said = classifier.predict(frame) == classifier.positive
    assert said[possible].tolist() == np.array(decided)[possible].tolist()
    joint = np.stack(classifier.joint(range(classifier.n_features)))
    places = np.ravel_multi_index(np.array(list(whole)).T, classifier.cardinalities) if classifier.features else [0]
    np.testing.assert_allclose(joint[:, places].T, masses, atol=1e-12)
    np.testing.assert_allclose(classifier.prior, masses.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("engine", ["dense", pytest.param("sdd", marks=needs_pysdd)])
@pytest.mark.parametrize("seed", [1, 2, 7, 9, 12])
def test_engines_know_evidence_and_several_positive_states(engine: EngineName, seed: int) -> None:
    classifier = random_classifier(seed)
    computed = make_engine(classifier, engine)
    for subset in brute_force.all_subsets(classifier.n_features, 2):
        best = brute_force.achievable_agreement(classifier, subset)
        assert computed.best_cut(subset).agreement == pytest.approx(best, abs=1e-9)


def test_positive_states_are_named_together() -> None:
    classifier = tb.BayesianClassifier(THREE, positive=["c", "a"])
    assert (classifier.positive, classifier.negative) == ("a or c", "b")
    assert classifier.prior.tolist() == pytest.approx([0.7, 0.3])
    assert not classifier.is_naive_bayes
    assert set(classifier.predict(THREE.sample(50, np.random.default_rng(0)))) <= {"a or c", "b"}
    again = classifier.with_threshold(0.3)
    assert (again.positive_states, again.threshold) == (("a", "c"), 0.3)


@pytest.mark.parametrize(
    ("positive", "name"),
    [(0, "0"), (1.0, "1"), ("1", "1"), (np.float64(1), "1"), ([1.0], "1"), (np.array([1]), "1"), (np.array("0"), "0")],
)
def test_numbers_name_states_with_or_without_a_decimal_point(positive: object, name: str) -> None:
    model, pointed = (
        tb.NaiveBayes([0.5, 0.5], [[[0.9, 0.1], [0.2, 0.8]]], class_names=names)
        for names in (["0", "1"], ["0.0", "1.0"])
    )
    assert tb.BayesianClassifier(model, positive=positive).positive == name
    if isinstance(positive, float):
        assert tb.BayesianClassifier(pointed, positive=positive).positive == f"{name}.0"


def test_evidence_of_naive_bayes_moves_into_the_prior() -> None:
    model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.3, 0.7]]])
    given_x0 = tb.BayesianClassifier(model, positive="0", evidence={"x0": "1"})
    assert (given_x0.features, given_x0.is_naive_bayes) == (("x1",), True)
    assert given_x0.prior.tolist() == pytest.approx([0.04 / 0.52, 0.48 / 0.52])
    assert given_x0.with_threshold(0.1).evidence == {"x0": "1"}


def rare(n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return the table of a binary feature whose second value may be as good as impossible in a class."""
    second = np.where(rng.random(n_classes) < 0.5, 10.0 ** -rng.integers(50, 300, n_classes), rng.random(n_classes))
    return np.stack([1 - second, second], axis=1)


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["classes", "components", "network"]), st.sampled_from([None, 0.3, 1])
)
def test_no_evidence_is_strong_enough_to_rule_a_class_out(seed: int, kind: str, threshold: float | None) -> None:
    rng = np.random.default_rng(seed)
    tables = [rare(4, rng) for _ in range(7)]
    naive_bayes = tb.NaiveBayes(rng.dirichlet(np.ones(4)), tables, class_names=list("abcd"))
    model: tb.NaiveBayes | tb.NaiveBayesMixture | tb.BayesianNetwork = naive_bayes
    states, target = ("abca", "side") if kind == "components" else ("abcd", "class")
    if kind == "components":
        model = tb.NaiveBayesMixture(naive_bayes, [*states], class_variable="side")
    elif kind == "network":
        model = naive_bayes.to_network()
    rule = {} if threshold is None else {"positive": ["a", "b"], "threshold": threshold}
    classifier = tb.BayesianClassifier(model, target, evidence={f"x{i}": "1" for i in range(4)}, **rule)
    codes = np.array([*np.ndindex(2, 2, 2)])
    rows = pd.DataFrame(codes.astype(str), columns=classifier.features)
    # Exactly, as fractions.
    joint = np.array([[Fraction(p)] * len(rows) for p in naive_bayes.prior.tolist()])
    for table, column in zip(naive_bayes.likelihoods, [*[np.ones(8, int)] * 4, *codes.T], strict=True):
        joint *= np.array([[Fraction(p) for p in row] for row in table.tolist()])[:, column]
    sides = [["a", "b"], ["c", "d"]] if rule else [[name] for name in dict.fromkeys(states)]
    joint = np.array([sum(joint[i] for i, state in enumerate(states) if state in side) for side in sides])
    expected = (joint / joint.sum(axis=0)).astype(float).T
    assert classifier.predict_proba(rows) == pytest.approx(expected, rel=1e-9, abs=1e-290)
    best = [threshold > one[0] for one in joint.T / joint.sum(axis=0)[:, None]] if threshold else joint.argmax(axis=0)
    decided = np.array(classifier.class_names)[np.array(best, dtype=int)]
    assert classifier.predict(rows).tolist() == decided.tolist()
    if threshold is None:
        left = tb.trim(classifier, 0, rows=rows)
        assert left.rows_agreement.apparent == pytest.approx(np.mean(left.classifier.predict(rows) == decided))


def test_impossible_evidence_is_never_given_an_agreement() -> None:
    names = ("c", "x", "y", "z")
    network = tb.BayesianNetwork(
        {name: ["0", "1"] for name in names},
        {"x": ["c"], "y": ["x", "c"]},
        {
            "c": [0.5, 0.5],
            "x": [[0.3, 0.7], [0.6, 0.4]],
            "y": [[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.2, 0.8]]],
            "z": [0.5, 0.5],
        },
    )
    for evidence in ({"y": "1"}, {"x": "1", "y": "0"}):
        assert tb.trim(tb.BayesianClassifier(network, "c", positive="0", evidence=evidence), 3).optimal
    impossible = {"x": "0", "y": "1"}
    classifier = tb.BayesianClassifier(network, "c", positive="0", evidence=impossible)
    rows = pd.DataFrame({"z": ["0", "1"]})
    for ask in (
        lambda: tb.trim(classifier, 1),  # all features are affordable
        lambda: tb.trim(classifier.with_threshold(0), 0),
        lambda: tb.trim(tb.BayesianClassifier(network, "c", evidence=impossible), 1),
        lambda: tb.trimming_curve(classifier, [0, 1]),
        lambda: classifier.predict(rows),
        lambda: classifier.posterior(rows),
        lambda: tb.BayesianClassifier(network, "c", evidence=impossible).predict(rows),
    ):
        with pytest.raises(ValueError, match="evidence must have a positive probability"):
            ask()


def test_the_text_of_a_classifier_holds_no_tables() -> None:
    assert "array" not in repr(tb.BayesianClassifier(THREE, positive="a"))
    assert "array" not in repr(tb.BayesianClassifier(THREE))


def test_rows_of_a_wide_model_take_no_table() -> None:
    """A tree over 200 features, against the product of its tables."""
    classifier = brute_force.tree_augmented(200, 3)
    network = brute_force.network_of(classifier)
    frame = network.sample(20, np.random.default_rng(3))
    codes = {name: frame[name].cat.codes.to_numpy() for name in classifier.features}
    logs = np.zeros((20, 2))
    for value in (0, 1):
        at = codes | {"c": np.full(20, value)}
        for node in network.nodes:
            logs[:, value] += np.log(network.table(node)[(*(at[parent] for parent in network.parents(node)), at[node])])
    expected = 1.0 / (1.0 + np.exp(logs[:, 0] - logs[:, 1]))
    assert classifier.posterior(frame) == pytest.approx(expected, rel=1e-9)
    # A row does not depend on the others that are predicted with it.
    assert classifier.posterior(frame.iloc[:1]).tolist() == classifier.posterior(frame)[:1].tolist()


def test_evidence_may_be_a_row_of_a_table() -> None:
    tables = [[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]]]
    model = tb.NaiveBayes([0.5, 0.5], tables, feature_names=["a", "b"])
    row = pd.DataFrame({"a": [0.0, 1.0]}).iloc[1]
    known = tb.BayesianClassifier(model, positive=0, evidence=row)
    assert known.evidence == {"a": "1"}


@pytest.mark.parametrize("kind", ["two", "several", "learned"])
def test_an_impossible_row_is_marked_and_has_the_class_of_no_features(kind: str) -> None:
    """As in a part of the network Asia: pgmpy/pgmpy#1595."""
    either = [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]
    tables = {"tub": [0.1, 0.9], "lung": [0.2, 0.8], "either": either, "dysp": [[0.8, 0.2], [0.1, 0.9]]}
    states = {name: ["y", "n"] for name in tables}
    network = tb.BayesianNetwork(states, {"either": ["tub", "lung"], "dysp": ["either"]}, tables)
    rows = pd.DataFrame({"tub": ["n", "n"], "lung": ["n", "y"], "either": ["y", "y"]})
    if kind == "two":
        classifiers = [tb.BayesianClassifier(network, "dysp", positive=one, features=list(rows)) for one in "yn"]
    elif kind == "several":
        classifiers = [tb.BayesianClassifier(network, "dysp", features=list(rows))]
    else:
        seen = pd.DataFrame({"x": ["a", "b", "c"] * 4})
        learned = tb.learn(seen, pd.Series(["n", "n", "y"] * 4), smoothing=0.0)
        learned = tb.NaiveBayes(
            learned.prior,
            [*learned.likelihoods, [[1, 0], [0, 1]]],
            feature_names=["x", "y"],
            class_names=["n", "y"],
            value_names=[["a", "b", "c"], ["b", "a"]],
        )
        rows = pd.DataFrame({"x": ["c", "c"], "y": ["b", "a"]})
        classifiers = [tb.BayesianClassifier(learned, positive=one) for one in "yn"]
    for classifier in classifiers:
        with pytest.warns(ImpossibleRowWarning, match="1 of 2 rows are impossible under the model, such as row 0"):
            said = classifier.predict(rows)
        decided = classifier.decide(classifier.encode(rows))
        names = np.array(classifier.class_names)[decided if kind == "several" else np.where(decided, 0, 1)]
        assert names.tolist() == said.tolist()  # also in searches
        ask = classifier.predict_proba if kind == "several" else classifier.posterior
        with pytest.warns(ImpossibleRowWarning, match="rows are impossible"):
            assert np.isnan(ask(rows)[0]).all()
        assert said.tolist() == ["n", "y"]


def test_a_tie_of_impossible_rows_goes_to_the_same_class_whichever_is_positive() -> None:
    model = tb.NaiveBayes([0.5, 0.5], [[[1, 0, 0], [0, 1, 0]]], class_names=["u", "v"])
    for positive in "uv":
        with pytest.warns(ImpossibleRowWarning):
            assert tb.BayesianClassifier(model, positive=positive).predict(pd.DataFrame({"x0": [2]})).tolist() == ["u"]
