"""`task=plot` draws figures of a run again, from their points alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.reporting.figures.drawing import read_points, write_figures
from trimbench.reproduction.reporting.figures.settings import FigureSettings
from trimbench.reproduction.reporting.runs import make_run
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.figures import LineFigure

from ..command_line import Command

pytestmark = pytest.mark.usefixtures("few")

REFUSING = ("task=plot run=quick", "task=compare runs=[quick,quick]")
POINTS = pd.DataFrame({"series": list("aabb"), "x": [1, 2, 1, 2], "y": [0.5, 0.75, 1.5, 0.25]})


def write_run(run: Path, stem: str, experiment: str | None, settings: FigureSettings | None = None) -> list[Path]:
    """Write a figure as a run does, and return its files."""
    make_run(run, "quick")
    (run / stem).parent.mkdir(parents=True, exist_ok=True)
    figure = LineFigure(f"Figure of {stem}", "x", "y", POINTS)
    written, descriptions = write_figures([figure], run / stem, settings or FigureSettings())
    about = (run / stem).with_name(f"{Path(stem).name}.json")
    about.write_text(json.dumps({"experiment": experiment, "figures": descriptions}), encoding="utf-8")
    return [*written, about]


def files(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def printed(out: str) -> list[str]:
    return [line.strip() for line in out.splitlines() if line.startswith("  ")]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    small = FigureSettings(width=3, height=2, palette="grey")
    for run, settings in (("published", None), ("quick", small)):
        write_run(folder / run, "trimming/figure5", "trimming/figure5")
        write_run(folder / run, "trimming/curves", "trimming/curves", settings)
    write_run(folder / "quick", "sweeps/mine/sweep", "trimming/curves")
    (folder / "quick" / "trimming" / "table4.json").write_text('{"experiment": "trimming/table4"}')
    (folder / "jobs" / "00").mkdir(parents=True)
    (folder / "jobs" / "00" / "00.json").write_text("{}")
    return folder


@pytest.fixture
def root(drawn: Path, tmp_path: Path) -> Path:
    """A folder of results with two runs: the published one, and a quick one with a sweep and a smaller picture."""
    return shutil.copytree(drawn, tmp_path / "results")


def delete_pictures(folder: Path) -> list[Path]:
    pictures = sorted(folder.rglob("*.png"))
    for path in pictures:
        path.unlink()
    return pictures


def test_deleted_pictures_are_drawn_again_with_the_same_bytes(command: Command, root: Path) -> None:
    before = files(root)
    assert len(delete_pictures(root / "quick")) == 3
    answer = command("task=plot", "run=quick", code=0)
    assert files(root) == before
    assert answer.out.startswith("Drawing 3 figures of the run quick:\n")
    assert printed(answer.out) == [
        f"results/quick/{name}.png" for name in ("sweeps/mine/sweep", "trimming/curves", "trimming/figure5")
    ]


def test_pictures_of_the_published_run_are_never_overwritten(command: Command, root: Path) -> None:
    before = files(root)
    kept, deleted = sorted((root / "published").rglob("*.png"))
    kept.write_bytes(b"a picture of another version")
    deleted.unlink()
    answer = command("task=plot", code=0)
    assert printed(answer.out) == ["results/published/trimming/figure5.png"]
    assert kept.read_bytes() == b"a picture of another version"
    assert files(root) == before | {"published/trimming/curves.png": b"a picture of another version"}
    again = command("task=plot", code=0)
    assert again.out.startswith("Nothing to draw: every picture of the run published is there; with")


def test_a_picture_that_comes_out_otherwise_is_one_of_the_run(command: Command, root: Path) -> None:
    """A newer version, or another processor, may draw other bytes; task=publish would refuse them."""
    about, picture = (root / "published/trimming" / name for name in ("figure5.json", "figure5.png"))
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in about.parent.glob("*.png")}
    said = json.loads(about.read_text(encoding="utf-8")) | {"sha256": hashes}
    about.write_text(json.dumps(said | {"sha256": hashes | {picture.name: "0" * 64}}), encoding="utf-8")
    picture.unlink()
    command("task=plot", code=0)
    assert json.loads(about.read_text(encoding="utf-8")) == said


def test_one_experiment(command: Command, root: Path) -> None:
    delete_pictures(root / "quick")
    answer = command("task=plot", "run=quick", "experiment=trimming/curves", code=0)
    assert printed(answer.out) == ["results/quick/sweeps/mine/sweep.png", "results/quick/trimming/curves.png"]
    none = command("task=plot", "run=quick", "experiment=trimming/table4", code=1)
    assert none.out == "There are no figures of trimming/table4 in the run quick.\n"


@pytest.mark.parametrize(
    ("words", "folder", "endings"),
    [
        (["figure=column"], "column", ["pdf"]),
        (["figure=column", "figure.width=4"], "column__width-4", ["pdf"]),
        (["figure.formats=[svg,png]", "figure.title=false"], "default__formats-svg-png__title-false", ["svg", "png"]),
    ],
)
def test_other_settings_have_a_folder_of_their_own(
    words: Sequence[str], folder: str, endings: Sequence[str], command: Command, root: Path
) -> None:
    before = files(root)
    answer = command("task=plot", "experiment=trimming/figure5", *words, code=0)
    expected = [f"plots/published/{folder}/trimming/figure5.{ending}" for ending in endings]
    assert printed(answer.out) == [f"results/{name}" for name in expected]
    after = files(root)
    assert sorted(after) == sorted([*before, *expected])
    assert all(after[name] == content for name, content in before.items())


def test_settings_of_figures_are_no_settings_of_experiments(command: Command, tmp_path: Path) -> None:
    words = ("experiment=trimming/table4", "executor=serial", "figure.width=4")
    command(*words, "instances=[[0.5,0.1,0.9]]", code=0)
    (about,) = tmp_path.rglob("*.md")
    assert about.name.startswith("table4__instances-")
    assert "figure" not in about.name


def test_what_is_missing_is_named(command: Command, root: Path, tmp_path: Path) -> None:
    delete_pictures(root / "quick")
    (root / "quick/trimming/curves_points.csv").unlink()
    answer = command("task=plot", "run=quick", code=1)
    assert "  cannot be drawn without results/quick/trimming/curves_points.csv; task=report writes it" in answer.out
    assert (root / "quick/trimming/figure5.png").exists(), "the others are drawn"
    assert command("task=plot", "run=quik", code=2).err == (
        "run must be one of published, quick, got 'quik'; did you mean 'quick'?\n"
    )
    (root / "quick/trimming/curves.json").write_text("{")
    assert "quick/trimming/curves.json cannot be read" in command("task=plot", "run=quick", code=2).err
    nothing = command("task=plot", f"results={tmp_path / 'nowhere'}", code=2)
    assert re.match("no run has written to '.*nowhere' yet; start one with task=run", nothing.err)


def test_a_run_of_somebody_else_names_no_file_elsewhere(command: Command, root: Path) -> None:
    about = root / "quick/trimming/curves.json"
    sound = about.read_text(encoding="utf-8")
    changed: list[tuple[str, object]] = [
        *(("files", 5), ("data", None), ("pictures", ["../../../x.png"]), ("points", "/tmp/x.csv")),
        *(("pictures", []), ("title", None), ("levels", {"a": "b"}), ("marks", ["a"]), ("methods", {"a": 1})),
    ]
    for said, value in changed:
        content = json.loads(sound) | {said: value}
        content["figures"][0] |= {said: value}
        about.write_text(json.dumps(content))
        refused_by_both(command)
    about.write_text("[" * 100_000)
    refused_by_both(command)
    assert not (root.parent / "x.png").exists()
    about.unlink()
    os.mkfifo(about)
    for words in REFUSING:
        assert "curves.json must be a regular file, got a pipe or a device" in command(*words.split(), code=2).err


def test_a_link_in_a_run_of_somebody_else_is_not_followed(command: Command, root: Path, tmp_path: Path) -> None:
    """Whether it stands for a table, a description or a whole folder: it could lead to any file of the reader."""
    secret = tmp_path / "secret"
    secret.mkdir()
    said = "is a symbolic link, which is not followed; put there what it stands for"
    theirs, points = root / "quick/trimming", "curves_points.csv"
    (theirs / points).rename(secret / points)
    (theirs / points).symlink_to(secret / points)
    delete_pictures(theirs)
    assert f"{points} cannot be read: " in (answer := command("task=plot", "run=quick", code=1)).out
    assert said in answer.out
    assert not (theirs / "curves.png").exists()
    (theirs / points).unlink()
    (theirs / "curves.json").rename(secret / "curves.json")
    (theirs / "curves.json").symlink_to(secret / "curves.json")
    refused_by_both(command)
    theirs.rename(secret / "trimming")
    theirs.symlink_to(secret / "trimming")
    before = files(secret)
    assert said in command("task=compare", "runs=[quick,quick]", code=2).err
    assert "trimming" not in command("task=plot", "run=quick").out
    assert files(secret) == before


def refused_by_both(command: Command) -> None:
    for words in REFUSING:
        assert "quick/trimming/curves.json cannot be read: " in command(*words.split(), code=2).err


def test_points_that_cannot_be_read_are_named(command: Command, root: Path) -> None:
    points = root / "quick/trimming/curves_points.csv"
    for damaged in ("", "series,x\na,1\n", "series,x,y\na,1,b\n", "series,x,y\na,1,2\nb,1,2,3\n", "\udcff"):
        points.write_text(damaged, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(ConfigurationError, match=r"curves_points\.csv cannot be read: "):
            read_points(points, ["series"])
    delete_pictures(root / "quick")
    answer = command("task=plot", "run=quick", code=1)
    assert "  results/quick/trimming/curves_points.csv cannot be read: " in answer.out
    assert (root / "quick/trimming/figure5.png").exists(), "the others are drawn"


def test_the_default_of_the_configuration_is_that_of_the_settings() -> None:
    assert Catalogue().mapping("figure", "default") == dataclasses.asdict(FigureSettings())
