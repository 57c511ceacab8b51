"""What policies of asking need of the estimators: raw columns in place of coded features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import Matrix, Vector
from trimbench.acquisition.beliefs import Beliefs, Decide, DrawnAnswers, DrawnBeliefs, Objective
from trimbench.conformant.asking import ConformantAsker
from trimbench.estimators.columns import checked_cells, cost_by_name, groups_by_name
from trimbench.estimators.densities.density import Density
from trimbench.estimators.densities.draws import RandomNumbers
from trimbench.networks.discretize import ColumnRule
from trimbench.networks.values import plain_column, plain_table, unmasked
from trimbench.trimming.asking import UNKNOWN, BayesianAsker

# Numbers of completions that beliefs of the rows of a batch may take.
_MOST_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Raw columns that are features: what those of all estimators have in common.

    Attributes
    ----------
    estimator : fitted classifier
    positions : tuple of int
        The raw column of each feature.
    """

    estimator: Any
    positions: tuple[int, ...]

    @cached_property
    def all_labels(self) -> list[Any]:
        """The label of each raw column: its name, or its position in an array."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return list(range(self.estimator.n_features_in_)) if names is None else [str(name) for name in names]

    @property
    def labels(self) -> tuple[Any, ...]:
        """What results call each feature."""
        return tuple(self.all_labels[position] for position in self.positions)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return tuple(map(str, self.labels))

    def table(self, rows: Any) -> Any:
        """Return rows as a data frame, or as an array of numbers or objects, checked against the training rows."""
        plain = plain_table(unmasked(rows))
        cells = checked_cells(self.estimator, plain)
        if hasattr(plain, "iloc"):
            return plain
        if not isinstance(cells, np.ndarray):
            cells = np.asarray(cells, dtype=object)
        return cells.astype(np.float64) if cells.dtype.kind in "biuf" else cells

    def columns(self, feature: int) -> Sequence[int]:
        """Return the position of the raw column of a feature."""
        return (self.positions[feature],)

    def named(self, costs: Any, groups: Any) -> tuple[Any, Any]:
        """Return costs and groups by the names of raw columns, which may be given by position, too."""
        costs, groups = cost_by_name(costs, self.all_labels, groups), groups_by_name(groups, self.all_labels)
        left_out = set(map(str, self.all_labels)) - set(self.names)
        if isinstance(costs, dict):
            costs = {name: cost for name, cost in costs.items() if name not in left_out}
        elif costs is not None and groups is None and np.ndim(costs) == 1 and len(costs) == len(self.all_labels):
            costs = [costs[position] for position in self.positions]
        return costs, groups

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the predicted label of each row."""
        return np.asarray(self.estimator.predict(table))

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return the probability of each class of each row."""
        return np.asarray(self.estimator.predict_proba(table))


@dataclass(frozen=True, eq=False)
class ConformantColumns(RawColumns):
    """The columns of a `NaiveConformantClassifier`.

    Attributes
    ----------
    model : ConformantAsker
        That of its model, of encoded columns.
    encoded : callable
        From raw rows to encoded ones.
    """

    model: ConformantAsker
    encoded: Callable[[Any], Matrix]

    def rows_at_once(self, objective: Objective) -> int:
        """Return for how many rows beliefs fit into memory."""
        return self.model.rows_at_once(objective)

    def known(self, table: Any) -> NDArray[np.bool_]:
        """Return which features are known, shape (n_rows, n_features)."""
        return self.model.known(self.encoded(table))

    def beliefs(self, table: Any, objective: Objective) -> Beliefs:
        """Return what is believed of the rows: exact for information."""
        return self.model.beliefs(self.encoded(table), objective)

    def stability(self, table: Any) -> Vector:
        """Return the share of completions that are classified as the row is."""
        return self.model.stability(self.encoded(table))


@dataclass(frozen=True, eq=False)
class TrimmedColumns(RawColumns):
    """The columns that a `TrimmedClassifier` keeps; a missing cell is unknown, whatever training rows had there.

    Attributes
    ----------
    model : BayesianAsker
        That of its classifier, of categories.
    rules : tuple of ColumnRule
        How the cells of each kept column become categories.
    """

    model: BayesianAsker
    rules: tuple[ColumnRule, ...]

    def rows_at_once(self, objective: Objective) -> int:
        """Return for how many rows beliefs fit into memory."""
        return self.model.rows_at_once(objective)

    def _codes(self, table: Any) -> NDArray[np.int64]:
        cells = checked_cells(self.estimator, table)
        codes = np.full((len(table), len(self.rules)), UNKNOWN)
        for place, (rule, position) in enumerate(zip(self.rules, self.positions, strict=True)):
            column = plain_column(_series(cells, position))
            rows = np.flatnonzero(column.notna().to_numpy(dtype=bool))
            codes[rows, place] = rule.codes(column.iloc[rows])
        return codes

    def known(self, table: Any) -> NDArray[np.bool_]:
        """Return which features are known, shape (n_rows, n_features)."""
        return np.asarray(self._codes(table) != UNKNOWN)

    def beliefs(self, table: Any, objective: Objective) -> Beliefs:
        """Return what is believed of the rows: exact for information."""
        return self.model.beliefs_of(self._codes(table), objective)

    def stability(self, table: Any) -> Vector:
        """Return the share of completions that are decided as the row is."""
        return self.model.stability_of(self._codes(table))

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the label that is decided on given what is known of each row."""
        places = self.model.decided(self.model.model.probabilities(self._codes(table)).T)
        return np.asarray(self.estimator.classes_[np.argsort(self._order)[places]])

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return the probability of each class given what is known of each row."""
        return self.model.model.probabilities(self._codes(table))[:, self._order]

    @cached_property
    def _order(self) -> list[int]:
        """The position among the classes of the model of each label."""
        return [self.model.class_names.index(str(label)) for label in self.estimator.classes_]


def _series(cells: Any, position: int) -> Any:
    import pandas as pd

    return cells.iloc[:, position] if hasattr(cells, "iloc") else pd.Series(cells[:, position])


@dataclass(frozen=True, eq=False)
class ExpectedColumns(RawColumns):
    """The columns of an `ExpectedClassifier`, of which draws tell what is believed.

    Attributes
    ----------
    check : callable
        From rows as they are given to a checked data frame or array.
    encode : callable
        From checked rows to coded ones.
    classify : callable
        From complete coded rows, checked rows and the row that each completes, to probabilities and decisions.
    stability_of : callable
    density : Density
    n_draws, seed : int
    decide : callable, optional
        As in `DrawnBeliefs`.
    """

    check: Callable[[Any], Any]
    encode: Callable[[Any], Matrix]
    classify: Callable[[Matrix, Any, NDArray[np.intp]], tuple[Matrix, NDArray[np.intp]]]
    stability_of: Callable[[Any], Vector]
    density: Density
    n_draws: int
    seed: int
    decide: Decide | None

    def table(self, rows: Any) -> Any:
        """Return rows as a data frame or an array, checked against the training rows."""
        table = self.check(rows)
        return table if hasattr(table, "iloc") or table.dtype.kind in "fO" else table.astype(np.float64)

    def rows_at_once(self, objective: Objective) -> int:
        """Return for how many rows beliefs fit into memory."""
        return max(_MOST_NUMBERS // (self.n_draws * len(self.positions)), 1)

    def known(self, table: Any) -> NDArray[np.bool_]:
        """Return which features are known, shape (n_rows, n_features)."""
        return np.asarray(~np.isnan(self.encode(table)))

    def beliefs(self, table: Any, objective: Objective) -> Beliefs:
        """Return what is believed of the rows, from draws."""
        rows = self.encode(table)
        drawn = self.density.draw(rows, RandomNumbers(self.n_draws, rows.shape[1], self.seed))
        of_rows = np.repeat(np.arange(len(rows)), self.n_draws)
        probabilities, decisions = self.classify(drawn.reshape(-1, rows.shape[1]), table, of_rows)
        shape = (len(rows), self.n_draws)
        answers = DrawnAnswers(drawn, probabilities.reshape(*shape, -1), decisions.reshape(shape))
        return DrawnBeliefs.of(answers, self.density.margins.categorical, objective, self.decide)

    def stability(self, table: Any) -> Vector:
        """Return the share of completions that are decided as the row is."""
        return self.stability_of(table)


def most_votes(_: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the decision of most completions, for a classifier that decides otherwise than by the largest mean."""
    return np.asarray(shares.argmax(axis=0))
