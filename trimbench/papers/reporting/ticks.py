"""Scales, and ticks whose labels are plain numbers that have room."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimbench.papers.reporting.text import points_to_pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# A logarithmic axis with at most this many values has its ticks at them.
_MOST_PLACES = 8
# With fewer powers of ten than this, a logarithmic axis has ticks at their multiples by 2 and 5 too.
_FEWEST_POWERS = 3
# Space in points between two labels.
_GAP = 3.0


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


def set_ticks(axes: Axes, name: str, values: Sequence[float]) -> None:
    """Set the ticks of the axis x or y, whose limits must be final; `values` are those that deserve a tick."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, ScalarFormatter

    axis: Axis = axes.xaxis if name == "x" else axes.yaxis
    places = sorted(set(values))
    if axis.get_scale() == "linear":
        if places and all(place.is_integer() for place in places):
            axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        formatter = ScalarFormatter(useOffset=False)
        formatter.set_scientific(False)
        axis.set_major_formatter(formatter)
        return
    if not 0 < len(places) <= _MOST_PLACES:
        places = _logarithmic_places(*sorted(axis.get_view_interval()), around_zero=axis.get_scale() == "symlog")
    axis.set_major_locator(FixedLocator(places))
    axis.set_ticklabels([plain(place) for place in places])
    axis.set_minor_locator(NullLocator())


def thin_labels(axes: Axes) -> bool:
    """Leave out labels of ticks that would touch others; return whether there were any. The layout must be current."""
    return any([_thin(axes.xaxis, 0), _thin(axes.yaxis, 1)])


def plain(value: float) -> str:
    """Return a number without powers of ten in small print, where it is neither tiny nor huge."""
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return f"{value:,.10g}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _logarithmic_places(low: float, high: float, *, around_zero: bool) -> list[float]:
    smallest = max(low, high * 1e-12) if low > 0 else high * 1e-6
    exponents = range(math.floor(math.log10(smallest)), math.ceil(math.log10(high)) + 1)
    for multiples in ((1,), (1, 2, 5)):
        places = [10.0**exponent * multiple for exponent in exponents for multiple in multiples]
        places = [float(f"{place:.12g}") for place in places if smallest <= place <= high]
        if len(places) >= _FEWEST_POWERS:
            break
    else:
        places = _even_places(low, high)
    return [*([0.0] if around_zero else []), *places]


def _even_places(low: float, high: float) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    places = MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(f"{place:.12g}") for place in places if low <= place <= high]


def _thin(axis: Axis, along: int) -> bool:
    from matplotlib.ticker import FixedLocator, MaxNLocator

    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]
    boxes = [tick.label1.get_window_extent() for tick in ticks]
    edges = [(box.x0, box.x1) if along == 0 else (box.y0, box.y1) for box in boxes]
    gap = points_to_pixels(axis, _GAP) if along == 0 else 0.0
    if all(one[1] + gap <= two[0] for one, two in itertools.pairwise(sorted(edges))):
        return False
    locator = axis.get_major_locator()
    if isinstance(locator, FixedLocator):
        kept = _apart(edges, gap)
        shown = {ticks[place].get_loc() for place in kept}
        axis.set_ticklabels([plain(place) if place in shown else "" for place in locator.tick_values(low, high)])
    else:
        whole = isinstance(locator, MaxNLocator) and bool(np.all(np.mod(locator.tick_values(low, high), 1) == 0))
        axis.set_major_locator(MaxNLocator(nbins=max(len(ticks) - 2, 1), integer=whole, steps=[1, 2, 5, 10]))
    return True


def _apart(edges: Sequence[tuple[float, float]], gap: float) -> list[int]:
    """Return the places of intervals, from the first on, that do not touch those before them."""
    kept: list[int] = []
    for place, (start, _) in enumerate(edges):
        if not kept or edges[kept[-1]][1] + gap <= start:
            kept.append(place)
    return kept
