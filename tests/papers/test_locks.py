"""The lock files hold what pyproject.toml asks for."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from . import pages

PYPROJECT = tomllib.loads((pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
EXTRAS = PROJECT["optional-dependencies"]


def asked_for(*lists: list[str | dict[str, str]]) -> Iterator[str]:
    """Give the requirements on other packages: groups and extras include each other, and all of them are listed."""
    for entry in (entry for entries in lists for entry in entries):
        if isinstance(entry, str) and Requirement(entry).name != PROJECT["name"]:
            yield entry


STATED = sorted(set(asked_for(PROJECT["dependencies"], *EXTRAS.values())))
TESTED = [*STATED, *asked_for(*(GROUPS[name] for name in GROUPS if name != "bench"))]
REQUIRED = {
    "run": asked_for(PROJECT["dependencies"], *(EXTRAS[name] for name in EXTRAS if name != "ray"), GROUPS["build"]),
    "ray": [*asked_for(EXTRAS["ray"])],
    "test": TESTED,
    "bench": [*STATED, *asked_for(GROUPS["build"], GROUPS["bench"])],
    "lowest": TESTED,
}


def text(name: str) -> str:
    return (pages.ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")


def locked(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for package, version in re.findall(r"^([\w.-]+)==([\w.+!-]+)", text(name), flags=re.MULTILINE):
        found.setdefault(canonicalize_name(package), []).append(version)
    return found


@pytest.mark.parametrize(("lock", "requirement"), [(lock, one) for lock, found in REQUIRED.items() for one in found])
def test_every_requirement_is_locked_to_a_version_it_allows(lock: str, requirement: str) -> None:
    wanted = Requirement(requirement)
    versions = locked(lock).get(canonicalize_name(wanted.name), [])
    assert versions, f"{wanted.name} is missing from {lock}.lock; run scripts/lock"
    assert all(wanted.specifier.contains(version) for version in versions)


def test_the_extra_papers_includes_all_others_but_ray_which_has_a_lock_of_its_own() -> None:
    (own,) = [Requirement(entry) for entry in EXTRAS["papers"] if Requirement(entry).name == PROJECT["name"]]
    assert own.extras | {"papers", "ray"} == set(EXTRAS)


@pytest.mark.parametrize("name", ["test", "bench"])
def test_tests_and_benchmarks_run_with_the_versions_that_users_get(name: str) -> None:
    run, other = locked("run"), locked(name)
    assert {package: versions for package, versions in other.items() if package in run} == run


@pytest.mark.parametrize("requirement", STATED)
def test_the_lowest_versions_are_those_that_are_stated(requirement: str) -> None:
    wanted = Requirement(requirement)
    (stated,) = [one.version for one in wanted.specifier if one.operator == ">="]
    found = [Version(version) for version in locked("lowest")[canonicalize_name(wanted.name)]]
    assert min(found) == Version(stated), "state what is tested, then run scripts/lock"


@pytest.mark.parametrize("name", ["run", "test", "bench", "lowest"])
def test_every_locked_package_has_a_hash(name: str) -> None:
    entries = re.split(r"^(?=[\w.-]+==)", text(name), flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert all("--hash=sha256:" in entry for entry in entries)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Give the statements below one: what is in expressions imports nothing, and is most of a file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


def imported(folder: str) -> Iterator[tuple[Path, str]]:
    """Give what the modules of a folder import, in functions and for types alone, too: file and package."""
    for path in (pages.ROOT / folder).rglob("*.py"):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            yield from ((path, name.partition(".")[0]) for name in names)


def test_every_package_that_is_imported_is_declared_where_it_is_needed() -> None:
    installed = packages_distributions() | {"pyagrum": ["pyagrum"]}  # which the tests do without
    own = {*sys.stdlib_module_names, "trimbench", "tests", "scripts"}
    library = [*PROJECT["dependencies"], *EXTRAS["sdd"], *EXTRAS["solvers"]]
    lists = {"library": library, "papers": STATED, "tests": [*STATED, *asked_for(*GROUPS.values())]}
    declared = {floor: {canonicalize_name(Requirement(one).name) for one in found} for floor, found in lists.items()}
    found = [one for folder in ("trimbench", "tests", "scripts") for one in imported(folder) if one[1] not in own]
    for path, package in found:
        place = path.relative_to(pages.ROOT)
        floor = "tests" if place.parts[0] != "trimbench" else "papers" if place.parts[1] == "papers" else "library"
        names = {canonicalize_name(name) for name in installed[package]}
        assert names & declared[floor], f"{place} imports {package}: declare it in pyproject.toml"
    assert len(found) > 1000
