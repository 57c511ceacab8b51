"""Names beside the axes, each next to what it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimbench.papers.reporting.figures.text import points_to_pixels, readable, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Longer names are wrapped.
_MOST_CHARACTERS = 22
# Space in points between the axes and the names, and between two names: side by side, and one above the other.
_PAD, _GAPS = 9.0, (6.0, 1.5)
# How far from the right side the place of a name may be, as a share of the axes.
_INSIDE = 0.06
# How far along the side, in points, a name may be moved away from its place: names of lines that end together would be,
# and then only their colours tell them apart.
CLOSE, LOOSE = 4.0, 9.0
# The names at the right may take this share of the picture.
_WIDEST = 0.3


@dataclass(frozen=True)
class Label:
    """A name, and the place in the picture that it names.

    Attributes
    ----------
    colour : str
        The colour of what it names; the text is darkened where this is too light to read on white.
    at : (x, y)
        The named place, in the units of the data.
    above : bool
        The name stands above the axes instead of to their right.
    tolerance : float
        How far the name may be moved along its side, in points.
    """

    text: str
    colour: str
    at: tuple[float, float]
    above: bool = False
    tolerance: float = CLOSE


def write(axes: Axes, labels: Sequence[Label], size: float) -> list[Text]:
    """Write names in the middle of their sides; `arrange` moves them to their places once the layout is known."""
    from matplotlib.transforms import ScaledTranslation

    canvas: Any = axes.figure
    texts = []
    for label in labels:
        right, up = (0, _PAD / 144) if label.above else (_PAD / 72, 0)
        texts.append(
            axes.text(
                0.5 if label.above else 1,
                1 if label.above else 0.5,
                wrapped(label.text, _MOST_CHARACTERS),
                transform=axes.transAxes + ScaledTranslation(right, up, canvas.dpi_scale_trans),
                parse_math=False,
                color=readable(label.colour),
                fontsize=size,
                linespacing=1.1,
                ha="center" if label.above else "left",
                va="bottom" if label.above else "center",
            )
        )
    return texts


def arrange(axes: Axes, labels: Sequence[Label], texts: Sequence[Text]) -> bool:
    """Move the names of one side to their places; return whether each fits next to what it names.

    The layout must be current, and the limits of the axes final.
    """
    if not labels:
        return True
    along = 0 if labels[0].above else 1
    boxes = [text.get_window_extent() for text in texts]
    if along and max(box.width for box in boxes) > _WIDEST * axes.figure.bbox.width:
        return False
    area = axes.get_window_extent()
    low, high, edge = (area.y0, area.y1, area.x1) if along else (area.x0, area.x1, area.y1)
    places = np.array([axes.transData.transform(label.at) for label in labels])
    if along and (edge - places[:, 0]).max() > _INSIDE * area.width:
        return False
    wanted = places[:, along]
    sizes = np.array([box.size[along] for box in boxes]) + points_to_pixels(axes, _GAPS[along])
    # Of names less than a pixel apart, the first is to the left, or above the others.
    order = np.lexsort((np.arange(len(labels)) * (-1 if along else 1), wanted.round()))
    # Half a name may stand beyond the ends of the side.
    room = float(sizes.max()) / 2
    if sizes.sum() > high - low + 2 * room:
        return False
    centres = np.empty(len(labels))
    centres[order] = spread(wanted[order], sizes[order], low - room, high + room)
    for text, centre in zip(texts, centres, strict=True):
        share = (centre - low) / (high - low)
        text.set_position((1, share) if along else (share, 1))
    allowed = [points_to_pixels(axes, label.tolerance) for label in labels]
    return bool((abs(centres - wanted) <= allowed).all())


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
