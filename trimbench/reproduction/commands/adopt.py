"""The task ``adopt``: take records of an archive or a run that a run here would compute, after an audit of them."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.audit import audited, show
from trimbench.reproduction.commands.surroundings import make, surroundings
from trimbench.reproduction.execution.job import Job
from trimbench.reproduction.execution.provenance import commit_of
from trimbench.reproduction.execution.store import JobStore, Record
from trimbench.reproduction.files import hash_of
from trimbench.reproduction.messages import brief
from trimbench.reproduction.reporting.adoption import adopt, candidates, rebuilt_records, remove_adopted
from trimbench.reproduction.reporting.archive import records_in
from trimbench.reproduction.reporting.audit import AuditedJob
from trimbench.reproduction.reporting.certificate import audit_folder, hashes_of, read_certificate
from trimbench.reproduction.reporting.page import count
from trimbench.reproduction.reporting.runs import folder_of, read_abouts, rows_file, say
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.cells import Cell
from trimbench.reproduction.world import world

_HASH = re.compile("[0-9a-f]{12,64}")


def adopt_records(invocation: Invocation) -> int:
    """Adopt the records of an archive or of a run that are planned here, or remove them; return 1 if none were."""
    where = surroundings(invocation, "default")
    if invocation.settings.remove:
        return _remove(invocation)
    source = _source(invocation)
    # The audit of the run itself is kept apart.
    place = audit_folder(invocation.root, source.name if invocation.settings.archive else f"{source.name}_adopted")
    sha256 = _hash_of(source)
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
    usable, others = candidates(_records(source, here), here, where.store)
    for why, n in others.most_common():
        say(f"{count(n, 'record')} not adopted: {why}.")
    if not usable:
        say("No record was adopted.")
        return 1
    jobs = [_audited(*cells[key], record) for key, record in usable.items()]
    commits = list(dict.fromkeys(commit_of(record.provenance) for record in usable.values()))
    audit = audited(source.name, jobs, commits, {source.name: sha256}, place, invocation, where)
    show(audit, place)
    if not audit.is_clean:
        say("No record was adopted: the audit must compute some of them and find none that differs.")
        return 1
    if _hash_of(source) != sha256:
        raise ConfigurationError(f"{source.name} has changed meanwhile, so no record was adopted; start again")
    with _turn(where.store):
        adopt(usable.values(), where.store, {"file": source.name, "sha256": sha256})
    say(
        f"{count(len(usable), 'record')} adopted. task=report writes what rests on them, and "
        f"task=adopt archive={sha256[:12]} remove=true removes them."
    )
    return 0


@contextmanager
def _turn(store: JobStore) -> Iterator[None]:
    store.ensure_writable()
    with store.turn(lambda: say("Waiting for another program that runs jobs for this folder of results.")):
        yield


# Where records are from: the file of an archive, or the folder of a run.


def _source(invocation: Invocation) -> Path:
    archive = invocation.settings.archive
    if not isinstance(archive, str):
        return folder_of(invocation.root, invocation.run)
    path = Path(archive).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"archive must be a file, got {brief(archive)}; task=report archive=true writes one")
    if not zipfile.is_zipfile(path):  # before all of it is read for its hash
        raise ConfigurationError(f"archive must be one of a run, got {path}: it is no ZIP file")
    return path


def _hash_of(source: Path) -> str:
    """Return the SHA-256 of an archive, or of the hashes of all files from which the records of a run are rebuilt."""
    if source.is_file():
        return hash_of(source.resolve())
    listed = {stem: rows_file(about) for stem, about in read_abouts(source).items()}
    files = [name for stem, rows in listed.items() if rows for name in (f"{stem}.json", rows)]
    if not files:
        raise ConfigurationError(f"run must have rows of jobs to adopt, got none in {source.name!r}; name another run")
    return hashlib.sha256(json.dumps(hashes_of(source, files)).encode()).hexdigest()


def _records(source: Path, planned: Mapping[str, Job]) -> Iterator[bytes | str]:
    """Yield each record as a line, or why there is none."""
    if source.is_file():
        yield from records_in(source)
        return
    for stem, about in read_abouts(source).items():
        for one in rebuilt_records(stem, about, source, planned):
            yield one if isinstance(one, str) else one.to_json().encode()


def _audited(name: str, cell: Cell, record: Record) -> AuditedJob:
    """Return the record of an archive as an audit takes it: its result as a row of a run would have it."""
    words = ", ".join(f"{label} = {value}" for label, value in cell.labels.items())
    cells = {
        key: json.dumps(value) if isinstance(value, list | dict) else "" if value is None else str(value)
        for key, value in (record.result or {}).items()
    }
    return AuditedJob(name, words, cells, record.seconds, cell.job, inputs=cell.inputs)


def _remove(invocation: Invocation) -> int:
    given = str(invocation.settings.archive or "")
    path = Path(given).expanduser()
    sha256 = given if given and not path.is_file() else _hash_of(path if given else _source(invocation))
    if not _HASH.fullmatch(sha256):
        raise ConfigurationError(
            f"archive must be a file or the first 12 digits of its SHA-256, which the page names, got {brief(given)}"
        )
    store = surroundings(invocation, "only").store
    with _turn(store):
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
