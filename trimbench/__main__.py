"""The command ``trimbench``, also ``python -m trimbench``."""

import os
import signal
import sys

from trimbench._extras import MissingExtraError, check_installed


def main() -> None:
    """Run the command line, or say which extra has to be installed for it."""
    # It takes a second until the command is loaded and understood. Until then, Python would answer Ctrl-C with a
    # traceback, or with an exception that some packages swallow. Where it is ignored, as under nohup, it stays so.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    try:
        # What the command line imports before it does anything.
        check_installed("hydra", "omegaconf", "pydantic", "yaml", extra="papers", what="the command trimbench")
    except MissingExtraError as error:
        sys.exit(str(error))
    from trimbench.papers.commands.cli import main as run

    run(understood=lambda: signal.signal(signal.SIGINT, before))


def _stop(*_: object) -> None:
    """End the program at once, as nothing has begun."""
    sys.stderr.write("\nStopped before anything was done.\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
