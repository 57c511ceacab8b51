"""Lock files and the files for hosts of code, editors and containers say the same as the project."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import trimbench

from . import pages

ROOT = pages.ROOT
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
EXTRAS = PROJECT["optional-dependencies"]


def declared(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version_and_of_the_three_papers() -> None:
    citation = declared("CITATION.cff")
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").casefold().split())
    papers = citation["references"]
    assert len(papers) == 3
    for paper in papers:
        title = re.split(r"(?<=\?)| with ", paper["title"])[0]
        assert title.casefold() in readme, title
        names = {author["family-names"].casefold() for author in paper["authors"]}
        assert all(name in readme for name in names)


def test_the_archive_has_the_citations_words_and_papers() -> None:
    citation, archive = declared("CITATION.cff"), json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    for key in ("title", "version", "license", "keywords"):
        assert archive[key] == citation[key]
    assert [entry["identifier"] for entry in archive["related_identifiers"]] == [
        paper["doi"] for paper in citation["references"]
    ]


def test_package_and_changelog_have_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert trimbench.__version__ == released[0] == PROJECT["version"]
    assert headings in (released, ["Unreleased", *released])


def test_hooks_before_a_commit_are_checks_of_the_check_command() -> None:
    script = (ROOT / "scripts/test").read_text(encoding="utf-8")
    (repository,) = declared(".pre-commit-config.yaml")["repos"]
    commands = [hook["entry"].replace(" --force-exclude", "") for hook in repository["hooks"]]
    for command in commands:
        words = command.replace(".venv-test/", "$").split()
        files = [word for word in words if word.startswith("tests/")]  # some of the tests that the check command runs
        assert " ".join(word for word in words if word not in files) in script
        assert all((ROOT / file).is_file() for file in files)


def test_the_public_host_checks_every_python_as_continuous_integration_does() -> None:
    job = declared(".github/workflows/check.yml")["jobs"]["check"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    tested = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: Python :: 3." in one]
    assert job["strategy"]["matrix"]["python"] == tested
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_the_container_runs_the_commands_of_the_project() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert 'ENTRYPOINT ["scripts/reproduce"]' in text
    assert "make_environment .venv requirements/run.lock" in text
    assert "environment=.venv lock=requirements/run.lock" in (ROOT / "scripts/reproduce").read_text(encoding="utf-8")


def test_the_container_leaves_environments_and_own_runs_out_and_keeps_what_the_commands_need() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    scripts = "".join((ROOT / "scripts" / name).read_text(encoding="utf-8") for name in ("reproduce", "test"))
    environments = set(re.findall(r"(?:make_environment |environment=)(\.\S+)", scripts))
    assert environments == {".venv", ".venv-ray", ".venv-test", ".venv-lowest"}
    assert all(any(fnmatch(name, pattern) for pattern in ignored) for name in (*environments, "build", "mine"))
    assert ignored.index("results/*") < ignored.index("!results/published")
    needed = [".git", "conf", "scripts", "requirements", "trimbench", "tests"]
    needed += ["pyproject.toml", "CITATION.cff", "README.md"]
    assert not [name for name in needed if any(fnmatch(name, pattern) for pattern in ignored)]


# The lock files hold what pyproject.toml asks for.


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
    return (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")


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
    for path in (ROOT / folder).rglob("*.py"):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            yield from ((path, name.partition(".")[0]) for name in names)


def test_every_package_that_is_imported_is_declared_where_it_is_needed() -> None:
    installed = packages_distributions() | {"pyagrum": ["pyagrum"]}  # which the tests do without
    own = {*sys.stdlib_module_names, "trimbench", "tests", "scripts"}
    extras = (EXTRAS[name] for name in ("arrow", "gpkit", "plot", "sdd", "solvers"))
    library = [*asked_for(PROJECT["dependencies"], *extras)]
    lists = {"library": library, "papers": STATED, "tests": [*STATED, *asked_for(*GROUPS.values())]}
    declared = {floor: {canonicalize_name(Requirement(one).name) for one in found} for floor, found in lists.items()}
    found = [one for folder in ("trimbench", "tests", "scripts") for one in imported(folder) if one[1] not in own]
    for path, package in found:
        place = path.relative_to(ROOT)
        floor = (
            "tests"
            if place.parts[0] != "trimbench"
            else "papers"
            if place.parts[1] in ("papers", "reproduction")
            else "library"
        )
        names = {canonicalize_name(name) for name in installed[package]}
        assert names & declared[floor], f"{place} imports {package}: declare it in pyproject.toml"
    assert len(found) > 1000
