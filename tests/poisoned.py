"""A folder from somebody else whose modules leave a trace when they run."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

# Whatever Python, this package and those below it may import by name, and this package itself.
EVERY_NAME = {*sys.stdlib_module_names, *importlib.metadata.packages_distributions(), "sitecustomize", "usercustomize"}
MODULE = """
with open({trace!r}, "a") as trace:
    trace.write(__name__ + "\\n")
raise ImportError("a module of somebody else")
"""


@dataclass(frozen=True)
class Theirs:
    """The folder, and the file in which its modules leave their names."""

    folder: Path
    trace: Path

    def plant(self, names: Collection[str]) -> None:
        """Write modules with these names."""
        self.folder.mkdir(exist_ok=True)
        for name in filter(str.isidentifier, names):
            (self.folder / f"{name}.py").write_text(MODULE.format(trace=str(self.trace)))

    def ran(self) -> set[str]:
        """Return the names of the modules that ran."""
        return {*self.trace.read_text().split()} if self.trace.exists() else set()
