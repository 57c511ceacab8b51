import errno
import socket

import pytest

from trimbench.papers.data.cache import HostMemory, one_line_reason


def _wrapped(cause: BaseException) -> RuntimeError:
    middle, outer = ValueError("in the middle"), RuntimeError("outside")
    middle.__cause__, outer.__context__ = cause, middle
    return outer


@pytest.mark.parametrize(
    "cause",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        socket.gaierror(-2, "Name or service not known"),
        TimeoutError("timed out"),
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
    ],
)
def test_dead_host_is_recognised_under_any_wrapping(cause: OSError) -> None:
    memory = HostMemory()
    error = _wrapped(cause)
    memory.note("https://one.invalid/a", error)
    assert one_line_reason(error) == str(cause)
    reason = memory.reason_for("https://one.invalid/b")
    assert reason is not None
    assert str(cause) in reason
    assert memory.reason_for("https://two.invalid/a") is None


@pytest.mark.parametrize("cause", [PermissionError(13, "Permission denied"), KeyError("x")])
def test_other_failures_do_not_condemn_the_host(cause: Exception) -> None:
    memory = HostMemory()
    memory.note("https://one.invalid/a", _wrapped(cause))
    assert memory.reason_for("https://one.invalid/a") is None


def test_reason_is_one_short_line() -> None:
    assert one_line_reason(RuntimeError("first\n  second")) == "first second"
    assert one_line_reason(RuntimeError()) == "RuntimeError"
    untold = type("Untold", (Exception,), {"__str__": lambda self: "at line {} {}".format(*self.args)})
    assert one_line_reason(untold(1)) == "Untold"
    long = one_line_reason(RuntimeError("x" * 1000))
    assert len(long) == 300
    assert long.endswith("...")
