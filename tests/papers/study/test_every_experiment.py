"""Runs every experiment that is declared, with the settings that its file gives under ``smoke_test``.

One that takes long (pytest names it at the end) needs smaller settings there, for example {replicates: 1}.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from trimbench.papers.networks import Figures
from trimbench.reproduction.commands.arguments import CommandLine, Composer
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.data.declarations import DatasetDeclaration, Declaration
from trimbench.reproduction.project import project
from trimbench.reproduction.reporting import overview
from trimbench.reproduction.reporting.runs import write_findings
from trimbench.reproduction.vocabulary.cells import Cell
from trimbench.reproduction.vocabulary.planning import Findings, make_experiment
from trimbench.reproduction.vocabulary.reported import Literature, printed_numbers

from ..command_line import PROJECT, Command
from ..experiments import inputs_of, keys_of


def declared(name: str) -> dict[str, Any]:
    text = (project().configuration / f"experiment/{name}.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def small_settings(name: str) -> list[str]:
    """Return the words that make an experiment small; an experiment without any runs as it is declared."""
    return [
        f"{word}={json.dumps(one)}"
        for key, value in declared(name).get("smoke_test", {}).items()
        for word, one in (
            ((f"{key}.{part}", one) for part, one in value.items()) if isinstance(value, dict) else [(key, value)]
        )
    ]


@pytest.mark.usefixtures("undrawn")  # figures/test_files draws the figures of every experiment
@pytest.mark.parametrize("name", PROJECT.names("experiment"))
def test_every_experiment_runs_without_a_network(command: Command, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Findings] = []

    def write_and_keep(findings: Findings, *others: Any, **about: str) -> list[Path]:
        kept.append(findings)
        return write_findings(findings, *others, **about)

    monkeypatch.setattr(overview, "write_findings", write_and_keep)
    words = (f"experiment={name}", *small_settings(name), "offline=true", "executor=serial")
    answer = command(*words, code=0)
    altered = r"__[^:\s]+" if small_settings(name) else ""
    assert re.search(rf"^## {re.escape(name)}{altered}(: .+)?$", answer.out, re.MULTILINE)
    check_files(answer.files, name)
    (found,) = kept
    check_jobs_behind(found)
    check_names(found)
    # Nothing would run twice: the same settings have the same keys.
    again = make_experiment(name, found.settings, SHARED_KEYS)
    assert set(keys_of(again)) == set(found.rows["job"])


def check_files(files: list[Path], name: str) -> None:
    assert {".csv", ".md", ".json"} <= {path.suffix for path in files}
    for path in files:
        assert path.stat().st_size > 0
        if path.suffix in (".csv", ".gz"):
            assert len(pd.read_csv(path).columns) >= 2
    (provenance,) = [path for path in files if path.suffix == ".json"]
    content = json.loads(provenance.read_text(encoding="utf-8"))
    assert content["experiment"] == name
    assert content["configuration"]["runner"] == declared(name)["runner"]
    assert set(content["jobs"].values()) <= {"ok"}
    assert content["jobs"] or content["missing"]
    # Without any data there may be no table for an article.
    assert not content["jobs"] or ".tex" in {path.suffix for path in files}
    assert set(content) >= {"data", "computed_with", "written_with"}


def check_jobs_behind(found: Findings) -> None:
    """Assert that each number names jobs that succeeded, each once."""
    done = set(found.rows.loc[found.rows["status"] == "ok", "job"])
    for number in found.outcome.numbers:
        assert set(number.jobs) <= done, number
        assert len(set(number.jobs)) == len(number.jobs), number
        assert number.jobs or number.value is None, number


def check_names(found: Findings) -> None:
    """Assert that the numbers of changed settings are called like reported ones, though other rows may be there too."""
    reported = Literature.of(PROJECT).reported(found.name)
    numbers = found.outcome.numbers
    assert {number.quantity for number in numbers} <= {one.quantity for one in reported}
    rows = {one.row.split()[0] for one in reported}
    assert all(number.row.split()[0] in rows for number in numbers), (rows, numbers)


# What a machine lacks that reaches only a package index, and no host of data.
WITHOUT_DATA = {"conformant/figure3", "selection_bias/colon", "trimming/figure7"}


def test_every_experiment_is_planned_and_worded_without_results() -> None:
    """A package index is enough for most, and jobs that all failed leave nothing to show."""
    composer = Composer(PROJECT)
    found: dict[str, list[Cell]] = {}
    for name in PROJECT.names("experiment"):
        composed = composer.compose(CommandLine.of([f"experiment={name}"]).first)
        experiment = make_experiment(name, composed, SHARED_KEYS)
        found[name] = experiment.cells(inputs_of())
        rows = pd.DataFrame([{**cell.labels, "status": "failed", "job": cell.job.key} for cell in found[name]])
        outcome = experiment.outcome(rows)
        assert not any(len(figure.points) for figure in outcome.figures), name
        assert all(number.value is None for number in outcome.numbers), name
        assert all(len(table.frame.columns) for table in outcome.tables), name
        # What is claimed of missing values stays open.
        shown = [table.frame.iloc[:, 1:] for table in outcome.tables if table.name != "claims"]
        assert all(frame.isna().all(axis=None) for frame in shown), name
    at_index = have_results(found, ("", "package"))
    assert set(found) - at_index == WITHOUT_DATA
    assert len(at_index) >= 26
    assert {"trimming/table6", "trimming/curves", "trimming/rows"} <= have_results(found, ("",))


def have_results(cells: dict[str, list[Cell]], roads: tuple[str, ...]) -> set[str]:
    """Return the experiments with a job whose inputs come by one of the roads, or are given in their declarations."""

    def at_hand(declaration: Declaration) -> bool:
        if isinstance(declaration, DatasetDeclaration):
            return any(source.road in roads for source in (declaration.source, *declaration.others))
        return isinstance(declaration.source, Figures)

    return {
        name for name, jobs in cells.items() if any(all(at_hand(one.declaration) for one in job.inputs) for job in jobs)
    }


def test_the_printed_numbers_of_an_experiment_are_found_by_row_and_quantity() -> None:
    found = printed_numbers("selection_bias/correlation_table")
    assert len(found) == 135
    assert found["I1 = 14", "I0 = 1"].printed == "+0.90"
    assert not printed_numbers("selection_bias/none")


def test_the_papers_of_the_project_are_in_the_order_of_the_readme() -> None:
    literature = Literature.of(PROJECT)
    assert [*literature.papers] == ["trimming", "conformant", "selection_bias"]
    assert all(entry.table for entry in literature.experiments.values())
