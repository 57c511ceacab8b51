"""The tasks ``run`` and ``report``: jobs, tables and figures of one or all experiments."""

from __future__ import annotations

import os
from pathlib import Path

from trimbench.papers.commands.invocation import Invocation
from trimbench.papers.execution.executors import ExecutorError
from trimbench.papers.reporting.overview import Overview
from trimbench.papers.reporting.profiles import stored_profile
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.reported import NumbersError
from trimbench.papers.study.running import Surroundings, run_experiment
from trimbench.papers.validation import ConfigurationError


def run(invocation: Invocation, cache_mode: str | None = None) -> int:
    """Run the experiments and write their tables and figures; return 1 if a job or an experiment failed."""
    mode = cache_mode or invocation.settings.cache_mode
    executor = invocation.make_executor()
    # All are made before the first runs, so that a wrong key costs no time.
    experiments = {name: invocation.make(name) for name in invocation.experiments}
    overview = Overview(invocation.results, invocation.catalogue, invocation.figure.settings)
    store = invocation.store()
    where = Surroundings(Inputs(invocation.catalogue, invocation.cache()), store, executor, mode)
    _check_writable(invocation.settings.results)
    for name, experiment in experiments.items():
        try:
            composed = invocation.experiments[name]
            findings = run_experiment(name, composed, experiment, overview.reported(name), where, invocation.altered)
        except ExecutorError:  # the other experiments would fail, too
            raise
        except Exception as error:
            if invocation.chosen and not isinstance(error, NumbersError):
                raise
            overview.note_failure(name, error)
        else:
            # Jobs that ran just now have the profile of this run.
            earlier = stored_profile(invocation.results / f"{name}.json", store) if mode == "only" else ""
            overview.note(findings, earlier)
    return overview.close(summary=not invocation.chosen, profile=invocation.profile)


def report(invocation: Invocation) -> int:
    """Write tables and figures again, from stored results alone."""
    return run(invocation, cache_mode="only")


def _check_writable(folder: str) -> None:
    """Raise an error if a folder cannot be written to. It is not created yet: other settings may be wrong."""
    path = Path(folder).absolute()
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"results must be a folder that can be written, got {folder!r}; {existing} cannot, choose another folder"
        )
