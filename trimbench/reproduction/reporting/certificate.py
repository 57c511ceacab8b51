"""The certificate of an audit: a file that says what was audited and what was found, and its line on a page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trimbench.reproduction.execution.job import TEXT, Kind, faults, fields
from trimbench.reproduction.files import beside_runs, hash_of, read_text, safe_name, unlinked, write_text
from trimbench.reproduction.settings import ConfigurationError, Json

CERTIFICATE = "certificate.json"
AUDITS = "audits"
"""The folder of audits beside the runs."""
_LONGEST = 1_000_000  # bytes
_SAID = {"sentence": TEXT, "audited": fields(**{"*": TEXT}), "*": Kind("anything", lambda _: True)}


def audit_folder(root: Path, name: str) -> Path:
    """Return the folder of the audit of a run or an archive; ConfigurationError if a symbolic link is on its path."""
    return beside_runs(root, AUDITS, safe_name(name))


def write_certificate(said: Mapping[str, Json], folder: Path) -> Path:
    """Write the certificate of an audit, which begins with a hash of the rest of it."""
    text = json.dumps(said, indent=1, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return write_text(f'{{\n "sha256": "{digest}",{text[1:]}\n', folder / CERTIFICATE)


def read_certificate(folder: Path) -> dict[str, Any]:
    """Return the certificate in a folder; empty if there is none, or if it was changed."""
    try:
        text = read_text(unlinked(folder / CERTIFICATE, folder), _LONGEST)
        found: dict[str, Any] = json.loads(text)
        digest = found.pop("sha256")
        rest = "{" + text.partition(f'"sha256": "{digest}",')[2].removesuffix("\n")
        is_whole = digest == hashlib.sha256(rest.encode()).hexdigest() and not faults(found, _SAID)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return found if is_whole else {}


def hashes_of(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of files of a run, by name; ConfigurationError for a symbolic link."""
    try:
        return {name: hash_of(unlinked(folder / name, folder)) for name in sorted(names)}
    except ValueError as error:
        raise ConfigurationError(f"run {folder.name!r} must not lead elsewhere: {error}") from error


def audited_line(folder: Path, place: Path) -> str:
    """Return what an audit found about the run in a folder, whose place is `place`; empty if it was of other rows."""
    try:
        found = read_certificate(audit_folder(place.parent, place.name))
        is_of_this = found.get("status") == "audited" and hashes_of(folder, [*found["audited"]]) == found["audited"]
    except (OSError, ConfigurationError):
        return ""
    return f"audit: {found['sentence']}" if is_of_this else ""
