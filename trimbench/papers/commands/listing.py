"""The task ``list``: what is stored of each experiment, what data it lacks, and what the rest will cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from trimbench.papers.commands.cost import estimate, measured
from trimbench.papers.commands.invocation import Invocation
from trimbench.papers.data.availability import is_here, obstacle
from trimbench.papers.data.cache import Cache
from trimbench.papers.execution.progress import duration
from trimbench.papers.execution.store import JobStore
from trimbench.papers.reporting.tables import markdown
from trimbench.papers.study.cells import Cell
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.tables import Table

_COST = "processor time to run the rest"
_COLUMNS = {"experiment": "", **dict.fromkeys(("jobs", "done", "failed", "missing"), ".0f"), _COST: "", "data": ""}


def list_experiments(invocation: Invocation) -> int:
    """Print each experiment with its jobs, the cost of those that are still to run, and its data."""
    cache, store = invocation.cache(), invocation.store()
    inputs = Inputs(invocation.catalogue, cache)
    experiments = {name: invocation.make(name) for name in invocation.experiments}
    typical = measured(invocation.catalogue, invocation.profile)
    lines: list[dict[str, object]] = []
    for name, experiment in experiments.items():
        try:
            cells = experiment.cells(inputs)
        except Exception as error:
            if invocation.chosen:
                raise
            lines.append({"experiment": name, _COST: duration(None), "data": f"cannot be planned: {error}"})
        else:
            lines.append({"experiment": name, **_line(cells, cache, store, typical.get(name))})
    sys.stdout.write(markdown(Table.of("", lines, _COLUMNS)) + "\n")
    return 0


def _line(cells: Sequence[Cell], cache: Cache, store: JobStore, typical: float | None) -> dict[str, object]:
    records = [store.get(cell.job) for cell in cells]
    needs = {found.name: found.declaration for cell in cells for found in cell.inputs}
    return {
        "jobs": len(cells),
        "done": sum(record is not None and record.ok for record in records),
        "failed": sum(record is not None and not record.ok for record in records),
        "missing": records.count(None),
        _COST: duration(estimate(records, typical)),
        "data": _data(
            list(needs), {name: obstacle(need, cache) for name, need in needs.items() if not is_here(need, cache)}
        ),
    }


def _data(needs: Sequence[str], absent: Mapping[str, str]) -> str:
    """Say whether the data is here; `absent` has the reason why data cannot be read, empty if it is to be fetched."""
    if not needs:
        return "none needed"
    if not absent:
        return "here"
    parts = [f"{name}: {reason}" for name, reason in absent.items() if reason]
    wanted = [name for name, reason in absent.items() if not reason]
    if wanted:
        parts.append(f"{len(wanted)} of {len(needs)} to be fetched (trimbench task=fetch): {', '.join(wanted)}")
    return "; ".join(parts)
