"""The files for hosts of code, editors and containers say the same as the project."""

from __future__ import annotations

import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

import trimbench

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


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
    assert trimbench.__version__ == headings[0] == PROJECT["version"]


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
    low, high = re.findall(r"3\.(\d+)", PROJECT["requires-python"])
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(low), int(high))]


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
