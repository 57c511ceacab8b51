import json
import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from trimbench.papers.execution import store
from trimbench.papers.execution.job import Job
from trimbench.papers.execution.store import _git_state, _quotas, provenance, usable_cpus
from trimbench.papers.execution.workers import execute

from . import sample_jobs

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    answer = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def test_it_says_with_what_and_where_and_is_handed_out_as_a_copy() -> None:
    facts = provenance()
    assert facts["packages"]["numpy"] == metadata.version("numpy")
    assert facts["trimbench"]
    assert facts["cpus"] == usable_cpus() >= 1
    assert facts["time"].endswith("+00:00")
    assert json.loads(json.dumps(facts)) == facts
    facts["packages"].clear()
    assert provenance()["packages"]
    assert provenance()["time"] == facts["time"]


def test_a_record_says_where_its_data_came_from_even_if_it_was_encoded_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_roads", {})
    job = Job.create(sample_jobs.square, {"x": 2}, {"dataset/a": "a" * 64, "network/b": "b" * 64})

    def encoded() -> store.Arrays:
        store.note_road("a" * 64, "a package")
        return {"rows": np.ones(2)}

    for _ in range(2):
        monkeypatch.setattr(store, "_roads", {})
        assert store.provenance_of(job)["roads"] == {}
        assert store.remember("rows", {"of": "a"}, encoded).keys() == {"rows"}
        assert execute(job).provenance == provenance() | {"roads": {"dataset/a": "a package"}}
    assert store.PROVENANCE.holds(store.provenance_of(job))
    assert not store.PROVENANCE.holds(provenance() | {"roads": {"dataset/a": 5}})


@needs_git
def test_commit_and_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert _git_state(tmp_path)[:2] == (None, False)
    (tmp_path / "a.py").write_text("1")
    assert _git_state(tmp_path)[:2] == (None, True)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    assert _git_state(tmp_path)[:2] == (git(tmp_path, "rev-parse", "HEAD"), False)
    (tmp_path / "a.py").write_text("2")
    assert _git_state(tmp_path)[:2] == (git(tmp_path, "rev-parse", "HEAD"), True)


@needs_git
def test_results_are_no_source_and_the_environment_of_a_hook_does_not_mislead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/table.csv").write_text("a\n")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert _git_state(tmp_path)[:2] == (None, False)
    assert _git_state(tmp_path / "results")[:2] == (None, None), "a repository around the package is not its own"


def test_without_git_or_with_a_broken_repository_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all")
    *nothing, why = _git_state(tmp_path)
    assert nothing == [None, None]
    assert why.startswith("git says: fatal: ")
    monkeypatch.setenv("PATH", os.devnull)
    assert _git_state(tmp_path)[:2] == (None, None)


def test_gits_own_settings_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those by which a user trusts the clone of another: rerun-io/rerun#2171, InfiniTimeOrg/InfiniTime#1935."""
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "# branch.oid $GIT_CONFIG_VALUE_0$GIT_DIR"\n')
    program.chmod(0o700)
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name, value in {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    monkeypatch.setenv("GIT_DIR", "elsewhere")
    assert _git_state(tmp_path) == ("*", False, "")
    program.write_text("#!/bin/sh\necho 'fatal: detected dubious ownership\n  in it' >&2\nexit 128\n")
    assert _git_state(tmp_path) == (None, None, "git says: fatal: detected dubious ownership in it")


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/", {"cpu.max": "150000 100000"}, {1.5}),
        ("0::/user/a.scope", {"user/cpu.max": "200000 100000", "user/a.scope/cpu.max": "max 100000"}, {2.0}),
        ("4:cpu,cpuacct:/x\n0::/", {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"}, {0.5}),
        ("4:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, set()),
        ("0::/", {"cpu.max": "nonsense"}, set()),
        ("0::/", {"cpu.max": ""}, set()),  # joblib/loky#478
        ("1:net_cls:/\n0::/user.slice/a.scope", {"user.slice/cpu.max": "300000 100000"}, {3.0}),  # joblib/loky#634
    ],
)
def test_a_quota_of_a_control_group_counts(
    tmp_path: Path, group: str, files: dict[str, str], expected: set[float]
) -> None:
    (tmp_path / "own").write_text(f"{group}\n")
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert set(_quotas(tmp_path / "root", tmp_path / "own")) == expected


def test_only_the_allowed_processors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_quotas", lambda *_: iter(()))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert usable_cpus() == 3
    monkeypatch.setattr(store, "_quotas", lambda *_: iter((1.2, 8.0)))
    assert usable_cpus() == 2
    monkeypatch.setattr(store, "_quotas", lambda *_: iter(()))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cpus() == 1
