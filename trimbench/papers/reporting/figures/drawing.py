"""Figures from their points, in one style."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.reporting.figures.bars import draw_bars
from trimbench.papers.reporting.figures.image_grids import draw_images
from trimbench.papers.reporting.figures.line_figures import draw_lines
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.study.figures import BarFigure, Figure, ImageFigure, LineFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# How each kind of figure is drawn, its title included. A new kind needs a module with such a function, and a line here.
_DRAW: Mapping[type, Callable[[Canvas, Any, FigureSettings], None]] = {
    LineFigure: draw_lines,
    ImageFigure: draw_images,
    BarFigure: draw_bars,
}
_STYLE: dict[Any, Any] = {
    # One family without alternatives: fonts that happen to be installed play no part.
    "font.family": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.xmargin": 0.03,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "trimbench",
}
# No date and no version: the same points give the same bytes.
_METADATA: Mapping[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
}


def draw(figure: Figure, paths: Sequence[Path], settings: FigureSettings) -> None:
    """Draw a figure into one or several files, whose endings give the formats."""
    with style(settings):
        canvas = drawn(figure, settings)
        for path in paths:
            canvas.savefig(path, metadata=_METADATA[path.suffix])
            if path.suffix == ".png":
                with_few_colours(path)


def with_few_colours(picture: Path) -> None:
    """Write a PNG again with a palette, which is enough for lines and text and takes a third of the space."""
    from PIL import Image  # a requirement of matplotlib

    with Image.open(picture) as image:
        image.load()
    colours = image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    colours.save(picture, optimize=True)


@contextmanager
def style(settings: FigureSettings) -> Iterator[None]:
    """Give matplotlib this style for a while, whatever the user's matplotlibrc or program has set."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"font.size": settings.font_size})
        yield


def drawn(figure: Figure, settings: FigureSettings) -> Canvas:
    """Return the picture of a figure, drawn in matplotlib's current style; TypeError if its kind is not registered."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    if type(figure) not in _DRAW:
        kinds = ", ".join(kind.__name__ for kind in _DRAW)
        raise TypeError(
            f"figure must be one of {kinds}, got {type(figure).__name__}; register a function that draws it"
        )
    canvas = Canvas(figsize=(settings.width, settings.height), dpi=settings.dpi, layout="constrained")
    FigureCanvasAgg(canvas)
    _DRAW[type(figure)](canvas, figure, settings)
    # Laid out once, for all formats alike.
    engine = canvas.get_layout_engine()
    if engine:
        engine.execute(canvas)
    canvas.set_layout_engine("none")
    return canvas
