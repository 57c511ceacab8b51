"""The task ``compare``: what differs between two finished runs."""

from __future__ import annotations

import sys
from pathlib import Path

from trimbench.papers.commands.invocation import Invocation
from trimbench.papers.reporting.comparisons.comparison import compare_runs
from trimbench.papers.reporting.comparisons.files import summarised, write_comparison
from trimbench.papers.reporting.comparisons.runs import is_run, read_run
from trimbench.papers.reporting.file_names import safe_name
from trimbench.papers.reporting.runs import runs_in
from trimbench.papers.validation import ConfigurationError


def compare(invocation: Invocation) -> int:
    """Print and write what differs between two runs; return 0, whether or not something does."""
    root, runs = Path(invocation.settings.results), invocation.settings.runs
    if len(runs) != 2:
        raise ConfigurationError(
            f"runs must be the names of two runs, got {_listed(runs)}; write runs=[a,b]; {_choice(root)}"
        )
    first, second = (read_run(name, _folder(name, root)) for name in runs)
    comparison = compare_runs(first, second)
    sys.stdout.write(f"# {first.name} and {second.name}\n\n{summarised(comparison)}\n\n")
    name = safe_name(",".join(runs), stands_for=runs if any("," in run for run in runs) else None)
    for path in write_comparison(comparison, root / "comparisons" / name):
        sys.stdout.write(f"  {path}\n")
    return 0


def _folder(name: str, root: Path) -> Path:
    """Return the folder of a run, given by its name below the results or by its path."""
    for folder in (root / name, Path(name).expanduser()):
        if is_run(folder):
            return folder
    raise ConfigurationError(f"runs must name finished runs or their folders, got {name!r}; {_choice(root)}")


def _choice(root: Path) -> str:
    names = runs_in(root)
    return f"the runs in {root} are: {', '.join(names)}" if names else f"there is no run in {root} yet"


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names)) if names else "none"
