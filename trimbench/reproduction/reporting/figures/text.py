"""Text in a picture: sizes, colours, and lines that fit a width."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.reproduction.project import per_project, project
from trimbench.reproduction.reporting.figures.settings import FigureSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Text


# For text on white, from the Web Content Accessibility Guidelines.
_LEAST_CONTRAST = 4.5
GREY = "#444444"


def name_size(settings: FigureSettings) -> float:
    """Return the size in points of names: of lines, of levels, in the legend, beside images."""
    return settings.font_size - 1


def set_title(canvas: Canvas, title: str, settings: FigureSettings) -> None:
    """Write the title of a picture, wrapped to its width."""
    text = canvas.suptitle("", x=0.015, ha="left", fontsize=settings.font_size + 1, parse_math=False)
    fit(text, title, 0.97 * canvas.bbox.width)


def fit(text: Text, content: str, width: float) -> None:
    """Set the content of a text, wrapped to a width in pixels; a single character may be wider."""
    text.set_text(content)
    most = len(content)
    while (wide := text.get_window_extent().width) > width and most > 1:
        most = max(min(most - 1, int(most * width / wide) + 1), 1)  # the width may be negative
        text.set_text(wrapped(content, most))


def fit_upwards(text: Text, content: str, height: float) -> None:
    """Set the content of a text that runs upwards, wrapped to a height in pixels."""
    text.set_rotation(0)
    fit(text, content, height)
    text.set_rotation(90)


def wrapped(text: str, most: int) -> str:
    """Wrap text into the fewest lines, of similar length."""
    longest = max(map(len, text.split()), default=1)
    widths = range(most, longest - 1 if longest <= most else 0, -1)  # a word that fits is not broken
    every = [textwrap.wrap(text, width, break_on_hyphens=False) for width in widths]
    return "\n".join([*itertools.takewhile(lambda lines: len(lines) == len(every[0]), every)][-1])


def points_to_pixels(artist: Any, points: float) -> float:
    """Return a length in points as pixels of the picture that an artist is in."""
    return points * float(artist.get_figure().dpi) / 72


def readable(colour: str, contrast: float = _LEAST_CONTRAST) -> str:
    """Darken a colour until text in it is readable on white, or until it has the contrast that is asked for."""
    from matplotlib.colors import to_hex, to_rgb

    while contrast_on_white(colour) < contrast:
        red, green, blue = to_rgb(colour)
        colour = to_hex((0.97 * red, 0.97 * green, 0.97 * blue))
    return colour


def contrast_on_white(colour: str) -> float:
    """Return the contrast ratio (1 to 21) of a colour and white, by the Web Content Accessibility Guidelines."""
    from matplotlib.colors import to_rgb

    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 1.05 / (0.05 + float(np.dot(light, [0.2126, 0.7152, 0.0722])))


# Scales, and ticks whose labels are plain numbers that have room.

# A logarithmic axis with at most this many values has its ticks at them.
_MOST_PLACES = 8
# With fewer powers of ten than this, a logarithmic axis has ticks at their multiples by 2 and 5 too.
_FEWEST_POWERS = 3
_STEPS = (1, 2, 5, 10)
# A logarithmic axis that ends so near below one of its places, as a ratio, ends there: else its end has no number.
_NEAR = 1.1
# Space in points between two labels.
_GAP = 5.0


def set_scale(axes: Axes, name: str, scale: str, values: Sequence[float]) -> None:
    """Give the axis x or y its scale; where a value has no logarithm, a logarithmic one is linear around zero."""
    positive = [value for value in values if value > 0]
    setter: Any = axes.set_xscale if name == "x" else axes.set_yscale
    if scale == "linear" or not positive:
        setter("linear")
    elif len(positive) < len(values):
        setter("symlog", linthresh=min(positive), linscale=0.5)
    else:
        setter("log")


def thin_labels(axes: Axes) -> bool:
    """Leave out labels of ticks that would touch the one before, and tell whether there were any.

    The layout must be current.
    """
    from matplotlib.ticker import FixedLocator

    is_changed = False
    for along, axis in enumerate((axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        gap, end = points_to_pixels(axes, _GAP if along == 0 else 0.0), -math.inf
        kept = []
        for tick in ticks:
            box = tick.label1.get_window_extent()
            fits = box.min[along] >= end + gap
            kept.append(tick.label1.get_text() if fits else "")
            end = box.max[along] if fits else end
        if kept != [tick.label1.get_text() for tick in ticks]:
            axis.set_major_locator(FixedLocator([tick.get_loc() for tick in ticks]))
            axis.set_ticklabels(kept)
            is_changed = True
    return is_changed


def plain(value: float) -> str:
    """Return a number in plain digits unless it is tiny or huge, and never with a raised power of ten."""
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return f"{value:,.10g}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def set_ticks(axis: Axis, places: Sequence[float] = (), shared: Sequence[float] = ()) -> None:
    """Set the ticks of an axis that has its limits; on a logarithmic one, at the `shared` places if they are few.

    Where all `places` are whole numbers, so are the ticks.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, ScalarFormatter

    if axis.get_scale() == "linear":
        whole = bool(places) and all(place.is_integer() for place in places)
        # With fewer whole numbers in view than `min_n_ticks`, the locator would take halves.
        axis.set_major_locator(MaxNLocator("auto", integer=whole, steps=_STEPS, min_n_ticks=1 if whole else 4))
        largest = max(map(abs, axis.get_view_interval()))
        if 1e-3 <= largest < 1e6:  # as many digits as tell the ticks apart
            axis.set_major_formatter(formatter := ScalarFormatter(useOffset=False))
            formatter.set_scientific(False)
        else:
            axis.set_major_formatter(FuncFormatter(lambda place, _: plain(place)))
        return
    if not 0 < len(shared) <= _MOST_PLACES:
        low, high = sorted(axis.get_view_interval())
        around_zero = axis.get_scale() == "symlog"
        shared = _logarithmic_places(low, _NEAR * high, around_zero=around_zero)
        if shared[-1] > high:
            axis.set_view_interval(low, shared[-1], ignore=True)
    axis.set_major_locator(FixedLocator(shared))
    axis.set_ticklabels([plain(place) for place in shared])
    axis.set_minor_locator(NullLocator())


def _logarithmic_places(low: float, high: float, *, around_zero: bool) -> list[float]:
    smallest = max(low, high * 1e-12) if low > 0 else high * 1e-6
    exponents = range(math.floor(math.log10(smallest)), math.ceil(math.log10(high)) + 1)
    for multiples in ((1,), (1, 2, 5)):
        places = [10.0**exponent * multiple for exponent in exponents for multiple in multiples]
        places = [float(f"{place:.12g}") for place in places if smallest <= place <= high]
        if len(places) >= _FEWEST_POWERS:
            break
    else:
        from matplotlib.ticker import MaxNLocator

        even = MaxNLocator(nbins=5, steps=_STEPS).tick_values(low, high)
        places = [float(f"{place:.12g}") for place in even if low <= place <= high]
    return [*([0.0] if around_zero else []), *places]


# Which colour a method has: the same in every figure.

N_SLOTS = 8  # as many as the colours of Okabe and Ito


def _key(method: str) -> str:
    return re.sub(r"[\s_-]+", " ", method).strip().casefold()


@per_project
def _slots() -> dict[str, int]:
    """Return the slot of each method to which the project gives one."""
    return {_key(name): slot for group in project().colours for slot, names in enumerate(group) for name in names}


def slots(methods: Sequence[str]) -> list[int]:
    """Return the colour slot, 0 or more, of each of the methods in a figure.

    A known method has its own slot in every figure; capitals do not matter, nor do hyphens, underscores and spaces.
    The others take the free slots in their order, and so does a known one whose slot another has. Equal methods share a
    slot, different ones never do. From `N_SLOTS` on the colours repeat: draw these slots with other markers or dashes.

    >>> slots(["one", "another", "one"])
    [0, 1, 0]
    """
    keys = [_key(method) for method in methods]
    known, found = _slots(), dict[str, int]()
    for key in keys:
        if key in known and known[key] not in found.values():
            found.setdefault(key, known[key])
    free = (slot for slot in itertools.count() if slot not in {*found.values()})
    for key in keys:
        if key not in found:
            found[key] = next(free)
    return [found[key] for key in keys]


def is_method(name: str) -> bool:
    """Tell whether a name is that of a method with a slot of its own, in any spelling."""
    return _key(name) in _slots()
