"""One proof on a Ray cluster, a node of which is killed in the middle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import trimbench as tb
from tests.reproduction.execution.programs import ON_RAY
from tests.trimming import brute_force
from trimbench.trimming.search import lattice_search, sharing
from trimbench.trimming.search.ray_tasks import RayTasks

pytestmark = ON_RAY


@pytest.fixture
def second_node(cluster: Any) -> Iterator[Any]:
    """A node that the test may kill, so that the others stay for other tests."""
    node = cluster.add_node(num_cpus=1, resources={"second": 1.0})
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node)


def never_prove(begun: Path, *_: bytes) -> bytes:
    """Say that this has begun, and keep the node busy until it is gone."""
    begun.touch()
    time.sleep(600.0)
    return b""


def wait(until: Callable[[], bool]) -> None:
    """Return when something is so, or after a minute."""
    end = time.monotonic() + 60.0
    while not until() and time.monotonic() < end:
        time.sleep(0.1)


def test_a_proof_on_nodes_of_which_one_is_killed_is_that_of_one_process(
    cluster: Any, second_node: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import ray

    classifier = brute_force.beta_classifier(36, 2.0)
    alone = tb.trim(classifier, 18)
    monkeypatch.setattr(lattice_search, "_ALONE", 0.0)
    monkeypatch.setattr(sharing, "PIECE", 0.01)
    monkeypatch.setattr(sharing, "SHORT_PIECE", 0.01)
    pieces: list[Future[bytes]] = []
    begun = tmp_path / "begun"

    class Killing(RayTasks):
        def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
            if len(pieces) != 3:
                pieces.append(super().submit(function, *args))
                return pieces[-1]
            on_second = ray.remote(num_cpus=1, max_retries=0, resources={"second": 1.0})(never_prove)
            pieces.append(on_second.remote(begun, *args).future())
            wait(begun.exists)
            cluster.remove_node(second_node, allow_graceful=False)
            return pieces[-1]

    ray.shutdown()  # another test may have left this process connected
    with pytest.raises(ConnectionError, match="RayTasks needs a connection to a Ray cluster; call"):
        RayTasks()
    ray.init(cluster.address, log_to_driver=False)
    try:
        found = tb.trim(classifier, 18, n_jobs=3, executor=Killing())
    finally:
        ray.shutdown()
    lost = [future for future in pieces if future.done() and not future.cancelled() and future.exception()]
    assert len(pieces) > 6
    assert lost
    assert (found.features, found.agreement, found.upper_bound) == (alone.features, alone.agreement, alone.upper_bound)
    assert (found.threshold_interval, found.optimal) == (alone.threshold_interval, True)
