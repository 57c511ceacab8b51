import os
import pickle
from pathlib import Path

import pytest

from trimbench.papers.data.cache import Cache
from trimbench.papers.validation import ConfigurationError

from .offers import listing


@pytest.mark.parametrize(
    ("value", "folders"),
    [
        (None, ("xdg/trimbench",)),
        ("", ("xdg/trimbench",)),
        ("new/folder", ("new/folder", "xdg/trimbench")),
        ("xdg/trimbench", ("xdg/trimbench",)),
    ],
)
def test_named_folder_comes_first_and_gets_the_downloads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None, folders: tuple[str, ...]
) -> None:
    if value is not None:
        monkeypatch.setenv("TRIMBENCH_CACHE", value and str(tmp_path / value))
    cache = Cache.from_environment(offline=bool(value))
    assert cache == Cache(tuple(tmp_path / folder for folder in folders), tmp_path / folders[0], offline=bool(value))
    if value:
        assert list(cache.writable.iterdir()) == [], "the probe must not leave anything behind"
    else:
        assert not cache.writable.exists(), "looking up the cache must not create it"


@pytest.mark.parametrize("mode", [0o555, 0o755], ids=["read-only", "refuses the probe"])
def test_a_folder_that_cannot_be_written_is_read_but_not_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("trimbench.papers.data.cache.tempfile.TemporaryFile", refuse)
    folder = tmp_path / "shared"
    folder.mkdir(mode)
    before = listing(folder)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(folder))
    cache = Cache.from_environment()
    assert (cache.folders, cache.writable) == ((folder, tmp_path / "xdg/trimbench"), tmp_path / "xdg/trimbench")
    assert listing(folder) == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a-file", "must name a folder that exists or can be created, got 'a-file' .*; correct it, or unset it"),
        ("a-file/deeper", "must name a folder that exists or can be created, got 'a-file/deeper' "),
        ("s3://lab/cache", "must be a folder of this machine, got 's3://lab/cache'; write its path"),
    ],
)
def test_variable_that_names_no_folder_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, message: str
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRIMBENCH_CACHE", value)
    with pytest.raises(ConfigurationError, match=f"^TRIMBENCH_CACHE {message}"):
        Cache.from_environment()


def test_a_new_folder_is_named_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "cahce"))
    assert Cache.from_environment() == Cache.from_environment()
    note = f"TRIMBENCH_CACHE names a folder that does not exist, '{tmp_path / 'cahce'}'; creating an empty one.\n"
    assert capsys.readouterr().err == note


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache((), tmp_path / "file/cache")
    with (
        pytest.raises(OSError, match=r"cannot keep data in .*file/cache: .*; set TRIMBENCH_CACHE to"),
        cache.workspace(),
    ):
        pass


def test_writable_is_searched_even_if_it_is_not_listed_and_its_workspace_vanishes(tmp_path: Path) -> None:
    assert Cache((tmp_path / "a",), tmp_path / "b").places == (tmp_path / "a", tmp_path / "b")
    assert Cache((tmp_path / "a",), tmp_path / "a").places == (tmp_path / "a",)
    cache = Cache((), tmp_path / "new")
    with cache.workspace() as folder:
        (folder / "something").write_text("x")
        assert folder.parent == tmp_path / "new"
    assert list((tmp_path / "new").iterdir()) == []


def test_cache_can_be_sent_to_another_process(tmp_path: Path) -> None:
    cache = Cache((tmp_path,), tmp_path)
    cache.hosts.note("http://dead.invalid/x", ConnectionRefusedError(111, "Connection refused"))
    copy = pickle.loads(pickle.dumps(cache))
    assert copy == cache
    assert "Connection refused" in copy.hosts.reason_for("http://dead.invalid/other")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have numbers on POSIX only")
def test_a_user_without_home_and_entry_has_no_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "TRIMBENCH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    assert not Cache.from_environment().writable.exists()
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path))
    assert Cache.from_environment().writable == tmp_path
