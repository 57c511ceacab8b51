"""A figure that is drawn again from its points and its description is the same picture, byte for byte."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trimbench.papers.reporting.figures.drawing import StoredFigure, draw, read_points, write_figures, write_pictures
from trimbench.papers.validation import ConfigurationError
from trimbench.papers.vocabulary.outcome import BarFigure, Figure, FigureSettings, ImageFigure, LineFigure

from ..builders import line_figure

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
