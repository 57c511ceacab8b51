"""Packages that only some settings need: the error for a missing one names the extra that installs it."""

from __future__ import annotations

import importlib.util

from trimbench.reproduction.project import DISTRIBUTION


class MissingExtraError(ImportError):
    """A setting needs packages that are not installed."""


def check_installed(*packages: str, extra: str, what: str) -> None:
    """Raise MissingExtraError unless all packages are installed.

    `what` says what needs them, `extra` is the extra of this distribution that installs them.
    """
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs packages that are not installed ({', '.join(missing)}); run pip install "
            f"'{DISTRIBUTION}[{extra}]'"
        )
