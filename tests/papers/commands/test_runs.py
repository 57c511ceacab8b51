"""Runs: their names and folders, and the published one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from trimbench.papers.project import PROJECT
from trimbench.reproduction.commands import publishing
from trimbench.reproduction.execution.provenance import provenance
from trimbench.reproduction.files import settings_name
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting import page as reporting_page
from trimbench.reproduction.reporting import parts, runs
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import OTHER, T4, YET_OTHER, Command, configured_in, project_of, results, write

pytestmark = pytest.mark.usefixtures("undrawn")

QUICKLY = (T4, "executor=serial")
SWEPT = f"{OTHER},{YET_OTHER.partition('=')[2]}"


def test_a_run_has_a_name_and_a_folder(command: Command, tmp_path: Path) -> None:
    command(*QUICKLY, code=0)
    command(*QUICKLY, "run=mine", code=0)
    one, other = (results(tmp_path / "results" / run) for run in ("quick", "mine"))
    assert "trimming/table4.csv" in one
    assert one == other
    assert len(list((tmp_path / "results/jobs").rglob("*.json"))) == 1, "all runs share one store"


def test_settings_never_share_a_file(command: Command, tmp_path: Path) -> None:
    command(*QUICKLY, code=0)
    before = results(tmp_path / "results")
    command(*QUICKLY, OTHER, code=0)
    command(*QUICKLY, YET_OTHER, "seed=3", code=0)
    after = results(tmp_path / "results")
    assert {name: after[name] for name in before} == before
    names = {Path(name).name.removesuffix(".md") for name in after if name.endswith(".md")}
    assert names == {"table4", *(f"table4__{settings_name(words)}" for words in ([OTHER], [YET_OTHER, "seed=3"]))}


def test_a_declaration_of_ones_own_in_the_place_of_the_projects_is_another_setting(
    command: Command, tmp_path: Path
) -> None:
    command(*QUICKLY, code=0)
    before = results(tmp_path / "results")
    text = (project().configuration / "experiment/trimming/table4.yaml").read_text()
    for number, folder in enumerate(("one", "two")):
        own = tmp_path / folder / "experiment/trimming"
        own.mkdir(parents=True)
        (own / "table4.yaml").write_text(text.replace("0.69", f"0.6{number}"))
        answer = command("--config-dir", folder, *QUICKLY, code=0)
        assert "The paper reports nothing for experiment.trimming.table4=" in answer.out
    after = results(tmp_path / "results")
    assert {name: after[name] for name in before} == before
    assert len({name for name in after if name.endswith(".md")}) == 3


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("profile/quick", "name: quick\nsplits: 1\n", "choose it with profile=..."),
        ("figure/default", "width: 3\n", "choose it with figure=..."),
        ("executor/serial", "workers: 1\n", "choose it with executor=..."),
        ("config", "seed: 1\n", "give its settings on the command line"),
        ("experiment/trimming/table4", "defaults: [table6]\n", "choose it with experiment=..."),
    ],
)
def test_what_would_be_read_from_the_project_all_the_same_is_refused(
    command: Command, tmp_path: Path, name: str, text: str, advice: str
) -> None:
    write(tmp_path / "mine", {f"{name}.yaml": text})
    told = command("--config-dir", "mine", *QUICKLY, code=2).err
    path = Path(f"mine/{name}.yaml")
    assert told == f"{path} must not take the place of the project's {name}.yaml; rename it and {advice}\n"
    assert not (tmp_path / "results").exists()


def test_a_profile_of_ones_own_is_not_the_papers(command: Command, tmp_path: Path) -> None:
    profile = (project().configuration / "profile/quick.yaml").read_text(encoding="utf-8")
    write(tmp_path / "mine", {"profile/tiny.yaml": profile.replace("name: quick", "name: tiny")})
    answer = command("--config-dir", "mine", *QUICKLY, "profile=tiny", code=0)
    assert "\ncomplete, with other settings\n" in answer.out
    assert "The paper reports nothing for profile=tiny, so nothing is compared." in answer.out
    assert (tmp_path / "results/tiny/trimming/table4.csv").is_file()


def test_an_experiment_of_ones_own_may_have_any_name(command: Command, tmp_path: Path) -> None:
    own = tmp_path / "mine/experiment/own"
    own.mkdir(parents=True)
    shutil.copyfile(project().configuration / "experiment/trimming/table4.yaml", own / "my tâble.yaml")
    words = ("--config-dir", "mine", "experiment='own/my tâble'", "executor=serial")
    assert "\ncomplete, beyond the papers\n" in command(*words, code=0).out
    assert (tmp_path / "results/quick/own/my tâble.csv").is_file()
    command("-m", *words, SWEPT, code=0)
    assert [*(tmp_path / "results/quick/sweeps").rglob("sweep.csv")]


def test_git_does_not_see_a_run(command: Command, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    shutil.copyfile(project().configuration.parent / ".gitignore", tmp_path / ".gitignore")
    subprocess.run(["git", "-C", str(tmp_path), "add", "-A"], check=True)
    command(*QUICKLY, code=0)
    command("-m", *QUICKLY, SWEPT, code=0)
    seen = subprocess.run(["git", "status", "--porcelain", "--", ":!xdg"], check=True, capture_output=True)
    assert seen.stdout == b"A  .gitignore\n"


def test_a_run_has_one_profile(command: Command) -> None:
    command(*QUICKLY, "run=mine", code=0)
    answer = command(*QUICKLY, "run=mine", "profile=paper", code=2)
    wanted = "add profile=quick, or name another run\n"
    assert answer.err == f"run must have one profile: 'mine' has profile=quick, got profile=paper; {wanted}"
    runs.make_run(Path("results/study-a"), "study")
    assert command(*QUICKLY, "run=study-a", code=2).err.endswith("got profile=quick; name another run\n")
    (about := Path("results/mine/run.json")).unlink()
    os.mkfifo(about)
    assert command(*QUICKLY, "run=mine", code=0).files
    assert about.is_file(), "a pipe in its place says nothing, and is not waited for"


@pytest.mark.parametrize("name", ["published", "jobs", "sweeps", "plots", "a/b", "'..'", "'a b'", "-x", "'ä'"])
def test_a_run_must_not_be_named_like_anything_else(command: Command, tmp_path: Path, name: str) -> None:
    answer = command(*QUICKLY, f"run={name}", code=2)
    assert "run must " in answer.err
    assert not (tmp_path / "results").exists()


# --- publishing


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the program takes for its commit, with a configuration of one experiment."""
    folder = project_of(tmp_path / "conf", "trimming/table4")
    state = {**provenance(), "commit": "a" * 40, "dirty": False}
    for module in (publishing, runs, reporting_page, parts):
        monkeypatch.setattr(module, "provenance", lambda: dict(state))
    for _ in configured_in(folder):
        yield state


def test_a_run_is_published_whole(command: Command, commit: dict[str, Any], tmp_path: Path) -> None:
    command("executor=serial", code=0)
    command(*QUICKLY, OTHER, code=0)
    command("-m", *QUICKLY, SWEPT, code=0)
    answer = command("task=publish", "run=quick", code=0)
    assert answer.out.startswith("1 of 1 experiments are new in results/published, 0.1 MB; commit them.\n")
    published, run = tmp_path / "results/published", tmp_path / "results/quick"
    names = {path.relative_to(published).as_posix() for path in published.rglob("*") if path.is_file()}
    assert names >= {"index.html", "summary.csv", "run.json", "trimming/table4.json", "trimming/table4.csv"}
    same = (name for name in names if not name.endswith(".html"))
    assert all((published / name).read_bytes() == (run / name).read_bytes() for name in same)
    page = (published / "index.html").read_text()
    assert page.replace("<li>run published</li>", "<li>run quick</li>") == (run / "index.html").read_text()
    assert not [name for name in names if "__" in name or "sweeps" in name or ".gitignore" in name]
    assert json.loads((published / "run.json").read_text())["profile"] == "quick"
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["jobs", "published", "quick"]
    # The page alone is written again from what is published.
    (published / "index.html").write_text("of an earlier version")
    answer = command("task=publish", "run=published", code=0)
    assert answer.out == "The page and the summary in results/published are written again; commit them.\n"
    assert (published / "index.html").read_text() == page


def test_publishing_removes_nothing_that_it_did_not_write(
    command: Command, commit: dict[str, Any], tmp_path: Path
) -> None:
    command(*QUICKLY, code=0)
    published = tmp_path / "results/published"
    theirs = ["notes.md", "trimming/table4_mine.csv", ".gitignore", "empty", "paper_mine.html", "link.md"]
    for name in theirs:
        (published / name).parent.mkdir(parents=True, exist_ok=True)
        if name == "empty":
            (published / name).mkdir()
        elif name == "link.md":
            (published / name).symlink_to(tmp_path / "moved_notes.md")
        else:
            (published / name).write_text("mine")
        before = sorted(published.rglob("*"))
        answer = command("task=publish", "run=quick", code=2)
        assert f"must have only what task=publish writes, which replaces it, got {name}; move that" in answer.err
        assert sorted(published.rglob("*")) == before
        assert not list((tmp_path / "results").glob("publishing.*"))
        (published / name).rename(tmp_path / f"moved_{Path(name).name}")
        command("task=publish", "run=quick", code=0)
        assert (published / "index.html").is_file()
    # Also where only the pages are written again.
    (published / "notes.md").write_text("mine")
    assert "got notes.md; move" in command("task=publish", "run=published", code=2).err
    assert (published / "notes.md").read_text() == "mine"


def test_what_has_the_name_of_a_folder_of_publishing_is_left_alone(
    command: Command, commit: dict[str, Any], tmp_path: Path
) -> None:
    command(*QUICKLY, code=0)
    for name in ("publishing.mine.tmp", "publishing.00c0ffee.tmp"):
        (tmp_path / "results" / name / "old").mkdir(parents=True)
        (tmp_path / "results" / name / "old/notes.md").write_text("mine")
        os.utime(tmp_path / "results" / name, (0, 0))
    command("task=publish", "run=quick", code=0)
    assert len(list(tmp_path.glob("results/publishing.*/old/notes.md"))) == 2
    assert not (tmp_path / "results/published/notes.md").exists()


def test_a_link_in_a_run_is_not_published(command: Command, commit: dict[str, Any], tmp_path: Path) -> None:
    command(*QUICKLY, code=0)
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    table = next((tmp_path / "results/quick/trimming").glob("table4*.md"))
    table.unlink()
    table.symlink_to(tmp_path / "secret.csv")
    answer = command("task=publish", "run=quick", code=2)
    assert f"{table.name} is a symbolic link, which is not followed; put there what it stands for" in answer.err
    assert not (tmp_path / "results/published").exists()


def test_a_link_in_a_run_is_neither_shown_nor_written_through(command: Command, tmp_path: Path) -> None:
    command(*QUICKLY, code=0)
    run, secret = tmp_path / "results/quick", tmp_path / "secret"
    part = runs.read_about(run, "trimming/table4")["page"]
    assert parts.filled(part, run)["tables"]
    (run / "trimming").rename(secret)
    (run / "trimming").mkdir()
    for path in secret.iterdir():
        (run / "trimming" / path.name).symlink_to(path)
    for read in (lambda: parts.filled(part, run), lambda: runs.read_about(run, "trimming/table4")):
        with pytest.raises(ConfigurationError, match=r"trimming/table4\S* is a symbolic link, which is not followed"):
            read()
    shutil.rmtree(run / "trimming")
    (run / "trimming").symlink_to(secret)
    before = results(secret)
    for words in (("task=report",), ("task=run",), ("task=run", OTHER)):
        assert "trimming is a symbolic link, which is not followed" in command(*words, *QUICKLY, code=2).err
    assert results(secret) == before
    # So it is with sweeps, and with what says that a folder is a run.
    (run / "sweeps").symlink_to(secret)
    assert "sweeps is a symbolic link, which is not followed" in command("-m", *QUICKLY, SWEPT, code=2).err
    assert results(secret) == before
    (run / "run.json").rename(secret / "run.json")
    (run / "run.json").symlink_to(secret / "run.json")
    assert "no run has written to" in command("task=plot", "run=quick", code=2).err


def test_a_folder_that_is_no_run_is_not_written_to(command: Command, tmp_path: Path) -> None:
    (tmp_path / "results/docs").mkdir(parents=True)
    (tmp_path / "results/docs/index.html").write_text("mine")
    (tmp_path / "results/docs/run.json").write_text('{"mine": 1}')
    wanted = "run must be the folder of a run, or a new one, got 'results/docs' with index.html, run.json; name anoth"
    (tmp_path / "a.csv").write_text("x,y\n1,a\n")
    for words in ((*QUICKLY,), ("-m", *QUICKLY, SWEPT), ("task=report", T4), ("task=study", "data=a.csv", "target=y")):
        assert wanted in command(*words, "run=docs", code=2).err
        assert sorted(path.name for path in (tmp_path / "results").rglob("*")) == ["docs", "index.html", "run.json"]
    assert (tmp_path / "results/docs/index.html").read_text() == "mine"
    # Neither is a folder of another kind in the place of the store, nor a file that says what git ignores.
    (tmp_path / "other/jobs").mkdir(parents=True)
    (tmp_path / "other/jobs/offer.txt").write_text("mine")
    refused = command(*QUICKLY, "results=other", code=2)
    assert "but 'other/jobs', where records of jobs would go, has offer.txt; take another folder" in refused.err
    (tmp_path / "other/jobs/offer.txt").rename(tmp_path / "other/jobs/.gitignore")
    (tmp_path / "other/jobs/lock").touch()
    (tmp_path / "other/quick").mkdir()
    command(*QUICKLY, "results=other", code=0)
    assert (tmp_path / "other/jobs/.gitignore").read_text() == "mine"
    assert (tmp_path / "other/quick/.gitignore").read_text() == "*\n"


def test_only_what_this_commit_has_written_is_published(
    command: Command, commit: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*words: str) -> str:
        answer = command("task=publish", *words, code=2)
        assert not (tmp_path / "results/published").exists()
        return answer.err

    assert "no run has written to 'results' yet" in refused("run=quick")
    command(*QUICKLY, "run=mine", code=0)
    assert "run must be one of mine, got 'quick'" in refused("run=quick")
    assert "run must have one profile: 'mine' has profile=quick" in refused("run=mine", "profile=paper")
    assert "run must have the settings of the declarations, got others for" in refused("run=mine", "seed=3")
    commit["dirty"] = True
    assert "needs a clean commit of trimbench, got changes that are not committed" in refused("run=mine")
    commit.update(dirty=False, commit="b" * 40)
    wanted = "run must be written by the present commit bbbbbbbbbbbb, got trimming/table4 of aaaaaaaaaaaa; write"
    assert wanted in refused("run=mine")
    command("task=report", "run=mine", code=0)
    about = tmp_path / "results/mine/trimming/table4.json"
    kept = about.read_bytes()
    about.write_bytes(kept.replace(b'"complete"', b'"1 of 1 jobs failed"'))
    assert "must have all jobs of each experiment, got trimming/table4 with 1 of 1 jobs failed" in refused("run=mine")
    about.write_bytes(kept.replace(b'"page"', b'"else"'))
    assert "table4.json cannot be read: missing are ['page']" in refused("run=mine")
    about.write_bytes(kept)
    monkeypatch.setattr(publishing, "_MOST_MEGABYTES", 0.001)
    assert "a published run must take at most 0.001 MB, got 0." in refused("run=mine")
    (tmp_path / "results/mine/trimming/table4.json").unlink()
    assert "run must have an experiment to publish, got none in results/mine" in refused("run=mine")


def test_experiments_that_a_run_lacks_stay_as_published(
    command: Command, commit: dict[str, Any], tmp_path: Path
) -> None:
    name = "selection_bias/correlation_table"
    declared = project().configuration / f"experiment/{name}.yaml"
    declared.parent.mkdir()
    shutil.copyfile(PROJECT.configuration / f"experiment/{name}.yaml", declared)
    another = (f"experiment={name}", "executor=serial")
    command(*QUICKLY, code=0)
    alone = command("task=publish", "run=quick", code=2)
    assert f"run must have every experiment that is not published yet, got none for {name}" in alone.err
    assert not (tmp_path / "results/published").exists()
    command(*another, code=0)
    command("task=publish", "run=quick", code=0)
    published = tmp_path / "results/published"
    before = {path: path.read_bytes() for path in published.rglob("table4*") if path.suffix != ".html"}
    commit["commit"] = "b" * 40
    command(*another, "run=mine", code=0)
    answer = command("task=publish", "run=mine", code=0)
    new = "1 of 2 experiments are new in results/published, "
    assert answer.out.startswith(f"Unchanged, written by commit aaaaaaaaaaaa: trimming/table4.\n{new}")
    assert {path: path.read_bytes() for path in before} == before
    about = json.loads((published / f"{name}.json").read_text())
    assert about["written_with"]["commit"] == "b" * 40
    assert pd.read_csv(published / "summary.csv")["experiment"].tolist() == ["trimming/table4", name]
    pages = {path.stem: path.read_text() for path in published.rglob("*.html")}
    written = {stem: re.findall("written with commit ([^<]+)<", text) for stem, text in pages.items()}
    assert (written["table4"], written["correlation_table"]) == (["a" * 12], ["b" * 12])
    assert "<li>computed with commit " in pages["correlation_table"]
    # What is missing there is not the fault of the run.
    for lost in ("trimming/table4_table.csv", "trimming/table4.json"):
        held = (published / lost).rename(tmp_path / "held")
        refused = command("task=publish", "run=mine", code=2)
        assert re.search(f"the published run must .*{lost}.*; restore results/published with git, or", refused.err)
        held.rename(published / lost)
    command("profile=paper", "executor=serial", *another, "run=other", code=0)
    refused = command("task=publish", "profile=paper", "run=other", code=2)
    assert "'published' has profile=quick, got profile=paper" in refused.err
