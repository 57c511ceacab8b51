"""Packages that only some calls need: an error says which extra installs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


class MissingExtraError(ImportError):
    """A call needs packages that were not installed with trimbench."""


def required(*packages: str, extra: str, what: str) -> list[ModuleType]:
    """Import the packages of an extra.

    Parameters
    ----------
    *packages : str
        Names under which they are imported.
    extra : str
        The extra of trimbench that installs them.
    what : str
        What needs them, for the message: a parameter with its value, or a command.

    Returns
    -------
    list of module

    Raises
    ------
    MissingExtraError
        If one of them is not installed. A package that is installed and fails to import raises its own error.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs the package {' and '.join(missing)}, which is not installed; write "
            f"pip install 'trimbench[{extra}]'"
        )
    return [import_module(name) for name in packages]
