"""The methods as scikit-learn estimators, each loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimbench.estimators.naive_conformant import IncompleteRowsWarning, NaiveConformantClassifier
    from trimbench.estimators.selection_corrected import SelectionCorrectedNB

__all__ = ["IncompleteRowsWarning", "NaiveConformantClassifier", "SelectionCorrectedNB"]

_HOME = {
    "IncompleteRowsWarning": "trimbench.estimators.naive_conformant",
    "NaiveConformantClassifier": "trimbench.estimators.naive_conformant",
    "SelectionCorrectedNB": "trimbench.estimators.selection_corrected",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'trimbench.estimators' has no attribute {name!r}; it has {__all__}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
