"""A name stands next to what it names, or in the legend, and nothing overlaps."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trimbench.papers.reporting.figures.lines import spread
from trimbench.papers.vocabulary.figures import FigureSettings, LineFigure

from ..builders import line_figure
from .measured import assert_readable, picture

PLACES = st.lists(st.tuples(st.floats(-20, 120), st.integers(1, 12)), min_size=1, max_size=8)
COLUMN = FigureSettings(width=3.3, height=2.5, font_size=8)


def lines(ends: dict[str, float], **settings: Any) -> LineFigure:
    rows = [{"series": name, "x": x, "y": 1 + x * (end - 1)} for name, end in ends.items() for x in (0.1, 0.5, 1)]
    return line_figure(pd.DataFrame(rows), **settings)


def words(texts: list[Any]) -> list[str]:
    return [text.get_text().replace("\n", " ") for text in texts]


def beside(canvas: Any) -> list[str]:
    """Return the names that stand beside the axes."""
    (axes,) = canvas.axes
    return words(axes.texts)


def in_the_legend(canvas: Any) -> list[str]:
    """Return the note above the legend, if there is one, and the names in it."""
    if not canvas.legends:
        return []
    (legend,) = canvas.legends
    return [text for text in words([legend.get_title(), *legend.get_texts()]) if text]


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
    assert spread([1, 99], [10, 10], 0, 100).tolist() == [5, 95]
    assert spread([99, 99, 99], [10, 20, 4], 60, 100).tolist() == [71, 86, 98]
    with pytest.raises(ValueError, match="high - low must be at least the sum of sizes, 12, got 10"):
        spread([5, 5], [10, 2], 0, 10)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_names_stand_at_the_ends_of_lines_that_are_apart(scale: str) -> None:
    ends = {"low": 1.0, "high": 9.0, "middle": 4.0}
    canvas = picture(lines(ends, x_scale=scale, y_scale=scale))
    assert_readable(canvas)
    assert (beside(canvas), in_the_legend(canvas)) == (list(ends), [])
    (axes,) = canvas.axes
    for text, end in zip(axes.texts, ends.values(), strict=True):
        box = text.get_window_extent()
        assert box.x0 >= axes.bbox.x1, "no name lies on the lines"
        middle = (box.y0 + box.y1) / 2
        assert abs(middle - axes.transData.transform((1, end))[1]) < canvas.dpi * 5 / 72, text.get_text()


def test_lines_that_end_together_are_in_a_legend() -> None:
    canvas = picture(lines({"a": 4.0, "b": 4.0, "c": 9.0}, levels={"level": 1.5}))
    assert_readable(canvas)
    assert (beside(canvas), in_the_legend(canvas)) == ([], ["a", "b", "c", "level"])


def test_a_line_that_ends_before_the_others_is_in_a_legend() -> None:
    points = pd.DataFrame({"series": list("aabb"), "x": [0, 10, 0, 4], "y": [0.0, 5.0, 3.0, 1.0]})
    assert in_the_legend(picture(line_figure(points))) == ["a", "b"]


def test_names_that_would_take_the_room_of_the_axes_are_in_a_legend() -> None:
    ends = {"a name of some length": 1.0, "another name of some length": 9.0}
    assert beside(picture(lines(ends))) == list(ends)
    narrow = picture(lines(ends), FigureSettings(width=2))
    assert_readable(narrow)
    assert in_the_legend(narrow) == list(ends)


def test_densities_and_verticals_are_named_above_where_they_are_apart() -> None:
    x = np.linspace(0, 10, 50)
    parts = [pd.DataFrame({"series": f"at {at}", "x": x, "y": np.exp(-((x - at) ** 2))}) for at in (2, 6)]
    marks = {"at 2": "density", "at 6": "density"}
    canvas = picture(line_figure(pd.concat(parts), marks=marks, verticals={"truth": 8.5}))
    assert_readable(canvas)
    assert beside(canvas) == ["at 2", "at 6", "truth"]
    (axes,) = canvas.axes
    for text, at in zip(axes.texts, (2, 6, 8.5), strict=True):
        box = text.get_window_extent()
        assert box.y0 >= axes.bbox.y1
        assert abs((box.x0 + box.x1) / 2 - axes.transData.transform((at, 0))[0]) < canvas.dpi * 10 / 72
    close = picture(line_figure(pd.concat(parts), marks=marks, verticals={"the truth": 6.1}))
    assert_readable(close)
    assert in_the_legend(close) == ["at 2", "at 6", "the truth"]


def test_what_has_no_end_is_in_the_legend_beside_names_at_ends() -> None:
    names = ("line", "line (authors)", "cloud", "dots")
    marks = {"line (authors)": "reference", "cloud": "cloud", "dots": "points"}
    rows = [
        {"series": name, "x": x, "y": x + place, "low": x, "high": x + 1}
        for place, name in enumerate(names)
        for x in (1, 2)
    ]
    canvas = picture(line_figure(pd.DataFrame(rows), marks=marks, interval="range", levels={"all": 5.0}))
    assert_readable(canvas)
    assert beside(canvas) == ["line", "all"]
    assert in_the_legend(canvas) == ["bars: range", "cloud", "dots", "authors"]


def test_a_reference_without_its_line_has_its_own_name() -> None:
    points = pd.DataFrame(
        {"series": ["NaCL", "NaCL", "mean (authors)", "mean (authors)"], "x": [1, 2] * 2, "y": range(4)}
    )
    canvas = picture(line_figure(points, marks={"mean (authors)": "reference"}, methods={"mean (authors)": "mean"}))
    assert in_the_legend(canvas) == ["mean (authors)"]


def test_a_level_in_several_places_is_once_in_the_legend() -> None:
    canvas = picture(lines({"a": 2.0, "b": 2.0}, levels={"k = 1": 1.2, "k = 1 ": 1.7, "k = 10": 1.5}))
    assert in_the_legend(canvas) == ["a", "b", "k = 1", "k = 10"]


@settings(max_examples=12, deadline=None)
@given(
    st.dictionaries(st.text("abc xyz,$%", min_size=1, max_size=60).filter(str.strip), st.floats(0.5, 9), max_size=30),
    st.dictionaries(st.sampled_from(["one", "two", "three"]), st.floats(1, 9)),
    st.dictionaries(st.sampled_from(["truth", "a long name of a place"]), st.floats(0.1, 1)),
    st.sampled_from(["linear", "log"]),
    st.sampled_from([FigureSettings(), COLUMN]),
)
def test_texts_never_overlap_and_are_never_cut_off(
    ends: dict[str, float],
    levels: dict[str, float],
    verticals: dict[str, float],
    scale: str,
    chosen: FigureSettings,
) -> None:
    figure = lines({"first": 2.0} | ends, levels=levels, verticals=verticals, x_scale=scale, y_scale=scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas = picture(figure, chosen)
    assert_readable(canvas, 7)
    found = {*beside(canvas), *in_the_legend(canvas)}
    assert len(found) >= len({" ".join(name.split()) for name in [*ends, *levels, *verticals]}), "everything is named"


def test_a_picture_grows_in_height_alone() -> None:
    few, many = (picture(lines({f"series {i}": 5.0 for i in range(n)})) for n in (2, 60))
    assert_readable(many)
    assert few.get_size_inches().tolist() == [6.8, 3.9]
    assert many.get_figwidth() == 6.8
    assert many.get_figheight() > 4.5
    (axes,) = many.axes
    assert axes.bbox.height / many.dpi >= 0.5 * 3.9


@pytest.mark.parametrize("repetitions", [1, 2])
def test_long_labels_and_titles_are_wrapped(repetitions: int) -> None:
    label = " ".join(["average minus log probability of the corrected predictions"] * repetitions)
    title = " ".join(["A title of some length"] * repetitions)
    canvas = picture(lines({"a": 2.0}, title=title, x_label=label, y_label=label), COLUMN)
    found = words(assert_readable(canvas, 7))
    assert found.count(label) == 2
    assert title in found
    (axes,) = canvas.axes
    assert axes.bbox.height / canvas.dpi >= 0.5 * COLUMN.height
