"""The command ``trimbench``, also ``python -m trimbench``."""

import sys

from trimbench import _current_folder

if __name__ == "__main__":
    # Python has put the current folder first on the path; what follows must not be imported from there.
    sys.path[:] = _current_folder.safe_path()

import io
import os
import signal
from typing import Any

from trimbench._extras import MissingExtraError, check_installed


def main() -> None:
    """Run the command line, or say which extra has to be installed for it."""
    _current_folder.leave()
    _make_streams_writable()
    # Loading and parsing the command takes a second. Until then, Python would answer Ctrl-C with a traceback, or with
    # an exception that some packages swallow. Where SIGINT is ignored, as under nohup, it stays ignored.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    # Without a handler, SIGTERM, which `docker stop` sends, does not end the first process of a container.
    ends = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ends:
        signal.signal(signal.SIGTERM, _stop)
    try:
        # What the command line imports before it does anything.
        check_installed("hydra", "omegaconf", "pydantic", "yaml", extra="papers", what="the command trimbench")
    except MissingExtraError as error:
        sys.exit(str(error))
    from trimbench.papers.commands.cli import main as run

    def understood() -> None:
        signal.signal(signal.SIGINT, before)
        if ends:
            signal.signal(signal.SIGTERM, signal.default_int_handler)

    run(understood)
    if _Output.unprinted:
        sys.exit(f"{_Output.unprinted}\nStored results are intact. Fix this, then run the same command again.")


class _Output(io.FileIO):
    """Standard output or error that survives failed writes: results are kept, and lost output is told at the end.

    A reader that leaves early, as in ``trimbench | head``, has seen what it wanted: that is no loss.
    """

    unprinted: OSError | None = None

    def write(self, content: Any, /) -> int:
        """Write, and go on if that fails, so that every file is written."""
        try:
            return super().write(content)
        except OSError as error:
            if self.fileno() == 1 and not isinstance(error, BrokenPipeError):
                _Output.unprinted = error
            return len(content)


def _make_streams_writable() -> None:
    """Replace closed streams by the null device, and escape characters that the encoding of a stream lacks."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # Opened in the order of their descriptors, so that each gets its own number.
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
        elif name != "stdin" and (stream := getattr(sys, name)) is getattr(sys, f"__{name}__"):
            raw = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
            at_once = stream.line_buffering or stream.write_through
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=at_once))


def _stop(*_: object) -> None:
    """End the program at once: nothing has started yet."""
    sys.stderr.write("\nStopped before anything was done.\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
