"""The results in the repository: what is in them, where they come from, and where all stands that the papers report."""

from __future__ import annotations

import functools
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from trimbench.papers.commands.arguments import Composer
from trimbench.papers.commands.invocation import SHARED_KEYS
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.reporting.verdicts import COLUMNS, Judgement, compare, counted_once, tally
from trimbench.papers.validation import ConfigurationError
from trimbench.papers.vocabulary.planning import make_experiment
from trimbench.papers.vocabulary.reported import Literature, Statement

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
    assert sum(path.stat().st_size for path in kept().rglob("*") if path.is_file()) <= 15e6


def test_it_is_one_run_of_the_profile_paper() -> None:
    assert json.loads(kept("run.json").read_text()) == {"profile": "paper"}


def test_the_readme_has_the_verdicts_of_the_committed_run() -> None:
    summary = pd.read_csv(kept("summary.csv"))
    # A new experiment is published with the next run; until then the gallery says that it is not.
    assert set(PUBLISHED) <= set(Catalogue((configuration_folder(),)).names("experiment"))
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
ON_PAGE = yaml.safe_load((files("trimbench.papers.reporting") / "page" / "papers.yaml").read_text("utf-8"))


def value_of(cell: Any) -> Any:
    """Return the cell of a table of rows as the job gave it: lists and mappings are written as JSON."""
    try:
        return json.loads(cell) if str(cell)[:1] in "[{" else cell
    except ValueError:
        return cell


@functools.cache
def judged(name: str) -> list[Judgement]:
    """Judge the committed rows of an experiment with the settings of the papers."""
    rows = pd.read_csv(kept(f"{name}_rows.csv.gz"), keep_default_na=False, na_values=[""])
    for column in rows.select_dtypes(exclude="number"):
        rows[column] = rows[column].map(value_of)
    rows = rows.assign(**{label: rows[label].fillna("") for label in ("setup",) if label in rows})
    words = OverridesParser.create().parse_overrides([f"experiment={name}", "profile=paper"])
    outcome = make_experiment(name, Composer(PROJECT).compose(words), SHARED_KEYS).outcome(rows)
    return compare(LITERATURE.reported(name), outcome.numbers)


def test_at_most_27_differences_are_unexplained() -> None:
    found = tally([one for name in LITERATURE.experiments for one in counted_once(judged(name))])
    assert sum(found[cause] for cause in ("explained", "contradicts itself", "chance", "unexplained")) == 99
    assert found["unexplained"] <= 27
    assert found["not attempted"] <= 1, "Table 2's values of a feature, which the committed rows do not have"


def test_each_reported_number_stands_in_one_statement() -> None:
    for name in LITERATURE.experiments:
        paper = LITERATURE.papers[name.split("/")[0]]
        for one in LITERATURE.reported(name):
            assert len(paper.stating(name, one)) == 1, f"{name}: {one.label}"


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


def test_a_statement_has_either_a_place_or_a_reason() -> None:
    for wrong in ({}, {"tests": ["a.py::test_a"], "reason": "none"}):
        with pytest.raises(ConfigurationError, match="a statement must have rows or tests, or else the reason"):
            Statement(**wrong)  # type: ignore[arg-type]


def named(line: Any, *, differs: bool, is_open: bool = False) -> list[str]:
    """Return the labels of what a line of the page names, with one verdict."""
    found = []
    for name, names in line["of"].items():
        ours = [
            one
            for one in judged(name)
            if not names or {one.reported.row, one.reported.quantity, one.reported.label} & {*names}
        ]
        known = {text for one in ours for text in (one.reported.row, one.reported.quantity, one.reported.label)}
        assert ours, name
        assert set(names) <= known, name
        chosen = [one for one in ours if one.differs == differs and (one.cause == "unexplained") == is_open]
        found += [f"{name}: {one.reported.label}" for one in chosen]
    return found


def differing(family: str, *, is_open: bool) -> set[str]:
    names = [name for name in LITERATURE.experiments if name.startswith(f"{family}/")]
    every = [(name, one) for name in names for one in judged(name) if one.differs]
    return {f"{name}: {one.reported.label}" for name, one in every if (one.cause == "unexplained") == is_open}


@pytest.mark.parametrize("family", ON_PAGE)
def test_the_lines_of_the_page_are_those_of_the_verdicts(family: str) -> None:
    lines = ON_PAGE[family]["short"]
    assert named(lines["Holds"], differs=False)
    assert named(lines["Holds"], differs=True) + named(lines["Holds"], differs=True, is_open=True) == []
    assert set(named(lines["Differs"], differs=True)) == differing(family, is_open=False)
    assert set(named(lines["Open"], differs=True, is_open=True)) == differing(family, is_open=True)
    for name, names in [*lines["Differs"]["of"].items(), *lines["Open"]["of"].items()]:
        for one in names or [""]:
            line = {"of": {name: [one] if one else []}}
            assert named(line, differs=True) + named(line, differs=True, is_open=True), f"{name}: {one}"
