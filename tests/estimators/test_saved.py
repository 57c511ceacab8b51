"""`save` and `load`: any fitted model comes back to the last bit, and a damaged file is named, never believed."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import random
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import trimbench as tb
from tests.networks.random_models import naive_bayes_models, networks
from trimbench.conformant.problem import solve_newton
from trimbench.estimators import (
    ExpectedClassifier,
    NaiveConformantClassifier,
    SelectionCorrectedNB,
    TrimmedClassifier,
)
from trimbench.estimators.densities.products import ProductMixture
from trimbench.selection_bias.mixture import MixtureSampler

pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS = st.integers(0, 2**32 - 1)
SOME = settings(max_examples=3, phases=[Phase.generate], deadline=None)
LABELS: list[Any] = [
    [0, 1, 2],
    ["no", "yes", "perhaps"],
    [False, True],
    [-1.0, 2.0, 5.0],
    np.array(["2020-01-01", "2021-05-06"], dtype="M8[D]"),
]


class Case:
    """A fitted model with rows to predict, and the classifier without which it cannot be loaded."""

    def __init__(self, model: Any, rows: Any, estimator: Any = None) -> None:
        self.model, self.rows, self.estimator = model, rows, estimator

    def load(self, path: Path) -> Any:
        return tb.load(path, estimator=self.estimator)

    def answers(self, model: Any) -> list[Any]:
        found = [model.predict_proba(self.rows)]
        return [*found, *(getattr(model, name)(self.rows) for name in ("predict", "decision") if hasattr(model, name))]


def labels(rng: np.random.Generator, n: int, n_classes: int, kinds: Any = None) -> Any:
    kinds = LABELS[rng.integers(len(LABELS))] if kinds is None else kinds
    names = np.asarray(kinds)[:n_classes]
    return names[np.r_[np.arange(len(names)), rng.integers(0, len(names), n - len(names))]]


def people(rng: np.random.Generator, n: int = 40) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": rng.normal(50, 9, n).round(1),
            "town": rng.choice(["x", "y", "z"], n),
            "smoker": rng.random(n) < 0.3,
            "rooms": rng.integers(0, 4, n),
            "ward": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "a", "never"]),
            "beds": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "note": pd.array(rng.choice(["p", "q"], n), dtype="string"),
        }
    )


def with_gaps(frame: Any, rng: np.random.Generator) -> Any:
    if isinstance(frame, np.ndarray):
        return np.where(rng.random(frame.shape) < 0.3, np.nan, frame)
    return frame.assign(**{name: frame[name].mask(rng.random(len(frame)) < 0.3) for name in ("age", "town", "ward")})


def pipeline(last: Any) -> Any:
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer(
            (encoder, ["town", "ward", "note"]),
            (StandardScaler(), ["age"]),
            ("passthrough", ["rooms", "smoker", "beds"]),
        ),
        last,
    )


def conformant(rng: np.random.Generator) -> Case:
    X = people(rng)
    rows = with_gaps(X, rng)
    model = NaiveConformantClassifier(
        n_components=int(rng.integers(1, 3)),
        covariance=["full", "diagonal"][rng.integers(2)],
        max_iter=20,
        numeric=["gaussian", "cut"][rng.integers(2)],
        categorical_features=["rooms"] if rng.random() < 0.5 else "from_dtype",
    )
    return Case(model.fit(rows if rng.random() < 0.5 else X, labels(rng, 40, rng.integers(2, 4))), rows)


def conformant_with_class_of_weight_0(rng: np.random.Generator) -> Case:
    X = people(rng)[["age", "rooms", "smoker"]].to_numpy(dtype=float)
    y = labels(rng, 40, 3, ["u", "v", "w"])
    return Case(
        NaiveConformantClassifier(n_components=1, class_weight={"u": 1, "v": 0, "w": 2.5}).fit(X, y), with_gaps(X, rng)
    )


def conformant_of_pipeline(rng: np.random.Generator) -> Case:
    X = people(rng)
    given_one = pipeline(LogisticRegression(max_iter=500)).fit(X, labels(rng, 40, rng.integers(2, 4)))
    model = NaiveConformantClassifier.from_fitted(given_one, X, n_components=int(rng.integers(1, 3)))
    return Case(model, with_gaps(X, rng), given_one)


def conformant_model(rng: np.random.Generator) -> Case:
    kinds = (
        rng.integers(0, 2, (40, 3)),
        np.eye(3)[rng.integers(0, 3, 40)],
        rng.normal(size=(40, 2)),
        np.full((40, 1), 5),
    )
    X = np.hstack(kinds).astype(float)
    regression = LogisticRegression().fit(X, labels(rng, 40, rng.integers(2, 4)))
    covariance = ["full", "diagonal"][rng.integers(2)]
    frame = pd.DataFrame(X, columns=[*"abcdefghi"]) if rng.random() < 0.5 else X
    model = tb.conform(
        regression,
        frame,
        categorical=[[3, 4, 5]],
        real=[6, 7, 8],
        n_components=int(rng.integers(1, 3)),
        covariance=covariance,
        smoothing=float(rng.integers(0 if covariance == "diagonal" else 1, 2)),
    )
    rows = X.copy()
    rows[rng.random(40) < 0.5, 3:6] = np.nan
    return Case(model, np.where(rng.random(X.shape) < np.array([0.4] * 3 + [0] * 3 + [0.4] * 3), np.nan, rows))


def corrected(rng: np.random.Generator) -> Case:
    X = np.where(rng.random((50, 8)) < 0.6, 1.0, 0.0) + rng.normal(size=(50, 8)) * (rng.random() < 0.5)
    kind = ["binary", "gaussian"][rng.integers(2)]
    model = SelectionCorrectedNB(k=3, features=kind, n_alpha=8, calibrate=bool(rng.random() < 0.3))
    given_rows = pd.DataFrame(X, columns=[*"abcdefgh"]) if rng.random() < 0.5 else X
    return Case(model.fit(given_rows, labels(rng, 50, rng.integers(2, 4))), with_gaps(X, rng))


def corrected_model(rng: np.random.Generator) -> Case:
    kind: Any = ["binary", "categorical", "gaussian"][rng.integers(3)]
    X = rng.integers(0, 3 if kind == "categorical" else 2, (16, 9))
    model = tb.fit_selection_corrected(X, np.r_[0, 1, rng.integers(0, 2, 14)], k=3, features=kind)
    return Case(model, X)


def posterior(rng: np.random.Generator) -> Case:
    X = rng.integers(0, 2, (30, 6))
    sampler = MixtureSampler(n_chains=2, n_warmup=2, n_draws=4)
    return Case(
        tb.fit_selection_corrected(X, np.r_[0, 1, rng.integers(0, 2, 28)], k=2, features="mixture", sampler=sampler), X
    )


def expected(rng: np.random.Generator) -> Case:
    X = people(rng)
    given_one = pipeline(RandomForestClassifier(4, random_state=0)).fit(X, labels(rng, 40, rng.integers(2, 4)))
    density = ["products", "gaussian", "neighbours"][rng.integers(3)]
    model = ExpectedClassifier(FrozenEstimator(given_one), density=density, n_draws=16, random_state=3)
    return Case(model.fit(with_gaps(X, rng) if rng.random() < 0.5 else X), with_gaps(X, rng), given_one)


def expected_of_array(rng: np.random.Generator) -> Case:
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3))
    y = labels(rng, 50, 2)
    last = [RandomForestClassifier(4, random_state=0), RidgeClassifier(), LogisticRegression()][rng.integers(3)]
    model = ExpectedClassifier(last, n_draws=16, random_state=3, density=["auto", "products"][rng.integers(2)])
    model.fit(X, y)
    return Case(model, with_gaps(X, rng), model.estimator_)


def trimmed(rng: np.random.Generator) -> Case:
    X = people(rng)
    model = TrimmedClassifier(2, rows_weight=0, costs={**dict.fromkeys(X.columns, 1), "age": 2.0}).fit(
        X, labels(rng, 40, 2, LABELS[rng.integers(3)])
    )
    return Case(model, with_gaps(X, rng))


CASES: list[Callable[[np.random.Generator], Case]] = [
    conformant,
    conformant_with_class_of_weight_0,
    conformant_of_pipeline,
    conformant_model,
    corrected,
    corrected_model,
    posterior,
    expected,
    expected_of_array,
    trimmed,
]


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
@given(seed=SEEDS)
@SOME
def test_predictions_come_back_to_the_last_bit(
    make: Callable[[np.random.Generator], Case], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    case = make(np.random.default_rng(seed))
    path = tmp_path_factory.getbasetemp() / "model.json"
    tb.save(case.model, path)
    text = path.read_text(encoding="utf-8")
    again = case.load(path)
    assert type(again) is type(case.model)
    for one, another in zip(case.answers(case.model), case.answers(again), strict=True):
        assert one.dtype == another.dtype
        np.testing.assert_array_equal(one, another)
    tb.save(again, path)
    assert path.read_text(encoding="utf-8") == text
    assert "NaN" not in text
    assert "Infinity" not in text


@given(model=naive_bayes_models() | networks())
@settings(max_examples=10, phases=[Phase.generate], deadline=None)
def test_one_function_reads_what_the_methods_of_classes_write(
    model: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, other = (tmp_path_factory.getbasetemp() / name for name in ("method.json", "function.json"))
    model.save(path)
    tb.save(model, other)
    assert path.read_bytes() == other.read_bytes()
    again = tb.load(path)
    assert type(again) is type(model)
    assert again.to_dict() == model.to_dict()


def test_a_trimming_is_saved_as_its_classifier(tmp_path: Path) -> None:
    model = tb.NaiveBayes([0.5, 0.5], [[[0.9, 0.1], [0.2, 0.8]]] * 3)
    found = tb.trim(tb.BayesianClassifier(model, positive="1"), budget=1)
    tb.save(found, tmp_path / "trimmed.json")
    assert tb.load(tmp_path / "trimmed.json").features == found.features


def test_what_else_an_estimator_answers_is_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3)) + rng.integers(0, 2, (80, 1))
    y = np.array(["no", "yes"])[(X.sum(axis=1) > 1).astype(int)]
    rows = with_gaps(X, rng)[:6]
    one = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
    tb.save(one, tmp_path / "c.json")
    again = tb.load(tmp_path / "c.json")
    assert again.get_params() == one.get_params()
    assert again.explain(X[0]).features == one.explain(X[0]).features
    np.testing.assert_array_equal(again.next_feature(rows).gains, one.next_feature(rows).gains)
    np.testing.assert_array_equal(again.same_decision_probability(rows), one.same_decision_probability(rows))
    np.testing.assert_array_equal(
        again.logistic_regression_.predict_proba(X), one.logistic_regression_.predict_proba(X)
    )
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    tb.save(first := tb.expect(forest, X), tmp_path / "e.json")
    second = tb.load(tmp_path / "e.json", estimator=forest)
    assert second.density_scores_ == first.density_scores_
    assert (second.is_exact_, second.n_rows_of_density_) == (first.is_exact_, first.n_rows_of_density_)
    for part, other in zip(first.decision_stability(rows), second.decision_stability(rows), strict=True):
        np.testing.assert_array_equal(part, other)
    selector = SelectionCorrectedNB(k=2).fit(X, y)
    tb.save(selector, tmp_path / "s.json")
    np.testing.assert_array_equal(tb.load(tmp_path / "s.json").transform(X), selector.transform(X))


def test_a_classifier_of_another_library_is_given_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, path = rng.normal(size=(40, 2)), tmp_path / "density.json"
    y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    tb.save(tb.expect(forest, X), path)
    for estimator, message in [
        (None, "estimator must be given to load a ExpectedClassifier: its file has all but the classifier"),
        (RandomForestClassifier(3).fit(X, y == "yes"), r"estimator must have the classes \['no', 'yes'\], got"),
        (RandomForestClassifier(3), r"estimator must have the classes \['no', 'yes'\], got \[\]"),
        (RandomForestClassifier(3).fit(X[:, :1], y), "estimator must have 2 columns"),
        (RidgeClassifier().fit(X, y), "estimator must have 2 columns, and predict_proba if it had, got a RidgeClass"),
    ]:
        with pytest.raises(ValueError, match=message):
            tb.load(path, estimator=estimator)
    assert isinstance(tb.load(path, estimator=FrozenEstimator(forest)).estimator_, FrozenEstimator)
    tb.save(SelectionCorrectedNB(k=1).fit(X, y), path)
    with pytest.raises(ValueError, match="estimator must be left out to load a SelectionCorrectedNB, which is whole"):
        tb.load(path, estimator=forest)


def test_a_pipeline_must_be_the_one_that_the_model_agrees_with(tmp_path: Path) -> None:
    case, path = conformant_of_pipeline(np.random.default_rng(1)), tmp_path / "model.json"
    tb.save(case.model, path)
    X = people(np.random.default_rng(2))
    other = pipeline(LogisticRegression(C=0.1)).fit(X, labels(np.random.default_rng(1), 40, 3))
    for estimator in (None, other):
        with pytest.raises(ValueError, match=rf"{path}: estimator must (have|be)"):
            tb.load(path, estimator=estimator)


class OwnDensity:
    """A density of one's own."""

    fit = draw = None


def test_what_a_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    forest = RandomForestClassifier(2, random_state=0)
    dated = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(pd.date_range("2020-01-01", periods=2).repeat(15))})
    of_dates = make_pipeline(OneHotEncoder(handle_unknown="ignore"), forest).fit(dated, y)
    for model, message in [
        (LogisticRegression(), "model must be a model or an estimator of trimbench, one of .* got LogisticRegression"),
        (
            NaiveConformantClassifier(solver=solve_newton, n_components=1, covariance="diagonal").fit(X, y),
            "solver cannot be saved: a file can hold text, numbers, lists and mappings, not a function",
        ),
        (ExpectedClassifier(forest, random_state=np.random.RandomState(0)).fit(X, y), "random_state cannot be saved"),
        (ExpectedClassifier(forest, density=ProductMixture(2)).fit(X, y), "density cannot be saved: a file can hold"),
        (tb.expect(of_dates, dated), "a file can hold values that are text, numbers or truth values, not '2020"),
    ]:
        with pytest.raises(TypeError, match=message):
            tb.save(model, tmp_path / "model.json")
    with pytest.raises(NotFittedError):
        tb.save(SelectionCorrectedNB(), tmp_path / "model.json")
    assert [*tmp_path.iterdir()] == []


# Damaged files.


@functools.cache
def small() -> list[Case]:
    """Return a small case of each kind of file."""
    with warnings.catch_warnings(action="ignore"):  # that chains this short have not converged
        return list(_small(np.random.default_rng(0)))


def _small(rng: np.random.Generator) -> Iterator[Case]:
    X = rng.normal(size=(24, 2)).round(2)
    y = np.array(["u", "v"])[(X[:, 0] + rng.normal(size=24) > 0).astype(int)]
    rows = with_gaps(X, rng)
    frame = pd.DataFrame({"age": X[:, 0], "town": pd.Categorical(np.where(X[:, 1] > 0, "p", "q"))})
    holes = frame.assign(age=frame["age"].mask(rng.random(24) < 0.3))
    yield Case(NaiveConformantClassifier(n_components=2, covariance="diagonal").fit(frame, y), holes)
    yield Case(NaiveConformantClassifier(n_components=1, covariance="full").fit(X, y), rows)
    regression = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    yield Case(NaiveConformantClassifier.from_fitted(regression, X, n_components=1), rows, regression)
    yield Case(SelectionCorrectedNB(k=1, n_alpha=4, calibrate=True).fit(X, y), rows)
    yield Case(SelectionCorrectedNB(k=1, n_alpha=4, features="gaussian", calibrate=False).fit(X, y), rows)
    sampler = MixtureSampler(n_chains=1, n_warmup=1, n_draws=2)
    binary = (X > 0).astype(int)
    yield Case(tb.fit_selection_corrected(binary, y == "v", k=1, features="mixture", sampler=sampler), binary)
    forest = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"),
        RandomForestClassifier(2, random_state=0),
    ).fit(frame, y)
    for density in ("products", "gaussian", "neighbours"):
        model = ExpectedClassifier(FrozenEstimator(forest), density=density, n_draws=4, random_state=0).fit(frame)
        yield Case(model, holes, forest)


ODD: list[Any] = [
    *(0, 1, -1, 2, 0.5, 1e308, -1e308, 2**31, 2**63, 10**400, float("nan"), float("inf"), None, True, False),
    *("", "a", "nan", "inf", "O", "<U99999999", [], {}, [[]], [1], {"a": 1}),
]


def places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, entry in entries:
        yield (*at, key)
        yield from places(entry, (*at, key))


def damaged(text: str, source: random.Random) -> bytes:
    """Return a file of which bytes are cut off, lost or replaced, or entries are dropped or changed."""
    if source.random() < 0.3:
        content = bytearray(text.encode())
        place = source.randrange(len(content))
        what = source.randrange(3)
        content[place : [len(content), place + 3, place + 1][what]] = (
            b"" if what < 2 else bytes([source.randrange(256)])
        )
        return bytes(content)
    entries = json.loads(text)
    *path, last = source.choice(list(places(entries)))
    inside = entries
    for key in path:
        inside = inside[key]
    match source.randrange(4):
        case 0:
            del inside[last]
        case 1 if type(inside[last]) in (int, float):
            inside[last] *= source.choice([-1, 2, 10, 0.5, 1.001])
        case 2 if isinstance(inside[last], list):
            inside[last].append(copy.deepcopy(inside[last][0]) if inside[last] else 0)
        case _:
            inside[last] = source.choice(ODD)
    return json.dumps(entries).encode()


def loaded(case: Case, path: Path) -> tuple[Any, str]:
    try:
        return case.load(path), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("place", range(9))
def test_a_damaged_file_is_named_or_holds_a_model(tmp_path: Path, place: int) -> None:
    case = small()[place]
    tb.save(case.model, path := tmp_path / "model.json")
    text, source, n_refused = path.read_text(encoding="utf-8"), random.Random(place), 0
    for _ in range(100):
        path.write_bytes(damaged(text, source))
        again, message = loaded(case, path)  # which catches a ValueError, and nothing else
        if again is None:
            assert message.startswith(str(path))
            assert len(message) <= 500
            n_refused += 1
            continue
        with contextlib.suppress(ValueError):  # such as a category that the classifier does not know
            assert again.predict_proba(case.rows).shape == (len(case.rows), 2)
    assert n_refused > 50


@pytest.mark.parametrize("place", range(9))
def test_a_file_that_is_cut_short_is_named(tmp_path: Path, place: int) -> None:
    case = small()[place]
    tb.save(case.model, path := tmp_path / "model.json")
    text = path.read_text(encoding="utf-8")
    for length in np.linspace(0, len(text) - 3, 12, dtype=int).tolist():
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))} must be a JSON file with a format of trimbench"):
            case.load(path)


def changed(model: Any, path: Path, *at: Any, to: Any) -> None:
    tb.save(model, path)
    inside = content = json.loads(path.read_text(encoding="utf-8"))
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = to
    path.write_text(json.dumps(content), encoding="utf-8")


WRONG: list[tuple[tuple[Any, ...], Any, str]] = [
    (
        ("format",),
        "trimbench.ConformantModel/2",
        "must have a format of trimbench.save, got 'trimbench.ConformantModel/2'",
    ),
    (("format",), None, "got None; is it no model, or saved by a later version?"),
    (("more",), 1, ": a model must have the entries"),
    (("biases",), [0.0], ": biases must have 2 classes, as the entries before it, got 1"),
    (("biases",), [0.0, float("nan")], ": biases must have finite numbers, got 'nan'"),
    (("biases",), [0.0, "nan"], ": biases must have finite numbers, got 'nan'"),
    (("biases",), [0.0, True], ": biases must have finite numbers, got 'True'"),
    (("biases",), [0.0, 10**400], ": biases must have finite numbers, got '1000"),
    (("weights", "shape"), [2, 2], ": weights must have a shape with 2 axes for its 6 numbers"),
    (("weights", "order"), "A", ": weights must have a shape with 2 axes for its 6 numbers, in the order C or F"),
    (("scales",), [0.0], ": scales must have finite numbers above 0, got '0.0'"),
    (("free",), [0], ": free must have"),
    (("classes", "labels"), ["u", "u"], ": classes must have distinct labels, got ['u', 'u']"),
    (("classes", "type"), "|V3", ": the type of labels must be text, numbers, truth values or times, got '|V3'"),
    (("classes", "type"), "what", ": the type of labels must be one of numpy's, got 'what'"),
    (("components",), [], ": components must be a list of 1 entries or more, got []"),
    (("components", 0, "log_weight"), 0.0, ": log_weights of components must have probabilities that sum to 1, got"),
    (("components", 1, "pseudo"), -1, ": components[1].pseudo must have finite numbers of at least 0, got '-1.0'"),
    (("components", 0, "parameters"), [0.5], ": parameters of a component must be"),
    (
        ("components", 0, "normal_means"),
        {"shape": [1, 0], "order": "C", "numbers": []},
        ": normal_means and normal_cov",
    ),
]


@pytest.mark.parametrize(("at", "to", "message"), WRONG)
def test_what_is_wrong_with_an_entry_is_said(tmp_path: Path, at: tuple[Any, ...], to: Any, message: str) -> None:
    changed(small()[0].model.model_, path := tmp_path / "model.json", *at, to=to)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        tb.load(path)
    assert str(caught.value).startswith(str(path))


def test_probabilities_of_a_density_and_of_features_must_sum_to_one(tmp_path: Path) -> None:
    path, cases = tmp_path / "model.json", small()
    changed(cases[3].model, path, "model", "features", "theta", "numbers", 0, to=0.9)
    with pytest.raises(ValueError, match="theta must have probabilities that sum to 1, got a sum of"):
        tb.load(path)
    changed(cases[6].model, path, "density", "tables", "numbers", 0, to=0.9)
    with pytest.raises(ValueError, match="tables must have probabilities that sum to 1, got a sum of"):
        cases[6].load(path)
    changed(cases[7].model, path, "density", "covariances", "numbers", to=[-1.0])
    with pytest.raises(ValueError, match="density must have matrices that can be inverted"):
        cases[7].load(path)


def test_a_donor_has_only_categories_that_there_are(tmp_path: Path) -> None:
    case, path = small()[8], tmp_path / "model.json"
    changed(case.model, path, "density", "donors", "numbers", 1, to=48)
    with pytest.raises(ValueError, match="density must have the categories of column 'town', got others"):
        case.load(path)


def test_a_label_cannot_ask_for_more_memory_than_its_text(tmp_path: Path) -> None:
    changed(small()[0].model.model_, path := tmp_path / "model.json", "classes", "type", to="<U500000000")
    with warnings.catch_warnings(action="error"):
        assert tb.load(path).classes.tolist() == ["u", "v"]
