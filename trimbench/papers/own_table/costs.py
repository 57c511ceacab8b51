"""The file of the costs of features."""

from __future__ import annotations

from pathlib import Path

from trimbench.papers.data.reachability import one_line_reason
from trimbench.papers.validation import ConfigurationError


def read_costs(path: Path) -> dict[str, float]:
    """Read a CSV with the columns ``feature`` and ``cost``; ConfigurationError, in a line, if it is none."""
    import pandas as pd

    try:
        table = pd.read_csv(path, sep=None, engine="python", dtype=str, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"costs must be a CSV file with the columns feature and cost, got {path}: {one_line_reason(error)}; "
            "correct the path, or leave costs out for 1 each"
        ) from error
    if list(table.columns[:2]) != ["feature", "cost"]:
        found = ", ".join(map(str, table.columns[:5]))
        raise ConfigurationError(f"costs must have the columns feature and cost, got {found} in {path}; rename them")
    costs: dict[str, float] = {}
    for name, text in zip(table["feature"], table["cost"], strict=True):
        try:
            costs[str(name)] = float(str(text).replace(",", "."))
        except ValueError:
            raise ConfigurationError(f"costs must be numbers, got {text!r} for {name} in {path}") from None
    return costs
