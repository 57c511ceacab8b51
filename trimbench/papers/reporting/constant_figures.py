"""Figures whose points all have one value: a line of text says more than their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.series import Series, levels_of
from trimbench.papers.reporting.text import fit, points_to_pixels, title_size
from trimbench.papers.study.figures import LineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Differences below this share of the value are rounding.
_ROUNDING = 1e-9
# Space in points around the texts.
_PAD = 8.0


def constant_text(figure: LineFigure, series: Sequence[Series]) -> str:
    """Return what a figure shows if all its points, intervals and levels have one value; else an empty text."""
    columns = [one.points[name] for one in series for name in ("y", "low", "high") if name in one.points]
    values = np.concatenate([*map(np.asarray, columns), [level.at for level in levels_of(figure)]]).astype(float)
    values = values[np.isfinite(values)]
    if not len(values) or np.ptp(values) > _ROUNDING * abs(values).max():
        return ""
    n_points = sum(len(one.points) for one in series)
    subject = {1: "The only point is", 2: "Both points are"}.get(n_points, f"All {n_points:,} points are")
    names = [one.name for one in series if one.mark != "reference"]
    shown = ", ".join(names[:-1]) + " and " * (len(names) > 1) + "".join(names[-1:])
    return f"{subject} {values[0]:.6g}: {figure.y_label}{' of ' * bool(shown)}{shown}."


def draw_constant(canvas: Canvas, text: str, settings: FigureSettings, title: str) -> None:
    """Write the title and a text into a picture that is as high as they are."""
    canvas.set_layout_engine("none")
    sizes = [(title, title_size(settings))] if settings.title else []
    written = []
    for content, size in [*sizes, (text, settings.font_size)]:
        one = canvas.text(0.015, 1, "", ha="left", va="top", fontsize=size, parse_math=False)
        fit(one, content, 0.97 * canvas.bbox.width)
        written.append(one)
    pad = points_to_pixels(written[0], _PAD)
    heights = [one.get_window_extent().height + pad for one in written]
    total = sum(heights) + pad
    canvas.set_size_inches(settings.width, total / canvas.dpi)
    for place, one in enumerate(written):
        one.set_y(1 - (pad + sum(heights[:place])) / total)
