"""Text in a picture: sizes, colours, and lines that fit a width."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.reporting.figures.settings import FigureSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Text

# For text on white, from the Web Content Accessibility Guidelines.
_LEAST_CONTRAST = 4.5
GREY = "#444444"


def name_size(settings: FigureSettings) -> float:
    """Return the size in points of names: of lines, of levels, in the legend, beside images."""
    return settings.font_size - 1


def title_size(settings: FigureSettings) -> float:
    """Return the size in points of the title."""
    return settings.font_size + 1


def set_title(canvas: Canvas, title: str, settings: FigureSettings) -> None:
    """Write the title of a picture, wrapped to its width."""
    text = canvas.suptitle("", x=0.015, ha="left", fontsize=title_size(settings), parse_math=False)
    fit(text, title, 0.97 * canvas.bbox.width)


def fit(text: Text, content: str, width: float) -> None:
    """Set the content of a text, wrapped to a width in pixels; a single character may be wider."""
    text.set_text(content)
    most = len(content)
    while (wide := _size(text)[0]) > width and most > 1:
        most = max(min(most - 1, int(most * width / wide) + 1), 1)  # the width may be negative
        text.set_text(wrapped(content, most))


def fit_upwards(text: Text, content: str, height: float) -> None:
    """Set the content of a text that runs upwards, wrapped to a height in pixels."""
    text.set_rotation(0)
    fit(text, content, height)
    text.set_rotation(90)


def _size(text: Text) -> tuple[float, float]:
    box = text.get_window_extent()
    return float(box.width), float(box.height)


def wrapped(text: str, most: int) -> str:
    """Wrap text into the fewest lines, of similar length."""
    lines = textwrap.wrap(text, most, break_on_hyphens=False)
    shorter = lines
    while lines and len(shorter) == len(lines):
        lines, most = shorter, most - 1
        shorter = textwrap.wrap(text, most, break_on_hyphens=False) if most else []
    return "\n".join(lines)


def points_to_pixels(artist: Any, points: float) -> float:
    """Return a length in points as pixels of the picture that an artist is in."""
    return points * float(artist.get_figure().dpi) / 72


def readable(colour: str) -> str:
    """Darken a colour until text in it is readable on white."""
    from matplotlib.colors import to_hex, to_rgb

    while contrast_on_white(colour) < _LEAST_CONTRAST:
        red, green, blue = to_rgb(colour)
        colour = to_hex((0.97 * red, 0.97 * green, 0.97 * blue))
    return colour


def contrast_on_white(colour: str) -> float:
    """Return the contrast ratio (1 to 21) of a colour and white, by the Web Content Accessibility Guidelines."""
    from matplotlib.colors import to_rgb

    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 1.05 / (0.05 + float(np.dot(light, [0.2126, 0.7152, 0.0722])))
