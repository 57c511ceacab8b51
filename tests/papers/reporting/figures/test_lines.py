"""Lines, their colours and their legend: no two look alike, what is drawn is named, and no texts overlap."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection
from typing import Any
from unittest.mock import Mock

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tests.reproduction.reporting.builders import line_figure
from tests.reproduction.reporting.figures.measured import assert_readable, picture
from trimbench.papers.beyond import budgets
from trimbench.papers.conformant import imputers, mask_sweep
from trimbench.papers.selection_bias.simulated_cases import CORRECTIONS
from trimbench.papers.trimming import figure5, figure7, table6
from trimbench.reproduction.reporting.figures.looks import Series, levels_of, line_style, series_of, verticals_of
from trimbench.reproduction.reporting.figures.settings import PALETTES, FigureSettings
from trimbench.reproduction.reporting.figures.text import (
    N_SLOTS,
    contrast_on_white,
    fit,
    fit_upwards,
    plain,
    readable,
    set_scale,
    slots,
    thin_labels,
    wrapped,
)
from trimbench.reproduction.vocabulary.figures import LineFigure

COLOURS = PALETTES["okabe-ito"]


def looks(*names: str, colours: Any = COLOURS, **settings: Any) -> dict[str, Series]:
    points = pd.DataFrame(
        [{"series": name, "x": x, "y": x + place} for place, name in enumerate(names) for x in (1, 2)]
    )
    return {one.name: one for one in series_of(line_figure(pd.DataFrame(points), **settings), colours)}


def test_a_method_has_the_colour_of_its_slot_wherever_it_stands() -> None:
    first = looks("mean", "NaCL", "own")
    second = looks("own", "our NaCL", methods={"our NaCL": "NaCL"})
    assert first["NaCL"].colour == second["our NaCL"].colour == COLOURS[slots(["NaCL"])[0]]
    assert first["own"].colour not in (first["NaCL"].colour, first["mean"].colour)


def test_a_reference_has_the_colour_of_its_method() -> None:
    names = ("mean", "NaCL", "NaCL (authors)", "mean (authors)")
    marks = dict.fromkeys(names[2:], "reference")
    found = looks(*names, marks=marks, methods={"mean (authors)": "mean"})
    assert found["NaCL (authors)"].colour == found["NaCL"].colour, (
        "that of the series before it, unless a method is named"
    )
    assert found["mean (authors)"].colour == found["mean"].colour


def test_references_of_two_kinds_have_other_dashes() -> None:
    names = ("NaCL", "NaCL (authors)", "NaCL (printed)", "mean", "mean (authors)")
    marks = {name: "reference" for name in names if "(" in name}
    found = looks(*names, marks=marks)
    patterns = {name: found[name].dashes[1] for name in marks}
    assert patterns["NaCL (authors)"] == patterns["mean (authors)"] != patterns["NaCL (printed)"]
    assert found["NaCL (authors)"].dashes != found["mean (authors)"].dashes, "shifted, so that both are visible"


def test_lines_of_one_method_have_one_colour_beside_other_methods() -> None:
    found = looks("T = 0.2", "T = 0.8", "mean", methods=dict.fromkeys(("T = 0.2", "T = 0.8"), "trimming"))
    assert found["T = 0.2"].colour == found["T = 0.8"].colour != found["mean"].colour
    assert found["T = 0.2"].dashes != found["T = 0.8"].dashes
    assert found["T = 0.2"].marker != found["T = 0.8"].marker


def test_methods_have_one_marker_on_each_of_the_things_that_they_are_tried_on() -> None:
    names = [f"{data}, {method}" for data in ("pima", "vote") for method in ("ours", "mean")]
    methods = {name: name.split(", ")[1] for name in names}
    found = looks(*names, marks=dict.fromkeys(names, "highlight"), methods=methods)
    assert len({found[name].colour for name in names}) == 2
    markers = [found[name].marker for name in names]
    assert markers[0] == markers[1] != markers[2] == markers[3]


def test_lines_of_the_only_method_or_of_too_many_have_colours_of_their_own() -> None:
    names = [f"T = {number}" for number in range(6)]
    alone = looks(*names[:3], methods=dict.fromkeys(names, "trimming"))
    assert len({one.colour for one in alone.values()}) == 3
    many = looks(*names, "mean", methods=dict.fromkeys(names, "trimming"))
    assert len({(one.colour, one.dashes) for one in many.values()}) == 7
    assert len({one.colour for one in many.values()}) == 7


@pytest.mark.parametrize("colours", [COLOURS, COLOURS[:3], ("black",)])
def test_no_two_lines_look_alike(colours: Any) -> None:
    names = ["uncorrected", "max", *(f"line {i}" for i in range(len(colours) + 4))]
    found = list(looks(*names, colours=colours).values())
    assert len({one.colour for one in found}) == len(colours), "every colour is taken before one comes again"
    assert len({(one.colour, str(one.dashes), one.marker) for one in found}) == len(found)


def test_lines_of_one_method_and_lines_that_reuse_its_colour_do_not_look_alike() -> None:
    names = ["line 8", "T = 0.2", "T = 0.8", *(f"line {i}" for i in range(8))]
    found = looks(*names, methods=dict.fromkeys(names[1:3], "trimming"))
    assert len({one.colour for one in found.values()}) == len(COLOURS) < len(names)
    assert len({(one.colour, str(one.dashes), one.marker) for one in found.values()}) == len(names)
    assert found["T = 0.2"].dashes == "-", "the method whose colour it is comes first"


def test_the_legend_shows_the_dashes_of_lines_that_reuse_a_colour() -> None:
    names = [f"line {i}" for i in range(len(COLOURS) + 1)]
    rows = [(name, x, float(x)) for name in names for x in range(4)]  # all coincide
    (legend,) = picture(LineFigure.of("A title", ("x", "y"), rows)).legends
    first, *_, last = legend.get_lines()
    assert (first.get_color(), first.get_linestyle()) == (last.get_color(), "-")
    offset, (dash, gap) = last._unscaled_dash_pattern
    middle = np.mean(last.get_xdata()) / last.get_linewidth()
    assert (offset + middle) % (dash + gap) == pytest.approx(dash / 2), "the marker hides no gap"
    assert first.get_marker() != last.get_marker()


def test_points_that_are_not_known_are_left_out() -> None:
    points = pd.DataFrame({"series": list("aaabb"), "x": [3, 1, 2, 1, 2], "y": [1.0, 2.0, np.nan, np.nan, np.inf]})
    (only,) = series_of(line_figure(points), COLOURS)
    assert (only.name, only.points["x"].tolist()) == ("a", [1, 3])


@pytest.mark.parametrize("mark", ["line", "density", "reference", "guide", "points", "cloud", "highlight"])
def test_a_single_point_is_visible(mark: str) -> None:
    points = pd.DataFrame({"series": ["a"], "x": [1], "y": [1.0]})
    (one,) = series_of(line_figure(points, marks={"a": mark}), COLOURS)
    assert line_style(one).get("marker") or mark == "guide"


def test_levels_and_verticals_have_dashes_of_their_own() -> None:
    figure = line_figure(levels={"a": 1, "a ": -1, "b": 2, "gone": np.nan}, verticals={"c": 1})
    a, negative, b = levels_of(figure)
    (c,) = verticals_of(figure)
    assert a.dashes == negative.dashes, "one name in several places"
    assert (a.name, negative.name) == ("a", "a")
    assert len({a.dashes, b.dashes, c.dashes}) == 3


def test_dashes_are_those_of_published_figures() -> None:
    names = [str(number) for number in range(8)]
    lines = looks(*names[:5], "mean", methods=dict.fromkeys(names[:5], "trimming"))
    whole, *broken = (lines[name].dashes for name in names[:5])
    assert (whole, broken) == ("-", [(0, (6, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1))])
    levels = [one.dashes[1] for one in levels_of(line_figure(levels=dict(zip(names, range(8), strict=True))))]
    assert levels == [(5, 3), (1, 1.5), (7, 2, 1, 2), (12, 4), (4, 2, 1, 2, 1, 2), (1, 4), (12, 2, 4, 2), (2, 2)]


# The methods that a figure, or the lines of a sweep, compares with each other, and where they are declared.
IMPUTATION = ("NaCL", "mean", "median", "min", "max")
IMPUTERS = (*IMPUTATION, "EM, mixture", "EM as the authors ran it", "MICE", "nearest neighbours")
GAINS = ("information gain, same T", "information gain, best T'", "joint information gain, best T'")
COMPARED: list[tuple[tuple[str, ...], Collection[str]]] = [
    ((*IMPUTATION, "naive Bayes", "NaCL, categorical"), mask_sweep.METHODS.values()),
    (IMPUTERS, imputers.METHODS.values()),
    (("highest ECA", "highest accuracy", "information gain"), figure5.PICKS.values()),
    (("trimming", *GAINS, "no feature"), figure7._METHODS.values()),
    (("information gain", "greedy accuracy"), [baseline.title for baseline in budgets.BASELINES.values()]),
    (("expected agreement (ECA)", "agreement on test rows", "accuracy on test rows"), budgets._CURVES),
    (("eca_trim", "fs_sdd"), table6._METHODS),
    (("corrected", "uncorrected"), CORRECTIONS),
]


@pytest.mark.parametrize(("methods", "declared"), COMPARED)
def test_a_method_has_its_colour_in_every_figure(methods: tuple[str, ...], declared: Collection[str]) -> None:
    assert {*methods} <= {*declared}
    alone = [slots([method])[0] for method in methods]
    assert slots(methods) == alone
    assert slots(methods[::-1]) == alone[::-1]
    assert len({*alone}) == len(methods), "methods that are compared differ in colour"
    assert slots(["some other method", *methods])[1:] == alone, "an unknown method takes no colour of a known one"


def test_a_method_has_one_colour_in_any_spelling() -> None:
    assert slots(["ECA-trim", "eca_trim", "Eca Trim", "naive Bayes", "naive_bayes"]) == [0, 0, 0, 5, 5]
    assert slots(["trimming"]) == slots(["highest ECA"]) == [0]


def test_two_known_methods_never_share_a_colour() -> None:
    assert slots(["NaCL", "corrected"]) == [0, 1], "both have the first colour in their own figures"
    assert slots(["NaCL", "corrected", "uncorrected", "NaCL"]) == [0, 2, 1, 0]


@given(st.lists(st.sampled_from(["NaCL", "mean", "corrected", "trimming", "own", "other", "third", "x", "y", "z"])))
def test_as_many_slots_as_methods(methods: list[str]) -> None:
    found = slots(methods)
    assert len({*zip(methods, found, strict=True)}) == len({*methods}) == len({*found})
    assert all(slot < max(N_SLOTS, len({*methods})) for slot in found)


# The legend names what is drawn; texts fit, ticks are plain numbers, and nothing overlaps.


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
    (axes,) = canvas.axes
    assert words([axes.xaxis.label, axes.yaxis.label]) == [axes.get_xlabel(), axes.get_ylabel()] == ["x", "y"]
    shown = ["bars: range", "line", "other", "cloud", "dots", "peak", "authors", "all", "truth"]
    assert in_the_legend(canvas) == shown


def test_the_legend_shows_references_in_their_colours() -> None:
    names = ("NaCL", "NaCL (authors)", "mean", "mean (authors)")
    rows = [(name, x, float(x + place // 2)) for place, name in enumerate(names) for x in (1, 2)]
    marks = {name: "reference" for name in names if "(" in name}
    for n_shown in (2, 4):
        canvas = picture(LineFigure.of("A title", ("x", "y"), rows[: 2 * n_shown], marks=marks))
        (axes,), (legend,) = canvas.axes, canvas.legends
        dashed = [line.get_color() for line in axes.lines if line.get_linestyle() == "--"]
        assert len(dashed) == n_shown / 2
        shown = [line.get_color() for line in legend.findobj(Line2D) if line.get_linestyle() == "--"]
        assert shown == dashed


def test_references_that_coincide_are_said_to_take_turns() -> None:
    names = ("NaCL", "NaCL (authors)", "mean", "mean (authors)")
    marks = {name: "reference" for name in names if "(" in name}
    for apart, said in ((0.0, ["lines that coincide take turns"]), (1.0, [])):
        heights = dict(zip(names, (1.0, 5.0, 2.0, 5.0 + apart), strict=True))
        rows = [(name, x, heights[name]) for name in names for x in (1, 2)]
        assert in_the_legend(picture(LineFigure.of("t", ("x", "y"), rows, marks=marks)))[: len(said)] == said


def test_a_reference_without_its_line_has_its_own_name() -> None:
    points = pd.DataFrame(
        {"series": ["NaCL", "NaCL", "mean (authors)", "mean (authors)"], "x": [1, 2] * 2, "y": range(4)}
    )
    canvas = picture(line_figure(points, marks={"mean (authors)": "reference"}, methods={"mean (authors)": "mean"}))
    assert in_the_legend(canvas) == ["NaCL", "mean (authors)"]


def test_a_level_in_several_places_is_once_in_the_legend() -> None:
    canvas = picture(lines({"a": 2.0, "b": 3.0}, levels={"k = 1": 1.2, "k = 1 ": 1.7, "k = 10": 1.5}))
    assert in_the_legend(canvas) == ["a", "b", "k = 1", "k = 10"]


@settings(max_examples=12)
@given(
    st.dictionaries(st.text("abc xyz,$%", min_size=1, max_size=60).filter(str.strip), st.floats(0.5, 9), max_size=30),
    st.dictionaries(st.sampled_from(["one", "two", "three"]), st.floats(1, 9)),
    st.dictionaries(st.sampled_from(["truth", "a long name of a place"]), st.floats(0.1, 1)),
    st.sampled_from(["linear", "log"]),
    st.sampled_from([FigureSettings(), COLUMN]),
)
def test_texts_never_overlap_and_are_never_cut_off(
    ends: dict[str, float], levels: dict[str, float], verticals: dict[str, float], scale: str, chosen: FigureSettings
) -> None:
    figure = lines({"first": 2.0} | ends, levels=levels, verticals=verticals, x_scale=scale, y_scale=scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas = picture(figure, chosen)
    assert_readable(canvas, 7)
    found = {*in_the_legend(canvas)}
    assert len(found) >= len({" ".join(name.split()) for name in [*ends, *levels, *verticals]}), "everything is named"


def test_a_legend_has_as_many_columns_as_fit() -> None:
    for length, n_columns in ((1, 3), (40, 2), (90, 1)):
        canvas = picture(lines({name * length: 2.0 for name in "abc"}))
        (legend,) = canvas.legends
        assert legend._ncols == n_columns
        assert legend.get_window_extent().width < 0.98 * canvas.bbox.width


def test_a_logarithmic_axis_ends_at_a_place_that_is_near() -> None:
    for most, last in ((41_000, 50_000), (25_000, 20_000)):
        rows = [(name, x * shift, 0.5) for name, shift in (("a", 1.0), ("b", 1.01)) for x in (120, 700, most)]
        (axes,) = picture(LineFigure.of("A title", ("x", "y"), rows, x_scale="log")).axes
        assert axes.get_xticks()[-1] == last
        assert axes.get_xlim()[1] >= last


def test_large_markers_do_not_hide_their_intervals() -> None:
    points = pd.DataFrame({"series": "a", "x": [1, 2], "y": [1.0, 2.0]})
    sizes = [
        line_style(series_of(line_figure(one, marks={"a": "highlight"}), COLOURS)[0])["markersize"]
        for one in (points, points.assign(low=0.5, high=2.5))
    ]
    assert sizes[1] < sizes[0]


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


@pytest.mark.parametrize("colour", [*PALETTES["okabe-ito"], *PALETTES["grey"], "#9a9a9a", "#ffffff", "#F0E442"])
def test_names_are_readable_on_white(colour: str) -> None:
    assert contrast_on_white(readable(colour)) >= 4.5
    if contrast_on_white(colour) >= 4.5:
        assert readable(colour) == colour


def test_contrast_follows_the_guidelines() -> None:
    assert contrast_on_white("#000000") == pytest.approx(21)
    assert contrast_on_white("#ffffff") == pytest.approx(1)
    assert contrast_on_white("#777777") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("change", [str, readable])
def test_lines_and_their_names_have_distinct_colours(change: type[str]) -> None:
    colours = [change(colour) for colour in PALETTES["okabe-ito"]]
    values = [np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in colours]
    assert min(np.linalg.norm(one - two) for one, two in itertools.combinations(values, 2)) > 40


def test_wrapped_lines_are_few_and_of_similar_length() -> None:
    assert wrapped("information gain, best T'", 22) == "information\ngain, best T'"
    assert wrapped("the log-loss here", 8) == "the\nlog-loss\nhere"
    assert wrapped("x" * 30, 22) == "x" * 15 + "\n" + "x" * 15
    assert wrapped("", 22) == ""
    assert wrapped("k = 1 ", 22) == "k = 1"


@pytest.mark.parametrize("content", ["", "short", "a long text " * 9, "W" * 90, "i" * 90])
def test_text_is_wrapped_to_a_width_in_as_few_lines_as_needed(content: str) -> None:
    canvas = matplotlib.figure.Figure()
    text = canvas.text(0.5, 0.5, "before")
    text.get_window_extent = Mock(wraps=text.get_window_extent)  # type: ignore[method-assign]
    fit(text, content, 200)
    assert text.get_window_extent.call_count < 20
    assert text.get_window_extent().width <= 200
    assert text.get_text().replace("\n", "").replace(" ", "") == content.replace(" ", "")
    n_lines = text.get_text().count("\n")
    text.set_text(content)
    assert n_lines <= np.ceil(text.get_window_extent().width / 200) + 1
    fit_upwards(text, content, 100)
    assert text.get_rotation() == 90
    assert text.get_window_extent().height <= 100


def test_a_width_that_is_too_small_for_a_character_ends_with_one_in_each_line() -> None:
    text = matplotlib.figure.Figure().text(0.5, 0.5, "")
    for width in (1, 0, -9):
        fit(text, "abc", width)
        assert text.get_text() == "a\nb\nc"


@pytest.mark.parametrize(
    ("values", "scale"), [([1, 2], "log"), ([0, 2], "symlog"), ([-1, 2], "symlog"), ([0, -1], "linear")]
)
def test_what_has_no_logarithm_changes_the_scale(values: list[float], scale: str) -> None:
    axes = Figure().subplots()
    for name in ("x", "y"):
        set_scale(axes, name, "log", values)
    assert axes.get_xscale() == axes.get_yscale() == scale
    assert scale != "symlog" or axes.xaxis.get_transform().linthresh == 2


def axis_of(x: Any, y: Any, name: str = "x", *, width: float = 6.8, **settings: Any) -> tuple[list[str], list[float]]:
    """Return the labels and places of the ticks that are drawn on an axis."""
    points = pd.DataFrame({"series": "a", "x": x, "y": y})
    canvas = picture(line_figure(points, **settings), FigureSettings(width=width))
    assert_readable(canvas)
    (axes,) = canvas.axes
    axis = getattr(axes, f"{name}axis")
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert not axis.get_minorticklocs().size
    return [tick.label1.get_text() for tick in ticks], [tick.get_loc() for tick in ticks]


@pytest.mark.parametrize(
    ("x", "scale", "width", "labels"),
    [
        ([50], "log", 6.8, ["50"]),
        ([5, 50, 700], "log", 6.8, ["5", "50", "700"]),
        ([0, 1, 10, 100], "log", 6.8, ["0", "1", "10", "100"]),
        ([1000, 1100, 1200, 9000, 10000], "log", 2.5, ["1,000", "", "", "9,000", ""]),  # without room for all
        ([1, 2, 3, 4], "linear", 6.8, ["1", "2", "3", "4"]),
        ([1, 2], "linear", 6.8, ["1", "2"]),  # no half of a thing
    ],
)
def test_few_values_have_their_ticks_at_them(x: list[float], scale: str, width: float, labels: list[str]) -> None:
    assert axis_of(x, range(len(x)), x_scale=scale, width=width) == (labels, x)


def test_numbers_of_things_have_whole_ticks_and_shares_do_not() -> None:
    for y, are_whole in (([0.0, 2.0], True), ([3.0, 1.0], True), ([0.0, 1.0], False), ([0.0, 2.5], False)):
        points = pd.DataFrame({"series": "a", "x": [0.5, 1.5], "y": y})
        (axes,) = picture(line_figure(points), FigureSettings()).axes
        assert all(place.is_integer() for place in axes.get_yticks()) is are_whole


def test_places_of_points_that_stand_beside_others_have_no_ticks() -> None:
    beside = pd.DataFrame({"series": list("aabb"), "x": [455, 1438, 509.6, 1610.56], "y": [1.0, 2.0, 2.0, 1.0]})
    for points, shown in ((beside, False), (beside.assign(x=[455, 1438] * 2), True)):
        (axes,) = picture(line_figure(points, x_scale="log"), FigureSettings()).axes
        assert ("455" in [tick.get_text() for tick in axes.get_xticklabels()]) is shown
        assert "509.6" not in [tick.get_text() for tick in axes.get_xticklabels()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.02, 3000.0], ["0.1", "1", "10", "100", "1,000"]),
        ([1.0, 40.0], ["1", "2", "5", "10", "20"]),
        ([0.31, 0.89], ["0.4", "0.6", "0.8"]),
    ],
)
def test_a_logarithmic_axis_over_any_range_has_several_plain_ticks(values: list[float], expected: list[str]) -> None:
    labels, _ = axis_of([1, 2], values, "y", y_scale="log")
    assert set(expected) <= set(labels)


def test_zero_has_a_place_on_a_logarithmic_axis() -> None:
    labels, _ = axis_of([1, 2, 3], [0.0, 0.01, 100.0], "y", y_scale="log")
    assert {"0", "0.01", "100"} <= set(labels)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("width", [2.0, 6.8])
def test_numbers_of_any_size_are_written_out(scale: float, width: float) -> None:
    labels, _ = axis_of(np.linspace(0.1, 0.9, 50) * scale, [0.1, 0.9] * 25, width=width)
    assert sum(map(bool, labels)) >= 1
    assert all(set(label) <= set("0123456789.e-") and len(label) <= 6 for label in labels)


def test_close_numbers_are_told_apart() -> None:
    labels, _ = axis_of([1, 2], [0.9999990, 0.9999999], "y")
    assert len(set(labels)) == len(labels) >= 3, "no offset is taken off"


def test_plain_numbers() -> None:
    shown = ["0", "0.0001", "0.12345", "1,234,567", "1e7", "1.5e-7", "-20"]
    assert [plain(value) for value in (0, 0.0001, 0.12345, 1234567, 1e7, 1.5e-7, -20)] == shown


@pytest.mark.parametrize(("along", "gap"), [("x", 5), ("y", 0)])
def test_labels_without_room_after_the_one_before_are_left_out(along: str, gap: float) -> None:
    for n_ticks in range(5, 60):
        axes = Figure(figsize=(3, 3)).add_subplot()
        axis = getattr(axes, f"{along}axis")
        axis.set_ticks(range(n_ticks), [str(1000 + place) for place in range(n_ticks)])
        labels = [tick.label1 for tick in axis.get_major_ticks()]
        boxes, end, expected = [label.get_window_extent() for label in labels], -np.inf, []
        for label, box in zip(labels, boxes, strict=True):
            fits = getattr(box, f"{along}0") >= end + gap * 100 / 72
            end = getattr(box, f"{along}1") if fits else end
            expected.append(label.get_text() if fits else "")
        assert thin_labels(axes) == ("" in expected)
        assert [tick.label1.get_text() for tick in axis.get_major_ticks()] == expected
