"""How figures are drawn: the group ``figure`` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from trimbench.reproduction.children import imported
from trimbench.reproduction.settings import ConfigurationError, must_be, settings, unknown

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
        Size of the labels of axes and ticks. The title is one point larger, the legend one point smaller.
    formats : list of formats, with one file written for each
    dpi : pixels per inch of a PNG, which has at most 16 million pixels
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
        # A pixel takes some 15 bytes of memory while it is drawn.
        if "png" in self.formats and self.width * self.height * self.dpi**2 > 16e6:
            raise ConfigurationError(
                f"dpi must give a PNG of {self.width:g} by {self.height:g} inches at most 16 million pixels, got "
                f"{self.dpi}; lower it, or draw pdf or svg instead"
            )
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


def _check_colour(colour: str) -> None:
    colours = imported("matplotlib.colors", ignoring="matplotlibrc")
    # matplotlib knows others, such as C0, which depend on its own settings.
    is_code = colour.startswith("#") and len(colour) == 7 and colours.is_color_like(colour)
    if not is_code and colour not in colours.CSS4_COLORS:
        raise ConfigurationError(
            f"palette must be a list of colours such as '#0072B2' or black, got {colour!r}; quote those with a #"
        )
