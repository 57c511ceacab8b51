"""Packages that only some calls need: the error for a missing one names the extra that installs it."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


class MissingExtraError(ImportError):
    """A call needs packages that were not installed with trimbench."""


def is_installed(package: str) -> bool:
    """Tell whether a package can be found, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:
        return False


def check_installed(*packages: str, extra: str, what: str) -> None:
    """Raise MissingExtraError unless all packages are installed.

    `what` says what needs them (a parameter with its value, a method or a command), `extra` is the extra of trimbench
    that installs them.
    """
    missing = [name for name in packages if not is_installed(name)]
    if missing:
        raise MissingExtraError(
            f"{what} needs packages that are not installed ({', '.join(missing)}); run pip install 'trimbench[{extra}]'"
        )


def required(*packages: str, extra: str, what: str) -> list[ModuleType]:
    """Import the packages of an extra, after `check_installed`.

    A package that is installed and fails to import raises its own error.
    """
    check_installed(*packages, extra=extra, what=what)
    return [importlib.import_module(name) for name in packages]
