"""Ctrl-C is raised where it is allowed, and nowhere else."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from trimbench.papers.execution.here import HeldInterrupts


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def press_and_fail() -> None:
    press()
    raise OSError("an error")


def test_one_that_comes_is_raised_where_it_is_allowed() -> None:
    seen = []
    with HeldInterrupts() as interrupts:
        with interrupts.allowed():
            seen.append("nothing yet")
        press()
        seen.append("held back")
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            seen.append("not reached")
    assert seen == ["nothing yet", "held back"]


def test_within_what_is_allowed_it_comes_at_once_and_is_held_back_afterwards() -> None:
    with HeldInterrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            press()
        press()
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            pytest.fail("one that was held back comes first")


def test_the_end_of_the_block_raises_it_unless_an_error_does() -> None:
    with pytest.raises(KeyboardInterrupt), HeldInterrupts():
        press()
    with pytest.raises(OSError, match="an error"), HeldInterrupts():
        press_and_fail()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_within_blocks_and_handlers_of_others_are_left_alone() -> None:
    with pytest.raises(KeyboardInterrupt), HeldInterrupts(), HeldInterrupts() as inner, inner.allowed():
        press()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HeldInterrupts():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_threads_get_none() -> None:
    def use() -> None:
        with HeldInterrupts() as interrupts, interrupts.allowed():
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[Any] = []
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
