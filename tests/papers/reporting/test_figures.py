"""Figures are a function of their points."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.figures import draw, drawn, style
from trimbench.papers.reporting.line_figures import _coincide, _draw_axes
from trimbench.papers.study.figures import Figure, ImageFigure, LineFigure

from .builders import line_figure

POINTS = pd.DataFrame(
    [
        {"series": series, "x": x, "y": x / 10 + shift, "low": x / 10, "high": x / 10 + 0.3}
        for series, shift in (("agreement", 0.1), ("accuracy", 0.2))
        for x in (3, 1, 2)
    ]
)


def figure(points: pd.DataFrame = POINTS, title: str = "A title", y_label: str = "probability") -> LineFigure:
    return line_figure(points, title, x_label="budget", y_label=y_label, levels={"all features": 0.4})


def files_of(folder: Path, shown: Figure) -> tuple[bytes, bytes]:
    folder.mkdir()
    paths = [folder / "f.png", folder / "f.pdf"]
    draw(shown, paths, FigureSettings())
    return paths[0].read_bytes(), paths[1].read_bytes()


def test_the_same_points_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    png, pdf = files_of(tmp_path / "a", figure())
    assert (png[:8], pdf[:5]) == (b"\x89PNG\r\n\x1a\n", b"%PDF-")
    ordered = POINTS.sort_values(["series", "x"], ascending=[False, True])
    assert (png, pdf) == files_of(tmp_path / "b", figure(ordered))


def test_every_difference_is_visible(tmp_path: Path) -> None:
    plain = figure()
    changes: dict[str, dict[str, Any]] = {
        "plain": {},
        "points": {"points": POINTS.assign(y=POINTS["y"] * 1.5)},
        "without an interval": {"points": POINTS.drop(columns=["low", "high"])},
        "title": {"title": "B title"},
        "x_scale": {"x_scale": "log"},
        "y_scale": {"y_scale": "log"},
        "verticals": {"verticals": {"truth": 2.0}},
        "levels": {"levels": {"low": 0.2, "high": 0.4}},
        "interval": {"interval": "range"},
    }
    marks = ("guide", "reference", "points", "highlight", "cloud", "density")
    changes |= {mark: {"marks": {"accuracy": mark}} for mark in marks}
    pictures = {files_of(tmp_path / name, dataclasses.replace(plain, **change))[0] for name, change in changes.items()}
    assert len(pictures) == len(changes)


def test_drawing_leaves_the_style_of_others_alone(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    files_of(tmp_path / "a", figure())
    assert dict(mpl.rcParams) == before


def test_fractions_on_the_axis_and_odd_names(tmp_path: Path) -> None:
    points = POINTS.assign(x=POINTS["x"] / 3, series=POINTS["series"] + " 50% a_b {x}")
    png, _ = files_of(tmp_path / "a", figure(points, y_label="100% a_b"))
    assert len(png) > 10_000


def test_images(tmp_path: Path) -> None:
    pixels = [
        {"row": row, "column": column, "y": y, "x": x, "value": (y + x) % 2 if column == "all" or y else np.nan}
        for row in ("first", "second")
        for column in ("all", "chosen")
        for y in range(4)
        for x in range(5)
    ]
    image = ImageFigure("Explanations", pd.DataFrame(pixels))
    png, pdf = files_of(tmp_path / "a", image)
    assert (png, pdf) == files_of(tmp_path / "b", image)
    grey = mpl.image.imread(tmp_path / "a/f.png")[:, :, 0]
    assert {0.0, 1.0} <= set(np.unique(grey))
    assert np.isclose(grey, 0x8A / 255, atol=0.01).mean() > 0.02, "missing values are grey"


def test_an_unregistered_kind_of_figure_is_an_error() -> None:
    class Pie(LineFigure):
        pass

    with pytest.raises(TypeError, match="figure must be one of LineFigure, ImageFigure, got Pie; register a function"):
        drawn(Pie("t", "x", "y", POINTS), FigureSettings())


def test_a_logarithmic_axis_with_few_values_has_its_ticks_at_them() -> None:
    points = pd.DataFrame({"series": "a", "x": [5, 50, 700], "y": [1.0, 10.0, 100.0]})
    axes = mpl.figure.Figure().add_subplot()
    _draw_axes(axes, dataclasses.replace(figure(points), levels={}, x_scale="log"))
    assert axes.get_xticks().tolist() == [5, 50, 700]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["5", "50", "700"]
    assert axes.xaxis.get_minorticklocs().tolist() == []


def test_lines_coincide_on_the_scale_of_the_axis_and_up_to_rounding() -> None:
    points = pd.DataFrame({"series": list("aabbcc"), "x": [1, 2] * 3, "y": [1.0, 2.0, 1.5, 3.0, 1e6, 2e6]})
    both = [dataclasses.replace(figure(points), y_scale=scale) for scale in ("linear", "log")]
    assert [_coincide(shown, "a", "b") for shown in both] == [True, False]
    assert _coincide(figure(points[:4].assign(y=[1.0, 1.0, 1.0 - 2e-16, 1.0 - 1e-16])), "a", "b")


def names_in(shown: LineFigure) -> list[str]:
    with style(FigureSettings()):
        (axes,) = drawn(shown, FigureSettings()).axes
    return [text.get_text().replace("\n", " ") for text in axes.texts]


def test_each_series_is_named_once_in_its_colour_and_nothing_has_a_legend() -> None:
    names = ("line", "line (authors)", "other", "other (authors)", "equal", "cloud", "best")
    points = pd.concat([POINTS[POINTS["series"] == "accuracy"].assign(series=name) for name in names])
    marks = dict(zip(names, ("line", "reference", "line", "reference", "guide", "cloud", "highlight"), strict=True))
    both = {"levels": {"k = 1": 0.3, "k = 1 ": 0.1}, "verticals": {"truth": 1.5}, "interval": "range"}
    shown = dataclasses.replace(figure(points), marks=marks, **both)
    assert sorted(names_in(shown)) == sorted(
        ["line", "other", "equal", "● cloud", "best", "dashed: authors", "k = 1", "k = 1", "truth", "bars: range"]
    )
    with style(FigureSettings()):
        canvas = drawn(shown, FigureSettings())
    assert canvas.legends == []
    assert canvas.axes[0].get_legend() is None
    colours = {text.get_text(): text.get_color() for text in canvas.axes[0].texts}
    assert colours["line"] == "#0072B2"
    assert colours["other"] not in (colours["line"], colours["equal"])


def test_a_density_is_named_at_its_peak() -> None:
    points = pd.DataFrame({"series": "posterior", "x": [0, 1, 2, 3], "y": [0.0, 5.0, 1.0, 0.0]})
    with style(FigureSettings()):
        (axes,) = drawn(line_figure(points, marks={"posterior": "density"}), FigureSettings()).axes
    (name,) = axes.texts
    assert (name.get_text(), name.xy) == ("posterior", (1, 5))


def intervals_drawn(points: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Return where bars and where the ends of intervals are drawn."""
    axes = mpl.figure.Figure().add_subplot()
    _draw_axes(axes, dataclasses.replace(figure(points), levels={}))
    bars = [
        float(x)
        for collection in axes.collections
        if type(collection).__name__ == "LineCollection"
        for segment in collection.get_segments()
        for x in segment[:, 1]
    ]
    # The ends of intervals are in front of the line itself.
    ends = [float(y) for line in axes.lines if line.get_zorder() > 3 for y in line.get_ydata()]
    return bars, ends


def test_intervals_are_drawn_with_both_ends_however_narrow() -> None:
    narrow = POINTS.assign(low=POINTS["y"] - 1e-6, high=POINTS["y"] + 1e-6)
    for points in (POINTS, narrow):
        bars, ends = intervals_drawn(points)
        assert sorted(bars) == sorted(ends) == sorted([*points["low"], *points["high"]])


def test_an_unknown_interval_is_not_drawn() -> None:
    unknown = POINTS.assign(low=POINTS["low"].where(POINTS["x"] > 1), high=POINTS["high"].where(POINTS["x"] > 1))
    bars, ends = intervals_drawn(unknown)
    assert len(bars) == len(ends) == 2 * (POINTS["x"] > 1).sum()
    assert intervals_drawn(POINTS.drop(columns=["low", "high"])) == ([], [])
    nowhere = dataclasses.replace(figure(POINTS.assign(low=np.nan, high=np.nan)), interval="range")
    assert "bars: range" not in names_in(nowhere)


def test_many_points_have_a_band_with_edges() -> None:
    x = np.linspace(0, 1, 200)
    points = pd.DataFrame({"series": "a", "x": x, "y": x, "low": x - 0.1, "high": x + 0.1})
    bars, ends = intervals_drawn(points)
    assert bars == []
    assert sorted(ends) == sorted([*points["low"], *points["high"]])
    assert names_in(dataclasses.replace(figure(points), interval="range", levels={})) == ["a", "bands: range"]


def test_a_long_title_is_not_cut_off() -> None:
    with style(FigureSettings()):
        canvas = drawn(figure(title="Average minus log probability on subsets of the features " * 3), FigureSettings())
    canvas.draw_without_rendering()
    box = canvas._suptitle.get_window_extent()
    assert all(canvas.bbox.contains(*corner) for corner in box.corners())
