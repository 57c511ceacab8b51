"""What an experiment found, in files that are whole or not there."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.execution.temporary import temporary_name
from trimbench.papers.study.plan import LineFigure, Table
from trimbench.papers.reporting import files
from trimbench.papers.reporting.files import write_findings, write_summary
from trimbench.papers.reporting.verdicts import Reported, Rule

from ..command_line import results
from .builders import POINTS, findings, record

NUMBERS = [Reported("A paper", "a/value", "0.3", Rule("exact")), Reported("A paper", "b/value", "7", Rule("exact"))]


def names(paths: list[Path], folder: Path) -> list[str]:
    assert all(path.is_file() for path in paths)
    on_disk = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    listed = [path.relative_to(folder).as_posix() for path in paths]
    assert set(listed) == on_disk, "nothing but what is listed"
    return listed


def test_files_with_reported_numbers(tmp_path: Path) -> None:
    written = write_findings(findings(reproduced={"a/value": 0.1 + 0.2}), NUMBERS, tmp_path)
    assert names(written, tmp_path) == [
        "family/one.csv",
        "family/one_rows.csv",
        "family/one_table.csv",
        "family/one.md",
        "family/one.tex",
        "family/one.png",
        "family/one.pdf",
        "family/one_points.csv",
        "family/one.json",
    ]
    compared = pd.read_csv(written[0], dtype=str)
    assert compared["verdict"].tolist() == ["exact", "not attempted"]
    assert compared["reproduced"].tolist()[0] == "0.30000000000000004", "every digit"
    page = written[3].read_text(encoding="utf-8")
    assert page.startswith("# family/one\n\n![A title](one.png)\n\n## Main table\n")
    assert "## Printed → reproduced" in page
    assert "| 0.3 → 0.3 |" in page
    assert "What differs" not in page
    assert page.endswith("## Notes\n\n- A note.\n")
    assert written[4].read_text(encoding="utf-8").count(r"\end{tabular}") == 2


def test_files_without_reported_numbers(tmp_path: Path) -> None:
    written = write_findings(findings(figures=()), [], tmp_path)
    assert names(written, tmp_path) == [f"family/one{end}" for end in (".csv", "_rows.csv", ".md", ".tex", ".json")]
    assert pd.read_csv(written[0])["row"].tolist() == ["a", "b"]


def test_further_tables_and_figures_have_names_of_their_own(tmp_path: Path) -> None:
    tables = (Table("", "One", pd.DataFrame({"a": [1]})), Table("more", "Two", pd.DataFrame({"a": [2]})))
    figures = (LineFigure("deep/vote", "A title", "x", "y", POINTS), LineFigure("none", "", "x", "y", POINTS[:0]))
    written = write_findings(findings(tables=tables, figures=figures), [], tmp_path)
    assert {"family/one_more.csv", "family/one_deep_vote.png", "family/one_deep_vote_points.csv"} <= set(
        names(written, tmp_path)
    )
    assert "![A title](one_deep_vote.png)" in (tmp_path / "family/one.md").read_text(encoding="utf-8")


def test_files_of_an_earlier_setting_are_removed(tmp_path: Path) -> None:
    further = Table("more", "More", pd.DataFrame({"a": [1]}))
    figure = LineFigure("other", "Another", "x", "y", POINTS)
    written = write_findings(findings(tables=(further,), figures=(figure,)), [], tmp_path)
    mine = tmp_path / "family/one_mine.csv"
    mine.write_text("not ours")
    now = write_findings(findings(), [], tmp_path)
    assert set(written) - set(now), "there was something to remove"
    assert names([*now, mine], tmp_path)
    for damaged in ("{", '{"files": ["../one_mine.csv", 3]}', "[]"):
        now[-1].write_text(damaged)
        assert write_findings(findings(), [], tmp_path) == now
        assert mine.exists()


def test_points_and_lists_come_back(tmp_path: Path) -> None:
    write_findings(findings(), [], tmp_path)
    with (tmp_path / "family/one_points.csv").open(encoding="utf-8") as stream:
        points = [(row["series"], float(row["x"]), float(row["y"])) for row in csv.DictReader(stream)]
    assert points == list(POINTS.itertuples(index=False, name=None))
    rows = pd.read_csv(tmp_path / "family/one_rows.csv")
    assert [json.loads(text) for text in rows["features"]] == [["a", "é|"]] * 2


def test_provenance(tmp_path: Path) -> None:
    records = [record(1), record(2, "failed", "Boom"), record(3)]
    write_findings(findings(records=records, missing={"vote": "is away"}), [], tmp_path)
    content = json.loads((tmp_path / "family/one.json").read_text(encoding="utf-8"))
    assert content["experiment"] == "family/one"
    assert content["configuration"] == {"seed": 1, "runner": "m:C"}
    assert content["data"] == {f"dataset/{number}": "0" * 64 for number in (1, 2, 3)}
    assert content["missing"] == {"vote": "is away"}
    assert content["jobs"] == {one.job.key: one.status for one in records}
    assert content["computed_with"] == [{"python": "3"}], "each machine once"
    assert set(content["written_with"]) >= {"trimbench", "python", "packages", "commit", "platform", "time"}


@pytest.mark.parametrize(
    ("records", "missing", "reason"),
    [
        ([record(1)], {"vote": "x", "heart": "y"}, "data not available: heart, vote"),
        ([record(1, "failed", "Boom"), record(2)], {}, "1 jobs failed; see the rows"),
        ([record(1, "missing", "no stored result")], {}, "no stored result; run the experiment"),
        ([record(1)], {}, "not computed in this run"),
    ],
)
def test_why_a_number_was_not_attempted(tmp_path: Path, records: list, missing: dict[str, str], reason: str) -> None:
    written = write_findings(findings(records=records, missing=missing), NUMBERS, tmp_path)
    assert set(pd.read_csv(written[0])["reason"]) == {reason}


def test_the_page_tells_what_went_wrong(tmp_path: Path) -> None:
    records = [record(1), record(2, "failed", "Traceback\n  line\nValueError: Boom\n")]
    write_findings(findings(records=records, missing={"vote": "is away"}, tables=()), NUMBERS, tmp_path)
    page = (tmp_path / "family/one.md").read_text(encoding="utf-8")
    assert "- Data not available: is away\n- 1 of 3 jobs failed, the first with: ValueError: Boom\n" in page


def test_an_empty_table_is_named_as_such(tmp_path: Path) -> None:
    empty = Table("", "Main table", pd.DataFrame(columns=["row", "value"]))
    write_findings(findings(tables=(empty,)), [], tmp_path)
    assert "## Main table\n\nNo row could be computed." in (tmp_path / "family/one.md").read_text(encoding="utf-8")
    assert list(pd.read_csv(tmp_path / "family/one.csv").columns) == ["row", "value"]


def test_a_failure_while_drawing_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_findings(findings(), [], tmp_path)
    before = results(tmp_path)

    def half(figure: LineFigure, paths: Sequence[Path]) -> None:
        paths[0].write_bytes(b"half a picture")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "draw", half)
    with pytest.raises(OSError, match="No space left"):
        write_findings(findings(), [], tmp_path)
    assert results(tmp_path) == before
    assert not list(tmp_path.rglob(".*")), "no temporary file stays"


def test_a_failure_while_writing_a_table_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_findings(findings(), [], tmp_path)
    before = results(tmp_path)

    def half(self: pd.DataFrame, path: Path, **_: object) -> None:
        Path(path).write_text("half a table")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", half)
    with pytest.raises(OSError, match="No space left"):
        write_findings(findings(), [], tmp_path)
    assert results(tmp_path) == before
    assert not list(tmp_path.rglob("*.tmp"))


def test_summary(tmp_path: Path) -> None:
    lines = pd.DataFrame({"experiment": ["a"], "status": ["failed: one\ntwo | three"]})
    written = write_summary(lines, "<p>page</p>", tmp_path / "new" / "folder")
    assert pd.read_csv(written[0])["status"].tolist() == ["failed: one\ntwo | three"]
    assert written[2].read_text(encoding="utf-8") == "<p>page</p>"
    assert r"| a            | failed: one two \| three |" in written[1].read_text(encoding="utf-8")


def test_what_a_killed_program_left_is_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    name, _, rest = temporary_name("writing").partition(f".{os.getpid()}.")
    left = tmp_path / "family" / f"{name}.{dead.pid}.{rest}"
    living = tmp_path / "family" / temporary_name("writing")
    for folder in (left, living):
        folder.mkdir(parents=True)
        (folder / "one.csv").write_text("half")
    write_findings(findings(), [], tmp_path)
    assert not left.exists()
    assert living.exists()
