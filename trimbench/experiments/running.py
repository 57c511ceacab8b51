"""From an experiment's configuration to its rows: fetch the data, run the jobs, keep every failure as a row."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimbench.configuration import Catalogue, ConfigurationError, build_settings
from trimbench.data.cache import Cache
from trimbench.data.declaration import DatasetDeclaration
from trimbench.data.errors import DataUnavailable, DeclarationError, FactsMismatch
from trimbench.data.sources import load_dataset, network_paths
from trimbench.execution.executors import Executor
from trimbench.execution.run import run_jobs
from trimbench.execution.store import JobStore, Record
from trimbench.experiments.availability import is_here, obstacle
from trimbench.experiments.plan import Cell, Declaration, Experiment, Outcome

if TYPE_CHECKING:
    import pandas as pd

NO_DATA = "data not available"


@dataclass(frozen=True, eq=False)
class Findings:
    """All that one run of an experiment gives.

    Attributes
    ----------
    name : str
    settings : mapping
        The resolved configuration.
    rows : DataFrame
        One row for each cell.
    outcome : Outcome
    records : sequence of Record
        Of the cells whose data was available.
    missing : mapping from the name of a data set or network to the reason why it could not be had
    altered : tuple of str
        Keys of the experiment that the user has set: its numbers are then not those that are reported.
    labels : tuple of str
        Columns of `rows` that tell the cells from one another.
    """

    name: str
    settings: Mapping[str, Any]
    rows: pd.DataFrame
    outcome: Outcome
    records: Sequence[Record]
    missing: Mapping[str, str]
    altered: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def reproduced(self) -> Mapping[str, float | None]:
        """What can be held against the reported numbers: nothing after a change of the experiment's settings."""
        return {} if self.altered else self.outcome.reproduced

    @property
    def failures(self) -> int:
        """Number of jobs that ran and failed."""
        return len(self._failed())

    @property
    def first_failure(self) -> str:
        """The last line of the first failed job's error; empty without failures."""
        lines = [str(record.error).strip().splitlines()[-1] for record in self._failed()[:1]]
        return "".join(lines)

    def _failed(self) -> list[Record]:
        return [record for record in self.records if record.status not in ("ok", "missing")]


def make_experiment(name: str, values: Mapping[str, Any], shared: Sequence[str]) -> Experiment:
    """Return the experiment that a configuration describes.

    Parameters
    ----------
    name : str
        For messages.
    values : mapping
        ``runner`` ("module:class") and a value for each key of that class.
    shared : sequence of str
        Keys that are not the experiment's alone: it gets those that its class has.

    Raises
    ------
    ConfigurationError
        When there is no such class, or a key or value of it is wrong.
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
    own = {key: value for key, value in values.items() if key in names or key not in ("runner", *shared)}
    experiment: Experiment = build_settings(found, own, f"experiment {name}")
    return experiment


def fetch(declaration: Declaration, cache: Cache) -> None:
    """Make sure that the data is in a cache and is what was declared.

    Raises
    ------
    DataUnavailable
        When it is not, or cannot be read, and cannot be downloaded.
    DeclarationError, FactsMismatch
        When it is not what was declared.
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


def run_experiment(
    name: str,
    settings: Mapping[str, Any],
    experiment: Experiment,
    catalogue: Catalogue,
    cache: Cache,
    store: JobStore,
    executor: Executor,
    cache_mode: str,
    altered: Sequence[str] = (),
) -> Findings:
    """Run what is missing of an experiment and return everything that is known of it.

    Parameters
    ----------
    name : str
    settings : mapping
        Resolved configuration, for the record.
    experiment : Experiment
    catalogue : Catalogue
    cache : Cache
    store : JobStore
    executor : Executor
    cache_mode : {"default", "ignore", "only"}
    altered : sequence of str
        Keys of the experiment that the user has set.

    Returns
    -------
    Findings
    """
    cells = experiment.cells(catalogue, cache)
    # Stored results are reported without their data, which may be on another machine.
    stored = store.successes([cell.job for cell in cells]) if cache_mode == "default" else {}
    missing = {} if cache_mode == "only" else _fetch_all([cell for cell in cells if cell.job.key not in stored], cache)
    runnable = [
        cell for cell in cells if cell.job.key in stored or not any(need.name in missing for need in cell.needs)
    ]
    records = run_jobs([cell.job for cell in runnable], store, executor, cache_mode=cache_mode, label=name)
    by_key = {record.job.key: record for record in records}
    rows = _rows(cells, by_key, missing)
    labels = tuple(dict.fromkeys(label for cell in cells for label in cell.labels))
    return Findings(name, settings, rows, experiment.outcome(rows), records, missing, tuple(altered), labels)


def _fetch_all(cells: Sequence[Cell], cache: Cache) -> dict[str, str]:
    missing = {}
    for declaration in {need.name: need for cell in cells for need in cell.needs}.values():
        # A table takes long to read, and each job checks it. The hash of a file takes no time.
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
        row = dict(cell.labels)
        record = records.get(cell.job.key)
        if record is None:
            row |= {"status": NO_DATA, "error": next(missing[n.name] for n in cell.needs if n.name in missing)}
        else:
            row |= {"status": record.status, "error": record.error, "seconds": record.seconds}
            row |= record.result or {}
        row["job"] = cell.job.key
        rows.append(row)
    return pd.DataFrame(rows)
