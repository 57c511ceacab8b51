"""Printed numbers as one draw among the replicates: cut-offs and calibration."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from trimbench.papers.selection_bias.correlations import SelectionScatter, share_beyond
from trimbench.papers.selection_bias.simulated_cases import ModelSettings, class_counts, correlation, simulate
from trimbench.papers.selection_bias.simulation import Calibration
from trimbench.reproduction.vocabulary.draws import Draws
from trimbench.reproduction.vocabulary.numbers import Interval, Outcome
from trimbench.reproduction.vocabulary.reported import Reported, Rule, held_against, printed_numbers

from ..experiments import keys_of, tables_of

# By the slides' k; for 200 cases they are the printed ones, for 100 they are not.
CUT_OFFS = {200: (0.355, 0.265, 0.206, 0.133), 100: (0.41, 0.345, 0.271, 0.176)}
KS = [1, 10, 100, 1000]


def scatter(n_replicates: int, sizes: list[list[int]], ks: list[int] = KS) -> Outcome:
    """Return what comes of cut-offs that scatter by 2 %."""
    rng = np.random.default_rng(2)
    rows: list[dict[str, Any]] = []
    for n0, n1 in sizes:
        means = np.array(CUT_OFFS[n0 + n1])
        for replicate in range(n_replicates):
            gammas = (means * rng.normal(1, 0.02, 4))[: len(ks)].tolist()
            row = {"n0": n0, "n1": n1, "status": "ok", "replicate": replicate, "job": f"{n0} {replicate}"}
            row |= {"gammas": gammas, "mean_sample": gammas, "mean_true": gammas, "true": [0.1], "sample": [0.2]}
            rows.append(row)
    experiment = SelectionScatter(class_sizes=sizes, test_sizes=[1, 1], ks=ks, replicates=n_replicates)
    return experiment.outcome(pd.DataFrame(rows))


def bins_of(rng: np.random.Generator, shift: float) -> dict[str, Any]:
    """Return the bins of one data set; the predictions are up to 3 standard deviations from the printed ones."""
    printed, found = printed_numbers("selection_bias/calibration"), {}
    for correction in ("corrected", "uncorrected"):
        cases, predicted, actual = (
            np.array([one.value for (_, q), one in printed.items() if q == f"{correction} {quantity}"])
            for quantity in ("cases", "predicted", "actual")
        )
        counts = rng.poisson(cases * shift)
        found[f"{correction}_counts"] = counts.tolist()
        found[f"{correction}_predicted_sums"] = (
            counts * predicted * rng.normal(np.linspace(0.97, 1.03, 10), 0.01)
        ).tolist()
        found[f"{correction}_positives"] = rng.binomial(counts, actual).tolist()
    return found


def calibrated(n_replicates: int) -> tuple[Outcome, pd.DataFrame]:
    """Return what comes of 200 training cases, which is like the printed table, and of 100 with other numbers of cases.

    Some of the replicates have no case in some category.
    """
    rng = np.random.default_rng(4)
    rows = [
        {"n0": n0, "n1": n0, "status": "ok", "replicate": replicate, "job": f"{n0} {replicate}"} | bins_of(rng, shift)
        for n0, shift in ((100, 1.0), (50, 3.0))
        for replicate in range(n_replicates)
    ]
    for row in rows[: n_replicates // 4]:
        for name in ("counts", "predicted_sums", "positives"):
            row[f"uncorrected_{name}"][3] = 0
    frame = pd.DataFrame(rows)
    return Calibration(class_sizes=[[100, 100], [50, 50]], test_sizes=[1000, 1000]).outcome(frame), frame


def test_each_number_of_the_calibration_has_its_probability_among_all() -> None:
    outcome, rows = calibrated(60)
    printed = printed_numbers("selection_bias/calibration")
    ours = rows[rows["n0"] == 100]
    columns, places = [], list(printed)
    for category, quantity in places:
        correction, name = quantity.split()
        place = int(10 * float(category[:3]) + 0.5)
        counts = np.array([row[place] for row in ours[f"{correction}_counts"]], dtype=float)
        if name == "cases":
            columns.append(counts)
            continue
        key = "predicted_sums" if name == "predicted" else "positives"
        sums = np.array([row[place] for row in ours[f"{correction}_{key}"]], dtype=float)
        columns.append(np.array([s / n if n else math.nan for s, n in zip(sums, counts, strict=True)]))
    decimals = [0 if quantity.endswith("cases") else 3 for _, quantity in places]
    draws = Draws([printed[place].value for place in places], np.column_stack(columns), decimals)
    expected = dict(zip(places, draws.together(), strict=True))
    setup = "200 training cases instead of the stated 100"
    found = {(one.row, one.quantity): one for one in outcome.numbers}
    assert {place: one.probability for place, one in found.items()} == {
        place: dataclasses.replace(one, setup=setup) for place, one in expected.items()
    }
    # The stated 100 cases are judged; with 200 they are explained.
    judged, inferred = (outcome.tables[place].frame.set_index("category") for place in (1, 0))
    for (category, quantity), one in found.items():
        assert one.value == judged.loc[category, quantity]
        assert one.explanation is not None
        assert (one.explanation.setup, one.explanation.value) == (setup, inferred.loc[category, quantity])
    assert len({one.value for one in expected.values()}) > 5, "some are far out"
    first, second = tables_of(outcome)["overall"].to_dict("records")
    assert (first["n0"], first["replicates"], first["numbers"]) == (100, 60, 60)
    overall = draws.outside()
    assert (first["outside"], first["usual"], first["most"]) == (overall.count, overall.usual, overall.most)
    assert first["probability"] == overall.probability.value
    assert first["smallest, one number"] == min(one.value for one in draws.alone())
    assert first["smallest, all numbers"] == min(one.value for one in expected.values())
    assert second["n0"] == 50
    assert second["probability"] == second["smallest, all numbers"] == pytest.approx(1 / 61)


def test_the_printed_table_has_as_many_test_cases_of_each_class() -> None:
    """So says a note in the configuration of the experiment."""
    printed = printed_numbers("selection_bias/calibration")
    for correction in ("corrected", "uncorrected"):
        cases = {row: one.value for (row, quantity), one in printed.items() if quantity == f"{correction} cases"}
        ones = [round(n * printed[row, f"{correction} actual"].value) for row, n in cases.items()]
        assert (sum(ones), sum(cases.values())) == (1000, 2000)


def test_few_replicates_show_no_count_of_numbers_outside() -> None:
    table = tables_of(calibrated(8)[0])["overall"]
    assert table[["outside", "usual", "most", "probability"]].isna().all(axis=None)
    assert table["least, one number"].tolist() == pytest.approx([2 / 9, 2 / 9])
    assert table["least, all numbers"].tolist() == pytest.approx([1 / 9, 1 / 9])


def test_cut_offs_of_the_stated_size_are_explained_by_the_inferred_one() -> None:
    outcome = scatter(100, [[100, 100], [50, 50]])
    found = {number.row: number for number in outcome.numbers}
    assert len(found) == 4, "each printed number counts once"
    inferred = outcome.tables[0].frame.query("n0 == 100").set_index("k")
    for k in (10, 100, 1000):
        stated = found[f"k = {k}"]
        assert stated.explanation is not None
        assert stated.explanation.setup == "200 training cases instead of the stated 100"
        assert stated.explanation.value == inferred.loc[k, "cut-off"]
        assert stated.explanation.interval is not None
        assert "however the cases are divided into classes" in stated.contradiction
        assert stated.probability is not None
        assert stated.probability.value == pytest.approx(1 / 101)
    assert found["k = 1"].explanation is not None
    assert found["k = 1"].contradiction == "", "the largest correlation alone refutes nothing"
    tables = tables_of(outcome)
    likely, unlikely = tables["overall"]["probability"]
    assert unlikely == pytest.approx(1 / 101)
    assert likely > 0.05
    assert len(tables["unrelated"]) == 8
    beyond = tables["unrelated"].set_index(["n0", "k"])["features beyond"]
    assert all(beyond[50, k] > k > beyond[100, k] for k in (10, 100, 1000))


def test_a_cut_off_that_may_be_of_the_stated_size_needs_no_explanation() -> None:
    found = {number.row: number for number in scatter(2, [[100, 100], [50, 50]]).numbers}
    inside = found["k = 1"]
    # Of two replicates the interval is very wide.
    assert isinstance(inside.interval, Interval)
    assert inside.interval.low < 0.36 < inside.interval.high
    assert (inside.explanation, inside.contradiction) == (None, "")


def test_the_stated_size_alone_is_refuted_without_an_explanation() -> None:
    outcome = scatter(50, [[50, 50]])
    for number in outcome.numbers[1:]:
        assert number.explanation is None
        assert number.contradiction
    assert set(tables_of(outcome)["unrelated"]["n0"]) == {50}


def test_numbers_of_features_that_are_not_printed_have_no_probability() -> None:
    outcome = scatter(50, [[50, 50]], ks=[3, 30])
    assert [number.probability for number in outcome.numbers] == [None, None]
    assert len(outcome.tables) == 1
    assert "unrelated" not in tables_of(scatter(50, [[100, 100]]))


def test_an_overall_test_needs_numbers_that_are_printed_and_replicated() -> None:
    printed = {1: Reported("slides", "k = 1", "cut-off", "0.36", Rule(kind="interval"))}
    assert held_against(printed, {2: [0.3]}) is None
    assert held_against(printed, {1: []}) is None
    found = held_against(printed, {1: [0.356, 0.3], 2: [0.3, 0.3]})
    assert found is not None
    assert set(found.together) == {1}
    assert found.together[1].value == 1.0, "0.356 is printed as 0.36"


@pytest.mark.parametrize(("n0", "n1", "theta0"), [(6, 6, 0.0), (3, 9, 0.0), (1, 4, 0.0), (5, 8, 0.2)])
@pytest.mark.parametrize("bound", [0.0, 0.3, 0.61, 0.99])
def test_the_share_of_unrelated_features_is_what_enumeration_gives(
    n0: int, n1: int, theta0: float, bound: float
) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    theta = 0.5 + (0.5 - theta0) * nodes
    expected = 0.0
    for ones0 in range(n0 + 1):
        for ones1 in range(n1 + 1):
            (found,) = correlation(np.array([ones0]), np.array([ones1]), n0, n1)
            if abs(found) > bound:
                both = stats.binom.pmf(ones0, n0, theta) * stats.binom.pmf(ones1, n1, theta)
                expected += 0.5 * float(weights @ both)
    assert share_beyond(bound, n0, n1, theta0) == pytest.approx(expected, abs=1e-12)


def test_unrelated_features_of_the_model_are_beyond_a_bound_as_often_as_stated() -> None:
    """At a very large alpha the features of the model have the same probability in both classes."""
    settings = ModelSettings(n_features=20_000, alpha=1e9, class_sizes=(50, 50), test_sizes=(1, 1))
    cases = simulate(settings, np.random.default_rng(3))
    found = np.abs(correlation(*class_counts(cases.X, cases.y), 50, 50))
    for bound in (0.135, 0.215):
        share = share_beyond(bound, 50, 50)
        error = 4 * math.sqrt(share * (1 - share) / len(found))
        assert (found > bound).mean() == pytest.approx(share, abs=error)


def test_relations_make_more_features_be_beyond_a_bound() -> None:
    """What refutes the stated size for unrelated features does so for the model at any alpha."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    theta = (0.5 + 0.5 * nodes)[:, None]
    ones = np.arange(51)
    grid = np.meshgrid(ones, ones, indexing="ij")
    sizes = np.abs(correlation(grid[0].ravel(), grid[1].ravel(), 50, 50)).reshape(51, 51)
    for bound in (0.135, 0.215, 0.275, 0.365):
        shares = []
        for alpha in (1e6, 3000, 300, 30, 3):
            mass = stats.betabinom.pmf(ones, 50, alpha * theta, alpha * (1 - theta))
            shares.append(0.5 * float(weights @ np.einsum("ti,tj,ij->t", mass, mass, (sizes > bound).astype(float))))
        assert shares[0] == pytest.approx(share_beyond(bound, 50, 50), rel=1e-3)
        assert shares == sorted(shares)


def test_the_seeds_of_replicates_do_not_depend_on_their_number() -> None:
    """More replicates are added to those that are stored."""
    few, many = (SelectionScatter(class_sizes=[[5, 5]], test_sizes=[1, 1], ks=[1], replicates=n) for n in (2, 5))
    assert keys_of(many)[:2] == keys_of(few)
    assert dataclasses.replace(few, replicates=5) == many
