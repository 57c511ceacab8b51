"""The task ``list``: what is stored of each experiment, what data it lacks, and what the rest will cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimbench.papers.commands.invocation import Invocation
from trimbench.papers.data.availability import is_here, obstacle
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.sources import Declaration
from trimbench.papers.execution.cost import expected_seconds, measured, total, wall_seconds
from trimbench.papers.execution.executors import n_workers
from trimbench.papers.execution.progress import duration
from trimbench.papers.execution.store import Glance, JobStore
from trimbench.papers.reporting.tables import markdown_rows
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.inputs import Inputs

_COST = "processor time to run the rest"
_COUNTS = ("jobs", "done", "failed", "missing")
_COLUMNS = ("experiment", *_COUNTS, _COST, "data")


@dataclass(frozen=True)
class _Stock:
    """The jobs of one or several experiments: what is stored of each, and what it is expected to cost, by key."""

    stored: dict[str, Glance | None] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Sequence[Cell], store: JobStore, typical: Mapping[str, float]) -> _Stock:
        jobs = {cell.job.key: cell.job for cell in cells}
        stored = {key: store.glance(job) for key, job in jobs.items()}
        done = {key: found.seconds for key, found in stored.items() if found and found.ok}
        return cls(stored, expected_seconds(jobs.values(), done, typical))

    def add(self, other: _Stock) -> None:
        """Add the jobs of an experiment; those that it shares with an earlier one run once."""
        self.stored.update(other.stored)
        self.expected.update({key: cost for key, cost in other.expected.items() if key not in self.expected})

    @property
    def rest(self) -> list[str]:
        return [key for key, found in self.stored.items() if not (found and found.ok)]

    def line(self) -> dict[str, object]:
        found = list(self.stored.values())
        return {
            "jobs": len(found),
            "done": sum(one is not None and one.ok for one in found),
            "failed": sum(one is not None and not one.ok for one in found),
            "missing": found.count(None),
            _COST: duration(total(self.rest, self.expected)),
        }


def list_experiments(invocation: Invocation) -> int:
    """Print each experiment with its jobs, the cost of those that are still to run, and its data; then the sum."""
    cache, store = invocation.cache(), invocation.store()
    inputs = Inputs(invocation.catalogue, cache)
    experiments = {name: invocation.make(name) for name in invocation.experiments}
    typical = measured(invocation.catalogue, invocation.profile)
    lines: list[dict[str, object]] = []
    everything = _Stock()
    for name, experiment in experiments.items():
        try:
            cells = experiment.cells(inputs)
        except Exception as error:
            if invocation.chosen:
                raise
            lines.append({"experiment": name, _COST: duration(None), "data": f"cannot be planned: {error}"})
        else:
            stock = _Stock.of(cells, store, typical.get(name, {}))
            everything.add(stock)
            needs = {found.name: found.declaration for cell in cells for found in cell.inputs}
            lines.append({"experiment": name, **stock.line(), "data": _data(needs, cache)})
    if len(experiments) > 1:
        lines.append({"experiment": "all, shared jobs once", **everything.line(), "data": ""})
    # Without pandas, whose import would take half a second.
    rows = [[str(line.get(column, "–")) for column in _COLUMNS] for line in lines]
    sys.stdout.write(markdown_rows(_COLUMNS, rows, [column in _COUNTS for column in _COLUMNS]) + "\n")
    workers = n_workers(invocation.make_executor())
    wall = wall_seconds(everything.rest, everything.expected, workers)
    if wall:
        at_once = "one after the other" if workers == 1 else f"{workers} at a time"
        sys.stdout.write(f"\nRunning the rest takes about {duration(wall)}, {at_once}.\n")
    return 0


def _data(needs: Mapping[str, Declaration], cache: Cache) -> str:
    """Say whether the data is here, and where it is not, what stands in the way or is to be fetched."""
    if not needs:
        return "none needed"
    absent = {name: obstacle(need, cache) for name, need in needs.items() if not is_here(need, cache)}
    if not absent:
        return "here"
    parts = [f"{name}: {reason}" for name, reason in absent.items() if reason]
    wanted = [name for name, reason in absent.items() if not reason]
    if wanted:
        parts.append(f"{len(wanted)} of {len(needs)} to be fetched (trimbench task=fetch): {', '.join(wanted)}")
    return "; ".join(parts)
