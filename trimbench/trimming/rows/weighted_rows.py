"""Rows of value indices with the original's decisions and weights: from a data set, from a model, or from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.value_codes import IntegerArray, encode_columns

if TYPE_CHECKING:
    import pandas as pd

Codes = NDArray[np.uint8] | NDArray[np.int64]

_MANY_FEATURES = 40


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows, what the original decides on each, and how much each counts.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
        Value indices.
    decisions : ndarray of int64, shape (n_rows,)
        Position of the class; for two classes 1 is positive and 0 negative.
    weights : ndarray of shape (n_rows,)
        They add up to 1.
    """

    codes: Codes
    decisions: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, places: NDArray[np.bool_] | NDArray[np.int64]) -> WeightedRows:
        """Return some of the rows; their weights are scaled to add up to 1."""
        weights = self.weights[places]
        return WeightedRows(self.codes[places], self.decisions[places], weights / weights.sum())

    def merged(self) -> WeightedRows:
        """Return each distinct pair of row and decision once, with the sum of its weights.

        Rows of many features hardly ever repeat: they are returned as they are.
        """
        if self.codes.shape[1] > _MANY_FEATURES:
            return self
        table = np.column_stack([self.codes, self.decisions]).astype(self.codes.dtype, copy=False)
        packed = np.ascontiguousarray(table).view(np.dtype((np.void, table.dtype.itemsize * table.shape[1])))
        _, first, place = np.unique(packed.reshape(-1), return_index=True, return_inverse=True)
        weights = masses(place.reshape(-1), self.weights, len(first))
        return WeightedRows(self.codes[first], self.decisions[first], weights)


def masses(places: NDArray[np.int64], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the sum of the weights at each of `size` places."""
    return np.asarray(np.bincount(places, weights=weights, minlength=size), dtype=np.float64)


def small_codes(codes: IntegerArray, cardinalities: Sequence[int]) -> Codes:
    """Return value indices as bytes where that is enough."""
    return codes.astype(np.uint8) if max(cardinalities, default=0) <= 256 else codes.astype(np.int64)


def pooled(model: WeightedRows | None, rows: WeightedRows, weight: float) -> WeightedRows:
    """Return the blend of a model's rows and a data set's: `weight` for all of the latter together, in [0, 1]."""
    if model is None or weight == 1.0:
        return rows
    if weight == 0.0:
        return model
    return WeightedRows(
        np.concatenate([model.codes, rows.codes]),
        np.concatenate([model.decisions, rows.decisions]),
        np.concatenate([(1.0 - weight) * model.weights, weight * rows.weights]),
    )


def encoded_rows(rows: pd.DataFrame, values: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    """Return the value indices of a table of rows.

    Parameters
    ----------
    rows : DataFrame with (at least) one column for each feature
    values : mapping from feature to the names of its values

    Raises
    ------
    ValueError
        When it is no table or has fewer than two rows, a column is absent, or a cell is missing or unknown.
    """
    if not hasattr(rows, "columns") or not hasattr(rows, "iloc"):
        raise ValueError(
            f"rows must be a DataFrame with one column for each feature, got {type(rows).__name__}; "
            "give it the columns of the features by name"
        )
    if len(rows) < 2:
        raise ValueError(
            f"rows must have at least two rows, got {len(rows)}; leave rows out to trim by the model alone"
        )
    columns = [str(label) for label in rows.columns]
    counts = {name: columns.count(name) for name in values}
    if wrong := [name for name, count in counts.items() if count != 1]:
        raise ValueError(
            f"rows must have one column for each of the {len(values)} features, got {counts[wrong[0]]} columns for "
            f"{_short(wrong[0])} ({len(wrong)} features like that)"
        )
    try:
        return encode_columns(rows, values)
    except ValueError as error:
        text = str(error)
        raise ValueError(f"rows must hold values that the classifier knows: {_short(text, 380)}") from error


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
