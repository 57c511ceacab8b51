"""The task ``adopt``: take records of an archive or a run that a run here would compute, after an audit of them."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.audit import audited, show
from trimbench.reproduction.commands.surroundings import make, surroundings
from trimbench.reproduction.execution.adoption import adopt, candidates, remove_adopted
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.store import Record, commit_of
from trimbench.reproduction.files import hash_of
from trimbench.reproduction.messages import brief
from trimbench.reproduction.reporting.archive import records_in
from trimbench.reproduction.reporting.certificate import audit_folder, hashes_of, read_certificate
from trimbench.reproduction.reporting.page import count
from trimbench.reproduction.reporting.runs import experiments_in, folder_of, read_about, say
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.cells import Cell
from trimbench.reproduction.world import world

if TYPE_CHECKING:
    from trimbench.reproduction.reporting.audit import AuditedJob

_HASH = re.compile("[0-9a-f]{12,64}")


def adopt_records(invocation: Invocation) -> int:
    """Adopt the records of an archive or of a run that are planned here, or remove them; return 1 if none were."""
    where = surroundings(invocation, "default")
    if invocation.settings.remove:
        return _remove(invocation)
    source = _source(invocation)
    # The audit of the run itself is kept apart.
    place = audit_folder(invocation.root, source.name if invocation.settings.archive else f"{source.name}_adopted")
    sha256 = source.hash()
    cells: dict[str, tuple[str, Cell]] = {}
    for name in invocation.experiments:
        try:
            planned = make(invocation, name, invocation.points[0]).cells(where.inputs)
        except Exception as error:
            if invocation.chosen:
                raise
            say(f"{name} cannot be planned here: {error}")
            continue
        cells |= {cell.job.key: (name, cell) for cell in planned}
    here = {key: cell.job for key, (_, cell) in cells.items()}
    records = list(source.records(here))
    found = candidates([one for one in records if isinstance(one, bytes)], list(here.values()), where.store)
    found.others.update(one for one in records if isinstance(one, str))
    for why, n in found.others.most_common():
        say(f"{count(n, 'record')} not adopted: {why}.")
    if not found.usable:
        say("No record was adopted.")
        return 1
    jobs = [_audited(*cells[key], record) for key, record in found.usable.items()]
    computed = dict.fromkeys(commit_of(record.provenance) for record in found.usable.values())
    inputs = {key: cell.inputs for key, (_, cell) in cells.items()}
    audit = audited(source.name, jobs, inputs, list(computed), {source.name: sha256}, place, invocation, where)
    show(audit, place)
    if not audit.is_clean:
        say("No record was adopted: the audit must compute some of them and find none that differs.")
        return 1
    if source.hash() != sha256:
        raise ConfigurationError(f"{source.name} has changed meanwhile, so no record was adopted; start again")
    where.store.ensure_writable()
    with where.store.turn(lambda: say("Waiting for another program that runs jobs for this folder of results.")):
        adopt(list(found.usable.values()), where.store, {"file": source.name, "sha256": sha256})
    say(
        f"{count(len(found.usable), 'record')} adopted. task=report writes what rests on them, and "
        f"task=adopt archive={sha256[:12]} remove=true removes them."
    )
    return 0


@dataclass(frozen=True)
class _Source:
    """Where records are from: their lines, given the jobs that are planned here, or why there is none."""

    name: str
    hash: Callable[[], str]
    records: Callable[[Mapping[str, Job]], Iterable[bytes | str]]


def _source(invocation: Invocation) -> _Source:
    archive = invocation.settings.archive
    if not isinstance(archive, str):
        folder = folder_of(invocation.root, invocation.run)
        return _Source(folder.name, lambda: _hash_of(folder), lambda planned: _rebuilt(folder, planned))
    path = Path(archive).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"archive must be a file, got {brief(archive)}; task=report archive=true writes one")
    if not zipfile.is_zipfile(path):  # before all of it is read for its hash
        raise ConfigurationError(f"archive must be one of a run, got {path}: it is no ZIP file")
    return _Source(path.name, lambda: hash_of(path.resolve()), lambda _: records_in(path))


def _hash_of(folder: Path) -> str:
    """Return the SHA-256 of the hashes of all files from which the records of a run are rebuilt."""
    listed = {stem: read_about(folder, stem)["page"]["jobs"] for _, stem, _ in experiments_in(folder)}
    files = [name for stem, jobs in listed.items() if jobs for name in (f"{stem}.json", unquote(jobs["file"]))]
    if not files:
        raise ConfigurationError(f"run must have rows of jobs to adopt, got none in {folder.name!r}; name another run")
    return hashlib.sha256(json.dumps(hashes_of(folder, files)).encode()).hexdigest()


def _rebuilt(folder: Path, planned: Mapping[str, Job]) -> Iterator[bytes | str]:
    from trimbench.reproduction.reporting.rebuilt import rebuilt_records

    for stem in sorted(stem for _, stem, _ in experiments_in(folder)):
        for one in rebuilt_records(stem, read_about(folder, stem), folder, planned):
            yield one if isinstance(one, str) else one.to_json().encode()


def _audited(name: str, cell: Cell, record: Record) -> AuditedJob:
    """Return the record of an archive as an audit takes it: its result as a row of a run would have it."""
    from trimbench.reproduction.reporting.audit import AuditedJob

    words = ", ".join(f"{label} = {value}" for label, value in cell.labels.items())
    cells = {
        key: json.dumps(value) if isinstance(value, list | dict) else "" if value is None else str(value)
        for key, value in (record.result or {}).items()
    }
    return AuditedJob(name, words, cells, record.seconds, cell.job)


def _remove(invocation: Invocation) -> int:
    given = str(invocation.settings.archive or "")
    path = Path(given).expanduser()
    sha256 = (hash_of(path.resolve()) if path.is_file() else given) if given else _source(invocation).hash()
    if not _HASH.fullmatch(sha256):
        raise ConfigurationError(
            f"archive must be a file or the first 12 digits of its SHA-256, which the page names, got {brief(given)}"
        )
    store = surroundings(invocation, "only").store
    store.ensure_writable()
    with store.turn(lambda: say("Waiting for another program that runs jobs for this folder of results.")):
        n = remove_adopted(store, sha256)
    for one in _audits_of(sha256, audit_folder(invocation.root, "any").parent):
        world().remove_tree(one)
    say(f"{count(n, 'adopted record')} removed; task=run computes them, and task=report forgets them.")
    return 0 if n else 1


def _audits_of(sha256: str, folder: Path) -> Sequence[Path]:
    """Return the folders of audits that were made of an archive alone."""
    found = [(one, read_certificate(one)) for one in sorted(folder.glob("*")) if not one.is_symlink()]
    return [
        one for one, said in found if [str(h).startswith(sha256) for h in said.get("audited", {}).values()] == [True]
    ]
