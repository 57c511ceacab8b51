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
from PIL import Image

from trimbench.reproduction.reporting.figures.drawing import draw, drawn
from trimbench.reproduction.reporting.figures.lines import draw_axes
from trimbench.reproduction.reporting.figures.looks import series_of
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.vocabulary.figures import BarFigure, Figure, ImageFigure, LineFigure

from ..builders import line_figure
from .measured import assert_readable, described, picture, texts_of

POINTS = pd.DataFrame(
    [
        {"series": series, "x": x, "y": x / 10 + shift, "low": x / 10, "high": x / 10 + 0.3}
        for series, shift in (("agreement", 0.1), ("accuracy", 0.2))
        for x in (3, 1, 2)
    ]
)
LINES = POINTS[["series", "x", "y"]]


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
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 20}):  # a user's own settings
        assert (png, pdf) == files_of(tmp_path / "b", figure(ordered))


def test_markers_are_in_front_of_the_ends_of_intervals() -> None:
    (axes,) = picture(line_figure(POINTS)).axes
    caps, marks = ([line for line in axes.lines if line.get_marker() in shown] for shown in ("_", "os^D"))
    in_front = {line.get_marker() for line in marks if line.get_zorder() > max(cap.get_zorder() for cap in caps)}
    assert in_front == {line.get_marker() for line in marks} != set()


def pixels(columns: int = 2) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"row": row, "column": f"column {column}", "y": y, "x": x, "value": (y + x) % 2 if column or y else np.nan}
            for row in ("first", "second")
            for column in range(columns)
            for y in range(4)
            for x in range(5)
        ]
    )


def in_axes(shown: LineFigure) -> Any:
    axes = mpl.figure.Figure().add_subplot()
    draw_axes(axes, shown, series_of(shown, FigureSettings().colours))
    return axes


EVERY_MARK = ("line", "reference", "guide", "points", "highlight", "cloud", "density")
MARKED = pd.DataFrame(
    [
        {"series": mark, "x": x, "y": x + place, "low": x, "high": x + 0.25 * place}
        for place, mark in enumerate(EVERY_MARK)
        for x in (1, 2)
    ]
)
SAID: dict[str, Any] = {"levels": {"all $x$": 3.0}, "verticals": {"truth": 1.5}, "marks": {m: m for m in EVERY_MARK}}
BARS = pd.DataFrame({"bar": ["$a$", "b"], "series": ["in", "out"], "y": [1, 0], "x": [0.25, 0.5]})
DRAWN = {
    "lines": lambda: in_axes(line_figure(MARKED, **SAID)),
    "legend": lambda: picture(line_figure(MARKED[:12][["series", "x", "y"]], **SAID)),
    "beside": lambda: picture(line_figure(MARKED[:6].assign(x=10.0 ** MARKED["x"]), x_scale="log", interval="range")),
    "images": lambda: picture(ImageFigure("Images", pixels().replace({"column": {"column 0": "$x$"}}))),
    "bars": lambda: picture(BarFigure("Bars", "x", BARS, "in")),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_parts_of_pictures_are_drawn_as_ever(name: str) -> None:
    ever = Path(__file__).with_name("drawn.txt").read_text(encoding="utf-8")
    assert described(DRAWN[name]()) == ever.split(f"# {name}\n")[1].split("\n#")[0].strip()


def test_drawing_leaves_the_style_of_others_alone(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    files_of(tmp_path / "a", figure())
    assert dict(mpl.rcParams) == before


def test_images(tmp_path: Path) -> None:
    draw(ImageFigure("Explanations", pixels()), [tmp_path / "f.png"], FigureSettings())
    grey = mpl.image.imread(tmp_path / "f.png")[:, :, 0]
    assert {0.0, 1.0} <= set(np.unique(grey))
    assert np.isclose(grey, 0x8A / 255, atol=0.01).mean() > 0.02, "missing values are grey"


def test_an_unregistered_kind_of_figure_is_an_error() -> None:
    class Pie(LineFigure):
        pass

    with pytest.raises(TypeError, match="figure must be one of LineFigure, ImageFigure, BarFigure, got Pie; register"):
        drawn(Pie("t", "x", "y", POINTS), FigureSettings())


def coinciding(shown: LineFigure) -> bool:
    return bool(series_of(shown, FigureSettings().colours)[0].shared)


def test_lines_coincide_on_the_scale_of_the_axis_and_up_to_rounding() -> None:
    points = pd.DataFrame({"series": list("aabbcc"), "x": [1, 2] * 3, "y": [1.0, 2.0, 1.5, 3.0, 1e6, 2e6]})
    assert coinciding(figure(points))
    assert not coinciding(dataclasses.replace(figure(points), y_scale="log"))
    assert coinciding(figure(points[:4].assign(y=[1.0, 1.0, 1.0 - 2e-16, 1.0 - 1e-16])))


def test_wide_intervals_of_many_lines_stand_side_by_side() -> None:
    one = POINTS[POINTS["series"] == "accuracy"]
    shown = line_figure(pd.concat(one.assign(series=name, y=one["y"] + place) for place, name in enumerate("abcde")))
    (axes,) = picture(shown).axes
    moved = [(line.get_transform().transform((1, 1)) - axes.transData.transform((1, 1)))[0] for line in axes.lines]
    places = np.unique(np.round(moved, 6))
    assert np.allclose(places, 2.2 * np.arange(-2, 3) * axes.figure.dpi / 72), "around their points"
    # In one colour, their dashes tell them apart.
    dashes = {one.dashes for one in series_of(shown, ("black",))}
    assert len(dashes) == 5
    assert all(offset == 0 for offset, _ in dashes - {"-"}), "each begins with a whole dash"


def over_x(**heights: list[float]) -> LineFigure:
    rows = [(name, x, y) for name, ys in heights.items() for x, y in enumerate(ys)]
    return LineFigure.of("A title", ("x", "y"), rows)


def drawn_lines(shown: LineFigure) -> dict[str, list[Any]]:
    """Return what is drawn of each series: lines (without markers) and markers (without a line)."""
    (axes,) = picture(shown).axes
    series = {one.colour: one.name for one in series_of(shown, FigureSettings().colours)}
    found: dict[str, list[Any]] = {name: [] for name in series.values()}
    for line in axes.lines:
        found[series[line.get_color()]].append(line)
    return found


def stretches(shown: LineFigure) -> dict[str, list[tuple[float, float, bool]]]:
    """Return where each line is drawn, from x to x, and whether without gaps."""
    return {
        name: [
            (float(line.get_xdata()[0]), float(line.get_xdata()[-1]), line.get_linestyle() == "-")
            for line in lines
            if line.get_linestyle() != "None"
        ]
        for name, lines in drawn_lines(shown).items()
    }


def markers(shown: LineFigure) -> dict[str, dict[float, float]]:
    """Return the place of each marker of each series, with its height among all that is drawn."""
    return {
        name: {
            float(x): line.get_zorder()
            for line in lines
            if line.get_marker() not in ("", "None")
            for x in line.get_xdata()
        }
        for name, lines in drawn_lines(shown).items()
    }


# Four lines that coincide, but in the middle, where they do so in pairs.
PAIRS = {"a": [1.0, 1, 0.9, 1, 1], "b": [1.0, 1, 0.2, 1, 1], "c": [1.0, 1, 0.2, 1, 1], "d": [1.0, 1, 0.9, 1, 1]}


def test_lines_that_coincide_take_turns() -> None:
    same = over_x(a=[1.0, 3.0, 2.0], b=[1.0, 3.0, 2.0], c=[5.0, 6.0, 7.0])
    found = drawn_lines(same)
    patterns = [found[name][0]._unscaled_dash_pattern for name in "ab"]
    (offset, pattern), (other_offset, other_pattern) = patterns
    assert pattern == other_pattern == (4.0, 4.0)
    assert (offset - other_offset) % sum(pattern) == pattern[0], "the dashes of one fill the gaps of the other"
    assert stretches(same) == {"a": [(0, 2, False)], "b": [(0, 2, False)], "c": [(0, 2, True)]}
    assert {name: [*places] for name, places in markers(same).items()} == {"a": [0, 2], "b": [1], "c": [0, 1, 2]}
    texts = {text.get_text() for text in assert_readable(picture(same))}
    assert "lines that coincide take turns" in texts


def test_lines_take_turns_where_they_coincide_alone() -> None:
    shown = over_x(a=[1.0, 2, 3, 4], b=[1.0, 2, 9, 9])
    assert stretches(shown) == {"a": [(0, 1, False), (1, 3, True)], "b": [(0, 1, False), (1, 3, True)]}
    one, *_ = series_of(over_x(**PAIRS), FigureSettings().colours)
    assert [*map("".join, one.shared)] == ["abcd", "ad", "ad", "abcd"], "among those that coincide there"
    assert not coinciding(over_x(a=[1.0, 2, 3], b=[3.0, 2, 1])), "lines that cross"


def test_every_line_has_its_markers_where_not_all_of_its_group_coincide() -> None:
    found = markers(over_x(**PAIRS))
    assert {name: [place for place in places if place != 2] for name, places in found.items()} == {
        "a": [0, 4],
        "b": [1],
        "c": [],
        "d": [3],
    }
    assert all(2 in places for places in found.values())
    assert found["a"][2] > found["d"][2], "a marker in front of the other"
    (axes,) = picture(over_x(**PAIRS)).axes
    sizes = {line.get_zorder(): line.get_markersize() for line in axes.lines if 2 in line.get_xdata()}
    assert sizes[found["a"][2]] < sizes[found["d"][2]], "which is larger, and so visible"


def test_lines_that_stand_side_by_side_have_all_their_markers() -> None:
    one = POINTS[POINTS["series"] == "accuracy"]
    beside = line_figure(pd.concat(one.assign(series=name) for name in "abc"), interval="range")
    assert "moved sideways" in picture(beside).legends[0].get_title().get_text()
    assert all(one.shared and [*one.in_front] == [0, 1, 2] for one in series_of(beside, FigureSettings().colours))


@pytest.mark.parametrize("value", [0.123, 0.0, 1.0, 1e9])
def test_a_constant_figure_has_axes_around_its_value(value: float) -> None:
    points = POINTS.assign(y=value, low=value, high=value)
    canvas = picture(line_figure(points, levels={"all": value}))
    assert_readable(canvas)
    (axes,) = canvas.axes
    low, high = axes.get_ylim()
    assert low < value < high


def test_a_figure_without_a_known_point_says_so() -> None:
    texts = assert_readable(picture(figure(POINTS.assign(y=np.nan))))
    assert {"A title", "no point is known", "probability"} <= {text.get_text() for text in texts}


def test_the_palette_sets_the_colours_of_lines() -> None:
    (axes,) = picture(line_figure(LINES), FigureSettings(palette=["#123456", "red"])).axes
    assert {line.get_color() for line in axes.lines} == {"#123456", "red"}


def test_size_and_title_follow_the_settings(tmp_path: Path) -> None:
    small = FigureSettings(width=3, height=2, dpi=100, title=False)
    draw(line_figure(POINTS[:3]), [tmp_path / "small.png"], small)
    assert mpl.image.imread(tmp_path / "small.png").shape[:2] == (200, 300)
    assert "A title" not in [text.get_text() for text in texts_of(picture(line_figure(POINTS), small))]
    images = picture(ImageFigure("A title", pixels(columns=6)), small)
    assert_readable(images, 8)
    assert images.get_figwidth() <= 3


def intervals_drawn(points: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Return where bars and where the ends of intervals are drawn."""
    axes = in_axes(dataclasses.replace(figure(points), levels={}))
    bars = [
        float(x)
        for collection in axes.collections
        if type(collection).__name__ == "LineCollection"
        for segment in collection.get_segments()
        for x in segment[:, 1]
    ]
    # The ends of intervals are in front of the line itself, and behind its markers.
    ends = [float(y) for line in axes.lines if 3 < line.get_zorder() <= 4 for y in line.get_ydata()]
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
    assert picture(nowhere).legends[0].get_title().get_text() == ""


def test_many_points_have_a_band_with_edges() -> None:
    x = np.linspace(0, 1, 200)
    points = pd.DataFrame({"series": "a", "x": x, "y": x, "low": x - 0.1, "high": x + 0.1})
    bars, ends = intervals_drawn(points)
    assert bars == []
    assert sorted(ends) == sorted([*points["low"], *points["high"]])
    (legend,) = picture(dataclasses.replace(figure(points), interval="range", levels={})).legends
    assert legend.get_title().get_text() == "bands: range"


def test_a_picture_beyond_what_pillow_reads_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)  # twice as many are an error (mpetroff/pannellum#596)
    draw(figure(), [tmp_path / "a.png"], FigureSettings())
    monkeypatch.undo()
    with Image.open(tmp_path / "a.png") as drawn_picture:
        assert drawn_picture.mode == "P"
