"""What every kind of source of data sets has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from pathlib import Path

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset, Facts
from trimbench.papers.validation import settings


@settings
class Source(ABC):
    """Where a data set comes from: the keys of its declaration, among them `kind`, and how to load it."""

    facts: Facts = field(default_factory=Facts)

    @abstractmethod
    def load(self, name: str, cache: Cache) -> Dataset:
        """Load the data set, downloading it first if necessary, and check its facts; `name` is for messages."""

    def copies(self, cache: Cache) -> list[list[Path]]:
        """Return, for each file that is needed, where copies of it may be."""
        return []
