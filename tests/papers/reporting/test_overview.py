"""What a command prints about its experiments, and the summary at its end."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from trimbench.papers.configuration import Catalogue
from trimbench.papers.reporting.runs import Overview, say
from trimbench.papers.vocabulary.outcome import FigureSettings
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
    assert "# Reported and reproduced, with profile=quick\n" in out


def test_failed_jobs_and_missing_data(overview: Overview, capsys: pytest.CaptureFixture[str]) -> None:
    overview.note(findings(records=[record(1), record(2, "failed", "Boom")], missing={"vote": "is away"}))
    overview.note(findings("family/two", records=[], missing={"vote": "is away", "heart": "is away"}))
    assert overview.close(summary=False) == 1
    out = capsys.readouterr().out
    status = "1 of 3 jobs ok, 1 of 3 jobs failed, 1 of 3 jobs data not available"
    assert f"## family/one: {status}\n" in out
    assert f"\n1 jobs failed, the first with: Boom\n\n{status}\n\n## family/two: data not available\n" in out
    assert "\nData that is not available:\n  vote, heart: is away\n" in out


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
