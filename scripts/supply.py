"""Check what the lock files bring: licences that allow this project's use, and no version with a known weakness.

    .venv-test/bin/python scripts/supply.py

It needs no network: licences are read from what is installed, and weaknesses are those listed below. The workflow also
asks a service for newer ones. Exits with 1 if there is something to say.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("run.lock", "ray.lock", "test.lock", "bench.lock")
_ENTRY = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE)
# Parts of the names of licences that allow all that this project does.
ALLOWED = re.compile(r"\b(0BSD|Apache|BSD|ISC|MIT|Mozilla|MPL|PSF|Python Software Foundation)\b", re.IGNORECASE)
# Copyleft, or with a text in place of a name, and why they may be used: nothing of them is copied or handed on.
LOOKED_AT = {
    "cvxopt": "GPL 3, called by cvxpy in comparisons of solvers; the library runs without",
    "pebble": "LGPL 3, imported unchanged",
    "docutils": "public domain and BSD; the GPL is that of an editor's mode; used by the documentation only",
}
# The first sound version, and the weakness of those before.
SOUND = {
    "certifi": ("2024.7.4", "CVE-2024-39689"),
    "filelock": ("3.20.3", "CVE-2025-68146, CVE-2026-22701"),
    "fonttools": ("4.60.2", "CVE-2025-66034"),
    "idna": ("3.7", "CVE-2024-3651"),
    "jinja2": ("3.1.6", "CVE-2025-27516"),
    "pillow": ("11.3.0", "CVE-2025-48379"),
    "pyarrow": ("14.0.1", "CVE-2023-47248"),
    "ray": ("2.52.0", "CVE-2025-62593"),
    "requests": ("2.32.4", "CVE-2024-47081"),
    "setuptools": ("78.1.1", "CVE-2025-47273"),
    "tornado": ("6.5", "CVE-2025-47287"),
    "tqdm": ("4.66.3", "CVE-2024-34062"),
    "urllib3": ("2.6.0", "CVE-2025-66418, CVE-2025-66471"),
    "zipp": ("3.19.1", "CVE-2024-5569"),
}


def locked(text: str) -> list[tuple[str, str]]:
    """Return the packages of a lock file and their versions; one that depends on the Python is there several times."""
    return _ENTRY.findall(text)


def weaknesses(packages: list[tuple[str, str]]) -> Iterator[str]:
    """Say which versions have a known weakness."""
    for name, version in packages:
        sound, known = SOUND.get(name, ("0", ""))
        if Version(version) < Version(sound):
            yield f"{name} {version} has {known}: take {sound} or later"


def licence(about: metadata.PackageMetadata) -> str:
    """Return what a package says of its licence, in the first of the three places where it may."""
    classifiers = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License ::")]
    said = {name: about[name] for name in ("License-Expression", "License") if name in about}
    return said.get("License-Expression") or ", ".join(classifiers) or said.get("License", "nothing")[:200]


def refused(names: set[str]) -> Iterator[str]:
    """Say which installed packages have a licence that nobody has looked at."""
    for name in sorted(names - LOOKED_AT.keys()):
        try:
            found = licence(metadata.metadata(name))
        except metadata.PackageNotFoundError:  # for another system or another Python
            continue
        if not ALLOWED.search(found) or "GPL" in found.upper():
            yield f"{name} has the licence {found!r}: look at it, then name it in scripts/supply.py"


def main() -> int:
    packages = {lock: locked((ROOT / "requirements" / lock).read_text(encoding="utf-8")) for lock in LOCKS}
    said = [f"{lock}: {text}" for lock, found in packages.items() for text in weaknesses(found)]
    said += refused({name for found in packages.values() for name, _ in found})
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
