"""The report of a whole sweep: its tables, its files, and figures over a swept setting."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.reproduction.reporting.builders import findings, line_figure, record
from trimbench.reproduction.reporting.columns import Measured, measured_columns
from trimbench.reproduction.reporting.figures.drawing import StoredFigure
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.runs import write_findings
from trimbench.reproduction.reporting.sweeps import (
    MOST_FIGURES,
    MOST_LINES,
    SweepPoint,
    setting_number,
    sweep_figures,
    write_sweep,
)
from trimbench.reproduction.settings import Json
from trimbench.reproduction.vocabulary.figures import LineFigure
from trimbench.reproduction.vocabulary.tables import Table

pytestmark = pytest.mark.usefixtures("undrawn")
FORMATS = {"network": "", "kept": "", "agreement": ".3f", "threshold": ".2f"}


def table(place: int, name: str = "") -> Table:
    lines = [
        {"network": "a", "kept": place, "agreement": 0.1 * place, "threshold": 1 / 3},
        {"network": "b|é", "kept": 7, "agreement": 0.7},
    ]
    return Table.of("Main table", lines, FORMATS, name=name)


def point(swept: Mapping[str, Json], place: int, **about: Any) -> SweepPoint:
    found = findings(tables=(table(place), table(place + 1, "other")), records=[record(place)], figures=(), **about)
    return SweepPoint(swept, [found], {})


POINTS = [point({"threshold": 0.4, "net works": ["a", "b"]}, 1), point({"threshold": 0.6, "net works": ["a", "b"]}, 2)]


def lines_of(path: Path) -> list[list[str]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return list(csv.reader(content.decode("utf-8").splitlines()))


def written(points: Sequence[SweepPoint], folder: Path) -> dict[str, Path]:
    return {path.name: path for path in write_sweep(points, folder, FigureSettings())[2]}


def test_the_joint_tables_have_exactly_the_rows_of_the_points(tmp_path: Path) -> None:
    files = written(POINTS, tmp_path / "sweep")
    for end in (".csv", "_other.csv", "_rows.csv.gz"):
        joint = lines_of(files[f"sweep{end}"])
        expected = []
        for number, swept in enumerate(POINTS):
            write_findings(swept.findings[0], [], tmp_path / str(number), FigureSettings())
            head, *rows = lines_of(tmp_path / f"{number}/family/one{end}")
            expected += [[str(swept.swept["threshold"]), '["a", "b"]', *row] for row in rows]
        assert joint[1:] == expected
        assert joint[0][-len(head) :] == head


def test_a_swept_key_with_the_name_of_a_column_loses_nothing(tmp_path: Path) -> None:
    files = written(POINTS, tmp_path)
    head = ["swept threshold", "net works", "network", "kept", "agreement", "threshold"]
    assert lines_of(files["sweep.csv"])[0] == head
    assert lines_of(files["sweep_rows.csv.gz"])[0][:2] == ["threshold", "net works"]


def test_a_point_that_failed_is_a_row(tmp_path: Path) -> None:
    failed = SweepPoint({"threshold": 0.8, "net works": None})
    failed.note_failure("family/one", ValueError("no | such network"))
    files = written([*POINTS, failed], tmp_path)
    head, *rows = lines_of(files["sweep.csv"])
    assert head[-1] == "error"
    assert rows[-1] == ["0.8", "null", "", "", "", "", "no | such network"]
    assert [row[3] for row in rows] == ["1", "7", "2", "7", ""]  # whole numbers stay whole
    assert {row[-1] for row in rows[:-1]} == {""}
    assert len(lines_of(files["sweep_other.csv"])) == 5
    assert "1 of 3 points could not run; the column error has the reasons." in files["sweep.md"].read_text(
        encoding="utf-8"
    )
    assert "no | such network" in files["index.html"].read_text(encoding="utf-8")
    assert lines_of(written([failed], tmp_path)["sweep.csv"])[1:] == [["0.8", "null", "no | such network"]]


def test_failed_jobs_and_missing_data_are_noted(tmp_path: Path) -> None:
    found = findings(records=[record(1), record(2, "failed", "boom")], missing={"net": "net is not here"}, figures=())
    text = written([SweepPoint({"seed": 1}, [found], {})], tmp_path)["sweep.md"].read_text(encoding="utf-8")
    assert "- 1 job failed; sweep_rows.csv.gz has the errors.\n- Data not available: net: net is not here" in text


def test_a_title_about_the_data_of_one_point_is_not_that_of_the_sweep(tmp_path: Path) -> None:
    tables = {name: Table.of(f"{name}: accuracy", [{"x": 1.5}], ["x"]) for name in ("clinic", "digits")}
    points = [SweepPoint({"data": name}, [findings(tables=(one,), figures=())], {}) for name, one in tables.items()]
    assert "clinic: accuracy" not in written(points, tmp_path)["sweep.md"].read_text(encoding="utf-8")


def test_several_experiments_have_a_column(tmp_path: Path) -> None:
    other = findings("family/two", tables=(Table.of("Other", [{"x": 1.5}], ["x"]),), figures=())
    points = [SweepPoint({"splits": n}, [findings(figures=()), other], {}) for n in (1, 2)]
    rows = lines_of(written(points, tmp_path)["sweep.csv"])
    assert rows[0] == ["splits", "experiment", "row", "value", "x"]
    assert rows[3] == ["1", "family/two", "", "", "1.5"]


def test_markdown_latex_and_page_show_table_and_figures(tmp_path: Path) -> None:
    files = written(POINTS, tmp_path)
    text = files["sweep.md"].read_text(encoding="utf-8")
    assert text.startswith(
        "# family/one over threshold, net works\n\n2 points.\n\n![kept over threshold](<sweep_kept.png>)\n\n!"
    )
    assert r'|               0.4 | ["a", "b"]  | b\|é      |      7 |       0.700 |           – |' in text
    assert r"\toprule" in files["sweep.tex"].read_text(encoding="utf-8")
    page = files["index.html"].read_text(encoding="utf-8")
    links = ('src="sweep_agreement.png"', 'href="sweep_other.csv"', "[&#34;a&#34;")
    assert all(link in page for link in links)


def test_figures_are_described_so_that_they_can_be_drawn_again(tmp_path: Path) -> None:
    files = written(POINTS, tmp_path)
    about = json.loads(files["sweep.json"].read_text(encoding="utf-8"))
    assert (about["experiment"], about["swept"]) == ("family/one", ["threshold", "net works"])
    assert about["points"][1] == {"swept": {"threshold": 0.6, "net works": ["a", "b"]}, "failures": {}}
    assert len(about["jobs"]) == 2
    assert sorted(about["files"]) == sorted(files)
    figures = [StoredFigure(description, tmp_path) for description in about["figures"]]
    drawn = ("kept", "agreement", "other_kept", "other_agreement")
    assert [figure.pictures for figure in figures] == [[files[f"sweep_{name}.png"]] for name in drawn]


def test_long_tables_are_cut_where_they_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"k": range(1100), "value": range(1100)})
    found = findings(tables=(Table("Long", frame),), figures=())
    files = written([SweepPoint({"mechanism": "block"}, [found], {})], tmp_path)
    assert len(lines_of(files["sweep.csv"])) == 1101
    text = files["sweep.md"].read_text(encoding="utf-8")
    assert "## Long, over mechanism (the first 200 of 1,100; sweep.csv has all)" in text
    assert text.count("| block") == 200
    assert files["index.html"].read_text(encoding="utf-8").count("<td>block</td>") == 1000


# Figures over a swept setting.

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


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("n", (5, 50), ["n = 5, ks = 5", "n = 50, ks = 5", "n = 5, ks = 50", "n = 50, ks = 50"]),
        ("k", (5, 50), ["k = 5", "k = 50, ks = 5", "k = 5, ks = 50", "k = 50"]),
        ("way", ("block", "mcar"), ["block", "mcar, ks = block", "block, ks = mcar", "mcar"]),
    ],
)
def test_a_number_is_said_only_by_a_label_of_its_name(column: str, values: Any, expected: list[str]) -> None:
    sweeps = [sweep(lambda x: [{column: one, "error": 2 * x} for one in values], [1, 2, 4], ks=k) for k in values]
    assert series(sweep_figures([point for one in sweeps for point in one])[0][0]) == expected


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
    assert setting_number(value) == number


def test_without_a_number_there_is_no_figure() -> None:
    for values in (["a", "bb"], [1, 2, "all"], [1]):
        points = sweep(lambda x: [{"error": len(str(x))}], values)
        assert sweep_figures(points) == ([], ["No swept setting has numbers as values, so there is no figure."])
    assert sweep_figures(sweep(lambda x: [{"error": x}] if x == 1 else [], [1, 2])) == ([], []), "known at one point"


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
        rows["dataset"], rows["missing"], rows["missing_percent"] = "a", setting_number(point.swept["missing"]), percent
    assert sweep_figures(points)[0][0].points["x"].tolist() == [25, 50]


def test_curves_over_an_axis_of_its_own_are_drawn_for_all_points() -> None:
    def at(threshold: float, x_label: str = "budget", **scales: str) -> SweepPoint:
        own = {"agreement": threshold, "accuracy": 0.5}
        lines = pd.DataFrame([{"series": name, "x": x, "y": x * y} for name, y in own.items() for x in (1, 2)])
        figures = (line_figure(lines, x_label=x_label, title="Trimmings", **scales),)
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
    (figure,), _ = sweep_figures([at(one, f"features out of {one:,}") for one in (500, 1_000)])
    assert figure.x_label == "features out of threshold"
    assert (figure.x_scale, figure.y_scale) == ("linear", "linear")
    (figure,), _ = sweep_figures([at(one, x_scale="log", y_scale="log") for one in (0.2, 0.4)])
    assert (figure.x_scale, figure.y_scale) == ("log", "log"), "those of the experiment's own figure"


def test_two_settings_with_numbers_are_both_axes() -> None:
    points = sweep(lambda budget: [{"agreement": 0.3 * budget}], [1, 2, 4], threshold=0.3, seed=1)
    points += sweep(lambda budget: [{"agreement": 0.5 * budget}], [1, 2, 4], threshold=0.5, seed=1)
    figures, _ = sweep_figures(points)
    assert [(figure.name, figure.x_label) for figure in figures] == [
        ("agreement", "budget"),
        ("agreement_over_threshold", "threshold"),
    ]
    assert [len(series(figure)) for figure in figures] == [2, 3], "a line for each value of the other setting"
