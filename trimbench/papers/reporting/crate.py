"""What an archive holds and how it came about, in JSON-LD: an RO-Crate by the profile "Process Run Crate"."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from trimbench.papers.configuration import Catalogue
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.homes import without_homes
from trimbench.papers.study.reported import Literature

METADATA = "ro-crate-metadata.json"
_SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_CONTEXTS = (f"{_SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context")
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_LICENCES = "https://spdx.org/licenses/"
_OPENML = "https://www.openml.org/d/"
_FORMATS = {
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".html": "text/html",
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
class Member:
    """A file of an archive: its path there, its size in bytes and its hash."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Execution:
    """How the files of one experiment came about.

    Attributes
    ----------
    stem : str
        What the paths of its files begin with.
    about : mapping
        Its provenance, as the run has written it.
    started, ended : str
        When the first of its jobs could start and the last had ended, in ISO 8601.
    """

    stem: str
    about: Mapping[str, Any]
    started: str
    ended: str


class _Graph:
    """Entities that refer to each other by their identifiers; each is there once."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}

    def add(self, identifier: str, kind: str, /, **properties: object) -> dict[str, str]:
        """Add an entity, without the properties that are None or empty, unless it is there; return a reference."""
        single = {key: one[0] if isinstance(one, list) and len(one) == 1 else one for key, one in properties.items()}
        known = {key: value for key, value in single.items() if value not in (None, "", [])}
        self.entities.setdefault(identifier, {"@id": identifier, "@type": kind, **known})
        return {"@id": identifier}


def metadata(
    run: str,
    members: Sequence[Member],
    executions: Sequence[Execution],
    catalogue: Catalogue,
    citation: Mapping[str, Any],
    passed_over: Sequence[str],
) -> dict[str, Json]:
    """Return the description of an archive.

    Parameters
    ----------
    run : str
        The name of the run.
    members : sequence of Member
        All files of the archive but this description.
    executions : sequence of Execution
        One for each experiment, or each point of a sweep.
    catalogue : Catalogue
        Where the data sets and networks are declared.
    citation : mapping
        The content of ``CITATION.cff``.
    passed_over : sequence of str
        Keys of configurations that are no settings of an experiment.
    """
    graph = _Graph()
    author = [
        graph.add(f"#{quote(one['name'])}", "Organization", name=one["name"], url=one.get("website"))
        for one in citation["authors"]
    ]
    licence = graph.add(f"{_LICENCES}{citation['license']}", "CreativeWork", name=citation["license"])
    files = {one.name: _file(graph, one) for one in members}
    actions = [_action(graph, one, files, catalogue, citation, passed_over) for one in executions]
    families = {one.about["experiment"].partition("/")[0] for one in executions}
    profile = graph.add(_PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    graph.add(
        "./",
        "Dataset",
        name=f"The run {run} of trimbench",
        description=f"Tables, figures, records of jobs and provenance of {len(executions)} experiments. "
        f"{citation['abstract'].strip()}",
        datePublished=max(one.ended for one in executions),
        license=licence,
        author=author,
        conformsTo=profile,
        citation=_papers(graph, families, catalogue, citation),
        hasPart=[*files.values(), *_web_entities(graph)],
        mentions=[*actions, *_collections(graph)],
    )
    graph.add(METADATA, "CreativeWork", conformsTo={"@id": _SPECIFICATION}, about={"@id": "./"})
    return {"@context": list(_CONTEXTS), "@graph": list(graph.entities.values())}


def _file(graph: _Graph, member: Member) -> dict[str, str]:
    path = PurePosixPath(member.name)
    return graph.add(
        quote(member.name, safe="/=,+"),
        "File",
        name=member.name,
        contentSize=str(member.size),
        sha256=member.sha256,
        encodingFormat=_FORMATS.get(path.suffix, "text/plain"),
    )


def _action(
    graph: _Graph,
    execution: Execution,
    files: Mapping[str, dict[str, str]],
    catalogue: Catalogue,
    citation: Mapping[str, Any],
    passed_over: Sequence[str],
) -> dict[str, str]:
    """Add the run of one experiment: what it took, what it gave and with what."""
    about, stem = execution.about, execution.stem
    folder = PurePosixPath(stem).parent
    statuses = list(about["jobs"].values())
    wanting = sum(status != "ok" for status in statuses) + len(about["missing"])
    name = about["experiment"]
    known = name in catalogue.names("experiment")
    return graph.add(
        f"#{quote(stem, safe='/=,+')}",
        "CreateAction",
        name=f"Run of {stem}",
        description=catalogue.about("experiment", name) if known else f"The experiment {name}",
        instrument=_software(graph, about["written_with"], citation),
        object=[*_inputs(graph, about["data"], catalogue), *_settings(graph, execution, passed_over)],
        result=[files[path] for file in about["files"] if (path := (folder / file).as_posix()) in files],
        startTime=execution.started,
        endTime=execution.ended,
        actionStatus=f"http://schema.org/{'Failed' if wanting else 'Completed'}ActionStatus",
        error=f"{wanting} of its jobs or data sets are missing or failed" if wanting else None,
    )


def _software(graph: _Graph, environment: Mapping[str, Any], citation: Mapping[str, Any]) -> dict[str, str]:
    """Add the version of the project that wrote an experiment, and the packages that it stood on."""
    version, commit = environment.get("trimbench"), environment.get("commit")
    state = f"Commit {commit}{', with changes that were not committed' if environment.get('dirty') else ''}"
    packages = {"Python": environment.get("python"), **environment.get("packages", {})}
    return graph.add(
        f"#trimbench-{version}{f'-{commit[:12]}' if commit else ''}{'-changed' if environment.get('dirty') else ''}",
        "SoftwareApplication",
        name="trimbench",
        description=f"{citation['title']}. {state if commit else 'Installed without git'}",
        softwareVersion=version,
        license={"@id": f"{_LICENCES}{citation['license']}"},
        operatingSystem=environment.get("platform"),
        softwareRequirements=[
            graph.add(f"#{name}-{found}", "SoftwareApplication", name=name, softwareVersion=found)
            for name, found in packages.items()
        ],
    )


def _settings(graph: _Graph, execution: Execution, passed_over: Sequence[str]) -> list[dict[str, str]]:
    """Add the settings of an experiment; a list or a mapping is JSON."""
    content = dict(execution.about["configuration"])
    if isinstance(content.get("profile"), Mapping):  # all of its values are in the provenance
        content["profile"] = content["profile"].get("name", "")
    chosen = {key: value for key, value in content.items() if key not in passed_over}
    return [
        graph.add(
            f"#{quote(execution.stem, safe='/=,+')}/{quote(key)}",
            "PropertyValue",
            name=key,
            value=without_homes(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)),
        )
        for key, value in chosen.items()
    ]


def _inputs(graph: _Graph, data: Mapping[str, str], catalogue: Catalogue) -> list[dict[str, str]]:
    """Add the data sets and networks of an experiment, by the names and hashes in its provenance."""
    return [_input(graph, name, sha256, catalogue) for name, sha256 in data.items()]


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
    """Give the files in a declaration that have an address."""
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


def _web_entities(graph: _Graph) -> list[dict[str, str]]:
    found = graph.entities.values()
    return [{"@id": one["@id"]} for one in found if one["@type"] in ("File", "Dataset") and "://" in one["@id"]]


def _collections(graph: _Graph) -> list[dict[str, str]]:
    return [{"@id": one["@id"]} for one in graph.entities.values() if one["@type"] == "Collection"]


def _papers(
    graph: _Graph, families: set[str], catalogue: Catalogue, citation: Mapping[str, Any]
) -> list[dict[str, str]]:
    """Add the papers whose experiments are in the archive."""
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
        for paper in citation["references"]
        if paper["doi"] in cited
    ]


def _person(graph: _Graph, person: Mapping[str, str]) -> dict[str, str]:
    given, family = person["given-names"], person["family-names"]
    name = f"{given} {family}"
    return graph.add(f"#{quote(name)}", "Person", name=name, givenName=given, familyName=family)
