"""Ticks are plain numbers, and their labels do not touch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.figures.text import plain, set_scale

from ..builders import line_figure
from .measured import assert_readable, picture


@pytest.mark.parametrize(
    ("values", "scale"), [([1, 2], "log"), ([0, 2], "symlog"), ([-1, 2], "symlog"), ([0, -1], "linear")]
)
def test_what_has_no_logarithm_changes_the_scale(values: list[float], scale: str) -> None:
    axes = Figure().subplots()
    for name in ("x", "y"):
        set_scale(axes, name, "log", values)
    assert axes.get_xscale() == axes.get_yscale() == scale
    assert scale != "symlog" or axes.xaxis.get_transform().linthresh == 2


def axis_of(x: Any, y: Any, name: str = "x", *, width: float = 6.8, **settings: Any) -> tuple[list[str], list[float]]:
    """Return the labels and places of the ticks that are drawn on an axis."""
    points = pd.DataFrame({"series": "a", "x": x, "y": y})
    canvas = picture(line_figure(points, **settings), FigureSettings(width=width))
    assert_readable(canvas)
    (axes,) = canvas.axes
    axis = getattr(axes, f"{name}axis")
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert not axis.get_minorticklocs().size
    return [tick.label1.get_text() for tick in ticks], [tick.get_loc() for tick in ticks]


def test_a_logarithmic_axis_with_few_values_has_its_ticks_at_them() -> None:
    assert axis_of([5, 50, 700], [1.0, 2.0, 3.0], x_scale="log") == (["5", "50", "700"], [5, 50, 700])


def test_places_of_points_that_stand_beside_others_have_no_ticks() -> None:
    beside = pd.DataFrame({"series": list("aabb"), "x": [455, 1438, 509.6, 1610.56], "y": [1.0, 2.0, 2.0, 1.0]})
    for points, shown in ((beside, False), (beside.assign(x=[455, 1438] * 2), True)):
        (axes,) = picture(line_figure(points, x_scale="log"), FigureSettings()).axes
        assert ("455" in [tick.get_text() for tick in axes.get_xticklabels()]) is shown
        assert "509.6" not in [tick.get_text() for tick in axes.get_xticklabels()]


def test_labels_without_room_are_left_out_and_their_ticks_stay() -> None:
    labels, places = axis_of([1000, 1100, 1200, 9000, 10000], range(5), x_scale="log", width=2.5)
    assert places == [1000, 1100, 1200, 9000, 10000]
    assert labels == ["1,000", "", "", "9,000", ""]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.02, 3000.0], ["0.1", "1", "10", "100", "1,000"]),
        ([1.0, 40.0], ["1", "2", "5", "10", "20"]),
        ([0.31, 0.89], ["0.4", "0.6", "0.8"]),
    ],
)
def test_a_logarithmic_axis_over_any_range_has_several_plain_ticks(values: list[float], expected: list[str]) -> None:
    labels, _ = axis_of([1, 2], values, "y", y_scale="log")
    assert set(expected) <= set(labels)


def test_zero_has_a_place_on_a_logarithmic_axis() -> None:
    labels, places = axis_of([0, 1, 10, 100], [1, 2, 3, 4], x_scale="log")
    assert (labels, places) == (["0", "1", "10", "100"], [0, 1, 10, 100])
    labels, _ = axis_of([1, 2, 3], [0.0, 0.01, 100.0], "y", y_scale="log")
    assert {"0", "0.01", "100"} <= set(labels)


def test_whole_numbers_have_whole_ticks() -> None:
    _, places = axis_of([1, 2, 3, 4], [1, 2, 3, 4])
    assert places == [1, 2, 3, 4]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("width", [2.0, 6.8])
def test_numbers_of_any_size_are_written_out(scale: float, width: float) -> None:
    labels, _ = axis_of(np.linspace(0.1, 0.9, 50) * scale, [0.1, 0.9] * 25, width=width)
    assert sum(map(bool, labels)) >= 1
    assert all(set(label) <= set("0123456789.e-") and len(label) <= 6 for label in labels)


def test_close_numbers_are_told_apart() -> None:
    labels, _ = axis_of([1, 2], [0.9999990, 0.9999999], "y")
    assert len(set(labels)) == len(labels) >= 3, "no offset is taken off"


def test_plain_numbers() -> None:
    values = (0, 0.0001, 0.25, 1234567, 1e7, 1.5e-7, -20)
    assert [plain(value) for value in values] == ["0", "0.0001", "0.25", "1,234,567", "1e7", "1.5e-7", "-20"]


def test_labels_of_narrow_pictures_keep_a_gap() -> None:
    points = pd.DataFrame({"series": "a", "x": range(0, 100_000, 1000), "y": range(100)})
    canvas = picture(line_figure(points), FigureSettings(width=2))
    (axes,) = canvas.axes
    low, high = axes.get_xlim()
    labels = [tick.label1 for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert len(boxes) >= 2
    assert all(two.x0 - one.x1 >= 5 * canvas.dpi / 72 for one, two in itertools.pairwise(boxes))
