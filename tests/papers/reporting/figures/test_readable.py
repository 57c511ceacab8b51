"""In a column of a paper, texts of the published figures do not overlap, and none is smaller than 7 points."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import pytest
from matplotlib.image import imread

from trimbench.papers.reporting.figures.drawing import StoredFigure, draw
from trimbench.papers.vocabulary.figures import BarFigure, ImageFigure, LineFigure

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


@pytest.mark.parametrize("stored", [one for figures in PUBLISHED for one in figures], ids=lambda one: one.points.stem)
def test_published_figures_in_a_column(stored: StoredFigure) -> None:
    shown = stored.figure()
    column = preset("column", title=True)  # which leaves less room for the rest
    canvas = picture(shown, column)
    texts = [text.get_text().replace("\n", " ") for text in assert_readable(canvas, least_points=7)]
    assert shown.title in texts
    assert canvas.get_figwidth() == (pytest.approx(3.3) if isinstance(shown, ImageFigure) else 3.3)


def test_every_kind_of_figure_is_published() -> None:
    kinds = {type(one.figure()) for figures in PUBLISHED for one in figures}
    assert kinds == {LineFigure, ImageFigure, BarFigure}


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
