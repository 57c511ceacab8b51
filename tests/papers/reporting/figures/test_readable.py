"""In a column of a paper, texts of the published figures do not overlap, and none is smaller than 7 points."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from trimbench.papers.reporting.figures.drawing import StoredFigure, draw
from trimbench.papers.reporting.figures.lines import line_style, series_of
from trimbench.papers.vocabulary.outcome import BarFigure, ImageFigure, LineFigure

from ... import pages
from .measured import assert_readable, picture, preset


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
