"""The task ``study`` of the command: a study of one's own table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from trimbench.papers.own_table.settings import STUDY, StudySettings, read_costs
from trimbench.papers.own_table.study import prepared, run_study, write_study
from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.commands.surroundings import surroundings
from trimbench.reproduction.files import safe_name
from trimbench.reproduction.messages import brief
from trimbench.reproduction.reporting.runs import check_run, say
from trimbench.reproduction.settings import ConfigurationError, validated


def study(invocation: Invocation) -> int:
    """Study a table and write its page; return 1 if a job failed."""
    values = invocation.values
    for key, example in (("data", "patients.csv"), ("target", "diagnosis")):
        if values.get(key) in (None, ""):
            raise ConfigurationError(f"task=study needs {key}; write for example {key}={example}")
        if isinstance(values[key], bool):
            raise ConfigurationError(f"{key} must be a text, got {values[key]}; quote it twice: '{key}=\"...\"'")
    if "://" in str(values["data"]):
        raise ConfigurationError(f"data must be a file, got {brief(values['data'])}; download it first")
    names = {field.name for field in dataclasses.fields(StudySettings)}
    own = validated(StudySettings, {key: value for key, value in values.items() if key in names}, "study")
    path, target = Path(str(values["data"])).expanduser(), str(values["target"])
    folder = invocation.root / (invocation.settings.run or safe_name(f"{STUDY}-{path.name.partition('.')[0]}"))
    check_run(folder, STUDY)
    where, costs = surroundings(invocation, invocation.settings.cache_mode), values.get("costs")
    plan = prepared(path, target, None if costs is None else read_costs(Path(str(costs)).expanduser()), own)
    studied = run_study(plan, str(path.resolve()), target, where, say)
    written = write_study(studied, folder, invocation.figure)
    n_jobs, n_open = len(studied.findings.rows), len(studied.steps.failures)
    done = f"{n_jobs} jobs in {studied.seconds:.0f} s, {n_open} without a result"
    say("\n\n".join([*studied.conclusions, f"{done}\n  {written[-1]}"]))
    return 1 if n_open else 0
