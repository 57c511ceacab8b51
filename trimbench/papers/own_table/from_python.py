"""What `trimbench.study` does once its packages are there."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimbench.estimators.trimmed import TrimmedClassifier
from trimbench.papers.configuration import Catalogue, configuration_folder
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.executors import Executor, SerialExecutor
from trimbench.papers.execution.process_pool import ProcessExecutor
from trimbench.papers.execution.store import JobStore
from trimbench.papers.own_table.conclusion import conclusions, notes
from trimbench.papers.own_table.found import Study
from trimbench.papers.own_table.running import prepared, run_study, write_study
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.own_table.steps import Steps
from trimbench.papers.reporting.figures.settings import FigureSettings
from trimbench.papers.validation import validated

_MAIN = "frontier"
_JOBS = "studies"


def study_table(
    table: Any,
    target: str,
    costs: Mapping[str, float] | None,
    budget: float | None,
    folder: str | Path | None,
    n_jobs: int,
    settings: Mapping[str, Any],
) -> Study:
    """Study a table and return what was found."""
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    own = validated(StudySettings, {**values, "budget": budget}, "study")
    workers = validated(ProcessExecutor, {"workers": n_jobs}, "study: n_jobs")
    executor: Executor = SerialExecutor() if n_jobs == 1 else workers
    plan = prepared(table, target, costs, own)
    cache = Cache.from_environment(offline=True)
    place = None if folder is None else Path(folder).expanduser()
    studied = run_study(
        plan,
        str(Path(table).absolute()) if isinstance(table, str | Path) else "table.csv",
        target,
        catalogue=Catalogue((configuration_folder(),)),
        cache=cache,
        store=JobStore(cache.writable / _JOBS if place is None else place.parent / "jobs"),
        executor=executor,
        say=sys.stdout.write,
    )
    files = [] if place is None else write_study(studied, place, FigureSettings())
    outcome = studied.findings.outcome
    return Study(
        tuple(conclusions(studied.steps)),
        tuple(notes(studied.steps)),
        {one.name or _MAIN: one.frame for one in outcome.tables},
        {one.name: one.points for one in outcome.figures},
        tuple(studied.steps.chosen["features"]) if studied.steps.chosen else (),
        _model(studied.steps),
        studied.lines,
        tuple(files),
        studied,
    )


def _model(found: Steps) -> Any:
    """Return the model to keep, as its file gives it."""
    if found.chosen is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(json.dumps(found.chosen["model"]), encoding="utf-8")
        return TrimmedClassifier.load(path)
