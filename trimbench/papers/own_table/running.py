"""Run a study: read the table, show how it was read, run the jobs, and write what they found."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.table_reading import read_table
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.executors import Executor
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.own_table.model_lines import model_lines
from trimbench.papers.own_table.own_table import OwnTable
from trimbench.papers.own_table.page import render_study
from trimbench.papers.own_table.settings import StudySettings, checked_costs
from trimbench.papers.own_table.steps import Steps
from trimbench.papers.own_table.stored_table import keep_table
from trimbench.papers.own_table.tables import card_of
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.reporting.files import write_findings
from trimbench.papers.reporting.runs import make_run
from trimbench.papers.reporting.tables import markdown
from trimbench.papers.reporting.whole_files import write_text
from trimbench.papers.study.findings import Findings
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.planning import Plan, Surroundings
from trimbench.papers.study.running import run_plans
from trimbench.papers.validation import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

# The files of a study begin so; its folder has those of no other experiment.
STEM = "study"
Say = Callable[[str], object]


@dataclass(frozen=True, eq=False)
class Studied:
    """A study that has ended."""

    plan: OwnTable
    findings: Findings
    steps: Steps
    lines: str
    seconds: float


def prepared(
    source: str | Path | pd.DataFrame, target: str, costs: Mapping[str, float] | None, settings: StudySettings
) -> OwnTable:
    """Read a table and its costs; nothing runs yet. Raises ConfigurationError, which says in a line what is wrong."""
    table = read_table(source, target, settings.reading)
    counts = [int((table.labels == place).sum()) for place in range(len(table.classes))]
    if min(counts) < 2:
        rare = table.classes[counts.index(min(counts))]
        raise ConfigurationError(
            f"target must have each class in at least two rows, got {rare!r} in {min(counts)}; leave such rows out"
        )
    names = [str(name) for name in table.features.columns]
    left_out = {one.name for one in table.card if one.read_as in ("left out", "id")}
    return OwnTable(table, checked_costs(costs, names, left_out), settings)


def run_study(
    plan: OwnTable,
    source: str,
    target: str,
    *,
    catalogue: Catalogue,
    cache: Cache,
    store: JobStore,
    executor: Executor,
    cache_mode: str = "default",
    say: Say,
) -> Studied:
    """Run the jobs of a study that are not stored; `source` is what the lines that rebuild the model read."""
    start = time.perf_counter()
    card = card_of(plan.table)
    repairs = "\n".join(f"- {line}" for line in plan.table.repairs)
    say(f"# {plan.table.name}: {len(plan.table.labels):,} rows\n\n{card.title}\n\n{markdown(card)}\n\n{repairs}\n")
    keep_table(plan.table, cache)
    where = Surroundings(Inputs(catalogue, cache), store, executor, cache_mode)
    configuration: dict[str, Json] = {"target": target, "costs": dict(plan.costs), **_plain(plan.settings)}
    made = Plan.of(STEM, configuration, plan, [], where)
    found: list[Findings] = []

    def conclude(one: Plan, records: Mapping[str, Record]) -> None:
        found.append(one.findings(records))

    run_plans([made], where, conclude, label=plan.table.name)
    (findings,) = found
    steps = Steps.of(findings.rows, plan.table, plan.costs, plan.settings, plan.positive)
    lines = model_lines(steps, source, target) if steps.chosen else ""
    return Studied(plan, findings, steps, lines, time.perf_counter() - start)


def write_study(studied: Studied, folder: Path, figure: FigureSettings) -> list[Path]:
    """Write all files of a study into the folder of its run, and return them; the page is the last."""
    make_run(folder, STEM)
    written = write_findings(studied.findings, [], folder, figure)
    if studied.steps.chosen:
        model = json.dumps(studied.steps.chosen["model"], indent=1) + "\n"
        written += [
            write_text(model, folder / "model.json"),
            write_text(studied.lines, folder / "model.py"),
        ]
    page = render_study(studied.steps, studied.findings, studied.lines, studied.seconds, folder)
    return [*written, write_text(page, folder / "index.html")]


def _plain(settings: StudySettings) -> dict[str, Any]:
    return dataclasses.asdict(settings)
