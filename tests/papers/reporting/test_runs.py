"""Findings in files, under names that every file system accepts, and what a command prints about them."""

from __future__ import annotations

import dataclasses
import io
import json
import ntpath
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reproduction.reporting.builders import POINTS, findings, judged, line_figure, record, reported
from trimbench.reproduction import files
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.execution.store import Record
from trimbench.reproduction.files import is_accepted, safe_name, settings_name
from trimbench.reproduction.reporting.figures import drawing as figure_files
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.overview import Overview
from trimbench.reproduction.reporting.runs import (
    check_run,
    make_run,
    profile_of,
    read_about,
    say,
    unattempted,
    write_findings,
)
from trimbench.reproduction.reporting.verdicts import compare
from trimbench.reproduction.vocabulary.numbers import Outcome
from trimbench.reproduction.vocabulary.reported import Literature
from trimbench.reproduction.vocabulary.tables import Table

from ..command_line import results

pytestmark = pytest.mark.usefixtures("undrawn")

NUMBERS = [reported("a", "0.3"), reported("b", "7")]
DEFAULT = FigureSettings()


def names(paths: list[Path], folder: Path) -> list[str]:
    assert all(path.is_file() for path in paths)
    on_disk = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    listed = [path.relative_to(folder).as_posix() for path in paths]
    assert set(listed) == {name for name in on_disk if not name.startswith("xdg/")}, "nothing but what is listed"
    return listed


def test_files_with_reported_numbers(tmp_path: Path) -> None:
    written = write_findings(findings(), judged(NUMBERS, {"a": 0.1 + 0.2}), tmp_path, DEFAULT)
    assert names(written, tmp_path) == [
        "family/one.csv",
        "family/one_rows.csv.gz",
        "family/one_table.csv",
        "family/one_table.tex",
        "family/one_reported.tex",
        "family/one.png",
        "family/one_points.csv",
        "family/one.md",
        "family/one.json",
    ]
    compared = pd.read_csv(written[0], dtype=str)
    assert compared["verdict"].tolist() == ["exact", "not attempted"]
    assert compared["reproduced"].tolist()[0] == "0.30000000000000004", "every digit"
    assert [json.loads(text) for text in pd.read_csv(written[1])["features"]] == [["a", "é|"]] * 2, "lists come back"
    page = written[7].read_text(encoding="utf-8")
    assert page.startswith("# family/one\n\n![A title](<one.png>)\n\n## Main table\n")
    assert "## Printed → reproduced" in page
    assert "| 0.3 → 0.3 |" in page
    assert "What differs" not in page
    assert page.endswith("## Notes\n\n- A note.\n")
    assert r"\label{tab:family/one-table}" in written[3].read_text(encoding="utf-8")
    assert r"\caption{Printed \ensuremath{\to} reproduced}" in written[4].read_text(encoding="utf-8")


def test_files_without_reported_numbers(tmp_path: Path) -> None:
    written = write_findings(findings(figures=()), [], tmp_path, DEFAULT)
    assert names(written, tmp_path) == [
        f"family/one{end}" for end in (".csv", "_rows.csv.gz", "_table.tex", ".md", ".json")
    ]
    assert pd.read_csv(written[0])["row"].tolist() == ["a", "b"]


def test_further_tables_and_figures_have_names_of_their_own(tmp_path: Path) -> None:
    tables = (Table.of("One", [{"a": 1}], ["a"]), Table.of("Two", [{"a": 2}], ["a"], name="more"))
    figures = [line_figure(name=name) for name in ("vote", "deep/vote", "deep_vote", "deep<vote")]
    outcome = findings(tables=tables, figures=(*figures, line_figure(POINTS[:0], name="none")))
    written = names(write_findings(outcome, [], tmp_path, DEFAULT), tmp_path)
    assert {"family/one_more.csv", "family/one_vote.png", "family/one_deep_vote_points.csv"} <= set(written)
    # Names that differ in slashes alone do not share a file.
    assert sum(name.endswith(".png") for name in set(written)) == 4
    assert "![A title](<one_vote.png>)" in (tmp_path / "family/one.md").read_text(encoding="utf-8")


def test_files_of_an_earlier_setting_are_removed(tmp_path: Path) -> None:
    further = Table.of("More", [{"a": 1}], ["a"], name="more")
    written = write_findings(findings(tables=(further,), figures=(line_figure(name="other"),)), [], tmp_path, DEFAULT)
    mine = tmp_path / "family/one_mine.csv"
    mine.write_text("not ours")
    now = write_findings(findings(), [], tmp_path, DEFAULT)
    assert set(written) - set(now), "there was something to remove"
    assert names([*now, mine], tmp_path)
    for damaged in ("{", '{"files": ["../one_mine.csv", 3]}', "[]"):
        now[-1].write_text(damaged)
        assert write_findings(findings(), [], tmp_path, DEFAULT) == now
        assert mine.exists()
    (tmp_path / "family/notes.md").write_text("not ours")
    about = json.loads(now[-1].read_text())
    now[-1].write_text(json.dumps(about | {"files": [*about["files"], "notes.md"]}))
    write_findings(findings(), [], tmp_path, DEFAULT)
    assert (tmp_path / "family/notes.md").exists(), "no file of an experiment has such a name"


def test_the_page_links_to_no_file_of_an_earlier_run(tmp_path: Path) -> None:
    first, second = Table.of("First", [{"a": 1}], ["a"]), Table.of("Second", [{"a": 1}], ["a"], name="more")
    for order in ((second, first), (first, second)):
        found = replace(findings(), outcome=Outcome([*order], []))
        write_findings(found, [], tmp_path, DEFAULT)
        links = [table["file"] for table in read_about(tmp_path, "family/one")["page"]["tables"]]
        assert all((tmp_path / link).exists() for link in links), order


def test_the_configuration_names_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/anna")
    found = replace(findings(), settings={"results": "/srv/anna/results", "files": ["/srv/anna/a b", "/srv/annas"]})
    write_findings(found, [], tmp_path, DEFAULT)
    content = json.loads((tmp_path / "family/one.json").read_text(encoding="utf-8"))
    assert content["configuration"] == {"results": "~/results", "files": ["~/a b", "/srv/annas"]}


def test_provenance(tmp_path: Path) -> None:
    roads = [{"dataset/1": "OpenML 46"}, {"dataset/1": "package p 1", "dataset/2": "OpenML 7"}]
    records = [record(1), record(2, "failed", "Boom"), record(3)]
    records[:2] = [
        replace(one, provenance=one.provenance | {"roads": way}) for one, way in zip(records, roads, strict=False)
    ]
    write_findings(findings(records=records, missing={"vote": "is away"}), [], tmp_path, DEFAULT)
    content = json.loads((tmp_path / "family/one.json").read_text(encoding="utf-8"))
    assert content["experiment"] == "family/one"
    assert content["configuration"] == {"seed": 1, "runner": "m:C"}
    assert content["data"] == {f"dataset/{number}": "0" * 64 for number in (1, 2, 3)}
    assert content["missing"] == {"vote": "is away"}
    assert content["roads"] == {"dataset/1": "OpenML 46 and package p 1", "dataset/2": "OpenML 7"}
    assert content["jobs"] == {one.job.key[:12]: one.status for one in records}
    assert content["computed_with"] == [{"python": "3"}], "each machine once"
    assert set(content["written_with"]) >= {"trimbench", "python", "packages", "commit", "platform", "time"}


@pytest.mark.parametrize(
    ("records", "missing", "altered", "reason"),
    [
        ([record(1)], {"vote": "x", "heart": "y"}, (), "data not available: heart, vote"),
        ([record(1, "failed", "Boom"), record(2)], {}, (), "1 job failed; see the rows"),
        ([record(1, "missing", "no stored result")], {}, (), "no stored result; run the experiment"),
        ([record(1)], {}, (), "not computed in this run"),
        ([record(1)], {}, ("splits", "seeds"), "not the paper's settings: splits, seeds"),
    ],
)
def test_why_a_number_was_not_attempted(
    records: list[Record], missing: dict[str, str], altered: tuple[str, ...], reason: str
) -> None:
    found = dataclasses.replace(findings(records=records, missing=missing, values={"a": 0.3}), altered=altered)
    assert {one.reason for one in compare(NUMBERS, (), unattempted(found))} == {reason}
    assert bool(found.numbers) == (not altered)


def test_the_page_reports_what_went_wrong(tmp_path: Path) -> None:
    records = [record(1), record(2, "failed", "Traceback\n  line\nValueError: Boom\n")]
    found = findings(records=records, missing={"vote": "is away"}, tables=())
    write_findings(found, judged(NUMBERS, {}), tmp_path, DEFAULT)
    page = (tmp_path / "family/one.md").read_text(encoding="utf-8")
    assert "- Data not available: vote: is away\n- 1 of 3 jobs failed, the first with: ValueError: Boom\n" in page


def test_an_empty_table_is_called_so(tmp_path: Path) -> None:
    empty = Table.of("Main table", [], ["row", "value"])
    write_findings(findings(tables=(empty,)), [], tmp_path, DEFAULT)
    assert "## Main table\n\nNo row could be computed." in (tmp_path / "family/one.md").read_text(encoding="utf-8")
    assert list(pd.read_csv(tmp_path / "family/one.csv").columns) == ["row", "value"]


@pytest.mark.parametrize(("owner", "name"), [(figure_files, "draw"), (files, "_written")])
def test_a_failed_write_leaves_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    write_findings(findings(), [], tmp_path, DEFAULT)
    before = results(tmp_path)

    def half(first: object, *others: Sequence[Path]) -> None:
        path = first if isinstance(first, Path) else others[0][0]
        path.write_bytes(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(owner, name, half)
    with pytest.raises(OSError, match=r"cannot write .*family/one.*: No space left"):
        write_findings(findings(), [], tmp_path, DEFAULT)
    assert results(tmp_path) == before
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_changed_byte_in_what_a_run_says_of_itself_stops_no_later_run(tmp_path: Path) -> None:
    make_run(tmp_path, "quick")
    whole = (tmp_path / "run.json").read_bytes()
    for place, byte in enumerate(whole):
        (tmp_path / "run.json").write_bytes(whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :])
        check_run(tmp_path, "quick")
        make_run(tmp_path, "quick")
        assert (tmp_path / "run.json").read_bytes() == whole
    for profile, found in (("paper", "paper"), ("p" * 100, "p" * 100), ("p" * 101, "")):  # of an earlier version
        (tmp_path / "run.json").write_text(json.dumps({"profile": profile}))
        assert profile_of(tmp_path) == found


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (["threshold=0.4"], "threshold-0.4"),
        (["networks=[heart,voting]", "engine=sdd"], "networks-heart-voting__engine-sdd"),
        (["thresholds=[0.1]"], "thresholds-0.1"),
        (["thresholds=[0.1, 0.2]"], "thresholds-0.1-0.2"),
    ],
)
def test_plain_settings_are_their_own_names(settings: list[str], name: str) -> None:
    assert settings_name(settings) == name


_DEVICES = ("aux", "CON", "nul.1", "com1", "LPT9.txt", "prn..")


@pytest.mark.parametrize("name", [*_DEVICES, "monday.", "a..", ".", ""])
def test_names_that_windows_reserves_or_shortens_are_changed(name: str) -> None:
    assert not is_accepted(name)
    changed = safe_name(name)
    assert is_accepted(changed)
    if sys.version_info >= (3, 13):
        assert not ntpath.isreserved(changed)
    else:
        assert not PureWindowsPath(changed).is_reserved()
    assert not changed.endswith(".")


@pytest.mark.parametrize("name", ["auxiliary", "console", "com10", "com", "nul-1", ".git", "a.nul"])
def test_names_that_only_look_reserved_stay(name: str) -> None:
    assert is_accepted(name)
    assert safe_name(name) == name


@given(st.lists(st.text("aAb[]+,_ üÜé\u0301/=.", min_size=1, max_size=6), min_size=1, max_size=3, unique=True))
def test_different_texts_have_different_names(texts: list[str]) -> None:
    names = {safe_name(text).lower() for text in texts}  # as a file system has them that does not tell capitals
    assert len(names) == len(texts)
    assert all(len(name.encode()) <= 255 and name.isascii() and "/" not in name for name in names)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("state=Ja", "state=ja"),
        ("state=..", "state=/.."),
        ("x=[a,b]", "x=a+b"),
        ("x=[a-b,c]", "x=[a,b-c]"),
        ("x=a__y=b", "x=a__y-b"),
        ("x=a b", "x=a_b"),
        ("state=" + "ä" * 400, "state=" + "ä" * 399 + "ö"),
        ("state=" + "a" * 400, "state=" + "a" * 399 + "b"),
    ],
)
def test_values_that_differ_in_anything_have_names_of_their_own(one: str, other: str) -> None:
    names = [settings_name([one]), settings_name([other])]
    assert names[0].lower() != names[1].lower()
    assert all(name.isascii() and len(name) <= 140 and name not in (".", "..") for name in names)


# What a command prints about its experiments, and the summary at its end.

REPORTED = """
family/one:
  source: A paper
  rules: {value: {kind: exact}}
  numbers: {a: {value: "0.3"}, b: {value: "7"}}
"""


@pytest.fixture
def overview(tmp_path: Path) -> Overview:
    folder = tmp_path / "conf/reported"
    folder.mkdir(parents=True)
    (folder / "paper.yaml").write_text(REPORTED)
    catalogue = Catalogue((tmp_path / "conf",))
    return Overview(tmp_path / "results", catalogue, Literature.of(catalogue), FigureSettings(), profile="quick")


def test_a_complete_experiment(overview: Overview, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings(values={"a": 0.3, "b": 8.0}))
    assert overview.close(summary=False) == 0
    out = capsys.readouterr().out
    assert out.startswith("\n## family/one\n\nMain table\n\n| row   |   value |\n")
    told = "1 of 2 numbers reproduced (1 as printed), 1 differs (unexplained), with profile=quick"
    assert out.endswith(f"\n{told}\n  {(page := tmp_path / 'results/family/one.html')}\n")
    assert "index.html" not in page.read_text(), "no link to what there is not"
    assert not (tmp_path / "results/summary.csv").exists()
    assert overview.close(summary=True) == 0
    (line,) = pd.read_csv(tmp_path / "results/summary.csv").to_dict("records")
    assert (line["experiment"], line["exact"], line["differs"]) == ("family/one", 1, 1)


def test_summary(overview: Overview, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings("family/two"))
    overview.note_failure("family/one", ValueError("Boom"))
    assert overview.close(summary=True) == 1
    lines = pd.read_csv(tmp_path / "results/summary.csv").set_index("experiment")
    assert lines["status"].to_dict() == {"family/one": "failed: Boom", "family/two": "complete"}
    assert lines["not attempted"].tolist() == [2, 0], "nothing of an experiment that could not run"
    out = capsys.readouterr().out
    assert "## family/one: failed\n" in out
    assert "ValueError: Boom" in out
    end = out.partition("# Reported and reproduced, with profile=quick\n\n")[2]
    assert end.startswith("- family: 2 numbers not attempted\n- 1 experiment for which no number is printed\n\n")
    assert "| family/one    | 2 not run; failed: Boom |" in end
    assert "family/two" not in end, "nothing of it is open"


def test_a_long_table_is_cut_in_the_terminal(overview: Overview, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [{"row": f"row{number}", "value": 0.5} for number in range(60)]
    overview.note(findings(tables=(Table.of("Long", lines, ["row", "value"]),)))
    out = capsys.readouterr().out
    assert "(the first 40 of 60; all are in" in out
    assert "row39" in out
    assert "row40 " not in out


def test_failed_jobs_and_missing_data(overview: Overview, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings(records=[record(1), record(2, "failed", "Boom")], missing={"vote": "is away"}))
    overview.note(findings("family/two", records=[], missing={"vote": "is away", "heart": "is away"}))
    assert overview.close(summary=False) == 1
    out = capsys.readouterr().out
    status = "1 of 3 jobs ok, 1 of 3 jobs failed, 1 of 3 jobs data not available"
    assert f"## family/one: {status}\n" in out
    assert f"\n1 job failed, the first with: Boom\n\n{status}\n\n## family/two: data not available\n" in out
    assert "\nData that is not available:\n  vote, heart: is away\n" in out


def test_a_report_of_what_had_no_data_says_so(overview: Overview, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings(records=[], missing={"vote": "is away", "heart": "is away"}))
    again = dataclasses.replace(overview)
    again.note(findings(records=[record(1, "missing", "no stored result")]))
    (_, later) = capsys.readouterr().out.split("## family/one", 1)[1].split("## family/one")
    assert later.startswith(
        ": data not available\n\nNo job is stored for these settings. When it was run here, its data "
    )
    assert "its data was not available: heart, vote. The files " in later
    assert later.endswith("stay unchanged; fetch the data, and run the experiment first.\n")
    assert {one.reason for one in again.judgements} == {"data not available: heart, vote"}


PLAIN = "1 of 2 numbers reproduced, 1 differs; 0 of 1 claim holds"
COLOURED = "1 of 2 numbers \033[32mreproduced\033[0m, 1 \033[31mdiffers\033[0m; 0 of 1 claim holds"


@pytest.mark.parametrize(
    ("is_terminal", "environment", "shown"),
    [
        (True, {}, COLOURED),
        (True, {"COLUMNS": "40"}, COLOURED.replace("0 of", "0\nof")),
        (True, {"NO_COLOR": "1"}, PLAIN),
        (True, {"TERM": "dumb"}, PLAIN),
        (False, {}, PLAIN),
    ],
)
def test_outcomes_have_colour_on_a_terminal_that_has_it(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, environment: dict[str, str], shown: str
) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", screen)
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **environment}.items():
        monkeypatch.setenv(name, value)
    say(PLAIN)
    assert screen.getvalue() == f"{shown}\n"
