"""What the figures of the NaCL paper draw."""

from __future__ import annotations

import pandas as pd
import pytest

from trimbench.papers.conformant.figure3 import Figure3
from trimbench.papers.conformant.mask_sweep import MissingFeatures, curves, summarise
from trimbench.papers.vocabulary.figures import LineFigure

METHODS = ["NaCL", "mean imputation", "median imputation", "min imputation", "max imputation"]
COMMON = {"status": "ok", "dataset": "mnist", "title": "MNIST", "encoding": "authors", "part": "masks", "job": "one"}


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
    assert [name for name in figure.points["series"].unique() if "(authors)" not in name] == METHODS
    assert figure.points.query("series == 'max imputation'")["y"].max() == 500
    assert figure.methods["max imputation (authors)"] == figure.methods["max imputation"] == "max"
    assert figure.title == "MNIST: average cross entropy"
    quantities = [number.quantity for number in outcome.numbers if number.row == "mnist cross_entropy"]
    assert "max" not in quantities, "the paper does not print its curve"


def test_any_data_set_has_max_imputation_too() -> None:
    outcome = MissingFeatures(datasets=["mnist"], missing=[0.0, 0.5]).outcome(rows())
    figure = cross_entropies(outcome.figures)
    assert figure.y_scale == "log"
    assert list(figure.points["series"].unique()) == METHODS


@pytest.mark.parametrize(
    ("measure", "nacl", "scale"),
    [("cross_entropy", 1.0, "log"), ("cross_entropy", 0.0, "linear"), ("accuracy", 1.0, "linear")],
)
def test_only_entropies_above_0_have_a_logarithm(measure: str, nacl: float, scale: str) -> None:
    assert curves("", "", measure, "", summarise(rows(nacl=nacl), measure)).y_scale == scale
