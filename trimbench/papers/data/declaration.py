"""Data sets as they are declared in YAML, checked and frozen."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

from pydantic import Field

from trimbench.papers.data.bundled_source import BundledSource
from trimbench.papers.data.cache import Cache
from trimbench.papers.data.csv_source import CsvSource
from trimbench.papers.data.dataset import Facts
from trimbench.papers.data.openml_source import OpenMLSource
from trimbench.papers.data.r_source import RSource
from trimbench.papers.data.simulated_source import SimulatedSource
from trimbench.papers.data.source import Source
from trimbench.papers.validation import validated

# A new kind of source is a module with its class, and its name here.
_AnySource = Annotated[
    OpenMLSource | BundledSource | CsvSource | RSource | SimulatedSource,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class DatasetDeclaration:
    """A named data set and where it comes from."""

    name: str
    source: Source

    @property
    def facts(self) -> Facts:
        """What is known about the data."""
        return self.source.facts

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""
        return self.source.copies(cache)


def declare_dataset(name: str, mapping: Mapping[str, object]) -> DatasetDeclaration:
    """Check the declaration of a data set: ``kind``, the keys of that kind (the fields of its class), and ``facts``.

    Raises `ConfigurationError`, which names the data set and the key, if a key or its value is wrong.
    """
    return DatasetDeclaration(name, validated(cast("type[Source]", _AnySource), mapping, f"data set {name!r}"))
