"""Figures are a function of their points."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

from trimbench.experiments.plan import ImageFigure, LineFigure
from trimbench.reporting.figures import _coincide, _draw_lines, draw

POINTS = pd.DataFrame(
    [
        {"series": series, "x": x, "y": x / 10 + shift, "low": x / 10, "high": x / 10 + 0.3}
        for series, shift in (("agreement", 0.1), ("accuracy", 0.2))
        for x in (3, 1, 2)
    ]
)


def figure(points: pd.DataFrame = POINTS, title: str = "A title", y_label: str = "probability") -> LineFigure:
    return LineFigure("", title, "budget", y_label, points, {"all features": 0.4})


def drawn(folder: Path, line_figure: LineFigure | ImageFigure) -> tuple[bytes, bytes]:
    folder.mkdir()
    paths = [folder / "f.png", folder / "f.pdf"]
    draw(line_figure, paths)
    return paths[0].read_bytes(), paths[1].read_bytes()


def test_the_same_points_give_the_same_bytes(tmp_path: Path) -> None:
    png, pdf = drawn(tmp_path / "a", figure())
    assert (png[:8], pdf[:5]) == (b"\x89PNG\r\n\x1a\n", b"%PDF-")
    assert (png, pdf) == drawn(tmp_path / "b", figure())


def test_the_order_of_points_on_a_line_does_not_matter(tmp_path: Path) -> None:
    ordered = POINTS.sort_values(["series", "x"], ascending=[False, True])
    assert drawn(tmp_path / "a", figure(ordered)) == drawn(tmp_path / "b", figure())


@pytest.mark.parametrize(
    "other",
    [figure(POINTS.assign(y=POINTS["y"] * 1.5)), figure(POINTS.drop(columns=["low", "high"])), figure(title="B title")],
    ids=["points", "without a band", "title"],
)
def test_what_differs_is_seen(tmp_path: Path, other: LineFigure) -> None:
    assert drawn(tmp_path / "a", other)[0] != drawn(tmp_path / "b", figure())[0]


def test_scales_lines_to_compare_with_and_guides_are_seen(tmp_path: Path) -> None:
    plain = figure()
    others = {
        "x_scale": {"x_scale": "log"},
        "y_scale": {"y_scale": "log"},
        "verticals": {"verticals": {"truth": 2.0}},
        "levels": {"levels": {"low": 0.2, "high": 0.4}},
        "guide": {"marks": {"accuracy": "guide"}},
        "points": {"marks": {"accuracy": "points"}},
    }
    pictures = {
        name: drawn(tmp_path / name, dataclasses.replace(plain, **change))[0] for name, change in others.items()
    }
    pictures["plain"] = drawn(tmp_path / "plain", plain)[0]
    assert len(set(pictures.values())) == len(pictures)


def test_drawing_leaves_the_style_of_others_alone(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    drawn(tmp_path / "a", figure())
    assert dict(mpl.rcParams) == before


def test_axes_that_are_no_whole_numbers_and_odd_names(tmp_path: Path) -> None:
    points = POINTS.assign(x=POINTS["x"] / 3, series=POINTS["series"] + " 50% a_b {x}")
    png, _ = drawn(tmp_path / "a", figure(points, y_label="100% a_b"))
    assert len(png) > 10_000


def test_a_reference_is_drawn_otherwise(tmp_path: Path) -> None:
    plain = figure()
    marked = LineFigure("", plain.title, "budget", "probability", POINTS, plain.levels, {"accuracy": "reference"})
    assert drawn(tmp_path / "a", marked)[0] != drawn(tmp_path / "b", plain)[0]


def test_images(tmp_path: Path) -> None:
    pixels = [
        {"row": row, "column": column, "y": y, "x": x, "value": (y + x) % 2 if column == "all" or y else np.nan}
        for row in ("first", "second")
        for column in ("all", "chosen")
        for y in range(4)
        for x in range(5)
    ]
    image = ImageFigure("", "Explanations", pd.DataFrame(pixels))
    png, pdf = drawn(tmp_path / "a", image)
    assert (png, pdf) == drawn(tmp_path / "b", image)
    grey = mpl.image.imread(tmp_path / "a/f.png")[:, :, 0]
    assert {0.0, 1.0} <= set(np.unique(grey))
    assert np.isclose(grey, 0x8A / 255, atol=0.01).mean() > 0.02, "what is not chosen is grey"


def test_a_logarithmic_axis_of_few_values_has_its_ticks_there() -> None:
    points = pd.DataFrame({"series": "a", "x": [5, 50, 700], "y": [1.0, 10.0, 100.0]})
    axes = mpl.figure.Figure().add_subplot()
    _draw_lines(axes, dataclasses.replace(figure(points), levels={}, x_scale="log"))
    assert axes.get_xticks().tolist() == [5, 50, 700]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["5", "50", "700"]
    assert axes.xaxis.get_minorticklocs().tolist() == []


def test_lines_coincide_on_the_scale_on_which_they_are_drawn() -> None:
    points = pd.DataFrame({"series": list("aabbcc"), "x": [1, 2] * 3, "y": [1.0, 2.0, 1.5, 3.0, 1e6, 2e6]})
    both = [dataclasses.replace(figure(points), y_scale=scale) for scale in ("linear", "log")]
    assert [_coincide(drawn_figure, "a", "b") for drawn_figure in both] == [True, False]
