"""Grids of small images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.labels import set_title
from trimbench.papers.study.figures import ImageFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def draw_images(canvas: Canvas, figure: ImageFigure, settings: FigureSettings) -> None:
    """Draw a grid of images; the size of the picture follows from their number."""
    import matplotlib as mpl

    rows, columns = (list(dict.fromkeys(figure.points[axis])) for axis in ("row", "column"))
    canvas.set_size_inches(1.5 * len(columns) + 0.4, 1.55 * len(rows) + 0.4)
    grid = canvas.subplots(len(rows), len(columns), squeeze=False)
    palette = mpl.colormaps["gray"].with_extremes(bad="#8a8a8a")
    for (row, column), panel in figure.points.groupby(["row", "column"], sort=False):
        axes = grid[rows.index(row), columns.index(column)]
        image = panel.pivot_table(index="y", columns="x", values="value", dropna=False)
        axes.imshow(image.to_numpy(dtype=float), cmap=palette, vmin=0, vmax=1, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.grid(False)
        if rows.index(row) == 0:
            axes.set_title(column, fontsize=8)
        if columns.index(column) == 0:
            axes.set_ylabel(row, fontsize=8)
    if settings.title:
        set_title(canvas, figure.title)
