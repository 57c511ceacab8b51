"""Scales, and ticks whose labels are plain numbers that have room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trimbench.papers.reporting.figures.text import points_to_pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.ticker import ScalarFormatter

# A logarithmic axis with at most this many values has its ticks at them.
_MOST_PLACES = 8
# With fewer powers of ten than this, a logarithmic axis has ticks at their multiples by 2 and 5 too.
_FEWEST_POWERS = 3
_STEPS = (1, 2, 5, 10)
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


def set_ticks(axes: Axes, places: Sequence[float], shared: Sequence[float]) -> None:
    """Set the ticks of axes whose limits are final; a few `shared` places are the ticks of a logarithmic x axis."""
    _set_ticks(axes.xaxis, places, shared)
    _set_ticks(axes.yaxis, (), ())


def thin_labels(axes: Axes) -> bool:
    """Leave out labels of ticks that would touch others; return whether there were any. The layout must be current."""
    return any([_thin(axes.xaxis, 0), _thin(axes.yaxis, 1)])


def plain(value: float) -> str:
    """Return a number without powers of ten in small print, where it is neither tiny nor huge."""
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return f"{value:,.10g}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _set_ticks(axis: Axis, places: Sequence[float], shared: Sequence[float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    if axis.get_scale() == "linear":
        whole = bool(places) and all(place.is_integer() for place in places)
        axis.set_major_locator(MaxNLocator("auto", integer=whole, steps=_STEPS, min_n_ticks=4))
        largest = max(map(abs, axis.get_view_interval()))
        axis.set_major_formatter(_exact() if 1e-3 <= largest < 1e6 else FuncFormatter(lambda place, _: plain(place)))
        return
    if not 0 < len(shared) <= _MOST_PLACES:
        shared = _logarithmic_places(*sorted(axis.get_view_interval()), around_zero=axis.get_scale() == "symlog")
    axis.set_major_locator(FixedLocator(shared))
    axis.set_ticklabels([plain(place) for place in shared])
    axis.set_minor_locator(NullLocator())


def _exact() -> ScalarFormatter:
    """Return a formatter that writes as many digits as tell the ticks apart, without taking anything off."""
    from matplotlib.ticker import ScalarFormatter

    formatter = ScalarFormatter(useOffset=False)
    formatter.set_scientific(False)
    return formatter


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

    places = MaxNLocator(nbins=5, steps=_STEPS).tick_values(low, high)
    return [float(f"{place:.12g}") for place in places if low <= place <= high]


def _thin(axis: Axis, along: int) -> bool:
    from matplotlib.ticker import FixedLocator, MaxNLocator

    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    labelled = [tick for tick in ticks if tick.label1.get_text()]
    boxes = [tick.label1.get_window_extent() for tick in labelled]
    edges = [(box.x0, box.x1) if along == 0 else (box.y0, box.y1) for box in boxes]
    gap = points_to_pixels(axis, _GAP) if along == 0 else 0.0
    kept = [labelled[place] for place in _apart(edges, gap)]
    if len(kept) == len(labelled):
        return False
    whole = all(float(tick.get_loc()).is_integer() for tick in ticks)
    coarser = MaxNLocator(max(len(labelled) - 2, 1), integer=whole, steps=_STEPS)
    n_coarser = sum(low <= place <= high for place in coarser.tick_values(low, high))
    if isinstance(axis.get_major_locator(), FixedLocator) or n_coarser >= len(labelled):
        labels = [tick.label1.get_text() if tick in kept else "" for tick in ticks]
        axis.set_major_locator(FixedLocator([tick.get_loc() for tick in ticks]))
        axis.set_ticklabels(labels)
    else:
        axis.set_major_locator(coarser)
    return True


def _apart(edges: Sequence[tuple[float, float]], gap: float) -> list[int]:
    """Return the places of intervals, from the first on, that do not touch those before them."""
    kept: list[int] = []
    for place, (start, _) in enumerate(edges):
        if not kept or edges[kept[-1]][1] + gap <= start:
            kept.append(place)
    return kept
