"""What a command prints about its experiments, and the summary at its end."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.configuration import Catalogue
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.overview import Overview, say
from trimbench.papers.validation import data_unavailable
from trimbench.papers.vocabulary.reported import Literature

from .builders import findings, record

pytestmark = pytest.mark.usefixtures("undrawn")

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
    return Overview(
        tmp_path / "results", catalogue, Literature.of(catalogue), FigureSettings(), profile="quick", suffix=""
    )


def test_a_complete_experiment(overview: Overview, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings(values={"a": 0.3, "b": 8.0}))
    assert overview.close(summary=False) == 0
    out = capsys.readouterr().out
    told = "1 of 2 numbers reproduced, 1 differs, with profile=quick"
    assert out.startswith(f"\n## family/one: {told}\n\nMain table\n\n| row   |   value |\n")
    assert "Of the paper: 1 of 2 numbers reproduced (1 exact), 1 differs (unexplained), with profile=quick.\n" in out
    assert f"  {tmp_path / 'results/family/one.md'}\n  and 9 more files" in out
    assert not (tmp_path / "results/summary.csv").exists()
    assert overview.close(summary=True) == 0
    (line,) = pd.read_csv(tmp_path / "results/summary.csv").to_dict("records")
    assert (line["experiment"], line["exact"], line["differs"]) == ("family/one", 1, 1)


def test_failed_jobs_are_reported_and_give_exit_code_1(overview: Overview, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings(records=[record(1), record(2, "crashed", "the worker process died")]))
    assert overview.close(summary=False) == 1
    out = capsys.readouterr().out
    assert "## family/one: 1 of 2 jobs ok, 1 of 2 jobs crashed\n" in out
    assert "1 jobs failed, the first with: the worker process died\n" in out


def test_missing_data_is_reported_once_and_is_no_failure(
    overview: Overview, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = {"vote": str(data_unavailable("file 'v'", "https://x", "away", "wait"))}
    for name in ("family/one", "family/two"):
        overview.note(findings(name, records=[], missing=missing))
    assert overview.close(summary=False) == 0
    out = capsys.readouterr().out
    assert "## family/two: data not available\n" in out
    assert "Of the paper: 2 numbers not attempted." in out
    end = "\nData that is not available (wait, or set TRIMBENCH_CACHE to a folder that holds it):\n  vote: x: away\n"
    assert out.endswith(end)


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
    assert "# Reported and reproduced, with profile=quick\n" in out


def test_with_other_settings_nothing_is_compared(
    overview: Overview, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = dataclasses.replace(findings(values={"a": 0.3}), altered=("k=3",), stem="family/one,k=3")
    overview.note(changed)
    assert overview.close(summary=False) == 0
    out = capsys.readouterr().out
    assert "\n## family/one,k=3: complete, with other settings\n" in out
    assert "What the paper reports is for other settings than k=3; nothing is compared.\n" in out
    assert "not attempted" not in out
    assert sorted(path.name for path in (tmp_path / "results/family").iterdir()) == [
        *(f"one,k=3{ending}" for ending in (".csv", ".json", ".md", ".png")),
        *(f"one,k=3_{ending}" for ending in ("points.csv", "rows.csv.gz", "table.tex")),
    ]


@pytest.mark.parametrize(
    ("is_terminal", "environment", "shown"),
    [
        (True, {}, "1 of 2 numbers \033[32mreproduced\033[0m, 1 \033[31mdiffers\033[0m; 0 of 1 claim holds"),
        (True, {"NO_COLOR": "1"}, "1 of 2 numbers reproduced, 1 differs; 0 of 1 claim holds"),
        (True, {"TERM": "dumb"}, "1 of 2 numbers reproduced, 1 differs; 0 of 1 claim holds"),
        (False, {}, "1 of 2 numbers reproduced, 1 differs; 0 of 1 claim holds"),
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
    say("1 of 2 numbers reproduced, 1 differs; 0 of 1 claim holds")
    assert screen.getvalue() == f"{shown}\n"
