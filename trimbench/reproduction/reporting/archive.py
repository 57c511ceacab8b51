"""The archive of a run for others: everything that it wrote, its jobs and their provenance in one zip file."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata as distributions
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO
from urllib.parse import quote

import yaml

from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import is_inside
from trimbench.reproduction.execution.job import RESULT_BYTES
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.files import opened, read_bytes, read_text, read_unpacked, without_homes, write, write_bytes
from trimbench.reproduction.messages import brief, reason
from trimbench.reproduction.project import DISTRIBUTION, project
from trimbench.reproduction.reporting.runs import described_in, files_in
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.reported import Literature

_CITATION = "CITATION.cff"
_PICTURES = (".pdf", ".png")
_PAGES = (".html", ".css", ".js")
# What an archive may take with pictures, and that of a release without, too.
MOST_BYTES = 15_000_000
_KEY = re.compile("[0-9a-f]{8,64}")
# Without the time of writing, the same run gives the same bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_NEEDED = {"configuration", "data", "missing", "computed_with", "written_with", "files"}


def write_archive(folder: Path, store: JobStore, catalogue: Catalogue, path: Path, passed_over: Sequence[str]) -> int:
    """Write the run in `folder` to `path` as an RO-Crate, and return the number of job records in it.

    It has the files of the run and, below ``provenance``, the records of its jobs, the packages of this environment,
    the lock file of the project and what to cite. No path in it names a user or a home. One that would take more than
    15 MB lacks the pictures, which ``task=plot`` draws from their points, and the pages that show them. `passed_over`
    are the keys of configurations that are not settings of an experiment. Raises ConfigurationError if the run has no
    results.
    """
    found = {path.relative_to(folder).with_suffix("").as_posix(): about for path, about in described_in(folder)}
    experiments = {stem: about for stem, about in found.items() if "jobs" in about}
    records = {stem: list(_records(about, store)) for stem, about in experiments.items()}
    if not experiments:
        raise ConfigurationError(f"run must have results to archive, got none in {str(folder)!r}; task=run makes them")
    executions = [_execution(stem, about, records[stem], passed_over) for stem, about in experiments.items()]

    def write_to(temporary: Path) -> None:
        _write(temporary, every)
        if temporary.stat().st_size > MOST_BYTES:
            _write(temporary, [file for file in every if file.suffix not in _PICTURES + _PAGES])

    def _write(temporary: Path, files: Sequence[Path]) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            members = [_add(archive, file.relative_to(folder).as_posix(), [_shareable(file)]) for file in files]
            members += [_add(archive, f"provenance/{name}", content) for name, content in _provenance(records).items()]
            citation = yaml.safe_load(_citation().read_text(encoding="utf-8"))
            about = _metadata(folder.name, members, executions, catalogue, citation)
            _add(archive, METADATA, [(json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()])

    every = [path for path in files_in(folder) if not path.is_symlink()]
    write(path, write_to)
    return sum(map(len, records.values()))


# Of an archive that is read: bytes of the tables in it, and of one of them, when they are unpacked.
_MOST_UNPACKED, _LARGEST = 512 * 2**20, 64 * 2**20
_SHORTEST_RECORD = 256  # bytes; a shorter line counts as one, or empty lines alone would take minutes
# What reading one that is damaged raises.
_DAMAGED = (
    *(OSError, ValueError, RuntimeError, NotImplementedError, EOFError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
_JOBS = "jobs.jsonl"
# Bytes that a member packed by LZMA may ask for to be unpacked; ours ask for 8 MiB.
_MOST_DICTIONARY = 64 * 2**20


def unpack_tables(path: Path, folder: Path) -> None:
    """Unpack the tables of a run, and what they say about themselves, from an archive of any origin into a folder.

    Raises ConfigurationError if it is no archive, is damaged, or holds names that lead elsewhere or more than it may.
    """
    room = _MOST_UNPACKED
    try:
        with opened(path.resolve()) as stream, zipfile.ZipFile(stream) as archive:
            for one in archive.infolist():
                is_table = one.filename.endswith((".json", ".csv", ".csv.gz"))
                if one.is_dir() or not is_table or one.filename.startswith("provenance/"):
                    continue
                room -= one.file_size
                if not is_inside(one.filename) or one.file_size > _LARGEST or room < 0:
                    raise ValueError(f"{one.filename[:100]!r} leads elsewhere or is too large")
                with _opened_member(archive, one, stream) as member:
                    content = member.read(one.file_size + 1)
                target = folder / one.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(content, target)
    except _DAMAGED as error:
        raise ConfigurationError(f"{path} must be the archive of a run, got {reason(error)}") from error


def records_in(path: Path) -> Iterator[bytes]:
    """Yield the records of jobs in an archive of any origin, each as a line that need not be sound.

    Raises ConfigurationError if it is no archive, is damaged, or has no records or more than it may.
    """
    name = f"provenance/{_JOBS}"
    try:
        with opened(path.resolve()) as stream, zipfile.ZipFile(stream) as archive:
            if name not in archive.namelist():
                raise ValueError(f"it has no {name}")
            room = _MOST_UNPACKED
            with _opened_member(archive, archive.getinfo(name), stream) as member:
                while line := member.readline(2 * RESULT_BYTES):
                    room -= max(len(line), _SHORTEST_RECORD)
                    if room < 0:
                        raise ValueError(f"{name} is too large")
                    yield line
    except _DAMAGED as error:
        raise ConfigurationError(f"archive must be one of a run, got {path}: {reason(error)}") from error


def _opened_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, stream: BinaryIO) -> IO[bytes]:
    """Open a member to be read; ValueError if it asks for more memory than any of ours."""
    if member.compress_type == zipfile.ZIP_LZMA:
        stream.seek(member.header_offset + 26)
        lengths = stream.read(4)
        skipped = sum(int.from_bytes(lengths[at : at + 2], "little") for at in (0, 2))
        stream.seek(skipped + 5, os.SEEK_CUR)  # the version, the length and the first of the properties
        if int.from_bytes(stream.read(4), "little") > _MOST_DICTIONARY:
            raise ValueError(f"{member.filename[:100]!r} asks for a dictionary of more than {_MOST_DICTIONARY} bytes")
    return archive.open(member)


def _records(about: Mapping[str, Any], store: JobStore) -> Iterator[Path]:
    """Yield the files of an experiment's jobs with sound records; its provenance has the beginnings of their keys."""
    for key in about["jobs"]:
        if not _KEY.fullmatch(key):
            raise ConfigurationError(f"jobs of a run must be named by their keys, got {brief(key)}; run it again")
        yield from filter(store.is_sound, store.folder.glob(f"{key[:2]}/{key}*.json"))


def _execution(stem: str, about: Mapping[str, Any], records: Sequence[Path], passed_over: Sequence[str]) -> _Execution:
    """Return how an experiment ran: from the start of its first worker until its last job was stored."""
    if absent := sorted(_NEEDED - about.keys()):
        raise ConfigurationError(f"the file {stem}.json of the run must say {absent[0]}; task=report writes it again")
    written = about["written_with"]["time"]
    started = min((entry["time"] for entry in about["computed_with"] if "time" in entry), default=written)
    stored = max((record.stat().st_mtime for record in records), default=None)
    ended = written if stored is None else datetime.fromtimestamp(stored, UTC).isoformat(timespec="seconds")
    settings = {key: value for key, value in about["configuration"].items() if key not in passed_over}
    return _Execution(stem, about, settings, started, max(started, ended))


def _provenance(records: Mapping[str, Sequence[Path]]) -> dict[str, Iterable[bytes]]:
    lock = project().folder / "requirements/run.lock"
    packages = sorted({f"{one.name}=={one.version}\n" for one in distributions.distributions()}, key=str.casefold)
    lines = {_record(path) for paths in records.values() for path in paths}
    found: dict[str, Iterable[bytes]] = {
        # Records of similar jobs beside each other take less room.
        _JOBS: sorted(lines, key=lambda line: line.partition(b'"job":')[2]),
        "packages.txt": ["".join(packages).encode()],
        _CITATION: [_citation().read_bytes()],
    }
    # An installation from a wheel has none.
    return {**found, **({"run.lock": [lock.read_bytes()]} if lock.is_file() else {})}


def _citation() -> Path:
    """Return the file that says what to cite: in the folder of a project, or beside the configuration of a package."""
    configuration = project().configuration
    path = (configuration if configuration == project().folder else configuration.parent) / _CITATION
    if not path.is_file():
        raise ConfigurationError(
            f"archive=true needs a file {_CITATION} with authors, license and abstract, got none in {path.parent}; "
            "write one, as the Citation File Format has it"
        )
    return path


def _record(path: Path) -> bytes:
    """Return a record as one line; if it names a home, it is changed, and the hash in it no longer fits."""
    return _nameless(read_text(path, 2 * RESULT_BYTES), is_json=True).rstrip("\n").encode() + b"\n"


def _shareable(path: Path) -> bytes:
    content = read_bytes(path)
    if path.suffix in _PICTURES:
        return content
    packed = path.suffix == ".gz"
    text = read_unpacked(path).decode(errors="surrogateescape")
    shareable = _nameless(text, is_json=".json" in path.suffixes)
    if shareable == text:
        return content
    changed = shareable.encode(errors="surrogateescape")
    return gzip.compress(changed, mtime=0) if packed else changed


def _nameless(text: str, *, is_json: bool) -> str:
    # Escapes in JSON could hide a name.
    plain = json.dumps(json.loads(text), ensure_ascii=False) if is_json else text
    shareable = without_homes(plain)
    return text if shareable == plain else shareable


def _add(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes]) -> _Member:
    about = zipfile.ZipInfo(name, _NO_TIME)
    # The records are by far the largest member, and half as large by LZMA.
    about.compress_type = zipfile.ZIP_LZMA if name.endswith(_JOBS) else zipfile.ZIP_DEFLATED
    about.external_attr = 0o644 << 16
    size, digest = 0, hashlib.sha256()
    with archive.open(about, "w", force_zip64=True) as member:
        for piece in pieces:
            member.write(piece)
            size += len(piece)
            digest.update(piece)
    return _Member(name, size, digest.hexdigest())


# What an archive holds and how it came about, in JSON-LD: an RO-Crate by the profile "Process Run Crate".

METADATA = "ro-crate-metadata.json"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_CONTEXTS = (f"{_SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context")
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_LICENCES = "https://spdx.org/licenses/"
_OPENML = "https://www.openml.org/d/"
_FORMATS = {
    ".cff": "application/yaml",
    ".css": "text/css",
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
}

Entity = dict[str, Any]


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class _Execution:
    """How the files of one experiment came about; their paths begin with the stem, and times are in ISO 8601."""

    stem: str
    about: Mapping[str, Any]
    settings: Mapping[str, Any]
    started: str
    ended: str


class _Graph:
    """Entities, each there once, that refer to each other by their identifiers."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}

    def add(self, identifier: str, kind: str, /, **properties: object) -> dict[str, str]:
        """Add an entity, without the properties that are None or empty, unless it is there; return a reference."""
        single = {key: one[0] if isinstance(one, list) and len(one) == 1 else one for key, one in properties.items()}
        known = {key: value for key, value in single.items() if value not in (None, "", [])}
        self.entities.setdefault(identifier, {"@id": identifier, "@type": kind, **known})
        return {"@id": identifier}

    def of_kind(self, *kinds: str, within: str = "") -> list[dict[str, str]]:
        """Return references to the entities of some kinds that have a text in their identifiers."""
        found = self.entities.values()
        return [{"@id": one["@id"]} for one in found if one["@type"] in kinds and within in one["@id"]]


def _metadata(
    run: str,
    members: Sequence[_Member],
    executions: Sequence[_Execution],
    catalogue: Catalogue,
    citation: Mapping[str, Any],
) -> dict[str, Json]:
    graph = _Graph()
    author = [
        graph.add(f"#{quote(one['name'])}", "Organization", name=one["name"], url=one.get("website"))
        for one in citation["authors"]
    ]
    licence = graph.add(f"{_LICENCES}{citation['license']}", "CreativeWork", name=citation["license"])
    files = {one.name: _file(graph, one) for one in members}
    actions = [_action(graph, one, files, catalogue, citation) for one in executions]
    families = {one.about["experiment"].partition("/")[0] for one in executions}
    profile = graph.add(_PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    graph.add(
        "./",
        "Dataset",
        name=f"The run {run} of {project().name}",
        description=f"Tables, figures, records of jobs and provenance of {len(executions)} experiments. "
        f"{citation['abstract'].strip()}",
        datePublished=max(one.ended for one in executions),
        license=licence,
        author=author,
        conformsTo=profile,
        citation=_papers(graph, families, catalogue, citation),
        hasPart=[*files.values(), *graph.of_kind("File", "Dataset", within="://")],
        mentions=[*actions, *graph.of_kind("Collection")],
    )
    graph.add(METADATA, "CreativeWork", conformsTo={"@id": _SPECIFICATION}, about={"@id": "./"})
    return {"@context": list(_CONTEXTS), "@graph": list(graph.entities.values())}


def _file(graph: _Graph, member: _Member) -> dict[str, str]:
    path = PurePosixPath(member.name)
    return graph.add(
        quote(member.name),
        "File",
        name=member.name,
        contentSize=str(member.size),
        sha256=member.sha256,
        encodingFormat=_FORMATS.get(path.suffix, "text/plain"),
    )


def _action(
    graph: _Graph,
    execution: _Execution,
    files: Mapping[str, dict[str, str]],
    catalogue: Catalogue,
    citation: Mapping[str, Any],
) -> dict[str, str]:
    about, stem = execution.about, execution.stem
    folder = PurePosixPath(stem).parent
    statuses = list(about["jobs"].values())
    wanting = sum(status != "ok" for status in statuses) + len(about["missing"])
    name = about["experiment"]
    known = name in catalogue.names("experiment")
    inputs = [_input(graph, place, sha256, catalogue) for place, sha256 in about["data"].items()]
    return graph.add(
        f"#{quote(stem, safe='/=,+')}",
        "CreateAction",
        name=f"Run of {stem}",
        description=catalogue.about("experiment", name) if known else f"The experiment {name}",
        instrument=_software(graph, about["written_with"], citation),
        object=[*inputs, *_settings(graph, execution)],
        result=[files[path] for file in about["files"] if (path := (folder / file).as_posix()) in files],
        startTime=execution.started,
        endTime=execution.ended,
        actionStatus=f"http://schema.org/{'Failed' if wanting else 'Completed'}ActionStatus",
        error=f"{wanting} of its jobs or data sets are missing or failed" if wanting else None,
    )


def _software(graph: _Graph, environment: Mapping[str, Any], citation: Mapping[str, Any]) -> dict[str, str]:
    version, commit = environment.get(DISTRIBUTION), environment.get("commit")
    state = f"Commit {commit}{', with changes that were not committed' if environment.get('dirty') else ''}"
    packages = {"Python": environment.get("python"), **environment.get("packages", {})}
    which = f"{f'-{commit[:12]}' if commit else ''}{'-changed' if environment.get('dirty') else ''}"
    return graph.add(
        f"#{DISTRIBUTION}-{version}{which}",
        "SoftwareApplication",
        name=DISTRIBUTION,
        description=f"{citation['title']}. {state if commit else 'Installed without git'}",
        softwareVersion=version,
        license={"@id": f"{_LICENCES}{citation['license']}"},
        operatingSystem=environment.get("platform"),
        softwareRequirements=[
            graph.add(f"#{name}-{found}", "SoftwareApplication", name=name, softwareVersion=found)
            for name, found in packages.items()
        ],
    )


def _settings(graph: _Graph, execution: _Execution) -> list[dict[str, str]]:
    """Add the settings of an experiment; a list or a mapping is JSON."""
    content = dict(execution.settings)
    if isinstance(content.get("profile"), Mapping):  # all of its values are in the provenance
        content["profile"] = content["profile"].get("name", "")
    return [
        graph.add(
            f"#{quote(execution.stem, safe='/=,+')}/{quote(key)}",
            "PropertyValue",
            name=key,
            value=without_homes(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)),
        )
        for key, value in content.items()
    ]


def _input(graph: _Graph, place: str, sha256: str, catalogue: Catalogue) -> dict[str, str]:
    group, _, name = place.partition("/")
    declared = name.removesuffix(" with evidence")
    known = declared in catalogue.names(group)
    content = catalogue.mapping(group, declared) if known else {}
    identifier = f"#{quote(place)}"
    properties: Entity = {
        "name": name,
        "description": without_homes(catalogue.about(group, declared)) if known else None,
        "identifier": graph.add(
            f"{identifier}/sha256", "PropertyValue", name="SHA-256 that the keys of the jobs contain", value=sha256
        ),
    }
    if content.get("kind") == "openml":
        properties["version"] = str(content["version"])
        return graph.add(f"{_OPENML}{content['id']}", "Dataset", **properties)
    parts = [_web_file(graph, file) for file in _files_in(content)]
    if not parts:  # simulated, part of a package, or the user's own
        return graph.add(identifier, "CreativeWork", **properties)
    return graph.add(identifier, "Collection", **properties, hasPart=parts, mainEntity=parts[0])


def _files_in(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, Mapping):
        if "url" in content and "path" in content:
            yield content
        for value in content.values():
            yield from _files_in(value)


def _web_file(graph: _Graph, file: Mapping[str, Any]) -> dict[str, str]:
    size = file.get("size")
    return graph.add(
        str(file["url"]),
        "File",
        name=PurePosixPath(str(file["path"])).name,
        sha256=file.get("sha256"),
        contentSize=str(size) if size else None,
    )


def _papers(
    graph: _Graph, families: set[str], catalogue: Catalogue, citation: Mapping[str, Any]
) -> list[dict[str, str]]:
    papers = Literature.of(catalogue).papers
    cited = " ".join(papers[family].citation for family in families if family in papers)
    return [
        graph.add(
            f"https://doi.org/{paper['doi']}",
            "ScholarlyArticle",
            name=paper["title"],
            author=[_person(graph, one) for one in paper["authors"]],
            datePublished=str(paper["year"]),
            identifier=f"doi:{paper['doi']}",
        )
        for paper in citation.get("references", ())
        if paper["doi"] in cited
    ]


def _person(graph: _Graph, person: Mapping[str, str]) -> dict[str, str]:
    given, family = person["given-names"], person["family-names"]
    name = f"{given} {family}"
    return graph.add(f"#{quote(name)}", "Person", name=name, givenName=given, familyName=family)
