"""Naive Bayes models: checks, joint probabilities against brute force, encoding, sampling, files."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import naive_bayes_models, same_naive_bayes
from trimbench.networks.values import checked_distribution, checked_distributions, state_name

ROW = [0.9, 0.1]
TABLE = [ROW, [0.2, 0.8]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": [0.25, 0.5]}, "prior must sum to 1 along the last axis (within 1e-06), got a sum of 0.75"),
        ({"prior": [math.nan, 1]}, "prior must hold probabilities (finite, not negative), got nan; check the table"),
        ({"prior": [math.inf, 1]}, "prior must hold probabilities (finite, not negative), got inf"),
        ({"prior": [1.2, -0.2]}, "prior must hold probabilities (finite, not negative), got -0.2"),
        ({"prior": [1e308, 1e308]}, "prior must sum to 1 along the last axis (within 1e-06), got a sum of inf"),
        ({"prior": [], "likelihoods": []}, "prior must be a non-empty array with 1 axes, got shape (0,)"),
        ({"prior": [[0.5, 0.5]]}, "prior must be a non-empty array with 1 axes, got shape (1, 2)"),
        ({"prior": ["a", "b"]}, "prior must be an array of numbers with rows of equal length: could not convert"),
        ({"prior": [10**400]}, "prior must be an array of numbers with rows of equal length: int too large"),
        ({"likelihoods": [[ROW, [1.0]]]}, "likelihood of 'x0' must be an array of numbers with rows of equal length"),
        ({"likelihoods": [ROW]}, "likelihood of 'x0' must be a non-empty array with 2 axes, got shape (2,)"),
        ({"likelihoods": [[ROW, [0.3, 0.8]]]}, "likelihood of 'x0' must sum to 1 along the last axis"),
        ({"likelihoods": [np.transpose(TABLE)]}, "or swap its axes if they are (values, classes)"),
        (
            {"likelihoods": [[ROW]]},
            "likelihood of 'x0' must have one row for each of the 2 classes, got shape (1, 2); rows are classes, "
            "columns are values",
        ),
        ({"feature_names": ["a", "b"]}, "feature_names must have one name for each of the 1 likelihoods, got 2"),
        (
            {"likelihoods": [TABLE, TABLE], "feature_names": ["a", "a"]},
            "feature_names and class_variable must be distinct, got 'a' more than once; rename one of them",
        ),
        ({"feature_names": ["class"]}, "feature_names and class_variable must be distinct, got 'class' more than once"),
        (
            {"feature_names": [3]},
            "feature_names and class_variable must be non-empty strings, got 3; convert them with str()",
        ),
        ({"feature_names": ["\ud800"]}, r"must be text that UTF-8 can encode, got '\ud800'; rename it"),
        ({"class_variable": ""}, "feature_names and class_variable must be non-empty strings, got ''"),
        ({"class_names": ["a"]}, "class_names must have 2 entries, got 1: ['a']"),
        ({"class_names": ["a", "a"]}, "class_names must be distinct, got 'a' more than once"),
        ({"class_names": "no"}, "class_names must be a sequence of strings, got the string 'no'"),
        ({"value_names": []}, "value_names must have an entry for each of the 1 features, got 0"),
        ({"value_names": [["u", "v", "w"]]}, "value_names of 'x0' must have 2 entries, got 3: ['u', 'v', 'w']"),
        ({"value_names": [["u", "u"]]}, "value_names of 'x0' must be distinct, got 'u' more than"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.NaiveBayes(**{"prior": [0.5, 0.5], "likelihoods": [TABLE], **changes})


def test_defaults_and_descriptions() -> None:
    model = tb.NaiveBayes([0.25, 0.75], [TABLE, [[0.5, 0.25, 0.25], [1, 0, 0]]])
    assert model.feature_names == ("x0", "x1")
    assert model.class_names == ("0", "1")
    assert model.value_names == (("0", "1"), ("0", "1", "2"))
    assert (model.n_features, model.cardinalities, model.class_variable) == (2, (2, 3), "class")
    assert repr(model) == "NaiveBayes('class' in ['0', '1'], 2 features)"


def test_tables_are_copies_that_cannot_be_written() -> None:
    prior, table = np.array([0.5, 0.5]), np.array(TABLE)
    model = tb.NaiveBayes(prior, [table])
    prior[0] = table[0, 0] = 7.0
    assert model.prior.tolist() == [0.5, 0.5]
    assert model.likelihoods[0].tolist() == TABLE
    with pytest.raises(ValueError, match="read-only"):
        model.likelihoods[0][0, 0] = 7.0


@given(seed=st.integers(0, 2**32), n_rows=st.integers(1, 4), n_values=st.integers(1, 30), transposed=st.booleans())
@settings(max_examples=300)
def test_checking_a_distribution_twice_changes_nothing(seed: int, n_rows: int, n_values: int, transposed: bool) -> None:
    rng = np.random.default_rng(seed)
    given_table = rng.dirichlet(np.full(n_values, 0.3), size=n_rows) * (1 + rng.uniform(-9e-7, 9e-7, size=(n_rows, 1)))
    if transposed:  # another memory layout is summed in another order
        given_table = np.asfortranarray(given_table)
    once = checked_distribution(given_table, "t", ndim=2)
    assert np.abs(once.sum(axis=1) - 1).max() <= n_values * np.finfo(float).eps
    np.testing.assert_allclose(once, given_table / given_table.sum(axis=1, keepdims=True), rtol=1e-14)
    assert checked_distribution(once, "t", ndim=2).tobytes() == once.tobytes()


def joint(model: tb.NaiveBayes, codes: tuple[int, ...]) -> list[float]:
    """P(c, x) by definition."""
    return [
        math.prod([float(p), *(float(table[k, v]) for table, v in zip(model.likelihoods, codes, strict=True))])
        for k, p in enumerate(model.prior)
    ]


@given(model=naive_bayes_models())
@settings(max_examples=80)
def test_log_joint_equals_brute_force(model: tb.NaiveBayes) -> None:
    rows = list(itertools.product(*map(range, model.cardinalities)))
    logs = model.log_joint(np.array(rows, dtype=np.int64).reshape(len(rows), model.n_features))
    expected = np.array([joint(model, row) for row in rows])
    np.testing.assert_allclose(np.exp(logs), expected, rtol=1e-12, atol=0)
    assert (np.isneginf(logs) == (expected == 0)).all()
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-12)


def test_log_joint_refuses_invalid_codes() -> None:
    model = tb.NaiveBayes([0.5, 0.5], [TABLE, [[0.5, 0.25, 0.25]] * 2], feature_names=["a", "b"])
    for codes, message in [
        ([[0, 0, 0]], "codes must have shape (n_rows, 2), got (1, 3)"),
        ([0, 0], "codes must have shape (n_rows, 2), got (2,)"),
        ([[0, 2], [-1, 0]], "codes of 'a' must be in 0..1, got -1"),
        ([[1, 3]], "codes of 'b' must be in 0..2, got 3"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            model.log_joint(np.array(codes))
    assert model.log_joint(np.empty((0, 2), dtype=np.int64)).shape == (0, 2)


COLOURS = tb.NaiveBayes(
    [0.5, 0.5], [TABLE, TABLE], feature_names=["colour", "1"], value_names=[["red", "blue"], ["0", "1"]]
)


def test_encode_finds_columns_and_values_by_their_names_as_strings() -> None:
    frame = pd.DataFrame({"other": ["?", "?", "?"], 1: [1, 0, 1], "colour": ["blue", "red", "blue"]}, index=[7, 7, 2])
    assert COLOURS.encode(frame).tolist() == [[1, 1], [0, 0], [1, 1]]
    categories = pd.Categorical(["blue", "red", "blue"], categories=["green", "red", "blue"])
    assert COLOURS.encode(frame.assign(colour=categories)).tolist() == [[1, 1], [0, 0], [1, 1]]
    assert COLOURS.encode(frame.iloc[:0]).shape == (0, 2)
    assert COLOURS.encode(frame).dtype == np.int64


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            pd.DataFrame({"colour": ["red"]}),
            "the table must have exactly one column '1', got ['colour']; add it, or use",
        ),
        (
            pd.DataFrame([["red", 0, 0]], columns=["colour", 1, "1"]),
            "the table must have exactly one column '1', got ['colour', '1', '1']; drop all but one",
        ),
        (
            pd.DataFrame({"colour": ["red", None, None], "1": 0}),
            "column 'colour' must have no missing values, got NaN in 2 rows; drop those rows or make 'missing' a value",
        ),
        (
            pd.DataFrame({"colour": ["red", "green"], "1": 0}),
            "column 'colour' must hold values among ['red', 'blue'], got 'green'",
        ),
        (pd.DataFrame({"colour": ["red"], "1": [2.0]}), "column '1' must hold values among ['0', '1'], got '2.0'"),
        (
            pd.DataFrame({"colour": ["red"], "1": [0.25]}),
            "column '1' must hold values among ['0', '1'], got '0.25'; cut a column of numbers first, where the "
            "columns for learning were cut (pd.cut with their bins and labels), or use trimbench.estimators.Trimmed",
        ),
    ],
)
def test_encode_refuses_a_table_that_does_not_fit(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        COLOURS.encode(frame)


@pytest.mark.parametrize("kind", [int, float, bool, object, "Int64", "Float64", "boolean", "category", "string"])
@pytest.mark.parametrize("names", [["0", "1"], ["0.0", "1.0"], ["False", "True"]])
def test_numbers_and_truth_values_stand_for_the_state_of_their_value(kind: Any, names: list[str]) -> None:
    model = tb.NaiveBayes([0.5, 0.5], [TABLE], feature_names=["x"], value_names=[names])
    column = pd.Series(names if kind == "string" else [0.0, 1.0]).astype(kind)
    assert model.encode(pd.DataFrame({"x": column})).tolist() == [[0], [1]]
    assert tb.BayesianClassifier(model, positive="0").encode(pd.DataFrame({"x": column})).tolist() == [[0], [1]]


def test_a_number_is_the_state_of_its_own_text_if_there_is_one() -> None:
    known = ["0", "1", "1.0", "True", "1e+300"]
    values = [1, 1.0, True, np.True_, 0.0, np.float64(0), False, 2.0, 0.5, 1e300, "one"]
    expected = ["1", "1.0", "True", "True", "0", "0", "0", "2.0", "0.5", "1e+300", "one"]
    assert [state_name(value, known) for value in values] == expected
    assert state_name(10**400, known) == str(10**400)


@given(model=naive_bayes_models(odd_names=True))
@settings(max_examples=60)
def test_round_trip_through_a_network(model: tb.NaiveBayes) -> None:
    network = model.to_network()
    assert network.nodes == (model.class_variable, *model.feature_names)
    assert same_naive_bayes(tb.NaiveBayes.from_network(network, model.class_variable), model)


def test_from_network_refuses_other_structures() -> None:
    states = {name: ["0", "1"] for name in "abc"}
    chain = tb.BayesianNetwork(states, {"b": ["a"], "c": ["b"]}, {"a": ROW, "b": TABLE, "c": TABLE})
    message = "network must be naive Bayes with root 'a': node 'c' must have the parents ['a'], got ['b']"
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.NaiveBayes.from_network(chain, "a")
    with pytest.raises(ValueError, match=re.escape("with root 'b': node 'b' must have the parents [], got ['a']")):
        tb.NaiveBayes.from_network(chain, "b")
    with pytest.raises(KeyError, match="node must be among"):
        tb.NaiveBayes.from_network(chain, "z")


@given(st.integers(0, 2**32 - 1))
def test_tables_that_are_checked_at_once_are_those_of_one_after_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables: list[Any] = [rng.dirichlet(np.ones(rng.integers(1, 12)), size=2) for _ in range(8)]
    tables += [tables[0] * (1 + 1e-7), tables[1].tolist(), tables[2].astype(np.float32)]
    names = [f"t{place}" for place in range(len(tables))]
    alone = [checked_distribution(table, name, ndim=2) for name, table in zip(names, tables, strict=True)]
    found = checked_distributions(tables, names, ndim=2)
    assert [table.tobytes() for table in found] == [table.tobytes() for table in alone]
    assert not any(table.flags.writeable for table in found)


def test_a_wrong_table_among_many_is_named() -> None:
    with pytest.raises(ValueError, match=r"^likelihood of 'x2' must sum to 1 along the last axis"):
        tb.NaiveBayes([0.5, 0.5], [np.array(TABLE), np.array(TABLE), np.array([ROW, [0.3, 0.8]])])
