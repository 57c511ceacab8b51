"""Rows in batches, in any order and partition, give what the whole table gives."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench.conformant.logistic_regression import fit_logistic_regression
from trimbench.conformant.rows import RowSample
from trimbench.estimators import (
    ExpectedClassifier,
    NaiveConformantClassifier,
    SelectionCorrectedNB,
    TrimmedClassifier,
    expected,
)
from trimbench.networks import learning
from trimbench.networks.batches import Batches, in_batches, scanned
from trimbench.networks.learning import counted, learn_from_counts
from trimbench.selection_bias.prior import Prior

ROWS = st.integers(0, 10_000)


def parts(frame: pd.DataFrame, seed: int) -> list[pd.DataFrame]:
    """Return the rows of a frame in random order and parts, some of them empty."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(frame) + 1, rng.integers(0, 6)))
    shuffled = frame.iloc[rng.permutation(len(frame))]
    return [shuffled.iloc[a:b] for a, b in zip([0, *ends], [*ends, len(frame)], strict=True)]


def categories(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    frame = pd.DataFrame(
        {
            "bytes": rng.integers(-1, 3, n).astype(np.int8),
            "years": rng.choice([1990, 2020, 2021], n),
            "floats": rng.choice([0.0, 2.0, np.nan], n),
            "halves": rng.choice([0.5, 0.75, 1e9], n),
            "truth": rng.random(n) < 0.5,
            "text": rng.choice(["b", "Z", "a"], n),
            "objects": rng.choice(np.array(["b", "a", None], dtype=object), n),
            "categories": pd.Categorical(rng.choice(["x", "y"], n), categories=["z", "y", "x"]),
            "class": rng.integers(0, 3, n),
        }
    )
    return frame.assign(
        floats=frame["floats"].where(np.arange(n) > 1, 1.0), objects=frame["objects"].where(frame.index > 0, "a")
    )


@given(seed=ROWS, structure=st.sampled_from(["naive_bayes", "tree"]))
@settings(max_examples=30, deadline=None)
def test_a_learned_model_is_that_of_the_whole_table(seed: int, structure: Any) -> None:
    frame = categories(seed)
    whole: Any = tb.learn(frame.drop(columns="class"), frame["class"], structure=structure, missing="ignore")
    batches = parts(frame, seed)
    found: Any = tb.learn(iter(batches), "class", structure=structure, missing="ignore")
    halves = [counted(some, "class", structure) for some in (batches[::2], batches[1::2]) if sum(map(len, some))]
    added: Any = learn_from_counts(sum(halves[1:], halves[0]), structure, missing="ignore")
    assert found.to_dict() == added.to_dict() == whole.to_dict()


@given(seed=ROWS, n_components=st.integers(1, 3))
@settings(max_examples=8, deadline=None)
def test_a_learned_mixture_is_that_of_the_table_with_its_rows_in_this_order(seed: int, n_components: int) -> None:
    batches = parts(categories(seed), seed)
    frame: Any = pd.concat(batches)
    how: Any = {"structure": "mixture", "n_components": n_components, "missing": "ignore", "n_starts": 2}
    whole = tb.learn(frame.drop(columns="class"), frame["class"], **how).components
    with pytest.MonkeyPatch.context() as few:
        few.setattr(learning, "_ROWS_AT_ONCE", 7)
        found = tb.learn(batches, "class", **how).components
    assert (found.class_names, found.value_names) == (whole.class_names, whole.value_names)
    np.testing.assert_allclose(found.prior, whole.prior, rtol=0, atol=1e-12)
    for one, other in zip(found.likelihoods, whole.likelihoods, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_mixture_of_an_iterator_says_that_it_needs_several_passes() -> None:
    with pytest.raises(ValueError, match="passed over several times, got an iterator"):
        tb.learn(iter([FRAME]), "y", structure="mixture")


def test_whole_numbers_with_gaps_are_the_same_numbers_in_every_batch() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": [1, 2, None, 1], "y": ["a", "b", "a", "b"]})
    frame = table.to_pandas()
    whole = tb.learn(frame[["x"]], frame["y"], missing="ignore")
    batches = [table.slice(0, 2).to_batches()[0], table.slice(2)]
    assert tb.learn(batches, "y", missing="ignore").to_dict() == whole.to_dict()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow")
    for place, part in enumerate(parts(categories(3), 1)):
        part.to_parquet(tmp_path / f"{place}.parquet")
    return tmp_path


def test_sources_of_batches_hold_the_same_rows(folder: Path) -> None:
    from pyarrow import dataset, parquet

    class Ray:
        def iter_batches(self, *, batch_size: int, batch_format: str) -> Iterator[Any]:
            return iter([parquet.read_table(folder).slice(0, 20), parquet.read_table(folder).slice(20)])

        def select_columns(self, columns: list[str]) -> Ray:
            return self

    columns = ["bytes", "text"]
    frame = categories(3)
    expected = tb.learn(frame[columns], frame["class"]).to_dict()
    sources = [folder, str(folder), dataset.dataset(folder), Ray(), lambda: iter([frame]), [frame]]
    for source in sources:
        assert in_batches(source)
        assert tb.learn(Batches.of(source, columns), "class").to_dict() == expected
    single = parquet.ParquetFile(max(folder.iterdir(), key=lambda path: path.stat().st_size))
    assert sum(map(len, Batches.of(single, columns))) == single.metadata.num_rows


@pytest.mark.parametrize("columns", [None, ["x"], ["town", "x"]])
@pytest.mark.parametrize("kind", ["partitioned", "filtered", "partition", "csv", "in memory", "union", "empty files"])
def test_a_scan_has_the_rows_of_the_dataset(kind: str, columns: list[str] | None, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import dataset, parquet

    table = pa.table({"x": np.arange(100.0), "town": ["a", "b"] * 50})
    towns = dataset.partitioning(pa.schema([("town", pa.string())]), flavor="hive")
    rows: Any = dataset.dataset(table)
    if kind == "csv":
        dataset.write_dataset(table, tmp_path, format="csv")
        rows = dataset.dataset(tmp_path, format="csv")
    elif kind == "empty files":
        parquet.write_table(table, tmp_path / "a.parquet", row_group_size=30)
        parquet.write_table(table.slice(0, 0), tmp_path / "b.parquet")
        rows = dataset.dataset(tmp_path)
    elif kind != "in memory":
        few = {"max_rows_per_group": 20, "max_rows_per_file": 40}
        dataset.write_dataset(table, tmp_path, format="parquet", partitioning=towns, **few)
        rows = dataset.dataset(tmp_path, partitioning=towns)
        condition = {"filtered": dataset.field("x") > 30, "partition": dataset.field("town") == "a"}.get(kind)
        rows = rows if condition is None else rows.filter(condition)
        rows = dataset.dataset([rows, rows]) if kind == "union" else rows
    batches = list(scanned(rows, columns, 7))
    assert max(len(batch) for batch in batches) <= 7
    assert pa.Table.from_batches(batches).combine_chunks() == rows.to_table(columns=columns).combine_chunks()


def test_a_file_is_read_once_its_rows_are_wanted(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import dataset

    for name in "ab":
        pd.DataFrame({"x": np.arange(3)}).to_parquet(tmp_path / f"{name}.parquet")
    batches = scanned(dataset.dataset(tmp_path))
    assert len(next(batches)) == 3
    time.sleep(0.2)  # in which a scan that reads ahead would read the other file
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        next(batches)


@pytest.mark.parametrize("table", [np.eye(2), pd.DataFrame({"x": [1]}), [[0, 1]], {"x": [1]}, pd.Series([1])])
def test_a_table_is_not_taken_for_batches(table: Any) -> None:
    assert not in_batches(table)


FRAME = pd.DataFrame({"x": ["a", "b"], "y": [0, 1]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tb.learn([FRAME], FRAME["y"]), "must be the name of a column, got Series"),
        (lambda: tb.learn([FRAME], "z"), "must be a column of the batches, got 'z'"),
        (lambda: tb.learn([FRAME, FRAME[["x"]]], "y"), r"columns \['x', 'y'\], got \['x'\] after 2 rows"),
        (lambda: tb.learn([FRAME[:0]], "y"), "at least one row"),
        (lambda: tb.learn([FRAME.assign(x=["a", None])], "y"), "feature 'x' must have no missing values"),
        (lambda: tb.learn([FRAME.assign(x=[1.0, np.inf])], "y"), "feature 'x' must hold finite numbers"),
        (
            lambda: tb.learn([FRAME.assign(x=np.arange(2) + k) for k in range(0, 40, 2)], "y"),
            "got 40 different|got a different",
        ),
        (lambda: tb.learn([FRAME, np.eye(2)], "y"), "data frame or an Arrow record batch, got ndarray"),
        (lambda: Batches.of(3), "rows in batches must be"),
        (lambda: [list(once) for once in [Batches.of(iter([FRAME]))] * 2], "used up after one pass"),
    ],
)
def test_what_is_wrong_with_batches_is_said(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_identifiers_do_not_fill_memory() -> None:
    frames = (pd.DataFrame({"x": np.arange(40_000) * 1.5 + k, "y": 0}) for k in (0, 1e6))
    with pytest.raises(ValueError, match="'x' must hold categories, got 80000 different values"):
        tb.learn(frames, "y")


# Conformant models: sums with more digits than a float, and a sample that does not depend on the order.


class Case:
    """A classifier, rows with binary, categorical and real columns, and a partition of them in random order."""

    def __init__(self, seed: int, gaps: bool, n_rows: int = 60) -> None:
        rng = np.random.default_rng(seed)
        n = n_rows
        labels = rng.integers(0, 2, n)
        group = np.eye(3)[rng.integers(0, 3, n)]
        real = rng.normal(size=(n, 2)) * [1.0, 1e-3] + [1e5, 0.0] + labels[:, None] * [1.0, 1e-3]
        X = np.column_stack([rng.random((n, 3)) < 0.3 + 0.4 * labels[:, None], group, real]).astype(float)
        X[n // 2 :] = X[: n - n // 2]  # copies
        names = [f"x{place}" for place in range(X.shape[1])]
        scaled = X * [1, 1, 1, 1, 1, 1, 1, 1e3] - [0, 0, 0, 0, 0, 0, 1e5, 0]
        fitted = fit_logistic_regression(scaled, labels)
        slopes = fitted.coef_ * [1, 1, 1, 1, 1, 1, 1, 1e3]
        self.classifier = WithNames(slopes, fitted.intercept_ - 1e5 * slopes[:, 6], np.array(names))
        self.layout: dict[str, Any] = {"categorical": [[3, 4, 5]], "real": [6, 7]}
        if gaps:
            hidden = rng.random((n, 6)) < 0.2
            X[hidden[:, [0, 1, 2, 3, 3, 3, 4, 5]]] = np.nan
        self.X = pd.DataFrame(X, columns=names)
        self.weights = rng.integers(0, 4, n) + rng.random(n)


class WithNames:
    """Weights of a classifier."""

    def __init__(self, coef: Any, intercept: Any, names: Any) -> None:
        self.coef_, self.intercept_, self.feature_names_in_, self.classes_ = coef, intercept, names, np.array([0, 1])


def assert_same(one: tb.ConformantModel, other: tb.ConformantModel, rows: pd.DataFrame) -> None:
    hidden = rows.copy()
    hidden.loc[::2, ["x0", "x3", "x4", "x5", "x6"]] = np.nan
    assert (one.n_components, one.covariance) == (other.n_components, other.covariance)
    for name in ("predict_proba", "log_likelihood"):
        for some in (rows, hidden):
            ours, theirs = getattr(one, name)(some), getattr(other, name)(some)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * max(1.0, np.abs(ours).max()))


@given(seed=ROWS)
@settings(max_examples=25, deadline=None)
def test_one_component_is_that_of_the_whole_table(seed: int) -> None:
    case = Case(seed, gaps=False)
    form: dict[str, Any] = {"n_components": 1, "covariance": "diagonal", **case.layout}
    whole = tb.conform(case.classifier, case.X, **form)
    assert_same(tb.conform(case.classifier, iter(parts(case.X, seed)), **form), whole, case.X)
    weighted = tb.conform(case.classifier, case.X, sample_weight=case.weights, **case.layout)
    batches = parts(case.X.assign(w=case.weights), seed)
    assert_same(tb.conform(case.classifier, batches, sample_weight="w", **case.layout), weighted, case.X)


@given(
    seed=ROWS,
    gaps=st.booleans(),
    form=st.sampled_from([(1, "diagonal"), (1, "full"), (3, "diagonal"), (2, "full"), ("auto", "auto")]),
)
@settings(max_examples=8, deadline=None)
def test_a_mixture_is_that_of_the_whole_table(seed: int, gaps: bool, form: Any) -> None:
    case = Case(seed, gaps)
    form = {"n_components": form[0], "covariance": form[1], **case.layout}
    whole = tb.conform(case.classifier, case.X, **form)
    assert_same(tb.conform(case.classifier, parts(case.X, seed), **form), whole, case.X)


@given(seed=ROWS, most=st.integers(1, 80))
@settings(max_examples=50, deadline=None)
def test_a_sample_does_not_depend_on_order_and_parts(seed: int, most: int) -> None:
    frame = pd.DataFrame(np.random.default_rng(seed).integers(0, 4, (60, 2)).astype(float)).replace(3.0, np.nan)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("trimbench.conformant.rows.MOST_SAMPLED", most)
        whole = RowSample.of(frame.to_numpy(), seed)
        first, *rest = (RowSample.of(part.to_numpy(), seed) for part in parts(frame, seed))
        added = sum(rest, first)
        np.testing.assert_array_equal(added.rows, whole.rows)
        np.testing.assert_array_equal(added.copies, whole.copies)
        assert (added.n_rows, added.has_gaps) == (whole.n_rows, whole.has_gaps)
        if len(whole.copies) < most:  # it holds every row
            kept = pd.DataFrame(whole.distinct.repeat(whole.copies, axis=0))
            assert sorted(map(str, kept.to_numpy())) == sorted(map(str, frame.to_numpy()))


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_sums_of_columns_have_all_digits(unit: float) -> None:
    from fractions import Fraction

    from trimbench.networks.sums import ColumnSums

    rng = np.random.default_rng(1)
    values, weights = (rng.normal(size=403) + 1e9) * unit, rng.random(403)
    values[::7] = np.nan
    found = sum(
        (ColumnSums.of([values[k : k + 50]], weights[k : k + 50]) for k in range(50, 403, 50)),
        ColumnSums.of([values[:50]], weights[:50]),
    )
    seen = [(Fraction(x), Fraction(w)) for x, w in zip(values, weights, strict=True) if x == x]
    total = sum(w for _, w in seen)
    mean = sum(w * x for x, w in seen) / total
    spread = sum(w * (x - mean) ** 2 for x, w in seen) / Fraction(2) ** int(2 * found.exponents[0])
    assert found.counts[0] == float(total)
    assert found.means[0] == float(mean)
    np.testing.assert_allclose(found.squares[0], float(spread), rtol=1e-12)


def test_several_components_need_batches_that_come_again() -> None:
    case = Case(0, gaps=False)
    with pytest.raises(ValueError, match="used up after one pass"):
        tb.conform(case.classifier, iter([case.X]), n_components=2, **case.layout)
    for wrong, message in (
        ([case.X.iloc[:, 1:]], "columns"),
        ([case.X.assign(x0=2.0)], r"X\[0, 0\] must be 0, 1 or NaN"),
        ([case.X, case.X.assign(x6=np.inf)], r"X\[60, 6\] must be finite"),
        ([case.X.assign(x0="a")], "column 'x0' must hold numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            tb.conform(case.classifier, wrong, **case.layout)


# Classifiers with correction for selection.


PRIOR = Prior(n_alpha=3)


@given(seed=ROWS, kind=st.sampled_from(["binary", "medians", "categorical", "gaussian"]), gaps=st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_corrected_classifier_is_that_of_the_whole_table(seed: int, kind: str, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    labels = np.append([0, 1], rng.integers(0, 2 if kind == "categorical" else 3, 58))
    strength = rng.random(5)
    if kind == "binary":
        X = (rng.random((60, 5)) < 0.2 + 0.3 * labels[:, None] * strength).astype(float)
    elif kind == "categorical":
        X = rng.integers(0, [2, 3, 4, 5, 2], (60, 5)).astype(float)
    else:
        X = rng.normal(size=(60, 5)) * [1, 1e-3, 1, 1e3, 1] + [1e6, 0, 0, 0, -5] + labels[:, None] * strength
        X[:, 2] = np.where(X[:, 2] > 0, 3.0, -2.0)
    if gaps and kind != "categorical":
        X[rng.random(X.shape) < 0.2] = np.nan
    kept: Any = "binary" if kind == "medians" else kind
    frame = pd.DataFrame(X, columns=list("abcde"))
    try:
        whole = tb.fit_selection_corrected(frame, labels, 2, features=kept, prior=PRIOR, calibrate=False)
    except ValueError as error:  # features may be independent of the class
        with pytest.raises(ValueError, match=f"^{re.escape(str(error))}$"):
            tb.fit_selection_corrected(parts(frame.assign(y=labels), seed), "y", 2, features=kept, prior=PRIOR)
        return
    found = tb.fit_selection_corrected(parts(frame.assign(y=labels), seed), "y", 2, features=kept, prior=PRIOR)
    np.testing.assert_array_equal(found.selected, whole.selected)
    np.testing.assert_allclose(found.predict_proba(frame), whole.predict_proba(frame), rtol=0, atol=1e-12)
    assert found.column_names == whole.column_names


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calibrate": True}, "calibrate must be another one for rows in batches"),
        ({"features": "mixture"}, "features must be another one for rows in batches"),
        ({"selection_rows": [0]}, "selection_rows must be left out for rows in batches"),
    ],
)
def test_what_needs_all_rows_says_so(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tb.fit_selection_corrected([FRAME], "y", 1, **settings)


# partial_fit: calls with parts of the rows, of which the first decides where numbers are cut.


def patients(seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    y = np.append(["no", "yes", "no"], rng.choice(["no", "yes"], 117))
    age = 40 + 10.0 * (y == "yes") + rng.normal(size=120) * 10
    smokes = np.where(rng.random(120) < 0.3 + 0.4 * (y == "yes"), "yes", "no")
    return pd.DataFrame({"age": age, "smokes": smokes, "sex": rng.choice(["f", "m"], 120)}), y


@pytest.mark.parametrize(
    ("estimator", "columns"),
    [
        (TrimmedClassifier(budget=2, rows_weight=0), ["age", "smokes", "sex"]),
        (TrimmedClassifier(budget=2, rows_weight=0, density="tree_augmented"), ["age", "smokes", "sex"]),
        (SelectionCorrectedNB(k=1, features="gaussian", calibrate=False, n_alpha=5), ["age"]),
        (SelectionCorrectedNB(k=1, cuts=[45.0], calibrate=False, n_alpha=5), ["age"]),
    ],
)
def test_parts_teach_what_the_whole_table_does(estimator: Any, columns: list[str]) -> None:
    X, y = patients(1)
    first, whole = clone(estimator), clone(estimator)
    if isinstance(estimator, TrimmedClassifier):  # what the first call decides must be the same
        X["age"] = X["age"] > 45
        X.loc[[0, 1, 2, 3], "smokes"], X.loc[[0, 1, 2, 3], "sex"] = ["yes", "no", "yes", "no"], ["f", "m", "m", "f"]
        X.loc[[0, 1], "age"] = [True, False]
    X = X[columns]
    for start, end in ((0, 40), (40, 41), (41, 120)):
        first.partial_fit(X[start:end], y[start:end], classes=["no", "yes"])
    whole.fit(X, y)
    np.testing.assert_allclose(first.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-12)
    first.fit(X, y).partial_fit(X[:50], y[:50], classes=["no", "yes"])
    alone = clone(estimator).partial_fit(X[:50], y[:50], classes=["no", "yes"])
    np.testing.assert_array_equal(first.predict_proba(X), alone.predict_proba(X))


def test_parts_teach_the_features_of_a_given_classifier() -> None:
    X, y = patients(2)
    numbers = X[["age"]].assign(smokes=(X["smokes"] == "yes").astype(float))
    regression = LogisticRegression().fit(numbers, y)
    form: dict[str, Any] = {"n_components": 1, "covariance": "diagonal", "estimator": regression}
    whole = NaiveConformantClassifier(**form).fit(numbers, y)
    parted = NaiveConformantClassifier(**form)
    for part in (slice(0, 50), slice(50, 120)):
        parted.partial_fit(numbers[part], y[part], classes=["no", "yes"])
    gaps = numbers.mask(np.random.default_rng(0).random(numbers.shape) < 0.4)
    np.testing.assert_allclose(parted.predict_proba(gaps), whole.predict_proba(gaps), rtol=0, atol=1e-12)
    assert (parted.n_rows_of_regression_, parted.n_rows_seen_) == (50, 120)


def test_numbers_are_cut_by_the_rows_of_the_first_call_whose_number_is_said() -> None:
    X, y = patients(4)
    trimmed, alone = TrimmedClassifier(budget=2, rows_weight=0), TrimmedClassifier(budget=2, rows_weight=0)
    corrected = SelectionCorrectedNB(k=1, features="binary", calibrate=False, n_alpha=5)
    for part in (slice(0, 50), slice(50, 120)):
        trimmed.partial_fit(X[part], y[part], classes=["no", "yes"])
        corrected.partial_fit(X[["age"]][part], y[part], classes=["no", "yes"])
    alone.fit(X[:50], y[:50])
    np.testing.assert_array_equal(trimmed.discretizer_.codes(X), alone.discretizer_.codes(X))
    assert (trimmed.n_rows_of_cuts_, trimmed.n_rows_seen_) == (50, 120)
    assert (corrected.n_cases_of_cuts_, corrected.n_cases_seen_) == (50, 120)


@pytest.mark.parametrize("estimator", [TrimmedClassifier(), SelectionCorrectedNB(), NaiveConformantClassifier()])
def test_what_partial_fit_refuses(estimator: Any) -> None:
    X, y = patients(3)
    X = X[["age"]]
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        clone(estimator).partial_fit(X, y)
    begun = clone(estimator).partial_fit(X, y, classes=["no", "yes"])
    with pytest.raises(ValueError, match="y must hold only the classes of the first call"):
        begun.partial_fit(X, np.full(len(X), "maybe"))
    with pytest.raises(ValueError, match="at least two labels"):
        clone(estimator).partial_fit(X, y, classes=["no"])
    wrong = {TrimmedClassifier: {"rows_weight": 1.0}, SelectionCorrectedNB: {"calibrate": True}}
    with pytest.raises((ValueError, AttributeError), match="partial_fit"):
        clone(estimator).set_params(**wrong.get(type(estimator), {"n_components": 2})).partial_fit(X, y, ["no", "yes"])


def test_a_mixture_has_no_partial_fit() -> None:
    for estimator in (NaiveConformantClassifier(n_components=2), NaiveConformantClassifier(covariance="full")):
        assert not hasattr(estimator, "partial_fit")
        with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
            _ = estimator.partial_fit


def test_partial_fit_after_a_fit_has_its_classes() -> None:
    X, y = patients(3)
    X = X[["age"]]
    for estimator in (TrimmedClassifier(), SelectionCorrectedNB(), NaiveConformantClassifier()):
        expected = clone(estimator).partial_fit(X, y, classes=["no", "yes"])
        found = clone(estimator).fit(X, y).partial_fit(X, y)
        np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


# Samples, and what is learned from one.


@given(
    n_rows=st.integers(1, 60),
    most=st.integers(1, 70),
    ends=st.lists(st.integers(0, 60), max_size=5),
    seed=st.integers(0, 100),
)
@settings(max_examples=100)
def test_a_sample_is_the_same_for_any_partition(n_rows: int, most: int, ends: list[int], seed: int) -> None:
    table = pd.DataFrame({"number": np.arange(n_rows), "text": [f"row {i}" for i in range(n_rows)]})
    cuts = [0, *sorted(min(end, n_rows) for end in ends), n_rows]
    parts = [table.iloc[start:end] for start, end in itertools.pairwise(cuts)]
    sample = Batches.of(parts).sample(most, seed)
    lots = np.random.default_rng(seed).random(n_rows)
    drawn = np.sort(np.argsort(lots)[:most])
    pd.testing.assert_frame_equal(sample.reset_index(drop=True), table.iloc[drawn].reset_index(drop=True))


def test_the_density_of_an_expectation_is_that_of_rows_of_the_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    fitted = LogisticRegression(max_iter=1000).fit(X, y)
    for number in range(3):
        X.assign(label=y).iloc[50 * number : 50 * (number + 1)].to_parquet(tmp_path / f"{number}.parquet")
    gaps = X.mask(np.random.default_rng(0).random(X.shape) < 0.4)
    whole, parts = tb.expect(fitted, X), tb.expect(fitted, tmp_path)
    assert (parts.predict_proba(gaps) == whole.predict_proba(gaps)).all()
    assert whole.n_rows_of_density_ == parts.n_rows_of_density_ == 150
    monkeypatch.setattr(expected, "MOST_ROWS", 60)
    assert tb.expect(fitted, tmp_path).n_rows_of_density_ == 60
    nameless = LogisticRegression(max_iter=1000).fit(X.to_numpy(), y)
    assert tb.expect(nameless, [X[:90], X[90:]]).n_rows_of_density_ == 60
    with pytest.raises(ValueError, match="X must be a table where the classifier is fitted, too, got rows in batches"):
        ExpectedClassifier(fitted).fit(tmp_path, y)
