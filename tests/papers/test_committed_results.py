"""The results in the repository: what is in them, where they come from, and where all stands that the papers report."""

from __future__ import annotations

import functools
import json
import re
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from trimbench.reproduction.commands.arguments import Composer
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.reporting.page import render_pages
from trimbench.reproduction.reporting.parts import Entry, part_of
from trimbench.reproduction.reporting.verdicts import COLUMNS, Judgement, compare, counted_once, standing, tally
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.planning import make_experiment
from trimbench.reproduction.vocabulary.reported import Literature, Statement, check_numbers

from .command_line import PROJECT

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PUBLISHED = pd.read_csv(ROOT / "results/published/summary.csv")["experiment"].tolist()
# What the README counts, in the words of the page.
SHOWN = {
    "as printed": ("exact", "identities exact", "holds"),
    "close": ("within", "identities within", "curves within"),
    "better": ("trend",),
    **{"explained": ("explained",), "contradicted": ("contradicts itself",), "chance": ("chance",)},
    "open": ("unexplained",),
}
NAMES = {"trimming": "Robust trimming", "conformant": "NaCL", "selection_bias": "Selection bias"}


def kept(*parts: str) -> Path:
    return ROOT.joinpath("results/published", *parts)


def test_it_takes_at_most_15_megabytes() -> None:
    assert sum(path.stat().st_size for path in kept().rglob("*") if path.is_file()) <= 20e6


def test_the_readme_has_the_verdicts_of_the_committed_run() -> None:
    summary = pd.read_csv(kept("summary.csv"))
    # A new experiment is published with the next run; until then the gallery says that it is not.
    assert set(PUBLISHED) <= set(Catalogue().names("experiment"))
    families = summary.groupby(summary["experiment"].str.split("/").str[0])[list(COLUMNS)].sum()
    for family, name in NAMES.items():
        line = " | ".join([name, *(str(families.loc[family, [*columns]].sum()) for columns in SHOWN.values())])
        assert f"| {line} |" in README
    assert f"| paper | {' | '.join(SHOWN)} |" in README


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_experiment_has_its_provenance(name: str) -> None:
    about = json.loads(kept(f"{name}.json").read_text(encoding="utf-8"))
    assert about["experiment"] == name
    assert about["configuration"]["profile"]["name"] == "paper"
    assert about["configuration"]["results"] == "results", "a folder of the machine is nothing to a reader"
    for file in about["files"]:
        assert kept(name).with_name(file).is_file()
    for figure in about["figures"]:
        assert {figure["points"], *figure["pictures"]} <= set(about["files"])
    assert re.fullmatch(r"[0-9a-f]{40}", about["written_with"]["commit"])
    assert set(about["jobs"].values()) <= {"ok", "failed", "timeout", "memory", "crashed", "missing"}


# What the papers report, and where each of it stands; the verdicts are those of today's rules on the committed rows.

LITERATURE = Literature.of(PROJECT)
STATEMENTS = [(paper, *said) for paper, about in LITERATURE.papers.items() for said in about.statements.items()]
ON_PAGE = yaml.safe_load((files("trimbench.papers") / "page" / "papers.yaml").read_text("utf-8"))


def value_of(cell: Any) -> Any:
    """Return the cell of a table of rows as the job gave it: lists and mappings are written as JSON."""
    try:
        return json.loads(cell) if str(cell)[:1] in "[{" else cell
    except ValueError:
        return cell


TOGETHER = pytest.mark.xdist_group("judged")  # in one worker, which judges each experiment once


@functools.cache
def judged(name: str) -> list[Judgement]:
    """Judge the committed rows of an experiment with the settings of the papers."""
    rows = pd.read_csv(kept(f"{name}_rows.csv.gz"), keep_default_na=False, na_values=[""])
    for column in rows.select_dtypes(exclude="number"):
        rows[column] = rows[column].map(value_of)
    rows = rows.assign(**{label: rows[label].fillna("") for label in ("setup",) if label in rows})
    words = OverridesParser.create().parse_overrides([f"experiment={name}", "profile=paper"])
    outcome = make_experiment(name, Composer(PROJECT).compose(words), SHARED_KEYS).outcome(rows)
    check_numbers(LITERATURE.reported(name), outcome.numbers, complete=True)
    assert all(one.jobs for one in outcome.numbers)
    return compare(LITERATURE.reported(name), outcome.numbers)


@TOGETHER
def test_at_most_27_differences_are_unexplained() -> None:
    found = tally([one for name in LITERATURE.experiments for one in counted_once(judged(name))])
    assert found["unexplained"] <= 27
    assert found["not attempted"] <= 1


@pytest.mark.parametrize("name", LITERATURE.experiments)
def test_each_reported_number_stands_in_one_statement(name: str) -> None:
    paper = LITERATURE.papers[name.split("/")[0]]
    assert {len(paper.stating(name, one)) for one in LITERATURE.reported(name)} == {1}


@pytest.mark.parametrize(
    ("paper", "says", "said"), STATEMENTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_a_paper_states_has_rows_or_tests_or_a_reason(paper: str, says: str, said: Statement) -> None:
    about = LITERATURE.papers[paper]
    for name, names in said.rows.items():
        own = [one for one in LITERATURE.reported(name) if said in about.stating(name, one)]
        assert own, says
        assert set(names) <= {text for one in own for text in (one.row, one.quantity, one.label)}, says
        # A limit that is neither a sign nor a count is the paper's, or it is ours and said to be.
        limited = [one for one in own if one.rule.subject == "claim" and one.rule.kind != "exact"]
        assert said.limit or not limited, f"{says}: limit must be 'stated', or say how we read the words"
    for test in said.tests:
        file, _, function = test.partition("::")
        assert re.search(rf"(?m)^def {function}\b", (ROOT / "tests" / file).read_text(encoding="utf-8")), test


@pytest.mark.parametrize(("tests", "reason"), [([], ""), (["a.py::test_a"], "a reason")])
def test_a_statement_has_either_a_place_or_a_reason(tests: list[str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match="a statement must have rows or tests, or else the reason"):
        Statement(tests=tests, reason=reason)


@TOGETHER
def test_the_page_lists_all_statements_and_says_which_limits_are_ours(tmp_path: Path) -> None:
    parts = [part_of(Entry(name, "complete", "", judged(name), None), tmp_path) for name in LITERATURE.experiments]
    pages = render_pages(parts, LITERATURE, run="published", profile="paper", folder=tmp_path)
    page = unescape("".join(pages.values()))
    assert "docs/findings" not in page, "where there is no such file"
    assert all(f"<li>{says}: " in page and said.reason in page for _, says, said in STATEMENTS)
    assert "; our reading: at most 1.10 times the time without it" in page
    assert (
        '<a href="trimming/quiz.html">Quiz (section 2)</a> (share that passes the quiz (%); share that passes by'
        in page
    )
    assert "(larger networks: seconds, as a multiple of those of FS-SDD)" in page
    assert re.search(r"any limit from about 1\.\d+ up gives the same verdict", page)


def named(name: str, wanted: str) -> set[str]:
    """Return the labels of what a name means on the page: a row, a quantity or both; empty for a whole experiment."""
    found = [one.reported for one in judged(name)]
    return {f"{name}: {one.label}" for one in found if wanted in ("", one.row, one.quantity, one.label)}


@TOGETHER
@pytest.mark.parametrize("family", ON_PAGE)
def test_the_lines_of_the_page_are_those_of_the_verdicts(family: str) -> None:
    names = [name for name in LITERATURE.experiments if name.startswith(f"{family}/")]
    every = {f"{name}: {one.reported.label}": one for name in names for one in judged(name)}
    unexplained = {label for label, one in every.items() if one.cause == "unexplained"}
    accounted = {label for label, one in every.items() if one.differs} - unexplained
    kinds = {"Holds": {*every} - unexplained - accounted, "Differs": accounted, "Open": unexplained}
    for word, line in ON_PAGE[family]["short"].items():
        parts = [named(name, one) for name, wanted in line["of"].items() for one in wanted or [""]]
        assert all(part & kinds[word] for part in parts), f"{word}: {line['of']}"
        whole = set[str]().union(*parts)
        assert whole <= kinds[word] if word == "Holds" else whole >= kinds[word], word


@TOGETHER
def test_a_count_in_a_line_of_the_page_is_that_of_the_verdicts() -> None:
    counted = [
        (family, *found)
        for family, about in ON_PAGE.items()
        for line in about["short"].values()
        for text in (line["says"], line["whole"])
        for found in re.findall(r"Table (\d) \((\d+) of (\d+) reproduced\)", text)
    ]
    assert len(counted) == 2
    for family, number, reproduced, total in counted:
        ours = [
            standing(one.subject, one.verdict, one.cause) for one in counted_once(judged(f"{family}/table{number}"))
        ]
        assert (sum(one in ("as printed", "close", "better") for one in ours), len(ours)) == (
            int(reproduced),
            int(total),
        )


@TOGETHER
def test_what_is_said_of_the_papers_names_what_there_is(tmp_path: Path) -> None:
    parts = [part_of(Entry(name, "complete", "", judged(name), None), tmp_path) for name in LITERATURE.experiments]
    pages = render_pages(parts, LITERATURE, run="published", profile="paper", folder=tmp_path, place=kept())
    linked = re.findall(r'href="\.\./\.\./(docs/findings/[^"]+)"', pages["index"])
    assert linked == [f"docs/findings/{family}.md" for family in ON_PAGE]
    assert [*ON_PAGE] == [*LITERATURE.papers]
    for place, text in zip(linked, ON_PAGE.values(), strict=True):
        assert text["doi"] in (ROOT / place).read_text(encoding="utf-8")
    beyond = {name for text in ON_PAGE.values() for name in text["beyond"]}
    assert {*PROJECT.names("experiment")} == beyond | {*LITERATURE.experiments}
