"""Raw columns as categories: cuts against a direct reading of the paper, missing cells, and names of rows."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimbench.networks.discretize import (
    CutRule,
    Discretizer,
    IdentifierColumnWarning,
    _learned,
    between,
    entropy_cuts,
)

Row = tuple[float, int]


def entropy(classes: Sequence[int]) -> float:
    n = len(classes)
    return -sum(count / n * math.log2(count / n) for count in Counter(classes).values())


def cuts_by_definition(rows: list[Row]) -> list[float]:
    """Fayyad and Irani's recursion, with every row looked at again for every cut."""
    levels = sorted({value for value, _ in rows})
    classes = [k for _, k in rows]
    options = []
    for low, high in itertools.pairwise(levels):
        left = [k for value, k in rows if value <= low]
        right = [k for value, k in rows if value >= high]
        options.append((len(left) * entropy(left) + len(right) * entropy(right), low, high, left, right))
    if not options:
        return []
    least = min(option[0] for option in options)
    total, low, high, left, right = next(o for o in options if o[0] <= least + 1e-9)
    n = len(rows)
    gain = entropy(classes) - total / n
    sizes = [len(set(part)) for part in (classes, left, right)]
    delta = math.log2(3 ** sizes[0] - 2)
    delta -= sizes[0] * entropy(classes) - sizes[1] * entropy(left) - sizes[2] * entropy(right)
    if gain <= (math.log2(n - 1) + delta) / n:
        return []
    return [
        *cuts_by_definition([row for row in rows if row[0] <= low]),
        low / 2 + high / 2,
        *cuts_by_definition([row for row in rows if row[0] >= high]),
    ]


@given(seed=st.integers(0, 2**32), n_rows=st.integers(0, 120), n_classes=st.integers(1, 4), levels=st.integers(1, 40))
@settings(max_examples=200)
def test_the_cuts_are_those_of_the_paper(seed: int, n_rows: int, n_classes: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, size=n_rows).astype(float)
    noise = rng.random(n_rows) < rng.choice([0.0, 0.1, 1.0])
    classes = np.where(noise, rng.integers(0, n_classes, size=n_rows), (values * n_classes // levels).astype(int))
    found = entropy_cuts(values, classes)
    assert list(found) == pytest.approx(cuts_by_definition(list(zip(values, classes.tolist(), strict=True))))


@given(low=st.floats(allow_nan=False, allow_infinity=False), high=st.floats(allow_nan=False, allow_infinity=False))
def test_a_cut_lies_between_its_neighbours(low: float, high: float) -> None:
    if low < high:
        cut = between(low, high)
        assert low <= cut < high
        middle = (Fraction(low) + Fraction(high)) / 2
        assert cut == low or abs(Fraction(cut) - middle) <= Fraction(math.ulp(cut))


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": [1.0, 2.0, np.nan, 9.0, 8.0, 1.5],
            "colour": ["red", None, "blue", "red", "red", "blue"],
            "kind": pd.Categorical([3, 3, 1, 1, 3, 1], categories=[1, 2, 3]),
            "sick": [True, False, False, True, True, False],
            "code": np.array([0, 5, 5, 0, 5, 5]),
            "same": [7.0] * 6,
        }
    )


@pytest.mark.parametrize("cut", ["mean", "median"])
def test_numbers_are_cut_and_categories_kept(cut: str) -> None:
    learned = Discretizer.fit(table(), [0, 0, 0, 1, 1, 0], cut)  # type: ignore[arg-type]
    level = {"mean": 4.3, "median": 2.0}[cut]
    rules = {rule.name: rule for rule in learned.rules}
    assert rules["size"].cuts == pytest.approx((level,))
    assert rules["size"].missing == "missing"
    assert rules["colour"].categories == ("blue", "red", "missing")
    assert rules["kind"].categories == ("1", "3")
    assert rules["sick"].categories == ("False", "True")
    assert rules["code"].cuts == (2.5,)
    assert rules["same"].categories == ("any",)
    # Where more than half of the rows have the highest value, none is above the median.
    most = Discretizer.fit(pd.DataFrame({"x": [1.0, 2.0, 3.0, 3.0, 3.0]}), [0] * 5, cut)  # type: ignore[arg-type]
    assert most.rules[0].cuts == {"mean": (2.4,), "median": (2.5,)}[cut]
    coded = learned.transform(table())
    low, high = rules["size"].categories[:2]
    assert coded["size"].tolist() == [low, low, "missing", high, high, low]
    assert coded["colour"].tolist() == ["red", "missing", "blue", "red", "red", "blue"]
    assert coded["code"].cat.codes.tolist() == [0, 1, 1, 0, 1, 1]


def test_what_is_new_counts_as_missing_or_as_the_most_frequent_category() -> None:
    learned = Discretizer.fit(table(), [0, 0, 0, 1, 1, 0], "mean")
    new = pd.DataFrame(
        {
            "size": [None, 100.0],
            "colour": ["green", None],
            "kind": [2, 1.0],
            "sick": [None, True],
            "code": [7, None],
            "same": [1, None],
        }
    )
    coded = learned.transform(new)
    assert coded["colour"].tolist() == ["missing", "missing"]
    assert coded["kind"].tolist() == ["1", "1"]  # of two equally frequent categories the first
    assert coded["sick"].tolist() == ["False", "True"]
    assert coded["code"].cat.codes.tolist() == [1, 1]
    assert coded["same"].tolist() == ["any", "any"]


def test_a_category_that_is_called_missing_is_not_mistaken() -> None:
    learned = Discretizer.fit(pd.DataFrame({"x": ["missing", None, "a", "a"]}), [0, 1, 0, 1])
    assert learned.rules[0].categories == ("a", "missing", "missing_")
    assert learned.transform(pd.DataFrame({"x": [None, "missing"]}))["x"].tolist() == ["missing_", "missing"]


@pytest.mark.parametrize(
    "values",
    [[f"patient {i}" for i in range(40)], [f"p{i % 25}" for i in range(40)], [f"p{i}" for i in range(39)] + [None]],
)
def test_names_of_rows_are_left_out_with_a_warning(values: list[str | None]) -> None:
    with pytest.warns(IdentifierColumnWarning, match="column 'id' is left out: its .* values in .* rows are names"):
        learned = Discretizer.fit(pd.DataFrame({"id": values}), [0, 1] * 20)
    assert learned.rules[0].categories == ("any",)
    assert learned.transform(pd.DataFrame({"id": ["new", None]}))["id"].tolist() == ["any", "any"]


def test_many_rows_of_some_categories_and_numbers_of_rows_are_no_reason_to_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned = Discretizer.fit(
            pd.DataFrame({"ward": [f"w{i % 12}" for i in range(40)], "id": np.arange(40)}), [0, 1] * 20
        )
    assert len(learned.rules[0].categories) == 12
    assert learned.rules[1].categories == ("any",)  # alternating classes: no cut pays


@pytest.mark.parametrize("dtype", ["Int64", "float32", object, "category"])
def test_every_type_of_number_is_understood(dtype: str) -> None:
    column = pd.Series([1, 2, 3, None, 5, 6, 6], dtype="Int64")
    column = column.astype(object).where(column.notna(), None) if dtype is object else column.astype("float64")
    frame = pd.DataFrame({"x": column if dtype is object else column.astype(dtype)})  # type: ignore[call-overload]
    learned = Discretizer.fit(frame, [0, 0, 0, 1, 1, 1, 1], "mean")
    rule = learned.rules[0]
    if dtype == "category":
        assert rule.categories == ("1", "2", "3", "5", "6", "missing")
    else:
        assert rule.cuts == pytest.approx((23 / 6,))
        assert learned.transform(frame)["x"].cat.codes.tolist() == [0, 0, 0, 2, 1, 1, 1]


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "uint8"])
def test_an_array_of_numbers_has_the_codes_of_the_table(kind: str) -> None:
    values = np.random.default_rng(0).integers(0, 5, size=(60, 4)).astype(kind)
    categories = pd.DataFrame(values).astype({3: "category"})
    discretizer = Discretizer.fit(categories, values[:, 0] > 2)
    if kind.startswith("float"):
        values[::7, :3] = np.nan
    table = discretizer.transform(pd.DataFrame(values).astype({3: "category"}))
    expected = np.column_stack([column.cat.codes for _, column in table.items()])
    assert discretizer.codes(values).tolist() == expected.tolist()


def test_bad_input_is_explained() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match="cut must be one of mdl, mean, median, got 'middle'"):
        Discretizer.fit(frame, [0, 1, 1], "middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="column 'x' must be finite, got infinity; mark a missing"):
        Discretizer.fit(pd.DataFrame({"x": [1.0, np.inf, 2.0]}), [0, 1, 1])
    learned = Discretizer.fit(frame, [0, 1, 1], "mean")
    with pytest.raises(ValueError, match=r"column 'x' must hold numbers, .* got 'tall'"):
        learned.transform(pd.DataFrame({"x": [1.0, "tall"]}))


@given(seed=st.integers(0, 9999), cut=st.sampled_from(["mdl", "mean", "median"]), n_rows=st.integers(1, 60))
@settings(max_examples=150)
def test_columns_cut_at_once_are_as_those_cut_one_by_one(seed: int, cut: CutRule, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, rng.integers(1, 4), n_rows)
    columns = {
        "noise": rng.normal(size=n_rows),
        "signal": rng.normal(size=n_rows) + 2 * classes,
        "ties": np.round(rng.normal(size=n_rows) + classes),
        "whole": rng.integers(0, 4, n_rows),
        "bytes": rng.integers(0, 2, n_rows).astype(np.uint8),
        "two": 2.5 * rng.integers(0, 2, n_rows),
        "same": np.full(n_rows, 7.0),
        "gaps": np.where(rng.random(n_rows) < 0.3, np.nan, rng.normal(size=n_rows)),
        "truth": rng.random(n_rows) < 0.5,
        "text": rng.choice(["a", "b"], n_rows),
        "halves": rng.normal(size=n_rows).astype(np.float32),
    }
    frame = pd.DataFrame(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column without values
        rules = [_learned(frame[name], str(name), classes, cut) for name in frame]
        found = Discretizer.fit(frame, classes, cut)
    assert list(found.rules) == rules
    new = frame.sample(n_rows, replace=True, random_state=seed)
    new.iloc[::3, :3] = rng.normal(size=new.iloc[::3, :3].shape)
    new.iloc[::4, 1] = np.nan
    one_by_one = np.column_stack([rule.codes(new.iloc[:, place]) for place, rule in enumerate(rules)])
    assert (found.codes(new) == one_by_one).all()


@pytest.mark.parametrize("cell", [np.inf, -np.inf])
def test_infinity_among_columns_coded_at_once_is_named(cell: float) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    rules = Discretizer.fit(frame, np.arange(20) % 2)
    frame.loc[3, "b"] = cell
    with pytest.raises(ValueError, match="column 'b' must be finite"):
        rules.codes(frame)
    with pytest.raises(ValueError, match="column 'b' must be finite"):
        Discretizer.fit(frame, np.arange(20) % 2)
