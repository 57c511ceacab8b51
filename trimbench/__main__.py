"""The command ``trimbench``, also ``python -m trimbench``."""

import os
import signal
import sys

from trimbench._extras import MissingExtraError, check_installed


def main() -> None:
    """Run the command line, or say which extra has to be installed for it."""
    # It takes a second until the command is loaded and understood. Until then, Python would answer Ctrl-C with a
    # traceback, or with an exception that some packages swallow. Where it is ignored, as under nohup, it stays so.
    _make_streams_writable()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    # Without a handler, the first process of a container is not ended by SIGTERM, as `docker stop` sends it.
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


def _make_streams_writable() -> None:
    """Let what is written to a closed stream go nowhere, and show what the encoding of another lacks by its numbers."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # In the order of their numbers, so that each takes its own.
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
        elif name != "stdin" and hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")


def _stop(*_: object) -> None:
    """End the program at once, as nothing has begun."""
    sys.stderr.write("\nStopped before anything was done.\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
