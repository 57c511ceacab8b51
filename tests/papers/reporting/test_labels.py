"""Names in the margins do not overlap, are not cut off, and are next to what they name."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from numpy.typing import NDArray

from trimbench.papers.reporting.figure_settings import FigureSettings
from trimbench.papers.reporting.figures import drawn, style
from trimbench.papers.reporting.labels import _largest_gap, contrast_on_white, readable, spread, wrapped
from trimbench.papers.reporting.line_figures import _COLOURS
from trimbench.papers.study.figures import LineFigure

from .builders import line_figure

PLACES = st.lists(st.tuples(st.floats(-20, 120), st.integers(1, 12)), min_size=1, max_size=8)


def picture(figure: LineFigure) -> Any:
    with style(FigureSettings()):
        return drawn(figure, FigureSettings())


def names_of(canvas: Any) -> Iterator[Any]:
    (axes,) = canvas.axes
    yield from axes.texts


def boxes_of(canvas: Any) -> list[Any]:
    """Return the boxes of all text of a picture: names, title, axis labels and ticks."""
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    others = [canvas._suptitle, axes.xaxis.label, axes.yaxis.label, *ticks]
    # An annotation's own extent would count its leader.
    return [Text.get_window_extent(text) for text in (*names_of(canvas), *others)]


def assert_tidy(canvas: Any) -> None:
    boxes = boxes_of(canvas)
    n_names = len(list(names_of(canvas)))
    for i, j in itertools.combinations(range(len(boxes)), 2):
        if i < n_names:  # ticks may touch one another
            assert not boxes[i].overlaps(boxes[j]), (i, j)
    (axes,) = canvas.axes
    for box in boxes[:n_names]:
        assert all(canvas.bbox.contains(*corner) for corner in box.corners())
        assert box.x0 >= axes.bbox.x1 or box.y0 >= axes.bbox.y1, "no name lies on the lines"


def lines(ends: dict[str, float], **settings: Any) -> LineFigure:
    rows = [{"series": name, "x": x, "y": 1 + x * (end - 1)} for name, end in ends.items() for x in (0.1, 0.5, 1)]
    return line_figure(pd.DataFrame(rows), **settings)


def leaders(canvas: Any) -> list[str]:
    return [text.get_text() for text in names_of(canvas) if text.arrow_patch.get_visible()]


@settings(deadline=None)
@given(PLACES)
def test_spread_has_no_overlap_keeps_the_order_and_moves_least(places: list[tuple[float, int]]) -> None:
    wanted, sizes = (np.array(column, dtype=float) for column in zip(*places, strict=True))
    found = spread(wanted, sizes, 0, 100)

    def allowed(centres: NDArray[np.float64]) -> bool:
        ends, starts = [0, *(centres + sizes / 2)], [*(centres - sizes / 2), 100]
        return bool((np.array(ends) <= np.array(starts) + 1e-9).all())

    assert allowed(found)
    # The problem is convex: no small move of neighbours together that keeps all this may be better.
    cost = ((found - wanted) ** 2).sum()
    for first, last in itertools.combinations_with_replacement(range(len(found)), 2):
        for step in (-1e-4, 1e-4):
            other = found.copy()
            other[first : last + 1] += step
            assert not allowed(other) or ((other - wanted) ** 2).sum() >= cost - 1e-9


def test_spread_needs_enough_room() -> None:
    assert spread([], [], 0, 0).tolist() == []
    assert spread([5], [10], 0, 10).tolist() == [5]
    with pytest.raises(ValueError, match="high - low must be at least the sum of sizes, 12, got 10"):
        spread([5, 5], [10, 2], 0, 10)


@pytest.mark.parametrize(
    ("known", "expected"),
    [([], 10), ([2], 10), ([8], 0), ([1, 9], 5), ([0, 10], 5), ([5], 10), ([-3], 10), ([12, 14], 0)],
)
def test_notes_go_into_the_largest_gap(known: list[float], expected: float) -> None:
    assert _largest_gap(known, 0, 10) == expected


@pytest.mark.parametrize("colour", [*_COLOURS, "#9a9a9a", "#ffffff", "#F0E442"])
def test_names_are_readable_on_white(colour: str) -> None:
    assert contrast_on_white(readable(colour)) >= 4.5
    if contrast_on_white(colour) >= 4.5:
        assert readable(colour) == colour


def test_contrast_follows_the_guidelines() -> None:
    assert contrast_on_white("#000000") == pytest.approx(21)
    assert contrast_on_white("#ffffff") == pytest.approx(1)
    assert contrast_on_white("#777777") == pytest.approx(4.48, abs=0.005)


def test_names_of_lines_have_distinct_colours() -> None:
    colours = [readable(colour) for colour in _COLOURS]
    values = [np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in colours]
    assert min(np.linalg.norm(one - two) for one, two in itertools.combinations(values, 2)) > 40


def test_wrapped_lines_are_few_and_of_similar_length() -> None:
    assert wrapped("information gain, best T'", 22) == "information\ngain, best T'"
    assert wrapped("trimming", 22) == "trimming"
    assert wrapped("x" * 30, 22) == "x" * 15 + "\n" + "x" * 15
    assert wrapped("", 22) == ""
    assert wrapped("k = 1 ", 22) == "k = 1"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_names_stand_at_the_ends_of_their_lines(scale: str) -> None:
    canvas = picture(lines({"low": 1.0, "high": 9.0, "middle": 4.0}, x_scale=scale, y_scale=scale))
    assert_tidy(canvas)
    assert leaders(canvas) == []
    (axes,) = canvas.axes
    for text, end in zip(names_of(canvas), (1.0, 9.0, 4.0), strict=True):
        box = Text.get_window_extent(text)
        middle = (box.y0 + box.y1) / 2
        assert abs(middle - axes.transData.transform((1, end))[1]) < canvas.dpi * 6 / 72, text.get_text()


def test_names_of_lines_that_end_together_have_leaders_to_their_end() -> None:
    canvas = picture(lines({"a": 4.0, "b": 4.0, "c": 4.0}, levels={"level": 4.0}))
    assert_tidy(canvas)
    assert len(leaders(canvas)) >= 2
    heights = {text.get_text(): Text.get_window_extent(text).y0 for text in names_of(canvas)}
    assert heights["a"] > heights["b"] > heights["c"], "in order, as in a key"
    assert {tuple(text.xy)[1] for text in names_of(canvas)} == {4.0}
    points = pd.DataFrame({"series": list("aabb"), "x": [0, 1] * 2, "y": [0.0, 5.0, 3.0, 5.0]})
    lower, higher = (Text.get_window_extent(text).y0 for text in names_of(picture(line_figure(points))))
    assert higher > lower, "in the order of the lines before their ends"


def test_a_line_that_ends_early_has_a_leader_from_there() -> None:
    points = pd.DataFrame({"series": list("aabb"), "x": [0, 10, 0, 4], "y": [0.0, 5.0, 3.0, 1.0]})
    canvas = picture(line_figure(points))
    assert leaders(canvas) == ["b"]
    assert [tuple(text.xy) for text in names_of(canvas)] == [(10, 5), (4, 1)]


@settings(max_examples=12, deadline=None)
@given(
    st.dictionaries(st.text("abc xyz,", min_size=1, max_size=60).filter(str.strip), st.floats(0.5, 9), max_size=30),
    st.dictionaries(st.sampled_from(["one", "two", "three"]), st.floats(1, 9)),
    st.dictionaries(st.sampled_from(["truth", "a long name of a place"]), st.floats(0.1, 1)),
    st.sampled_from(["linear", "log"]),
)
def test_names_never_overlap_and_are_never_cut_off(
    ends: dict[str, float], levels: dict[str, float], verticals: dict[str, float], scale: str
) -> None:
    figure = lines({"first": 2.0} | ends, levels=levels, verticals=verticals, x_scale=scale, y_scale=scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas = picture(figure)
    assert len(list(names_of(canvas))) == len({"first": 2.0} | ends) + len(levels) + len(verticals)
    assert_tidy(canvas)


def test_a_picture_grows_with_its_names() -> None:
    few, many = (picture(lines({f"series {i}": 5.0 for i in range(n)})) for n in (2, 60))
    assert_tidy(many)
    assert many.get_figheight() > 2 * few.get_figheight()
    tops = {f"place {i}": 0.5 for i in range(20)}
    wide = picture(lines({"a": 2.0}, verticals=tops))
    assert_tidy(wide)
    assert wide.get_figwidth() > 1.5 * few.get_figwidth()
