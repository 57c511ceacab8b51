"""Titles, and names in the margins of a picture, placed so that they do not overlap."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Annotation

_FONT_SIZE = 8.0
# Longer names are wrapped.
_MOST_CHARACTERS = 22
_TITLE_CHARACTERS_PER_INCH = 11
# Space in points between the axes and the names, and between two names: side by side, and one above the other.
_PAD, _GAPS = 9.0, (6.0, 1.5)
# A name has a leader if it was moved by more points than this, or if its place is further than that from the margin.
_MOVED, _INSIDE = 6.0, 16.0
# For text on white, from the Web Content Accessibility Guidelines.
_LEAST_CONTRAST = 4.5


@dataclass(frozen=True)
class Label:
    """A name, and the place in the picture that it names.

    Attributes
    ----------
    colour : str
        The colour of what it names; the text is darkened where this is too light to read on white.
    at : (x, y), optional
        The named place, in the units of the data. A name without a place (a key, a note) goes where there is most room.
    height : float
        Typical height of what it names, in the units of the data: it orders names of the same place.
    above : bool
        The name stands above the axes instead of to their right.
    """

    text: str
    colour: str
    at: tuple[float, float] | None = None
    height: float = 0.0
    above: bool = False


def spread(wanted: ArrayLike, sizes: ArrayLike, low: float, high: float) -> NDArray[np.float64]:
    """Move intervals so that they do not overlap, with the smallest sum of squared moves, and return their centres.

    The intervals, with these wanted centres and sizes, stay in this order even if the centres are not sorted, and
    between `low` and `high`. Raises ValueError if this range is too short.
    """
    from scipy.optimize import isotonic_regression

    wanted, sizes = np.asarray(wanted, dtype=float), np.asarray(sizes, dtype=float)
    if sizes.sum() > high - low:
        raise ValueError(f"high - low must be at least the sum of sizes, {sizes.sum():g}, got {high - low!r}")
    if not len(sizes):
        return np.empty(0)
    # After subtracting the sizes before each interval, intervals that touch have equal values: what remains is an
    # isotonic regression, and the range only clips its solution.
    before = np.cumsum(sizes) - sizes / 2
    return np.clip(isotonic_regression(wanted - before).x, low, high - sizes.sum()) + before


def place(axes: Axes, labels: Sequence[Label]) -> None:
    """Write names beside the axes, with leaders to named places that are not next to them.

    The picture grows if it has too little room. `axes` must be the only axes of a figure with a constrained layout;
    nothing may be drawn into them afterwards.
    """
    canvas: Any = axes.figure
    written = [(label, _write(axes, label)) for label in labels]
    sides = [[pair for pair in written if pair[0].above == above] for above in (False, True)]
    for _ in range(5):  # growing changes the ticks, and so the axes
        canvas.draw_without_rendering()
        box = axes.get_window_extent()
        lack = [
            sum(_sizes(side, along)) - room
            for along, side, room in ((1, sides[0], box.height), (0, sides[1], box.width))
        ]
        if max(lack) <= 0:
            break
        width, height = canvas.get_size_inches()
        canvas.set_size_inches(width + (max(lack[1], 0) + 1) / canvas.dpi, height + (max(lack[0], 0) + 1) / canvas.dpi)
    # From here on nothing may move: the names are placed relative to the axes as they are now.
    canvas.set_layout_engine("none")
    for along, side in ((1, sides[0]), (0, sides[1])):
        _arrange(axes, side, along)


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


def wrapped(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Wrap text into the fewest lines, of similar length."""
    lines = textwrap.wrap(text, most, break_on_hyphens=False)
    shorter = lines
    while lines and len(shorter) == len(lines):
        lines, most = shorter, most - 1
        shorter = textwrap.wrap(text, most, break_on_hyphens=False) if most else []
    return "\n".join(lines)


def set_title(canvas: Canvas, title: str) -> None:
    """Write the title of a picture, wrapped to its width."""
    text = wrapped(title, int(_TITLE_CHARACTERS_PER_INCH * canvas.get_figwidth()))
    canvas.suptitle(text, x=0.015, ha="left", fontsize=10, parse_math=False)


def _write(axes: Axes, label: Label) -> Annotation:
    from matplotlib.transforms import ScaledTranslation

    canvas: Any = axes.figure
    right, up = (0, _PAD / 144) if label.above else (_PAD / 72, 0)
    colour = readable(label.colour)
    return axes.annotate(
        wrapped(label.text),
        xy=label.at or (1, 0.5),
        xycoords="data" if label.at else "axes fraction",
        xytext=(0.5, 1) if label.above else (1, 0.5),
        textcoords=axes.transAxes + ScaledTranslation(right, up, canvas.dpi_scale_trans),
        annotation_clip=False,
        parse_math=False,
        color=colour,
        fontsize=_FONT_SIZE,
        linespacing=1.1,
        ha="center" if label.above else "left",
        va="bottom" if label.above else "center",
        arrowprops={
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.6,
            "shrinkA": 1.5,
            "shrinkB": 3,
            "relpos": (0.5, 0) if label.above else (0, 0.5),
        },
    )


def _sizes(side: Sequence[tuple[Label, Annotation]], along: int) -> list[float]:
    """Return the heights (along 1) or widths (along 0) of names in pixels, each with the gap that follows it."""
    from matplotlib.text import Text

    # An annotation's own extent would include its leader.
    return [float(Text.get_window_extent(text).size[along]) + _GAPS[along] * _dots(text) for _, text in side]


def _dots(text: Annotation) -> float:
    """Return the number of pixels per point."""
    figure: Any = text.figure
    return float(figure.dpi) / 72


def _arrange(axes: Axes, side: Sequence[tuple[Label, Annotation]], along: int) -> None:
    """Move the names of one side along it (0: x, 1: y) to their places, and hide unnecessary leaders."""
    box = axes.get_window_extent()
    low, high, edge = (box.y0, box.y1, box.x1) if along else (box.x0, box.x1, box.y1)
    named = [None if label.at is None else axes.transData.transform(label.at) for label, _ in side]
    free = _largest_gap([point[along] for point in named if point is not None], low, high)
    wanted = [free if point is None else float(np.clip(point[along], low, high)) for point in named]

    def order_of(i: int) -> tuple[int, int, int]:
        # Names less than a pixel apart belong to the same place.
        at, height = side[i][0].at, side[i][0].height
        return round(wanted[i]), round(axes.transData.transform((at[0], height))[1]) if at and along else 0, -i

    order = sorted(range(len(side)), key=order_of)
    sizes = _sizes([side[i] for i in order], along)
    centres = spread([wanted[i] for i in order], sizes, low, high)
    for i, centre in zip(order, centres, strict=True):
        text = side[i][1]
        share = (centre - low) / (high - low)
        text.set_position((1, share) if along else (share, 1))
        point = named[i]
        if text.arrow_patch is not None:
            away = [0, 0] if point is None else [abs(point[along] - centre), edge - point[1 - along]]
            text.arrow_patch.set_visible(away[0] > _MOVED * _dots(text) or away[1] > _INSIDE * _dots(text))


def _largest_gap(known: Sequence[float], low: float, high: float) -> float:
    """Return the middle of the largest gap between known places, or an end of the range if the gap is there."""
    places = [low, *sorted(np.clip(known, low, high)), high]
    gaps = np.diff(places)
    largest = len(gaps) - 1 - int(np.argmax(gaps[::-1]))
    return low if largest == 0 < len(known) else high if largest == len(known) else float(np.mean(places[largest:][:2]))
