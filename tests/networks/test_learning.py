"""Learning by counting against a twin that groups and divides; the best tree by enumeration."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trimbench as tb
from tests.networks.random_models import same_naive_bayes
from trimbench.networks.learning import _table_codes, category_codes
from trimbench.networks.values import plain_column

VALUES = ["u", "v", "w"]


def twin(column: pd.Series, target: pd.Series, values: list[Any], classes: list[Any], smoothing: float) -> np.ndarray:
    """P(value | class) from a groupby; rows in which the value is missing are left out."""
    pairs = pd.DataFrame({"value": column.to_numpy(), "class": target.to_numpy()}).dropna()
    counts = pairs.groupby(["class", "value"]).size()
    table = np.array([[counts.get((c, v), 0) + smoothing for v in values] for c in classes])
    return table / table.sum(axis=1, keepdims=True)


@st.composite
def tables(draw: st.DrawFn, *, missing: bool = False) -> tuple[pd.DataFrame, pd.Series]:
    """Up to 30 rows; 3 features of up to 3 values, the first 6 rows show every value in every class."""
    n_rows = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shown = pd.DataFrame(dict.fromkeys("abc", VALUES * 2))
    drawn = pd.DataFrame({name: rng.choice(VALUES, n_rows) for name in "abc"})
    if missing:
        drawn = drawn.mask(rng.random(drawn.shape) < 0.4)
    target = pd.Series(["no"] * 3 + ["yes"] * 3 + rng.choice(["no", "yes"], n_rows).tolist(), name="ill")
    return pd.concat([shown, drawn], ignore_index=True).astype(object), target


@pytest.mark.parametrize("with_gaps", [False, True])
@given(data=st.data(), smoothing=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
@settings(max_examples=40)
def test_probabilities_equal_the_twin(with_gaps: bool, data: st.DataObject, smoothing: float) -> None:
    features, target = data.draw(tables(missing=with_gaps))
    model = tb.learn(features, target, smoothing=smoothing, missing="ignore")
    assert with_gaps or same_naive_bayes(model, tb.learn(features, target, smoothing=smoothing))
    assert model.feature_names == ("a", "b", "c")
    assert (model.class_variable, model.class_names) == ("ill", ("no", "yes"))
    for name, table in zip(model.feature_names, model.likelihoods, strict=True):
        np.testing.assert_allclose(table, twin(features[name], target, VALUES, ["no", "yes"], smoothing), rtol=1e-12)
    counts = target.value_counts().reindex(["no", "yes"]).to_numpy() + smoothing
    np.testing.assert_allclose(model.prior, counts / counts.sum(), rtol=1e-12)


COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "whole": lambda rng, n: rng.integers(0, 3, n),
    "bytes": lambda rng, n: rng.integers(0, 3, n).astype(np.uint8),
    "floats": lambda rng, n: rng.choice([0.0, -0.0, 1.5, np.nan], n),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
    "halves": lambda rng, n: rng.choice([0.25, 0.3], n).astype(np.float32),
    "truth": lambda rng, n: rng.random(n) < 0.5,
    "text": lambda rng, n: rng.choice(["b", "Z", "\u00e9", "a"], n),
    "objects": lambda rng, n: np.array(rng.choice(["b", "a", None], n), dtype=object),
    "mixed": lambda rng, n: np.array([1, "a"] * n, dtype=object)[:n],
    "categories": lambda rng, n: pd.Categorical(rng.choice(["x", "y"], n), categories=["z", "y", "x"]),
    "nullable": lambda rng, n: pd.array(rng.choice([1, 2], n), dtype="Int64"),
    "measured": lambda rng, n: rng.normal(size=n),
    "infinite": lambda rng, n: rng.choice([1.0, np.inf], n),
    "empty": lambda rng, n: np.full(n, np.nan),
}


@given(
    names=st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=8),
    n_rows=st.integers(1, 40),
    seed=st.integers(0, 99),
    missing=st.sampled_from(["error", "ignore"]),
)
@settings(max_examples=150)
def test_columns_coded_at_once_are_as_those_coded_one_by_one(
    names: list[str], n_rows: int, seed: int, missing: Any
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.concat([pd.Series(COLUMNS[name](rng, n_rows)) for name in names], axis=1)
    labels = [f"{name} {place}" for place, name in enumerate(names)]
    try:
        expected = [
            category_codes(frame.iloc[:, place], f"feature {label!r}", missing=missing)
            for place, label in enumerate(labels)
        ]
    except ValueError as error:
        with pytest.raises(ValueError, match=f"^{re.escape(str(error))}$"):
            _table_codes(frame, labels, missing)
        return
    codes, values = _table_codes(frame, labels, missing)
    for place, (own, its) in enumerate(expected):
        assert codes[place].tolist() == own.tolist()
        assert values[place] == its


@given(seed=st.integers(0, 999), smoothing=st.sampled_from([0.0, 1.0]))
@settings(max_examples=40)
def test_features_counted_together_have_the_tables_of_each_alone(seed: int, smoothing: float) -> None:
    rng = np.random.default_rng(seed)
    target = pd.Series(np.append(rng.integers(0, 3, 20), [0, 1, 2]))
    frame = pd.DataFrame({f"f{i}": rng.integers(0, rng.integers(1, 5), 23).astype(float) for i in range(9)})
    frame = frame.mask(rng.random(frame.shape) < 0.3).assign(full="a")
    alone = []
    for name in frame:
        try:
            alone.append(tb.learn(frame[[name]], target, smoothing=smoothing, missing="ignore").likelihoods[0])
        except ValueError as error:
            with pytest.raises(ValueError, match=f"^{re.escape(str(error))}$"):
                tb.learn(frame, target, smoothing=smoothing, missing="ignore")
            return
    together = tb.learn(frame, target, smoothing=smoothing, missing="ignore")
    assert all(np.array_equal(one, other) for one, other in zip(together.likelihoods, alone, strict=True))


def test_unused_categories_are_values_and_keep_their_order() -> None:
    features = pd.DataFrame({"x": pd.Categorical(["low", "high"], categories=["low", "middle", "high"])})
    target = pd.Series(pd.Categorical(["b", "b"], categories=["b", "a"]), name="y")
    model = tb.learn(features, target)
    assert model.value_names == (("low", "middle", "high"),)
    assert model.class_names == ("b", "a")
    np.testing.assert_allclose(model.prior, [3 / 4, 1 / 4])
    np.testing.assert_allclose(model.likelihoods[0], [[2 / 5, 1 / 5, 2 / 5], [1 / 3, 1 / 3, 1 / 3]])
    message = "feature 'x' must be observed in every class when smoothing is 0, got no value in class 'a'; use a pos"
    with pytest.raises(ValueError, match=re.escape(message)):
        tb.learn(features, target, smoothing=0)


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pd.Series([10, 9, 9, 10]), ("9", "10")),
        (pd.Series([0.5, -1.0, 0.5, 3.0]), ("-1.0", "0.5", "3.0")),
        (pd.Series([0.1, 0.2, 0.1, 0.2], dtype="float32"), ("0.1", "0.2")),
        (pd.Series([True, False, True, False]), ("False", "True")),
        (pd.Series([True, False, True, False], dtype="boolean"), ("False", "True")),
        (pd.Series([2, 1, 2, 1], dtype="Int64"), ("1", "2")),
        (pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01"] * 2)), ("2020-01-01 00:00:00", "2020-01-02 00:00:00")),
        (pd.Series(["b", "a", "b", "a"], dtype="string"), ("a", "b")),
        (pd.Series(pd.Categorical([3, 1, 3, 1], categories=[3, 2, 1])), ("3", "2", "1")),
    ],
)
def test_values_of_every_type_are_named_and_found_again(column: pd.Series, names: tuple[str, ...]) -> None:
    features = pd.DataFrame({"x": column})
    model = tb.learn(features, pd.Series(["a", "a", "b", "b"]))
    assert model.value_names == (names,)
    texts = [str(value) for value in plain_column(column).tolist()]
    assert model.encode(features)[:, 0].tolist() == [names.index(text) for text in texts]
    by_number = tb.learn(features.set_axis([7], axis=1), pd.Series([True, True, False, False]))
    assert (by_number.feature_names, by_number.class_names) == (("7",), ("False", "True"))
    assert by_number.class_variable == "class"
    assert by_number.encode(features.set_axis([7], axis=1)).tolist() == model.encode(features).tolist()


def test_no_features_is_the_prior_alone() -> None:
    model = tb.learn(pd.DataFrame(index=range(3)), pd.Series(["a", "a", "b"]), smoothing=0)
    assert model.n_features == 0
    np.testing.assert_allclose(np.exp(model.log_joint(np.empty((1, 0), dtype=np.int64))), [[2 / 3, 1 / 3]])


GOOD = pd.DataFrame({"x": ["p", "q", "p"]})
CLASSES = pd.Series(["a", "b", "a"])
MANY = pd.Series([0, 1] * 20)
NAMES = "names of the target ('class' if it has none; set target.name) and of the columns"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"smoothing": -1.0}, "smoothing must be a finite number >= 0, got -1.0; 1 is Laplace's rule"),
        ({"smoothing": np.nan}, "smoothing must be a finite number >= 0, got nan"),
        ({"smoothing": np.inf}, "smoothing must be a finite number >= 0, got inf"),
        ({"missing": "drop"}, "missing must be 'error' or 'ignore', got 'drop'"),
        (
            {"features": GOOD.to_numpy()},
            "features must be a DataFrame with a name for each column, got ndarray; make it one with pd.DataFrame(",
        ),
        (
            {"target": CLASSES.tolist()},
            "target must be a Series with the class of each row, got list; make it one with",
        ),
        (
            {"features": GOOD.iloc[:0], "target": CLASSES.iloc[:0]},
            "features and target must have the same number of rows, at least one, got 0 and 0",
        ),
        (
            {"target": CLASSES.iloc[:2]},
            "features and target must have the same number of rows, at least one, got 3 and 2",
        ),
        (
            {"target": CLASSES.iloc[[2, 1, 0]]},
            "features and target must have their rows in the same order, got the same row labels in another order; "
            "use target.loc[features.index], or target.reset_index(drop=True) if the order is meant",
        ),
        (
            {"features": pd.DataFrame({"x": ["p", None, np.nan]})},
            "feature 'x' must have no missing values, got NaN in 2 of 3 rows; drop those rows, make 'missing' a value",
        ),
        ({"target": pd.Series(["a", None, "b"])}, "target must have no missing values, got NaN in 1 of 3 rows"),
        (
            {"target": pd.Series(["a", None, "b"]), "missing": "ignore"},
            "target must have no missing values, got NaN in 1 of 3 rows",
        ),
        (
            {"features": pd.DataFrame({"x": [np.nan] * 3}), "missing": "ignore"},
            "feature 'x' must have at least one value that is not missing, got none; drop the column",
        ),
        (
            {"features": pd.DataFrame({"x": ["p", None, "q"]}), "missing": "ignore", "smoothing": 0},
            "feature 'x' must be observed in every class when smoothing is 0, got no value in class 'b'",
        ),
        (
            {"features": pd.DataFrame([[1, 2]] * 3, columns=["x", "x"])},
            f"{NAMES} must be distinct, got 'x' more than once; rename one of them",
        ),
        (
            {"features": pd.DataFrame([[1, 2]] * 3, columns=["1", 1])},
            f"{NAMES} must be distinct, got '1' more than once",
        ),
        ({"target": CLASSES.rename("x")}, f"{NAMES} must be distinct, got 'x' more than once"),
        ({"features": GOOD.set_axis(["class"], axis=1)}, f"{NAMES} must be distinct, got 'class' more than once"),
        (
            {"features": pd.DataFrame({"x": [1, "1", 2]}, dtype=object)},
            "value_names of 'x' must be distinct, got '1' more than once; rename one of them",
        ),
        (
            {"features": pd.DataFrame({"x": np.arange(40) / 7}), "target": MANY},
            "feature 'x' must hold categories, got a different value in each of 40 rows; if these are numbers, cut it ",
        ),
        (
            {"features": pd.DataFrame({"x": [f"patient {i}" for i in range(40)]}), "target": MANY, "structure": "tree"},
            "feature 'x' must hold categories, got a different value in each of 40 rows",
        ),
        (
            {"features": pd.DataFrame({"x": np.minimum(np.arange(40) / 7, 20 / 7)}), "target": MANY},
            "feature 'x' must hold categories, got 21 different values in 40 rows; if these are numbers",
        ),
        ({"structure": "tree", "smoothing": 0}, "smoothing must be positive for a tree-augmented model, got 0"),
        ({"structure": "tree", "features": GOOD[[]]}, "features must have at least one column, got none"),
        (
            {"structure": "tree", "features": pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"])},
            f"{NAMES} must be distinct, got 'a' more than once",
        ),
        ({"structure": "mixture", "n_components": 0}, "n_components must be a whole number, 1 or more, got 0"),
        ({"structure": "mixture", "n_starts": 1.5}, "n_starts must be a whole number, 1 or more, got 1.5"),
        ({"structure": "mixture", "smoothing": 0.0}, "smoothing must be positive for a mixture, got 0"),
        ({"structure": "forest"}, "structure must be one of ['naive_bayes', 'tree', 'mixture'], got 'forest'"),
    ],
)
def test_unusable_tables_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        tb.learn(**{"features": GOOD, "target": CLASSES, **changes})


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 2]])
@pytest.mark.parametrize("labels", [[5, 6, 7], ["i", "j", "k"], [0, 0, 1]])
def test_rows_are_matched_by_position_and_counted_as_often_as_they_occur(labels: list[Any], rows: list[int]) -> None:
    expected = tb.learn(GOOD.iloc[rows].reset_index(drop=True), CLASSES.iloc[rows].reset_index(drop=True))
    model = tb.learn(GOOD.set_axis(labels).iloc[rows], CLASSES.iloc[rows])
    assert same_naive_bayes(model, expected)


def test_few_values_and_declared_categories_are_categories() -> None:
    few = tb.learn(pd.DataFrame({"x": np.minimum(np.arange(40), 19)}), MANY)
    assert len(few.value_names[0]) == 20
    names = pd.DataFrame({"x": [f"patient {i}" for i in range(40)]}, dtype="category")
    assert len(tb.learn(names, MANY).value_names[0]) == len(tb.learn(names, MANY, structure="tree").states("x")) == 40


def test_cells_that_hold_several_values_are_refused_by_name() -> None:
    frame = pd.DataFrame({"x": [["p"], ["q"], ["p"]]})
    halved = pd.DataFrame({"x": pd.Series(["p", "q\ud800", "p"], dtype=object)})
    refusal = "hold categories, got cells that cannot be one:"
    # Old versions of pandas read half of a surrogate pair, which is no name of a value either.
    for cells, said in ((frame, f"{refusal} unhashable"), (halved, f"({refusal} 'utf-8' codec|be text that UTF-8)")):
        with pytest.raises(ValueError, match=f"'x' must {said}"):
            tb.learn(cells, CLASSES)
    model = tb.learn(pd.DataFrame({"x": ["p", "q", "p"]}), CLASSES)
    with pytest.raises(ValueError, match=r"column 'x' must hold single values"):
        model.encode(frame)


def sample(seed: int, n_features: int = 4, n_rows: int = 120) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    target = pd.Series(rng.choice(["no", "yes"], size=n_rows), name="ill")
    columns: dict[str, np.ndarray] = {}
    for i in range(n_features):
        base = columns[f"x{rng.integers(i)}"] if i else rng.integers(0, 3, size=n_rows).astype(str)
        noise = rng.random(n_rows) < 0.4
        columns[f"x{i}"] = np.where(noise, rng.integers(0, 2 + i % 2, size=n_rows).astype(str), base)
    return pd.DataFrame(columns).astype("category"), target


def information(features: pd.DataFrame, target: pd.Series, one: str, other: str) -> float:
    """Return I(one; other | class) by the definition."""
    total = 0.0
    values = pd.concat([target, features[[one, other]]], axis=1).astype(str)
    for (c, a, b), count in Counter(values.itertuples(index=False, name=None)).items():
        rows = target == c
        both, of_class = count / len(target), rows.sum() / len(target)
        first = (rows & (features[one].astype(str) == a)).sum() / len(target)
        second = (rows & (features[other].astype(str) == b)).sum() / len(target)
        total += both * np.log(both * of_class / (first * second))
    return total


def trees(names: list[str]) -> Iterator[list[tuple[str, str]]]:
    for edges in itertools.combinations(itertools.combinations(names, 2), len(names) - 1):
        joined = {name: {name} for name in names}
        for one, other in edges:
            union = joined[one] | joined[other]
            joined |= dict.fromkeys(union, union)
        if len(joined[names[0]]) == len(names):
            yield list(edges)


@pytest.mark.parametrize("seed", range(5))
def test_no_tree_has_more_information(seed: int) -> None:
    features, target = sample(seed)
    network = tb.learn(features, target, structure="tree")
    names = list(features.columns)
    assert network.parents("ill") == ()
    found = [(node, parent) for node in names for parent in network.parents(node) if parent != "ill"]
    assert all("ill" in network.parents(node) for node in names)
    assert [node for node in names if len(network.parents(node)) == 1] == ["x0"]
    weights = {frozenset(pair): information(features, target, *pair) for pair in itertools.combinations(names, 2)}

    def of_tree(edges: list[tuple[str, str]]) -> float:
        return sum(weights[frozenset(edge)] for edge in edges)

    assert of_tree(found) == pytest.approx(max(map(of_tree, trees(names))))


def test_one_feature_and_equal_columns() -> None:
    features, target = sample(2)
    assert tb.learn(features[["x0"]], target, structure="tree").parents("x0") == ("ill",)
    constant = pd.DataFrame({"a": ["v"] * len(target), "b": ["w"] * len(target)})
    assert tb.learn(constant, target, structure="tree").parents("b") == ("ill", "a")


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_probabilities_are_smoothed_frequencies_of_rows_without_the_gaps(share: float) -> None:
    features, target = sample(3)
    if share:
        features = features.astype(object).mask(np.random.default_rng(0).random(features.shape) < share)
        with pytest.raises(ValueError, match="must have no missing values"):
            tb.learn(features, target, structure="tree")
    network = tb.learn(features, target, smoothing=0.5, missing="ignore" if share else "error", structure="tree")
    for node in features.columns:
        above = [parent for parent in network.parents(node) if parent != "ill"]
        for states in itertools.product(*(network.states(parent) for parent in network.parents(node))):
            rows = target == states[0]
            for parent, state in zip(above, states[1:], strict=True):
                rows &= features[parent] == state
            counts = np.array([(rows & (features[node] == value)).sum() for value in network.states(node)]) + 0.5
            index = tuple(network.states(p).index(s) for p, s in zip(network.parents(node), states, strict=True))
            np.testing.assert_allclose(network.table(node)[index], counts / counts.sum())
