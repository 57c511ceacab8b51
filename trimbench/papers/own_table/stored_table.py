"""The table of a study as its jobs find it: in the user's cache, by the hash of its content."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.splits import split_rows
from trimbench.papers.data.table_reading import ReadTable
from trimbench.papers.execution.seeds import seed_for

if TYPE_CHECKING:
    import pandas as pd

_FOLDER = "tables"
_REST = "other"
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StoredTable:
    """Features and classes of all rows, without the names of files."""

    features: pd.DataFrame
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [str(name) for name in self.features.columns]

    def split(self, test_share: float, seed: int, split: int = 0) -> tuple[Rows, Rows]:
        """Return training and test rows, each class with its share in both."""
        return split_rows(
            len(self.labels), test_share, seed_for(purpose="own table", split=split, seed=seed), self.labels
        )

    def training_rows(self, test_share: float, seed: int, most: int) -> Rows:
        """Return the training rows, or as many of them as allowed, at random, each class with its share."""
        return some_rows(self.split(test_share, seed)[0], self.labels, most, seed)

    def answers(self, positive: str | None) -> NDArray[np.str_]:
        """Return the class of each row as text: of one class against the rest if there are more than two."""
        found = np.array(self.classes, dtype=str)[self.labels]
        if positive is None or len(self.classes) == 2:
            return found
        return np.where(found == positive, positive, rest_name(self.classes))


def rest_name(classes: tuple[str, ...]) -> str:
    """Return what the other classes together are called."""
    name = _REST
    while name in classes:
        name += "_"
    return name


def some_rows(rows: Rows, labels: NDArray[np.int64], most: int, seed: int) -> Rows:
    """Return at most so many of some rows, at random, each class with its share."""
    if len(rows) <= most:
        return rows
    chosen = split_rows(len(rows), most / len(rows), seed_for(purpose="fewer rows", seed=seed), labels[rows])[1]
    return rows[chosen]


def keep_table(table: ReadTable, cache: Cache) -> None:
    """Write a table to the user's cache unless it is there."""
    import pandas as pd

    path = _path(table.sha256)
    if any(copy.is_file() for copy in cache.copies(path)):
        return
    classes = pd.Categorical.from_codes(table.labels, categories=pd.Index(table.classes, dtype=str))
    frame = table.features.reset_index(drop=True).set_axis([f"x{i}" for i in range(table.features.shape[1])], axis=1)
    frame["class"] = classes
    names = [str(name) for name in table.features.columns]
    # The names of columns, which may be anything, as those of categories of a column of their own.
    frame["names"] = pd.Categorical.from_codes([0] * len(frame), categories=pd.Index(names, dtype=str))
    with cache.workspace() as folder:
        frame.to_feather(folder / "table")
        cache.keep(folder / "table", path)


@lru_cache(maxsize=2)
def stored_table(sha256: str) -> StoredTable:
    """Return the table of a study, by the hash of its content."""
    import pandas as pd

    copies = Cache.from_environment(offline=True).copies(_path(sha256))
    found = next((copy for copy in copies if copy.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"the table {sha256[:12]} is no longer in the cache; start the study again")
    frame = pd.read_feather(found)
    names = list(frame["names"].cat.categories)
    features = frame.drop(columns=["class", "names"]).set_axis(names, axis=1)
    classes = frame["class"].cat
    return StoredTable(features, np.asarray(classes.codes, dtype=np.int64), tuple(classes.categories))


def _path(sha256: str) -> str:
    return f"{_FOLDER}/{sha256}.feather"
