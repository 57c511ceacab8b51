"""Text fits its width and is readable on white."""

from __future__ import annotations

import itertools

import matplotlib.figure
import numpy as np
import pytest

from trimbench.papers.reporting.figures.settings import PALETTES
from trimbench.papers.reporting.figures.text import contrast_on_white, fit, fit_upwards, readable, wrapped


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
    assert wrapped("trimming", 22) == "trimming"
    assert wrapped("x" * 30, 22) == "x" * 15 + "\n" + "x" * 15
    assert wrapped("", 22) == ""
    assert wrapped("k = 1 ", 22) == "k = 1"


@pytest.mark.parametrize("content", ["", "short", "a long text " * 9, "W" * 90, "i" * 90])
def test_text_is_wrapped_to_a_width_in_as_few_lines_as_needed(content: str) -> None:
    canvas = matplotlib.figure.Figure()
    text = canvas.text(0.5, 0.5, "before")
    fit(text, content, 200)
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
