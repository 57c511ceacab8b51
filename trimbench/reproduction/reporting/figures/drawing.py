"""Figures as files: their points, their descriptions, and the pictures that are drawn from both."""

from __future__ import annotations

import dataclasses
import inspect
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import BadGzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.reproduction.children import imported
from trimbench.reproduction.files import NotDataError, as_it_was, beside, csv_ending, read_csv, temporaries, write_csv
from trimbench.reproduction.messages import reason
from trimbench.reproduction.project import DISTRIBUTION
from trimbench.reproduction.reporting.figures.lines import draw_legend, draw_lines
from trimbench.reproduction.reporting.figures.looks import with_shared_colours
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.figures.text import fit, fit_upwards, name_size, set_title, wrapped
from trimbench.reproduction.settings import ConfigurationError, Json, unknown, validated
from trimbench.reproduction.vocabulary.figures import BarFigure, Figure, ImageFigure, LineFigure, points_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Canvas


# Differences below this share of a value are rounding.
_ROUNDING = 1e-9
# What a description has besides the fields of its figure.
_KIND, _POINTS, _PICTURES, _DRAWN_WITH = "kind", "points", "pictures", "drawn_with"


@dataclass(frozen=True, eq=False)
class StoredFigure:
    """A figure that can be drawn again: its description, and the folder of its files."""

    description: Mapping[str, Any]
    folder: Path

    @property
    def settings(self) -> FigureSettings:
        """The settings with which its pictures were drawn."""
        return validated(FigureSettings, self.description.get(_DRAWN_WITH), f"{self.points}: {_DRAWN_WITH}")

    @property
    def points(self) -> Path:
        """The file with its points."""
        return self.folder / str(self.description[_POINTS])

    @property
    def pictures(self) -> list[Path]:
        """Its pictures, whether they exist or not."""
        return [self.folder / str(name) for name in self.description[_PICTURES]]

    def figure(self) -> Figure:
        """Return the figure, with its points; ConfigurationError if the description is not that of a figure."""
        name = str(self.description[_KIND])
        if name not in _KINDS:
            raise unknown(f"{self.points}: the kind of a figure", list(_KINDS), name)
        kind, texts, _ = _KINDS[name]
        other = {_KIND, _POINTS, _PICTURES, _DRAWN_WITH}
        fields = {key: value for key, value in self.description.items() if key not in other}
        try:
            inspect.signature(kind).bind(**fields, points=None)
        except TypeError as error:
            raise ConfigurationError(f"{self.points}: the description of the figure does not fit: {error}") from error
        figure: Figure = kind(**fields, points=read_points(self.points, texts))
        return figure


def write_figures(
    figures: Sequence[Figure], stem: Path, settings: FigureSettings, *, drawn: bool = True
) -> tuple[list[Path], list[dict[str, Any]]]:
    """Write pictures and points of an experiment's figures beside `stem`.

    Returns the written files, and for each figure a description from which, together with its points, `StoredFigure`
    draws it again. A figure without points, or with one value alone, has no file and no description. Without `drawn`,
    the pictures are left to be drawn later.
    """
    written: list[Path] = []
    descriptions: list[dict[str, Any]] = []
    shown = [figure for figure in figures if not (figure.points.empty or _is_constant(figure))]
    for figure in with_shared_colours(shown, len(settings.colours)):
        points = beside(stem, points_name(figure), csv_ending(figure.points))
        pictures = [beside(stem, figure.name, f".{ending}") for ending in settings.formats]
        description = _description(figure) | {
            _POINTS: points.name,
            _PICTURES: [path.name for path in pictures],
            _DRAWN_WITH: dataclasses.asdict(settings),
        }
        drawn_now = pictures if drawn else []
        with temporaries([*drawn_now, points]) as (*new_pictures, new_points):
            write_csv(figure.points, new_points)
            # Drawn from this file, so that drawing it again from there gives the same bytes.
            if new_pictures:
                draw(StoredFigure(description, new_points.parent).figure(), new_pictures, settings)
        written += [*drawn_now, points]
        descriptions.append(description)
    return written, descriptions


def _is_constant(figure: Figure) -> bool:
    """Tell whether the lines of a figure have one value at several places: a table says it better."""
    if not isinstance(figure, LineFigure) or figure.levels or figure.points["x"].nunique() < 2:
        return False
    values = figure.points["y"].dropna()
    return bool(len(values) and values.max() - values.min() <= _ROUNDING * abs(values).max())


def write_pictures(figure: Figure, pictures: Sequence[Path], settings: FigureSettings) -> Sequence[Path]:
    """Draw a figure into files, all or none, whose endings give the formats, and return them."""
    with temporaries(pictures) as names:
        draw(figure, names, settings)
    return pictures


def read_points(path: Path, texts: Sequence[str]) -> pd.DataFrame:
    """Read the points of a figure as they were written; the columns `texts` stay text, even if they look like numbers.

    In the other columns, empty cells are missing values. Raises ConfigurationError if the file has no such points.
    """
    try:
        written = read_csv(path)
        for column in written:
            cells = written[column].tolist()
            # Parsed by Python, because readers of tables may round numbers.
            written[column] = list(map(as_it_was, cells)) if column in texts else [float(one or "nan") for one in cells]
        absent = [column for column in (*texts, "x", "y") if column not in written]
        if absent:
            raise ValueError(f"there is no column {absent[0]!r}")
    except (ValueError, EOFError, BadGzipFile, NotDataError, zlib.error) as error:
        said = f"{path} cannot be read: {reason(error)}; task=report writes it from stored jobs"
        raise ConfigurationError(said) from error
    return written


def _description(figure: Figure) -> dict[str, Json]:
    fields = {field.name: getattr(figure, field.name) for field in dataclasses.fields(figure)}
    return {_KIND: _kind_of(figure), **{key: _plain(value) for key, value in fields.items() if key != "points"}}


def _plain(value: Any) -> Json:
    """Return a field as JSON, without the levels and verticals that are not finite: they are not drawn."""
    if not isinstance(value, Mapping):
        return str(value)
    plain = {key: one if isinstance(one, str) else float(one) for key, one in value.items()}
    return {key: one for key, one in plain.items() if isinstance(one, str) or math.isfinite(one)}


# Horizontal bars with a name each.

_GREY = "#b4b4b4"
# In units of the size of names: the height of a line of a name, the gap between bars, and the room around all bars.
_LINE, _BETWEEN, _AROUND = 1.25, 0.6, 9.0
# The share of the width that names may take, and the usual width of a character in units of their size.
_NAMES, _CHARACTER = 0.4, 0.58


def draw_bars(canvas: Canvas, figure: BarFigure, settings: FigureSettings) -> None:
    """Draw bars into a picture as wide as the settings say and as high as the names need."""
    from matplotlib.patches import Patch

    size = name_size(settings)
    most = max(int(_NAMES * settings.width * 72 / (_CHARACTER * size)), 8)
    points = figure.points.sort_values("y")
    names = [wrapped(str(name), most) for name in points["bar"]]
    step = _LINE * max(name.count("\n") + 1 for name in names) + _BETWEEN
    canvas.set_size_inches(settings.width, (step * len(names) + _AROUND) * size / 72)
    colours = dict.fromkeys(points["series"], _GREY) | {figure.highlight: settings.colours[0]}
    axes = canvas.subplots()
    places = range(len(names))
    axes.barh(places, points["x"], height=0.7, color=[colours[series] for series in points["series"]])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places, names, fontsize=size, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=size)
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("", parse_math=False)
    fit(axes.xaxis.label, figure.x_label, 0.5 * canvas.bbox.width)
    samples = [Patch(color=colours[series], label=series) for series in dict.fromkeys(points["series"])]
    draw_legend(canvas, samples, "", size)
    if settings.title:
        set_title(canvas, figure.title, settings)


# Grids of small images.

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


# Figures from their points, in one style.

# The kinds of figures by the name that a description gives them: the columns of their points that are text, and how
# they are drawn, the title included. A new kind needs a function that draws it, and a line here.
_KINDS: Mapping[str, tuple[type[Any], Sequence[str], Callable[[Canvas, Any, FigureSettings], None]]] = {
    "lines": (LineFigure, ["series"], draw_lines),
    "images": (ImageFigure, ["row", "column"], draw_images),
    "bars": (BarFigure, ["bar", "series"], draw_bars),
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
    "svg.hashsalt": DISTRIBUTION,
}
# No date and no version: the same points give the same bytes.
_METADATA: Mapping[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
}


def draw(figure: Figure, paths: Sequence[Path], settings: FigureSettings) -> None:
    """Draw a figure into one or several files, whose endings give the formats."""
    with style(settings):
        canvas = drawn(figure, settings)
        for path in paths:
            if path.suffix == ".png":
                _save_png(canvas, path)
            else:
                canvas.savefig(path, metadata=_METADATA[path.suffix])


def _save_png(canvas: Canvas, path: Path) -> None:
    """Write a picture as a PNG with a palette, which is enough for lines and text and takes a third of the space."""
    from PIL import Image

    drawing: Any = canvas.canvas
    drawing.draw()  # savefig would draw twice
    image = Image.fromarray(np.asarray(drawing.buffer_rgba())).convert("RGB")
    image.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, compress_level=7)


@contextmanager
def style(settings: FigureSettings) -> Iterator[None]:
    """Use this style of matplotlib in a ``with`` block, whatever the user's matplotlibrc or program has set."""
    mpl = imported("matplotlib", ignoring="matplotlibrc")
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"font.size": settings.font_size})
        yield


def drawn(figure: Figure, settings: FigureSettings) -> Canvas:
    """Return the picture of a figure, drawn in matplotlib's current style; TypeError if its kind is not registered."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    *_, draw_one = _KINDS[_kind_of(figure)]
    canvas = Canvas(figsize=(settings.width, settings.height), dpi=settings.dpi, layout="constrained")
    FigureCanvasAgg(canvas)
    draw_one(canvas, figure, settings)
    # Laid out once, for all formats alike.
    engine = canvas.get_layout_engine()
    if engine:
        engine.execute(canvas)
    canvas.set_layout_engine("none")
    return canvas


def _kind_of(figure: Figure) -> str:
    for name, (kind, *_) in _KINDS.items():
        if type(figure) is kind:
            return name
    kinds = ", ".join(kind.__name__ for kind, *_ in _KINDS.values())
    raise TypeError(f"figure must be one of {kinds}, got {type(figure).__name__}; register a function that draws it")
