"""Measure one proof on several workers: on two processes, and simulated on up to a hundred.

``scripts/bench/run shared_proof --features 44 --budget 16 --threshold 0.2`` proves one optimum by one process, then by
two, and says what both take in wall and processor time; wall times mean something only on an idle machine. Then it runs
the same proof as if pieces were given to many workers at once: each piece runs here, alone, and its processor time says
when its answer comes, while the time that the queue itself takes passes for all. Efficiency is the processor time of
the proof by one process, divided by the simulated time and the number of workers.
"""

from __future__ import annotations

import argparse
import heapq
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import trimbench as tb
from trimbench.trimming.result import Trimming
from trimbench.trimming.search import sharing

from .measure import processor_seconds
from .trimming import breast_cancer, say


class Simulation:
    """Workers that take as long as their pieces took here; the queue's own time is added for all."""

    def __init__(self) -> None:
        self.now = self.work = 0.0
        self.n_pieces = 0
        self._here = time.process_time()
        self._running: list[tuple[float, int, Future[bytes], bytes]] = []

    def tick(self) -> None:
        """Let the processor time that has passed here since the last call pass for all."""
        here = time.process_time()
        self.now, self._here = self.now + here - self._here, here

    def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
        """Run a piece; its answer will come when a worker would have found it."""
        self.tick()
        answer = function(*args)
        here = time.process_time()
        taken, self._here = here - self._here, here
        self.n_pieces, self.work = self.n_pieces + 1, self.work + taken
        future: Future[bytes] = Future()
        heapq.heappush(self._running, (self.now + taken, self.n_pieces, future, answer))
        return future

    def end_next(self) -> None:
        """Pass the time until the next answer, and give it."""
        self.tick()
        at, _, future, answer = heapq.heappop(self._running)
        self.now = max(self.now, at)
        future.set_result(answer)


class SimulatedPieces(sharing.Pieces):
    """A queue of pieces that waits for the next answer of a simulation; none is late."""

    simulation: Simulation

    def wait(self, _: float) -> None:
        """Take the next answer."""
        self.simulation.end_next()
        super().wait(0.0)


def simulated(prove: Callable[..., Trimming], n_workers: int) -> tuple[Trimming, Simulation]:
    """Prove an optimum on so many simulated workers."""
    simulation = SimulatedPieces.simulation = Simulation()
    before = {name: vars(sharing)[name] for name in ("Pieces", "_LATE")}
    vars(sharing).update(Pieces=SimulatedPieces, _LATE=math.inf)
    try:
        found = prove(n_jobs=n_workers, executor=simulation)
    finally:
        vars(sharing).update(before)
    simulation.tick()
    return found, simulation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=44)
    parser.add_argument("--budget", type=int, default=16)
    parser.add_argument("--threshold", type=float, default=0.2)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 10, 100])
    arguments = parser.parse_args()
    model, positive = breast_cancer(arguments.features)
    classifier = tb.BayesianClassifier(model, positive=positive, threshold=arguments.threshold)
    tb.trim(classifier, 2)  # loads what is compiled

    def prove(**how: Any) -> Trimming:
        return tb.trim(classifier, arguments.budget, **how)

    (alone, wall, serial), (shared, wall_of_two, processor) = timed(prove), timed(lambda: prove(n_jobs=2))
    say("one process: seconds, processor seconds", f"{wall:8.2f} {serial:8.2f}")
    say("two processes: seconds, processor seconds of all", f"{wall_of_two:8.2f} {processor:8.2f}")
    say("    times as fast by the clock", f"{wall / wall_of_two:8.2f}")
    say("    processor time of all to that of one process", f"{processor / serial:8.2f}")
    check(alone, shared)
    for n_workers in arguments.workers:
        found, simulation = simulated(prove, n_workers)
        check(alone, found)
        say(f"{n_workers} simulated workers: seconds, pieces", f"{simulation.now:8.2f} {simulation.n_pieces:8d}")
        say(
            "    times as fast, efficiency",
            f"{serial / simulation.now:8.2f} {serial / simulation.now / n_workers:8.2f}",
        )
        say("    processor time of all pieces", f"{simulation.work:8.2f} s")


def timed(call: Callable[[], Trimming]) -> tuple[Trimming, float, float]:
    """Return an answer, its wall and its processor seconds."""
    began, processor = time.perf_counter(), processor_seconds()
    return call(), time.perf_counter() - began, processor_seconds() - processor


def check(one: Trimming, other: Trimming) -> None:
    """Raise an error unless two answers are the same and proven."""
    same = (one.features, one.agreement, one.upper_bound) == (other.features, other.agreement, other.upper_bound)
    if not (same and one.optimal and other.optimal):
        raise AssertionError(f"answers differ or are not proven: {one} and {other}")


if __name__ == "__main__":
    main()
