"""Figures from their points, in one style."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.reporting.image_grids import draw_images
from trimbench.papers.reporting.line_figures import draw_lines
from trimbench.papers.study.figures import Figure, ImageFigure, LineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# How each kind of figure is drawn, its title included. A new kind needs a module with such a function, and a line here.
_DRAW: Mapping[type, Callable[[Canvas, Any], None]] = {LineFigure: draw_lines, ImageFigure: draw_images}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.xmargin": 0.03,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "pdf.fonttype": 42,
}


def draw(figure: Figure, paths: Sequence[Path]) -> None:
    """Draw a figure into one or several files, whose endings give the formats."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        canvas = drawn(figure)
        for path in paths:
            # No creation date: the same points give the same bytes.
            metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
            canvas.savefig(path, metadata=metadata)


def drawn(figure: Figure) -> Canvas:
    """Return the picture of a figure, drawn in matplotlib's current style; TypeError if its kind is not registered."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    if type(figure) not in _DRAW:
        kinds = ", ".join(kind.__name__ for kind in _DRAW)
        raise TypeError(
            f"figure must be one of {kinds}, got {type(figure).__name__}; register a function that draws it"
        )
    canvas = Canvas(figsize=(6.8, 3.9), dpi=160, layout="constrained")
    FigureCanvasAgg(canvas)
    _DRAW[type(figure)](canvas, figure)
    return canvas
