"""What the files of a finished run say: the tables of its experiments, and what they were run with."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimbench.papers.validation import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

# Folders of other commands, beside the runs or inside one.
_NOT_FAMILIES = ("jobs", "sweeps", "comparisons")
# A table is named by its part of the file's name; these have none. Parts with the points of a figure end with the last.
REPORTED, MAIN, POINTS = "reported numbers", "table", "points"


@dataclass(frozen=True, eq=False)
class StoredExperiment:
    """The tables of an experiment and the points of its figures, by part, with cells as text, and its provenance.

    The stem is that of its files, for example "trimming/table6,engine=sdd" of the experiment "trimming/table6".
    """

    stem: str
    name: str
    tables: Mapping[str, pd.DataFrame]
    about: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The experiments of a run by stem."""

    name: str
    experiments: Mapping[str, StoredExperiment]


def is_run(folder: Path) -> bool:
    """Tell whether a folder has the files of an experiment."""
    return next(_descriptions(folder), None) is not None


def read_run(name: str, folder: Path) -> StoredRun:
    """Return what the files of a run say; ConfigurationError if one is missing or cannot be read."""
    found = {}
    for path, stem, about in _descriptions(folder):
        found[stem] = StoredExperiment(stem, str(about["experiment"]), _tables(path, about["files"]), about)
    return StoredRun(name, dict(sorted(found.items())))


def _descriptions(folder: Path) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """Yield the file with the provenance of each experiment, its stem, and its content."""
    for family in folder.iterdir() if folder.is_dir() else ():
        for path in family.rglob("*.json") if family.is_dir() and family.name not in _NOT_FAMILIES else ():
            try:
                about = json.loads(path.read_text(encoding="utf-8"))
                name, _ = str(about["experiment"]), about["files"]
            except (OSError, ValueError, KeyError, TypeError):
                continue
            stem = path.relative_to(folder).with_suffix("").as_posix()
            # In the folder above several runs, the stem begins with the name of a run.
            if stem == name or stem.startswith(f"{name},"):
                yield path, stem, about


def _tables(about: Path, files: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return the tables and the points of figures, but not the rows of jobs, which both summarise."""
    stem, tables = about.name.removesuffix(".json"), {}
    for name in files:
        plain = name.removesuffix(".gz")
        if plain.endswith(".csv") and not plain.endswith("_rows.csv"):
            frame = _read(about.with_name(name))
            part = plain.removeprefix(stem).removesuffix(".csv").lstrip("_") or MAIN
            tables[REPORTED if {"cell", "reproduced", "verdict"} <= set(frame) else part] = frame
    return tables


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except pd.errors.EmptyDataError:  # a table without columns
        return pd.DataFrame()
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"runs: {path} cannot be read ({error}); write it again with task=report") from error
