"""The task ``fetch``: download and verify data."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from trimbench.papers.commands.invocation import Invocation
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.declaration import declare_dataset
from trimbench.papers.data.network_declaration import declare_network
from trimbench.papers.data.sources import Declaration
from trimbench.papers.study.inputs import Inputs
from trimbench.papers.study.planning import fetch as fetch_one


def fetch(invocation: Invocation) -> int:
    """Download and verify the data of the experiment, or everything declared; return 1 if some is not available."""
    cache = invocation.cache()
    failures = 0
    for declaration in _declarations(invocation, cache):
        try:
            fetch_one(declaration, cache)
        except Exception as error:  # noqa: BLE001 - a host that is down must not keep the rest from being fetched
            failures += 1
            sys.stdout.write(f"{declaration.name}: FAILED: {error}\n")
        else:
            sys.stdout.write(f"{declaration.name}: here, verified\n")
    return 1 if failures else 0


def _declarations(invocation: Invocation, cache: Cache) -> Iterator[Declaration]:
    catalogue = invocation.catalogue
    if invocation.chosen:
        inputs = Inputs(catalogue, cache)
        needs = [
            need
            for name in invocation.experiments
            for cell in invocation.make(name).cells(inputs)
            for need in cell.inputs
        ]
        yield from {(need.group, need.name): need.declaration for need in needs}.values()
        return
    yield from (declare_dataset(name, catalogue.dataset_mapping(name)) for name in catalogue.names("dataset"))
    yield from (declare_network(name, catalogue.network_mapping(name)) for name in catalogue.names("network"))
