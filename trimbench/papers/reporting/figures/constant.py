"""Figures whose points all have one value: a line of text says more than their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.reporting.figures.series import Series, levels_of
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.figures.text import GREY, fit, name_size, points_to_pixels, title_size
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Differences below this share of the value are rounding.
_ROUNDING = 1e-9
# Space in points around the texts.
_PAD = 8.0


def constant_text(figure: LineFigure, series: Sequence[Series]) -> str:
    """Return in a line what a figure shows if all its points, intervals and levels have one value; else nothing."""
    if not series:
        return f"{figure.y_label}: no point is known"
    columns = [one.points[name] for one in series for name in ("y", "low", "high") if name in one.points]
    values = np.concatenate([*map(np.asarray, columns), [level.at for level in levels_of(figure)]]).astype(float)
    values = values[np.isfinite(values)]
    if not len(values) or np.ptp(values) > _ROUNDING * abs(values).max():
        return ""
    n_points = sum(len(one.points) for one in series)
    subject = {1: "the only point is", 2: "both points are"}.get(n_points, f"all {n_points:,} points are")
    return f"{figure.y_label}: {subject} {values[0]:.6g}"


def draw_constant(
    canvas: Canvas, figure: LineFigure, text: str, series: Sequence[Series], settings: FigureSettings
) -> None:
    """Write the title, a text and the names of the series into a picture that is as high as they are."""
    canvas.set_layout_engine("none")
    lines = [(figure.title, title_size(settings), "black")] if settings.title else []
    lines.append((text, settings.font_size, "black"))
    lines.append(("; ".join(one.name for one in series), name_size(settings), GREY))
    written = []
    for content, size, colour in lines:
        one = canvas.text(0.015, 1, "", ha="left", va="top", fontsize=size, color=colour, parse_math=False)
        fit(one, content, 0.97 * canvas.bbox.width)
        written.append(one)
    pad = points_to_pixels(canvas, _PAD)
    heights = [one.get_window_extent().height + pad for one in written]
    total = sum(heights) + pad
    canvas.set_size_inches(settings.width, total / canvas.dpi)
    for place, one in enumerate(written):
        one.set_y(1 - (pad + sum(heights[:place])) / total)
