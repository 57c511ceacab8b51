"""Figures: their points, how to draw them, and the settings of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, TypeAlias

from trimbench.papers.validation import ConfigurationError, Json, must_be, settings, unknown

if TYPE_CHECKING:
    import pandas as pd


class Figure(Protocol):
    """What every kind of figure has; `trimbench.papers.reporting.figures.drawing` draws the kinds that it knows."""

    @property
    def title(self) -> str:
        """What it shows."""

    @property
    def points(self) -> pd.DataFrame:
        """The data behind it, written beside the picture."""

    @property
    def name(self) -> str:
        """Stem of its file; empty for the experiment's main figure."""


@dataclass(frozen=True, eq=False)
class LineFigure:
    """Lines over one axis.

    Attributes
    ----------
    points : DataFrame with the columns series, x, y and optionally low and high (an interval around y)
    levels : mapping from label to y
        Horizontal lines for comparison.
    marks : mapping from series to "line", "density", "cloud", "points", "highlight", "guide" or "reference"
        How a series is drawn: a line (the default), a line without markers, tiny grey points, small points, large
        points, a thin grey line for comparison, or a dashed line behind the others in the colour of the series before
        it.
    verticals : mapping from label to x
        Vertical lines for comparison.
    interval : what low and high are, in a few words
    methods : mapping from series to method
        Which method a series belongs to, whose colour it has in every figure; others are methods of their own.
    """

    title: str
    x_label: str
    y_label: str
    points: pd.DataFrame
    name: str = ""
    levels: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    verticals: Mapping[str, float] = field(default_factory=dict)
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    interval: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ImageFigure:
    """A grid of small images.

    `points` has the columns row, column, y, x and value. Row and column of the grid are labels, in order of appearance;
    y counts pixels from the top. A value is 0 (black) to 1 (white), or missing (grey).
    """

    title: str
    points: pd.DataFrame
    name: str = ""


@dataclass(frozen=True, eq=False)
class BarFigure:
    """Horizontal bars, one below the other.

    `points` has the columns bar (its name), series (why it has its colour), y (which counts bars from the top) and x
    (its length, which may be negative). Bars of the series `highlight` are coloured, all others grey.
    """

    title: str
    x_label: str
    points: pd.DataFrame
    highlight: str
    name: str = ""


# How figures are drawn: the group `figure` of the configuration.

PictureFormat: TypeAlias = Literal["png", "pdf", "svg"]
# "okabe-ito" stays distinct under the common colour-vision deficiencies. Its yellow, which is hardly visible on white,
# is replaced by a brown.
PALETTES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "okabe-ito": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#7A4B1E"),
        "grey": ("#000000", "#7f7f7f", "#4d4d4d", "#a6a6a6"),
    }
)
_Inches: TypeAlias = Annotated[float, must_be("a number of inches from 1 to 40", lambda inches: 1 <= inches <= 40)]


@settings
class FigureSettings:
    """Size, type and colours of figures.

    Attributes
    ----------
    width, height : inches
        A line figure is this wide. It grows in height where its title and its legend leave too little room for the
        axes; a grid of images is as high as its content.
    font_size : points
        Of the labels of axes and ticks. The title is one point larger, the legend one point smaller.
    formats : a file for each, beside one another
    dpi : pixels per inch of a PNG
    title : whether the title is written
    palette : name of one of `PALETTES`, or a list of colours
    """

    width: _Inches = 6.8
    height: _Inches = 3.9
    font_size: Annotated[float, must_be("a number of points from 4 to 40", lambda size: 4 <= size <= 40)] = 9
    formats: Annotated[
        list[PictureFormat],
        must_be("a list with each of png, pdf, svg at most once", lambda names: 0 < len(names) == len(set(names))),
    ] = field(default_factory=lambda: ["png"])
    dpi: Annotated[int, must_be("a whole number from 30 to 1200", lambda dpi: 30 <= dpi <= 1200)] = 160
    title: bool = True
    palette: str | list[str] = "okabe-ito"

    def __post_init__(self) -> None:
        if isinstance(self.palette, str):
            if self.palette not in PALETTES:
                raise unknown("palette (a name, or a list of colours)", list(PALETTES), self.palette)
        elif not self.palette:
            raise ConfigurationError("palette must be a name or a list of at least one colour, got []")
        else:
            for colour in self.palette:
                _check_colour(colour)

    @property
    def colours(self) -> Sequence[str]:
        """The colours of the palette."""
        return PALETTES[self.palette] if isinstance(self.palette, str) else self.palette

    def as_json(self) -> dict[str, Json]:
        """Return the settings as they are in a configuration."""
        return asdict(self)


def _check_colour(colour: str) -> None:
    from matplotlib.colors import CSS4_COLORS, is_color_like

    # matplotlib knows others, such as C0, which depend on its own settings.
    if not (colour.startswith("#") and len(colour) == 7 and is_color_like(colour)) and colour not in CSS4_COLORS:
        raise ConfigurationError(
            f"palette must be a list of colours such as '#0072B2' or black, got {colour!r}; quote those with a #"
        )
