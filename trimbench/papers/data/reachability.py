"""Why a download failed, in one line, and which hosts are not worth asking again."""

import errno
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_NO_ROUTE = {errno.ENETUNREACH, errno.EHOSTUNREACH}
_LONGEST_REASON = 300


def _unreachable_cause(error: BaseException) -> BaseException | None:
    """Return the error behind another one which says that a host cannot be reached, if there is one."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror | TimeoutError):
            return cause
        if isinstance(cause, OSError) and cause.errno in _NO_ROUTE:
            return cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return None


def one_line_reason(error: BaseException) -> str:
    """Return why a download failed, in one line of at most 300 characters that is never empty.

    The HTTP libraries wrap "connection refused" four times, and the innermost error says what happened. Of any other
    error, the outermost message says most.
    """
    text = " ".join(str(_unreachable_cause(error) or error).split())
    if not text:
        return type(error).__name__
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."


@dataclass(frozen=True)
class HostMemory:
    """Hosts that could not be reached, so that each dead host costs one time-out and not one for each file."""

    _reasons: dict[str, str] = field(default_factory=dict)

    def reason_for(self, url: str) -> str | None:
        """Return why the host of `url` could not be reached earlier, or None if it is worth asking."""
        return self._reasons.get(urlsplit(url).netloc)

    def note(self, url: str, error: BaseException) -> None:
        """Remember the host of `url` if `error` means that it could not be reached."""
        if _unreachable_cause(error) is not None:
            self._reasons.setdefault(urlsplit(url).netloc, f"{one_line_reason(error)} (this host is not asked again)")
