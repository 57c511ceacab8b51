"""The experiments of the NaCL paper and beyond it: what their tables say and their figures draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trimbench as tb
from trimbench.papers.conformant.curves import Figure3, NaiveBayesCrossing, stored_curves
from trimbench.papers.conformant.figure1 import conforming_models
from trimbench.papers.conformant.figure6 import Figure6, evidence_bars, image_grid
from trimbench.papers.conformant.imputers import EmMice, ImputerOptions
from trimbench.papers.conformant.mask_sweep import (
    METHODS,
    MIXTURE,
    MissingFeatures,
    MixtureSettings,
    conformant_mixture,
    curves,
    evaluate,
    evaluation_cells,
    fit_mixture,
    mixture_cells,
    summarise,
)
from trimbench.papers.conformant.protocols import Table2, Task, encoded_rows, fitted, make_task
from trimbench.papers.conformant.solvers import solve_synthetic
from trimbench.papers.conformant.tables_4_and_5 import Tables4And5
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.masks import Missingness
from trimbench.reproduction.execution.job import arguments_of
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.numbers import Number, Outcome
from trimbench.reproduction.vocabulary.reported import interpolated

from ..command_line import PROJECT, Command, table_of, write
from ..experiments import inputs_of, keys_of, outcome_of, points_of, rows_of, tables_of

# What the rows of every sweep hold.
COMMON: dict[str, Any] = {"dataset": "mnist", "title": "MNIST", "encoding": "authors", "part": "masks"}
COMMON |= {"status": "ok", "job": "one"}
DIGITS: dict[str, Any] = {"datasets": ["digits"], "missing": [0.5], "repetitions": 2}


def test_a_sweep_over_the_bundled_digits() -> None:
    experiment = MissingFeatures(**DIGITS | {"missing": [0.0, 0.4, 0.9]})
    outcome = outcome_of(experiment)
    accuracy, entropy = (tables_of(outcome)[name] for name in ("", "cross_entropy"))
    assert accuracy["missing (%)"].round(1).tolist() == [0.0, 39.1, 89.1]
    methods = ["NaCL", "mean", "median", "min", "max"]
    # With nothing missing all agree with the classifier.
    assert len(set(accuracy.loc[0, methods])) == 1
    assert np.ptp(entropy.loc[0, methods].to_numpy(dtype=float)) < 1e-12
    assert (np.diff(entropy["NaCL"]) > 0).all()
    assert (entropy.loc[1:, "NaCL"] < entropy.loc[1:, "mean"]).all()
    assert list(points_of(outcome)) == ["", "cross_entropy"]
    assert set(keys_of(replace(experiment, missing=[0.4]))) < set(keys_of(experiment)), "a mask depends on its share"


@pytest.mark.parametrize(
    ("settings", "least", "most", "accuracy"),
    [
        ({"mechanism": "block"}, 35, 60, 0.5),
        ({"mechanism": "rates", "rates": {"pixel_3_3": 1.0}}, 45, 55, 0.65),
        ({"mechanism": "depends_on_features", "datasets": ["breast_cancer"]}, 50, 50, 0.8),
        ({"mechanism": "depends_on_value", "datasets": ["breast_cancer"]}, 50, 50, 0.8),
        ({"rounding": "nearest"}, 50, 50, 0.7),
        ({"datasets": ["breast_cancer"]}, 50, 50, 0.8),
        ({"datasets": ["example_simulated"], "encoding": "authors"}, 50, 50, 0.75),
    ],
)
def test_settings_of_a_sweep(settings: dict[str, Any], least: int, most: int, accuracy: float) -> None:
    rows = rows_of(MissingFeatures(**DIGITS | settings))
    assert rows["missing_percent"].between(least, most).all()
    assert (rows["nacl/accuracy"] > accuracy).all()


@pytest.mark.usefixtures("undrawn")
def test_figure_1_has_two_models_of_one_classifier(command: Command) -> None:
    answer = command("experiment=conformant/figure1", "executor=serial")
    assert "2 of 2 identities hold, with profile=quick\n" in answer.out
    table = table_of("conformant/figure1_table")
    for model in ("P1", "P2"):
        np.testing.assert_allclose(table[f"{model}(c | x)"], table["F"], atol=1e-12)
        assert table[f"{model}(x)"].sum() == pytest.approx(1)
    assert (table["P1(x)"] - table["P2(x)"]).abs().min() > 0.01
    weights = conforming_models(prior=0.5, positive=[0.8, 0.45], negative=[0.3, 0.5], other=[0.9, 0.9])["weights"]
    np.testing.assert_allclose(weights, [-1.157, 2.234, -0.201], atol=0.001)


@pytest.mark.usefixtures("undrawn")
def test_splice_is_within_a_point_and_a_half_of_table_5(command: Command, given_folder: Path) -> None:
    if not (given_folder / "openml/org/openml/www/datasets/46").is_dir():
        pytest.skip("TRIMBENCH_CACHE does not hold splice")
    command(
        *("experiment=conformant/table5", "executor=serial", "offline=true"),
        *("datasets=[splice]", "repetitions_of.splice=20", "roundings=[fifths]"),
        code=0,
    )
    table = table_of("conformant/table5").set_index("label (%)")
    for label, printed in {20: 93.3, 40: 87.2, 60: 76.6, 80: 59.1}.items():
        assert table.loc[label, "missing (%)"] == pytest.approx(label)
        assert table.loc[label, "NaCL"] == pytest.approx(printed, abs=1.5)
    order = table_of("conformant/table5_order")
    assert (order["printed"] == order["ours"]).all()


def test_the_stored_curves() -> None:
    curve = stored_curves("mnist", "accuracy")
    nacl = curve[curve["method"] == "nacl"]
    assert len(nacl) == 40
    assert interpolated(nacl, 0.0) == pytest.approx(0.9172, abs=1e-4)
    assert interpolated(nacl, 101.0) is None
    assert stored_curves("digits", "accuracy").empty
    assert not stored_curves("adult", "accuracy").empty, "a micro-averaged F1 is an accuracy"
    for name in ("mnist", "fashion", "covtype", "adult", "splice"):
        assert not stored_curves(name, "cross_entropy").empty


@pytest.mark.parametrize("name", PROJECT.names("protocol"))
def test_protocols_say_what_they_are(name: str) -> None:
    text = (project().configuration / f"protocol/{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert PROJECT.mapping("protocol", name)["dataset"] in PROJECT.names("dataset")


def test_fractions_that_hide_equally_many_features_are_one_share() -> None:
    shares = {"missing": [0.0, 0.05, 0.1, 0.1], "missing_percent": [0.0, 0.0, 7.7, 7.7]}
    summary = summarise(pd.DataFrame(shares | {"nacl/accuracy": [0.9, 0.8, 0.7, 0.5]}), "accuracy", ["nacl"])
    assert summary["percent"].tolist() == [0.0, 7.7]
    assert summary["mean"].tolist() == pytest.approx([0.85, 0.6])
    assert summary["n"].tolist() == [2, 2]


def number_of(outcome: Outcome, label: str) -> Number:
    """The one number with this row and quantity."""
    (found,) = [number for number in outcome.numbers if f"{number.row}/{number.quantity}" == label]
    return found


def test_figure_3_has_both_encodings_and_compares_one() -> None:
    tables = tables_of(outcome_of(Figure3(datasets=["digits"], missing=[0.0, 0.5], repetitions=1)))
    for end in ("", "_paper"):
        assert tables[f"digits_accuracy{end}"]["masks"].tolist() == [1, 1]


def test_distances_are_those_of_the_authors_encoding() -> None:
    stored = stored_curves("mnist", "accuracy")
    at = interpolated(stored[stored["method"] == "nacl"], 50.0)
    assert at is not None
    common = COMMON | {"missing": 0.5, "missing_percent": 50.0}
    fills = {"mean/accuracy": 0.3, "median/accuracy": 0.3, "min/accuracy": 0.95, "max/accuracy": 0.1}
    rows = pd.DataFrame(
        [
            {**common, **fills, "nacl/accuracy": at + 0.01},
            {**common, **fills, "encoding": "paper", "nacl/accuracy": 0.0, "job": "other"},
        ]
    )
    found = Figure3(datasets=["mnist"], missing=[0.5], repetitions=1).outcome(rows)
    assert number_of(found, "mnist accuracy/NaCL").value == pytest.approx(0.01)
    assert number_of(found, "mnist accuracy/NaCL").jobs == ("one",)
    assert number_of(found, "mnist accuracy/outperformed").value == 3
    assert found.tables[0].frame["ours"].iloc[0] == pytest.approx(at + 0.01)


def test_max_imputation_is_compared_with_the_worst_of_the_rest() -> None:
    entropies = {"nacl": 0.1, "mean": 0.2, "median": 0.3, "min": 0.4, "naive_bayes": 9.0}
    rows = [
        {**COMMON, "missing": share, "missing_percent": 100 * share, "max/cross_entropy": of_max}
        | {f"{method}/cross_entropy": value for method, value in entropies.items()}
        for share, of_max in ((0.0, 50.0), (0.1, 6.0), (0.5, 8.0), (0.9, 2.0))
    ]
    found = Figure3(datasets=["mnist"], missing=[0.0, 0.1, 0.5, 0.9]).outcome(pd.DataFrame(rows))
    assert number_of(found, "mnist cross_entropy/max by worst of the rest").value == pytest.approx(20)


def test_em_and_mice_are_compared_with_the_text() -> None:
    entropies = {"nacl": 0.1, "mean": 0.2, "median": 0.3, "min": 0.4, "max": 0.9, "normal_draw": 0.8, "mice": 0.25}
    entropies |= {"mice_drawn": 0.15}
    common = {"dataset": "mnist", "missing": 0.01, "missing_percent": 0.9, "status": "ok", "fit_on": "test"}
    rest = {"accuracy": 0.5, "f1_weighted": 0.5, "fit_seconds": 1.0, "ms_per_row": 1.0}
    rows = pd.DataFrame(
        [{**common, **rest, "method": name, "cross_entropy": v, "job": name} for name, v in entropies.items()]
    )
    options = ImputerOptions(n_components=20, n_neighbours=10, n_nearest_features=20, max_iterations=5)
    methods: list[Any] = list(entropies)
    experiment = EmMice(datasets=["mnist"], missing=[0.01], methods=methods, fit_on=["test"], settings=options)
    found = experiment.outcome(rows)
    values = {number.quantity: number.value for number in found.numbers}
    expected = {"em_from_worst": 2, "mice_less_mean": pytest.approx(0.05), "outperformed": 2}
    assert values == expected | {"mice_seconds_by_nacl": 1}
    inferred = {one.quantity: one.explanation.value for one in found.numbers if one.explanation}
    assert inferred == {"mice_less_mean": pytest.approx(-0.05), "outperformed": 2}
    assert {(number.row, number.jobs) for number in found.numbers} == {("mnist 1 %", tuple(entropies))}
    assert not experiment.outcome(rows.assign(dataset="adult")).numbers, "the text says nothing of others"
    nothing = experiment.outcome(rows.assign(missing_percent=0.0))
    assert nothing.tables[0].frame.empty
    assert "On mnist the smallest share hides no feature" in nothing.notes[-1]


@pytest.mark.parametrize(
    ("dataset", "claims", "stored"),
    [
        ("adult", {"complete_lead": 10, "crossing_percent": 100}, "accuracy"),
        ("splice", {"complete_lag": 10}, "weighted F1"),
    ],
)
def test_naive_bayes_is_judged_by_accuracy_with_weighted_f1_beside(
    dataset: str, claims: dict[str, float], stored: str
) -> None:
    common = COMMON | {"dataset": dataset, "title": dataset, "encoding": "paper"}
    rows = [
        common
        | {"missing": share, "missing_percent": 100 * share, "nacl/accuracy": 0.9, "naive_bayes/accuracy": 0.8}
        | {"nacl/f1_weighted": 0.7 - share, "naive_bayes/f1_weighted": 0.65}
        for share in (0.0, 0.1)
    ]
    found = NaiveBayesCrossing(datasets=[dataset], missing=[0.0, 0.1]).outcome(pd.DataFrame(rows))
    assert {number.quantity: number.value for number in found.numbers} == pytest.approx(claims)
    main = found.tables[0].frame.set_index("measure")
    assert main["crossing (%)"].to_dict() == pytest.approx({"accuracy": 100, "weighted F1": 5})
    assert main.index[main["crossing of stored curves (%)"].notna()].tolist() == [stored]
    assert [figure.y_label for figure in found.figures] == ["accuracy", "weighted F1"][: 1 + (dataset == "splice")]


@pytest.mark.parametrize(("dataset", "claim"), [("mnist", "balanced_percent"), ("adult", "unbalanced_percent")])
def test_table_2_says_which_data_sets_are_balanced(dataset: str, claim: str) -> None:
    rows = pd.DataFrame(
        {
            "dataset": [dataset] * 2,
            "encoding": "paper",
            "part": ["rows", "classifier"],
            "status": ["ok", "failed"],
            "job": ["a", "b"],
            "class_counts": [[30, 10], None],
            "most_values": [9, None],
            "most_valued": ["a", None],
            **{name: [8.0, None] for name in ("rows", "n_train", "n_test", "n_columns", "n_features", "features")},
            "n_classes": [2.0, None],
        }
    )
    found = Table2(datasets=[dataset], encodings=["paper"]).outcome(rows)
    assert number_of(found, f"{dataset}/{claim}").value == 75
    assert {number.quantity for number in found.numbers} == {"size_thousands", "classes", "features", claim}
    assert {number.jobs for number in found.numbers} == {("a",)}
    assert found.tables[1].frame["accuracy"].isna().all()


def test_outperformed_imputations_are_counted() -> None:
    common = COMMON | {"dataset": "adult", "rounding": "fifths", "as_run": True, "setup": "", "repetition": 0}
    values = {"nacl": 0.7, "min@test": 0.6, "max@test": 0.8, "mean@test": 0.65, "median@test": 0.7}
    common |= {"missing": 0.2, "missing_percent": 15.4}
    row = {**common, **{f"{k}/f1_weighted": v for k, v in values.items()}}
    experiment = Tables4And5(measure="f1_weighted", datasets=["adult"], missing=[0.2], repetitions=1)
    found = experiment.outcome(pd.DataFrame([row]))
    assert number_of(found, "adult 20 %/outperformed").value == 2
    assert all(number.interval is None for number in found.numbers)
    assert found.tables[0].frame["NaCL ±"].isna().all(), "one mask has no interval"
    (labels,) = [table.frame for table in found.tables if table.name == "labels"]
    assert labels["label is possible"].tolist() == ["no"], "20 % of 13 features is no whole number"


def test_conformity_of_a_geometric_program_is_that_of_its_own_probabilities() -> None:
    found = {
        solver: solve_synthetic(n_features=3, n_classes=2, seed=1, solver=solver) for solver in ("newton", "gpkit")
    }
    assert found["newton"]["conformity_error"] is None
    assert 0 < found["gpkit"]["conformity_error"] < 1e-4


def test_the_users_own_data_may_have_missing_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=80), "smokes": rng.choice(["yes", "no"], 80)})
    table["ill"] = np.where(table["age"] + rng.normal(size=80) > 0, "yes", "no")
    table.loc[::7, "age"] = np.nan
    write(tmp_path / "dataset", {"clinic.yaml": "kind: csv\npath: clinic.csv\ntarget: ill\n"})
    table.to_csv(tmp_path / "dataset/clinic.csv", index=False)
    catalogue = Catalogue((tmp_path, *PROJECT.folders))
    experiment = MissingFeatures(datasets=["clinic"], missing=[0.0, 0.5])
    assert rows_of(experiment, catalogue)["nacl/accuracy"].between(0.4, 1).all()
    table.assign(ill="no").to_csv(tmp_path / "dataset/clinic.csv", index=False)
    with pytest.raises(ConfigurationError, match=r"data set clinic must have two classes or more, got \['no'\]"):
        keys_of(experiment, catalogue)


TITLES = ["NaCL", "mean imputation", "median imputation", "min imputation", "max imputation"]


def rows(**entropies: float) -> pd.DataFrame:
    """Two shares of missing features; the methods have these cross entropies at the second, and 0.2 at the first."""
    found = []
    for missing, factor in ((0.0, 0.0), (0.5, 1.0)):
        values = {"nacl": 1.0, "mean": 2.0, "median": 3.0, "min": 4.0, "max": 500.0} | entropies
        measured = {f"{method}/cross_entropy": 0.2 + factor * (value - 0.2) for method, value in values.items()}
        measured |= {f"{method}/accuracy": 0.9 for method in values} | {
            f"{method}/f1_weighted": 0.9 for method in values
        }
        found.append({**COMMON, "missing": missing, "missing_percent": 100 * missing, **measured})
    return pd.DataFrame(found)


def cross_entropies(figures: object) -> LineFigure:
    assert isinstance(figures, list)
    (figure,) = (figure for figure in figures if figure.name.endswith("cross_entropy"))
    assert isinstance(figure, LineFigure)
    return figure


def test_figure_3_has_max_imputation_on_a_logarithmic_axis() -> None:
    outcome = Figure3(datasets=["mnist"], missing=[0.0, 0.5], repetitions=1).outcome(rows())
    figure = cross_entropies(outcome.figures)
    assert figure.y_scale == "log"
    assert [name for name in figure.points["series"].unique() if "(authors)" not in name] == TITLES
    assert figure.points.query("series == 'max imputation'")["y"].max() == 500
    assert figure.methods["max imputation (authors)"] == figure.methods["max imputation"] == "max"
    assert figure.title == "MNIST: average cross entropy"
    quantities = [number.quantity for number in outcome.numbers if number.row == "mnist cross_entropy"]
    assert "max" not in quantities, "the paper does not print its curve"


@pytest.mark.parametrize(
    ("measure", "nacl", "scale"),
    [("cross_entropy", 1.0, "log"), ("cross_entropy", 0.0, "linear"), ("accuracy", 1.0, "linear")],
)
def test_only_entropies_above_0_have_a_logarithm(measure: str, nacl: float, scale: str) -> None:
    assert curves("", "", measure, "", summarise(rows(nacl=nacl), measure)).y_scale == scale


# What the experiments of the NaCL paper show beyond it: mixtures, and pictures of further explanations.


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
    ours = tb.conform(given, rows.train, n_components=4, covariance="diagonal")
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
