"""A method has one colour in all figures, and no two lines of a figure look alike."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimbench.papers.beyond import budgets
from trimbench.papers.conformant import em_mice, mask_sweep
from trimbench.papers.reporting.figures.lines import Series, levels_of, line_style, series_of, verticals_of
from trimbench.papers.reporting.figures.settings import PALETTES
from trimbench.papers.reporting.figures.text import N_SLOTS, slots
from trimbench.papers.selection_bias.simulated_cases import CORRECTIONS
from trimbench.papers.trimming import figure5, figure7, table6

from ..builders import line_figure

COLOURS = PALETTES["okabe-ito"]


def looks(*names: str, colours: Any = COLOURS, **settings: Any) -> dict[str, Series]:
    points = pd.DataFrame(
        [{"series": name, "x": x, "y": x + place} for place, name in enumerate(names) for x in (1, 2)]
    )
    return {one.name: one for one in series_of(line_figure(pd.DataFrame(points), **settings), colours)}


def test_a_method_has_the_colour_of_its_slot_wherever_it_stands() -> None:
    first = looks("mean", "NaCL", "own")
    second = looks("own", "our NaCL", methods={"our NaCL": "NaCL"})
    assert first["NaCL"].colour == second["our NaCL"].colour == COLOURS[slots(["NaCL"])[0]]
    assert first["own"].colour not in (first["NaCL"].colour, first["mean"].colour)


def test_a_reference_has_the_colour_of_its_method() -> None:
    names = ("mean", "NaCL", "NaCL (authors)", "mean (authors)")
    marks = dict.fromkeys(names[2:], "reference")
    found = looks(*names, marks=marks, methods={"mean (authors)": "mean"})
    assert found["NaCL (authors)"].colour == found["NaCL"].colour, (
        "that of the series before it, unless a method is named"
    )
    assert found["mean (authors)"].colour == found["mean"].colour


def test_references_of_two_kinds_have_other_dashes() -> None:
    names = ("NaCL", "NaCL (authors)", "NaCL (printed)", "mean", "mean (authors)")
    marks = {name: "reference" for name in names if "(" in name}
    found = looks(*names, marks=marks)
    patterns = {name: found[name].dashes[1] for name in marks}
    assert patterns["NaCL (authors)"] == patterns["mean (authors)"] != patterns["NaCL (printed)"]
    assert found["NaCL (authors)"].dashes != found["mean (authors)"].dashes, "shifted, so that both are visible"


def test_lines_of_one_method_have_one_colour_beside_other_methods() -> None:
    found = looks("T = 0.2", "T = 0.8", "mean", methods=dict.fromkeys(("T = 0.2", "T = 0.8"), "trimming"))
    assert found["T = 0.2"].colour == found["T = 0.8"].colour != found["mean"].colour
    assert found["T = 0.2"].dashes != found["T = 0.8"].dashes
    assert found["T = 0.2"].marker != found["T = 0.8"].marker


def test_lines_of_the_only_method_or_of_too_many_have_colours_of_their_own() -> None:
    names = [f"T = {number}" for number in range(6)]
    alone = looks(*names[:3], methods=dict.fromkeys(names, "trimming"))
    assert len({one.colour for one in alone.values()}) == 3
    many = looks(*names, "mean", methods=dict.fromkeys(names, "trimming"))
    assert len({(one.colour, one.dashes) for one in many.values()}) == 7
    assert len({one.colour for one in many.values()}) == 7


@pytest.mark.parametrize("colours", [COLOURS, COLOURS[:3], ("black",)])
def test_no_two_lines_look_alike(colours: Any) -> None:
    names = ["uncorrected", "max", *(f"line {i}" for i in range(len(colours) + 4))]
    found = list(looks(*names, colours=colours).values())
    assert len({one.colour for one in found}) == len(colours), "every colour is taken before one comes again"
    assert len({(one.colour, str(one.dashes), one.marker) for one in found}) == len(found)


def test_points_that_are_not_known_are_left_out() -> None:
    points = pd.DataFrame({"series": list("aaabb"), "x": [3, 1, 2, 1, 2], "y": [1.0, 2.0, np.nan, np.nan, np.inf]})
    (only,) = series_of(line_figure(points), COLOURS)
    assert (only.name, only.points["x"].tolist()) == ("a", [1, 3])


@pytest.mark.parametrize("mark", ["line", "density", "reference", "guide", "points", "cloud", "highlight"])
def test_a_single_point_is_visible(mark: str) -> None:
    points = pd.DataFrame({"series": ["a"], "x": [1], "y": [1.0]})
    (one,) = series_of(line_figure(points, marks={"a": mark}), COLOURS)
    assert line_style(one).get("marker") or mark == "guide"


def test_levels_and_verticals_have_dashes_of_their_own() -> None:
    figure = line_figure(levels={"a": 1, "a ": -1, "b": 2, "gone": np.nan}, verticals={"c": 1})
    a, negative, b = levels_of(figure)
    (c,) = verticals_of(figure)
    assert a.dashes == negative.dashes, "one name in several places"
    assert (a.name, negative.name) == ("a", "a")
    assert len({a.dashes, b.dashes, c.dashes}) == 3


# The methods that a figure, or the lines of a sweep, compares with each other, and where they are declared.
IMPUTATION = ("NaCL", "mean", "median", "min", "max")
IMPUTERS = (*IMPUTATION, "EM, mixture", "EM as the authors ran it", "MICE", "nearest neighbours")
GAINS = ("information gain, same T", "information gain, best T'", "joint information gain, best T'")
COMPARED: list[tuple[tuple[str, ...], Collection[str]]] = [
    ((*IMPUTATION, "naive Bayes", "NaCL, categorical"), mask_sweep.METHODS.values()),
    (IMPUTERS, em_mice.METHODS.values()),
    (("highest ECA", "highest accuracy", "information gain"), figure5.PICKS.values()),
    (("trimming", *GAINS, "no feature"), figure7._METHODS.values()),
    (("information gain", "greedy accuracy"), [baseline.title for baseline in budgets.BASELINES.values()]),
    (("expected agreement (ECA)", "agreement on test rows", "accuracy on test rows"), budgets._CURVES),
    (("eca_trim", "fs_sdd"), table6._METHODS),
    (("corrected", "uncorrected"), CORRECTIONS),
]


@pytest.mark.parametrize(("methods", "declared"), COMPARED)
def test_a_method_has_its_colour_in_every_figure(methods: tuple[str, ...], declared: Collection[str]) -> None:
    assert {*methods} <= {*declared}
    alone = [slots([method])[0] for method in methods]
    assert slots(methods) == alone
    assert slots(methods[::-1]) == alone[::-1]
    assert len({*alone}) == len(methods), "methods that are compared differ in colour"
    assert slots(["some other method", *methods])[1:] == alone, "an unknown method takes no colour of a known one"


def test_the_trimming_has_one_colour() -> None:
    assert slots(["trimming"]) == slots(["highest ECA"]) == slots(["eca_trim"]) == [0]


def test_spelling_does_not_matter() -> None:
    assert slots(["ECA-trim", "eca_trim", "Eca Trim", "naive Bayes", "naive_bayes"]) == [0, 0, 0, 5, 5]


def test_two_known_methods_never_share_a_colour() -> None:
    assert slots(["NaCL", "corrected"]) == [0, 1], "both have the first colour in their own figures"
    assert slots(["NaCL", "corrected", "uncorrected", "NaCL"]) == [0, 2, 1, 0]


@given(st.lists(st.sampled_from(["NaCL", "mean", "corrected", "trimming", "own", "other", "third", "x", "y", "z"])))
def test_as_many_slots_as_methods(methods: list[str]) -> None:
    found = slots(methods)
    assert len({*zip(methods, found, strict=True)}) == len({*methods}) == len({*found})
    assert all(slot < max(N_SLOTS, len({*methods})) for slot in found)
