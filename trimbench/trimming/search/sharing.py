"""One proof on many workers: a queue of pieces, which hands parts of what is open to workers under a common bound.

A piece is some open nodes and the best loss so far; its answer is what it leaves open, and the subsets that it found. A
node counts as open until an answer has arrived, so that pieces which are lost or late cost time and nothing else.
Workers are an executor as in `concurrent.futures`, here child processes; what they get and give back is bytes.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, BinaryIO, Protocol, Self

from trimbench._current_folder import run_python
from trimbench._numba import clock
from trimbench.trimming.problem import Limits, PieceExecutor

# Processor seconds after which a piece ends, and where little is open, so that others soon have something to do.
PIECE, SHORT_PIECE = 0.5, 0.05
# A piece is late after so many seconds, or as many times the longest piece so far: an exact value may take ten seconds.
_LATE, _TIMES_LONGEST = 30.0, 4.0
# The search goes on alone after so many pieces that were lost in a row.
_MOST_LOST = 20
_WAIT = 0.05
_SIZE = 8  # bytes that say how long a message is
_RETURNED, _RAISED = b"\0", b"\1"

Prove = Callable[[bytes, bytes], bytes]


class Proof(Protocol):
    """A search with open nodes."""

    n_evaluations: int

    def problem(self) -> bytes:
        """Return what all pieces share."""

    def take(self, n_parts: int) -> int | None:
        """Take one of so many parts of the open nodes, and return its number; None if nothing is open."""

    def piece(self, number: int, seconds: float) -> bytes:
        """Return what a worker needs for nodes that were taken."""

    def give_back(self, number: int) -> None:
        """Open nodes again that were taken."""

    def merge(self, number: int, answer: bytes) -> None:
        """Put what a worker found in the place of the nodes that it got."""

    def step(self) -> None:
        """Go on with the first open node, here."""

    def report(self) -> None:
        """Say how far the search is."""


def share(proof: Proof, prove: Prove, limits: Limits) -> bool:
    """Hand out the open nodes of a proof until none is left or a limit is reached.

    Parameters
    ----------
    prove : callable
        Gives the answer of a worker to a problem and a piece; a function of a module, as workers import it.
    limits : Limits
        With the number of pieces at the same time, and the executor.

    Returns
    -------
    bool
        False if so many pieces were lost that the search had better go on alone.
    """
    with contextlib.ExitStack() as stack:
        executor = limits.executor or stack.enter_context(ChildProcesses(limits.n_jobs))
        pieces = Pieces(proof, prove, executor, limits.n_jobs)
        stack.callback(pieces.give_back)
        while limits.may_go_on(proof.n_evaluations):
            pieces.hand_out()
            if not pieces.are_out:
                return True
            pieces.wait(min(_WAIT, limits.seconds_left() or math.inf))
            proof.report()
            if pieces.n_lost >= _MOST_LOST:
                warnings.warn(
                    f"the last {_MOST_LOST} pieces of a proof were lost ({pieces.error!r}); it goes on in this process",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return False
    return True


class Pieces:
    """The pieces that workers have."""

    def __init__(self, proof: Proof, prove: Prove, executor: PieceExecutor, n_jobs: int) -> None:
        self._proof, self._executor, self._n_jobs = proof, executor, n_jobs
        self._prove = partial(executor.submit, prove, proof.problem())
        self._out: dict[int, tuple[float, Future[bytes]]] = {}
        self._ended: queue.SimpleQueue[tuple[int, Future[bytes]]] = queue.SimpleQueue()
        self._longest = 0.0
        self._n_out_before = 0
        self.n_lost, self.error = 0, BaseException()

    @property
    def are_out(self) -> bool:
        """Whether a worker has a piece."""
        return bool(self._out)

    def hand_out(self) -> None:
        """Give every idle worker a piece, while nodes are open."""
        while len(self._out) < self._n_jobs and (number := self._proof.take(2 * self._n_jobs)) is not None:
            # Where not all workers had something to do, pieces return soon.
            seconds = PIECE if self._n_out_before == self._n_jobs else SHORT_PIECE
            try:
                future = self._prove(self._proof.piece(number, seconds))
            except Exception as error:  # noqa: BLE001  (of any executor)
                self._lose(number, error)
                return
            self._out[number] = clock(), future
            future.add_done_callback(partial(self._note, number))
        self._n_out_before = len(self._out)

    def _note(self, number: int, future: Future[bytes]) -> None:
        self._ended.put((number, future))

    def wait(self, seconds: float) -> None:
        """Take answers, after waiting for one; open the nodes of pieces again that are late."""
        with contextlib.suppress(queue.Empty):
            self._end(*self._ended.get(timeout=seconds))
            while True:
                self._end(*self._ended.get_nowait())
        patience = max(_LATE, _TIMES_LONGEST * self._longest)
        for number in [number for number, (began, _) in self._out.items() if clock() > began + patience]:
            _, future = self._out.pop(number)
            future.cancel()
            self._lose(number, TimeoutError(f"no answer for {patience:.0f} seconds"))

    def _end(self, number: int, future: Future[bytes]) -> None:
        if number not in self._out:  # it was late
            return
        began, _ = self._out.pop(number)
        try:
            answer = future.result()
        except (Exception, CancelledError) as error:  # noqa: BLE001  (whatever a worker or an executor raises)
            self._lose(number, error)
            return
        self._longest = max(self._longest, clock() - began)
        self.n_lost = 0
        self._proof.merge(number, answer)

    def _lose(self, number: int, error: BaseException) -> None:
        """Open the nodes of a piece again, and go on with one here: even if all pieces are lost, the proof ends."""
        self._proof.give_back(number)
        self._proof.step()
        self.n_lost, self.error = self.n_lost + 1, error

    def give_back(self) -> None:
        """Open the nodes of all pieces again."""
        for number, (_, future) in self._out.items():
            future.cancel()
            self._proof.give_back(number)
        self._out.clear()


# Child processes as an executor.


class ChildProcesses:
    """Runs functions of modules, which return bytes, in processes of this machine that start when they are needed."""

    def __init__(self, n_workers: int) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[bytes], bytes] | None] = queue.SimpleQueue()
        self._children: dict[int, _Child] = {}
        self._threads = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(n_workers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for _thread in self._threads:
            self._tasks.put(None)
        for child in list(self._children.values()):
            child.end()  # also within a piece
        for thread in self._threads:
            thread.join()

    def submit(self, function: Callable[..., bytes], /, *args: Any) -> Future[bytes]:
        """Run a function in a child; its future raises an error if the child ends."""
        future: Future[bytes] = Future()
        self._tasks.put((future, pickle.dumps((function, args))))
        return future

    def _work(self, place: int) -> None:
        while (task := self._tasks.get()) is not None:
            future, given = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if place not in self._children:
                    self._children[place] = _Child()
                future.set_result(self._children[place].ask(given))
            except Exception as error:  # noqa: BLE001  (it belongs to who waits for the future)
                if isinstance(error, EOFError | OSError | ValueError):  # the child has ended
                    self._children.pop(place).close()
                future.set_exception(error)
        if place in self._children:
            self._children.pop(place).close()


class _Child:
    """A process that runs `serve`."""

    def __init__(self) -> None:
        theirs, mine = os.pipe()
        self._given: BinaryIO = os.fdopen(mine, "wb")
        mine, theirs_out = os.pipe()
        self._answers: BinaryIO = os.fdopen(mine, "rb")
        self._thread = threading.Thread(target=_run, args=(theirs, theirs_out), daemon=True)
        self._thread.start()

    def ask(self, given: bytes) -> bytes:
        """Let it run a function; EOFError or OSError if it ends."""
        _write(self._given, given)
        answer = _read(self._answers)
        if answer[:1] == _RAISED:
            raise RuntimeError(answer[1:].decode(errors="replace"))
        return answer[1:]

    def end(self) -> None:
        """End the process, from any thread."""
        with contextlib.suppress(OSError):
            self._given.close()
        self._thread.join()

    def close(self) -> None:
        """End the process, from the thread that asks it."""
        self.end()
        self._answers.close()


def _run(given: int, answers: int) -> None:
    """Run a child to its end; then nobody waits for an answer any more."""
    try:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        run_python(("-m", "trimbench.trimming.search.sharing"), threads, stdin=given, stdout=answers, check=False)
    finally:
        os.close(given)
        os.close(answers)


def _write(stream: BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(_SIZE, "big") + message)
    stream.flush()


def _read(stream: BinaryIO) -> bytes:
    size = int.from_bytes(stream.read(_SIZE), "big")
    message = stream.read(size)
    if not size or len(message) < size:
        raise EOFError("a worker has ended")
    return message


def serve() -> None:
    """Run functions that come on the standard input, until it ends; what they print goes to the standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def read() -> None:
        with contextlib.suppress(EOFError):
            while True:
                tasks.put(_read(sys.stdin.buffer))
        os._exit(0)  # whatever runs: the parent has what it wants, or has ended

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            function, args = pickle.loads(tasks.get())
            answer = _RETURNED + function(*args)
        except Exception as error:  # noqa: BLE001  (the parent tells)
            answer = _RAISED + f"{type(error).__name__}: {error}".encode()
        _write(answers, answer)


if __name__ == "__main__":
    serve()
