"""The command ``trimbench``, also ``python -m trimbench``."""

import sys

from trimbench._extras import MissingExtraError, required


def main() -> None:
    """Run the command line, or say what has to be installed for it."""
    try:
        required("hydra", extra="papers", what="the command trimbench")
    except MissingExtraError as error:
        sys.exit(f"{error}")
    from trimbench.papers.commands.cli import main as run

    run()


if __name__ == "__main__":
    main()
