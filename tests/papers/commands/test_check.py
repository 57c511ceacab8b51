"""The task ``check``, and ``compare`` within noise: from a run, its archive or its numbers."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from ..command_line import Command, write
from .test_verdict import GOOD, HEADS, REPORTED, line, text, verdict

MOVED = GOOD.replace("0.47", "0.44")


def said(command: Command, *words: str, code: int) -> str:
    answer = command("task=check", *words, code=code)
    return " ".join(f"{answer.out} {answer.err}".split())


def test_a_run_is_checked_against_another_its_archive_and_its_numbers(command: Command) -> None:
    verdict(command, GOOD, REPORTED, "run=before", code=0)
    verdict(command, MOVED, REPORTED, "run=now", code=0)
    words = "None of 5 numbers changed against before: 4 equal, 1 within the noise of their replications."
    assert words in said(command, "run=now", "against=before", code=0)
    assert words in said(command, "run=now", "against=results/before", code=0).replace("results/before", "before")
    files = {path.name for path in Path("results/checks/now__before").iterdir()}
    assert files == {"check.md", "check.json", "badge.svg", "numbers.csv"}
    with zipfile.ZipFile("before.zip", "w") as archive:
        for path in Path("results/before").rglob("*"):
            archive.write(path, path.relative_to("results/before"))
    assert words.replace("before", "before.zip") in said(command, "run=now", "against=before.zip", code=0)
    said(command, "run=before", "against=now", code=0)
    numbers = "against=results/checks/before__now/numbers.csv"
    assert "4 equal, 1 within the noise" in said(command, "run=now", numbers, code=0)


def test_what_changed_is_reported_and_the_exit_code_says_so(command: Command) -> None:
    verdict(command, GOOD, REPORTED, "run=before", code=0)
    far = text(
        line("penny", "limit", 0.7), *(line("penny", "heads", 9 + one, place) for place, one in enumerate(HEADS))
    )
    verdict(command, far, REPORTED, "run=now", code=1)
    out = said(command, "run=now", "against=before", code=1)
    assert out.count("left the noise of its replications") == 1
    assert "an open difference is new" in out
    assert "is not computed any more" in out
    answer = command("task=check", "run=now", "against=now", code=0)
    assert "None of 2 numbers changed against now: 2 equal" in answer.out


def test_a_comparison_tells_noise_from_differences_and_obeys_the_experiment(command: Command) -> None:
    verdict(command, GOOD, REPORTED, "run=before", code=0)
    verdict(command, MOVED, REPORTED, "run=now", code=0)
    out = command("task=compare", "runs=[before,now]", code=0).out
    assert "1 number differs within its noise (see changes.csv)." in " ".join(out.split())
    kinds = Path("results/comparisons/before__now/changes.csv").read_text(encoding="utf-8")
    assert "\nnoise,coins/table1,reported numbers,penny,heads," in kinds
    refused = command("task=compare", "runs=[before,now]", "experiment=trimming/table4", code=2)
    assert "experiment must be one of the run before, got trimming/table4" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["task=check"], "against must be a run, its archive or a numbers.csv"),
        (["against=published"], "and is for that task alone, got 'published' with task=run"),
        (
            ["task=check", "run=now", "against=nothing"],
            "against must name finished runs or their folders, got 'nothing'",
        ),
        (["task=check", "run=now", "against=no.zip"], "no.zip must be the archive of a run, got [Errno 2]"),
        (["task=check", "run=now", "against=no.csv"], "against: no.csv must be a numbers.csv that task=check wrote"),
        (["task=check", "run=now", "against=bad.csv"], "against: bad.csv must be a numbers.csv that task=check wrote"),
        (
            ["task=check", "run=now", "against=empty.csv"],
            "must have reported numbers that the run now has, too, got none",
        ),
        (["task=check", "run=then", "against=now"], "run must be one of now, got 'then'"),
    ],
)
def test_a_mistake_is_one_sentence(command: Command, words: list[str], wrong: str) -> None:
    verdict(command, text(line("penny", "tosses", 100)), REPORTED, "run=now", code=0)
    write(Path(), {"bad.csv": "a,b\n1,2\n", "empty.csv": "a,b\n"})
    answer = command(*words, code=2)
    assert wrong in " ".join(answer.err.split())
    assert len(answer.err) < 500
