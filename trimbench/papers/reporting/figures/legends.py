"""A legend below the axes, in as many columns as fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.reporting.figures.text import fit, points_to_pixels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as Canvas
    from matplotlib.legend import Legend

_MOST_COLUMNS = 6
# In units of the size of its text.
_LENGTHS = {"handlelength": 2.6, "handletextpad": 0.6, "columnspacing": 1.4, "labelspacing": 0.4, "borderpad": 0.2}


@dataclass(frozen=True, eq=False)
class Entry:
    """A sample of what is drawn, and its name."""

    sample: Artist
    text: str


def draw_legend(canvas: Canvas, entries: Sequence[Entry], note: str, size: float) -> Legend:
    """Draw a legend below the axes of a picture with a constrained layout: a note, and rows of similar length.

    Of entries with one name, the first is shown.
    """
    from matplotlib.font_manager import FontProperties

    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(entry.text, entry)
    shown = list(first.values())
    for n_columns in range(min(len(shown), _MOST_COLUMNS), 1, -1):
        # As many rows, but no more columns than they need.
        legend = _legend(canvas, shown, math.ceil(len(shown) / math.ceil(len(shown) / n_columns)), size)
        if legend.get_window_extent().width <= canvas.bbox.width:
            break
        legend.remove()
    else:
        legend = _legend(canvas, shown, 1, size)
    samples = _LENGTHS["handlelength"] + _LENGTHS["handletextpad"] + 2 * _LENGTHS["borderpad"] + 1
    for text, entry in zip(legend.get_texts(), shown, strict=True):
        fit(text, entry.text, canvas.bbox.width - points_to_pixels(canvas, size * samples))
    if note:
        legend.set_title(" ", FontProperties(size=size))
        legend.get_title().set_parse_math(False)
        fit(legend.get_title(), note, canvas.bbox.width - points_to_pixels(canvas, size))
    return legend


def _legend(canvas: Canvas, entries: Sequence[Entry], n_columns: int, size: float) -> Legend:
    legend = canvas.legend(
        [entry.sample for entry in entries],
        [entry.text for entry in entries],
        loc="outside lower center",
        ncols=n_columns,
        fontsize=size,
        frameon=False,
        borderaxespad=0.2,
        **_LENGTHS,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend
