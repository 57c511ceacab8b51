"""Run an experiment: fetch its data, run its jobs, keep every failure as a row, and check its numbers."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimbench.papers.data.availability import is_here, obstacle
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import DatasetDeclaration
from trimbench.papers.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.papers.data.sources import Declaration, load_dataset, network_paths
from trimbench.papers.execution.canonical import Json
from trimbench.papers.execution.executors import Executor
from trimbench.papers.execution.run import run_jobs
from trimbench.papers.execution.store import JobStore, Record
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.numbers import Number
from trimbench.papers.study.outcome import Experiment, Outcome
from trimbench.papers.study.reported import Reported, check_numbers
from trimbench.papers.validation import ConfigurationError, validated

if TYPE_CHECKING:
    import pandas as pd

NO_DATA = "data not available"
# Keys of an experiment's file that are not settings: its class, and the changes with which it runs in seconds.
_NOT_SETTINGS = ("runner", "smoke_test")


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that one run of an experiment yields.

    Attributes
    ----------
    settings : mapping
        The resolved configuration.
    rows : DataFrame
        One row for each cell.
    records : sequence of Record
        Of the cells whose data is available.
    missing : mapping from the name of a data set or network to the reason why it is not available
    altered : tuple of str
        Keys of the experiment that the user has set; its numbers are then not compared with the reported ones.
    labels : tuple of str
        Columns of `rows` that distinguish the cells.
    """

    name: str
    settings: Mapping[str, Json]
    rows: pd.DataFrame
    outcome: Outcome
    records: Sequence[Record]
    missing: Mapping[str, str]
    altered: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def numbers(self) -> Sequence[Number]:
        """What can be compared with the reported numbers: nothing if the experiment's settings were changed."""
        return () if self.altered else self.outcome.numbers

    @property
    def failures(self) -> int:
        """Number of jobs that failed."""
        return len(self._errors)

    @property
    def first_failure(self) -> str:
        """The last line of the first error; empty without failures."""
        return self._errors[0].strip().splitlines()[-1] if self._errors else ""

    @property
    def _errors(self) -> list[str]:
        return [str(record.error) for record in self.records if record.status not in ("ok", "missing")]


def make_experiment(name: str, values: Mapping[str, Json], shared: Sequence[str]) -> Experiment:
    """Return the experiment that a configuration describes: ``runner`` ("module:class"), and the keys of that class.

    Of the keys that all experiments share, this one gets those that its class has. Raises ConfigurationError if the
    class does not exist, or a key or value is wrong.
    """
    runner = str(values.get("runner"))
    module, _, class_name = runner.partition(":")
    try:
        found = getattr(importlib.import_module(module), class_name)
        names = {field.name for field in dataclasses.fields(found)}
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"experiment {name}: runner must be 'module:class' of an experiment, got {runner!r} ({error})"
        ) from error
    own = {key: value for key, value in values.items() if key in names or key not in (*_NOT_SETTINGS, *shared)}
    experiment: Experiment = validated(found, own, f"experiment {name}")
    return experiment


def fetch(declaration: Declaration, cache: Cache) -> None:
    """Download data unless it is in a cache, and verify that it is what was declared.

    Raises DataUnavailable if it can be neither read nor downloaded, DeclarationError or FactsMismatch if it is not what
    was declared.
    """
    try:
        if isinstance(declaration, DatasetDeclaration):
            load_dataset(declaration, cache)
        else:
            network_paths(declaration, cache)
    except (DataUnavailable, DeclarationError, OSError) as error:
        blocked = obstacle(declaration, cache)
        if blocked or isinstance(error, OSError):
            raise DataUnavailable(blocked or str(error)) from error
        raise


@dataclass(frozen=True)
class Surroundings:
    """What every experiment of a run shares: the data, the store of finished jobs, and the executor of the others."""

    inputs: Inputs
    store: JobStore
    executor: Executor
    cache_mode: str


def run_experiment(
    name: str,
    settings: Mapping[str, Json],
    experiment: Experiment,
    reported: Sequence[Reported],
    where: Surroundings,
    altered: Sequence[str] = (),
) -> Findings:
    """Run the jobs of an experiment that are not stored, and return everything that is known of it.

    Raises a ValueError if the experiment gives a number that is not `reported`, or leaves out one that is. With keys
    `altered` by the user, its numbers are not checked.
    """
    cells = experiment.cells(where.inputs)
    # Stored results need no data, which may be on another machine.
    stored = where.store.successes([cell.job for cell in cells]) if where.cache_mode == "default" else {}
    wanted = [] if where.cache_mode == "only" else [cell for cell in cells if cell.job.key not in stored]
    missing = _fetch_all(wanted, where.inputs.cache)
    runnable = [cell for cell in cells if cell.job.key in stored or not any(i.name in missing for i in cell.inputs)]
    records = run_jobs(
        [cell.job for cell in runnable], where.store, where.executor, cache_mode=where.cache_mode, label=name
    )
    rows = _rows(cells, {record.job.key: record for record in records}, missing)
    outcome = experiment.outcome(rows)
    # A user's own experiment has no reported numbers.
    if reported and not altered:
        check_numbers(reported, outcome.numbers, complete=bool((rows["status"] == "ok").all()))
    labels = tuple(dict.fromkeys(label for cell in cells for label in cell.labels))
    return Findings(name, settings, rows, outcome, records, missing, tuple(altered), labels)


def _fetch_all(cells: Sequence[Cell], cache: Cache) -> dict[str, str]:
    missing = {}
    for declaration in {found.name: found.declaration for cell in cells for found in cell.inputs}.values():
        # Reading a table takes long, and each job verifies it anyway; hashing a network's files takes no time.
        if isinstance(declaration, DatasetDeclaration) and is_here(declaration, cache):
            continue
        try:
            fetch(declaration, cache)
        except (DataUnavailable, FactsMismatch) as error:
            missing[declaration.name] = str(error)
    return missing


def _rows(cells: Sequence[Cell], records: Mapping[str, Record], missing: Mapping[str, str]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for cell in cells:
        row: dict[str, Json] = dict(cell.labels)
        record = records.get(cell.job.key)
        if record is None:
            row |= {"status": NO_DATA, "error": next(missing[i.name] for i in cell.inputs if i.name in missing)}
        else:
            row |= {"status": record.status, "error": record.error, "seconds": record.seconds}
            row |= record.result or {}
        row["job"] = cell.job.key
        rows.append(row)
    return pd.DataFrame(rows)
