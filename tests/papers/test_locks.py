"""The lock files hold what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = {
    "run": [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]],
    "test": [
        *PROJECT["dependency-groups"]["docs"],
        *(entry for entry in PROJECT["dependency-groups"]["dev"] if isinstance(entry, str)),
    ],
}


def locked(name: str) -> dict[str, list[str]]:
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for package, version in re.findall(r"^([\w.-]+)==([\w.+!-]+)", text, flags=re.MULTILINE):
        found.setdefault(canonicalize_name(package), []).append(version)
    return found


@pytest.mark.parametrize("requirement", GROUPS["run"] + GROUPS["test"])
def test_every_requirement_is_locked_to_a_version_it_allows(requirement: str) -> None:
    wanted = Requirement(requirement)
    versions = locked("test").get(canonicalize_name(wanted.name), [])
    assert versions, f"{wanted.name} is in no lock; run scripts/lock"
    assert all(wanted.specifier.contains(version) for version in versions)


def test_tests_run_with_the_versions_that_users_get() -> None:
    run, test = locked("run"), locked("test")
    assert {name: versions for name, versions in test.items() if name in run} == run


@pytest.mark.parametrize("name", ["run", "test"])
def test_every_locked_package_has_a_hash(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert all("--hash=sha256:" in entry for entry in entries)
