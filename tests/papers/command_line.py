"""The commands of the papers' project in tests: their settings, their files and smaller projects."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from tests.reproduction.command_line import Answer as Answer
from tests.reproduction.command_line import Command as Command
from tests.reproduction.command_line import results as results
from tests.reproduction.command_line import run_here as run_here
from tests.reproduction.command_line import start as start
from tests.reproduction.command_line import tables as tables
from tests.reproduction.command_line import write as write
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.project import project, use

PROJECT = Catalogue()
T4, T6, CURVE = "experiment=trimming/table4", "experiment=trimming/table6", "experiment=trimming/breast_cancer"
# Settings of Table 4 that are not the paper's, and what files of it are called then.
OTHER, YET_OTHER = "instances=[[0.4,0.5,0.5]]", "instances=[[0.6,1,0]]"
SMALL = (CURVE, "budgets=[1,2]", "splits=1", "evaluation_limit=10", "executor=serial")
# The experiments of the project in tests that have the fixture `few`.
FEW = ("conformant/table4", *(f"trimming/{one}" for one in ("breast_cancer", "curves", "figure5", "table4", "table6")))


def table_of(name: str, run: str = "quick") -> pd.DataFrame:
    """Return the table of this name that a command wrote last, whatever the settings that were changed."""
    return pd.read_csv(file_of(f"{name}.csv", run))


def file_of(name: str, run: str = "quick") -> Path:
    """Return the file of an experiment that was written last, for example of ``trimming/table6_rows.csv``."""
    stem = next((known for known in sorted(PROJECT.names("experiment"), reverse=True) if name.startswith(known)), "")
    folder = Path("results", run)
    # Where the settings in a name end, only the ``.json`` of these files tells.
    stems = [path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob(f"{stem}*.json")]
    own = [one for one in stems if one.partition("__")[0] == stem] if stem else [""]
    paths = [folder / f"{one}{name.removeprefix(stem)}{end}" for one in own for end in ("", ".gz")]
    found = [path for path in paths if path.is_file()]
    assert found, f"no {name} among {sorted(map(str, folder.rglob('*')))}"
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def configured_in(folder: Path) -> Iterator[None]:
    """Let the project have its configuration in another folder, until the end of a fixture."""
    before = project()
    use(dataclasses.replace(before, configuration=folder))
    yield
    use(before)


def project_of(folder: Path, *names: str) -> Path:
    """Copy the project's configuration into a new folder, of its experiments only these, and return the folder."""
    shutil.copytree(project().configuration, folder, ignore=shutil.ignore_patterns("experiment"))
    for name in names:
        write(folder / "experiment", {f"{name}.yaml": PROJECT.path("experiment", name).read_text(encoding="utf-8")})
    return folder
