"""Scores of weighted rows given their kept features, and the agreements that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray
from trimbench.networks.inference.joint import ContractionTooLarge
from trimbench.networks.values import encode_compactly, plain_table
from trimbench.trimming.decisions import (
    HIGHEST_LOG_ODDS,
    NO_MASS,
    TIED_LOG_ODDS,
    TRACE,
    check_feature_columns,
    most_probable,
)

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.trimming.classifier import BayesianClassifier


FloatArray = NDArray[np.float64]

# With at most this many instances of all features, the joint probabilities of any subset come from one table.
_MAX_TABLE, _MAX_OPERATIONS = 2**16, 2**28


class Scores(Protocol):
    """What a trimmed classifier says about rows: log-odds, or log Pr(c, f') if it predicts the most probable class."""

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""

    @property
    def prior(self) -> FloatArray:
        """The score of a row without features, shape () or (n_classes,)."""

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the log-odds, shape (n_rows,), or logarithms up to a constant of the row, (n_rows, n_classes).

        Log-odds are NaN, and all logarithms of a row -inf, where it is impossible under the model.

        Parameters
        ----------
        kept : sequence of int
            Positions of the kept features.
        codes : ndarray of int, shape (n_rows, len(kept))
            Value indices.
        """


def summed(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the sum of log-odds; NaN where something is impossible under both classes."""
    with np.errstate(invalid="ignore"):
        return np.asarray(left + right)


def decisive(scores: FloatArray, prior: FloatArray) -> FloatArray:
    """Return scores with those of the prior where a row is impossible, as in `BayesianClassifier.decide`."""
    impossible = np.isnan(scores) if scores.ndim == 1 else np.isneginf(scores).all(axis=1)
    if not impossible.any():
        return scores
    return np.where(impossible.reshape(-1, *[1] * prior.ndim), prior, scores)


def capped(log_odds: FloatArray) -> FloatArray:
    """Return log-odds with finite ones at most `HIGHEST_LOG_ODDS`."""
    return np.where(np.isinf(log_odds), log_odds, np.minimum(log_odds, HIGHEST_LOG_ODDS))


@dataclass(frozen=True, eq=False)
class AdditiveScores:
    """Scores of naive Bayes: the prior's and a weight for each kept value.

    Attributes
    ----------
    prior : ndarray of shape () or (n_classes,)
    weights : tuple of ndarrays, the i-th of shape (cardinality_i,) or (cardinality_i, n_classes)
        Log-likelihood ratios, infinite where a value is impossible under a class; or logarithms of likelihoods.
    """

    prior: FloatArray
    weights: tuple[FloatArray, ...]

    @classmethod
    def of(cls, classifier: BayesianClassifier) -> AdditiveScores:
        """Return the scores of a naive Bayes classifier."""
        with np.errstate(divide="ignore"):
            logs = [classifier.log_prior[:, None], *(np.log(table) for table in classifier.tables)]
        several = classifier.threshold is None
        parts = [np.ascontiguousarray(table.T) if several else summed(table[0], -table[1]) for table in logs]
        return cls(np.asarray(parts[0][0]), tuple(parts[1:]))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return tuple(len(weights) for weights in self.weights)

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the scores of rows, shape (n_rows,) or (n_rows, n_classes)."""
        total = np.repeat(self.prior[None], len(codes), axis=0)
        for feature, column in zip(kept, codes.T, strict=True):
            total = summed(total, self.weights[feature][column])
        return total


class GeneralScores:
    """Scores of any other model, computed anew for each set of kept features."""

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._classifier = classifier
        self._has_table = math.prod(classifier.cardinalities) <= _MAX_TABLE
        try:
            if self._has_table:
                classifier.prepare_table(max_operations=_MAX_OPERATIONS)
                # The table has 0 for probabilities below the smallest float, even those of rows that occur.
                self._has_table = classifier.prior.min() > TRACE  # type: ignore[assignment, unused-ignore]
        except ContractionTooLarge:
            self._has_table = False

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each feature."""
        return self._classifier.cardinalities

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return the scores of rows, shape (n_rows,) or (n_rows, n_classes)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._weights(kept, codes))
        return logs.T if self._classifier.threshold is None else summed(logs[0], -logs[1])

    @property
    def prior(self) -> FloatArray:
        """The score of a row without features, shape () or (n_classes,)."""
        return np.asarray(self.of_rows((), np.empty((1, 0), dtype=np.int64))[0])

    def _weights(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        classifier = self._classifier
        if self._has_table:
            shape = [classifier.cardinalities[feature] for feature in kept]
            places = np.ravel_multi_index(tuple(codes.T), shape) if shape else np.zeros(len(codes), dtype=np.int64)
            return classifier.joint(kept)[:, places]
        # What is not kept is summed out for these rows alone.
        return classifier.with_features([classifier.features[i] for i in kept]).weights(codes)


def scores_of(classifier: BayesianClassifier) -> Scores:
    """Return the scores of a classifier: sums for naive Bayes, else from the model."""
    return AdditiveScores.of(classifier) if classifier.is_naive_bayes else GeneralScores(classifier)


# The best cut of every subset that has one feature more, for naive Bayes.

# A search on a table with fewer cells ends sooner in NumPy than numba starts.
_SMALL = 1_500


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of value indices, laid out for the kernels.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows, n_features)
    cardinalities : tuple of int
    weights : tuple of ndarrays, the i-th of shape (cardinality_i,)
        What each value adds to the log-odds.
    signed : ndarray of shape (n_rows,)
        Weight of each row, negative where the original decides against the positive class.
    prior : ndarray of shape ()
        Log-odds of a row without features.
    """

    codes: Codes
    cardinalities: tuple[int, ...]
    weights: tuple[FloatArray, ...]
    signed: FloatArray
    prior: FloatArray

    @cached_property
    def are_possible(self) -> bool:
        """Whether all rows are possible: no two values rule out different classes."""
        values = np.concatenate([self.prior.reshape(1), *self.weights])
        return not (np.isnan(values).any() or (np.isposinf(values).any() and np.isneginf(values).any()))

    @cached_property
    def binary(self) -> NDArray[np.int64]:
        """Positions of the binary features."""
        return np.flatnonzero(np.array(self.cardinalities) == 2)

    @cached_property
    def packed(self) -> NDArray[np.uint8]:
        """The binary features, shape (n_bytes, n_rows): bit 7 - j of byte b is feature 8 b + j of `binary`."""
        return np.ascontiguousarray(np.packbits(self.codes[:, self.binary].astype(np.bool_), axis=1).T)

    @cached_property
    def binary_weights(self) -> FloatArray:
        """Weights of the binary features, shape (n_binary, 2)."""
        return np.array([self.weights[feature] for feature in self.binary]).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of the kept features by increasing log-odds.

    Attributes
    ----------
    places : ndarray of int64, shape (n_rows,)
        The cell of each row.
    log_odds : ndarray of shape (n_cells,)
    """

    places: NDArray[np.int64]
    log_odds: FloatArray

    @classmethod
    def sorted(cls, places: NDArray[np.int64], log_odds: FloatArray) -> Cells:
        """Return the cells in the order of their log-odds."""
        order = np.argsort(log_odds, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return cls(rank[places], log_odds[order])


def balances_with_each(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, shape (n_candidates,)."""
    if columns.codes.size < _SMALL or not columns.are_possible:
        return highest_balances(columns, cells, candidates)
    return compiled_balances(columns, cells, candidates)


def highest_balances(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, by NumPy."""
    n_cells = len(cells.log_odds)
    best = np.empty(len(candidates))
    for i, feature in enumerate(candidates):
        n_values = columns.cardinalities[feature]
        parts = cells.places * n_values + columns.codes[:, feature]
        mass = masses(parts, columns.signed, n_cells * n_values)
        log_odds = summed(cells.log_odds[:, None], columns.weights[feature][None, :]).reshape(-1)
        best[i] = highest_balance(decisive(log_odds, columns.prior), mass)
    return best


def highest_balance(log_odds: FloatArray, mass: FloatArray) -> float:
    """Return the highest balance over all thresholds of parts with these log-odds and signed masses."""
    present = np.abs(mass) > NO_MASS
    values = capped(log_odds[present])
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(mass[present][order])
    if not values.size:
        return 0.0
    with np.errstate(invalid="ignore"):  # inf - inf is no distance, and not above any number
        ends = np.diff(values) > TIED_LOG_ODDS
    total = float(below[-1])
    # Below the cut: nothing, or everything up to the end of a group of ties. No threshold is above a posterior of 1.
    highest = max(total, -total) if values[-1] < math.inf else total
    return max(highest, float((total - 2.0 * below[:-1][ends]).max(initial=-math.inf)))


def compiled_balances(columns: Columns, cells: Cells, candidates: Sequence[int]) -> FloatArray:
    """Return the highest balance over all thresholds with each candidate added, by kernels for possible rows."""
    from trimbench.trimming import kernels

    totals = masses(cells.places, columns.signed, len(cells.log_odds))
    wanted = np.zeros(len(columns.cardinalities), dtype=np.bool_)
    wanted[list(candidates)] = True
    found = np.empty(len(columns.cardinalities))
    if wanted[columns.binary].any():
        found[columns.binary] = kernels.binary_balances(
            columns.packed,
            cells.places,
            columns.signed,
            cells.log_odds,
            totals,
            columns.binary_weights,
            wanted[columns.binary],
        )
    for feature in candidates:
        if columns.cardinalities[feature] != 2:
            codes = np.ascontiguousarray(columns.codes[:, feature], dtype=np.int64)
            weights = columns.weights[feature]
            found[feature] = kernels.balance(codes, cells.places, columns.signed, cells.log_odds, weights)
    return found[list(candidates)]


# Rows that agree on the kept features: one cell for each combination of values that occurs.


def cells_of(codes: Codes, kept: Sequence[int], cardinalities: Sequence[int]) -> tuple[NDArray[np.int64], Codes]:
    """Return the cell of each row, and the value indices of each cell, of shape (n_cells, n_kept)."""
    keys = np.zeros(len(codes), dtype=np.int64)
    size = 1
    for feature in kept:
        if size > 2**62 // cardinalities[feature]:
            _, keys = np.unique(keys, return_inverse=True)
            keys, size = keys.reshape(-1), int(keys.max()) + 1
        keys = keys * cardinalities[feature] + codes[:, feature]
        size *= cardinalities[feature]
    if size <= 4 * len(codes):  # counting is quicker than sorting
        first = np.full(size, -1, dtype=np.int64)
        first[keys[::-1]] = np.arange(len(codes) - 1, -1, -1)
        occurs = first >= 0
        return (np.cumsum(occurs) - 1)[keys], codes[first[occurs]][:, list(kept)]
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    return places.reshape(-1).astype(np.int64), codes[first][:, list(kept)]


# Rows of value indices with the original's decisions and weights: from a data set, from a model, or from both.

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
    """Return the blend of a model's rows and a data set's: the latter have the total weight `weight`, in [0, 1]."""
    if model is None or weight == 1.0:
        return rows
    if weight == 0.0:
        return model
    return WeightedRows(
        np.concatenate([model.codes, rows.codes]),
        np.concatenate([model.decisions, rows.decisions]),
        np.concatenate([(1.0 - weight) * model.weights, weight * rows.weights]),
    )


class CodedRows(NamedTuple):
    """Rows as value indices of all features of a classifier, in their order; shape (n_rows, n_features)."""

    codes: NDArray[np.int64]


def encoded_rows(rows: pd.DataFrame | CodedRows, values: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    """Return the value indices of a table of rows.

    Parameters
    ----------
    rows : DataFrame with (at least) one column for each feature, or CodedRows
    values : mapping from feature to the names of its values

    Raises
    ------
    ValueError
        When `rows` is not a table or has fewer than two rows, a column is absent, or a value is missing or unknown.
    """
    table: Any = rows.codes if isinstance(rows, CodedRows) else plain_table(rows)
    if not isinstance(rows, CodedRows) and not (hasattr(table, "columns") and hasattr(table, "iloc")):
        raise ValueError(
            f"rows must be a DataFrame with one column for each feature, got {type(table).__name__}; "
            "give it the columns of the features by name"
        )
    if len(table) < 2:
        raise ValueError(
            f"rows must have at least two rows, got {len(table)}; leave rows out to trim by the model alone"
        )
    if isinstance(rows, CodedRows):
        return rows.codes
    check_feature_columns(table.columns, values)
    try:
        return encode_compactly(table, values).astype(np.int64)
    except ValueError as error:
        raise ValueError(f"rows must hold values that the classifier knows: {str(error)[:380]}") from error


# Agreement on rows of every subset that has one feature more, for naive Bayes models of several classes.

# Below this many numbers to compare, NumPy is as quick as a compiled kernel.
_SMALL_CLASS_AGREEMENTS = 20_000


def agreement_with(
    rows: WeightedRows,
    feature: int,
    weights: FloatArray,
    places: NDArray[np.int64],
    logs: FloatArray,
    prior: FloatArray,
) -> float:
    """Return the weight of the rows whose most probable class, with one feature more, is the original's decision.

    Parameters
    ----------
    weights : ndarray of shape (n_values, n_classes)
        log Pr(value | c) of the added feature.
    places : ndarray of int64, shape (n_rows,)
        The cell of each row.
    logs : ndarray of shape (n_cells, n_classes)
        log Pr(c, f') of each cell.
    prior : ndarray of shape (n_classes,)
        Logarithms of the probabilities of the classes.
    """
    if len(places) * logs.shape[1] < _SMALL_CLASS_AGREEMENTS or np.isinf(logs).any() or np.isinf(weights).any():
        decided = most_probable(decisive(logs[places] + weights[rows.codes[:, feature]], prior).T, logarithms=True)
        return float(rows.weights[decided == rows.decisions].sum())
    from trimbench.trimming.kernels import agreement

    return float(agreement(logs, places, rows.codes[:, feature], weights, rows.decisions, rows.weights))
