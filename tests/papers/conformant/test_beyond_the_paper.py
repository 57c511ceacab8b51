"""What the experiments of the NaCL paper show beyond it: mixtures, and pictures of further explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.papers.configuration import Catalogue
from trimbench.papers.conformant.curves import Figure3, NaiveBayesCrossing
from trimbench.papers.conformant.figure6 import Figure6, evidence_bars, image_grid
from trimbench.papers.conformant.mask_sweep import (
    METHODS,
    MIXTURE,
    MixtureSettings,
    conformant_mixture,
    evaluate,
    evaluation_cells,
    fit_mixture,
    mixture_cells,
)
from trimbench.papers.conformant.tasks import Task, encoded_rows, fitted, make_task
from trimbench.papers.data.masks import Missingness
from trimbench.papers.execution.job import arguments_of
from trimbench.papers.validation import ConfigurationError

from ..command_line import PROJECT, write
from ..experiments import inputs_of, keys_of, outcome_of, points_of, tables_of

COMPONENTS = MixtureSettings(n_components=4, rows=600)
TITLE = METHODS[MIXTURE]


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for remembered in (encoded_rows, fitted, conformant_mixture):
        remembered.cache_clear()
    return make_task(inputs_of(), "digits", "paper", seed=1)


def test_classifiers_of_the_experiments_are_at_the_optimum(digits: Task) -> None:
    rows, found = encoded_rows(digits), fitted(digits)
    # Where the gradient of the mean loss vanishes, the convex loss is least.
    residuals = (found.probabilities(rows.train) - np.eye(10)[rows.train_labels]) / len(rows.train)
    penalty = 1 / (digits.protocol.inverse_penalty * len(rows.train))
    assert np.abs(rows.train.T @ residuals + penalty * found.weights).max() < 1.1e-6
    assert np.abs(residuals.sum(axis=0)).max() < 1.1e-6


def test_mixtures_are_those_of_the_library_and_are_remembered(digits: Task) -> None:
    rows, classifier = encoded_rows(digits), fitted(digits)
    hidden = np.where(np.random.default_rng(0).random(rows.test.shape) < 0.5, np.nan, rows.test)
    first, seconds = conformant_mixture(digits, COMPONENTS)
    conformant_mixture.cache_clear()
    again, seconds_again = conformant_mixture(digits, COMPONENTS)
    assert (first.n_components, fit_mixture(digits, COMPONENTS)["learned_from"]) == (4, 600)
    assert seconds == seconds_again, "it is read, not learned again"
    np.testing.assert_array_equal(again.predict_proba(hidden), first.predict_proba(hidden))
    whole, _ = conformant_mixture(digits, MixtureSettings(n_components=4))
    given = SimpleNamespace(coef_=classifier.weights.T, intercept_=classifier.biases, classes_=np.arange(10))
    ours = tb.conform(given, rows.train, n_components=4)
    np.testing.assert_allclose(whole.predict_proba(hidden), ours.predict_proba(hidden), atol=1e-12)


def test_a_mixture_is_one_more_method_of_the_same_masks(digits: Task) -> None:
    (fit,) = mixture_cells([digits], COMPONENTS)
    found = fit_mixture(**arguments_of(fit.job))
    assert float(str(found["difference"])) < 1e-12
    assert float(str(found["residual"])) < 1e-10
    assert not mixture_cells([digits], None)
    without, having = (
        evaluate(**arguments_of(evaluation_cells(digits, [0.8], 1, Missingness(), 0, mixture=how)[0].job))
        for how in (None, COMPONENTS)
    )
    assert {name: having[name] for name in without} == without
    assert set(having) - set(without) == {f"{MIXTURE}/{key}" for key in ("accuracy", "cross_entropy", "f1_weighted")}
    assert float(str(having[f"{MIXTURE}/accuracy"])) > float(str(having["nacl/accuracy"]))


def masks(mixture: list[float], naive_bayes: list[float]) -> pd.DataFrame:
    """Two masks at each of 0, 50, 90 and 95 % missing, and the fit of the mixture."""
    common = {"dataset": "mnist", "title": "MNIST", "status": "ok", "job": "one", "encoding": "authors"}
    lines = [
        {
            **common,
            "part": "masks",
            "missing": share / 100,
            "missing_percent": share,
            f"{MIXTURE}/accuracy": ours + shift,
            "naive_bayes/accuracy": theirs + 2 * shift,
            "nacl/accuracy": 0.9 - share / 100,
        }
        for share, ours, theirs in zip((0.0, 50.0, 90.0, 95.0), mixture, naive_bayes, strict=True)
        for shift in (0.0, 0.01)
    ]
    fit = {"components": 20, "learned_from": 100, "fit_seconds": 1.5, "residual": 1e-14, "difference": 1e-15}
    return pd.DataFrame([*lines, {**common, "part": "mixture", **fit}])


def test_the_crossing_of_the_mixture_and_its_least_lead() -> None:
    experiment = NaiveBayesCrossing(datasets=["mnist"], missing=[0.0, 0.5, 0.9, 0.95], mixture=COMPONENTS)
    found = experiment.outcome(masks([0.9, 0.86, 0.75, 0.6], [0.8, 0.82, 0.7, 0.7]))
    (lead,) = tables_of(found)["mixture_leads"].to_dict("records")
    # Pairs of one mask: 4 and 3 points at 50 %, where the mean is least; 10 points behind at 95 %, which is past 90.
    assert (lead["masks"], lead["at missing (%)"]) == (2, 50)
    assert lead["least lead (points)"] == pytest.approx(3.5)
    assert lead["interval low"] < 3.5 < lead["interval high"]
    assert 90 < lead["crossing (%)"] < 95
    assert tables_of(found)["mixtures"]["components"].tolist() == [20]
    assert {number.quantity for number in found.numbers} == {"crossing_percent", "complete_lead"}
    assert TITLE in set(found.figures[0].points["series"])
    assert any("beyond the paper" in note for note in found.notes)


def test_figure_3_shows_the_mixture_and_compares_nothing_with_it() -> None:
    experiment = Figure3(datasets=["mnist"], missing=[0.0, 0.5, 0.9, 0.95], encodings=["authors"], mixture=COMPONENTS)
    found = experiment.outcome(masks([0.9, 0.86, 0.75, 0.6], [0.8, 0.82, 0.7, 0.7]))
    accuracy = tables_of(found)["mixture_accuracy"]
    assert accuracy["missing (%)"].tolist() == [50, 90]
    assert accuracy["mixture"].tolist() == pytest.approx([0.865, 0.755])
    assert (accuracy["interval low"] < accuracy["mixture"]).all()
    values = {number.quantity: number.value for number in found.numbers}
    assert set(values) == {"NaCL", "outperformed", "error_bar_percent"}
    assert values["error_bar_percent"] == 0, "NaCL is the same on both masks, and the mixture is not in the print"
    (drawn,) = [figure for figure in found.figures if figure.name == "mnist_accuracy"]
    assert TITLE in set(drawn.points["series"])
    assert drawn.title == "MNIST: accuracy, with a mixture (beyond the paper)"
    assert TITLE in tables_of(found)["mnist_accuracy"].columns


def test_figure_6_of_data_that_the_user_declares_and_its_pictures_beyond_the_paper(tmp_path: Path) -> None:
    protocol = 'dataset: digits\ntitle: Digits 3 v 5\nclasses: ["3", "5"]\nimage: [8, 8]\n'
    write(tmp_path / "protocol", {"digits_3v5.yaml": protocol})
    catalogue = Catalogue((tmp_path, *PROJECT.folders))
    experiment = Figure6(datasets=["digits_3v5"], rows=[0, 3], tables=["breast_cancer"], table_rows=[2])
    outcome = outcome_of(experiment, catalogue)
    shown, beyond = (tables_of(outcome)[name] for name in ("", "beyond"))
    assert shown["data"].tolist() == ["Digits 3 v 5"] * 2
    assert shown["row"].tolist() == [0, 3]
    assert (shown["size of the explanation"] <= shown["support features"]).all()
    assert beyond["data"].tolist() == ["Digits 3 v 5"] * 2 + ["breast_cancer"]
    assert (beyond["probability high"] >= 0.95).all()
    assert (beyond["features kept"] >= beyond["proven least"]).all()
    images, bars = (points_of(outcome)[name] for name in ("beyond", "breast_cancer_2"))
    kept = images[images["column"].str.contains("keep the class")].groupby("row")["value"].count()
    assert sorted(kept) == sorted(beyond["features kept"][:2])
    assert (bars["series"] == "in the explanation").sum() == beyond["features kept"].iloc[2]
    for change, message in (
        ({"rows": [0, 900]}, r"rows must be less than 7\d, the number of test rows of digits_3v5, got 900"),
        ({"datasets": ["breast_cancer"]}, "datasets must be protocols with an image, got 'breast_cancer'"),
        ({"datasets": ["digits"]}, "datasets must have two classes, got 10 in 'digits'"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            keys_of(replace(experiment, **change), catalogue)


def test_figures_of_explanations_show_what_was_chosen() -> None:
    evidence = [0.1, -3.0, 2.0, 0.0, 0.5]
    table = pd.DataFrame({"feature": list("abcde"), "evidence": evidence, "chosen": [True, False, True, False, False]})
    bars = evidence_bars("A title", table, most=3)
    assert bars.points["bar"].tolist() == ["c", "a", "b"], "the chosen ones, the strongest of the rest, by evidence"
    assert bars.points["x"].tolist() == [2.0, 0.1, -3.0]
    assert (bars.points["series"] == bars.highlight).tolist() == [True, True, False]
    assert len(evidence_bars("A title", table, most=1).points) == 2, "no chosen feature is left out"
    grid = image_grid("A title", {"one": {"all": [[0, 1, np.nan], [1, 0, 1]]}, "two": {"all": [[1, 0, 0], [0, 0, 0]]}})
    assert list(grid.points.columns) == ["row", "column", "y", "x", "value"]
    assert len(grid.points) == 12
    assert grid.points.query("row == 'one' and y == 0 and x == 1")["value"].tolist() == [1.0]
    assert grid.points["value"].isna().sum() == 1
