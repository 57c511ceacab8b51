"""Training and test rows of one random split, as many as slow methods can cope with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench.conformant.reduced_problem import Matrix
from trimbench.papers.conformant.encoded_rows import CODE as ROWS_CODE
from trimbench.papers.conformant.encoded_rows import encoded_rows, feature_codes
from trimbench.papers.conformant.protocol import Task
from trimbench.papers.data.missingness import Missingness
from trimbench.papers.data.splits import split_rows
from trimbench.papers.study.inputs import dataset_of
from trimbench.papers.validation import settings

CODE = (*ROWS_CODE, __name__)


@settings
class Shape:
    """What becomes of a data set before it is split.

    Attributes
    ----------
    numbers : bool
        Whether its columns stay numbers, in units of standard deviations of the training rows; otherwise the protocol
        makes them zeros and ones.
    shrink : int
        Side of the squares of pixels that become one, by majority (a tie is 1); 1 leaves an image as it is.
    train_rows, test_rows : int
        How many rows at most.
    """

    numbers: bool
    shrink: int
    train_rows: int
    test_rows: int


@dataclass(frozen=True, eq=False)
class SplitTables:
    """Rows of a split.

    Attributes
    ----------
    train, test : ndarray of shape (n_rows, n_columns)
    train_labels, test_labels : ndarray of int
    n_classes : int
    columns : sequence of sequence of int
        Columns of each feature.
    numbers : bool
        Whether columns are real numbers, not zeros and ones.
    image : sequence of int or None
        Height and width where the features are pixels.
    """

    train: Matrix
    test: Matrix
    train_labels: NDArray[Any]
    test_labels: NDArray[Any]
    n_classes: int
    columns: Sequence[Sequence[int]]
    numbers: bool
    image: Sequence[int] | None

    def hidden(
        self, how: Missingness, fraction: float, rng: np.random.Generator, n_copies: int
    ) -> tuple[Matrix, Matrix]:
        """Return copies of the training rows, one after the other, and the test rows, with NaN for hidden features.

        One mechanism hides them all, each copy of a row with a mask of its own.
        """
        rows = np.vstack([np.tile(self.train, (n_copies, 1)), self.test])
        values = rows if self.numbers else feature_codes(rows, self.columns)
        features = [str(place) for place in range(len(self.columns))]
        mask = how.draw(len(rows), features, fraction, rng, values)
        owners = np.repeat(np.arange(len(self.columns)), [len(own) for own in self.columns])
        rows[mask[:, owners]] = np.nan
        return rows[: -len(self.test)], rows[-len(self.test) :]


def split_tables(task: Task, shape: Shape) -> SplitTables:
    """Return the rows of a task; those beyond the limits are left out at random."""
    found = _numbers(task) if shape.numbers else _binary(task, shape.shrink)
    rng = np.random.default_rng(task.split_seed)
    train = np.sort(rng.permutation(len(found.train))[: shape.train_rows])
    test = np.sort(rng.permutation(len(found.test))[: shape.test_rows])
    return dataclasses.replace(
        found,
        train=found.train[train],
        test=found.test[test],
        train_labels=found.train_labels[train],
        test_labels=found.test_labels[test],
    )


def _numbers(task: Task) -> SplitTables:
    loaded = dataset_of(dataclasses.asdict(task.data))
    table = loaded.features.to_numpy(dtype=np.float64)
    if np.isnan(table).any():
        raise ValueError(f"numbers must be data sets without missing values, got {task.name!r}")
    codes = loaded.target.cat.codes.to_numpy(dtype=np.int64)
    train, test = split_rows(len(table), task.protocol.test_fraction, task.split_seed)
    spread = table[train].std(axis=0)
    table = (table - table[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    columns = [(column,) for column in range(table.shape[1])]
    n_classes = len(loaded.target.cat.categories)
    return SplitTables(table[train], table[test], codes[train], codes[test], n_classes, columns, True, None)


def _binary(task: Task, shrink: int) -> SplitTables:
    rows = encoded_rows(task)
    train, test, columns, image = rows.train, rows.test, rows.columns, task.protocol.image or None
    if shrink > 1:
        if image is None or any(side % shrink for side in image):
            raise ValueError(f"shrink must divide the sides of an image, got {shrink} for {task.name!r} ({image})")
        train, test = (_shrunk(part, image, shrink) for part in (train, test))
        image = [side // shrink for side in image]
        columns = tuple((column,) for column in range(train.shape[1]))
    return SplitTables(
        train.astype(np.float64),
        test.astype(np.float64),
        rows.train_labels,
        rows.test_labels,
        len(rows.classes),
        columns,
        False,
        image,
    )


def _shrunk(rows: NDArray[Any], image: Sequence[int], shrink: int) -> NDArray[Any]:
    height, width = (side // shrink for side in image)
    squares = rows.reshape(len(rows), height, shrink, width, shrink)
    return np.asarray(squares.mean(axis=(2, 4)) >= 0.5).reshape(len(rows), height * width)
