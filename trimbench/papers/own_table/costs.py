"""The file of the costs of features."""

from __future__ import annotations

from pathlib import Path

from trimbench.papers.data.tables.files import read_file
from trimbench.papers.data.tables.wording import quoted, shown
from trimbench.papers.validation import ConfigurationError


def read_costs(path: Path) -> dict[str, float]:
    """Read a table with the columns ``feature`` and ``cost``, one line for each feature.

    Raises ConfigurationError, or DeclarationError for what is no table, each in a line.
    """
    if not path.is_file():
        raise ConfigurationError(
            f"costs must be a file with the columns feature and cost, got {str(path)!r}; correct the path"
        )
    table, _ = read_file("costs", path)
    if list(table.columns[:2]) != ["feature", "cost"]:
        found = shown([str(name) for name in table.columns], 5)
        raise ConfigurationError(f"costs must have the columns feature and cost, got {found} in {path}; rename them")
    costs: dict[str, float] = {}
    for name, text in zip(table["feature"].astype(str), table["cost"].astype(str), strict=True):
        if name in costs:
            raise ConfigurationError(f"costs must have each feature once, got {quoted(name)} again in {path}")
        try:
            costs[name] = float(text.replace(",", "."))
        except ValueError:
            raise ConfigurationError(f"costs must be numbers, got {quoted(text)} for {name} in {path}") from None
    return costs
