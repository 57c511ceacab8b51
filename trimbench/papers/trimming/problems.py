"""Classification problems that an experiment names: a data set and which of its classes is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def chosen_problems(
    key: str, names: Sequence[str], problems: Mapping[str, Any], required: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """Return the problems of some names.

    Parameters
    ----------
    key : str
        The setting that holds the names, for messages.
    names : sequence of str
    problems : mapping from name to problem
    required : sequence of str
        Keys that each problem must have.

    Raises
    ------
    ValueError
        When a name is not among the problems, or its problem lacks a key.
    """
    chosen = {}
    for name in names:
        if name not in problems:
            raise ValueError(
                f"{key} must be among the names in problems, {list(problems)}, got {name!r}; define it with "
                f"+problems.{name}={{{', '.join(f'{entry}: ...' for entry in required)}}}"
            )
        problem = problems[name]
        if not isinstance(problem, Mapping) or not set(required) <= set(problem):
            raise ValueError(f"problems.{name} must have the keys {', '.join(required)}, got {problem!r}")
        chosen[name] = problem
    return chosen
