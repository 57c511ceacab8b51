"""What the README shows is run."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

import trimbench as tb
from tests import pages
from tests.networks.network_writers import encode_bif
from trimbench.papers.commands import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = pages.commands(README)


def blocks(language: str) -> list[str]:
    return pages.blocks(README, language)


def executed(part: str) -> dict[str, object]:
    """Run the Python example that has `part` in it, and return its names."""
    (example,) = [block for block in blocks("python") if part in block]
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    return names


def test_the_conformant_example_runs_and_says_what_it_claims(capsys: pytest.CaptureFixture[str]) -> None:
    names = executed("tb.conform(")
    complete, hidden, explanation, residual = capsys.readouterr().out.splitlines()
    assert 0.85 < float(hidden) < float(complete) < 1
    assert 0 < len(eval(explanation)) < 30
    assert float(residual) == names["nacl"].residual < 1e-10  # type: ignore[attr-defined]


def test_the_python_example_runs_and_says_what_it_claims(capsys: pytest.CaptureFixture[str]) -> None:
    names = executed("tb.trim(")
    features, interval, agreement, optimal = capsys.readouterr().out.splitlines()
    assert features == "('scan', 'age')"
    assert eval(interval)[0] < names["trimming"].threshold <= eval(interval)[1]
    assert 0.5 < float(agreement) <= 1
    assert optimal == "True"


def test_the_example_of_selected_features_runs_and_says_what_it_claims(capsys: pytest.CaptureFixture[str]) -> None:
    executed("tb.fit_selection_corrected(")
    first, second = capsys.readouterr().out.splitlines()
    expected, actual = map(float, first.split())
    assert abs(expected - actual) < 0.05
    assert float(second) < actual - 0.1


@pytest.mark.parametrize("command", [command for command in COMMANDS if "--config-dir" not in command])
def test_commands_are_understood(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = shlex.split(command)
    if parts[:1] == ["-m"]:  # a sweep cannot be shown: its first point is
        parts = [re.sub(r"=([^\[,]+),.*", r"=\1", part) for part in parts[1:]]
    monkeypatch.setattr(sys, "argv", ["trimbench", *parts, "--cfg", "job"])
    cli.main()
    assert "runner:" in capsys.readouterr().out or "experiment=" not in command


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) >= 6


def test_the_users_own_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (command,) = [command for command in COMMANDS if "--config-dir" in command]
    declaration, _ = blocks("yaml")
    folder = tmp_path / "mine" / "dataset"
    folder.mkdir(parents=True)
    (folder / "clinic.yaml").write_text(declaration, encoding="utf-8")
    rows = [
        f"{i % 7},{'a' if i % 3 else 'b'},{i % 5 if i % 9 else ''},{'yes' if i % 7 > 3 else 'no'}" for i in range(80)
    ]
    (folder / "clinic.csv").write_text("\n".join(["dose,ward,score,diagnosis", *rows]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["trimbench", *shlex.split(command), "executor=serial"])
    cli.main()
    assert "trimming/breast_cancer: complete" in capsys.readouterr().out
    assert (tmp_path / "results/trimming/breast_cancer.png").stat().st_size > 0


def test_the_users_own_network(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, declaration = blocks("yaml")
    folder = tmp_path / "mine" / "network"
    folder.mkdir(parents=True)
    (folder / "alarm.yaml").write_text(declaration, encoding="utf-8")
    network = tb.BayesianNetwork(
        {"Burglary": ["yes", "no"], "Alarm": ["on", "off"], "John": ["calls", "not"], "Mary": ["calls", "not"]},
        {"Alarm": ["Burglary"], "John": ["Alarm"], "Mary": ["Alarm"]},
        {
            "Burglary": [0.1, 0.9],
            "Alarm": [[0.9, 0.1], [0.2, 0.8]],
            "John": [[0.7, 0.3], [0.1, 0.9]],
            "Mary": [[0.6, 0.4], [0.2, 0.8]],
        },
    )
    (folder / "alarm.bif").write_text(encode_bif(network), encoding="utf-8")
    (line,) = re.findall(r"^`(--config-dir mine .*?)`", README, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["trimbench", *shlex.split(line), "executor=serial"])
    cli.main()
    assert "trimming/curves: complete" in capsys.readouterr().out
    assert (tmp_path / "results/trimming/curves.png").stat().st_size > 0


def test_files_it_names_exist() -> None:
    for path in re.findall(r"`((?:conf|scripts|results|requirements)/[\w./]+|[A-Z]+\.md)`", README):
        if not path.startswith("results"):
            assert (ROOT / path.split()[0]).exists(), path
