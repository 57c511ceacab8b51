"""The texts of a picture as they are drawn, and whether they can be read."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.reporting.figures.drawing import drawn, style
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.settings import validated
from trimbench.reproduction.vocabulary.figures import Figure

# Boxes may share so much of a pixel; sizes are sums.
_ROUNDING = 0.01


def picture(figure: Figure, settings: FigureSettings | None = None) -> Any:
    """Return the canvas of a figure, as `draw` saves it."""
    with style(settings or FigureSettings()):
        return drawn(figure, settings or FigureSettings())


def preset(name: str, **changes: Any) -> FigureSettings:
    """Return the settings in a file of the group `figure`."""
    return validated(FigureSettings, Catalogue().mapping("figure", name) | changes, name)


def texts_of(canvas: Any) -> list[Text]:
    """Return each text that is drawn: titles, names, labels of axes and ticks, the legend."""
    found: list[Text] = []
    draw = Text.draw

    def note(self: Text, *arguments: Any, **options: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            found.append(self)
        draw(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", note)
        canvas.draw_without_rendering()
    return list(dict.fromkeys(found))


def assert_readable(canvas: Any, least_points: float = 0.0) -> list[Text]:
    """Check that no text of a picture overlaps another one, is cut off or is too small; return the texts."""
    texts = texts_of(canvas)
    boxes = [text.get_window_extent() for text in texts]
    for (one, first), (two, second) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(wide, high) <= _ROUNDING, f"{one.get_text()!r} overlaps {two.get_text()!r} by {wide} x {high} pixels"
    for text, box in zip(texts, boxes, strict=True):
        assert box.x0 >= -_ROUNDING, f"{text.get_text()!r} is cut off at the left"
        assert box.y0 >= -_ROUNDING, f"{text.get_text()!r} is cut off at the bottom"
        assert box.x1 <= canvas.bbox.x1 + _ROUNDING, f"{text.get_text()!r} is cut off at the right"
        assert box.y1 <= canvas.bbox.y1 + _ROUNDING, f"{text.get_text()!r} is cut off at the top"
        assert text.get_fontsize() >= least_points, f"{text.get_text()!r} has {text.get_fontsize()} points"
        assert "$" not in text.get_text() or not text.get_parse_math(), "formulas have small print"
    return texts


_LOOKS = (
    *("zorder", "text", "fontsize", "rotation", "parse_math", "color", "linewidth", "marker", "markersize"),
    *("markeredgewidth", "facecolor", "xlim", "ylim", "xscale", "yscale", "axisbelow", "size_inches"),
)


def described(picture: Any) -> str:
    """Return how the parts of a picture are drawn, one in each line."""
    found = []
    for part in picture.findobj():
        looks = [getattr(part, f"get_{name}")() for name in _LOOKS if hasattr(part, f"get_{name}")]
        words = [one if isinstance(one, str) else np.round(np.array(one, dtype=float), 3).tolist() for one in looks]
        kind = type(part).__name__.removeprefix("FillBetween")  # which Matplotlib 3.9 has not
        found.append(f"{kind} {' '.join(map(str, words))}")
    return "\n".join(dict.fromkeys(found))
