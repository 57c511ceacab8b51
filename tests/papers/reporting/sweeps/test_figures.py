"""Figures over a swept setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from trimbench.papers.reporting.sweeps import (
    MOST_FIGURES,
    MOST_LINES,
    Measured,
    SweepPoint,
    measured_columns,
    number_of,
    sweep_figures,
)
from trimbench.papers.validation import Json
from trimbench.papers.vocabulary.figures import LineFigure
from trimbench.papers.vocabulary.tables import Table

from ..builders import findings, line_figure

Lines = Sequence[dict[str, object]]


def sweep(
    lines: Callable[[Any], Lines],
    values: Sequence[Json],
    key: str = "budget",
    figures: tuple[Any, ...] = (),
    **others: Json,
) -> list[SweepPoint]:
    return [
        SweepPoint(
            {key: value} | others,
            [findings(tables=(Table("Accuracy", pd.DataFrame(lines(value))),), figures=figures)],
            {},
        )
        for value in values
    ]


def series(figure: LineFigure) -> list[str]:
    return list(figure.points["series"].unique())


def test_one_figure_for_each_quantity_with_a_line_for_each_method() -> None:
    points = sweep(
        lambda x: [{"method": m, "error": x * f, "gain": f / x, "jobs": 3} for m, f in (("corrected", 1), ("own", 2))],
        [1, 2, 4],
    )
    figures, notes = sweep_figures(points)
    assert [(one.title, one.y_label, one.x_label, one.name) for one in figures] == [
        ("error over budget", "error", "budget", "error"),
        ("gain over budget", "gain", "budget", "gain"),
    ]
    assert notes == ["Not drawn, because it does not change with budget: jobs."]
    expected = [[method, x, x * f] for x in (1, 2, 4) for method, f in (("corrected", 1), ("own", 2))]
    assert figures[0].points.to_numpy().tolist() == expected
    assert figures[0].methods == {"corrected": "corrected"}


def test_columns_of_methods_are_lines_of_one_figure() -> None:
    points = sweep(lambda x: [{"data": "d", "NaCL": 3 * x, "mine": 2 * x, "masks": 3}], [0.1, 0.5], "missing", (
        line_figure(pd.DataFrame({"series": ["NaCL", "my own"], "x": [0, 1], "y": [0, 1]}), methods={"my own": "mine"}),
    ))  # fmt: skip
    (figure,), _ = sweep_figures(points)
    assert (figure.title, series(figure)) == ("Accuracy over missing", ["NaCL", "mine"])
    assert figure.methods == {"NaCL": "NaCL", "mine": "mine"}


def test_several_lines_of_a_method_have_colours_of_their_own() -> None:
    points = sweep(lambda x: [{"n": n, "method": "corrected", "error": n * x} for n in (5, 50)], [1, 2])
    (figure,), _ = sweep_figures(points)
    assert (series(figure), figure.methods) == (["n = 5", "n = 50"], {})


def test_other_swept_keys_distinguish_lines() -> None:
    points = [
        *sweep(lambda x: [{"error": x}], [1, 2], mechanism="block", ks=[1, 2]),
        *sweep(lambda x: [{"error": -x}], [1, 2], mechanism="mcar", ks=[1, 2]),
    ]
    (figure,), _ = sweep_figures(points)
    assert series(figure) == ["mechanism = block", "mechanism = mcar"]


def test_the_axis_is_the_number_with_most_values() -> None:
    ks = ["[5]", "[50]", "[500]"]
    swept = [{"seed": seed, "mechanism": mechanism} for seed in (1, 2) for mechanism in "abcd"]
    points = [sweep(lambda x: [{"error": len(x)}], ks, "ks", **others) for others in swept]
    (figure,), _ = sweep_figures([one for some in points for one in some])
    assert figure.x_label == "ks"
    assert series(figure)[:2] == ["seed = 1, mechanism = a", "seed = 1, mechanism = b"]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((3, 3.0), (0.5, 0.5), ([7], 7.0), ("[0.3]", 0.3), ("1e-3", 0.001)),
        *((value, None) for value in (True, "block", [1, 2], "[1,2]", "", None, {"a": 1})),
    ],
)
def test_numbers_of_settings(value: Json, number: float | None) -> None:
    assert number_of(value) == number


def test_without_a_number_there_is_no_figure() -> None:
    points = sweep(lambda x: [{"error": len(x)}], ["a", "bb"], "mechanism")
    assert sweep_figures(points) == ([], ["No swept setting has numbers as values, so there is no figure."])
    assert sweep_figures(sweep(lambda x: [{"error": x}], [1]))[0] == []


def test_many_lines_become_several_pictures() -> None:
    points = sweep(
        lambda x: [{"network": n, "method": m, "error": 2 * x} for n in ("a", "b", "c") for m in ("p", "q", "r")],
        [1, 2],
    )
    figures, _ = sweep_figures(points)
    assert [figure.title for figure in figures] == [f"error over budget, {name}" for name in "abc"]
    assert [figure.name for figure in figures] == ["error_a", "error_b", "error_c"]
    assert {tuple(series(figure)) for figure in figures} == {("p", "q", "r")}


def test_a_picture_has_no_more_lines_than_there_are_colours() -> None:
    points = sweep(
        lambda x: [{"method": f"m{i}", "A, NaCL": 2 * x, "A, mean": 3 * x, "B": 4 * x} for i in range(200)], [1, 2]
    )
    figures, notes = sweep_figures(points)
    assert len(figures) == MOST_FIGURES
    assert all(len(series(figure)) <= MOST_LINES for figure in figures)
    assert notes == [f"The first {MOST_FIGURES} of 400 figures are drawn; the CSV files have all numbers."]


def test_intervals_are_drawn() -> None:
    points = sweep(
        lambda x: [
            {"a": 0.5 * x, "a low": 0.4 * x, "a high": 0.6 * x, "b": x + 1, "b ±": 0.1, "b se": 0.05, "se of c": x}
        ],
        [1, 2],
    )
    one, two = sweep_figures(points)[0]
    assert one.points.to_numpy().tolist() == [["a", 1, 0.5, 0.4, 0.6], ["a", 2, 1.0, 0.8, 1.2]]
    assert two.points[["low", "high"]].to_numpy().tolist() == [[1.9, 2.1], [2.9, 3.1]]
    assert one.interval


def test_a_column_that_repeats_the_setting_is_no_quantity() -> None:
    points = sweep(lambda x: [{"missing (%)": 100 * x, "T": x, "error": 1 - x}], [0.1, 0.2], "missing")
    assert [figure.name for figure in sweep_figures(points)[0]] == ["error"]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        *((values, "log") for values in ([1, 10, 100, 1000], [0.1, 1, 10, 100])),
        *((values, "linear") for values in ([1, 10, 100], [1, 500, 1000, 1500], [0, 10, 1000])),
    ],
)
def test_an_axis_over_decades_is_logarithmic(values: list[Json], scale: str) -> None:
    (figure,), _ = sweep_figures(sweep(lambda x: [{"error": x + 3}], values))
    assert figure.x_scale == scale


def test_missing_values_and_failed_points_leave_gaps() -> None:
    points = sweep(lambda x: [{"method": "a", "error": x if x != 2 else float("nan")}], [1, 2, 3])
    points.append(SweepPoint({"budget": 4}, [], {"family/one": "failed"}))
    nothing = [Table.of("Accuracy", lines, ["method", "error"]) for lines in ([], [{"method": "a"}, {"error": None}])]
    points += [
        SweepPoint({"budget": 5 + place}, [findings(tables=(table,), figures=())], {})
        for place, table in enumerate(nothing)
    ]
    (figure,), _ = sweep_figures(points)
    assert figure.points["x"].tolist() == [1.0, 3.0]
    assert series(figure) == ["error"]


def test_names_of_pictures_differ() -> None:
    points = sweep(lambda x: [{"a b": 2 * x, "a_b": 2 * x, "a/b": 2 * x}], [1, 2])
    names = [figure.name for figure in sweep_figures(points)[0]]
    assert len(set(names)) == 3


def test_what_the_columns_of_a_table_measure() -> None:
    columns = ["network", "budget", "fs_sdd_seconds", "eca_trim_seconds", "accuracy, trimming", "accuracy, no feature"]
    frame = pd.DataFrame([["a", 3, *range(5)]], columns=[*columns, "mean error"])
    found = measured_columns(frame, ["network"], {"fs_sdd", "eca_trim", "trimming", "no feature", "mean"}.__contains__)
    assert found == [
        Measured("budget", "budget"),
        Measured("fs_sdd_seconds", "seconds", "fs_sdd"),
        Measured("eca_trim_seconds", "seconds", "eca_trim"),
        Measured("accuracy, trimming", "accuracy", "trimming"),
        Measured("accuracy, no feature", "accuracy", "no feature"),
        Measured("mean error", "mean error"),
    ]


def test_the_axis_of_a_share_is_the_true_one() -> None:
    points = sweep(lambda x: [{"missing (%)": 100 * int(x * 13) / 13, "error": x / 2}], [0.1, 0.2, 0.5], key="missing")
    ((figure,), notes) = sweep_figures(points)
    assert (figure.x_label, series(figure), notes) == ("missing (%)", ["error"], [])
    assert figure.points["x"].tolist() == pytest.approx([100 / 13, 200 / 13, 600 / 13])
    points = sweep(lambda x: [{"error": x / 2}], [0.1, 0.2], key="missing")
    for point, percent in zip(points, (25, 50), strict=True):  # what the jobs alone say
        rows = point.findings[0].rows
        rows["dataset"], rows["missing"], rows["missing_percent"] = "a", number_of(point.swept["missing"]), percent
    assert sweep_figures(points)[0][0].points["x"].tolist() == [25, 50]


def test_curves_over_an_axis_of_its_own_are_drawn_for_all_points() -> None:
    def at(threshold: float) -> SweepPoint:
        own = {"agreement": threshold, "accuracy": 0.5}
        lines = pd.DataFrame([{"series": name, "x": x, "y": x * y} for name, y in own.items() for x in (1, 2)])
        figures = (line_figure(lines, x_label="budget", title="Trimmings"),)
        return sweep(lambda _: [{}], [threshold], "threshold", figures)[0]

    (figure,), _ = sweep_figures([at(0.2), at(0.4)])
    assert (figure.name, figure.title, figure.x_label) == ("curves", "Trimmings over budget", "budget")
    assert series(figure) == ["agreement, threshold = 0.2", "agreement, threshold = 0.4", "accuracy"]
    figures, _ = sweep_figures([at(place / 10) for place in range(MOST_LINES)])
    assert [(one.name, len(series(one))) for one in figures] == [
        ("curves_agreement", MOST_LINES),
        ("curves_accuracy", 1),
    ]
    assert sweep_figures([at(0.2)] * 2)[0] == [], "the points have the same curves"


def test_two_settings_with_numbers_are_both_axes() -> None:
    points = sweep(lambda budget: [{"agreement": 0.3 * budget}], [1, 2, 4], threshold=0.3, seed=1)
    points += sweep(lambda budget: [{"agreement": 0.5 * budget}], [1, 2, 4], threshold=0.5, seed=1)
    figures, _ = sweep_figures(points)
    assert [(figure.name, figure.x_label) for figure in figures] == [
        ("agreement", "budget"),
        ("agreement_over_threshold", "threshold"),
    ]
    assert [len(series(figure)) for figure in figures] == [2, 3], "a line for each value of the other setting"
