"""Ctrl-C where threads and processes are at work: raised anywhere, it can leave a lock taken for which they wait."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Self


class HeldInterrupts:
    """Holds back Ctrl-C within a ``with`` block, except within `allowed`.

    One that has come is raised, as KeyboardInterrupt, as soon as it is allowed. One that no `allowed` follows is raised
    at the end of the block, unless that ends with an error of its own. Outside the main thread, which alone gets
    Ctrl-C, and where a program has a handler of its own, nothing is held back.
    """

    def __init__(self) -> None:
        self._has_come = False
        self._holds = False

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        self._holds = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._hold()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._let_go()
        if kind is None:
            self._raise_if_come()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C through for a while: no lock that others wait for may be taken meanwhile."""
        self._let_go()
        try:
            self._raise_if_come()
            yield
        finally:
            self._hold()

    def _hold(self) -> None:
        if self._holds:
            signal.signal(signal.SIGINT, self._note)

    def _let_go(self) -> None:
        if self._holds:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, *_: object) -> None:
        self._has_come = True

    def _raise_if_come(self) -> None:
        if self._has_come:
            self._has_come = False
            raise KeyboardInterrupt


@contextmanager
def kept_from_children() -> Iterator[None]:
    """Keep Ctrl-C from the threads and processes that start meanwhile, even while these import what they need."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Its start would let signals through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
