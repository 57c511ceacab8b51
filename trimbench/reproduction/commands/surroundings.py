"""What the experiments of a command share, and experiments made from what it asks for."""

from __future__ import annotations

import dataclasses

from trimbench.reproduction.commands.arguments import Invocation, Point
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.execution.executors import Executor, executor_of
from trimbench.reproduction.execution.store import JobStore
from trimbench.reproduction.files import remove_temporary_folders
from trimbench.reproduction.reporting.runs import check_name
from trimbench.reproduction.vocabulary.cells import Experiment, Inputs
from trimbench.reproduction.vocabulary.planning import Surroundings, make_experiment


def surroundings(invocation: Invocation, cache_mode: str, executor: Executor | None = None) -> Surroundings:
    """Return what the experiments of a command share: data, store and executor, by default the configured one."""
    settings = invocation.settings
    cache = dataclasses.replace(Cache.from_environment(offline=settings.offline), roads=tuple(settings.roads or ()))
    remove_temporary_folders(cache.writable, ".partial")  # of downloads that were killed
    store, executor = JobStore(invocation.root / "jobs"), executor or executor_of(invocation.executor)
    return Surroundings(Inputs(invocation.catalogue, cache), store, executor, cache_mode)


def make(invocation: Invocation, name: str, point: Point) -> Experiment:
    """Return an experiment with the settings of a point."""
    check_name(name)
    return make_experiment(name, point.experiments[name], SHARED_KEYS, invocation.code)
