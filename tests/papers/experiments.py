"""Runs the jobs of an experiment in this process."""

from __future__ import annotations

import pandas as pd

from trimbench.papers.configuration import Catalogue
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.job import run_job_function
from trimbench.papers.trimming.classifiers import Problem
from trimbench.papers.vocabulary.cells import Experiment, Outcome
from trimbench.papers.vocabulary.inputs import Inputs

from ..command_line import PROJECT

TOY = {"toy": Problem(dataset="example_simulated", positive="1")}


def rows_of(experiment: Experiment, catalogue: Catalogue = PROJECT) -> pd.DataFrame:
    """Return what an experiment's outcome is made from."""
    cells = experiment.cells(Inputs(catalogue, Cache.from_environment(offline=True)))
    return pd.DataFrame(
        [{**cell.labels, "status": "ok", "job": cell.job.key, **run_job_function(cell.job)} for cell in cells]
    )


def values_of(outcome: Outcome) -> dict[str, float | None]:
    """Return the numbers of an outcome by row and quantity."""
    return {f"{number.row}/{number.quantity}": number.value for number in outcome.numbers}
