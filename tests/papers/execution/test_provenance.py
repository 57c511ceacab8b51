import json
import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from trimbench.papers.execution.store import _git_state, provenance, usable_cpus

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    answer = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def test_it_says_with_what_and_where() -> None:
    facts = provenance()
    assert facts["packages"]["numpy"] == metadata.version("numpy")
    assert facts["trimbench"]
    assert facts["cpus"] == usable_cpus() >= 1
    assert facts["time"].endswith("+00:00")
    assert json.loads(json.dumps(facts)) == facts


def test_it_is_collected_once_and_handed_out_as_a_copy() -> None:
    first = provenance()
    first["packages"].clear()
    assert provenance()["packages"]
    assert provenance()["time"] == first["time"]


@needs_git
def test_commit_and_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert _git_state(tmp_path) == (None, False)
    (tmp_path / "a.py").write_text("1")
    assert _git_state(tmp_path) == (None, True)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    assert _git_state(tmp_path) == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "a.py").write_text("2")
    assert _git_state(tmp_path) == (git(tmp_path, "rev-parse", "HEAD"), True)


@needs_git
def test_results_are_no_source_and_the_environment_of_a_hook_does_not_mislead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/table.csv").write_text("a\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert _git_state(tmp_path) == (None, False)
    assert _git_state(tmp_path / "results") == (None, None), "a repository around the package is not its own"


def test_without_git_or_with_a_broken_repository_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all")
    assert _git_state(tmp_path) == (None, None)
    monkeypatch.setenv("PATH", os.devnull)
    assert _git_state(tmp_path) == (None, None)


def test_only_the_allowed_processors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert usable_cpus() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cpus() == 1
