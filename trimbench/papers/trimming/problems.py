"""Classification problems that an experiment names: a data set and which of its classes is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimbench.papers.validation import settings

_ENTRIES = "dataset: ..., positive: ..."


@settings
class Problem:
    """A declared data set and its positive class."""

    dataset: str
    positive: str


def check_problems(key: str, names: Sequence[str], problems: Mapping[str, object], entries: str = _ENTRIES) -> None:
    """Raise ValueError if a name in the setting `key` is not among the problems; each of them has these entries."""
    for name in names:
        if name not in problems:
            raise ValueError(
                f"{key} must be among the names in problems, {list(problems)}, got {name!r}; define it with "
                f"+problems.{name}={{{entries}}}"
            )
