"""A legend below the axes, in as many columns as fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.reporting.text import fit, points_to_pixels

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


def draw_legend(canvas: Canvas, entries: Sequence[Entry], size: float) -> Legend:
    """Draw a legend below the axes of a picture with a constrained layout, in rows of similar length.

    Of entries with one name, the first is shown.
    """
    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(entry.text, entry)
    entries = list(first.values())
    for n_columns in range(min(len(entries), _MOST_COLUMNS), 0, -1):
        # As many rows, but no more columns than they need.
        n_balanced = math.ceil(len(entries) / math.ceil(len(entries) / n_columns))
        legend = _legend(canvas, entries, size, n_balanced)
        too_wide = legend.get_window_extent().width - canvas.bbox.width
        if too_wide <= 0 or n_columns == 1:
            break
        legend.remove()
    if too_wide > 0:
        samples = points_to_pixels(legend, size * (sum(list(_LENGTHS.values())[:2]) + 2 * _LENGTHS["borderpad"] + 1))
        for text, entry in zip(legend.get_texts(), entries, strict=True):
            fit(text, entry.text, canvas.bbox.width - samples)
    return legend


def _legend(canvas: Canvas, entries: Sequence[Entry], size: float, n_columns: int) -> Legend:
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
