import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trimbench.reproduction.execution.store import JobStore


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "records")


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A folder for the files that jobs leave."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def programs() -> Iterator[list["subprocess.Popen[str]"]]:
    """Programs that end with the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for program in started:
        if program.poll() is None:
            program.kill()
        program.communicate()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine, with a cache of their own and no process that tests do not need."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray starts its workers with the lowest priority: on a busy machine, jobs would reach the limit of time first.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "env_vars": {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}}
    spare = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    # A machine that is killed is missed after seconds, not after a quarter of a minute.
    missed = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
    made = Cluster(initialize_head=True, head_node_args={**node, **spare, "_system_config": missed})
    made.add_node(**node)
    yield made
    ray.shutdown()
    made.shutdown()
