"""Grids of small images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.figures.text import fit, fit_upwards, name_size, set_title
from trimbench.papers.study.figures import ImageFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# An image is at most this wide and high, in inches, with its share of the margins.
_MOST_INCHES = 1.5


def draw_images(canvas: Canvas, figure: ImageFigure, settings: FigureSettings) -> None:
    """Draw a grid of images, as wide as the settings say or narrower; its height follows from the number of rows."""
    import matplotlib as mpl

    rows, columns = (list(dict.fromkeys(figure.points[axis])) for axis in ("row", "column"))
    margin = 3 * settings.font_size / 72
    side = min(_MOST_INCHES, (settings.width - margin) / len(columns))
    canvas.set_size_inches(side * len(columns) + margin, 1.04 * side * len(rows) + margin)
    grid = canvas.subplots(len(rows), len(columns), squeeze=False)
    palette = mpl.colormaps["gray"].with_extremes(bad="#8a8a8a")
    for (row, column), panel in figure.points.groupby(["row", "column"], sort=False):
        axes = grid[rows.index(row), columns.index(column)]
        image = panel.pivot_table(index="y", columns="x", values="value", dropna=False)
        axes.imshow(image.to_numpy(dtype=float), cmap=palette, vmin=0, vmax=1, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        if rows.index(row) == 0:
            axes.set_title("", fontsize=name_size(settings), parse_math=False)
            fit(axes.title, str(column), 0.95 * side * canvas.dpi)
        if columns.index(column) == 0:
            axes.set_ylabel("", fontsize=name_size(settings), parse_math=False)
            fit_upwards(axes.yaxis.label, str(row), 0.95 * side * canvas.dpi)
    if settings.title:
        set_title(canvas, figure.title, settings)
