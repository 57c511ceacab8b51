"""What trimming on rows needs of a classifier: its decisions on rows, rows of its model, and agreements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench.networks.value_codes import IntegerArray
from trimbench.trimming.rows.objective import Objective, ThresholdObjective, odds_as_joint
from trimbench.trimming.rows.scores import scores_of
from trimbench.trimming.rows.weighted_rows import Codes, WeightedRows, encoded_rows, small_codes
from trimbench.trimming.thresholds import is_positive

if TYPE_CHECKING:
    import pandas as pd

    from trimbench.trimming.classifier import BayesianClassifier

# A model with at most so many instances of its features stands for itself; of others so many rows are drawn.
MAX_INSTANCES = 2**12
N_DRAWN = 10_000


class Problem(Protocol):
    """A classifier as trimming on rows sees it. Decisions are positions of classes; two classes: 1 is positive."""

    def rows(self, frame: pd.DataFrame) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return the distribution of the model over complete rows, or rows drawn from it."""

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return what the classifier trimmed to some features decides on complete rows."""


class ThresholdProblem:
    """A classifier of two classes with a threshold."""

    def __init__(self, classifier: BayesianClassifier) -> None:
        self._classifier = classifier
        self._scores = scores_of(classifier)

    def rows(self, frame: pd.DataFrame) -> WeightedRows:
        """Return the rows of a data set with the decisions of the original."""
        classifier = self._classifier
        codes = encoded_rows(frame, dict(zip(classifier.features, classifier.value_names, strict=True)))
        return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))

    def model_rows(self, rng: np.random.Generator) -> WeightedRows:
        """Return all instances with their probabilities where they are few, else rows drawn from the model."""
        cardinalities = self._scores.cardinalities
        n_instances = math.prod(cardinalities)
        if n_instances > MAX_INSTANCES:
            codes = self._classifier.draw(N_DRAWN, rng)
            return self._decided(codes, np.full(len(codes), 1.0 / len(codes)))
        positive, negative = self._classifier.joint(range(len(cardinalities)))
        possible = np.flatnonzero(positive + negative > 0)
        codes = np.stack(np.unravel_index(possible, cardinalities), axis=1)
        mass = (positive + negative)[possible]
        decided = is_positive(positive[possible], negative[possible], self._classifier.threshold)
        return WeightedRows(small_codes(codes, cardinalities), decided.astype(np.int64), mass / mass.sum())

    def objective(self, rows: WeightedRows) -> Objective:
        """Return the agreement of feature subsets on weighted rows."""
        return ThresholdObjective(rows, self._scores, self._classifier.threshold)

    def decisions(self, kept: Sequence[int], threshold: float | None, codes: Codes) -> NDArray[np.int64]:
        """Return what the classifier trimmed to some features decides on complete rows: 1 for positive, else 0."""
        positive, negative = odds_as_joint(self._scores.log_odds(kept, codes[:, list(kept)]))
        level = self._classifier.threshold if threshold is None else threshold
        return is_positive(positive, negative, level).astype(np.int64)

    def _decided(self, codes: IntegerArray, weights: NDArray[np.float64]) -> WeightedRows:
        small = small_codes(codes, self._scores.cardinalities)
        return WeightedRows(small, self._classifier.decide(small).astype(np.int64), weights)
