"""Why jobs that a run has computed before run again: which part of their keys has changed."""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trimbench.reproduction.configuration import NOT_SETTINGS
from trimbench.reproduction.execution.code_hash import code_parts
from trimbench.reproduction.execution.job import TEXT, Job, faults
from trimbench.reproduction.files import as_it_was, read_text, remove_temporary_folders, write_text
from trimbench.reproduction.messages import some
from trimbench.reproduction.reporting.page import count
from trimbench.reproduction.reporting.parts import as_label
from trimbench.reproduction.reporting.runs import read_about, read_rows
from trimbench.reproduction.settings import ConfigurationError, Json
from trimbench.reproduction.vocabulary.cells import Cell

_MOST_NAMED = 4
_UNKNOWN = "an earlier version did not note of which functions"


def keep_code(jobs: Iterable[Job], store: Path) -> None:
    """Note of which definitions the code of jobs consists, in a file for each version beside their records."""
    if (store / "code").is_symlink():  # as for the records beside it: what lies behind is not ours to write to
        raise OSError(errno.ELOOP, f"{store / 'code'} is a symbolic link, which is not followed; remove it")
    for function, code in {(job.function, job.code) for job in jobs}:
        path = _file(store, code)
        if not path.is_file():
            write_text(json.dumps(code_parts(function), indent=0) + "\n", path)
    remove_temporary_folders(store / "code", "writing")  # that a failing disk has left


def reasons_to_run(
    cells: Sequence[Cell],
    stored: Iterable[str],
    settings: Mapping[str, Json],
    folder: Path,
    stem: str,
    store: Path,
    passed_over: Sequence[str],
) -> list[str]:
    """Return a line for each cause for which jobs of an experiment run again that are in the files of its last run.

    Jobs are the same where their labels are; `stored` has the keys of those that need not run. `passed_over` are keys
    of configurations that are no settings of an experiment. Empty if the run has no files of the experiment.
    """
    try:
        about = read_about(folder, stem)
        listed = about["page"]["jobs"]
        labels = listed["labels"] if listed else []
        rows = read_rows(stem, about, folder, {*labels, "job"})
    except (OSError, ConfigurationError):
        return []
    before = {tuple(as_label(as_it_was(line[label])) for label in labels): line["job"] for line in rows}
    done = {*stored}
    open_cells = [cell for cell in cells if cell.job.key not in done]
    mine = [(cell, before.get(tuple(as_label(cell.labels.get(label)) for label in labels))) for cell in open_cells]
    causes = Counter(
        _cause(cell, about, settings, store, passed_over) for cell, key in mine if key not in (None, cell.job.key)
    )
    return [f"{stem}: {count(n, 'job')} again: {why}" for why, n in causes.most_common()]


def _cause(
    cell: Cell, about: Mapping[str, Any], settings: Mapping[str, Json], store: Path, passed_over: Sequence[str]
) -> str:
    """Return which parts of the key of a job have changed since a run."""
    job, found = cell.job, []
    data, code = about.get("data", {}), about.get("code", {})
    if changed := [place for place, sha256 in job.data if data.get(place, sha256) != sha256]:
        found.append(f"data of {some(changed, _MOST_NAMED)}")
    ignored, old = {*passed_over, *NOT_SETTINGS, "profile"}, about["configuration"]
    keys = [key for key in {**settings, **old} if key not in ignored and settings.get(key) != old.get(key)]
    if keys:
        found.append(f"settings {some(sorted(keys), _MOST_NAMED)}")
    if code.get(job.function, job.code) != job.code:
        found.append(f"code of {job.function}: {_definitions(store, code[job.function], job.function)}")
    # Nothing else is in a key.
    return "; ".join(found) or f"code of {job.function}: {_UNKNOWN}"


def _definitions(store: Path, before: str, function: str) -> str:
    """Say which definitions that a function reaches have changed, come or gone since a version of its code."""
    try:
        old = json.loads(read_text(_file(store, before)))
        if not isinstance(old, dict) or faults(old, {"*": TEXT}):
            return _UNKNOWN
    except (OSError, ValueError, RecursionError):
        return _UNKNOWN
    new = code_parts(function)
    names = {key.partition("#")[0] for key in {*old, *new} if old.get(key) != new.get(key)}
    return some(sorted(names), _MOST_NAMED)


def _file(store: Path, code: str) -> Path:
    return store / "code" / f"{code}.definitions"
