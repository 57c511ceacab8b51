"""The process in which one reader after another gets inputs: measured, limited, and replaced when it dies."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from .fuzz_targets import TARGETS, Target, Wrong

SECONDS, BYTES, CHARACTERS = 2.0, 256 * 2**20, 500
# Following every line slows a reader down; time is judged without that. The clock only tells a process that sleeps.
_SECONDS_FOLLOWED, _SECONDS_OF_CLOCK = 20.0, 900.0
# The system refuses more than this, so that no input stops the machine.
_ROOM_BYTES = 2**31
_FOLLOWED = ("/trimbench/", "/rdata/", "/arff.py", "/tests/hardening/planted")


@dataclass(frozen=True)
class Outcome:
    """What a reader did with an input; `fault` is empty unless it broke a promise, `place` says where."""

    fault: str
    place: str
    edges: frozenset[tuple[str, int, int]]
    seconds: float
    bytes: int


class Child:
    """A process with one reader at a time; `run` starts it again when it has died."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, target: str, content: bytes, *, follow: bool) -> Outcome:
        """Give an input to a reader; with `follow`, say which lines ran, and allow more time for that."""
        if self._process is None:
            self._pipe, other = self._context.Pipe()
            self._process = self._context.Process(target=_serve, args=(other,), daemon=True)
            self._process.start()
            other.close()
        self._pipe.send((target, content, follow))
        try:
            if not self._pipe.poll(_SECONDS_OF_CLOCK):
                return self._dead("hangs", follow)
            outcome: Outcome = self._pipe.recv()
        except (EOFError, ConnectionError):
            return self._dead("", follow)
        return outcome

    def _dead(self, why: str, follow: bool) -> Outcome:
        if why:
            self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self._end()
        late = code == -signal.SIGPROF
        fault = why or (f"more than {SECONDS:g} s" if late else f"the process died ({code})")
        seconds = _SECONDS_FOLLOWED if follow else SECONDS
        return Outcome(fault, "", frozenset(), seconds if late else 0.0, 0)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None


def examine(child: Child, target: str, content: bytes) -> Outcome:
    """Return the outcome of an input; time is judged in a run that nothing slows down."""
    follow = len(content) <= 2**16
    outcome = child.run(target, content, follow=follow)
    if follow and (outcome.seconds > SECONDS or not outcome.edges):
        plain = child.run(target, content, follow=False)
        return Outcome(plain.fault, plain.place, outcome.edges, plain.seconds, plain.bytes)
    return outcome


def _serve(pipe: Connection) -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    # The library of linear algebra would reserve memory for each of its threads.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory(prefix="trimbench-fuzz-") as folder:
        os.environ |= {"XDG_CACHE_HOME": f"{folder}/cache", "TMPDIR": folder, "MPLCONFIGDIR": folder}
        tempfile.tempdir = folder
        readers: dict[str, Callable[[bytes], object]] = {}
        while True:
            try:
                name, content, follow = pipe.recv()
                if name not in readers:
                    readers[name] = ready(TARGETS[name], Path(folder, name))
                pipe.send(judged(TARGETS[name], readers[name], content, follow=follow))
            except (EOFError, BrokenPipeError):  # the search is over
                return


def ready(target: Target, folder: Path) -> Callable[[bytes], object]:
    """Return a reader that has loaded whatever it needs."""
    folder.mkdir()
    reader = target.prepare(folder)
    for content in target.seeds():
        try:
            reader(content)
        except target.allowed:
            continue
    return reader


def judged(target: Target, reader: Callable[[bytes], object], content: bytes, *, follow: bool) -> Outcome:
    """Run a reader in this process and compare what it does with what is promised."""
    lines = _Lines()
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + _ROOM_BYTES, resource.RLIM_INFINITY))
    before = _peak(forget=True)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS_FOLLOWED if follow else SECONDS)
    started = time.process_time()
    fault = place = ""
    if follow:
        sys.settrace(lines)
    try:
        reader(content)
    except MemoryError as error:
        fault, place = "MemoryError", _place(error.__traceback__)
    except target.allowed as error:
        if len(str(error)) > CHARACTERS:
            fault, place = f"a message of {len(str(error))} characters: {str(error)[:300]}", type(error).__name__
    except Wrong as error:
        fault, place = f"wrong: {error}", _place(error.__traceback__)
    except BaseException as error:  # noqa: BLE001  (whatever a reader raises is judged)
        fault, place = f"{type(error).__name__}: {str(error)[:300]}", _place(error.__traceback__)
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seconds, used = time.process_time() - started, _peak() - before
    if not fault and used > BYTES:
        fault, place = f"{used / 2**20:.0f} MiB", "memory"
    return Outcome(fault, place, frozenset(lines.edges), seconds, used)


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def _peak(*, forget: bool = False) -> int:
    """Return the most memory that this process has had, since the last call that made it forget."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmHWM")


def _place(trace: TracebackType | None) -> str:
    """Return the innermost line of the project, by which findings are told apart."""
    own = [frame for frame in traceback.extract_tb(trace) if "/trimbench/" in frame.filename]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


class _Lines:
    """Follows which line ran after which, in the files that read."""

    def __init__(self) -> None:
        self.edges: set[tuple[str, int, int]] = set()
        self._followed: dict[str, bool] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self._followed:
            self._followed[name] = any(part in name for part in _FOLLOWED)
        if not self._followed[name]:
            return None
        last = 0
        edges = self.edges

        def line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                edges.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line
