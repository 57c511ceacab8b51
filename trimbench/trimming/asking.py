"""What Bayesian classifiers believe of rows, for asking: naive Bayes, mixtures, and networks by exact inference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench._typing import IntegerArray, Matrix, Vector
from trimbench.acquisition.beliefs import (
    N_DRAWS,
    Beliefs,
    DrawnAnswers,
    DrawnBeliefs,
    Objective,
    StateBeliefs,
    StateModel,
    chosen_states,
    drawn_codes,
    entropy,
    share_of_decision,
    spread_numbers,
)
from trimbench.acquisition.questions import parts_of
from trimbench.networks.bayesian_network import BayesianNetwork
from trimbench.networks.inference.row_inference import RowInference
from trimbench.networks.values import encode_compactly, plain_column, plain_table
from trimbench.trimming.decisions import check_feature_columns

if TYPE_CHECKING:
    import pandas as pd

# Numbers that beliefs of the rows of a batch may take.
_MOST_NUMBERS = 2**22
UNKNOWN = -1

# From P(class, known) of rows, shape (n_classes, n_rows), to the positions of the classes that are decided on.
Decided = Callable[[NDArray[np.float64]], NDArray[np.intp]]


class CodedModel(Protocol):
    """A model of the class and of coded features, of which some are unknown (-1)."""

    def beliefs(self, codes: IntegerArray) -> Beliefs:
        """Return what is believed of rows; exact."""

    def probabilities(self, codes: IntegerArray) -> Matrix:
        """Return P(class | known) of each row, shape (n_rows, n_classes)."""

    def complete(self, codes: IntegerArray, numbers: Matrix) -> NDArray[np.intp]:
        """Return draws of rows, (n_rows, n_draws, n_features), from numbers of shape (n_draws, 1 + n_features)."""


@dataclass(frozen=True, eq=False)
class BayesianAsker:
    """What policies of asking need of a Bayesian classifier; see `trimbench.acquisition.questions.Askable`.

    Attributes
    ----------
    names : tuple of str
        The features.
    values : tuple of tuple of str
        Names of the values of each feature.
    class_names : tuple of str
    decided : callable
    model : CodedModel
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    class_names: tuple[str, ...]
    decided: Decided
    model: CodedModel

    @property
    def labels(self) -> tuple[Any, ...]:
        """The features."""
        return self.names

    def table(self, rows: Any) -> pd.DataFrame:
        """Return the columns of the features; ValueError if one is absent or a value is unknown."""
        frame = plain_table(rows)
        if not hasattr(frame, "columns"):
            encode_compactly(frame, dict(zip(self.names, self.values, strict=True)))  # raises
        check_feature_columns(frame.columns, self.names)
        labels = [str(label) for label in frame.columns]
        chosen: pd.DataFrame = frame.iloc[:, [labels.index(name) for name in self.names]]
        self.codes(chosen)
        return chosen

    def columns(self, feature: int) -> Sequence[int]:
        """Return the position of the column of a feature."""
        return (feature,)

    def named(self, costs: Any, groups: Any) -> tuple[Any, Any]:
        """Return costs and groups as they are: by name."""
        return costs, groups

    def rows_at_once(self, objective: Objective) -> int:
        """Return for how many rows beliefs fit into memory."""
        width = sum(map(len, self.values)) * (1 if objective == "information" else N_DRAWS)
        return max(_MOST_NUMBERS // max(width, 1), 1)

    def codes(self, table: pd.DataFrame) -> NDArray[np.int64]:
        """Return the value indices of the features of each row, -1 where one is missing."""
        codes = np.full((len(table), len(self.names)), UNKNOWN)
        for place, (name, values) in enumerate(zip(self.names, self.values, strict=True)):
            rows = np.flatnonzero(plain_column(table.iloc[:, place]).notna().to_numpy(dtype=bool))
            codes[rows, place] = encode_compactly(table.iloc[rows, [place]], {name: values})[:, 0]
        return codes

    def known(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which features are known, shape (n_rows, n_features)."""
        return np.asarray(self.codes(table) != UNKNOWN)

    def beliefs(self, table: pd.DataFrame, objective: Objective) -> Beliefs:
        """Return what is believed of the rows: exact for information."""
        return self.beliefs_of(self.codes(table), objective)

    def beliefs_of(self, codes: IntegerArray, objective: Objective) -> Beliefs:
        """Return what is believed of coded rows."""
        if objective == "information":
            return self.model.beliefs(codes)
        categorical = np.ones(len(self.names), dtype=bool)
        return DrawnBeliefs.of(self._answers(codes), categorical, objective, self._decide)

    def _decide(self, means: NDArray[np.float64], _: NDArray[np.float64]) -> NDArray[np.intp]:
        return self.decided(means.reshape(len(means), -1)).reshape(means.shape[1:])

    def _answers(self, codes: IntegerArray) -> DrawnAnswers:
        drawn = self.model.complete(codes, spread_numbers(len(self.names) + 1))
        whole = self.model.probabilities(drawn.reshape(-1, len(self.names)))
        shape = drawn.shape[:2]
        decisions = self.decided(whole.T).reshape(shape)
        return DrawnAnswers(drawn.astype(np.float64), whole.reshape(*shape, -1), decisions)

    def stability(self, table: pd.DataFrame) -> Vector:
        """Return the share of completions that are decided as the row is."""
        return self.stability_of(self.codes(table))

    def stability_of(self, codes: IntegerArray) -> Vector:
        """Return the stability of coded rows."""
        result = np.ones(len(codes))
        gaps = np.flatnonzero((codes == UNKNOWN).any(axis=1))
        for rows in parts_of(gaps, self.rows_at_once("stability")):
            wanted = self.decided(self.model.probabilities(codes[rows]).T)
            result[rows] = share_of_decision(self._answers(codes[rows]).decisions, wanted)
        return result

    def predict(self, table: pd.DataFrame) -> NDArray[Any]:
        """Return the name of the class of each row."""
        return np.asarray(np.array(self.class_names)[self.decided(self.predict_proba(table).T)])

    def predict_proba(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Return the probability of each class given what is known of each row."""
        return self.model.probabilities(self.codes(table))


@dataclass(frozen=True, eq=False)
class ComponentModel:
    """Features that are independent given a component of a class.

    Attributes
    ----------
    log_prior : ndarray of shape (n_components,)
    tables : tuple of ndarray of shape (n_components, n_values)
    sides : list of list of int
        The components of each class.
    """

    log_prior: Vector
    tables: tuple[Matrix, ...]
    sides: list[list[int]]

    @cached_property
    def states(self) -> StateModel:
        """The components as states."""
        class_of = np.empty(len(self.log_prior), dtype=np.intp)
        for label, rows in enumerate(self.sides):
            class_of[rows] = label
        return StateModel([np.ascontiguousarray(table.T) for table in self.tables], class_of, len(self.sides))

    def _posteriors(self, codes: IntegerArray) -> Matrix:
        """Return P(component | known); the prior for an impossible row."""
        logs = np.tile(self.log_prior, (len(codes), 1))
        with np.errstate(divide="ignore"):
            for feature, table in enumerate(self.states.tables):
                of_value = np.vstack([np.log(table), np.zeros(len(self.log_prior))])  # the last for unknown values
                logs += of_value[codes[:, feature]]
        impossible = np.isneginf(logs).all(axis=1)
        logs[impossible] = self.log_prior
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def beliefs(self, codes: IntegerArray) -> StateBeliefs:
        """Return what is believed of rows."""
        return StateBeliefs(self.states, self._posteriors(codes))

    def probabilities(self, codes: IntegerArray) -> Matrix:
        """Return P(class | known) of each row."""
        return self.beliefs(codes).classes

    def complete(self, codes: IntegerArray, numbers: Matrix) -> NDArray[np.intp]:
        """Return draws of rows."""
        states = chosen_states(self._posteriors(codes), numbers[:, 0])
        drawn = np.empty((*states.shape, len(self.tables)), dtype=np.intp)
        for feature, table in enumerate(self.states.tables):
            given = codes[:, [feature]]
            values = drawn_codes(table, states, numbers[:, feature + 1])
            drawn[:, :, feature] = np.where(given == UNKNOWN, values, given)
        return drawn


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A Bayesian network, with one exact inference for each set of features that some rows know.

    Attributes
    ----------
    network : BayesianNetwork
    target : str
    names : tuple of str
        The features.
    evidence : mapping from node to state
    sides : list of list of int
        The states of each class.
    """

    network: BayesianNetwork
    target: str
    names: tuple[str, ...]
    evidence: Mapping[str, str]
    sides: list[list[int]]
    _inferences: dict[tuple[int, ...], RowInference] = field(default_factory=dict, init=False, repr=False)

    def n_values(self, feature: int) -> int:
        """Return the number of values of a feature."""
        return self.network.cardinality(self.names[feature])

    def joint(self, codes: IntegerArray, members: Sequence[int]) -> NDArray[np.float64]:
        """Return P(class, values of some unknown features | known), shape (n_rows, n_outcomes, n_classes).

        An impossible row has the distribution of a row of which nothing is known.
        """
        sizes = [self.n_values(feature) for feature in members]
        result = np.empty((len(codes), math.prod(sizes), len(self.sides)))
        outcomes = np.array(list(itertools.product(*map(range, sizes))), dtype=np.intp).reshape(
            result.shape[1], len(sizes)
        )
        patterns, of_rows = np.unique(codes != UNKNOWN, axis=0, return_inverse=True)
        for place, pattern in enumerate(patterns):
            rows = np.flatnonzero(of_rows.ravel() == place)
            known = np.flatnonzero(pattern)
            asked = np.repeat(codes[np.ix_(rows, known)], len(outcomes), axis=0)
            wide = np.hstack([asked, np.tile(outcomes, (len(rows), 1))]).astype(np.intp)
            logs = self._inference((*known.tolist(), *members)).log_joint(wide).reshape(len(rows), -1)
            top = logs.max(axis=1, keepdims=True)
            chances = np.exp(logs - np.where(np.isfinite(top), top, 0.0)).reshape(len(rows), len(outcomes), -1)
            of_classes = np.stack([chances[:, :, side].sum(axis=2) for side in self.sides], axis=2)
            total = of_classes.sum(axis=(1, 2), keepdims=True)
            if (total <= 0).any() and len(known):
                impossible = np.flatnonzero(total.ravel() <= 0)
                of_classes[impossible] = self.joint(np.full((1, len(self.names)), UNKNOWN), members)
                total[impossible] = 1.0
            result[rows] = of_classes / total
        return result

    def _inference(self, observed: tuple[int, ...]) -> RowInference:
        if observed not in self._inferences:
            names = [self.names[feature] for feature in observed]
            inference = RowInference.of_network(self.network, self.target, names, self.evidence, whole=True)
            self._inferences[observed] = inference
        return self._inferences[observed]

    def beliefs(self, codes: IntegerArray) -> NetworkBeliefs:
        """Return what is believed of rows."""
        return NetworkBeliefs(self, codes)

    def probabilities(self, codes: IntegerArray) -> Matrix:
        """Return P(class | known) of each row."""
        return self.joint(codes, ())[:, 0]

    def complete(self, codes: IntegerArray, numbers: Matrix) -> NDArray[np.intp]:
        """Return draws of rows: one feature after the other, each given all before it."""
        n_features = len(self.names)
        drawn = np.repeat(np.asarray(codes, dtype=np.intp), len(numbers), axis=0)
        for feature in range(n_features):
            rows = np.flatnonzero(drawn[:, feature] == UNKNOWN)
            if len(rows):
                chances = self.joint(drawn[rows], (feature,)).sum(axis=2)
                below = np.cumsum(chances, axis=1)[:, :-1]
                drawn[rows, feature] = (below <= numbers[rows % len(numbers), [feature + 1]][:, None]).sum(axis=1)
        return drawn.reshape(len(codes), len(numbers), n_features)


@dataclass(frozen=True, eq=False)
class NetworkBeliefs:
    """Beliefs of rows under a network; they are exact.

    Attributes
    ----------
    model : NetworkModel
    codes : ndarray of int, shape (n_rows, n_features)
        -1 for what is unknown.
    """

    model: NetworkModel
    codes: IntegerArray
    most_outcomes: int = 1024

    def __len__(self) -> int:
        return len(self.codes)

    def uncertainty(self) -> Vector:
        """Return the entropy of the class of each row."""
        return entropy(self.model.probabilities(self.codes))

    def n_outcomes(self, feature: int) -> int:
        """Return the number of values of a feature."""
        return self.model.n_values(feature)

    def expected(self, features: Sequence[int]) -> Matrix:
        """Return the expected entropy of the class once a feature is known, shape (n_rows, n_features)."""
        result = np.zeros((len(self), len(features)))
        for place, feature in enumerate(features):
            rows = np.flatnonzero(self.codes[:, feature] == UNKNOWN)
            if len(rows):
                joint = self.model.joint(self.codes[rows], (feature,))
                # H(C | X) = H(C, X) - H(X)
                result[rows, place] = entropy(joint.reshape(len(rows), -1)) - entropy(joint.sum(axis=2))
        return np.maximum(result, 0.0)

    def after(self, members: Sequence[int]) -> tuple[Matrix, NetworkBeliefs]:
        """Return the probability of each joint answer, and the beliefs after it."""
        chances = self.model.joint(self.codes, members).sum(axis=2)
        outcomes = list(itertools.product(*(range(self.n_outcomes(feature)) for feature in members)))
        codes = np.repeat(self.codes, len(outcomes), axis=0)
        codes[:, list(members)] = np.tile(np.array(outcomes), (len(self), 1))
        return chances, NetworkBeliefs(self.model, codes)

    def take(self, rows: NDArray[np.intp]) -> NetworkBeliefs:
        """Return the beliefs of some rows."""
        return NetworkBeliefs(self.model, self.codes[rows])

    def key(self) -> Matrix:
        """Return the codes of the rows."""
        return np.asarray(self.codes, dtype=np.float64)
