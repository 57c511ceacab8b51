"""The archive of a run for others: everything that it wrote, its jobs and their provenance in one zip file."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata as distributions
from pathlib import Path
from typing import Any

import yaml

from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.execution.homes import without_homes
from trimbench.papers.execution.store import JobStore
from trimbench.papers.reporting.crate import METADATA, Execution, Member, metadata
from trimbench.papers.reporting.whole_files import write
from trimbench.papers.validation import ConfigurationError

_CITATION = "CITATION.cff"
_PICTURES = (".pdf", ".png")
# Without the time of writing, the same run gives the same bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def experiments_of(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return the provenance of each experiment that a run has written, by the stem of its files."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in _files(folder):
        if path.suffix == ".json":
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ConfigurationError(f"run must have whole files, got {path} ({error}); run it again") from error
            # That of a sweep has no jobs: the experiments of its points are files of their own.
            if isinstance(content, dict) and {"experiment", "jobs"} <= content.keys():
                found[path.relative_to(folder).with_suffix("").as_posix()] = content
    return found


def write_archive(folder: Path, store: JobStore, catalogue: Catalogue, path: Path, passed_over: Sequence[str]) -> Path:
    """Write the archive of the run in `folder` to `path`, an RO-Crate, and return the path.

    It has the files of the run, and below ``provenance`` the records of its jobs, the packages of this environment, the
    lock file of the project and what to cite. No path in it names a user or a home. `passed_over` are the keys of
    configurations that are no settings of an experiment.
    """
    experiments = experiments_of(folder)
    records = {stem: list(_records(about, store)) for stem, about in experiments.items()}
    executions = [_execution(stem, about, records[stem]) for stem, about in experiments.items()]
    path.parent.mkdir(parents=True, exist_ok=True)

    def write_to(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            members = [_add(archive, f.relative_to(folder).as_posix(), [_shareable(f)]) for f in _files(folder)]
            members += [_add(archive, f"provenance/{name}", content) for name, content in _provenance(records).items()]
            citation = yaml.safe_load(_citation().read_text(encoding="utf-8"))
            about = metadata(folder.name, members, executions, catalogue, citation, passed_over)
            _add(archive, METADATA, [(json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()])

    return write(path, write_to)


def _files(folder: Path) -> list[Path]:
    """Return the files of a run, without those that are being written or that git alone reads."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    parts = {path: path.relative_to(folder).parts for path in found}
    return sorted(path for path in found if not any(one.startswith(".") or one.endswith(".tmp") for one in parts[path]))


def _records(about: Mapping[str, Any], store: JobStore) -> Iterator[Path]:
    """Give the records of an experiment's jobs that are stored; its provenance has the beginnings of their keys."""
    for key in about["jobs"]:
        yield from store.folder.glob(f"{key[:2]}/{key}*.json")


def _execution(stem: str, about: Mapping[str, Any], records: Sequence[Path]) -> Execution:
    """Return when an experiment ran: from the start of its first worker until its last job was stored."""
    written = about["written_with"]["time"]
    started = min((entry["time"] for entry in about["computed_with"]), default=written)
    stored = max((record.stat().st_mtime for record in records), default=None)
    ended = written if stored is None else datetime.fromtimestamp(stored, UTC).isoformat(timespec="seconds")
    return Execution(stem, about, started, max(started, ended))


def _provenance(records: Mapping[str, Sequence[Path]]) -> dict[str, Iterable[bytes]]:
    """Return the files that the archive adds to those of the run."""
    lock = configuration_folder().parent / "requirements/run.lock"
    packages = sorted({f"{one.name}=={one.version}\n" for one in distributions.distributions()}, key=str.casefold)
    every = sorted({path for paths in records.values() for path in paths})
    found: dict[str, Iterable[bytes]] = {
        "jobs.jsonl": map(_record, every),
        "packages.txt": ["".join(packages).encode()],
        _CITATION: [_citation().read_bytes()],
    }
    # An installation from a wheel has none.
    return {**found, **({"run.lock": [lock.read_bytes()]} if lock.is_file() else {})}


def _citation() -> Path:
    """Return the file that says what to cite: beside the configuration, in a source tree and in a wheel."""
    return configuration_folder().parent / _CITATION


def _record(path: Path) -> bytes:
    """Return a record as one line; one that names a home is written anew, and its own hash no longer fits it."""
    return _nameless(path.read_text(encoding="utf-8"), is_json=True).rstrip("\n").encode() + b"\n"


def _shareable(path: Path) -> bytes:
    """Return the content of a file of the run, without names of homes and users."""
    content = path.read_bytes()
    if path.suffix in _PICTURES:
        return content
    packed = path.suffix == ".gz"
    text = (gzip.decompress(content) if packed else content).decode(errors="surrogateescape")
    shareable = _nameless(text, is_json=".json" in path.suffixes)
    if shareable == text:
        return content
    changed = shareable.encode(errors="surrogateescape")
    return gzip.compress(changed, mtime=0) if packed else changed


def _nameless(text: str, *, is_json: bool) -> str:
    """Return a text without names of homes and users, and as it is if it has none."""
    # Escapes of JSON could hide a name.
    plain = json.dumps(json.loads(text), ensure_ascii=False) if is_json else text
    shareable = without_homes(plain)
    return text if shareable == plain else shareable


def _add(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes]) -> Member:
    """Add a file to an archive, piece by piece."""
    about = zipfile.ZipInfo(name, _NO_TIME)
    about.compress_type = zipfile.ZIP_DEFLATED
    about.external_attr = 0o644 << 16
    size, digest = 0, hashlib.sha256()
    with archive.open(about, "w", force_zip64=True) as member:
        for piece in pieces:
            member.write(piece)
            size += len(piece)
            digest.update(piece)
    return Member(name, size, digest.hexdigest())
