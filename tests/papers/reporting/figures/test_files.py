"""Figures drawn again from their points are the same, and readable in a column of a paper."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from tests.reproduction.reporting.builders import line_figure
from tests.reproduction.reporting.figures.measured import assert_readable, picture, preset
from trimbench.reproduction.reporting.figures.drawing import (
    StoredFigure,
    draw,
    read_points,
    write_figures,
    write_pictures,
)
from trimbench.reproduction.reporting.figures.looks import line_style, series_of
from trimbench.reproduction.reporting.figures.settings import PALETTES, FigureSettings
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.figures import BarFigure, Figure, ImageFigure, LineFigure

from ... import pages

EVERY_FORMAT = FigureSettings(formats=["png", "pdf", "svg"], dpi=60)
AWKWARD = pd.DataFrame(
    {
        # What a reader of tables takes for numbers, for missing or for nothing.
        "series": ["1", "1", "NA", "NA", "", "", 'a "b", c\nd', "é %{x}_$"],
        "x": [1, 2, 1, 2, 1, 2, 1, 2],
        "y": [0.1 + 0.2, 1 / 3, np.nan, 5e-324, 1e22, 2**53 + 1.0, -0.1, 0.3],
        "low": [0.1, np.nan, np.nan, -1.0, np.nan, np.nan, np.nan, 0.2],
        "high": [0.5, np.nan, np.nan, 1.0, np.nan, np.nan, np.nan, 0.4],
    }
)
PIXELS = pd.DataFrame(
    [
        {"row": row, "column": column, "y": y, "x": x, "value": np.nan if x == y else (x + y) / 6}
        for row in ("1", "0")
        for column in ("NA", "2")
        for y in range(3)
        for x in range(4)
    ]
)
BARS = pd.DataFrame({"bar": ["1.0", "NA"], "series": ["in", "out"], "y": [0, 1], "x": [0.1 + 0.2, -1e-17]})
FIGURES: Mapping[str, Figure] = {
    "awkward": line_figure(AWKWARD[AWKWARD["y"].abs() < 10], name="awkward"),
    "every field": LineFigure(
        "A title",
        "x",
        "y",
        pd.DataFrame({"series": list("aabb"), "x": [1, 10, 1, 10], "y": [0.25, 0.5, 0.75, 0.5]}),
        name="deep/name",
        levels={"10": np.float64(0.5), "2": 0.25},
        marks={"b": "reference"},
        verticals={"truth": np.float32(2.5), "unknown": float("nan")},
        x_scale="log",
        y_scale="log",
        interval="range",
        methods={"b": "a"},
    ),
    "images": ImageFigure("Images", PIXELS, "images"),
    "bars": BarFigure("Bars", "x", BARS, "in", "bars"),
}


def stored(descriptions: object, folder: Path) -> list[StoredFigure]:
    """Return the figures of descriptions that went through a file."""
    return [StoredFigure(one, folder) for one in json.loads(json.dumps(descriptions, allow_nan=False))]


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_pictures_are_the_same_from_memory_and_from_their_files(figure: Figure, tmp_path: Path) -> None:
    written, descriptions = write_figures([figure], tmp_path / "one", EVERY_FORMAT)
    (again,) = stored(descriptions, tmp_path)
    assert {*again.pictures, again.points} == set(written)
    before = [path.read_bytes() for path in again.pictures]
    assert [content[:5] for content in before] == [b"\x89PNG\r", b"%PDF-", b"<?xml"]
    from_memory = [tmp_path / f"memory{path.suffix}" for path in again.pictures]
    draw(figure, from_memory, EVERY_FORMAT)
    assert [path.read_bytes() for path in from_memory] == before
    for path in again.pictures:
        path.unlink()
        write_pictures(again.figure(), [path], again.settings)  # a single one does not depend on the others
    assert [path.read_bytes() for path in again.pictures] == before


def test_points_come_back_exactly(tmp_path: Path) -> None:
    AWKWARD.to_csv(tmp_path / "points.csv", index=False)
    pd.testing.assert_frame_equal(
        read_points(tmp_path / "points.csv", ["series"]), AWKWARD, check_dtype=False, check_exact=True
    )


def test_many_points_are_compressed_and_draw_the_same_picture(tmp_path: Path) -> None:
    many = pd.DataFrame({"series": "a", "x": np.arange(2001.0), "y": np.sin(np.arange(2001.0))})
    (picture, points), (description,) = write_figures([line_figure(many)], tmp_path / "one", FigureSettings())
    assert points.name == description["points"] == "one_points.csv.gz"
    stored = StoredFigure(description, tmp_path)
    pd.testing.assert_frame_equal(stored.figure().points, many, check_dtype=False, check_exact=True)
    first = picture.read_bytes()
    draw(stored.figure(), [picture], stored.settings)
    assert picture.read_bytes() == first


@pytest.mark.parametrize("damage", ["cut", "changed", "plain text"])
def test_damaged_compressed_points_are_an_error(damage: str, tmp_path: Path) -> None:
    whole = gzip.compress(b"series,x,y\n" + b"a,1,2\n" * 999, mtime=0)
    damaged = {"cut": whole[:-9], "changed": whole[:20] + b"\xff" * 8 + whole[28:], "plain text": b"series,x,y\n"}
    (tmp_path / "points.csv.gz").write_bytes(damaged[damage])
    with pytest.raises(ConfigurationError, match=r"points\.csv\.gz cannot be read: .*; task=report writes it"):
        read_points(tmp_path / "points.csv.gz", ["series"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x," * 4 * 10**5 + "x\n", "at most 5,000 columns"),
        ("series,x,y,x\na,1,2,3\n", "each with a name of its own"),
        ("series,x,y\na,1\n", "it has 3 columns, and a line of 2 values"),
        ('series,x,y\n"a,1,2\n', "unexpected end of data"),
        ("\n", "there is no column 'series'"),
    ],
)
def test_points_that_nothing_here_writes_are_an_error_at_once(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text(content)
    start = time.process_time()
    with pytest.raises(ConfigurationError, match=message):
        read_points(tmp_path / "points.csv", ["series"])
    assert time.process_time() - start < 2


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text(f"series,x,y\n{'a' * 200_000},1,2\n")
    assert len(read_points(tmp_path / "points.csv", ["series"]).series[0]) == 200_000


def test_a_constant_is_no_picture(tmp_path: Path) -> None:
    points = pd.DataFrame({"series": ["a", "a", "b"], "x": [1.0, 2.0, 1.0], "y": [0.1 + 0.2, 0.3, 0.3]})
    for shown, drawn in ((points, False), (points.assign(y=[0.3, 0.4, 0.3]), True), (points[:1], True)):
        written, descriptions = write_figures([line_figure(shown)], tmp_path / "one", FigureSettings())
        assert (bool(written), bool(descriptions)) == (drawn, drawn)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "pie"}, "one_images_points.csv: the kind of a figure must be one of bars, images, lines, got 'pie'"),
        ({"titel": "A title"}, "the description of the figure does not fit: got an unexpected keyword"),
        ({"drawn_with": {"width": 0}}, "drawn_with: width must be a number of inches from 1 to 40, got 0"),
    ],
)
def test_a_wrong_description_is_an_error(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    _, (description,) = write_figures([FIGURES["images"]], tmp_path / "one", FigureSettings())
    damaged = StoredFigure(description | change, tmp_path)
    with pytest.raises(ConfigurationError, match=message):
        draw(damaged.figure(), [tmp_path / "again.png"], damaged.settings)


PROGRAM = """
import sys
from pathlib import Path
from tests.papers.reporting.figures.test_files import draw_all

draw_all(Path(sys.argv[1]))
"""
MATPLOTLIBRC = """
font.family: monospace
font.size: 20
savefig.bbox: tight
savefig.dpi: 30
axes.grid: False
axes.facecolor: pink
svg.fonttype: none
svg.hashsalt: other
pdf.compression: 0
figure.constrained_layout.h_pad: 1
lines.linewidth: many
nothing.like: this
"""


def draw_all(folder: Path) -> dict[str, bytes]:
    """Draw figures of two kinds in every format into a folder, and return the pictures."""
    for place, figure in enumerate((FIGURES["every field"], FIGURES["images"])):
        draw(figure, [folder / f"{place}.{ending}" for ending in EVERY_FORMAT.formats], EVERY_FORMAT)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_pictures_depend_neither_on_the_process_nor_on_the_users_settings(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = draw_all(tmp_path / "plain")
    assert len(plain) == 6
    # A program whose surroundings differ in everything draws them, too.
    (tmp_path / "matplotlibrc").write_text(MATPLOTLIBRC)
    (pictures := tmp_path / "pictures").mkdir()
    surroundings = {"PYTHONPATH": str(Path(__file__).parents[4]), "PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "1"}
    surroundings |= {"MPLBACKEND": "svg", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", PROGRAM, str(pictures)]
    subprocess.run(command, cwd=tmp_path, env=os.environ | surroundings, check=True, timeout=120)
    assert plain == {path.name: path.read_bytes() for path in pictures.iterdir()}


# In a column of a paper, texts of the published figures do not overlap, and none is smaller than 7 points.


def published() -> list[list[StoredFigure]]:
    """Return the figures of each published experiment that has some."""
    found = []
    for path in sorted((pages.ROOT / "results" / "published").rglob("*.json")):
        descriptions = json.loads(path.read_text(encoding="utf-8")).get("figures", ())
        found.append([StoredFigure(one, path.parent) for one in descriptions])
    return [figures for figures in found if figures]


PUBLISHED = published()


def hardest() -> list[StoredFigure]:
    """Return the figures with the longest texts and with the most points of each form in each experiment."""
    found: list[StoredFigure] = []
    for figures in PUBLISHED:
        forms: dict[tuple[object, ...], list[StoredFigure]] = {}
        for one in figures:
            forms.setdefault(tuple(one.description.get(key) for key in ("kind", "x_scale", "y_scale")), []).append(one)
        for alike in forms.values():
            longest = max(alike, key=lambda one: len(json.dumps(one.description)))
            found += dict.fromkeys([longest, max(alike, key=lambda one: one.points.stat().st_size)])
    return found


@pytest.mark.parametrize("stored", hardest(), ids=lambda one: one.points.stem)
def test_published_figures_in_a_column(stored: StoredFigure) -> None:
    shown = stored.figure()
    column = preset("column", title=True)  # which leaves less room for the rest
    canvas = picture(shown, column)
    texts = [text.get_text().replace("\n", " ") for text in assert_readable(canvas, least_points=7)]
    assert shown.title in texts
    assert canvas.get_figwidth() == (pytest.approx(3.3) if isinstance(shown, ImageFigure) else 3.3)


# How colours look to eyes without one of the three receptors (Machado, Oliveira and Fernandes, 2009), and in grey.
SEEN = {
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}


def test_published_lines_and_points_are_told_apart_by_all_eyes() -> None:
    def differ(one: str, other: str, eyes: npt.NDArray[np.float64]) -> bool:
        linear = (np.array(to_rgb(colour)) ** 2.2 for colour in (one, other))
        ours, theirs = (np.clip(eyes @ colour, 0, 1) ** (1 / 2.2) for colour in linear)
        return bool(abs(ours - theirs).max() >= 0.05)

    every = [(stored, stored.figure()) for figures in PUBLISHED for stored in figures]
    assert {type(figure) for _, figure in every} == {LineFigure, ImageFigure, BarFigure}
    alike = []
    for stored, figure in every:
        lines = series_of(figure, stored.settings.colours) if isinstance(figure, LineFigure) else []
        drawn = [line for line in lines if line.mark in ("line", "points", "highlight")]
        for one, other in itertools.combinations(drawn, 2):
            marked = one.mark != other.mark or ("marker" in line_style(one) and one.marker != other.marker)
            if not marked and one.dashes == other.dashes:
                confused = [name for name, eyes in SEEN.items() if not differ(one.colour, other.colour, np.array(eyes))]
                alike += [(stored.points.stem, one.name, other.name, name) for name in confused]
    assert alike == []


@pytest.mark.parametrize("stored", [figures[0] for figures in PUBLISHED], ids=lambda one: one.points.stem)
def test_the_first_published_picture_of_an_experiment_is_what_is_drawn_now(
    stored: StoredFigure, tmp_path: Path
) -> None:
    if f"\nmatplotlib=={matplotlib.__version__} " not in (pages.ROOT / "requirements/run.lock").read_text("utf-8"):
        pytest.skip("the published pictures are drawn by another version of Matplotlib, which sets text otherwise")
    draw(stored.figure(), [tmp_path / path.name for path in stored.pictures], stored.settings)
    for path in stored.pictures:
        # Processors round differently, which moves the colours of the palette a little.
        changed = (abs(imread(tmp_path / path.name) - imread(path)) > 0.3).any(axis=2).mean()
        assert changed < 2e-4, f"{path} is not what is drawn now"


def test_a_method_has_the_same_colour_in_every_figure_of_an_experiment(tmp_path: Path) -> None:
    shown = [("trimming", "asking", "random"), ("random", "trimming"), ("a tree", "random", "mean"), ("apart",)]
    figures = [
        LineFigure.of("t", ("x", "y"), [(name, x, x) for name in names for x in (1, 2)], name=f"f{place}")
        for place, names in enumerate(shown)
    ]
    _, descriptions = write_figures(figures, tmp_path / "one", FigureSettings(), drawn=False)
    found = [
        {one.name: one.colour for one in series_of(StoredFigure(about, tmp_path).figure(), FigureSettings().colours)}
        for about in descriptions
    ]
    assert [tuple(colours) for colours in found] == shown
    assert len({colours["random"] for colours in found[:3]}) == 1
    assert found[3]["apart"] == PALETTES["okabe-ito"][0], "what shares nothing is drawn as if it were alone"
    assert found[0]["trimming"] == found[1]["trimming"]
    assert all(len({*colours.values()}) == len(colours) for colours in found)
    _, descriptions = write_figures(figures[:1], tmp_path / "alone", FigureSettings(), drawn=False)
    assert descriptions[0]["methods"] == {}, "nothing to share"
