"""The report of a whole sweep."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trimbench.papers.reporting.figures.drawing import StoredFigure
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.runs import write_findings
from trimbench.papers.reporting.sweeps import SweepPoint, write_sweep
from trimbench.papers.validation import Json
from trimbench.papers.vocabulary.tables import Table

from ..builders import findings, record

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
    failed = SweepPoint({"threshold": 0.8, "net works": None}, [], {"family/one": "no | such network"})
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
    points = [SweepPoint({"seed": seed}, [findings(figures=()), other], {}) for seed in (1, 2)]
    rows = lines_of(written(points, tmp_path)["sweep.csv"])
    assert rows[0] == ["seed", "experiment", "row", "value", "x"]
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
    assert "## Long, over mechanism (the first 200 of 1,100 rows; sweep.csv has all)" in text
    assert text.count("| block") == 200
    assert files["index.html"].read_text(encoding="utf-8").count("<td>block</td>") == 1000


def test_nothing_could_run(tmp_path: Path) -> None:
    failed = SweepPoint({"seed": 1}, [], {"family/one": "no data"})
    assert lines_of(written([failed], tmp_path)["sweep.csv"]) == [["seed", "error"], ["1", "no data"]]
