"""What the Tab key completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trimbench.papers.commands.cli import answer, completions
from trimbench.papers.validation import ConfigurationError

from ..command_line import PROJECT, write

# Asks bash for the completions of a line as the Tab key does, with or without "=" among the characters that end words.
ASK = """
eval "$($PYTHON -m trimbench --shell-completion install=bash)"
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDBREAKS=$BREAKS
_trimbench
printf '%s\\n' "${COMPREPLY[@]}"
"""


TABLES = [f"experiment={name}" for name in PROJECT.names("experiment") if name.startswith("trimming/ta")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trimbench ta", ["task="]),
        ("trimbench task=p", ["task=plot", "task=publish"]),
        ("trimbench experiment=trimming/ta", TABLES),
        ("trimbench -m experiment=trimming/quiz,trimming/s", ["experiment=trimming/quiz,trimming/scaling"]),
        ("trimbench experiment=trimming/table4 ins", ["instances="]),
        ("trimbench experiment=selection_bias/simulation al", ["alpha="]),
        ("trimbench archive=t", ["archive=true"]),
        ("trimbench th", []),
        (
            "trimbench experiment=conformant/digits datasets=[mnist,f",
            ["datasets=[mnist,fashion", "datasets=[mnist,fashion_mnist"],
        ),
        ("trimbench experiment=trimming/table6 networks=[c", []),  # those of circuits have no class
        ("trimbench cache_mode=i", ["cache_mode=ignore"]),
        ("trimbench roads=[file,p", ["roads=[file,package"]),
        ("trimbench threshold=0.", []),
        ("trimbench nonsense=", []),
        ("trimbench task=study ta", ["target=", "task="]),
    ],
)
def test_words_are_completed(line: str, expected: list[str]) -> None:
    assert completions(line) == expected


def test_own_folders_and_runs_are_completed(tmp_path: Path) -> None:
    write(tmp_path, {"mine/experiment/own/one.yaml": "size: 1\n", "results/first/run.json": "{}"})
    line = f"trimbench --config-dir {tmp_path / 'mine'} results={tmp_path / 'results'} experiment=own/one "
    assert completions(f"{line.rstrip()[:-2]}") == ["experiment=own/one"]
    assert completions(f"{line}si") == ["size="]
    assert completions(f"{line}runs=[f") == ["runs=[first"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("breaks", "start"), [(" =:", ""), (" ", "experiment=")])
def test_bash_completes_what_follows_the_sign(breaks: str, start: str) -> None:
    settings = {"PYTHON": sys.executable, "LINE": "trimbench experiment=trimming/ta", "BREAKS": breaks}
    ended = subprocess.run(
        ["bash", "--norc", "-c", ASK], env=os.environ | settings, capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == [f"{start}{name.partition('=')[2]}" for name in TABLES]


@pytest.mark.parametrize("words", [[], ["install=tcsh"], ["uninstall=bash"]])
def test_other_shells_are_an_error(words: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="must be followed by install=bash, install=zsh or install=fish, got"):
        answer(words)
