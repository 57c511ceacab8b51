"""Runs the jobs of an experiment in this process, without a store and without files."""

from __future__ import annotations

import pandas as pd

from trimbench.papers.trimming.classifiers import Problem
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.job import run_job_function
from trimbench.reproduction.vocabulary.cells import Experiment, Inputs
from trimbench.reproduction.vocabulary.numbers import Outcome

from .command_line import PROJECT

TOY = {"toy": Problem(dataset="example_simulated", positive="1")}


def inputs_of(catalogue: Catalogue = PROJECT) -> Inputs:
    """Return what is declared, read from the caches alone."""
    return Inputs(catalogue, Cache.from_environment(offline=True))


def keys_of(experiment: Experiment, catalogue: Catalogue = PROJECT) -> list[str]:
    """Return the keys under which the results of an experiment are stored."""
    return [cell.job.key for cell in experiment.cells(inputs_of(catalogue))]


def rows_of(experiment: Experiment, catalogue: Catalogue = PROJECT) -> pd.DataFrame:
    """Return what an experiment's outcome is made from."""
    cells = experiment.cells(inputs_of(catalogue))
    return pd.DataFrame(
        [{**cell.labels, "status": "ok", "job": cell.job.key, **run_job_function(cell.job)} for cell in cells]
    )


def outcome_of(experiment: Experiment, catalogue: Catalogue = PROJECT) -> Outcome:
    """Return what an experiment finds."""
    return experiment.outcome(rows_of(experiment, catalogue))


def tables_of(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """Return the tables of an outcome by name; that of the main one is empty."""
    return {table.name: table.frame for table in outcome.tables}


def points_of(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """Return what the figures of an outcome show, by name."""
    return {figure.name: figure.points for figure in outcome.figures}


def values_of(outcome: Outcome) -> dict[str, float | None]:
    """Return the numbers of an outcome by row and quantity."""
    return {f"{number.row}/{number.quantity}": number.value for number in outcome.numbers}
