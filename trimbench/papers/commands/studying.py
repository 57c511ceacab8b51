"""The task ``study``: a study of one's own table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from trimbench.papers.commands.invocation import Invocation
from trimbench.papers.own_table.conclusion import conclusions
from trimbench.papers.own_table.costs import read_costs
from trimbench.papers.own_table.running import STEM, prepared, run_study, write_study
from trimbench.papers.own_table.settings import StudySettings
from trimbench.papers.reporting.file_names import safe_name
from trimbench.papers.reporting.runs import check_profile
from trimbench.papers.validation import ConfigurationError, validated


def study(invocation: Invocation) -> int:
    """Study a table and write its page; return 1 if a job failed."""
    values = invocation.study
    data, target = _text(values, "data"), _text(values, "target")
    names = {field.name for field in fields(StudySettings)}
    own = validated(StudySettings, {key: value for key, value in values.items() if key in names}, "study")
    path = Path(data).expanduser()
    folder = invocation.root / (invocation.settings.run or safe_name(f"{STEM}-{path.name.partition('.')[0]}"))
    check_profile(folder, STEM)
    executor = invocation.make_executor()
    costs = values.get("costs")
    plan = prepared(path, target, None if costs is None else read_costs(Path(str(costs)).expanduser()), own)
    studied = run_study(
        plan,
        str(path.absolute()),
        target,
        catalogue=invocation.catalogue,
        cache=invocation.cache(),
        store=invocation.store(),
        executor=executor,
        cache_mode=invocation.settings.cache_mode,
        say=_say,
    )
    written = write_study(studied, folder, invocation.figure.settings)
    _say("\n".join([*conclusions(studied.steps), "", *(f"  {one}" for one in written)]))
    n_jobs, n_open = len(studied.findings.rows), len(studied.steps.failures)
    _say(f"{n_jobs} jobs, {n_open} without a result; {studied.seconds:.0f} s in all.")
    return 1 if n_open else 0


def _text(values: Mapping[str, object], key: str) -> str:
    """Return a value that every study needs."""
    example = {"data": "data=patients.csv", "target": "target=diagnosis"}[key]
    value = values.get(key)
    if value is None or value == "":
        raise ConfigurationError(f"task=study needs {key}; write for example {example}")
    return str(value)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
