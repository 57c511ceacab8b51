"""The legend names what is drawn, and nothing overlaps."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.vocabulary.figures import LineFigure

from ..builders import line_figure
from .measured import assert_readable, picture

COLUMN = FigureSettings(width=3.3, height=2.5, font_size=8)


def lines(ends: dict[str, float], **settings: Any) -> LineFigure:
    rows = [{"series": name, "x": x, "y": 1 + x * (end - 1)} for name, end in ends.items() for x in (0.1, 0.5, 1)]
    return line_figure(pd.DataFrame(rows), **settings)


def words(texts: list[Any]) -> list[str]:
    return [text.get_text().replace("\n", " ") for text in texts]


def in_the_legend(canvas: Any) -> list[str]:
    """Return the note above the legend, if there is one, and the names in it."""
    if not canvas.legends:
        return []
    (legend,) = canvas.legends
    return [text for text in words([legend.get_title(), *legend.get_texts()]) if text]


def test_the_legend_has_all_that_is_drawn_and_one_of_each_kind_of_references() -> None:
    names = ("line", "line (authors)", "other", "other (authors)", "cloud", "dots", "peak")
    marks = {"line (authors)": "reference", "other (authors)": "reference", "cloud": "cloud", "dots": "points"}
    rows = [
        {"series": name, "x": x, "y": x + place, "low": x, "high": x + 1}
        for place, name in enumerate(names)
        for x in (1, 2)
    ]
    more: dict[str, Any] = {"interval": "range", "levels": {"all": 5.0}, "verticals": {"truth": 1.5}}
    canvas = picture(line_figure(pd.DataFrame(rows), marks=marks | {"peak": "density"}, **more))
    assert_readable(canvas)
    shown = ["bars: range", "line", "other", "cloud", "dots", "peak", "authors", "all", "truth"]
    assert in_the_legend(canvas) == shown


def test_a_reference_without_its_line_has_its_own_name() -> None:
    points = pd.DataFrame(
        {"series": ["NaCL", "NaCL", "mean (authors)", "mean (authors)"], "x": [1, 2] * 2, "y": range(4)}
    )
    canvas = picture(line_figure(points, marks={"mean (authors)": "reference"}, methods={"mean (authors)": "mean"}))
    assert in_the_legend(canvas) == ["NaCL", "mean (authors)"]


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
    found = {*in_the_legend(canvas)}
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
