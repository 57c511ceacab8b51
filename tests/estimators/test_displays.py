"""Displays: the numbers that they draw, what they draw, and how notebooks show results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import trimbench as tb
from trimbench import _pictures
from trimbench.estimators import (
    EvidenceDisplay,
    NaiveConformantClassifier,
    StabilityDisplay,
    TrimmedClassifier,
    TrimmingCurveDisplay,
    displays,
)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    with mpl.rc_context():
        plt.switch_backend("agg")
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series[Any]]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.filter(like="mean"), y


def trimmed(table: tuple[pd.DataFrame, Any], **settings: Any) -> TrimmedClassifier:
    return TrimmedClassifier(**{"budget": 2, "rows_weight": 0, **settings}).fit(*table)


class TestTrimmingCurve:
    def test_is_that_of_the_classifier_before_it_was_trimmed(self, table: Any) -> None:
        estimator = trimmed(table)
        display = TrimmingCurveDisplay.from_estimator(estimator, [3, 1])
        expected = tb.trimming_curve(estimator.trimming_.original, [3, 1])
        assert display.agreement.tolist() == [trimming.agreement for trimming in expected]
        (line,) = display.ax_.get_lines()
        assert line.get_xdata().tolist() == [1, 3]
        assert line.get_ydata().tolist() == display.agreement[::-1].tolist()

    def test_of_a_classifier_itself(self, table: Any) -> None:
        original = trimmed(table).trimming_.original
        _, ax = plt.subplots()
        display = TrimmingCurveDisplay.from_estimator(original, [1], ax=ax, color="red")
        assert display.ax_ is ax
        assert ax.get_lines()[0].get_color() == "red"

    def test_keeps_to_what_the_estimator_was_told(self, table: Any) -> None:
        X, _ = table
        first, second, *others = X.columns
        settings = {
            "groups": {"both": [first, second]},
            "forbidden": others[:2],
            "costs": {"both": 1, **dict.fromkeys(others, 1)},
        }
        estimator = trimmed(table, **settings, budget=1)
        (trimming,) = TrimmingCurveDisplay.from_estimator(estimator, [1]).trimmings
        assert trimming.features == estimator.features_
        (trimming,) = TrimmingCurveDisplay.from_estimator(estimator, [9]).trimmings
        assert not {*others[:2]} & {*trimming.features}

    def test_shades_what_is_not_certain(self, table: Any) -> None:
        original = trimmed(table).trimming_.original
        stopped = tb.trim(original, 4, evaluation_limit=1)
        assert stopped.upper_bound > stopped.agreement_interval[0]
        display = TrimmingCurveDisplay([4], [stopped]).plot()
        assert len(display.ax_.collections) == 1

    def test_says_what_is_wrong(self, table: Any, tmp_path: Any) -> None:
        with pytest.raises(ValueError, match="one trimming for each of the budgets, got 0 for 1"):
            TrimmingCurveDisplay([1], [])
        trimmed(table).save(tmp_path / "trimmed.json")
        loaded = TrimmedClassifier.load(tmp_path / "trimmed.json")
        with pytest.raises(ValueError, match="fit it again"):
            TrimmingCurveDisplay.from_estimator(loaded, [1])


class TestEvidence:
    def test_bars_are_the_evidence_of_the_explanation(self, table: Any) -> None:
        X, y = table
        estimator = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
        display = EvidenceDisplay.from_estimator(estimator, X.iloc[0], max_features=3)
        explanation = estimator.explain(X.iloc[0])
        expected = explanation.table().head(3)
        bars = display.ax_.patches
        assert [bar.get_width() for bar in bars][::-1] == expected["evidence"].tolist()
        filled = [bar.get_facecolor()[-1] > 0 for bar in bars][::-1]
        assert filled == expected["chosen"].tolist()
        assert display.ax_.get_ylabel() == "the 3 strongest of 10 features"

    def test_with_a_probability(self, table: Any) -> None:
        X, y = table
        estimator = NaiveConformantClassifier(n_components=2, covariance="diagonal").fit(X, y)
        display = EvidenceDisplay.from_estimator(estimator, X.iloc[0], delta=0.9)
        assert display.explanation.features == estimator.explain(X.iloc[0], delta=0.9).features

    def test_says_what_is_wrong(self, table: Any) -> None:
        X, y = table
        with pytest.raises(TypeError, match=r"must explain its decisions.*got LogisticRegression"):
            EvidenceDisplay.from_estimator(LogisticRegression(), X.iloc[0])
        estimator = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
        with pytest.raises(ValueError, match="max_features must be a whole number, 1 or more, got 0"):
            EvidenceDisplay(estimator.explain(X.iloc[0]), max_features=0)


class TestStability:
    def test_bins_hold_what_was_stated_and_what_stayed(self) -> None:
        rng = np.random.default_rng(0)
        stated = rng.random(500)
        stays = rng.random(500) < stated
        display = StabilityDisplay(stated, stays, n_bins=4)
        for place in range(4):
            inside = (stated >= place / 4) & (stated < (place + 1) / 4)
            assert display.n_rows[place] == inside.sum()
            assert display.stated[place] == pytest.approx(stated[inside].mean())
            assert display.true[place] == pytest.approx(stays[inside].mean())
            assert display.lower[place] < display.true[place] < display.upper[place]

    @pytest.mark.filterwarnings("ignore::trimbench.estimators.UnseenGapsWarning")
    def test_of_rows_whose_whole_is_known(self, table: Any) -> None:
        X, y = table
        expected = tb.expect(LogisticRegression(max_iter=5000).fit(X, y), X)
        rows = X.mask(np.random.default_rng(0).random(X.shape) < 0.6).head(80)
        display = StabilityDisplay.from_estimator(expected, rows, X.head(80))
        stability = expected.decision_stability(rows)
        assert display.stays is not None
        assert (display.stability == stability.probability).all()
        assert (display.stays == (stability.decision == expected.predict(X.head(80)))).all()
        assert display.n_rows.sum() == 80
        drawn = display.ax_.containers[0].lines[0]  # type: ignore[attr-defined]
        assert np.array_equal(drawn.get_ydata(), display.true)

    def test_of_a_conformant_model_whose_rows_are_not_known(self, table: Any) -> None:
        X, y = table
        estimator = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
        rows = X.mask(np.random.default_rng(0).random(X.shape) < 0.6).head(30)
        display = StabilityDisplay.from_estimator(estimator, rows)
        (line,) = display.ax_.get_lines()
        assert line.get_xdata().tolist() == sorted(estimator.same_decision_probability(rows))
        assert line.get_ydata()[0] == 1.0

    def test_says_what_is_wrong(self) -> None:
        with pytest.raises(ValueError, match="stability must be one probability for each row"):
            StabilityDisplay([0.5, 1.5])
        with pytest.raises(ValueError, match="stays must say for each of 1 rows"):
            StabilityDisplay([0.5], [True, False])
        with pytest.raises(TypeError, match=r"wrap it with trimbench\.expect"):
            StabilityDisplay.from_estimator(LogisticRegression(), [[0.0]])


def test_without_matplotlib_a_display_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*packages: str, extra: str, what: str) -> None:
        raise ImportError(f"{what}: {packages}, {extra}")

    monkeypatch.setattr(displays, "check_installed", absent)
    display = StabilityDisplay([0.5])
    with pytest.raises(ImportError, match=r"StabilityDisplay.plot: \('matplotlib',\), plot"):
        display.plot()


class TestHtml:
    @pytest.mark.filterwarnings("ignore::trimbench.estimators.UnseenGapsWarning")
    def test_results_are_tables_below_their_pictures(self, table: Any) -> None:
        X, y = table
        regression = LogisticRegression(max_iter=5000).fit(X, y)
        conformant = NaiveConformantClassifier(n_components=1, covariance="diagonal").fit(X, y)
        explanation = conformant.explain(X.iloc[0])
        stability = tb.expect(regression, X).decision_stability(X.mask(X.mean() < X).head(20))
        rows = trimmed(table, rows_weight=1).trimming_
        for result, word in (
            (trimmed(table).trimming_, "proven to be the best"),
            (rows, "agreement on rows"),
            (explanation, explanation.table()["feature"][0]),
            (stability, "decision"),
        ):
            text = result._repr_html_()
            assert text.startswith("<div><svg")
            assert word in text[text.index("<table") :]

    def test_without_matplotlib_there_is_the_table(self, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_pictures, "is_installed", lambda _: False)
        assert trimmed(table).trimming_._repr_html_().startswith("<div><table")

    def test_names_are_escaped(self) -> None:
        model = tb.NaiveBayes([0.4, 0.6], [[[0.9, 0.1], [0.2, 0.8]]], feature_names=["<script>"])
        text = tb.trim(tb.BayesianClassifier(model, positive="0"), 1)._repr_html_()
        assert "<script>" not in text
        assert "&lt;script&gt;" in text
