"""Set-ups inferred from printed numbers, the fit of 2019, and what the printed tables say by themselves."""

from __future__ import annotations

import dataclasses
import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from trimbench.papers.conformant.curves import NaiveBayesCrossing, stored_contradiction, stored_curves
from trimbench.papers.conformant.protocols import distinct_rows, encoded_rows, fit_lbfgs, make_task, rows_at_hand
from trimbench.papers.conformant.tables_4_and_5 import (
    METHODS,
    Setup,
    Tables4And5,
    contradiction,
    extrapolated,
    how_well,
    label_contradiction,
    means_of,
    outperformed,
    printed,
)
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError, validated
from trimbench.reproduction.vocabulary.numbers import Explanation, Outcome
from trimbench.reproduction.vocabulary.reported import printed_numbers

from ..experiments import inputs_of

SHARES = (0.2, 0.4, 0.6, 0.8)


def some_rows(n_classes: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Rows of which the first columns add up to one, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    rows = np.hstack(
        [np.eye(4, dtype=np.uint8)[rng.integers(0, 4, 600)], rng.integers(0, 2, (600, 3)).astype(np.uint8)]
    )
    scores = rows @ rng.normal(size=(7, n_classes)) + rng.gumbel(size=(600, n_classes))
    return rows, scores.argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("inverse_penalty", [0.1, 1.0])
def test_the_fit_of_2019_comes_close_to_the_optimum(n_classes: int, inverse_penalty: float) -> None:
    rows, labels = some_rows(n_classes, seed=n_classes)
    places, counts = distinct_rows(rows, labels)
    weights, biases, iterations = fit_lbfgs(
        rows[places], labels[places], counts, n_classes, inverse_penalty, max_iterations=1000
    )
    assert 0 < iterations < 1000
    optimum = LogisticRegression(C=inverse_penalty, solver="newton-cg", tol=1e-8).fit(rows, labels)
    scores = rows @ weights + biases
    ours = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours, optimum.predict_proba(rows), atol=2e-3)
    if n_classes == 2:
        assert not weights[:, 0].any()
        assert biases[0] == 0


def test_the_fit_of_2019_stops_where_it_is_told_to() -> None:
    rows, labels = some_rows(3, seed=0)
    *_, iterations = fit_lbfgs(rows, labels, np.ones(len(rows), dtype=np.intp), 3, 1.0, max_iterations=4)
    assert iterations == 4


def test_the_printed_tables_contradict_the_text_where_they_do() -> None:
    assert contradiction(4, "splice 20 %") == ""
    assert "prints 94.0 for NaCL and Mean 92.3, Median 92.0 (splice 80 %)" in contradiction(4, "splice 80 %")
    assert contradiction(5, "adult 80 %") == "", "the text names this exception"
    assert contradiction(4, "digits 20 %") == ""
    for number in (4, 5):
        for row, values in printed(number).items():
            claimed = printed_numbers(f"conformant/table{number}")[row, "outperformed"].value
            assert bool(contradiction(number, row)) == (outperformed(number, values) < claimed)


def test_labels_are_contradicted_where_no_number_of_features_has_their_share() -> None:
    assert label_contradiction(20, 20.0, 20.0) == ""
    assert label_contradiction(20, 100 / 6, 20.0) == "", "possible, though not what the authors hide"
    assert "it is 15.4 % as the authors count, and 23.1 % at the nearest" in label_contradiction(20, 15.3846, 23.0769)


@pytest.mark.parametrize(
    ("titles", "message"),
    [
        ([""], r"inferred\.adult: title must say what the set-up is, got ''"),
        (["complete, inferred"], "title must say what the set-up is, got 'complete, inferred'"),
        (["a", "a"], r"titles of inferred\.adult must be a list"),
    ],
)
def test_each_set_up_has_a_title_of_its_own(titles: list[str], message: str) -> None:
    inferred = {"adult": [{"title": title} for title in titles]}
    values = {"measure": "cross_entropy", "datasets": ["adult"], "missing": [0.2], "inferred": inferred}
    with pytest.raises(ConfigurationError, match=message):
        validated(Tables4And5, values, "table4")


def test_printed_columns_begin_at_one_entropy() -> None:
    """With nothing missing all methods are the classifier: columns of one set-up must begin at the same number."""
    assert extrapolated(4, "digits") == {}
    for name in ("adult", "splice", "covtype"):
        begin = extrapolated(4, name)
        assert np.ptp(list(begin.values())) < 1, name
    assert extrapolated(4, "adult")["NaCL"] == pytest.approx(4 * 33.6 - 6 * 37.0 + 4 * 41.2 - 46.6)


def test_errors_of_the_printed_numbers_themselves_are_none() -> None:
    reported = printed(4)
    means = {share: dict(reported[f"adult {round(100 * share)} %"]) for share in SHARES}
    fit = how_well(4, "adult", means)
    assert (fit["mean error"], fit["within 2 %"], fit["largest error (%)"]) == (0, "20 of 20", 0)
    means[0.2]["Min"] *= 1.05
    fit = how_well(4, "adult", means)
    assert fit["within 2 %"] == "19 of 20"
    assert fit["largest error (%)"] == pytest.approx(5)
    assert how_well(4, "digits", means) == {}


def test_means_of_a_setup_leave_out_complete_rows() -> None:
    rows = pd.DataFrame(
        {"missing": [0.0, 0.2, 0.2], "missing_percent": [0.0, 15.4, 15.4], "nacl/accuracy": [1, 0.5, 0.7]}
    )
    assert dict(means_of(rows, "accuracy", {"nacl": "NaCL"})) == {0.2: {"NaCL": pytest.approx(60)}}


@pytest.mark.parametrize("number", [4, 5])
def test_declared_setups_differ_from_their_neighbours(number: int) -> None:
    path = project().configuration / f"experiment/conformant/table{number}.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, setups in content["inferred"].items():
        found = [validated(Setup, setup, "inferred") for setup in setups]
        alike = [{**dataclasses.asdict(setup), "title": ""} for setup in found]
        assert all(alike.count(one) == 1 for one in alike), name
        inputs = inputs_of()
        for setup in found:
            assert len(setup.cells(inputs, name, SHARES, 2, 0)) == 8


def test_a_change_of_a_protocol_must_be_one_of_its_entries() -> None:
    inputs = inputs_of()
    assert make_task(inputs, "splice", "authors", 0, inverse_penalty=2.0).protocol.inverse_penalty == 2.0
    with pytest.raises(ConfigurationError, match="solver"):
        make_task(inputs, "splice", "authors", 0, solver="saga")


def test_the_stored_curves_contradict_claims_where_they_do() -> None:
    accuracy, entropy = (stored_curves("mnist", measure) for measure in ("accuracy", "cross_entropy"))
    assert "only 2 of the 4" in stored_contradiction("mnist", "accuracy", "outperformed", accuracy)
    assert stored_contradiction("mnist", "cross_entropy", "outperformed", entropy) == ""
    assert stored_contradiction("mnist", "cross_entropy", "max by worst of the rest", entropy) == ""
    assert stored_contradiction("mnist", "accuracy", "NaCL", accuracy) == ""
    assert stored_contradiction("digits", "accuracy", "outperformed", accuracy) == ""
    fashion = stored_curves("fashion", "cross_entropy")
    proof = stored_contradiction("fashion", "cross_entropy", "max by worst of the rest", fashion)
    assert re.search(r"at most 5\.3 times", proof)


def test_adult_has_the_authors_test_rows(
    given_folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = given_folder / "files/nacl/adult_income/test-adult-samples.txt.gz"
    if not path.is_file():
        pytest.skip("TRIMBENCH_CACHE does not hold files/nacl/adult_income")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "conformant"))
    task = make_task(inputs_of(), "adult", "authors", 0)
    if rows_at_hand(task) is None:
        pytest.skip("TRIMBENCH_CACHE does not hold adult")
    rows = encoded_rows(task)
    with gzip.open(path, "rt") as stream:
        theirs = np.loadtxt(stream, delimiter=",")[1:]
    # Their columns of a feature are in another order: columns are matched by how often they are one.
    for columns in rows.columns:
        ours, authors = (np.sort(part[:, list(columns)].sum(axis=0)) for part in (rows.test, theirs))
        assert np.abs(ours - authors).max() <= 20, "46 of 9768 rows are matched with the nearest one"
    protocol = dataclasses.replace(task.protocol, test_rows_sha256="0")
    with pytest.raises(ConfigurationError, match=r"test_rows_sha256 must be that of adult_test_rows\.csv"):
        encoded_rows(dataclasses.replace(task, protocol=protocol))


def rows_of_naive_bayes(name: str, encoding: str, measure: str, lasts_to: float) -> list[dict[str, object]]:
    """Two curves that cross at half of a share."""
    common = {"dataset": name, "title": name, "status": "ok", "encoding": encoding, "part": "masks"}
    return [
        {
            **common,
            "job": f"{encoding} {percent}",
            "missing": percent / 100,
            "missing_percent": percent,
            f"nacl/{measure}": ours,
            f"naive_bayes/{measure}": 0.5,
        }
        for percent, ours in ((0.0, 0.75), (lasts_to, 0.25))
    ]


def test_stored_curves_that_cross_early_contradict_the_paper() -> None:
    experiment = NaiveBayesCrossing(datasets=["fashion"], missing=[0.0, 0.5])
    found = experiment.outcome(pd.DataFrame(rows_of_naive_bayes("fashion", "paper", "accuracy", 50)))
    (crossing,) = [number for number in found.numbers if number.quantity == "crossing_percent"]
    assert crossing.contradiction.endswith("naive Bayes passes NaCL before 40 %, at 37.9 % missing.")
    assert crossing.explanation is None


def outcome_of(*setups: str, **settings: dict[str, list[Setup]]) -> Outcome:
    """Return the outcome of Table 4 on Splice, with entropies of 0.1, 0.2 and so on nats for each set-up in turn."""
    common: dict[str, object] = {"dataset": "splice", "status": "ok", "encoding": "paper", "rounding": "fifths"}
    common |= {"missing": 0.8, "missing_percent": 80.0, "repetition": 0}
    keys = ("nacl", "min@test", "max@test", "mean@test", "median@test", "median")
    rows = [
        {**common, "as_run": place == 0, "setup": setup, "job": f"job {place}"}
        | {f"{key}/cross_entropy": (place + 1) * 0.1 for key in keys}
        for place, setup in enumerate(setups)
    ]
    experiment = Tables4And5(measure="cross_entropy", datasets=["splice"], missing=[0.8], repetitions=1, **settings)
    return experiment.outcome(pd.DataFrame(rows))


def test_a_constraint_is_shown_and_explains_nothing() -> None:
    found = outcome_of("", "near", constraints={"splice": [Setup(title="near")]})
    assert not any(number.explanation for number in found.numbers)
    by_name = {table.name: table.frame for table in found.tables}
    assert by_name["fits"]["inferred"].tolist() == ["", "constraint"]
    assert by_name["inferred"]["set-up"].tolist() == ["near"]


def test_numbers_carry_the_inferred_setup() -> None:
    setups = [Setup(title="first", median_of="train"), Setup(title="second")]
    found = outcome_of("", "first", "second", "complete", "complete, inferred", inferred={"splice": setups})
    by_quantity = {number.quantity: number for number in found.numbers}
    assert set(by_quantity) == {*METHODS.values(), "outperformed", "missing_percent"}
    for method in METHODS.values():
        assert by_quantity[method].value == pytest.approx(10)
        explanation = by_quantity[method].explanation
        assert explanation is not None
        assert explanation.setup == "first"
        assert explanation.value == pytest.approx(20)
        assert by_quantity[method].contradiction == ""
    assert by_quantity["outperformed"].explanation == Explanation("first", 0.0, jobs=("job 1",))
    assert "Table 4 itself prints" in by_quantity["outperformed"].contradiction
    tables = {table.name: table.frame for table in found.tables}
    assert tables["fits"]["inferred"].tolist() == ["", "yes", ""]
    assert tables["inferred"]["NaCL"].tolist() == pytest.approx([20])
    assert tables["begin"]["entropy"].tolist() == pytest.approx([40, 50])
    assert tables["labels"].to_numpy().tolist() == [["splice", 80, 80, 80, "yes"]]
