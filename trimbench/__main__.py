"""The command ``trimbench``, also ``python -m trimbench``."""

import sys

from trimbench._extras import MissingExtraError, check_installed


def main() -> None:
    """Run the command line, or say which extra has to be installed for it."""
    try:
        # What the command line imports before it does anything.
        check_installed("hydra", "omegaconf", "pydantic", "yaml", extra="papers", what="the command trimbench")
    except MissingExtraError as error:
        sys.exit(str(error))
    from trimbench.papers.commands.cli import main as run

    run()


if __name__ == "__main__":
    main()
