"""Agreement on rows of classifiers that give the most probable of several classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.trimming.arg_max import ArgMaxClassifier, most_probable
from trimbench.trimming.rows.cells import cells_of
from trimbench.trimming.rows.class_agreements import agreement_with
from trimbench.trimming.rows.objective import Objective
from trimbench.trimming.rows.problem import MAX_INSTANCES, N_DRAWN
from trimbench.trimming.rows.weighted_rows import Codes, WeightedRows, encoded_rows, small_codes

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]


class LogJoint(Protocol):
    """log Pr(c, f') of a classifier of several classes."""

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return log Pr(c, f') of rows of value indices, shape (n_rows, n_classes).

        Parameters
        ----------
        kept : sequence of int
            Positions of the kept features.
        codes : ndarray of int, shape (n_rows, len(kept))
        """


class NaiveBayesLogJoint:
    """log Pr(c, f') as a sum over the kept features."""

    def __init__(self, prior: FloatArray, likelihoods: Sequence[FloatArray]) -> None:
        with np.errstate(divide="ignore"):
            self._prior = np.log(prior)
            self._tables = [np.ascontiguousarray(np.log(table).T) for table in likelihoods]

    def weights(self, feature: int) -> FloatArray:
        """Return log Pr(value | c) of a feature, shape (cardinality, n_classes)."""
        return self._tables[feature]

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return log Pr(c, f') of rows of value indices, shape (n_rows, n_classes)."""
        total = np.tile(self._prior, (len(codes), 1))
        for feature, column in zip(kept, codes.T, strict=True):
            total += self._tables[feature][column]
        return total


class GeneralLogJoint:
    """log Pr(c, f') of any other model: what is not kept is summed out for the rows alone."""

    def __init__(self, classifier: ArgMaxClassifier) -> None:
        self._classifier = classifier

    def of_rows(self, kept: Sequence[int], codes: Codes) -> FloatArray:
        """Return log Pr(c, f') of rows of value indices, shape (n_rows, n_classes), up to a constant of the row."""
        trimmed = self._classifier.with_features([self._classifier.features[feature] for feature in kept])
        return trimmed.log_weights(codes)


class ArgMaxObjective:
    """Agreement of a classifier that gives the most probable class; there is no threshold.

    Parameters
    ----------
    rows : WeightedRows
    logs : LogJoint
    cardinalities : sequence of int
        Number of values of each feature.
    """

    def __init__(self, rows: WeightedRows, logs: LogJoint, cardinalities: Sequence[int]) -> None:
        self._rows = rows.merged()
        self._logs = logs
        self._cardinalities = cardinalities

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(self._rows)

    def value(self, kept: Sequence[int]) -> float:
        """Return the agreement of a feature subset."""
        places, cells = cells_of(self._rows.codes, kept, self._cardinalities)
        return self._agreement(places, self._logs.of_rows(kept, cells))

    def values_with(self, kept: Sequence[int], additions: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the agreement of the subset with each addition."""
        places, cells = cells_of(self._rows.codes, kept, self._cardinalities)
        found = np.empty(len(additions))
        logs = self._logs.of_rows(kept, cells) if isinstance(self._logs, NaiveBayesLogJoint) else None
        for i, unit in enumerate(additions):
            if logs is None or not isinstance(self._logs, NaiveBayesLogJoint) or len(unit) > 1:
                found[i] = self.value(sorted([*kept, *unit]))
                continue
            rows, weights = self._rows, self._logs.weights(unit[0])
            agreed = agreement_with(logs, places, rows.codes[:, unit[0]], weights, rows.decisions, rows.weights)
            found[i] = min(1.0, agreed)
        return found

    def cut(self, kept: Sequence[int]) -> None:
        """Return None: there is no threshold."""

    def _agreement(self, places: NDArray[np.int64], logs: FloatArray) -> float:
        decided = most_probable(logs.T, logarithms=True)[places]
        return min(1.0, float(self._rows.weights[decided == self._rows.decisions].sum()))


class ArgMaxProblem:
    """A classifier of several classes, for `trim_on_rows`: it has no threshold.

    The model's part of the blend is all instances with their probabilities where they are few, else rows drawn from it.
    """

    def __init__(self, classifier: ArgMaxClassifier) -> None:
        self._classifier = classifier
        self._cardinalities = tuple(len(values) for values in classifier.value_names)
        self._logs: LogJoint = (
            NaiveBayesLogJoint(classifier.prior, classifier.likelihoods)
            if classifier.is_naive_bayes
            else GeneralLogJoint(classifier)
        )

    def rows(self, frame: pd.DataFrame) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""
        codes = encoded_rows(frame, self._values)
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return all instances with their probabilities where they are few, else rows drawn from the model."""
        classifier = self._classifier
        if math.prod(self._cardinalities) <= MAX_INSTANCES:
            mass = classifier.joint(range(len(self._cardinalities))).sum(axis=0)
            possible = np.flatnonzero(mass > 0)
            codes = np.stack(np.unravel_index(possible, self._cardinalities), axis=1)
            return self._decided(codes, mass[possible] / mass.sum())
        codes = classifier.draw(N_DRAWN, rng).astype(np.int64)
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""
        return ArgMaxObjective(rows, self._logs, self._cardinalities)

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return the position of the class that the classifier trimmed to some features gives to complete rows."""
        logs = self._logs.of_rows(kept, codes[:, list(kept)])
        return most_probable(logs.T, logarithms=True).astype(np.int64)

    @property
    def _values(self) -> Mapping[str, Sequence[str]]:
        return dict(zip(self._classifier.features, self._classifier.value_names, strict=True))

    def _decided(self, codes: NDArray[np.int64], weights: FloatArray) -> WeightedRows:
        small = small_codes(codes, self._cardinalities)
        return WeightedRows(small, self.decisions(range(codes.shape[1]), None, small), weights)
