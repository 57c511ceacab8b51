"""One proof whose pieces are tasks of a Ray cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import trimbench as tb
from tests.reproduction.execution.programs import ON_RAY
from tests.trimming.brute_force import beta_classifier
from trimbench.reproduction.execution.ray_tasks import RayTasks
from trimbench.reproduction.execution.remote import RayExecutor
from trimbench.trimming.search import lattice_search

pytestmark = ON_RAY


def test_a_proof_during_which_a_node_is_killed_is_that_of_one_process(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lattice_search, "_ALONE", 0.0)
    monkeypatch.setattr(lattice_search, "_STEP", 20)
    classifier = beta_classifier(34, 2.0)
    alone = tb.trim(classifier, 15)
    node = cluster.add_node(num_cpus=1)
    futures: list[Future[bytes]] = []

    class Killing(RayTasks):
        """Kills a node a moment after the cluster has got its first pieces."""

        def submit(self, function: Callable[..., bytes], /, *args: bytes) -> Future[bytes]:
            if len(futures) == 3:  # one for each processor
                self.killer = threading.Thread(target=cluster.remove_node, args=(node, False))
                self.killer.start()
                time.sleep(0.1)
            futures.append(super().submit(function, *args))
            return futures[-1]

    with Killing(RayExecutor(address=cluster.address)) as executor:
        found = tb.trim(classifier, 15, n_jobs=3, executor=executor)
        executor.killer.join()
    assert (found.optimal, found.features, found.upper_bound) == (True, alone.features, alone.upper_bound)
    assert (found.agreement, found.threshold_interval) == (alone.agreement, alone.threshold_interval)
    assert sum(future.done() and future.exception() is None for future in futures) >= 3, "pieces were proven there"


def test_an_answer_that_is_not_bytes_is_refused(cluster: Any) -> None:
    with RayTasks(RayExecutor(address=cluster.address)) as executor:
        with pytest.raises(TypeError, match="a task must send back bytes, got int"):
            executor.submit(len, b"12").result(120)  # type: ignore[arg-type]
        with pytest.raises(Exception, match="zero"):
            executor.submit(divide, b"1").result(120)


def divide(_: bytes) -> bytes:
    return bytes(1 // 0)
